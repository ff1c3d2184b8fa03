"""The simulated disk: what it must keep, what it may lose, and that it does lose all of it with some seed."""

import errno
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import LocalError
from echoic.testing import SimulatedDisk
from echoic.testing.file_image import SECTOR_BYTES

if TYPE_CHECKING:
    from echoic.recorder import Storage

SEEDS = range(300)


def disk_with(data: bytes, *, seed: int = 1, path: str = "a") -> SimulatedDisk:
    """A disk with one file that is wholly on it."""
    disk = SimulatedDisk(Random(seed))
    file = disk.open(path, create=True)
    file.append([data])
    file.sync()
    disk.sync_directory("")
    return disk


def outcomes(happen: Callable[[SimulatedDisk], None], data: bytes = b"") -> set[bytes | None]:
    """What a file can hold after something happened to it and the power was lost; None: it is gone."""
    found: set[bytes | None] = set()
    for seed in SEEDS:
        disk = disk_with(data, seed=seed)
        happen(disk)
        disk.crash()
        found.add(disk.read("a") if disk.exists("a") else None)
    return found


def test_it_is_a_storage() -> None:
    storage: Storage = SimulatedDisk(Random(0))
    storage.make_directory("x/y")
    file = storage.open("x/y/b", create=True)
    file.append([b"one", memoryview(b"two")])
    assert bytes(file.view()) == b"onetwo"
    file.truncate(4)
    file.append([b"!"])
    assert (bytes(file.view()), file.size()) == (b"onet!", 5)
    assert storage.names("x") == ["y"]
    assert storage.names("x/y") == ["b"]
    storage.open("x/y/a", create=True).close()
    storage.rename("x/y/a", "x/y/b")
    assert storage.names("x/y") == ["b"]
    assert storage.open("x/y/b").size() == 0
    assert file.size() == 5, "who has a file open keeps it"
    storage.remove("x/y/b")
    assert not storage.exists("x/y/b")
    assert storage.exists("x/y")


def test_mistakes_raise_what_the_operating_system_raises() -> None:
    disk = disk_with(b"")
    with pytest.raises(FileNotFoundError):
        disk.open("b")
    with pytest.raises(FileExistsError):
        disk.open("a", create=True)
    with pytest.raises(FileNotFoundError):
        disk.open("x/b", create=True)
    with pytest.raises(NotADirectoryError):
        disk.names("a")
    with pytest.raises(NotADirectoryError):
        disk.make_directory("a/b")
    with pytest.raises(IsADirectoryError):
        disk.open("")
    with pytest.raises(FileNotFoundError):
        disk.rename("b", "a")
    with pytest.raises(OSError, match="Bad file descriptor"):
        disk.open("a").append([b"x"])
    with pytest.raises(LocalError, match="leads out of the disk"):
        disk.open("../a")
    file = disk.open("a", write=True)
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.append([b"x"])


def test_a_view_shows_a_moment() -> None:
    disk = disk_with(b"one")
    file = disk.open("a", write=True)
    view = file.view()
    file.append([b"two"])
    file.truncate(1)
    assert bytes(view) == b"one"
    assert view.readonly


def test_what_was_synced_survives_every_loss_of_power() -> None:
    data = Random(0).randbytes(3000)

    def write(disk: SimulatedDisk) -> None:
        disk.open("a", write=True).append([b"x" * 2000])

    for found in outcomes(write, data):
        assert found is not None
        assert found[:3000] == data


def test_unsynced_bytes_survive_wholly_in_part_out_of_order_or_not_at_all() -> None:
    written = bytes(range(1, 251)) * 12

    def write(disk: SimulatedDisk) -> None:
        file = disk.open("a", write=True)
        file.append([written[:1000]])
        file.append([written[1000:]])

    found = [each[10:] for each in outcomes(write, b"0123456789") if each is not None]
    assert b"" in found
    assert written in found
    assert any(each and written.startswith(each) and len(each) < len(written) for each in found)
    late = SECTOR_BYTES * 4
    scattered = [each for each in found if len(each) > late + 100 and not written.startswith(each)]
    assert any(each[late : late + 100] == written[late : late + 100] for each in scattered), (
        "a later sector without an earlier one"
    )
    assert any(each[: SECTOR_BYTES - 10] == bytes(SECTOR_BYTES - 10) for each in scattered), (
        "the length without the bytes"
    )
    assert any(each[:100] == written[:100] for each in scattered)


def test_a_sector_is_torn_nowhere() -> None:
    written = Random(3).randbytes(SECTOR_BYTES * 6)

    def write(disk: SimulatedDisk) -> None:
        disk.open("a", write=True).append([written])

    for found in outcomes(write):
        assert found is not None
        for start in range(0, len(found) - SECTOR_BYTES + 1, SECTOR_BYTES):
            sector, meant = found[start : start + SECTOR_BYTES], written[start : start + SECTOR_BYTES]
            same = sum(one == other for one, other in zip(sector, meant, strict=True))
            assert same == SECTOR_BYTES or same < SECTOR_BYTES // 8 or not any(sector[same:])


def test_bytes_of_files_that_are_gone_come_back_as_garbage() -> None:
    def write(disk: SimulatedDisk) -> None:
        secret = disk.open("b", create=True)
        secret.append([b"secret!!" * SECTOR_BYTES])
        disk.remove("b")
        disk.open("a", write=True).append([b"x" * 4000])

    assert any(b"secret!!" in (found or b"") for found in outcomes(write))


def test_a_cut_without_sync_may_be_undone() -> None:
    def cut(disk: SimulatedDisk) -> None:
        disk.open("a", write=True).truncate(100)

    data = Random(0).randbytes(3000)
    found = outcomes(cut, data)
    assert {data, data[:100]} <= found
    assert all(each is not None and each.startswith(data[:100]) for each in found)


def test_a_cut_and_what_was_written_after_it_may_arrive_in_any_order() -> None:
    def cut(disk: SimulatedDisk) -> None:
        file = disk.open("a", write=True)
        file.truncate(1024)
        file.append([b"y" * 1024])

    found = [each for each in outcomes(cut, b"x" * 2048) if each is not None]
    assert all(each[:1024] == b"x" * 1024 for each in found)
    assert {each for each in found if len(each) == 2048} >= {b"x" * 2048, b"x" * 1024 + b"y" * 1024}
    assert b"x" * 1536 + b"y" * 512 in found


def test_a_name_is_safe_only_when_its_directory_was_synced() -> None:
    present = set()
    for seed in SEEDS:
        disk = SimulatedDisk(Random(seed))
        file = disk.open("a", create=True)
        file.append([b"data"])
        file.sync()
        disk.crash()
        present.add(disk.exists("a"))
    assert present == {True, False}


def test_a_directory_that_was_not_synced_above_takes_everything_with_it() -> None:
    present = set()
    for seed in SEEDS:
        disk = SimulatedDisk(Random(seed))
        disk.make_directory("x/y")
        disk.open("x/y/a", create=True).sync()
        disk.sync_directory("x/y")
        disk.sync_directory("x")
        disk.crash()
        present.add(disk.exists("x/y/a"))
        assert disk.exists("x/y/a") == disk.exists("x")
    assert present == {True, False}


def test_a_rename_is_done_or_not_and_nothing_between() -> None:
    found = set()
    for seed in SEEDS:
        disk = disk_with(b"former", seed=seed)
        file = disk.open("a.tmp", create=True)
        file.append([b"later"])
        file.sync()
        disk.rename("a.tmp", "a")
        disk.crash()
        found.add(disk.read("a"))
    assert found == {b"former", b"later"}


def test_a_rename_is_safe_when_the_directory_was_synced() -> None:
    for seed in SEEDS:
        disk = disk_with(b"former", seed=seed)
        file = disk.open("a.tmp", create=True)
        file.append([b"later"])
        file.sync()
        disk.rename("a.tmp", "a")
        disk.sync_directory("")
        disk.crash()
        assert disk.files() == {"a": 5}


def test_a_rename_between_directories_is_safe_when_both_were_synced() -> None:
    places = set()
    for seed in SEEDS:
        disk = disk_with(b"data", seed=seed)
        disk.make_directory("x")
        disk.sync_directory("")
        disk.rename("a", "x/a")
        disk.sync_directory("x")
        if seed % 2:
            disk.sync_directory("")
        disk.crash()
        places.add((seed % 2, *disk.files()))
    assert places == {(0, "a"), (0, "x/a"), (1, "x/a")}


def test_a_removed_file_may_come_back() -> None:
    def remove(disk: SimulatedDisk) -> None:
        disk.remove("a")

    assert outcomes(remove, b"data") == {b"data", None}


def test_a_removed_file_that_comes_back_has_lost_power_too() -> None:
    def remove(disk: SimulatedDisk) -> None:
        disk.open("a", write=True).append([b"more"])
        disk.remove("a")

    assert outcomes(remove, b"data") >= {b"data", b"datamore", None}


def test_open_files_and_locks_end_with_the_power_and_with_the_process() -> None:
    for end in (SimulatedDisk.crash, SimulatedDisk.kill):
        disk = disk_with(b"data")
        file, lock = disk.open("a", write=True), disk.lock("lock")
        with pytest.raises(BlockingIOError):
            disk.lock("lock")
        end(disk)
        for use in (file.size, file.sync, file.view, lambda file=file: file.append([b"x"])):
            with pytest.raises(OSError, match="the process ended"):
                use()
        again = disk.lock("lock")
        lock.release()
        with pytest.raises(BlockingIOError):
            disk.lock("lock")
        again.release()
        disk.lock("lock")


def test_a_killed_process_loses_nothing_it_has_written() -> None:
    disk = disk_with(b"data")
    disk.open("a", write=True).append([b"more"])
    disk.open("b", create=True)
    disk.kill()
    assert disk.files() == {"a": 8, "b": 0}
    disk.open("a").sync()
    disk.crash()
    assert disk.read("a") == b"datamore"


def test_a_full_disk_takes_a_part_and_goes_on_when_there_is_space() -> None:
    sizes = set()
    for seed in SEEDS:
        disk = disk_with(b"x" * 100, seed=seed)
        disk.capacity_bytes = 150
        file = disk.open("a", write=True)
        with pytest.raises(OSError, match="No space left on device") as caught:
            file.append([b"y" * 40, b"y" * 40])
        assert caught.value.errno == errno.ENOSPC
        assert 100 <= file.size() <= 150
        sizes.add(file.size())
        file.truncate(100)
        file.append([b"z" * 50])
        with pytest.raises(OSError, match="No space left on device"):
            disk.open("b", create=True)
        disk.capacity_bytes = 0
        disk.open("b", create=True)
        assert disk.statistics().full == 2
    assert {100, 150} < sizes


@pytest.mark.parametrize("cached", [False, True])
def test_a_sync_that_fails_loses_what_it_was_to_write(cached: bool) -> None:
    lost = 0
    for seed in SEEDS:
        disk = disk_with(b"data", seed=seed)
        file = disk.open("a", write=True)
        disk.fail_sync(after=1, cached=cached)
        file.append([b"safe"])
        file.sync()
        file.append([b"lost"])
        with pytest.raises(OSError, match="Input/output error"):
            file.sync()
        assert disk.read("a").startswith(b"datasafe")
        if cached:
            assert disk.read("a") == b"datasafelost"
        file.sync()
        disk.crash()
        assert disk.read("a").startswith(b"datasafe")
        lost += disk.read("a") != b"datasafelost"
    assert lost > len(SEEDS) // 4


def test_a_sync_of_a_directory_that_fails_keeps_no_name() -> None:
    present = set()
    for seed in SEEDS:
        disk = SimulatedDisk(Random(seed))
        disk.open("a", create=True)
        disk.fail_sync()
        with pytest.raises(OSError, match="Input/output error"):
            disk.sync_directory("")
        disk.crash()
        present.add(disk.exists("a"))
    assert present == {True, False}


def test_a_stopped_disk_does_nothing_more_until_it_is_started_again() -> None:
    sizes = set()
    for seed in SEEDS:
        disk = disk_with(b"", seed=seed)
        file = disk.open("a", write=True)
        disk.stop(after=1)
        file.append([b"one"])
        with pytest.raises(OSError, match="the power is off"):
            file.append([b"two"])
        for use in (
            file.size,
            file.view,
            file.sync,
            lambda disk=disk: disk.names(""),
            lambda disk=disk: disk.lock("b"),
        ):
            with pytest.raises(OSError, match="the power is off"):
                use()
        disk.kill()
        assert b"onetwo".startswith(disk.read("a"))
        sizes.add(len(disk.read("a")))
    assert sizes == {3, 4, 5, 6}


def test_a_flipped_bit_stays_flipped_and_twice_is_none() -> None:
    disk = disk_with(b"\0\0")
    disk.flip("a", 9)
    assert disk.read("a") == b"\0\2"
    disk.crash()
    assert bytes(disk.open("a").view()) == b"\0\2"
    disk.flip("a", 9)
    assert disk.read("a") == b"\0\0"
    with pytest.raises(LocalError, match="no bit 16, the file has 16"):
        disk.flip("a", 16)


def test_bytes_that_cannot_be_read_are_an_error_as_long_as_the_file_has_them() -> None:
    disk = disk_with(b"x" * 100)
    file = disk.open("a", write=True)
    disk.fail_read("a", 90, 95)
    disk.rename("a", "b")
    with pytest.raises(OSError, match="Input/output error"):
        file.view()
    with pytest.raises(OSError, match="Input/output error"):
        file.read(80, 11)
    assert file.read(80, 10) + file.read(95, 10) == b"x" * 15
    file.truncate(90)
    assert len(file.view()) == 90
    file.append([b"y" * 10])
    with pytest.raises(OSError, match="Input/output error"):
        disk.open("b").view()
    disk.mend()
    assert len(file.view()) == 100
    disk.fail_read("b")
    with pytest.raises(OSError, match="Input/output error"):
        file.view()


def test_a_copy_goes_its_own_way() -> None:
    disk = disk_with(b"data")
    disk.lock("lock")
    other = disk.copy(Random(2))
    other.lock("lock")
    other.flip("a", 0)
    other.open("a", write=True).append([b"more"])
    assert disk.read("a") == b"data"
    assert other.read("a") == b"eatamore"


def test_it_counts_what_it_does() -> None:
    disk = disk_with(b"data")
    file = disk.open("a", write=True)
    file.append([b"x" * 5000])
    disk.crash()
    disk.kill()
    counted = disk.statistics()
    assert (counted.appends, counted.bytes, counted.syncs, counted.directory_syncs) == (2, 5004, 1, 1)
    assert (counted.crashes, counted.kills) == (1, 1)
    assert disk.used_bytes == len(disk.read("a"))


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 1500)),
            st.tuples(st.just("truncate"), st.integers(0, 4000)),
            st.tuples(st.just("sync"), st.just(0)),
        ),
        max_size=12,
    ),
    st.integers(0, 2**32),
)
def test_whatever_is_done_the_sectors_before_the_first_unsynced_change_are_as_synced(
    steps: list[tuple[str, int]], seed: int
) -> None:
    disk = disk_with(b"start", seed=seed)
    file = disk.open("a", write=True)
    synced, safe = b"start", 5
    for number, (step, size) in enumerate(steps):
        match step:
            case "append":
                safe = min(safe, file.size())
                file.append([bytes([number + 1]) * size])
            case "truncate":
                file.truncate(min(size, file.size()))
                safe = min(safe, file.size())
            case _:
                file.sync()
                synced = disk.read("a")
                safe = len(synced)
    disk.crash()
    assert disk.read("a")[:safe] == synced[:safe]
    assert disk.read("a") == bytes(disk.open("a").view())


def test_a_seed_gives_the_same_losses_again() -> None:
    def run(seed: int) -> list[bytes]:
        disk, found = disk_with(b"", seed=seed), []
        for _ in range(20):
            disk.open("a", write=True).append([b"x" * 700])
            disk.crash()
            found.append(disk.read("a"))
        return found

    assert run(7) == run(7)
    assert run(7) != run(8)
