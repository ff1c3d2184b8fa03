"""The log of a member on the disk: what is kept, what a crash leaves, what is refused.

`python -m echoic.testing.group_log_campaign --seeds A:B` is the long campaign.
"""

import itertools
import os
import tracemalloc
from pathlib import Path
from random import Random

import google_crc32c
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.engines.embedded import log_file, log_scan
from echoic.engines.embedded.log_blocks import (
    BLOCK_HEAD_BYTES,
    CHECKSUM,
    FILE_HEADER_BYTES,
    HEAD,
    MARKER,
    SEGMENT_MAGIC,
    Block,
    BlockKind,
    FileHeader,
    encode_block,
    encode_file_header,
)
from echoic.engines.embedded.log_contents import PAYLOAD_BYTES_MAX, State, encode_state
from echoic.engines.embedded.log_extent import Extent
from echoic.engines.embedded.log_file import LogFile
from echoic.engines.embedded.log_segment import SegmentFile, begin_segment, segment_path
from echoic.errors import ClosedError, JournalError, LocalError
from echoic.groups.writes import Append, Ballot, Entry, Snapshot, Write
from echoic.recorder import Disk, Storage
from echoic.testing import SimulatedDisk
from echoic.testing.group_log_campaign import LogCampaignReport, LogState, main, run_log_lives, steps_of

SEGMENT_1 = f"{1:020}.segment"
SEEDS = 80


def entry(number: int, term: int = 1, payload: bytes = b"payload") -> Entry:
    return Entry(term, 0, "member", 5, number, payload)


def entries(first: int, end: int, term: int = 1, payload: bytes = b"payload") -> tuple[Entry, ...]:
    return tuple(entry(number, term, payload) for number in range(first, end + 1))


def snapshot(index: int, term: int = 1, *chunks: bytes) -> Snapshot:
    return Snapshot(index, term, b"members", b"summary", chunks)


def open_log(storage: Storage, **options: int) -> LogFile:
    salts = itertools.count(77)
    return LogFile.open(storage, life=options.pop("life", 9), draw=lambda: next(salts), **options)


def state_of(storage: Storage) -> LogState:
    log = open_log(storage)
    try:
        return LogState.of(log.image())
    finally:
        log.close()


def after(*writes: Write) -> LogState:
    state = LogState()
    for write in writes:
        *_, state = steps_of(state, write)
    return state


def write_and_sync(log: LogFile, *writes: Write) -> None:
    log.write(writes)
    log.sync()


def kept(storage: Storage, *writes: Write, **options: int) -> LogState:
    """Write, sync, close and open again."""
    log = open_log(storage, **options)
    write_and_sync(log, *writes)
    log.close()
    return state_of(storage)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(Random(1))


def test_a_log_is_made_with_a_life_and_keeps_it(disk: SimulatedDisk) -> None:
    log = open_log(disk, life=9)
    assert (log.image().life, LogState.of(log.image())) == (9, LogState())
    log.close()
    assert open_log(disk, life=10).image().life == 9


def test_ballots_and_entries_are_found_again(disk: SimulatedDisk) -> None:
    writes = [Ballot(3, "b"), Append(1, entries(1, 4)), Ballot(4, ""), Append(5, entries(5, 6, term=4))]
    assert kept(disk, *writes) == after(*writes)


def test_an_append_takes_the_place_of_what_was_there_from_its_first_index_on(disk: SimulatedDisk) -> None:
    writes = [Append(1, entries(1, 9)), Append(4, entries(20, 21, term=2)), Append(5, ())]
    found = kept(disk, *writes)
    assert found == after(*writes)
    assert [each.number for each in found.entries] == [1, 2, 3, 20]


def test_a_snapshot_keeps_what_is_behind_it_and_the_ballot(disk: SimulatedDisk) -> None:
    writes = [Ballot(7, "c"), Append(1, entries(1, 9)), snapshot(6, 1, b"a" * 1000, b"", b"b")]
    found = kept(disk, *writes)
    assert found == after(*writes)
    assert (found.start, found.end, found.ballot) == (6, 9, Ballot(7, "c"))


@pytest.mark.parametrize("foreign", [snapshot(4, term=2), snapshot(50)], ids=["of another term", "beyond the end"])
def test_a_snapshot_that_does_not_fit_empties_the_log(disk: SimulatedDisk, foreign: Snapshot) -> None:
    found = kept(disk, Append(1, entries(1, 9)), foreign, Append(foreign.index + 1, entries(70, 71)))
    assert (found.snapshot, found.entries) == (foreign, entries(70, 71))


def test_segments_are_removed_when_a_snapshot_has_all_their_entries(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_bytes_max=1000)
    log.write([Ballot(5, "a")])
    for number in range(1, 41):
        log.write([Append(number, (entry(number, payload=bytes(200)),))])
        log.sync()
    before = log.statistics().segments
    log.write([snapshot(30)])
    statistics = log.statistics()
    assert before > 5
    assert statistics.segments < before - 3
    assert (statistics.first, statistics.end, statistics.snapshots) == (31, 40, 1)
    log.write([snapshot(40)])
    assert log.statistics().segments == 1
    log.close()
    assert sum(name.endswith((".segment", ".snapshot")) for name in disk.files()) == 2
    assert state_of(disk) == LogState(Ballot(5, "a"), snapshot(40), ())


def test_what_was_written_is_not_lost_with_the_process_and_what_was_synced_not_with_the_power() -> None:
    for seed in range(20):
        disk = SimulatedDisk(Random(seed))
        log = open_log(disk)
        log.write([Append(1, entries(1, 3))])
        log.sync()
        log.write([Append(4, entries(4, 5))])
        disk.crash()
        assert state_of(disk).entries in (entries(1, 3), entries(1, 5)), f"seed {seed}"


def test_writes_wait_for_each_other_and_are_one_write_of_the_disk(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    before = disk.statistics()
    for number in range(1, 101):
        log.write([Append(number, (entry(number),))])
    log.sync()
    after_ = disk.statistics()
    assert (after_.appends - before.appends, after_.syncs - before.syncs) == (1, 1)
    assert log.statistics().entries == 100


def test_without_durability_a_sync_only_gives_everything_to_the_operating_system(disk: SimulatedDisk) -> None:
    log = open_log(disk, durable=False, segment_bytes_max=300)
    before = disk.statistics().syncs
    for number in range(1, 20):
        log.write([Append(number, (entry(number),))])
        log.sync()
    assert disk.statistics().syncs == before
    disk.kill()
    assert state_of(disk).entries == entries(1, 19)


def test_a_log_has_one_user(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    with pytest.raises(JournalError, match="in use by another process"):
        open_log(disk)
    log.close()
    open_log(disk).close()


def test_a_closed_log_takes_nothing(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    log.close()
    log.close()
    with pytest.raises(ClosedError):
        log.write([Ballot(1, "")])
    with pytest.raises(LocalError, match="before the first write"):
        log.image()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (Append(11, ()), "index 11 on, expected 5 to 10"),
        (Append(4, entries(1, 1)), "index 4 on, expected 5 to 10"),
        (snapshot(3), "of index 3, there is one of 4"),
        (snapshot(9, -1), "term -1"),
        (Append(10, (entry(1, payload=bytes(PAYLOAD_BYTES_MAX + 1)),)), f"limit is {PAYLOAD_BYTES_MAX}"),
    ],
)
def test_what_does_not_fit_is_refused_and_the_log_goes_on(disk: SimulatedDisk, wrong: Write, told: str) -> None:
    log = open_log(disk)
    log.write([Append(1, entries(1, 8)), snapshot(4)])
    with pytest.raises(LocalError, match=told):
        log.write([Append(9, entries(9, 9)), wrong])
    log.write([Append(10, entries(10, 10))])
    log.close()
    assert state_of(disk).entries == entries(5, 10)


def test_settings_that_are_none_are_refused(disk: SimulatedDisk) -> None:
    with pytest.raises(LocalError, match="life -1"):
        open_log(disk, life=-1)
    with pytest.raises(LocalError, match="0 bytes for a segment"):
        open_log(disk, segment_bytes_max=0)


def test_after_a_failed_sync_nothing_is_taken_and_what_is_there_is_found_again() -> None:
    for seed in range(20):
        disk = SimulatedDisk(Random(seed))
        log = open_log(disk)
        log.write([Append(1, entries(1, 2))])
        log.sync()
        log.write([Append(3, entries(3, 4))])
        disk.fail_sync(cached=seed % 2 == 0)
        with pytest.raises(JournalError, match=f"cannot sync the log: input/output error - at {SEGMENT_1}"):
            log.sync()
        for again in (log.sync, lambda log=log: log.write([Ballot(1, "x")])):
            with pytest.raises(JournalError, match=r"must be opened again: .* input/output error"):
                again()
        assert "input/output error" in log.statistics().failure
        log.close()
        found = state_of(disk)
        assert found.entries in (entries(1, 2), entries(1, 3), entries(1, 4)), f"seed {seed}"
        disk.crash()
        assert state_of(disk) == found, f"seed {seed}"  # what was believed once is there for good


@pytest.mark.parametrize("write", [Append(3, entries(3, 9)), snapshot(2, 1, bytes(500))], ids=["entries", "snapshot"])
def test_a_full_disk_is_named_and_harms_nothing(disk: SimulatedDisk, write: Write) -> None:
    log = open_log(disk)
    log.write([Append(1, entries(1, 2))])
    log.sync()
    disk.capacity_bytes = disk.used_bytes + 100
    with pytest.raises(JournalError, match="no space left on device"):
        write_and_sync(log, write)
    with pytest.raises(JournalError, match="takes nothing any more"):
        log.write([Ballot(8, "a")])
    log.close()
    assert not any(name.endswith(".tmp") for name in disk.files())
    with pytest.raises(JournalError, match="cannot open the log: no space left on device"):
        open_log(disk)
    disk.capacity_bytes = 0
    assert state_of(disk).entries[:2] == entries(1, 2)


def test_a_log_that_cannot_be_read_is_not_opened_and_not_changed(disk: SimulatedDisk) -> None:
    kept(disk, Append(1, entries(1, 2)))
    disk.fail_read(SEGMENT_1)
    with pytest.raises(JournalError, match="cannot open the log: input/output error"):
        open_log(disk)
    disk.mend()
    assert state_of(disk).entries == entries(1, 2)


def test_large_payloads_and_snapshots_are_kept_on_a_real_disk(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "member" / "log")
    large = (entry(1, payload=os.urandom(8 * 1024 * 1024)), entry(2, payload=b""), entry(3, payload=os.urandom(60_000)))
    chunks = [os.urandom(1_000_000) for _ in range(5)]
    log = open_log(disk)
    log.write([Ballot(1, "a"), Append(1, large), Append(4, large[2:])])
    log.sync()
    log.write([snapshot(2, 1, *chunks)])
    log.write([Append(5, large[:1])])
    log.close()
    found = state_of(disk)
    assert found.snapshot == snapshot(2, 1, *chunks)
    assert found.entries == (large[2], large[2], large[0])
    log = open_log(disk)
    with pytest.raises(JournalError, match="in use"):
        open_log(disk)
    log.close()


def test_chunks_of_a_snapshot_are_never_put_together(tmp_path: Path) -> None:
    log = open_log(Disk(tmp_path))
    chunks = [bytes(4_000_000)] * 16
    tracemalloc.start()
    try:
        log.write([snapshot(7, 1, *chunks)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    log.close()
    assert peak < 1_000_000


TERMS = st.integers(0, 3)
ACTIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 4), st.lists(st.tuples(TERMS, st.binary(max_size=40)), max_size=6)),
    st.tuples(st.just("ballot"), TERMS, st.text(max_size=3)),
    st.tuples(st.just("snapshot"), st.integers(0, 8), st.one_of(st.none(), TERMS)),
    st.tuples(st.just("sync"), st.none(), st.none()),
    st.tuples(st.just("open"), st.none(), st.none()),
)


@settings(max_examples=150)
@given(st.lists(ACTIONS, max_size=25), st.sampled_from([1, 200, 100_000]))
def test_a_log_is_what_the_simplest_log_is(actions: list[tuple[str, object, object]], segment_bytes_max: int) -> None:
    disk, state, numbers = SimulatedDisk(Random(0)), LogState(), itertools.count()
    log = open_log(disk, segment_bytes_max=segment_bytes_max)
    for action in actions:
        match action:
            case ("append", int(back), list(given_)):
                fresh = tuple(entry(next(numbers), term, payload) for term, payload in given_)
                write: Write = Append(max(state.end + 1 - back, state.start + 1), fresh)
            case ("ballot", int(term), str(vote)):
                write = Ballot(term, vote)
            case ("snapshot", int(forth), term):
                index = state.start + forth
                write = snapshot(index, state.term_of(index) or 0 if term is None else term, bytes(index))
            case ("sync", _, _):
                log.sync()
                continue
            case _:
                log.close()
                log = open_log(disk, segment_bytes_max=segment_bytes_max)
                assert LogState.of(log.image()) == state
                continue
        log.write([write])
        *_, state = steps_of(state, write)
        assert (log.statistics().first, log.statistics().end) == (state.start + 1, state.end)
    log.close()
    assert state_of(disk) == state


@given(st.lists(st.tuples(st.integers(0, 5), st.lists(TERMS, max_size=5)), max_size=15), st.integers(0, 20), TERMS)
def test_an_extent_knows_every_term(appends: list[tuple[int, list[int]]], index: int, term: int) -> None:
    extent, terms = Extent(), list[int]()
    for back, fresh in appends:
        del terms[max(0, len(terms) - back) :]
        extent.append(len(terms) + 1, [entry(0, each) for each in fresh])
        terms += fresh
    assert [extent.term_of(place) for place in range(-1, len(terms) + 2)] == [None, 0, *terms, None]
    kept_ = terms[index:] if ([0, *terms][index : index + 1] or [None])[0] == term else []
    extent.compact(index, term)
    found = [extent.term_of(place) for place in range(index, index + len(kept_) + 2)]
    assert (extent.start, extent.end) == (index, index + len(kept_))
    assert found == [term, *kept_, None]


def make_varied(disk: SimulatedDisk) -> tuple[LogFile, LogState]:
    """Make a log of several segments, with everything that can be in one."""
    writes = [
        Ballot(1, "a"),
        Append(1, entries(1, 6, payload=bytes(90))),
        snapshot(3, 1, b"chunk" * 20, b"", b"more"),
        Append(5, entries(20, 23, term=2)),
        Ballot(2, "b"),
        Append(9, entries(24, 24, term=2, payload=bytes(300))),
        Append(9, ()),
        Append(9, entries(30, 31, term=2, payload=b"eGR1" * 20)),
    ]
    log = open_log(disk, segment_bytes_max=500)
    for write in writes:
        log.write([write])
        log.sync()
    return log, after(*writes)


def opened_with_flip(disk: SimulatedDisk, path: str, bit: int) -> LogState | None:
    """Return what is found with one flipped bit, None if it is refused; nothing else may happen."""
    copy = disk.copy(Random(bit))
    copy.flip(path, bit)
    try:
        return state_of(copy)
    except JournalError:
        return None


def test_a_flipped_bit_in_a_log_that_was_closed_is_refused_or_changes_nothing(disk: SimulatedDisk) -> None:
    log, state = make_varied(disk)
    log.close()
    refused = harmless = 0
    for path, size in disk.files().items():
        for byte in range(size):
            found = opened_with_flip(disk, path, 8 * byte + byte % 8)
            assert found in (None, state), f"byte {byte} of {path}"
            refused += found is None
            harmless += found is not None
    assert refused > 1000
    assert 0 < harmless <= BLOCK_HEAD_BYTES  # the last mark, which holds nothing


def test_a_flipped_bit_in_what_was_synced_last_is_the_only_one_that_looks_like_a_torn_write() -> None:
    disk = SimulatedDisk(Random(2))
    log = open_log(disk)
    log.write([Append(1, entries(1, 3))])
    log.sync()
    before = disk.files()[SEGMENT_1]
    log.write([Append(4, entries(4, 5))])
    log.sync()
    unmarked = disk.copy(Random(3))
    log.sync()  # nothing is new, so the last sync is marked
    marked = disk.copy(Random(4))
    for byte in range(before, unmarked.files()[SEGMENT_1]):
        assert opened_with_flip(unmarked, SEGMENT_1, 8 * byte) == LogState(entries=entries(1, 3))
        assert opened_with_flip(marked, SEGMENT_1, 8 * byte) is None
    for byte in range(before):
        assert opened_with_flip(unmarked, SEGMENT_1, 8 * byte) is None


def test_a_missing_file_is_named(disk: SimulatedDisk) -> None:
    log, _ = make_varied(disk)
    log.close()
    refused = 0
    for path in disk.files():
        copy = disk.copy(Random(0))
        copy.remove(path)
        if path == max(name for name in disk.files() if name.endswith("segment")) or path == "lock":
            continue  # that a log was longer cannot be known without its last segment
        with pytest.raises(JournalError, match=path):
            open_log(copy)
        refused += 1
    assert refused >= 3


def test_a_snapshot_without_segments_is_no_empty_log(disk: SimulatedDisk) -> None:
    kept(disk, snapshot(3))
    disk.remove(f"{2:020}.segment")
    with pytest.raises(JournalError, match="a snapshot but no segment"):
        open_log(disk)


def test_files_of_another_life_are_not_taken_for_those_of_this(disk: SimulatedDisk) -> None:
    log, _ = make_varied(disk)
    log.close()
    other = SimulatedDisk(Random(0))
    log = open_log(other, life=10, segment_bytes_max=500)
    for write in [Append(1, entries(1, 6)), snapshot(3, 1, b"x"), Append(7, entries(7, 9, payload=bytes(300)))]:
        log.write([write])
        log.sync()
    log.close()
    for path in disk.files().keys() & other.files().keys() - {"lock"}:
        copy = disk.copy(Random(0))
        copy.remove(path)
        copy.open(path, create=True).append([other.read(path)])
        with pytest.raises(JournalError):
            open_log(copy)


def test_what_a_file_of_the_same_name_had_before_is_not_taken_for_a_part_of_it() -> None:
    before, disk = SimulatedDisk(Random(0)), SimulatedDisk(Random(0))
    for storage, salt in ((before, 1), (disk, 2)):
        log = LogFile.open(storage, life=9, draw=lambda salt=salt: salt)
        log.write([Append(1, entries(1, 1))])
        log.sync()
        size = storage.files()[SEGMENT_1]
        log.write([Append(2, entries(2, 2))])
        log.sync()
        storage.kill()
    stale = before.read(SEGMENT_1)[size:]
    assert len(before.read(SEGMENT_1)) == len(disk.read(SEGMENT_1))
    file = disk.open(SEGMENT_1, write=True)
    file.truncate(size)
    file.append([stale])
    assert state_of(disk).entries == entries(1, 1)
    assert state_of(before).entries == entries(1, 2)


def put(disk: SimulatedDisk, path: str, *pieces: bytes) -> None:
    disk.open(path, create=True).append(pieces)


@given(st.binary(max_size=300), st.booleans())
def test_garbage_is_refused(garbage: bytes, begins_well: bool) -> None:
    disk = SimulatedDisk(Random(0))
    start, _ = encode_file_header(SEGMENT_MAGIC, FileHeader(1, 1, 1))
    put(disk, SEGMENT_1, start if begins_well else b"", garbage)
    with pytest.raises(JournalError, match=r"0001\.segment"):
        open_log(disk)
    assert disk.read(SEGMENT_1).endswith(garbage)


def forged(kind: int, size: int, heads_bytes: int, body: bytes, *, first: int = 1) -> bytes:
    """Return a segment whose last block says whatever, with checksums that are right."""
    start, seed = encode_file_header(SEGMENT_MAGIC, FileHeader(1, 1, 1))
    state = encode_state(State(Ballot(0, ""), 0, None, None))
    pieces, _ = encode_block(BlockKind.STATE, [state], seed=seed, offset=FILE_HEADER_BYTES)
    data = start + b"".join(pieces)
    value = google_crc32c.extend(seed, body)
    plain = HEAD.pack(MARKER, kind, size, heads_bytes, len(data), first, 0, value)
    return data + plain + CHECKSUM.pack(google_crc32c.extend(seed, plain)) + body


HUGE_ARRAY = b"\xdd\xff\xff\xff\xff"
HUGE_TEXT = b"\x91\x96\x01\x00\xdb\xff\xff\xff\xff"
HUGE_PAYLOAD = msgspec.msgpack.encode([(1, 0, "a", 1, 1, 1 << 62)])
NEGATIVE_PAYLOAD = msgspec.msgpack.encode([(1, 0, "a", 1, 1, -1)])
HOSTILE: dict[str, tuple[int, int, int, bytes, int]] = {
    "a body larger than the file": (3, 0xFFFFFFFF, 0, b"", 1),
    "heads larger than the body": (3, 4, 0xFFFFFFFF, b"abcd", 1),
    "an array of four thousand million": (3, len(HUGE_ARRAY), len(HUGE_ARRAY), HUGE_ARRAY, 1),
    "a text of four thousand million": (3, len(HUGE_TEXT), len(HUGE_TEXT), HUGE_TEXT, 1),
    "a payload that is not there": (3, len(HUGE_PAYLOAD), len(HUGE_PAYLOAD), HUGE_PAYLOAD, 1),
    "a payload of fewer bytes than none": (3, len(NEGATIVE_PAYLOAD), len(NEGATIVE_PAYLOAD), NEGATIVE_PAYLOAD, 1),
    "entries from nowhere": (3, 1, 1, b"\x90", 1 << 60),
    "a kind that there is not": (99, 0, 0, b"", 0),
    "a kind of another file": (7, 0, 0, b"", 0),
    "a second state": (1, 0, 0, b"", 0),
    "a ballot that is none": (2, 1, 0, b"\xc0", 0),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_length_sets_nothing_aside(name: str, disk: SimulatedDisk) -> None:
    kind, size, heads_bytes, body, first = HOSTILE[name]
    put(disk, SEGMENT_1, forged(kind, size, heads_bytes, body, first=first))
    tracemalloc.start()
    try:
        found = state_of(disk)  # a block that is not whole is a torn end
    except JournalError:
        found = LogState()
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert found == LogState()
    assert peak < 1_000_000


GOLDEN = {
    "00000000000000000001.segment": """
        6563686f696347310100000000000000090000000000000001000000000000004d000000000000000000000000000000
        000000000000000000000000286d25226547523101000000070000000000000040000000000000000000000000000000
        0000000000000000f09f445c020a4241949200a000c0c065475231040000000000000000000000770000000000000000
        000000000000007700000000000000286d2522fbf612f365475231020000000400000000000000a70000000000000000
        000000000000007700000000000000d1c017f3c2b153059202a16265475231030000001400000011000000db00000000
        00000001000000000000007700000000000000d4070f60fcabf81192960100a161050103960201a1620601006f6e6565
        475231030000000c000000090000001f0100000000000002000000000000001f0100000000000007c39454e8525e4d91
        960200a16105020374776f654752310400000000000000000000005b0100000000000000000000000000005b01000000
        000000286d2522fe4313c9
    """,
    "00000000000000000002.segment": """
        6563686f696347310100000000000000090000000000000002000000000000004f000000000000000000000000000000
        00000000000000000000000075c1b7376547523101000000180000000000000040000000000000000000000000000000
        0000000000000000938d61c15332f536949202a1620292cd018bce22256d289402ce16fdd9f801016547523104000000
        000000000000000088000000000000000000000000000000880000000000000075c1b73775f3a74a
    """,
    "00000000000000000002.snapshot": """
        6563686f696353310100000000000000090000000000000002000000000000004e000000000000000100000000000000
        010000000000000000000000f8d9fd166547523105000000040000000000000040000000000000000000000000000000
        0000000000000000998b95045578266c626f647965475231060000000700000000000000740000000000000000000000
        000000000000000000000000bb442001a098806d73756d6d61727965475231070000000500000000000000ab00000000
        000000000000000000000000000000000000000ed976f143dcb9e06368756e6b65475231080000000000000000000000
        e00000000000000001000000000000000000000000000000f8d9fd165aa09153
    """,
}


def test_the_bytes_are_those_of_the_reference() -> None:
    disk = SimulatedDisk(Random(0))
    log = open_log(disk)
    log.write([Ballot(2, "b"), Append(1, (Entry(1, 0, "a", 5, 1, b"one"), Entry(2, 1, "b", 6, 1, b"")))])
    log.sync()
    log.write([Append(2, (Entry(2, 0, "a", 5, 2, b"two"),))])
    log.sync()
    log.sync()
    first = disk.read(SEGMENT_1)
    log.write([Snapshot(1, 1, b"body", b"summary", (b"chunk",))])
    found = {SEGMENT_1: first} | {path: disk.read(path) for path in disk.files() if path != "lock"}
    log.close()
    assert {path: data.hex() for path, data in found.items()} == {
        path: "".join(text.split()) for path, text in GOLDEN.items()
    }


def test_what_is_found_may_be_found_whatever_fails() -> None:
    report = sum((run_log_lives(seed) for seed in range(100_000, 100_000 + SEEDS)), LogCampaignReport())
    assert report.losses > 200
    assert report.kills > 200
    assert report.synced > 2000
    few = (report.undone, report.kept, report.torn, report.snapshots, report.openings_interrupted)
    assert min(*few, report.full, report.failed_syncs, report.flips_refused, report.flips_harmless) > 0


def test_a_seed_gives_the_same_lives_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert [run_log_lives(seed) for seed in range(3)] == [run_log_lives(seed) for seed in range(3)]
    main(["--seeds", "1:3"])
    assert "seeds=2" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--seeds", "x"])


def sync_nothing(self: SegmentFile) -> None:
    self.flush()
    self.synced, self.dirty = self.size, False


def write_over(storage: Storage, header: FileHeader, state: State, blocks: object = (), **options: bool) -> SegmentFile:
    """Go on with the file that was found, as if it were on the disk, as far as it is sound."""
    found = log_scan.scan(storage) if blocks else None
    if found is None:
        return begin_segment(storage, header, state, **options)
    last = found.segments[-1]
    file = storage.open(last.path, write=True)
    file.truncate(len(last.data) - found.torn_bytes)
    file.sync()
    segment = SegmentFile(file, last.header)
    segment.size = segment.synced = len(last.data) - found.torn_bytes
    segment.dirty, segment._pieces = False, []  # noqa: SLF001 - the mistake is in there
    return segment


def forgive(self: LogFile) -> SegmentFile:
    assert self._segment is not None
    return self._segment


def believe(data: memoryview, offset: int, seed: int) -> Block | None:
    """Parse a block without a look at the checksum of its body."""
    if len(data) - offset < BLOCK_HEAD_BYTES:
        return None
    marker, kind, size, heads_bytes, _, first, synced, _ = HEAD.unpack_from(data, offset)
    start = offset + BLOCK_HEAD_BYTES
    if marker != MARKER or kind not in {1, 2, 3, 4} or size > len(data) - start:
        return None
    return Block(BlockKind(kind), offset, first, synced, heads_bytes, data[start : start + size])


def remove_too_early(self: LogFile, snapshot: Snapshot) -> None:
    self._storage.remove(segment_path(self._starts[0][0]))
    self._storage.sync_directory("")
    del self._starts[0]
    COMPACT(self, snapshot)


COMPACT = LogFile._compact  # noqa: SLF001 - the mistake is around it
MISTAKES: dict[str, tuple[object, str, object]] = {
    "segments are not synced": (SegmentFile, "sync", sync_nothing),
    "directories are not synced": (SimulatedDisk, "sync_directory", lambda self, path: None),
    "files are named before they are synced": (SegmentFile, "seal_beginning", lambda self: self._mark()),
    "what was found is taken for synced": (log_file, "begin_segment", write_over),
    "a failed log goes on": (LogFile, "_check", forgive),
    "a broken block is always a torn end": (log_scan, "find_claim", lambda *_: None),
    "checksums are not looked at": (log_scan, "parse_block", believe),
    "segments are removed before the snapshot counts": (LogFile, "_compact", remove_too_early),
    "the ballot is not repeated": (log_file, "State", lambda ballot, *rest: State(Ballot(0, ""), *rest)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, attribute, wrong = MISTAKES[name]
    monkeypatch.setattr(place, attribute, wrong)
    with pytest.raises(AssertionError, match="seed "):
        sum((run_log_lives(seed) for seed in range(300)), LogCampaignReport())
