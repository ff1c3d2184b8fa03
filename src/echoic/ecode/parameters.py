"""The parameter block of a derivation, from plain Python values.

A derivation's parameters are read-only to its code and are replaced from afar (ECho paper, section 2.3). To the
compiler they are one more record, so they need a type; people just have values. `parameter_format` finds the type:

    {"low": 75.5, "high": 78.5}      float64 low, float64 high
    {"symbol": "IBM", "lot": 100}    string symbol, int64 lot
    {"weights": [0.25, 0.5, 0.25]}   float64 weights[3]
    {"range": {"low": 1, "high": 9}} a nested record `range` of two int64
    numpy.float32(0.5)               NumPy values keep their width
    Range(low=75.5, high=78.5)       an object of an event class: the type of its class

The type is fixed when the derivation is installed, because the code was compiled for it. `updated` therefore gives
every change the type that the value had before: an int for a float becomes a float, anything else that does not fit is
refused by name. So `parameter_format(updated(values, changes))` is always `parameter_format(values)`.
"""

import difflib
import operator
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Final, SupportsIndex

import msgspec
import numpy

from echoic.errors import EncodeError, FormatError
from echoic.formats import NATIVE, Field, Format, Kind, bind, element_dtype, shown

__all__ = ["PARAMETERS", "parameter_format", "updated"]

PARAMETERS: Final = "Parameters"
"""What the type of a block of plain values is called."""

NUMBER_KINDS: Final = "biuf"  # NumPy's letters for what a field of numbers can be


def parameter_format(values: object) -> Format:
    """Return the type of a parameter block, laid out for this machine.

    Args:
        values: A mapping from names to plain values (bool, int, float, str, bytes, NumPy numbers, sequences and arrays
            of numbers, sequences of texts, mappings of all these), or an object of an event class.

    Raises:
        FormatError: There is no value, a name is not an identifier, or a value has no type; the message says which.
    """
    if isinstance(values, Mapping):
        return _record(values, PARAMETERS, PARAMETERS)
    if _is_event(values):
        return bind(type(values)).format.on(NATIVE)
    raise FormatError(f"expected a mapping of parameters or an object of an event class, got {_described(values)}")


def updated(values: object, changes: Mapping[str, object]) -> object:
    """Return the parameters with some of them changed, each as the type it had.

    Args:
        values: The parameters so far, as `parameter_format` takes them; they are left as they are.
        changes: The values that change, by name; a mapping for a nested record may itself be partial.

    Returns:
        A dict if `values` is a mapping, else an object of the same class.

    Raises:
        FormatError: There is no parameter of a name; the message has the nearest ones. Or `values` has no type.
        EncodeError: A value does not fit its parameter; the message has what was expected and what came.
    """
    return _merged(values, changes, parameter_format(values), PARAMETERS)


def _record(values: Mapping[str, object], name: str, place: str) -> Format:
    if not values:
        raise FormatError(f"a parameter block needs at least one value - at `{place}`")
    fields = []
    for key, value in values.items():
        if not isinstance(key, str):
            raise FormatError(f"the name of a parameter must be a str, got {_described(key)} - at `{place}`")
        fields.append(_field(key, value, f"{place}.{shown(key)}"))
    return Format.place(name, fields, NATIVE)


def _field(name: str, value: object, place: str) -> Field:
    """Return the unplaced field for one value."""
    match value:
        case str() | bytes() | bytearray():
            return Field(name, _text_kind(value), NATIVE.slots.size)
        case bool():
            return Field(name, Kind.BOOL, 1)
        case numpy.generic() | numpy.ndarray():
            return _numpy_field(name, value.dtype, value.shape, place)
        case int() if -(1 << 63) <= value < 1 << 63:
            return Field(name, Kind.INT, 8)
        case int():
            raise FormatError(f"{shown(value)} does not fit int64 - at `{place}`")
        case float():
            return Field(name, Kind.FLOAT, 8)
        case Mapping():
            nested = _record(value, name, place)
            return Field(name, Kind.RECORD, nested.size, record=nested)
        case list() | tuple():
            return _sequence_field(name, value, place)
        case _ if _is_event(value):
            nested = parameter_format(value)
            return Field(name, Kind.RECORD, nested.size, record=nested)
        case _:
            raise FormatError(f"{_described(value)} cannot be a parameter - at `{place}`")


def _text_kind(value: object) -> Kind:
    return Kind.STRING if isinstance(value, str) else Kind.BYTES


def _sequence_field(name: str, values: Sequence[object], place: str) -> Field:
    if not values:
        raise FormatError(f"an empty sequence does not tell the type of its elements - at `{place}`")
    for text in (str, bytes):
        if all(isinstance(value, text) for value in values):
            return Field(name, _text_kind(values[0]), NATIVE.slots.size, dimensions=(len(values),))
    array = _array_of(values, place)
    return _numpy_field(name, array.dtype, array.shape, place)


def _array_of(values: Sequence[object], place: str) -> "numpy.ndarray[Any, Any]":
    """Return a nested sequence of numbers as an array."""
    try:
        array = numpy.array(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise FormatError(f"the elements do not form an array of numbers: {error} - at `{place}`") from error
    if array.dtype.kind not in NUMBER_KINDS or not array.size:
        raise FormatError(f"the elements are not numbers: {shown(values)} - at `{place}`")
    return array


def _numpy_field(name: str, dtype: "numpy.dtype[Any]", shape: tuple[int, ...], place: str) -> Field:
    """Return the field for a NumPy value: the type of NumPy's, without its byte order and padding."""
    if 0 in shape:
        raise FormatError(f"an empty array cannot be a parameter - at `{place}`")
    try:
        return Format.of(numpy.dtype([(name, dtype, shape)])).fields[0]
    except (FormatError, ValueError) as error:
        raise FormatError(f"a NumPy value of type `{dtype}` cannot be a parameter: {error} - at `{place}`") from error


def _is_event(value: object) -> bool:
    return not isinstance(value, type) and (is_dataclass(value) or isinstance(value, msgspec.Struct))


def _merged(values: object, changes: Mapping[str, object], format: Format, place: str) -> object:
    """Return a record with the changes in it."""
    plain = isinstance(values, Mapping)
    merged = dict(values) if isinstance(values, Mapping) else {name: getattr(values, name) for name in format.by_name}
    for name, change in changes.items():
        field = format.by_name.get(name)
        if field is None:
            raise FormatError(_no_such_parameter(name, format, place))
        merged[name] = _changed(merged[name], change, field, format, f"{place}.{name}", plain=plain)
    return merged if plain else bind(type(values)).make(*merged.values())


def _no_such_parameter(name: object, format: Format, place: str) -> str:
    near = difflib.get_close_matches(str(name)[:60], format.by_name, n=2)
    hint = f"did you mean {' or '.join(f'`{other}`' for other in near)}?" if near else f"there are {_names(format)}"
    return f"there is no parameter `{shown(name)}`; {hint} - at `{place}`"


def _names(format: Format) -> str:
    names = [f"`{name}`" for name in format.by_name]
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _changed(before: object, change: object, field: Field, format: Format, place: str, *, plain: bool) -> object:
    """Return a change as the type of its field; `plain` values tell their type themselves, so it must not drift."""
    if field.record is not None and not field.dimensions and isinstance(change, Mapping):
        return _merged(before, change, field.record, place)
    if field.record is not None and not field.dimensions:
        if not _is_event(change) or parameter_format(change).layout != field.record.layout:
            raise _misfit(field, change, place)
        return change
    if field.record is not None or (field.dynamic and field.text):
        return change  # the encoder looks at elements of its own accord
    if field.text:
        return _text(change, field, place)
    if field.dimensions and not (field.kind is Kind.CHAR and isinstance(change, bytes)):
        return _numbers(change, field, format, place)
    number = _number(change, field, place)
    if not plain or field.kind is Kind.CHAR or (field.size == 8 and field.kind is not Kind.UINT):
        return number
    return number if field.kind is Kind.BOOL else element_dtype(field, format).type(number)


def _text(change: object, field: Field, place: str) -> object:
    wanted = str if field.kind is Kind.STRING else bytes | bytearray
    if field.dimensions:
        fits = isinstance(change, list | tuple) and len(change) == field.count
        if not fits or not all(isinstance(text, wanted) for text in change):  # type: ignore[attr-defined] # see `fits`
            raise _misfit(field, change, place)
    elif not isinstance(change, wanted) and not (field.optional and change is None):
        raise _misfit(field, change, place)
    return change


def _number(change: object, field: Field, place: str) -> bool | int | float | bytes:
    """Return a single number, or the bytes of a char array, as Python has it."""
    match field.kind:
        case Kind.BOOL if isinstance(change, bool | numpy.bool_):
            return bool(change)
        case Kind.CHAR if isinstance(change, bytes) and len(change) <= field.count:
            return change
        case Kind.FLOAT if isinstance(change, int | float | numpy.number) and not isinstance(change, bool):
            return _float(change, field, place)
        case Kind.INT | Kind.UINT | Kind.ENUM if isinstance(change, SupportsIndex) and not _is_truth(change):
            value = change if isinstance(change, int) else operator.index(change)
            signed = field.enumeration.signed if field.enumeration else field.kind is Kind.INT
            bits = field.size * 8 - signed
            if -(1 << bits if signed else 0) <= value < 1 << bits:
                return value
    raise _misfit(field, change, place)


def _is_truth(value: object) -> bool:
    return isinstance(value, bool | numpy.bool_)


def _float(change: "int | float | numpy.number[Any]", field: Field, place: str) -> float:
    try:
        value = float(change)
    except (OverflowError, TypeError) as error:
        raise _misfit(field, change, place) from error
    with numpy.errstate(over="ignore"):
        if field.size == 4 and numpy.isinf(numpy.float32(value)) and not numpy.isinf(value):
            raise _misfit(field, change, place)
    return value


def _numbers(change: object, field: Field, format: Format, place: str) -> object:
    """Return an array of the field's type; a dynamic one may have any length."""
    dtype: numpy.dtype[Any] = element_dtype(field, format)
    shape = field.fixed_dimensions
    if field.kind is Kind.CHAR:
        dtype, shape = numpy.dtype(f"S{shape[-1]}" if shape else "S1"), shape[:-1]
    try:
        given = numpy.asarray(change)
    except (ValueError, TypeError, OverflowError) as error:
        raise _misfit(field, change, place) from error
    steps = 1 if field.dynamic else 0
    if given.ndim != steps + len(shape) or given.shape[steps:] != shape or not _elements_fit(given, dtype):
        raise _misfit(field, change, place)
    with numpy.errstate(over="ignore"):
        return given.astype(dtype)


def _elements_fit(given: "numpy.ndarray[Any, Any]", dtype: "numpy.dtype[Any]") -> bool:
    """Tell whether an array can become one of another type: integers may become floats, but nothing may be lost."""
    if dtype.kind in "iu" and given.dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        return not given.size or (limits.min <= int(given.min()) and int(given.max()) <= limits.max)
    if dtype.kind == "f" and given.dtype.kind in "iuf":
        greatest = float(numpy.finfo(dtype).max)
        lost = numpy.isfinite(given) & (numpy.abs(given.astype(numpy.float64)) > greatest)
        return not bool(lost.any())
    return bool(dtype.kind == given.dtype.kind and given.dtype.itemsize <= dtype.itemsize)


def _misfit(field: Field, given: object, place: str) -> EncodeError:
    return EncodeError(f"expected `{field.spelling}`, got {_described(given)} - at `{place}`")


def _described(value: object) -> str:
    return f"{type(value).__name__} {shown(value)}"
