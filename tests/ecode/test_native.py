"""What is special about kernels of native code: byte orders, columns, entry points, memory, threads."""

import gc
import math
import random
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest

import echoic
from echoic.ecode.analysis import analyse
from echoic.ecode.compiling import check
from echoic.ecode.kernel import Fault, FaultKind, Outcome
from echoic.ecode.native import Column, NativeKernel, compile_native
from echoic.ecode.native_routine import Layout
from echoic.ecode.program import Program, Signature
from echoic.errors import CodegenError
from echoic.formats import ARCHITECTURES, NATIVE, Array, Field, Format, Kind
from echoic.testing.guarded_memory import GuardedMemory
from echoic.wire import Batch


@echoic.event
class Cell:
    speed: echoic.float32
    label: str


@echoic.event
class Reading:
    name: str
    data: bytes
    small: echoic.int8
    medium: echoic.uint16
    wide: int
    ratio: float
    fraction: echoic.float32
    alarm: bool
    code: Array[echoic.char, 6]
    grid: Array[echoic.int16, 2, 3]
    n: echoic.uint32
    samples: Array[echoic.int32, "n"]
    cells: Array[Cell, ...]


@echoic.event
class Made:
    total: float
    name: str
    data: bytes
    n: echoic.uint16
    values: Array[float, "n"]
    free: Array[echoic.int32, ...]
    code: Array[echoic.char, 6]


SUMMARY = """
{
    int i, j;
    double total = input.small + input.medium * 2 + input.wide * 3 + input.ratio + input.fraction + input.alarm;
    for (i = 0; i < 2; i++)
        for (j = 0; j < 3; j++)
            total += input.grid[i][j] * (i + 2 * j);
    for (i = 0; i < length(input.samples); i++)
        total += input.samples[i];
    for (i = 0; i < length(input.cells); i++)
        if (input.cells[i].label == "hot" || strlen(input.cells[i].label) == 1)
            total += input.cells[i].speed;
    output.total = total;
    output.name = input.name;
    output.data = input.data;
    output.code = input.code;
    output.n = strlen(input.name);
    for (i = 0; i < strlen(input.name); i++)
        output.values[i] = input.name[i];
    resize(output.free, 2);
    output.free[1] = input.wide;
    return 1;
}
"""


def readings(count: int) -> list[Reading]:
    chance = random.Random(7)
    labels = ("hot", "cold", "x", "")
    return [
        Reading(
            name="n" * chance.randint(0, 12),
            data=chance.randbytes(chance.randint(0, 9)),
            small=chance.randint(-128, 127),
            medium=chance.randint(0, 65535),
            wide=chance.randint(-(1 << 50), 1 << 50),
            ratio=chance.uniform(-5, 5),
            fraction=0.25 * chance.randint(-9, 9),
            alarm=chance.random() < 0.5,
            code=b"abcdef"[: chance.randint(0, 6)],
            grid=numpy.array([[chance.randint(-9, 9) for _ in range(3)] for _ in range(2)], numpy.int16),
            n=(length := chance.randint(0, 5)),
            samples=numpy.array([chance.randint(-99, 99) for _ in range(length)], numpy.int32),
            cells=[Cell(speed=chance.randint(0, 9), label=chance.choice(labels)) for _ in range(chance.randint(0, 4))],
        )
        for _ in range(count)
    ]


def program_of(source: str, signature: Signature) -> Program:
    return check(source, signature)


def kernel_of(source: str, signature: Signature, *, layout: Layout = "rows") -> NativeKernel:
    program = program_of(source, signature)
    return compile_native(program, analyse(program), layout=layout)


def bounds_of(batch: Batch) -> bytes | None:
    return numpy.asarray(batch.bounds, numpy.uint32).tobytes() if batch.format.variable else None


def run(kernel: NativeKernel, batch: Batch, **more: Any) -> Outcome:
    return kernel.run(batch.records, bounds_of(batch), len(batch), b"", kernel.program.initial_statics(), **more)


@pytest.mark.parametrize("machine", ["sparc64", "sparc32", "m68k", "i386", "packed", "x86_64"])
def test_records_of_other_machines_are_read_as_they_are(machine: str) -> None:
    native = Batch.of(readings(60))
    foreign = native.to(Format.of(Reading).on(ARCHITECTURES[machine]))
    outcomes = []
    for batch in (native, foreign):
        outcome = run(kernel_of(SUMMARY, Signature(batch.format, Format.of(Made))), batch)
        assert outcome.faults == []
        outcomes.append((bytes(outcome.records or b""), [] if outcome.bounds is None else outcome.bounds.tolist()))
    assert outcomes[0] == outcomes[1]


def test_output_is_a_batch_that_can_be_read() -> None:
    events = readings(60)
    outcome = run(kernel_of(SUMMARY, Signature(Format.of(Reading), Format.of(Made))), Batch.of(events))
    assert outcome.records is not None
    made = list(Batch(Format.of(Made), 60, [outcome.records], outcome.bounds))
    for event, record in zip(events, made, strict=True):
        assert record.name == event.name
        assert record.data == event.data
        assert bytes(record.code).rstrip(b"\0") == event.code
        assert list(record.values) == [float(byte) for byte in event.name.encode()]
        assert list(record.free) == [0, int(numpy.int64(event.wide).astype(numpy.int32))]


@pytest.mark.parametrize("machine", ["sparc64", "x86_64"])
def test_parameters_of_other_machines_are_read_as_they_are(machine: str) -> None:
    """A signature wants them in this machine's order; the code would read any, as it does for input."""
    trade = Format.of(numpy.dtype([("price", "f8")]))
    fields = (Field("low", Kind.FLOAT, 8), Field("name", Kind.STRING, 8))
    own, limits = (Format.place("Limits", fields, each) for each in (NATIVE, ARCHITECTURES[machine]))
    program = program_of('input.price < param.low && param.name == "abc"', Signature(trade, params=own))
    kernel = compile_native(replace(program, signature=Signature(trade, params=limits)), analyse(program))
    order = "<" if limits.byte_order == "little" else ">"
    params = struct.pack(order + "dII", 2.5, 16, 3) + b"abc\0" + bytes(4)
    prices = numpy.array([1.0, 2.5, 2.25, 9.0])
    assert kernel.run(prices.tobytes(), None, 4, params, bytearray()).selected.tolist() == [0, 2]
    broken = params[:12] + struct.pack(order + "I", 400) + params[16:]
    outcome = kernel.run(prices.tobytes(), None, 4, broken, bytearray())
    assert outcome.faults == [Fault(event, FaultKind.RECORD, 0, 0) for event in range(4)]


TRADE = Format.of(numpy.dtype([("price", "f8"), ("volume", "i4"), ("wind", "f4", (3,)), ("flag", "?"), ("code", "S4")]))
TRADE_FILTER = """
{
    int i;
    float sum = 0;
    for (i = 0; i < 3; i++) sum += input.wind[i];
    return (input.flag && input.price > sum && input.code != "ab") ? input.volume : 0;
}
"""


def trades(count: int) -> numpy.ndarray:
    chance = numpy.random.default_rng(3)
    array = numpy.zeros(count, TRADE.dtype)
    array["price"] = chance.uniform(0, 3, count)
    array["volume"] = chance.integers(0, 3, count)
    array["wind"] = chance.uniform(0, 1, (count, 3))
    array["flag"] = chance.integers(0, 2, count)
    array["code"] = chance.choice([b"ab", b"abcd", b"a", b""], count)
    return array


def columns_of(array: numpy.ndarray) -> dict[tuple[str, ...], Column]:
    return {
        (name,): Column(numpy.ascontiguousarray(array[name]).tobytes(), array[name].nbytes // len(array))
        for name in array.dtype.names or ()
    }


def test_columns_give_what_records_give() -> None:
    array = trades(500)
    rows = kernel_of(TRADE_FILTER, Signature(TRADE)).run(array.tobytes(), None, 500, b"", bytearray())
    kernel = kernel_of(TRADE_FILTER, Signature(TRADE), layout="columns")
    selected = kernel.run_columns(columns_of(array), 500, b"", bytearray()).selected
    assert 0 < len(selected) < 500
    assert selected.tolist() == rows.selected.tolist()


def test_columns_may_be_strided_views_of_records() -> None:
    array = trades(500)
    data = memoryview(array.tobytes())
    kernel = kernel_of(TRADE_FILTER, Signature(TRADE), layout="columns")
    columns = {(field.name,): Column(data[field.offset :], TRADE.size) for field in TRADE.fields}
    rows = kernel_of(TRADE_FILTER, Signature(TRADE)).run(data, None, 500, b"", bytearray())
    assert kernel.run_columns(columns, 500, b"", bytearray()).selected.tolist() == rows.selected.tolist()


@echoic.event
class Inner:
    weight: float


@echoic.event
class Listed:
    name: str
    values: Array[float, ...]
    inner: Inner
    tags: Array[str, ...]
    inners: Array[Inner, 2]


@echoic.event
class Length:
    name: str
    total: float


LISTED_TRANSFORM = """
{
    int i;
    for (i = 0; i < length(input.values); i++) output.total += input.values[i] * input.inner.weight;
    output.name = input.name;
    return input.name != "none" && strlen(input.name) < 9;
}
"""


def test_texts_and_lists_of_arrow_are_read_in_place() -> None:
    names = ["a", "none", "", "a longer name", "ab"] * 20
    values = [[1.0, 2.0], [], [3.0], [4.0], [5.0, 6.0, 7.0]] * 20
    weights = [0.5 * number for number in range(100)]
    name_array, value_array = pyarrow.array(names, pyarrow.utf8()), pyarrow.array(values)
    _, name_offsets, name_bytes = name_array.buffers()
    _, value_offsets, _, value_bytes = value_array.buffers()
    columns = {
        ("name",): Column(memoryview(name_bytes), 0, memoryview(name_offsets)),
        ("values",): Column(memoryview(value_bytes), 0, memoryview(value_offsets)),
        ("inner", "weight"): Column(numpy.array(weights).tobytes(), 8),
    }
    kernel = kernel_of(LISTED_TRANSFORM, Signature(Format.of(Listed), Format.of(Length)), layout="columns")
    assert set(kernel.columns) == set(columns)
    outcome = kernel.run_columns(columns, 100, b"", bytearray())
    assert outcome.records is not None
    made = list(Batch(Format.of(Length), len(outcome.selected), [outcome.records], outcome.bounds))
    expected = [
        (name, sum(value * weight for value in each))
        for name, each, weight in zip(names, values, weights, strict=True)
        if name != "none" and len(name) < 9
    ]
    assert [(record.name, record.total) for record in made] == expected


@pytest.mark.parametrize("offsets", [(0, 5, 3), (0, 2, 9), (-1, 2, 4), (4, 2, 4)])
def test_offsets_that_contradict_the_values_fault(offsets: tuple[int, ...]) -> None:
    kernel = kernel_of('input.name == "ab"', Signature(Format.of(Listed)), layout="columns")
    memory = GuardedMemory(4096)
    column = Column(memory.place(b"abcd"), 0, struct.pack("=3i", *offsets))
    outcome = kernel.run_columns({("name",): column}, 2, b"", bytearray())
    assert outcome.faults
    assert {fault.kind for fault in outcome.faults} == {FaultKind.RECORD}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda columns: columns.pop(("price",)), "price"),
        (lambda columns: columns.update({("price",): Column(bytes(8 * 499), 8)}), "too small"),
        (lambda columns: columns.update({("wind",): Column(bytes(12 * 500 - 1), 12)}), "too small"),
        (lambda columns: columns.update({("price",): Column(bytes(8 * 500), -8)}), "too small"),
    ],
)
def test_columns_that_are_missing_or_short_are_refused(change: Any, message: str) -> None:
    columns = columns_of(trades(500))
    change(columns)
    kernel = kernel_of(TRADE_FILTER, Signature(TRADE), layout="columns")
    with pytest.raises(CodegenError, match=message):
        kernel.run_columns(columns, 500, b"", bytearray())


def test_offsets_must_be_as_many_as_events_and_one_more() -> None:
    kernel = kernel_of('input.name == "ab"', Signature(Format.of(Listed)), layout="columns")
    columns = {("name",): Column(b"abcd", 0, struct.pack("=3i", 0, 2, 4))}
    assert kernel.run_columns(columns, 2, b"", bytearray()).selected.tolist() == [0]
    with pytest.raises(CodegenError, match="too small"):
        kernel.run_columns(columns, 3, b"", bytearray())
    assert kernel.run_columns(columns, 0, b"", bytearray()).handled == 0


@pytest.mark.parametrize("code", ['input.tags[0] == "a"', "input.inners[1].weight > 1", "length(input.tags) > 1"])
def test_what_has_no_column_is_refused(code: str) -> None:
    with pytest.raises(CodegenError, match="column"):
        kernel_of(code, Signature(Format.of(Listed)), layout="columns")


def test_kernels_of_records_and_of_columns_are_not_mixed_up() -> None:
    array = trades(3)
    rows, columns = (kernel_of(TRADE_FILTER, Signature(TRADE), layout=layout) for layout in ("rows", "columns"))
    with pytest.raises(CodegenError, match="records"):
        rows.run_columns(columns_of(array), 3, b"", bytearray())
    with pytest.raises(CodegenError, match="columns"):
        columns.run(array.tobytes(), None, 3, b"", bytearray())
    with pytest.raises(CodegenError, match="bound"):
        columns.bind(b"", bytearray())


COUNTING = "{ static int count = 0; count++; if (input.volume == 0) return 1 / input.volume; return count * 10; }"


def test_a_bound_kernel_looks_at_one_record() -> None:
    kernel = kernel_of(COUNTING, Signature(TRADE))
    statics = kernel.program.initial_statics()
    look = kernel.bind(b"", statics)
    array = trades(1)
    array["volume"] = 5
    assert [look(array.tobytes()), look(memoryview(array.tobytes())), look(bytearray(array.tobytes()))] == [10, 20, 30]
    array["volume"] = 0
    with pytest.raises(ValueError, match=r"\d") as raised:
        look(array.tobytes())
    assert kernel.faults[raised.value.args[0]][0] is FaultKind.DIVISION
    with pytest.raises(ValueError, match=r"\d") as raised:
        look(array.tobytes()[:-1])
    assert kernel.faults[raised.value.args[0]] == (FaultKind.RECORD, 0, 0)
    assert struct.unpack_from("=i", statics) == (4,)


def test_statics_of_a_bound_kernel_cannot_be_resized() -> None:
    kernel = kernel_of(COUNTING, Signature(TRADE))
    statics = kernel.program.initial_statics()
    look = kernel.bind(b"", statics)
    with pytest.raises(BufferError):
        statics.extend(b"more")
    del look, kernel
    gc.collect()
    statics.extend(b"more")


def test_a_bound_kernel_reads_variable_records_and_parameters() -> None:
    limits = Format.of(numpy.dtype([("low", "f8")]))
    kernel = kernel_of("strlen(input.name) > param.low", Signature(Format.of(Listed), params=limits))
    look = kernel.bind(struct.pack("=d", 2.5), bytearray())
    events = [Listed(name, numpy.zeros(0), Inner(1.0), [], [Inner(1.0)] * 2) for name in ("ab", "abc", "", "abcd")]
    assert [look(bytes(Batch.of([event]).records)) for event in events] == [0, 1, 0, 1]
    with pytest.raises(CodegenError, match="too small"):
        kernel.bind(b"", bytearray())


def test_a_transform_cannot_be_bound() -> None:
    with pytest.raises(CodegenError, match="without output"):
        kernel_of(LISTED_TRANSFORM, Signature(Format.of(Listed), Format.of(Length))).bind(b"", bytearray())


def test_no_event_runs_twice_when_the_output_must_grow() -> None:
    """Statics count the events: one that was begun again for want of room would be counted again."""
    code = "{ static int count = 0; count++; output.total = count; output.name = input.name; return 1; }"
    kernel = kernel_of(code, Signature(Format.of(Listed), Format.of(Length)))
    events = [Listed("x" * (number % 997), numpy.zeros(0), Inner(1.0), [], [Inner(1.0)] * 2) for number in range(3000)]
    batch = Batch.of(events)
    statics = kernel.program.initial_statics()
    outcome = kernel.run(batch.records, bounds_of(batch), 3000, b"", statics)
    assert outcome.records is not None
    assert len(outcome.records) > 20 * 65536
    assert struct.unpack_from("=i", statics) == (3000,)
    made = list(Batch(Format.of(Length), 3000, [outcome.records], outcome.bounds))
    assert [(record.total, record.name) for record in made] == [
        (float(number + 1), event.name) for number, event in enumerate(events)
    ]


def test_fixed_output_grows_too() -> None:
    output = Format.of(numpy.dtype([("wind", "f8", (400,))]))
    code = "{ output.wind[399] = input.price; return input.volume != 0; }"
    array = trades(300)
    outcome = kernel_of(code, Signature(TRADE, output)).run(array.tobytes(), None, 300, b"", bytearray())
    made = numpy.frombuffer(bytes(outcome.records or b""), output.dtype)
    assert made["wind"][:, 399].tolist() == array["price"][array["volume"] != 0].tolist()
    assert not made["wind"][:, :399].any()


def test_output_arrays_start_at_zero_for_each_event() -> None:
    code = """
    {
        int i;
        output.n = input.volume + 2;
        for (i = 0; i < input.volume * 3; i++) output.values[i] = i + 1;
        if (input.volume == 2) return 7 / (input.volume - 2);
        return 1;
    }
    """
    array = trades(100)
    outcome = kernel_of(code, Signature(TRADE, Format.of(Made))).run(
        array.tobytes(), None, 100, b"", bytearray(), faults_max=1000
    )
    assert len(outcome.faults) == (array["volume"] == 2).sum()
    made = list(Batch(Format.of(Made), len(outcome.selected), [outcome.records or b""], outcome.bounds))
    for record, volume in zip(made, array["volume"][outcome.selected], strict=True):
        assert list(record.values) == ([0.0, 0.0] if volume == 0 else [1.0, 2.0, 3.0])


def test_a_text_taken_from_an_output_char_array_does_not_change_with_it() -> None:
    code = """
    {
        int i;
        output.code = "first";
        for (i = 0; i < 3; i++) {
            if (i == 1) output.name = output.code;
            output.code = "other";
        }
        output.data = output.data;
        output.code = "third";
        return 1;
    }
    """
    code = code.replace('output.code = "other";', 'if (i > 0) output.code = "other";')
    outcome = kernel_of(code, Signature(TRADE, Format.of(Made))).run(trades(1).tobytes(), None, 1, b"", bytearray())
    (made,) = list(Batch(Format.of(Made), 1, [outcome.records or b""], outcome.bounds))
    assert (made.name, made.data, bytes(made.code).rstrip(b"\0")) == ("first", b"", b"third")


def test_a_run_stops_after_so_many_faults() -> None:
    array = trades(50)
    array["volume"] = 0
    kernel = kernel_of(COUNTING, Signature(TRADE))
    outcome = kernel.run(array.tobytes(), None, 50, b"", kernel.program.initial_statics(), faults_max=3)
    assert outcome.handled == 3
    assert [fault.event for fault in outcome.faults] == [0, 1, 2]


@pytest.mark.parametrize("short", ["bounds", "params", "statics"])
def test_buffers_that_are_too_small_are_refused(short: str) -> None:
    limits = Format.of(numpy.dtype([("low", "f8")]))
    code = "{ static int count; count++; return strlen(input.name) > param.low; }"
    kernel = kernel_of(code, Signature(Format.of(Listed), params=limits))
    batch = Batch.of([Listed("abc", numpy.zeros(0), Inner(1.0), [], [Inner(1.0)] * 2)] * 2)
    given: dict[str, Any] = {"bounds": bounds_of(batch), "params": bytes(8), "statics": bytearray(8)}
    assert kernel.run(batch.records, count=2, **given).selected.tolist() == [0, 1]
    given[short] = given[short][:-5]
    with pytest.raises(CodegenError, match="too small"):
        kernel.run(batch.records, count=2, **given)


def test_records_that_are_not_there_fault() -> None:
    array = trades(4)
    array["volume"] = 1
    kernel = kernel_of("input.volume", Signature(TRADE))
    outcome = kernel.run(array.tobytes()[:-1], None, 6, b"", bytearray())
    assert outcome.selected.tolist() == [0, 1, 2]
    assert outcome.faults == [Fault(event, FaultKind.RECORD, 0, 0) for event in (3, 4, 5)]
    assert outcome.handled == 6


@pytest.mark.parametrize("at_start", [False, True])
def test_nothing_outside_of_a_record_is_touched(at_start: bool) -> None:
    """Records, bounds and columns lie flush against pages that end the process when they are touched."""
    memory, bounds_memory = GuardedMemory(), GuardedMemory(8192)
    kernel = kernel_of(SUMMARY, Signature(Format.of(Reading), Format.of(Made)))
    for event in readings(200):
        batch = Batch.of([event])
        records = memory.place(bytes(batch.records), at_start=at_start)
        bounds = bounds_memory.place(bounds_of(batch) or b"", at_start=at_start)
        assert kernel.run(records, bounds, 1, b"", bytearray()).faults == []


@pytest.mark.parametrize("seed", range(4))
def test_records_full_of_rubbish_fault_and_do_no_harm(seed: int) -> None:
    chance = random.Random(seed)
    memory, bounds_memory = GuardedMemory(), GuardedMemory(8192)
    kernel = kernel_of(SUMMARY, Signature(Format.of(Reading), Format.of(Made)))
    plain = bytes(Batch.of(readings(1)).records)
    kinds = set()
    for _ in range(1500):
        record = bytearray(plain)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(record) // 4) * 4
            struct.pack_into("=I", record, at, chance.choice([0, 1, 8, len(record) - 4, 1 << 31, 0xFFFFFFFF, at]))
        cut = chance.choice([0, 0, 0, 4, 8, 40, len(record)])
        records = memory.place(bytes(record[: len(record) - cut]))
        ends = (0, chance.choice([len(records), len(records), len(records) + 8, 4, 0xFFFFFFFF]))
        outcome = kernel.run(records, bounds_memory.place(struct.pack("=2I", *ends)), 1, b"", bytearray(), 10_000)
        kinds |= {fault.kind for fault in outcome.faults}
    assert FaultKind.RECORD in kinds


@pytest.mark.parametrize("size", [*range(2, 20), 63, 64, 65, 100])
def test_texts_are_compared_without_looking_beyond_their_end(size: int) -> None:
    text = bytes(97 + number % 26 for number in range(size)).decode()
    narrow = Format.of(numpy.dtype([("code", f"S{size}")]))
    memory = GuardedMemory(4096)
    for code, expected in ((text, 1), (text[:-1] + "!", 0), (text[:-1], 0), (text + "!", 0)):
        look = kernel_of(f'input.code == "{code}"', Signature(narrow)).bind(b"", bytearray())
        assert look(memory.place(text.encode())) == expected
    wide = Format.of(numpy.dtype([("a", f"S{size}"), ("b", f"S{size}")]))
    look = kernel_of("input.a == input.b", Signature(wide)).bind(b"", bytearray())
    assert look(memory.place(text.encode() * 2)) == 1
    assert look(memory.place((text + text[:-1] + "!").encode())) == 0


ONE_ARGUMENT = ("acos", "asin", "atan", "cos", "exp", "log", "log10", "log2", "sin", "sqrt", "tan", "fabs")
TWO_ARGUMENTS = ("atan2", "fmod", "pow")
NUMBERS = Format.of(numpy.dtype([("x", "f8"), ("y", "f8")]))


@pytest.mark.parametrize("function", [*ONE_ARGUMENT, *TWO_ARGUMENTS])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("tier", ["light", "full"])
def test_functions_of_mathematics_give_the_bits_that_python_gives(function: str, constant: bool, tier: Any) -> None:
    chance = random.Random(function)
    pairs = [(chance.uniform(0.01, 1), chance.uniform(-2, 2)) for _ in range(3 if constant else 200)]
    output = Format.of(numpy.dtype([("result", "f8")]))
    for x, y in pairs if constant else pairs[:1]:
        given = (repr(x), repr(y)) if constant else ("input.x", "input.y")
        call = f"{function}({', '.join(given[: 1 if function in ONE_ARGUMENT else 2])})"
        program = program_of(f"{{ output.result = {call}; return 1; }}", Signature(NUMBERS, output))
        kernel = compile_native(program, analyse(program), tier=tier)
        rows = [(x, y)] if constant else pairs
        outcome = kernel.run(numpy.array(rows).tobytes(), None, len(rows), b"", bytearray())
        made = numpy.frombuffer(bytes(outcome.records or b""), "f8").tolist()
        operation = getattr(math, function)
        assert made == [operation(*(row if function in TWO_ARGUMENTS else row[:1])) for row in rows]


def test_squares_and_roots_by_power_are_those_of_the_library() -> None:
    """An optimiser likes to write `pow(x, 2.0)` as `x * x`, `pow(x, 0.5)` as a root, and `exp(log(x))` as x."""
    output = Format.of(numpy.dtype([("a", "f8"), ("b", "f8"), ("c", "f8"), ("d", "f8")]))
    code = """
    {
        output.a = pow(input.x, 2.0);
        output.b = pow(input.x, 0.5);
        output.c = exp(log(input.x));
        output.d = pow(2.0, input.y) + sin(-input.x) + cos(-input.x);
        return 1;
    }
    """
    program = program_of(code, Signature(NUMBERS, output))
    chance = random.Random(5)
    rows = [(chance.uniform(0, 100), chance.uniform(-30, 30)) for _ in range(300)]
    outcome = compile_native(program, analyse(program), tier="full").run(
        numpy.array(rows).tobytes(), None, 300, b"", bytearray()
    )
    made = numpy.frombuffer(bytes(outcome.records or b""), output.dtype).tolist()
    assert made == [
        (math.pow(x, 2.0), math.pow(x, 0.5), math.exp(math.log(x)), math.pow(2.0, y) + math.sin(-x) + math.cos(-x))
        for x, y in rows
    ]


def test_nothing_is_contracted() -> None:
    """A fused multiplication and addition rounds once where C's rounds twice."""
    output = Format.of(numpy.dtype([("result", "f8")]))
    program = program_of("{ output.result = input.x * input.y + input.x; return 1; }", Signature(NUMBERS, output))
    chance = random.Random(6)
    rows = [(chance.uniform(0, 1), chance.uniform(-1, 1)) for _ in range(500)]
    outcome = compile_native(program, analyse(program), tier="full").run(
        numpy.array(rows).tobytes(), None, 500, b"", bytearray()
    )
    assert numpy.frombuffer(bytes(outcome.records or b""), "f8").tolist() == [x * y + x for x, y in rows]


LARGE = {
    "straight": lambda k: "int x = input.volume;" + f"x = x * {k} + (x >> 3);" * (k // 10) + "return x;",
    "loops": lambda k: "int x = input.volume; int i;" + "for (i = 0; i < 9; i++) x += i ^ x;" * (k // 19) + "return x;",
    "whiles": lambda k: (
        "int x = input.volume; int i = 0;" + "while (i < x) { i += 3; if (i == 7) break; }" * (k // 19) + "return x;"
    ),
    "texts": lambda k: (
        "int x = 0;" + "".join(f'if (input.code == "a{n % 99}") x += {n};' for n in range(k // 8)) + "return x;"
    ),
    "divisions": lambda k: "int x = input.volume;" + "x = x / (x + 1) + 7 % (x | 1);" * (k // 17) + "return x;",
}


@pytest.mark.parametrize("tier", ["light", "full"])
@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("size", [500, 1000, 2000])
def test_the_largest_programs_compile_in_half_a_second(kind: str, tier: Any, size: int) -> None:
    program = program_of("{" + LARGE[kind](size) + "}", Signature(TRADE))
    assert 0.6 * size < program.nodes <= 2000
    analysis = analyse(program)
    begin = time.process_time()
    kernel = compile_native(program, analysis, tier=tier)
    assert time.process_time() - begin < 0.5
    array = trades(20)
    array["volume"] += 1
    assert kernel.run(array.tobytes(), None, 20, b"", bytearray()).handled == 20


def test_a_known_program_is_only_linked() -> None:
    program = program_of(TRADE_FILTER, Signature(TRADE))
    analysis = analyse(program)
    compile_native(program, analysis)
    times = []
    for _ in range(20):
        begin = time.process_time()
        compile_native(program, analysis)
        times.append(time.process_time() - begin)
    assert min(times) < 0.003


GROWTH = """
import gc, resource, sys
from pathlib import Path
import numpy
from echoic.codegen import library
from echoic.ecode.analysis import analyse
from echoic.ecode.compiling import check
from echoic.ecode.native import compile_native
from echoic.ecode.program import Signature
from echoic.formats import Format

library.OBJECT_BYTES_MAX = 100_000
trade = Format.of(numpy.dtype([("price", "f8"), ("wind", "f4", (30,)), ("code", "S8")]))
output = Format.of(numpy.dtype([("total", "f8")]))
tier, count = sys.argv[1], int(sys.argv[2])

def memory():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

def compile_some(start, end):
    for number in range(start, end):
        source = (
            f"static int n{number}; int i; n{number}++;"
            f"if (input.price < {number}.5 || input.code == \\"c{number}\\") return 0;"
            f"for (i = 0; i < {number % 29 + 1}; i++) output.total += input.wind[i] * {number};"
            f"return n{number} % {number + 2} + 1;"
        )
        program = check(source, Signature(trade, output))
        kernel = compile_native(program, analyse(program), tier=tier)
        kernel.run(bytes(trade.size), None, 1, b"", program.initial_statics())

compile_some(0, 150)
before = memory()
compile_some(150, 150 + count)
print((memory() - before) / count)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells its memory elsewhere")
@pytest.mark.parametrize("tier", ["light", "full"])
def test_programs_that_are_dropped_leave_nothing_behind(tier: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, tier, "300"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1500


def test_six_threads_compile_and_run_at_once() -> None:
    array = trades(400)
    array["volume"] = numpy.arange(400)
    problems: list[str] = []
    together = threading.Barrier(6)

    def work(thread: int) -> None:
        together.wait()
        for turn in range(15):
            step = thread * 15 + turn + 2
            code = (
                f"{{ static int total = 0; total += input.volume % {step} == 0; return input.volume % {step} == 0; }}"
            )
            kernel = kernel_of(code, Signature(TRADE))
            statics = kernel.program.initial_statics()
            for release in (False, True):
                outcome = kernel.run(array.tobytes(), None, 400, b"", statics, release=release)
                if outcome.selected.tolist() != list(range(0, 400, step)):
                    problems.append(f"step {step}: {outcome}")
            if struct.unpack_from("=i", statics)[0] != 2 * len(range(0, 400, step)):
                problems.append(f"step {step}: {statics!r}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_one_kernel_is_used_by_several_threads() -> None:
    kernel = kernel_of(SUMMARY, Signature(Format.of(Reading), Format.of(Made)))
    batch = Batch.of(readings(300))
    bounds = bounds_of(batch)
    expected = bytes(run(kernel, batch).records or b"")
    results: list[bytes] = []

    def work() -> None:
        for _ in range(20):
            outcome = kernel.run(batch.records, bounds, 300, b"", bytearray(), release=True)
            results.append(bytes(outcome.records or b""))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80
    assert set(results) == {expected}


def test_code_stays_while_a_builtin_is_bound_to_it() -> None:
    look = kernel_of("input.volume > 3", Signature(TRADE)).bind(b"", bytearray())
    gc.collect()
    for number in range(5):
        kernel_of(f"input.volume > {number + 10}", Signature(TRADE))
    array = trades(1)
    array["volume"] = 4
    assert look(array.tobytes()) == 1


def test_pointers_as_slots_are_refused() -> None:
    pointers = Format.of(Length).on(NATIVE.with_pointers())
    program = program_of("input.total > 1", Signature(Format.of(Length)))
    with pytest.raises(CodegenError, match="pointers"):
        compile_native(replace(program, signature=Signature(pointers)), analyse(program))
