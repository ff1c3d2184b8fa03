"""What ends an event in both back ends: faults with their places, wrong records, limits; and what comes after it."""

from typing import Any

import numpy
import pytest

from echoic.ecode.checking.checker import LOOPS_MAX
from echoic.errors import CodegenError, ECodeError
from echoic.formats import Array, Format, event, uint32, uint64
from echoic.wire import Batch
from tests.ecode.orders import Count, Leg, Made, Order, order, passes
from tests.ecode.programs import BACK_ENDS, Statics, checked, compiled, exactly, run, run_records

pytestmark = pytest.mark.parametrize("back_end", BACK_ENDS)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("return input.grid[0][input.number];", ("INDEX", 28)),
        ("return input.grid[input.number - 8][0];", ("INDEX", 32)),
        ("int a[3]; return a[input.number];", ("INDEX", 26)),
        ("static int a[3]; a[input.number] = 1; return 1;", ("INDEX", 26)),
        ("return input.samples[input.number] > 1;", ("INDEX", 28)),
        ("return input.samples[input.n] > 1;", ("INDEX", 28)),
        ("return input.samples[-input.n] > 1;", ("INDEX", 22)),
        ("return input.samples[3] > 1;", ("INDEX", 22)),
        ("return input.pairs[1][input.number];", ("INDEX", 29)),
        ("return input.legs[2].weights[0];", ("INDEX", 19)),
        ("return input.legs[1].weights[0];", ("INDEX", 30)),
        ("return input.legs[input.number].weights[1 / 0];", ("INDEX", 25)),
        ("return input.legs[0].weights[1 / (input.number - 7)];", ("DIVISION", 32)),
        ("return input.name[5];", ("INDEX", 18)),
        ("return input.name[-input.n];", ("INDEX", 18)),
        ("return input.tags[0][1];", ("INDEX", 21)),
        ("return input.note[input.n - 3];", ("INDEX", 18)),
        ('return input.tags[3] == "x";', ("INDEX", 19)),
        ("return input.huge > 1 ? input.grid[0][input.huge] : 0;", ("INDEX", 45)),
        ("return 1 / (input.number - 7);", ("DIVISION", 10)),
        ("return 1 % (input.number - 7);", ("DIVISION", 10)),
        ("int i = 1; i /= input.number - 7; return i;", ("DIVISION", 14)),
        ("unsigned long i = 1; i %= input.number - 7; return i;", ("DIVISION", 24)),
        ("while (1) ;", ("FUEL", 1)),
        ("int i = 0; do i++; while (i > 0); return 1;", ("FUEL", 12)),
        ("for (;;) ;", ("FUEL", 1)),
        ("return input.number / (input.number - 7) + input.grid[0][input.number];", ("DIVISION", 21)),
        ("return input.grid[0][input.number] + input.number / (input.number - 7);", ("INDEX", 28)),
    ],
)
def test_a_fault_has_its_kind_and_place(back_end: str, source: str, fault: tuple[str, int]) -> None:
    ran = run(back_end, source.replace("1 / 0", "1 / (input.number - 7)"), [order()])
    assert ran.faults == [(0, fault[0], 1, fault[1])]
    assert ran.selected == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("output.samples[input.number] = 1;\nreturn 1;", ("INDEX", 1, 22)),
        ("return output.samples[-input.n] > 1;", ("INDEX", 1, 23)),
        ("output.n = 5;\nreturn 1;", ("LENGTH", 0, 0)),
        ("output.leg.n = 100; output.leg.weights[0] = 1; return 1;", None),
        ("resize(output.points, input.number + 1018);\nreturn 1;", ("LENGTH", 1, 1)),
        ("resize(output.points, -input.n);\nreturn 1;", ("LENGTH", 1, 1)),
        ("output.n = 5;\nreturn 0;", None),
        ("\noutput.symbol = input.tags[1]; return 1;", ("TEXT", 2, 15)),
        ("output.symbol = input.name;\nreturn 1;", ("TEXT", 1, 15)),
        ("output.codes[0][input.n] = 1; return 1;", ("INDEX", 1, 23)),
        ("output.grid[0][input.n] = 1 / (input.number - 7); return 1;", ("DIVISION", 1, 29)),
        ("output.grid[0][input.n] += 1 / (input.number - 7); return 1;", ("INDEX", 1, 22)),
    ],
)
def test_output_has_faults_of_its_own(back_end: str, source: str, fault: tuple[str, int, int] | None) -> None:
    ran = run(back_end, source, [order()], Made, capacities={"samples": 4})
    assert ran.faults == ([] if fault is None else [(0, *fault)])


def test_what_was_written_before_a_fault_is_not_in_the_next_record(back_end: str) -> None:
    source = """
        output.number = 5; output.name = "old"; output.samples[1] = 7; output.grid[0][input.n - 3] = 3;
        resize(output.bytes_, 3); output.bytes_[2] = 1;
        if (input.number > 1) return input.number / (input.number - 7);
        output.number += 0; return 1;
    """
    clean = "output.n = 2; resize(output.bytes_, 3); return 1;"
    source = f"if (input.number == 0) {{ {clean} }} {source}"
    ran = run(back_end, source, [order(), order(number=0)], Made)
    assert [fault[1] for fault in ran.faults] == ["DIVISION"]
    assert exactly(ran.events) == exactly(run(back_end, clean, [order()], Made).events)


def test_a_run_stops_after_so_many_faults(back_end: str) -> None:
    events = [order(number=number) for number in (1, 0, 2, 0, 3, 0)]
    ran = run(back_end, "return 1 / input.number + 1;", events, faults_max=2)
    assert ran.outcome.handled == 4
    assert [fault[0] for fault in ran.faults] == [1, 3]
    assert ran.selected == [0, 2]
    assert run(back_end, "return 1 / input.number + 1;", events).outcome.handled == 6


def test_records_that_are_not_there_are_faults(back_end: str) -> None:
    kernel = compiled(back_end, checked("input.value > 1", Count))
    data = numpy.array([5, 6, 7], numpy.int32).tobytes()
    ran = run_records(kernel, data[:-1], None, 4)
    assert ran.selected == [0, 1]
    assert ran.faults == [(2, "RECORD", 0, 0), (3, "RECORD", 0, 0)]


@pytest.mark.parametrize("spoiled", [(0, 1 << 31), (0, 0), (4, 0), (8, 0)])
def test_bounds_are_not_believed(back_end: str, spoiled: tuple[int, int]) -> None:
    batch = Batch.of([order(), order(), order()])
    kernel = compiled(back_end, checked('input.name == "hello"', Order))
    bounds = numpy.asarray(batch.bounds, numpy.uint32).copy()
    bounds[1] = spoiled[1] + spoiled[0]
    ran = run_records(kernel, batch.records, bounds.tobytes(), 3)
    assert 0 not in ran.selected
    assert ran.faults[0] == (0, "RECORD", 0, 0)
    assert 2 in ran.selected
    with pytest.raises(CodegenError):
        kernel.run(batch.records, bounds.tobytes()[:-4], 3, b"", bytearray())


SPOILED = [
    ("name", 0, 3, "begins inside the fixed part"),
    ("name", 0, 1 << 20, "begins behind the record"),
    ("name", 4, 1 << 20, "ends behind the record"),
    ("name", 4, 4, "does not end with NUL"),
    ("note", 4, 4, "is null but has a length"),
    ("samples", 4, 2, "contradicts its sizing field"),
    ("samples", 0, None, "is not aligned"),
    ("n", 0, 2, "contradicts its array"),
    ("blob", 4, 0xFFFFFFFF, "is huge"),
]


@pytest.mark.parametrize(("path", "place", "value", "why"), SPOILED, ids=[why for *_, why in SPOILED])
def test_a_slot_at_a_known_place_is_checked_when_the_event_begins(
    back_end: str, path: str, place: int, value: int | None, why: str
) -> None:
    batch = Batch.of([order()])
    data = bytearray(batch.records)
    at = Format.of(Order).field(path).offset + place
    before = int.from_bytes(data[at : at + 4], "little")
    data[at : at + 4] = (before + 4 if value is None else value).to_bytes(4, "little")
    source = f"""static int begun; begun = 1;
        if (input.number == 7) return 1;
        return {"input.samples[0] > 1" if path in ("n", "samples") else f"strlen(input.{path})"};"""
    bounds = numpy.array([0, len(data)], numpy.uint32).tobytes()
    ran = run_records(compiled(back_end, checked(source, Order)), data, bounds, 1)
    assert ran.faults == [(0, "RECORD", 0, 0)]
    assert ran.statics == {"begun": 0}
    unused = run_records(compiled(back_end, checked("return input.price > 1;", Order)), data, bounds, 1)
    assert unused.selected == [0]


@pytest.mark.parametrize(
    ("source", "array", "step", "place", "value", "column"),
    [
        ('return input.tags[1] == "x";', "tags", 1, 0, 8, 14),
        ('return input.tags[1] == "x";', "tags", 1, 4, 1 << 30, 14),
        ("return strlen(input.legs[1].name);", "legs", 1, 4, 5, 29),
        ("return input.legs[0].weights[0];", "legs", 0, 16, 3, 22),
        ("return length(input.legs[0].weights);", "legs", 0, 8, 9, 29),
    ],
)
def test_a_slot_behind_an_index_is_checked_when_it_is_followed(
    back_end: str, source: str, array: str, step: int, place: int, value: int, column: int
) -> None:
    batch = Batch.of([order()])
    data = bytearray(batch.records)
    slot = Format.of(Order).field(array).offset
    begin = int.from_bytes(data[slot : slot + 4], "little")
    at = begin + step * (8 if array == "tags" else Format.of(Leg).size) + place
    data[at : at + (1 if (array, place) == ("legs", 8) else 4)] = value.to_bytes(
        1 if (array, place) == ("legs", 8) else 4, "little"
    )
    bounds = numpy.array([0, len(data)], numpy.uint32).tobytes()
    kernel = compiled(back_end, checked(f"static int begun; begun = 1;\n{source}", Order))
    ran = run_records(kernel, data, bounds, 1)
    assert ran.faults == [(0, "RECORD", 2, column)]
    assert ran.statics == {"begun": 1}


def test_a_bound_kernel_handles_one_record(back_end: str) -> None:
    source = "static int seen; seen++; return input.number == 9 ? 1 / (input.number - 9) : seen * 10;"
    kernel: Any = compiled(back_end, checked(source, Order))
    statics = Statics(kernel.program)
    handle = kernel.bind(b"", statics.block, 1000)
    record = bytes(Batch.of([order()]).records)
    assert [handle(record), handle(memoryview(record)), handle(bytearray(record))] == [10, 20, 30]
    assert statics.values() == {"seen": 3}
    with pytest.raises(ValueError, match=r"^\d+$") as raised:
        handle(bytes(Batch.of([order(number=9)]).records))
    assert kernel.faults[int(str(raised.value))][0].name == "DIVISION"
    with pytest.raises(ValueError, match=r"^\d+$") as raised:
        handle(record[:40])
    assert kernel.faults[int(str(raised.value))][0].name == "RECORD"


def test_loops_can_be_nested_as_deep_as_each_back_end_can(back_end: str) -> None:
    def nested(depth: int) -> str:
        loops = "".join(f"for (int i{level} = 0; i{level} < 1; i{level}++) " for level in range(depth // 2))
        return f"static int k; {loops} {'while (k < 1) ' * (depth - depth // 2)} k++; return k;"

    assert passes(back_end, nested(LOOPS_MAX))
    with pytest.raises(ECodeError, match="loops are nested deeper than 16 levels"):
        checked(nested(LOOPS_MAX + 1), Order)


def test_a_long_sum_and_a_long_choice_are_no_deeper_than_others(back_end: str) -> None:
    total = " + ".join(["input.number"] * 90)
    assert passes(back_end, f"return {total} == 630;")
    together = " && ".join(["input.number == 7"] * 300)
    assert passes(back_end, f"return {together};")
    chain = "else ".join(f"if (input.number == {value}) return {value % 2}; " for value in range(60, 0, -1))
    assert passes(back_end, f"{chain} return 0;")


def test_unsigned_sizing_fields_beyond_any_capacity_fault(back_end: str) -> None:
    @event
    class Sized:
        n: uint64
        values: Array[uint32, "n"]

    ran = run(back_end, "output.n = input.huge; return 1;", [order()], Sized)
    assert ran.faults == [(0, "LENGTH", 0, 0)]
