"""Delivery: what the engine has decided reaches the application, in order, in a thread of its own.

Packs become numbered batches (`groups.stream`), views are told between them, state is taken over and given. Here it is
also decided what the engine may forget: what the application keeps by itself or has put into a snapshot, or, for an
application that keeps nothing, what is older than the last so many megabytes.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec
import numpy

from echoic.errors import EchoicError
from echoic.groups.engine import Delivered, Ended, Engine, EngineEvent, Restored, StateWanted, Suspended, View, Viewed
from echoic.groups.stream import Stream
from echoic.hub.group_loop import GroupLoop
from echoic.wire import Batch

__all__ = ["GroupDelivery", "GroupStamp", "GroupState", "Subscriber", "ViewHandler"]

KEPT_BYTES: Final = 64 * 1024 * 1024
MARK_BYTES: Final = 1024 * 1024
EVENT_BYTES: Final = 64
EARLY_MAX: Final = 100_000
EARLY_BYTES_MAX: Final = 32 * 1024 * 1024
BATCH_BYTES: Final = 1024
"""What a batch that is set aside costs beside its records, roughly."""
log: Final = logging.getLogger("echoic.groups")

ViewHandler: TypeAlias = Callable[[View], object]


class GroupStamp(msgspec.Struct, frozen=True, gc=False):
    """Where an event stands in the order; of a batch, its first."""

    sequence: int
    """Its number, from 1, the same at every member."""
    sender: str
    view: View
    """The view in which it was delivered here."""


class GroupState(Protocol):
    """What an application has made of the events, so that a member that was away can be given it.

    It is called by the thread that delivers, between two events.
    """

    durable: bool
    """Whether it survives the end of the process by itself; otherwise it is put into snapshots."""

    def applied(self) -> int:
        """Return the number of the last event it has, 0 for none. Events up to it are not delivered again."""

    def save(self, after: int) -> Iterable[bytes]:
        """Return in chunks of up to a megabyte what somebody lacks who has everything up to a number.

        Of a durable state the chunks are read later, by another thread, while further events are handled; what they
        hold must be that of the moment of this call. Others are read at once.
        """

    def load(self, chunks: Iterable[bytes], upto: int) -> None:
        """Take over what another has saved, which has everything up to a number."""


class Subscriber(msgspec.Struct, eq=False):
    """Somebody who is told of events, batches, views and gaps."""

    on_batch: Callable[[Batch, GroupStamp], object]
    on_view: ViewHandler | None = None
    on_gap: Callable[[int, int], object] | None = None
    on_end: Callable[[], object] | None = None


class Gap(msgspec.Struct, frozen=True):
    """Events that nobody keeps any more."""

    first: int
    last: int


class GroupDelivery:
    """Hands events over to subscribers."""

    def __init__(self, name: str, state: GroupState | None, *, kept_bytes: int = KEPT_BYTES) -> None:
        self.view = View(0, (), False)
        self.reason = "no view was delivered yet"
        """Why this member is not in the primary partition, while it is not."""
        self.stream: Final = Stream(state.applied() if state is not None else 0)
        self.applied: int = self.stream.sequence
        """The number of the last event that all subscribers have handled."""
        self.failures = 0
        self._state = state
        self._name = name
        self._kept_bytes = kept_bytes
        self._subscribers: tuple[Subscriber, ...] = ()
        self._events: deque[EngineEvent | int] = deque()
        self._early: deque[tuple[Batch, GroupStamp] | View | Gap] = deque()
        """What came before the first subscriber."""
        self._early_bytes = self._queued_bytes = 0
        self._owed: list[tuple[int, int]] = []
        """Members that are to be given the state, when the application has what was set aside."""
        self._changed = threading.Condition()
        self._closed = False
        self._position = 0
        self._marks: deque[tuple[int, int, bytes]] = deque()
        self._delivered_bytes = self._marked_bytes = self._compacted_bytes = 0
        self._waiters: dict[int, Callable[[GroupStamp], None]] = {}
        self.own = 0
        """How many of this member's own events were delivered."""
        self._thread = threading.Thread(target=self._run, name=f"echoic-deliver-{name}", daemon=True)

    @property
    def backlog_bytes(self) -> int:
        """How much waits to be handled; what is set aside counts if it must not be dropped, for a state."""
        return self._queued_bytes + (self._early_bytes if self._state is not None else 0)

    @property
    def handles_here(self) -> bool:
        """Whether the calling thread is the one that delivers, so that it cannot wait for deliveries."""
        return threading.current_thread() is self._thread

    def start(self, engine: Engine, loop: GroupLoop, me: str, life: int) -> None:
        """Begin."""
        self._engine, self._loop, self._me, self._life = engine, loop, me, life
        self._thread.start()

    def expect_replay(self) -> bytes:
        """Learn that the engine tells everything its log has; return what stands for what the application has."""
        beginning = self.stream.summary()
        self.stream.sequence = 0
        return beginning

    def add(self, subscriber: Subscriber) -> None:
        """Tell somebody of all events from here on; the first one of all that came before as well."""
        with self._changed:
            self._subscribers = (*self._subscribers, subscriber)
            self._changed.notify_all()

    def remove(self, subscriber: Subscriber) -> None:
        """Tell somebody no more."""
        with self._changed:
            self._subscribers = tuple(each for each in self._subscribers if each is not subscriber)

    def await_own(self, number: int, answer: Callable[[GroupStamp], None]) -> None:
        """Have the stamp of this member's event of a number told, once it was delivered."""
        self._waiters[number] = answer

    def forget_own(self, number: int) -> None:
        """Have it told no more."""
        self._waiters.pop(number, None)

    def hand_over(self, events: Sequence[EngineEvent | int]) -> None:
        """Take what the engine tells; called by the loop."""
        size = sum(len(event.payload) + EVENT_BYTES for event in events if isinstance(event, Delivered))
        with self._changed:
            self._events.extend(events)
            self._queued_bytes += size
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is true that delivery brings about."""
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    def close(self, seconds: float) -> None:
        """Deliver what is there, if it does not take too long, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._events or (self._early and self._subscribers) or self._closed)
                if not self._events and self._closed:
                    break
                events = list(self._events)
                self._events.clear()
            try:
                self._tell_early()
                for event in events:
                    self._deliver(event)
            except Exception as error:  # the state is the program's own, and so is what it raises
                log.exception("group `%s`: the state of the application has failed", self._name)
                self._loop.fail(f"the state of the application has failed: {error}")
                break
            with self._changed:
                self._changed.notify_all()
        for subscriber in self._subscribers:
            if subscriber.on_end is not None:
                subscriber.on_end()

    def _deliver(self, event: EngineEvent | int) -> None:
        match event:
            case int():
                self._answer(event, GroupStamp(0, self._me, self.view))
            case Delivered():
                self._position = event.position
                self._deliver_pack(event)
                self._queued_bytes -= len(event.payload) + EVENT_BYTES
                self._consider_compacting(len(event.payload) + EVENT_BYTES)
            case Viewed(view):
                self._position = max(self._position, view.position)
                self._tell_view(view, "" if view.primary else "this member catches up")
            case Suspended(reason):
                self._tell_view(View(self.view.position, (), False), reason)
            case StateWanted(ticket, after):
                self._give_state(ticket, after)
            case Restored():
                self._restore(event)
            case Ended(reason):
                self._tell_view(View(self.view.position, (), False), reason)

    def _deliver_pack(self, event: Delivered) -> None:
        stream = self.stream
        before = stream.sequence
        try:
            batch = stream.deliver(event.payload)
        except EchoicError as error:
            log.warning("pack %d of %s is passed over: %s", event.number, event.sender, error)
            return
        if batch is None:
            return
        stamp = GroupStamp(before + 1, event.sender, self.view)
        if self._subscribers:
            self._tell_early()
            self._tell(batch, stamp)
        else:
            self._set_aside(batch, stamp)
        if event.life == self._life and event.sender == self._me:
            self._answer(batch.count, stamp)

    def _tell_early(self) -> None:
        """Tell the first subscriber what came before it."""
        while self._early and self._subscribers:
            early = self._early.popleft()
            if isinstance(early, View):
                self._call_view(early)
            elif isinstance(early, Gap):
                self._tell_gap(early)
            else:
                self._early_bytes -= early[0].record_bytes + BATCH_BYTES
                self._tell(*early)
        owed, self._owed = self._owed, []
        for ticket, after in owed:
            self._give_state(ticket, after)

    def _set_aside(self, batch: Batch, stamp: GroupStamp) -> None:
        """Keep events for the first subscriber, if they are not too many: a member may have none."""
        self._early.append((batch, stamp))
        self._early_bytes += batch.record_bytes + BATCH_BYTES
        if self._early_bytes > min(self._kept_bytes // 2, EARLY_BYTES_MAX) and self._state is None:
            self._early.clear()
            self._early_bytes = 0
            self._early.append(Gap(self.applied + 1, self.stream.sequence))
            log.info("group `%s` has no subscriber: events up to %d are not kept", self._name, self.stream.sequence)

    def _tell(self, batch: Batch, stamp: GroupStamp) -> None:
        """Let every subscriber handle events, but for those that the application has already."""
        known = self.applied - stamp.sequence + 1
        if known >= batch.count:
            return
        if known > 0:
            batch = batch.select(numpy.arange(known, batch.count))
            stamp = GroupStamp(self.applied + 1, stamp.sender, stamp.view)
        self._call_batch(batch, stamp)
        self.applied = self._engine.applied_sequence = stamp.sequence + batch.count - 1

    def _call_batch(self, batch: Batch, stamp: GroupStamp) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber.on_batch(batch, stamp)
            except Exception:  # what users' code raises must not end the others' deliveries
                self.failures += 1
                log.exception("a handler of group `%s` failed at event %d", self._name, stamp.sequence)

    def _answer(self, count: int, stamp: GroupStamp) -> None:
        """Answer those who wait for own events; one that is part of a state has no number of its own here, so 0."""
        first = self.own + 1
        self.own += count
        for number in [each for each in list(self._waiters) if each <= self.own]:
            answer = self._waiters.pop(number, None)
            if answer is not None:
                sequence = stamp.sequence + number - first if stamp.sequence else 0
                answer(GroupStamp(sequence, stamp.sender, stamp.view))

    def _tell_view(self, view: View, reason: str) -> None:
        changed = view != self.view
        self.view, self.reason = view, reason
        if changed and self._subscribers:
            self._tell_early()
            self._call_view(view)
        elif changed and len(self._early) < EARLY_MAX:
            self._early.append(view)

    def _call_view(self, view: View) -> None:
        for subscriber in self._subscribers:
            if subscriber.on_view is not None:
                try:
                    subscriber.on_view(view)
                except Exception:  # as above
                    self.failures += 1
                    log.exception("a handler of views of group `%s` failed", self._name)

    def _give_state(self, ticket: int, after: int) -> None:
        state, engine = self._state, self._engine
        if state is not None and self._early:
            self._owed.append((ticket, after))
            return
        position, summary = self._position, self.stream.summary()
        chunks = state.save(after) if state is not None else ()
        if state is not None and not state.durable:
            chunks = tuple(chunks)
        self._loop.do(lambda: engine.give_state(ticket, position, summary, chunks))

    def _restore(self, event: Restored) -> None:
        before = self.applied
        upto = self.stream.restore(event.summary)
        self._position = event.position
        self._marks.clear()
        self._early.clear()
        self._early_bytes = 0
        if upto <= before:
            return
        if self._state is not None and (event.chunks or not self._state.durable):
            self._state.load(event.chunks, upto)
        else:
            log.warning("group `%s`: events %d to %d are kept by nobody", self._name, before + 1, upto)
            if not self._subscribers:
                self._early.append(Gap(before + 1, upto))
                return
            self._tell_gap(Gap(before + 1, upto))
        self.applied = self._engine.applied_sequence = upto

    def _tell_gap(self, gap: "Gap") -> None:
        self.applied = self._engine.applied_sequence = gap.last
        for subscriber in self._subscribers:
            if subscriber.on_gap is not None:
                try:
                    subscriber.on_gap(gap.first, gap.last)
                except Exception:  # as above
                    self.failures += 1
                    log.exception("a handler of gaps of group `%s` failed", self._name)

    def _consider_compacting(self, size: int) -> None:
        """Let the engine forget what is not needed, now and then."""
        self._delivered_bytes += size
        if self._delivered_bytes - self._marked_bytes < MARK_BYTES:
            return
        self._marked_bytes = self._delivered_bytes
        self._marks.append((self._delivered_bytes, self._position, self.stream.summary()))
        if self._delivered_bytes - self._compacted_bytes < 2 * self._kept_bytes:
            return
        state, engine = self._state, self._engine
        if state is not None and not state.durable:
            self._compacted_bytes = self._delivered_bytes
            position, summary, chunks = self._position, self.stream.summary(), tuple(state.save(0))
            self._loop.do(lambda: engine.compact(position, summary, chunks))
            return
        mark = None
        while self._delivered_bytes - self._marks[0][0] > self._kept_bytes:
            mark = self._marks.popleft()
        if mark is not None:
            self._compacted_bytes, place, told = mark
            self._loop.do(lambda: engine.compact(place, told))
