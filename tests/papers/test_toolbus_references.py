"""Inter-tool communication, "Variables" and "The protocol": T2 to T6 of the check-list.

A tool made by hand stands for whichever side a claim of the thesis is about, and a real one for the other.
"""

import struct

import pytest

from echoic.scripts.running.messages import Connected, Lost
from echoic.terms import ReferenceKind, Term
from echoic.toolbus.protocol import REFERRING, Message, MessageKind, encode_message, message_of
from echoic.toolbus.references.exchange import Exchange
from echoic.toolbus.references.member import Member
from echoic.toolbus.references.routes import Route
from echoic.toolbus.references.words import (
    Chunk,
    Get,
    Put,
    Registration,
    decode_acknowledgement,
    decode_chunk,
    decode_finished,
    decode_get,
    decode_put,
    decode_registration,
    encode_acknowledgement,
    encode_chunk,
    encode_end,
    encode_finished,
    encode_get,
    encode_put,
    encode_registration,
)
from echoic.wire import FrameReader
from tests.papers import toolbus_driver
from tests.papers.reference_puppets import Meter, Puppet, eventually, fetch
from tests.papers.reference_scripts import GET_X, OVERHEAD, started, with_tools
from tests.papers.reference_workshop import MEGABYTE, Source, blob_of, digest, rooms, text_of, until
from tests.toolbus.conftest import MakeBus

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("runtime_folder")]


# Variables


def test_t02_matching_goes_by_signatures_and_the_bus_receives_no_bytes_of_the_value(make_bus: MakeBus) -> None:
    size = 5 * MEGABYTE
    bus = make_bus(
        with_tools(
            f"""snd-eval(S, make-pair({size}, {size})) .
            ( rec-value(S, pair(<int>, X?)) . printf("wrong")
            + rec-value(S, val(<str>, X?)) . printf("wrong")
            + rec-value(S, pair(<str>, X?)) . printf("right") ) .
            snd-do(T, use(X)) . shutdown("")"""
        ),
        threshold_bytes=64 * 1024,
        output=(printed := []).append,
    )
    with rooms(2) as (one, other), Meter(started(bus)) as left, Meter(bus.address) as right:
        one.connect("Source", left.address)
        other.connect("Sink", right.address)
        assert bus.wait(30), bus.warnings()
        assert printed == ["right"]
        assert until(lambda: other.call("Sink", "seen") == [digest(text_of(size, 2))])
        assert left.bytes + right.bytes < 2 * OVERHEAD
        assert bus.statistics().fetched == 0


def test_t02_a_match_that_needs_the_value_fetches_it_and_is_counted(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            """snd-eval(S, make-of(200000, 1)) . rec-value(S, val(X?)) .
            snd-eval(S, make-of(200000, 2)) . rec-value(S, val(Y?)) .
            if equal(X, Y) then printf("same") else printf("other") fi .
            snd-eval(S, make-of(200000, 2)) . ( rec-value(S, val(X)) . printf("wrong") + rec-value(S, val(Y)) ) .
            printf(" matched") . shutdown("")"""
        ),
        threshold_bytes=64 * 1024,
        output=(printed := []).append,
    )
    with rooms(1) as (room,):
        room.connect("Source", started(bus))
        room.connect("Sink", bus.address)
        assert bus.wait(30), bus.warnings()
    assert printed == ["other", " matched"]
    assert bus.statistics().fetched >= 2


def test_t02_sizes_that_differ_decide_a_comparison_without_the_values(make_bus: MakeBus) -> None:
    bus = make_bus(with_tools(f'{GET_X} . if equal(X, "12345") then printf("wrong") else shutdown(differs) fi'))
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink"):
        source.answer("val(<reference(0)>)", source.put(1, 4))
        assert bus.wait(20)
    assert bus.value is Term("differs")
    assert bus.statistics().fetched == 0


def test_t03_a_value_is_got_once_however_often_it_is_read(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        with_tools(
            f"""{GET_X} . if equal(X, "hello there") then printf("wrong") else printf("a") fi .
            if equal(X, "hello world") then printf("b") fi . printf("%s", X) . Y := concat(X, X) . printf("%s", Y) .
            shutdown(X)"""
        ),
        output=printed.append,
    )
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink"), source.offer(b"hello world") as port:
        source.answer("val(<reference(0)>)", source.put(1, 11))
        assert bus.wait(20), bus.warnings()
        assert "".join(printed) == "ab" + "hello world" * 3
        assert bus.value == "hello world"
        assert len(port.gets) == 1


def test_t03_a_tool_gets_once_what_a_message_has_twice(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(f"{GET_X} . snd-do(T, use-both(X, X)) . snd-eval(T, ping) . rec-value(T, pong) . shutdown(1)")
    )
    with rooms(1) as (room,), Puppet(started(bus), "source") as source, source.offer(blob_of(300_000)) as port:
        room.connect("Sink", bus.address)
        source.answer("val(<reference(0)>)", source.put(1, 300_000))
        assert bus.wait(20), bus.warnings()
        assert room.call("Sink", "seen") == [digest(text_of(300_000))] * 2
        assert len(port.gets) == 1


@pytest.mark.parametrize("where", ["bus", "tool", "environment"])
def test_t04_the_bytes_from_tool_to_bus_switch_at_the_threshold(where: str, make_bus: MakeBus) -> None:
    threshold = 100_000
    options = {"bus": {"threshold_bytes": threshold}}.get(where, {"threshold_bytes": 0})
    environment = {"TB_THRESHOLD": str(threshold)} if where == "environment" else {}
    said = {"threshold": threshold} if where == "tool" else {}
    with rooms(1, environment) as (room,):
        for size in (threshold - 1, threshold):
            bus = make_bus(with_tools(f"snd-eval(S, make({size})) . rec-value(S, val(X?)) . shutdown(1)"), **options)
            with Meter(started(bus)) as meter:
                room.connect("Source", meter.address, **said)
                with Puppet(bus.address, "sink"):
                    assert bus.wait(20), bus.warnings()
                if size < threshold:
                    assert size <= meter.up < size + OVERHEAD
                else:
                    assert meter.up < OVERHEAD


def test_t04_what_the_bus_tells_switches_at_the_threshold_too(make_bus: MakeBus) -> None:
    for size, least, most in ((99_999, 99_999, 99_999 + OVERHEAD), (100_000, 0, OVERHEAD)):
        bus = make_bus(with_tools("rec-event(S, e(X?)) . snd-do(T, use(X)) . shutdown(1)"), threshold_bytes=100_000)
        with rooms(1) as (room,), Meter(started(bus)) as meter:
            bus.attach(source := Source(), executed=False)
            room.connect("Sink", meter.address)
            source.event("e", text_of(size))
            assert bus.wait(20), bus.warnings()
            assert until(lambda: room.call("Sink", "seen") == [digest(text_of(size))])  # noqa: B023 - at once
            assert least <= meter.down < most


def test_t04_without_a_setting_what_is_small_goes_by_value_and_what_is_very_large_by_reference(
    make_bus: MakeBus,
) -> None:
    with rooms(1) as (room,):
        for size, by_value in ((32 * 1024, True), (32 * MEGABYTE, False)):
            bus = make_bus(with_tools(f"snd-eval(S, make({size})) . rec-value(S, val(X?)) . shutdown(1)"))
            with Meter(started(bus)) as meter, Puppet(bus.address, "sink"):
                room.connect("Source", meter.address)
                assert bus.wait(20), bus.warnings()
                assert (meter.up > size) is by_value


# The protocol: "All of these operations will be contained in a package"


def saf(*values: object) -> bytes:
    """Return a list in SAF, written by hand from its description."""
    return b"\x04" + varint(len(values)) + b"".join(map(saf_of, values))


def saf_of(value: object) -> bytes:
    match value:
        case int():
            return b"\x02" + varint(value)
        case str():
            return b"\x21\x00" + varint(len(value)) + value.encode()
        case bytes():
            return b"\x06" + varint(len(value)) + value
        case list():
            return saf(*value)
    raise AssertionError(value)


def varint(number: int) -> bytes:
    low, high = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(high) if high else bytes([low])


def head(kind: int, transaction: int = 0, flags: int = 0) -> bytes:
    return struct.pack("<BBHI", kind, flags, 0, transaction)


PUT = Put(7, 17, 3, ("127.0.0.1:5000", "[::1]:5000"), (0, 4), ReferenceKind.STR, "", 5, 99, b"tt", Route.RELAYED, 12)
GET = Get(8, 17, 3, (9, 1), ("there:1",), b"tt", Route.DIRECT, 4, 12, b"n")
GOLDEN = {
    "REG": (
        encode_registration(Registration(3, 12, 5000, 65536, b"key")),
        head(48) + saf(3, 12, 5000, 65536, b"key", 1),
        decode_registration,
        Registration(3, 12, 5000, 65536, b"key"),
    ),
    "PUT": (
        encode_put(PUT),
        head(49, 7) + saf(7, 17, 3, ["127.0.0.1:5000", "[::1]:5000"], [0, 4], "str", "", 5, 99, b"tt", 1, 12),
        decode_put,
        PUT,
    ),
    "GET": (
        encode_get(GET),
        head(50, 8) + saf(8, 17, 3, [9, 1], ["there:1"], b"tt", 0, 4, 12, b"n"),
        decode_get,
        GET,
    ),
    "ACK": (encode_acknowledgement(9), head(51, 9) + saf(9), decode_acknowledgement, 9),
    "FIN": (encode_finished([17, 18])[0], head(52) + saf(17, 18), decode_finished, (17, 18)),
    "END": (encode_end(), head(53), lambda message: message, Message(MessageKind.END)),
    "CHUNK": (encode_chunk(Chunk(8, b"abc", last=True)), head(54, 8, 2) + b"abc", decode_chunk, Chunk(8, b"abc", True)),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_t05_the_words_have_the_fields_of_the_tables_in_these_bytes(name: str) -> None:
    message, payload, decode, meant = GOLDEN[name]
    frame = b"".join(bytes(piece) for piece in encode_message(message))
    (length,) = struct.unpack_from("<I", frame)
    assert length in (len(payload), len(frame), len(frame) - 4), "a frame begins with a length"
    assert frame.endswith(payload) or payload in frame
    (read,) = FrameReader().receive(frame)
    heard = message_of(read)
    assert heard is not None
    assert heard.kind.name == name
    assert decode(heard) == meant


def test_t05_the_words_come_in_the_order_of_the_sequence_diagram(make_bus: MakeBus) -> None:
    """Figure 3: PUT from the owner, PUT to who needs it, GET and PUT between them, ACK, FIN."""
    bus = make_bus(with_tools(f'{GET_X} . snd-do(T, use(X)) . X := "" . snd-eval(S, more) . rec-value(S, val(<int>))'))
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink") as sink, source.offer(b"abc") as port:
        assert source.registration.tool == source.number
        source.answer("val(<reference(0)>)", source.put(17, 3))
        port.contents[17] = b"abc"
        told, (put,) = sink.told(MessageKind.DO)
        assert told.flags & REFERRING
        assert (put.variable, put.source, put.endpoints, put.kind, put.size) == (
            17,
            source.number,
            (port.address,),
            ReferenceKind.STR,
            3,
        )
        assert fetch(put, sink.number) == b"abc"
        assert source.silent(MessageKind.FIN)
        sink.acknowledge(put)
        sink.say(Message(MessageKind.VOID, told.transaction))
        assert eventually(lambda: source.finished == [17])
        source.answer("val(1)")
        assert bus.wait(20)


def test_t06_numbers_of_tools_are_unique_for_100_000_connects() -> None:
    bus = toolbus_driver.Bus('tool calc is { command = "none" } process P is rec-msg(never) toolbus(P)')
    numbers = set()
    for _ in range(100_000):
        number = bus.machine.receive(Connected("calc"), 0)
        numbers.add(number)
        assert number is not None
        bus.machine.receive(Lost(number, "gone"), 0)
        bus.machine.take_effects()
    assert len(numbers) == 100_000


def test_t06_tool_and_variable_are_unique_together_for_100_000_values() -> None:
    """Numbers of variables that are finished are not given again either."""
    member = Member(Registration(3, 5, 0, 0, b"k" * 32), lambda number, message: None, exchange=Exchange(), listen="")
    variables = set()
    for number in range(100_000):
        (reference,) = member.part((str(number),)).references
        variables.add((reference.owner, reference.variable))
        if number % 2:
            member.release([reference.variable])
    assert len(variables) == 100_000
    assert member.statistics().kept == 50_000
    member.close()
    assert member.exchange.store.statistics().values == 0


def test_t06_a_bus_that_is_started_again_has_another_epoch(make_bus: MakeBus) -> None:
    registrations = []
    for _ in range(2):
        bus = make_bus(with_tools("tau"))
        with Puppet(started(bus), "source") as source:
            registrations.append(source.registration)
        bus.close()
    assert registrations[0].tool == registrations[1].tool
    assert registrations[0].epoch != registrations[1].epoch
    assert registrations[0].key != registrations[1].key
