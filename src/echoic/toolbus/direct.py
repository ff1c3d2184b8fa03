"""Tools in the process of their bus: the same tools, and values are handed over as they are.

    Bus --> DirectLine.tell --> Service.hear --> the tool's own thread --> handler
    Bus <-- Audience.heard  <-- DirectLine.say <-------------------------- VALUE

Terms cannot be changed, so nobody needs a copy, and nothing is encoded. A tool still has a thread of its own: the
machine must not wait for it.
"""

from typing import Final

from echoic.errors import ClosedError
from echoic.scripts.running.messages import ToTool
from echoic.terms import Value
from echoic.toolbus.line import Audience
from echoic.toolbus.protocol import FROM_TOOL, TO_TOOL, Message, MessageKind
from echoic.toolbus.tool import Tool

__all__ = ["DirectLine"]


ANSWERS: Final = frozenset({MessageKind.VALUE, MessageKind.VOID})


class DirectLine:
    """A conversation with an object of this process."""

    def __init__(self, tool: Tool, audience: Audience, name: str = "") -> None:
        """Begin; `name` is what the script calls the tool, if that is not the name of its class.

        Raises:
            LocalError: The tool is connected already.
        """
        self.name: Final = name or tool.tool_name
        self._tool = tool
        self._audience = audience
        self._closed = False
        self._service = tool.bind(self)

    def welcome(self, number: int) -> None:
        """Tell the tool its number, and let it begin."""
        self._tool.number = number
        self._tool.start()

    def tell(self, kind: ToTool, transaction: int, values: tuple[Value, ...]) -> None:
        """Say something to the tool."""
        self._service.hear(Message(TO_TOOL[kind], transaction, values))

    def say(self, message: Message) -> None:
        """Say something to the bus, for the tool.

        Raises:
            ClosedError: The bus does not listen any more.
        """
        if self._closed:
            if message.kind in ANSWERS:
                return  # to what was said before the bus ended
            raise ClosedError("the bus has ended this tool")
        kind = FROM_TOOL.get(message.kind)
        if kind is not None:
            self._audience.heard(self, kind, message.transaction, message.values)
        elif message.kind is MessageKind.TROUBLE:
            self._audience.trouble(self, ": ".join(value for value in message.values if isinstance(value, str)))

    def settle(self, seconds: float) -> None:
        """Wait until the tool has done what it was told."""
        self._service.settle(seconds)

    def close(self) -> None:
        """End the conversation."""
        if not self._closed:
            self._closed = True
            self._service.end("the bus has closed the line")
            self._audience.gone(self, "it was closed")
