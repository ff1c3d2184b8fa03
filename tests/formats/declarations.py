"""Short ways to declare the types that tests need."""

from typing import Any

from echoic.formats import NATIVE, Format, Kind, event, int8, int16, int32
from echoic.formats.moves import Number


def declare(annotations: dict[str, Any], name: str = "T", **members: Any) -> type:
    """Return a plain class with these annotated attributes."""
    return type(name, (), {"__annotations__": annotations, **members})


def of(**annotations: Any) -> Format:
    """Return a native format; a pair is an annotation with a default."""
    fields = {name: hint[0] if isinstance(hint, tuple) else hint for name, hint in annotations.items()}
    defaults = {name: hint[1] for name, hint in annotations.items() if isinstance(hint, tuple)}
    return Format.of(event(declare(fields, **defaults)))


def number(kind: Kind, size: int) -> Number:
    return Number(kind, size, NATIVE.byte_order)


@event
class Cell:
    x: int8
    y: int16


@event
class Finer:
    x: int8
    y: int32


@event
class Lacking:
    x: int8
