"""Slots: following one that a stranger wrote."""

import struct
import tracemalloc
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import MalformedBatchError
from echoic.formats import ARCHITECTURES, Field, Format, Kind, bind
from echoic.wire import Batch, Decoder
from echoic.wire.slots import Extent, SlotReader, read_integer
from tests.wire.samples import format_of

FIXED = 16
SPAN = format_of(Field("s", Kind.STRING, 8), Field("t", Kind.STRING, 8))
BIG_SPAN = SPAN.on(ARCHITECTURES["sparc64"])
POINTERS = {
    "32 little": SPAN.on(ARCHITECTURES["i386"].with_pointers()),
    "32 big": SPAN.on(ARCHITECTURES["sparc32"].with_pointers()),
    "64 little": SPAN.on(ARCHITECTURES["x86_64"].with_pointers()),
    "64 big": SPAN.on(ARCHITECTURES["sparc64"].with_pointers()),
}


def record_of(slot: bytes, variable: bytes, *, before: bytes = b"") -> Extent:
    """Return a record whose first slot is `slot`, behind other bytes."""
    data = before + slot.ljust(FIXED, b"\0") + variable
    return Extent(data, len(before), len(data), FIXED)


def span(offset: int, length: int, order: str = "<") -> bytes:
    return struct.pack(f"{order}II", offset, length)


@pytest.mark.parametrize(("format", "order"), [(SPAN, "<"), (BIG_SPAN, ">")], ids=["little", "big"])
@pytest.mark.parametrize("before", [b"", b"another."])
def test_a_text_is_found_where_its_slot_says(format: Format, order: str, before: bytes) -> None:
    record = record_of(span(18, 3, order), b"xxabc\0xx", before=before)
    begin = len(before) + 18
    assert SlotReader(format).text(record, len(before), "S.s", terminated=True) == (begin, begin + 3)
    assert record.buffer[begin : begin + 3] == b"abc"


def test_bytes_may_end_with_the_record_and_a_string_needs_its_nul_before() -> None:
    reader = SlotReader(SPAN)
    assert reader.text(record_of(span(16, 8), b"abcdefgh"), 0, "S.s", terminated=False) == (16, 24)
    with pytest.raises(MalformedBatchError, match=r"bytes 16 to 25, the record has 24 - at `S\.s`"):
        reader.text(record_of(span(16, 8), b"abcdefgh"), 0, "S.s", terminated=True)


def test_a_null_slot_is_no_text() -> None:
    assert SlotReader(SPAN).text(record_of(span(0, 0), b""), 0, "S.s", terminated=True) is None


def test_an_empty_text_is_not_a_null_slot() -> None:
    assert SlotReader(SPAN).text(record_of(span(16, 0), bytes(8)), 0, "S.s", terminated=True) == (16, 16)


@pytest.mark.parametrize(
    ("slot", "message"),
    [
        (span(0, 1), "a null slot has length 1"),
        (span(1, 0), "points at byte 1, inside the fixed part of 16 bytes"),
        (span(15, 1), "points at byte 15, inside the fixed part"),
        (span(25, 0), "bytes 25 to 26, the record has 24"),
        (span(24, 0), "bytes 24 to 25, the record has 24"),
        (span(16, 8), "bytes 16 to 25, the record has 24"),
        (span(16, 0xFFFF_FFFF), "bytes 16 to 4294967312, the record has 24"),
        (span(0xFFFF_FFF8, 16), "bytes 4294967288 to 4294967305, the record has 24"),
        (span(0xFFFF_FFFF, 0xFFFF_FFFF), "the record has 24"),
        (span(0x8000_0000, 0x8000_0000), "the record has 24"),
        (span(16, 3), "a string of 3 bytes does not end with NUL"),
    ],
)
def test_a_text_slot_that_points_where_no_text_can_be_is_refused(slot: bytes, message: str) -> None:
    with pytest.raises(MalformedBatchError, match=rf"{message}.* - at `S\.s`"):
        SlotReader(SPAN).text(record_of(slot, b"abcdefg\0"), 0, "S.s", terminated=True)


@pytest.mark.parametrize(
    ("slot", "sizing", "message"),
    [
        (span(16, 2), 1, "the slot has 2 elements, the sizing field says 1"),
        (span(16, 2), -2, "the slot has 2 elements, the sizing field says -2"),
        (span(0, 2), None, "a null slot has length 2"),
        (span(0, 0), 1, "the slot has 0 elements, the sizing field says 1"),
        (span(8, 1), None, "points at byte 8, inside the fixed part"),
        (span(18, 1), None, "starts at byte 18, not a multiple of 4"),
        (span(16, 5), None, "bytes 16 to 36, the record has 32"),
        (span(16, 0xFFFF_FFFF), None, "the record has 32"),
        (span(0xFFFF_FFF8, 1), None, "bytes 4294967288 to 4294967292, the record has 32"),
        (span(40, 0), None, "the record has 32"),
    ],
)
def test_an_array_slot_that_points_where_no_array_can_be_is_refused(
    slot: bytes, sizing: int | None, message: str
) -> None:
    with pytest.raises(MalformedBatchError, match=rf"{message}.* - at `S\.x`"):
        SlotReader(SPAN).block(record_of(slot, bytes(16)), 0, sizing, 4, 4, "S.x")


def test_an_array_is_found_where_its_slot_says() -> None:
    reader = SlotReader(SPAN)
    assert reader.block(record_of(span(20, 3), bytes(16), before=bytes(8)), 8, 3, 4, 4, "S.x") == (28, 3)
    assert reader.block(record_of(span(0, 0), b""), 0, 0, 4, 4, "S.x")[1] == 0


def test_blocks_together_cannot_be_longer_than_the_variable_part() -> None:
    reader, record = SlotReader(SPAN), record_of(span(16, 8) + span(16, 8), bytes(16))
    reader.block(record, 0, None, 1, 1, "S.x")
    reader.block(record, 8, None, 1, 1, "S.y")
    with pytest.raises(MalformedBatchError, match=r"blocks overlap.*32 bytes - at `S\.z`"):
        reader.block(record, 0, None, 1, 1, "S.z")


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 64), st.sampled_from([1, 2, 4, 8]))
def test_no_slot_leads_out_of_the_variable_part(offset: int, length: int, variable: int, step: int) -> None:
    record = record_of(span(offset, length), bytes(variable), before=bytes(8))
    try:
        begin, count = SlotReader(SPAN).block(record, 8, None, step, step, "S.x")
    except MalformedBatchError:
        return
    assert count == length
    assert not count or (begin >= 24 and begin + count * step <= 24 + variable and (begin - 8) % step == 0)


def test_a_record_shorter_than_its_fixed_part_is_refused() -> None:
    with pytest.raises(MalformedBatchError, match="a record has 15 bytes, its fixed part needs 16"):
        Extent(bytes(100), 5, 20, 16)


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from(["little", "big"]), st.booleans(), st.data())
def test_integers_are_read_in_both_byte_orders(size: int, order: Any, signed: bool, data: st.DataObject) -> None:
    low, high = (-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1) if signed else (0, (1 << 8 * size) - 1)
    value = data.draw(st.integers(low, high))
    buffer = b"xyz" + value.to_bytes(size, order, signed=signed) + b"xyz"
    assert read_integer(buffer, 3, size, order, signed=signed) == value


@pytest.mark.parametrize("kind", POINTERS)
def test_a_c_pointer_leads_to_a_text_that_ends_at_its_nul(kind: str) -> None:
    format = POINTERS[kind]
    slot = (18).to_bytes(format.slots.size, format.byte_order)
    record = record_of(slot, b"xxabc\0xx")
    assert SlotReader(format).text(record, 0, "S.s", terminated=True) == (18, 21)


@pytest.mark.parametrize("length", [0, 1, 7, 62, 63, 64, 65, 318, 319, 320, 321, 1343, 1344, 1345, 5000])
def test_a_text_behind_a_c_pointer_is_found_whatever_its_length(length: int) -> None:
    """The first NUL counts, and nothing behind it: texts follow each other without a gap."""
    format = POINTERS["64 little"]
    variable = b"x" * length + b"\0" + b"y" * 70 + b"\0"
    record = record_of((16).to_bytes(8, "little"), variable, before=bytes(8))
    assert SlotReader(format).text(record, 8, "S.s", terminated=True) == (24, 24 + length)


@pytest.mark.parametrize("kind", POINTERS)
@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (3, "points at byte 3, inside the fixed part"),
        (24, "bytes 24 to 25, the record has 24"),
        (2**32 - 8, "the record has 24"),
        (22, "a string at byte 22 does not end with NUL inside the record"),
    ],
)
def test_a_c_pointer_that_leads_nowhere_is_refused(kind: str, offset: int, message: str) -> None:
    format = POINTERS[kind]
    record = record_of(offset.to_bytes(format.slots.size, format.byte_order), b"abc\0defg")
    with pytest.raises(MalformedBatchError, match=rf"{message}.* - at `S\.s`"):
        SlotReader(format).text(record, 0, "S.s", terminated=True)


@pytest.mark.parametrize("kind", POINTERS)
def test_a_c_pointer_to_an_array_needs_a_length_that_fits(kind: str) -> None:
    format = POINTERS[kind]
    slot = (16).to_bytes(format.slots.size, format.byte_order)
    reader = SlotReader(format)
    assert reader.block(record_of(slot, bytes(16)), 0, 4, 4, 4, "S.x") == (16, 4)
    for length, message in ((5, "the record has 32"), (-1, "says -1 elements"), (1 << 60, "the record has 32")):
        with pytest.raises(MalformedBatchError, match=rf"{message}.* - at `S\.x`"):
            reader.block(record_of(slot, bytes(16)), 0, length, 4, 4, "S.x")
    with pytest.raises(MalformedBatchError, match="a null slot has length 1"):
        reader.block(record_of(b"", bytes(16)), 0, 1, 4, 4, "S.x")


@pytest.mark.parametrize("kind", POINTERS)
def test_many_c_pointers_to_one_text_cannot_claim_more_than_the_variable_part(kind: str) -> None:
    format = POINTERS[kind]
    record = record_of((16).to_bytes(format.slots.size, format.byte_order), b"0123456\0" + bytes(8))
    reader = SlotReader(format)
    for _ in range(2):
        assert reader.text(record, 0, "S.s", terminated=True) == (16, 23)
    with pytest.raises(MalformedBatchError, match=r"blocks overlap.*32 bytes - at `S\.s`"):
        reader.text(record, 0, "S.s", terminated=True)


def test_a_64_bit_pointer_may_not_wrap_around() -> None:
    record = record_of((2**64 - 8).to_bytes(8, "little"), bytes(16))
    with pytest.raises(MalformedBatchError, match="the record has 32"):
        SlotReader(POINTERS["64 little"]).block(record, 0, 4, 4, 4, "S.x")


def test_a_short_text_behind_a_c_pointer_costs_no_copy_of_the_record() -> None:
    """Otherwise a record of n pointers to one empty string costs n times the record: minutes for one frame."""
    format = format_of(
        Field("n", Kind.INT, 4),
        Field("s", Kind.STRING, 8),
        Field("x", Kind.UINT, 1, dimensions=("n",)),
        architecture=ARCHITECTURES["x86_64"].with_pointers(),
    )
    batch = Batch.of([{"n": 1 << 21, "s": "short", "x": numpy.zeros(1 << 21, numpy.uint8)}], format)
    decoder, records, bounds = Decoder(bind(format)), batch.records, batch.bounds
    tracemalloc.start()
    try:
        (event,) = decoder.walk(records, bounds)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert event.s == "short"
    assert peak < 1 << 18
