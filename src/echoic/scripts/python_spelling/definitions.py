"""Processes and whole scripts.

    @process
    def phil(left: Var[int], right: Var[int]) -> Behaviour:
        return loop(snd_msg(term.get(left)) >> ...)

    bus(phil(0, 1), phil(1, 0))

is

    process PHIL(Left : int, Right : int) is (snd-msg(get(Left)) . ...) * delta
    toolbus(PHIL(0, 1), PHIL(1, 0))

The function is called once, when the script is made, with its parameters as variables; processes may therefore mention
each other in any order. Its variables that no `let` declares are declared around its body.
"""

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, overload

from echoic.errors import RemoteError
from echoic.scripts.python_spelling.behaviours import Behaviour, Step
from echoic.scripts.python_spelling.builder import Builder, Found
from echoic.scripts.python_spelling.formulas import Formula, Operand, formula
from echoic.scripts.python_spelling.places import here, refusal, sources_of
from echoic.scripts.python_spelling.tools import ToolDeclaration
from echoic.scripts.python_spelling.variables import Bound, Result, Var
from echoic.scripts.syntax.nesting import check_nesting
from echoic.scripts.syntax.tree import (
    Call,
    ChannelNote,
    Configuration,
    Create,
    Formal,
    Let,
    Process,
    ProcessDefinition,
    Script,
    Span,
)
from echoic.terms import Value, parse_text

__all__ = ["Called", "Definition", "bus", "call", "create", "process"]

NAME: Final = re.compile(r"[A-Z_][A-Za-z0-9_-]*")
NO_NOTES: Final[Mapping[str, "Value"]] = MappingProxyType({})
Body: TypeAlias = Callable[..., Behaviour]


class Definition:
    """A process of a script; called with arguments, what `bus`, `create` and other processes do with it."""

    def __init__(self, name: str, body: Body, span: Span) -> None:
        if not NAME.fullmatch(name):
            raise refusal(
                span,
                f"`{name}` is not the name of a process: expected a capital letter, then letters, digits, `-`, `_`",
            )
        self.name: Final = name
        self.span: Final = span
        self.parameters: Final = tuple(_parameters(body, span))
        self._body = body

    def __call__(self, *arguments: Operand) -> "Called":
        """Return the process in place, with these arguments; `X.q` for those that bring a result back.

        Raises:
            ScriptError: It has another number of parameters.
        """
        span = here()
        if len(arguments) != len(self.parameters):
            raise refusal(span, f"process `{self.name}` has {len(self.parameters)} parameters, got {len(arguments)}")
        return Called(self, tuple(formula(each, span) for each in arguments), span)

    def build(self, found: Found) -> ProcessDefinition:
        """Return what the tree has of it, and what it mentions.

        Raises:
            ScriptError: It is not in order.
        """
        body = self._body(*self.parameters)
        if not isinstance(body, Behaviour):
            raise refusal(self.span, f"process `{self.name}` should return what it does, got `{type(body).__name__}`")
        builder = Builder(found)
        for each in self.parameters:
            if each.tool is not None:
                found.use_tool(each.tool)
        with builder.scope(self.parameters):
            tree: Process = builder.process(body)
        if builder.free:
            tree = Let(tuple(each.declaration for each in builder.free.values()), tree, tree.span)
        formals = tuple(Formal(each.name, each.type, isinstance(each, Result), each.span) for each in self.parameters)
        return ProcessDefinition(self.name, formals, tree, self.span)


class Called(Behaviour):
    """A process in place, with its arguments."""

    __slots__ = ("arguments", "definition")

    def __init__(self, definition: "Definition | Var[str]", arguments: tuple[Formula, ...], span: Span) -> None:
        self.definition = definition
        self.arguments = arguments
        self.span = span

    def build(self, builder: Builder) -> Process:
        """Return the call."""
        return self.tree(builder, evaluated=False)

    def tree(self, builder: Builder, *, evaluated: bool) -> Call:
        """Return the call, with arguments that are evaluated or not."""
        if isinstance(self.definition, Definition):
            builder.found.use_process(self.definition)
        else:
            builder.use_variable(self.definition, self.span)
        arguments = tuple(each.build(builder, self.span, evaluated=evaluated) for each in self.arguments)
        return Call(self.definition.name, arguments, self.span)


class Creation(Step):
    """`create(P(1), Pid?)`."""

    __slots__ = ("called", "result")

    def __init__(self, called: Called, result: Bound, span: Span) -> None:
        super().__init__("", (), span)
        self.called = called
        self.result = result

    def build(self, builder: Builder) -> Process:
        """Return the creation."""
        called = self.called.tree(builder, evaluated=True)
        result = self.result.build(builder, self.span, evaluated=False)
        return Create(called, result, self.built_timing(builder), self.span)


@overload
def process(body: Body, /) -> Definition: ...
@overload
def process(*, name: str = "") -> Callable[[Body], Definition]: ...
def process(body: Body | None = None, /, *, name: str = "") -> Definition | Callable[[Body], Definition]:
    """Make a function the definition of a process; its parameters have hints `Var[int]` or `Result[int]`.

    A parameter for a tool, or of a type that Python has no word for, says it as `Annotated[Var, calc]`. The script
    calls a process by the name of its function in capital letters, and a parameter by its own with one.

    Args:
        body: The function, which returns what the process does.
        name: Another name.

    Raises:
        ScriptError: It cannot be called so, or a parameter has no type.
    """
    span = here()
    if body is not None:
        return Definition(name or _process_name(body), body, span)
    return lambda function: Definition(name or _process_name(function), function, span)


def create(called: Called, instance: Bound) -> Step:
    """Return the step that starts a process beside this one: `create(worker(3), Pid.q)`; arguments are evaluated.

    Raises:
        ScriptError: It is not a process with its arguments.
    """
    span = here()
    if not isinstance(called, Called):
        raise refusal(span, f"expected a process with its arguments, got `{type(called).__name__}`")
    return Creation(called, instance, span)


def call(name: Var[str], *arguments: Operand) -> Behaviour:
    """Return the process that a variable names at that moment, in place; `bus` has to know it, by `also`."""
    span = here()
    return Called(name, tuple(formula(each, span) for each in arguments), span)


def bus(
    *started: Behaviour,
    also: Iterable[Definition | ToolDeclaration] = (),
    notes: Mapping[str, Value] = NO_NOTES,
) -> Script:
    """Return the script that starts processes: the same tree that T-script is parsed into.

    Args:
        started: The processes, with their arguments.
        also: Processes and tools that nothing mentions: those that `call` finds by name, and tools in types.
        notes: Notes that go to and come from channels, their patterns by the names of the channels:
            `{"prices": "price(<str>,<real>)"}`.

    Raises:
        ScriptError: Something is not in order; further checks come when a bus takes the script.
    """
    span = here()
    found = Found()
    calls = tuple(_started(each, found, span) for each in started)
    for each in also:
        found.use_tool(each) if isinstance(each, ToolDeclaration) else found.use_process(each)
    processes = tuple(each.build(found) for each in found.order)  # which grows meanwhile
    tools = tuple(each.definition for each in found.tools.values())
    bound = tuple(ChannelNote(channel, _pattern(pattern, span), span) for channel, pattern in notes.items())
    script = Script(processes, tools, (Configuration(calls, span),), sources_of([span.file, *found.files]), bound)
    check_nesting(script)
    return script


def _started(started: object, found: Found, span: Span) -> Call:
    if not isinstance(started, Called):
        advice = ": call it" if isinstance(started, Definition) else ""
        raise refusal(span, f"expected a process with its arguments, got `{type(started).__name__}`{advice}")
    return started.tree(Builder(found), evaluated=False)


def _pattern(pattern: Value, span: Span) -> Value:
    if not isinstance(pattern, str):
        return pattern
    try:
        return parse_text(pattern)
    except RemoteError as error:
        raise refusal(span, f"`{pattern}` is not the pattern of a note: {error}") from error


def _process_name(body: Body) -> str:
    name: str = getattr(body, "__name__", "")
    return name if name[:1].isupper() else name.upper()


def _parameters(body: Body, span: Span) -> Iterable[Var[object]]:
    try:
        hints = typing.get_type_hints(body, include_extras=True)
    except (NameError, TypeError) as error:
        raise refusal(span, f"the hints of `{getattr(body, '__name__', body)}` cannot be read: {error}") from error
    for each in inspect.signature(body).parameters.values():
        if each.kind not in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            raise refusal(span, f"parameter `{each.name}` of a process should have a place of its own")
        kind, hint = _hint(hints.get(each.name), each.name, span)
        yield kind(each.name[:1].upper() + each.name[1:], hint, span)


def _hint(hint: object, name: str, span: Span) -> tuple[type[Var[object]], object]:
    """Return which kind of variable a hint wants, and its type: `Var[int]`, `Result[int]`, `Annotated[Var, calc]`."""
    told: object = None
    if typing.get_origin(hint) is typing.Annotated:
        hint, told, *_ = typing.get_args(hint)
    kind = typing.get_origin(hint) or hint
    if kind is not Var and kind is not Result:
        raise refusal(span, f"parameter `{name}` has no type: write `{name}: Var[int]`, or `Result[int]` for a result")
    arguments = typing.get_args(hint)
    return (Var if kind is Var else Result), told if told is not None else (arguments[0] if arguments else object)
