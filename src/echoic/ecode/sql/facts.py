"""What a condition says about zero.

Code that divides by a field looks at it first. Where it has done so, the division cannot fault:

    input.lots != 0 && input.volume / input.lots > 5
    if (input.lots <= 0) return 0; ...

Facts are about what variables and fields held when the test was made, spelled as SQL over the row, so they hold
wherever their way leads, whatever is assigned later. A test that assigns something itself says nothing.
"""

from typing import Final

from echoic.ecode.analysis.traversal import walk
from echoic.ecode.typed import Assign, Compare, Constant, Convert, Load, Logical, Not, Update, Value

__all__ = ["nonzero_if"]

OPPOSITE: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED: Final = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def nonzero_if(test: Value, *, holds: bool) -> list[Value]:
    """Return values that are not zero if a test holds, or if it does not."""
    if any(isinstance(node, Assign | Update) for node in walk(test)):
        return []
    return _nonzero(test, holds=holds)


def _nonzero(test: Value, *, holds: bool) -> list[Value]:
    match test:
        case Not():
            return _nonzero(test.value, holds=not holds)
        case Logical() if (test.operator == "&&") == holds:
            return [*_nonzero(test.left, holds=holds), *_nonzero(test.right, holds=holds)]
        case Compare():
            return _compared(test, holds=holds)
        case Load() | Convert() if holds and _plain(test):
            return [test]
        case _:
            return []


def _compared(test: Compare, *, holds: bool) -> list[Value]:
    operator, left, right = test.operator, test.left, test.right
    if isinstance(left, Constant):
        operator, left, right = MIRRORED[operator], right, left
    if not isinstance(right, Constant) or left.number.floating or not _plain(left):
        return []
    if not holds:
        operator = OPPOSITE[operator]
    limit = right.value
    excluded = {
        "!=": limit == 0,
        "==": limit != 0,
        ">": limit >= 0,
        ">=": limit > 0,
        "<": limit <= 0,
        "<=": limit < 0,
    }
    return [left] if excluded[operator] else []


def _plain(value: Value) -> bool:
    """Tell whether a value is an integer that lies somewhere, perhaps converted."""
    while isinstance(value, Convert):
        value = value.value
    return isinstance(value, Load) and not value.number.floating
