"""Numbers that a modulator compares with: plain ones, or fields of a shared object.

    Difference("price", 0.5)                      param.threshold, of a block of its own
    Difference("price", "threshold", box=view)    param.threshold, of the shared object `view`

E-Code has one parameter block. Where a shared object is that block, plain numbers beside it become part of the code.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from echoic.eager.ready.fields import literal
from echoic.eager.shared_object import SharedObject, record_class
from echoic.errors import LocalError
from echoic.formats import Format

__all__ = ["Bound", "Bounds", "pairs_of", "parameters", "spelled"]

Bound: TypeAlias = float | str | None
Bounds: TypeAlias = Mapping[str, Bound]

SIDES: Final = (("start", "end"), ("min", "max"), ("low", "high"), ("lowest", "highest"), ("first", "last"))


def spelled(name: str, bound: Bound, box: SharedObject | None) -> str:
    """Return how E-Code says a bound: the parameter of this name, that of the shared object, or the number itself.

    Raises:
        LocalError: There is no shared object, or it has no such field.
    """
    if isinstance(bound, str):
        if box is None:
            raise LocalError(f"`{bound}` should be a field of a shared object, but none was given as `box`")
        format_of(box).field(bound)
        return f"param.{bound}"
    return f"param.{name}" if box is None else literal(bound or 0)


def parameters(bounds: Bounds, box: SharedObject | None) -> object:
    """Return the parameter block: the shared object, or the plain numbers by their names."""
    return dict(bounds) if box is None else box


def pairs_of(box: SharedObject) -> dict[str, tuple[Bound, Bound]]:
    """Return which fields of a shared object bound which field of an event, by their names.

    Raises:
        LocalError: A name does not say what it bounds.
    """
    names = format_of(box).by_name
    found: dict[str, dict[int, str]] = {}
    for name in names:
        side, path = _side(name, type(box).__name__)
        found.setdefault(path, {})[side] = name
    return {path: (sides.get(0), sides.get(1)) for path, sides in found.items()}


def _side(name: str, box: str) -> tuple[int, str]:
    for pair in SIDES:
        for side, word in enumerate(pair):
            if name.startswith(f"{word}_"):
                return side, name.removeprefix(f"{word}_")
            if name.endswith(f"_{word}"):
                return side, name.removesuffix(f"_{word}")
    raise LocalError(
        f"`{name}` does not say what it bounds, as `start_layer` or `layer_max` do; say it: "
        f'Window({{"layer": ("{name}", None)}}, box) - at `{box}`'
    )


def format_of(box: SharedObject) -> Format:
    """Return the fields of a shared object as a format."""
    return Format.of(record_class(type(box)))
