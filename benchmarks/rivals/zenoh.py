"""Zenoh: peers that are told each other's address, without scouting and without a router.

Round trips as in its own example `z_ping`: a ping and a pong topic, both express, answered in the callback. One way
with its default batching and with congestion control that blocks, so that nothing is dropped. Many channels have one
subscriber with a wildcard, which looks the callback up by the key: each subscriber has a thread, and 4096 of them took
50 to 280 us per event instead of 2.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle

import zenoh

from benchmarks.rivals.codec import Codec
from benchmarks.rivals.ports import free_port
from echoic.testing.bench import (
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
)

__all__ = ["CONTENDERS"]

SINK = f"{__name__}:sink"
PONGS_MAX = 1024


def _open(listen: str | None, connect: list[str]) -> zenoh.Session:
    config = zenoh.Config()
    config.insert_json5("mode", '"peer"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("scouting/gossip/enabled", "false")
    config.insert_json5("listen/endpoints", json.dumps([listen] if listen else []))
    config.insert_json5("connect/endpoints", json.dumps(connect))
    return zenoh.open(config)


def _publisher(session: zenoh.Session, key: str, *, express: bool = False) -> zenoh.Publisher:
    return session.declare_publisher(key, congestion_control=zenoh.CongestionControl.BLOCK, express=express)


@contextmanager
def _ping(setup: Setup) -> Iterator[Session]:
    with ExitStack() as stack:
        peers = stack.enter_context(start_peers(SINK, setup, [{}] * setup.sinks))
        session = stack.enter_context(_open(None, [str(peer.address()["at"]) for peer in peers]))
        pongs = session.declare_subscriber("pong", zenoh.handlers.FifoChannel(PONGS_MAX))
        ping = _publisher(session, "ping/0", express=True)
        codec = Codec(setup)
        events, encode, sinks = codec.endless(), codec.encode, setup.sinks

        def call() -> None:
            ping.put(encode(next(events)))
            for _ in range(sinks):
                pongs.recv()

        # While sinks are missing a call would wait for ever.
        join(peers, lambda _: ping.put(encode(next(events))))
        while pongs.try_recv() is not None:
            pass
        yield time_call(call)


@contextmanager
def _put(setup: Setup) -> Iterator[Session]:
    with ExitStack() as stack:
        if setup.stages > 1:
            last, address = stack.enter_context(start_chain(SINK, setup, {}))
            peers, addresses = [last], [str(address["at"])]
            key = f"stage/{address['port']}"
        else:
            peers = stack.enter_context(start_peers(SINK, setup, [{}] * setup.sinks))
            addresses, key = [str(peer.address()["at"]) for peer in peers], "ping"
        session = stack.enter_context(_open(None, addresses))
        publishers = [_publisher(session, f"{key}/{number}") for number in range(setup.channels)]
        submit = partial(_put_events, publishers, Codec(setup))
        join(peers, submit)
        yield time_counted(peers, submit)


def _put_events(publishers: list[zenoh.Publisher], codec: Codec, count: int) -> None:
    encode, turns = codec.encode, cycle([publisher.put for publisher in publishers])
    for put, event in zip(turns, codec.events(count), strict=False):
        put(encode(event))


def sink(control: Control, setup: Setup, argument: Argument) -> None:
    """Handle; answer, count, or put on to the next stage."""
    port = free_port()
    at = f"tcp/127.0.0.1:{port}"
    key = f"stage/{port}" if setup.stages > 1 else "ping"
    session = _open(at, [str(argument["next_at"])] if "next_at" in argument else [])
    handler = _handler(session, control, setup, argument)
    if setup.channels > 1:
        handlers = {f"{key}/{number}": handler for number in range(setup.channels)}
        kept = session.declare_subscriber(f"{key}/*", lambda sample: handlers[str(sample.key_expr)](sample))
    else:
        kept = session.declare_subscriber(f"{key}/0", handler)
    control.ready(at=at, port=port, key=str(kept.key_expr))
    control.wait()


def _handler(
    session: zenoh.Session, control: Control, setup: Setup, argument: Argument
) -> Callable[[zenoh.Sample], object]:
    codec, handle = Codec(setup), control.tally.event
    decode, encode = codec.decode, codec.encode
    if setup.synchronous:
        pong = _publisher(session, "pong", express=True)

        def answer(sample: zenoh.Sample) -> None:
            handle(decode(sample.payload.to_bytes()))
            pong.put(b"")

        return answer
    if "next_port" in argument:
        following = _publisher(session, f"stage/{argument['next_port']}/0")
        return lambda sample: following.put(encode(decode(sample.payload.to_bytes())))
    return lambda sample: handle(decode(sample.payload.to_bytes()))


CONTENDERS = (
    Contender("zenoh, ping/pong", _ping, lambda setup: setup.synchronous),
    Contender("zenoh", _put, lambda setup: not setup.synchronous and not setup.batch),
)
