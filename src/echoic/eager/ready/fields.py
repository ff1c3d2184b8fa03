"""The fields that ready-made modulators work on, by name.

A ready-made modulator knows no event type when it is written: it is told names, `"price"` or `"position.layer"`. They
are looked at twice. Where the modulator is made, if the event type is given too: a name that is not there, or that is
not a number where a number is needed, is an error in the line that has it. And where the modulator runs, because a
source may have another idea of the type: E-Code is compiled against that type, and `Reader` says the same when it meets
the first event.

Names become part of E-Code, so they are refused unless they are names and nothing else.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final

from echoic.errors import LocalError
from echoic.formats import Field, Format, Kind, bind, shown

__all__ = ["Reader", "check_key", "check_name", "check_number", "literal"]

NUMBERS: Final = frozenset({Kind.INT, Kind.UINT, Kind.FLOAT, Kind.BOOL, Kind.ENUM})
INT64_MIN: Final = -(1 << 63)


def check_name(path: object) -> str:
    """Return the name of a field; dots lead into nested records.

    Raises:
        LocalError: It is not a name.
    """
    if not isinstance(path, str) or not path.isascii() or not all(part.isidentifier() for part in path.split(".")):
        raise LocalError(f"expected the name of a field, got {shown(path)}")
    return path


def check_number(declared: object | None, path: str) -> Field | None:
    """Return the field that a modulator computes with, None if the event type is not given.

    Raises:
        LocalError: There is no such field, or it is not a single number.
    """
    check_name(path)
    if declared is None:
        return None
    format = Format.of(declared)
    field = format.field(path)
    if field.dimensions or field.kind not in NUMBERS:
        raise LocalError(f"expected a number, got `{field.spelling}` - at `{format.name}.{path}`")
    return field


def check_key(declared: object | None, path: str) -> str:
    """Return the name of a field that tells events apart.

    Raises:
        LocalError: There is no such field, or it is an array or a record.
    """
    check_name(path)
    if declared is not None:
        format = Format.of(declared)
        field = format.field(path)
        whole = not field.dimensions or (field.kind is Kind.CHAR and not field.dynamic and len(field.dimensions) == 1)
        if not whole or field.record is not None:
            raise LocalError(f"expected a number or a text, got `{field.spelling}` - at `{format.name}.{path}`")
    return path


def literal(value: float) -> str:
    """Return a number as E-Code writes it, in brackets if it would otherwise bind to its neighbours."""
    if isinstance(value, int):
        return f"({value + 1}L - 1L)" if value == INT64_MIN else f"({value}L)"
    if value in (float("inf"), float("-inf")):
        return "(1.0 / 0.0)" if value > 0 else "(-1.0 / 0.0)"
    return f"({value!r})"


class Reader:
    """Takes the values of some fields from events of any class."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths: Final = tuple(paths)
        self._get: Callable[[Any], Any] = attrgetter(*self._paths) if self._paths else _nothing

    def __call__(self, event: object) -> Any:  # noqa: ANN401 - a field can hold anything
        """Return the value of the field, or a tuple of them if there are several; () for none.

        Raises:
            FormatError: The event has no such field; the message names the nearest ones.
        """
        try:
            return self._get(event)
        except AttributeError:
            format = bind(type(event)).format
            for path in self._paths:
                format.field(path)
            raise


def _nothing(_event: object) -> tuple[()]:
    return ()
