"""Lines: a bus's end of the conversation with one tool, wherever the tool lives.

    RemoteLine      a process, over a connection
    DirectLine      an object in this process
    NgLine          a process that speaks the protocol of the Java ToolBus
    ChannelLine     an event channel that plays the part of a tool
    PlayedLine      a recording

A line never waits: what it is told it hands on, and what its tool says it gives to the bus (`Audience`).
"""

from collections.abc import Callable
from typing import Protocol

from echoic.scripts.running.messages import FromTool, ToTool
from echoic.terms import Value

__all__ = ["Audience", "Line"]


class Line(Protocol):
    """The bus's end of a conversation."""

    @property
    def name(self) -> str:
        """Which tool it is, as the script calls it."""

    def welcome(self, number: int) -> None:
        """Learn that the tool is known to the machine, under a number."""

    def tell(self, kind: ToTool, transaction: int, values: tuple[Value, ...]) -> None:
        """Say something to the tool."""

    def close(self) -> None:
        """End the conversation, when what was said has arrived; may be called again."""


class Audience(Protocol):
    """The bus, as a line sees it, in any thread; `heard` waits while too much of a tool is unheard."""

    def arrived(self, line: Line, instance: int | None) -> None:
        """Take in a tool that has greeted; `instance` is what the launcher gave it."""

    def heard(self, line: Line, kind: FromTool, transaction: int, values: tuple[Value, ...]) -> None:
        """Learn what a tool says."""

    def trouble(self, line: Line, text: str) -> None:
        """Learn that something is wrong with a tool, for people."""

    def gone(self, line: Line, reason: str) -> None:
        """Learn that a tool is gone; the first reason counts."""

    def leaving(self, line: Line, act: Callable[[], None]) -> None:
        """Learn that a tool has said its last word; `act` lets it go, once its values are not needed any more."""

    def cut_off(self, line: Line) -> None:
        """Learn that the connection of a tool broke, which may come back."""

    def returned(self, line: Line) -> None:
        """Learn that a tool that was cut off was started again: it has forgotten everything, and has no number yet."""
