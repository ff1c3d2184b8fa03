"""What a recorder gives up when its wall clock steps; that events stay in order is tried in `tests/reliability`."""

from pathlib import Path

from echoic.recorder import Disk, Journal, JournalOptions, JournalWriter, Retention, verify
from echoic.testing.kill_roles import Tick, ticks
from echoic.wire import Batch

ID = bytes(16)
SOURCE = 7
BATCHES = 60
EACH = 50
DAY_NS = 86_400_000_000_000
SEGMENT_BYTES = 8192
KEEP_ALL = Retention()


def write(path: Path, times: list[int], retention: Retention = KEEP_ALL, opened_for: int = 7) -> None:
    """Write a batch at each time, and open the journal anew now and then."""
    options = JournalOptions(segment_bytes_max=SEGMENT_BYTES, retention=retention)
    for start in range(0, len(times), opened_for):
        writer = JournalWriter.open(Disk(path), "ticks", options, id=ID, now_ns=times[start])
        for number, now_ns in enumerate(times[start : start + opened_for], start):
            assert writer.append(Batch.of(ticks(0, number * EACH, EACH), Tick), SOURCE, number * EACH, now_ns) == EACH
            writer.commit(now_ns)
        writer.close(now_ns)


def test_what_is_young_is_not_removed_when_the_clock_goes_back(tmp_path: Path) -> None:
    times = [20_000 * DAY_NS - number * DAY_NS for number in range(BATCHES)]
    write(tmp_path, times, Retention(age_ns_max=DAY_NS))
    assert sum(one.batch.count for one in Journal(tmp_path, "ticks").read()) == BATCHES * EACH


def test_a_clock_that_leaps_ahead_makes_segments_old_but_numbers_go_on(tmp_path: Path) -> None:
    times = [20_000 * DAY_NS + number * 1_000_000_000 for number in range(BATCHES - 1)] + [40_000 * DAY_NS]
    write(tmp_path, times, Retention(age_ns_max=DAY_NS))
    journal = Journal(tmp_path, "ticks")
    assert journal.heads == (BATCHES * EACH,)
    assert journal.firsts[0] > 0
    assert [one.first for one in journal.read(start=journal.firsts[0])][-1] == (BATCHES - 1) * EACH
    assert verify(Disk(tmp_path), "ticks") == []
