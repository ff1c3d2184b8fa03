"""echoic itself, used as its users use it: a hub in every process, events submitted to channels, handlers that count.

    fan-out    this process creates the channel and is the source; each sink opens it by its id
    in turn    a channel for each sink, and a submit to each: what a program does that knows no channels with many sinks
    pipeline   each stage creates the channel it listens to, and is a source of the next stage's
    channels   as many as asked for, all between the same two hubs, taking turns

On one host links use Unix sockets and shared memory; `ECHOIC_LINKS=tcp` makes them use TCP only, and an identity TLS
over TCP, with certificates of an authority that is made for the occasion. Sinks may live on another host (`hosts`).
Nobody calls `flush`: the last event of a sample leaves by itself, as it does in a program that has nothing more to say.
"""

import errno
import os
import socket
import tempfile
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from echoic.testing.bench.contest import Contender, Session, Setup, time_call
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.events import PAYLOADS, Records, touch
from echoic.testing.bench.hosts import Hosts, can_have_hosts, two_hosts
from echoic.testing.bench.peers import Peer, join, start_chain, start_peers, time_counted

if TYPE_CHECKING:
    from echoic import Batch, Channel, Hub, Source

__all__ = [
    "ECHOIC",
    "ECHOIC_IN_TURN",
    "ECHOIC_TCP",
    "ECHOIC_TCP_HOSTS",
    "ECHOIC_TLS",
    "ECHOIC_TLS_HOSTS",
    "Memory",
    "environment",
    "measure_memory",
]

SINK, STAGE, MEMORY = (f"{__name__}:{name}" for name in ("sink", "stage", "weigh"))
WARMING_CHANNELS = 64
BLOCK_BYTES_MIN = 32_768
ONE_HOST = Hosts("127.0.0.1", "127.0.0.1", ())


@contextmanager
def _open(setup: Setup, *, links: str | None, in_turn: bool = False, apart: bool = False) -> Iterator[Session]:
    from echoic import Hub, Identity

    with ExitStack() as stack:
        hosts = stack.enter_context(two_hosts()) if apart else ONE_HOST
        variables = {"ECHOIC_IDENTITY": ""} if links is None else {"ECHOIC_IDENTITY": "", "ECHOIC_LINKS": links}
        if links == "tls":
            variables = stack.enter_context(_identified(hosts))
        before = _tcp_connections()
        with environment(variables):
            hub = stack.enter_context(Hub(f"{hosts.here}:0", identity=Identity.of_environment(), insecure=apart))
            opened = _open_stages if setup.stages > 1 else partial(_open_sinks, in_turn=in_turn, hosts=hosts)
            sources, peers = opened(hub, setup, variables, stack)
            session = _joined(sources, peers, setup)
        if links in ("tcp", "tls") and before is not None and _tcp_connections() == before:
            warnings.warn(f"links are not by TCP: what is called {links} here is not", stacklevel=2)
        yield session


ECHOIC = Contender("echoic", partial(_open, links=None))
ECHOIC_TCP = Contender("echoic tcp", partial(_open, links="tcp"))
ECHOIC_TLS = Contender("echoic tls", partial(_open, links="tls"))
ECHOIC_TCP_HOSTS, ECHOIC_TLS_HOSTS = (
    Contender(
        f"echoic {links}, two hosts",
        partial(_open, links=links, apart=True),
        lambda setup: setup.stages == 1 and can_have_hosts(),
    )
    for links in ("tcp", "tls")
)
ECHOIC_IN_TURN = Contender(
    "echoic, one after the other", partial(_open, links=None, in_turn=True), lambda setup: setup.synchronous
)


@contextmanager
def _identified(hosts: Hosts) -> Iterator[dict[str, str]]:
    """Give the variables by which processes have an identity, which is made for them."""
    from echoic.trust.authority import Authority

    with tempfile.TemporaryDirectory() as folder:
        Authority.create(Path(folder) / "authority").issue("bench", (hosts.here, hosts.there))
        yield {"ECHOIC_HOME": folder, "ECHOIC_IDENTITY": "bench"}


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the hub of this process while it makes its links."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _tcp_connections() -> int | None:
    """Return how many TCP connections this process has, or None where the kernel does not tell."""
    folder = Path("/proc/self/fd")
    if not folder.exists():
        return None
    return sum(_is_tcp_connection(int(entry.name)) for entry in folder.iterdir())


def _is_tcp_connection(descriptor: int) -> bool:
    try:
        copy = os.dup(descriptor)
    except OSError:
        return False
    try:
        with socket.socket(fileno=copy) as each:
            return each.family in (socket.AF_INET, socket.AF_INET6) and bool(each.getpeername())
    except OSError as error:
        if error.errno == errno.ENOTSOCK:
            os.close(copy)
        return False


def _declared(setup: Setup) -> object:
    payload = PAYLOADS[setup.payload]
    return payload.dtype if setup.batch else payload.declared


def _open_sinks(
    hub: "Hub", setup: Setup, variables: Mapping[str, str], stack: ExitStack, *, in_turn: bool, hosts: Hosts
) -> "tuple[list[Source], list[Peer]]":
    number_of_channels = setup.sinks if in_turn else setup.channels
    channels = [hub.create(f"bench-{number}", _declared(setup)) for number in range(number_of_channels)]
    prefix = channels[0].id.removesuffix("0")
    arguments: list[Argument] = [{"prefix": prefix, "first": number if in_turn else 0} for number in range(setup.sinks)]
    peers = stack.enter_context(start_peers(SINK, setup, arguments, variables, hosts.prefix))
    for peer in peers:
        peer.address()
    return [channel.source() for channel in channels], peers


def _open_stages(
    hub: "Hub", setup: Setup, variables: Mapping[str, str], stack: ExitStack
) -> "tuple[list[Source], list[Peer]]":
    last, address = stack.enter_context(start_chain(STAGE, setup, {}, variables))
    return [hub.open(str(address["id"]), _declared(setup)).source()], [last]


def _joined(sources: "Sequence[Source]", peers: Sequence[Peer], setup: Setup) -> Session:
    payload = PAYLOADS[setup.payload]
    if setup.synchronous:
        call = _call(sources, payload.events())
        join(peers, lambda _: call())
        return time_call(call)
    if setup.batch:
        submit = partial(_submit_batches, sources[0], payload.records(setup.batch))
    else:
        submit = partial(_submit_events, sources, payload.events())
    join(peers, submit)
    return time_counted(peers, submit)


def _call(sources: "Sequence[Source]", events: Sequence[object]) -> Callable[[], object]:
    """Return what submits one event and waits for it; to several sources one after the other."""
    turns = cycle(events)
    submit_sync, *further = [source.submit_sync for source in sources]

    def call_in_turn() -> None:
        event = next(turns)
        submit_sync(event)
        for each in further:
            each(event)

    return call_in_turn if further else lambda: submit_sync(next(turns))


def _submit_events(sources: "Sequence[Source]", events: Sequence[object], count: int) -> None:
    """Submit so many events one at a time, to the channels by turns."""
    turns = cycle([source.submit for source in sources])
    for submit, event in zip(turns, islice(cycle(events), count), strict=False):
        submit(event)


def _submit_batches(source: "Source", records: Records, count: int) -> None:
    size = len(records)
    for _ in range(count // size):
        source.submit_batch(records)
    if rest := count % size:
        source.submit_batch(records[:rest])


def sink(control: Control, setup: Setup, argument: Argument) -> None:
    """Subscribe to every channel and count; this runs in the peer."""
    from echoic import Hub, Identity

    first = int(str(argument["first"]))
    with Hub(identity=Identity.of_environment()) as hub:
        for number in range(first, first + setup.channels):
            channel = hub.open(f"{argument['prefix']}{number}", _declared(setup))
            _subscribe(channel, setup, _counting(control, setup))
        control.ready()
        control.wait()


def stage(control: Control, setup: Setup, argument: Argument) -> None:
    """Relay to the next stage, or count if there is none; this runs in the peer."""
    from echoic import Hub, Identity

    with Hub(identity=Identity.of_environment()) as hub:
        channel = hub.create("stage", _declared(setup))
        handler = _counting(control, setup)
        if "next_id" in argument:
            source = hub.open(str(argument["next_id"]), _declared(setup)).source()
            handler = source.submit_batch if setup.batch else source.submit
        _subscribe(channel, setup, handler)
        control.ready(id=channel.id)
        control.wait()


def _subscribe(channel: "Channel", setup: Setup, handler: Callable[..., object]) -> None:
    if setup.batch:
        channel.subscribe(handler, batch=True)
    else:
        channel.subscribe(handler)


def _counting(control: Control, setup: Setup) -> Callable[..., object]:
    """Return the handler that counts events, or the events of batches."""
    count = control.tally.events
    if not setup.batch:
        return control.tally.event
    payload = PAYLOADS[setup.payload]
    if payload.dtype is None or payload.dtype.itemsize < BLOCK_BYTES_MIN:
        return lambda batch: count(len(batch))

    def handle_block(batch: "Batch") -> None:
        touch(batch.records)
        count(len(batch))

    return handle_block


@dataclass(frozen=True, slots=True)
class Memory:
    """What so many idle channels cost in one hub: by Python's own account, and by the kernel's."""

    channels: int
    traced_bytes: int
    resident_bytes: int


def measure_memory(channels: int) -> Memory:
    """Create so many channels in fresh processes and return what they cost."""
    found = []
    for traced in (1, 0):
        setup = Setup("100 B", channels=channels)
        with start_peers(MEMORY, setup, [{"traced": traced}]) as (peer,):
            found.append(int(peer.address()["grown_bytes"]))
    return Memory(channels, *found)


def weigh(control: Control, setup: Setup, argument: Argument) -> None:
    """Create channels and tell how much memory they took; this runs in the peer."""
    from echoic import Hub

    declared, traced = _declared(setup), bool(argument["traced"])
    with Hub() as hub:
        kept = [hub.create(f"warming-{number}", declared) for number in range(WARMING_CHANNELS)]
        if traced:
            tracemalloc.start()
        before = _memory_bytes(traced)
        kept += [hub.create(f"idle-{number}", declared) for number in range(setup.channels)]
        control.ready(grown_bytes=_memory_bytes(traced) - before, channels=len(kept))
        control.wait()


def _memory_bytes(traced: bool) -> int:
    if traced:
        return tracemalloc.get_traced_memory()[0]
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
