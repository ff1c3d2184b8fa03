"""Shared objects: values that a consumer and its code inside the sources have in common (JECho, section 4).

A consumer that has sent a modulator into the sources wants to change its mind: another bounding box, another threshold.
In the paper's Shared Object Interface there is one *master* copy of such a value and any number of *secondary* copies,
each in another process; all may be written.

    class Box(echoic.SharedObject):
        start_layer: int = 0
        end_layer: int = 0

    box = Box(0, 4)          hub.share(box)           the master is in this hub
    box.end_layer = 8        box.publish()            what was assigned goes to the master, and from there to all copies

The fields are annotated attributes with the types that events have, and travel as one record, so a copy on a machine
of another byte order reads them like any event. Assignment is local until `publish`, so that a change of several fields
is one change everywhere. What is not shared is the object: methods and attributes with a leading underscore are those
of each copy.

The values of a copy lie in its own dictionary, where reading costs what reading any attribute costs: a modulator looks
at its box for every event, and somebody writes a few times a second. So whoever brings a change does the work
(`refresh`), and a reader takes no lock. Reading two fields may meet a change in between; `snapshot` does not.

This module knows no hub. What stands behind a copy is a `Replica`; a hub has one for each object (`echoic.hub`), and a
process in which a modulator is confined has another, at the end of a pipe.
"""

import inspect
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self, TypeVar, dataclass_transform

from echoic.channels import VALUE_BYTES_MAX, SharedView
from echoic.errors import ClosedError, EncodeError, FormatError, IncompatibleTypesError, LocalError
from echoic.formats import Format, Record, event
from echoic.wire import Batch, encoder_of

if TYPE_CHECKING:
    from echoic.eager.parcel import SharedReference

__all__ = [
    "Replica",
    "SharedHost",
    "SharedObject",
    "attach",
    "copy_of",
    "encode_values",
    "notify",
    "record_class",
    "refresh",
]

CALLBACKS_MAX: Final = 256

log: Final = logging.getLogger("echoic.eager")

S = TypeVar("S", bound="SharedObject")


class Replica(Protocol):
    """What stands behind the copies of one object in one place."""

    @property
    def id(self) -> str:
        """The id of the object, the same at all copies."""

    @property
    def format(self) -> Format:
        """The type of its records: that of the master, whatever machine this is."""

    @property
    def view(self) -> SharedView:
        """What is known; a later view is never of an earlier version. Does not wait."""

    def write(self, fields: tuple[str, ...], values: bytes) -> None:
        """Send fields of a record to the master, and show them in the view from then on. Does not wait.

        Raises:
            ClosedError: The hub was closed.
            UnreachableError: The master is no more.
        """

    def pull(self) -> None:
        """Wait until the view is as new as the master's state was when this was called.

        Raises:
            UnreachableError: The master does not answer.
        """

    def release(self, copy: "SharedObject") -> None:
        """Forget a copy that is not used any more."""


class SharedHost(Protocol):
    """A place where copies of shared objects can be had."""

    def copy(self, reference: "SharedReference", cls: type[S]) -> S:
        """Return a copy of an object that a modulator names, with the values that came with it, without waiting.

        Updates reach it by themselves. `close` it when the modulator ends.

        Raises:
            RefusedError: The reference is not one of this class, or there is no room for further objects.
        """


class _Inner:
    """What a copy needs beside its values; kept apart so that the names of fields are free."""

    __slots__ = ("callbacks", "closed", "draft", "lock", "publishing", "replica", "version")

    def __init__(self) -> None:
        self.lock: Final = threading.Lock()  # for a moment, around the dictionary of the copy
        self.publishing: Final = threading.RLock()  # so that of two threads the later one's values are written last
        self.draft: set[str] = set()
        self.callbacks: tuple[Callable[[SharedObject], None], ...] = ()
        self.replica: Replica | None = None
        self.version = 0
        self.closed = False


@dataclass_transform(eq_default=False)
class SharedObject:
    """Values that are kept the same in several processes; subclass it and annotate the fields.

    The constructor takes the fields in their order or by name, and as defaults what the class assigns to them. Arrays
    of a copy cannot be written in place: assign another one. It can be used by several threads.

    Raises:
        EncodeError: A value does not fit its field.
    """

    __echoic_record__: ClassVar[type[Record] | None] = None
    _echoic: _Inner

    def __init_subclass__(cls, **named: object) -> None:
        """Read the fields of a class.

        Raises:
            FormatError: An annotation cannot be a field, or has a name that every shared object needs.
        """
        super().__init_subclass__(**named)
        cls.__echoic_record__ = _read_fields(cls)

    def __init__(self, *positional: object, **named: object) -> None:
        record = record_class(type(self))
        given = record(*positional, **named)
        self.__dict__["_echoic"] = _Inner()
        self.__dict__.update(_values(type(self), encode_values(given, _format(record)), _format(record)))

    @property
    def id(self) -> str:
        """The id that all copies have; "" as long as it is not shared."""
        replica = self._echoic.replica
        return replica.id if replica is not None else ""

    @property
    def version(self) -> int:
        """How many changes the master had seen when it sent what this copy shows."""
        return self._echoic.version

    @property
    def stale(self) -> bool:
        """Whether the master cannot be heard at the moment, or is no more; the values are the last known ones."""
        inner = self._echoic
        return inner.closed or (inner.replica is not None and inner.replica.view.stale)

    def publish(self) -> None:
        """Send the fields that were assigned since the last time to the master, and from there to all copies.

        It does not wait. If the master is out of reach for a while, what was published is kept and sent as soon as
        it is not. The master applies changes in the order of their arrival; of two that change the same field, the
        later one holds. Before the object is shared, there is nobody to tell and nothing happens.

        Raises:
            EncodeError: A value does not fit its field, or all together have too many bytes.
            ClosedError: The hub was closed, or this copy.
            UnreachableError: The master is no more.
        """
        inner = self._open()
        with inner.publishing:
            with inner.lock:
                replica, drafted = inner.replica, {name: self.__dict__[name] for name in inner.draft}
                record = _record(self)
            format = replica.format if replica is not None else _format(type(record))
            values = encode_values(record, format)
            if not drafted:
                return
            if replica is not None:
                fields = tuple(field.name for field in format.fields if field.name in drafted)
                replica.write(fields, values)
            with inner.lock:
                inner.draft -= {name for name, value in drafted.items() if self.__dict__[name] is value}
            if replica is not None:
                refresh(self)

    def pull(self) -> int:
        """Fetch the newest state from the master, and return its version. What was assigned here is kept.

        Raises:
            ClosedError: The hub was closed, or this copy.
            UnreachableError: The master does not answer.
        """
        replica = self._open().replica
        if replica is not None:
            replica.pull()
            refresh(self)
        return self.version

    def on_change(self, callback: Callable[[Self], None]) -> Callable[[], None]:
        """Have a function called with this copy when somebody else has changed values; return what ends that.

        It is called in a thread of its own, in which it may wait; several changes may be told by one call.

        Raises:
            LocalError: There are too many already.
        """
        inner = self._open()
        wanted: Callable[[SharedObject], None] = callback  # type: ignore[assignment] # called with this copy only
        with inner.lock:
            if len(inner.callbacks) >= CALLBACKS_MAX:
                raise LocalError(f"{len(inner.callbacks)} callbacks are told of changes, limit is {CALLBACKS_MAX}")
            inner.callbacks = (*inner.callbacks, wanted)

        def stop() -> None:
            with inner.lock:
                inner.callbacks = tuple(each for each in inner.callbacks if each is not wanted)

        return stop

    def snapshot(self) -> Record:
        """Return the values of one moment as an event, with what was assigned here."""
        with self._echoic.lock:
            return _record(self)

    def reference(self, attribute: str) -> "SharedReference":
        """Return what a parcel says about this object, which a modulator has as an attribute.

        Raises:
            LocalError: It is not shared.
        """
        from echoic.eager.parcel import SharedReference  # parcels know shared objects, too

        replica = self._echoic.replica
        if replica is None:
            raise LocalError(f"the `{type(self).__name__}` is not shared yet: hub.share(...) - at `{attribute}`")
        view = replica.view
        name, descriptor = type(self).__name__, replica.format.descriptor
        return SharedReference(attribute, replica.id, name, descriptor, view.values, view.version)

    def close(self) -> None:
        """Keep the values there are, and take no more part; with the last copy in the master's hub the object ends."""
        inner = self._echoic
        with inner.publishing:
            closed, inner.closed = inner.closed, True
        if inner.replica is not None and not closed:
            inner.replica.release(self)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _names(type(self)):
            inner = self._echoic
            with inner.lock:
                self.__dict__[name] = value
                inner.draft.add(name)
        elif name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            raise AttributeError(f"`{type(self).__name__}` has no field `{name}`, only {', '.join(_names(type(self)))}")

    def __delattr__(self, name: str) -> None:
        if name in _names(type(self)):
            raise AttributeError(f"`{name}` is a field of `{type(self).__name__}` and cannot be deleted")
        object.__delattr__(self, name)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.snapshot().items())
        return f"<{type(self).__name__}({values}) version {self.version} of {self.id or 'nobody yet'}>"

    def _open(self) -> _Inner:
        inner = self._echoic
        if inner.closed:
            raise ClosedError(f"this copy of the `{type(self).__name__}` was closed")
        return inner


RESERVED: Final = frozenset(name for name in dir(SharedObject) if not name.startswith("__"))


def record_class(cls: type[SharedObject]) -> type[Record]:
    """Return the event class that has the fields of a class of shared objects.

    Raises:
        FormatError: It has none.
    """
    record = cls.__echoic_record__
    if record is None:
        raise FormatError(f"a shared object needs at least one field - at `{cls.__name__}`")
    return record


def encode_values(record: Record, format: Format) -> bytes:
    """Return values as one record of a format that has the same fields, perhaps laid out for another machine.

    Raises:
        EncodeError: A value does not fit its field, or all together have too many bytes.
    """
    values = b"".join(encoder_of(format).encode((record,))[0])
    if len(values) > VALUE_BYTES_MAX:
        raise EncodeError(
            f"the values of a shared object have {len(values)} bytes, limit is {VALUE_BYTES_MAX} - at `{format.name}`"
        )
    return values


def attach(shared: SharedObject, replica: Replica) -> None:
    """Put a replica behind an object, which has its values.

    Raises:
        LocalError: Another one stands there.
    """
    inner = _inner(shared)
    with inner.lock:
        if inner.replica is not None:
            raise LocalError(f"the `{type(shared).__name__}` is shared already - at {inner.replica.id}")
        inner.replica = replica
        inner.draft.clear()


def copy_of(cls: type[S], replica: Replica) -> S:
    """Return a further copy of an object, with the values of a replica; the constructor of the class is not called.

    Raises:
        IncompatibleTypesError: The replica is not one of this class.
        MalformedBatchError: Its values contradict their type.
    """
    view, names = replica.view, tuple(field.name for field in replica.format.fields)
    if names != _names(cls):
        raise IncompatibleTypesError(f"expected the fields {_names(cls)}, got {names} - at `{cls.__name__}`")
    made = cls.__new__(cls)
    inner = made.__dict__["_echoic"] = _Inner()
    made.__dict__.update(_values(cls, view.values, replica.format))
    inner.version, inner.replica = view.version, replica
    return made


def refresh(shared: SharedObject) -> bool:
    """Bring a copy up to its replica's view; return whether it shows other values than before and somebody is told.

    Whoever calls it reads the view inside the copy's lock, so of two that do at the same time the later one brings the
    later view, and a version is never followed by an earlier one. What was assigned and not published stays.
    """
    inner = _inner(shared)
    with inner.lock:
        if inner.replica is None:
            return False
        view = inner.replica.view
        values = _values(type(shared), view.values, inner.replica.format)
        before = _record(shared)
        shared.__dict__.update({name: value for name, value in values.items() if name not in inner.draft})
        inner.version = view.version
        return bool(inner.callbacks) and before != _record(shared)


def notify(shared: SharedObject) -> None:
    """Call those who want to hear of changes; an error of one is logged, and no matter of the others."""
    inner = _inner(shared)
    for callback in inner.callbacks:
        if inner.closed:
            return
        problem = _problem_of(callback, shared)
        if problem is not None:
            log.error("a callback failed that was told of a change of %s", shared.id, exc_info=problem)


def _problem_of(callback: Callable[[SharedObject], None], shared: SharedObject) -> Exception | None:
    """Call a function of the program, and return what it raised."""
    try:
        callback(shared)
    except Exception as problem:  # noqa: BLE001 - whatever it is, the others are to be told too
        return problem
    return None


def _read_fields(cls: type[SharedObject]) -> type[Record] | None:
    """Return an event class with the annotations and defaults of a class and those that it extends."""
    annotations: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, SharedObject) and base is not SharedObject:
            annotations |= inspect.get_annotations(base)
    fields = {name: hint for name, hint in annotations.items() if not name.startswith("_")}
    for name in fields:
        if name in RESERVED:
            raise FormatError(f"`{name}` is a part of every shared object and cannot be a field - at `{cls.__name__}`")
    defaults = {name: getattr(cls, name) for name in fields if hasattr(cls, name)}
    if not fields:
        return None
    namespace = {**defaults, "__annotations__": fields, "__module__": cls.__module__, "__doc__": cls.__doc__}
    declared: type[Record] = event(type(cls.__name__, (), namespace))
    return declared


def _inner(shared: SharedObject) -> _Inner:
    inner: _Inner = shared.__dict__["_echoic"]
    return inner


def _record(shared: SharedObject) -> Record:
    """Return what a copy shows. Its lock is held."""
    values = shared.__dict__
    return record_class(type(shared))(*(values[name] for name in _names(type(shared))))


def _names(cls: type[SharedObject]) -> tuple[str, ...]:
    record = cls.__echoic_record__
    return record.__struct_fields__ if record is not None else ()


def _format(record: type[Record]) -> Format:
    return record.__echoic_binding__.format


def _values(cls: type[SharedObject], values: bytes, format: Format) -> dict[str, object]:
    """Return the values of a record by field, in the types that a class declares."""
    found = Batch.of_record(values, format).to(record_class(cls)).events()[0]
    return {name: getattr(found, name) for name in _names(cls)}
