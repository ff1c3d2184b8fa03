"""Stubs: tools for unit tests of scripts, without a program behind them.

ui = bus.stub("ui", {"ask": lambda text: Term("answer", 42)})
bus.inject_event("ui", Term("button", "ok"))
assert ui.told == [...]
"""

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from echoic.errors import UnreachableError
from echoic.scripts.running.messages import FromTool, ToTool
from echoic.terms import Term, Value, value_of
from echoic.toolbus.line import Audience

__all__ = ["Answers", "Stub"]

Answers: TypeAlias = Mapping[str, object]
"""The value of an eval by its name: a value, or what makes one of the arguments."""
NO_ANSWERS: Final[Answers] = MappingProxyType({})
TOLD_MAX: Final = 100_000


class Stub:
    """A line whose tool says only what it was told to say."""

    def __init__(self, name: str, audience: Audience, answers: Answers = NO_ANSWERS) -> None:
        """Begin; evals that `answers` does not have are left unanswered."""
        self.name: Final = name
        self.number = 0
        self.told: Final[list[tuple[ToTool, tuple[Value, ...]]]] = []
        """What the bus has said, in order."""
        self.closed = False
        self._audience = audience
        self._answers = dict(answers)
        self._heard = threading.Condition()

    def welcome(self, number: int) -> None:
        """Learn the number of the tool."""
        self.number = number

    def tell(self, kind: ToTool, transaction: int, values: tuple[Value, ...]) -> None:
        """Take what the bus says, and answer at once where an answer is known."""
        with self._heard:
            if len(self.told) < TOLD_MAX:
                self.told.append((kind, values))
            self._heard.notify_all()
        asked = values[0] if values else None
        if kind is ToTool.DO:
            self._audience.heard(self, FromTool.VOID, transaction, ())
        elif kind is ToTool.EVAL and isinstance(asked, Term) and asked.name in self._answers:
            answer = self._answers[asked.name]
            made: object = answer(*asked.args) if callable(answer) else answer
            self._audience.heard(self, FromTool.VALUE, transaction, (value_of(made),))

    def say(self, kind: FromTool, *values: object) -> None:
        """Say something to the bus, in whatever order."""
        self._audience.heard(self, kind, 0, tuple(map(value_of, values)))

    def wait_for(self, kind: ToTool, timeout: float = 5.0) -> tuple[Value, ...]:
        """Return the values of the first thing of a kind that the bus says.

        Raises:
            UnreachableError: It does not say so in time.
        """
        with self._heard:
            if not self._heard.wait_for(lambda: any(told is kind for told, _ in self.told), timeout):
                raise UnreachableError(f"tool `{self.name}` was not told `{kind}` within {timeout:g} seconds")
            return next(values for told, values in self.told if told is kind)

    def lose(self, reason: str) -> None:
        """Let the bus lose the tool."""
        self._audience.gone(self, reason)

    def close(self) -> None:
        """Learn that the bus has ended the conversation."""
        self.closed = True
