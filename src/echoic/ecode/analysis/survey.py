"""What is known about a program before it runs: how often its loops turn, what an event costs, which checks are idle.

Three questions are asked of a checked program, each in a module of its own:

    loops       how often does this loop turn at most?             the only proof that anything relies on
    intervals   can this index leave its array?                    only where a proved loop counts the index
    cost        how many simple instructions does an event take?   compared with a source's budget at install

A loop that turns a proved number of times needs no fuel. Any other one burns, with each turn, what a turn costs at
most, so the fuel that an event is given bounds its time whatever the program does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from echoic.ecode.analysis.cost import Costs, metered
from echoic.ecode.analysis.intervals import Interval, Ranges, fits
from echoic.ecode.analysis.loops import Counted, prove
from echoic.ecode.analysis.traversal import Node, walk
from echoic.ecode.typed import Arithmetic, Block, Element, If, Index, Location, Loop, Statement, Value, Variable

if TYPE_CHECKING:
    from echoic.ecode.program import Program, Signature

__all__ = ["Analysis", "analyse"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What was found about one program; loops and indexes are those of its tree."""

    trips: dict[Loop, int]
    """How often the body of a loop runs at most, for each loop of which that is proved."""
    burns: dict[Loop, int]
    """The fuel that each turn of any other loop burns; at least 1."""
    safe: set[Index | Element]
    """The indexes that cannot leave their arrays, as far as these have a length or capacity that is known."""
    cost: int
    """What an event costs at most, with one turn of each loop without a proved count: further ones take fuel."""
    counted: dict[Loop, Counted] = field(default_factory=dict)
    """The proofs behind `trips`."""
    exact: set[Arithmetic] = field(default_factory=set)
    """The integer operations that cannot wrap."""
    metered: bool = False
    """Whether long texts burn fuel (`cost.metered`)."""
    output_bytes: int = 0
    """How many bytes an output record has at most, texts taken as usual ones; 0 without output."""

    @property
    def bounded(self) -> bool:
        """Whether the cost is all there is: nothing needs fuel."""
        return not self.burns and not self.metered


def analyse(program: "Program") -> Analysis:
    """Return what is known about a program."""
    survey = _Survey(program.signature)
    survey.statement(program.body, {})
    trips = {loop: counted.turns for loop, counted in survey.counted.items()}
    safe = survey.safe - survey.unsafe
    costs = Costs(program, trips, safe)
    burns = {loop: costs.turn(loop) for loop in survey.unproved}
    exact = survey.exact - survey.inexact
    return Analysis(trips, burns, safe, costs.event(), survey.counted, exact, survey.metered, costs.output_bytes())


class _Survey:
    """Visits every statement with the counters that are known there.

    A node may stand at several places of a tree. What is said about it must hold at each, so what fails once is kept.
    """

    def __init__(self, signature: "Signature") -> None:
        self._signature = signature
        self.counted: dict[Loop, Counted] = {}
        self.unproved: list[Loop] = []
        self.safe: set[Index | Element] = set()
        self.unsafe: set[Index | Element] = set()
        self.exact: set[Arithmetic] = set()
        self.inexact: set[Arithmetic] = set()
        self.metered = False

    def statement(self, statement: Statement, counters: Mapping[Variable, Interval]) -> None:
        match statement:
            case Block(statements=statements):
                for inner in statements:
                    self.statement(inner, counters)
            case If():
                self._look(statement.test, counters)
                self.statement(statement.yes, counters)
                if statement.no is not None:
                    self.statement(statement.no, counters)
            case Loop():
                self._loop(statement, counters)
            case _:
                self._look(statement, counters)

    def _loop(self, loop: Loop, counters: Mapping[Variable, Interval]) -> None:
        counted = prove(loop, Ranges(counters))
        inside = around = counters
        if counted is None:
            self.unproved.append(loop)
        else:
            self.counted[loop] = counted
            if counted.counter is not None:
                inside = {**counters, counted.counter: counted.inside}
                around = {**counters, counted.counter: counted.reached}
        self._look(loop.test, around)
        self._look(loop.step, around)
        self.statement(loop.body, inside)

    def _look(self, node: Node | Value | None, counters: Mapping[Variable, Interval]) -> None:
        """Judge the indexes and operations of a statement without statements in it; parts before the whole."""
        if node is None:
            return
        ranges = Ranges(counters)
        for part in reversed(list(walk(node))):
            self.metered = self.metered or metered(part)
            match part:
                case Index():
                    self._judge(part, ranges.of(part.value), part.length)
                case Element():
                    self._judge(part, ranges.of(part.index), self._capacity(part.array))
                case Arithmetic():
                    result = ranges.unwrapped(part)
                    known = result is not None and fits(result, part.number)
                    (self.exact if known else self.inexact).add(part)
                case _:
                    pass

    def _judge(self, index: Index | Element, interval: Interval | None, length: int) -> None:
        safe = interval is not None and interval[0] >= 0 and interval[1] < length
        (self.safe if safe else self.unsafe).add(index)

    def _capacity(self, array: Location) -> int:
        """Return the length that a dynamic array surely has: in `output` its capacity, elsewhere none."""
        return self._signature.capacity(array.path) if array.root == "output" else 0
