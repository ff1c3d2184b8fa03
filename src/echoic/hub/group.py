"""An ordered group, as a program holds it: submit, subscribe, views.

    ledger = hub.join("ledger", Transfer, me="n1", peers={"n1": "h1:7401", "n2": "h2:7401", "n3": "h3:7401"})
    ledger.subscribe(handler)                  handler(event, stamp): the same events in the same order at every member
    ledger.submit(Transfer(...))

What is submitted here is delivered everywhere, here as well, or nowhere. A member that is cut off from the majority is
told so (`view.primary`), is given nothing, and keeps what it submits until it is back; the others go on with the same
events in the same order.
"""

import contextlib
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self

import msgspec

from echoic.engines.embedded import EmbeddedEngine
from echoic.errors import ClosedError, DeliveryError, EncodeError, LocalError, RefusedError
from echoic.formats import bind
from echoic.groups.engine import Engine, View
from echoic.groups.packer import Packer, PackingStatistics
from echoic.groups.policies import PackingChange
from echoic.groups.stream import PACK_HEADER_BYTES
from echoic.hub.group_delivery import GroupDelivery, GroupStamp, Subscriber, ViewHandler
from echoic.hub.group_loop import INBOX_MAX, GroupLoop
from echoic.wire import Batch, decoder_of, encoder_of

__all__ = ["Group", "GroupEvents", "GroupPacking", "GroupSink", "GroupStatistics"]

SUBMIT_SECONDS: Final = 30.0
CHANGE_SECONDS: Final = 0.1
LOOK_SECONDS: Final = 0.1
CLOSE_SECONDS: Final = 1.5
EVENTS_MAX: Final = 65_536
BATCH_OVERHEAD_BYTES: Final = 4096

Handler = Callable[[object, GroupStamp], object]
BatchHandler = Callable[[Batch, GroupStamp], object]


class GroupStatistics(msgspec.Struct, frozen=True):
    """How a member of a group stands."""

    name: str
    me: str
    view: View
    reason: str
    """Why this member is not in a primary view, while it is not."""
    submitted: int
    delivered: int
    """The number of the last event that was delivered here."""
    backlog_bytes: int
    """Delivered by the group and not yet handled by this program."""
    handler_failures: int
    packing: PackingStatistics
    engine: dict[str, object]


class GroupSink:
    """A subscription to a group."""

    def __init__(self, delivery: GroupDelivery, subscriber: Subscriber) -> None:
        self._delivery, self._subscriber = delivery, subscriber

    def close(self) -> None:
        """Be told no more."""
        self._delivery.remove(self._subscriber)


class GroupPacking:
    """How a group packs, for those who look at it."""

    def __init__(self, packer: Packer, loop: GroupLoop) -> None:
        self._packer = packer
        self._loop = loop

    def statistics(self) -> PackingStatistics:
        """Return degree, throughput, latency, what waits, and why the degree is what it is."""
        return self._packer.statistics()

    def changes(self) -> list[PackingChange]:
        """Return how the policy has changed its mind since this was last asked, and why."""
        return self._packer.changes()


class Group:
    """One member of an ordered group. Made by `Hub.join`."""

    def __init__(
        self,
        name: str,
        me: str,
        declared: object,
        engine: Engine,
        packer: Packer,
        loop: GroupLoop,
        delivery: GroupDelivery,
        on_close: Callable[[], None],
    ) -> None:
        self.name: Final = name
        self.me: Final = me
        self.format: Final = bind(declared).format
        self.packing: Final = GroupPacking(packer, loop)
        self._declared = declared
        self._engine, self._packer, self._loop, self._delivery = engine, packer, loop, delivery
        self._on_close = on_close
        kind = declared if isinstance(declared, type) else object
        self._encode = encoder_of(self.format).single(kind)
        self._bytes_max = engine.capabilities.pack_bytes_max - PACK_HEADER_BYTES - BATCH_OVERHEAD_BYTES
        self._submitted = 0
        self._counting = threading.Lock()
        self._closed = False

    @property
    def view(self) -> View:
        """Who is in the group, as far as this member was told."""
        return self._delivery.view

    @property
    def sequence(self) -> int:
        """The number of the last event that was delivered here."""
        return self._delivery.applied

    def submit(self, event: object) -> None:
        """Have an event ordered, and do not wait for it.

        It does wait while too much is under way, which is how a group slows whoever submits instead of losing it.

        Raises:
            EncodeError: A value does not fit its field, or the event is too large.
            DeliveryError: There was no room for long: no majority answers, or the group is stuck.
            ClosedError: The group was closed, or has ended.
        """
        self._submit(self._encode(event))

    def would_wait(self) -> bool:
        """Tell whether `submit` would wait now, because too much is under way."""
        return self._loop.full or len(self._loop.inbox) >= INBOX_MAX

    def submit_batch(self, events: object) -> None:
        """Have many events ordered: a sequence, a NumPy structured array, an Arrow RecordBatch, or a Batch.

        Others' events may come between them.

        Raises:
            EchoicError: As `submit` does.
        """
        batch = events if isinstance(events, Batch) else Batch.of(events, self._declared)
        batch = batch.to(self._declared)
        records, bounds = bytes(batch.records), batch.bounds
        for start, end in itertools.pairwise(bounds):
            self._submit(records[start:end])

    def submit_sync(self, event: object, timeout: float = 5.0) -> GroupStamp:
        """Have an event ordered, and return its place when it was delivered here; then it is, or will be, everywhere.

        Its number is 0 if it is part of a state that this member was given, having been away.

        Raises:
            DeliveryError: That did not happen in time. It may happen yet.
            LocalError: A handler of this group calls it, which could only wait for itself.
            EncodeError: A value does not fit its field, or the event is too large.
            ClosedError: The group was closed, or has ended.
        """
        self._refuse_waiting()
        answered = threading.Event()
        stamps: list[GroupStamp] = []

        def answer(stamp: GroupStamp) -> None:
            stamps.append(stamp)
            answered.set()

        number = self._submit(self._encode(event), answer, timeout)
        deadline = time.monotonic() + timeout
        while not answered.wait(min(LOOK_SECONDS, max(0.0, deadline - time.monotonic()))):
            if self._loop.failure or time.monotonic() >= deadline:
                self._delivery.forget_own(number)
                break
        if stamps:
            return stamps[0]
        if self._loop.failure:
            raise ClosedError(self._loop.failure)
        raise self._late(timeout)

    def subscribe(
        self,
        handler: Handler | BatchHandler,
        *,
        batch: bool = False,
        declared: object | None = None,
        on_view: ViewHandler | None = None,
        on_gap: Callable[[int, int], object] | None = None,
        on_end: Callable[[], object] | None = None,
    ) -> GroupSink:
        """Be told of every event in the group's order.

        The first subscriber is told of all that the group has kept; those who come later, from then on. Handlers run
        one after the other in a thread of the group's own.

        Args:
            handler: Called with each event and its stamp; with `batch`, with each batch and its first event's stamp.
            batch: Take whole batches, as they were packed.
            declared: The type in which to receive, if it is not the group's.
            on_view: Called with each view, between the same events at every member.
            on_gap: Called with the first and last number of events that nobody keeps any more.
            on_end: Called when nothing more comes: the group was closed, or has ended.

        Raises:
            ClosedError: The group was closed.
            FormatError: `declared` is not an event type.
        """
        if self._closed:
            raise ClosedError(f"group `{self.name}` was closed")
        decoder = decoder_of(self._declared if declared is None else declared)

        def take_batch(received: Batch, stamp: GroupStamp) -> None:
            handler(received.to(decoder), stamp)

        def take_events(received: Batch, stamp: GroupStamp) -> None:
            sender, view = stamp.sender, stamp.view
            for sequence, event in enumerate(received.to(decoder).events(), stamp.sequence):
                handler(event, GroupStamp(sequence, sender, view))  # type: ignore[arg-type] # as `batch` says

        subscriber = Subscriber(take_batch if batch else take_events, on_view, on_gap, on_end)
        self._delivery.add(subscriber)
        return GroupSink(self._delivery, subscriber)

    def events(self, *, timeout: float | None = None) -> "GroupEvents":
        """Return an iterator over events and their stamps; it ends when none came for `timeout` seconds."""
        return GroupEvents(self, timeout)

    def wait_for(self, condition: Callable[[View], bool], timeout: float = 10.0) -> View:
        """Return the view when it fulfils a condition, such as `lambda view: len(view.members) == 3`.

        Raises:
            DeliveryError: It did not in time.
        """
        if not self._delivery.wait(lambda: condition(self._delivery.view), timeout):
            raise self._late(timeout)
        return self._delivery.view

    def drain(self, timeout: float = 10.0) -> None:
        """Return when everything that was submitted here so far was delivered here.

        Raises:
            DeliveryError: It was not in time.
        """
        self._refuse_waiting()
        wanted = self._submitted
        if not self._delivery.wait(lambda: self._delivery.own >= wanted or bool(self._loop.failure), timeout):
            raise self._late(timeout)
        if self._delivery.own < wanted:
            raise self._late(timeout)

    def admit(self, name: str, address: str, timeout: float = 10.0) -> None:
        """Give another member a seat; it can join then.

        Raises:
            LocalError: The engine has a fixed set of members.
            RefusedError: It was not done in time: no majority answers.
        """
        self._change(name, address, admit=True, timeout=timeout)

    def expel(self, name: str, timeout: float = 10.0) -> None:
        """Take a member's seat away.

        Raises:
            LocalError: The engine has a fixed set of members.
            RefusedError: It was not done in time: no majority answers.
        """
        self._change(name, "", admit=False, timeout=timeout)

    def statistics(self) -> GroupStatistics:
        """Return how this member stands."""
        delivery = self._delivery
        return GroupStatistics(
            self.name,
            self.me,
            delivery.view,
            delivery.reason,
            self._submitted,
            delivery.applied,
            delivery.backlog_bytes,
            delivery.failures,
            self._packer.statistics(),
            dict(self._engine.statistics()),
        )

    def close(self) -> None:
        """Send what waits if that goes quickly, take leave, and end."""
        if self._closed:
            return
        self._closed = True
        if not self._loop.failure and self.view.primary and not self._delivery.handles_here:
            with contextlib.suppress(DeliveryError):  # nobody answers: those who have it will deliver it
                self.drain(CLOSE_SECONDS)
        self._loop.close(CLOSE_SECONDS)
        self._delivery.close(CLOSE_SECONDS)
        self._on_close()

    def forsake(self) -> None:
        """Be closed without a word: this is the copy of a member in a forked child."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Group {self.name} at {self.me}: {', '.join(self.view.members) or 'no view'}>"

    def _submit(
        self, record: bytes, answer: Callable[[GroupStamp], None] | None = None, timeout: float = SUBMIT_SECONDS
    ) -> int:
        loop = self._loop
        self._check_open()
        if len(record) > self._bytes_max:
            raise EncodeError(f"an event has {len(record)} bytes, limit of this group's engine is {self._bytes_max}")
        if (loop.full or len(loop.inbox) >= INBOX_MAX) and not self._delivery.handles_here:
            if not loop.wait_for_room(time.monotonic() + timeout):
                raise self._late(timeout)
            self._check_open()
        with self._counting:
            self._submitted += 1
            number = self._submitted
            if answer is not None:
                self._delivery.await_own(number, answer)
            loop.inbox.append(record)
        if not loop.awake:
            loop.wake()
        return number

    def _check_open(self) -> None:
        if self._closed or self._loop.failure:
            raise ClosedError(self._loop.failure or f"group `{self.name}` was closed")

    def _refuse_waiting(self) -> None:
        if self._delivery.handles_here:
            raise LocalError("a handler of a group cannot wait for the group, which waits for the handler")

    def _late(self, timeout: float) -> DeliveryError:
        reason = self._delivery.reason or f"{self._packer.under_way} packs are under way"
        return DeliveryError({f"group {self.name}": f"nothing for {timeout:g} s: {reason}"})

    def _change(self, name: str, address: str, *, admit: bool, timeout: float) -> None:
        engine = self._engine
        if not isinstance(engine, EmbeddedEngine):
            raise LocalError(f"the members of group `{self.name}` are fixed by its engine")
        deadline = time.monotonic() + timeout
        while engine.has_seat(name) is not admit:
            if time.monotonic() > deadline:
                raise RefusedError(f"`{name}` was not {'admitted' if admit else 'expelled'}: {self._delivery.reason}")
            engine.change(name, address, admit=admit)
            time.sleep(CHANGE_SECONDS)


class GroupEvents(Iterator[tuple[object, GroupStamp]]):
    """Events of a group, one after the other."""

    def __init__(self, group: Group, timeout: float | None) -> None:
        self._timeout = timeout
        self._waiting: deque[tuple[object, GroupStamp]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._sink = group.subscribe(self._take, on_end=self._end)

    def __next__(self) -> tuple[object, GroupStamp]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, self._timeout)
            if not self._waiting:
                raise StopIteration
            taken = self._waiting.popleft()
            self._changed.notify_all()
            return taken

    def take(self, seconds: float) -> list[tuple[object, GroupStamp]]:
        """Return all events that are there, after waiting for one if need be; none if none comes in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, seconds)
            taken = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return taken

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def close(self) -> None:
        """Take no more events."""
        self._sink.close()
        self._end()

    def _end(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _take(self, event: object, stamp: GroupStamp) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < EVENTS_MAX or self._closed)
            self._waiting.append((event, stamp))
            self._changed.notify_all()
