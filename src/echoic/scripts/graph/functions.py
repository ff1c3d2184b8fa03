"""The functions of the language: what can stand in `:=`, `if`, times, and the arguments of `create`.

    truth      not and or equal not-equal
    integers   add sub mul div mod abs less less-equal greater greater-equal   of any size; `div` rounds to zero
    reals      radd rsub rmul rdiv rabs rless rless-equal rgreater rgreater-equal
               sin cos atan atan2 exp log log10 sqrt int-to-real real-to-int
    lists      first next size join index replace                                  `index` counts from 1
    tables     get put                      lists of pairs [key,value]
    multisets  member subset diff inter     an element counts as often as it is there
    terms      is-bool is-int is-real is-str is-bstr is-appl is-list is-empty is-formal fun args
    strings    concat
    time       sec msec                     seconds, as an integer or a real

A function that has no answer gives `undefined` (`first([])`, `index` and `get` on a miss, `fun` and `args` of what is
no application), `next([])` is `[]`, and `replace` out of range leaves the list as it is. What has no meaning,
division by zero or an argument of another kind, raises `ArithmeticError` or `ValueError`: the atom is then not
enabled.

References are as good as their values where only the kind, the name or the number of parts matters, and where they are
passed on as elements, keys or values; a function that has to look into one raises `ValueNeeded`.

Results are limited, so that no script can ask for all memory there is: integers to a million bits, strings to 16
million characters, lists to a million elements.

`process-id`, `process-name`, `current-time`, `functions`, `get-property`, `quote`, `is-var` and `is-result-var` need
more than the values of their arguments, see `expressions.py`; their signatures are here.
"""

import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from echoic.terms import (
    UNDEFINED,
    Annotated,
    Placeholder,
    Reference,
    Term,
    TermList,
    Value,
    ValueNeeded,
    plain,
    present,
    same,
)

__all__ = ["EVALUATION_ERRORS", "FUNCTIONS", "Function", "wrap_int32"]

COUNTING: Final = frozenset({"size"})
"""Functions whose lists may be references: how many elements they have is all that is asked."""

EVALUATION_ERRORS: Final = (ArithmeticError, ValueError)
"""What a function raises where it has no meaning."""

INTEGER_BITS_MAX: Final = 1_000_000
STRING_LENGTH_MAX: Final = 16_000_000
ELEMENTS_MAX: Final = 1_000_000

BOOL: Final = Term("bool")
INT: Final = Term("int")
REAL: Final = Term("real")
STR: Final = Term("str")
LIST: Final = Term("list")
ANY: Final = Term("term")
KINDS: Final[Mapping[Term, type]] = {BOOL: bool, INT: int, REAL: float, STR: str, LIST: TermList, ANY: object}

Call: TypeAlias = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Function:
    """A function with the types of its parameters and of its result; what it does may be in `expressions.py`."""

    name: str
    parameters: tuple[Term, ...]
    result: Term
    call: Call

    @property
    def special(self) -> bool:
        """Whether it needs more than the values of its arguments."""
        return self.call is _special

    @property
    def kinds(self) -> tuple[type, ...]:
        """The Python types of its parameters; `object` where any will do."""
        return tuple(KINDS[parameter] for parameter in self.parameters)


def wrap_int32(number: Value) -> Value:
    """Return an integer as a machine word of 32 bits would have it, anything else as it is."""
    return (number + 2**31) % 2**32 - 2**31 if type(number) is int else number


def _special(*arguments: Value) -> Value:
    raise ValueError(f"a function of {len(arguments)} argument(s) that is not one of values")


def _multiply(one: int, other: int) -> int:
    if one.bit_length() + other.bit_length() > INTEGER_BITS_MAX:
        raise OverflowError(f"a product of more than {INTEGER_BITS_MAX} bits")
    return one * other


def _divide(one: int, other: int) -> int:
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _rest(one: int, other: int) -> int:
    return one - other * _divide(one, other)


def _first(elements: TermList) -> Value:
    return elements[0] if elements else UNDEFINED


def _next(elements: TermList) -> Value:
    return TermList(*elements.elements[1:])


def _join(one: Value, other: Value) -> Value:
    parts = _elements(one) + _elements(other)
    if len(parts) > ELEMENTS_MAX:
        raise OverflowError(f"a list of {len(parts)} elements, limit is {ELEMENTS_MAX}")
    return TermList(*parts)


def _elements(value: Value) -> tuple[Value, ...]:
    bare = value.value if isinstance(value, Annotated) else value
    if isinstance(bare, Reference) and bare.kind.type is TermList:
        raise ValueNeeded(bare)
    return bare.elements if isinstance(bare, TermList) else (value,)


def _size(elements: TermList | Reference) -> int:
    return elements.count if isinstance(elements, Reference) else len(elements)


def _index(elements: TermList, position: int) -> Value:
    return elements[position - 1] if 1 <= position <= len(elements) else UNDEFINED


def _replace(elements: TermList, position: int, value: Value) -> Value:
    if not 1 <= position <= len(elements):
        return elements
    parts = elements.elements
    return TermList(*parts[: position - 1], value, *parts[position:])


def _get(table: TermList, key: Value) -> Value:
    for pair in table:
        entry = _elements(pair)
        if len(entry) == 2 and same(entry[0], key):
            return entry[1]
    return UNDEFINED


def _put(table: TermList, key: Value, value: Value) -> Value:
    pairs = list(table)
    for position, pair in enumerate(pairs):
        entry = _elements(pair)
        if len(entry) == 2 and same(entry[0], key):
            pairs[position] = TermList(key, value)
            return TermList(*pairs)
    if len(pairs) >= ELEMENTS_MAX:
        raise OverflowError(f"a table of more than {ELEMENTS_MAX} pairs")
    return TermList(*pairs, TermList(key, value))


def _identity(value: Value) -> Hashable:
    """Return something that is equal for equal values only."""
    bare = present(plain(value))
    return (type(bare), bare.hex() if isinstance(bare, float) else bare)


def _member(value: Value, elements: TermList) -> bool:
    return any(same(value, element) for element in elements)


def _subset(one: TermList, other: TermList) -> bool:
    return Counter(map(_identity, one)) <= Counter(map(_identity, other))


def _difference(one: TermList, other: TermList) -> Value:
    return _sieve(one, other, kept=False)


def _intersection(one: TermList, other: TermList) -> Value:
    return _sieve(one, other, kept=True)


def _sieve(one: TermList, other: TermList, *, kept: bool) -> Value:
    """Return what another list has too, or, without `kept`, has not; each element of the other serves once."""
    left = Counter(map(_identity, other))
    parts = []
    for element in one:
        key = _identity(element)
        found = left[key] > 0
        if found:
            left[key] -= 1
        if found is kept:
            parts.append(element)
    return TermList(*parts)


def _concatenate(one: str, other: str) -> str:
    if len(one) + len(other) > STRING_LENGTH_MAX:
        raise OverflowError(f"a string of {len(one) + len(other)} characters, limit is {STRING_LENGTH_MAX}")
    return one + other


def _kind_of(value: Value) -> type:
    bare = plain(value)
    return bare.kind.type if isinstance(bare, Reference) else type(bare)


def _is(kind: type) -> Callable[[Value], bool]:
    return lambda value: _kind_of(value) is kind


def _is_empty(value: Value) -> bool:
    bare = plain(value)
    return bare is TermList() or (isinstance(bare, Reference) and bare.kind.type is TermList and not bare.count)


def _function_name(value: Value) -> Value:
    bare = plain(value)
    return bare.name if isinstance(bare, Term | Reference) and _kind_of(bare) is Term else UNDEFINED


def _arguments(value: Value) -> Value:
    bare = value.value if isinstance(value, Annotated) else value
    if isinstance(bare, Reference) and bare.kind.type is Term:
        raise ValueNeeded(bare)
    return TermList(*bare.args) if isinstance(bare, Term) else UNDEFINED


def _number(value: Value) -> int | float:
    bare = plain(value)
    if type(bare) is not int and type(bare) is not float:
        raise ValueError("a time is a number")
    return bare


def _milliseconds(value: Value) -> float:
    return _number(value) / 1000


def _real_quotient(one: float, other: float) -> float:
    return one / other


def _table() -> Mapping[str, Function]:
    groups: list[tuple[tuple[Term, ...], Term, dict[str, Call]]] = [
        ((BOOL,), BOOL, {"not": operator.not_}),
        ((BOOL, BOOL), BOOL, {"and": operator.and_, "or": operator.or_}),
        ((ANY, ANY), BOOL, {"equal": same, "not-equal": lambda one, other: not same(one, other)}),
        ((INT, INT), INT, {"add": operator.add, "sub": operator.sub, "mul": _multiply, "div": _divide, "mod": _rest}),
        ((INT,), INT, {"abs": operator.abs}),
        ((INT, INT), BOOL, {"less": operator.lt, "less-equal": operator.le}),
        ((INT, INT), BOOL, {"greater": operator.gt, "greater-equal": operator.ge}),
        ((REAL, REAL), REAL, {"radd": operator.add, "rsub": operator.sub, "rmul": operator.mul}),
        ((REAL, REAL), REAL, {"rdiv": _real_quotient, "atan2": math.atan2}),
        ((REAL,), REAL, {"rabs": operator.abs, "sin": math.sin, "cos": math.cos, "atan": math.atan, "exp": math.exp}),
        ((REAL,), REAL, {"log": math.log, "log10": math.log10, "sqrt": math.sqrt}),
        ((REAL, REAL), BOOL, {"rless": operator.lt, "rless-equal": operator.le}),
        ((REAL, REAL), BOOL, {"rgreater": operator.gt, "rgreater-equal": operator.ge}),
        ((INT,), REAL, {"int-to-real": float}),
        ((REAL,), INT, {"real-to-int": int}),
        ((LIST,), ANY, {"first": _first}),
        ((LIST,), LIST, {"next": _next}),
        ((LIST,), INT, {"size": _size}),
        ((ANY, ANY), LIST, {"join": _join}),
        ((LIST, INT), ANY, {"index": _index}),
        ((LIST, INT, ANY), LIST, {"replace": _replace}),
        ((LIST, ANY), ANY, {"get": _get}),
        ((LIST, ANY, ANY), LIST, {"put": _put}),
        ((ANY, LIST), BOOL, {"member": _member}),
        ((LIST, LIST), BOOL, {"subset": _subset}),
        ((LIST, LIST), LIST, {"diff": _difference, "inter": _intersection}),
        ((ANY,), BOOL, {"is-bool": _is(bool), "is-int": _is(int), "is-real": _is(float), "is-str": _is(str)}),
        ((ANY,), BOOL, {"is-bstr": _is(bytes), "is-appl": _is(Term), "is-list": _is(TermList)}),
        ((ANY,), BOOL, {"is-formal": _is(Placeholder), "is-empty": _is_empty}),
        ((ANY,), BOOL, {"is-var": _special, "is-result-var": _special}),
        ((ANY,), ANY, {"fun": _function_name, "args": _arguments, "quote": _special}),
        ((STR, STR), STR, {"concat": _concatenate}),
        ((ANY,), ANY, {"sec": _number, "msec": _milliseconds}),
        ((), LIST, {"current-time": _special, "functions": _special}),
        ((), INT, {"process-id": _special}),
        ((), STR, {"process-name": _special}),
        ((STR,), ANY, {"get-property": _special}),
    ]
    return {
        name: Function(name, parameters, result, call)
        for parameters, result, calls in groups
        for name, call in calls.items()
    }


FUNCTIONS: Final[Mapping[str, Function]] = _table()
"""All functions by name."""
