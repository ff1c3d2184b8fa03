"""A variable batch as columns: the same checks as the reader makes, for all records at once."""

import struct
from itertools import accumulate, pairwise
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import MalformedBatchError
from echoic.formats import Field, Format, Kind
from echoic.wire import Batch
from echoic.wire.columns import Columns, object_array
from tests.strategies import batches, formats
from tests.wire.samples import BIG, Mesh, Point, Report, format_of, plain, received, reports, thorough


def columns_of(batch: Batch) -> Columns:
    return Columns(batch.format, batch.records, batch.bounds)


def texts_of(columns: Columns, name: str, *, terminated: bool = True) -> list[bytes | None]:
    data, lengths, present = columns.texts(columns.fixed[name], name, terminated=terminated)
    ends = [0, *accumulate(lengths.tolist())]
    cut = [bytes(data[begin:end]) for begin, end in pairwise(ends)]
    return [text if here else None for text, here in zip(cut, present.tolist(), strict=True)]


@pytest.mark.parametrize("architecture", [None, BIG], ids=["native", "foreign"])
def test_columns_have_the_numbers_texts_and_arrays_of_all_records(architecture: Any) -> None:
    format = Format.of(Report) if architecture is None else Format.of(Report).on(architecture)
    columns = columns_of(Batch.of(reports(5), format))
    assert columns.fixed["at"].tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert columns.fixed["place"]["n"].tolist() == [0, -1, -2, -3, -4]
    texts = texts_of(columns, "name")
    assert texts == [event.name.encode() for event in reports(5)]
    notes = texts_of(columns, "note")
    assert notes == [b"note", None, b"note", None, b"note"]
    blocks, lengths = columns.vectors(
        format.field("samples"), columns.fixed["samples"], columns.fixed["n"], "Report.samples"
    )
    assert lengths.tolist() == [0, 1, 2, 3, 0]
    dtype = "<f4" if architecture is None else ">f4"
    assert [numpy.frombuffer(block, dtype).tolist() for block in blocks if block] == [
        [-1.0],
        [-1.0, 0.0],
        [-1.0, 0.0, 1.0],
    ]


def test_no_records_have_empty_columns() -> None:
    columns = columns_of(Batch.of([], Report))
    assert len(columns.fixed) == 0
    assert texts_of(columns, "name") == []
    assert columns.vectors(Format.of(Report).field("tail"), columns.fixed["tail"], None, "Report.tail")[0] == []


@pytest.mark.parametrize(
    ("format", "suits"),
    [
        (Format.of(Report), True),
        (Format.of(Report).on(BIG), True),
        (Format.of(Mesh), False),
        (Format.of(Point), True),
        (format_of(Field("s", Kind.STRING, 8)), True),
        (format_of(Field("s", Kind.STRING, 8), architecture=BIG.with_pointers()), False),
        (format_of(Field("s", Kind.STRING, 8, dimensions=(2,))), False),
        (format_of(Field("s", Kind.STRING, 8, dimensions=("",))), False),
    ],
)
def test_only_slots_of_text_and_numbers_suit_columns(format: Format, suits: bool) -> None:
    assert Columns.suits(format) == suits


def test_blocks_of_all_columns_together_cannot_be_longer_than_a_record() -> None:
    format = format_of(Field("a", Kind.BYTES, 8), Field("b", Kind.BYTES, 8))
    records = bytearray(Batch.of([{"a": b"", "b": b""}, {"a": b"12345678", "b": b""}], format).records)
    struct.pack_into("<II", records, 16 + 8, 16, 8)
    columns = Columns(format, memoryview(records), [0, 16, 40])
    assert texts_of(columns, "a", terminated=False) == [b"", b"12345678"]
    with pytest.raises(MalformedBatchError, match=r"Sample\.b`, record 1 of 2"):
        columns.texts(columns.fixed["b"], "Sample.b", terminated=False)


def test_the_message_has_the_record_the_field_and_the_numbers() -> None:
    batch = Batch.of(reports(4))
    records = bytearray(batch.records)
    struct.pack_into("<II", records, batch.bounds[2] + batch.format.field("name").offset, 9999, 77)
    columns = Columns(batch.format, memoryview(records), batch.bounds)
    with pytest.raises(MalformedBatchError, match=r"offset 9999 and length 77.*Report\.name.*record 2 of 4"):
        columns.texts(columns.fixed["name"], "Report.name", terminated=True)


def test_a_wrong_sizing_field_is_refused_with_both_numbers() -> None:
    batch = Batch.of(reports(4))
    records = bytearray(batch.records)
    struct.pack_into("<i", records, batch.bounds[3] + batch.format.field("n").offset, -1)
    columns = Columns(batch.format, memoryview(records), batch.bounds)
    with pytest.raises(MalformedBatchError, match=r"3 elements, the sizing field says -1 .*samples`, record 3 of 4"):
        columns.vectors(batch.format.field("samples"), columns.fixed["samples"], columns.fixed["n"], "Report.samples")


@thorough(60)
@given(st.data())
def test_an_object_array_has_the_values_of_any_variable_batch(data: st.DataObject) -> None:
    format = data.draw(formats().filter(lambda made: made.variable))
    events = data.draw(batches(format, special=True))
    batch = received(Batch.of(events, format))
    array = object_array(format, batch.records, batch.bounds)
    for field in format.fields:
        if field.kind is not Kind.CHAR:
            assert plain(list(array[field.name])) == plain([event[field.name] for event in events])


def test_numbers_of_an_object_array_are_in_this_machines_byte_order() -> None:
    array = received(Batch.of(reports(3), Format.of(Report).on(BIG))).array
    assert array["at"].dtype.isnative
    assert array["n"].dtype == numpy.int32
    assert array["n"].tolist() == [0, 1, 2]


def test_short_and_long_texts_are_cut_alike() -> None:
    for length in (1, 1000):
        events = [{"a": bytes([number % 251]) * (number % length + 1), "b": b""} for number in range(50)]
        columns = columns_of(Batch.of(events, format_of(Field("a", Kind.BYTES, 8), Field("b", Kind.BYTES, 8))))
        assert texts_of(columns, "a", terminated=False) == [event["a"] for event in events]
