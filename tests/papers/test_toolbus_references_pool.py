"""Inter-tool communication, "Additional improvements", "Retrieving sub terms": T15 to T21 of the check-list.

Rates are not measured by the clock: who is not delayed gets through all its work while somebody else stands still.
"""

import contextlib
import socket

import pytest

from echoic.links import parse_address
from echoic.terms import Annotated, Term, TermList
from echoic.terms.appendix_b import decode_appendix_b, encode_appendix_b
from echoic.terms.saf import encode_saf
from echoic.toolbus import BusLimits
from echoic.toolbus.protocol import MessageKind
from echoic.toolbus.references.words import encode_get
from tests.papers.reference_puppets import Conversation, Meter, Puppet, eventually, get_of
from tests.papers.reference_scripts import GET_X, NEXT, OVERHEAD, PASSIVE, go_on, started, with_tools
from tests.papers.reference_workshop import (
    MEGABYTE,
    Sink,
    Source,
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


# The constant pool


def test_t15_a_second_tool_in_the_same_process_needs_no_bytes(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            f"""rec-connect(U?) . {GET_X} . snd-do(T, use(X)) . snd-do(U, use(X)) . snd-eval(T, ping) .
            rec-value(T, pong) . snd-eval(U, ping) . rec-value(U, pong) . shutdown(1)""",
            "X: str, U: sink",
        )
    )
    content = blob_of(400_000)
    with rooms(1) as (room,), Puppet(started(bus), "source") as source, source.offer(content) as port:
        for key in "tu":
            room.connect("Sink", bus.address, key)
            room.call(key, "shut")
        source.answer("val(<reference(0)>)", source.put(1, len(content)))
        assert eventually(lambda: all(room.call(key, "begun") for key in "tu"))
        for key in "tu":
            room.call(key, "open")
        assert bus.wait(20), bus.warnings()
        assert room.call("t", "seen") == room.call("u", "seen") == [digest(content.decode())]
        assert len(port.gets) == 1


def test_t15_an_owner_in_the_same_process_hands_over_the_very_object(make_bus: MakeBus) -> None:
    size = 3 * MEGABYTE
    bus = make_bus(
        with_tools(
            f"""snd-eval(S, make({size})) . rec-value(S, val(X?)) . snd-do(T, use(X)) . snd-eval(T, ping) .
            rec-value(T, pong) . shutdown(1)"""
        ),
        threshold_bytes=64 * 1024,
    )
    with rooms(1) as (room,), Meter(started(bus)) as meter:
        room.connect("Source", meter.address)
        room.connect("Sink", meter.address)
        room.call("Sink", "keep")
        assert bus.wait(20), bus.warnings()
        assert room.same("Source", "Sink")
        assert meter.bytes < 2 * OVERHEAD


@pytest.mark.parametrize(("pool_bytes", "gets"), [(10 * MEGABYTE, 1), (0, 2)], ids=["soft", "weak"])
def test_t15_a_soft_pool_keeps_what_nobody_has_and_a_weak_one_does_not(
    pool_bytes: int, gets: int, make_bus: MakeBus
) -> None:
    again = "snd-do(T, use(X)) . snd-eval(T, ping) . rec-value(T, pong) . "
    bus = make_bus(with_tools(f"{GET_X} . {again} {NEXT} . {again} shutdown(1)"))
    content = blob_of(400_000)
    with rooms(1) as (room,), Puppet(started(bus), "source") as source, source.offer(content) as port:
        room.connect("Sink", bus.address, pool_bytes=pool_bytes)
        source.answer("val(<reference(0)>)", source.put(1, len(content)))
        assert eventually(lambda: room.call("Sink", "seen"))
        go_on(source)
        assert bus.wait(20), bus.warnings()
        assert room.call("Sink", "seen") == [digest(content.decode())] * 2
        assert len(port.gets) == gets


# Direct IO


@pytest.mark.parametrize("threshold", [0, 64 * 1024, float("inf")])
def test_t16_tools_in_the_process_of_the_bus_get_the_very_objects(threshold: float, make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            "snd-eval(S, make(1000000)) . rec-value(S, val(X?)) . snd-do(T, use(X)) . snd-eval(S, make-blob(1000000)) ."
            " rec-value(S, val(Z?)) . snd-do(T, use(Z)) . snd-eval(T, ping) . rec-value(T, pong) . shutdown(X)"
        ),
        threshold_bytes=threshold,
    )
    bus.attach(source := Source(), executed=False)
    bus.attach(sink := Sink(), executed=False)
    sink.keep()
    assert len(str(bus.run(20))) == 1_000_000
    for made, used in zip(source.made, sink.values, strict=True):
        assert made is used
    assert bus.value is source.made[0]
    assert bus.statistics().fetched == 0


def test_t16_what_is_handed_over_cannot_be_changed() -> None:
    term = Term("f", 1, TermList(2, 3))
    for change in (
        lambda: setattr(term, "args", ()),
        lambda: setattr(term.args[1], "elements", ()),
        lambda: term.args.__setitem__(0, 2),  # type: ignore[index]
    ):
        with pytest.raises((AttributeError, TypeError)):
            change()


def test_t16_a_large_value_comes_from_a_process_to_an_attached_tool(make_bus: MakeBus) -> None:
    """The same programs, whether tools are attached or not."""
    size = 2 * MEGABYTE
    script = with_tools(
        f"snd-eval(S, make({size})) . rec-value(S, val(X?)) . snd-do(T, use(X)) . snd-eval(T, ping) ."
        " rec-value(T, pong) . shutdown(1)"
    )
    with rooms(1) as (room,):
        for attached in ("source", "sink", ""):
            bus = make_bus(script, threshold_bytes=0)
            sink = Sink()
            if attached == "source":
                bus.attach(Source(), executed=False)
            else:
                room.connect("Source", started(bus))
            if attached == "sink":
                bus.attach(sink, executed=False)
            else:
                if attached == "source":
                    bus.start()
                room.connect("Sink", bus.address)
            assert bus.wait(20), bus.warnings()
            seen = sink.seen() if attached == "sink" else room.call("Sink", "seen")
            assert seen == [digest(text_of(size))], attached


# Concurrency


def progress(process: str, tool: str, count: int) -> str:
    """Return a process that moves large values to and fro, so many times, and then says so."""
    return f"""
    process {process} is let S: {tool}, X: str, I: int in rec-connect(S?) . I := 0 .
        ( if less(I, {count}) then
            snd-eval(S, make-of(200000, I)) . rec-value(S, val(X?)) . snd-eval(S, echo(X)) . rec-value(S, val(X?)) .
            I := add(I, 1)
          fi
        * if equal(I, {count}) then snd-msg(done) fi )
    endlet
    """


@pytest.mark.parametrize("fault", ["never acknowledges", "asks and does not read", "reads nothing at all"])
def test_t17_a_stalled_receiver_delays_nobody_else(fault: str, make_bus: MakeBus) -> None:
    """The stalled one stands still from the first to the last of the others' 40 rounds each."""
    bus = make_bus(
        f"""
        tool source is {{ command = "none" }}
        tool sink is {{ command = "none" }}
        process STALL is let S: source, T: sink, X: str in rec-connect(S?) . rec-connect(T?) .
            snd-eval(S, make(8000000)) . rec-value(S, val(X?)) . snd-do(T, use(X)) . shutdown(never)
        endlet
        {progress("ONE", "source", 40)} {progress("TWO", "source", 40)}
        process END is rec-msg(done) . rec-msg(done) . shutdown(others)
        toolbus(STALL, ONE, TWO, END)
        """,
        threshold_bytes=64 * 1024,
        limits=BusLimits(grace_seconds=0.3),
    )
    with rooms(1) as (room,):
        with Puppet(started(bus), "sink") as sink:
            if fault == "reads nothing at all":
                sink.stop_reading()
            for key in "abc":
                room.connect("Source", bus.address, key)
            with contextlib.ExitStack() as stack:
                if fault != "reads nothing at all":
                    _, (put,) = sink.told(MessageKind.DO)
                    if fault == "asks and does not read":
                        address = parse_address(put.endpoints[0])
                        asker = stack.enter_context(Conversation(socket.create_connection(address)))
                        asker.stop_reading()
                        asker.say(encode_get(get_of(put, sink.number)))
                assert bus.wait(60), bus.warnings()
        assert bus.value is Term("others")


def test_t17_a_tool_takes_and_gives_at_the_same_time(make_bus: MakeBus) -> None:
    """Two tools send each other 10 MB at once, over links of which each has one direction full."""
    size = 10 * MEGABYTE
    side = f"""let S: source, X: str, Y: str in rec-connect(S?) . snd-eval(S, make({size})) . rec-value(S, val(X?)) .
        (snd-msg(MINE(X)) || rec-msg(YOURS(Y?))) . snd-eval(S, echo(Y)) . rec-value(S, val(Y?)) . snd-msg(done)
        endlet"""
    bus = make_bus(
        f"""
        tool source is {{ command = "none" }}
        process A is {side.replace("MINE", "ab").replace("YOURS", "ba")}
        process B is {side.replace("MINE", "ba").replace("YOURS", "ab")}
        process END is rec-msg(done) . rec-msg(done) . shutdown(1)
        toolbus(A, B, END)
        """,
        threshold_bytes=64 * 1024,
    )
    with rooms(2) as (one, other):
        one.connect("Source", started(bus))
        other.connect("Source", bus.address)
        assert bus.wait(30), bus.warnings()


def test_t18_the_script_goes_on_while_a_large_value_streams_through_the_bus(make_bus: MakeBus) -> None:
    """A handshake loop and a tool's round trips count what they get done between the first and the last byte."""
    size = 150 * MEGABYTE
    script = f"""
    tool source is {{ command = "none" }}
    tool sink is {{ command = "none" }}
    tool asker is {{ command = "none" }}
    process BULK is let S: source, T: sink, X: term in rec-connect(S?) . rec-connect(T?) .
        snd-eval(S, make-blob({size})) . rec-value(S, val(X?)) . snd-msg(begin) . snd-do(T, use(X)) . snd-msg(end)
    endlet
    process PING is let A: asker, I: int in rec-connect(A?) . rec-msg(begin) . I := 0 .
        ( snd-eval(A, ping) . rec-value(A, pong) . I := add(I, 1) ) * rec-msg(end) . shutdown(I)
    endlet
    toolbus(BULK, PING)
    """
    with rooms(3) as (house, one, other):
        house.make("House", script=script, threshold_bytes=64 * 1024)
        address = house.call("House", "address")
        other.connect("Asker", address)
        other.connect("Sink", address, **PASSIVE)
        one.connect("Source", address, **PASSIVE)
        assert house.call("House", "wait", 60)
        assert until(lambda: other.call("Sink", "seen") == [digest(blob_of(size))])
        assert int(house.call("House", "value")) >= 20


# Sub terms


def test_t19_only_the_bytes_of_the_sub_term_move(make_bus: MakeBus) -> None:
    """`rec-value(T, pair(A?,B?)) . snd-do(U, use(B))`: B is 100 kB beside an A of 50 MB."""
    bus = make_bus(
        with_tools(
            f"""snd-eval(S, make-pair({50 * MEGABYTE}, 100000)) . rec-value(S, pair(X?, Y?)) . snd-do(T, use(Y)) .
            snd-eval(T, ping) . rec-value(T, pong) . printf("moved") . rec-msg(never)"""
        ),
        threshold_bytes=64 * 1024,
        output=(printed := []).append,
    )
    with rooms(2) as (one, other), Meter(started(bus)) as left, Meter(bus.address) as right:
        one.connect("Source", left.address)
        other.connect("Sink", right.address)
        peak = forget_peak(other.process.pid)
        assert eventually(lambda: printed)
        assert other.call("Sink", "seen") == [digest(text_of(100_000, 2))]
        assert left.bytes + right.bytes < 2 * OVERHEAD
        assert memory_of(other.process.pid)["peak"] - peak < 10 * MEGABYTE


def test_t19_the_get_names_the_sub_term_and_the_root_lives_until_all_parts_are_dead(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            f"""snd-eval(S, get) . rec-value(S, pair(X?, Y?)) . snd-do(T, use(Y)) . X := "" . {NEXT} . Y := "" .
            rec-msg(never)"""
        )
    )
    content = blob_of(100_000)
    with rooms(1) as (room,), Puppet(started(bus), "source") as source, source.offer(content) as port:
        room.connect("Sink", bus.address)
        parts = [source.put(1, size, path=(0, number)) for number, size in enumerate((10**9, len(content)))]
        source.answer("pair(<reference(0)>, <reference(1)>)", *parts)
        assert eventually(lambda: room.call("Sink", "seen") == [digest(content.decode())])
        assert [get.path for get in port.gets] == [(0, 1)]
        assert source.silent(MessageKind.FIN), "the first part is dead, the second is not"
        go_on(source)
        assert eventually(lambda: source.finished == [1]), "once for the root"


def test_t19_a_part_is_taken_out_of_a_large_tree_by_the_script(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            """snd-eval(S, make-list(200, 80000)) . rec-value(S, val(L?)) . X := index(L, 100) . L := [] .
            snd-do(T, use(X)) . snd-eval(T, ping) . rec-value(T, pong) . printf("moved") . rec-msg(never)""",
            "L: list, X: term",
        ),
        threshold_bytes=64 * 1024,
        output=(printed := []).append,
    )
    with rooms(2) as (one, other), Meter(started(bus)) as left:
        one.connect("Source", left.address)
        other.connect("Sink", bus.address)
        assert eventually(lambda: printed)
        assert other.call("Sink", "seen") == [digest(text_of(80_000, 99))]
        assert left.bytes < 200 * 80_000 // 20
        assert bus.statistics().fetched == 0


# Serialization


@pytest.mark.parametrize("passive", [False, True], ids=["over a link", "through the bus"])
def test_t20_a_sender_needs_no_memory_beside_the_object_and_a_buffer(passive: bool, make_bus: MakeBus) -> None:
    size = 50 * MEGABYTE
    bus = make_bus(
        with_tools(
            f"""snd-eval(S, make-blob({2 * MEGABYTE})) . rec-value(S, val(Z?)) . snd-do(T, use(Z)) .
            snd-eval(S, make-blob({size})) . rec-value(S, val(Z?)) . {NEXT.replace("next", "go")} .
            snd-do(T, use(Z)) . printf("moved") . rec-msg(never)"""
        ),
        threshold_bytes=64 * 1024,
        output=(printed := []).append,
    )
    options = PASSIVE if passive else {}
    with rooms(2, {"ECHOIC_LINKS": "tcp"}) as (one, other):
        one.connect("Source", started(bus), **options)
        other.connect("Sink", bus.address, **options)
        assert until(lambda: len(one.get("Source", "made_sizes")) == 2)
        before = forget_peak(one.process.pid)
        assert before > size
        one.call("Source", "say", "go")
        assert eventually(lambda: printed)
        assert until(lambda: len(other.call("Sink", "seen")) == 2)
        assert memory_of(one.process.pid)["peak"] - before < 8 * MEGABYTE
        assert other.call("Sink", "seen")[1] == digest(blob_of(size))


def test_t20_a_receiver_needs_memory_for_one_object(make_bus: MakeBus) -> None:
    size = 50 * MEGABYTE
    bus = make_bus(
        with_tools(f"snd-eval(S, make-blob({size})) . rec-value(S, val(Z?)) . rec-event(S, go) . snd-do(T, use(Z))"),
        threshold_bytes=64 * 1024,
    )
    with rooms(2, {"ECHOIC_LINKS": "tcp"}) as (one, other):
        one.connect("Source", started(bus))
        other.connect("Sink", bus.address)
        before = forget_peak(other.process.pid)
        one.call("Source", "say", "go")
        assert until(lambda: other.call("Sink", "seen"))
        assert memory_of(other.process.pid)["peak"] - before < size + 16 * MEGABYTE


def test_t21_appendix_b_writes_the_example_of_the_thesis() -> None:
    data = Term("data", "TestData")
    assert decode_appendix_b(encode_appendix_b(Term("snd-data", data, data))) == Term("snd-data", data, data)
    once = len(encode_appendix_b(Term("f", Term("data", text_of(10_000)))))
    twice = len(encode_appendix_b(Term("f", Term("data", text_of(10_000)), Term("data", text_of(10_000)))))
    assert twice - once <= 5, "is shared, and an index of four bytes"


@pytest.mark.parametrize("encode", [encode_appendix_b, encode_saf])
def test_t21_a_size_does_not_depend_on_what_would_have_to_be_escaped(encode: object) -> None:
    plain, hostile = "a" * 1000, '"\\(),#\n' * 142 + "\\" * 6
    assert len(hostile) == len(plain)
    assert len(encode(Term("f", plain))) == len(encode(Term("f", hostile)))  # type: ignore[operator]


@pytest.mark.parametrize("encode", [encode_appendix_b, encode_saf])
def test_t21_annotations_are_written_and_shared_parts_once(encode: object) -> None:
    shared = Term("tree", TermList(*[Term("leaf", number) for number in range(1000)]))
    one = len(encode(Term("f", shared)))  # type: ignore[operator]
    assert len(encode(Term("f", *[shared] * 10))) < one + 100  # type: ignore[operator]


@pytest.mark.parametrize("threshold", [0, float("inf")])
def test_t21_annotations_arrive_by_value_and_by_reference(threshold: float, make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            "snd-eval(S, get) . rec-value(S, val(Z?)) . snd-eval(T, echo(Z)) . rec-value(T, val(Z?)) . shutdown(Z)"
        ),
        threshold_bytes=threshold,
    )
    value = Annotated(Term("tree", text_of(100_000)), TermList(Term("label"), text_of(70_000, 1)))
    with rooms(1) as (room,):
        bus.stub("source", {"get": Term("val", value)})
        room.connect("Sink", started(bus))
        assert bus.wait(20), bus.warnings()
        assert bus.value == value
