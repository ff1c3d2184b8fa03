"""The gate: whoever is sent away, at any moment, leaves nothing behind in the loop; who is slow is not sent away."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from echoic.links.gate import Caller, Gate
from echoic.links.sockets import VANISHED_SECONDS
from tests.links.certificates import Authority

pytestmark = pytest.mark.system
SECONDS = 60.0
MUCH = 16_000_000


class Begun(asyncio.Protocol):
    """Tells that a connection is made."""

    def __init__(self, made: Callable[[], None]) -> None:
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._made()


@pytest.mark.parametrize("by_tls", [True, False])
def test_who_is_sent_away_just_as_its_handshake_ends_leaves_no_descriptor_to_the_loop(
    tmp_path: Path, by_tls: bool
) -> None:
    authority = Authority(tmp_path)
    context = authority.issue("127.0.0.1").serving_context() if by_tls else None
    trusting = ssl.create_default_context(cafile=str(authority.path))

    def connected(stack: contextlib.ExitStack) -> None:
        made = stack.enter_context(socket.create_connection(listening.getsockname(), SECONDS))
        if by_tls:
            stack.enter_context(trusting.wrap_socket(made, server_hostname="127.0.0.1"))

    async def come_and_stay(stack: contextlib.ExitStack) -> None:
        loop = asyncio.get_running_loop()
        called: asyncio.Future[int] = loop.create_future()

        async def serve(caller: Caller) -> None:
            called.set_result(caller.socket.fileno())
            await gate.open(caller, lambda: Begun(caller.close), context, SECONDS)

        gate = Gate(listening, loop, serve)
        await asyncio.to_thread(connected, stack)
        descriptor = await called
        await gate.empty()
        assert gate.strangers == 0
        assert not loop.remove_reader(descriptor)  # which says that it is in use where a transport has it
        gate.close()

    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        asyncio.run(come_and_stay(stack))


def test_who_is_sent_away_just_as_it_has_been_served_is_hung_up_on() -> None:
    async def come_and_end() -> bytes:
        loop = asyncio.get_running_loop()

        async def serve(caller: Caller) -> None:
            loop.call_soon(caller.close)  # which comes before anybody is told that this has ended

        gate = Gate(listening, loop, serve)
        with await asyncio.to_thread(socket.create_connection, listening.getsockname(), SECONDS) as connected:
            ended = await asyncio.to_thread(connected.recv, 1)
        gate.close()
        return ended

    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert asyncio.run(come_and_end()) == b""


def test_who_reads_nothing_for_some_seconds_gets_all_the_same_what_it_was_sent() -> None:
    def read_late(address: tuple[str, int]) -> int:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(address)
            time.sleep(VANISHED_SECONDS + 2)  # links are given up by then
            return sum(map(len, iter(lambda: slow.recv(1 << 20), b"")))

    async def send_much() -> int:
        loop = asyncio.get_running_loop()

        async def serve(caller: Caller) -> None:
            transport, _ = await gate.open(caller, asyncio.Protocol, None, SECONDS)
            transport.write(bytes(MUCH))
            transport.close()  # when all of it is sent

        gate = Gate(listening, loop, serve)
        read = await asyncio.to_thread(read_late, listening.getsockname())
        gate.close()
        return read

    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert asyncio.run(send_much()) == MUCH
