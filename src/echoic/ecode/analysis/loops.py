"""The loop prover: how often a counting loop turns at most.

This is the only proof that the safety of a source rests on: a loop proved here burns no fuel. So it proves little, and
that little in plain integers. A loop is proved if

    for (i = START; i < LIMIT; i += STEP) body         also <= > >= !=, LIMIT > i, i = i + STEP, i++, i, several steps

    the counter is an integer variable that only START and STEP assign, neither the body nor the test
    STEP is a constant; START and LIMIT are constants, or lie in known intervals (`intervals`) that bound the count
    every value that the counter has on its way, and the one that ends the loop, fits every type on the way:
      the counter's own (an int8 wraps at 127), those of promotions, and the one in which the test compares
    for `!=`, a counter that does not jump over the limit

`continue` goes to the step, so it changes nothing; `break` and `return` only make a loop shorter. A count that rests on
an interval is accepted up to `TURNS_MAX_UNEXACT`: that a 32-bit length is less than 2**31 is no proof of anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from echoic.ecode.analysis.intervals import Interval, Ranges, fits
from echoic.ecode.analysis.traversal import assigned_variables
from echoic.ecode.numbers import Number, convert
from echoic.ecode.typed import (
    Arithmetic,
    Assign,
    Block,
    Compare,
    Constant,
    Convert,
    Declare,
    Evaluate,
    Load,
    Local,
    Loop,
    Sequence,
    Statement,
    Update,
    Value,
    Variable,
)

if TYPE_CHECKING:
    from echoic.ecode.typed import Place

__all__ = ["Counted", "prove"]

TURNS_MAX_UNEXACT: Final = 4096
FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Counted:
    """A proved loop: at most `turns` turns, in which the counter lies in `inside`.

    `reached` is `inside` with the value that ends the loop. If `exact`, the counter starts at `start`, the loop turns
    just `turns` times unless it is left early, and neither its test nor its step do anything but count.
    """

    turns: int
    counter: Variable | None
    inside: Interval
    reached: Interval
    exact: bool
    start: int
    step: int


@dataclass(frozen=True, slots=True)
class _Course:
    """The counter of a loop without its types: whole numbers going up from `start` until they are not below `limit`."""

    turns: int
    inside: Interval
    reached: Interval


def prove(loop: Loop, ranges: Ranges) -> Counted | None:
    """Return what is proved about a loop, None if that is nothing.

    Args:
        loop: The loop.
        ranges: The intervals that hold where the loop stands.
    """
    if isinstance(loop.test, Constant) and not loop.test.value:
        return Counted(0 if loop.test_first else 1, None, (0, 0), (0, 0), exact=False, start=0, step=0)
    if loop.test is None or loop.step is None or not loop.test_first or loop.before is None:
        return None
    found = _test(loop.test, ranges)
    if found is None:
        return None
    operator, passed, limit = found
    counter = passed.variable
    if counter.number.floating or counter in assigned_variables(loop.body) | assigned_variables(loop.test):
        return None
    start = _start(loop.before, counter, ranges)
    step = _step(loop.step, counter)
    if start is None or step is None:
        return None
    course = _course(operator, start, limit, step.by)
    if course is None or not all(fits(course.reached, number) for number in (*passed.types, *step.types)):
        return None
    if (start[0] != start[1] or limit[0] != limit[1]) and course.turns > TURNS_MAX_UNEXACT:
        return None
    exact = start[0] == start[1] and _only_compares(loop.test) and not isinstance(loop.step, Sequence)
    return Counted(course.turns, counter, course.inside, course.reached, exact, start[0], step.by)


@dataclass(frozen=True, slots=True)
class _Passed:
    """A variable that is read, and the types that its value passes through."""

    variable: Variable
    types: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """By how much a step changes the counter, if all its values fit these types."""

    by: int
    types: tuple[Number, ...]


def _passed(value: Value) -> _Passed | None:
    """Return the variable that a value reads through conversions only."""
    types = []
    while isinstance(value, Convert):
        types.append(value.number)
        value = value.value
    if isinstance(value, Load) and _is_plain(value.place):
        return _Passed(value.place.variable, (value.place.variable.number, *types))  # type: ignore[union-attr] # plain
    return None


def _is_plain(place: "Place") -> bool:
    """Tell whether a place is a variable that is no array."""
    return isinstance(place, Local) and not place.variable.dimensions


def _constant(value: Value) -> int | None:
    """Return the integer that a value always is."""
    if isinstance(value, Convert):
        inner = _constant(value.value)
        return None if inner is None or value.number.floating else int(convert(inner, value.number))
    if isinstance(value, Constant) and not value.number.floating:
        return int(value.value)
    return None


def _test(test: Value, ranges: Ranges) -> tuple[str, _Passed, Interval] | None:
    """Return a test as operator, counter and the interval of the limit."""
    if not isinstance(test, Compare):
        passed = _passed(test)
        return None if passed is None else ("!=", passed, (0, 0))
    if test.operator not in FLIPPED:
        return None
    for operator, one, other in (
        (test.operator, test.left, test.right),
        (FLIPPED[test.operator], test.right, test.left),
    ):
        passed, limit = _passed(one), ranges.of(other)
        if passed is not None and limit is not None and not passed.variable.dimensions:
            reads_itself = _passed(other)
            if reads_itself is None or reads_itself.variable is not passed.variable:
                return operator, passed, limit
    return None


def _only_compares(test: Value) -> bool:
    """Tell whether a test compares the counter with a constant, and does nothing else."""
    return not isinstance(test, Compare) or _constant(test.left) is not None or _constant(test.right) is not None


def _start(before: Statement, counter: Variable, ranges: Ranges) -> Interval | None:
    """Return what the statement before the loop leaves in the counter."""
    match before:
        case Declare(variable=variable, values=values) if variable is counter:
            return ranges.of(values[0]) if values else (0, 0)
        case Evaluate(value=value):
            return _last_assigned(value, counter, ranges)
        case Block(statements=statements) if statements:
            *earlier, last = statements
            if counter in assigned_variables(last):
                return _start(last, counter, ranges)
            return _start(Block(tuple(earlier), before.at), counter, ranges)
        case _:
            return None


def _last_assigned(value: Value, counter: Variable, ranges: Ranges) -> Interval | None:
    for part in reversed(list(_parts(value))):
        if isinstance(part, Assign) and _is_plain(part.place) and _variable(part.place) is counter:
            return None if counter in assigned_variables(part.value) else ranges.of(part.value)
        if counter in assigned_variables(part):
            return None
    return None


def _parts(value: Value) -> Iterator[Value]:
    """Yield what stands between commas."""
    if isinstance(value, Sequence):
        yield from _parts(value.first)
        yield from _parts(value.second)
    else:
        yield value


def _variable(place: "Place") -> Variable | None:
    return place.variable if isinstance(place, Local) else None


def _step(step: Value, counter: Variable) -> _Step | None:
    """Return what a step does to the counter; among several parts only one may touch it."""
    parts = [part for part in _parts(step) if counter in assigned_variables(part)]
    if len(parts) != 1:
        return None
    match parts[0]:
        case Update(place=place, operator="+" | "-" as operator, value=value, computed=computed) if _is_plain(place):
            by = _constant(value)
            if by is None or _variable(place) is not counter:
                return None
            return _Step(by if operator == "+" else -by, (counter.number, computed))
        case Assign(place=place, value=value) if _is_plain(place) and _variable(place) is counter:
            return _assigned_step(value, counter)
        case _:
            return None


def _assigned_step(value: Value, counter: Variable) -> _Step | None:
    """Return the step of `i = i + 1` or `i = 1 + i` or `i = i - 1`."""
    types = [counter.number]
    while isinstance(value, Convert):
        types.append(value.number)
        value = value.value
    if not isinstance(value, Arithmetic) or value.operator not in ("+", "-"):
        return None
    types.append(value.number)
    passed, by = _passed(value.left), _constant(value.right)
    if passed is None and value.operator == "+":
        passed, by = _passed(value.right), _constant(value.left)
    if passed is None or by is None or passed.variable is not counter:
        return None
    return _Step(by if value.operator == "+" else -by, (*types, *passed.types))


def _course(operator: str, start: Interval, limit: Interval, by: int) -> _Course | None:
    """Return how the counter runs, in whole numbers that never wrap."""
    if operator in (">", ">="):
        course = _course(FLIPPED[operator], (-start[1], -start[0]), (-limit[1], -limit[0]), -by)
        return course and _Course(course.turns, _mirrored(course.inside), _mirrored(course.reached))
    if operator == "<=":
        return _course("<", start, (limit[0] + 1, limit[1] + 1), by)
    if operator == "!=":
        return _exact_course(start, limit, by)
    if start[0] >= limit[1]:
        return _Course(0, start, start)
    if by <= 0:
        return None
    turns = -((start[0] - limit[1]) // by)
    if start[0] == start[1] and limit[0] == limit[1]:
        last = start[0] + (turns - 1) * by
        return _Course(turns, (start[0], last), (start[0], last + by))
    last = limit[1] - 1
    return _Course(turns, (start[0], last), (start[0], max(start[1], last + by)))


def _exact_course(start: Interval, limit: Interval, by: int) -> _Course | None:
    """Return how a counter runs that stops at its limit only."""
    if start[0] != start[1] or limit[0] != limit[1]:
        return None
    distance = limit[0] - start[0]
    if distance == 0:
        return _Course(0, start, start)
    if by == 0 or distance % by or distance // by < 0:
        return None
    last = limit[0] - by
    inside = (min(start[0], last), max(start[0], last))
    return _Course(distance // by, inside, (min(start[0], limit[0]), max(start[0], limit[0])))


def _mirrored(interval: Interval) -> Interval:
    return -interval[1], -interval[0]
