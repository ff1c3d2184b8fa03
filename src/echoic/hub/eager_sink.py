"""Eager handlers: a subscription of which one half runs inside the sources (JECho, sections 3 and 4).

    source's hub                            sink's hub
    submit -> modulator -> derived channel ~~~> sink -> demodulator -> handler

The modulator makes a derived channel; this is the sink there, and the demodulator before its handler. `reset` puts
another pair in its place: the sink goes over to another derived channel (`channels.turning`), and takes each event from
exactly one of the two.
"""

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, Self

from echoic.channels import Gap, Trouble
from echoic.eager import Demodulator, Intercepts, Modulator
from echoic.errors import EchoicError, LocalError, RefusedError
from echoic.formats import event, uint8
from echoic.hub.sink import RAISED, Arrival, Handler, Sink, SinkStatistics, check_slow
from echoic.wire import Batch

if TYPE_CHECKING:
    from types import TracebackType

    from echoic.channels import DerivationCounts
    from echoic.hub.channel import Channel

__all__ = ["EagerSink", "Wishes"]

TRIES_MAX: Final = 60
TRY_SECONDS: Final = 1.0
EVENTS_MAX: Final = 1_000_000  # what a demodulator may make of one event
RECENT_TROUBLES: Final = 16
log: Final = logging.getLogger("echoic.hub")
_numbers: Final = itertools.count(1)


@event
class Nothing:
    """Stands where there is no event, but something is to be done in its place."""

    unused: uint8


NOTHING: Final = Batch.of([], Nothing)


class Wishes:
    """How a subscription is to be served, whatever modulator it has; `Channel.subscribe` says what each means."""

    __slots__ = ("declared", "narrow", "on_gap", "on_trouble", "slow")

    def __init__(
        self,
        declared: object | None = None,
        *,
        slow: str = "block",
        narrow: bool = False,
        on_gap: Callable[[Gap], object] | None = None,
        on_trouble: Callable[[Trouble], object] | None = None,
    ) -> None:
        self.declared: Final = declared
        self.slow: Final = check_slow(slow)
        self.narrow: Final = narrow
        self.on_gap: Final = on_gap
        self.on_trouble: Final = Messenger(on_trouble) if on_trouble is not None else None


class Messenger:
    """Passes each trouble on once, though several pairs hear of it: those that were left end when all is handled."""

    def __init__(self, told: Callable[[Trouble], object]) -> None:
        self._told = told
        self._recent: deque[Trouble] = deque(maxlen=RECENT_TROUBLES)

    def __call__(self, trouble: Trouble) -> None:
        """Pass it on, unless it was."""
        if not any(trouble is one for one in tuple(self._recent)):
            self._recent.append(trouble)
            self._told(trouble)


class Demodulation:
    """A demodulator before a handler: `enqueue` for every event that arrives, then `dequeue` while there are any.

    Raises:
        Whatever the handler or the demodulator does, which counts as a failure of the event.
    """

    def __init__(self, handler: Handler, demodulator: Demodulator | None) -> None:
        self.__name__ = getattr(handler, "__name__", "") or type(handler).__name__
        self._handler = handler
        self._demodulator = demodulator
        self._lock = threading.RLock()
        self._ended = threading.Event()
        if demodulator is not None:
            demodulator.start()
            if demodulator.period_ns > 0:
                threading.Thread(target=self._keep_time, name="echoic-demodulator", daemon=True).start()

    def __call__(self, event: object) -> None:
        """Handle an event."""
        if self._demodulator is None:
            self._handler(event)
            return
        with self._lock:
            self._demodulator.enqueue(event)
            self._dequeue()

    def end(self) -> None:
        """Hand over what is left: what would have come when the period was over, and what the queue holds back."""
        self.abandon()
        demodulator = self._demodulator
        if demodulator is not None:
            with self._lock:
                demodulator.period()
                self._dequeue()
                while (event := Intercepts.dequeue(demodulator)) is not None:  # Invariant: the queue has a limit
                    self._handler(event)

    def abandon(self) -> None:
        """Let no more time pass."""
        self._ended.set()

    def _dequeue(self) -> None:
        demodulator = self._demodulator
        for _ in range(EVENTS_MAX if demodulator is not None else 0):
            event = demodulator.dequeue() if demodulator is not None else None
            if event is None:
                return
            self._handler(event)
        raise LocalError(f"{type(demodulator).__name__} has made more than {EVENTS_MAX} events of one")

    def _keep_time(self) -> None:
        demodulator = self._demodulator
        while demodulator is not None and not self._ended.wait(demodulator.period_ns / 1e9):
            with self._lock:
                try:
                    demodulator.period()
                    self._dequeue()
                except RAISED:  # a clock that stops would be worse
                    log.exception("%s failed when its period was over", type(demodulator).__name__)


class Stage:
    """One pair at work: the derived channel of a modulator, the sink there, the demodulator before the handler."""

    __slots__ = ("_stop", "channel", "demodulation", "sink")

    def __init__(self, channel: "Channel", sink: Sink, demodulation: Demodulation, wishes: Wishes) -> None:
        self.channel: Final = channel
        self.sink: Final = sink
        self.demodulation: Final = demodulation
        told = wishes.on_trouble
        self._stop: Callable[[], None] | None = channel.endpoints.listen(told) if told is not None else lambda: None

    def end(self) -> None:
        """Follow nothing any more. A second time does nothing."""
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()
            self.demodulation.abandon()
            self.channel.unfollow()

    def run(self, _: Batch) -> str:
        """Hand over what the demodulator has kept, in its place among the events; return what went wrong."""
        self.end()
        try:
            self.demodulation.end()
        except RAISED as error:  # as for every event that a handler fails at
            log.warning("a demodulator or its handler failed at what was kept: %r", error)
            return repr(error)
        return ""


class Trunk(Sink):
    """The queue of an eager handler: what its sinks get, one after the other, in the order of arrival.

    Of one source's events, those of the channel that is left come before those of the other one, by the same link or
    the same thread; so one queue for both keeps their order, whatever becomes of a reset.
    """

    def __init__(self, channel: "Channel", handler: Handler, wishes: Wishes) -> None:
        super().__init__(
            channel.endpoints,
            handler,
            None,
            batch=False,
            slow=wishes.slow,
            queued=True,
            narrow=wishes.narrow,
            on_gap=wishes.on_gap,
        )
        self.on_end: Callable[[], object] = lambda: None

    def close(self, timeout: float = -1) -> None:
        """End the subscription."""
        super().close(timeout)
        self.on_end()


class Branch(Sink):
    """The sink of one pair: its events wait in the trunk. Whoever closes it, such as its hub, closes all."""

    def close(self, timeout: float = -1) -> None:
        """End the subscription, of which this is a part."""
        if self.trunk is not None:
            self.trunk.close(timeout)

    def discard(self) -> None:
        """Be as if it had never been, since it could not be subscribed; another may take its place."""
        self.withdraw()


class EagerSink:
    """A subscription with a modulator inside the sources. Made by `Channel.subscribe(..., modulator=...)`.

    The handler runs in a thread of its own, one event after the other.
    """

    def __init__(
        self,
        channel: "Channel",
        handler: Handler,
        modulator: Modulator | None,
        demodulator: Demodulator | None,
        wishes: Wishes,
    ) -> None:
        """Install the modulator in every source, and subscribe.

        Raises:
            RefusedError: A source does not run it, and says why.
            EchoicError: The channel's manager or a source cannot be reached.
        """
        self.name: Final = f"{getattr(handler, '__name__', type(handler).__name__)}#eager{next(_numbers)}"
        self._channel = channel
        self._handler = handler
        self._wishes = wishes
        self._lock = threading.RLock()
        self._closed = False
        self._trunk = Trunk(channel, handler, wishes)
        self.modulator = modulator
        self._stage = self._first(modulator, demodulator)
        self._trunk.on_end = self._ended
        self._trunk.start()

    @property
    def closed(self) -> bool:
        """Whether the subscription was closed, here, by the hub, or because the handler does not keep up."""
        return self._closed

    @property
    def channel(self) -> "Channel":
        """The derived channel of the modulator, to which others may subscribe as well."""
        return self._stage.channel

    def reset(
        self, modulator: Modulator | None = None, demodulator: Demodulator | None = None, *, sync: bool = True
    ) -> "Future[None]":
        """Put another pair in the place of the one at work; no event is lost, repeated or reordered.

        Each event of a source is seen by exactly one of the two modulators, and what the former makes of its events is
        handled before what the other makes of those that follow. What a demodulator has kept is handed over when all
        sources have turned.

        Args:
            modulator: What runs inside the sources from here on; None for nothing, so that all events come.
            demodulator: What stands before the handler from here on.
            sync: Return when all sources have turned; else at once, and the result tells when.

        Raises:
            RefusedError: A source does not run the modulator; the former pair goes on.
            LocalError: The subscription was closed.
            EchoicError: The channel's manager or a source cannot be reached.
        """
        done: Future[None] = Future()
        if sync:
            self._reset(modulator, demodulator)
            done.set_result(None)
        else:
            arguments = (done, modulator, demodulator)
            threading.Thread(target=self._reset_later, args=arguments, name="echoic-reset", daemon=True).start()
        return done

    def _reset_later(self, done: "Future[None]", modulator: Modulator | None, demodulator: Demodulator | None) -> None:
        try:
            self._reset(modulator, demodulator)
        except RAISED as error:  # whoever asks for the result gets it
            done.set_exception(error)
        else:
            done.set_result(None)

    def _reset(self, modulator: Modulator | None, demodulator: Demodulator | None) -> None:
        with self._lock:
            if self._closed:
                raise LocalError("the subscription was closed")
            former, wanted = self._stage, self._channel.modulate_for(modulator)
            try:
                following = self._following(former, wanted, demodulator)
            except RefusedError:
                if modulator is None or not wanted.foreign:
                    raise
                following = self._following(former, self._channel.modulate_for(modulator, share=False), demodulator)
            self._stage, self.modulator = following, modulator
            if self.closed:  # meanwhile, by its hub or for a handler that does not keep up; perhaps the former alone
                following.sink.withdraw()
                following.end()
                raise LocalError("the subscription was closed")
            self._last_of(former)

    def _following(self, former: Stage, wanted: "Channel", demodulator: Demodulator | None) -> Stage:
        """Go over to another pair."""
        following = self._staged(wanted, demodulator)
        if wanted.endpoints is former.channel.endpoints:
            wanted.endpoints.replace_sink(former.sink, following.sink)
        else:
            self._go_over(former, following)
        return following

    def _first(self, modulator: Modulator | None, demodulator: Demodulator | None) -> Stage:
        """Subscribe; if sources refuse an equal modulator that somebody else has signed, with one's own."""
        wanted = self._channel.modulate_for(modulator)
        try:
            return self._subscribed(wanted, demodulator)
        except RefusedError:
            if modulator is None or not wanted.foreign:
                raise
            return self._subscribed(self._channel.modulate_for(modulator, share=False), demodulator)

    def _subscribed(self, channel: "Channel", demodulator: Demodulator | None) -> Stage:
        stage = self._staged(channel, demodulator)
        try:
            stage.channel.endpoints.add_sink(stage.sink)
        except EchoicError:
            stage.end()
            raise
        return stage

    def _go_over(self, former: Stage, following: Stage) -> None:
        try:
            following.channel.endpoints.add_sink(following.sink, former.sink)
        except EchoicError:
            self._take_back(former, following)
            raise
        self._channel.when_handed_over(former.sink.withdraw)

    def _take_back(self, former: Stage, following: Stage) -> None:
        """Return to the former pair where sources have turned already; if that fails, try again for a while."""
        try:
            former.channel.endpoints.take_back(former.sink, following.sink)
        except EchoicError as error:
            log.warning("%s could not return to what it was, and tries again: %s", self.name, error)
            again = threading.Thread(target=self._keep_trying, args=(former, following), daemon=True)
            again.start()
        else:
            self._channel.when_handed_over(following.sink.withdraw)
            self._last_of(following)

    def _keep_trying(self, former: Stage, following: Stage) -> None:
        for _ in range(TRIES_MAX):
            time.sleep(TRY_SECONDS)
            with self._lock:
                if self._closed or self._stage is not former:
                    return
                try:
                    former.channel.endpoints.take_back(former.sink, following.sink)
                except EchoicError:
                    continue
                self._channel.when_handed_over(following.sink.withdraw)
                self._last_of(following)
                return

    def _last_of(self, stage: Stage) -> None:
        """Let a pair end when the handler has seen everything that it has made."""
        self._trunk.put(Arrival(NOTHING, 0, 0, 0, lambda _: None, runner=stage), wait=False)

    def _staged(self, channel: "Channel", demodulator: Demodulator | None) -> Stage:
        wishes, demodulation = self._wishes, Demodulation(self._handler, demodulator)
        sink = Branch(
            channel.endpoints,
            demodulation,
            wishes.declared if wishes.declared is not None else channel.own_type,
            batch=False,
            slow=wishes.slow,
            queued=True,
            narrow=wishes.narrow,
            on_gap=wishes.on_gap,
        )
        sink.trunk = self._trunk
        return Stage(channel, sink, demodulation, wishes)

    def _ended(self) -> None:
        """Take no more part: the trunk was closed, here, by the hub, or because the handler does not keep up."""
        self._closed = True
        self._stage.sink.withdraw()
        self._stage.end()

    def statistics(self) -> SinkStatistics:
        """Return what the handler has seen since the last reset."""
        return self._stage.sink.statistics()

    def derivations(self) -> "dict[str, DerivationCounts]":
        """Return what the modulator has done at every source's hub, by its address, and what it has spared.

        Raises:
            EchoicError: The manager or a source's hub cannot be reached.
        """
        handle = self._stage.channel.derivation
        return handle.counts() if handle is not None else {}

    def close(self, timeout: float = -1) -> None:
        """End the subscription: the handler is not called again once this returns."""
        with self._lock:
            if not self._closed:
                self._trunk.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<EagerSink {self.name} of {self._channel.id} with {self.modulator!r}>"
