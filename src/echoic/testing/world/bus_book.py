"""What a world's bus and tools have said to each other, and whether they may have.

handshakes    every message between processes has exactly two partners, both of them alive
messages      each event of a tool is taken by the script once, in order; each question reaches a tool once, in
              order; each event is acknowledged once
references    a tool is told that a value is not needed any more once, and never before whoever was told of it has it
"""

from collections import Counter
from typing import Final, TypeAlias

from echoic.scripts.running.messages import Step
from echoic.terms import Term
from echoic.testing.ledger import check

__all__ = ["BusBook"]

ToolLife: TypeAlias = tuple[str, int]
"""The name of a tool, and the number that the bus has given it."""


class BusBook:
    """The book of a bus and all of its tools."""

    def __init__(self) -> None:
        self.taken: Final[Counter[int]] = Counter()
        """By tool, how many of its events the script has taken."""
        self.asked: Final[Counter[int]] = Counter()
        self.acknowledged: Final[Counter[int]] = Counter()
        self.kept: Final[dict[int, set[int]]] = {}
        """By tool, the values that it has, and has not been told to forget."""
        self.handshakes = 0
        self._last: dict[int, int] = {}

    def step(self, step: Step) -> None:
        """Note a step of the script.

        Raises:
            AssertionError: It may not be.
        """
        if step.atom in {"snd-msg", "rec-msg"}:
            self.handshakes += 1
            check(step.partner is not None and step.partner != step.process, "a handshake without a partner: {}", step)
        elif step.atom == "rec-event":
            match step.arguments:
                case (Term(args=(int(number),)), Term(args=(int(tick), *_))):
                    last = self._last.get(number, 0)
                    check(tick == last + 1, "the script takes event {} of tool {} after {}", tick, number, last)
                    self._last[number] = tick
                    self.taken[number] += 1
                case _:
                    check(False, "an event is {}", step.arguments)

    def question(self, number: int, transaction: int) -> None:
        """Note that a tool hears a question, by the bus's number of it.

        Raises:
            AssertionError: It has heard it before, or not the one before.
        """
        self.asked[number] += 1
        check(
            transaction == self.asked[number],
            "tool {} is asked {} as question {}",
            number,
            transaction,
            self.asked[number],
        )

    def acknowledge(self, number: int, tick: int) -> None:
        """Note that a tool hears that its event was taken.

        Raises:
            AssertionError: It has heard so before, or not of the one before, or the script has not taken it.
        """
        self.acknowledged[number] += 1
        check(tick == self.acknowledged[number], "event {} of tool {} is acknowledged out of order", tick, number)
        check(tick <= self.taken[number], "event {} of tool {} is acknowledged, and nobody has taken it", tick, number)

    def keep(self, number: int, variable: int) -> None:
        """Note that a tool has a value that others may need."""
        self.kept.setdefault(number, set()).add(variable)

    def finish(self, number: int, variable: int) -> None:
        """Note that a tool hears that a value is not needed any more.

        Raises:
            AssertionError: It has heard so before.
        """
        check(variable in self.kept.get(number, ()), "value {} of tool {} is given up twice", variable, number)
        self.kept[number].discard(variable)

    def fetch(self, owner: int, variable: int) -> None:
        """Note that somebody who was told of a value gets it from a tool that lives.

        Raises:
            AssertionError: The tool has been told to forget it.
        """
        check(variable in self.kept.get(owner, ()), "value {} of tool {} was freed too early", variable, owner)
