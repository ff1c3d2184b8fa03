"""Python's arithmetic in terms of C's.

Python computes with integers that do not overflow and floats of 64 bits. The nearest that E-Code has is 64 bits for
both, so every operand that is narrower is widened first (`tree.Wide`); what is left of the difference is that results
beyond 64 bits wrap. `//` and `%` round down where C's `/` and `%` round towards zero:

    a // b      a / b, less 1 if the division leaves a remainder and the signs of both differ
    a % b       the remainder, plus b in the same case

Whether operands are integers is known to the checker only, so both meanings are written down (`tree.ByKind`). An
operand that is needed several times and is more than a name gets a name (`tree.Let`): copies of copies would grow
without bound.
"""

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.ecode.numbers import INT64, UINT64
from echoic.ecode.syntax import tree

if TYPE_CHECKING:
    from echoic.ecode.typed import Position

__all__ = [
    "absolute",
    "binary",
    "extreme",
    "floor_division",
    "fold",
    "integer",
    "is_simple",
    "once",
    "remainder",
    "wide",
]

ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"})
SHIFT_MAX: Final = 63
FOLDED: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "**": operator.pow,
}


def integer(value: int, at: "Position") -> tree.Constant | None:
    """Return an integer as a constant of int64, or of uint64 if it fits only there; None if it fits neither."""
    number = INT64 if value <= INT64.largest else UINT64
    return tree.Constant(value, number, at) if INT64.smallest <= value <= UINT64.largest else None


def fold(symbol: str, left: tree.Expression, right: tree.Expression, at: "Position") -> tree.Constant | None:
    """Return what an operation on two integers gives, as Python computes it; None if the program has to compute it."""
    if not (isinstance(left, tree.Constant) and isinstance(right, tree.Constant)):
        return None
    one, other = left.value, right.value
    if not (isinstance(one, int) and isinstance(other, int)) or symbol not in FOLDED:
        return None
    if symbol in ("//", "%") and not other:
        return None
    if symbol in ("<<", ">>", "**") and not 0 <= other <= SHIFT_MAX:
        return None
    return integer(FOLDED[symbol](one, other), at)


def wide(value: tree.Expression) -> tree.Expression:
    """Return an operand at full width; what has it in any case is left as it is."""
    match value:
        case tree.Constant() | tree.String() | tree.Wide() | tree.TrueDivision() | tree.ByKind():
            return value
        case tree.Binary(operator=symbol) if symbol in ARITHMETIC:
            return value
        case tree.Name(name=name) if name.startswith("$"):
            return value
        case _:
            return tree.Wide(value, value.at)


def is_simple(value: tree.Expression) -> bool:
    """Tell whether a value costs so little that it may be written twice."""
    match value:
        case tree.Constant() | tree.Name():
            return True
        case tree.Member(record=inner) | tree.Wide(value=inner):
            return is_simple(inner)
        case tree.Subscript(array=array, index=index):
            return is_simple(array) and is_simple(index)
        case _:
            return False


def once(
    value: tree.Expression, name: Callable[[], str], body: Callable[[tree.Expression], tree.Expression]
) -> tree.Expression:
    """Return what `body` makes of a value of which it may use several copies."""
    if is_simple(value):
        return body(value)
    hidden = name()
    return tree.Let(hidden, wide(value), body(tree.Name(hidden, value.at)), value.at)


def binary(symbol: str, left: tree.Expression, right: tree.Expression, at: "Position") -> tree.Expression:
    """Return `+ - * & | ^ << >>`, which mean the same in both languages, or C's `/` and `%`."""
    return tree.Binary(symbol, wide(left), wide(right), at)


def floor_division(left: tree.Expression, right: tree.Expression, at: "Position") -> tree.Expression:
    """Return `left // right` of two simple values."""
    floating = tree.Call("floor", (tree.TrueDivision(wide(left), wide(right), at),), at)
    quotient = binary("/", left, right, at)
    bits = _power_of_two(right)
    if bits is not None:
        down = binary(">>", left, tree.Constant(bits, INT64, at), at)
    else:
        less = binary("-", quotient, tree.Constant(1, INT64, at), at)
        down = tree.Conditional(_rounded_up(left, right, at), less, quotient, at)
    return tree.ByKind(binary("+", left, right, at), down, floating, at)


def remainder(left: tree.Expression, right: tree.Expression, at: "Position") -> tree.Expression:
    """Return `left % right` of two simple values; floats are refused."""
    both = binary("+", left, right, at)
    message = "`%` is for integers; for floats write `fmod(a, b)`, whose result has the sign of `a`"
    rest = binary("%", left, right, at)
    if _power_of_two(right) is not None and isinstance(right, tree.Constant):
        down = binary("&", left, tree.Constant(int(right.value) - 1, INT64, at), at)
    else:
        more = binary("+", rest, right, at)
        down = tree.Conditional(_rounded_up(left, right, at), more, rest, at)
    return tree.ByKind(both, down, tree.Fitting(INT64, both, message, at), at)


def absolute(value: tree.Expression, at: "Position") -> tree.Expression:
    """Return `abs(value)` of a simple value."""
    negative = tree.Binary("<", wide(value), tree.Constant(0, INT64, at), at)
    whole = tree.Conditional(negative, tree.Unary("-", wide(value), at), wide(value), at)
    return tree.ByKind(wide(value), whole, tree.Call("fabs", (value,), at), at)


def extreme(symbol: str, first: tree.Expression, second: tree.Expression, at: "Position") -> tree.Expression:
    """Return `min` (with `<`) or `max` (with `>`) of two simple values: the first unless the second is beyond it."""
    beyond = tree.Binary(symbol, wide(second), wide(first), at)
    return tree.Conditional(beyond, wide(second), wide(first), at)


def _rounded_up(left: tree.Expression, right: tree.Expression, at: "Position") -> tree.Expression:
    """Return the test whether C's division has rounded up: there is a remainder, with another sign than the divisor."""
    zero = tree.Constant(0, INT64, at)
    rest = binary("%", left, right, at)
    if isinstance(right, tree.Constant) and right.value > 0:
        return tree.Binary("<", rest, zero, at)
    signs_differ = tree.Binary("!=", tree.Binary("<", rest, zero, at), tree.Binary("<", wide(right), zero, at), at)
    return tree.Binary("&&", tree.Binary("!=", rest, zero, at), signs_differ, at)


def _power_of_two(value: tree.Expression) -> int | None:
    """Return which power of two a constant is, None if it is none."""
    if not isinstance(value, tree.Constant) or not isinstance(value.value, int):
        return None
    number = value.value
    return number.bit_length() - 1 if 0 < number <= INT64.largest and number & (number - 1) == 0 else None
