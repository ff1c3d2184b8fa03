"""A modulator at work: one copy of it for each source, events in, events out (JECho, section 4.1, intercept interface).

Both places where shipped code runs use this, the hub's own process and the confined one, so that a modulator behaves
alike in both. One call is

    enqueue each event of the batch  ->  period, if one is over  ->  dequeue until there is nothing, if it can be sent

An error in `enqueue` is the fault of one event: it is told and the others go on, as with E-Code. An error in `start`,
`period` or `dequeue` is nobody's but the modulator's, and ends it.

Events are decoded for each modulator, not shared with the handlers of this process, since a modulator may change them:
`enqueue` is given objects of its own. What `dequeue` returns may be such an object, one of the output's event class, or
anything that has its fields as attributes or keys; it is encoded here, and what cannot be is a fault.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from echoic.eager.limits import FAULT_CHARACTERS_MAX, FAULTS_MAX, OUTPUT_EVENTS_MAX
from echoic.eager.loading import explain
from echoic.eager.modulator import Intercepts, Modulator
from echoic.errors import EchoicError, EncodeError, ModulatorError
from echoic.formats import Format
from echoic.wire import Batch, decoder_of, encoder_of

__all__ = ["FOREIGN_ERRORS", "Copies", "Outcome", "told"]

FOREIGN_ERRORS: Final = (Exception, SystemExit, GeneratorExit)
"""What the code of others may raise and does not end this program."""


class Outcome(NamedTuple):
    """What one call has brought: `Worked` of the core, which a confined process does without."""

    batch: Batch | None
    faults: tuple[str, ...] = ()
    waiting: bool = False


class Copies:
    """The copies of one modulator, one for each source.

    Args:
        name: The class of the modulator, for messages.
        make: Returns the copy for a source, with its services; it is started here.
        events: The type of the events that go in.
        output: The type of those that come out.
    """

    def __init__(self, *, name: str, make: Callable[[int], Modulator], events: Format, output: Format | None) -> None:
        self._name = name
        self._make = make
        self._input = decoder_of(events)
        self._output = output or events
        self._encoder = encoder_of(self._output)
        self._copies: dict[int, Modulator] = {}

    def work(self, source: int, batch: Batch | None, *, period: bool, ready: bool) -> Outcome:
        """Do what `Runner.work` says.

        Raises:
            ModulatorError: It cannot go on.
        """
        copy = self._copy(source)
        faults: list[str] = []
        if batch is not None:
            self._enqueue(copy, batch, faults)
        if period:
            self._try("period", copy.period)
        if not ready:
            return Outcome(None, tuple(faults), batch is not None or period or self._waiting(copy))
        return self._sent(self._dequeue(copy), faults, copy)

    def drain(self, source: int) -> Outcome:
        """Dequeue everything: what `period` would have sent when the time had come, and what the queue holds back.

        Raises:
            ModulatorError: It cannot go on.
        """
        copy = self._copies.get(source)
        if copy is None:
            return Outcome(None)
        self._try("period", copy.period)
        events = self._dequeue(copy)
        while (event := Intercepts.dequeue(copy)) is not None:  # Invariant: the queue has a limit of its own
            events.append(event)
        return self._sent(events, [], copy)

    def forget(self, source: int) -> None:
        """End the copy of a source."""
        self._copies.pop(source, None)

    def _copy(self, source: int) -> Modulator:
        copy = self._copies.get(source)
        if copy is None:
            copy = self._make(source)
            self._try("start", copy.start)
            self._copies[source] = copy
        return copy

    def _enqueue(self, copy: Modulator, batch: Batch, faults: list[str]) -> None:
        enqueue, more = copy.enqueue, 0
        try:
            events = self._events(batch)
        except EchoicError as error:
            faults.append(f"{batch.count} events of `{batch.format.name}` cannot be read: {error}")
            return
        for event in events:
            try:
                enqueue(event)
            except FOREIGN_ERRORS as error:
                if len(faults) < FAULTS_MAX - 1:
                    faults.append(self._told("enqueue", error))
                else:
                    more += 1
        if more:
            faults.append(f"`{self._name}.enqueue` raised for {more} further events of {batch.count}")

    def _events(self, batch: Batch) -> list[object]:
        own = batch.to(self._input) if batch.format.token != self._input.binding.format.token else batch
        return self._input.decode(own.records, own.known_offsets)

    def _dequeue(self, copy: Modulator) -> list[object]:
        events: list[object] = []
        dequeue = copy.dequeue
        try:
            while (event := dequeue()) is not None:
                events.append(event)
                if len(events) > OUTPUT_EVENTS_MAX:
                    break
        except FOREIGN_ERRORS as error:
            raise ModulatorError(self._told("dequeue", error)) from error
        if len(events) > OUTPUT_EVENTS_MAX:
            raise ModulatorError(
                f"`{self._name}.dequeue` gave more than {OUTPUT_EVENTS_MAX} events at once, which is the limit; it "
                f"returns None when there is nothing more to send"
            )
        return events

    def _sent(self, events: list[object], faults: list[str], copy: Modulator) -> Outcome:
        batch = self._encoded(events, faults) if events else None
        return Outcome(batch, tuple(faults[:FAULTS_MAX]), self._waiting(copy))

    def _encoded(self, events: list[object], faults: list[str]) -> Batch | None:
        try:
            pieces, bounds = self._encoder.encode(events)
        except FOREIGN_ERRORS:
            events = self._fitting(events, faults)
            if not events:
                return None
            pieces, bounds = self._encoder.encode(events)
        return Batch(self._output, len(events), pieces, bounds)

    def _fitting(self, events: list[object], faults: list[str]) -> list[object]:
        """Return the events that can be encoded, and tell of the others."""
        fitting = []
        for event in events:
            try:
                self._encoder.encode((event,))
            except EncodeError as error:
                text = (
                    f"`{self._name}.dequeue` gave a `{type(event).__name__}`, expected a `{self._output.name}`: {error}"
                )
                faults.append(_shown(text))
            except FOREIGN_ERRORS as error:
                faults.append(self._told("dequeue", error))
            else:
                fitting.append(event)
        return fitting

    def _waiting(self, copy: Modulator) -> bool:
        return bool(self._try("waiting", lambda: copy.waiting))

    def _try(self, what: str, function: Callable[[], object]) -> object:
        try:
            return function()
        except FOREIGN_ERRORS as error:
            raise ModulatorError(self._told(what, error)) from error

    def _told(self, what: str, error: BaseException) -> str:
        return told(f"{self._name}.{what}", error)


def told(place: str, error: BaseException) -> str:
    """Return what is told of an error in shipped code: where in its text, and which."""
    try:
        text = explain(error)
    except FOREIGN_ERRORS as another:
        text = f"{type(error).__name__}, which cannot be shown: that raised {type(another).__name__}"
    return _shown(f"`{place}` raised {text}")


def _shown(text: str) -> str:
    """Return a text that can be sent: not too long, and nothing in it that is not Unicode."""
    return text[:FAULT_CHARACTERS_MAX].encode("utf-8", "replace").decode()
