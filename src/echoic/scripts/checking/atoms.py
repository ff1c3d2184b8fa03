"""Whether atoms have the arguments they need.

atom                       arguments
printf(F, T, ...)          F is a string
execute(t(T, ...), X?)     t is a tool, and X a variable for it
rec-connect(X?)            the type of X is a tool
snd-eval(X, f(T, ...))     so it is for all atoms of tools; what is evaluated, done or answered is an application
subscribe(T)               nothing can be bound
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from echoic.scripts.checking.calls import check_arguments
from echoic.scripts.checking.expressions import fits, pattern_type, quiet_type, shown, value_type
from echoic.scripts.checking.signatures import ANY, BOOL, INT, LIST, REAL, STR
from echoic.scripts.syntax.nesting import walk
from echoic.scripts.syntax.problems import counted, did_you_mean
from echoic.scripts.syntax.tree import Application, Atom, Expression, ListOf, Timing, Variable
from echoic.terms import Term, TermList, Value

if TYPE_CHECKING:
    from echoic.scripts.checking.context import Context
    from echoic.scripts.checking.survey import Scope

__all__ = ["check_atom", "check_timing", "tool_of"]

ARGUMENTS: Final[dict[str, tuple[int, int | None]]] = {
    "delta": (0, 0),
    "tau": (0, 0),
    "printf": (1, None),
    "read": (2, 2),
    "snd-msg": (1, None),
    "rec-msg": (1, None),
    "snd-note": (1, 1),
    "rec-note": (1, 1),
    "no-note": (1, 1),
    "subscribe": (1, 1),
    "unsubscribe": (1, 1),
    "execute": (2, 2),
    "rec-connect": (1, 1),
    "rec-disconnect": (1, 1),
    "snd-eval": (2, 2),
    "rec-value": (2, 2),
    "snd-do": (2, 2),
    "snd-cancel": (1, 1),
    "rec-event": (2, None),
    "snd-ack-event": (2, 3),
    "rec-request": (2, 2),
    "snd-response": (2, 2),
    "snd-terminate": (2, 2),
    "snd-kill": (2, 2),
    "get-perf-stats": (1, 1),
    "rec-perf-stats": (2, 2),
    "shutdown": (1, 1),
}
"""How many arguments an atom has, at least and at most."""

FOR_TOOLS: Final = frozenset(
    {
        "rec-connect",
        "rec-disconnect",
        "snd-eval",
        "rec-value",
        "snd-do",
        "snd-cancel",
        "rec-event",
        "snd-ack-event",
        "rec-request",
        "snd-response",
        "snd-terminate",
        "snd-kill",
        "get-perf-stats",
        "rec-perf-stats",
    }
)
OF_APPLICATIONS: Final = frozenset({"snd-eval", "snd-do", "rec-value"})
SENT: Final = frozenset(
    {"snd-eval", "snd-do", "snd-ack-event", "snd-response", "snd-terminate", "snd-kill", "shutdown"}
)
CLOSED: Final = frozenset({"snd-note", "subscribe", "unsubscribe", "printf"})
DIRECTIVE: Final = re.compile(r"%[-+ #0]*(?:[1-9][0-9]*)?(?:\.[0-9]+)?[A-Za-z%]")
MOMENT_MIN: Final = 3
MOMENT_MAX: Final = 6


def check_atom(atom: Atom, scope: "Scope", context: "Context") -> None:
    """Check the arguments of an atom; its timing is another matter."""
    for argument in atom.arguments:
        pattern_type(argument, scope, context)
    fewest, most = ARGUMENTS[atom.name]
    if len(atom.arguments) < fewest or (most is not None and len(atom.arguments) > most):
        wanted = counted(fewest, "argument") if fewest == most else f"at least {counted(fewest, 'argument')}"
        if most is not None and most > fewest:
            wanted = f"{fewest} to {most} arguments"
        context.error(atom.span, f"`{atom.name}` has {wanted}, got {len(atom.arguments)}")
        return
    if atom.name == "printf":
        _check_format(atom, scope, context)
    elif atom.name == "execute":
        _check_execute(atom, scope, context)
    elif atom.name == "read" and not fits(STR, given := quiet_type(atom.arguments[0], scope)):
        context.error(atom.arguments[0].span, f"the first argument of `read` should be a string, got {shown(given)}")
    elif atom.name in FOR_TOOLS:
        _check_tool_atom(atom, scope, context)
    _check_results(atom, context)


def _check_format(atom: Atom, scope: "Scope", context: "Context") -> None:
    text = atom.arguments[0]
    given = quiet_type(text, scope)
    if not fits(STR, given):
        context.error(text.span, f"the first argument of `printf` should be a string, got {shown(given)}")
    value = getattr(text, "value", None)
    if isinstance(value, str):
        wanted = sum(directive != "%%" for directive in DIRECTIVE.findall(value))
        offered = len(atom.arguments) - 1
        if wanted != offered:
            context.warn(text.span, f"the text of `printf` has {counted(wanted, 'place')} for terms, got {offered}")


def _check_execute(atom: Atom, scope: "Scope", context: "Context") -> None:
    tool, result = atom.arguments
    if not isinstance(tool, Application):
        context.error(tool.span, "the first argument of `execute` should be a tool")
        return
    if tool.name not in context.tools:
        context.error(tool.span, f"tool `{tool.name}` is not defined{did_you_mean(tool.name, context.tools)}")
        return
    check_arguments(tool, scope, context)
    if not isinstance(result, Variable) or not result.result:
        context.error(result.span, "the second argument of `execute` should be a variable with `?`")
    elif not _is_of(tool.name, given := quiet_type(result, scope)):
        context.error(result.span, f"the second argument of `execute` should be `{tool.name}`, got {shown(given)}")


def _is_of(tool: str, type: Value) -> bool:  # noqa: A002 - the word of the language
    """Whether a variable of this type is for a tool; one that nobody declared has been reported already."""
    return type is ANY or (isinstance(type, Term) and type.name == tool)


def tool_of(atom: Atom, scope: "Scope", context: "Context") -> str:
    """Return the tool that an atom is about, empty where it is about none that is defined."""
    if not atom.arguments:
        return ""
    if atom.name == "execute":
        first = atom.arguments[0]
        return first.name if isinstance(first, Application) and first.name in context.tools else ""
    if atom.name not in FOR_TOOLS or not isinstance(atom.arguments[0], Variable):
        return ""
    given = quiet_type(atom.arguments[0], scope)
    return given.name if isinstance(given, Term) and given.name in context.tools else ""


def _check_tool_atom(atom: Atom, scope: "Scope", context: "Context") -> None:
    first = atom.arguments[0]
    if not isinstance(first, Variable):
        context.error(first.span, f"the first argument of `{atom.name}` should be a variable for a tool")
    elif (declared := scope.find(first.name)) is not None:
        given = quiet_type(first, scope)
        if not isinstance(given, Term) or given.name not in context.tools:
            advice = did_you_mean(given.name, context.tools) if isinstance(given, Term) else ""
            problem = f"the first argument of `{atom.name}` should be a variable for a tool, got {shown(declared.type)}"
            context.error(first.span, f"{problem}{advice}")
        elif atom.name == "rec-connect" and not first.result:
            context.error(first.span, f"the argument of `rec-connect` should have a `?`: write `{first.name}?`")
        elif first.result and atom.name not in ("rec-connect", "rec-disconnect"):
            context.error(first.span, f"the first argument of `{atom.name}` is known: write `{first.name}`")
    if atom.name in OF_APPLICATIONS and not _may_be_application(atom.arguments[1], scope):
        given = quiet_type(atom.arguments[1], scope)
        message = f"the second argument of `{atom.name}` should be an application, got {shown(given)}"
        context.error(atom.arguments[1].span, message)


def _may_be_application(argument: Expression, scope: "Scope") -> bool:
    if isinstance(argument, Application):
        return True
    given = quiet_type(argument, scope)
    if isinstance(argument, ListOf) or isinstance(given, TermList):
        return False
    return given not in (BOOL, INT, REAL, STR, LIST) and not (isinstance(given, Term) and given.name == LIST.name)


def _check_results(atom: Atom, context: "Context") -> None:
    """Report variables to be bound where nothing comes back."""
    for variable in _results(atom.arguments[1:] if atom.name in FOR_TOOLS else atom.arguments):
        if atom.name in CLOSED:
            message = f"nothing is bound by `{atom.name}`: write `{variable.name}`, not `{variable.name}?`"
            context.error(variable.span, message)
        elif atom.name in SENT:
            message = f"`{variable.name}?` is sent by `{atom.name}`, which binds nothing: write `{variable.name}`"
            context.warn(variable.span, message)


def _results(arguments: tuple[Expression, ...]) -> Iterator[Variable]:
    for argument in arguments:
        for node in walk(argument):
            if isinstance(node, Variable) and node.result:
                yield node


def check_timing(timing: tuple[Timing, ...], scope: "Scope", context: "Context") -> None:
    """Check delays and timeouts: a time in seconds, or three to six numbers of a date."""
    for each in timing:
        types = [value_type(argument, scope, context) for argument in each.arguments]
        absolute = each.kind.startswith("abs-")
        fewest, most = (MOMENT_MIN, MOMENT_MAX) if absolute else (1, 1)
        if not fewest <= len(types) <= most:
            wanted = f"{fewest} to {most} arguments" if absolute else "1 argument"
            context.error(each.span, f"`{each.kind}` has {wanted}, got {len(types)}")
            continue
        for number, (argument, given) in enumerate(zip(each.arguments, types, strict=True), 1):
            if not fits(INT, given) and (absolute or not fits(REAL, given)):
                wanted = "`int`" if absolute else "a number of seconds"
                context.error(
                    argument.span, f"argument {number} of `{each.kind}` should be {wanted}, got {shown(given)}"
                )
