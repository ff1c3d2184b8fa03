"""Operations of C on SQL terms.

    a < b     floats    (a < b AND NOT isnan(b))          SQL has NaN above all numbers and equal to itself
    a / b     floats    coalesce(try_divide(a, b), (a * power(b, -1.0D)))   SQL's division by zero is null or an error;
                                                          the power of -1 of a zero is an infinity with its sign
    a / b     integers  (a DIV b), if b is surely not 0, at least here (`facts`): C's fault would be lost
    a << b    integers  shiftleft, which neither wraps to 32 bits nor raises
    (int) x   floats    try_cast, which is null where C's cast has to become the nearest integer

Functions of C's mathematics are taken only where Java's give the same bits: those that IEEE 754 defines to the last
one. SQL's `floor` and `ceil` are integers, so both are made of `rint`, which is a float, keeps the zero's sign and is
exact.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.ecode.analysis.intervals import RULES, Interval, fits, range_of
from echoic.ecode.numbers import FLOAT32, FLOAT64, INT64, Number, convert
from echoic.ecode.sql.terms import (
    Integer,
    Real,
    Term,
    Truth,
    as_integer,
    as_real,
    known_integer,
    known_real,
    negation,
    refused,
    relabelled,
    ring,
    settled,
    truth,
)
from echoic.ecode.typed import Position

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

__all__ = ["FUNCTIONS", "arithmetic", "called", "compared", "converted", "inverted", "negated"]

SYMBOLS: Final = {"==": "=", "!=": "<>"}
NOT_A_NUMBER: Final = "CAST('NaN' AS DOUBLE)"
INFINITY: Final = "CAST('Infinity' AS DOUBLE)"


def converted(term: Term, number: Number, at: Position) -> Term:
    """Return a value as another type has it.

    Raises:
        ECodeError: SQL has no such value.
    """
    if term.number is number:
        return term
    if number.floating:
        return as_real(term, number, at)
    if isinstance(term, Truth):
        return Truth(term.text, number)
    if isinstance(term, Real):
        return _truncated(term, number, at)
    if number.size > term.number.size:
        term = settled(term, at)
    return relabelled(term, number)


def _truncated(term: Real, number: Number, at: Position) -> Integer:
    """Return a float as the nearest integer of a type, towards zero; NaN as 0."""
    if term.known is not None:
        return known_integer(int(convert(term.known, number)), number)
    if number.size == INT64.size and not number.signed:
        raise refused("a float may become an unsigned integer of 64 bits, which SQL does not have", at)
    low, high = (known_integer(limit, INT64).text for limit in range_of(number))
    nearest = f"if(isnan({term.text}), 0L, if(({term.text} > 0.0D), {high}, {low}))"
    text = f"coalesce(try_cast({term.text} AS BIGINT), {nearest})"
    if number.size < INT64.size:
        text = f"least(greatest({text}, {low}), {high})"
    return Integer(text, number.smallest, number.largest, number)


def negated(term: Term, at: Position) -> Term:
    """Return `-term`.

    Raises:
        ECodeError: 64 bits with a sign do not hold it.
    """
    if isinstance(term, Real):
        if term.known is not None:
            return known_real(-term.known, term.number)
        return Real(f"(- {term.text})", term.number)
    value = as_integer(term)
    return ring("-", Integer("0L", 0, 0, value.number), value, at)


def inverted(term: Term, at: Position) -> Integer:
    """Return `~term`.

    Raises:
        ECodeError: It is a float, or 64 bits with a sign do not hold it.
    """
    value = settled(_integer(term, at), at)
    # ~x is -1 - x in every type, once it is wrapped; and no integer has a neighbour that -1 - x cannot reach.
    if value.number.signed:
        return Integer(f"(~ {value.text})", ~value.high, ~value.low, value.number)
    return ring("-", Integer("(-1L)", -1, -1, value.number), value, at)


def _integer(term: Term, at: Position) -> Integer:
    if isinstance(term, Real):
        raise refused("an integer is expected", at)
    return as_integer(term)


def arithmetic(
    operator: str, left: Term, right: Term, number: Number, at: Position, nonzero: "AbstractSet[str]" = frozenset()
) -> Term:
    """Return `left operator right`, computed in a type that both have (a shift's amount may have another).

    Args:
        operator: What to compute.
        left: The left side.
        right: The right side.
        number: The type in which it is computed.
        at: Where that is in the code.
        nonzero: Texts of integers that are not zero wherever this is evaluated for its value.

    Raises:
        ECodeError: It cannot be said in SQL, or might fault.
    """
    if number.floating:
        return _floating(operator, as_real(left, number, at), as_real(right, number, at))
    one, other = _integer(left, at), _integer(right, at)
    if operator in ("+", "-", "*"):
        return ring(operator, one, other, at)
    one, other = settled(one, at), settled(other, at)
    if operator in ("/", "%"):
        return _division(operator, one, other, at, nonzero)
    if operator in ("<<", ">>"):
        return _shift(operator, one, other, at)
    return _known(Integer(f"({one.text} {operator} {other.text})", *_bounds(operator, one, other), number))


def _bounds(operator: str, left: Integer, right: Integer) -> Interval:
    found = RULES[operator](left.interval, right.interval)
    return found if found is not None and fits(found, left.number) else range_of(left.number)


def _known(value: Integer) -> Integer:
    """Return a constant for a value that can be only one."""
    if value.low == value.high:
        return known_integer(value.low, value.number)
    return value


def _division(operator: str, left: Integer, right: Integer, at: Position, nonzero: "AbstractSet[str]") -> Integer:
    divisor = right.text
    if right.low <= 0 <= right.high:
        if divisor not in nonzero:
            raise refused("an integer is divided by what may be zero, which faults", at)
        divisor = f"nullif({divisor}, 0L)"  # it is evaluated where it is zero too, and must not raise
    if operator == "%":
        return _known(Integer(f"({left.text} % {divisor})", *_bounds("%", left, right), left.number))
    most = max(abs(left.low), abs(left.high))
    low, high = RULES["/"](left.interval, right.interval) or (-most, most)
    if left.low > INT64.smallest or not right.low <= -1 <= right.high:
        return _known(Integer(f"({left.text} DIV {divisor})", low, high, left.number))
    # The smallest integer by -1 is an error to SQL, and itself to C.
    turned = f"coalesce(try_subtract(0L, {left.text}), {left.text})"
    return Integer(f"coalesce(({left.text} DIV nullif({divisor}, (-1L))), {turned})", *range_of(INT64), left.number)


def _shift(operator: str, left: Integer, right: Integer, at: Position) -> Integer:
    number, mask = left.number, left.number.bits - 1
    if number.size == INT64.size and not number.signed and operator == "<<":
        raise refused("an unsigned integer of 64 bits is shifted to the left", at)
    amount = str(right.low & mask) if right.low == right.high else f"CAST(({right.text} & {mask}L) AS INT)"
    if operator == ">>":
        corners = [side >> shift for side in left.interval for shift in (0, mask)]
        return Integer(f"shiftright({left.text}, {amount})", min(corners), max(corners), number)
    # Bits that leave 64 have left 32 as well; what is beyond the type's own is taken away when it is looked at.
    low, high = range_of(INT64)
    return Integer(f"shiftleft({left.text}, {amount})", low, high, number)


def _floating(operator: str, left: Real, right: Real) -> Real:
    number = left.number
    if operator != "/":
        return Real(f"({left.text} {operator} {right.text})", number)
    # Two floats divided as doubles and rounded are what they are divided as floats.
    one, other = (as_real(side, FLOAT64, (0, 0)).text for side in (left, right))
    if right.known is not None and right.known == right.known and right.known != 0.0:
        text = f"({one} / {other})"
    else:
        text = f"coalesce(try_divide({one}, {other}), ({one} * power({other}, (-1.0D))))"
    return Real(f"CAST({text} AS FLOAT)" if number is FLOAT32 else text, number)


def compared(operator: str, left: Term, right: Term, at: Position) -> Term:
    """Return `left operator right`: 1 or 0.

    Raises:
        ECodeError: 64 bits with a sign do not hold one of them.
    """
    symbol = SYMBOLS.get(operator, operator)
    if not isinstance(left, Real) and not isinstance(right, Real):
        if (whole := _compared_truth(operator, left, right)) is not None:
            return truth(whole)
        one, other = settled(as_integer(left), at), settled(as_integer(right), at)
        return truth(f"({one.text} {symbol} {other.text})")
    number = left.number
    return truth(_compared_reals(operator, symbol, as_real(left, number, at), as_real(right, number, at)))


def _compared_truth(operator: str, left: Integer | Truth, right: Integer | Truth) -> str | None:
    """Return a comparison of a truth value with 0 or 1, which is itself or its opposite; None for any other."""
    if isinstance(right, Truth):
        left, right = right, left
    if operator not in ("==", "!=") or not isinstance(left, Truth) or not isinstance(right, Integer):
        return None
    if right.low != right.high or right.low not in (0, 1):
        return None
    return left.text if (right.low == 1) == (operator == "==") else negation(left.text)


def _compared_reals(operator: str, symbol: str, left: Real, right: Real) -> str:
    """Return a comparison that is false if a side is NaN, but for `!=`.

    One side has to be looked at: the one that SQL, with NaN above all, would find large enough. For equality it is
    either of them.
    """
    text = f"({left.text} {symbol} {right.text})"
    suspect = right if operator in ("<", "<=") else left
    if operator in ("==", "!=") and right.known is not None:
        suspect = right
    if suspect.known is not None and suspect.known == suspect.known:
        return text
    doubt = f"isnan({suspect.text})"
    return f"({text} OR {doubt})" if operator == "!=" else f"({text} AND NOT {doubt})"


def _floor(value: str) -> str:
    return f"(rint({value}) - if((rint({value}) > {value}), 1.0D, 0.0D))"


def _ceiling(value: str) -> str:
    return f"(- {_floor(f'(- {value})')})"


def _truncation(value: str) -> str:
    return f"if(({value} < 0.0D), {_ceiling(value)}, {_floor(value)})"


def _greatest(one: str, other: str) -> str:
    return f"if((isnan({other}) OR ({one} >= {other} AND NOT isnan({one}))), {one}, {other})"


FUNCTIONS: Final[dict[str, Callable[..., str]]] = {
    "ceil": _ceiling,
    "fabs": lambda value: f"abs({value})",
    "floor": _floor,
    "fmax": _greatest,
    "fmin": lambda one, other: f"if(({one} <= {other}), {one}, {other})",
    "fmod": lambda one, other: f"coalesce(try_mod({one}, {other}), {NOT_A_NUMBER})",
    "sqrt": lambda value: f"sqrt({value})",
    "trunc": _truncation,
}
TESTS: Final[dict[str, Callable[[str], str]]] = {
    "isfinite": lambda value: f"(abs({value}) < {INFINITY})",
    "isinf": lambda value: f"(abs({value}) = {INFINITY})",
    "isnan": lambda value: f"isnan({value})",
}


def called(function: str, arguments: list[Real], at: Position) -> Term:
    """Return the result of a function of C's mathematics.

    Raises:
        ECodeError: Java's might have other bits.
    """
    texts = [argument.text for argument in arguments]
    if function in TESTS:
        return Truth(TESTS[function](*texts), FLOAT64)
    if function not in FUNCTIONS:
        raise refused(f"`{function}` may have another last bit in Java than in C", at)
    return Real(FUNCTIONS[function](*texts), FLOAT64)
