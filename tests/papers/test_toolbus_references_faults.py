"""Inter-tool communication when something goes wrong: T22 and T24 of the check-list, and what a critic thinks of.

Whatever dies, in whichever moment: nobody hangs, nobody gets a wrong value, and no store keeps what nobody refers to.
"""

import contextlib
import dataclasses
import math
import random
import socket
from pathlib import Path

import pytest

from echoic.links import Identity
from echoic.terms import ReferenceKind, Term
from echoic.toolbus import BusLimits
from echoic.toolbus.protocol import Message, MessageKind
from echoic.toolbus.references.exchange import Exchange
from echoic.toolbus.references.routes import Route
from echoic.toolbus.references.words import Put, encode_acknowledgement, encode_get
from tests.links.certificates import Authority
from tests.papers.reference_puppets import Puppet, eventually, fetch, framed, get_of
from tests.papers.reference_scripts import GET_X, NEXT, go_on, moving, started, with_tools
from tests.papers.reference_workshop import MEGABYTE, blob_of, digest, rooms, text_of, until
from tests.toolbus.conftest import MakeBus

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("runtime_folder")]
MAKE_X = "snd-eval(S, make(300000)) . rec-value(S, val(X?))"


def files_of(identity: Identity) -> list[str]:
    return [str(identity.certificate), str(identity.key), str(identity.authority)]


# Security


def test_t22_values_go_over_mutual_tls(make_bus: MakeBus, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    bus = make_bus(moving(5 * MEGABYTE), threshold_bytes=64 * 1024, identity=authority.issue("bus"))
    with rooms(2) as (one, other):
        one.connect("Source", started(bus), identity=files_of(authority.issue("source")))
        other.connect("Sink", bus.address, identity=files_of(authority.issue("sink")))
        assert bus.wait(30), bus.warnings()
        assert other.call("Sink", "seen") == [digest(text_of(5 * MEGABYTE))]


def test_t22_who_has_no_certificate_or_that_of_another_authority_is_refused(make_bus: MakeBus, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    bus = make_bus(moving(100), identity=authority.issue("bus"))
    started(bus)
    with rooms(1) as (room,):
        for identity in ({}, {"identity": files_of(other.issue("stranger", believing=authority.path))}):
            with pytest.raises(AssertionError, match="Error"):
                room.connect("Source", bus.address, timeout=3, **identity)
    assert bus.statistics().tools == ()


def test_t22_the_data_port_of_a_tool_speaks_tls_only(make_bus: MakeBus, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    bus = make_bus(
        with_tools(f'{MAKE_X} . printf("held") . rec-msg(never)'), threshold_bytes=0, identity=authority.issue("bus")
    )
    with rooms(1) as (room,):
        room.connect("Source", started(bus), identity=files_of(authority.issue("source")))
        room.connect("Sink", bus.address, identity=files_of(authority.issue("sink")))
        assert eventually(bus.references)
        for port in listening_ports(room.process.pid):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as stranger:
                stranger.sendall(framed(Message(MessageKind.GET)) * 10)
                with contextlib.suppress(ConnectionResetError):
                    assert b"abcdef" not in stranger.recv(65536)


def listening_ports(process: int) -> list[int]:
    """Return the TCP ports at which a process listens."""
    inodes = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    lines = [line.split() for line in Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]]
    return [int(words[1].split(":")[1], 16) for words in lines if words[3] == "0A" and words[9] in inodes]


def test_t22_a_tool_gives_its_values_to_bearers_of_the_token_of_the_bus_only(make_bus: MakeBus) -> None:
    bus = make_bus(with_tools(f'{MAKE_X} . snd-do(T, use(X)) . printf("done") . rec-msg(never)'), threshold_bytes=0)
    with rooms(1) as (room,):
        room.connect("Source", started(bus))
        with Puppet(bus.address, "sink") as sink:
            _, (put,) = sink.told(MessageKind.DO)
            wrong = bytes(32), b"", put.token[:-1], put.token + b"x", bytes([put.token[0] ^ 1]) + put.token[1:]
            for token in wrong:
                answer = fetch(put, sink.number, token=token)
                assert isinstance(answer, str), "a reason or nothing, but no value"
            assert isinstance(fetch(put, sink.number + 1), str), "the token is for another tool"
            assert isinstance(fetch(put, sink.number, path=(0,)), str), "the token is for a part"
            assert fetch(put, sink.number) == blob_of(300_000)
            sink.acknowledge(put)


def test_t22_a_tool_that_was_not_told_a_value_does_not_get_it_by_way_of_the_bus(make_bus: MakeBus) -> None:
    bus = make_bus(with_tools(f'{MAKE_X} . printf("held") . rec-msg(never)'), threshold_bytes=0)
    with rooms(1) as (room,):
        room.connect("Source", started(bus))
        with Puppet(bus.address, "sink") as thief:
            assert eventually(bus.references)
            put = Put(0, bus.references()[0].variable, 1, (), (0, 0), ReferenceKind.STR, "", 0, 300_000)
            for number, route in enumerate((Route.RELAYED, Route.STREAMED)):
                get = get_of(dataclasses.replace(put, token=bytes(32)), thief.number)
                epoch = thief.registration.epoch
                thief.say(encode_get(dataclasses.replace(get, request=get.request + number, route=route, epoch=epoch)))
                thief.hear(MessageKind.NAK)
            assert thief.count(MessageKind.CHUNK) == 0
            lying = dataclasses.replace(get, asker=1, epoch=thief.registration.epoch)
            thief.say(encode_get(lying))
            assert thief.closed.wait(10), "who asks in the name of another is no tool any more"
    assert any("in the name of" in warning for warning in bus.warnings())


def test_t22_garbage_on_the_data_port_harms_nobody(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(f'{MAKE_X} . printf("held") . {NEXT} . snd-do(T, use(X)) . shutdown(1)').replace("next", "go"),
        threshold_bytes=0,
    )
    chance = random.Random(5)
    garbage = [chance.randbytes(5000), b"\0" * 500, b"\xff" * 500, b"GET / HTTP/1.1\r\n\r\n", b""]
    garbage += [framed(Message(kind)) for kind in MessageKind]
    with rooms(2) as (one, other):
        one.connect("Source", started(bus))
        other.connect("Sink", bus.address)
        assert eventually(bus.references)
        (port,) = listening_ports(one.process.pid)
        for data in garbage:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as stranger:
                stranger.sendall(data)
        silent = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(80)]
        one.call("Source", "say", "go")
        assert bus.wait(20), bus.warnings()
        assert until(lambda: other.call("Sink", "seen") == [digest(text_of(300_000))])
        for stranger in silent:
            stranger.close()


# A tool is killed


def test_t24_the_values_of_a_killed_owner_are_lost_values_and_nobody_hangs(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            """snd-eval(S, make(300000)) . rec-value(S, val(Z?)) . printf("held") . rec-disconnect(S) .
            snd-do(T, use(Z)) . if equal(fun(Z), "lost-value") then printf("lost") else printf("%t", Z) fi .
            shutdown(1)"""
        ),
        threshold_bytes=0,
        output=(printed := []).append,
    )
    with rooms(2) as (one, other):
        one.connect("Source", started(bus))
        other.connect("Sink", bus.address)
        assert eventually(lambda: "held" in printed)
        one.kill()
        assert bus.wait(20), bus.warnings()
        assert printed == ["held", "lost"]
        assert until(lambda: other.call("Sink", "seen"))
        assert other.call("Sink", "seen")[0].startswith("lost-value(")


def test_t24_an_owner_killed_while_others_fetch_is_an_error_for_them_and_no_hang(make_bus: MakeBus) -> None:
    bus = make_bus(with_tools(f"{GET_X} . snd-do(T, use(X)) . snd-eval(T, ping) . rec-value(T, pong) . shutdown(1)"))
    with rooms(1) as (room,), Puppet(started(bus), "source") as source, source.offer(blob_of(300_000)) as port:
        room.connect("Sink", bus.address)
        port.serving.clear()
        source.answer("val(<reference(0)>)", source.put(1, 300_000))
        assert eventually(lambda: port.gets)
        source.close()
        port.close()
        assert bus.wait(20), bus.warnings()
        assert room.call("Sink", "seen")[0].startswith("lost-value(")


def test_t24_an_owner_killed_while_the_bus_fetches_is_an_error_and_no_hang(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            """snd-eval(S, get) . rec-value(S, val(Z?)) .
            if equal(Z, "abc") then shutdown(same) else shutdown(other) fi"""
        )
    )
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink"), source.offer(b"abc") as port:
        port.serving.clear()
        source.answer("val(<reference(0)>)", source.put(1, 3))
        assert eventually(lambda: port.gets)
        source.close()
        assert bus.wait(20), bus.warnings()
    assert bus.value is Term("other")


@pytest.mark.parametrize("way", ["terminated", "disconnected"])
def test_t24_the_values_of_an_owner_that_leaves_in_order_are_promoted(way: str, make_bus: MakeBus) -> None:
    leaving = {"terminated": "snd-terminate(S, bye) . "}.get(way, "rec-event(S, go) . ")
    bus = make_bus(
        with_tools(f'{MAKE_X} . printf("held") . {leaving} rec-disconnect(S) . snd-do(T, use(X)) . shutdown(1)'),
        threshold_bytes=0,
        output=(printed := []).append,
    )
    with rooms(2) as (one, other):
        one.connect("Source", started(bus))
        other.connect("Sink", bus.address)
        assert eventually(lambda: "held" in printed)
        if way != "terminated":
            one.call("Source", "say", "go")
            one.call("Source", "disconnect")
        assert bus.wait(20), bus.warnings()
        assert until(lambda: other.call("Sink", "seen") == [digest(text_of(300_000))])


def test_t24_a_tool_is_terminated_with_a_value_of_its_own_without_waiting(make_bus: MakeBus) -> None:
    """What only the farewell itself refers to is no reason to wait for the grace of a minute."""
    bus = make_bus(
        with_tools(f"{MAKE_X} . snd-terminate(S, X) . rec-disconnect(S) . shutdown(1)"),
        threshold_bytes=0,
        limits=BusLimits(grace_seconds=60),
    )
    with rooms(1) as (room,):
        room.connect("Source", started(bus))
        room.connect("Sink", bus.address)
        assert bus.wait(15), bus.warnings()
        assert until(lambda: room.get("Source", "terminated") == digest(text_of(300_000)))


def test_t24_an_owner_that_is_to_end_serves_who_was_told_before(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            f'{MAKE_X} . snd-msg(end(S)) . snd-do(T, use(X)) . printf("sent") . rec-msg(never)',
            more="""process Q is let S: source, U: source in
                rec-msg(end(S?)) . rec-connect(U?) . snd-terminate(S, bye) . rec-disconnect(S) . printf("gone")
            endlet""",
            also=", Q",
        ),
        threshold_bytes=0,
        output=(printed := []).append,
    )
    with rooms(1) as (room,):
        room.connect("Source", started(bus))
        with Puppet(bus.address, "sink") as sink:
            _, (put,) = sink.told(MessageKind.DO)
            room.connect("Source", bus.address, "another")
            assert sink.silent(MessageKind.PUT), "the bus may have fetched it for itself in the meantime"
            assert fetch(put, sink.number) == blob_of(300_000)
            sink.acknowledge(put)
            assert eventually(lambda: sorted(printed) == ["gone", "sent"])


@pytest.mark.parametrize("threshold", [0, math.inf])
def test_t10_what_a_tool_has_said_before_it_left_is_there_to_be_taken(threshold: float, make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            """rec-event(S, e0(X?)) . rec-event(S, e1(Y?)) . rec-disconnect(S) . snd-do(T, use(X)) . snd-do(T, use(Y)) .
            snd-eval(T, ping) . rec-value(T, pong) . shutdown(1)"""
        ),
        threshold_bytes=threshold,
    )
    with rooms(2) as (one, other):
        one.connect("Source", started(bus))
        other.connect("Sink", bus.address)
        one.call("Source", "burst", "e", 2, 300_000)
        assert bus.wait(20), bus.warnings()
        assert other.call("Sink", "seen") == [digest(text_of(300_000, number)) for number in (0, 1)]


def test_t24_a_promoted_value_is_let_go_of_by_the_bus_too(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            f"""{MAKE_X} . snd-terminate(S, bye) . rec-disconnect(S) . printf("kept") . rec-event(T, go) . X := "" .
            printf("dropped") . rec-msg(never)"""
        ),
        threshold_bytes=0,
        output=(printed := []).append,
    )
    with rooms(1) as (room,), Puppet(started(bus), "sink") as sink:
        before = Exchange.of_process().store.statistics().values
        room.connect("Source", bus.address)
        assert eventually(lambda: "kept" in printed), bus.warnings()
        sink.say(Message(MessageKind.EVENT, 1, (Term("go"),)))
        assert eventually(lambda: "dropped" in printed)
        assert eventually(lambda: bus.references() == ())
        assert eventually(lambda: Exchange.of_process().store.statistics().values == before)


def test_t24_without_promotion_they_are_lost(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            """snd-eval(S, make(300000)) . rec-value(S, val(Z?)) . snd-terminate(S, bye) . rec-disconnect(S) .
            snd-do(T, use(Z)) . snd-eval(T, ping) . rec-value(T, pong) . shutdown(1)"""
        ),
        threshold_bytes=0,
        promote=False,
    )
    with rooms(2) as (one, other):
        one.connect("Source", started(bus))
        other.connect("Sink", bus.address)
        assert bus.wait(20), bus.warnings()
        assert other.call("Sink", "seen")[0].startswith("lost-value(")


def test_t24_a_tool_killed_while_it_fetches_gives_everything_back(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            f"""{GET_X} . (snd-do(T, use(X)) || rec-disconnect(T)) . X := "" . printf("gone") . rec-msg(never)"""
        ),
        output=(printed := []).append,
    )
    with rooms(1) as (room,), Puppet(started(bus), "source") as source, source.offer(blob_of(300_000)) as port:
        room.connect("Sink", bus.address)
        port.serving.clear()
        source.answer("val(<reference(0)>)", source.put(1, 300_000))
        assert eventually(lambda: port.gets)
        assert source.finished == []
        room.kill()
        assert eventually(lambda: source.finished == [1])
        assert eventually(lambda: "gone" in printed)
        assert bus.references() == ()


def test_t24_a_tool_killed_between_put_and_ack_gives_everything_back(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(f'{GET_X} . (snd-do(T, use(X)) || rec-disconnect(T)) . X := "" . printf("gone") . rec-msg(never)'),
        output=(printed := []).append,
    )
    with Puppet(started(bus), "source") as source, source.offer(b"abc"):
        with Puppet(bus.address, "sink") as sink:
            source.answer("val(<reference(0)>)", source.put(1, 3))
            _, (put,) = sink.told(MessageKind.DO)
            assert fetch(put, sink.number) == b"abc"
            assert source.silent(MessageKind.FIN)
        assert eventually(lambda: source.finished == [1])
        assert eventually(lambda: "gone" in printed)


def test_t09_when_the_bus_is_killed_the_stores_of_its_tools_become_empty() -> None:
    script = with_tools("snd-eval(S, make-blob(5000000)) . rec-value(S, val(Z?)) . snd-do(T, use(Z)) . rec-msg(never)")
    with rooms(3) as (house, one, other):
        house.make("House", script=script, threshold_bytes=0)
        address = house.call("House", "address")
        one.connect("Source", address)
        other.connect("Sink", address)
        assert until(lambda: other.call("Sink", "seen"))
        assert one.exchange()["values"] >= 1
        house.kill()
        for room in (one, other):
            assert until(lambda room=room: room.exchange()["values"] == 0)


def test_t07_an_ack_said_twice_or_for_nothing_does_no_harm(make_bus: MakeBus) -> None:
    bus = make_bus(with_tools(f'{GET_X} . snd-do(T, use(X)) . snd-do(T, use(X)) . X := "" . {NEXT} . shutdown(1)'))
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink") as sink, source.offer(b"abc"):
        source.answer("val(<reference(0)>)", source.put(1, 3))
        told, (first,) = sink.told(MessageKind.DO)
        sink.say(encode_acknowledgement(first.transaction), encode_acknowledgement(first.transaction))
        sink.say(encode_acknowledgement(4242), Message(MessageKind.VOID, told.transaction))
        told, (second,) = sink.told(MessageKind.DO)
        sink.say(encode_acknowledgement(first.transaction))
        assert second.transaction != first.transaction
        assert source.silent(MessageKind.FIN), "the second delivery is not acknowledged by the number of the first"
        sink.say(encode_acknowledgement(second.transaction), Message(MessageKind.VOID, told.transaction))
        assert eventually(lambda: source.finished == [1])
        go_on(source)
        assert bus.wait(20)


def test_t22_a_tool_cannot_put_in_the_name_of_another_or_refer_to_what_it_has_not_put(make_bus: MakeBus) -> None:
    for hostile in ("another", "nothing"):
        bus = make_bus(with_tools("snd-eval(S, get) . rec-disconnect(S) . shutdown(gone)"))
        with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink") as sink:
            source.hear(MessageKind.EVAL)
            if hostile == "another":
                source.number = sink.number
                source.refer(MessageKind.VALUE, "val(<reference(0)>)", source.put(1, 3))
            else:
                source.refer(MessageKind.VALUE, "val(<reference(7)>)")
            assert bus.wait(20), bus.warnings()
        assert bus.value is Term("gone")
        assert bus.warnings()


def test_t13_a_value_larger_than_the_budget_is_kept_in_a_file(make_bus: MakeBus) -> None:
    size = 20 * MEGABYTE
    bus = make_bus(moving(size, times=2), threshold_bytes=0)
    with rooms(2) as (one, other):
        one.connect("Source", started(bus), budget_bytes=2 * MEGABYTE)
        one.call("Source", "letgo")
        other.connect("Sink", bus.address)
        assert bus.wait(30), bus.warnings()
        assert other.call("Sink", "seen") == [digest(text_of(size))] * 2
        assert until(lambda: one.exchange()["values"] == 0)


def test_t06_ten_thousand_values_of_a_tool_are_held_and_let_go_of(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            """L := [] . I := 0 .
            ( if less(I, 10) then snd-eval(S, make-list(1000, 10)) . rec-value(S, val(M?)) . L := join(L, [M]) .
              I := add(I, 1) fi
            * if equal(I, 10) then printf("held") fi ) . rec-event(S, go) . L := [] . M := [] . printf("dropped") .
            rec-msg(never)""",
            "L: list, M: list, I: int",
        ),
        threshold_bytes=0,
        output=(printed := []).append,
    )
    with rooms(1) as (room,):
        room.connect("Source", started(bus))
        room.connect("Sink", bus.address)
        assert until(lambda: "held" in printed, 60), bus.warnings()
        assert len(bus.references()) == 10
        room.call("Source", "say", "go")
        assert eventually(lambda: "dropped" in printed)
        assert eventually(lambda: bus.references() == ())
        assert until(lambda: room.exchange()["values"] == 0)
