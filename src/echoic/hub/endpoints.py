"""The ends of a channel in this hub: its sources and sinks.

Several `Channel` objects may stand for one channel, each with its own type; they share these ends, and so does the one
copy of each event that another hub sends here.
"""

import logging
import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from echoic.channels import (
    Concentrator,
    Delivery,
    Gap,
    Helm,
    Joined,
    Member,
    Message,
    SinkHub,
    SourceContext,
    Trouble,
    forget_source,
    ignore,
    retire,
)
from echoic.errors import EchoicError
from echoic.hub.derived_here import DerivationHere
from echoic.hub.sink import RAISED, Arrival, Sink
from echoic.hub.switchboard import Switchboard
from echoic.wire import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from echoic.hub.durable import DurableSink
    from echoic.hub.recording import Recording

__all__ = ["Endpoints", "Pending"]

TROUBLES_MAX: Final = 64
TROUBLES_SECONDS: Final = 10.0
log: Final = logging.getLogger("echoic.hub")


class Pending:
    """Counts the sinks that have yet to be done with events; the last one calls back."""

    __slots__ = ("_finish", "_lock", "_waiting", "answered", "failures")

    def __init__(self, sinks: int) -> None:
        self.failures: Final[dict[str, str]] = {}
        self.answered: Final[list[str]] = []
        self._waiting = sinks
        self._lock = threading.Lock()
        self._finish = threading.Lock()
        self._finish.acquire()

    def done(self, sink: str, problem: str) -> bool:
        """Note that a sink is done, and how; return whether it was the last."""
        with self._lock:
            self.answered.append(sink)
            if problem:
                self.failures[sink] = problem
            self._waiting -= 1
            if self._waiting:
                return False
        self._finish.release()
        return True

    def wait(self, seconds: float) -> bool:
        """Wait for the last sink; tell whether it was done in time."""
        return self._finish.acquire(timeout=max(seconds, 0))


class Listener:
    """Somebody who is told of trouble: one for each time that he asked for it."""

    __slots__ = ("_act",)

    def __init__(self, act: "Callable[[Trouble], object]") -> None:
        self._act = act

    def __call__(self, trouble: Trouble) -> None:
        self._act(trouble)


class Endpoints:
    """Sources and sinks of one channel here."""

    __slots__ = (
        "_derivation",
        "_held",
        "_lock",
        "_told",
        "_underivable",
        "durables",
        "listeners",
        "member",
        "recording",
        "sinks",
        "switchboard",
        "troubles",
    )

    def __init__(self, member: Member, switchboard: Switchboard) -> None:
        self.member: Final = member
        self.switchboard: Final = switchboard
        self.sinks: tuple[Sink, ...] = ()
        self.troubles: Final[deque[Trouble]] = deque(maxlen=TROUBLES_MAX)
        self.listeners: tuple[Callable[[Trouble], object], ...] = ()
        self._told: deque[float] = deque(maxlen=TROUBLES_MAX)
        self.recording: Recording | None = None
        self.durables: tuple[DurableSink, ...] = ()
        self._held = False
        self._derivation: DerivationHere | None = None
        self._underivable = False
        self._lock = threading.Lock()

    def add_source(
        self, source: int, position: int = 0, context: SourceContext | None = None, helm: Helm | None = None
    ) -> None:
        """Take part with a source; return when every hub with sinks will be sent its events.

        Raises:
            EchoicError: The manager does not know the channel, or cannot be reached.
        """
        member = self.member
        with self.switchboard.lock:
            member.sources[source] = position
            if context is not None:
                member.contexts = {**(member.contexts or {}), source: context}
            if helm is not None:
                member.helms = {**(member.helms or {}), source: helm}
            known = len(member.sources) > 1 and "source" in member.joined and member.origin is None
            known = known and context is None  # of which code may have been waiting that other sources have refused
        if not known:
            try:
                self.confirm_sources()
            except Exception:
                self.remove_source(source)
                raise

    def confirm_sources(self) -> None:
        """Have the manager say that this hub may have sources; return when every hub with sinks will be sent to.

        Raises:
            EchoicError: It may not, or the manager does not know the channel, or cannot be reached.
        """
        member = self.member
        self.switchboard.wait_for(
            member.manager, lambda core, answer: core.join(member, "source", answer), Joined, again=True
        )

    def remove_source(self, source: int) -> int:
        """Take no more part with a source; return its position."""
        member = self.member

        def leave(core: Concentrator) -> int:
            position = member.end(source)
            forget_source(core, member, source)
            retire(core, member)
            if member.sink is not None:  # it may go on in another hub, and the sinks here have seen it so far
                member.positions.pop(source, None)
                member.expect(source, position)
            return position

        return self.switchboard.do(leave)

    def add_sink(self, sink: Sink, former: Sink | None = None) -> None:
        """Take part with a sink; return when every source sends to it.

        Args:
            sink: Whose handler is to be called.
            former: A sink of another channel whose place it takes. If that fails, some sources may have turned: the
                former one must be taken back there, and this one removed here.

        Raises:
            EchoicError: The manager does not know the channel, or cannot be reached, or a source refuses.
        """
        member = self.member
        if former is not None:
            former.claim(arrived=False)
        with self._lock, self.switchboard.lock:
            if former is not None:  # others here may hear this channel, of sources that have yet to turn
                member.turns.expect(sink.name)
                member.withheld = not self.sinks
        with self._lock:
            self.sinks = (*self.sinks, sink)
            self.switchboard.close_arrivals()
            member.sink = self._wish()
        try:
            self._join(sink, former)
            if former is not None:
                sink.claim(arrived=True)
        except Exception:
            if former is None:
                sink.discard()
            raise

    def take_back(self, sink: Sink, former: Sink) -> None:
        """Let a sink that is still here return from a channel to which not every source could send it.

        Raises:
            EchoicError: The manager cannot be reached.
        """
        self._join(sink, former)
        sink.claim(arrived=True)

    def settle(self, sink: Sink, *, arrived: bool) -> None:
        """Note whether a sink has come from another channel for good; while it is on its way, nothing is claimed.

        The claim is for a manager that is started anew, and knows of no turns.
        """
        with self._lock:
            sink.arrived = arrived
            if sink in self.sinks:
                self.member.sink = self._wish()

    def replace_sink(self, former: Sink, sink: Sink) -> None:
        """Put another sink in the place of one of this channel, between two batches; for all others it is the same."""
        with self._lock:
            sink.name, sink.arrived = former.name, former.arrived
            self.sinks = tuple(sink if other is former else other for other in self.sinks)
            self.switchboard.close_arrivals()
            self.member.sink = self._wish()

    def _join(self, sink: Sink, former: Sink | None) -> None:
        instead, handle = (former.channel, former.name) if former is not None else ("", "")

        def join(core: Concentrator, answer: "Callable[[Message], None]") -> None:
            core.join(self.member, "sink", answer, instead=instead, handle=handle, successor=sink.name)

        self.switchboard.wait_for(self.member.manager, join, Joined, again=former is None)

    def remove_sink(self, sink: Sink) -> None:
        """Take no more part with a sink."""
        member = self.member
        with self._lock:
            if sink not in self.sinks:
                return
            self.sinks = tuple(other for other in self.sinks if other is not sink)
            self.switchboard.close_arrivals()
            self._held = sink.held if sink.journal else self._held

        def leave(core: Concentrator) -> None:
            member.turns.forget(sink.name)
            member.withheld = False
            if self.sinks:  # looked at here and not before: another may have come meanwhile
                member.sink = self._wish()
                core.join(member, "sink", ignore)
            else:
                core.leave(member, "sink", held=sink.held)

        if not self.switchboard.closed:
            self.switchboard.do(leave)

    def positions(self) -> dict[int, int]:
        """Return how far each source has been heard here."""
        with self.switchboard.lock:
            return {**self.member.positions, **self.member.sources}

    def deliver(self, delivery: Delivery) -> dict[str, str] | None:
        """Hand events of another hub to every sink here; return who failed.

        None means that some sinks will be done with them later, and the sender is told then.
        """
        sinks, batch = self.sinks, delivery.batch
        if self.member.turns.any or self.sinks is not sinks:
            sinks = self._taking(delivery.hub, delivery.source, delivery.first)
        if delivery.again:
            sinks = tuple(sink for sink in sinks if sink.journal)
        if delivery.raw:
            batch = self._derived(delivery)
        if len(sinks) == 1 and not sinks[0].queued:
            decode = sinks[0].lone_way(batch.format) if delivery.call and not delivery.raw else None
            if decode is not None:
                with self._lock:
                    if self.sinks is sinks:
                        self.switchboard.open_arrivals(delivery, sinks[0], decode)
            problem = sinks[0].run(batch)
            return {sinks[0].name: problem} if problem else {}
        pending = Pending(len(sinks) + 1)

        def done(sink: str, problem: str) -> None:
            if pending.done(sink, problem):
                self.switchboard.finish([(delivery, pending.failures)])

        for sink in sinks:
            if sink.queued:
                finish = partial(done, sink.name)
                arrival = Arrival(batch, delivery.source, delivery.first, delivery.size, finish, delivery.hub)
                sink.put(arrival, wait=False)
            else:
                done(sink.name, sink.run(batch))
        done("", "")
        return None

    def _derived(self, delivery: Delivery) -> Batch:
        """Return what a derivation that was placed with the sinks makes of events; nothing of what it cannot take."""
        try:
            with self._lock:
                if self._derivation is None:
                    if self._underivable:
                        return Batch(delivery.batch.format, 0, [b""])
                    self._underivable = True  # unless it compiles: it is not tried for every batch
                    self._derivation = DerivationHere(self.member, self.switchboard)
            batch, troubles = self._derivation.derived(delivery)
            for trouble in troubles:
                self.troubled(trouble)
            return batch
        except EchoicError as error:
            log.warning("events of %s cannot be derived here: %s", self.member.name, error)
            return Batch(delivery.batch.format, 0, [b""])

    def deliver_here(
        self, source: int, first: int, batch: Batch | None, event: object = None, declared: object = None
    ) -> Pending:
        """Hand events of a source in this hub to every sink here.

        Args:
            source: Whose events they are.
            first: The number of the first.
            batch: The events; may be None when `event` is given, and is then made only if a sink needs it.
            event: The only event, as its program submitted it, which suits sinks of the same class.
            declared: The type of the event.
        """
        sinks = self._taking(self.switchboard.core.id, source, first)
        pending = Pending(len(sinks) + 1)
        for sink in sinks:
            if event is not None and sink.takes_objects_of(type(event)):
                pending.done(sink.name, sink.run_object(event))
                continue
            if batch is None:
                batch = Batch.of((event,), declared)
            if sink.queued:
                done = partial(pending.done, sink.name)
                sink.put(Arrival(batch, source, first, len(batch.records), done), wait=True)
            else:
                pending.done(sink.name, sink.run(batch))
        pending.done("", "")
        return pending

    def _taking(self, hub: str, source: int, first: int) -> tuple[Sink, ...]:
        """Return the sinks that take an event: all, unless some go over to another channel, or come from one.

        A sink that goes over is entered among the turns before it comes and struck there after it has left. So when
        there are no turns, and then still the same sinks as before, nobody was on his way in between.
        """
        sinks, turns = self.sinks, self.member.turns
        if not turns.any and self.sinks is sinks:
            return sinks
        with self.switchboard.lock:
            return tuple(sink for sink in self.sinks if turns.takes(sink.name, hub, source, first))

    def missed(self, gap: Gap) -> None:
        """Tell the sinks here about events that were not sent."""
        for sink in self.sinks:
            sink.missed(gap)

    def ended(self, reason: str) -> None:
        """Tell the sinks here that they are sent no more."""
        for sink in self.sinks:
            sink.end(reason)

    def listen(self, listener: "Callable[[Trouble], object]") -> "Callable[[], None]":
        """Tell somebody of trouble with the derivation of this channel, until what is returned is called."""
        entry = Listener(listener)
        self.listeners = (*self.listeners, entry)

        def stop() -> None:
            self.listeners = tuple(one for one in self.listeners if one is not entry)

        return stop

    def troubled(self, trouble: Trouble) -> None:
        """Tell those who derived the channel here what is wrong, unless somebody tells it without end."""
        now = time.monotonic()
        if len(self._told) == TROUBLES_MAX and now - self._told[0] < TROUBLES_SECONDS:
            return
        self._told.append(now)
        log.warning(
            "the derivation of %s %s at %s: %s",
            self.member.name,
            "is suspended" if trouble.suspended else "has faulted",
            _legible(trouble.hub),
            _legible(trouble.text),
        )
        self.troubles.append(trouble)
        for listener in self.listeners:
            try:
                listener(trouble)
            except RAISED as error:  # it is called where events are submitted or read, which must go on
                log.warning("%r failed at trouble with %s: %r", listener, self.member.name, error)

    def close_durable(self, deadline: float) -> None:
        """Close the sinks that read the journal, while a recorder in this hub can still keep how far they are."""
        for sink in self.durables:
            sink.close(timeout=max(deadline - time.monotonic(), 0))

    def close(self, deadline: float) -> None:
        """Close all sinks here; do not wait for handlers that hang when it is late."""
        for sink in self.sinks:
            sink.close(timeout=max(deadline - time.monotonic(), 0))

    def _wish(self) -> SinkHub:
        """Return what this hub asks of the sources: everything, if any sink wants everything."""
        rules = {sink.slow for sink in self.sinks}
        slow = rules.pop() if len(rules) == 1 else "block"
        turns = {sink.name: True for sink in self.sinks if sink.arrived}
        journal = next((sink.journal for sink in self.sinks if sink.journal), "")
        names = tuple(sink.name for sink in self.sinks)
        held = self._held and not journal
        return SinkHub(self.switchboard.address, slow, names, turns=turns, journal=journal, held=held)


def _legible(text: str) -> str:
    """Return what a stranger has written for a log: no line begins with it, and it cannot steer a terminal."""
    shown = "".join(one if one == "\n" or one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    return shown.replace("\n", "\n    ")
