"""Spill files: without names, few, given back with their last value, and never written twice."""

import gc
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from echoic.errors import LimitExceededError
from echoic.values import spilling
from echoic.values.spilling import SpillFolder, open_nameless
from echoic.values.writing import PIECES_MAX, write_at
from tests.values.conftest import open_descriptors

FORKING = """
import os, sys
from pathlib import Path
from echoic.values.spilling import SpillFolder
folder = SpillFolder(Path(sys.argv[1]), 10**6)
first = folder.write([b"first"])
child = os.fork()
if not child:
    folder.write([b"child" * 1000])
    os._exit(0)
status = os.waitpid(child, 0)[1]
untouched = folder.reserve(5000).view() == bytes(5000)
print(status, untouched, bytes(first.view()).decode())
"""


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "SEGMENT_BYTES", 1000)


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as a disk does that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_nothing_is_made_before_it_is_needed(tmp_path: Path) -> None:
    before = open_descriptors()
    SpillFolder(tmp_path / "nowhere", 1000)
    assert open_descriptors() == before


def test_files_have_no_names_and_are_for_this_user_alone(tmp_path: Path) -> None:
    descriptor = open_nameless(tmp_path)
    assert not list(tmp_path.iterdir())
    found = os.fstat(descriptor)
    assert (found.st_mode & 0o777, found.st_nlink) == (0o600, 0)
    os.close(descriptor)


def test_a_file_system_without_nameless_files_serves_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    descriptor = open_nameless(tmp_path)
    assert not list(tmp_path.iterdir())
    found = os.fstat(descriptor)
    assert (found.st_mode & 0o777, found.st_nlink) == (0o600, 0)
    os.close(descriptor)


def test_extents_share_a_segment_and_do_not_overlap(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path, 100_000)
    before = open_descriptors()
    extents = [folder.write([bytes([number]) * 100, b"", bytes([number]) * number]) for number in range(50)]
    assert open_descriptors() - before == 2
    for number, extent in enumerate(extents):
        assert extent.view() == bytes([number]) * (100 + number)
    assert folder.bytes == sum(extent.size for extent in extents)


def test_a_segment_goes_with_its_last_extent(tmp_path: Path, small_segments: None) -> None:
    gc.collect()
    before = open_descriptors()
    folder = SpillFolder(tmp_path, 100_000)
    first, second, third = (folder.write([b"x" * 400]) for _ in range(3))
    first.release()
    first.release()
    assert folder.bytes == 1200  # the second is in the same file
    second.release()
    assert folder.bytes == 400
    third.release()
    assert folder.bytes == 0
    del first, second, third
    gc.collect()
    assert open_descriptors() == before


def test_a_large_value_has_a_file_of_its_own(tmp_path: Path, small_segments: None) -> None:
    folder = SpillFolder(tmp_path, 100_000)
    small = folder.write([b"x"])
    large = folder.write([b"y" * 5000])
    other = folder.write([b"z"])
    assert small.segment is other.segment is not large.segment
    large.release()
    assert folder.bytes == 2
    assert (small.view(), other.view()) == (b"x", b"z")


def test_an_extent_takes_no_more_than_its_size(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path, 1000)
    extent, neighbour = folder.reserve(10), folder.write([b"y" * 10])
    extent.append([b"12345678"])
    with pytest.raises(LimitExceededError, match="11 bytes are too many"):
        extent.append([b"9", b"01"])
    extent.append([b"90"])
    assert (extent.view(), neighbour.view()) == (b"1234567890", b"y" * 10)


def test_what_was_written_counts_until_its_segment_goes(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path, 1000)
    keeps = folder.write([b"x" * 100])
    folder.write([b"y" * 800]).release()
    with pytest.raises(LimitExceededError, match="1100 bytes, limit is 1000"):
        folder.write([b"z" * 200])
    keeps.release()
    folder.write([b"z" * 1000])


def test_any_number_of_pieces_of_any_shape_is_written(tmp_path: Path) -> None:
    numbers = memoryview(b"12345678" * 10).cast("Q")
    pieces = [b"", *(b"%d" % number for number in range(3 * PIECES_MAX)), numbers, bytearray(b"end"), b""]
    descriptor = open_nameless(tmp_path)
    end = write_at(descriptor, pieces, 7)
    expected = bytes(7) + b"".join(pieces)
    assert end == len(expected)
    assert os.pread(descriptor, end + 1, 0) == expected
    os.close(descriptor)


def test_a_write_that_ends_early_goes_on_where_it_ended() -> None:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    pieces = [bytes(4 * 1024 * 1024)] * PIECES_MAX  # 4 GiB, of which one call takes a page less than 2
    assert write_at(descriptor, pieces, 0) == 4 * 1024**3
    os.close(descriptor)


def test_a_write_that_fails_has_written_the_beginning_and_says_so(tmp_path: Path) -> None:
    pieces = [bytes([number]) * 1000 for number in range(5)]
    descriptor = open_nameless(tmp_path)
    with file_limit(2500), pytest.raises(OSError, match="too large"):
        write_at(descriptor, pieces, 0)
    assert os.pread(descriptor, 5000, 0) == b"".join(pieces)[:2500]
    os.close(descriptor)


def test_a_disk_that_takes_no_more_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    gc.collect()
    before = open_descriptors()
    folder = SpillFolder(tmp_path, 10**9)
    with file_limit(1_000_000), pytest.raises(LimitExceededError, match="could not be spilled"):
        folder.write([bytes(2_000_000)])
    assert (folder.bytes, open_descriptors()) == (0, before)
    extent = folder.reserve(2_000_000)
    with file_limit(1_000_000), pytest.raises(LimitExceededError, match="could not be spilled"):
        extent.append([bytes(2_000_000)])
    extent.release()
    assert folder.bytes == 0


def test_a_forked_process_does_not_write_into_its_parents_files(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKING, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "0 True first\n"
