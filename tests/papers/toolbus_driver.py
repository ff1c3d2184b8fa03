"""Runs T-scripts for the tests of the ToolBus: no sockets, no clock, no chance but a seed.

A `Bus` is a machine with what it has done so far. Time goes on only where a test says so; tools are what a test says
they say, or a function from what the machine does to what is heard because of it.

With ECHOIC_TEST_BY_REFERENCE in the environment the machine hears references in the place of all strings that tools
say, and gets the values it asks for: whatever a test expects must be so by reference as well.
"""

import dataclasses
import os
import random
import re
from collections.abc import Callable, Iterable, Mapping

from echoic.scripts.checking import Findings, check, require
from echoic.scripts.graph import Options, compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine, MachineLimits, ToolState
from echoic.scripts.running.messages import (
    Connected,
    Delivered,
    Effect,
    Fetch,
    Fetched,
    FromTool,
    Input,
    Lost,
    Print,
    Said,
    Start,
    Step,
    Tell,
    ToTool,
    Warned,
)
from echoic.scripts.syntax import load
from echoic.terms import Reference, ReferenceKind, Term, TermList, Value, parse_text, with_values, write_text

SECOND_NS = 1_000_000_000
TURNS_MAX = 50_000
SEEDS = range(12)
BY_REFERENCE = bool(os.environ.get("ECHOIC_TEST_BY_REFERENCE"))

World = Callable[[Effect], Iterable[Input]]


def nobody(effect: Effect) -> Iterable[Input]:
    """No tool, no user."""
    return ()


def answering(answers: Mapping[str, str]) -> World:
    """Tools that connect when they are started, are done with every do, and know `answers` to evals, both as text."""

    def world(effect: Effect) -> Iterable[Input]:
        match effect:
            case Start(tool, name):
                return [Connected(name, tool)]
            case Tell(tool, ToTool.EVAL, (question,)):
                return [Said(tool, FromTool.VALUE, (parse_text(answers[write_text(question)]),))]
            case Tell(tool, ToTool.DO):
                return [Said(tool, FromTool.VOID)]
        return ()

    return world


class Bus:
    """A script that runs."""

    def __init__(
        self,
        script: str,
        seed: int = 0,
        *,
        world: World = nobody,
        options: Options | None = None,
        epoch_ns: int = 0,
        traced: bool = False,
        limits: MachineLimits | None = None,
        turns_at_once: int = 1,
    ) -> None:
        tree = load(script, "test.tb")
        self.findings: Findings = require(tree)
        self.now_ns = 0
        self.effects: list[Effect] = []
        self.endless = False
        self._world = world
        self._turns_at_once = turns_at_once
        self._values: dict[Reference, Value] = {}
        self.machine = Machine(
            compile(tree, options or Options()),
            chance=random.Random(seed),
            now_ns=0,
            epoch_ns=epoch_ns,
            traced=traced,
            limits=limits or MachineLimits(),
        )
        self.machine.start()
        self.go()

    def go(self) -> "Bus":
        """Do all there is to do at this time."""
        for _ in range(TURNS_MAX):
            more = self.machine.run(self._turns_at_once, self.now_ns)
            heard: list[Input] = []
            effects = self._valued(self.machine.take_effects(), heard)
            self.effects += effects
            heard += [each for effect in effects for each in self._world(effect)]
            for each in heard:
                self.machine.receive(self._referring(each), self.now_ns)
            if not more and not heard:
                self.effects += self._valued(self.machine.take_effects(), [])
                return self
        self.endless = True
        return self

    def wait(self, seconds: float) -> "Bus":
        """Let time go on, from deadline to deadline."""
        until_ns = self.now_ns + round(seconds * SECOND_NS)
        while (due_ns := self.machine.deadline_ns()) is not None and due_ns <= until_ns and not self.machine.halted:
            assert due_ns > self.now_ns, "a deadline that has passed, and nothing was done"
            self.now_ns = due_ns
            self.go()
        self.now_ns = until_ns
        return self.go()

    def hear(self, *inputs: Input) -> "Bus":
        """Hear something, and do all there is to do then."""
        for each in inputs:
            self.machine.receive(self._referring(each), self.now_ns)
        return self.go()

    def _referring(self, heard: Input) -> Input:
        """Return an input with references in it, where tests run by reference."""
        if not BY_REFERENCE or not isinstance(heard, Said):
            return heard
        variable = len(self._values) + 1
        return dataclasses.replace(
            heard, values=tuple(self._cut(each, heard.tool, variable, ()) for each in heard.values)
        )

    def _cut(self, value: Value, owner: int, variable: int, path: tuple[int, ...]) -> Value:
        match value:
            case str():
                reference = Reference(owner, variable, path, ReferenceKind.STR, len(value.encode()))
                self._values[reference] = value
                return reference
            case Term(name=name, args=args):
                parts = [self._cut(each, owner, variable, (*path, at)) for at, each in enumerate(args)]
                return Term(name, *parts, quoted=value.quoted) if value.quoted else Term(name, *parts)
            case TermList():
                return TermList(*[self._cut(each, owner, variable, (*path, at)) for at, each in enumerate(value)])
        return value

    def _valued(self, effects: Iterable[Effect], heard: list[Input]) -> list[Effect]:
        """Return effects as the world sees them, and add what is heard because references are in them."""
        seen: list[Effect] = []
        for effect in effects:
            match effect:
                case Fetch(reference):
                    heard.append(Fetched(reference, self._values[reference]))
                    continue
                case Tell(hold=int(hold)):
                    heard.append(Delivered(hold))
                    values = tuple(with_values(each, self._values) for each in effect.values)
                    effect = dataclasses.replace(effect, values=values, hold=None)
            seen.append(effect)
        return seen

    def connect(self, name: str) -> int:
        """Connect a tool that nobody has started; return its number."""
        number = self.machine.receive(Connected(name), self.now_ns)
        assert number is not None
        self.go()
        return number

    def say(self, tool: int, kind: str, *values: str) -> "Bus":
        """Let a tool say something."""
        return self.hear(Said(tool, FromTool(kind), tuple(map(parse_text, values))))

    def lose(self, tool: int) -> "Bus":
        """Lose a tool."""
        return self.hear(Lost(tool, "gone"))

    @property
    def text(self) -> str:
        """All that was printed."""
        return "".join(effect.text for effect in self.effects if isinstance(effect, Print))

    @property
    def told(self) -> list[str]:
        """All that tools were told: `1 eval f(1)`."""
        return [
            " ".join([str(effect.tool), effect.kind, *map(write_text, effect.values)])
            for effect in self.effects
            if isinstance(effect, Tell)
        ]

    @property
    def warned(self) -> list[str]:
        """All warnings."""
        return [effect.text for effect in self.effects if isinstance(effect, Warned)]

    @property
    def steps(self) -> list[Step]:
        """What was done, if it was traced."""
        return [effect for effect in self.effects if isinstance(effect, Step)]

    @property
    def ending(self) -> str:
        """`endless`, `waiting`, `halted`, or `shutdown` with what it said."""
        if self.endless:
            return "endless"
        if not self.machine.halted:
            return "waiting"
        result = self.machine.result
        return "halted" if result is None else f"shutdown {write_text(result)}"

    def state_of(self, tool: int) -> ToolState | None:
        """Return the state of a tool, None if it is not known."""
        return next((view.state for view in self.machine.state().tools if view.number == tool), None)


def alone(body: str, **options: object) -> Bus:
    """Run one process P with this body."""
    return Bus(f"process P is {body} toolbus(P)", **options)  # type: ignore[arg-type]


def printed(script: str, seconds: float = 0) -> str:
    """Return what a script prints, which is the same with every seed; P is started if nothing is said about that."""
    if not re.search(r"toolbus\s*\(", script):
        script += "\ntoolbus(P)"
    texts = {Bus(script, seed).wait(seconds).text for seed in SEEDS}
    assert len(texts) == 1, f"it depends on chance: {texts}"
    return texts.pop()


def outcomes(script: str, seeds: Iterable[int] = range(60), seconds: float = 0) -> set[str]:
    """Return all that a script may print."""
    return {Bus(script, seed).wait(seconds).text for seed in seeds}


def value_of(expression: str, declarations: str = "", first: str = "tau") -> Value:
    """Return the value of an expression on the right side of an assignment."""
    declared = f", {declarations}" if declarations else ""
    text = printed(
        f'process P is let RESULT : term{declared} in {first} . RESULT := {expression} . printf("%t", [RESULT]) endlet'
    )
    made = parse_text(text)
    return made[0]  # type: ignore[index, return-value]


def complaints(script: str) -> list[str]:
    """Return the errors of the static checks."""
    return [problem.message for problem in check(load(script, "test.tb")).errors]


def warnings(script: str) -> list[str]:
    """Return the warnings of the static checks."""
    return [problem.message for problem in check(load(script, "test.tb")).warnings]
