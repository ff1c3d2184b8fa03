"""Whether calls fit what they call: processes in place, created and started ones, tools."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from echoic.scripts.checking.expressions import fits, pattern_type, quiet_type, shown, value_type
from echoic.scripts.checking.signatures import INT, SIGNATURES, STR
from echoic.scripts.checking.survey import EMPTY, Placed, Scope
from echoic.scripts.syntax.problems import did_you_mean
from echoic.scripts.syntax.tree import Application, Call, Create, Expression, Formal, Span, Variable
from echoic.terms import Value

if TYPE_CHECKING:
    from echoic.scripts.checking.context import Context

__all__ = ["check_arguments", "check_call", "check_configuration", "check_create", "check_recursion"]


def check_call(call: Call, scope: Scope, context: "Context") -> None:
    """Check a call in place, of a process or, by a variable, of whatever process it names."""
    declared = scope.find(call.name)
    if declared is not None:
        if not fits(STR, declared.type):
            problem = f"variable `{call.name}` is called, so its type should be `str`, got {shown(declared.type)}"
            context.error(call.span, problem)
        for argument in call.arguments:
            pattern_type(argument, scope, context)
        return
    types = [pattern_type(argument, scope, context) for argument in call.arguments]
    _check_process(call, types, context)


def check_create(create: Create, scope: Scope, context: "Context") -> None:
    """Check the creation of a process, whose arguments are evaluated, and where its id goes."""
    types = [
        pattern_type(argument, scope, context)
        if isinstance(argument, Variable) and argument.result
        else value_type(argument, scope, context)
        for argument in create.call.arguments
    ]
    _check_process(create.call, types, context)
    offered = pattern_type(create.result, scope, context)
    if not isinstance(create.result, Variable) or not create.result.result:
        context.error(create.result.span, "the second argument of `create` should be a variable with `?`")
    elif not fits(offered, INT):
        context.error(create.result.span, f"the second argument of `create` should be `int`, got {shown(offered)}")


def check_configuration(context: "Context") -> None:
    """Check what is started, and that something is."""
    for configuration in context.script.configurations:
        for call in configuration.calls:
            types = [_started_type(argument, context) for argument in call.arguments]
            _check_process(call, types, context)
    if not context.script.configurations:
        file = next((name for name in context.script.sources if not name.startswith("-D ")), "<script>")
        context.errors.report(file, 1, 1, "nothing is started: `toolbus(...)` is missing")


def _started_type(argument: Expression, context: "Context") -> Value:
    """Return the type of an argument of a process that is started; terms may stand there without `quote`."""
    if isinstance(argument, Application) and argument.name not in SIGNATURES:
        return pattern_type(argument, EMPTY, context)
    return value_type(argument, EMPTY, context)


def _check_process(call: Call, types: list[Value], context: "Context") -> None:
    definition = context.processes.get(call.name)
    if definition is None:
        advice = did_you_mean(call.name, context.processes)
        context.error(call.span, f"process `{call.name}` is not defined{advice}")
        return
    if not _check_number(call.name, len(definition.formals), len(types), call.span, context):
        return
    for number, (formal, argument, offered) in enumerate(
        zip(definition.formals, call.arguments, types, strict=True), 1
    ):
        _check_result_mark(f"argument {number} of `{call.name}`", formal, argument, context)
        wanted = formal.type
        if not (fits(wanted, offered) or (formal.result and fits(offered, wanted))):
            problem = f"argument {number} of `{call.name}` should be {shown(wanted)}, got {shown(offered)}"
            context.error(argument.span, problem)


def _check_result_mark(what: str, formal: Formal, argument: Expression, context: "Context") -> None:
    bound = isinstance(argument, Variable) and argument.result
    if formal.result and not bound:
        context.error(argument.span, f"{what} is a result: expected a variable with `?`")
    elif bound and not formal.result:
        context.error(
            argument.span, f"{what} is a value: expected no `?`, as `{formal.name}` has none where it is declared"
        )


def _check_number(name: str, wanted: int, given: int, span: Span, context: "Context") -> bool:
    if given == wanted:
        return True
    amount = "few" if given < wanted else "many"
    context.error(span, f"too {amount} arguments for `{name}`: expected {wanted}, got {given}")
    return False


def check_arguments(tool: Application, scope: Scope, context: "Context") -> None:
    """Check the arguments of a tool that is executed; the tool is defined."""
    formals = context.tools[tool.name].formals
    if not _check_number(tool.name, len(formals), len(tool.arguments), tool.span, context):
        return
    for number, (formal, argument) in enumerate(zip(formals, tool.arguments, strict=True), 1):
        offered = quiet_type(argument, scope)
        if not fits(formal.type, offered):
            problem = f"argument {number} of `{tool.name}` should be {shown(formal.type)}, got {shown(offered)}"
            context.error(argument.span, problem)


def check_recursion(placed: Iterable[Placed], context: "Context") -> None:
    """Report processes that call themselves, through others or not, with the way they do it.

    Calls by a variable are not followed: whom they call is known when they are made.
    """
    calls: dict[str, dict[str, Call]] = {name: {} for name in context.processes}
    for each in placed:
        if isinstance(each.node, Call) and each.node.name in calls and each.scope.find(each.node.name) is None:
            calls[each.process.name].setdefault(each.node.name, each.node)
    done: set[str] = set()
    for start, called in calls.items():
        if start in done:
            continue
        path: dict[str, None] = {start: None}  # from the start to here, in order
        waiting: list[Iterator[tuple[str, Call]]] = [iter(called.items())]
        while waiting:
            for name, call in waiting[-1]:
                if name in path:
                    context.error(call.span, f"recursive call: {_chain(list(path), name)}")
                elif name not in done:
                    path[name] = None
                    waiting.append(iter(calls[name].items()))
                    break
            else:
                waiting.pop()
                done.add(path.popitem()[0])


def _chain(path: list[str], name: str) -> str:
    """Return the way from a process to itself."""
    names = [*path[path.index(name) :], name]
    if len(names) == 2:
        return f"`{name}` calls itself; use `*` to repeat, or `create`"
    return " calls ".join(f"`{each}`" for each in names)
