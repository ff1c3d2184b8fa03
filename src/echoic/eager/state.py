"""The typed state of a modulator: its annotated attributes, as one record of the wire format.

What a modulator remembers when it is shipped is what its class declares, exactly as an event class declares its fields.
So the state of a modulator travels as one record with a descriptor, is checked when the modulator is made and not when
it arrives, and is read on a machine of another byte order like any event. A pickle of the object's dictionary would
have been less to write and would run whatever the sender likes; a JSON text would forget which integer had 16 bits.

Attributes whose annotation is a class of shared objects are no part of the record: they travel as references, and
become the copy that the hub there keeps (JECho, section 4, shared objects). Names that begin with an underscore stay at
home.

`plain` brings any value that tells one modulator from another into one form, so that equal modulators of two
processes have equal bytes.
"""

import enum
import inspect
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, get_origin

import msgspec
import numpy

from echoic.eager.shared_object import SharedObject
from echoic.errors import FormatError, LocalError
from echoic.formats import Format, Record, event
from echoic.wire import Batch

__all__ = ["TypedState", "encoded", "plain", "shared_id", "state_of"]

NESTING_MAX: Final = 64
ATTRIBUTE: Final = "__echoic_state__"
Plain: typing.TypeAlias = "bool | int | float | str | bytes | list[Plain] | None"


class TypedState:
    """What the annotations of one class declare."""

    def __init__(self, cls: type, settings: frozenset[str], reserved: frozenset[str]) -> None:
        self.name: Final = cls.__name__
        hints = _hints(cls, settings)
        for name in hints:
            if name in reserved:
                raise LocalError(f"`{name}` is a part of every modulator and cannot be its state - at `{self.name}`")
        self.shared: Final = {name: hint for name, hint in hints.items() if _is_shared(hint)}
        """The classes of its shared objects by attribute."""
        typed = {name: hint for name, hint in hints.items() if name not in self.shared}
        self.fields: Final = tuple(typed)
        self.record: Final = _record_class(self.name, typed) if typed else None
        """The event class of its other attributes, None if there are none."""
        self.signature: Final = _signature(cls, hints)

    @property
    def names(self) -> tuple[str, ...]:
        """All attributes in the order in which a constructor takes them."""
        return tuple(self.signature.parameters)

    def bind(self, positional: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
        """Return the attributes that the arguments of a constructor stand for, each in the form of its type.

        Raises:
            LocalError: One is missing, unknown, or not of its type.
        """
        try:
            bound = self.signature.bind(*positional, **named)
        except TypeError as error:
            expected = f"its state is ({', '.join(self.names)})" if self.names else "it has no state"
            raise LocalError(f"{error}; {expected} - at `{self.name}(...)`") from error
        bound.apply_defaults()
        values = bound.arguments
        for name, cls in self.shared.items():
            if not isinstance(values[name], cls):
                raise LocalError(f"expected a `{cls.__name__}`, got {_shown(values[name])} - at `{self.name}.{name}`")
        return {**values, **self.typed(values)}

    def encode(self, values: Mapping[str, object]) -> Batch | None:
        """Return the attributes as a batch of one record; None if there are none.

        Raises:
            EncodeError: A value does not fit its type.
        """
        if self.record is None:
            return None
        return Batch.of([self.record(*(values[name] for name in self.fields))], self.record)

    def typed(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return the attributes as they will be where they arrive: 1 of a float is 1.0, a list of numbers an array.

        Raises:
            EncodeError: A value does not fit its type.
        """
        return self.decode(self.encode(values))

    def decode(self, batch: Batch | None) -> dict[str, object]:
        """Return the attributes of a record, which may come from another machine.

        Raises:
            IncompatibleTypesError: The record is not one of this state.
            MalformedBatchError: The record contradicts its type.
        """
        if self.record is None or batch is None:
            return {}
        state = batch.to(self.record).events()[0]
        return {name: _own(getattr(state, name)) for name in self.fields}


def state_of(cls: type, settings: frozenset[str], reserved: frozenset[str]) -> TypedState:
    """Return what a class declares; it is read once.

    Raises:
        LocalError: An annotation cannot be the type of state.
    """
    known = cls.__dict__.get(ATTRIBUTE)
    if not isinstance(known, TypedState):
        known = TypedState(cls, settings, reserved)
        setattr(cls, ATTRIBUTE, known)
    return known


def plain(value: object, place: str, depth: int = 0) -> "Plain":
    """Return a value in the one form that its equals in other processes have too.

    Raises:
        LocalError: It is no plain value, an array, an event, an event type or a shared object.
    """
    if depth > NESTING_MAX:
        raise LocalError(f"values are nested more than {NESTING_MAX} deep - at {place}")
    if isinstance(value, enum.Enum):
        return plain(value.value, place, depth + 1)
    if isinstance(value, numpy.generic):
        value = value.item()
    match value:
        case None | bool() | float() | str() | bytes():
            return [type(value).__name__, value]
        case int():
            return ["int", str(value)]
        case list() | tuple():
            return ["list", *(plain(each, place, depth + 1) for each in value)]
        case numpy.ndarray() if not value.dtype.hasobject:
            return ["array", value.dtype.str, list(map(str, value.shape)), value.tobytes()]
        case SharedObject():
            return ["shared", shared_id(value)]
        case Record() | Mapping():
            items = sorted((str(name), plain(each, place, depth + 1)) for name, each in value.items())
            return ["items", *(part for item in items for part in item)]
        case Format():
            return ["format", value.descriptor]
        case _:
            return _plain_type(value, place)


def shared_id(shared: SharedObject) -> str:
    """Return what tells a shared object from others; one that is not shared yet is equal to none but itself."""
    return shared.id or f"unshared {id(shared)}"


def encoded(values: object, place: str) -> bytes:
    """Return the bytes that equal values have in every process.

    Raises:
        LocalError: As `plain` does.
    """
    return msgspec.msgpack.encode(plain(values, place))


def _plain_type(value: object, place: str) -> "Plain":
    try:
        return ["format", Format.of(value).descriptor]
    except FormatError:
        raise LocalError(
            f"expected plain values, arrays, events or shared objects, got {_shown(value)} - at {place}"
        ) from None


def _hints(cls: type, settings: frozenset[str]) -> dict[str, Any]:
    """Return the annotations that declare state, of the oldest class first."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise LocalError(
            f"an annotation names `{error.name}`, which is not defined here - at `{cls.__name__}`"
        ) from error
    except (TypeError, AttributeError, SyntaxError) as error:
        raise LocalError(f"an annotation cannot be read: {error} - at `{cls.__name__}`") from error
    kept = {name: hint for name, hint in hints.items() if name not in settings and not name.startswith("_")}
    return {name: hint for name, hint in kept.items() if hint is not typing.ClassVar and not _is_class_variable(hint)}


def _is_class_variable(hint: object) -> bool:
    return get_origin(hint) is typing.ClassVar


def _is_shared(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, SharedObject)


def _record_class(name: str, typed: Mapping[str, object]) -> type[Any]:
    """Return the event class of a state.

    A modulator that is loaded again has the same one, which saves most of the work. Classes of the program are not
    kept for that: they would outlive the shipped text they come from.
    """
    items = tuple(typed.items())
    if any(isinstance(hint, type) and hint.__module__ != "builtins" for hint in typed.values()):
        return _make_record_class(name, items)
    try:
        return _known_record_class(name, items)
    except TypeError:  # an annotation that cannot be hashed
        return _make_record_class(name, items)


def _make_record_class(name: str, typed: tuple[tuple[str, object], ...]) -> type[Any]:
    return event(type(name, (), {"__annotations__": dict(typed), "__module__": __name__}))


_known_record_class: Final = lru_cache(maxsize=256)(_make_record_class)


def _signature(cls: type, hints: Mapping[str, object]) -> inspect.Signature:
    """Return how the constructor is called: attributes in their order, with the defaults of the class."""
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    parameters = [inspect.Parameter(name, kind, default=getattr(cls, name, empty)) for name in hints]
    try:
        return inspect.Signature(parameters)
    except ValueError as error:
        raise LocalError(f"state without a default follows state with one: {error} - at `{cls.__name__}`") from error


def _own(value: object) -> object:
    """Return a value that may be written: arrays of a batch may not."""
    return value.copy() if isinstance(value, numpy.ndarray) else value


def _shown(value: object) -> str:
    return f"{type(value).__name__} {value!r}"[:80]
