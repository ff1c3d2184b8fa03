"""Python classes as event types: `@event` classes, dataclasses, msgspec Structs.

The fields are the annotated attributes in their order, laid out as this machine's C compiler would lay out the same
struct. What the annotation means is in `scalars`; a nested class becomes a nested record, an IntEnum an enumeration
of C's int.
"""

import contextlib
import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args, get_origin, overload

import msgspec
import numpy

from echoic.errors import FormatError
from echoic.formats.architecture import NATIVE
from echoic.formats.checks import RANGES
from echoic.formats.fields import MISSING, Default, Enumeration, Field, Kind, Missing
from echoic.formats.format import Format, reads_types
from echoic.formats.from_dtypes import scalar_field
from echoic.formats.limits import NESTING_MAX
from echoic.formats.records import Binding, Maker, Record, binding_of_format
from echoic.formats.scalars import PYTHON_SCALARS, ArrayType, ScalarType

__all__ = ["bind", "event"]

T = TypeVar("T")

VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
HOUSEKEEPING = frozenset({"__dict__", "__weakref__", "__annotations__", "__slots__", "__module__", "__qualname__"})


@overload
def event(cls: type[T]) -> type[T]: ...


@overload
def event(*, frozen: bool = False) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(eq_default=True)
def event(cls: type[T] | None = None, *, frozen: bool = False) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class an event type: its annotated attributes are the fields.

    Args:
        cls: The class; methods and properties are kept.
        frozen: Refuse assignment to the fields of an event.

    Raises:
        FormatError: An annotation cannot be a field, or a default does not fit.
    """
    if cls is None:
        return lambda decorated: _event(decorated, frozen=frozen)
    return _event(cls, frozen=frozen)


def bind(declared: object) -> Binding:
    """Return which Python objects stand for the records of `declared`.

    Raises:
        FormatError: `declared` is not an event type.
    """
    if isinstance(declared, type):
        own = declared.__dict__.get("__echoic_binding__")
        if isinstance(own, Binding):
            return own
        if issubclass(declared, Record):
            raise FormatError(f"`{declared.__name__}` extends an event class; decorate it with @echoic.event too")
        if dataclasses.is_dataclass(declared) or issubclass(declared, msgspec.Struct):
            return _bind_class(declared)
    return binding_of_format(Format.of(declared))


@reads_types
def read_class(declared: object) -> Format | None:
    """Return the format of a class with declared fields."""
    if not isinstance(declared, type):
        return None
    if dataclasses.is_dataclass(declared) or issubclass(declared, msgspec.Struct):
        return bind(declared).format
    return None


def _event(cls: type[T], *, frozen: bool) -> type[T]:
    if issubclass(cls, Record):  # extends another event: msgspec has already made it a Struct
        if frozen and not cls.__struct_config__.frozen:
            raise FormatError(f"an event cannot be frozen when the one it extends is not - at `{cls.__name__}`")
        cls.__echoic_binding__ = _read(cls, ())
        return cls
    if cls.__bases__ != (object,):
        raise FormatError(f"an event class can extend only other event classes - at `{cls.__name__}`")
    hints = _hints(cls)
    namespace = {name: value for name, value in cls.__dict__.items() if name not in HOUSEKEEPING}
    fields: list[Any] = []
    for name in hints:
        default = namespace.pop(name, MISSING)
        fields.append((name, object) if default is MISSING else (name, object, default))
    try:
        made: Any = msgspec.defstruct(
            cls.__name__,
            fields,
            bases=(Record,),
            namespace=namespace,
            module=cls.__module__,
            frozen=frozen,
            gc=False,
            eq=False,
        )
    except TypeError as error:
        raise FormatError(f"a default or the order of the fields is refused: {error} - at `{cls.__name__}`") from error
    made.__qualname__, made.__doc__ = cls.__qualname__, cls.__doc__
    made.__annotations__ = hints
    _replace_class_cells(namespace.values(), cls, made)
    made.__echoic_binding__ = _read(made, ())
    return typing.cast("type[T]", made)


def _replace_class_cells(members: Iterable[object], cls: type, made: type) -> None:
    """Make `super()` and `__class__` in methods mean the class that was made, not the one that was written."""
    for member in members:
        parts = (member, *(getattr(member, part, None) for part in ("fget", "fset", "fdel", "__func__")))
        for function in parts:
            for cell in getattr(function, "__closure__", None) or ():
                with contextlib.suppress(ValueError):  # a name that is assigned only later has an empty cell
                    if cell.cell_contents is cls:
                        cell.cell_contents = made


@lru_cache(maxsize=4096)
def _bind_class(cls: type) -> Binding:
    return _read(cls, ())


def _hints(cls: type) -> dict[str, object]:
    """Return the annotations of a class with the names in them resolved."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise FormatError(
            f"an annotation names `{error.name}`, which is not defined here - at `{cls.__name__}`"
        ) from error
    except (TypeError, AttributeError, SyntaxError) as error:
        raise FormatError(f"an annotation cannot be read: {error} - at `{cls.__name__}`") from error
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not typing.ClassVar}


def _read(cls: type, outer: tuple[type, ...]) -> Binding:
    """Read the fields of a class; `outer` are the classes it stands in, to refuse one that contains itself."""
    if cls in outer:
        chain = " > ".join(inner.__name__ for inner in (*outer, cls))
        raise FormatError(f"a record cannot contain itself: {chain}")
    if len(outer) >= NESTING_MAX:
        raise FormatError(f"records are nested {len(outer) + 1} deep, limit is {NESTING_MAX} - at `{cls.__name__}`")
    hints, defaults = _hints(cls), _defaults(cls)
    members: dict[str, Binding | Maker] = {}
    fields = []
    for name in defaults:
        place = f"{cls.__name__}.{name}"
        field = _field(name, hints[name], place, (*outer, cls), members)
        fields.append(dataclasses.replace(field, default=_normal(defaults[name], field)))
    return Binding(Format.place(cls.__name__, fields, NATIVE), _maker(cls, tuple(defaults)), members)


def _defaults(cls: type) -> dict[str, object]:
    """Return the fields of a class in order, with their defaults or MISSING."""
    found: dict[str, object] = {}
    if dataclasses.is_dataclass(cls):
        for field in dataclasses.fields(cls):
            factory = field.default_factory
            absent = field.default is dataclasses.MISSING
            found[field.name] = field.default if not absent else _made(factory, dataclasses.MISSING)
        return found
    for member in msgspec.structs.fields(cls):
        absent = member.default is msgspec.NODEFAULT
        found[member.name] = member.default if not absent else _made(member.default_factory, msgspec.NODEFAULT)
    return found


def _made(factory: object, absent: object) -> object:
    if factory is absent:
        return MISSING
    return () if factory in (list, tuple) else factory  # any other factory is no plain value and is refused


def _maker(cls: Any, names: tuple[str, ...]) -> Maker:  # noqa: ANN401 - a class of any kind
    """Return how to build an instance from the values in order.

    Raises:
        FormatError: The class takes other arguments than its fields.
    """
    parameters = inspect.signature(cls).parameters.values()
    required = {each.name for each in parameters if each.default is each.empty and each.kind not in VARIADIC}
    if not required <= set(names) <= {each.name for each in parameters}:
        raise FormatError(f"a class must be made from its fields and nothing else - at `{cls.__name__}`")
    by_position = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    if by_position == list(names):
        return typing.cast("Maker", cls)
    return lambda *values: cls(**dict(zip(names, values, strict=True)))


def _field(name: str, hint: object, place: str, outer: tuple[type, ...], members: dict[str, Binding | Maker]) -> Field:
    """Return the unplaced field that an annotation declares, and note its nested class or enumeration."""
    scalar, array, bare = _unwrap(hint)
    if array is not None:
        element = _field(name, array.element, place, outer, members)
        if element.dynamic or element.optional:
            raise FormatError(f"elements of an array cannot be `{element.spelling}` - at `{place}`")
        return dataclasses.replace(element, dimensions=(*array.dimensions, *element.dimensions))
    if scalar is not None:
        return Field(name, scalar.kind, scalar.size)
    plain = PYTHON_SCALARS.get(bare) if isinstance(bare, type) else None
    if plain is not None:
        return Field(name, plain.kind, plain.size)
    optional = _optional(bare)
    if optional is str or bare is str:
        return Field(name, Kind.STRING, NATIVE.slots.size, optional=optional is str)
    if optional is bytes or bare is bytes:
        return Field(name, Kind.BYTES, NATIVE.slots.size, optional=optional is bytes)
    if isinstance(bare, type):
        return _class_field(name, bare, place, outer, members)
    raise FormatError(f"`{bare}` cannot be the type of a field - at `{place}`")


def _class_field(
    name: str, cls: type, place: str, outer: tuple[type, ...], members: dict[str, Binding | Maker]
) -> Field:
    if issubclass(cls, enum.IntEnum | enum.IntFlag):
        members[name] = _member_finder(cls)
        return _enumeration(name, cls)
    if issubclass(cls, numpy.generic) and cls in numpy.sctypeDict.values():
        return scalar_field(name, numpy.dtype(cls), place)
    if dataclasses.is_dataclass(cls) or issubclass(cls, msgspec.Struct):
        own = cls.__dict__.get("__echoic_binding__")
        binding = own if isinstance(own, Binding) else _read(cls, outer)
        members[name] = binding
        return Field(name, Kind.RECORD, binding.format.size, record=binding.format)
    raise FormatError(f"`{cls.__name__}` cannot be the type of a field - at `{place}`")


def _unwrap(hint: object) -> tuple[ScalarType | None, ArrayType | None, object]:
    """Return what an annotation carries: a scalar width, an array, or the plain type."""
    if get_origin(hint) is Annotated:
        base, *extra = get_args(hint)
        for item in extra:
            inner = get_args(item)[1] if get_origin(item) is Annotated else item
            if isinstance(inner, ScalarType):
                return inner, None, base
            if isinstance(inner, ArrayType):
                return None, inner, base
        return None, None, base
    return None, None, hint


def _optional(hint: object) -> object:
    """Return T of `T | None`, else None."""
    if get_origin(hint) in (typing.Union, types.UnionType):
        rest = [option for option in get_args(hint) if option is not types.NoneType]
        if len(rest) == 1 and len(get_args(hint)) == 2:
            return rest[0]
    return None


def _enumeration(name: str, cls: type[enum.IntEnum | enum.IntFlag]) -> Field:
    members = tuple((member, int(value)) for member, value in cls.__members__.items())
    low, high = RANGES[True, 4]
    small = all(low <= value <= high for _, value in members)
    signed = any(value < 0 for _, value in members) or small
    return Field(name, Kind.ENUM, 4 if small else 8, enumeration=Enumeration(cls.__name__, signed, members))


def _member_finder(cls: type[enum.IntEnum | enum.IntFlag]) -> Maker:
    """Return a function from integer to member; unknown values stay integers, so that members can be added."""
    known: dict[int, object] = {int(member): member for member in cls}
    if not issubclass(cls, enum.IntFlag):
        return lambda value: known.get(value, value)

    def union(value: int) -> object:
        """Return the union of flags that a value stands for; Python would change or refuse some values."""
        if value in known:
            return known[value]
        try:
            made = cls(value)
        except ValueError:
            return value
        return made if int(made) == value else value

    return union


def _normal(default: object, field: Field) -> Default | Missing:
    """Bring a declared default into the one form the descriptor has for it; what cannot be is refused later."""
    if field.dimensions:
        empty = isinstance(default, list | tuple) and not len(default)
        return () if empty else typing.cast("Default | Missing", default)
    if isinstance(default, bool):
        return default
    if isinstance(default, int | float) and field.kind is Kind.FLOAT:
        try:
            return float(default)
        except OverflowError:
            return int(default)
    if isinstance(default, int):
        return int(default)
    if isinstance(default, str):
        return "".join(default)
    if isinstance(default, bytes):
        return bytes(default)
    return typing.cast("Default | Missing", default)
