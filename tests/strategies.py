"""Random event types, and random events of a type.

    @given(formats().flatmap(lambda format: tuples(just(format), batches(format))))
    def test_...(given): ...

or, with `data`, `format = data.draw(formats())` and then `events = data.draw(batches(format))`. The types have every
kind and width, nested records, fixed, dynamic and self-sized arrays of everything, shared sizing fields, enumerations
and defaults, on known and on imagined machines; half of the machines have C pointers as slots, and some layouts have
gaps and fields out of order, as a NumPy dtype may have them. The events are mappings that echoic can encode: lengths
agree with their sizing fields, char arrays have no trailing NUL (it would be padding), text for C pointers has none.
"""

import math
from dataclasses import replace
from typing import Any, TypeAlias

import hypothesis.strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from echoic.formats import (
    ARCHITECTURES,
    NATIVE,
    Architecture,
    Binding,
    Enumeration,
    Field,
    Format,
    Kind,
    Slots,
    bind,
)
from echoic.formats.checks import extent

__all__ = [
    "architectures",
    "batches",
    "enumerations",
    "formats",
    "integers_of",
    "names",
    "records_of",
    "spans",
    "to_object",
    "values",
]

Event: TypeAlias = dict[str, Any]

SIZES = {Kind.INT: (1, 2, 4, 8), Kind.UINT: (1, 2, 4, 8), Kind.FLOAT: (4, 8), Kind.BOOL: (1,), Kind.CHAR: (1,)}
NAMES = (
    *(
        "a",
        "b",
        "c",
        "x",
        "y",
        "z",
        "n",
        "m",
        "price",
        "volume",
        "symbol",
        "at",
        "id",
        "count",
        "size",
        "name",
        "value",
    ),
    *("camelCase", "UPPER", "with_underscores", "_hidden", "trailing_", "d0", "x1y2", "T" * 128, "_", "_0", "n0", "n1"),
    *("format", "self", "class", "def", "None", "cls", "event", "offset", "length", "dtype", "record", "make", "data"),
)


def names() -> SearchStrategy[str]:
    """Identifiers, some of them awkward; none that a dict has as an attribute."""
    return st.sampled_from(NAMES)


@st.composite
def architectures(draw: DrawFn, *, pointers: bool | None = None) -> Architecture:
    """Machines that exist and machines that could."""
    known = st.sampled_from([*ARCHITECTURES.values(), NATIVE])
    imagined = st.builds(
        Architecture,
        st.just("imagined"),
        st.sampled_from(["little", "big"]),
        alignment_max=st.sampled_from([1, 2, 4, 8]),
        pointer_bytes=st.sampled_from([4, 8]),
        record_alignment_min=st.sampled_from([1, 2, 4]),
    )
    found = draw(known | imagined)
    return found.with_pointers() if (draw(st.booleans()) if pointers is None else pointers) else found


def spans() -> SearchStrategy[Architecture]:
    """Machines with echoic's own slots, which alone can hold bytes and arrays without a sizing field."""
    return architectures(pointers=False)


@st.composite
def enumerations(draw: DrawFn, size: int) -> Enumeration:
    """Enumerations whose values fit `size` bytes."""
    signed = draw(st.booleans())
    known = draw(st.lists(names(), min_size=0, max_size=4, unique=True))
    members = tuple((name, draw(integers_of(size, signed=signed))) for name in known)
    return Enumeration(draw(names()), signed, members)


def integers_of(size: int, *, signed: bool) -> SearchStrategy[int]:
    """Integers of so many bytes, the ends of the range among them."""
    bits = 8 * size
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else st.integers(0, (1 << bits) - 1)


@st.composite
def formats(
    draw: DrawFn,
    max_depth: int = 2,
    architectures: SearchStrategy[Architecture] = architectures(),  # noqa: B008 - strategies are values
    *,
    spread: bool | None = None,
    fixed: bool = False,
) -> Format:
    """Event types of every sort.

    Args:
        draw: Hypothesis gives it.
        max_depth: How deep records may stand in records, 0 for none.
        architectures: The machines to lay them out for.
        spread: Whether fields have gaps and come in another order than they lie; None for sometimes.
        fixed: Whether to leave out everything that would make records differ in length.
    """
    architecture = draw(architectures)
    spread = draw(st.sampled_from([False, False, True])) if spread is None else spread
    return draw(_records(max_depth, architecture, spread, fixed))


@st.composite
def _records(draw: DrawFn, depth: int, architecture: Architecture, spread: bool, fixed: bool) -> Format:
    known = draw(st.lists(names(), min_size=1, max_size=5, unique=True))
    fields: list[Field] = []
    sizings: list[str] = []
    for index, name in enumerate(known):
        field = draw(_elements(name, depth, architecture, spread, fixed))
        field = replace(field, dimensions=draw(_dimensions(architecture, fixed)))
        if field.sizing:
            sizing = _sizing_name(known, index, sizings, shared=draw(st.booleans()))
            field = replace(field, dimensions=(sizing, *field.dimensions[1:]))
        fields.append(draw(_decorated(field, architecture.slots)))
    for name in sizings:
        kind = draw(st.sampled_from([Kind.INT, Kind.UINT]))
        field = draw(_decorated(Field(name, kind, draw(st.sampled_from(SIZES[kind]))), architecture.slots))
        fields.insert(draw(st.integers(0, len(fields))), field)
    name = draw(names())
    return draw(_spread(name, fields, architecture)) if spread else Format.place(name, fields, architecture)


def _sizing_name(known: list[str], index: int, sizings: list[str], *, shared: bool) -> str:
    """Return the name of a sizing field: one that another array has, or one of its own."""
    if not (sizings and shared):
        name = f"n{index}"
        while name in known:
            name += "_"
        sizings.append(name)
    return sizings[-1]


@st.composite
def _elements(draw: DrawFn, name: str, depth: int, architecture: Architecture, spread: bool, fixed: bool) -> Field:
    kinds = [kind for kind in Kind if kind is not Kind.RECORD or depth > 0]
    if fixed or architecture.slots is not Slots.SPAN:
        kinds.remove(Kind.BYTES)
    if fixed:
        kinds.remove(Kind.STRING)
    kind = draw(st.sampled_from(kinds))
    if kind is Kind.RECORD:
        record = draw(_records(depth - 1, architecture, spread, fixed))
        return Field(name, kind, record.size, record=record)
    if kind in (Kind.STRING, Kind.BYTES):
        return Field(name, kind, architecture.slots.size)
    if kind is Kind.ENUM:
        size = draw(st.sampled_from([1, 2, 4, 8]))
        return Field(name, kind, size, enumeration=draw(enumerations(size)))
    return Field(name, kind, draw(st.sampled_from(SIZES[kind])))


@st.composite
def _dimensions(draw: DrawFn, architecture: Architecture, fixed: bool) -> tuple[int | str, ...]:
    """Dimensions of every sort; `?` stands for a sizing field that is yet to be named."""
    shape = draw(
        st.sampled_from(["single", "single", "fixed"] if fixed else ["single", "single", "fixed", "sized", "self"])
    )
    if shape == "single":
        return ()
    numbers = tuple(draw(st.lists(st.integers(1, 3), min_size=shape == "fixed", max_size=2)))
    if shape == "fixed":
        return numbers
    return ("?" if shape == "sized" or architecture.slots is not Slots.SPAN else "", *numbers)


@st.composite
def _decorated(draw: DrawFn, field: Field, slots: Slots) -> Field:
    """Give a field a default or make it optional, where that is allowed."""
    optional = field.text and not field.dimensions and draw(st.booleans())
    field = replace(field, optional=optional)
    if draw(st.integers(0, 2)):
        return field
    if field.dimensions:
        return replace(field, default=())
    if field.record is not None:
        return field
    default = draw(_single(field, slots, special=False))
    return replace(field, default=default)


@st.composite
def _spread(draw: DrawFn, name: str, fields: list[Field], architecture: Architecture) -> Format:
    """Lay fields out in any order with gaps between them."""
    placed: dict[str, Field] = {}
    end = 0
    for field in draw(st.permutations(fields)):
        end += draw(st.integers(0, 3))
        placed[field.name] = replace(field, offset=end)
        end += extent(field, architecture.slots)
    size = end + draw(st.integers(0, 3))
    return Format(
        name,
        tuple(placed[field.name] for field in fields),
        byte_order=architecture.byte_order,
        alignment=1,
        size=size,
        slots=architecture.slots,
    )


@st.composite
def records_of(draw: DrawFn, format: Format, *, special: bool = False, length_max: int = 3) -> Event:
    """Mappings with a fitting value for every field; nested records are mappings, arrays are (nested) lists.

    Args:
        draw: Hypothesis gives it.
        format: The event type.
        special: Whether floats may be infinite or NaN; equality is then of no use.
        length_max: How long dynamic arrays may be.
    """
    lengths = {field.sizing: draw(st.integers(0, length_max)) for field in format.fields if field.sizing}
    event: Event = {}
    for field in format.fields:
        if field.name in lengths:
            event[field.name] = lengths[field.name]
            continue
        length = lengths[field.sizing] if field.sizing else draw(st.integers(0, length_max)) if field.dynamic else 0
        event[field.name] = draw(_value(field, format.slots, length, special=special, length_max=length_max))
    return event


values = records_of


def batches(format: Format, *, special: bool = False, count_max: int = 4) -> SearchStrategy[list[Event]]:
    """Lists of events, possibly empty, for `Batch.of(events, format)`."""
    return st.lists(records_of(format, special=special), max_size=count_max)


@st.composite
def _value(draw: DrawFn, field: Field, slots: Slots, length: int, *, special: bool, length_max: int) -> Any:
    shape = (length, *field.fixed_dimensions) if field.dynamic else field.fixed_dimensions
    if field.record is not None:
        element: SearchStrategy[Any] = records_of(field.record, special=special, length_max=length_max)
    elif field.kind is Kind.CHAR and field.fixed_dimensions:
        *outer, width = shape
        shape, element = tuple(outer), _padded(width)
    else:
        element = _single(field, slots, special=special)
    flat = [draw(element) for _ in range(math.prod(shape))]
    return _nested(flat, shape)


def _nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    step = math.prod(shape[1:])
    return [_nested(flat[index * step : (index + 1) * step], shape[1:]) for index in range(shape[0])]


def _padded(width: int) -> SearchStrategy[bytes]:
    """Char arrays as they are read back: without NULs at their end. An array of one is never empty."""
    return st.binary(min_size=1 if width == 1 else 0, max_size=width).filter(lambda value: not value.endswith(b"\0"))


def _single(field: Field, slots: Slots, *, special: bool) -> SearchStrategy[Any]:
    """Values of one element that is not a record."""
    match field.kind:
        case Kind.INT | Kind.UINT | Kind.ENUM:
            signed = field.enumeration.signed if field.enumeration else field.kind is Kind.INT
            known = (
                st.sampled_from([value for _, value in field.enumeration.members]) if _members(field) else st.nothing()
            )
            return known | integers_of(field.size, signed=signed)
        case Kind.FLOAT:
            return st.floats(width=8 * field.size, allow_nan=special, allow_infinity=special)
        case Kind.BOOL:
            return st.booleans()
        case Kind.CHAR:
            return st.integers(1, 255).map(lambda code: bytes([code]))
        case Kind.STRING:
            text = st.text(max_size=6) if slots is Slots.SPAN else st.text(max_size=6).filter(lambda t: "\0" not in t)
        case _:
            text = st.binary(max_size=6)
    return text | st.none() if field.optional else text


def _members(field: Field) -> bool:
    return field.enumeration is not None and bool(field.enumeration.members)


def to_object(event: Event, declared: Format | Binding) -> Any:
    """Return an event as the objects that echoic would decode it to: generated classes, or those of the binding."""
    binding = declared if isinstance(declared, Binding) else bind(declared)
    made = []
    for field in binding.format.fields:
        value, member = event[field.name], binding.members.get(field.name)
        depth = len(field.dimensions)
        if isinstance(member, Binding):
            value = _mapped(value, depth, member)
        made.append(value)
    return binding.make(*made)


def _mapped(value: Any, depth: int, binding: Binding) -> Any:
    return [_mapped(item, depth - 1, binding) for item in value] if depth else to_object(value, binding)
