"""Modulators and demodulators: the two halves of an eager handler (JECho, sections 3 and 4).

A handler that only looks at some events, or at a tenth of each, is best split: the half that decides goes to where the
events are made, the other half stays with the consumer. Both halves are intercepts around a queue:

    source                                        sink
    submit -> enqueue -> [queue] -> dequeue ~~~~> enqueue -> [queue] -> dequeue -> handler
                 period, every `period_ns`           period

`enqueue` sees every event when it is submitted, and may drop it, change it, keep it or queue several. `dequeue` is
asked when the transport can send, and decides what goes next. As they are, the two make a first-in-first-out queue, so
a class overrides what it is about and leaves the rest to `super()`:

    class Below(echoic.Modulator):
        limit: float = 100.0

        def enqueue(self, event):
            if event.price < self.limit:
                super().enqueue(event)

In the paper a modulator is a Java class that is serialised with everything it refers to. Here the annotated attributes
are the state, typed as the fields of an event are, and the rest of an object does not travel: `start` makes it anew
where the modulator runs. That makes the state small, readable for other machines, and free of code.

Two modulators are the same stream when they are equal, which is what `equality` says; by default, the same class with
the same state and the same shared objects. What is told apart by nothing is shared: see `parcel`.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self, cast

from echoic.eager.shared_object import SharedObject
from echoic.eager.state import TypedState, encoded, shared_id, state_of
from echoic.errors import LocalError, ModulatorError
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.eager.services import Services

__all__ = ["QUEUE_EVENTS_MAX", "Demodulator", "EcodeModulator", "Intercepts", "Modulator", "Snapshot"]

QUEUE_EVENTS_MAX: Final = 65_536
SETTINGS: Final = frozenset({"output", "period_ns", "requires"})


class Intercepts:
    """A queue of events, and what is called around it."""

    period_ns: int = 0
    """How often `period` is called, in nanoseconds; 0 for never."""

    _queue: deque[object]

    def __new__(cls, *_positional: object, **_named: object) -> Self:
        """Make the queue, whatever a constructor further down does or forgets."""
        made = super().__new__(cls)
        made._queue = deque()
        return made

    def start(self) -> None:
        """Get ready: called once, before the first event, where the events will be."""

    def enqueue(self, event: object) -> None:
        """Take an event that was submitted; this one puts it at the end of the queue.

        Raises:
            ModulatorError: The queue is full.
        """
        if len(self._queue) >= QUEUE_EVENTS_MAX:
            raise ModulatorError(
                f"the queue of `{type(self).__name__}` holds {len(self._queue)} events, limit is {QUEUE_EVENTS_MAX}"
            )
        self._queue.append(event)

    def dequeue(self) -> object | None:
        """Return the event to send next, None when there is none; this one takes it from the head of the queue."""
        return self._queue.popleft() if self._queue else None

    def period(self) -> None:
        """Do what is to be done every `period_ns`, and once more before the end: put what was kept into the queue."""

    @property
    def waiting(self) -> int:
        """How many events are in the queue."""
        return len(self._queue)


class Demodulator(Intercepts):
    """The half of an eager handler that stays with the sink: events pass it before they reach the handler."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a modulator at one time."""

    state: Batch | None
    """One record of its typed attributes, None if it has none."""
    shared: Mapping[str, SharedObject]
    """Its shared objects by attribute."""
    equality: bytes
    """What tells it from others of its class; equal in all processes for equal modulators."""


class Modulator(Intercepts):
    """The half of an eager handler that runs inside every source.

    Annotated attributes are its state, which goes with it: whatever a field of an event can be, and shared objects.
    They are the arguments of the constructor, in order or by name. Anything else is made in `start`.

    Raises:
        LocalError: State is missing, unknown, or not of its type.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    """The services it needs where it runs."""
    output: ClassVar[object | None] = None
    """The event type that comes out; None for the one that goes in."""

    _services: object | None = None

    def __init__(self, *positional: object, **state: object) -> None:
        self.__dict__.update(declared_state(type(self)).bind(positional, state))

    @classmethod
    def revive(cls, state: Batch | None, shared: Mapping[str, SharedObject]) -> Self:
        """Return a modulator with a state that has travelled; its constructor is not called.

        Raises:
            LocalError: The state is not that of this class.
            MalformedBatchError: The record contradicts its type.
        """
        declared = declared_state(cls)
        if (state is None) != (declared.record is None) or shared.keys() != declared.shared.keys():
            raise LocalError(f"expected the state ({', '.join(declared.names)}), got another - at `{cls.__name__}`")
        made = cls.__new__(cls)
        made.__dict__.update(declared.decode(state))
        made.__dict__.update(shared)
        return made

    @property
    def services(self) -> "Services":
        """The services that it requires, by name, where it runs.

        Raises:
            LocalError: It runs nowhere.
        """
        if self._services is None:
            raise LocalError(f"services are there only where a modulator runs - at `{type(self).__name__}`")
        return cast("Services", self._services)

    @services.setter
    def services(self, services: "Services") -> None:
        self._services = services

    @property
    def buffered(self) -> bool:
        """Whether it decides what is sent and when, so that events may wait in it."""
        return type(self).dequeue is not Intercepts.dequeue

    def equality(self) -> tuple[object, ...]:
        """Return what tells this modulator from others of its class: those with the same share one stream.

        Raises:
            EncodeError: The state does not fit its types.
        """
        declared = declared_state(type(self))
        values = declared.typed(self.__dict__)
        shared = {name: shared_id(getattr(self, name)) for name in declared.shared}
        return tuple(shared[name] if name in shared else values[name] for name in declared.names)

    def shared_objects(self) -> "list[SharedObject]":
        """Return the shared objects that it names."""
        return [getattr(self, name) for name in declared_state(type(self)).shared]

    def snapshot(self) -> Snapshot:
        """Return the state as it is at this moment, ready to travel.

        Raises:
            LocalError: Its state, or what `equality` returns, cannot travel.
        """
        declared = declared_state(type(self))
        shared = {name: getattr(self, name) for name in declared.shared}
        return Snapshot(declared.encode(self.__dict__), shared, self._equality_bytes())

    def _equality_bytes(self) -> bytes:
        return encoded(self.equality(), f"`{type(self).__name__}.equality`")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Modulator):
            return NotImplemented
        return self is other or self._equality_bytes() == other._equality_bytes()

    def __hash__(self) -> int:
        return hash((type(self), self._equality_bytes()))

    def __repr__(self) -> str:
        names = declared_state(type(self)).names
        return f"{type(self).__name__}({', '.join(f'{name}={self.__dict__.get(name)!r}' for name in names)})"


class EcodeModulator(Modulator):
    """A modulator that is E-Code: compiled where it runs, and welcome wherever derivations are.

    Args:
        code: E-Code, or a Python function limited to what E-Code can say.
        output: The event type that comes out; None for the one that goes in.
        params: What the code reads as `param.NAME`: a mapping, an object of an event class, or a shared object, whose
            fields can then be changed while the code runs.
        capacities: How many steps dynamic arrays of `output` may have, by name.
    """

    def __init__(
        self,
        code: str | Callable[..., object],
        output: object | None = None,
        *,
        params: object | None = None,
        capacities: Mapping[str, int] | None = None,
    ) -> None:
        self.code: Final = code
        self.output = output  # type: ignore[misc] # of this object: the class stands for every code
        self.params: Final = params
        self.capacities: Final[Mapping[str, int]] = dict(capacities or {})

    def equality(self) -> tuple[object, ...]:
        """Return the code, its types and its parameters."""
        code = self.code if isinstance(self.code, str) else f"{self.code.__module__}.{self.code.__qualname__}"
        return (code, self.output, self.params, self.capacities)

    def snapshot(self) -> Snapshot:
        """Refuse: code of this kind is derived, not shipped.

        Raises:
            LocalError: Always.
        """
        raise LocalError(f"`{type(self).__name__}` is E-Code, which is derived and travels in no parcel")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code!r})"


RESERVED: Final = frozenset(name for name in dir(Modulator) if not name.startswith("_")) - SETTINGS


def declared_state(cls: type[Modulator]) -> TypedState:
    """Return what the annotations of a modulator's class declare.

    Raises:
        LocalError: An annotation cannot be the type of state.
    """
    return state_of(cls, SETTINGS, RESERVED)
