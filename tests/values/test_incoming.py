"""Values that arrive: memory grows with what came, whatever was announced, and abandoned ones leave nothing."""

import gc
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import ClosedError, LimitExceededError, MalformedFrameError
from echoic.values import Stored, ValueStore
from tests.values.conftest import BUDGET_BYTES, open_descriptors

GIBIBYTE = 1024**3


def content(store: ValueStore[str], handle: int) -> bytes:
    found = store.get(handle)
    assert isinstance(found, Stored)
    assert found.size == store.size(handle) == sum(len(piece) for piece in found.pieces)
    return b"".join(found.pieces)


@given(chunks=st.lists(st.binary(max_size=9000), max_size=12), budget_bytes=st.sampled_from([0, 100, 20_000, 10**6]))
def test_a_value_arrives_whole_however_it_was_cut_and_wherever_it_is(chunks: list[bytes], budget_bytes: int) -> None:
    store: ValueStore[str] = ValueStore(budget_bytes=budget_bytes)
    whole = b"".join(chunks)
    with store.receive(len(whole)) as incoming:
        for chunk in chunks:
            incoming.write(chunk)
        handle = incoming.done()
    assert content(store, handle) == whole
    assert store.statistics().heap_bytes == (len(whole) if len(whole) <= budget_bytes else 0)
    store.release(handle)
    assert store.statistics().heap_bytes == store.statistics().file_bytes == 0


def test_an_announcement_takes_no_memory_and_no_disk(tmp_path: Path) -> None:
    store: ValueStore[str] = ValueStore(spill=tmp_path)
    waiting = [store.receive(size) for size in (100_000_000, 4 * GIBIBYTE)]
    assert (store.statistics().heap_bytes, store.statistics().file_bytes) == (0, 0)
    for incoming in waiting:
        incoming.write(b"x" * 1000)
    assert (store.statistics().heap_bytes, store.statistics().file_bytes) == (1000, 1000)
    for incoming in waiting:
        incoming.abandon()
        incoming.abandon()
    assert (store.statistics().heap_bytes, store.statistics().file_bytes) == (0, 0)


def test_what_no_place_can_hold_is_refused_when_it_is_announced(store: ValueStore[str]) -> None:
    with pytest.raises(LimitExceededError, match=str(9 * GIBIBYTE)):
        store.receive(9 * GIBIBYTE)
    with pytest.raises(MalformedFrameError, match="-1 bytes"):
        store.receive(-1)


def test_more_bytes_than_announced_are_refused(store: ValueStore[str]) -> None:
    incoming = store.receive(10)
    incoming.write(b"12345678")
    with pytest.raises(MalformedFrameError, match="11 bytes came of a value of 10"):
        incoming.write(b"901")
    assert store.statistics().heap_bytes == 0
    with pytest.raises(ClosedError):
        incoming.write(b"")


@pytest.mark.parametrize("size", [10, 10 * BUDGET_BYTES])
def test_fewer_bytes_than_announced_are_refused(store: ValueStore[str], size: int) -> None:
    incoming = store.receive(size)
    incoming.write(b"12345678")
    with pytest.raises(MalformedFrameError, match=f"8 bytes came of a value of {size}"):
        incoming.done()
    assert store.statistics().heap_bytes == store.statistics().file_bytes == store.statistics().values == 0


def test_what_is_done_cannot_be_written_or_done_again_and_stays_when_it_is_abandoned(store: ValueStore[str]) -> None:
    with store.receive(3) as incoming:
        incoming.write(b"abc")
        handle = incoming.done()
        with pytest.raises(ClosedError):
            incoming.write(b"d")
        with pytest.raises(ClosedError):
            incoming.done()
    assert content(store, handle) == b"abc"


def test_a_value_for_which_memory_runs_out_on_the_way_goes_on_in_a_file(store: ValueStore[str]) -> None:
    first, second = store.receive(800), store.receive(800)
    for _ in range(8):
        first.write(b"a" * 100)
        second.write(b"b" * 100)
    assert content(store, first.done()) == b"a" * 800
    assert content(store, second.done()) == b"b" * 800
    statistics = store.statistics()
    assert statistics.heap_bytes_peak <= BUDGET_BYTES
    assert (statistics.heap_bytes, statistics.file_bytes) == (800, 800)


def test_values_that_are_there_leave_memory_for_one_that_arrives(store: ValueStore[str]) -> None:
    there = store.put("x" * 900, 900)
    with store.receive(500) as incoming:
        incoming.write(b"y" * 500)
        handle = incoming.done()
    assert store.statistics().heap_bytes == 500
    assert content(store, handle) == b"y" * 500
    assert store.get(there) == "x" * 900


def test_full_files_end_a_value_on_its_way(tmp_path: Path) -> None:
    store: ValueStore[str] = ValueStore(budget_bytes=10, file_bytes_max=1000, spill=tmp_path)
    first, second = store.receive(900), store.receive(900)
    first.write(b"x" * 600)
    with pytest.raises(LimitExceededError, match="1200 bytes, limit is 1000"):
        second.write(b"x" * 600)
    with pytest.raises(ClosedError):
        second.done()
    first.write(b"x" * 300)
    assert content(store, first.done()) == b"x" * 900


def test_memory_that_may_change_is_copied_and_bytes_are_not(tmp_path: Path) -> None:
    store: ValueStore[str] = ValueStore(spill=tmp_path)
    buffer = bytearray(b"a" * 5000)
    constant = b"b" * 5000
    large = b"c" * 50_000
    chunks = [buffer, memoryview(buffer), constant, memoryview(constant)[8:], memoryview(large)[:5000]]
    with store.receive(sum(map(len, chunks))) as incoming:
        for chunk in chunks:
            incoming.write(chunk)
        buffer[:] = b"z" * 5000
        handle = incoming.done()
    found = store.get(handle)
    assert isinstance(found, Stored)
    assert [bytes(piece[:1]) for piece in found.pieces] == [b"a", b"a", b"b", b"b", b"c"]
    assert found.pieces[2] is constant
    assert isinstance(found.pieces[3], memoryview)
    assert isinstance(found.pieces[4], bytes)  # not a view that would keep 50 000 bytes


def test_single_bytes_do_not_take_an_object_each(tmp_path: Path) -> None:
    store: ValueStore[str] = ValueStore(spill=tmp_path)
    with store.receive(100_000) as incoming:
        for _ in range(100_000):
            incoming.write(b"x")
        handle = incoming.done()
    found = store.get(handle)
    assert isinstance(found, Stored)
    assert len(found.pieces) == 2
    assert sum(map(sys.getsizeof, found.pieces)) < 101_000


def test_abandoned_values_leave_no_descriptors(store: ValueStore[str]) -> None:
    gc.collect()
    before = open_descriptors()
    for _ in range(50):
        with store.receive(5000) as incoming:
            incoming.write(b"x" * 4000)
    gc.collect()
    assert open_descriptors() == before
