"""Exploring: all that a script can do, and what is wrong with that.

    program = compile(load(text, "phil3.tb"))
    found = explore(program)
    print(found.text)              197 states, ..., and what was found, with traces
    found.write_aut()              for mCRL2 and CADP

Measured (Python 3.11, one core of a small machine): 60,000 to 80,000 states and about 400,000 transitions in a second
of processor time for dining philosophers, without reduction, and 380 bytes for each state of 18 processes.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from echoic.scripts.exploring.aut import write_aut
from echoic.scripts.exploring.dot import write_dot
from echoic.scripts.exploring.environment import Environment, Surroundings
from echoic.scripts.exploring.findings import Finding, FindingKind
from echoic.scripts.exploring.limits import ExplorationLimits
from echoic.scripts.exploring.local_moves import Moves
from echoic.scripts.exploring.reached import Reached
from echoic.scripts.exploring.reports import Reports
from echoic.scripts.exploring.search import search
from echoic.scripts.exploring.steps import Step
from echoic.scripts.exploring.successors import State, Successors
from echoic.scripts.exploring.transition_systems import TransitionSystem, minimise
from echoic.scripts.graph import Program
from echoic.scripts.syntax.problems import counted

__all__ = ["Exploration", "explore"]

ANYTHING: Final = Environment()
DEFAULTS: Final = ExplorationLimits()
SHORTER_STATES_MIN: Final = 20_000


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was found.

    `left_out` says what was not looked at; without it, `complete`, there is nothing that the script could do beyond
    what is here, apart from what the environment's small domains leave out.
    """

    states: int
    transitions: int
    findings: tuple[Finding, ...]
    left_out: tuple[str, ...]
    reduced: int  # states of which only the steps of one process were looked at
    sources: dict[str, str] = field(repr=False)
    stuck: frozenset[int] = field(repr=False)
    _reached: Reached = field(repr=False, compare=False)

    @property
    def complete(self) -> bool:
        """Whether everything was looked at."""
        return not self.left_out

    def of_kind(self, kind: FindingKind) -> tuple[Finding, ...]:
        """Return the findings of one sort."""
        return tuple(finding for finding in self.findings if finding.kind is kind)

    @property
    def text(self) -> str:
        """All of it for people, each finding with its line and a caret."""
        seen = "everything was looked at" if self.complete else f"not looked at: {'; '.join(self.left_out)}"
        head = f"{counted(self.states, 'state')}, {counted(self.transitions, 'transition')}, {seen}"
        return "\n".join([head, *(finding.render(self.sources) for finding in self.findings)])

    def steps_from(self, state: int) -> tuple[tuple[Step, int], ...]:
        """Return what can be done in a state, each step with the state behind it; the first state is 0."""
        steps, targets = self._reached.steps_of(state), self._reached.targets_of(state)
        return tuple((self._reached.all_steps[step], target) for step, target in zip(steps, targets, strict=True))

    def system(self, *, minimal: bool = False) -> TransitionSystem:
        """Return states and transitions; with `minimal` states that can do the same are one."""
        system = self._reached.system()
        return minimise(system) if minimal else system

    def write_aut(self, *, minimal: bool = False) -> str:
        """Return what was found as the text of an `.aut` file."""
        return write_aut(self.system(minimal=minimal))

    def write_dot(self, *, minimal: bool = False) -> str:
        """Return what was found as the text of a `.dot` file; states in which nobody can go on are red."""
        return write_dot(self.system(minimal=minimal), stuck=frozenset() if minimal else self.stuck)


def explore(
    program: Program,
    *,
    environment: Environment = ANYTHING,
    limits: ExplorationLimits = DEFAULTS,
    reduce: bool = True,
) -> Exploration:
    """Return all that a program can do, up to limits, and what is wrong with that.

    With `reduce` the order of steps that have nothing to do with each other is not explored, which leaves the findings
    as they are.

    Raises:
        ScriptError: The script is not in order.
    """
    moves = Moves(program, Surroundings(program, environment), limits)
    successors = Successors(moves)
    reached = Reached(moves.steps.all)
    search(reached, successors, limits, reduce=reduce)
    left_out = [*successors.left_out]
    if moves.surroundings.domain.cut:
        left_out.append(f"more than {environment.values_max} values of one pattern")
    reports = Reports(reached, moves, successors, complete=not left_out, shortest=not reached.reduced)
    findings = reports.all()
    stuck = frozenset(reports.deadlocks())
    if reached.reduced and stuck:
        findings = _shortened(
            findings, frozenset(reached.states[state] for state in stuck), reports, successors, limits
        )
    return Exploration(
        len(reached.states),
        len(reached.targets),
        tuple(findings),
        tuple(left_out),
        reached.reduced,
        program.script.sources,
        stuck,
        reached,
    )


def _shortened(
    findings: list[Finding],
    stuck: frozenset[State],
    reports: Reports,
    successors: Successors,
    limits: ExplorationLimits,
) -> list[Finding]:
    """Return findings of which the deadlock that is reached soonest has a shortest trace, if it is not too far away."""
    again = Reached(reports.steps)
    enough = replace(limits, states_max=min(limits.states_max, max(SHORTER_STATES_MIN, 2 * reports.states)))
    found = search(again, successors, enough, reduce=False, wanted=stuck.__contains__)
    if found is None:
        return findings
    shortest = (FindingKind.DEADLOCK, *reports.stuck(again.states[found]))
    return [
        replace(each, trace=again.trace(found), shortest=True)
        if (each.kind, each.text, each.span) == shortest
        else each
        for each in findings
    ]
