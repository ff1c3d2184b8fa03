"""CPython builtins around native routines: arguments in, bytes out, nothing kept."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from echoic.codegen import NativeCode, compile_library, fixed_entry, variable_entry

# Copies `count` bytes; refuses by -1 when the source has fewer, by -2 when they are more than a hundred, and by -3
# when they are 99.
FIXED = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i64 @convert(ptr %source, i64 %source_bytes, ptr %target, i64 %count) {
  %large = icmp ugt i64 %count, 100
  br i1 %large, label %full, label %next
next:
  %odd = icmp eq i64 %count, 99
  br i1 %odd, label %strange, label %check
check:
  %short = icmp slt i64 %source_bytes, %count
  br i1 %short, label %malformed, label %fine
fine:
  %asked = icmp eq ptr %target, null
  br i1 %asked, label %done, label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %count, i1 false)
  br label %done
done:
  ret i64 %count
malformed:
  ret i64 -1
full:
  ret i64 -2
strange:
  ret i64 -3
}
"""

# Writes the first bytes of both buffers and the lengths of both; refuses by -1 when count is 13, by -2 without room.
VARIABLE = """
define i64 @convert(
  ptr %source, i64 %source_bytes, ptr %bounds, i64 %bounds_bytes, ptr %target, i64 %capacity, i64 %count
) {
  %bad = icmp eq i64 %count, 13
  br i1 %bad, label %malformed, label %next
next:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %nothing, label %check
check:
  %short = icmp slt i64 %capacity, 4
  br i1 %short, label %full, label %fine
fine:
  %first = load i8, ptr %source
  store i8 %first, ptr %target
  %second = load i8, ptr %bounds
  %at1 = getelementptr i8, ptr %target, i64 1
  store i8 %second, ptr %at1
  %size1 = trunc i64 %source_bytes to i8
  %at2 = getelementptr i8, ptr %target, i64 2
  store i8 %size1, ptr %at2
  %size2 = trunc i64 %bounds_bytes to i8
  %at3 = getelementptr i8, ptr %target, i64 3
  store i8 %size2, ptr %at3
  ret i64 4
nothing:
  ret i64 0
malformed:
  ret i64 -1
full:
  ret i64 -2
}
"""


def fixed() -> Callable[..., Any]:
    return fixed_entry(NativeCode.of(compile_library(FIXED, ("convert",)), "convert"))


def variable() -> Callable[..., Any]:
    return variable_entry(NativeCode.of(compile_library(VARIABLE, ("convert",)), "convert"))


@pytest.fixture(scope="module")
def copy() -> Callable[..., Any]:
    return fixed()


@pytest.fixture(scope="module")
def mix() -> Callable[..., Any]:
    return variable()


def test_a_fixed_entry_gives_the_bytes_that_the_routine_wrote(copy: Callable[..., Any]) -> None:
    assert copy(b"abcdef", 4) == b"abcd"
    assert copy(b"abcdef", 0) == b""
    assert copy(b"abcdef", 1) == b"a"
    assert type(copy(b"abcdef", 6)) is bytes


def test_a_variable_entry_gives_only_what_the_routine_wrote(mix: Callable[..., Any]) -> None:
    for capacity in (4, 5, 1000, 1_000_000):
        assert mix(b"abc", b"xy", 1, capacity) == b"ax\x03\x02"
    assert mix(b"abc", b"xy", 0, 10) == b""
    assert mix(b"abc", b"xy", 0, 0) == b""
    assert mix(b"abc", b"xy", 0, 1) == b""


@pytest.mark.parametrize(
    "source",
    [
        b"abcd",
        bytearray(b"abcd"),
        memoryview(b"abcd"),
        memoryview(bytearray(b"xabcd"))[1:],
        numpy.frombuffer(b"abcd", numpy.uint8),
    ],
)
def test_any_contiguous_buffer_is_a_source(copy: Callable[..., Any], mix: Callable[..., Any], source: Any) -> None:
    assert copy(source, 4) == b"abcd"
    assert mix(source, source, 1, 10) == b"aa\x04\x04"


@pytest.mark.parametrize("arguments", [(), (b"abc",), (b"abc", 1, 2), (b"abc", 1, 2, 3)])
def test_a_fixed_entry_wants_two_arguments(copy: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="wrong number of arguments"):
        copy(*arguments)


@pytest.mark.parametrize("arguments", [(), (b"", b"", 1), (b"", b"", 1, 2, 3)])
def test_a_variable_entry_wants_four_arguments(mix: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="wrong number of arguments"):
        mix(*arguments)


def test_entries_take_no_names(copy: Callable[..., Any], mix: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):
        copy(b"abc", count=1)
    with pytest.raises(TypeError):
        mix(b"abc", b"", 1, capacity=1)


@pytest.mark.parametrize("wrong", ["text", 7, None, [1, 2], object()])
def test_a_source_that_is_no_buffer_is_refused(copy: Callable[..., Any], mix: Callable[..., Any], wrong: Any) -> None:
    with pytest.raises(TypeError):
        copy(wrong, 1)
    with pytest.raises(TypeError):
        mix(wrong, b"", 1, 10)
    with pytest.raises(TypeError):
        mix(b"", wrong, 1, 10)


def test_a_buffer_with_gaps_is_refused(copy: Callable[..., Any], mix: Callable[..., Any]) -> None:
    for gaps in (memoryview(b"abcdef")[::2], numpy.zeros((4, 4), numpy.uint8)[:, 1], memoryview(b"abcdef")[::-1]):
        with pytest.raises((BufferError, ValueError)):
            copy(gaps, 1)
        with pytest.raises((BufferError, ValueError)):
            mix(b"abc", gaps, 1, 10)
    with pytest.raises(BufferError):
        copy(memoryview(b"abcdef")[::2], 1)


@pytest.mark.parametrize("wrong", [1.0, "1", None, b"1"])
def test_a_count_that_is_no_integer_is_refused(copy: Callable[..., Any], mix: Callable[..., Any], wrong: Any) -> None:
    for call in (lambda: copy(b"abc", wrong), lambda: mix(b"a", b"b", wrong, 10), lambda: mix(b"a", b"b", 1, wrong)):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize("wrong", [1 << 63, -(1 << 63) - 1, 1 << 200])
def test_a_count_that_no_register_can_hold_is_refused(
    copy: Callable[..., Any], mix: Callable[..., Any], wrong: int
) -> None:
    for call in (lambda: copy(b"abc", wrong), lambda: mix(b"a", b"b", wrong, 10), lambda: mix(b"a", b"b", 1, wrong)):
        with pytest.raises(OverflowError):
            call()


def test_a_count_of_minus_one_is_a_number_and_no_error(copy: Callable[..., Any], mix: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"^-2$"):
        copy(b"abc", -1)
    assert mix(b"abc", b"xy", -1, 10) == b"ax\x03\x02"


def test_negative_results_are_value_errors_with_their_number(copy: Callable[..., Any], mix: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"^-1$"):
        copy(b"abc", 4)
    with pytest.raises(ValueError, match=r"^-2$"):
        copy(b"abc", 101)
    with pytest.raises(ValueError, match=r"^-\d$"):
        copy(b"abc", 99)
    with pytest.raises(ValueError, match=r"^-1$"):
        mix(b"abc", b"xy", 13, 100)
    with pytest.raises(ValueError, match=r"^-2$"):
        mix(b"abc", b"xy", 1, 3)


def test_more_memory_than_there_is_gives_an_ordinary_error(mix: Callable[..., Any]) -> None:
    with pytest.raises(MemoryError):
        mix(b"abc", b"xy", 1, 1 << 60)
    assert mix(b"abc", b"xy", 1, 10) == b"ax\x03\x02"


def attempts(copy: Callable[..., Any], mix: Callable[..., Any], buffer: Any) -> list[Callable[[], Any]]:
    """Return calls that succeed and calls that fail in each of their steps."""
    return [
        lambda: copy(buffer, 3),
        lambda: copy(buffer, 1000),
        lambda: copy(buffer, 50),
        lambda: copy(buffer, "x"),
        lambda: copy(buffer),
        lambda: mix(buffer, b"xy", 1, 10),
        lambda: mix(b"xy", buffer, 1, 10),
        lambda: mix(buffer, buffer, 1, 10),
        lambda: mix(buffer, buffer, 13, 10),
        lambda: mix(buffer, buffer, 1, 2),
        lambda: mix(buffer, 7, 1, 10),
        lambda: mix(7, buffer, 1, 10),
        lambda: mix(buffer, buffer, 1, 1 << 60),
        lambda: mix(buffer, buffer, "x", 10),
        lambda: mix(buffer, buffer, 0, 10),
    ]


def tried(call: Callable[[], Any]) -> None:
    try:
        call()
    except (TypeError, ValueError, MemoryError):
        pass


def test_buffers_are_released_whatever_happened(copy: Callable[..., Any], mix: Callable[..., Any]) -> None:
    buffer = bytearray(b"abcdef")
    for call in attempts(copy, mix, buffer):
        tried(call)
        buffer.append(7)  # BufferError while anybody holds it
        del buffer[-1]
    with pytest.raises(BufferError), memoryview(buffer):
        buffer.append(7)


def test_references_are_stable_over_many_calls(copy: Callable[..., Any], mix: Callable[..., Any]) -> None:
    source, bounds, count = b"abcdef" * 20, b"xyz" * 100, 10**9
    watched = [source, bounds, count, copy, mix, copy.__self__, mix.__self__, ValueError, TypeError, None, b""]
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(100_000):
        copy(source, 100)
        mix(source, bounds, 1, 64)
    for _ in range(10_000):
        tried(lambda: copy(source, count))
        tried(lambda: mix(source, bounds, 13, 10))
        tried(lambda: mix(source, bounds, count, 2))
        tried(lambda: mix(source, count, 1, 10))
        tried(lambda: copy(source))
    after = [sys.getrefcount(item) for item in watched]
    assert all(abs(now - then) < 100 for then, now in zip(before, after, strict=True)), (before, after)


def test_memory_is_stable_over_many_calls(copy: Callable[..., Any], mix: Callable[..., Any]) -> None:
    buffer = bytearray(b"abcdef")
    calls = attempts(copy, mix, buffer)

    def run(times: int) -> int:
        for _ in range(times):
            for call in calls:
                tried(call)
        gc.collect()
        return sys.getallocatedblocks()

    run(10)
    before = run(10)
    assert run(2000) - before < 1000


def test_the_result_belongs_to_the_caller_alone(copy: Callable[..., Any], mix: Callable[..., Any]) -> None:
    for made in (copy(b"abcdef" * 10, 50), mix(b"abc", b"xy", 1, 100)):
        assert sys.getrefcount(made) <= 3
        assert hash(made) == hash(bytes(bytearray(made)))


def test_a_builtin_keeps_its_code_and_nothing_else_does() -> None:
    gone = []

    class Watched(NativeCode):
        """An address that tells when it goes."""

        def __del__(self) -> None:
            gone.append(int(self))

    code = Watched.of(compile_library(FIXED, ("convert",)), "convert")
    copy = fixed_entry(code)
    assert copy.__self__ is code
    del code
    for _ in range(3):
        fixed()
        gc.collect()
    assert not gone
    assert copy(b"abcdef", 4) == b"abcd"
    del copy
    gc.collect()
    assert len(gone) == 1


def test_native_code_is_the_address_of_its_symbol() -> None:
    library = compile_library(FIXED, ("convert",))
    code = NativeCode.of(library, "convert")
    assert int(code) == library.address("convert")
    assert code.library is library
