"""From the blocks of a journal to batches: ranges, holes, hostile bytes, and a writer that goes on meanwhile."""

import threading
from pathlib import Path
from random import Random

import msgspec
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import JournalError, LocalError
from echoic.formats import registry
from echoic.formats.descriptor import token
from echoic.recorder import Chunk, Disk, Hole, Journal, LocalShelf, Missing, Recorded, recover, segment_reader
from echoic.recorder.blocks import BlockHead, BlockKind, parse_block
from echoic.recorder.catalog import Catalog
from echoic.recorder.reader import PartitionReader, Span
from echoic.testing.simulated_disk import SimulatedDisk
from echoic.wire import Batch, Buffer
from tests.recorder.recordings import BEGIN, CHANNEL, DTYPE, SECOND, Forger, Scribe, disk, holes, items, numbers, rows


def recorded(count: int = 10, each: int = 7, **options: object) -> Scribe:
    """A journal of batches of 7 events, each committed."""
    scribe = Scribe(disk(), **options)
    for number in range(count):
        scribe.write(rows(number * each, each), source=0, at=number)
    return scribe


def test_what_was_written_is_read_in_order_with_who_when_and_where() -> None:
    scribe = Scribe(disk())
    scribe.write(rows(0, 3), source=4, at=1)
    scribe.write(rows(3, 2), source=9, at=2)
    scribe.write(rows(5, 1), source=4, at=3)
    found = items(scribe.shelf())
    assert numbers(found) == list(range(6))
    facts = [(one.sequence, one.source, one.first, one.time_ns - BEGIN) for one in found if isinstance(one, Recorded)]
    assert facts == [(0, 4, 0, SECOND), (3, 9, 0, 2 * SECOND), (5, 4, 3, 3 * SECOND)]


@given(start=st.integers(0, 75), end=st.integers(0, 75), segment_bytes=st.sampled_from([600, 1500, 100_000]))
def test_any_range_is_cut_out_exactly(start: int, end: int, segment_bytes: int) -> None:
    found = items(recorded(segment_bytes_max=segment_bytes).shelf(), start, end)
    assert numbers(found) == list(range(start, min(end, 70)))
    for one in found:
        assert isinstance(one, Recorded)
        assert one.sequences.tolist() == one.numbers.tolist() == one.array["number"].tolist()


def test_a_source_may_count_beyond_what_an_int64_holds() -> None:
    scribe, first = Scribe(disk()), 2**64 - 8
    scribe.writer.append(rows(0, 7), 3, first, BEGIN)
    scribe.commit()
    (one,) = items(scribe.shelf())
    assert isinstance(one, Recorded)
    assert one.numbers.tolist() == list(range(first, first + 7))
    assert one.select(numpy.array([1, 6])).numbers.tolist() == [first + 1, first + 6]
    columns = Journal(scribe.shelf()).arrow(metadata=True).read_all()
    assert columns["_number"].to_pylist() == list(range(first, first + 7))


def test_a_journal_may_have_more_types_than_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "REGISTRY_FIELDS_MAX", 3)
    scribe = Scribe(disk())
    for number in (0, 1, 2, 3, 4, 5, 0, 5, 1):
        scribe.write(Batch.of(numpy.full(1, number, numpy.dtype([(f"field{number}", "<i8")]))))
    found = items(scribe.shelf())
    assert [one.array.item() for one in found if isinstance(one, Recorded)] == [
        (number,) for number in (0, 1, 2, 3, 4, 5, 0, 5, 1)
    ]


def test_a_batch_is_a_view_of_the_file_and_stays_good_when_the_segment_is_gone() -> None:
    scribe = recorded(segment_bytes_max=600)
    (first, *_) = items(scribe.shelf())
    assert isinstance(first, Recorded)
    scribe.writer.trim(0, 70)
    assert first.array["number"].tolist() == list(range(7))
    assert not first.array.flags.writeable


def test_what_is_not_committed_is_not_read() -> None:
    scribe = recorded(2)
    shelf = scribe.shelf()
    scribe.write(rows(14, 7), commit=False)
    assert shelf.heads() == (14,)
    assert shelf.chunk(0, 14, 1000) is None
    scribe.commit()
    assert shelf.heads() == (21,)
    assert numbers(items(shelf, 14)) == list(range(14, 21))


def test_blocks_that_are_written_but_not_marked_are_not_read() -> None:
    forger = Forger()
    forger.format(rows(0, 1).format)
    forger.batch(rows(0, 4), 0)
    shelf = forger.shelf(4)
    file = forger.storage.open(forger.path, write=True)
    at = file.size()
    forger.batch(rows(4, 4), 4)
    file.append([bytes(forger.data[at:])])
    assert shelf.heads() == (4,)
    assert numbers(items(shelf)) == [0, 1, 2, 3]
    forger.add(BlockKind.COMMIT, (), 8, synced=at)  # which says that all before the batch is on the disk
    file.append([bytes(forger.data[file.size() :])])
    assert shelf.heads() == (4,)
    end = len(forger.data)
    forger.add(BlockKind.COMMIT, (), 8, synced=end)
    file.append([bytes(forger.data[end:])])
    assert shelf.heads() == (8,)
    assert numbers(items(shelf, 4)) == [4, 5, 6, 7]


def test_a_chunk_has_at_least_one_batch_and_is_not_much_larger_than_asked_for() -> None:
    shelf = recorded().shelf()
    chunk = shelf.chunk(0, 0, 1)
    assert chunk is not None
    assert (chunk.sequence, chunk.end) == (0, 7)
    chunk = shelf.chunk(0, 8, 800)
    assert chunk is not None
    assert (chunk.sequence, chunk.end) == (7, 21)
    assert len(chunk.blocks) <= 800
    assert chunk.formats == (rows(0, 1).format.descriptor,)


def test_a_chunk_is_all_that_another_machine_needs() -> None:
    class Elsewhere(LocalShelf):
        """Gives chunks as they come over a link: bytes."""

        def chunk(self, partition: int, sequence: int, bytes_max: int):  # noqa: ANN202
            chunk = super().chunk(partition, sequence, 500)
            return chunk and type(chunk)(chunk.seed, chunk.formats, bytes(chunk.blocks), chunk.sequence, chunk.end)

    scribe = recorded(segment_bytes_max=1500)
    assert numbers(items(Elsewhere(scribe.storage, CHANNEL))) == list(range(70))


class Spoiling(LocalShelf):
    """Gives chunks as a broken or hostile recorder would."""

    changes: dict[str, object]

    def chunk(self, partition: int, sequence: int, bytes_max: int) -> Chunk | None:
        chunk = super().chunk(partition, sequence, bytes_max)
        return chunk and msgspec.structs.replace(chunk, checked=False, **self.changes)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"seed": 7}, "a block is broken - at channel `trades`, partition 0, `.*`, offset"),
        ({"blocks": b"short"}, "a block is broken"),
        ({"end": 0}, "expected events from 0 on, got some up to 0"),
        ({"formats": ()}, "described"),
        ({"blocks": b"", "end": 1 << 50}, "the journal does not have them"),
    ],
)
def test_a_chunk_that_came_over_a_link_is_not_trusted(changes: dict[str, object], what: str) -> None:
    shelf = Spoiling(recorded(2).storage, CHANNEL)
    shelf.changes = changes
    with pytest.raises(JournalError, match=what):
        list(Journal(shelf).read())


@pytest.mark.parametrize("seed", range(60))
def test_a_reader_beside_a_writer_in_trouble_sees_what_is_committed_once_and_in_order(seed: int) -> None:
    random = Random(seed)
    storage = SimulatedDisk(random)
    scribe = Scribe(storage, segment_bytes_max=random.choice([700, 3000, 50_000]))
    shelf, reader = scribe.shelf(), PartitionReader(scribe.shelf(), 0, 0)
    written, found = 0, list[object]()
    for _ in range(120):
        match random.randrange(8):
            case 0 | 1 | 2:
                count = random.randrange(1, 40)
                scribe.write(rows(written, count), commit=False)
                written += count
            case 3 | 4:
                storage.capacity_bytes = random.choice([0, 0, storage.used_bytes + random.randrange(3000)])
                try:
                    scribe.commit()
                except JournalError:
                    assert not scribe.writer.failed
            case 5:
                scribe.writer.trim(0, reader.position)
            case _:
                found += reader.read(1 << 60)
                assert reader.position == shelf.heads()[0]
                assert reader.position == scribe.writer.heads[0] or storage.capacity_bytes  # no room for the mark
    storage.capacity_bytes = 0
    scribe.close()
    found += reader.read(1 << 60)
    assert numbers(found) == list(range(written))
    assert not list(holes(found))


def test_bytes_that_a_writer_cuts_off_again_do_no_harm(tmp_path: Path) -> None:
    scribe = Scribe(Disk(tmp_path))
    scribe.write(rows(0, 5))
    shelf = scribe.shelf()
    assert shelf.heads() == (5,)
    file = Disk(tmp_path).open(Catalog(scribe.storage, CHANNEL).segment(0, 0), write=True)
    size = file.size()
    for _ in range(3):
        file.append([bytes(range(256)) * 4096])
        assert shelf.heads() == (5,)
        file.truncate(size)
        assert shelf.heads() == (5,)
    scribe.write(rows(5, 5))
    assert numbers(items(shelf)) == list(range(10))


def test_a_reader_follows_a_writer_through_rotation() -> None:
    scribe = Scribe(disk(), segment_bytes_max=800)
    shelf = scribe.shelf()
    reader = PartitionReader(shelf, 0, 0)
    found: list[object] = []
    for number in range(30):
        scribe.write(rows(number * 5, 5))
        assert shelf.heads() == ((number + 1) * 5,)
        found += reader.read(1 << 60)
        assert reader.position == (number + 1) * 5
    assert numbers(found) == list(range(150))
    assert len(scribe.storage.names("trades/0")) > 5


def test_segments_that_retention_removes_while_they_are_read_are_a_hole() -> None:
    scribe = recorded(20, segment_bytes_max=600)
    shelf = scribe.shelf()
    reader = PartitionReader(shelf, 0, 0).read(140)
    read = [next(reader)]
    scribe.writer.trim(0, 100)
    found = [*read, *reader]
    (hole,) = holes(found)
    first = scribe.writer.firsts[0]
    assert hole == Hole(0, 14, first - 1, hole.reason)  # the first segment was at hand
    assert "removed" in hole.reason
    assert numbers(found) == [*range(14), *range(first, 140)]


def test_a_gap_is_told_once_at_its_place() -> None:
    scribe = Scribe(disk())
    scribe.write(rows(0, 2), source=5)
    scribe.writer.miss(5, 2, 4, "the sink was slow", BEGIN)
    scribe.write(rows(2, 2), source=6)
    scribe.commit()
    found = items(scribe.shelf())
    assert [type(one) for one in found] == [Recorded, Missing, Recorded]
    assert found[1] == Missing(5, 2, 4, "the sink was slow")
    reader = PartitionReader(scribe.shelf(), 0, 0)
    assert sum(isinstance(one, Missing) for end in (1, 2, 3, 4) for one in reader.read(end)) == 1


def test_a_damaged_block_is_a_hole_that_names_file_and_offsets() -> None:
    forger = Forger()
    forger.format(rows(0, 1).format)
    forger.batch(rows(0, 4), 0)
    broken = forger.batch(rows(4, 4), 4)
    behind = forger.batch(rows(8, 4), 8)
    found = items(forger.shelf(12, spoil=[broken + 90]))
    assert numbers(found) == [0, 1, 2, 3, 8, 9, 10, 11]
    (hole,) = holes(found)
    assert hole == Hole(0, 4, 7, f"`{forger.path}` is damaged from offset {broken} to {behind}")


def test_a_broken_length_is_found_out_and_the_next_block_is_searched_for() -> None:
    forger = Forger()
    forger.format(rows(0, 1).format)
    broken = [forger.batch(rows(4 * number, 4), 4 * number) for number in range(5)]
    found = items(forger.shelf(20, spoil=[broken[1], broken[2] + 1, broken[3] + 9]))
    assert numbers(found) == [0, 1, 2, 3, 16, 17, 18, 19]
    assert [(hole.first, hole.last) for hole in holes(found)] == [(4, 15)]


def test_damage_at_the_end_of_what_is_committed_is_a_hole_too() -> None:
    forger = Forger()
    forger.format(rows(0, 1).format)
    forger.batch(rows(0, 4), 0)
    broken = forger.batch(rows(4, 4), 4)
    shelf = forger.shelf(8, spoil=[broken + 60])
    assert shelf.heads() == (8,)
    found = items(shelf)
    assert numbers(found) == [0, 1, 2, 3]
    assert [(hole.first, hole.last) for hole in holes(found)] == [(4, 7)]
    assert shelf.chunk(0, 8, 1000) is None


def test_a_type_that_was_never_described_is_a_hole() -> None:
    forger = Forger()
    place = forger.format(rows(0, 1).format)
    forger.batch(rows(0, 4), 0)
    found = items(forger.shelf(4, spoil=[place + 60]))
    (hole,) = holes(found)
    assert (hole.first, hole.last) == (0, 3)
    assert "described" in hole.reason


def test_a_batch_that_contradicts_its_block_or_its_type_is_a_hole() -> None:
    forger = Forger()
    forger.format(rows(0, 1).format)
    place = forger.batch(rows(0, 4), 0, count=5)
    forger.add(BlockKind.BATCH, [b"".join(rows(5, 4).buffers())[:-8]], 5, count=4)
    forger.add(BlockKind.BATCH, [b"1234"], 9, count=3)
    forger.batch(rows(12, 2), 12)
    found = items(forger.shelf(14))
    assert numbers(found) == [12, 13]
    told = list(holes(found))
    assert [(hole.first, hole.last) for hole in told] == [(0, 4), (5, 8), (9, 11)]
    assert f"`{forger.path}`, offset {place}" in told[0].reason


def test_numbers_that_go_back_are_refused_with_their_place() -> None:
    forger = Forger()
    forger.format(rows(0, 1).format)
    forger.batch(rows(0, 4), 0)
    place = forger.batch(rows(2, 4), 2)
    with pytest.raises(JournalError, match=rf"2 follows 3 - at channel `trades`, partition 0, `.*`, offset {place}"):
        items(forger.shelf(6))


def test_batches_of_a_type_whose_descriptor_is_none_are_a_hole() -> None:
    forger = Forger()
    nonsense = b"no type at all"
    forger.add(BlockKind.FORMAT, [nonsense])
    payload = bytearray(b"".join(rows(0, 4).buffers()))
    payload[:8] = token(nonsense).to_bytes(8, "little")
    forger.add(BlockKind.BATCH, [bytes(payload)], 0, count=4)
    forger.format(rows(0, 1).format, 4)
    forger.batch(rows(4, 4), 4)
    shelf = forger.shelf(8)
    found = items(shelf)
    assert [(hole.first, hole.last) for hole in holes(found)] == [(0, 3)]
    assert numbers(found) == [4, 5, 6, 7]
    assert Journal(shelf).formats == (rows(0, 1).format,)


def test_a_mark_beyond_its_own_block_is_not_believed() -> None:
    forger = Forger()
    forger.format(rows(0, 1).format)
    forger.batch(rows(0, 4), 0, synced=1 << 40)
    shelf = forger.shelf(4)
    assert shelf.heads() == (4,)
    assert numbers(items(shelf)) == [0, 1, 2, 3]


def test_bytes_that_look_like_heads_do_not_keep_a_reader_busy() -> None:
    forger = Forger()
    forger.format(rows(0, 1).format)
    lures = numpy.tile(numpy.array([(1 << 24) - 1, 2], "<u4"), 20_000).tobytes()
    broken = forger.add(BlockKind.BATCH, [lures], 0, count=4)
    forger.batch(rows(4, 4), 4)
    found = items(forger.shelf(8, spoil=[broken, broken + 100]))
    assert numbers(found) == [4, 5, 6, 7]


@pytest.mark.parametrize("seed", range(15))
def test_what_was_lost_is_a_hole_before_and_after_a_recovery(seed: int) -> None:
    random = Random(seed)
    scribe = recorded(60, segment_bytes_max=2500)
    scribe.close()
    storage = scribe.storage
    for path in random.sample([path for path in storage.files() if path.endswith(".segment")][:-1], 3):
        storage.flip(path, random.randrange(8 * 64, 8 * storage.files()[path]))
    before = items(scribe.shelf())
    recover(storage, CHANNEL)
    again = Scribe(storage)
    again.write(rows(420, 5), source=9)
    after = items(again.shelf())
    assert numbers(after) == [*numbers(before), 420, 421, 422, 423, 424]
    assert [(hole.first, hole.last) for hole in holes(after)] == [(hole.first, hole.last) for hole in holes(before)]


def test_an_unreadable_segment_in_the_middle_is_a_hole() -> None:
    scribe = recorded(20, segment_bytes_max=600)
    firsts = Catalog(scribe.storage, CHANNEL).segments(0)
    path = Catalog(scribe.storage, CHANNEL).segment(0, firsts[2])
    scribe.storage.fail_read(path)
    found = items(scribe.shelf())
    (hole,) = holes(found)
    assert (hole.first, hole.last) == (firsts[2], firsts[3] - 1)
    assert path in hole.reason
    assert numbers(found) == [*range(firsts[2]), *range(firsts[3], 140)]


def test_a_segment_of_another_journal_is_not_read() -> None:
    scribe, other = recorded(20, segment_bytes_max=600), Scribe(disk(), "quotes", partitions=2)
    firsts = Catalog(scribe.storage, CHANNEL).segments(0)
    path = Catalog(scribe.storage, CHANNEL).segment(0, firsts[1])
    other.write(rows(0, 3), source=1)
    scribe.storage.remove(path)
    scribe.storage.open(path, write=True, create=True).append(
        [other.storage.read("quotes/1/00000000000000000000.segment")]
    )
    (hole,) = holes(items(scribe.shelf()))
    assert (hole.first, hole.last) == (firsts[1], firsts[2] - 1)
    assert "partition 1" in hole.reason


def read_or_refused(scribe: Scribe, start: int) -> list[object] | str:
    try:
        return list(items(scribe.shelf(), start))
    except JournalError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(20))
def test_no_flipped_bit_is_delivered_and_what_is_lost_is_told(seed: int) -> None:
    random = Random(seed)
    scribe = Scribe(disk(), segment_bytes_max=3000)
    for number in range(30):
        scribe.write(rows(number * 9, 9), source=number % 3)
    scribe.close()
    storage = scribe.storage
    last = Catalog(storage, CHANNEL).segment(0, Catalog(storage, CHANNEL).segments(0)[-1])
    for _ in range(25):
        path = random.choice([path for path in storage.files() if path.endswith(".segment")])
        bit = random.randrange(8 * storage.files()[path])
        storage.flip(path, bit)
        start = random.randrange(270)
        found = read_or_refused(scribe, start)
        if isinstance(found, str):
            assert path in found
        else:
            lost = {number for hole in holes(found) for number in range(hole.first, hole.last + 1)}
            head = scribe.shelf().heads()[0]
            assert numbers(found) == [number for number in range(start, head) if number not in lost]
            assert head == 270 or path == last  # the last mark may be what is broken
        storage.flip(path, bit)


def test_an_index_that_lies_leads_nobody_astray() -> None:
    scribe = Scribe(disk())
    for number in range(40):
        scribe.write(rows(number * 1000, 1000), at=number)
    catalog = Catalog(scribe.storage, CHANNEL)
    path = catalog.index(0, 0)
    index = scribe.storage.read(path)
    assert len(index) >= 2 * 56
    other = Scribe(disk())
    for number in range(60):
        other.write(rows(number * 700, 700), at=-number)
    for lie in (b"", index[:57], bytes(56 * 4), other.storage.read(path), index[56:]):
        scribe.storage.remove(path)
        scribe.storage.open(path, write=True, create=True).append([lie])
        assert numbers(items(scribe.shelf(), 17_500, 23_200)) == list(range(17_500, 23_200))
        span = Span(BEGIN + 20 * SECOND, BEGIN + 22 * SECOND)
        found = PartitionReader(scribe.shelf(), 0, 0, span).read(1 << 60)
        assert numbers(found) == list(range(20_000, 22_000))


def test_a_time_is_found_wherever_the_clock_stepped() -> None:
    scribe = Scribe(disk())
    times = [*range(30), *range(10, 40), 500, *range(35, 60)]
    for number, at in enumerate(times):
        scribe.write(rows(number * 500, 500), at=at)
    wanted = [number for number, at in enumerate(times) if 12 <= at < 15]
    span = Span(BEGIN + 12 * SECOND, BEGIN + 15 * SECOND)
    found = PartitionReader(scribe.shelf(), 0, 0, span).read(1 << 60)
    assert numbers(found) == [500 * number + step for number in wanted for step in range(500)]


def test_a_range_of_time_does_not_look_at_stretches_without_it() -> None:
    scribe = Scribe(disk())
    for number in range(100):
        scribe.write(rows(number * 1000, 1000), at=number)
    shelf = scribe.shelf()
    to = shelf.skip(0, 0, BEGIN + 90 * SECOND, BEGIN + 91 * SECOND)
    assert 50_000 < to <= 90_000
    assert shelf.skip(0, to, BEGIN + 90 * SECOND, BEGIN + 91 * SECOND) == to


def test_the_same_type_from_another_machine_is_read_as_it_was_sent() -> None:
    scribe = Scribe(disk())
    swapped = rows(0, 5).array.astype(DTYPE.newbyteorder(">"))
    scribe.write(Batch.of(swapped))
    (found,) = items(scribe.shelf())
    assert isinstance(found, Recorded)
    assert found.array.dtype == DTYPE.newbyteorder(">")
    assert found.array["number"].tolist() == [0, 1, 2, 3, 4]


def test_a_mistaken_place_is_told() -> None:
    shelf = recorded(1).shelf()
    with pytest.raises(LocalError, match="there is no partition 1, `trades` has 1"):
        shelf.chunk(1, 0, 100)
    with pytest.raises(LocalError, match="a sequence number is 0 or more, got -1"):
        shelf.chunk(0, -1, 100)


def test_waiting_ends_when_something_is_committed_or_the_time_is_over() -> None:
    scribe = recorded(1)
    shelf = scribe.shelf()
    assert not shelf.wait(shelf.heads(), 0.0)
    assert shelf.wait((0,), 0.0)
    scribe.write(rows(7, 1))
    assert shelf.wait((7,), 10.0)


def test_who_follows_lone_events_looks_at_few_blocks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all from the last entry of the index on: a stream asks for another few events each time."""
    looked, here = 0, threading.get_ident()

    def counting(data: Buffer, offset: int, seed: int) -> BlockHead | None:
        nonlocal looked
        looked += threading.get_ident() == here  # threads of other tests may have yet to end
        return parse_block(data, offset, seed)

    monkeypatch.setattr(segment_reader, "parse_block", counting)
    scribe = Scribe(disk())
    shelf, counts = scribe.shelf(), []
    for number in range(4000):
        scribe.write(rows(number, 1), at=number)
        if number % 100 == 99:
            assert shelf.heads() == (number + 1,)
            looked = 0
            assert numbers(items(shelf, number - 90, number - 40)) == list(range(number - 90, number - 40))
            counts.append(looked)
    assert 0 < min(counts) <= max(counts) < 1000  # all from the beginning would be 8,000
