"""Operations with C's conversions written out, and computed where all is constant.

Each function takes operands as they were checked and returns the node that computes on them in the type C says:
`narrow + 1` becomes `Arithmetic("+", Convert(narrow, INT32), Constant(1), INT32)`.
"""

from typing import Final

from echoic.ecode import numbers
from echoic.ecode.checking.folding import fold_arithmetic, fold_comparison
from echoic.ecode.numbers import FLOAT64, INT32, Number, promote, usual
from echoic.ecode.syntax.text import mistake
from echoic.ecode.typed import (
    Arithmetic,
    Choose,
    Compare,
    Constant,
    Convert,
    Invert,
    Logical,
    Negate,
    Not,
    Position,
    TextEqual,
    Value,
)

__all__ = [
    "COMPARISONS",
    "SHIFTS",
    "arithmetic",
    "check_divisor",
    "check_integers",
    "choose",
    "common",
    "comparison",
    "convert",
    "logical",
    "true_division",
    "truth",
    "unary",
]

COMPARISONS: Final = frozenset({"==", "!=", "<", ">", "<=", ">="})
SHIFTS: Final = frozenset({"<<", ">>"})
INTEGERS_ONLY: Final = frozenset({"%", "&", "|", "^", "<<", ">>"})


def convert(value: Value, number: Number) -> Value:
    """Return a value as one of another type; itself if it is of that type."""
    if value.number is number:
        return value
    if isinstance(value, Constant):
        return Constant(numbers.convert(value.value, number), number, value.at)
    return Convert(value, number, value.at)


def common(left: Value, right: Value) -> tuple[Value, Value, Number]:
    """Return two operands in the type in which they are computed, and that type."""
    number = usual(left.number, right.number)
    return convert(left, number), convert(right, number), number


def truth(value: Value) -> Value:
    """Return 1 for what is not zero, else 0."""
    if isinstance(value, Compare | Logical | Not | TextEqual):
        return value
    value = convert(value, promote(value.number))
    return comparison("!=", value, convert(Constant(0, INT32, value.at), value.number), value.at)


def unary(operator: str, value: Value, at: Position) -> Value:
    """Return `+value`, `-value`, `~value` or `!value`.

    Raises:
        ECodeError: `~` of a float.
    """
    if operator == "!":
        return Constant(int(not value.value), INT32, at) if isinstance(value, Constant) else Not(value, at)
    if operator == "~":
        check_integers("~", at, value)
    number = promote(value.number)
    value = convert(value, number)
    if operator == "+":
        return value
    if isinstance(value, Constant):
        computed = -value.value if operator == "-" else ~int(value.value)
        return Constant(numbers.convert(computed, number), number, at)
    return Negate(value, number, at) if operator == "-" else Invert(value, number, at)


def arithmetic(operator: str, left: Value, right: Value, at: Position) -> Value:
    """Return `left operator right` for the operators that compute.

    Raises:
        ECodeError: A float where only integers go, or a constant integer divisor that is zero.
    """
    check_integers(operator, at, left, right)
    if operator in SHIFTS:
        number = promote(left.number)
        left, right = convert(left, number), convert(right, promote(right.number))
    else:
        left, right, number = common(left, right)
        check_divisor(operator, right, at)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(fold_arithmetic(operator, left.value, right.value, number), number, at)
    return Arithmetic(operator, left, right, number, at)


def true_division(left: Value, right: Value, at: Position) -> Value:
    """Return the quotient with its fraction, whatever the types are."""
    if not left.number.floating and not right.number.floating:
        left = convert(left, FLOAT64)
    return arithmetic("/", left, right, at)


def comparison(operator: str, left: Value, right: Value, at: Position) -> Value:
    """Return `left operator right` for the operators that compare."""
    left, right, _ = common(left, right)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(fold_comparison(operator, left.value, right.value), INT32, at)
    return Compare(operator, left, right, at)


def logical(operator: str, left: Value, right: Value, at: Position) -> Value:
    """Return `left && right` or `left || right`."""
    if isinstance(left, Constant):
        decided = bool(left.value) == (operator == "||")
        if decided:
            return Constant(int(operator == "||"), INT32, at)
        if isinstance(right, Constant):
            return Constant(int(bool(right.value)), INT32, at)
    return Logical(operator, left, right, at)


def choose(test: Value, yes: Value, no: Value, at: Position) -> Value:
    """Return `test ? yes : no`."""
    yes, no, number = common(yes, no)
    if isinstance(test, Constant):
        return yes if test.value else no
    return Choose(test, yes, no, number, at)


def check_integers(operator: str, at: Position, *operands: Value) -> None:
    """Refuse floats where the operator computes on integers only.

    Raises:
        ECodeError: An operand is a float.
    """
    if operator not in INTEGERS_ONLY and operator != "~":
        return
    for operand in operands:
        if operand.number.floating:
            advice = " (`fmod` is the remainder of floats)" if operator == "%" else ""
            raise mistake(at, f"`{operator}` needs integers, got `{operand.number}`{advice}")


def check_divisor(operator: str, divisor: Value, at: Position) -> None:
    """Refuse what would divide by zero whenever it is reached.

    Raises:
        ECodeError: The divisor is an integer and 0.
    """
    if operator in ("/", "%") and isinstance(divisor, Constant) and not divisor.number.floating and not divisor.value:
        raise mistake(at, "an integer is divided by zero")
