"""Callers: connections to a hub that greet as hubs do, ask something, and otherwise cost their process next to nothing.

A hub of its own for each would be a thread and a port each; here thousands are held by one process, which speaks when
it is told to. Each says that it stands where its connection begins: a place of its own, as hubs have, at which nobody
listens. They tell how much has arrived, as a hub must. Where hubs have certificates and rights, they have those of a
role, and must be shown the channel that it has a right to.
"""

import os
import resource
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from echoic.channels import Browse, Greeting, Listing
from echoic.channels.greeting import count_frame
from echoic.channels.messages import Farewell, Message, decode_message, encode_message
from echoic.errors import EchoicError
from echoic.hub import Hub
from echoic.hub.hello import greet
from echoic.links import Connection, Identity, dial, format_address
from echoic.testing.charter import Grants, party_of_environment
from echoic.testing.trials.workers import Conversation
from echoic.wire import Frame, FrameKind, FrameReader, Hello, encode_frame

__all__ = ["CALL", "GRANTS", "HOST", "Caller", "call_often", "host", "raise_descriptor_limit"]

HOST: Final = f"{__name__}:host"
CALL: Final = f"{__name__}:call_often"
CHANNEL: Final = "ticks"
GRANTS: Final[Grants] = {"host": [f"admin {CHANNEL}"], "caller": [f"subscribe {CHANNEL}"]}
ABREAST: Final = 4
ANSWER_ROUNDS_MAX: Final = 300  # of a tenth of a second
DIAL_SECONDS: Final = 20.0


class Caller:
    """One connection that has greeted."""

    def __init__(self, address: str, identity: Identity | None) -> None:
        """Connect and greet.

        Raises:
            EchoicError, OSError: Nobody answers as a hub does.
        """
        self._session = int.from_bytes(os.urandom(7), "little") + 1
        self._connection: Final[Connection] = dial(address, identity, timeout=DIAL_SECONDS)
        hello = Hello(hub=os.urandom(8).hex(), address=_beginning_of(self._connection))
        greeting = Greeting(hello, lambda _: (0, 0), dialled=True, fresh=self._session)
        self._reader = FrameReader()
        try:
            self._waiting = greet(self._connection, greeting, self._reader)
        except (EchoicError, OSError):
            self._connection.close()
            raise
        self._asked = self._heard = 0

    def ask(self) -> bool:
        """Ask for the channels there are; tell whether that was answered, and any shown."""
        self._asked += 1
        self._say(encode_message(self._asked, Browse()))
        for _ in range(ANSWER_ROUNDS_MAX):
            taken = [self._take(frame) for frame in self._waiting]
            listing = next((message for message in taken if isinstance(message, Listing)), None)
            if listing is not None:
                self._waiting.clear()
                self._connection.send([count_frame(self._session, self._heard)])
                return bool(listing.channels)
            data = self._connection.receive()
            if data == b"":
                return False
            self._waiting = self._reader.receive(data or b"")
        return False

    def leave(self) -> None:
        """Take leave, and hang up."""
        self._say(encode_message(0, Farewell()))
        self.vanish()

    def vanish(self) -> None:
        """Hang up without a word."""
        self._connection.close()

    def _say(self, payload: bytes) -> None:
        self._connection.send([b"".join(encode_frame(FrameKind.CONTROL, [payload]))])

    def _take(self, frame: Frame) -> Message | None:
        if frame.kind is FrameKind.ACKS:
            return None
        self._heard += 1
        return decode_message(frame.payload).message if frame.kind is FrameKind.CONTROL else None


def _beginning_of(connection: Connection) -> str:
    """Return where a connection over TCP begins."""
    with socket.socket(fileno=os.dup(connection.fileno())) as copy:
        return format_address(*copy.getsockname()[:2])


def raise_descriptor_limit() -> int:
    """Let this process have as many file descriptors as it may, and return how many those are."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def host(conversation: Conversation) -> None:
    """Be the hub that is called; this runs in a worker."""
    raise_descriptor_limit()
    with Hub("127.0.0.1:0", **party_of_environment()) as hub:
        hub.create(CHANNEL)
        conversation.say(address=hub.address)
        for _ in conversation.questions():
            conversation.say(links=len(hub.statistics().links))


def call_often(conversation: Conversation) -> None:
    """Hold as many callers as are wished for; this runs in a worker."""
    raise_descriptor_limit()
    address, identity = conversation.options["address"], party_of_environment()["identity"]
    callers: list[Caller] = []
    faults: list[str] = []

    def attempt(act: Callable[[], bool]) -> bool:
        try:
            return act()
        except (EchoicError, OSError) as error:
            faults.append(str(error)[:200])
            return False

    def arrive(_: int) -> bool:
        callers.append(Caller(address, identity))
        return callers[-1].ask()

    conversation.say(ready=True)
    with ThreadPoolExecutor(ABREAST) as threads:
        for question in conversation.questions():
            match question["do"]:
                case "open":
                    answered = sum(
                        threads.map(lambda number: attempt(lambda: arrive(number)), range(question["count"]))
                    )
                case "ask":
                    answered = sum(threads.map(lambda caller: attempt(caller.ask), list(callers)))
                case "close":
                    answered = len(callers)
                    for number, caller in enumerate(callers):
                        (caller.leave if number % 2 else caller.vanish)()
                    callers.clear()
                case _:
                    answered = 0
            conversation.say(answered=answered, faults=faults[:3])
            faults.clear()
