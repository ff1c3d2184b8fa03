"""Functions of Python's spelling run by Python itself, which is what they must mean."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from echoic.ecode.mathematics import FUNCTIONS
from echoic.ecode.numbers import NUMBERS, Number, convert
from echoic.formats import Format, Kind
from echoic.wire import Batch

__all__ = ["run_by_python"]


def run_by_python(
    source: str, events: Sequence[Any], output: object = None, params: object = None
) -> tuple[list[int], list[Any]]:
    """Return which events pass, and what a transform makes of them.

    Statics and local arrays are declared by annotations, of which Python makes nothing: such functions fail here.
    """
    namespace: dict[str, Any] = {name: getattr(math, name) for name in FUNCTIONS if hasattr(math, name)}
    namespace |= {"math": math, "resize": _resize} | {name: _cast(number) for name, number in NUMBERS.items()}
    known = set(namespace)
    exec(source, namespace)
    (function,) = (namespace[name] for name in namespace.keys() - known - {"__builtins__"})
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    format = None if output is None else Format.of(output)
    selected, made = [], []
    for number, event in enumerate(events):
        records = {"input": event, "output": None if format is None else _zeros(format), "param": params}
        if function(*(records[name] for name in names)):
            selected.append(number)
            made.append(records["output"])
    return selected, [] if format is None or not made else Batch.of(made, format).events()


def _cast(number: Number) -> Any:
    return lambda value: convert(value, number)


def _zeros(format: Format) -> Any:
    """Return an event in which everything is zero or empty, to be written to."""
    return SimpleNamespace(**{field.name: _zero(field.kind, field.dimensions) for field in format.fields})


def _zero(kind: Kind, dimensions: Sequence[int | str]) -> Any:
    if not dimensions:
        return "" if kind is Kind.STRING else 0.0 if kind is Kind.FLOAT else 0
    return [_zero(kind, dimensions[1:]) for _ in range(int(dimensions[0] or 0))]


def _resize(values: list[float], length: int) -> None:
    values[:] = [*values, *[0.0] * length][:length]
