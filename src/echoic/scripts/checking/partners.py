"""Which atoms can never happen, because nobody could take part.

    snd-msg, rec-msg         an atom of the other kind with the same number of arguments, all of which may match
    rec-note, no-note        a `snd-note`, or a note from a channel, and a subscription
    snd-note                 a subscription, or a channel
    subscribe                a `snd-note`, or a channel
    rec-value                a `snd-eval` to the same tool; and so for other pairs of atoms of tools

Two terms may match where their symbols, constants and types allow it; a variable may have any value of its type. So
what is reported has no partner for certain, as long as no value of a wrong type, which is `undefined` only, is sent.
Processes that are called by the value of a variable are among the processes of the script, and so are their atoms.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from echoic.scripts.checking.atoms import tool_of
from echoic.scripts.checking.expressions import fits, quiet_type
from echoic.scripts.checking.survey import EMPTY, Placed, Scope
from echoic.scripts.syntax.tree import (
    Application,
    Atom,
    Constant,
    Expression,
    ListOf,
    PlaceholderOf,
    Span,
    Variable,
)
from echoic.terms import Placeholder, Term, TermList, Value, same

if TYPE_CHECKING:
    from echoic.scripts.checking.context import Context

__all__ = ["check_partners", "may_match"]

COMPARISONS_MAX: Final = 200_000  # some two seconds, after which nothing more is reported

PAIRS: Final = {
    "rec-value": "snd-eval",
    "snd-eval": "rec-value",
    "snd-cancel": "snd-eval",
    "snd-ack-event": "rec-event",
    "snd-response": "rec-request",
    "rec-request": "snd-response",
    "rec-perf-stats": "get-perf-stats",
}
"""Atoms of tools, and the one that must be somewhere in the script for the same tool."""

Key: TypeAlias = tuple[int, tuple[str, int] | None]


class Offer(NamedTuple):
    """The arguments of an atom, with the variables they see."""

    arguments: tuple[Expression, ...]
    scope: Scope

    @property
    def key(self) -> Key:
        """The number of arguments, and the symbol of the first, None where it may have several."""
        match self.arguments:
            case (Application(name, inner), *_):
                return len(self.arguments), (name, len(inner))
            case _:
                return len(self.arguments), None


class Index:
    """Offers by their key."""

    def __init__(self, offers: Iterable[Offer]) -> None:
        self._by_key: defaultdict[Key, list[Offer]] = defaultdict(list)
        for offer in offers:
            self._by_key[offer.key].append(offer)
        self._all: defaultdict[int, list[Offer]] = defaultdict(list)
        for (count, _), found in self._by_key.items():
            self._all[count] += found

    def candidates(self, offer: Offer) -> Iterable[Offer]:
        """Return those that may match, and few others."""
        count, symbol = offer.key
        if symbol is None:
            return self._all[count]
        return [*self._by_key[count, symbol], *self._by_key[count, None]]


class Partners:
    """One search through a script; it gives up silently where the script is so large that it would take too long."""

    def __init__(self, placed: list[Placed], context: "Context") -> None:
        self._context = context
        self._comparisons = 0
        self._atoms = [(each.node, each.scope) for each in placed if isinstance(each.node, Atom)]
        self._channels = [Offer((_pattern(note.pattern, note.span),), EMPTY) for note in context.script.channel_notes]

    def check(self) -> None:
        """Warn of atoms without a partner."""
        self._check("snd-msg", self._index("rec-msg"), "no `rec-msg` can receive this")
        self._check("rec-msg", self._index("snd-msg"), "no `snd-msg` sends anything like this")
        senders, subscriptions = self._index("snd-note", notes=True), self._index("subscribe", notes=True)
        self._check("snd-note", subscriptions, "nobody subscribes to this note")
        for atom in ("rec-note", "no-note", "subscribe"):
            self._check(atom, senders, "no `snd-note` sends anything like this")
        self._check("rec-note", subscriptions, "no `subscribe` asks for notes like this")
        self._check_tools()

    def _offers(self, atom: str) -> list[tuple[Offer, Span]]:
        return [(Offer(node.arguments, scope), node.span) for node, scope in self._atoms if node.name == atom]

    def _index(self, atom: str, *, notes: bool = False) -> Index:
        return Index([*(offer for offer, _ in self._offers(atom)), *(self._channels if notes else ())])

    def _check(self, atom: str, index: Index, message: str) -> None:
        for offer, span in self._offers(atom):
            if not self._has_partner(offer, index):
                self._context.warn(span, message)

    def _has_partner(self, offer: Offer, index: Index) -> bool:
        for other in index.candidates(offer):
            self._comparisons += 1
            if self._comparisons > COMPARISONS_MAX:
                return True
            pairs = zip(offer.arguments, other.arguments, strict=True)
            if all(may_match(one, offer.scope, two, other.scope) for one, two in pairs):
                return True
        return False

    def _check_tools(self) -> None:
        tools = [(node, tool_of(node, scope, self._context)) for node, scope in self._atoms]
        there = {(node.name, tool) for node, tool in tools}
        for node, tool in tools:
            partner = PAIRS.get(node.name)
            if partner is not None and tool and (partner, tool) not in there:
                self._context.warn(node.span, f"there is no `{partner}` for tool `{tool}`")


def check_partners(placed: list[Placed], context: "Context") -> None:
    """Warn of communication atoms without any possible partner."""
    Partners(placed, context).check()


def may_match(one: Expression, one_scope: Scope, other: Expression, other_scope: Scope) -> bool:
    """Whether two patterns, each with its own variables, may match."""
    match one, other:
        case (Variable(_, True), _) if _binds(other):
            return False  # what is bound must be known on the other side
        case (_, Variable(_, True)) if _binds(one):
            return False
        case (Variable() | PlaceholderOf(), _) | (_, Variable() | PlaceholderOf()):
            left, right = quiet_type(one, one_scope), quiet_type(other, other_scope)
            return fits(left, right) or fits(right, left)
        case Constant(left_value), Constant(right_value):
            return same(left_value, right_value)
        case Application(name, arguments), Application(other_name, others):
            return (
                name == other_name
                and len(arguments) == len(others)
                and all(may_match(a, one_scope, b, other_scope) for a, b in zip(arguments, others, strict=True))
            )
        case ListOf(elements), ListOf(others):
            return len(elements) == len(others) and all(
                may_match(a, one_scope, b, other_scope) for a, b in zip(elements, others, strict=True)
            )
        case _:
            return False


def _binds(pattern: Expression) -> bool:
    """Whether a variable is to be bound somewhere in a pattern."""
    match pattern:
        case Variable(_, result):
            return result
        case Application(_, inner) | ListOf(inner):
            return any(map(_binds, inner))
        case _:
            return False


def _pattern(value: Value, span: Span) -> Expression:
    """Return a value as the pattern that a script would have for it."""
    match value:
        case Placeholder():
            return PlaceholderOf(value.type, span)
        case Term():
            return Application(value.name, tuple(_pattern(each, span) for each in value.args), span)
        case TermList():
            return ListOf(tuple(_pattern(each, span) for each in value), span)
        case _:
            return Constant(value, span)
