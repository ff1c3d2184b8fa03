"""Greetings: how a tool and a bus meet, step by step. This module is pure.

    BusGreeting      HELLO? -> admit -> INTERFACE! -> ACCEPT? -> done        then the machine numbers it: WELCOME!
    ToolGreeting     HELLO! -> INTERFACE? -> ACCEPT! -> (REG?) WELCOME? -> done

Whatever else comes ends the greeting: the one who noticed says REFUSE with the reason, and closes.
"""

from collections.abc import Callable

from echoic.errors import MalformedFrameError, RefusedError
from echoic.terms import UNDEFINED, Value
from echoic.toolbus.protocol import (
    MESSAGE_BYTES_MAX,
    Hello,
    Message,
    MessageKind,
    decode_hello,
    decode_interface,
    encode_hello,
    encode_interface,
    text_of,
)
from echoic.toolbus.references.words import Registration, decode_registration

__all__ = ["BusGreeting", "ToolGreeting", "refusal"]


def refusal(reason: str) -> Message:
    """Return the message that ends a greeting."""
    return Message(MessageKind.REFUSE, 0, (reason,))


class BusGreeting:
    """The bus's side: learns who a tool is."""

    def __init__(self, admit: Callable[[Hello], Value], message_bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        """Begin.

        Args:
            admit: Returns what the script expects of a tool, or raises RefusedError.
            message_bytes_max: How long a message of the tool may be.
        """
        self.hello: Hello | None = None
        self.done = False
        self._admit = admit
        self._message_bytes_max = message_bytes_max

    def receive(self, message: Message | None) -> list[Message]:
        """Take what a tool says; return what to answer.

        Raises:
            MalformedFrameError: That is not how tools greet.
            ProtocolVersionError: It speaks no version that this bus does.
            RefusedError: It is not admitted, or does not accept its interface.
        """
        if message is None:
            raise MalformedFrameError("a greeting has a message of an unknown kind")
        if self.hello is None:
            hello = decode_hello(message)
            interface = self._admit(hello)
            self.hello = hello
            return [encode_interface(hello, interface, self._message_bytes_max)]
        if message.kind is MessageKind.REFUSE:
            raise RefusedError(
                f"tool `{self.hello.name}` refuses its interface: {text_of(message) or 'it gives no reason'}"
            )
        if message.kind is not MessageKind.ACCEPT:
            raise MalformedFrameError(f"expected ACCEPT or REFUSE in a greeting, got {message.kind.name}")
        self.done = True
        return []


class ToolGreeting:
    """The tool's side."""

    def __init__(self, hello: Hello, judge: Callable[[Value], str] = lambda _: "") -> None:
        """Begin.

        Args:
            hello: Who the tool is.
            judge: Looks at the interface that the script has for the tool, and returns why it is refused, else nothing.
        """
        self.opening: Message = encode_hello(hello)
        self.interface: Value = UNDEFINED
        self.number = 0
        self.message_bytes_max = MESSAGE_BYTES_MAX
        self.registration: Registration | None = None
        """What it is in the exchange of large values, if the bus knows of that."""
        self.done = False
        self._judge = judge
        self._accepted = False

    def receive(self, message: Message | None) -> list[Message]:
        """Take what a bus says; return what to answer.

        Raises:
            MalformedFrameError: That is not how buses greet.
            ProtocolVersionError: It speaks another version.
            RefusedError: It does not want this tool.
        """
        if message is None:
            return []
        if message.kind is MessageKind.REFUSE:
            raise RefusedError(f"the bus refuses this tool: {text_of(message) or 'it gives no reason'}")
        if not self._accepted:
            self.interface, self.message_bytes_max = decode_interface(message)
            self._accepted = True
            reason = self._judge(self.interface)
            return [refusal(reason)] if reason else [Message(MessageKind.ACCEPT)]
        match message:
            case Message(kind=MessageKind.REG):
                self.registration = decode_registration(message)
                return []
            case Message(kind=MessageKind.WELCOME, values=(int(number), *_)):
                self.number, self.done = number, True
                return []
            case _:
                raise MalformedFrameError(f"expected WELCOME [number], got {message.kind.name}")
