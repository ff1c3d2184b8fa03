"""A doorway before a WebSocket server that has no limits of its own: strangers, pages and floods end here.

    browser, program ---- TLS if there is a certificate ----> Doorway ---- loopback ----> the server
                          5 s, 8 KiB until the request           |  at most 64 clients, 16 of one address
                          is there; 64 strangers, shared         |  messages of at most 256 KiB
                          out by address (`links.strangers`)     |  who does not read for 30 s is hung up
                                                                 +- whose page asks (`upgrade`)

One thread with a loop of asyncio: what it moves is text for people to look at. The server behind it listens on loopback
all the same, since it can listen nowhere else; programs of this machine that find its port can go round the doorway.
"""

import asyncio
import contextlib
import logging
import socket
import threading
from collections import Counter
from collections.abc import Collection
from typing import Final

from echoic.errors import EchoicError, UnreachableError
from echoic.interop.client_frames import ClientFrames
from echoic.interop.exposure import Exposure
from echoic.interop.upgrade import HEAD_BYTES_MAX, HEAD_END, refusal_of
from echoic.links import format_address, is_loopback, origin_of, serving_context
from echoic.links.gate import Caller, Gate  # not of the package, which does without asyncio

__all__ = ["Doorway"]

STRANGER_SECONDS: Final = 5.0
CLIENTS_MAX: Final = 64
FROM_ONE_ADDRESS_MAX: Final = 16
STALLED_SECONDS: Final = 30.0
CHUNK_BYTES: Final = 64 * 1024
BACKLOG: Final = 128
CLOSE_SECONDS: Final = 3.0
log: Final = logging.getLogger("echoic.interop")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Doorway:
    """Listens at an address, and passes on those who may come in."""

    def __init__(self, place: Exposure, inner: tuple[str, int], origins: Collection[str]) -> None:
        """Listen.

        Args:
            place: Where.
            inner: Host and port of the server.
            origins: Whose pages may connect.

        Raises:
            InsecureError: The certificate cannot be used.
            UnreachableError: It cannot be listened there.
        """
        self._context = serving_context(*place.certificate) if place.certificate is not None else None
        self._inner, self._origins = inner, frozenset(origins)
        self._socket = _listening(place)
        self.port: Final[int] = self._socket.getsockname()[1]
        self._clients: Counter[str] = Counter()
        self._told: set[str] = set()
        self._loop = asyncio.new_event_loop()
        self._gate = Gate(self._socket, self._loop, self._serve)
        self._thread = threading.Thread(target=self._run, name="echoic-doorway", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hang up on everybody."""
        with contextlib.suppress(RuntimeError):  # it is closed
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            self._gate.close()
            loop.run_until_complete(self._gate.empty())
        finally:
            self._socket.close()
            loop.close()

    async def _serve(self, caller: Caller) -> None:
        """Greet a stranger, and pass it on if it may come in."""
        try:
            async with asyncio.timeout(STRANGER_SECONDS):
                reader, writer = await self._open(caller)
                head, rest = await _head_of(reader)
            await self._admit(caller, (reader, writer), head, rest)
        except (OSError, EchoicError, asyncio.IncompleteReadError, ValueError) as error:  # TimeoutError is an OSError
            log.info("hung up on %s: %s", caller.peer, str(error) or type(error).__name__)
        finally:
            self._gate.part(caller)

    async def _open(self, caller: Caller) -> Streams:
        """Return the streams of a caller, whose handshake, if there is one, is done."""
        reader = asyncio.StreamReader(CHUNK_BYTES, self._loop)
        made = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        transport, protocol = await self._gate.open(caller, lambda: made, self._context, STRANGER_SECONDS)
        return reader, asyncio.StreamWriter(transport, protocol, reader, self._loop)

    async def _admit(self, caller: Caller, streams: Streams, head: bytes, rest: bytes) -> None:
        """Let a caller in, if its request may be and there is room."""
        writer, origin = streams[1], origin_of(caller.peer)
        refusal = refusal_of(head, self._origins)
        if refusal:
            self._tell(refusal)
            await _answer(writer, "403 Forbidden", refusal)
            return
        crowded = self._clients[origin] >= FROM_ONE_ADDRESS_MAX and not is_loopback(origin)
        if crowded or self._clients.total() >= CLIENTS_MAX:
            await _answer(writer, "503 Service Unavailable", "too many look here already")
            return
        self._clients[origin] += 1
        self._gate.let_in(caller)  # who is refused is a stranger until he has gone, or there would be no end of them
        try:
            await self._relay(streams, head, rest)
        finally:
            self._clients[origin] -= 1
            self._clients += Counter()  # forget who has none

    async def _relay(self, streams: Streams, head: bytes, rest: bytes) -> None:
        """Pass everything on, both ways, until one side ends."""
        reader, writer = streams
        frames = ClientFrames()
        frames.measure(rest)
        inner_reader, inner_writer = await asyncio.open_connection(*self._inner, limit=CHUNK_BYTES)
        try:
            inner_writer.write(head + rest)
            ways = [
                self._loop.create_task(_pass_on(reader, inner_writer, frames)),
                self._loop.create_task(_pass_on(inner_reader, writer, None)),
            ]
            try:
                done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
            for way in done:
                way.result()
        finally:
            inner_writer.transport.abort()

    def _tell(self, refusal: str) -> None:
        """Log a refusal, each once, and not without end."""
        if refusal not in self._told and len(self._told) < CLIENTS_MAX:
            self._told.add(refusal)
            log.warning("refused: %s", refusal)


async def _head_of(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the head of a request, and what has come behind it.

    Raises:
        ValueError: It is too long, or does not end.
    """
    received = b""
    while HEAD_END not in received:
        data = await reader.read(HEAD_BYTES_MAX)
        received += data
        if not data or len(received) > HEAD_BYTES_MAX:
            raise ValueError(f"{len(received)} bytes are no request, limit is {HEAD_BYTES_MAX}")
    head, _, rest = received.partition(HEAD_END)
    return head + HEAD_END, rest


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frames: ClientFrames | None) -> None:
    """Pass on what comes, as fast as it is read at the other side.

    Raises:
        OSError: The connection is broken, or nothing was read for long.
        EchoicError: What a client sends is too much, or no frames.
    """
    while data := await reader.read(CHUNK_BYTES):
        if frames is not None:
            frames.measure(data)
        writer.write(data)
        async with asyncio.timeout(STALLED_SECONDS):
            await writer.drain()


async def _answer(writer: asyncio.StreamWriter, status: str, reason: str) -> None:
    """Answer a request that is refused."""
    body = reason.encode() + b"\n"
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    async with asyncio.timeout(STRANGER_SECONDS):
        await writer.drain()
        writer.close()
        await writer.wait_closed()


def _listening(place: Exposure) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in place.host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((place.host, place.port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        shown = format_address(place.host, place.port)
        raise UnreachableError(f"cannot listen at {shown}: {error.strerror or error}") from error
    return made
