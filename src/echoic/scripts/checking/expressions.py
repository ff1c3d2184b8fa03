"""The types of terms, where they are only filled in (`pattern_type`) and where they are evaluated (`value_type`).

Both report what is wrong with a term on the way. A term that is wrong has the type `term`, which fits everywhere, so
that one mistake is said once.
"""

from typing import Final

from echoic.scripts.checking.context import Context
from echoic.scripts.checking.signatures import ANY, BOOL, INT, REAL, SIGNATURES, STR
from echoic.scripts.checking.survey import Scope
from echoic.scripts.syntax.problems import counted, did_you_mean
from echoic.scripts.syntax.tree import Application, Constant, Expression, ListOf, PlaceholderOf, Variable
from echoic.scripts.syntax.writing import write_type
from echoic.terms import UNDEFINED, Placeholder, Term, TermList, Value
from echoic.terms.types import may_hold

__all__ = ["constant_type", "fits", "pattern_type", "quiet_type", "shown", "value_type"]

KIND_NAMES: Final = frozenset({"bool", "int", "real", "str", "bstr", "blob", "list", "term"})
INT32_END: Final = 1 << 31
LOOKS_AT_VARIABLES: Final = frozenset({"is-var", "is-result-var"})


def shown(type: Value) -> str:  # noqa: A002 - the word of the language
    """Return a type as messages show it."""
    return f"`{write_type(type)}`"


def fits(wanted: Value, offered: Value) -> bool:
    """Whether something of one type may be where another is wanted."""
    return offered is ANY or wanted is ANY or may_hold(wanted, offered)


def constant_type(value: Value) -> Value:
    """Return the type of a constant."""
    match value:
        case bool():
            return BOOL
        case int():
            return INT
        case float():
            return REAL
        case str():
            return STR
        case _:
            return ANY  # `undefined` is of every type


def applied_type(name: str, arguments: tuple[Value, ...]) -> Value:
    """Return the type of the terms `name(arguments)`; as types, names of kinds mean something else."""
    if name in KIND_NAMES or (name == UNDEFINED.name and not arguments):
        return ANY
    return Term(name, *arguments)


def quiet_type(expression: Expression, scope: Scope) -> Value:
    """Return the type of a term whose variables are filled in; nothing is reported."""
    match expression:
        case Constant(value):
            return constant_type(value)
        case Variable(name):
            declared = scope.find(name)
            return ANY if declared is None else _bare(declared.type)
        case Application(name, arguments):
            return applied_type(name, tuple(quiet_type(each, scope) for each in arguments))
        case ListOf(elements):
            return TermList(*(quiet_type(each, scope) for each in elements))
        case PlaceholderOf(type):
            return _bare(type)


def pattern_type(expression: Expression, scope: Scope, context: Context) -> Value:
    """Return the type of a term whose variables are filled in or bound."""
    _check_leaves(expression, scope, context)
    return quiet_type(expression, scope)


def value_type(expression: Expression, scope: Scope, context: Context) -> Value:
    """Return the type of what a term is evaluated to."""
    match expression:
        case Variable(name, True):
            _check_leaves(expression, scope, context)
            context.error(
                expression.span, f"a term is evaluated here, nothing can be bound: write `{name}`, not `{name}?`"
            )
            return ANY
        case Application(name, arguments) if arguments or name in SIGNATURES:
            return _call_type(expression, scope, context)
        case ListOf(elements):
            return TermList(*(value_type(each, scope, context) for each in elements))
        case _:
            return pattern_type(expression, scope, context)


def _call_type(call: Application, scope: Scope, context: Context) -> Value:
    name = call.name
    signature = SIGNATURES.get(name)
    if signature is None:
        advice = did_you_mean(name, SIGNATURES) or f": to make a term, write `quote({name}(...))`"
        context.error(call.span, f"function `{name}` is not defined{advice}")
        for argument in call.arguments:
            _check_leaves(argument, scope, context)
        return ANY
    if len(call.arguments) != len(signature.arguments):
        wanted = counted(len(signature.arguments), "argument")
        context.error(call.span, f"function `{name}` has {wanted}, got {len(call.arguments)}")
        for argument in call.arguments:
            _check_leaves(argument, scope, context)
        return signature.result
    if name == "quote" or name in LOOKS_AT_VARIABLES:
        made = pattern_type(call.arguments[0], scope, context)
        if name == "quote":
            _refuse_results(call.arguments[0], context)
            return made
        return signature.result
    for number, (argument, wanted_type) in enumerate(zip(call.arguments, signature.arguments, strict=True), 1):
        offered = value_type(argument, scope, context)
        if not fits(wanted_type, offered):
            expected = f"should be {shown(wanted_type)}, got {shown(offered)}"
            context.error(argument.span, f"argument {number} of function `{name}` {expected}")
    return signature.result


def _check_leaves(expression: Expression, scope: Scope, context: Context) -> None:
    """Report variables that nobody declared, value formals that are bound, and integers that used to be too large."""
    match expression:
        case Variable(name, result):
            declared = scope.find(name)
            if declared is None:
                advice = did_you_mean(name, scope.names)
                if not advice and name in context.processes:
                    advice = ": it is the name of a process"
                context.error(expression.span, f"variable `{name}` is not declared{advice}")
            elif result:
                warn_of_value_formal(name, expression, scope, context)
        case Application(_, inner) | ListOf(inner):
            for each in inner:
                _check_leaves(each, scope, context)
        case Constant(int() as value) if not -INT32_END <= value < INT32_END:
            context.warn(expression.span, "this integer has more than 32 bits, which the original ToolBus cuts off")
        case Constant() | PlaceholderOf():
            pass


def warn_of_value_formal(name: str, at: Variable, scope: Scope, context: Context) -> None:
    """Warn where something is stored in a formal that brings no result back."""
    declared = scope.find(name)
    if getattr(declared, "result", True) is False:
        context.warn(at.span, f"formal `{name}` has no `?`: what is assigned to it does not reach the caller")


def _refuse_results(expression: Expression, context: Context) -> None:
    match expression:
        case Variable(name, True):
            context.error(
                expression.span, f"a term is evaluated here, nothing can be bound: write `{name}`, not `{name}?`"
            )
        case Application(_, inner) | ListOf(inner):
            for each in inner:
                _refuse_results(each, context)
        case _:
            pass


def _bare(type: Value) -> Value:  # noqa: A002 - the word of the language
    """Return a type without the brackets of a placeholder around it."""
    while isinstance(type, Placeholder):
        type = type.type  # noqa: A001 - the word of the language
    return type
