"""Arrow schemas as event types, and event types as Arrow schemas."""

import base64
import enum
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings

from echoic.errors import FormatError
from echoic.formats import ARCHITECTURES, NATIVE, Array, Format, Kind, char, event, float32, int8, int16, uint32
from echoic.formats.limits import DESCRIPTOR_BYTES_MAX
from echoic.formats.to_arrow import DESCRIPTOR_KEY
from tests.strategies import formats


class Side(enum.IntEnum):
    BUY = 1


class Wide(enum.IntEnum):
    MOST = 2**64 - 1


@event
class Cell:
    x: int8
    label: str | None


@event
class Everything:
    n: int16
    ratio: float32
    valid: bool
    letter: char
    code: Array[char, 16]
    codes: Array[char, "n", 4]
    letters: Array[char, "n"]
    grid: Array[uint32, 2, 3]
    samples: Array[float, "n", 3]
    cell: Cell
    cells: Array[Cell, ...]
    side: Side
    wide: Wide
    name: str
    note: str | None
    raw: bytes


def item(kind: pyarrow.DataType) -> pyarrow.Field:
    return pyarrow.field("item", kind, nullable=False)


CELL = pyarrow.struct(
    [
        pyarrow.field("x", pyarrow.int8(), nullable=False),
        pyarrow.field("label", pyarrow.string(), nullable=True),
    ]
)


def test_every_kind_of_field_has_its_column() -> None:
    expected: dict[str, Any] = {
        "n": pyarrow.int16(),
        "ratio": pyarrow.float32(),
        "valid": pyarrow.bool_(),
        "letter": pyarrow.binary(1),
        "code": pyarrow.binary(16),
        "codes": pyarrow.list_(item(pyarrow.binary(4))),
        "letters": pyarrow.list_(item(pyarrow.binary(1))),
        "grid": pyarrow.list_(item(pyarrow.list_(item(pyarrow.uint32()), 3)), 2),
        "samples": pyarrow.list_(item(pyarrow.list_(item(pyarrow.float64()), 3))),
        "cell": CELL,
        "cells": pyarrow.list_(item(CELL)),
        "side": pyarrow.int32(),
        "wide": pyarrow.uint64(),
        "name": pyarrow.string(),
        "note": pyarrow.string(),
        "raw": pyarrow.binary(),
    }
    schema = Format.of(Everything).arrow_schema
    assert {column.name: column.type for column in schema} == expected
    assert [column.name for column in schema if column.nullable] == ["note"]


@settings(max_examples=40)
@given(formats())
def test_a_schema_gives_back_the_format_it_came_from(format: Format) -> None:
    assert Format.of(format.arrow_schema) == format


@given(formats())
def test_without_its_metadata_a_schema_still_has_names_widths_and_nesting(format: Format) -> None:
    plain = format.arrow_schema.remove_metadata()
    read = Format.of(plain)
    assert read.arrow_schema.equals(plain)
    assert read == read.on(NATIVE)
    assert [path for path, _ in read.walk()] == [path for path, _ in format.walk()]


def test_a_list_of_single_bytes_stays_a_list() -> None:
    schema = pyarrow.schema([pyarrow.field("a", pyarrow.list_(item(pyarrow.binary(1)), 3), nullable=False)])
    assert Format.of(schema).arrow_schema.equals(schema)


def test_a_list_without_metadata_tells_its_own_length() -> None:
    read = Format.of(Format.of(Everything).arrow_schema.remove_metadata())
    spellings = {field.name: field.spelling for field in read.fields}
    assert spellings == {
        "n": "int16",
        "ratio": "float32",
        "valid": "bool",
        "letter": "char",
        "code": "char[16]",
        "codes": "char[][4]",
        "letters": "char[]",
        "grid": "uint32[2][3]",
        "samples": "float64[][3]",
        "cell": "cell",
        "cells": "cells[]",
        "side": "int32",
        "wide": "uint64",
        "name": "string",
        "note": "string?",
        "raw": "bytes",
    }
    assert read.name == "Record"


@pytest.mark.parametrize(
    ("kind", "spelling"),
    [
        (pyarrow.int8(), "int8"),
        (pyarrow.int64(), "int64"),
        (pyarrow.uint8(), "uint8"),
        (pyarrow.uint64(), "uint64"),
        (pyarrow.float32(), "float32"),
        (pyarrow.float64(), "float64"),
        (pyarrow.bool_(), "bool"),
        (pyarrow.string(), "string?"),
        (pyarrow.large_string(), "string?"),
        (pyarrow.binary(), "bytes?"),
        (pyarrow.large_binary(), "bytes?"),
        (pyarrow.binary(1), "char"),
        (pyarrow.binary(3), "char[3]"),
        (pyarrow.list_(pyarrow.int16()), "int16[]"),
        (pyarrow.large_list(pyarrow.int16()), "int16[]"),
        (pyarrow.list_(pyarrow.int16(), 4), "int16[4]"),
        (pyarrow.list_(pyarrow.list_(pyarrow.string(), 4)), "string[][4]"),
        (pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), "string?"),
        (pyarrow.dictionary(pyarrow.int8(), pyarrow.int32()), "int32"),
        (pyarrow.struct([("x", pyarrow.int8())]), "a"),
        (pyarrow.list_(pyarrow.struct([("x", pyarrow.list_(pyarrow.int8()))])), "a[]"),
    ],
    ids=str,
)
def test_a_column_is_read_as_the_field_it_can_be(kind: pyarrow.DataType, spelling: str) -> None:
    assert Format.of(pyarrow.schema([("a", kind)])).field("a").spelling == spelling


def test_only_text_that_can_be_null_is_optional() -> None:
    columns = [pyarrow.field("a", pyarrow.string(), nullable=False), pyarrow.field("b", pyarrow.int8(), nullable=True)]
    assert not any(field.optional for field in Format.of(pyarrow.schema(columns)).fields)


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.float16(),
        pyarrow.null(),
        pyarrow.date32(),
        pyarrow.timestamp("us"),
        pyarrow.time64("ns"),
        pyarrow.duration("s"),
        pyarrow.decimal128(10, 2),
        pyarrow.map_(pyarrow.string(), pyarrow.int8()),
        pyarrow.dense_union([pyarrow.field("x", pyarrow.int8())]),
        pyarrow.string_view(),
        pyarrow.dictionary(pyarrow.int8(), pyarrow.date32()),
    ],
    ids=str,
)
def test_a_column_that_no_field_can_hold_is_refused_with_its_place(kind: pyarrow.DataType) -> None:
    nested = [pyarrow.field("in", pyarrow.struct([("a", kind)]))]
    for columns, place in (
        ([("a", kind)], "Record.a"),
        (nested, "Record.in.a"),
        ([("a", pyarrow.list_(kind))], "Record.a"),
    ):
        with pytest.raises(FormatError, match=rf"Arrow type `.*` cannot be a field; cast the column .* - at `{place}`"):
            Format.of(pyarrow.schema(columns))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (pyarrow.schema([]), "at least one field"),
        (pyarrow.schema([("a b", pyarrow.int8())]), "'a b' is not an identifier"),
        (pyarrow.schema([("a", pyarrow.int8()), ("a", pyarrow.int8())]), "twice"),
        (pyarrow.schema([("a", pyarrow.list_(pyarrow.list_(pyarrow.int8())))]), "dynamic dimension inside another"),
        (pyarrow.schema([("a", pyarrow.list_(pyarrow.list_(pyarrow.int8()), 3))]), "dynamic dimension inside another"),
        (pyarrow.schema([("a", pyarrow.struct([]))]), "at least one field"),
        (pyarrow.schema([("a", pyarrow.list_(pyarrow.int8(), 0)), ("b", pyarrow.int8())]), "dimension 0 is 0"),
        (pyarrow.schema([("a", pyarrow.list_(pyarrow.int8(), 2**31 - 1))]), "16777216"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_schema_that_is_no_record_is_refused(schema: pyarrow.Schema, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Format.of(schema)


def test_fixed_binary_without_any_bytes_is_refused() -> None:
    with pytest.raises(FormatError, match=r"- at `Record.a`"):
        Format.of(pyarrow.schema([("a", pyarrow.binary(0))]))


@pytest.mark.parametrize("levels", [64, 100, 400])
def test_columns_nested_too_deep_are_refused(levels: int) -> None:
    kind = pyarrow.int8()
    for _ in range(levels):
        kind = pyarrow.struct([("x", kind)])
    with pytest.raises(FormatError, match="nested 65 deep, limit is 64"):
        Format.of(pyarrow.schema([("x", kind)]))


def test_metadata_of_another_schema_is_not_believed() -> None:
    schema = Format.of(Everything).arrow_schema
    for changed in (
        schema.remove(0),
        schema.append(pyarrow.field("more", pyarrow.int8())),
        schema.set(0, pyarrow.field("n", pyarrow.int32(), nullable=False)),
        schema.set(13, pyarrow.field("name", pyarrow.string(), nullable=True)),
    ):
        assert changed.metadata == schema.metadata
        assert Format.of(changed) == Format.of(changed.remove_metadata())


def test_metadata_beside_the_descriptor_does_no_harm() -> None:
    schema = Format.of(Everything).arrow_schema
    more = schema.with_metadata({**schema.metadata, b"pandas": b"{}"})
    assert Format.of(more) == Format.of(Everything)


def test_the_layout_of_another_machine_travels_in_the_metadata() -> None:
    format = Format.of(Everything).on(ARCHITECTURES["sparc32"])
    assert Format.of(format.arrow_schema) == format
    assert format.arrow_schema.metadata == {DESCRIPTOR_KEY: base64.b64encode(format.descriptor)}


def test_a_descriptor_in_plain_bytes_is_read_as_earlier_files_have_it() -> None:
    format = Format.of(Everything).on(ARCHITECTURES["sparc32"])
    schema = format.arrow_schema.with_metadata({DESCRIPTOR_KEY: format.descriptor})
    assert Format.of(schema) == format


@pytest.mark.parametrize(
    "descriptor", [b"nonsense", b"", bytes(DESCRIPTOR_BYTES_MAX + 1)], ids=["odd", "empty", "long"]
)
def test_a_damaged_descriptor_in_the_metadata_makes_the_schema_no_event_type(descriptor: bytes) -> None:
    schema = Format.of(Everything).arrow_schema.with_metadata({DESCRIPTOR_KEY: descriptor})
    with pytest.raises(FormatError, match=r"`echoic\.descriptor` is no descriptor: a descriptor"):
        Format.of(schema)


def test_a_nested_record_is_named_by_its_column() -> None:
    format = Format.of(pyarrow.schema([("station", pyarrow.struct([("x", pyarrow.int8())]))]))
    station = format.field("station")
    assert station.kind is Kind.RECORD
    assert station.record is not None
    assert station.record.name == "station"
