r"""From `submit` to the links: how events leave.

    submit(event) -> encode -> the source's run -> flush -> one frame -> every hub that has sinks
                 \-> sinks in this process, as they are

*Natural batching.* While nothing else leaves the hub an event leaves at once, in the caller's thread. While events
come faster than that, they gather in their source's run, and the flusher takes the runs of all sources every half
millisecond and writes each link once; the caller does it itself when 48 KB have gathered. A lone event never waits, and
a flood travels in large batches.

*Group serialization* (JECho, section 4): a run becomes one frame, and the same bytes go to every hub, one copy each
however many sinks it holds.
"""

import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, Self

import msgspec

from echoic.channels import RECORD_BYTES_MAX, Call, CallLane, Share, split
from echoic.errors import ClosedError, DeliveryError, EncodeError, IncompatibleTypesError, LocalError
from echoic.formats import bind, match
from echoic.hub.confirming import late_recorders
from echoic.hub.deriving import call_derived, deliver_share, stir_derived, submit_derived, turn_away
from echoic.hub.errands import inside_handler
from echoic.hub.gathering import Gathering, batch_of_records
from echoic.hub.moving import SourceState
from echoic.hub.offer import NOTHING, Offer
from echoic.hub.room import waits_for_itself
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.hub.channel import Channel
    from echoic.hub.context import Context
    from echoic.hub.endpoints import Endpoints, Pending
    from echoic.hub.flusher import Flusher
    from echoic.hub.link import Link

__all__ = ["Source", "SourceStatistics"]

LARGE_BYTES: Final = 4096
LATER_MAX: Final = 65_536
LONE_NS: Final = 500_000


class SourceStatistics(msgspec.Struct, frozen=True):
    """What a source has submitted."""

    events: int
    batches: int
    gathered: int
    unconfirmed_bytes: int = 0
    """What recorders have yet to confirm, of all sources of the channel here."""


class Source(Gathering):
    """One producer of a channel's events. Every sink sees its events in the order in which they were submitted."""

    __slots__ = (
        "__weakref__",
        "_declared",
        "_derived",
        "_endpoints",
        "_flusher",
        "_in_turn",
        "_lane",
        "_later",
        "_offer",
        "_open",
        "_turn",
    )

    def __init__(
        self,
        channel: "Channel",
        declared: object | None,
        flusher: "Flusher",
        state: SourceState | None,
        offer: Offer = NOTHING,
    ) -> None:
        """Open a source.

        Raises:
            FormatError: No type is known, neither the channel's nor the source's own.
            IncompatibleTypesError: Its events cannot be received as the channel's type, or its context is another.
            EchoicError: The manager does not know the channel, or cannot be reached.
        """
        ends = self._endpoints = channel.endpoints
        self._flusher = flusher
        self._offer = offer
        self._declared = declared if declared is not None else channel.declared
        format, member = bind(self._declared).format, ends.member
        if member.format is not None:
            match(format, member.format)
        expected, context = member.context, offer.context
        if context is not None and expected is not None and context.format.layout != expected.layout:
            raise IncompatibleTypesError(
                f"the context is a `{context.format.name}`, expected the channel's `{expected.name}`"
            )
        id = state.source if state is not None else secrets.randbits(63)
        kind = self._declared if isinstance(self._declared, type) else object
        super().__init__(member, ends.switchboard, id, format, kind)
        self._lane: tuple[CallLane, list[Link]] | None = None
        self._turn = threading.Lock()
        self._in_turn = 0
        self._later: deque[tuple[Batch, object]] = deque()
        self._derived: deque[tuple[Share, int]] = deque()
        position = state.position if state is not None else 0
        self._endpoints.add_source(self.id, position, context, offer.helm)
        self._open = channel.sources
        self._open.add(self)
        if offer.helm is not None:
            offer.helm.watch(lambda: None if self._closed else self.heard)

    def submit(self, event: object) -> None:
        """Give an event to every sink of the channel, and do not wait for them.

        It does wait while a sink that wants every event has no room for more.

        Raises:
            EncodeError: A value does not fit its field, or the event is too large for this hub, a sink's, or a journal.
            LimitExceededError: Too many large events are on their way.
            ClosedError: The source or the hub was closed.
        """
        closed = self._closed
        if closed:
            raise ClosedError("the source was closed")
        if self._endpoints.sinks or self._member.derived_here:
            self._submit_in_turn(None, event)
        elif (run := self._run) or not self._is_unheard():
            record = self._encode(event)
            if len(record) > LARGE_BYTES:
                self._submit_large(record)
                return
            run.append(record)
            if self._closed:  # meanwhile
                self._refuse_late(record)
            elif not self._armed:
                self._leave_or_arm()
            elif len(run) >= self._run_max:
                self.flush()

    def submit_batch(self, events: object) -> None:
        """Give many events at once: a sequence, a NumPy structured array, an Arrow RecordBatch, or a received Batch.

        Raises:
            EncodeError, LimitExceededError: As `submit` does; the events before were sent.
            IncompatibleTypesError: The events are of another type.
            ClosedError: The source or the hub was closed.
        """
        if self._closed:
            raise ClosedError("the source was closed")
        for batch in split(self._batch_of(events)):
            self._batches += 1
            if self._endpoints.sinks or self._member.derived_here:
                self._submit_in_turn(batch)
                continue
            with self._lock:
                self._take_run(wait=True)
                self._send(batch)

    def submit_sync(self, event: object, timeout: float = 5.0) -> None:
        """Give an event to every sink and return when all their handlers have returned.

        Sending to all sinks and waiting for their answers overlap (JECho, section 5).

        Raises:
            DeliveryError: Naming each sink whose handler failed, and those that did not answer in time.
            EncodeError, LimitExceededError: As `submit` does.
            ClosedError: The source or the hub was closed.
        """
        if self._closed:
            raise ClosedError("the source was closed")
        if self._run or self._endpoints.sinks or self._member.derivations or not self._call_express(event, timeout):
            self._call(Batch.of((event,), self._declared), event, timeout)

    def would_wait(self) -> bool:
        """Tell whether `submit` would wait now, because a sink that wants every event has no room or runs here."""
        here = bool(self._endpoints.sinks) or self._member.derived_here
        return here or self._switchboard.blocked(self._member)

    def flush(self) -> None:
        """Send what has gathered.

        Raises:
            ClosedError: The hub was closed while events waited for room.
        """
        with self._lock:
            self._take_run(wait=True)

    def drain(self, timeout: float = 5.0) -> None:
        """Send what has gathered, and return when every sink has handled all events so far, derived ones too.

        Raises:
            DeliveryError: Naming those that did not answer in time.
            ClosedError: The source or the hub was closed.
        """
        if self._closed:
            raise ClosedError("the source was closed")
        self._call(Batch.of([], self._declared), None, timeout)

    def freeze(self, timeout: float = 5.0) -> SourceState:
        """Close the source when every sink has got all of its events; return what another hub needs to go on with it.

        Other threads that submit meanwhile are refused.

        Raises:
            DeliveryError: Naming the hubs that did not confirm; the source goes on.
            ClosedError: The source was closed.
        """
        with self._lock:
            if self._closed:
                raise ClosedError("the source was closed")
            self._closed = True
            try:
                self._release_derived()
                self._call(Batch.of([], self._declared), None, timeout)
            except BaseException:
                self._closed = False
                raise
            position = self._endpoints.remove_source(self.id)
        self._open.discard(self)
        return SourceState(self._member.id, self.id, position)

    def confirm(self) -> None:
        """Ask the channel's manager anew whether this hub may publish, and for the hubs that its events go to.

        A right that is withdrawn is told to nobody who does not ask: events merely reach fewer sinks.

        Raises:
            DeniedError: It may not, any more perhaps.
            ChannelNotFoundError: The manager does not know the channel, or this hub has no right to it at all.
            UnreachableError: The manager does not answer, or does not let this hub in.
        """
        self._endpoints.confirm_sources()

    def close(self) -> None:
        """Send what has gathered, and end the source."""
        if (self._later or self._derived) and not self._closed and not inside_handler():
            self.deliver_later()
        with self._lock:
            if self._closed:
                return
            self._closed = True  # before the run is taken: what is submitted from here on is refused, not forgotten
            try:
                if not self._switchboard.closed:
                    self._take_run(wait=True)
                    self._release_derived()
            finally:
                self._open.discard(self)
        if not self._switchboard.closed:
            self._endpoints.remove_source(self.id)

    def abandon(self) -> None:
        """Refuse all further events, because the hub is closed."""
        self._closed = True

    def statistics(self) -> SourceStatistics:
        """Return the counts so far."""
        gathered = len(self._run)
        return SourceStatistics(self.position, self._batches, gathered, self._member.unconfirmed_bytes)

    @property
    def trouble(self) -> str:
        """Why a recorder of the channel cannot keep events for the moment, as it says; "" if all is well."""
        return next((keeping.trouble for keeping in self._member.keepings if keeping.trouble), "")

    @property
    def context(self) -> "Context":
        """What it lets others see of the program.

        Raises:
            LocalError: It was opened without a context.
        """
        if self._offer.context is None:
            raise LocalError(f"this source of `{self._member.name}` has no context")
        return self._offer.context

    @property
    def heard(self) -> bool:
        """Whether anybody listens to its events, or to what is derived from them."""
        member = self._member
        heard_elsewhere = member.fanout.targets or member.derivations or member.keepings
        return not self._closed and bool(self._endpoints.sinks or heard_elsewhere)

    @property
    def position(self) -> int:
        """The number of its next event; of a source with a name, how many came before, of its predecessors too."""
        return self._member.sources.get(self.id, 0) + len(self._run)

    def send_held(self) -> None:
        """Send what has gathered by itself, if that needs no waiting, and let others send again."""
        try:
            self._take_run(wait=False)
        finally:
            self._lock.release()

    def _is_unheard(self) -> bool:
        """Count an event that nobody listens to; False when somebody does, or did when the ones before were gathered.

        Those must leave before it is counted, or they would be sent with later ones to whoever comes next.
        """
        member = self._member
        if member.fanout.targets or member.derivations or member.keepings or self._run:
            return False
        return self._switchboard.pass_over(member, self.id, 1)

    def _submit_large(self, record: bytes) -> None:
        """Send an event by itself, since together with others it may be too large for a frame."""
        if len(record) > (limit := self._switchboard.core.rules.event_bytes_max):
            raise EncodeError(f"an event has {len(record)} bytes, with its headers the limit is {limit}")
        with self._lock:
            self._take_run(wait=True)
            if len(record) > RECORD_BYTES_MAX:  # which somebody may refuse, and then it must not stay in the run
                self._send(batch_of_records(self.format, [record]))
                self._batches += 1
                return
            self._run.append(record)
            self._take_run(wait=True)

    def _refuse_late(self, record: bytes) -> None:
        """Take an event back that was submitted while the source was being closed, unless it was sent with the others.

        Raises:
            ClosedError: It was not sent.
        """
        with self._lock:
            if not self._closed:  # it could not be frozen, and goes on
                self._take_run(wait=True)
                return
            for place, waiting in enumerate(self._run):
                if waiting is record:
                    del self._run[place]
                    raise ClosedError("the source was closed")

    def _leave_or_arm(self) -> None:
        """Send at once when nothing else left the hub a moment ago, else let events gather."""
        flusher, now = self._flusher, time.monotonic_ns()
        if now - flusher.left_ns > LONE_NS:
            flusher.left_ns = now
            run, member = self._run, self._member
            with self._lock:
                lone = len(run) == 1 and bool(member.derivations)
                if lone and turn_away(self._switchboard, member, self.id, self.format, run[0], 1):
                    del run[:1]
                else:
                    self._take_run(wait=True)
        else:
            self._armed = True
            flusher.arm(self)

    def _take_run(self, *, wait: bool) -> None:
        """Send the run as one batch, or leave it as it is when that needs waiting which is not wanted. Lock is held."""
        run, member = self._run, self._member
        taken = run[:]
        if not taken:
            return
        after = member.position(self.id) + len(taken)
        sent: bool | None = None
        try:
            sent = self._send(batch_of_records(self.format, taken), wait=wait)
        finally:
            if sent or (sent is None and member.sources.get(self.id, 0) >= after):  # interrupted when it was sent
                del run[: len(taken)]
                self._batches += 1

    def _send(self, batch: Batch, *, wait: bool = True) -> bool:
        """Send events, and what is derived from them; tell whether that could be without waiting that is not wanted.

        What is derived for sinks here waits for whoever hands events over. Lock is held.
        """
        member = self._member
        if not member.derivations:
            sent = self._switchboard.submit(member, self.id, batch, wait=wait)
            if sent is not None:
                return sent
        here = submit_derived(self._switchboard, member, self.id, batch, wait=wait)
        if here:
            self.hand_over(here)
        return here is not None

    def hand_over(self, shares: "list[tuple[Share, int]]") -> None:
        """Have sinks here get what was derived from events of this source, after what waits for them already."""
        self._derived.extend(shares)
        if self._in_turn != threading.get_ident():
            self._flusher.errands.ask(self)

    def _release_derived(self) -> None:
        """Let modulators send what they hold back, since the source ends. Lock is held."""
        member = self._member
        if member.derivations and (here := stir_derived(self._switchboard, member, self.id, last=True)):
            self.hand_over(here)

    def granted(self, service: str) -> object | None:
        """Return a service for modulators that work on events of this source, None if it has none of this name."""
        if service == "context" and self._offer.context is not None:
            return self._offer.context.capability()
        return self._offer.delegate(service) if self._offer.delegate is not None else None

    def hand_over_all(self) -> None:
        """Wait until sinks here have been handed all that was submitted so far, and what was derived from it."""
        with self._lock:
            closed = self._closed
        if not closed:
            with self._take_turn():
                pass

    def stir(self) -> None:
        """Let modulators send what they hold back, or have made because time has passed."""
        with self._lock:
            if not self._closed and (here := stir_derived(self._switchboard, self._member, self.id)):
                self.hand_over(here)

    def _submit_in_turn(self, batch: Batch | None, event: object = None) -> None:
        """Send events, and hand them to the sinks in this process; a lone event is encoded only if somebody needs that.

        Threads take turns, so that every sink sees the same order. What a handler submits waits until all sinks have
        seen what it was called for; if that was an event of another source, an errand brings it (`hub.errands`).
        """
        if inside_handler():
            if len(self._later) >= LATER_MAX:
                raise LocalError(f"{len(self._later)} events that handlers submitted wait for sinks here, the limit")
            self._later.append((batch if batch is not None else Batch.of((event,), self._declared), event))
            if self._in_turn != threading.get_ident():
                self._flusher.errands.ask(self)
            return
        with self._take_turn():
            self._submit_here(batch, event)

    def deliver_later(self) -> None:
        """Hand over what handlers have submitted.

        Raises:
            ClosedError: The source was closed meanwhile.
        """
        if self._later or self._derived:
            with self._take_turn():
                pass

    @contextmanager
    def _take_turn(self, seconds: float = -1) -> Iterator[None]:
        """Keep other threads from handing events to sinks here, and hand over what waits, before and after.

        Raises:
            DeliveryError: Another thread has not finished its turn in time.
        """
        if not self._turn.acquire(timeout=seconds):
            raise DeliveryError({f"a handler of {self._member.name}": "another thread has not come to an end with it"})
        self._in_turn = threading.get_ident()
        try:
            self._hand_over_later()
            yield
            self._hand_over_later()
        finally:
            self._in_turn = 0
            self._turn.release()

    def _hand_over_later(self) -> None:
        self._hand_over_derived()
        while self._later:
            self._submit_here(*self._later.popleft())

    def _hand_over_derived(self) -> None:
        while self._derived:
            share, first = self._derived.popleft()
            deliver_share(self._switchboard, share, first)

    def _submit_here(self, batch: Batch | None, event: object) -> None:
        with self._lock:
            self._take_run(wait=True)
            first = self._member.position(self.id)
            if not self._switchboard.pass_over(self._member, self.id, batch.count if batch is not None else 1):
                batch = batch if batch is not None else Batch.of((event,), self._declared)
                self._send(batch)
        if self._endpoints.sinks:
            self._endpoints.deliver_here(self.id, first, batch, event, self._declared)
        self._hand_over_derived()

    def _batch_of(self, events: object) -> Batch:
        if isinstance(events, Batch):
            return events if events.format.token == self.format.token else events.to(self._declared)
        return Batch.of(events, self._declared)

    def _call_express(self, event: object, timeout: float) -> bool:
        """Send an event the short way and wait for all sinks; tell whether that was possible."""
        switchboard, opened = self._switchboard, self._lane
        if opened is None:
            self._lane = switchboard.open_lane(self._member, self.id, self.format)
            return False
        lane, links = opened
        for link in links:
            if link.reads_here:
                return False
        deadline_ns = time.monotonic_ns() + int(timeout * 1e9)
        made = switchboard.call_express(lane, self._encode(event))
        if made is None:
            self._lane = None
            return False
        _, call = made
        for link in links:
            link.pump_express()
        for link in links:
            link.answer(call, deadline_ns)
        if call.waiting or call.failures:
            self._await([made], deadline_ns, timeout, {})
        return True

    def _await(self, calls: list[tuple[int, Call]], deadline_ns: int, timeout: float, failures: dict[str, str]) -> None:
        """Wait for the answers of other hubs.

        Raises:
            DeliveryError: Naming each sink that failed, here or there, or did not answer in time.
        """
        for number, call in calls:
            if call.waiting:
                self._switchboard.answers(call, deadline_ns)
            self._switchboard.forget_call(number)
            failures |= call.failures
            for sink in list(call.waiting.values()):
                failures[", ".join(sink.sinks) + f" at {sink.address}"] = f"no answer within {timeout} s"
        if self._member.keepings or self._member.derivations:
            failures |= late_recorders(self._switchboard, self._member, self.id, deadline_ns)
        if failures:
            raise DeliveryError(failures)

    def _call(self, batch: Batch, event: object | None, timeout: float) -> None:
        """Send a batch and wait for all sinks."""
        switchboard, member = self._switchboard, self._member
        blocked = waits_for_itself(switchboard, member)
        if blocked:
            reason = "a handler waits for an answer that only its own thread could read; subscribe with thread=True"
            raise DeliveryError({blocked: reason})
        if self._in_turn == threading.get_ident():
            reason = "it waits for an event that comes after the one it handles; use `submit`"
            raise DeliveryError({f"a handler of {self._member.name}": reason})
        deadline_ns = time.monotonic_ns() + int(timeout * 1e9)
        ends = self._endpoints
        here: list[tuple[Endpoints, Pending]] = []
        with self._take_turn(timeout) if ends.sinks or member.derived_here else nullcontext():
            with self._lock:
                self._take_run(wait=True)
                with switchboard.calling(member):
                    first = member.position(self.id)
                    calls = [switchboard.call(member, self.id, batch)]
                    derived = call_derived(switchboard, member, self.id, batch, calls)
            if self._in_turn == threading.get_ident():
                self._hand_over_derived()  # of what had gathered before
            if ends.sinks:
                here.append((ends, ends.deliver_here(self.id, first, batch, event, self._declared)))
            here += [(there, pending) for share in derived for there, pending in deliver_share(switchboard, *share)]
        failures: dict[str, str] = {}
        for there, pending in here:
            if not pending.wait((deadline_ns - time.monotonic_ns()) / 1e9):
                late_here = [sink.name for sink in there.sinks if sink.name not in pending.answered]
                failures[", ".join(late_here)] = f"not done within {timeout} s"
            failures |= pending.failures
        self._await(calls, deadline_ns, timeout, failures)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Source {self.id:x} of {self._member.id}>"
