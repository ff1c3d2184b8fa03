"""Inter-tool communication, "Communication scenarios", "Firewall support" and "Streams": T11 to T14 of the check-list.

An active tool can be reached and a passive one cannot. Here passive ones say so, have a port that nobody can reach, or
live in a network namespace behind a real firewall.
"""

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.links import parse_address
from echoic.toolbus.protocol import MessageKind
from echoic.toolbus.references.routes import Route, Routes
from echoic.toolbus.references.words import decode_get
from tests.engines.trios import Namespaces, namespaces
from tests.papers.reference_puppets import Conversation, Meter, Puppet, listen, send_value
from tests.papers.reference_scripts import GET_X, OVERHEAD, PASSIVE, moving, started, with_tools
from tests.papers.reference_workshop import (
    MEGABYTE,
    Room,
    blob_of,
    digest,
    forget_peak,
    memory_of,
    rooms,
    text_of,
    until,
)
from tests.toolbus.conftest import MakeBus

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("runtime_folder")]
ACTIVE: dict[str, str] = {}
SECOND_NS = 1_000_000_000


@pytest.mark.parametrize("asker", [ACTIVE, PASSIVE], ids=["active to active", "passive to active"])
def test_t11_a_value_of_an_active_owner_does_not_touch_the_bus(asker: dict[str, str], make_bus: MakeBus) -> None:
    size = 8 * MEGABYTE
    bus = make_bus(moving(size), threshold_bytes=64 * 1024)
    with rooms(2) as (one, other), Meter(started(bus)) as left, Meter(bus.address) as right:
        one.connect("Source", left.address)
        other.connect("Sink", right.address, **asker)
        assert bus.wait(30), bus.warnings()
        assert other.call("Sink", "seen") == [digest(text_of(size))]
        assert left.bytes + right.bytes < 2 * OVERHEAD
        assert bus.statistics().fetched == 0


def test_t12_a_passive_owner_connects_to_who_asks_and_nothing_touches_the_bus(make_bus: MakeBus) -> None:
    size = 8 * MEGABYTE
    bus = make_bus(moving(size), threshold_bytes=64 * 1024)
    with rooms(2) as (one, other), Meter(started(bus)) as left, Meter(bus.address) as right:
        one.connect("Source", left.address, **PASSIVE)
        other.connect("Sink", right.address)
        assert bus.wait(30), bus.warnings()
        assert other.call("Sink", "seen") == [digest(text_of(size))]
        assert left.bytes + right.bytes < 2 * OVERHEAD


def test_t12_one_control_message_is_relayed(make_bus: MakeBus) -> None:
    """Figure 4: GET to the bus, GET to the owner, and the owner's PUT over a connection that it made."""
    content = blob_of(700_000)
    bus = make_bus(with_tools(f"{GET_X} . snd-do(T, use(X)) . snd-eval(T, ping) . rec-value(T, pong) . shutdown(1)"))
    with rooms(1) as (room,), Puppet(started(bus), "source") as source:
        room.connect("Sink", bus.address)
        source.answer("val(<reference(0)>)", source.put(1, len(content), endpoints=()))
        get = decode_get(source.hear(MessageKind.GET))
        assert get.route is Route.RELAYED
        assert get.endpoints
        with Conversation(socket.create_connection(parse_address(get.endpoints[0]), timeout=10)) as asker:
            send_value(asker, get, content, token=get.nonce)
            assert bus.wait(20), bus.warnings()
        assert room.call("Sink", "seen") == [digest(content.decode())]
        assert source.count(MessageKind.GET) == 1
        assert source.count(MessageKind.MORE) == 0


def test_t13_between_passive_tools_a_value_streams_through_the_bus_without_filling_it() -> None:
    size = 50 * MEGABYTE
    script = with_tools(
        f"""snd-eval(S, make-blob({2 * MEGABYTE})) . rec-value(S, val(Z?)) . snd-do(T, use(Z)) . printf("warm") .
        Z := 0 . rec-event(S, go) . snd-eval(S, make-blob({size})) . rec-value(S, val(Z?)) . snd-do(T, use(Z)) .
        printf("moved") . rec-msg(never)"""
    )
    with rooms(3, fresh=True) as (house, one, other):
        house.make("House", script=script, threshold_bytes=64 * 1024)
        address = house.call("House", "address")
        with Meter(address) as left:
            one.connect("Source", left.address, **PASSIVE)
            other.connect("Sink", address, **PASSIVE)
            assert until(lambda: "warm" in house.call("House", "printed"))
            before = forget_peak(house.process.pid)
            one.call("Source", "say", "go")
            assert until(lambda: "moved" in house.call("House", "printed"))
            assert left.up > size, "it went this way"
        assert until(lambda: len(other.call("Sink", "seen")) == 2)
        assert other.call("Sink", "seen")[1] == digest(blob_of(size))
        assert memory_of(house.process.pid)["peak"] - before < 4 * MEGABYTE


def test_t13_many_streams_at_once_arrive_as_they_were(make_bus: MakeBus) -> None:
    moves = " || ".join(
        f"""let T: sink, X: str in rec-connect(T?) . snd-msg(want({number})) . rec-msg(here({number}, X?)) .
        snd-do(T, use(X)) . snd-eval(T, ping) . rec-value(T, pong) endlet"""
        for number in range(4)
    )
    bus = make_bus(
        f"""
        tool source is {{ command = "none" }}
        tool sink is {{ command = "none" }}
        process P is ({moves}) . shutdown(1)
        process Q is let S: source, I: int, X: str in rec-connect(S?) .
            ( rec-msg(want(I?)) . snd-eval(S, make-of(3000000, I)) . rec-value(S, val(X?)) .
              snd-msg(here(I, X)) ) * delta
        endlet
        toolbus(P, Q)
        """,
        threshold_bytes=64 * 1024,
    )
    with rooms(2) as (one, other):
        one.connect("Source", started(bus), **PASSIVE)
        for key in "abcd":
            other.connect("Sink", bus.address, key, **PASSIVE)
        assert bus.wait(30), bus.warnings()
        seen = sorted(each for key in "abcd" for each in other.call(key, "seen"))
        assert seen == sorted(digest(text_of(3_000_000, seed)) for seed in range(4))


def test_t14_passiveness_is_found_out_once_and_remembered(make_bus: MakeBus) -> None:
    """The owner says that it can be reached where somebody hangs up on everybody, and counts them."""
    listening, address = listen()
    knocks: list[socket.socket] = []

    def hang_up() -> None:
        try:
            while True:
                accepted, _ = listening.accept()
                knocks.append(accepted)
                accepted.close()
        except OSError:
            return

    threading.Thread(target=hang_up, daemon=True).start()
    one_more = "snd-eval(S, get) . rec-value(S, val(X?)) . snd-do(T, use(X)) . "
    bus = make_bus(with_tools(one_more * 3 + "snd-eval(T, ping) . rec-value(T, pong) . shutdown(1)"))
    with listening, rooms(1) as (room,), Puppet(started(bus), "source") as source:
        room.connect("Sink", bus.address, **PASSIVE)
        for number in range(1, 4):
            source.answer("val(<reference(0)>)", source.put(number, 100_000, endpoints=(address,)))
            get = decode_get(source.hear(MessageKind.GET))
            send_value(source, get, blob_of(100_000, number))
        assert bus.wait(20), bus.warnings()
        assert room.call("Sink", "seen") == [digest(text_of(100_000, number)) for number in range(1, 4)]
        assert len(knocks) == 1


def test_t14_a_better_way_is_tried_again_after_a_while() -> None:
    routes = Routes(ttl_ns=60 * SECOND_NS)
    assert routes.choose(1, 0) is Route.DIRECT
    routes.failed(1, Route.DIRECT, 0)
    assert routes.choose(1, 59 * SECOND_NS) is Route.RELAYED
    assert routes.choose(2, 59 * SECOND_NS) is Route.DIRECT, "others are not suspected"
    routes.failed(1, Route.RELAYED, SECOND_NS)
    assert routes.choose(1, 59 * SECOND_NS) is Route.STREAMED
    assert routes.choose(1, 60 * SECOND_NS) is Route.DIRECT
    assert routes.choose(1, 60 * SECOND_NS) is not Route.DIRECT, "one try is enough"
    routes.worked(1, Route.DIRECT)
    assert routes.choose(1, 61 * SECOND_NS) is Route.DIRECT


# A real firewall


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Namespaces]:
    with namespaces(tmp_path) as made:
        assert made is not None, "the tests need network namespaces"
        yield made


def inside(nodes: Namespaces, node: int) -> tuple[str, ...]:
    """Return how to start a program on a node."""
    return ("nsenter", f"--net={nodes.places(node)[0]}", "--")


def refuse_connections(nodes: Namespaces, node: int) -> None:
    """Put a firewall before a node that lets nobody in, and counts who wanted."""
    rules = """
    table inet wall {
        chain input {
            type filter hook input priority 0; policy accept;
            ip saddr 127.0.0.1 accept
            tcp flags & (syn | ack) == syn counter reject with tcp reset
        }
    }"""
    subprocess.run([*inside(nodes, node), "nft", "-f", "-"], input=rules, text=True, check=True)


def refused(nodes: Namespaces, node: int) -> int:
    """Return how many have wanted to connect."""
    listed = subprocess.run(
        [*inside(nodes, node), "nft", "list", "chain", "inet", "wall", "input"],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(listed.stdout.split("packets ")[1].split()[0])


@pytest.mark.parametrize("walled", [(2,), (3,), (2, 3)], ids=["owner", "asker", "both"])
def test_t14_behind_a_firewall_values_arrive_and_it_is_not_tried_twice(
    walled: tuple[int, ...], nodes: Namespaces
) -> None:
    size = 3 * MEGABYTE
    once = f"""rec-event(S, go) . snd-eval(S, make({size})) . rec-value(S, val(X?)) . snd-do(T, use(X)) .
        snd-eval(T, ping) . rec-value(T, pong) . printf("moved ") . snd-ack-event(S, go) . """
    for node in walled:
        refuse_connections(nodes, node)
    house, one, other = (Room({"TB_INSECURE": "1"}, inside(nodes, node)) for node in (1, 2, 3))
    try:
        house.make(
            "House",
            script=with_tools(once * 3 + "rec-msg(never)"),
            threshold_bytes=64 * 1024,
            listen="10.99.0.1:0",
            insecure=True,
        )
        address = house.call("House", "address")
        one.connect("Source", address)
        other.connect("Sink", address)
        tries = []
        for count in range(1, 4):
            one.call("Source", "say", "go")
            assert until(lambda count=count: house.call("House", "printed").count("moved") == count), house.call(
                "House", "warnings"
            )
            tries.append([refused(nodes, node) for node in walled])
        assert other.call("Sink", "seen") == [digest(text_of(size))] * 3
        assert tries[0] == tries[1] == tries[2], "no failing connect but the first"
        assert all(count <= 2 for count in tries[0])
        if 2 in walled:
            assert tries[0][0] >= 1, "it was tried"
    finally:
        for room in (house, one, other):
            room.close()
