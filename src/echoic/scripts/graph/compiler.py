"""From trees to graphs: what each operator does to the first atoms of a process.

`first(P, scope, k, entry)` returns the edges of P when it goes on as the node `k`. What must be true or is declared
in front of P's first atom is handed down as `entry`, so that it counts for the first atom only:

    P . Q            first(P) going on as the node of Q
    P + Q            first(P) and first(Q)
    P +> Q           the same; those of P have those of Q as blockers
    P || Q           first(P), each going on as (P' || Q), and first(Q), each going on as (P || Q')
    P * Q            first(P) going on as the node of P * Q itself, and first(Q)
    P >> Q           first(P), each going on as (P' >> Q), and first(Q)
    if T then P fi   first(P) with one more guard
    let X in P       first(P) with one more reset; P goes on to k by dropping X
    Q(a,b?)          first(body of Q) in a scope in which its parameters stand for a and b
    V(a), V : str    for each process Q that V could name: if equal(V,"Q") then Q(a) fi

A guard in front of a loop is checked with the loop's first atom, and since the loop goes on as a node of its own it
is not checked again: no extra step is needed for that.

Nodes are made once for each (expression, scope, continuation), composites once for each (left, right, continuation),
so loops close and a step is `node = edge.target`. The nodes of a `||` are made as they are reached; there can be as
many as the product of its sides.

A dynamic call is a choice between all processes it could name, each guarded by the name and by the types of its
values, so a name that is unknown, or whose process does not fit, can do nothing. Dynamic calls that begin with a
dynamic call are followed `DYNAMIC_CALLS_MAX` deep; beyond that they can do nothing either.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from echoic.errors import ScriptError
from echoic.scripts.graph.atoms import action_edge, awaiting_edge, refused
from echoic.scripts.graph.edges import END, Edge, Kind, Node
from echoic.scripts.graph.expressions import Evaluation, Options, compile_expression, denied
from echoic.scripts.graph.scopes import Binding, Entry, Scope, assigned_names, narrower, slot_binding
from echoic.scripts.graph.templates import Bind, Pattern, build, settle, substitute
from echoic.scripts.syntax.tree import (
    Application,
    Assign,
    Atom,
    Call,
    Choice,
    Conditional,
    Constant,
    Create,
    Disrupt,
    Expression,
    Iteration,
    LeftBiased,
    Let,
    ListOf,
    Merge,
    PlaceholderOf,
    Process,
    ProcessDefinition,
    RightBiased,
    Variable,
)
from echoic.scripts.syntax.tree import Sequence as InSequence
from echoic.terms import Placeholder, Value, accepts, may_hold, plain

__all__ = ["Compiler", "Exit", "Onward"]

DYNAMIC_CALLS_MAX: Final = 2
NODES_MAX: Final = 250_000  # of a process: some 750 MB

Key: TypeAlias = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Exit:
    """A continuation that leaves a scope: on to `node`, and these slots are no longer needed."""

    node: "Onward"
    slots: tuple[int, ...]


Onward: TypeAlias = Node | Exit


NOTHING: Final = Entry()


class Compiler:
    """The graph of one process in the making; `slot_names` grows as declarations are reached."""

    def __init__(self, definitions: Mapping[str, ProcessDefinition], options: Options) -> None:
        self._definitions = definitions
        self._options = options
        self._nodes: dict[Key, Node] = {}
        self._scopes: dict[Key, tuple[Scope, tuple[int, ...]]] = {}
        self._exits: dict[Key, Exit] = {}
        self._kept: list[object] = []  # Invariant: whatever is named by its `id` in a key is kept alive
        self._assigned: dict[str, frozenset[str]] = {}
        self._count = 0
        self.slot_names: list[str] = []

    def begin(self, name: str) -> Node:
        """Return the node at which a process of its own begins, its parameters being its first slots."""
        definition = self._definitions[name]
        variables = {formal.name: slot_binding(self._slot(formal.name), formal.type) for formal in definition.formals}
        return self.node(definition.body, Scope(variables, (name,)), END)

    def node(self, process: Process, scope: Scope, onward: Onward) -> Node:
        """Return the node of a process in a scope that goes on as `onward`."""
        if isinstance(process, Merge):
            return self._side_by_side(self.node(process.left, scope, END), self.node(process.right, scope, END), onward)
        return self._once("", (process, scope, onward), lambda: self.first(process, scope, onward, NOTHING))

    def first(self, process: Process, scope: Scope, onward: Onward, entry: Entry) -> tuple[Edge, ...]:
        """Return the first edges of a process, which nobody else has."""
        match process:
            case InSequence(one, then, _):
                return self.first(one, scope, self.node(then, scope, onward), entry)
            case Choice():
                parts = _alternatives(process)
                return tuple(edge for part in parts for edge in self.first(part, scope, onward, entry))
            case RightBiased(left, right, _):
                return self._biased(right, left, scope, onward, entry)
            case LeftBiased(left, right, _):
                return self._biased(left, right, scope, onward, entry)
            case Merge(left, right, _):
                return self._beside(
                    (self.first(left, scope, END, entry), self.node(left, scope, END)),
                    (self.first(right, scope, END, entry), self.node(right, scope, END)),
                    onward,
                )
            case Iteration(body, leave, _):
                again = self.node(process, scope, onward)
                return self.first(body, scope, again, entry) + self.first(leave, scope, onward, entry)
            case Disrupt(body, breaker, _):
                return self._disrupting(
                    self.first(body, scope, END, entry),
                    self.first(breaker, scope, onward, entry),
                    self.node(breaker, scope, onward),
                    onward,
                )
            case _:
                return self._first_of_one(process, scope, onward, entry)

    def pattern(self, expression: Expression, scope: Scope, fresh: frozenset[int] = frozenset()) -> Pattern:
        """Return an expression with its variables as slots, those in `fresh` being empty.

        Raises:
            ScriptError: A variable is not declared, or cannot be bound.
        """
        match expression:
            case Constant(value, _):
                return value
            case PlaceholderOf(type_, _):
                return Placeholder(type_)
            case Application(name, parts, _):
                return build(name, [self.pattern(part, scope, fresh) for part in parts])
            case ListOf(parts, _):
                return build(None, [self.pattern(part, scope, fresh) for part in parts])
            case Variable(name, result, span):
                binding = scope.variables.get(name)
                if binding is None:
                    raise refused(span, f"undeclared variable `{name}`")
                if not result:
                    return settle(binding.pattern, fresh) if fresh else binding.pattern
                if binding.bind is None:
                    raise refused(span, f"`{name}` cannot be assigned to")
                return binding.bind
        raise AssertionError(expression)

    def evaluation(self, expression: Expression, scope: Scope, entry: Entry) -> Evaluation:
        """Return what evaluates an expression in front of an atom."""
        return compile_expression(expression, lambda part: self.pattern(part, scope, entry.fresh), self._options)

    def _first_of_one(self, process: Process, scope: Scope, onward: Onward, entry: Entry) -> tuple[Edge, ...]:
        match process:
            case Conditional(test, then, otherwise, _):
                decide = self.evaluation(test, scope, entry)
                edges = self.first(then, scope, onward, entry.guarded(decide))
                if otherwise is None:
                    return edges
                return edges + self.first(otherwise, scope, onward, entry.guarded(denied(decide)))
            case Let(_, body, _):
                inner, slots = self._scope_of("let", process, scope, lambda: self._declared(process, scope))
                return self.first(body, inner, self._exit(onward, slots), entry.declaring(slots))
            case Call(name, _, span):
                if name in scope.variables:
                    return self._called_by_value(process, scope, onward, entry)
                definition = self._definitions.get(name)
                if definition is None:
                    raise refused(span, f"undeclared process `{name}`")
                if name in scope.callers:
                    raise refused(span, f"recursive call of process `{name}`")
                if len(definition.formals) != len(process.arguments):
                    raise refused(span, f"process `{name}` has {len(definition.formals)} parameter(s)")
                return self._called(process, definition, scope, onward, entry)
            case Atom() | Assign() | Create():
                edge = action_edge(self, process, scope, entry)
                if edge is None:
                    return ()
                _go(edge, onward)
                if edge.kind is Kind.EXECUTE:
                    awaiting = awaiting_edge(edge, self._slot_of(process, scope))
                    edge.target = Node(self._number(), lambda: (awaiting,))
                return (edge,)
            case _:
                raise AssertionError(process)

    def _biased(
        self, preferred: Process, other: Process, scope: Scope, onward: Onward, entry: Entry
    ) -> tuple[Edge, ...]:
        firsts = self.first(preferred, scope, onward, entry)
        others = self.first(other, scope, onward, entry)
        for edge in others:
            edge.blockers += firsts
            edge.plain = False
        return firsts + others

    def _beside(
        self, left: tuple[tuple[Edge, ...], Node], right: tuple[tuple[Edge, ...], Node], onward: Onward
    ) -> tuple[Edge, ...]:
        """Return the edges of two sides, each given by its edges and its node, that go on beside each other."""
        return _wrap(left[0], 0, lambda node: self._merged(node, right[1], onward), onward) + _wrap(
            right[0], 1, lambda node: self._merged(left[1], node, onward), onward
        )

    def _merged(self, left: Node, right: Node, onward: Onward) -> Onward:
        return onward if left is END and right is END else self._side_by_side(left, right, onward)

    def _side_by_side(self, left: Node, right: Node, onward: Onward) -> Node:
        return self._once(
            "||", (left, right, onward), lambda: self._beside((left.edges, left), (right.edges, right), onward)
        )

    def _disrupting(
        self, body: tuple[Edge, ...], breaker: tuple[Edge, ...], breaking: Node, onward: Onward
    ) -> tuple[Edge, ...]:
        def go_on(node: Node) -> Onward:
            if node is END:
                return onward
            return self._once(
                ">>",
                (node, breaking, onward),
                lambda: self._disrupting(node.edges, breaking.edges, breaking, onward),
            )

        broken = _wrap(breaker, 1, lambda node: node, None)
        for edge in broken:
            edge.replaces = ()
        return _wrap(body, 0, go_on, onward) + broken

    def _called(
        self, call: Call, definition: ProcessDefinition, scope: Scope, onward: Onward, entry: Entry
    ) -> tuple[Edge, ...]:
        name = definition.name
        inner, slots = self._scope_of(name, call, scope, lambda: self._parameters(call, definition, scope))
        going_on = self._exit(onward, slots) if slots else onward
        return self.first(definition.body, inner, going_on, entry.declaring(slots))

    def _called_by_value(self, call: Call, scope: Scope, onward: Onward, entry: Entry) -> tuple[Edge, ...]:
        if entry.dynamic_calls >= DYNAMIC_CALLS_MAX:
            return ()
        deeper = replace(entry, dynamic_calls=entry.dynamic_calls + 1)
        named = settle(scope.variables[call.name].pattern, entry.fresh)
        edges: list[Edge] = []
        for name, definition in self._definitions.items():
            if name in scope.callers or not self._may_call(call, definition, scope):
                continue
            tests = [_names(named, name)]
            for formal, argument in zip(definition.formals, call.arguments, strict=True):
                if not formal.result:
                    tests.append(_holds(formal.type, self.pattern(argument, scope, entry.fresh)))
            edges += self._called(call, definition, scope, onward, deeper.guarded(*tests))
        return tuple(edges)

    def _may_call(self, call: Call, definition: ProcessDefinition, scope: Scope) -> bool:
        """Whether the parameters of a process are as many as there are arguments, and for results where results are."""
        if len(definition.formals) != len(call.arguments):
            return False
        for formal, argument in zip(definition.formals, call.arguments, strict=True):
            result = isinstance(argument, Variable) and argument.result
            if formal.result is not result:
                return False
            if isinstance(argument, Variable) and result:
                declared = scope.variables[argument.name].type
                if not may_hold(formal.type, declared):
                    return False
        return True

    def _declared(self, let: Let, scope: Scope) -> tuple[Scope, tuple[int, ...]]:
        made = {declared.name: slot_binding(self._slot(declared.name), declared.type) for declared in let.declarations}
        slots = tuple(binding.slot for binding in made.values() if binding.slot is not None)
        return Scope({**scope.variables, **made}, scope.callers), slots

    def _parameters(self, call: Call, definition: ProcessDefinition, scope: Scope) -> tuple[Scope, tuple[int, ...]]:
        assigned = self._assigned.get(definition.name)
        if assigned is None:
            assigned = self._assigned[definition.name] = assigned_names(definition.body)
        variables: dict[str, Binding] = {}
        slots: list[int] = []
        for formal, argument in zip(definition.formals, call.arguments, strict=True):
            actual = self.pattern(argument, scope)
            if formal.result:
                if not isinstance(argument, Variable) or not isinstance(actual, Bind):
                    raise refused(argument.span, f"`{formal.name}` is for a result: a variable with `?` is wanted")
                outer = scope.variables[argument.name]
                variables[formal.name] = Binding(outer.pattern, narrower(formal.type, outer.type), outer.slot)
            elif formal.name in assigned:
                slots.append(self._slot(formal.name))
                variables[formal.name] = slot_binding(slots[-1], formal.type, actual)
            else:
                variables[formal.name] = Binding(actual, formal.type, None)
        return Scope(variables, (*scope.callers, definition.name)), tuple(slots)

    def _slot_of(self, place: object, scope: Scope) -> int:
        """Return a slot that belongs to a place of the script in a scope, and has no name."""
        return self._scope_of("", place, scope, lambda: (scope, (self._slot(""),)))[1][0]

    def _slot(self, name: str) -> int:
        self.slot_names.append(name)
        return len(self.slot_names) - 1

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _once(self, sort: str, parts: tuple[object, ...], make: Callable[[], tuple[Edge, ...]]) -> Node:
        """Return the node of this sort and these parts, which is made the first time."""
        key = (sort, *map(id, parts))
        node = self._nodes.get(key)
        if node is None:
            if len(self._nodes) >= NODES_MAX:
                raise ScriptError(
                    f"the sides of a `||` have more than {NODES_MAX} states together; create processes instead"
                )
            self._kept.append(parts)
            node = self._nodes[key] = Node(self._number(), make)
        return node

    def _scope_of(
        self, sort: str, place: object, scope: Scope, make: Callable[[], tuple[Scope, tuple[int, ...]]]
    ) -> tuple[Scope, tuple[int, ...]]:
        key = (sort, id(place), id(scope))
        found = self._scopes.get(key)
        if found is None:
            self._kept.append((place, scope))
            found = self._scopes[key] = make()
        return found

    def _exit(self, onward: Onward, slots: tuple[int, ...]) -> Exit:
        key = (id(onward), slots)
        found = self._exits.get(key)
        if found is None:
            found = self._exits[key] = Exit(onward, slots)
        return found


def _alternatives(choice: Choice) -> list[Process]:
    """Return the parts of a choice of choices, in the order of the script."""
    parts: list[Process] = []
    waiting: list[Process] = [choice]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Choice):
            waiting += (part.right, part.left)
        else:
            parts.append(part)
    return parts


def _wrap(
    edges: tuple[Edge, ...], side: int, go_on: Callable[[Node], Onward], whole: Onward | None
) -> tuple[Edge, ...]:
    """Return edges as those of one side of a composite; who goes on as `whole` ends the composite."""
    copies = {id(edge): edge.copy() for edge in edges}
    for edge in edges:
        made = copies[id(edge)]
        made.blockers = tuple(copies[id(blocker)] for blocker in edge.blockers)
        made.path = (side, *edge.path)
        onward = go_on(edge.target)
        made.replaces = () if onward is whole else (side, *edge.replaces)
        _go(made, onward)
    return tuple(copies.values())


def _go(edge: Edge, onward: Onward) -> None:
    """Let an edge go on as something, and drop what is not needed there."""
    while isinstance(onward, Exit):
        edge.drops += onward.slots
        onward = onward.node
    edge.target = onward


def _names(pattern: Pattern, name: str) -> Evaluation:
    """Return whether a variable has the name of a process."""
    return lambda slots, _: plain(substitute(pattern, slots)) == name


def _holds(type_: Value, pattern: Pattern) -> Evaluation:
    return lambda slots, _: accepts(type_, plain(substitute(pattern, slots)))
