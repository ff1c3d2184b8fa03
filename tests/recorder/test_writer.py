import errno
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import numpy
import pytest
from hypothesis import given, settings

from echoic.errors import ClosedError, JournalError, LimitExceededError, LocalError
from echoic.recorder import Committed, Disk, JournalOptions, JournalWriter, LocalShelf, Retention, verify
from echoic.recorder.blocks import BLOCK_PAYLOAD_BYTES_MAX
from echoic.wire import Batch
from tests.recorder.written import CHANNEL, OTHER, batch, content, disk, events, opened, overwrite

SEGMENT = "trades/0/00000000000000000000.segment"


def test_what_was_committed_is_there_when_the_journal_is_opened_again() -> None:
    storage = disk()
    writer = opened(storage)
    assert writer.append(batch(1, 0, 3), 1, 0, 5) == 3
    assert writer.heads == (0,)
    assert not writer.positions
    assert writer.commit(6) == Committed({1: 3}, (3,))
    writer.close(7)
    writer.close(7)
    again = opened(storage)
    assert (again.heads, again.firsts, dict(again.positions), again.recovered) == ((3,), (0,), {1: 3}, ())
    assert events(storage) == [(0, 1, 0), (1, 1, 1), (2, 1, 2)]
    assert not verify(storage, CHANNEL)


def test_the_journal_keeps_its_id_and_partitions() -> None:
    storage = disk()
    opened(storage, partitions=3).close(0)
    again = JournalWriter.open(storage, CHANNEL, JournalOptions(partitions=5), id=bytes(16), now_ns=0)
    assert (again.id, again.partitions) == (bytes(range(16)).hex(), 3)


def test_events_of_a_source_go_to_its_partition() -> None:
    storage = disk()
    writer = opened(storage, partitions=2)
    writer.append(batch(4, 0, 1), 4, 0, 0)
    writer.append(batch(7, 0, 2), 7, 0, 0)
    assert writer.commit(0) == Committed({4: 1, 7: 2}, (1, 2))
    assert events(storage, 0) == [(0, 4, 0)]
    assert events(storage, 1) == [(0, 7, 0), (1, 7, 1)]


def test_what_the_journal_has_is_dropped_also_in_part_and_before_it_is_committed() -> None:
    storage = disk()
    writer = opened(storage)
    assert writer.append(batch(1, 0, 5), 1, 0, 0) == 5
    assert writer.append(batch(1, 0, 5), 1, 0, 0) == 0
    assert writer.append(batch(1, 3, 4), 1, 3, 0) == 2
    writer.close(0)
    again = opened(storage)
    assert again.append(batch(1, 5, 4), 1, 5, 0) == 2
    again.commit(0)
    assert [number for _, _, number in events(storage)] == list(range(9))
    assert again.statistics().duplicates == 2


def test_numbers_left_out_are_recorded_as_a_gap() -> None:
    storage = disk()
    writer = opened(storage)
    writer.append(batch(1, 100, 1), 1, 100, 0)
    writer.append(batch(1, 105, 1), 1, 105, 0)
    writer.miss(1, 104, 110, "the source was killed", 0)
    writer.miss(1, 90, 100, "known", 0)
    writer.commit(0)
    assert events(storage) == [(0, 1, 100), (-1, 1, 104), (1, 1, 105), (-1, 1, 110)]
    assert dict(writer.positions) == {1: 111}
    assert writer.statistics().gaps == 2


def test_a_type_is_described_once_in_each_segment() -> None:
    storage = disk()
    writer = opened(storage, segment_bytes_max=600)
    for number in range(20):
        writer.append(batch(1, number, 1, OTHER if number % 3 else batch(1, 0, 1).array.dtype), 1, number, number)
        writer.commit(number)
    writer.close(20)
    assert writer.statistics().segments > 3
    assert [number for _, _, number in events(storage)] == list(range(20))
    assert not verify(storage, CHANNEL)


def test_a_batch_keeps_its_bytes_when_its_memory_is_used_again() -> None:
    storage = disk()
    array = numpy.zeros(2, [("source", "<u8"), ("number", "<u8")])
    writer = opened(storage)
    writer.append(Batch.of(array), 1, 0, 0)
    array["number"] = 99
    writer.commit(0)
    assert [number for _, _, number in events(storage)] == [0, 0]


def test_a_batch_larger_than_a_block_becomes_several() -> None:
    storage = disk()
    count = BLOCK_PAYLOAD_BYTES_MAX // 16 + 1
    writer = opened(storage)
    assert writer.append(batch(1, 0, count), 1, 0, 0) == count
    writer.close(0)
    assert opened(storage).heads == (count,)


def test_an_event_that_no_journal_can_have_is_no_fault_of_the_journal() -> None:
    writer = opened(disk())
    picture = numpy.zeros(1, numpy.dtype([("pixels", "u1", (BLOCK_PAYLOAD_BYTES_MAX,))]))
    with pytest.raises(LimitExceededError, match=f"limit is {BLOCK_PAYLOAD_BYTES_MAX} - at"):
        writer.append(Batch.of(picture), 1, 0, 0)
    writer.append(batch(1, 1, 1), 1, 1, 0)
    assert writer.commit(0).heads == (1,)


def test_a_full_disk_is_told_and_everything_is_kept_until_there_is_room() -> None:
    storage = disk()
    writer = opened(storage)
    writer.append(batch(1, 0, 10), 1, 0, 0)
    writer.commit(0)
    size = storage.files()[SEGMENT]
    storage.capacity_bytes = storage.used_bytes + 100
    writer.append(batch(1, 10, 100), 1, 10, 0)
    with pytest.raises(JournalError, match="No space left") as caught:
        writer.commit(0)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert storage.files()[SEGMENT] == size
    assert not writer.failed
    assert writer.heads == (10,)
    storage.capacity_bytes = 0
    assert writer.commit(0) == Committed({1: 110}, (110,))
    assert len(events(storage)) == 110
    assert not verify(storage, CHANNEL)


def test_a_full_disk_puts_off_the_next_segment_and_not_the_events() -> None:
    storage = disk()
    writer = opened(storage, segment_bytes_max=500)
    storage.capacity_bytes = storage.used_bytes + 1000
    writer.append(batch(1, 0, 40), 1, 0, 0)
    assert writer.commit(0).heads == (40,)
    storage.capacity_bytes = storage.used_bytes
    assert writer.commit(0).heads == (40,)
    assert "cannot begin a segment" in writer.trouble
    assert writer.statistics().segments == 1
    storage.capacity_bytes = 0
    writer.append(batch(1, 40, 1), 1, 40, 0)
    writer.commit(0)
    assert writer.statistics().segments == 2
    assert writer.trouble == ""
    assert not verify(storage, CHANNEL)


def test_a_mark_without_room_is_written_when_there_is_some() -> None:
    storage = disk()
    writer = opened(storage)
    writer.append(batch(1, 0, 10), 1, 0, 0)
    storage.capacity_bytes = storage.used_bytes + writer.pending_bytes + 20
    assert writer.commit(0).heads == (10,)
    assert not writer.settle(0)
    assert LocalShelf(storage, CHANNEL).heads() == (0,)
    storage.capacity_bytes = 0
    assert writer.settle(0)
    assert LocalShelf(storage, CHANNEL).heads() == (10,)


def test_a_partition_that_was_written_shows_its_head_though_another_could_not_be() -> None:
    storage = disk()
    writer = opened(storage, partitions=2)
    storage.capacity_bytes = storage.used_bytes + 2000
    writer.append(batch(2, 0, 10), 2, 0, 0)
    writer.append(batch(1, 0, 1000), 1, 0, 0)
    with pytest.raises(JournalError, match="No space left"):
        writer.commit(0)
    assert writer.heads == (10, 0)
    storage.capacity_bytes = 0
    assert writer.commit(0) == Committed({2: 10, 1: 1000}, (10, 1000))


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("hasty_threads")
def test_who_looks_on_never_takes_a_segment_that_is_being_sealed_for_removed() -> None:
    seen: set[tuple[int, ...]] = set()
    for seed in range(50):
        writer, done = opened(disk(seed), segment_bytes_max=200), threading.Event()

        def look(writer: JournalWriter = writer, done: threading.Event = done) -> None:
            while not done.is_set():
                seen.add(writer.firsts)

        onlooker = threading.Thread(target=look)
        onlooker.start()
        writer.append(batch(1, 0, 20), 1, 0, 0)
        writer.commit(0)
        assert writer.statistics().segments == 2
        done.set()
        onlooker.join()
        seen.add(writer.firsts)
    assert seen == {(0,)}


@pytest.mark.usefixtures("hasty_threads")
def test_a_source_that_is_forgotten_meanwhile_is_just_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echoic.recorder.standing.SOURCES_MAX", 4)
    writer, done, seen = opened(disk()), threading.Event(), set[int]()

    def look() -> None:
        while not done.is_set():
            seen.update(writer.positions.get(source, 0) for source in range(12))
        seen.add(-1)

    onlooker = threading.Thread(target=look)
    onlooker.start()
    for number in range(100):
        for source in range(12):
            writer.append(batch(source, number, 1), source, number, 0)
        writer.commit(0)
    done.set()
    onlooker.join()
    assert -1 in seen
    assert len(writer.positions) == 4


class Stubborn(Disk):
    """A disk on which nothing becomes a segment."""

    def rename(self, path: str, to: str) -> None:
        if to.endswith(".segment"):
            raise OSError(errno.EIO, f"{path} cannot become {to}")
        super().rename(path, to)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_journal_that_cannot_be_opened_leaves_no_files_open(tmp_path: Path) -> None:
    writer = opened(Disk(tmp_path), segment_bytes_max=200)
    writer.append(batch(1, 0, 20), 1, 0, 0)
    writer.close(0)
    (tmp_path / "trades/0/00000000000000000020.segment").unlink()
    before = open_files()
    for _ in range(5):
        with pytest.raises(JournalError, match="cannot begin a segment"):
            opened(Stubborn(tmp_path))
    assert open_files() == before
    assert opened(Disk(tmp_path)).heads == (20,)


@pytest.mark.parametrize("cached", [False, True])
def test_after_a_sync_that_failed_the_journal_must_be_opened_again(cached: bool) -> None:
    storage = disk()
    writer = opened(storage)
    writer.append(batch(1, 0, 3), 1, 0, 0)
    writer.commit(0)
    writer.append(batch(1, 3, 3), 1, 3, 0)
    storage.fail_sync(cached=cached)
    with pytest.raises(JournalError, match="must be opened again"):
        writer.commit(0)
    assert writer.failed
    for attempt in (lambda: writer.append(batch(1, 6, 1), 1, 6, 0), lambda: writer.settle(0)):
        with pytest.raises(JournalError, match="must be opened again"):
            attempt()
    writer.close(0)
    again = opened(storage)
    position = again.positions[1]
    again.append(batch(1, position, 2), 1, position, 0)
    again.commit(0)
    storage.crash()
    assert opened(storage).positions[1] == position + 2
    assert [number for _, _, number in events(storage)] == list(range(position + 2))


def test_a_torn_end_is_put_aside_and_told() -> None:
    storage = disk()
    writer = opened(storage)
    writer.append(batch(1, 0, 3), 1, 0, 0)
    writer.close(0)
    whole = content(storage, SEGMENT)
    overwrite(storage, SEGMENT, whole + b"torn end")
    again = opened(storage)
    (note,) = again.recovered
    assert "8 bytes" in note
    assert content(storage, f"trades/0/{0:020}.{len(whole)}.torn") == b"torn end"
    assert again.heads == (3,)
    again.close(0)
    assert opened(storage).recovered == ()


def test_a_damaged_last_segment_is_refused_and_named() -> None:
    storage = disk()
    writer = opened(storage)
    writer.append(batch(1, 0, 3), 1, 0, 0)
    writer.close(0)
    storage.flip(SEGMENT, 8 * 300)
    with pytest.raises(JournalError, match=r"damaged.*segment, bytes \d+ to \d+"):
        opened(storage)
    storage.flip(SEGMENT, 8 * 300)
    assert opened(storage).heads == (3,)


def test_there_is_one_writer() -> None:
    storage = disk()
    writer = opened(storage)
    with pytest.raises(JournalError, match="in use by another writer"):
        opened(storage)
    writer.close(0)
    opened(storage)


def test_the_oldest_segments_go_when_there_are_too_many_bytes() -> None:
    storage = disk()
    writer = opened(storage, segment_bytes_max=500, retention=Retention(bytes_max=2000))
    for number in range(200):
        writer.append(batch(1, number, 1), 1, number, number)
        writer.commit(number)
    assert writer.firsts[0] > 100
    assert sum(size for path, size in storage.files().items() if path.endswith(".segment")) <= 2500
    assert not verify(storage, CHANNEL)
    writer.close(0)
    again = opened(storage)
    assert again.firsts == writer.firsts
    assert again.heads == (200,)


def test_the_oldest_segments_go_when_they_are_too_old_but_never_the_last() -> None:
    storage = disk()
    writer = opened(storage, segment_bytes_max=300, retention=Retention(age_ns_max=50))
    for number in range(100):
        writer.append(batch(1, number, 1), 1, number, number)
        writer.commit(number)
    assert 40 <= writer.firsts[0] < 60
    writer.settle(10_000)
    assert writer.statistics().segments == 1
    assert writer.heads == (100,)


def test_trimming_removes_only_what_lies_before() -> None:
    storage = disk()
    writer = opened(storage, segment_bytes_max=300)
    for number in range(50):
        writer.append(batch(1, number, 1), 1, number, number)
        writer.commit(number)
    writer.trim(0, 20)
    assert 10 < writer.firsts[0] <= 20
    writer.trim(0, 10**6)
    assert writer.statistics().segments == 1
    with pytest.raises(LocalError, match="no partition 1"):
        writer.trim(1, 0)


def test_a_sink_goes_on_where_it_was_marked() -> None:
    storage = disk()
    writer = opened(storage, partitions=2)
    assert writer.marked("billing") is None
    for name in ("billing", "a/b", "..", "ü"):
        writer.mark(name, [3, 2**64 - 1])
        assert writer.marked(name) == (3, 2**64 - 1)
    writer.close(0)
    storage.crash()
    assert opened(storage).marked("..") == (3, 2**64 - 1)
    for positions in ([1], [-1, 0], [2**64, 0]):
        with pytest.raises(LocalError, match="positions"):
            opened(disk(), partitions=2).mark("billing", positions)


@pytest.mark.parametrize("channel", ["", "x" * 201, "\ud800"])
def test_what_is_no_name_is_refused(channel: str) -> None:
    with pytest.raises(LocalError, match="name of a channel"):
        JournalWriter.open(disk(), channel, id=bytes(16), now_ns=0)


@pytest.mark.parametrize(("source", "first"), [(-1, 0), (2**64, 0), (0, -1), (0, 2**64 - 1)])
def test_numbers_out_of_range_are_refused(source: int, first: int) -> None:
    with pytest.raises(LocalError, match="64 bits"):
        opened(disk()).append(batch(0, 0, 2), source, first, 0)


def test_options_out_of_range_are_refused() -> None:
    for options in (JournalOptions(partitions=0), JournalOptions(partitions=1025), JournalOptions(segment_bytes_max=0)):
        with pytest.raises(LocalError, match="must have"):
            JournalWriter.open(disk(), CHANNEL, options, id=bytes(16), now_ns=0)
    with pytest.raises(LocalError, match="16 bytes"):
        JournalWriter.open(disk(), CHANNEL, id=b"", now_ns=0)


def test_a_closed_writer_writes_nothing() -> None:
    writer = opened(disk())
    writer.close(0)
    for attempt in (lambda: writer.append(batch(1, 0, 1), 1, 0, 0), lambda: writer.commit(0), lambda: writer.settle(0)):
        with pytest.raises(ClosedError):
            attempt()


def test_the_longest_silent_source_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echoic.recorder.standing.SOURCES_MAX", 3)
    storage = disk()
    writer = opened(storage, segment_bytes_max=400)
    for number, source in enumerate([1, 2, 3, 1, 4, 1, 5]):
        first = writer.positions.get(source, 7)
        writer.append(batch(source, first, 1), source, first, number)
        writer.commit(number)
    assert list(writer.positions) == [4, 1, 5]
    writer.close(0)
    assert list(opened(storage).positions) == [4, 1, 5]
    assert not verify(storage, CHANNEL)


def test_the_last_word_counts_also_among_those_of_one_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echoic.recorder.standing.SOURCES_MAX", 2)
    storage = disk()
    writer = opened(storage)
    for source, first in ((1, 0), (2, 0), (1, 1)):
        writer.append(batch(source, first, 1), source, first, 0)
    writer.commit(0)
    writer.append(batch(3, 0, 1), 3, 0, 0)
    writer.commit(0)
    assert dict(writer.positions) == {1: 2, 3: 1}
    writer.close(0)
    assert dict(opened(storage).positions) == {1: 2, 3: 1}


@pytest.mark.parametrize("after", range(25))
def test_a_journal_that_was_not_made_to_the_end_is_made_again(after: int) -> None:
    storage = disk(after)
    storage.stop(after)
    try:
        opened(storage, partitions=2).close(0)
    except JournalError:
        pass
    storage.crash()
    writer = opened(storage, partitions=2)
    writer.append(batch(1, 0, 1), 1, 0, 0)
    assert writer.commit(0).heads == (0, 1)
    assert not verify(storage, CHANNEL)


def test_segments_without_a_journal_are_not_overwritten() -> None:
    storage = disk()
    writer = opened(storage)
    writer.append(batch(1, 0, 1), 1, 0, 0)
    writer.close(0)
    storage.remove("trades/journal.json")
    with pytest.raises(JournalError, match=r"no journal\.json"):
        opened(storage)
    assert len(events(storage)) == 1


actions = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 3), st.integers(-6, 3), st.integers(0, 5)),
    st.tuples(st.just("miss"), st.integers(0, 3), st.integers(-2, 2), st.integers(0, 3)),
    st.sampled_from([("commit",), ("commit",), ("settle",), ("close",), ("kill",)]),
)


@settings(max_examples=200)
@given(st.lists(actions, max_size=40), st.sampled_from([150, 400, 10_000]), st.integers(1, 2))
def test_a_journal_is_what_a_simple_model_is(steps: list[tuple], segment_bytes_max: int, partitions: int) -> None:
    storage = disk()
    options = {"segment_bytes_max": segment_bytes_max, "partitions": partitions}
    writer = opened(storage, **options)
    positions: dict[int, int] = {}
    recorded: dict[int, list[int]] = {source: [] for source in range(4)}
    durable = dict.fromkeys(range(4), 0)
    for now_ns, step in enumerate([*steps, ("close",)]):
        match step:
            case ("append", source, shift, count):
                first = max(0, positions.get(source, 0) + shift)
                known = positions.get(source, first)
                fresh = [number for number in range(first, first + count) if number >= known]
                assert writer.append(batch(source, first, count), source, first, now_ns) == len(fresh)
                if fresh:
                    recorded[source] += fresh
                    positions[source] = first + count
            case ("miss", source, shift, count):
                first = max(0, positions.get(source, 0) + shift)
                writer.miss(source, first, first + count, "gone", now_ns)
                positions[source] = max(positions.get(source, 0), first + count + 1)
            case ("commit",):
                heads = writer.commit(now_ns).heads
                assert sum(heads) == sum(map(len, recorded.values()))
                durable = {source: len(numbers) for source, numbers in recorded.items()}
            case ("settle",):
                writer.settle(now_ns)
            case ("close",) | ("kill",):
                if step == ("close",):
                    writer.close(now_ns)
                    durable = {source: len(numbers) for source, numbers in recorded.items()}
                else:
                    storage.kill()
                writer = opened(storage, now_ns, **options)
                positions = dict(writer.positions)
                recorded = {source: numbers[: durable[source]] for source, numbers in recorded.items()}
    found = [event for partition in range(partitions) for event in events(storage, partition) if event[0] >= 0]
    for source, numbers in recorded.items():
        assert [number for _, which, number in found if which == source] == numbers
    assert not verify(storage, CHANNEL)


def test_a_journal_on_a_real_disk_is_what_one_on_a_simulated_disk_is(tmp_path: object) -> None:
    simulated, real = disk(), Disk(str(tmp_path))
    for storage in (simulated, real):
        writer = opened(storage, segment_bytes_max=1000)
        for number in range(0, 100, 5):
            writer.append(batch(1, number, 5), 1, number, number)
            writer.commit(number)
        writer.mark("billing", [5])
        writer.close(100)
        opened(storage).close(101)
    for path in simulated.files():
        assert content(real, path) == content(simulated, path)
