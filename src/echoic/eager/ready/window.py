"""The paper's bounding box: events pass whose fields lie between bounds (JECho, appendix A).

The paper's `FilterModulator` is a class of some twenty lines that compares layer, latitude and longitude with a shared
`BBox`. Here it is one filter in E-Code for any number of fields, with the bounds in its parameter block:

    input.layer >= param.start_layer && input.layer <= param.end_layer && ...

If the bounds are a shared object, that object is the parameter block, so publishing it moves the window at every
source between two batches; nothing is compiled again. Plain numbers make a parameter block too, so that all windows
over the same fields are one program.

In C, a negative `long` compared with an `unsigned long` is a huge number. Where a field may be unsigned and of 64 bits,
which includes any field as long as no event type is given, signs are compared first; that makes a window of three
fields take 9 ns instead of 5 (measured, batches of 100,000).
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from echoic.eager.modulator import EcodeModulator
from echoic.eager.ready.arguments import check_real, check_whole
from echoic.eager.ready.bounds import Bound, pairs_of, parameters, spelled
from echoic.eager.ready.fields import check_number
from echoic.eager.shared_object import SharedObject
from echoic.errors import LocalError
from echoic.formats import Field, Kind

__all__ = ["Window"]

Bounded: TypeAlias = Mapping[str, tuple[Bound, Bound]]


class Window(EcodeModulator):
    """Pass events whose fields lie within bounds, both included.

    Args:
        bounds: For each field its lowest and highest value: a number, None for none, or the name of a field of `box`.
            Or a shared object alone, whose fields are called after those of the events: `start_layer` and `end_layer`
            (or `min_`, `low_`) bound `layer`, and so do `layer_start` and `layer_end`.
        box: The shared object that holds the bounds that are names; publishing it moves the window.
        declared: The event type, if the fields are to be checked here and not only where the events are.

    Raises:
        LocalError: There is no such field, or a bound is not a number.
    """

    def __init__(
        self, bounds: Bounded | SharedObject, box: SharedObject | None = None, *, declared: object | None = None
    ) -> None:
        if isinstance(bounds, SharedObject):
            box, bounds = bounds, pairs_of(bounds)
        if not bounds:
            raise LocalError("a window needs at least one field with bounds")
        fields = {path: check_number(declared, path) for path in bounds}
        sides = {
            name: _fitting(bound, fields[path], path)
            for number, (path, (low, high)) in enumerate(bounds.items())
            for name, bound in ((f"low_{number}", low), (f"high_{number}", high))
            if bound is not None
        }
        terms = []
        for number, (path, field) in enumerate(fields.items()):
            for name, term in ((f"low_{number}", _at_least), (f"high_{number}", _at_most)):
                if name in sides:
                    terms.append(term(f"input.{path}", spelled(name, sides[name], box), exact=_may_wrap(field)))
        if not terms:
            raise LocalError("a window without any bound would pass everything")
        self.bounds: Final = dict(bounds)
        super().__init__("\n&& ".join(terms), params=parameters(sides, box))

    def __repr__(self) -> str:
        return f"Window({self.bounds!r})"


def _fitting(bound: Bound, field: Field | None, path: str) -> Bound:
    """Return a bound as the kind of number that its field is compared with without loss."""
    if isinstance(bound, str) or bound is None:
        return bound
    check_real(path, bound)
    if isinstance(bound, int):
        check_whole(path, bound, -(1 << 63), (1 << 63) - 1)
    return float(bound) if field is not None and field.kind is Kind.FLOAT else bound


def _may_wrap(field: Field | None) -> bool:
    return field is None or (field.size == 8 and field.kind in (Kind.UINT, Kind.ENUM))


def _at_least(value: str, low: str, *, exact: bool) -> str:
    if not exact:
        return f"{value} >= {low}"
    return f"(({value} < 0) == ({low} < 0) ? {value} >= {low} : {value} >= 0)"


def _at_most(value: str, high: str, *, exact: bool) -> str:
    if not exact:
        return f"{value} <= {high}"
    return f"(({value} < 0) == ({high} < 0) ? {value} <= {high} : {high} >= 0)"
