"""Hubs with mistakes at their doors, for the trials that must find them: each is the target of a worker."""

import os
from itertools import count
from typing import Final

from echoic.hub import reception
from echoic.links import Connection, Listener
from echoic.links.strangers import Strangers
from echoic.testing.trials import callers, strangers
from echoic.testing.trials.workers import Conversation
from echoic.wire import Buffer, Frame, FrameReader
from echoic.wire.frames import HEADER_BYTES

CREDULOUS_BYTES_MAX: Final = 64 * 1024 * 1024
DEAF_EVERY: Final = 5
forgotten: Final[list[int]] = []


def keep_what_has_ended() -> None:
    """Let a hub forget to close a file descriptor of each connection."""
    accept = Listener.accept

    def forgetful(self: Listener, milliseconds: int) -> Connection | None:
        connection = accept(self, milliseconds)
        if connection is not None:
            forgotten.append(os.dup(connection.fileno()))
        return connection

    Listener.accept = forgetful  # type: ignore[method-assign] - the mistake


def hang_up_on_some() -> None:
    """Let a hub hang up on every fifth who connects."""
    accept, numbers = Listener.accept, count(1)

    def moody(self: Listener, milliseconds: int) -> Connection | None:
        connection = accept(self, milliseconds)
        if connection is not None and next(numbers) % DEAF_EVERY == 0:
            connection.close()
            return None
        return connection

    Listener.accept = moody  # type: ignore[method-assign] - the mistake


class Credulous(FrameReader):
    """Makes room for what a frame is said to have."""

    def receive(self, data: Buffer) -> list[Frame]:
        frames = super().receive(data)
        if len(data) > HEADER_BYTES:
            self.believed = b"\1" * min(int.from_bytes(bytes(data[:4]), "little"), CREDULOUS_BYTES_MAX)
        return frames


def believe_strangers() -> None:
    """Let a hub believe strangers how much they will say, and send nobody away however many there are."""

    def welcome(self: Strangers[Connection], connection: Connection) -> None:
        return None

    Strangers.admit = welcome  # type: ignore[assignment, method-assign] - the mistake
    reception.FrameReader = Credulous  # type: ignore[attr-defined, misc] - the same
    reception.PAYLOAD_BYTES_MAX_UNAUTHENTICATED = CREDULOUS_BYTES_MAX  # type: ignore[attr-defined, misc] - the same


def be_attacked(conversation: Conversation) -> None:
    """Be a hub that has no limits for strangers and keeps what they leave; this runs in a worker."""
    believe_strangers()
    keep_what_has_ended()
    strangers.be_attacked(conversation)


def be_called(conversation: Conversation) -> None:
    """Be a hub that hangs up on some and keeps what the others leave; this runs in a worker."""
    hang_up_on_some()
    keep_what_has_ended()
    callers.host(conversation)
