"""The switchboard of a bus: which line is which tool of the machine. Used by the thread that drives the machine alone.

    line says   ->  Connected, Said, Lost, Fetched  ->  machine
    line told  <-   Tell, Dismiss                  <-   machine

`on_word` learns of every word in both directions, for recordings.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from echoic.scripts.running.messages import Connected, Dismiss, Fetched, FromTool, Input, Lost, Said, Tell, ToTool
from echoic.terms import TermList, Value, with_values
from echoic.toolbus.custody import Custody
from echoic.toolbus.delivery import Delivery
from echoic.toolbus.line import Line
from echoic.toolbus.transactions import Transactions

__all__ = ["Conversation", "Driven", "OnWord", "Switchboard"]

ASKING: Final = frozenset({ToTool.EVAL, ToTool.DO})
OnWord = Callable[[str, int, FromTool | ToTool | str, tuple[Value, ...]], None]
"""Called with a tool's name and number, what is said, and its values; `connected` and `lost` are said as well."""


class Driven(Protocol):
    """A machine, as far as it takes inputs."""

    @property
    def halted(self) -> bool:
        """Whether it has ended."""

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
    asked: tuple[ToTool, int, tuple[Value, ...]] | None = None
    """The eval or do that is not answered, where the tool may be started again and must be asked again."""


class Switchboard:
    """Joins lines and the numbers of tools."""

    def __init__(
        self, machine: Driven, on_late: Callable[[Conversation, str], None], custody: Custody, delivery: Delivery
    ) -> None:
        """Begin with no tool.

        Args:
            machine: What decides.
            on_late: Called when a tool answers what nobody waits for.
            custody: Knows where values are.
            delivery: Tells tools things.
        """
        self.conversations: Final[dict[int, Conversation]] = {}
        self.on_word: OnWord | None = None
        self.on_closed: Callable[[Line], None] = lambda line: None  # noqa: ARG005 - for whoever keeps something about it
        self._machine = machine
        self._by_line: dict[Line, Conversation] = {}
        self._on_late = on_late
        self._custody = custody
        self._delivery = delivery

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
        if not conversation.transactions.busy:
            conversation.asked = None
        self._record(conversation, kind, values)
        self._machine.receive(Said(conversation.number, kind, values), now_ns)

    def leaving(self, line: Line, act: Callable[[], None]) -> None:
        """Let a tool go that wants to, when its values are not needed from it any more."""
        conversation = self._by_line.get(line)
        if conversation is None:
            act()
        else:
            self._custody.farewell(conversation.number, act, halted=self._machine.halted)

    def returned(self, line: Line, now_ns: int) -> None:
        """Go on with a tool that was started again: its values are gone, and what was not answered is asked again."""
        conversation = self._by_line.get(line)
        if conversation is None:
            line.close()
            return
        for fetched in self._custody.lost(conversation.number, "its process was started again"):
            self.fetched(fetched, now_ns)
        line.welcome(conversation.number)
        if conversation.asked is not None:
            self._delivery.tell(conversation.number, line, *conversation.asked, None)

    def gone(self, line: Line, reason: str, now_ns: int) -> None:
        """Learn that a line is dead."""
        conversation = self._by_line.pop(line, None)
        if conversation is None:
            return
        self.conversations.pop(conversation.number, None)
        self._record(conversation, "lost", (reason,))
        self._machine.receive(Lost(conversation.number, reason), now_ns)
        self._delivery.forget(conversation.number)
        for fetched in self._custody.lost(conversation.number, reason):
            self.fetched(fetched, now_ns)

    def fetched(self, fetched: Fetched, now_ns: int) -> None:
        """Learn the value of a reference, which the machine may have asked for."""
        for conversation in self.conversations.values():
            conversation.transactions.fetched(fetched.reference, fetched.value)
            if conversation.asked is not None:
                kind, transaction, values = conversation.asked
                found = {fetched.reference: fetched.value}
                conversation.asked = (kind, transaction, tuple(with_values(value, found) for value in values))
        self._machine.receive(fetched, now_ns)

    def tell(self, effect: Tell) -> None:
        """Say to a tool what the machine wants."""
        conversation = self.conversations.get(effect.tool)
        if conversation is None:
            return  # it is gone, and the machine will learn or has learned of it
        conversation.told += 1
        conversation.terminated = conversation.terminated or effect.kind is ToTool.TERMINATE
        transaction = conversation.transactions.told(effect.kind, effect.values)
        self._record(conversation, effect.kind, effect.values)
        if effect.kind in ASKING and self._custody.leased:
            conversation.asked = (effect.kind, transaction, effect.values)
        if effect.kind is ToTool.TERMINATE:
            number, hold = effect.tool, effect.hold

            def terminate(whole: Value) -> None:
                values = whole.elements if isinstance(whole, TermList) else ()
                told = (number, conversation.line, ToTool.TERMINATE, transaction, values, hold)
                self._custody.farewell(number, lambda: self._delivery.tell(*told), halted=self._machine.halted)

            # With values, not references: the last word to a tool must not wait for a value of that tool.
            self._delivery.resolve(TermList(*effect.values), terminate)
        else:
            self._delivery.tell(effect.tool, conversation.line, effect.kind, transaction, effect.values, effect.hold)

    def dismiss(self, effect: Dismiss) -> None:
        """End the conversation with a tool that the machine does not know any more, when nobody needs it any more."""
        conversation = self.conversations.get(effect.tool)
        if conversation is not None:

            def close() -> None:
                self._delivery.after(effect.tool, lambda: self._close(conversation))

            self._custody.farewell(effect.tool, close, halted=self._machine.halted)

    def _close(self, conversation: Conversation) -> None:
        self.conversations.pop(conversation.number, None)
        self._by_line.pop(conversation.line, None)
        self._custody.lost(conversation.number, "it has left")
        conversation.line.close()
        self.on_closed(conversation.line)

    @property
    def busy(self) -> bool:
        """Whether a tool has something to answer."""
        return any(each.transactions.busy for each in self.conversations.values())

    def _record(self, conversation: Conversation, kind: FromTool | ToTool | str, values: tuple[Value, ...]) -> None:
        if self.on_word is not None:
            self.on_word(conversation.line.name, conversation.number, kind, values)
