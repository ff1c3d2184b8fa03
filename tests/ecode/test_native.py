"""What is special about kernels of native code: byte orders, bound kernels, output that grows, guarded memory."""

import gc
import math
import random
import struct
from dataclasses import replace
from typing import Any

import numpy
import pytest

from echoic.ecode.analysis import analyse
from echoic.ecode.kernel import Fault, FaultKind
from echoic.ecode.native import compile_native
from echoic.ecode.program import Signature
from echoic.errors import CodegenError
from echoic.formats import ARCHITECTURES, NATIVE, Field, Format, Kind
from echoic.testing.guarded_memory import GuardedMemory
from echoic.wire import Batch
from tests.ecode.native_programs import (
    LISTED_TRANSFORM,
    SUMMARY,
    TRADE,
    Inner,
    Length,
    Listed,
    Made,
    Reading,
    bounds_of,
    kernel_of,
    program_of,
    readings,
    run,
    trades,
)


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


def test_there_is_room_for_texts_taken_from_output_char_arrays() -> None:
    output = Format.place("Wide", (Field("code", Kind.CHAR, 1, 0, (3000,)), Field("name", Kind.STRING, 8)), NATIVE)
    code = "{ int i; for (i = 0; i < 3000; i++) output.code[i] = 97; output.name = output.code; return 1; }"
    outcome = kernel_of(code, Signature(TRADE, output)).run(trades(50).tobytes(), None, 50, b"", bytearray())
    assert outcome.bounds is not None
    assert outcome.bounds.tolist() == [6016 * number for number in range(51)]
    assert bytes(outcome.records or b"").count(b"a") == 50 * 6000


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
TWO_ARGUMENTS = ("atan2", "fmod", "hypot", "pow")
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
        # Python computes `hypot` in a way of its own; NumPy's is the C library's.
        operation = numpy.hypot if function == "hypot" else getattr(math, function)
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
