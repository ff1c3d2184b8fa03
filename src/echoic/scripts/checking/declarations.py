"""Whether names are declared once, and types are types."""

import difflib
from typing import TYPE_CHECKING, Final

from echoic.scripts.checking.survey import Scope
from echoic.scripts.syntax.tree import Declaration, Formal, Let, ProcessDefinition, ToolDefinition
from echoic.scripts.syntax.writing import write_type
from echoic.terms import Placeholder, Term, TermList, Value
from echoic.terms.types import is_type

if TYPE_CHECKING:
    from echoic.scripts.checking.context import Context

__all__ = ["check_declarations", "check_let"]

KINDS: Final = ("bool", "int", "real", "str", "list", "term", "blob", "bstr")
OTHER_WORDS: Final = {"string": "str", "integer": "int", "boolean": "bool", "float": "real", "double": "real"}
NEARNESS: Final = 0.8  # so that `item` is not taken for `term`
CHANNEL: Final = "channel"


def check_declarations(context: "Context", symbols: frozenset[str]) -> None:
    """Check the definitions of processes and tools; `symbols` are those that terms of the script have."""
    _check_once("process", context.script.processes, context)
    _check_once("tool", context.script.tools, context)
    for process in context.script.processes:
        _check_names("formal", process.formals, f"of process `{process.name}`", context)
        _check_types(process.formals, symbols, context)
    for tool in context.script.tools:
        _check_names("formal", tool.formals, f"of tool `{tool.name}`", context)
        _check_types(tool.formals, symbols, context)
        _check_features(tool, context)
    for note in context.script.channel_notes:
        if not note.channel:
            context.error(note.span, "a channel has a name")


def check_let(let: Let, scope: Scope, context: "Context", symbols: frozenset[str]) -> None:
    """Check what a `let` declares; `scope` is what is around it."""
    _check_names("variable", let.declarations, "in one `let`", context)
    _check_types(let.declarations, symbols, context)
    for each in let.declarations:
        hidden = scope.find(each.name)
        if hidden is not None:
            context.warn(each.span, f"variable `{each.name}` hides the one that is declared in line {hidden.span.line}")


def _check_once(
    kind: str, definitions: tuple[ProcessDefinition, ...] | tuple[ToolDefinition, ...], context: "Context"
) -> None:
    seen: dict[str, ProcessDefinition | ToolDefinition] = {}
    for each in definitions:
        first = seen.setdefault(each.name, each)
        if first is not each:
            place = f"line {first.span.line}" + f" of {first.span.file}" * (first.span.file != each.span.file)
            context.error(each.span, f"{kind} `{each.name}` is defined twice, first in {place}")


def _check_names(
    kind: str, declared: tuple[Formal, ...] | tuple[Declaration, ...], where: str, context: "Context"
) -> None:
    seen: set[str] = set()
    for each in declared:
        if each.name in seen:
            context.error(each.span, f"{kind} `{each.name}` is declared twice {where}")
        seen.add(each.name)


def _check_types(
    declared: tuple[Formal, ...] | tuple[Declaration, ...], symbols: frozenset[str], context: "Context"
) -> None:
    for each in declared:
        if not is_type(each.type):
            context.error(each.span, f"the type of `{each.name}` is none: `{write_type(each.type)}`")
            continue
        for name in _names(each.type):
            if name not in symbols and name not in KINDS and name not in context.tools:
                meant = OTHER_WORDS.get(name)
                near = [meant] if meant else difflib.get_close_matches(name, KINDS, n=1, cutoff=NEARNESS)
                if near:
                    advice = f"(did you mean `{near[0]}`?)"
                    context.warn(each.span, f"type `{name}` has the terms of this symbol, and there are none {advice}")


def _names(type: Value) -> list[str]:  # noqa: A002 - the word of the language
    """Return the symbols of a type."""
    match type:
        case Term():
            return [type.name, *(name for each in type.args for name in _names(each))]
        case TermList():
            return [name for each in type for name in _names(each)]
        case Placeholder():
            return _names(type.type)
        case _:
            return []


def _check_features(tool: ToolDefinition, context: "Context") -> None:
    names = [name for name, _ in tool.features]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            context.error(tool.span, f"tool `{tool.name}` has two features `{name}`")
    if tool.feature("kind") == CHANNEL and not tool.feature("channel"):
        context.error(tool.span, f"tool `{tool.name}` is of the kind `channel`: its feature `channel` is missing")
    for name in ("channel", "derive"):
        if name in names and tool.feature("kind") != CHANNEL:
            message = f'tool `{tool.name}` has a feature `{name}`, so its `kind` should be "channel"'
            context.error(tool.span, message)
