"""Values of a program as SQL, with what is known about them.

    Integer    text of type BIGINT, between `low` and `high`; the value in C is what wrapping makes of it
    Real       text of type FLOAT or DOUBLE
    Truth      text of type BOOLEAN, for 1 and 0
    Chars      text of type STRING or BINARY

SQL has other integers than C: an overflow is an error or not by a setting of the session. So integers of all types are
computed in BIGINT, each with an interval, and an operation is written plainly only if the interval says that it fits.
Wrapping is put off until somebody looks at the value, since sums and products do not care: `a * b + c` of int32 is
computed exactly, and its low 32 bits are taken once.

    int32 sum of two fields           shiftright(shiftleft((CAST(`a` AS BIGINT) + CAST(`b` AS BIGINT)), 32), 32)
    int64 sum of two fields           coalesce(try_add(`a`, `b`), <the same in DECIMAL, wrapped>)

Where 64 bits do not suffice, an Integer has a second text, `wide`: the exact value as a DECIMAL, which is evaluated
only if the first one is null because of an overflow. uint64 is the one type that BIGINT does not hold; its values are
accepted as long as their interval says that they are below 2**63.

No text ever raises an error, in whatever order Spark evaluates its parts: it is free to evaluate both sides of AND.
"""

import math
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from echoic.ecode.analysis.intervals import RULES, Interval, fits, hull
from echoic.ecode.numbers import FLOAT32, FLOAT64, INT32, INT64, Number, convert
from echoic.ecode.typed import Position
from echoic.errors import ECodeError

__all__ = [
    "DEPTH_MAX",
    "TEXT_MAX",
    "Chars",
    "Integer",
    "Real",
    "Term",
    "Truth",
    "as_integer",
    "as_real",
    "condition",
    "constant",
    "either",
    "known_integer",
    "known_real",
    "negation",
    "refused",
    "relabelled",
    "ring",
    "settled",
    "truth",
]

TEXT_MAX: Final = 16_384  # characters of one expression: Java's methods, and the patience of its compiler, are limited
DEPTH_MAX: Final = 80  # parentheses in each other: Spark's parser overflows its stack at about 300
DECIMAL_MAX: Final = 10**38 - 1
WORD: Final = 1 << 64
HALF: Final = 1 << 63
TRY: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
TRUE, FALSE = "true", "false"


def refused(reason: str, at: Position) -> ECodeError:
    """Return what ends a translation: something that cannot be said in SQL with C's meaning, and where it is."""
    return ECodeError(reason, ((*at, reason),))


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer; if `wide` is there, `text` is null where the value leaves 64 bits."""

    text: str
    low: int
    high: int
    number: Number
    wide: str = ""

    @property
    def interval(self) -> Interval:
        """Between what the value lies before it is wrapped."""
        return self.low, self.high

    @property
    def exact(self) -> str:
        """The value as a DECIMAL."""
        return self.wide or f"CAST({self.text} AS DECIMAL(38,0))"


@dataclass(frozen=True, slots=True)
class Real:
    """A float, with its value if that is known."""

    text: str
    number: Number
    known: float | None = None


@dataclass(frozen=True, slots=True)
class Truth:
    """1 or 0."""

    text: str
    number: Number = INT32


@dataclass(frozen=True, slots=True)
class Chars:
    """The bytes of a text, as a STRING if they surely are UTF-8, with their value if that is known.

    `width` is that of a char array of the output, which the text fills to its end; 0 for any other.
    """

    text: str
    binary: bool
    known: bytes | None = None
    width: int = 0


Term: TypeAlias = Integer | Real | Truth
"""What stands for a value of the program."""


def constant(value: float, number: Number) -> Integer | Real:
    """Return a constant of a type."""
    return known_real(float(value), number) if number.floating else known_integer(int(value), number)


def known_integer(value: int, number: Number) -> Integer:
    """Return a constant integer."""
    return Integer(_integer_text(value), value, value, number)


def known_real(value: float, number: Number) -> Real:
    """Return a constant float."""
    if math.isfinite(value):
        text = f"{value!r}D" if math.copysign(1.0, value) > 0 else f"({value!r}D)"
    else:
        text = f"CAST('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}' AS DOUBLE)"
    return Real(text if number is FLOAT64 else f"CAST({text} AS FLOAT)", number, value)


def _integer_text(value: int) -> str:
    if not INT64.smallest <= value <= INT64.largest:
        return f"{value}BD"  # nobody but `settled` looks at it, and refuses
    return f"{value}L" if value >= 0 else f"({value}L)"


def truth(text: str, number: Number = INT32) -> Truth | Integer | Real:
    """Return a condition as a value, a constant one as a constant."""
    if text in (TRUE, FALSE):
        return constant(int(text == TRUE), number)
    return Truth(text, number)


def condition(term: Term, at: Position) -> str:
    """Return whether a value is not zero.

    Raises:
        ECodeError: It is an integer that 64 bits with a sign do not hold.
    """
    if isinstance(term, Truth):
        return term.text
    if isinstance(term, Real):
        if term.known is not None:
            return TRUE if term.known else FALSE
        return f"({term.text} <> 0.0D)"  # SQL's NaN is not 0 either
    value = settled(term, at)
    if value.low == value.high or value.low > 0 or value.high < 0:
        return FALSE if value.low == value.high == 0 else TRUE
    return f"({value.text} <> 0L)"


def negation(text: str) -> str:
    """Return the opposite of a condition."""
    if text in (TRUE, FALSE):
        return FALSE if text == TRUE else TRUE
    return f"(NOT {text})"


def settled(value: Integer, at: Position) -> Integer:
    """Return an integer that was wrapped to its type.

    Raises:
        ECodeError: 64 bits with a sign do not hold it.
    """
    number = value.number
    inside = value.low <= INT64.largest and value.high <= INT64.largest and value.low >= INT64.smallest
    if fits(value.interval, number) and inside and not value.wide:
        return value
    if value.low == value.high and (wrapped := convert(value.low, number)) <= INT64.largest:
        return known_integer(int(wrapped), number)
    if number.size == INT64.size and not number.signed:
        raise refused("an unsigned integer of 64 bits may be larger than those of SQL", at)
    text = value.text
    if value.wide:
        text = f"coalesce({text}, CAST((pmod(({value.wide} + {HALF}BD), {WORD}BD) - {HALF}BD) AS BIGINT))"
    if not fits(value.interval, number) and number.size < INT64.size:
        spare = INT64.bits - number.bits
        mask = (1 << number.bits) - 1
        text = f"shiftright(shiftleft({text}, {spare}), {spare})" if number.signed else f"({text} & {mask}L)"
    low, high = value.interval if fits(value.interval, number) else (number.smallest, number.largest)
    return Integer(text, low, high, number)


def ring(operator: str, left: Integer, right: Integer, at: Position) -> Integer:
    """Return a sum, difference or product; it is wrapped when somebody looks at it.

    Raises:
        ECodeError: 64 bits with a sign do not hold an operand.
    """
    number = left.number
    for one, other in ((left, right), (settled(left, at), settled(right, at))):
        low, high = RULES[operator](one.interval, other.interval) or (0, DECIMAL_MAX + 1)
        if low == high:
            return known_integer(low, number)
        if INT64.smallest <= low and high <= INT64.largest and not one.wide and not other.wide:
            return Integer(f"({one.text} {operator} {other.text})", low, high, number)
    for one, other in ((left, right), (settled(left, at), settled(right, at))):
        low, high = RULES[operator](one.interval, other.interval) or (0, DECIMAL_MAX + 1)
        if max(-low, high) + HALF <= DECIMAL_MAX:
            wide = f"({one.exact} {operator} {other.exact})"
            return Integer(f"{TRY[operator]}({one.text}, {other.text})", low, high, number, wide)
    raise refused(f"the result of `{operator}` is too large for SQL", at)


def as_integer(term: Truth | Integer) -> Integer:
    """Return a truth value as an integer."""
    return term if isinstance(term, Integer) else Integer(f"if({term.text}, 1L, 0L)", 0, 1, term.number)


def as_real(term: Term, number: Number, at: Position) -> Real:
    """Return any number as a float.

    Raises:
        ECodeError: It is an integer that 64 bits with a sign do not hold.
    """
    if isinstance(term, Real) and term.number is number:
        return term
    if isinstance(term, Real):
        if term.known is not None:
            return known_real(convert(term.known, number), number)
        return Real(f"CAST({term.text} AS {'FLOAT' if number is FLOAT32 else 'DOUBLE'})", number)
    value = settled(as_integer(term), at)
    if value.low == value.high:
        return known_real(convert(value.low, number), number)
    return Real(f"CAST({value.text} AS {'FLOAT' if number is FLOAT32 else 'DOUBLE'})", number)


def either(test: str, yes: Term, no: Term, at: Position) -> Term:
    """Return one of two values of one type by a condition.

    Raises:
        ECodeError: 64 bits with a sign do not hold one of them.
    """
    if yes == no or test == TRUE:
        return yes
    if test == FALSE:
        return no
    if isinstance(yes, Real) or isinstance(no, Real):
        first, second = as_real(yes, yes.number, at), as_real(no, no.number, at)
        return Real(f"if({test}, {first.text}, {second.text})", yes.number)
    if (chosen := _either_truth(test, yes, no)) is not None:
        return truth(chosen, yes.number)
    one, other = (_narrow(as_integer(term), at) for term in (yes, no))
    low, high = hull(one.interval, other.interval)
    return Integer(f"if({test}, {one.text}, {other.text})", low, high, one.number)


def _narrow(value: Integer, at: Position) -> Integer:
    """Return an integer that its text tells, perhaps not wrapped."""
    held = INT64.smallest <= value.low and value.high <= INT64.largest
    return value if held and not value.wide else settled(value, at)


def _either_truth(test: str, yes: Truth | Integer, no: Truth | Integer) -> str | None:
    """Return a choice of truth values by AND and OR, which Spark can push down to files; None if there are others."""
    match _decided(yes), _decided(no):
        case (None, _) | (_, None):
            return None
        case True, False:
            return test
        case False, True:
            return negation(test)
        case True, str() as other:
            return f"({test} OR {other})"
        case str() as other, False:
            return f"({test} AND {other})"
        case False, str() as other:
            return f"({negation(test)} AND {other})"
        case str() as other, True:
            return f"({negation(test)} OR {other})"
        case one, other:
            return f"if({test}, {one}, {other})"


def _decided(term: Truth | Integer) -> str | bool | None:
    """Return a truth value's text, or which one it is; None for other numbers."""
    if isinstance(term, Truth):
        return term.text
    if term.low == term.high and term.low in (0, 1):
        return term.low == 1
    return None


def relabelled(value: Integer, number: Number) -> Integer:
    """Return the same text as of another type."""
    return replace(value, number=number)
