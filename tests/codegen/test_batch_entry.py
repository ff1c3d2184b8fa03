"""CPython builtins around routines that look at records one after the other."""

import ctypes
import gc
import struct
import sys
import threading
from collections.abc import Callable

import pytest

from echoic.codegen import (
    ROUTINE,
    WORK_HEADER,
    WORK_HEADER_BYTES,
    Demands,
    NativeCode,
    batch_entry,
    compile_library,
    event_entry,
    work_bytes,
)

# Selects each byte of `records` that is larger than the first parameter; adds it to the statics; a zero faults with
# number 6; 255 ends the run as if the output were full.
PICK = f"""
define i64 @run({ROUTINE}) {{
entry:
  %before = load i64, ptr %header
  %limit = load i8, ptr %params
  br label %next
next:
  %index = phi i64 [ %start, %entry ], [ %following, %go ]
  %selected = phi i64 [ %before, %entry ], [ %counted, %go ]
  store i64 %selected, ptr %header
  %more = icmp slt i64 %index, %count
  br i1 %more, label %look, label %leave
look:
  %place = getelementptr i8, ptr %records, i64 %index
  %byte = load i8, ptr %place
  %zero = icmp eq i8 %byte, 0
  br i1 %zero, label %fault, label %second
second:
  %full = icmp eq i8 %byte, -1
  br i1 %full, label %leave, label %go
fault:
  %fault_at = getelementptr i8, ptr %header, i64 8
  store i64 7, ptr %fault_at
  br label %leave
go:
  %sum = load i8, ptr %statics
  %added = add i8 %sum, %byte
  store i8 %added, ptr %statics
  %number = getelementptr i32, ptr %numbers, i64 %selected
  %narrow = trunc i64 %index to i32
  store i32 %narrow, ptr %number
  %large = icmp ugt i8 %byte, %limit
  %one = zext i1 %large to i64
  %returned_at = getelementptr i8, ptr %header, i64 32
  store i64 %one, ptr %returned_at
  %counted = add i64 %selected, %one
  %following = add i64 %index, 1
  br label %next
leave:
  ret i64 %index
}}
"""
DEMANDS = Demands(record_bytes=1, params_bytes=1, statics_bytes=1)


@pytest.fixture(scope="module")
def code() -> NativeCode:
    return NativeCode.of(compile_library(PICK, ("run",)), "run")


@pytest.fixture(scope="module")
def run(code: NativeCode) -> Callable[..., int]:
    return batch_entry(code, DEMANDS)


def work_for(count: int, demands: Demands = DEMANDS) -> bytearray:
    return bytearray(b"\xaa" * work_bytes(demands, count))


def test_a_run_tells_how_many_events_were_selected_and_which(run: Callable[..., int]) -> None:
    work, statics = work_for(4), bytearray(1)
    assert run(b"\x05\x09\x01\x08", None, b"\x06", statics, None, work, 0, 4, 0, 0) == 2
    assert struct.unpack_from("=2I", work, WORK_HEADER_BYTES) == (1, 3)
    assert statics == bytearray([23])
    assert WORK_HEADER.unpack_from(work) == (2, 0, 0, 0, 1, 0)


def test_a_run_of_no_events_selects_none(run: Callable[..., int]) -> None:
    assert run(b"", None, b"\x06", bytearray(1), None, work_for(0), 0, 0, 0, 0) == 0


def test_a_run_that_is_stopped_tells_where_and_goes_on_from_there(run: Callable[..., int]) -> None:
    work, statics = work_for(5), bytearray(1)
    arguments = (b"\x09\x00\x08\xff\x07", None, b"\x06", statics, None, work)
    assert run(*arguments, 0, 5, 0, 0) == -1 - 1
    assert WORK_HEADER.unpack_from(work)[:2] == (1, 7)
    assert run(*arguments, 2, 5, 0, 0) == -1 - 3
    assert WORK_HEADER.unpack_from(work)[:2] == (2, 0)
    assert run(*arguments, 4, 5, 0, 0) == 3
    assert struct.unpack_from("=3I", work, WORK_HEADER_BYTES) == (0, 2, 4)


def test_records_that_are_not_there_fault_with_number_0(run: Callable[..., int]) -> None:
    work, statics = work_for(5), bytearray(1)
    arguments = (b"\x09\x08", None, b"\x06", statics, None, work)
    assert run(*arguments, 0, 5, 0, 0) == -1 - 2
    assert WORK_HEADER.unpack_from(work)[:2] == (2, 1)
    assert run(*arguments, 3, 5, 0, 0) == -1 - 3
    assert WORK_HEADER.unpack_from(work)[:2] == (2, 1)


@pytest.mark.parametrize(
    ("demands", "sizes", "fine"),
    [
        (Demands(), (0, 0, 0, 0), True),
        (Demands(bound_bytes=4), (0, 12, 0, 0), True),
        (Demands(bound_bytes=4), (0, 11, 0, 0), False),
        (Demands(records_bytes_min=80), (80, 0, 0, 0), True),
        (Demands(records_bytes_min=80), (79, 0, 0, 0), False),
        (Demands(params_bytes=3), (0, 0, 3, 0), True),
        (Demands(params_bytes=3), (0, 0, 2, 0), False),
        (Demands(statics_bytes=3), (0, 0, 0, 3), True),
        (Demands(statics_bytes=3), (0, 0, 0, 2), False),
    ],
)
def test_buffers_that_are_too_small_are_refused(demands: Demands, sizes: tuple[int, ...], fine: bool) -> None:
    text = f"define i64 @run({ROUTINE}) {{\n  ret i64 %count\n}}\n"
    run = batch_entry(NativeCode.of(compile_library(text, ("run",)), "run"), demands)
    records, bounds, params, statics = (bytearray(size) for size in sizes)
    arguments = (records, bounds, params, statics, None, work_for(2, demands), 0, 2, 0, 0)
    if fine:
        assert run(*arguments) == 0
    else:
        with pytest.raises(ValueError, match="-1"):
            run(*arguments)


@pytest.mark.parametrize("demands", [Demands(), Demands(port_bytes=4), Demands(scratch_bytes=80, output_bound_bytes=4)])
def test_the_work_memory_must_hold_what_a_routine_writes(demands: Demands) -> None:
    text = f"define i64 @run({ROUTINE}) {{\n  ret i64 %count\n}}\n"
    run = batch_entry(NativeCode.of(compile_library(text, ("run",)), "run"), demands)
    arguments: tuple[object, ...] = (b"", None, b"", bytearray(), None)
    assert run(*arguments, work_for(3, demands), 0, 3, 0, 0) == 0
    with pytest.raises(ValueError, match="-1"):
        run(*arguments, work_for(3, demands)[:-1], 0, 3, 0, 0)


@pytest.mark.parametrize("numbers", [(0, -1, 0), (2, 1, 0), (-1, 1, 0), (0, 1 << 40, 0), (0, (1 << 62) + 1, 0)])
def test_numbers_that_make_no_sense_are_refused(run: Callable[..., int], numbers: tuple[int, int, int]) -> None:
    start, count, fuel = numbers
    with pytest.raises(ValueError, match="-1"):
        run(b"\x01", None, b"\x01", bytearray(1), None, work_for(1), start, count, fuel, 0)


@pytest.mark.parametrize(
    ("position", "wrong", "error"),
    [
        (0, "text", TypeError),
        (2, 5, TypeError),
        (3, b"\x01", BufferError),
        (5, bytes(1000), BufferError),
        (6, "0", TypeError),
        (7, 1 << 70, OverflowError),
    ],
)
def test_arguments_of_wrong_types_are_refused_and_nothing_is_kept(
    run: Callable[..., int], position: int, wrong: object, error: type[Exception]
) -> None:
    records, statics = bytearray(b"\x09"), bytearray(1)
    arguments: list[object] = [records, None, b"\x01", statics, None, work_for(1), 0, 1, 0, 0]
    arguments[position] = wrong
    with pytest.raises(error):
        run(*arguments)
    records.append(1)
    statics.append(1)


def test_a_wrong_number_of_arguments_is_refused(run: Callable[..., int]) -> None:
    with pytest.raises(TypeError, match="number of arguments"):
        run(b"")


def test_buffers_are_free_again_after_a_run(run: Callable[..., int]) -> None:
    records, statics, work = bytearray(b"\x09"), bytearray(1), work_for(1)
    counts = [sys.getrefcount(each) for each in (records, statics, work)]
    for _ in range(100):
        assert run(records, None, b"\x01", statics, None, work, 0, 1, 0, 0) == 1
    assert [sys.getrefcount(each) for each in (records, statics, work)] == counts
    for each in (records, statics, work):
        each.append(0)


SPIN = f"""
define i64 @run({ROUTINE}) {{
entry:
  br label %next
next:
  %turn = phi i64 [ 0, %entry ], [ %following, %next ]
  store volatile i64 %turn, ptr %header
  %following = add i64 %turn, 1
  %more = icmp slt i64 %following, %fuel
  br i1 %more, label %next, label %leave
leave:
  ret i64 %count
}}
"""


def test_other_threads_run_while_a_long_run_has_released_them() -> None:
    run = batch_entry(NativeCode.of(compile_library(SPIN, ("run",)), "run"), Demands())
    turns, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            turns[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = turns[0]
    run(b"", None, b"", bytearray(), None, work_for(1), 0, 1, 600_000_000, 1)
    after = turns[0]
    done.set()
    thread.join()
    assert after - before > 1000


def test_an_event_is_looked_at_by_its_record_alone(code: NativeCode) -> None:
    statics = bytearray(1)
    look = event_entry(code, DEMANDS, b"\x06", statics, 0)
    assert [look(record) for record in (b"\x05", bytearray(b"\x07"), memoryview(b"\x09"))] == [0, 1, 1]
    assert statics == bytearray([5 + 7 + 9])


@pytest.mark.parametrize("place", [0, 1, 255, 256, 257, 511, 512, 999, None])
def test_of_several_events_it_is_found_whether_any_is_selected(code: NativeCode, place: int | None) -> None:
    look = event_entry(code, DEMANDS, b"\x06", bytearray(1), 0)
    records = bytearray(b"\x05" * 1000)
    if place is not None:
        records[place] = 7
    assert look(records) == (place is not None)


def test_of_several_events_the_first_that_faults_is_told(code: NativeCode) -> None:
    look = event_entry(code, DEMANDS, b"\x06", bytearray(1), 0)
    with pytest.raises(ValueError, match="6"):
        look(b"\x05" * 300 + b"\x00")
    assert look(b"\x07" + b"\x05" * 299 + b"\x00"), "it was known before"


def test_an_event_that_faults_raises_the_number_of_the_fault(code: NativeCode) -> None:
    look = event_entry(code, DEMANDS, b"\x06", bytearray(1), 0)
    for record, number in ((b"\x00", 6), (b"", 0)):
        with pytest.raises(ValueError, match=str(number)) as raised:
            look(record)
        assert raised.value.args == (number,)
    with pytest.raises(TypeError):
        look("text")


def test_statics_cannot_move_while_a_builtin_is_bound_to_them(code: NativeCode) -> None:
    statics = bytearray(1)
    look = event_entry(code, DEMANDS, b"\x06", statics, 0)
    with pytest.raises(BufferError):
        statics.append(1)
    del look
    gc.collect()
    statics.append(1)


def test_a_bound_builtin_keeps_its_code_and_parameters() -> None:
    look = event_entry(NativeCode.of(compile_library(PICK, ("run",)), "run"), DEMANDS, bytes([6]), bytearray(1), 0)
    gc.collect()
    rubbish = [ctypes.create_string_buffer(64) for _ in range(100)]
    assert [look(b"\x05"), look(b"\x07")] == [0, 1]
    assert len(rubbish) == 100


@pytest.mark.parametrize(
    ("demands", "params", "statics"),
    [(DEMANDS, b"", bytearray(1)), (DEMANDS, b"1", bytearray()), (Demands(scratch_bytes=8), b"", bytearray())],
)
def test_an_event_entry_refuses_what_does_not_suffice(
    code: NativeCode, demands: Demands, params: bytes, statics: bytearray
) -> None:
    with pytest.raises(ValueError, match="do not suffice"):
        event_entry(code, demands, params, statics, 0)
