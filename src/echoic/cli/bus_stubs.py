"""Processes that play tools while a script is explored, instead of tools that may say anything.

    process Calc-stub is
      ( let E: str in rec-msg(eval, calc, expr(E?)) . snd-msg(value, calc, val(1)) endlet ) * delta
    toolbus(Calc-stub)

A tool that such a process names is taken out of the script: what was said to it is sent as a message, and what it said
is received as one.

    snd-eval(C, t)          snd-msg(eval, calc, t)             rec-value(C, p)       rec-msg(value, calc, p)
    snd-do(C, t)            snd-msg(do, calc, t)               rec-event(C, p)       rec-msg(event, calc, p)
    snd-ack-event(C, t)     snd-msg(ack-event, calc, t)        rec-request(C, p)     rec-msg(request, calc, p)
    snd-response(C, t)      snd-msg(response, calc, t)         rec-disconnect(C)     rec-msg(disconnect, calc)
    snd-cancel(C)           snd-msg(cancel, calc)
    execute, rec-connect    C := quote(calc(0))                snd-terminate, snd-kill     tau

All instances of a tool are played by the same processes. Other tools may say anything, as ever.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from echoic.errors import LocalError
from echoic.scripts.checking.atoms import tool_of
from echoic.scripts.checking.context import Context
from echoic.scripts.checking.survey import survey
from echoic.scripts.syntax.tree import (
    Application,
    Assign,
    Atom,
    Choice,
    Conditional,
    Constant,
    Disrupt,
    Iteration,
    LeftBiased,
    Let,
    Merge,
    Process,
    RightBiased,
    Script,
    Sequence,
    Variable,
)

__all__ = ["with_stubs"]

MESSAGES: Final = {
    "snd-eval": ("snd-msg", "eval"),
    "snd-do": ("snd-msg", "do"),
    "snd-ack-event": ("snd-msg", "ack-event"),
    "snd-response": ("snd-msg", "response"),
    "snd-cancel": ("snd-msg", "cancel"),
    "rec-value": ("rec-msg", "value"),
    "rec-event": ("rec-msg", "event"),
    "rec-request": ("rec-msg", "request"),
    "rec-disconnect": ("rec-msg", "disconnect"),
}
PARTS: Final[Mapping[type, tuple[str, ...]]] = {
    Sequence: ("first", "then"),
    Choice: ("left", "right"),
    RightBiased: ("left", "right"),
    LeftBiased: ("left", "right"),
    Merge: ("left", "right"),
    Iteration: ("body", "exit"),
    Disrupt: ("body", "breaker"),
    Conditional: ("then", "otherwise"),
    Let: ("body",),
}


def with_stubs(script: Script, stubs: Script) -> Script:
    """Return a script in which processes of another one play its tools.

    Raises:
        LocalError: They play none.
    """
    played = _played(stubs) & {tool.name for tool in script.tools}
    if not played:
        raise LocalError("the stubs play no tool: a message of theirs begins with two words, as in (eval, calc, ...)")
    context = Context(script)
    changed: dict[int, Process] = {}
    for placed in survey(script):
        atom = placed.node
        if isinstance(atom, Atom) and (tool := tool_of(atom, placed.scope, context)) in played:
            changed[id(atom)] = _as_message(atom, tool)
    return Script(
        (*(replace(each, body=_rebuilt(each.body, changed)) for each in script.processes), *stubs.processes),
        (*script.tools, *stubs.tools),
        (*script.configurations, *stubs.configurations),
        {**script.sources, **stubs.sources},
        (*script.channel_notes, *stubs.channel_notes),
    )


def _played(stubs: Script) -> set[str]:
    """Return the second words of messages."""
    found: set[str] = set()
    for placed in survey(stubs):
        match placed.node:
            case Atom("snd-msg" | "rec-msg", (_, Application(name, ()), *_)):
                found.add(name)
            case _:
                pass
    return found


def _as_message(atom: Atom, tool: str) -> Process:
    span = atom.span
    if atom.name in MESSAGES:
        name, word = MESSAGES[atom.name]
        words = (Application(word, (), span), Application(tool, (), span))
        return Atom(name, (*words, *atom.arguments[1:]), atom.timing, span)
    match atom.name, atom.arguments:
        case ("execute", (_, Variable() as variable)) | ("rec-connect", (Variable() as variable,)):
            made = Application("quote", (Application(tool, (Constant(0, span),), span),), span)
            return Assign(replace(variable, result=False), made, atom.timing, span)
        case _:
            return Atom("tau", (), atom.timing, span)


def _rebuilt(body: Process, changed: Mapping[int, Process]) -> Process:
    """Return a process with other atoms in some places."""
    # A sequence may be ten thousand atoms deep, so nothing calls itself.
    made: dict[int, Process] = {}
    waiting: list[tuple[Process, bool]] = [(body, False)]
    while waiting:
        node, ready = waiting.pop()
        parts = {name: part for name in PARTS.get(type(node), ()) if (part := getattr(node, name)) is not None}
        if not parts:
            made[id(node)] = changed.get(id(node), node)
        elif ready:
            made[id(node)] = replace(node, **{name: made[id(part)] for name, part in parts.items()})  # type: ignore[arg-type]  # each part is a process
        else:
            waiting += ((node, True), *((part, False) for part in parts.values()))
    return made[id(body)]
