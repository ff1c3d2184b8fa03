"""The gate: whoever is sent away, at any moment, leaves nothing behind in the loop."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from echoic.links.gate import Caller, Gate
from tests.links.certificates import Authority

pytestmark = pytest.mark.system
SECONDS = 60.0


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
