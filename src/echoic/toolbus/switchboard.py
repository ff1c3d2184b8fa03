"""The switchboard of a bus: which line is which tool of the machine. Used by the thread that drives the machine alone.

    line says   ->  Connected, Said, Lost  ->  machine
    line told  <-   Tell, Dismiss         <-   machine

`on_word` learns of every word in both directions, for recordings.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from echoic.scripts.running.messages import Connected, Dismiss, FromTool, Input, Lost, Said, Tell, ToTool
from echoic.terms import Value
from echoic.toolbus.line import Line
from echoic.toolbus.transactions import Transactions

__all__ = ["Conversation", "Driven", "OnWord", "Switchboard"]

OnWord = Callable[[str, int, FromTool | ToTool | str, tuple[Value, ...]], None]
"""Called with a tool's name and number, what is said, and its values; `connected` and `lost` are said as well."""


class Driven(Protocol):
    """A machine, as far as it takes inputs."""

    def receive(self, input: Input, now_ns: int) -> int | None:  # noqa: A002 - it is one
        """Take an input; return the number of a tool that has connected."""


@dataclass(slots=True)
class Conversation:
    """A tool that is connected."""

    number: int
    line: Line
    transactions: Transactions = field(default_factory=Transactions)
    said: int = 0
    told: int = 0
    terminated: bool = False


class Switchboard:
    """Joins lines and the numbers of tools."""

    def __init__(self, machine: Driven, on_late: Callable[[Conversation, str], None]) -> None:
        """Begin with no tool.

        Args:
            machine: What decides.
            on_late: Called when a tool answers what nobody waits for.
        """
        self.conversations: Final[dict[int, Conversation]] = {}
        self.on_word: OnWord | None = None
        self._machine = machine
        self._by_line: dict[Line, Conversation] = {}
        self._on_late = on_late

    def arrived(self, line: Line, instance: int | None, now_ns: int) -> None:
        """Take in a tool."""
        number = self._machine.receive(Connected(line.name, instance), now_ns)
        if number is None:
            line.close()
            return
        conversation = Conversation(number, line)
        self.conversations[number] = conversation
        self._by_line[line] = conversation
        self._record(conversation, "connected", ())
        line.welcome(number)

    def heard(self, line: Line, kind: FromTool, transaction: int, values: tuple[Value, ...], now_ns: int) -> None:
        """Hand on what a tool says, unless it is too late."""
        conversation = self._by_line.get(line)
        if conversation is None:
            return
        conversation.said += 1
        if not conversation.transactions.said(kind, transaction, values):
            self._on_late(conversation, kind)
            return
        self._record(conversation, kind, values)
        self._machine.receive(Said(conversation.number, kind, values), now_ns)

    def gone(self, line: Line, reason: str, now_ns: int) -> None:
        """Learn that a line is dead."""
        conversation = self._by_line.pop(line, None)
        if conversation is None:
            return
        self.conversations.pop(conversation.number, None)
        self._record(conversation, "lost", (reason,))
        self._machine.receive(Lost(conversation.number, reason), now_ns)

    def tell(self, effect: Tell) -> None:
        """Say to a tool what the machine wants."""
        conversation = self.conversations.get(effect.tool)
        if conversation is None:
            return  # it is gone, and the machine will learn or has learned of it
        conversation.told += 1
        conversation.terminated = conversation.terminated or effect.kind is ToTool.TERMINATE
        transaction = conversation.transactions.told(effect.kind, effect.values)
        self._record(conversation, effect.kind, effect.values)
        conversation.line.tell(effect.kind, transaction, effect.values)

    def dismiss(self, effect: Dismiss) -> Line | None:
        """End the conversation with a tool that the machine does not know any more; return its line."""
        conversation = self.conversations.pop(effect.tool, None)
        if conversation is None:
            return None
        self._by_line.pop(conversation.line, None)
        conversation.line.close()
        return conversation.line

    @property
    def busy(self) -> bool:
        """Whether a tool has something to answer."""
        return any(each.transactions.busy for each in self.conversations.values())

    def _record(self, conversation: Conversation, kind: FromTool | ToTool | str, values: tuple[Value, ...]) -> None:
        if self.on_word is not None:
            self.on_word(conversation.line.name, conversation.number, kind, values)
