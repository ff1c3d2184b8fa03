from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from echoic.errors import JournalError
from echoic.recorder import Flaw, JournalWriter, RecoveryReport, recover, verify
from echoic.recorder.catalog import Catalog, JournalInfo, SinkPositions, channels_of, encode_small
from echoic.testing.simulated_disk import SimulatedDisk
from tests.recorder.written import CHANNEL, OTHER, batch, content, disk, events, opened, overwrite


def journal(partitions: int = 1) -> SimulatedDisk:
    """Return a disk with a journal of several segments, and a sink."""
    storage = disk()
    writer = opened(storage, segment_bytes_max=700, partitions=partitions)
    for number in range(0, 60, 2):
        dtype = OTHER if number % 8 else batch(1, 0, 1).array.dtype
        for source in range(partitions):
            writer.append(batch(source, number, 2, dtype), source, number, number)
        writer.commit(number)
    writer.mark("billing", [7] * partitions)
    writer.close(60)
    return storage


SOUND = journal()
FILES = [path for path, size in SOUND.files().items() if size]
SEGMENTS = [path for path in FILES if path.endswith(".segment")]


def numbers(storage: SimulatedDisk) -> list[int]:
    return [number for sequence, _, number in events(storage) if sequence >= 0]


def checked_recovery(storage: SimulatedDisk) -> None:
    """Recover, and check that the journal is sound afterwards and goes on."""
    recover(storage, CHANNEL)
    assert verify(storage, CHANNEL) == []
    writer = opened(storage)
    source = next(iter(writer.positions), 0)
    first = writer.positions.get(source, 0)
    assert writer.append(batch(source, first, 1), source, first, 99) == 1
    head = writer.heads[0]
    assert writer.commit(99).heads[0] in {head, head + 1}
    writer.close(99)
    assert verify(storage, CHANNEL) == []


def test_a_sound_journal_has_no_flaws_and_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    assert verify(SOUND, CHANNEL, lambda done, total: told.append((done, total))) == []
    assert told == [(number + 1, len(SEGMENTS)) for number in range(len(SEGMENTS))]


def test_recovering_a_sound_journal_changes_nothing() -> None:
    storage = journal()
    report = recover(storage, CHANNEL)
    assert report == RecoveryReport((), (), (), ())
    assert {path: content(storage, path) for path in FILES} == {path: content(SOUND, path) for path in FILES}


def test_what_is_not_there_is_not_verified() -> None:
    for action in (verify, recover):
        with pytest.raises(JournalError):
            action(disk(), "nothing")


def test_a_journal_in_use_is_verified_but_not_recovered() -> None:
    storage = disk()
    writer = opened(storage)
    writer.append(batch(1, 0, 5), 1, 0, 0)
    writer.commit(0)
    assert verify(storage, CHANNEL) == []
    with pytest.raises(JournalError, match="in use"):
        recover(storage, CHANNEL)


@pytest.mark.parametrize("seed", range(150))
def test_a_flipped_bit_is_named_and_costs_one_block_at_most(seed: int) -> None:
    random = Random(seed)
    storage = journal()
    path = random.choice(SEGMENTS)
    bit = random.randrange(8 * storage.files()[path])
    storage.flip(path, bit)
    flaws = [flaw for flaw in verify(storage, CHANNEL) if flaw.path == path]
    assert flaws[0].offset <= bit >> 3 < flaws[0].end_offset
    checked_recovery(storage)
    kept = numbers(storage)
    assert len(kept) >= 58 + 1  # and the one that was appended


def test_a_segment_that_is_gone_becomes_a_hole() -> None:
    storage = journal()
    storage.remove(SEGMENTS[2])
    (flaw,) = verify(storage, CHANNEL)
    assert flaw.path == SEGMENTS[3]
    report = recover(storage, CHANNEL)
    (lost,) = report.lost
    assert (lost.first, lost.last) == (int(SEGMENTS[2][9:29]), int(SEGMENTS[3][9:29]) - 1)
    assert verify(storage, CHANNEL) == []
    assert set(range(60)) - set(numbers(storage)) == set(range(lost.first, lost.last + 1))


@pytest.mark.parametrize("path", SEGMENTS)
def test_a_segment_that_cannot_be_read_becomes_a_hole_and_numbers_are_not_used_again(path: str) -> None:
    storage = journal()
    storage.fail_read(path)
    assert [flaw.path for flaw in verify(storage, CHANNEL)] == [path]
    checked_recovery(storage)
    found = [sequence for sequence, _, _ in events(storage) if sequence >= 0]
    assert found == sorted(set(found))
    if path == SEGMENTS[-1]:
        assert found[-1] >= 60
    assert path + ".damaged" in storage.files()


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("end", ["empty", "half", "more"])
def test_a_file_that_was_cut_or_extended_is_found_and_recovered(path: str, end: str) -> None:
    storage = journal()
    data = content(storage, path)
    overwrite(storage, path, {"empty": b"", "half": data[: len(data) // 2], "more": data + b"more"}[end])
    assert path in {flaw.path for flaw in verify(storage, CHANNEL)}
    checked_recovery(storage)


def test_a_segment_of_another_journal_is_found() -> None:
    storage, other = journal(), disk()
    writer = JournalWriter.open(other, CHANNEL, id=bytes(16), now_ns=0)
    writer.append(batch(1, 0, 5), 1, 0, 0)
    writer.close(0)
    overwrite(storage, SEGMENTS[0], content(other, SEGMENTS[0]))
    assert "another journal" in verify(storage, CHANNEL)[0].what
    checked_recovery(storage)


def test_a_segment_under_a_wrong_name_is_found() -> None:
    storage = journal()
    storage.rename(SEGMENTS[1], "trades/0/first.segment")
    flaws = verify(storage, CHANNEL)
    assert "trades/0/first.segment" in {flaw.path for flaw in flaws}
    checked_recovery(storage)


def test_a_lost_partition_and_a_superfluous_one_are_found() -> None:
    storage = journal(partitions=2)
    for path in [path for path in storage.files() if path.startswith("trades/1/")]:
        storage.remove(path)
    storage.make_directory("trades/7")
    assert {flaw.path for flaw in verify(storage, CHANNEL)} == {"trades/1", "trades/7"}


def test_journal_json_is_made_again_from_the_segments() -> None:
    storage = journal(partitions=2)
    before = content(storage, "trades/journal.json")
    storage.remove("trades/journal.json")
    assert [flaw.path for flaw in verify(storage, CHANNEL)] == ["trades/journal.json"]
    recover(storage, CHANNEL)
    assert content(storage, "trades/journal.json") == before


@pytest.mark.parametrize("seed", range(40))
def test_a_crash_in_the_middle_of_recovery_loses_nothing_more(seed: int) -> None:
    random = Random(seed)
    storage = journal()
    path = random.choice(SEGMENTS)
    storage.flip(path, random.randrange(8 * storage.files()[path]))
    once = storage.copy(Random(0))
    recover(once, CHANNEL)
    storage.stop(random.randrange(12))
    try:
        recover(storage, CHANNEL)
    except JournalError:
        pass
    storage.crash()
    recover(storage, CHANNEL)
    assert verify(storage, CHANNEL) == []
    assert numbers(storage) == numbers(once)


@pytest.mark.parametrize("path", SEGMENTS[-2:])
@pytest.mark.parametrize("after", range(12))
def test_a_crash_while_an_unreadable_segment_is_replaced_is_made_up_for(path: str, after: int) -> None:
    storage = journal()
    storage.fail_read(path)
    storage.stop(after)
    try:
        recover(storage, CHANNEL)
    except JournalError:
        pass
    storage.crash()
    checked_recovery(storage)
    found = [sequence for sequence, _, _ in events(storage) if sequence >= 0]
    assert found == sorted(set(found))
    assert found[-1] >= 60


def test_a_full_disk_during_recovery_changes_nothing() -> None:
    storage = journal()
    storage.flip(SEGMENTS[1], 8 * 300)
    before = content(storage, SEGMENTS[1])
    storage.capacity_bytes = storage.used_bytes + 100
    with pytest.raises(JournalError, match="No space"):
        recover(storage, CHANNEL)
    assert content(storage, SEGMENTS[1]) == before
    storage.capacity_bytes = 0
    checked_recovery(storage)


def survives(storage: SimulatedDisk) -> None:
    """Check that whatever is on the disk, nothing but a JournalError is raised."""
    try:
        assert all(isinstance(flaw, Flaw) for flaw in verify(storage, CHANNEL))
    except JournalError:
        pass
    for attempt in (lambda: opened(storage).close(0), lambda: checked_recovery(storage)):
        try:
            attempt()
        except JournalError:
            storage.kill()


@settings(max_examples=300)
@given(st.sampled_from([*FILES, f"trades/0/{55:020}.tail"]), st.data())
def test_arbitrary_bytes_in_any_file_are_flaws_or_journal_errors(path: str, data: st.DataObject) -> None:
    storage = SOUND.copy(Random(0))
    if path not in FILES:
        path = SEGMENTS[-1].replace(".segment", ".tail")
        storage.open(path, create=True).close()
    sound = content(storage, path)
    start = data.draw(st.integers(0, len(sound)))
    stop = data.draw(st.integers(start, len(sound)))
    overwrite(storage, path, sound[:start] + data.draw(st.binary(max_size=200)) + sound[stop:])
    survives(storage)


infos = st.builds(
    JournalInfo,
    version=st.integers(0, 2) | st.integers(-(2**70), 2**70),
    id=st.text(max_size=40) | st.just(bytes(range(16)).hex()),
    channel=st.just(CHANNEL) | st.text(),
    partitions=st.integers(-1, 3) | st.integers(1025, 2**64 - 1),
    created_ns=st.integers(-(2**63), 2**63 - 1),
)


@given(infos)
def test_a_journal_json_with_anything_in_it_is_a_flaw_or_a_journal_error(info: JournalInfo) -> None:
    storage = SOUND.copy(Random(0))
    try:
        Catalog(storage, CHANNEL).write_info(info)
    except (OverflowError, UnicodeEncodeError):
        return
    survives(storage)


@given(st.lists(st.integers(-5, 2**64 - 1), max_size=3))
def test_positions_of_sinks_may_be_anything(positions: list[int]) -> None:
    storage = SOUND.copy(Random(0))
    overwrite(storage, "trades/sinks/billing.json", encode_small(SinkPositions(positions)))
    survives(storage)


def test_channels_with_a_journal_are_listed() -> None:
    storage = disk()
    for channel in ("a/b", "..", "ü"):
        JournalWriter.open(storage, channel, id=bytes(16), now_ns=0).close(0)
    storage.make_directory("nothing")
    assert channels_of(storage) == sorted(["a/b", "..", "ü"])
