"""ZeroMQ by pyzmq: REQ/REP for round trips, PUSH/PULL for one sink and pipelines, PUB/SUB for several and for topics.

High-water marks are off or high, so that nothing is dropped and nobody waits for a queue of a thousand. Blocks are sent
and received without a copy, as its guide says. `ipc` is its Unix socket.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle

import numpy
import zmq

from benchmarks.rivals.codec import Codec
from echoic.testing.bench import (
    PAYLOADS,
    Argument,
    Contender,
    Control,
    Session,
    Setup,
    join,
    start_chain,
    start_peers,
    time_call,
    time_counted,
    touch,
)

__all__ = ["CONTENDERS"]

REPLIER, PULLER, SUBSCRIBER = (f"{__name__}:{name}" for name in ("reply", "pull", "subscribe"))
WAITING_MAX = 100_000
TOPIC_BYTES = 8


def _socket(kind: int, waiting_max: int = WAITING_MAX) -> zmq.Socket:
    made = zmq.Context.instance().socket(kind)
    made.linger = 0
    made.set_hwm(waiting_max)
    return made


def _bind(made: zmq.Socket, transport: str, folder: str) -> str:
    """Bind to an address nobody else has and return it."""
    made.bind(f"ipc://{tempfile.mktemp(dir=folder)}" if transport == "ipc" else "tcp://127.0.0.1:*")
    return made.last_endpoint.decode().rstrip("\0")


@contextmanager
def _request(setup: Setup, *, transport: str) -> Iterator[Session]:
    with ExitStack() as stack:
        argument: Argument = {"transport": transport, "folder": stack.enter_context(tempfile.TemporaryDirectory())}
        peers = stack.enter_context(start_peers(REPLIER, setup, [argument] * setup.sinks))
        sockets = []
        for peer in peers:
            sockets.append(stack.enter_context(_socket(zmq.REQ)))
            sockets[-1].connect(str(peer.address()["at"]))
        codec = Codec(setup)
        events, encode = codec.endless(), codec.encode

        def call() -> None:
            message = encode(next(events))
            for each in sockets:
                each.send(message)
            for each in sockets:
                each.recv()

        join(peers, lambda _: call())
        yield time_call(call)


def reply(control: Control, setup: Setup, argument: Argument) -> None:
    """Handle and acknowledge."""
    made, decode, handle = _socket(zmq.REP), Codec(setup).decode, control.tally.event
    control.ready(at=_bind(made, str(argument["transport"]), str(argument["folder"])))
    while True:
        handle(decode(made.recv()))
        made.send(b"")


@contextmanager
def _push(setup: Setup, *, transport: str) -> Iterator[Session]:
    with ExitStack() as stack:
        argument: Argument = {"transport": transport, "folder": stack.enter_context(tempfile.TemporaryDirectory())}
        last, address = stack.enter_context(start_chain(PULLER, setup, argument))
        made = stack.enter_context(_socket(zmq.PUSH, 16 if setup.batch else WAITING_MAX))
        made.connect(str(address["at"]))
        if setup.batch:
            submit = partial(_push_blocks, made, PAYLOADS[setup.payload].records(setup.batch))
        else:
            submit = partial(_push_events, made, Codec(setup))
        join([last], submit)
        yield time_counted([last], submit)


def _push_events(made: zmq.Socket, codec: Codec, count: int) -> None:
    send, encode = made.send, codec.encode
    for event in codec.events(count):
        send(encode(event))


def _push_blocks(made: zmq.Socket, records: numpy.ndarray, count: int) -> None:
    for _ in range(count):
        made.send(records, copy=False)


def pull(control: Control, setup: Setup, argument: Argument) -> None:
    """Handle, or decode and push on to the next stage."""
    made, codec, handle = _socket(zmq.PULL, 16 if setup.batch else WAITING_MAX), Codec(setup), control.tally.event
    decode, encode, recv = codec.decode, codec.encode, made.recv
    if "next_at" in argument:
        following = _socket(zmq.PUSH)
        following.connect(str(argument["next_at"]))
        handle = _relaying(encode, following.send)
    control.ready(at=_bind(made, str(argument["transport"]), str(argument["folder"])))
    if setup.batch:
        while True:
            frame = recv(copy=False)
            touch(frame.buffer)
            handle(frame)
    while True:
        handle(decode(recv()))


def _relaying(encode: Callable[[object], bytes], send: Callable[[bytes], object]) -> Callable[[object], None]:
    def relay(event: object) -> None:
        send(encode(event))

    return relay


@contextmanager
def _publish(setup: Setup) -> Iterator[Session]:
    with ExitStack() as stack:
        made = stack.enter_context(_socket(zmq.PUB, 0))
        argument: Argument = {"at": _bind(made, "tcp", "")}
        peers = stack.enter_context(start_peers(SUBSCRIBER, setup, [argument] * setup.sinks))
        for peer in peers:
            peer.address()
        submit = partial(_publish_events, made, Codec(setup), _topics(setup))
        join(peers, submit)
        yield time_counted(peers, submit)


def _topics(setup: Setup) -> list[bytes]:
    return [number.to_bytes(TOPIC_BYTES, "big") for number in range(setup.channels)]


def _publish_events(made: zmq.Socket, codec: Codec, topics: list[bytes], count: int) -> None:
    send, encode = made.send, codec.encode
    for topic, event in zip(cycle(topics), codec.events(count), strict=False):
        send(topic + encode(event))


def subscribe(control: Control, setup: Setup, argument: Argument) -> None:
    """Handle by topic."""
    made, decode = _socket(zmq.SUB, 0), Codec(setup).decode
    handlers = dict.fromkeys(_topics(setup), control.tally.event)
    for topic in handlers:
        made.subscribe(topic)
    made.connect(str(argument["at"]))
    control.ready()
    recv = made.recv
    while True:
        message = recv()
        handlers[message[:TOPIC_BYTES]](decode(memoryview(message)[TOPIC_BYTES:]))


def _is_call(setup: Setup) -> bool:
    return setup.synchronous


def _is_push(setup: Setup) -> bool:
    several = setup.sinks > 1 or setup.channels > 1
    return not setup.synchronous and not several and setup.batch <= 1


def _is_publication(setup: Setup) -> bool:
    return not setup.synchronous and setup.stages == 1 and not setup.batch


CONTENDERS = (
    Contender("zeromq tcp, req/rep", partial(_request, transport="tcp"), _is_call),
    Contender("zeromq ipc, req/rep", partial(_request, transport="ipc"), lambda s: _is_call(s) and s.sinks == 1),
    Contender("zeromq tcp, push/pull", partial(_push, transport="tcp"), _is_push),
    Contender("zeromq ipc, push/pull", partial(_push, transport="ipc"), lambda s: _is_push(s) and s.stages == 1),
    Contender("zeromq tcp, pub/sub", _publish, _is_publication),
)
