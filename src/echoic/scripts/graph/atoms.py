"""One atom becomes one edge; an `execute` becomes two.

What each atom needs is decided by its name: patterns for what it compares or sends, an evaluation for what it computes.
`execute(tool(args), T?)` is two steps, as in the originals: the start, which is always possible, and then waiting for
exactly that instance, known by a slot without a name.
"""

from collections.abc import Hashable, Iterable
from typing import Final, Protocol

from echoic.errors import ScriptError
from echoic.scripts.graph.edges import (
    END,
    NO_CREATION,
    NO_EVALUATION,
    NO_MESSAGE,
    NO_RESULT,
    Creation,
    Edge,
    Kind,
    MessageKey,
    Timing,
)
from echoic.scripts.graph.expressions import Evaluation
from echoic.scripts.graph.scopes import Entry, Scope
from echoic.scripts.graph.templates import Bind, Pattern, Slot, Slots, Template, binds, head_of, read
from echoic.scripts.syntax.tree import Action, Assign, Atom, Call, Create, Expression, Span, Variable
from echoic.scripts.syntax.tree import Timing as TimingOf
from echoic.terms import Annotated, Reference, Term, TermList

__all__ = ["action_edge", "awaiting_edge", "heads_at", "heads_of", "key_of", "refused"]

KINDS: Final = {kind.name.lower().replace("_", "-"): kind for kind in Kind}
MESSAGES: Final = frozenset({Kind.SND_MSG, Kind.REC_MSG})
ARGUMENTS_MIN: Final = {
    Kind.PRINTF: 1,
    Kind.READ: 2,
    Kind.SND_NOTE: 1,
    Kind.REC_NOTE: 1,
    Kind.NO_NOTE: 1,
    Kind.SUBSCRIBE: 1,
    Kind.UNSUBSCRIBE: 1,
    Kind.EXECUTE: 2,
    Kind.REC_CONNECT: 1,
    Kind.REC_DISCONNECT: 1,
    Kind.SND_EVAL: 2,
    Kind.REC_VALUE: 2,
    Kind.SND_DO: 2,
    Kind.SND_CANCEL: 1,
    Kind.REC_EVENT: 2,
    Kind.SND_ACK_EVENT: 2,
    Kind.REC_REQUEST: 2,
    Kind.SND_RESPONSE: 2,
    Kind.SND_TERMINATE: 1,
    Kind.SND_KILL: 1,
    Kind.GET_PERF_STATS: 1,
    Kind.REC_PERF_STATS: 2,
}


class Names(Protocol):
    """Who knows the variables of a scope."""

    def pattern(self, expression: Expression, scope: Scope, fresh: frozenset[int] = ...) -> Pattern:
        """Return an expression with its variables as slots."""

    def evaluation(self, expression: Expression, scope: Scope, entry: Entry) -> Evaluation:
        """Return what evaluates an expression."""


def refused(span: Span, message: str) -> ScriptError:
    """Return the error of a script that was compiled without having been checked."""
    return ScriptError(
        f"{span.file}:{span.line}:{span.column}: {message}", ((span.file, span.line, span.column, message),)
    )


def action_edge(names: Names, action: Action, scope: Scope, entry: Entry) -> Edge | None:
    """Return the edge of an atom, whose target is still to be said; None where it can never be done.

    Raises:
        ScriptError: It has not the arguments that it needs.
    """
    if isinstance(action, Atom) and action.name == "delta":
        return None
    edge = Edge()
    edge.span, edge.guards, edge.resets = action.span, entry.guards, tuple(sorted(entry.fresh))
    edge.arguments, edge.evaluation, edge.creation = (), NO_EVALUATION, NO_CREATION
    edge.result, edge.key = NO_RESULT, NO_MESSAGE
    edge.target, edge.drops, edge.blockers, edge.path, edge.replaces = END, (), (), (), ()
    edge.origin = (id(action), id(scope))
    edge.timing = _timing(action.timing, names, scope, entry)
    match action:
        case Assign(variable, expression, _, span):
            binding = scope.variables.get(variable.name)
            if binding is None or binding.bind is None:
                raise refused(span, f"`{variable.name}` cannot be assigned to")
            edge.kind, edge.name, edge.result = Kind.ASSIGN, ":=", binding.bind
            edge.evaluation = names.evaluation(expression, scope, entry)
        case Create():
            _creating(edge, action, names, scope, entry)
        case Atom(name, arguments, _, span):
            edge.kind, edge.name = KINDS[name], name
            edge.arguments = tuple(names.pattern(argument, scope, entry.fresh) for argument in arguments)
            if len(arguments) < ARGUMENTS_MIN.get(edge.kind, 0):
                raise refused(span, f"`{name}` wants {ARGUMENTS_MIN[edge.kind]} argument(s)")
            if edge.kind in MESSAGES:
                edge.key = key_of(edge.arguments)
            if edge.kind is Kind.EXECUTE:
                _executing(edge, span)
    slots = [bind.index for bind in binds(edge.arguments)]
    edge.repeats = len(slots) != len(set(slots))
    edge.plain = not edge.guards and edge.timing is None
    return edge


def awaiting_edge(execution: Edge, hidden: int) -> Edge:
    """Return the second edge of an `execute`: it waits for the instance in a slot, and binds the variable.

    The first edge is changed to keep the instance in that slot.
    """
    edge = execution.copy()
    edge.kind, edge.name = Kind.AWAIT, "rec-connect"
    edge.arguments = (Slot(hidden),)
    edge.guards, edge.resets, edge.timing = (), (), None
    edge.blockers, edge.plain, edge.drops = (), True, (*execution.drops, hidden)
    execution.result, execution.drops = Bind(hidden, Term("term")), ()
    execution.resets = (*execution.resets, hidden)
    return edge


def key_of(arguments: tuple[Pattern, ...]) -> MessageKey:
    """Return where the partners of a message are to be looked for, as far as it is known."""
    if arguments and isinstance(arguments[0], Slot):
        return MessageKey(False)
    inner = _inner(arguments[0]) if arguments else 0
    if isinstance(inner, Slot):
        return MessageKey(False, head_of(arguments[0], ()), None, inner)
    return MessageKey(True, *heads_of(arguments, ()))


def heads_of(arguments: tuple[Pattern, ...], slots: Slots) -> tuple[Hashable, Hashable]:
    """Return the heads of the first argument of a message, and of the first argument of that."""
    if not arguments:
        return (), ()
    first = read(arguments[0], slots) if isinstance(arguments[0], Slot) else arguments[0]
    head = head_of(first, slots)
    if head is None or isinstance(first.value if isinstance(first, Annotated) else first, Reference):
        return head, None
    return head, head_of(_inner(first), slots)


def heads_at(edge: Edge, slots: Slots) -> tuple[Hashable, Hashable]:
    """Return the heads of the message of an edge whose key is not known, for a process with these slots."""
    variable = edge.key.variable
    if variable is None:
        return heads_of(edge.arguments, slots)
    value = slots[variable.index]
    kind = type(value)
    return edge.key.head, (value,) if kind is int or kind is str else head_of(variable, slots)


def _inner(pattern: Pattern) -> Pattern:
    """Return the first argument of an application or list; the same for all that have none."""
    match pattern:
        case Template(arguments=parts) | Term(args=parts) | TermList(elements=parts) if parts:
            return parts[0]
        case Annotated(value=value):
            return _inner(value)
        case _:
            return 0


def _creating(edge: Edge, create: Create, names: Names, scope: Scope, entry: Entry) -> None:
    call = create.call
    variable = scope.variables.get(call.name)
    arguments = tuple(names.evaluation(argument, scope, entry) for argument in call.arguments)
    result = names.pattern(create.result, scope, entry.fresh)
    if not isinstance(result, Bind):
        raise refused(create.span, "the second argument of `create` is a variable with `?`")
    edge.kind, edge.name, edge.result = Kind.CREATE, "create", result
    edge.creation = Creation(
        call.name, None if variable is None else names.evaluation(_named(call), scope, entry), arguments
    )


def _named(call: Call) -> Expression:
    """Return the variable that names the process of a call."""
    return Variable(call.name, False, call.span)


def _executing(edge: Edge, span: Span) -> None:
    tool, result = edge.arguments[0], edge.arguments[1]
    if not isinstance(tool, Term | Template) or not isinstance(result, Bind):
        raise refused(span, "`execute` wants a tool and a variable with `?`")
    edge.arguments, edge.result = (tool,), result


def _timing(timings: Iterable[TimingOf], names: Names, scope: Scope, entry: Entry) -> Timing | None:
    bounds: dict[str, list[tuple[Evaluation, ...]]] = {}
    for timing in timings:
        parts = tuple(names.evaluation(argument, scope, entry) for argument in timing.arguments)
        bounds.setdefault(timing.kind, []).append(parts)
        if not 3 <= len(parts) <= 6 if timing.kind.startswith("abs-") else len(parts) != 1:
            raise refused(timing.span, f"`{timing.kind}` has another number of arguments")
    if not bounds:
        return None
    return Timing(
        tuple(part for (part,) in bounds.get("delay", ())),
        tuple(part for (part,) in bounds.get("timeout", ())),
        tuple(bounds.get("abs-delay", ())),
        tuple(bounds.get("abs-timeout", ())),
    )
