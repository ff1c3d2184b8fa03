"""Exchanging greetings on a fresh connection, before it becomes that of a link. What is said is `channels.Greeting`."""

import time
from typing import Final

from echoic.channels import Greeting
from echoic.errors import UnreachableError
from echoic.links import Connection
from echoic.wire import Frame, FrameReader

__all__ = ["HELLO_SECONDS", "greet"]

HELLO_SECONDS: Final = 5.0


def greet(connection: Connection, greeting: Greeting, reader: FrameReader) -> list[Frame]:
    """Exchange greetings; return frames that came right behind them.

    Raises:
        EchoicError: The peer does not know how to greet, or takes too long.
        OSError: The connection broke.
    """
    deadline = time.monotonic() + HELLO_SECONDS
    _say(connection, greeting.opening, deadline)
    frames: list[Frame] = []
    while not greeting.done:
        if not frames:
            data = connection.receive()
            if data == b"" or time.monotonic() > deadline:
                raise UnreachableError(
                    f"{connection.peer} hung up, or took more than {HELLO_SECONDS:.0f} s, to say hello"
                )
            frames = reader.receive(data or b"")
        else:
            _say(connection, greeting.receive(frames.pop(0)), deadline)
    return frames


def _say(connection: Connection, data: bytes, deadline: float) -> None:
    while data:
        sent = connection.send([data])
        data = data[sent:]
        if data:
            connection.writable(100)
            if time.monotonic() > deadline:
                raise UnreachableError(f"{connection.peer} does not listen to a hello")
