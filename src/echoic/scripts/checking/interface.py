"""What a script wants from a tool, read off its atoms.

    the script has                    the tool has
    snd-eval(T, expr(S))              rec-eval(<calc>,expr(<str>))          input
    snd-do(T, show(V))                rec-do(<calc>,show(<term>))           input
    rec-value(T, val(V?))             snd-value(<calc>,val(<int>))          output
    rec-event(T, button(B?))          snd-event(<calc>,button(<str>))       output
    snd-ack-event(T, button(B))       rec-ack-event(<calc>,button(<str>))   output
    rec-request(T, look(K?))          snd-request(<calc>,look(<str>))       output
    snd-response(T, found(V))         rec-response(<calc>,found(<term>))    output
    the others                        snd-connect(<calc>), snd-disconnect(<calc>), rec-terminate(<calc>,<term>)

Variables and constants become placeholders of their type; symbols stay. As a term it is
`signature([input],[output],[others])`, which is what a tool gets when it connects. As text it has one record of fixed
columns an entry, for generators of tools:

    calc             input  rec-eval(<calc>,expr(<str>))
"""

from dataclasses import dataclass
from typing import Final

from echoic.errors import ScriptError
from echoic.scripts.checking.atoms import tool_of
from echoic.scripts.checking.context import Context
from echoic.scripts.checking.expressions import constant_type, fits
from echoic.scripts.checking.signatures import ANY
from echoic.scripts.checking.survey import Scope, survey
from echoic.scripts.syntax.problems import did_you_mean
from echoic.scripts.syntax.tree import (
    Application,
    Atom,
    Constant,
    Expression,
    ListOf,
    PlaceholderOf,
    Script,
    Variable,
)
from echoic.terms import Placeholder, Term, TermList, Value, write_text

__all__ = ["Interface", "interface", "mismatch"]

INPUT: Final = {"snd-eval": "rec-eval", "snd-do": "rec-do"}
OUTPUT: Final = {
    "rec-value": "snd-value",
    "rec-event": "snd-event",
    "snd-ack-event": "rec-ack-event",
    "rec-request": "snd-request",
    "snd-response": "rec-response",
}
SENT_BY_TOOL: Final = frozenset({"snd-value", "snd-event", "snd-request"})
NAME_WIDTH: Final = 16


@dataclass(frozen=True, slots=True)
class Interface:
    """What a tool receives, what it sends or gets for it, and what every tool has; no entry stands there twice."""

    tool: str
    input: tuple[Term, ...]
    output: tuple[Term, ...]
    other: tuple[Term, ...]

    @property
    def term(self) -> Term:
        """The interface as `signature([input],[output],[others])`."""
        return Term("signature", TermList(*self.input), TermList(*self.output), TermList(*self.other))

    @property
    def text(self) -> str:
        """The interface as records of fixed columns."""
        groups = (("input", self.input), ("output", self.output), ("other", self.other))
        return "".join(
            f"{self.tool:<{NAME_WIDTH}} {kind:<6} {write_text(entry)}\n"
            for kind, entries in groups
            for entry in entries
        )


def interface(script: Script, tool: str) -> Interface:
    """Return what a script wants from a tool.

    Raises:
        ScriptError: The script defines no such tool.
    """
    context = Context(script)
    if tool not in context.tools:
        raise ScriptError(f"tool `{tool}` is not defined{did_you_mean(tool, context.tools)}")
    entries: dict[str, dict[Term, None]] = {"input": {}, "output": {}}
    place = Placeholder(Term(tool))
    for placed in survey(script):
        atom = placed.node
        if not isinstance(atom, Atom) or tool_of(atom, placed.scope, context) != tool:
            continue
        for group, names in (("input", INPUT), ("output", OUTPUT)):
            if atom.name in names:
                patterns = [_pattern(argument, placed.scope) for argument in atom.arguments[1:]]
                entries[group][Term(names[atom.name], place, *patterns)] = None
    return Interface(tool, tuple(entries["input"]), tuple(entries["output"]), _others(tool))


def _others(tool: str) -> tuple[Term, ...]:
    place = Placeholder(Term(tool))
    return (
        Term("snd-connect", place),
        Term("snd-disconnect", place),
        Term("rec-terminate", place, Placeholder(ANY)),
    )


def _pattern(expression: Expression, scope: Scope) -> Value:
    """Return an argument with variables and constants replaced by their types."""
    match expression:
        case Constant(value):
            return Placeholder(constant_type(value))
        case Variable(name):
            declared = scope.find(name)
            type_ = ANY if declared is None else declared.type
            return type_ if isinstance(type_, Placeholder) else Placeholder(type_)
        case Application(name, arguments):
            return Term(name, *(_pattern(argument, scope) for argument in arguments))
        case ListOf(elements):
            return TermList(*(_pattern(element, scope) for element in elements))
        case PlaceholderOf(type_):
            return Placeholder(type_)


def mismatch(wanted: Interface, offered: Interface) -> str:
    """Return why a tool does not fit a script, with both sides, and nothing where it fits.

    A tool fits if it can receive all that the script may send to it, and the script all that it may send. A tool may
    be able to receive more, and need not send everything that the script is ready for.
    """
    acknowledged = tuple(entry for entry in wanted.output if entry.name not in SENT_BY_TOOL)
    received = tuple(entry for entry in offered.output if entry.name not in SENT_BY_TOOL)
    lines = _missing(wanted.input, offered.input, "the script has", "the tool has")
    if received:
        lines += _missing(acknowledged, received, "the script has", "the tool has")
    sent = tuple(entry for entry in offered.output if entry.name in SENT_BY_TOOL)
    expected = tuple(entry for entry in wanted.output if entry.name in SENT_BY_TOOL)
    lines += _missing(sent, expected, "the tool has", "the script has")
    if not lines:
        return ""
    return "\n".join([f"tool `{wanted.tool}` does not fit the script:", *lines])


def _missing(entries: tuple[Term, ...], others: tuple[Term, ...], side: str, other_side: str) -> list[str]:
    """Return lines about the entries of one side that the other has nothing for."""
    lines: list[str] = []
    width = max(len(side), len(other_side))
    for entry in entries:
        if any(_agree(entry, other) for other in others):
            continue
        near = [other for other in others if _symbol(other) == _symbol(entry)]
        near = near or [other for other in others if other.name == entry.name]
        lines.append(f"    {side:<{width}}  {write_text(entry)}")
        lines.append(f"    {other_side:<{width}}  {', '.join(map(write_text, near)) or 'nothing like it'}")
    return lines


def _symbol(entry: Term) -> tuple[str, str]:
    """Return the symbol of what is sent by an entry."""
    first = entry.args[1] if entry.arity > 1 else None
    return entry.name, first.name if isinstance(first, Term) else ""


def _agree(one: Value, other: Value) -> bool:
    """Whether two patterns with types may be about the same terms."""
    match one, other:
        case (Placeholder(), _) | (_, Placeholder()):
            left, right = _type(one), _type(other)
            return fits(left, right) or fits(right, left)
        case Term(), Term():
            same_symbol = one.name == other.name and one.arity == other.arity
            return same_symbol and all(map(_agree, one.args, other.args))
        case TermList(), TermList():
            return len(one) == len(other) and all(map(_agree, one, other))
        case _:
            return one == other


def _type(value: Value) -> Value:
    """Return the type that a pattern has."""
    match value:
        case Placeholder():
            return _type(value.type)
        case Term():
            return Term(value.name, *map(_type, value.args))
        case TermList():
            return TermList(*map(_type, value))
        case _:
            return value
