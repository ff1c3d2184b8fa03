"""What strangers do to a hub before they have said who they are, so many times a second.

    slowloris   a greeting, byte by byte, by more of them than there is room for
    claims      a frame that is said to have 16 MiB, of which some kilobytes come
    garbage     random bytes
    floods      connections that are closed at once, or reset
    half TLS    the first part of a handshake, and then nothing
    TLS         the whole first message of a handshake, the same again and again: a hub with TLS chooses a key and signs
                for each, and the stranger leaves when it has, without a certificate

All of it is done by one process with one thread, at a stated rate: a test machine has few processors, and an attacker
who takes them from the honest shows nothing about the hub.
"""

import contextlib
import os
import random
import select
import socket
import ssl
import struct
import sys
import time
from typing import TYPE_CHECKING, Final

from echoic.links import parse_address
from echoic.testing.trials.workers import Conversation
from echoic.wire import FrameKind, Hello, encode_frame, encode_hello

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ASSAIL", "assail", "whole_client_hello"]

ASSAIL: Final = f"{__name__}:assail"
DAWDLERS: Final = 96
BYTE_SECONDS: Final = 0.5
HELD_MAX: Final = 200
HELD_SECONDS: Final = 2.0
CONNECT_SECONDS: Final = 1.0
CLAIM: Final = struct.pack("<IB3x8x", 16 * 1024 * 1024, FrameKind.CONTROL)
CLIENT_HELLO: Final = bytes.fromhex("16030100c8010000c40303")
GREETING: Final = b"".join(encode_frame(FrameKind.HELLO, [encode_hello(Hello(hub="stranger", address="127.0.0.1:1"))]))
NICENESS: Final = 10


class Onslaught:
    """Strangers at the port of a hub."""

    def __init__(self, address: str, chance: random.Random, rate: float) -> None:
        self._address = parse_address(address)
        self._chance = chance
        self._rate = rate
        self._held: list[tuple[float, socket.socket]] = []
        self._dawdlers: list[tuple[socket.socket, int]] = []
        self._dawdled = 0.0
        self._due = 0.0
        self._client_hello = whole_client_hello()
        self.made = 0
        self.refused = 0
        self._ways: tuple[Callable[[socket.socket], None], ...] = (
            self._claim, self._garble, self._close, self._reset, self._half_shake, self._have_signed,
        )  # fmt: skip

    def go_on(self) -> None:
        """Do what is due now, and return soon."""
        now = time.monotonic()
        self._due = max(self._due, now - 0.1)
        while self._due <= now:
            self._due += 1.0 / self._rate
            stranger = self._connect()
            if stranger is not None:
                self._chance.choice(self._ways)(stranger)
        if now - self._dawdled > BYTE_SECONDS:
            self._dawdled = now
            self._dawdle()
        while self._held and (len(self._held) > HELD_MAX or self._held[0][0] < now - HELD_SECONDS):
            self._held.pop(0)[1].close()

    def rest(self) -> None:
        """Leave the hub alone."""
        for each in [*(held for _, held in self._held), *(dawdler for dawdler, _ in self._dawdlers)]:
            each.close()
        self._held.clear()
        self._dawdlers.clear()

    def _connect(self) -> socket.socket | None:
        try:
            stranger = socket.create_connection(self._address, CONNECT_SECONDS)
        except OSError:
            self.refused += 1
            return None
        stranger.setblocking(False)
        self.made += 1
        return stranger

    def _dawdle(self) -> None:
        """Let each of those who greet slowly say one byte more, and replace those who were sent away."""
        going: list[tuple[socket.socket, int]] = []
        for dawdler, said in self._dawdlers:
            try:
                dawdler.send(GREETING[said % len(GREETING) :][:1])
                going.append((dawdler, said + 1))
            except OSError:
                dawdler.close()
        missing = DAWDLERS - len(going)
        fresh = [self._connect() for _ in range(min(missing, max(1, int(self._rate * BYTE_SECONDS / 2))))]
        self._dawdlers = going + [(each, 0) for each in fresh if each is not None]

    def _claim(self, stranger: socket.socket) -> None:
        self._say(stranger, CLAIM + bytes(8192))

    def _garble(self, stranger: socket.socket) -> None:
        self._say(stranger, self._chance.randbytes(4096))

    def _half_shake(self, stranger: socket.socket) -> None:
        self._say(stranger, CLIENT_HELLO + self._chance.randbytes(60))

    def _have_signed(self, stranger: socket.socket) -> None:
        self._say(stranger, self._client_hello)

    def _close(self, stranger: socket.socket) -> None:
        stranger.close()

    def _reset(self, stranger: socket.socket) -> None:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stranger.close()

    def _say(self, stranger: socket.socket, data: bytes) -> None:
        with contextlib.suppress(OSError):  # it was sent away already
            stranger.send(data)
        self._held.append((time.monotonic(), stranger))


def whole_client_hello() -> bytes:
    """Return with what a client begins a handshake of TLS 1.3, as it should be."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):  # there is no answer yet
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


def assail(conversation: Conversation) -> None:
    """Assail a hub while told to; this runs in a worker."""
    options = conversation.options
    os.nice(NICENESS)
    onslaught = Onslaught(options["address"], random.Random(options["seed"]), options["rate"])
    conversation.say(ready=True)
    at_it = False
    while True:
        if select.select([sys.stdin], [], [], 0.005 if at_it else None)[0]:
            question = next(conversation.questions(), None)
            if question is None:
                break
            at_it = question["do"] == "begin"
            if not at_it:
                onslaught.rest()
            conversation.say(made=onslaught.made, refused=onslaught.refused)
        elif at_it:
            onslaught.go_on()
    onslaught.rest()
