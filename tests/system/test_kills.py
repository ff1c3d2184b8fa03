"""SIGKILL of every role and SIGSTOP of a sink, under traffic: those who live go on and miss nothing."""

import itertools
import signal
from collections.abc import Iterator

import pytest

from echoic import Hub
from tests.system.processes import Process, Start, processes, wait_until

pytestmark = pytest.mark.system

LINKS = [{}, {"listen": "127.0.0.2:0"}]  # Unix sockets; TCP, since only 127.0.0.1 has a Unix socket
LINK_NAMES = ["unix", "tcp"]
MEGABYTE = 1024 * 1024


@pytest.fixture
def start() -> Iterator[Start]:
    with processes() as start:
        yield start


def seen(sink: Process, producer: int) -> int:
    return sink.ask()["next"].get(str(producer), 0)


def flows(sink: Process, producer: int, more: int = 2000) -> None:
    """Wait until more events of a producer have arrived."""
    goal = seen(sink, producer) + more
    wait_until(lambda: seen(sink, producer) >= goal, f"events of {producer} flow")


def check_complete(source: Process, producer: int, *sinks: Process) -> None:
    """Stop a source; every sink has had all of its events, once and in order."""
    submitted = source.ask("halt")["submitted"]
    for sink in sinks:
        wait_until(lambda sink=sink: seen(sink, producer) == submitted, f"{submitted} events of {producer}")
        told = sink.ask()
        assert told["problems"] == []
        assert told["gaps"] == []
        assert len(told["spans"][str(producer)]) == 1
        assert told["first"][str(producer)] + told["counted"][str(producer)] == submitted


@pytest.mark.parametrize("options", LINKS, ids=LINK_NAMES)
def test_a_source_is_killed(start: Start, options: dict[str, str]) -> None:
    manager = start("manage", channel="ticks", **options)
    id = manager.started["id"]
    sinks = [start("watch", channel=id, **options) for _ in range(2)]
    living, victim = (start("publish", channel=id, producer=producer, **options) for producer in (1, 2))
    for sink in sinks:
        flows(sink, 1)
        flows(sink, 2)
    victim.kill()
    for sink in sinks:
        flows(sink, 1)
    successor = start("publish", channel=id, producer=3, **options)
    for sink in sinks:
        flows(sink, 3)
    check_complete(living, 1, *sinks)
    check_complete(successor, 3, *sinks)


@pytest.mark.parametrize("options", LINKS, ids=LINK_NAMES)
def test_a_sink_is_killed(start: Start, options: dict[str, str]) -> None:
    manager = start("manage", channel="ticks", **options)
    id = manager.started["id"]
    staying, victim = (start("watch", channel=id, **options) for _ in range(2))
    sources = [start("publish", channel=id, producer=producer, **options) for producer in (1, 2)]
    flows(victim, 1)
    victim.kill()
    flows(staying, 1)
    flows(staying, 2)
    successor = start("watch", channel=id, **options)
    flows(successor, 1)
    for producer, source in enumerate(sources, 1):
        check_complete(source, producer, staying)
    told = successor.ask()
    assert told["problems"] == []
    assert all(len(spans) == 1 for spans in told["spans"].values())


@pytest.mark.parametrize("options", LINKS, ids=LINK_NAMES)
def test_the_manager_is_killed(start: Start, options: dict[str, str]) -> None:
    manager = start("manage", channel="ticks", **options)
    id, address = manager.started["id"], manager.started["address"]
    sink = start("watch", channel=id, **options)
    source = start("publish", channel=id, producer=1, **options)
    flows(sink, 1)
    manager.kill()
    flows(sink, 1)
    again = start("manage", channel="ticks", listen=address)
    assert again.started["id"] == id
    late = start("watch", channel=id, **options)
    flows(late, 1)
    check_complete(source, 1, sink)
    told = late.ask()
    assert told["problems"] == []
    assert all(len(spans) == 1 for spans in told["spans"].values())


def test_the_name_server_is_killed(start: Start) -> None:
    server = start("manage")
    names = server.started["address"]
    source = start("publish", channel="ticks", create=True, producer=1, names=names)
    assert source.started["id"], "the channel is registered before somebody looks for it"
    sink = start("watch", channel="ticks", names=names)
    flows(sink, 1)
    server.kill()
    flows(sink, 1)
    again = start("manage", listen=names)
    assert again.started["address"] == names
    with Hub() as observer:
        wait_until(lambda: observer.channels(names), "the source's hub registers again")
    late = start("watch", channel="ticks", names=names)
    flows(late, 1)
    check_complete(source, 1, sink, late)


@pytest.mark.parametrize(
    ("slow", "options"),
    [
        ("block", LINKS[0]),
        ("block", LINKS[1]),
        ("drop_oldest", LINKS[1]),
        ("latest", LINKS[0]),
        ("disconnect", LINKS[1]),
    ],
)
def test_a_sink_is_stopped(start: Start, slow: str, options: dict[str, str]) -> None:
    """The others go on (but for `block`, which waits), memory is bounded, and what was missed is told exactly."""
    source = start(
        "publish", channel="ticks", create=True, producer=1, size=4000, pause=0.01, pause_every=50, **options
    )
    id = source.started["id"]
    stopped, going = start("watch", channel=id, slow=slow, **options), start("watch", channel=id, **options)
    flows(going, 1, 500)
    flows(stopped, 1, 100)
    before = source.ask()["memory"]
    stopped.signal(signal.SIGSTOP)
    if slow == "block":
        flows(going, 1, 500)
    else:
        flows(going, 1, 8000)
    assert source.ask()["memory"] - before < 80 * MEGABYTE
    stopped.signal(signal.SIGCONT)
    flows(going, 1, 500)
    submitted = source.ask("halt")["submitted"]
    wait_until(lambda: seen(going, 1) == submitted, "the other sink has had everything")
    assert going.ask()["gaps"] == []
    assert len(going.ask()["spans"]["1"]) == 1
    if slow == "disconnect":
        wait_until(lambda: stopped.ask()["closed"], "it is disconnected")
        assert len(stopped.ask()["spans"]["1"]) == 1
        return
    wait_until(lambda: seen(stopped, 1) == submitted, "the stopped sink has had the last event")
    told = stopped.ask()
    assert told["problems"] == []
    spans = sorted([*told["spans"]["1"], *told["gaps"]])
    assert all(later[0] == earlier[1] + 1 for earlier, later in itertools.pairwise(spans)), spans
    assert spans[-1][1] == submitted - 1
    assert (told["gaps"] == []) == (slow == "block")
