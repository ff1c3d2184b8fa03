"""Intervals: between which integers a value lies, whatever the event.

Everything starts from the types: a field of one byte is 0 .. 255, a comparison 0 .. 1. The only variables about which
more is believed are the counters of proved loops, and only inside the body of their loop, where nothing assigns them.
That makes the analysis sound without following the flow of control: what holds, holds for every evaluation of a node
in that body. An operation whose result might not fit its type may have wrapped, so its interval is the type's.

    for (i = 0; i < 37; i++)                          i            0 .. 36
        sum += input.wind[i * 253 + (k & 127)];       i * 253      0 .. 9108       k & 127  0 .. 127
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from echoic.ecode.numbers import Number, quotient
from echoic.ecode.typed import (
    Arithmetic,
    Choose,
    Compare,
    Constant,
    Convert,
    Invert,
    Length,
    Load,
    Local,
    Location,
    Logical,
    Negate,
    Not,
    Sequence,
    TextEqual,
    TextLiteral,
    Value,
    Variable,
)
from echoic.formats import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Interval", "Ranges", "fits", "hull", "range_of"]

Interval: TypeAlias = tuple[int, int]
"""The least and the greatest value; both can occur, as far as is known."""

LENGTH_MAX: Final = 0xFFFF_FFFF
TRUTH: Final = (0, 1)


def range_of(number: Number) -> Interval:
    """Return what a value of an integer type can be."""
    return number.smallest, number.largest


def fits(interval: Interval, number: Number) -> bool:
    """Tell whether an integer type holds every value of an interval."""
    return not number.floating and number.smallest <= interval[0] and interval[1] <= number.largest


def hull(first: Interval, second: Interval) -> Interval:
    """Return the smallest interval around two."""
    return min(first[0], second[0]), max(first[1], second[1])


class Ranges:
    """Tells the interval of integer values at one place of the program.

    Ask for the parts of a value before the value itself, and depth costs no stack: answers are kept.
    """

    def __init__(self, counters: "Mapping[Variable, Interval]") -> None:
        self._counters = counters
        self._found: dict[Value, Interval | None] = {}

    def of(self, value: Value) -> Interval | None:
        """Return between what a value lies; None if it is a float."""
        if value not in self._found:
            self._found[value] = None if value.number.floating else self._interval(value)
        return self._found[value]

    def _interval(self, value: Value) -> Interval | None:
        match value:
            case Constant():
                return int(value.value), int(value.value)
            case Load():
                return self._load(value)
            case Compare() | Logical() | Not() | TextEqual():
                return TRUTH
            case Convert() | Negate() | Invert():
                return self._unary(value)
            case Arithmetic():
                found = self.unwrapped(value)
                return found if found is not None and fits(found, value.number) else range_of(value.number)
            case Choose():
                return hull(self._integer(value.yes), self._integer(value.no))
            case Sequence():
                return self.of(value.second)
            case Length():
                return self._length(value)
            case _:
                return range_of(value.number)

    def unwrapped(self, value: Arithmetic) -> Interval | None:
        """Return between what the result lies before it is wrapped to its type; None if nothing is known."""
        if value.number.floating:
            return None
        rule = RULES.get(value.operator)
        left, right = self._integer(value.left), self._integer(value.right)
        if value.operator in ("<<", ">>"):
            return _shifted(left, right, value)
        return rule(left, right) if rule is not None else None

    def _integer(self, value: Value) -> Interval:
        found = self.of(value)
        return range_of(value.number) if found is None else found

    def _load(self, value: Load) -> Interval:
        place = value.place
        if isinstance(place, Local):
            return self._counters.get(place.variable, range_of(value.number))
        return TRUTH if place.field.kind is Kind.BOOL else range_of(value.number)

    def _unary(self, value: Convert | Negate | Invert) -> Interval:
        inner = self.of(value.value)
        if inner is None:
            return range_of(value.number)
        if isinstance(value, Negate):
            inner = (-inner[1], -inner[0])
        elif isinstance(value, Invert):
            inner = (~inner[1], ~inner[0])
        return inner if fits(inner, value.number) else range_of(value.number)

    def _length(self, value: Length) -> Interval:
        match value.of:
            case TextLiteral(data=data):
                return len(data), len(data)
            case Location(root="output"):
                return range_of(value.number)
            case _:
                return 0, LENGTH_MAX


def _sum(left: Interval, right: Interval) -> Interval:
    return left[0] + right[0], left[1] + right[1]


def _difference(left: Interval, right: Interval) -> Interval:
    return left[0] - right[1], left[1] - right[0]


def _product(left: Interval, right: Interval) -> Interval:
    corners = [one * other for one in left for other in right]
    return min(corners), max(corners)


def _quotient(left: Interval, right: Interval) -> Interval | None:
    """Divide, truncating; the quotient is never further from zero than the dividend, but for the smallest by -1."""
    if right[0] > 0:
        corners = [quotient(one, other) for one in left for other in right]
        return min(corners), max(corners)
    if left[0] >= 0 and right[0] >= 0:
        return 0, left[1]
    return None


def _remainder(left: Interval, right: Interval) -> Interval:
    """Take the remainder: of the dividend's sign, smaller than the divisor and not larger than the dividend."""
    most = max(abs(right[0]), abs(right[1]), 1) - 1
    least = 0 if left[0] >= 0 else max(left[0], -most)
    return least, 0 if left[1] <= 0 else min(left[1], most)


def _both(left: Interval, right: Interval) -> Interval | None:
    """Take the common bits: with a number that is not negative, the result is neither, nor larger."""
    limits = [side[1] for side in (left, right) if side[0] >= 0]
    return (0, min(limits)) if limits else None


def _either(left: Interval, right: Interval) -> Interval | None:
    """Take the bits of either (or of only one of both): no higher bit appears."""
    if left[0] < 0 or right[0] < 0:
        return None
    return 0, (1 << max(left[1].bit_length(), right[1].bit_length())) - 1


def _shifted(left: Interval, amounts: Interval, value: Arithmetic) -> Interval | None:
    """Shift; amounts that the mask would change are unknown ones."""
    if not (amounts[0] >= 0 and amounts[1] < value.number.bits):
        amounts = (0, value.number.bits - 1)
    if value.operator == ">>":
        corners = [one >> amount for one in left for amount in amounts]
    else:
        corners = [one << amount for one in left for amount in amounts]
    return min(corners), max(corners)


RULES: Final[dict[str, Callable[[Interval, Interval], Interval | None]]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
    "%": _remainder,
    "&": _both,
    "|": _either,
    "^": _either,
}
