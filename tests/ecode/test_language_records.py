"""The language, construct by construct, in both back ends: records, texts, arrays, statics and parameters."""

from typing import Any

import numpy
import pytest

from echoic.errors import CodegenError
from echoic.formats import ARCHITECTURES, Format
from echoic.wire import Batch
from tests.ecode.orders import Color, Count, Limits, Made, Order, Point, order, passes
from tests.ecode.programs import BACK_ENDS, Statics, checked, compiled, run, run_batch

pytestmark = pytest.mark.parametrize("back_end", BACK_ENDS)


@pytest.mark.parametrize(
    "expression",
    [
        "input.flag == 1",
        "input.tiny == -5",
        "input.small == 40000",
        "input.number == 7",
        "input.huge == 18446744073709551614u",
        "input.single == 1.5",
        "input.price == 74.25",
        "input.color == 2",
        "input.letter == 'Q'",
        "input.symbol[1] == 'B'",
        "input.symbol[input.number] == 0",
        "input.codes[1][3] == 'z'",
        "input.grid[1][2] == 6",
        "input.grid[input.number - 6][input.number - 7] == 4",
        "input.place.y == 2.5",
        "input.corners[2].x == 3 && input.corners[input.number - 6].y == 20",
        "input.samples[0] + input.samples[input.n - 1] == 3",
        "input.pairs[1][1] == -2 && input.pairs[input.n - 1][input.n - 3] == 3",
        "input.leg.weights[0] == 9",
        "input.legs[0].weights[1] == 2",
        "input.legs[input.n - 3].weights[input.n - 2] == 2",
        "length(input.samples) == 3",
        "length(input.legs) == 2 && length(input.tags) == 3",
        "length(input.legs[0].weights) == 2 && length(input.legs[1].weights) == 0",
        "length(input.leg.weights) == 1",
        'input.name == "hello"',
        'input.name != "hell"',
        '"hello" == input.name',
        "input.name == input.name",
        'input.note == ""',
        "strlen(input.note) == 0",
        "strlen(input.name) == 5 && strlen(input.blob) == 3",
        "input.name[4] == 'o' && input.name[input.n - 3] == 'h'",
        "input.blob[1] == -1 && input.blob[2] == 127",
        'input.symbol == "IBM" && input.symbol != "IBMX"',
        "strlen(input.symbol) == 3",
        'input.codes[1] == "wxyz" && input.codes[input.n - 3] == "ab" && strlen(input.codes[1]) == 4',
        'input.tags[1] == "long tag" && input.tags[input.n - 1] == ""',
        "strlen(input.tags[1]) == 8 && input.tags[1][5] == 't'",
        'input.fixed_tags[1] == "right" && input.fixed_tags[input.n - 3] == "left"',
        'input.legs[1].name == "second" && input.legs[input.n - 3].name == "first"',
        "strlen(input.legs[1].name) == 6 && input.legs[1].name[5] == 'd'",
        'input.leg.name == "own"',
        'input.name == "h\\x65llo" && input.name == "hel" "lo"',
        "'\\n' == 10 && '\\0' == 0",
    ],
)
def test_every_kind_of_field_can_be_read(back_end: str, expression: str) -> None:
    assert passes(back_end, expression)
    assert not passes(back_end, f"!({expression})")


@pytest.mark.parametrize("machine", ["sparc64", "m68k", "s390x", "i386", "packed"])
def test_records_of_other_machines_are_read_where_they_lie(back_end: str, machine: str) -> None:
    source = """
        static double sum; static long whole;
        int i;
        sum = input.single + input.price + input.place.x + input.place.y + input.corners[input.n - 1].y;
        for (i = 0; i < input.n; i++) sum += input.samples[i] + input.pairs[i][0];
        whole = input.tiny + input.small + input.number + input.grid[1][2] + input.color + input.grid[input.n - 2][1];
        if (input.huge != 18446744073709551614u || input.leg.weights[0] != 9 || input.legs[0].weights[1] != 2) return 0;
        return input.name == "hello" && input.tags[1] == "long tag" && input.legs[1].name == "second" && input.flag
            && input.symbol == "IBM";
    """
    native = Batch.of([order()])
    other = native.to(Format.of(Order).on(ARCHITECTURES[machine]))
    assert bytes(other.records) != bytes(native.records) or machine == "x86_64"
    ran = run(back_end, source, other)
    assert ran.selected == [0]
    assert ran.statics == {"sum": 1.5 + 74.25 + 0.5 + 2.5 + 30 + 4.5 + 6, "whole": -5 + 40000 + 7 + 6 + 2 + 5}


def test_a_bool_is_0_or_1_whatever_its_byte_is(back_end: str) -> None:
    dtype = numpy.dtype([("flag", "?"), ("flags", "?", 2)])
    records = numpy.frombuffer(bytes([7, 0, 200]), dtype)
    ran = run(back_end, "return input.flag == 1 && input.flags[input.flag] + input.flag == 2;", records)
    assert ran.selected == [0]


@pytest.mark.parametrize(
    ("source", "passing"),
    [
        ("input.number > 3", [1, 2]),
        ("input.number", [1, 2]),
        ("return input.number > 3;", [1, 2]),
        ("{ return input.number == 5; }", [1]),
        ("int twice = input.number * 2; return twice > 10;", [2]),
        ("{ if ((input.number < 2.5) || (input.number > 7.5)) { return 1; /* submit */ } return 0; }", [0, 2]),
        ("input.price", [0, 1, 2]),
    ],
)
def test_a_filter_has_three_forms(back_end: str, source: str, passing: list[int]) -> None:
    events = [order(number=number, price=0.25) for number in (0, 5, 9)]
    assert run(back_end, source, events).selected == passing


def test_a_router_returns_its_port_and_discards_what_is_negative(back_end: str) -> None:
    events = [order(number=number) for number in (2, -1, 0, 1, -(1 << 31))]
    ran = run(back_end, "input.number", events, ports=3)
    assert (ran.selected, ran.ports) == ([0, 2, 3], [2, 0, 1])


def test_a_port_that_does_not_exist_is_a_fault(back_end: str) -> None:
    ran = run(back_end, "return input.number;", [order(number=3), order(number=2)], ports=3)
    assert ran.faults == [(0, "PORT", 0, 0)]
    assert (ran.selected, ran.ports) == ([1], [2])


def test_a_router_can_transform(back_end: str) -> None:
    source = "output.value = input.number * 2; return input.number - 1;"
    ran = run(back_end, source, [order(number=number) for number in (0, 1, 2)], Count, ports=2)
    assert (ran.selected, ran.ports) == ([1, 2], [0, 1])
    assert [made.value for made in ran.events] == [2, 4]


def test_statics_live_from_event_to_event_and_from_batch_to_batch(back_end: str) -> None:
    source = """
        static int seen = 10; static double sums[2] = {0.5}; static unsigned char wraps = 254;
        seen++; wraps++;
        sums[seen & 1] += input.price;
        return seen % 2 == 0;
    """
    kernel = compiled(back_end, checked(source, Order))
    statics = Statics(kernel.program)
    batch = Batch.of([order(), order(), order()])
    assert run_batch(kernel, batch, statics=statics).selected == [1]
    assert statics.values() == {"seen": 13, "sums": [74.75, 148.5], "wraps": 1}
    assert run_batch(kernel, batch, statics=statics).selected == [0, 2]
    assert statics.values()["seen"] == 16
    assert run_batch(kernel, batch).statics["seen"] == 13


def test_every_source_has_its_own_statics_and_names_may_repeat(back_end: str) -> None:
    source = "static int x = 1; if (input.flag) { static int x = 50; x++; } x += 2; return 1;"
    ran = run(back_end, source, [order(), order()])
    assert sorted(ran.statics.values()) == [5, 52]


def test_an_event_that_faults_keeps_what_it_wrote_to_statics(back_end: str) -> None:
    source = "static int before, after; before++; before += 1 / input.number; after++; return 1;"
    ran = run(back_end, source, [order(number=1), order(number=0), order(number=2)])
    assert ran.faults == [(1, "DIVISION", 1, 49)]
    assert ran.statics == {"before": 4, "after": 2}
    assert ran.selected == [0, 2]


def test_parameters_of_every_kind_can_be_read(back_end: str) -> None:
    params = Limits(0.5, 1.5, [1, 2, 3, 4], True, "hello", Point(7.0, 8.0), 2, [-5, 6], ["one", "hello"])
    source = """
        if (param.low != 0.5 || param.high != 1.5 || param.flags[input.n] != 4 || !param.on) return 0;
        if (param.name != input.name || strlen(param.name) != 5 || param.name[1] != 'e') return 0;
        if (param.place.x != 7 || param.n != 2 || param.values[input.n - 2] != 6) return 0;
        return length(param.words) == 2 && param.words[input.n - 2] == input.name && param.words[0] != "";
    """
    assert run(back_end, source, [order()], params=params).selected == [0]


def test_parameters_that_are_no_record_fault_every_event(back_end: str) -> None:
    kernel = compiled(back_end, checked('param.name == "a"', Order, params=Limits))
    batch = Batch.of([order(), order()])
    block = bytearray(Batch.of([Limits(0.5, 1.5, [1, 2, 3, 4], True, "hello", Point(7.0, 8.0), 0, [], [])]).records)
    place = Format.of(Limits).field("name").offset
    block[place : place + 4] = (3).to_bytes(4, "little")
    bounds = numpy.asarray(batch.bounds, numpy.uint32).tobytes()
    outcome = kernel.run(batch.records, bounds, 2, bytes(block), bytearray())
    assert [(fault.event, fault.kind.name, fault.line) for fault in outcome.faults] == [
        (0, "RECORD", 0),
        (1, "RECORD", 0),
    ]
    with pytest.raises(CodegenError):
        kernel.run(batch.records, bounds, 2, bytes(block[:20]), bytearray())


def made(back_end: str, code: str, one: Order | None = None, **options: Any) -> Made:
    """Return the output that a piece of code makes of an event."""
    ran = run(back_end, f"{code} return 1;", [one or order()], Made, **options)
    assert not ran.faults, ran.faults
    (found,) = ran.events
    return found


def test_output_starts_at_zero(back_end: str) -> None:
    found = made(back_end, "")
    assert (found.flag, found.number, found.price, found.symbol, found.name, found.blob) == (
        False,
        0,
        0.0,
        b"",
        "",
        b"",
    )
    assert found.note is None
    assert (found.grid.tolist(), list(found.samples), list(found.points)) == ([[0, 0, 0], [0, 0, 0]], [], [])
    assert (found.leg.name, list(found.leg.weights)) == ("", [])


@pytest.mark.parametrize(
    ("code", "path", "expected"),
    [
        ("output.flag = 7;", "flag", True),
        ("output.flag = 0.25;", "flag", True),
        ("output.flag = 256;", "flag", True),
        ("output.flag = input.flag && 0;", "flag", False),
        ("output.tiny = 300;", "tiny", 44),
        ("output.small = -1;", "small", 65535),
        ("output.number = input.huge;", "number", -2),
        ("output.large = input.number * 1000000000000;", "large", 7000000000000),
        ("output.huge = -1;", "huge", (1 << 64) - 1),
        ("output.single = 0.1;", "single", float(numpy.float32(0.1))),
        ("output.price = input.single; output.price *= 3;", "price", 4.5),
        ("output.color = input.color;", "color", Color.GREEN),
        ("output.letter = input.symbol[0];", "letter", b"I"),
        ("output.symbol[1] = 'x'; output.symbol[input.n - 3] = 'y';", "symbol", b"yx"),
        ('output.symbol = "ab";', "symbol", b"ab"),
        ('output.symbol = "abcd"; output.symbol = "e";', "symbol", b"e"),
        ("output.symbol = input.tags[0];", "symbol", b"x"),
        ("output.codes[1][2] = 'x'; output.codes[input.n - 3][0] = 'q';", "codes", [b"q", b"\0\0x"]),
        ("output.grid[1][2] = 9; output.grid[input.n - 3][1] = -1;", "grid", [[0, -1, 0], [0, 0, 9]]),
        ("output.grid[1][2] = 9; output.grid[1][2] += output.grid[1][2];", "grid", [[0, 0, 0], [0, 0, 18]]),
        ("output.place.y = input.place.y;", "place.y", 2.5),
        ("output.corners[1].x = 3; output.corners[input.n - 3].y = 4;", "corners", [(0.0, 4.0), (3.0, 0.0)]),
        ("output.name = input.name;", "name", "hello"),
        ('output.name = "one"; output.name = input.legs[1].name;', "name", "second"),
        ('output.name = "one"; output.name = "";', "name", ""),
        ("output.name = input.symbol;", "name", "IBM"),
        ('output.symbol = "abc"; output.name = output.symbol; output.symbol = "d";', "name", "abc"),
        ('output.name = "one"; output.note = output.name; output.name = "two";', "note", "one"),
        ("output.blob = input.blob;", "blob", b"\x00\xff\x7f"),
        ("output.n = 2; output.samples[1] = input.price;", "samples", [0.0, 74.25]),
        ("output.n = 2; output.pairs[1][0] = 5; output.pairs[input.n - 3][1] = 6;", "pairs", [[0, 6], [5, 0]]),
        ("output.samples[5] = 1; output.samples[0] = 2; output.n = 1;", "samples", [2.0]),
        ("output.n = 3;", "samples", [0.0, 0.0, 0.0]),
        (
            "int i; for (i = 0; i < input.n; i++) output.samples[i] = input.samples[i] * 2; output.n = input.n;",
            "samples",
            [1.0, 3.0, 5.0],
        ),
        ("resize(output.points, 2); output.points[1].y = 3;", "points", [(0.0, 0.0), (0.0, 3.0)]),
        ("resize(output.bytes_, 9); output.bytes_[8] = 1; resize(output.bytes_, 2);", "bytes_", [0, 0]),
        ("resize(output.bytes_, 2); output.number = length(output.bytes_) + 10;", "number", 12),
        ("output.n = 7; output.number = length(output.samples);", "number", 7),
        ("output.leg.name = input.name; output.leg.n = 2; output.leg.weights[1] = 4;", "leg.weights", [0.0, 4.0]),
        ("output.leg.name = input.name; output.leg.n = 2;", "leg.name", "hello"),
        ('output.name = input.name; output.number = output.name == "hello";', "number", 1),
        ("output.name = input.name; output.number = strlen(output.name) * 1000 + output.name[1];", "number", 5101),
        ("output.samples[3] = 1.5; output.price = output.samples[3];", "price", 1.5),
        ("output.number = (output.flag = 5) + (output.tiny = 300);", "number", 45),
        ("output.tiny = 127; output.number = output.tiny++ * 1000 + output.tiny;", "number", 126872),
    ],
)
def test_every_kind_of_field_can_be_written(back_end: str, code: str, path: str, expected: object) -> None:
    found: Any = made(back_end, code)
    for name in path.split("."):
        found = getattr(found, name)
    if isinstance(found, numpy.ndarray):
        found = found.tolist()
    if path in ("corners", "points"):
        found = [(point.x, point.y) for point in found]
    assert found == expected


def test_an_output_record_is_laid_out_as_any_other(back_end: str) -> None:
    """What the reader above accepts, to the byte: blocks in order, aligned, with NUL behind strings only."""
    code = """
        output.number = 5; output.name = "abc"; output.blob = input.blob; output.n = 1; output.samples[0] = 1;
        output.pairs[0][1] = -2; resize(output.bytes_, 3); output.leg.name = "z";
    """
    ran = run(back_end, f"{code} return 1;", [order(), order()], Made)
    assert isinstance(ran.outcome.records, bytes | bytearray | memoryview)
    data = bytes(ran.outcome.records)
    assert ran.outcome.bounds is not None
    first, second, last = ran.outcome.bounds.tolist()
    assert (first, last) == (0, len(data))
    assert data[:second] == data[second:]
    assert second % 8 == 0
    format = Format.of(Made)
    heap = -(-format.size // 8) * 8
    slots = {
        path: tuple(numpy.frombuffer(data, numpy.uint32, 2, offset).tolist())
        for path, offset in (
            ("name", format.field("name").offset),
            ("note", format.field("note").offset),
            ("blob", format.field("blob").offset),
            ("samples", format.field("samples").offset),
            ("pairs", format.field("pairs").offset),
            ("points", format.field("points").offset),
            ("bytes_", format.field("bytes_").offset),
            ("leg.name", format.field("leg").offset + format.field("leg.name").offset),
        )
    }
    assert slots == {
        "name": (heap, 3),
        "note": (0, 0),
        "blob": (heap + 4, 3),
        "samples": (heap + 8, 1),
        "pairs": (heap + 16, 1),
        "points": (0, 0),
        "bytes_": (heap + 20, 3),
        "leg.name": (heap + 23, 1),
    }
    blocks = b"abc\0" + b"\x00\xff\x7f" + b"\0" + numpy.float64(1).tobytes() + b"\0\0\xfe\xff" + bytes(3) + b"z\0"
    assert data[heap:second] == blocks.ljust(32, b"\0")


def test_only_selected_events_have_output_records(back_end: str) -> None:
    source = "output.value = input.number; return input.number > 1;"
    ran = run(back_end, source, [order(number=number) for number in (1, 2, 3)], Count)
    assert [made.value for made in ran.events] == [2, 3]
    assert ran.outcome.bounds is None


def test_an_average_over_a_grid_is_the_papers_figure_5(back_end: str) -> None:
    wind = numpy.arange(37 * 253, dtype=float).reshape(1, 253, 37)
    records = numpy.zeros(1, [("wind_velocity", "f8", (253, 37))])
    records["wind_velocity"] = wind
    source = """{
        int i; int j; double sum = 0.0;
        for(i = 0; i<37; i= i+1) { for(j = 0; j<253; j=j+1) { sum = sum + input.wind_velocity[j][i]; } }
        output.average_velocity = sum / (37 * 253);
        return 1;
    }"""
    ran = run(back_end, source, records, numpy.dtype([("average_velocity", "f8")]))
    assert ran.events[0].average_velocity == (37 * 253 - 1) / 2


def test_big_and_small_texts_are_compared_byte_by_byte(back_end: str) -> None:
    for text in ("", "a", "seven77", "eight888", "nine99999", "x" * 1000, "ü€😀"):
        source = f'return input.name == "{text}" && strlen(input.name) == {len(text.encode())};'
        assert passes(back_end, source, order(name=text))
        assert not passes(back_end, source, order(name=text + "b"))
        if text:
            assert not passes(back_end, source, order(name="~" + text[1:]))
