"""LLVM text written line by line: what each word of the emitter means once it is compiled."""

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.codegen import Emitter, Library, compile_library

HEADER = "define i64 @run(ptr %a, ptr %b, i64 %n)"


def compiled(emit: Emitter) -> tuple[Callable[..., int], Library]:
    """Compile what was written as the body of a function of two pointers and a number."""
    library = compile_library(emit.module(HEADER), ("run",))
    signature = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return signature(library.address("run")), library


def run(emit: Emitter, *, a: Any = None, b: Any = None, n: int = 0) -> int:
    call, _library = compiled(emit)
    return call(a, b, n)


def test_values_have_names_of_their_own() -> None:
    emit = Emitter()
    names = [emit.value("add i64 1, 2") for _ in range(100)] + [emit.new_label("here") for _ in range(100)]
    assert len(set(names)) == 200


def test_a_value_can_be_used_later() -> None:
    emit = Emitter()
    total = emit.value("add i64 %n, 40")
    emit.line(f"ret i64 {emit.value(f'mul i64 {total}, 2')}")
    assert run(emit, n=2) == 84


@pytest.mark.parametrize(("n", "expected"), [(5, 1), (-5, 2)])
def test_a_branch_goes_to_one_of_two_blocks(n: int, expected: int) -> None:
    emit = Emitter()
    yes, no = emit.new_label("yes"), emit.new_label("no")
    emit.branch(emit.value("icmp sgt i64 %n, 0"), yes, no)
    emit.block(yes)
    emit.line("ret i64 1")
    emit.block(no)
    emit.line("ret i64 2")
    assert run(emit, n=n) == expected


@pytest.mark.parametrize(("n", "expected"), [(3, 3), (0, -1), (11, -1)])
def test_require_goes_on_only_if_all_conditions_hold(n: int, expected: int) -> None:
    emit = Emitter()
    emit.require(emit.value("icmp sgt i64 %n, 0"), "bad")
    emit.require(emit.value("icmp slt i64 %n, 10"), "bad")
    emit.line("ret i64 %n")
    emit.block("bad")
    emit.line("ret i64 -1")
    assert run(emit, n=n) == expected


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_a_loop_runs_as_often_as_it_is_told(count: int) -> None:
    emit = Emitter()
    total = emit.stack("i64")
    emit.line(f"store i64 0, ptr {total}")
    index, loop = emit.begin_loop("%n")
    more = emit.value(f"add i64 {_loaded(emit, total)}, {index}")
    emit.line(f"store i64 {more}, ptr {total}")
    emit.end_loop(loop)
    emit.line(f"ret i64 {_loaded(emit, total)}")
    assert run(emit, n=count) == sum(range(count))


def _loaded(emit: Emitter, pointer: str) -> str:
    return emit.value(f"load i64, ptr {pointer}")


def test_a_loop_does_not_run_for_a_negative_count() -> None:
    emit = Emitter()
    _, loop = emit.begin_loop("%n")
    emit.store("i8", "1", "%a")
    emit.end_loop(loop)
    emit.line("ret i64 0")
    target = ctypes.create_string_buffer(1)
    assert run(emit, a=target, n=-5) == 0
    assert target.raw == b"\0"


def test_loops_stand_in_loops_without_growing_the_stack() -> None:
    """A stack variable inside a loop would take more stack with every turn."""
    emit = Emitter()
    total = emit.stack("i64")
    emit.line(f"store i64 0, ptr {total}")
    _, outer = emit.begin_loop("%n")
    _, inner = emit.begin_loop("1000")
    more = emit.value(f"add i64 {_loaded(emit, total)}, 1")
    emit.line(f"store i64 {more}, ptr {total}")
    emit.end_loop(inner)
    emit.end_loop(outer)
    emit.line(f"ret i64 {_loaded(emit, total)}")
    body = emit.module(HEADER)
    assert body.index("alloca") < body.index("br label")
    assert body.rindex("alloca") < body.index("br label")
    assert run(emit, n=100_000) == 100_000_000


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("offset", range(8))
def test_values_are_read_and_written_wherever_they_lie(kind: str, offset: int) -> None:
    emit = Emitter()
    emit.store(kind, emit.load(kind, emit.at("%a", offset)), emit.at("%b", offset))
    emit.line("ret i64 0")
    size = int(kind[1:]) // 8
    source, target = ctypes.create_string_buffer(bytes(range(1, 17)), 16), ctypes.create_string_buffer(16)
    run(emit, a=source, b=target)
    assert target.raw == bytes(offset) + source.raw[offset : offset + size] + bytes(16 - offset - size)


def test_nothing_in_memory_is_said_to_be_aligned() -> None:
    """Some machines forgive a wrong promise for years, until the optimiser believes it."""
    emit = Emitter()
    emit.store("i64", emit.load("i64", "%a"), "%b")
    written = [line for line in emit.module(HEADER).splitlines() if "%a," in line or "%b," in line]
    assert [line.rpartition(", ")[2] for line in written[1:]] == ["align 1", "align 1"]


def test_no_distance_is_no_instruction() -> None:
    emit = Emitter()
    assert emit.at("%a", 0) == "%a"
    assert emit.at("%a", 8) != "%a"


def test_bytes_are_copied_and_cleared() -> None:
    emit = Emitter()
    emit.copy("%a", "%b", 5)
    emit.copy(emit.at("%a", 10), "%b", "%n")
    emit.clear(emit.at("%a", 1), 2)
    emit.clear(emit.at("%a", 11), "1")
    emit.line("ret i64 0")
    target, source = ctypes.create_string_buffer(b"." * 16, 16), ctypes.create_string_buffer(b"abcdef", 6)
    run(emit, a=target, b=source, n=3)
    assert target.raw == b"a\0\0de.....a\0c..."


def test_an_intrinsic_is_declared_once_and_called() -> None:
    emit = Emitter()
    value = "%n"
    for _ in range(3):
        value = emit.call("i64", "llvm.bswap.i64", [("i64", value)])
    emit.line(f"ret i64 {value}")
    assert emit.module(HEADER).count("declare") == 1
    assert run(emit, n=1) == 1 << 56


@settings(max_examples=25, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=4))
def test_constants_are_any_bytes(constants: list[bytes]) -> None:
    emit = Emitter()
    at = 0
    for data in constants:
        emit.copy(emit.at("%a", at), emit.constant(data), len(data))
        at += len(data)
    emit.line(f"ret i64 {at}")
    target = ctypes.create_string_buffer(at)
    assert run(emit, a=target) == at
    assert target.raw == b"".join(constants)


def test_a_label_continues_the_block_before() -> None:
    emit = Emitter()
    after = emit.new_label("after")
    emit.label(after)
    emit.line("ret i64 7")
    assert run(emit) == 7


def test_a_jump_leaves_the_block() -> None:
    emit = Emitter()
    emit.jump("end")
    emit.block("end")
    emit.line("ret i64 9")
    assert run(emit) == 9


@pytest.mark.parametrize(("n", "expected"), [(5, 10), (-5, 20)])
def test_a_value_is_joined_from_the_blocks_before(n: int, expected: int) -> None:
    emit = Emitter()
    yes, no, done = emit.new_label("yes"), emit.new_label("no"), emit.new_label("done")
    emit.branch(emit.value("icmp sgt i64 %n, 0"), yes, no)
    emit.block(yes)
    first = (emit.value("add i64 4, 6"), emit.here)
    emit.jump(done)
    emit.block(no)
    second = (emit.value("add i64 9, 11"), emit.here)
    emit.label(done)
    emit.line(f"ret i64 {emit.join('i64', first, second)}")
    assert run(emit, n=n) == expected


def test_what_comes_early_can_be_written_late() -> None:
    emit = Emitter()
    early = emit.mark()
    emit.label("body")
    with emit.inside(early):
        doubled = emit.value("mul i64 %n, 2")
    total = emit.value(f"add i64 {doubled}, 1")
    with emit.inside(early):
        emit.require(emit.value(f"icmp slt i64 {doubled}, 100"), "large")
        more = emit.value(f"add i64 {doubled}, 1000")
    assert emit.here == "body"
    emit.line(f"ret i64 {emit.value(f'add i64 {total}, {more}')}")
    emit.block("large")
    emit.line("ret i64 -1")
    call, _library = compiled(emit)
    assert [call(None, None, n) for n in (1, 49, 50)] == [2 + 1 + 1002, 98 + 1 + 1098, -1]


def test_marks_stand_inside_of_marks() -> None:
    emit = Emitter()
    outer = emit.mark()
    emit.label("body")
    with emit.inside(outer):
        value = emit.value("add i64 %n, 1")
        inner = emit.mark()
        emit.label("between")
    with emit.inside(inner):
        value = emit.value(f"mul i64 {value}, 10")
    emit.line(f"ret i64 {value}")
    assert run(emit, n=4) == 50


def test_equal_constants_lie_in_one_place() -> None:
    emit = Emitter()
    assert emit.constant(b"abc") == emit.constant(b"abc")
    assert emit.constant(b"abc") != emit.constant(b"abd")


def test_memories_that_overlap_are_copied_when_that_is_said() -> None:
    emit = Emitter()
    emit.copy(emit.at("%a", 1), "%a", "%n", overlapping=True)
    emit.line("ret i64 0")
    target = ctypes.create_string_buffer(b"abcdef", 6)
    run(emit, a=target, n=5)
    assert target.raw == b"aabcde"
