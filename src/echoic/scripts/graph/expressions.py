"""Expressions become Python functions `(slots, instance) -> Value`.

Innermost first, everything is evaluated; a name without arguments is itself, and `quote(T)` only has its variables
replaced. Arguments are checked when a function is called: `add("a",1)` raises `ValueError` as division by zero raises
`ArithmeticError`, and whoever evaluates treats the atom as not enabled.

The common shapes, a variable and a constant, or two variables, have functions of their own, which look into the slots
themselves: a guarded assignment spends most of its time here.
"""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, cast

from echoic.errors import ScriptError
from echoic.scripts.graph.functions import COUNTING, FUNCTIONS, Function, wrap_int32
from echoic.scripts.graph.templates import Pattern, Slot, Slots, is_open, read, substitute
from echoic.scripts.syntax.tree import Application, Constant, Expression, ListOf, PlaceholderOf, Variable
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
)

__all__ = ["Evaluation", "Instance", "Options", "always", "compile_expression", "denied", "moment_of"]

SECOND_NS: Final = 1_000_000_000
EPOCH: Final = datetime.datetime(1970, 1, 1)  # in the zone of the caller
WRAPPED: Final = frozenset({"add", "sub", "mul", "div", "mod", "abs", "real-to-int"})


class Instance(Protocol):
    """What an expression may know about the process that evaluates it."""

    @property
    def number(self) -> int:
        """Its id."""

    @property
    def name(self) -> str:
        """The name it was created by."""

    def local_ns(self) -> int:
        """Return the time of day, from the first second of 1970 in the zone that dates are written in."""


Evaluation: TypeAlias = Callable[[Slots, Instance], Value]


@dataclass(frozen=True, slots=True)
class Options:
    """How scripts are compiled: whether integers wrap at 32 bits as in the originals, and what `get-property` finds."""

    int32: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


def always(value: Value) -> Evaluation:
    """Return what has this value whoever asks."""
    return lambda _slots, _instance: value


def denied(test: Evaluation) -> Evaluation:
    """Return what is true where a test is false, and only there."""
    return lambda slots, instance: test(slots, instance) is False


def moment_of(local_ns: int) -> datetime.datetime:
    """Return the date and time of a moment."""
    return EPOCH + datetime.timedelta(microseconds=local_ns // 1000)


def compile_expression(
    expression: Expression, pattern_of: Callable[[Expression], Pattern], options: Options
) -> Evaluation:
    """Return what evaluates an expression; `pattern_of` knows the variables.

    Raises:
        ScriptError: A function is unknown, or has another number of arguments.
    """
    match expression:
        case Application(name, arguments, _) if arguments or name in FUNCTIONS:
            return _application(expression, pattern_of, options)
        case ListOf(elements, _):
            parts = [compile_expression(element, pattern_of, options) for element in elements]
            return lambda slots, instance: TermList(*[part(slots, instance) for part in parts])
        case Constant() | Variable() | PlaceholderOf() | Application():
            return _reading(pattern_of(expression))
    raise AssertionError(expression)


def _reading(pattern: Pattern) -> Evaluation:
    if isinstance(pattern, Slot):
        slot, index = pattern, pattern.index
        if slot.fallback is not None:
            return lambda slots, _: read(slot, slots)

        def evaluate(slots: Slots, _: Instance) -> Value:
            value = slots[index]
            return UNDEFINED if value is None else value

        return evaluate
    if is_open(pattern):
        return lambda slots, _: substitute(pattern, slots)
    return always(cast("Value", pattern))


def _application(call: Application, pattern_of: Callable[[Expression], Pattern], options: Options) -> Evaluation:
    function = FUNCTIONS.get(call.name)
    if function is None or len(function.parameters) != len(call.arguments):
        wanted = "undefined" if function is None else f"wants {len(function.parameters)} argument(s)"
        place = call.span
        raise ScriptError(
            f"{place.file}:{place.line}:{place.column}: function `{call.name}` {wanted}",
            ((place.file, place.line, place.column, f"function `{call.name}` {wanted}"),),
        )
    if function.special:
        return _special(call, pattern_of, options)
    parts = [compile_expression(argument, pattern_of, options) for argument in call.arguments]
    if options.int32 and call.name in WRAPPED:
        wide = _calling(function, parts)
        return lambda slots, instance: wrap_int32(wide(slots, instance))
    if len(parts) == 2 and function.kinds[0] is function.kinds[1] and function.kinds[0] in (int, float):
        patterns = [pattern_of(a) if isinstance(a, Constant | Variable) else None for a in call.arguments]
        return _arithmetic(function, parts, patterns)
    return _calling(function, parts)


def _special(call: Application, pattern_of: Callable[[Expression], Pattern], options: Options) -> Evaluation:
    argument: Expression = call.arguments[0] if call.arguments else Constant(UNDEFINED, call.span)
    match call.name:
        case "quote":
            return _reading(pattern_of(argument))
        case "is-var" | "is-result-var":
            result = call.name == "is-result-var"
            return always(isinstance(argument, Variable) and argument.result is result)
        case "process-id":
            return lambda _, instance: instance.number
        case "process-name":
            return lambda _, instance: instance.name
        case "current-time":
            return lambda _, instance: _time_list(instance.local_ns())
        case "functions":
            return always(TermList(*map(Term, FUNCTIONS)))
        case "get-property":
            key = compile_expression(argument, pattern_of, options)
            return lambda slots, instance: options.properties.get(str(plain(present(key(slots, instance)))), UNDEFINED)
        case _:
            raise AssertionError(call.name)


def _time_list(local_ns: int) -> Value:
    at = moment_of(local_ns)
    return TermList(at.year - 1900, at.month, at.day, at.hour, at.minute, at.second)


def _checked(function: Function, values: list[Value]) -> Value:
    """Call a function with what is not of the right kinds as it is, but may be without annotations."""
    for position, (value, kind) in enumerate(zip(values, function.kinds, strict=True)):
        if kind is not object and type(value) is not kind:
            bare = value.value if isinstance(value, Annotated) else value
            if isinstance(bare, Reference) and bare.kind.type is kind:
                if function.name not in COUNTING:
                    raise ValueNeeded(bare)
            elif type(bare) is not kind:
                wanted = function.parameters[position]
                raise ValueError(
                    f"argument {position + 1} of `{function.name}` is to be `{wanted}`, and is {_short(bare)}"
                )
            values[position] = bare
    return function.call(*values)


def _short(value: Value) -> str:
    """Return a value for people, who do not want to read all of it."""
    match value:
        case Term() | TermList() | Placeholder() | Annotated():
            return f"`{value.name}`" if isinstance(value, Term) else f"a {type(value).__name__}"
        case _:
            return repr(value)[:100]


def _calling(function: Function, parts: list[Evaluation]) -> Evaluation:
    if len(parts) == 1:
        (only,) = parts
        return lambda slots, instance: _checked(function, [only(slots, instance)])
    return lambda slots, instance: _checked(function, [part(slots, instance) for part in parts])


def _arithmetic(function: Function, parts: list[Evaluation], patterns: list[Pattern | None]) -> Evaluation:
    """Return the evaluation of a function of two numbers of one kind."""
    kind, operation = function.kinds[0], function.call
    first, second = parts
    one, other = patterns
    if isinstance(one, Slot) and one.fallback is None:
        index = one.index
        if type(other) is kind:
            constant = other

            def with_constant(slots: Slots, instance: Instance) -> Value:
                value = slots[index]
                if type(value) is kind:
                    return operation(value, constant)
                return _checked(function, [first(slots, instance), second(slots, instance)])

            return with_constant

        def with_slot(slots: Slots, instance: Instance) -> Value:
            value, number = slots[index], second(slots, instance)
            if type(value) is kind and type(number) is kind:
                return operation(value, number)
            return _checked(function, [first(slots, instance), number])

        return with_slot

    def general(slots: Slots, instance: Instance) -> Value:
        value, number = first(slots, instance), second(slots, instance)
        if type(value) is kind and type(number) is kind:
            return operation(value, number)
        return _checked(function, [value, number])

    return general
