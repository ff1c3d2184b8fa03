"""The physical limit: blocking Python sockets that move bytes and nothing else.

No types, no channels, no broken link survived, no encoding: the source has its bytes ready, and the sink knows how many
to expect. What is left is the kernel, and Python's calls into it. Nothing that is written in Python and moves one event
per system call can be faster; packing and shared memory can.

    round trip   source: send to all, then read all acks         sink: recv_into, callback, send 8 bytes
    one way      source: one `sendall` per event, or per 64      sink: recv_into a large buffer, callback per event
    batches      source: one `sendall` per batch                 sink: counts bytes; no callback per event
    pipeline     each stage sends on what one `recv_into` gave it
    channels     eight bytes more per event, which pick the callback from a list

With TLS they are Python's own secret sockets in place of plain ones, with the certificates that hubs have.
"""

import os
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from echoic.links import Identity
from echoic.testing.bench.contest import Contender, Session, Setup, time_call
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.events import PAYLOADS, touch
from echoic.testing.bench.peers import join, start_chain, start_peers, time_counted
from echoic.trust.authority import Authority

__all__ = ["RAW_TCP", "RAW_TCP_IN_TURN", "RAW_TCP_PACKED", "RAW_TLS", "RAW_UNIX", "RAW_UNIX_PACKED"]

SINK = f"{__name__}:sink"
IDENTITY = "bench"
ACK = bytes(8)
BUFFER_BYTES = 1 << 18
PACKED = 64
CHANNEL = struct.Struct("<Q")

Handler = Callable[[memoryview], object]


@contextmanager
def _open(
    setup: Setup, *, unix: bool, packed: int = 1, in_turn: bool = False, secret: bool = False
) -> Iterator[Session]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="echoic-")) if unix else ""
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="echoic-")) if secret else ""
        if home:
            Authority.create(Path(home) / "authority").issue(IDENTITY)
        if setup.stages > 1:
            last, address = stack.enter_context(start_chain(SINK, setup, {"folder": folder, "home": home}))
            peers, addresses = [last], [address]
        else:
            peers = stack.enter_context(start_peers(SINK, setup, [{"folder": folder, "home": home}] * setup.sinks))
            addresses = [peer.address() for peer in peers]
        sockets = [stack.enter_context(_dialled(str(address["at"]), home)) for address in addresses]
        if setup.synchronous:
            call = partial(_call_in_turn if in_turn else _call, sockets, _message(setup))
            join(peers, lambda _: call())
            yield time_call(call)
        else:
            submit = _submission(sockets, setup, packed)
            join(peers, submit)
            yield time_counted(peers, submit)


def _one_at_a_time(setup: Setup) -> bool:
    """Tell whether one system call per event, or per batch, is a limit worth knowing."""
    return setup.channels == 1 and (setup.stages == 1 or setup.batch > 0)


def _gathered(setup: Setup) -> bool:
    return not setup.synchronous and not setup.batch


RAW_TCP = Contender("raw tcp", partial(_open, unix=False), _one_at_a_time)
RAW_TCP_IN_TURN = Contender(
    "raw tcp, one after the other", partial(_open, unix=False, in_turn=True), lambda setup: setup.synchronous
)
RAW_TCP_PACKED = Contender(f"raw tcp, packed by {PACKED}", partial(_open, unix=False, packed=PACKED), _gathered)
RAW_TLS = Contender(
    "raw tls", partial(_open, unix=False, secret=True), lambda setup: setup.channels == setup.stages == 1
)
RAW_UNIX = Contender("raw unix", partial(_open, unix=True), _one_at_a_time)
RAW_UNIX_PACKED = Contender(f"raw unix, packed by {PACKED}", partial(_open, unix=True, packed=PACKED), _gathered)


def _message(setup: Setup) -> bytes:
    payload = PAYLOADS[setup.payload]
    size_bytes = payload.dtype.itemsize if setup.batch and payload.dtype is not None else payload.size_bytes
    return b"\1" * size_bytes  # written to, for the reason given in `Payload.records`


def _call(sockets: Sequence[socket.socket], message: bytes) -> None:
    """Make one round trip to all sinks at once."""
    for each in sockets:
        each.sendall(message)
    for each in sockets:
        each.recv(len(ACK))


def _call_in_turn(sockets: Sequence[socket.socket], message: bytes) -> None:
    """Make one round trip to each sink, one after the other."""
    for each in sockets:
        each.sendall(message)
        each.recv(len(ACK))


def _submission(sockets: Sequence[socket.socket], setup: Setup, packed: int) -> Callable[[int], None]:
    """Return what sends so many events to every sink."""
    message = _message(setup)
    if setup.batch:
        return partial(_send, sockets, memoryview(message * setup.batch), setup.batch)
    if setup.channels > 1:
        messages = [CHANNEL.pack(number) + message for number in range(setup.channels)]
        return partial(_send_packed, sockets, messages, packed)
    if packed > 1:
        return partial(_send_packed, sockets, [message], packed)
    return partial(_send, sockets, memoryview(message), 1)


def _send(sockets: Sequence[socket.socket], block: memoryview, events: int, count: int) -> None:
    whole, rest = divmod(count, events)
    for _ in range(whole):
        for each in sockets:
            each.sendall(block)
    for each in sockets:
        each.sendall(block[: rest * len(block) // events])


def _send_packed(sockets: Sequence[socket.socket], messages: Sequence[bytes], packed: int, count: int) -> None:
    """Gather events one by one, as they come from a program, and send a full pack."""
    pack: list[bytes] = []
    add = pack.append
    for message in islice(cycle(messages), count):
        add(message)
        if len(pack) == packed:
            _flush(sockets, pack)
    _flush(sockets, pack)


def _flush(sockets: Sequence[socket.socket], pack: list[bytes]) -> None:
    block = b"".join(pack)
    pack.clear()
    for each in sockets:
        each.sendall(block)


def sink(control: Control, setup: Setup, argument: Argument) -> None:
    """Receive; this runs in the peer."""
    with _listen(str(argument["folder"])) as listener:
        following = _connect(str(argument["next_at"])) if "next_at" in argument else None
        control.ready(at=_address(listener))
        accepted = _tuned(listener.accept()[0])
    with _accepted(accepted, str(argument["home"])) as connection:
        size_bytes = len(_message(setup))
        if setup.synchronous:
            _answer(connection, size_bytes, control.tally.event)
        elif following is not None:
            _relay(connection, following)
        elif size_bytes > BUFFER_BYTES // 8:
            _receive_blocks(connection, size_bytes, control.tally.event)
        elif setup.batch:
            _count(connection, size_bytes, control.tally.events)
        elif setup.channels > 1:
            _handle_by_channel(connection, CHANNEL.size + size_bytes, [control.tally.event] * setup.channels)
        else:
            _handle(connection, size_bytes, control.tally.event)


def _answer(connection: socket.socket, size_bytes: int, handle: Handler) -> None:
    view = memoryview(bytearray(size_bytes))
    while _fill(connection, view):
        handle(view)
        connection.sendall(ACK)


def _receive_blocks(connection: socket.socket, size_bytes: int, handle: Handler) -> None:
    view = memoryview(bytearray(size_bytes))
    while _fill(connection, view):
        touch(view)
        handle(view)


def _fill(connection: socket.socket, view: memoryview) -> bool:
    """Receive until the view is full; tell whether that came to pass."""
    received = connection.recv_into(view)
    while 0 < received < len(view):
        more = connection.recv_into(view[received:])
        received = received + more if more else 0
    return received > 0


def _relay(connection: socket.socket, following: socket.socket) -> None:
    view = memoryview(bytearray(BUFFER_BYTES))
    with following:
        while received := connection.recv_into(view):
            following.sendall(view[:received])


def _count(connection: socket.socket, size_bytes: int, handle: Callable[[int], object]) -> None:
    view, partial_bytes = memoryview(bytearray(BUFFER_BYTES)), 0
    while received := connection.recv_into(view):
        events, partial_bytes = divmod(partial_bytes + received, size_bytes)
        handle(events)


def _handle(connection: socket.socket, size_bytes: int, handle: Handler) -> None:
    for view, filled in _chunks(connection, size_bytes):
        for start in range(0, filled, size_bytes):
            handle(view[start : start + size_bytes])


def _handle_by_channel(connection: socket.socket, size_bytes: int, handlers: Sequence[Handler]) -> None:
    number_of, head = CHANNEL.unpack_from, CHANNEL.size
    for view, filled in _chunks(connection, size_bytes):
        for start in range(0, filled, size_bytes):
            (number,) = number_of(view, start)
            handlers[number](view[start + head : start + size_bytes])


def _chunks(connection: socket.socket, size_bytes: int) -> Iterator[tuple[memoryview, int]]:
    """Yield a buffer and how many of its bytes are whole events, again and again."""
    view, kept = memoryview(bytearray(BUFFER_BYTES)), 0
    while received := connection.recv_into(view[kept:]):
        available = kept + received
        kept = available % size_bytes
        yield view, available - kept
        view[:kept] = view[available - kept : available]


def _listen(folder: str) -> socket.socket:
    if not folder:
        return socket.create_server(("127.0.0.1", 0))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(Path(folder) / f"{os.getpid()}.socket"))
    listener.listen()
    return listener


def _address(listener: socket.socket) -> str:
    name = listener.getsockname()
    return name if isinstance(name, str) else f"{name[0]}:{name[1]}"


def _connect(address: str) -> socket.socket:
    if Path(address).is_absolute():
        made = socket.socket(socket.AF_UNIX)
        made.connect(address)
        return made
    host, _, port = address.rpartition(":")
    return _tuned(socket.create_connection((host, int(port))))


def _dialled(address: str, home: str) -> socket.socket:
    """Return a socket to an address, a secret one if there is a folder of certificates."""
    made = _connect(address)
    if not home:
        return made
    return Identity.named(IDENTITY, Path(home)).dialling_context().wrap_socket(made, server_hostname="localhost")


def _accepted(connection: socket.socket, home: str) -> socket.socket:
    """Return the same for a socket that was accepted."""
    if not home:
        return connection
    return Identity.named(IDENTITY, Path(home)).listening_context().wrap_socket(connection, server_side=True)


def _tuned(connection: socket.socket) -> socket.socket:
    """Let a small event leave at once."""
    if connection.family == socket.AF_INET:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
