"""A recorder whose wall clock steps, back and forth, also while it was not running: only times differ, never events."""

import random
from pathlib import Path

import pytest

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


def stepping_clock(seed: int) -> list[int]:
    """Return the times of batches: mostly a second apart, now and then days back or forth."""
    chance, now_ns, times = random.Random(seed), 20_000 * DAY_NS, list[int]()
    for _ in range(BATCHES):
        times.append(now_ns)
        step = chance.choice([0, 1_000_000_000, 1_000_000_000, -DAY_NS, DAY_NS, 400 * DAY_NS, -400 * DAY_NS])
        now_ns = max(0, now_ns + step)
    return times


def write(path: Path, times: list[int], retention: Retention = KEEP_ALL, opened_for: int = 7) -> None:
    """Write a batch at each time, and open the journal anew now and then."""
    options = JournalOptions(segment_bytes_max=SEGMENT_BYTES, retention=retention)
    for start in range(0, len(times), opened_for):
        writer = JournalWriter.open(Disk(path), "ticks", options, id=ID, now_ns=times[start])
        for number, now_ns in enumerate(times[start : start + opened_for], start):
            assert writer.append(Batch.of(ticks(0, number * EACH, EACH), Tick), SOURCE, number * EACH, now_ns) == EACH
            writer.commit(now_ns)
        writer.close(now_ns)


@pytest.mark.parametrize("seed", range(5))
def test_every_event_is_there_in_order_with_the_time_that_the_clock_had(tmp_path: Path, seed: int) -> None:
    times = stepping_clock(seed)
    write(tmp_path, times)
    found = [(one.first, one.time_ns) for one in Journal(tmp_path, "ticks").read()]
    assert found == [(number * EACH, now_ns) for number, now_ns in enumerate(times)]
    assert verify(Disk(tmp_path), "ticks") == []


@pytest.mark.parametrize("seed", range(5))
def test_a_window_of_time_has_just_what_the_clock_put_there(tmp_path: Path, seed: int) -> None:
    times, chance = stepping_clock(seed), random.Random(seed)
    write(tmp_path, times)
    for _ in range(20):
        since, until = sorted(chance.sample(times, 2))
        found = [one.first // EACH for one in Journal(tmp_path, "ticks").read(since=since, until=until)]
        assert found == [number for number, now_ns in enumerate(times) if since <= now_ns < until]


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
