"""Records that a stranger made up.

Every way to read a batch (`readings`) must refuse them with a declared error that says which record and which field, or
all must read the same out of them.
"""

import struct
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echoic.errors import EchoicError, MalformedBatchError, UnknownFormatError
from echoic.formats import ARCHITECTURES, Architecture, Field, Format, Kind, bind
from echoic.wire import Batch, Decoder
from echoic.wire.batch import HEADER_BYTES
from tests.strategies import formats, records_of, spans
from tests.wire.readings import WAYS, by_arrow, outcome, outcomes, ways_for
from tests.wire.samples import (
    BIG,
    Mesh,
    Report,
    cells_of,
    format_of,
    joined,
    parsed,
    plain,
    received,
    reports,
    thorough,
)

Change = Callable[["Forgery"], None]

RECORD = 1  # the record that is tampered with, of three


class Forgery:
    """The bytes of a batch of three, with a pen."""

    def __init__(self, events: list[Any], format: Format) -> None:
        self.format = format
        self.payload = bytearray(joined(Batch.of(events, format).buffers()))
        self.count = len(events)
        offsets = struct.unpack_from(f"<{self.count + 1}I", self.payload, HEADER_BYTES)
        self.head = len(self.payload) - offsets[-1]
        self.start, self.end = self.head + offsets[RECORD], self.head + offsets[RECORD + 1]
        self.order = ">" if format.byte_order == "big" else "<"

    @property
    def record_bytes(self) -> int:
        return self.end - self.start

    def place(self, path: str) -> int:
        """Return where a field of the tampered record stands; nested fields lie inline."""
        inside, at = self.format, self.start
        for name in path.split("."):
            at += inside.field(name).offset
            inside = inside.field(name).record or inside
        return at

    def slot(self, path: str) -> tuple[int, int]:
        offset, length = struct.unpack_from(f"{self.order}II", self.payload, self.place(path))
        return offset, length

    def write_slot(self, path: str, offset: int, length: int) -> None:
        struct.pack_into(f"{self.order}II", self.payload, self.place(path), offset, length)

    def write(self, path: str, letter: str, value: int) -> None:
        struct.pack_into(self.order + letter, self.payload, self.place(path), value)

    def batch(self) -> Batch:
        return parsed(bytes(self.payload), self.format)


def slot(path: str, offset: int, length: int) -> Change:
    return lambda forgery: forgery.write_slot(path, offset, length)


def longer(path: str, by: int) -> Change:
    """Let a slot claim more than there is, with its sizing field if it has one."""

    def change(forgery: Forgery) -> None:
        offset, length = forgery.slot(path)
        forgery.write_slot(path, offset, length + by)
        if path == "samples":
            forgery.write("n", "i", length + by)

    return change


def moved(path: str, by: int) -> Change:
    def change(forgery: Forgery) -> None:
        offset, length = forgery.slot(path)
        forgery.write_slot(path, offset + by, length)

    return change


def at_the_end(path: str, back: int, length: int) -> Change:
    return lambda forgery: forgery.write_slot(path, forgery.record_bytes - back, length)


def without_nul(path: str) -> Change:
    def change(forgery: Forgery) -> None:
        offset, length = forgery.slot(path)
        forgery.payload[forgery.start + offset + length] = 0x41

    return change


def not_utf8(path: str) -> Change:
    def change(forgery: Forgery) -> None:
        offset, _ = forgery.slot(path)
        forgery.payload[forgery.start + offset] = 0xFF

    return change


def all_at_one_block(forgery: Forgery) -> None:
    """Let every slot claim the whole variable part."""
    fixed = -(-forgery.format.size // 8) * 8
    for path in ("blob", "tail"):
        width = 2 if path == "tail" else 1
        forgery.write_slot(path, fixed, (forgery.record_bytes - fixed) // width)


def sizing(letter: str, value: int) -> Change:
    return lambda forgery: forgery.write("n", letter, value)


def sized(path: str, offset: int, length: int) -> Change:
    def change(forgery: Forgery) -> None:
        forgery.write_slot(path, offset, length)
        forgery.write("n", "i", length)

    return change


REPORT_FORGERIES: dict[str, tuple[Change, str]] = {
    "text far outside": (slot("name", 1 << 20, 4), "name"),
    "text one byte too long": (at_the_end("name", 4, 4), "name"),
    "text at the end": (at_the_end("name", 0, 0), "name"),
    "text behind the end": (at_the_end("name", -1, 0), "name"),
    "bytes one byte too long": (at_the_end("blob", 4, 5), "blob"),
    "text in the fixed part": (slot("name", 8, 4), "name"),
    "text at the last fixed byte": (lambda f: f.write_slot("name", f.format.size - 1, 0), "name"),
    "text at its own slot": (slot("note", 1, 0), "note"),
    "text that wraps around": (slot("name", 0xFFFF_FFF8, 8), "name"),
    "text that wraps around to the fixed part": (slot("name", 0xFFFF_FFF8, 0x10), "name"),
    "bytes of 4 GiB": (longer("blob", 0xFFFF_FF00), "blob"),
    "array of 2**32 - 1 elements": (slot("tail", 104, 0xFFFF_FFFF), "tail"),
    "array that wraps around": (slot("tail", 0xFFFF_FFF8, 4), "tail"),
    "array whose bytes wrap around": (slot("tail", 104, 0x8000_0004), "tail"),
    "array in the fixed part": (slot("tail", 16, 2), "tail"),
    "array that is not aligned": (moved("samples", 1), "samples"),
    "array aligned to less than its elements": (moved("samples", 2), "samples"),
    "sizing field too large": (sizing("i", 2), "samples"),
    "sizing field too small": (sizing("i", 0), "samples"),
    "sizing field negative": (sizing("i", -1), "samples"),
    "sizing field the least": (sizing("i", -(1 << 31)), "samples"),
    "sizing field and slot agree on too many": (longer("samples", 1 << 20), "samples"),
    "sizing field and slot agree on a negative number": (sized("samples", 104, 0x7FFF_FFFF), "samples"),
    "null array with length": (slot("tail", 0, 1), "tail"),
    "null text with length": (slot("name", 0, 3), "name"),
    "null bytes with length": (slot("blob", 0, 1), "blob"),
    "null optional text with length": (slot("note", 0, 1), "note"),
    "no NUL": (without_nul("name"), "name"),
    "not UTF-8": (not_utf8("name"), "name"),
    "overlapping blocks": (all_at_one_block, ""),
}


def forged_report(change: Change, architecture: Architecture | None) -> Batch:
    format = Format.of(Report) if architecture is None else Format.of(Report).on(architecture)
    forgery = Forgery(reports(3), format)
    change(forgery)
    return forgery.batch()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("forgery", REPORT_FORGERIES)
@pytest.mark.parametrize("architecture", [None, BIG], ids=["native", "foreign"])
def test_a_forged_record_is_refused_naming_record_and_field(way: str, forgery: str, architecture: Any) -> None:
    change, field = REPORT_FORGERIES[forgery]
    with pytest.raises(MalformedBatchError) as caught:
        WAYS[way](forged_report(change, architecture))
    assert f"record {RECORD} of 3" in str(caught.value)
    assert f"`Report.{field}" in str(caught.value)


def test_the_forgeries_start_from_a_record_that_every_way_reads() -> None:
    for architecture in (None, BIG):
        found = outcomes(lambda architecture=architecture: forged_report(lambda _: None, architecture))
        assert len(found) == len(WAYS)
        assert all(events == found["walking"] for events in found.values())
        assert len(found["walking"]) == 3


def cell_slot(forgery: Forgery, index: int, name: str) -> int:
    """Return where a slot of an element of `cells` stands."""
    cells, _ = forgery.slot("cells")
    cell = forgery.format.field("cells").record
    assert cell is not None
    return forgery.start + cells + index * cell.size + cell.field(name).offset


def in_cell(name: str, offset: int, length: int) -> Change:
    return lambda forgery: struct.pack_into(
        f"{forgery.order}II", forgery.payload, cell_slot(forgery, 1, name), offset, length
    )


def in_tags(offset: int, length: int) -> Change:
    def change(forgery: Forgery) -> None:
        tags, _ = forgery.slot("tags")
        struct.pack_into(f"{forgery.order}II", forgery.payload, forgery.start + tags, offset, length)

    return change


def cells_inside_themselves(forgery: Forgery) -> None:
    """Let the weights of a cell be the block in which the cell itself stands."""
    cells, _ = forgery.slot("cells")
    struct.pack_into(f"{forgery.order}II", forgery.payload, cell_slot(forgery, 1, "weights"), cells, 1 << 20)


def too_many_cells(forgery: Forgery) -> None:
    """Let slot and sizing field agree on more elements than there are."""
    forgery.write("n", "h", 30_000)
    forgery.write_slot("cells", forgery.slot("cells")[0], 30_000)


MESH_FORGERIES: dict[str, tuple[Change, str]] = {
    "text of an element outside": (in_cell("label", 1 << 20, 2), "cells.label"),
    "text of an element in the fixed part": (in_cell("label", 8, 2), "cells.label"),
    "text of an element that wraps around": (in_cell("label", 0xFFFF_FFF8, 16), "cells.label"),
    "null text of an element with length": (in_cell("label", 0, 2), "cells.label"),
    "array of an element outside": (in_cell("weights", 1 << 20, 2), "cells.weights"),
    "array of an element with another length": (in_cell("weights", 0, 1), "cells.weights"),
    "array of an element inside itself": (cells_inside_themselves, "cells.weights"),
    "elements outside": (slot("cells", 1 << 20, 2), "cells"),
    "more elements than there are": (
        too_many_cells,
        "cells",
    ),
    "elements that are not aligned": (moved("cells", 1), "cells"),
    "negative number of elements": (lambda f: f.write("n", "h", -2), "cells"),
    "text of an array of texts outside": (in_tags(1 << 20, 1), "tags"),
    "array of texts outside": (slot("tags", 1 << 20, 1), "tags"),
    "array of texts that is not aligned": (moved("tags", 2), "tags"),
    "text of a fixed array outside": (slot("pair", 1 << 20, 1), "pair"),
    "text of a nested record outside": (slot("corner.label", 1 << 20, 1), "corner.label"),
    "text of a nested record without NUL": (without_nul("corner.label"), "corner.label"),
    "sizing field of a nested record": (lambda f: f.write("corner.k", "B", 200), "corner.weights"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("forgery", MESH_FORGERIES)
@pytest.mark.parametrize("architecture", [None, BIG], ids=["native", "foreign"])
def test_a_forged_record_with_slots_in_its_blocks_is_refused(way: str, forgery: str, architecture: Any) -> None:
    change, field = MESH_FORGERIES[forgery]
    format = Format.of(Mesh) if architecture is None else Format.of(Mesh).on(architecture)
    forged = Forgery(cells_of(3), format)
    change(forged)
    with pytest.raises(MalformedBatchError) as caught:
        WAYS[way](forged.batch())
    assert f"record {RECORD} of 3" in str(caught.value)
    assert f"`Mesh.{field}" in str(caught.value)


@pytest.mark.parametrize("way", WAYS)
def test_many_slots_at_one_block_do_not_unfold_into_more_than_the_record(way: str) -> None:
    """A kilobyte of text that a thousand slots point at would become a megabyte of objects."""
    format = format_of(Field("texts", Kind.BYTES, 8, dimensions=(1000,)))
    payload = bytearray(joined(Batch.of([{"texts": [b"x" * 1000] + [b""] * 999}], format).buffers()))
    first = struct.unpack_from("<II", payload, HEADER_BYTES + 8)
    for index in range(1, 1000):
        struct.pack_into("<II", payload, HEADER_BYTES + 8 + 8 * index, *first)
    with pytest.raises(MalformedBatchError, match="record 0 of 1"):
        WAYS[way](parsed(bytes(payload), format))


BOUNDS: dict[str, Callable[[list[int]], list[int]]] = {
    "not from 0": lambda b: [8, *b[1:]],
    "not to the end": lambda b: [*b[:-1], b[-1] - 8],
    "past the end": lambda b: [*b[:-1], b[-1] + 8],
    "far past the end": lambda b: [*b[:-1], 0xFFFF_FFF8],
    "not ascending": lambda b: [b[0], b[2], b[1], b[3]],
    "repeated": lambda b: [b[0], b[1], b[1], b[3]],
    "not multiples of 8": lambda b: [b[0], b[1] + 4, b[2], b[3]],
    "record shorter than its fixed part": lambda b: [b[0], 8, b[2], b[3]],
    "middle past the end": lambda b: [b[0], b[1], 0x7FFF_FFF8, b[3]],
    "middle wraps around": lambda b: [b[0], b[1], 0xFFFF_FFF8, b[3]],
    "all zero": lambda b: [0, 0, 0, 0],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", BOUNDS)
@pytest.mark.parametrize("events", [reports(3), cells_of(3)], ids=["fast", "careful"])
def test_offsets_that_do_not_cut_into_records_are_refused(way: str, change: str, events: list[Any]) -> None:
    payload = bytearray(joined(Batch.of(events).buffers()))
    offsets = list(struct.unpack_from("<4I", payload, HEADER_BYTES))
    struct.pack_into("<4I", payload, HEADER_BYTES, *BOUNDS[change](offsets))
    with pytest.raises(MalformedBatchError, match=r"records? "):
        WAYS[way](parsed(bytes(payload), Format.of(type(events[0]))))


def texts(record: bytes, offsets: list[int], *, before: bytes = b"") -> Batch:
    """Return a batch of texts with two records that are fine by themselves, and any offsets."""
    format = format_of(Field("s", Kind.STRING, 8))
    head = struct.pack("<QII", format.token, 2, 1) + struct.pack("<4I", *offsets, 0)
    return parsed(head + before + record * 2, format)


@pytest.mark.parametrize("way", WAYS)
def test_fine_records_are_refused_when_they_do_not_start_where_records_do(way: str) -> None:
    even, odd = struct.pack("<II", 8, 3) + b"abc\0\0\0\0\0", struct.pack("<II", 8, 3) + b"abc\0"
    assert WAYS[way](texts(even, [0, 16, 32])) == [{"s": "abc"}] * 2
    with pytest.raises(MalformedBatchError, match="records begin at 8 and end at 40, expected 0 and 40"):
        WAYS[way](texts(even, [8, 24, 40], before=bytes(8)))
    with pytest.raises(MalformedBatchError, match=r"bytes 0 to 12, expected multiples of 8.* record 0 of 2"):
        WAYS[way](texts(odd, [0, 12, 24]))


@pytest.mark.parametrize("way", WAYS)
def test_trailing_and_missing_bytes_of_a_variable_batch_are_refused(way: str) -> None:
    payload = joined(Batch.of(reports(3)).buffers())
    for changed in (payload + bytes(8), payload + b"x", payload[:-8], payload[:-1]):
        with pytest.raises(MalformedBatchError, match="records begin at 0 and end at"):
            WAYS[way](parsed(changed, Format.of(Report)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [0, 1, 2, 4, 5])
def test_a_wrong_count_of_a_variable_batch_is_refused(way: str, count: int) -> None:
    payload = bytearray(joined(Batch.of(reports(3)).buffers()))
    struct.pack_into("<I", payload, 8, count)
    with pytest.raises(MalformedBatchError):
        WAYS[way](parsed(bytes(payload), Format.of(Report)))


CHANGES = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4)
SMALL = st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from([0, 1, 2, 4, 8, 16, 0x7F, 0x80, 0xFF])), max_size=4)


def check_all_ways_agree(payload: bytes, format: Format) -> None:
    found = outcomes(lambda: parsed(payload, format))
    walked = found["walking"]
    assert walked is MalformedBatchError or isinstance(walked, list)
    for way, result in found.items():
        assert result == walked, way


SUBJECTS: dict[str, tuple[list[Any], Architecture | None]] = {
    "report": (reports(3), None),
    "foreign report": (reports(3), ARCHITECTURES["sparc32"]),
    "packed report": (reports(3), ARCHITECTURES["packed"]),
    "mesh": (cells_of(3), None),
    "foreign mesh": (cells_of(3), ARCHITECTURES["m68k"]),
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_flipped_bytes_are_refused_by_all_ways_or_read_alike_by_all(subject: str) -> None:
    events, architecture = SUBJECTS[subject]
    declared = Format.of(type(events[0]))
    format = declared if architecture is None else declared.on(architecture)
    good = joined(Batch.of(events, format).buffers())
    records = len(received(Batch.of(events, format)).records)

    @thorough(250)
    @given(CHANGES | SMALL)
    def check(changes: list[tuple[int, int]]) -> None:
        payload = bytearray(good)
        for at, value in changes:
            payload[len(good) - records + at % records] = value
        check_all_ways_agree(bytes(payload), format)

    check()


@pytest.mark.parametrize("subject", ["report", "mesh"])
def test_flipped_bytes_of_header_and_offsets_are_refused_by_all_ways_or_read_alike(subject: str) -> None:
    events, _ = SUBJECTS[subject]
    format = Format.of(type(events[0]))
    good = joined(Batch.of(events).buffers())

    @thorough(150)
    @given(CHANGES | SMALL)
    @example([(8, 2)])
    def check(changes: list[tuple[int, int]]) -> None:
        payload = bytearray(good)
        for at, value in changes:
            payload[at % 40] = value
        try:
            parsed(bytes(payload), format)
        except (MalformedBatchError, UnknownFormatError):
            return
        check_all_ways_agree(bytes(payload), format)

    check()


@pytest.mark.parametrize("architecture", [ARCHITECTURES["i386"], ARCHITECTURES["sparc64"]], ids=["i386", "sparc64"])
def test_flipped_bytes_behind_c_pointers_are_refused_by_all_ways_or_read_alike(architecture: Architecture) -> None:
    whole = Format.of(Mesh)
    fields = [field for field in whole.fields if field.name != "tags"]
    format = Format.place("Mesh", fields, architecture.with_pointers())
    events = [{field.name: getattr(event, field.name) for field in fields} for event in cells_of(3)]
    good = joined(Batch.of(events, format).buffers())
    records = len(received(Batch.of(events, format)).records)
    assert len(ways_for(format)) == len(WAYS) - 1

    @thorough(250)
    @given(CHANGES | SMALL)
    def check(changes: list[tuple[int, int]]) -> None:
        payload = bytearray(good)
        for at, value in changes:
            payload[len(good) - records + at % records] = value
        check_all_ways_agree(bytes(payload), format)

    check()


@thorough(40)
@given(st.data())
def test_flipped_bytes_of_any_type_are_refused_by_all_ways_or_read_alike(data: st.DataObject) -> None:
    format = data.draw(formats(architectures=spans()).filter(lambda made: made.variable))
    events = data.draw(st.lists(records_of(format), min_size=1, max_size=3))
    payload = bytearray(joined(Batch.of(events, format).buffers()))
    records = len(received(Batch.of(events, format)).records)
    check_all_ways_agree(bytes(payload), format)
    for at, value in data.draw(CHANGES | SMALL):
        payload[len(payload) - records + at % records] = value
    check_all_ways_agree(bytes(payload), format)


def test_garbage_in_a_fixed_batch_is_only_numbers() -> None:
    """Nothing in a fixed record can be malformed; all ways read the same numbers."""
    format = Format.of(Report).field("place").record
    assert format is not None
    records = numpy.random.default_rng(5).integers(0, 256, 50 * format.size, numpy.uint8).tobytes()
    payload = struct.pack("<QII", format.token, 50, 0) + records
    found = outcomes(lambda: parsed(payload, format))
    assert all(events == found["walking"] for events in found.values())
    assert len(found["walking"]) == 50


def test_malformed_records_are_found_wherever_they_stand_in_a_long_batch() -> None:
    format = Format.of(Report)
    good = joined(Batch.of(reports(300)).buffers())
    offsets = struct.unpack_from("<301I", good, HEADER_BYTES)
    for index in (0, 1, 150, 299):
        payload = bytearray(good)
        at = len(good) - offsets[-1] + offsets[index] + format.field("name").offset
        struct.pack_into("<II", payload, at, 3, 3)
        for name, way in WAYS.items():
            with pytest.raises(MalformedBatchError, match=rf"Report\.name.*record {index} of 300"):
                way(parsed(bytes(payload), format))
            assert name


def test_a_malformed_batch_does_not_spoil_the_next() -> None:
    decoder, format = Decoder(bind(Report)), Format.of(Report)
    decoder.compile()
    good, bad = Batch.of(reports(3)), forged_report(slot("name", 3, 3), None)
    for _ in range(3):
        with pytest.raises(MalformedBatchError):
            decoder.decode(bad.records, bad.offsets)
        assert plain(decoder.decode(good.records, good.bounds)) == plain(reports(3))
    assert outcome(by_arrow, forged_report(slot("name", 3, 3), None)) is MalformedBatchError
    assert issubclass(MalformedBatchError, EchoicError)
    assert format.variable
