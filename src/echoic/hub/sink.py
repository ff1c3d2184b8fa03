"""Sinks, and the handlers they run.

A handler runs in the thread that read the events, which is fastest: nothing is handed over. One that takes long asks
for a thread of its own (`thread=True`); an iterator takes events when its program asks for the next one. Both have a
queue, bounded in bytes, and a rule for when it is full.

What comes from other hubs is bounded by their credit, so a queue that must keep everything (`block`) never makes the
reading thread wait; only a source in this very process is made to.
"""

import itertools
import logging
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias, get_args

import msgspec

from echoic.channels import RECORD_START, VARIABLE_START, Gap, Slow
from echoic.errors import DeliveryError, LocalError
from echoic.formats import Format, match
from echoic.hub.errands import handling
from echoic.hub.moving import SinkState, quiet, wait_until
from echoic.wire import Batch, Decoder, decoder_of

if TYPE_CHECKING:
    from echoic.hub.endpoints import Endpoints

__all__ = ["Events", "Handler", "Sink", "SinkStatistics", "check_slow"]

Handler: TypeAlias = Callable[[Any], object]

QUEUE_BYTES_MAX: Final = 8 * 1024 * 1024
PROBLEM_CHARACTERS_MAX: Final = 500
LONE_DECODERS_MAX: Final = 512
RAISED: Final = BaseException  # `sys.exit()`, or a panic of foreign code, must not end the thread that reads
log: Final = logging.getLogger("echoic.hub")
_numbers: Final = itertools.count(1)


class SinkStatistics(msgspec.Struct, frozen=True):
    """What a sink has seen."""

    events: int
    failures: int
    missed: int
    waiting_bytes: int


class Runs(Protocol):
    """What handles events that have arrived."""

    def run(self, batch: Batch) -> str:
        """Handle events; return what went wrong, "" for nothing."""
        ...


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """Events that wait in a sink's queue. `done` is called once with what went wrong."""

    batch: Batch
    source: int
    first: int
    size: int
    done: Callable[[str], object]
    hub: str = ""
    """The hub that sent them, "" if that is this one."""
    runner: "Runs | None" = None
    """Who handles them, if it is not the sink in whose queue they are."""


def check_slow(slow: str) -> Slow:
    """Return the rule for slow sinks that a text names.

    Raises:
        LocalError: There is none of this name.
    """
    for known in get_args(Slow):
        if slow == known:
            return slow  # type: ignore[return-value] # it is one of them
    raise LocalError(f"expected `slow` to be one of {', '.join(get_args(Slow))}, got {slow!r}")


class Sink:
    """One subscription: a handler, and the type in which it wants its events."""

    def __init__(
        self,
        endpoints: "Endpoints",
        handler: Handler | None,
        declared: object | None,
        *,
        batch: bool,
        slow: Slow,
        queued: bool,
        narrow: bool,
        on_gap: Callable[[Gap], object] | None = None,
    ) -> None:
        """Prepare a subscription; without a handler, somebody takes the events with `take`.

        Raises:
            IncompatibleTypesError: The channel's events cannot be received as `declared`.
        """
        channel_format = endpoints.member.format
        if declared is not None and channel_format is not None:
            match(channel_format, Format.of(declared), narrow=narrow)
        label = getattr(handler, "__name__", "") or type(handler).__name__ if handler is not None else "iterator"
        self.name = f"{label.strip('<>')}#{next(_numbers)}"
        self.arrived = False
        """Whether it has taken the place of a sink of another channel, and all sources know."""
        self.journal = ""
        """The journal in which its events are recorded, if that is what it is for."""
        self.held = False
        """Whether sources are to keep events for its journal when it has ended, since another sink will come."""
        self.trunk: Sink | None = None
        """The sink in whose queue its events wait, with those of others, if it has none of its own."""
        self.slow: Final = slow
        self.declared: Final = declared
        self.on_gap = on_gap
        self.on_ready: Callable[[], object] | None = None
        self.queued: Final = queued
        self.closed = False
        self._endpoints = endpoints
        self._handler = handler
        self._batch = batch
        self._narrow = narrow
        self._events = self._failures = self._missed = 0
        self._running = threading.RLock()
        self._waiting: deque[Arrival] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._handled_elsewhere: dict[int, int] = {}
        self._in_hand = False

    def start(self) -> None:
        """Let a queued handler run."""
        if self.queued and self._handler is not None:
            threading.Thread(target=self.serve, name=f"echoic-sink-{self.name}", daemon=True).start()

    def state(self) -> SinkState:
        """Return where this sink begins, if it is paused: what comes before must be handled by the one that moves."""
        return SinkState(self._endpoints.member.id, self._endpoints.positions())

    def freeze(self, until: SinkState | None = None, timeout: float = 5.0) -> SinkState:
        """Handle everything before a state, end the subscription, and return where another sink can go on.

        Sources in this very hub must be quiet meanwhile.

        Raises:
            DeliveryError: What comes before the state has not arrived, or not been handled, in time; the sink goes on.
        """
        switchboard, deadline = self._endpoints.switchboard, time.monotonic() + timeout
        if until is not None:
            wait_until(switchboard, until, self._endpoints.positions, deadline)
        with quiet(switchboard, deadline):
            with self._changed:
                if not self._changed.wait_for(self._is_idle, deadline - time.monotonic()):
                    raise DeliveryError({self.name: "it has not handled what has arrived"})
            if not self._running.acquire(timeout=max(deadline - time.monotonic(), 0)):
                raise DeliveryError({self.name: "its handler has not returned"})
            try:
                state = self.state()
                self.close()
            finally:
                self._running.release()
        return state

    def resume(self, state: SinkState) -> None:
        """Go on where another sink has stopped. This one was subscribed with `paused=True`."""
        with self._changed:
            self._handled_elsewhere = dict(state.positions)
            gathered = list(self._waiting)
            self._waiting.clear()
            for arrival in gathered:
                rest = self._without_handled(arrival)
                if rest is not None:
                    self._waiting.append(rest)
                else:
                    self._waiting_bytes -= arrival.size
        for arrival in gathered:
            if self._without_handled(arrival) is None:
                arrival.done("")
        self.start()

    def _is_idle(self) -> bool:
        return not self._waiting and not self._in_hand

    def _without_handled(self, arrival: Arrival) -> Arrival | None:
        """Return what another sink has not handled of events, None for nothing."""
        count = arrival.batch.count
        handled = min(max(self._handled_elsewhere.get(arrival.source, 0) - arrival.first, 0), count)
        if not handled:
            return arrival
        if handled == count:
            return None
        _, rest = arrival.batch.parts([handled, count - handled])
        return msgspec.structs.replace(arrival, batch=rest, first=arrival.first + handled)

    @property
    def channel(self) -> str:
        """The name of the channel."""
        return self._endpoints.member.name

    def discard(self) -> None:
        """Be as if it had never been, since it could not be subscribed."""
        self.close()

    def claim(self, *, arrived: bool) -> None:
        """Note whether it has come from another channel for good."""
        self._endpoints.settle(self, arrived=arrived)

    def withdraw(self) -> None:
        """Take no further events; what waits is still handled."""
        self._endpoints.remove_sink(self)

    def run(self, batch: Batch) -> str:
        """Call the handler for events; return what went wrong, "" for nothing."""
        handler = self._handler
        if handler is None or not batch.count:
            return ""
        with self._running:
            if self.closed:
                return ""
            try:
                if self._batch or self.declared is None:
                    items = iter(self._items_of(batch))
                else:
                    items = iter(batch.events_as(self.declared, narrow=self._narrow))
            except RAISED as error:  # a class may refuse the values of its fields
                return self._failed(error)
            self._events += batch.count
            return self._call(handler, items)

    def run_lone(self, data: bytes, decode: Callable[[bytes], object]) -> str:
        """Call the handler for the one event in a frame, decoded as `lone_way` has found; else as `run`."""
        with self._running:
            if self.closed:
                return ""
            self._events += 1
            try:
                self._handler(decode(data))  # type: ignore[misc] # it is there
            except RAISED as error:  # a handler may raise anything, and it must not hurt the others
                return self._failed(error)
        return ""

    def lone_way(self, format: Format) -> Callable[[bytes], object] | None:
        """Return how a lone event of a format is decoded where it lies, None if it cannot be handed over at once."""
        if self.queued or self._batch or self._handler is None:
            return None
        decoder = decoder_of(format if self.declared is None else self.declared)
        return lone_decoder(decoder) if decoder.binding.format.token == format.token else None

    def run_object(self, event: object) -> str:
        """Call the handler for one event of this very process that has the right class already."""
        handler = self._handler
        if handler is None:
            return ""
        with self._running:
            if self.closed:
                return ""
            self._events += 1
            return self._call(handler, iter((event,)))

    def takes_objects_of(self, kind: type) -> bool:
        """Whether objects of a class can be handed to the handler as they are."""
        return self.declared is kind and not self._batch and not self.queued

    def put(self, arrival: Arrival, *, wait: bool) -> None:
        """Put events into the queue; when it is full, do as the rule says.

        Args:
            arrival: The events.
            wait: They come from this process, so that whoever submits them can be made to wait.
        """
        if self.trunk is not None:
            self.trunk.put(msgspec.structs.replace(arrival, runner=self), wait=wait)
            return
        dropped: list[Arrival] = []
        with self._changed:
            while self.slow == "block" and wait and self._waiting_bytes >= QUEUE_BYTES_MAX and not self.closed:
                self._changed.wait()
            fresh = self._without_handled(arrival) if not self.closed else None
            if fresh is not None:
                if self.slow == "latest" and fresh.batch.count:
                    dropped.extend(self._displaced())
                self._waiting.append(fresh)
                self._waiting_bytes += fresh.size
            while self.slow == "drop_oldest" and self._waiting_bytes > QUEUE_BYTES_MAX and len(self._waiting) > 1:
                dropped.append(self._waiting.popleft())
                self._waiting_bytes -= dropped[-1].size
            overrun = self.slow == "disconnect" and self._waiting_bytes > QUEUE_BYTES_MAX
            self._changed.notify_all()
        if fresh is None:
            arrival.done("")
        for old in dropped:
            reason = f"too slow ({self.slow})"
            self.missed(Gap(0, old.source, old.first, old.first + old.batch.count - 1, reason))
            old.done(f"it was dropped: {reason}")
        if overrun:
            self.end("it does not keep up (disconnect)")
        if self.on_ready is not None:
            self.on_ready()

    def _displaced(self) -> list[Arrival]:
        """Take the events that wait out of the queue. Arrivals without any stay: somebody waits for their turn."""
        displaced = [arrival for arrival in self._waiting if arrival.batch.count]
        self._waiting = deque(arrival for arrival in self._waiting if not arrival.batch.count)
        self._waiting_bytes = sum(arrival.size for arrival in self._waiting)
        return displaced

    def take(self, timeout: float | None) -> Arrival | None:
        """Return the next events of the queue; None when there are none in time, or the sink was closed."""
        with self._changed:
            if not self._waiting and not self.closed:
                self._changed.wait_for(lambda: self._waiting or self.closed, timeout)
            if not self._waiting:
                return None
            arrival = self._waiting.popleft()
            self._waiting_bytes -= arrival.size
            self._in_hand = True
            self._changed.notify_all()
            return arrival

    def finish(self, arrival: Arrival, problem: str) -> None:
        """Note that taken events were handled, and what went wrong."""
        with self._changed:
            self._in_hand = False
            self._changed.notify_all()
        arrival.done(problem)

    def missed(self, gap: Gap) -> None:
        """Count events that this sink will not get, and tell whoever asked to know."""
        self._missed += gap.last - gap.first + 1
        if self.on_gap is not None:
            try:
                self.on_gap(gap)
            except RAISED as error:
                self._failed(error)

    def end(self, reason: str) -> None:
        """End the subscription because it cannot go on."""
        log.warning("%s of %s is ended: %s", self.name, self._endpoints.member.name, reason)
        self.close(timeout=0)  # whoever ends it must not wait for its handler, which is slow

    def close(self, timeout: float = -1) -> None:
        """End the subscription: the handler is not called again once this returns.

        Args:
            timeout: How many seconds to wait for a call of the handler that is under way; forever when negative.
        """
        with self._changed:
            if self.closed:
                return
            self.closed = True
            left = list(self._waiting)
            self._waiting.clear()
            self._waiting_bytes = 0
            self._changed.notify_all()
        for arrival in left:
            arrival.done("")
        if self.on_ready is not None:
            self.on_ready()
        self._endpoints.remove_sink(self)
        if self._running.acquire(timeout=timeout):  # whoever is inside the handler leaves it first
            self._running.release()

    def statistics(self) -> SinkStatistics:
        """Return the counts so far."""
        return SinkStatistics(self._events, self._failures, self._missed, self._waiting_bytes)

    def decoded(self, arrival: Arrival) -> list[Any]:
        """Return taken events as the program wants them.

        Raises:
            EchoicError: They contradict their type.
        """
        self._events += arrival.batch.count
        return self._items_of(arrival.batch) if arrival.batch.count else []

    def _items_of(self, batch: Batch) -> list[Any]:
        declared = self.declared
        if self._batch:
            return [batch if declared is None else batch.to(declared, narrow=self._narrow)]
        return batch.events() if declared is None else batch.events_as(declared, narrow=self._narrow)

    def serve(self) -> None:
        """Run the handler for what is in the queue, until the sink is closed."""
        while (arrival := self.take(None)) is not None:
            self.finish(arrival, (arrival.runner or self).run(arrival.batch))

    def _call(self, handler: Handler, items: Iterator[object]) -> str:
        """Call the handler for each item; one that fails does not keep the others from being handled."""
        problem = ""
        handling.depth += 1
        try:
            while True:
                try:
                    for item in items:
                        handler(item)
                except RAISED as error:  # a handler may raise anything, and it must not hurt the others
                    problem = problem or self._failed(error)
                else:
                    return problem
        finally:
            handling.depth -= 1

    def _failed(self, error: BaseException) -> str:
        """Note that a handler failed, and return how.

        Raises:
            KeyboardInterrupt: It was not the handler that failed, but its program that is interrupted.
        """
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise error
        self._failures += 1
        problem = problem_of(error)
        channel = self._endpoints.member.name
        try:
            log.error("the handler %s of %s failed", self.name, channel, exc_info=error)
        except RAISED:  # a handler of the log asked the error for its text
            log.error("the handler %s of %s failed: %s", self.name, channel, problem)  # noqa: TRY400 - without the error
        return problem

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Sink {self.name} of {self._endpoints.member.id}>"


def problem_of(error: BaseException) -> str:
    """Return in a few words what a handler has raised."""
    try:
        text = str(error)[:PROBLEM_CHARACTERS_MAX].encode("utf-8", "replace").decode()
    except RAISED:
        text = "its text cannot be had"
    return f"{type(error).__name__}: {text}"


@lru_cache(maxsize=LONE_DECODERS_MAX)
def lone_decoder(decoder: Decoder) -> Callable[[bytes], object] | None:
    """Return a function from the frame of a lone synchronous event to the event, None when there is no short way."""
    single, decode = decoder.single, decoder.decode
    if single is not None:
        return lambda data: single(data, RECORD_START)
    if not decoder.binding.format.variable:
        return None

    def decode_variable(data: bytes) -> object:
        records = memoryview(data)[VARIABLE_START:]
        return decode(records, array("I", (0, len(records))))[0]

    return decode_variable


class Events:
    """An iterator over the events of a channel, from the moment it was made.

    An event counts as handled when the next one is asked for; so a synchronous submitter waits for the loop's body. It
    learns of an exception there when that leaves the `with` of the iterator.
    """

    def __init__(self, sink: Sink, timeout: float | None) -> None:
        self.sink: Final = sink
        self._timeout = timeout
        self._items: list[Any] = []  # the next one last
        self._arrival: Arrival | None = None

    def __iter__(self) -> "Events":
        return self

    def __next__(self) -> Any:  # noqa: ANN401 - an event of any type
        if not self.ready(self._timeout):
            self.close()
            raise StopIteration
        return self._items.pop()

    def ready(self, timeout: float | None = 0) -> bool:
        """Tell whether there is a next event, waiting for one if `timeout` allows."""
        while not self._items:
            self._finish()
            arrival = self.sink.take(timeout)
            if arrival is None:
                return False
            self._arrival = arrival
            self._items = self.sink.decoded(arrival)[::-1]
        return True

    def close(self) -> None:
        """End the subscription."""
        self._finish()
        self.sink.close()

    def fail(self, error: BaseException) -> None:
        """Tell whoever waits for the event at hand that it was not handled."""
        self._finish(problem_of(error))

    def _finish(self, problem: str = "") -> None:
        arrival, self._arrival = self._arrival, None
        if arrival is not None:
            self.sink.finish(arrival, problem)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.fail(error)
        self.close()
