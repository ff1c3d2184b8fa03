"""Events as JSON, with a JSON Schema that says what they are: what MCAP files carry, and cells of CSV files.

    Trade{symbol: str, price: float}     {"symbol":"IBM","price":75.5}

JSON has fewer kinds of values than a record. This is how the others are spelled, each so that the way back is exact:

    bytes                              base64, `contentEncoding: base64` in the schema, as Foxglove and others read it
    char, char[16]                     the text it holds, one character for each byte (Latin-1)
    a number that is none, infinities  "NaN", "Infinity", "-Infinity", as in the JSON of Protocol Buffers
    a text that is not there           the field is left out

The alternative for the third, null, would lose which of them it was; a number in quotes is what the widespread readers
of such JSON already know. The schema has the layout as text for people (`description`) and the descriptor itself
(`x-echoic-descriptor`, in base64), from which the same type is made again. A schema of strangers has none: its objects
become records, its integers int64, its numbers float64, and a field that may be left out has a default of nothing.

Events are Structs, which msgspec writes in one go. Only types with `char` or optional fields, and events in which a
number is none, are taken apart in Python.
"""

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from echoic.errors import EchoicError, EncodeError, FormatError
from echoic.formats import MISSING, NATIVE, Field, Format, Kind, shown
from echoic.wire import Batch

__all__ = ["events_as_json", "events_of_json", "format_of_json_schema", "json_schema_of", "plain_value", "value_of"]

DESCRIPTOR: Final = "x-echoic-descriptor"
NESTING_MAX: Final = 16
SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
NUMBERS: Final = {"integer": (Kind.INT, 8, 0), "number": (Kind.FLOAT, 8, 0.0), "boolean": (Kind.BOOL, 1, False)}


def events_as_json(batch: Batch) -> list[bytes]:
    """Return each event of a batch as JSON.

    Raises:
        MalformedBatchError: A record contradicts the format.
    """
    encode = msgspec.json.Encoder(enc_hook=_listed).encode
    if _needs_plain(batch.format):
        return [encode(_plain_record(event, batch.format)) for event in batch.events()]
    texts = []
    for event in batch.events():
        text = encode(event)
        # Nothing is optional here, so msgspec writes null for a number that is none, and for nothing else.
        texts.append(encode(_plain_record(event, batch.format)) if b"null" in text else text)
    return texts


def events_of_json(texts: Sequence[bytes], format: Format) -> Batch:
    """Return a batch of the events that are spelled in JSON.

    Raises:
        EncodeError: A text is not JSON, or not an event of the format.
    """
    try:
        events = list(map(msgspec.json.decode, texts))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise EncodeError(f"a message is not JSON: {error}") from error
    if not _needs_spelling(format):
        try:
            return Batch.of(events, format)
        except EncodeError:
            pass  # a number that is none, a field that is left out, or a mistake that is told below
    return Batch.of([_record_of(event, format, format.name) for event in events], format)


def json_schema_of(format: Format) -> bytes:
    """Return the JSON Schema of a format's events, with its layout as text and its descriptor."""
    described = {
        "title": format.name,
        "description": format.describe(),
        **_object_schema(format),
        DESCRIPTOR: base64.b64encode(format.descriptor).decode(),
    }
    return msgspec.json.encode(described)


def format_of_json_schema(data: bytes, name: str) -> Format:
    """Return the format of events that a JSON Schema describes; `name` is for one without a title that can be a name.

    Raises:
        FormatError: It is not a schema of objects, or one of them cannot be a record.
    """
    try:
        schema = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise FormatError(f"the schema is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise FormatError(f"expected a JSON Schema of an object, got {shown(schema)}")
    if DESCRIPTOR in schema:
        return _described(schema[DESCRIPTOR])
    title = schema.get("title")
    known = title if isinstance(title, str) and title.isidentifier() and title.isascii() else name
    return _format_of(schema, known, known, 1)


def plain_value(value: Any, field: Field) -> object:  # noqa: ANN401 - whatever a field holds
    """Return a field's value in words that JSON has; bytes are left to msgspec."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [plain_value(item, field) for item in value]
    if field.record is not None:
        return _plain_record(value, field.record)
    if field.kind is Kind.CHAR:
        return value.rstrip(b"\0").decode("latin-1")
    if field.kind is Kind.FLOAT and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def value_of(value: object, field: Field, path: str) -> object:
    """Return what a value in JSON stands for, as a field is encoded.

    Raises:
        EncodeError: It is not spelled as it must be.
    """
    if isinstance(value, list):
        return [value_of(item, field, path) for item in value]
    if field.record is not None:
        return _record_of(value, field.record, path)
    if field.kind is Kind.FLOAT and isinstance(value, str):
        if value not in SPECIAL:
            raise EncodeError(f"expected `{field.spelling}`, got '{shown(value)}' - at `{path}`")
        return SPECIAL[value]
    if value is None or field.kind not in (Kind.BYTES, Kind.CHAR):
        return value
    return _bytes_of(value, field, path)


def _bytes_of(value: object, field: Field, path: str) -> bytes:
    if isinstance(value, str):
        try:
            if field.kind is Kind.CHAR:
                return value.encode("latin-1")
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass  # said below
    wanted = "text of characters below 256" if field.kind is Kind.CHAR else "base64"
    raise EncodeError(f"expected `{field.spelling}` as {wanted}, got '{shown(value)}' - at `{path}`")


def _record_of(value: object, format: Format, path: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise EncodeError(f"expected an object, got {shown(value)} - at `{path}`")
    found: dict[str, object] = {}
    for field in format.fields:
        here = f"{path}.{field.name}"
        if field.name in value:
            found[field.name] = value_of(value[field.name], field, here)
        elif field.optional:
            found[field.name] = None
        elif field.default is not MISSING:
            found[field.name] = field.default
        else:
            raise EncodeError(f"expected `{field.spelling}`, but the field is missing - at `{here}`")
    return found


def _plain_record(event: Any, format: Format) -> dict[str, object]:  # noqa: ANN401 - an event or a mapping
    found = {}
    for field in format.fields:
        value = event[field.name]
        if value is not None:
            found[field.name] = plain_value(value, field)
    return found


def _needs_plain(format: Format) -> bool:
    return any(field.optional or field.kind is Kind.CHAR for _, field in format.walk())


def _needs_spelling(format: Format) -> bool:
    return any(field.kind in (Kind.CHAR, Kind.BYTES) for _, field in format.walk())


def _listed(value: Any) -> object:  # noqa: ANN401 - a NumPy array, the only thing that msgspec does not know
    return value.tolist()


def _object_schema(format: Format) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {field.name: _field_schema(field) for field in format.fields},
        "required": [field.name for field in format.fields if not field.optional],
    }


def _field_schema(field: Field) -> dict[str, object]:
    dimensions = list(field.dimensions)
    if field.kind is Kind.CHAR and dimensions and isinstance(dimensions[-1], int):
        dimensions.pop()
    schema = _element_schema(field)
    for dimension in reversed(dimensions):
        sized = {"minItems": dimension, "maxItems": dimension} if isinstance(dimension, int) else {}
        schema = {"type": "array", "items": schema, **sized}
    return schema


def _element_schema(field: Field) -> dict[str, object]:
    match field.kind:
        case Kind.RECORD if field.record is not None:
            return {"title": field.record.name, **_object_schema(field.record)}
        case Kind.FLOAT:
            return {"type": "number"}
        case Kind.BOOL:
            return {"type": "boolean"}
        case Kind.STRING | Kind.CHAR:
            return {"type": "string"}
        case Kind.BYTES:
            return {"type": "string", "contentEncoding": "base64"}
        case Kind.ENUM if field.enumeration is not None:
            told = ", ".join(f"{number} {name}" for name, number in field.enumeration.members)
            return {"type": "integer", "description": f"{field.enumeration.name}: {told}"}
        case _:
            return {"type": "integer"}


def _described(text: object) -> Format:
    try:
        return Format.from_descriptor(base64.b64decode(text if isinstance(text, str) else "?", validate=True))
    except (binascii.Error, ValueError, EchoicError) as error:
        raise FormatError(f"the schema's `{DESCRIPTOR}` is no descriptor: {error}") from error


def _format_of(schema: Mapping[str, object], name: str, path: str, depth: int) -> Format:
    properties = schema.get("properties")
    if depth > NESTING_MAX or not isinstance(properties, dict):
        told = f"are nested more than {NESTING_MAX} deep" if depth > NESTING_MAX else "have no `properties`"
        raise FormatError(f"the objects of the schema {told} - at `{shown(path)}`")
    required = schema.get("required")
    needed = required if isinstance(required, list) else list(properties)
    fields = [_field_of(each, inner, f"{path}.{each}", depth, each in needed) for each, inner in properties.items()]
    return Format.place(name, fields, NATIVE)


def _field_of(name: str, schema: object, path: str, depth: int, needed: bool) -> Field:
    """Return the field that a property is."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(kind, str):
        raise FormatError(f"expected a schema with one `type`, got {shown(schema)} - at `{shown(path)}`")
    if kind in NUMBERS:
        element, size, default = NUMBERS[kind]
        return Field(name, element, size, default=MISSING if needed else default)
    if kind == "string":
        element = Kind.BYTES if schema.get("contentEncoding") == "base64" else Kind.STRING
        return Field(name, element, NATIVE.slots.size, optional=not needed)
    if kind == "object":
        record = _format_of(schema, name, path, depth + 1)
        return Field(name, Kind.RECORD, record.size, record=record)
    if kind == "array":
        return _array_of(name, schema, path, depth, needed)
    raise FormatError(f"values of the JSON type '{shown(kind)}' cannot be fields - at `{shown(path)}`")


def _array_of(name: str, schema: Mapping[str, object], path: str, depth: int, needed: bool) -> Field:
    if depth > NESTING_MAX:
        raise FormatError(f"the arrays of the schema are nested more than {NESTING_MAX} deep - at `{shown(path)}`")
    element = _field_of(name, schema.get("items"), path, depth + 1, True)
    least, most = schema.get("minItems"), schema.get("maxItems")
    fixed = isinstance(least, int) and least == most
    if element.dynamic:
        raise FormatError(f"an array has arrays of any length inside - at `{shown(path)}`")
    dimensions = (least if isinstance(least, int) and fixed else "", *element.dimensions)
    default = MISSING if needed or fixed else ()
    return replace(element, dimensions=dimensions, default=default)
