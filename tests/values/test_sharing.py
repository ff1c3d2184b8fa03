"""Shared places: other processes map a value, nobody can change it, and nothing unsafe is touched."""

import fcntl
import gc
import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from echoic.errors import MalformedFrameError, UnreachableError
from echoic.values import SharedPlace, ValueStore, open_shared, shelves
from echoic.values.sharing import SEALS
from tests.values.conftest import BUDGET_BYTES, open_descriptors

READER = """
import sys
from echoic.values import SharedPlace, open_shared
view = open_shared(SharedPlace(*map(int, sys.argv[1:])))
print(len(view), view.readonly, bytes(view[:5]).decode())
"""


@pytest.fixture
def large(tmp_path: Path) -> ValueStore[bytes]:
    return ValueStore(spill=tmp_path, budget_bytes=10_000_000)


def put_and_share(store: ValueStore[bytes], value: bytes) -> tuple[int, SharedPlace]:
    handle = store.put(value, len(value))
    place = store.share(handle)
    assert place is not None
    return handle, place


def test_another_process_maps_a_value(large: ValueStore[bytes]) -> None:
    _, place = put_and_share(large, b"hello" * 100_000)
    numbers = map(str, msgspec.structs.astuple(place))
    done = subprocess.run([sys.executable, "-c", READER, *numbers], capture_output=True, text=True, check=True)
    assert done.stdout == "500000 True hello\n"


@pytest.mark.parametrize("size", [0, 1, 4096, 1_000_000])
def test_a_shared_value_is_the_same_and_takes_no_descriptor_of_the_reader_but_the_mappings(
    large: ValueStore[bytes], size: int
) -> None:
    value = os.urandom(size)
    _, place = put_and_share(large, value)
    before = open_descriptors()
    view = open_shared(place)
    assert view == value
    assert view.readonly
    assert open_descriptors() - before <= 1
    del view
    gc.collect()
    assert open_descriptors() == before


def test_a_value_is_shared_once(large: ValueStore[bytes]) -> None:
    handle, place = put_and_share(large, b"x" * 1000)
    assert large.share(handle) == place
    assert large.statistics().shared_bytes == 1000


def test_pieces_and_spilled_values_are_shared_too(store: ValueStore[str]) -> None:
    handles = [store.put_pieces([b"some", b"more"]), store.put("x" * 900, 900)]
    store.put("y" * 500, 500)  # sends both away
    place = store.share(handles[0])
    assert place is not None
    assert open_shared(place) == b"somemore"


def test_sharing_takes_half_of_the_memory_at_most_and_counts_in_the_budget(store: ValueStore[str]) -> None:
    handles = [store.put_pieces([b"x" * 200]) for _ in range(4)]
    places = [store.share(handle) for handle in handles]
    assert [place is not None for place in places] == [True, True, False, False]
    statistics = store.statistics()
    assert statistics.shared_bytes == 400
    assert statistics.heap_bytes + statistics.shared_bytes <= BUDGET_BYTES
    store.release(handles[0])
    assert store.share(handles[3]) is not None


def test_only_so_many_values_are_shared(large: ValueStore[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "SHARED_VALUES_MAX", 2)
    handles = [large.put(b"x", 1) for _ in range(3)]
    assert [large.share(handle) is None for handle in handles] == [False, False, True]
    assert (large.statistics().shared_bytes, large.statistics().heap_bytes) == (2, 3)


def test_a_released_value_is_gone_for_who_comes_late_and_stays_for_who_has_it(large: ValueStore[bytes]) -> None:
    handle, place = put_and_share(large, b"hello" * 1000)
    view = open_shared(place)
    large.release(handle)
    assert large.statistics().shared_bytes == 0
    assert view == b"hello" * 1000
    with pytest.raises(UnreachableError, match="is gone"):
        open_shared(place)


def test_a_descriptor_that_is_used_again_is_not_taken_for_the_value(large: ValueStore[bytes]) -> None:
    handle, place = put_and_share(large, b"hello")
    large.release(handle)
    other = make_memory(b"other")  # has the lowest number that is free, often the very one
    os.dup2(other, place.descriptor)
    with pytest.raises(UnreachableError, match="another file's"):
        open_shared(place)
    for descriptor in {other, place.descriptor}:
        os.close(descriptor)


def test_nobody_can_change_a_shared_value_its_maker_neither(large: ValueStore[bytes]) -> None:
    _, place = put_and_share(large, b"hello")
    for change in (
        lambda: os.pwrite(place.descriptor, b"j", 0),
        lambda: os.ftruncate(place.descriptor, 0),
        lambda: os.ftruncate(place.descriptor, 10),
        lambda: mmap.mmap(place.descriptor, 5),
        lambda: fcntl.fcntl(place.descriptor, fcntl.F_ADD_SEALS, 0),
    ):
        with pytest.raises(OSError, match="not permitted"):
            change()


def make_memory(content: bytes, seals: int = SEALS) -> int:
    descriptor = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.write(descriptor, content)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


@pytest.fixture
def place_of() -> Iterator[Callable[[int, int], SharedPlace]]:
    descriptors = []

    def place(descriptor: int, size: int) -> SharedPlace:
        descriptors.append(descriptor)
        return SharedPlace(os.getpid(), descriptor, size, os.fstat(descriptor).st_ino)

    yield place
    for descriptor in descriptors:
        os.close(descriptor)


PlaceOf = Callable[[int, int], SharedPlace]


@pytest.mark.parametrize(
    ("missing", "danger"), [(fcntl.F_SEAL_SHRINK, "against shrinking"), (fcntl.F_SEAL_WRITE, "against writing")]
)
def test_memory_without_a_seal_is_refused(place_of: PlaceOf, missing: int, danger: str) -> None:
    with pytest.raises(MalformedFrameError, match=danger):
        open_shared(place_of(make_memory(b"hello", SEALS & ~missing), 5))


def test_an_ordinary_file_is_refused(place_of: PlaceOf, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"hello")
    with pytest.raises(MalformedFrameError, match="against shrinking"):
        open_shared(place_of(os.open(tmp_path / "file", os.O_RDONLY), 5))


def test_memory_of_another_size_is_refused(place_of: PlaceOf) -> None:
    for size in (0, 4, 6, 2**62):
        with pytest.raises(MalformedFrameError, match=f"5 bytes, announced were {size}"):
            open_shared(place_of(os.dup(make := make_memory(b"hello")), size))
        os.close(make)


def test_huge_pages_are_refused_where_there_are_any(place_of: PlaceOf) -> None:
    try:
        descriptor = os.memfd_create("huge", os.MFD_HUGETLB | os.MFD_ALLOW_SEALING)
    except OSError:
        return  # then nobody can send us any
    size = os.fstatvfs(descriptor).f_bsize
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
    with pytest.raises(MalformedFrameError, match="pages of another size"):
        open_shared(place_of(descriptor, size))


def test_memory_of_another_user_is_refused(place_of: PlaceOf, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of(make_memory(b"hello"), 5)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(UnreachableError, match=f"belongs to user {os.getuid()}"):
        open_shared(place)


def test_pipes_and_devices_are_not_opened(place_of: PlaceOf) -> None:
    reading, writing = os.pipe()
    for descriptor in (reading, writing, os.open("/dev/zero", os.O_RDONLY)):
        with pytest.raises(UnreachableError, match="another file's"):
            open_shared(place_of(descriptor, 0))


def test_a_process_that_is_not_there_has_no_values() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(UnreachableError, match=f"process {ended.pid} is gone"):
        open_shared(SharedPlace(ended.pid, 3, 5, 1))


@pytest.mark.parametrize("numbers", [(0, 3, 5, 1), (-1, 3, 5, 1), (1, -1, 5, 1), (1, 3, -5, 1)])
def test_numbers_below_zero_are_no_place(numbers: tuple[int, int, int, int]) -> None:
    with pytest.raises(MalformedFrameError, match="below zero"):
        open_shared(SharedPlace(*numbers))


def test_what_is_refused_leaves_no_descriptor_open(place_of: PlaceOf) -> None:
    place = place_of(make_memory(b"hello", 0), 5)
    before = open_descriptors()
    for _ in range(20):
        with pytest.raises(MalformedFrameError):
            open_shared(place)
    assert open_descriptors() == before
