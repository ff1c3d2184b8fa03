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
from functools import partial
from typing import Final

from echoic.errors import EchoicError, UnreachableError
from echoic.interop.client_frames import ClientFrames
from echoic.interop.exposure import Exposure
from echoic.interop.upgrade import HEAD_BYTES_MAX, HEAD_END, refusal_of
from echoic.links import format_address, is_loopback, serving_context
from echoic.links.sockets import tune_tcp
from echoic.links.strangers import Strangers, origin_of

__all__ = ["Doorway"]

STRANGER_SECONDS: Final = 5.0
CLIENTS_MAX: Final = 64
FROM_ONE_ADDRESS_MAX: Final = 16
STALLED_SECONDS: Final = 30.0
CHUNK_BYTES: Final = 64 * 1024
BACKLOG: Final = 128
FULL_SECONDS: Final = 0.1
CLOSE_SECONDS: Final = 3.0
PARTING_TURNS: Final = 4
"""In how many turns of its loop asyncio has closed a connection that was given up, with TLS and without."""
log: Final = logging.getLogger("echoic.interop")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Caller:
    """Somebody who has connected."""

    def __init__(self, socket_: socket.socket, peer: str) -> None:
        self.peer: Final = peer
        self.socket: Final = socket_
        self.writer: asyncio.StreamWriter | None = None
        self.task: asyncio.Task[None] | None = None

    def close(self) -> None:
        """End what is done for it."""
        if self.task is not None:
            self.task.cancel()

    def hang_up(self) -> None:
        """Close the connection at once, whatever waits to be read."""
        if self.writer is not None:
            self.writer.transport.abort()
        else:
            self.socket.close()


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
        self._strangers: Strangers[Caller] = Strangers()
        self._clients: Counter[str] = Counter()
        self._callers: set[Caller] = set()
        self._told: set[str] = set()
        self._loop = asyncio.new_event_loop()
        self._loop.add_reader(self._socket, self._accept)
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
            loop.remove_reader(self._socket)
            for caller in list(self._callers):
                caller.close()
            loop.run_until_complete(self._empty())
        finally:
            self._socket.close()
            loop.close()

    async def _empty(self) -> None:
        """Wait until everybody is gone."""
        while self._callers:
            await asyncio.wait([caller.task for caller in self._callers if caller.task is not None])
            await asyncio.sleep(0)  # for what is done when they have ended
        for _ in range(PARTING_TURNS):
            await asyncio.sleep(0)

    def _accept(self) -> None:
        """Take one more; called when there is one."""
        try:
            accepted, address = self._socket.accept()
        except BlockingIOError:
            return
        except OSError as error:  # there are no more file descriptors, perhaps for a moment
            log.warning("cannot accept a connection: %s", error)
            self._loop.remove_reader(self._socket)
            self._loop.call_later(FULL_SECONDS, self._loop.add_reader, self._socket, self._accept)
            return
        caller = Caller(accepted, format_address(address[0], address[1]))
        leaving = self._strangers.admit(caller)
        if leaving is not None:
            leaving.close()
        self._callers.add(caller)
        caller.task = self._loop.create_task(self._serve(caller))
        caller.task.add_done_callback(partial(self._part, caller))  # also if it is cancelled before it begins

    def _part(self, caller: Caller, _task: asyncio.Task[None]) -> None:
        """Forget a caller, and hang up."""
        self._strangers.leave(caller)
        self._callers.discard(caller)
        caller.hang_up()

    async def _serve(self, caller: Caller) -> None:
        """Greet a stranger, and pass it on if it may come in."""
        try:
            async with asyncio.timeout(STRANGER_SECONDS):
                reader, caller.writer = await self._open(caller)
                head, rest = await _head_of(reader)
            self._strangers.leave(caller)
            await self._admit(caller, (reader, caller.writer), head, rest)
        except (OSError, EchoicError, asyncio.IncompleteReadError, ValueError) as error:  # TimeoutError is an OSError
            log.info("hung up on %s: %s", caller.peer, str(error) or type(error).__name__)

    async def _open(self, caller: Caller) -> Streams:
        """Return the streams of a caller, whose handshake, if there is one, is done."""
        tune_tcp(caller.socket)
        caller.socket.setblocking(False)
        reader = asyncio.StreamReader(CHUNK_BYTES, self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        handshake_seconds = STRANGER_SECONDS if self._context is not None else None
        transport, _ = await self._loop.connect_accepted_socket(
            lambda: protocol, caller.socket, ssl=self._context, ssl_handshake_timeout=handshake_seconds
        )
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
        made.setblocking(False)
    except OSError as error:
        made.close()
        shown = format_address(place.host, place.port)
        raise UnreachableError(f"cannot listen at {shown}: {error.strerror or error}") from error
    return made
