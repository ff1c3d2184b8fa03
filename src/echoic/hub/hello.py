"""Exchanging greetings on a fresh connection, before it becomes that of a link. What is said is `channels.Greeting`."""

import time
from collections.abc import Sequence
from typing import Final

from echoic.channels import LARGE_FEATURE, Concentrator, Greeting
from echoic.errors import UnreachableError
from echoic.links import MAY_WANT_TLS, Connection
from echoic.wire import Frame, FrameReader, Hello

__all__ = ["HELLO_SECONDS", "first_frames", "greet", "hello_of"]

HELLO_SECONDS: Final = 5.0


def hello_of(core: Concentrator) -> Hello:
    """Return what a hub says of itself."""
    return Hello(
        features=(LARGE_FEATURE,),
        name=core.name,
        hub=core.id,
        address=core.address,
        event_bytes_max=core.rules.event_bytes_max,
    )


def first_frames(connection: Connection, reader: FrameReader, count: int) -> list[Frame]:
    """Return the first frames that a stranger sends, so many at least.

    Raises:
        EchoicError: They are not frames, or the stranger takes too long.
        OSError: The connection broke.
    """
    deadline = time.monotonic() + HELLO_SECONDS
    frames: list[Frame] = []
    while len(frames) < count:
        frames += _await(connection, reader, deadline)
    return frames


def greet(connection: Connection, greeting: Greeting, reader: FrameReader, frames: Sequence[Frame] = ()) -> list[Frame]:
    """Exchange greetings; return frames that came right behind them.

    Args:
        connection: Where.
        greeting: What is said.
        reader: Cuts what is received into frames.
        frames: What was received already.

    Raises:
        EchoicError: The peer does not know how to greet, or takes too long.
        OSError: The connection broke.
    """
    deadline = time.monotonic() + HELLO_SECONDS
    hint = f"; {MAY_WANT_TLS}" if greeting.dialled and connection.credentials is None else ""
    _say(connection, greeting.opening, deadline)
    waiting = list(frames)
    while not greeting.done:
        if not waiting:
            waiting = _await(connection, reader, deadline, hint)
        else:
            _say(connection, greeting.receive(waiting.pop(0)), deadline)
    return waiting


def _await(connection: Connection, reader: FrameReader, deadline: float, hint: str = "") -> list[Frame]:
    milliseconds = max(0, round((deadline - time.monotonic()) * 1000))
    data = connection.receive() if connection.readable(milliseconds) else None  # who is silent is not looked at
    if data == b"":
        raise UnreachableError(f"{connection.peer} hung up instead of saying hello{hint}")
    if time.monotonic() > deadline:
        raise UnreachableError(f"{connection.peer} took more than {HELLO_SECONDS:.0f} s to say hello")
    return reader.receive(data or b"")


def _say(connection: Connection, data: bytes, deadline: float) -> None:
    while data:
        sent = connection.send([data])
        data = data[sent:]
        if data:
            connection.writable(100)
            if time.monotonic() > deadline:
                raise UnreachableError(f"{connection.peer} does not listen to a hello")
