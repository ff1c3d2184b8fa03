import hypothesis.strategies as st
import pytest
from hypothesis import given

from echoic.errors import JournalError
from echoic.recorder.blocks import (
    BLOCK_HEAD_BYTES,
    BLOCK_PAYLOAD_BYTES_MAX,
    SEGMENT_HEADER_BYTES,
    BlockHead,
    BlockKind,
    SegmentHeader,
    encode_block,
    encode_segment_header,
    parse_block,
    parse_segment_header,
)

U32, U64, I64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1)
heads = st.builds(
    BlockHead, st.sampled_from(BlockKind), sequence=U64, time_ns=I64, synced=U64, source=U64, first=U64, count=U32
)
segment_headers = st.builds(
    SegmentHeader, journal=st.binary(min_size=16, max_size=16), partition=U32, sequence=U64, time_ns=I64
)


@given(heads, st.lists(st.binary(max_size=40), max_size=4), U32)
def test_a_block_is_read_as_it_was_written(head: BlockHead, payload: list[bytes], seed: int) -> None:
    data = b"".join(encode_block(head, payload, seed))
    found = parse_block(data, 0, seed)
    assert found is not None
    size = sum(map(len, payload))
    assert found.payload_bytes == size
    assert found.block_bytes == len(data) == BLOCK_HEAD_BYTES + size + -size % 8
    assert data[BLOCK_HEAD_BYTES : BLOCK_HEAD_BYTES + size] == b"".join(payload)
    for name in ("kind", "sequence", "time_ns", "synced", "source", "first", "count"):
        assert getattr(found, name) == getattr(head, name)


@given(heads, st.binary(max_size=40), U32, st.data())
def test_a_flipped_bit_makes_a_block_none(head: BlockHead, payload: bytes, seed: int, data: st.DataObject) -> None:
    block = bytearray(b"".join(encode_block(head, [payload], seed)))
    bit = data.draw(st.integers(0, 8 * len(block) - 1))
    block[bit >> 3] ^= 1 << (bit & 7)
    assert parse_block(bytes(block), 0, seed) is None


@given(heads, st.binary(max_size=40), U32, st.data())
def test_a_part_of_a_block_is_none(head: BlockHead, payload: bytes, seed: int, data: st.DataObject) -> None:
    block = b"".join(encode_block(head, [payload], seed))
    assert parse_block(block[: data.draw(st.integers(0, len(block) - 1))], 0, seed) is None


@given(heads, st.binary(max_size=40), U32, U32)
def test_a_block_of_another_segment_is_none(head: BlockHead, payload: bytes, seed: int, other: int) -> None:
    block = b"".join(encode_block(head, [payload], seed))
    assert (parse_block(block, 0, other) is not None) == (seed == other)


@given(st.binary(max_size=300), U32, st.integers(0, 300))
def test_arbitrary_bytes_are_no_block(data: bytes, seed: int, offset: int) -> None:
    assert parse_block(data, offset, seed) is None


@given(segment_headers)
def test_a_segment_header_is_read_as_it_was_written(header: SegmentHeader) -> None:
    data, seed = encode_segment_header(header)
    assert len(data) == SEGMENT_HEADER_BYTES
    found = parse_segment_header(data, "here")
    assert found == SegmentHeader(header.journal, header.partition, header.sequence, header.time_ns, seed)


@given(segment_headers, st.integers(0, 8 * SEGMENT_HEADER_BYTES - 1))
def test_a_flipped_bit_in_a_segment_header_is_refused_and_named(header: SegmentHeader, bit: int) -> None:
    data = bytearray(encode_segment_header(header)[0])
    data[bit >> 3] ^= 1 << (bit & 7)
    with pytest.raises(JournalError, match="at here"):
        parse_segment_header(bytes(data), "here")


@given(st.binary(max_size=100))
def test_arbitrary_bytes_are_no_segment_header(data: bytes) -> None:
    with pytest.raises(JournalError, match="at here"):
        parse_segment_header(data, "here")


def test_a_payload_larger_than_a_block_can_be_is_refused() -> None:
    with pytest.raises(JournalError, match=f"limit is {BLOCK_PAYLOAD_BYTES_MAX}"):
        encode_block(BlockHead(BlockKind.BATCH, 0, 0), [bytes(BLOCK_PAYLOAD_BYTES_MAX), b"x"], 0)
