"""The log of an intake on a disk that fills up and fails; through losses of power it goes in `tests/reliability`."""

from random import Random

import hypothesis.strategies as some
import pytest
from hypothesis import given, settings

from echoic.errors import JournalError
from echoic.hub.intake_book import Attempt
from echoic.hub.intake_log import IntakeLog, LoggedPart
from echoic.hub.intake_spool import Spool
from echoic.testing import SimulatedDisk

FOLDER = "ticks/intake"
LOG = f"{FOLDER}/log"


def body_of(epoch: int) -> bytes:
    return Random(epoch).randbytes(Random(epoch).choice([1, 100, 3000]))


def append(log: IntakeLog, epoch: int) -> None:
    body = body_of(epoch)
    log.append("query", epoch, [LoggedPart(epoch % 2, len(body), (len(body),))], [body])


def contents(log: IntakeLog) -> dict[int, bytes]:
    return {entry.epoch.epoch: b"".join(body for _, body in log.bodies(entry)) for entry in log.entries}


def opened(disk: SimulatedDisk) -> IntakeLog:
    return IntakeLog.open(disk, FOLDER, (0, 0))


def test_what_was_committed_is_read_back_with_its_numbers() -> None:
    disk = SimulatedDisk(Random(0))
    log = opened(disk)
    for epoch in range(5):
        append(log, epoch)
    nexts = log.nexts
    log.close()
    again = opened(disk)
    assert contents(again) == {epoch: body_of(epoch) for epoch in range(5)}
    assert (again.nexts, again.begun, again.queries) == (nexts, (0, 0), ())
    again.renew([("query", 4)])
    append(again, 5)
    again.close()
    third = opened(disk)
    assert (third.begun, third.queries, contents(third)) == (nexts, (("query", 4),), {5: body_of(5)})


@given(seed=some.integers(0, 2**32), place=some.floats(0, 0.999))
@settings(max_examples=60, deadline=None)
def test_a_bit_that_has_changed_is_told_unless_it_is_in_the_last_record(seed: int, place: float) -> None:
    disk = SimulatedDisk(Random(seed))
    log = opened(disk)
    for epoch in range(4):
        append(log, epoch)
    last = log.size
    append(log, 4)
    disk.flip(LOG, int(place * 8 * last))
    with pytest.raises(JournalError, match=r"damaged|no beginning"):
        opened(disk)


def test_a_full_disk_refuses_a_commit_and_leaves_the_log_sound() -> None:
    disk = SimulatedDisk(Random(1))
    log = opened(disk)
    append(log, 0)
    disk.capacity_bytes = disk.used_bytes + 10
    with pytest.raises(JournalError, match="cannot commit an epoch"):
        append(log, 1)
    disk.capacity_bytes = 0
    append(log, 1)
    assert contents(opened(disk)) == {0: body_of(0), 1: body_of(1)}


def test_after_a_sync_that_failed_nothing_is_committed_until_the_log_is_opened_again() -> None:
    disk = SimulatedDisk(Random(1))
    log = opened(disk)
    append(log, 0)
    disk.fail_sync()
    for _ in range(2):
        with pytest.raises(JournalError):
            append(log, 1)
    assert "start the intake again" in log.failed
    again = opened(disk)
    assert set(contents(again)) in ({0}, {0, 1})


@pytest.mark.parametrize("after", [0, 1])
def test_what_is_committed_after_a_log_could_not_be_begun_anew_is_there_or_refused(after: int) -> None:
    disk = SimulatedDisk(Random(1))
    log = opened(disk)
    append(log, 0)
    disk.fail_sync(after)  # of the other file, or of its name, when it is in the place of the first
    with pytest.raises(JournalError, match="cannot begin the log of an intake anew"):
        log.renew([("query", 0)])
    disk.mend()
    if after:
        with pytest.raises(JournalError, match="may have been replaced"):
            append(log, 1)
        return
    append(log, 1)
    assert contents(opened(disk)) == {0: body_of(0), 1: body_of(1)}


@pytest.mark.parametrize("fails", [False, True], ids=["killed before its sync", "its sync failed"])
def test_an_epoch_that_is_found_is_on_the_disk_before_anybody_is_told_so(fails: bool) -> None:
    for seed in range(20):
        disk = SimulatedDisk(Random(seed))
        log = opened(disk)
        disk.sync_directory("")
        append(log, 0)
        if fails:
            disk.fail_sync(cached=True)
        else:
            disk.stop(1)
        with pytest.raises(JournalError):
            append(log, 1)
        disk.kill()
        found = contents(opened(disk))
        disk.crash()
        assert contents(opened(disk)) == found


def test_rows_whose_sync_failed_are_never_taken_for_safe() -> None:
    disk = SimulatedDisk(Random(1))
    disk.make_directory(FOLDER)
    spool = Spool(disk, FOLDER, memory_bytes_max=0)
    attempt = Attempt("query", 0, 0, 1)
    spool.put(attempt, b"12345678", 1)
    disk.fail_sync()
    for problem in ("cannot sync staged rows", "staged rows may be lost"):
        with pytest.raises(JournalError, match=problem):
            spool.sync((attempt,))


def test_a_journal_with_other_partitions_is_told() -> None:
    disk = SimulatedDisk(Random(1))
    opened(disk).close()
    with pytest.raises(JournalError, match="the log is for 2 partitions, the journal has 3"):
        IntakeLog.open(disk, FOLDER, (0, 0, 0))


def test_files_of_rows_that_were_never_committed_are_cleared() -> None:
    disk = SimulatedDisk(Random(1))
    log = opened(disk)
    disk.sync_directory("")
    spool = Spool(disk, FOLDER, memory_bytes_max=0)
    kept, dropped = (Attempt("query", 0, partition, 1) for partition in range(2))
    for attempt in (kept, dropped):
        spool.put(attempt, b"abc", 1)
        spool.put(attempt, b"de", 1)
    spool.sync((kept,))
    found = spool.get(kept)
    entry = log.append("query", 0, [LoggedPart(0, found.rows, tuple(found.sizes), found.file)], [])
    spool.drop(kept, committed=True)
    disk.crash()
    again = opened(disk)
    again.clear(again.entries)
    assert sorted(disk.files()) == sorted([LOG, f"{FOLDER}/{found.file}"])
    assert [body for _, body in again.bodies(again.entries[0])] == [b"abc", b"de"]
    again.forget(entry)
    assert list(disk.files()) == [LOG]


def test_rows_that_cannot_be_spilled_are_refused_and_stay_in_memory() -> None:
    disk = SimulatedDisk(Random(1))
    disk.make_directory(FOLDER)
    spool = Spool(disk, FOLDER, memory_bytes_max=10)
    attempt = Attempt("query", 0, 0, 1)
    spool.put(attempt, b"12345678", 1)
    disk.capacity_bytes = 1
    with pytest.raises(JournalError, match="staged rows"):
        spool.put(attempt, b"12345678", 1)
    assert (spool.memory_bytes, spool.get(attempt).sizes) == (8, [8])
    spool.drop(attempt)
    assert spool.memory_bytes == 0
