"""Native kernels over columns: the same programs, another way to the fields."""

import struct
from typing import Any

import numpy
import pyarrow
import pytest

from echoic.ecode.analysis import analyse
from echoic.ecode.kernel import FaultKind, Outcome
from echoic.ecode.native import Column, compile_native
from echoic.ecode.program import Signature
from echoic.errors import CodegenError
from echoic.formats import NATIVE, Format
from echoic.testing.ecode_fuzz_programs import draw_case
from echoic.testing.guarded_memory import GuardedMemory
from echoic.wire import Batch
from tests.ecode.native_programs import (
    LISTED_TRANSFORM,
    TRADE,
    TRADE_FILTER,
    Length,
    Listed,
    kernel_of,
    program_of,
    trades,
)


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


def path_offset(format: Format, path: tuple[str, ...]) -> int:
    field = format.field(".".join(path))
    holder = path_offset(format, path[:-1]) if len(path) > 1 else 0
    return holder + field.offset


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_random_programs_do_the_same_on_columns(start: int) -> None:
    """The columns are strided views of the records, so that nothing but the way to the fields differs."""
    for seed in range(start, start + 20):
        case = draw_case(seed)
        given = case.signature.input
        if given.variable or given.byte_order != NATIVE.byte_order:
            continue
        program = program_of(case.source, case.signature)
        rows = compile_native(program, analyse(program))
        try:
            kernel = compile_native(program, analyse(program), layout="columns")
        except CodegenError:  # an array of records
            continue
        statics = [program.initial_statics(), program.initial_statics()]
        for events, params in zip(case.batches, case.params, strict=True):
            count = min(events.count, len(events.records) // given.size)
            columns = {
                path: Column(memoryview(events.records)[path_offset(given, path) :], given.size)
                for path in kernel.columns
            }
            limits = case.fuel, case.faults_max
            one = rows.run(events.records, None, count, params, statics[0], *limits)
            other = kernel.run_columns(columns, count, params, statics[1], *limits)
            assert plain(one) == plain(other), f"seed {seed}"
            assert statics[0] == statics[1], f"seed {seed}"


def plain(outcome: Outcome) -> tuple[object, ...]:
    arrays = [None if each is None else each.tolist() for each in (outcome.selected, outcome.ports, outcome.bounds)]
    return outcome.handled, outcome.faults, arrays, bytes(outcome.records or b"")
