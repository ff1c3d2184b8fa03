"""What the JSON of an event looks like, as JSON Schema: the JSON that `echoic echo --json` prints.

    Trade{symbol: str, price: float, size: int32}
        {"type": "object", "required": ["symbol", "price", "size"], "additionalProperties": false,
         "properties": {"symbol": {"type": "string"}, "price": {"type": ["number", "null"], "format": "double"},
                        "size": {"type": "integer", "format": "int32", "minimum": -2147483648, ...}}}

`recorder.json_events` has a schema of its own, for MCAP files: there numbers that are none are texts, and the schema is
short since other programs draw by it. Here a document is made that says all that holds, so that what it admits is what
comes: a float may be null (JSON has no NaN), integers have the bounds of their width, a fixed array its length, and
bytes are base64. The values of an enumeration are integers, and unknown ones are allowed on the wire, so its members
are told (`x-echoic-members`) and do not limit anything.
"""

import base64
from typing import Final

from echoic.formats import Field, Format, Kind

__all__ = ["DESCRIPTOR", "event_schema"]

DESCRIPTOR: Final = "x-echoic-descriptor"
BASE64: Final = {"type": "string", "contentEncoding": "base64"}


def event_schema(format: Format) -> dict[str, object]:
    """Return the JSON Schema (draft 7) of a type's events, with the descriptor from which the type is made again."""
    return {"title": format.name, **_record(format), DESCRIPTOR: base64.b64encode(format.descriptor).decode()}


def _record(format: Format) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {field.name: _field(field) for field in format.fields},
        "required": [field.name for field in format.fields],
        "additionalProperties": False,
    }


def _field(field: Field) -> dict[str, object]:
    dimensions = list(field.dimensions)
    if field.kind is Kind.CHAR and dimensions and isinstance(dimensions[-1], int):
        dimensions.pop()  # char[16] is one text
    schema = _element(field)
    for dimension in reversed(dimensions):
        sized = {"minItems": dimension, "maxItems": dimension} if isinstance(dimension, int) else {}
        schema = {"type": "array", "items": schema, **sized}
    return schema


def _element(field: Field) -> dict[str, object]:
    match field.kind:
        case Kind.RECORD if field.record is not None:
            return {"title": field.record.name, **_record(field.record)}
        case Kind.FLOAT:
            return {"type": ["number", "null"], "format": "float" if field.size == 4 else "double"}
        case Kind.BOOL:
            return {"type": "boolean"}
        case Kind.STRING:
            return {"type": ["string", "null"] if field.optional else "string"}
        case Kind.CHAR:
            return dict(BASE64)
        case Kind.BYTES:
            return {**BASE64, "type": ["string", "null"] if field.optional else "string"}
        case Kind.ENUM if field.enumeration is not None:
            members = dict(field.enumeration.members)
            return {
                "title": field.enumeration.name,
                **_integer(field.size, signed=field.enumeration.signed),
                "x-echoic-members": members,
            }
        case _:
            return _integer(field.size, signed=field.kind is Kind.INT)


def _integer(size: int, *, signed: bool) -> dict[str, object]:
    bits = 8 * size
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return {"type": "integer", "format": f"{'' if signed else 'u'}int{bits}", "minimum": least, "maximum": most}
