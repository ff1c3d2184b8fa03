import hypothesis.strategies as st
import pytest
from hypothesis import given

from echoic.formats import Format
from echoic.recorder.blocks import (
    SEGMENT_HEADER_BYTES,
    BlockHead,
    BlockKind,
    SegmentHeader,
    encode_block,
    encode_segment_header,
)
from echoic.recorder.index import IndexBuilder, load_index
from echoic.recorder.scanning import Scan, scan
from echoic.recorder.standing import encode_gap
from tests.recorder.written import EVENT, batch

HEADER = SegmentHeader(bytes(16), 0, 10, 0)
START, SEED = encode_segment_header(HEADER)
KNOWN = SegmentHeader(bytes(16), 0, 10, 0, SEED)
DESCRIPTOR = Format.of(EVENT).descriptor


def encode(kind: BlockKind, sequence: int, payload: bytes = b"", synced: int = 0, **numbers: int) -> bytes:
    return b"".join(encode_block(BlockHead(kind, sequence, 0, synced, **numbers), [payload], SEED))


def batch_block(sequence: int, first: int, count: int, synced: int = 0) -> bytes:
    payload = b"".join(batch(1, first, count).buffers())
    return encode(BlockKind.BATCH, sequence, payload, synced, source=1, first=first, count=count)


BEGIN = START + encode(BlockKind.POSITIONS, 10) + encode(BlockKind.FORMAT, 10, DESCRIPTOR)
ONE, TWO = batch_block(10, 0, 3), batch_block(13, 3, 2)
SOUND = BEGIN + ONE + TWO


def scanned(data: bytes, *, last: bool = True) -> Scan:
    return scan(memoryview(data), KNOWN, "here", last=last)


def kinds(data: bytes, found: Scan) -> list[BlockKind]:
    return [head.kind for _, head in found.heads(memoryview(data))]


def test_a_sound_segment_has_no_flaws() -> None:
    found = scanned(SOUND)
    assert not found.flaws
    assert (found.end, found.sequence, found.sealed) == (len(SOUND), 15, False)
    assert kinds(SOUND, found) == [BlockKind.POSITIONS, BlockKind.FORMAT, BlockKind.BATCH, BlockKind.BATCH]


def test_a_sealed_segment_is_sealed() -> None:
    assert scanned(SOUND + encode(BlockKind.SEAL, 15, synced=len(SOUND)), last=False).sealed


def test_a_segment_that_another_follows_must_be_sealed() -> None:
    (flaw,) = scanned(SOUND, last=False).flaws
    assert flaw.kind == "damage"
    assert "not sealed" in flaw.what


@pytest.mark.parametrize("cut", range(1, len(TWO)))
def test_a_write_that_did_not_finish_is_a_torn_end(cut: int) -> None:
    found = scanned(SOUND[:-cut])
    (flaw,) = found.flaws
    assert (flaw.kind, flaw.offset, flaw.end_offset) == ("torn", len(BEGIN + ONE), len(SOUND) - cut)
    assert (found.end, found.sequence) == (len(BEGIN + ONE), 13)


def test_what_is_broken_before_a_mark_is_damage() -> None:
    data = bytearray(SOUND + encode(BlockKind.COMMIT, 15, synced=len(SOUND)))
    data[len(BEGIN) + 70] ^= 1
    found = scanned(bytes(data))
    (flaw,) = found.flaws
    assert (flaw.kind, flaw.offset, flaw.end_offset) == ("damage", len(BEGIN), len(BEGIN + ONE))
    assert found.broken == ((len(BEGIN), len(BEGIN + ONE)),)
    assert found.sequence == 15


def test_a_mark_behind_a_broken_place_counts_too() -> None:
    marked = SOUND + encode(BlockKind.COMMIT, 15, synced=len(BEGIN + ONE))
    data = bytearray(marked)
    data[len(BEGIN + ONE) + 70] ^= 1
    found = scanned(bytes(data))
    assert [flaw.kind for flaw in found.flaws] == ["torn"]
    data[len(BEGIN) - 30] ^= 1
    assert [flaw.kind for flaw in scanned(bytes(data)).flaws] == ["damage", "torn"]


def test_zeros_behind_the_last_block_are_a_torn_end() -> None:
    found = scanned(SOUND + bytes(4096))
    assert [flaw.kind for flaw in found.flaws] == ["torn"]
    assert found.end == len(SOUND)


def test_the_header_and_the_first_block_are_never_a_torn_end() -> None:
    data = bytearray(SOUND)
    data[SEGMENT_HEADER_BYTES + 20] ^= 1
    assert [flaw.kind for flaw in scanned(bytes(data)).flaws] == ["damage"]
    assert [flaw.kind for flaw in scanned(START).flaws] == ["damage"]


def test_a_length_that_leads_too_far_costs_no_other_block() -> None:
    data = bytearray(BEGIN + ONE + TWO + batch_block(15, 5, 1) + encode(BlockKind.COMMIT, 16, synced=len(SOUND)))
    wrong = len(ONE) - 56 + len(TWO)
    data[len(BEGIN) : len(BEGIN) + 4] = wrong.to_bytes(4, "little")
    assert scanned(bytes(data)).broken == ((len(BEGIN), len(BEGIN + ONE)),)


@pytest.mark.parametrize(
    ("block", "what"),
    [
        (batch_block(16, 5, 1), "sequence"),
        (batch_block(14, 5, 1), "sequence"),
        (batch_block(15, 4, 1), "number"),
        (batch_block(15, 6, 1), "number"),
        (encode(BlockKind.BATCH, 15, b"short", source=1, first=5, count=1), "BATCH"),
        (encode(BlockKind.BATCH, 15, bytes(16), source=1, first=5, count=1), "events"),
        (encode(BlockKind.BATCH, 15, bytes(8) + b"\1" + bytes(7), source=1, first=5, count=1), "not described"),
        (encode(BlockKind.FORMAT, 15, b"nothing"), "describes no type"),
        (encode(BlockKind.GAP, 15, b"\1"), "GAP"),
        (encode(BlockKind.GAP, 15, encode_gap(2**64 - 1, ""), source=1, first=5), "number"),
        (encode(BlockKind.POSITIONS, 15, bytes(15)), "POSITIONS"),
        (encode(BlockKind.COMMIT, 15, b"?"), "expected 0"),
        (encode(BlockKind.COMMIT, 15, count=1), "events"),
        (encode(BlockKind.COMMIT, 15, synced=1_000_000), "on the disk"),
    ],
)
def test_a_block_with_a_right_checksum_may_still_contradict(block: bytes, what: str) -> None:
    (flaw,) = scanned(SOUND + block).flaws
    assert what in flaw.what


def test_sequence_numbers_that_are_lost_for_good_are_told_by_positions() -> None:
    data = SOUND + encode(BlockKind.POSITIONS, 20) + batch_block(20, 5, 1)
    found = scanned(data)
    assert not found.flaws
    assert found.sequence == 21


def test_nothing_may_follow_the_seal() -> None:
    data = SOUND + encode(BlockKind.SEAL, 15, synced=len(SOUND)) + encode(BlockKind.COMMIT, 15)
    assert "seal" in scanned(data, last=False).flaws[0].what


@given(st.binary(max_size=2000), st.booleans())
def test_arbitrary_blocks_are_flaws_and_no_other_error(data: bytes, last: bool) -> None:
    assert scanned(START + data, last=last).flaws
    found = scanned(SOUND + data, last=last)
    assert bool(found.flaws) == (bool(data) or not last)
    list(found.heads(memoryview(SOUND + data)))


U64 = st.integers(0, 20) | st.integers(0, 2**64 - 1)
blocks = st.builds(
    encode,
    st.sampled_from(BlockKind),
    U64,
    st.binary(max_size=40),
    U64,
    source=U64,
    first=U64,
    count=st.integers(0, 2**32 - 1),
)


@given(st.lists(blocks | st.binary(max_size=80) | st.sampled_from([ONE, TWO, BEGIN]), max_size=12), st.booleans())
def test_any_blocks_with_right_checksums_are_scanned(pieces: list[bytes], last: bool) -> None:
    data = memoryview(START + b"".join(pieces))
    found = scan(data, KNOWN, "here", last=last)
    ends = [offset + head.block_bytes for offset, head in found.heads(data)]
    assert ends == sorted(ends)
    assert found.end <= len(data)


def test_bytes_made_to_look_like_heads_do_not_keep_anybody_busy() -> None:
    """Each of them says to have a megabyte: to believe them all would take sixteen gigabytes of checksums."""
    likely = (1_000_000).to_bytes(4, "little") + encode(BlockKind.BATCH, 10, bytes(8), count=1)[4:]
    data = BEGIN + likely * (2_000_000 // len(likely))
    (flaw,) = scanned(data).flaws
    assert flaw.end_offset == len(data)


def test_thousands_of_broken_places_are_told_in_a_thousand_flaws() -> None:
    data = bytearray(BEGIN)
    for _ in range(3000):
        data += bytes(8) + encode(BlockKind.COMMIT, 10, synced=len(data))
    found = scanned(bytes(data))
    assert 1 <= len(found.flaws) <= 1001
    assert found.flaws[-1].end_offset == len(data)


@given(st.lists(st.integers(1, 3000), max_size=200))
def test_an_index_is_the_stretches_of_its_segment(counts: list[int]) -> None:
    builder, sequence, offset = IndexBuilder(SEED, 10), 10, SEGMENT_HEADER_BYTES
    for number, count in enumerate(counts):
        builder.add(BlockHead(BlockKind.BATCH, sequence, number, count=count), count * 16 + 56)
        sequence, offset = sequence + count, offset + count * 16 + 56
    data = b"".join(builder.take())
    entries = load_index(data, SEED, offset)
    assert len(data) == 56 * len(entries)
    end, following = SEGMENT_HEADER_BYTES, 10
    for entry in entries:
        assert (entry.offset, entry.sequence) == (end, following)
        assert entry.time_min_ns <= entry.time_max_ns
        end, following = entry.end, following + entry.events
    assert offset - end < 256 * 1024


@given(st.binary(max_size=300), st.integers(0, 2**32 - 1))
def test_arbitrary_bytes_are_an_empty_index(data: bytes, seed: int) -> None:
    assert load_index(data, seed, 10**9) == []
