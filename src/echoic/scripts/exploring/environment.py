"""The environment: what tools and channels may do, as far as the script can tell.

A script is open: tools answer, send events, come and go. To look at all it can do it must be closed, and the most
general environment does that: a tool can do whatever its interface (`checking.interface`) allows, at any time.

    the script does             the tool
    execute, rec-connect        is there
    snd-eval(T, q)              answers, some time later, with any of the values that may be meant
    snd-do(T, c)                has done it
    rec-event(T, e(X?))         sends any event that matches
    rec-request(T, r(X?))       asks anything that matches, and not again before it has its response
    rec-disconnect(T)           leaves at any time; only tools do that the script has such an atom for
    read(P, X?)                 somebody types anything that matches
    rec-note                    a channel bound to notes sends any note of its pattern

The values that may be meant by an eval: those of the `rec-value` atoms that can follow it in its process before the
next eval of the same tool, and all of the tool where there are none. `answer_anything` makes it all in any case.
Values are of small domains (`domains.py`). With `tools_fail` every tool may be lost at any time.

What a tool says is chosen when the script takes it, since a tool may wait with it as long as it likes; only the answer
to an eval is chosen before, because it is there whether the script wants it or not.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from echoic.scripts.checking import interface
from echoic.scripts.checking.survey import Scope, survey
from echoic.scripts.exploring.domains import Domain
from echoic.scripts.graph import Edge, Kind, Node, Program, Slot, head_of
from echoic.scripts.syntax.tree import Atom, Create, Expression, Variable
from echoic.terms import Term, TermList, Value

__all__ = ["Environment", "Surroundings"]

NODES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Environment:
    """How the environment behaves.

    `domain` has values by the names of types; `connections_max` is how many tools of one name come by themselves;
    `stubs` are programs that play tools, by the names of the tools (`stubs.py`).
    """

    domain: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    values_max: int = 64
    connections_max: int = 1
    answer_anything: bool = False
    tools_fail: bool = False
    stubs: Mapping[str, Program] = field(default_factory=dict)


class Surroundings:
    """An environment around one program."""

    def __init__(self, program: Program, environment: Environment) -> None:
        script = program.script
        self.environment = environment
        self.domain = Domain(environment.domain, environment.values_max)
        self.answers: dict[str, tuple[Value, ...]] = {}
        self.said: defaultdict[tuple[Kind, str], list[tuple[Value, ...]]] = defaultdict(list)
        for tool in program.tools:
            self._add_tool(program, tool)
        self.leaving: set[str] = set()  # the tools that may leave
        self.creates = False
        self.speaks = bool(program.tools or script.channel_notes)  # whether values come from outside
        for placed in survey(script):
            if isinstance(placed.node, Create):
                self.creates = True
            elif isinstance(placed.node, Atom) and placed.node.name == "read":
                self.speaks = True
            elif isinstance(placed.node, Atom) and placed.node.name == "rec-disconnect":
                self._add_leaving(placed.node.arguments[0], placed.scope, program)
        self.notes = tuple(value for note in script.channel_notes for value in self.domain.of_pattern(note.pattern))
        self._following: dict[Edge, tuple[object, ...]] = {}

    def _add_tool(self, program: Program, tool: str) -> None:
        answers: dict[Value, None] = {}
        for entry in interface(program.script, tool).output:
            patterns = entry.args[1:]
            if entry.name == "snd-value":
                answers.update(dict.fromkeys(self.domain.of_pattern(patterns[0])))
            elif entry.name in ("snd-event", "snd-request"):
                kind = Kind.REC_EVENT if entry.name == "snd-event" else Kind.REC_REQUEST
                known = {TermList(*each) for each in self.said[kind, tool]}
                combined = self.domain.of_pattern(TermList(*patterns))
                self.said[kind, tool] += [
                    each.elements for each in combined if isinstance(each, TermList) and each not in known
                ]
        self.answers[tool] = tuple(answers)

    def _add_leaving(self, argument: Expression, scope: Scope, program: Program) -> None:
        declared = scope.find(argument.name) if isinstance(argument, Variable) else None
        if declared is not None and isinstance(declared.type, Term) and declared.type.name in program.tools:
            self.leaving.add(declared.type.name)
        else:
            self.leaving.update(program.tools)

    def answers_to(self, edge: Edge, tool: str) -> tuple[Value, ...]:
        """Return what a tool may answer to the eval of an edge."""
        every = self.answers.get(tool, ())
        if self.environment.answer_anything:
            return every
        if edge not in self._following:
            self._following[edge] = _following_heads(edge)
        heads = self._following[edge]
        meant = tuple(value for value in every if head_of(value, ()) in heads)
        return meant if meant and None not in heads else every


def _following_heads(edge: Edge) -> tuple[object, ...]:
    """Return the heads of what the process of an eval takes next from the same variable."""
    tool = edge.arguments[0]
    seen: dict[Node, None] = {edge.target: None}
    waiting = [edge.target]
    heads: dict[object, None] = {}
    while waiting and len(seen) < NODES_MAX:
        for each in waiting.pop().edges:
            if each.kind in (Kind.REC_VALUE, Kind.SND_EVAL) and _same_variable(each.arguments[0], tool):
                if each.kind is Kind.REC_VALUE:
                    pattern = each.arguments[1]
                    heads[None if isinstance(pattern, Slot) else head_of(pattern, ())] = None
            elif each.target not in seen:
                seen[each.target] = None
                waiting.append(each.target)
    return tuple(heads)


def _same_variable(one: object, other: object) -> bool:
    return one is other or (isinstance(one, Slot) and isinstance(other, Slot) and one.index == other.index)
