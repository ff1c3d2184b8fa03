"""Batches as Arrow columns, and back."""

import sys
from types import ModuleType
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import EncodeError, FormatError, MalformedBatchError
from echoic.formats import ARCHITECTURES, Array, Field, Format, Kind, char, event, uint8
from echoic.wire import Batch
from echoic.wire.arrow import is_record_batch
from tests.strategies import batches, formats
from tests.wire.samples import (
    BIG,
    Color,
    Grid,
    Mesh,
    Point,
    Report,
    Trade,
    cells_of,
    format_of,
    plain,
    received,
    reports,
    stripped,
    thorough,
)

GRIDS = [
    Grid(0.5, numpy.arange(256.0).reshape(4, 64), [1, 2, 3], b"name", b"x", Color.RED, Point(1.0, 2.0, 3)),
    Grid(-1.0, numpy.zeros((4, 64)), [4, 5, 6], b"", b"\0", Color.GREEN, Point(-1.0, 0.5, -3, 4, False)),
]


@event
class Names:
    """Chars in every place."""

    letter: char
    one: Array[char, 4]
    many: Array[char, 2, 4]
    k: uint8
    some: Array[char, "k", 3]
    loose: Array[char, ...]


@event
class Crowded:
    """The same beside texts that only objects can hold."""

    names: Names
    one: Array[char, 4]
    many: Array[char, 2, 4]
    some: Array[char, ..., 3]
    loose: Array[char, ...]
    texts: Array[str, ...]
    each: Array[Names, ...]


def names(number: int) -> Names:
    some = [b"a", b"bc", b"", b"def"][:number]
    return Names(b"x", b"ab", [b"one", b"four"], len(some), some, [b"y"] * number)


def crowded(number: int) -> Crowded:
    made = names(number)
    return Crowded(
        made, made.one, made.many, made.some, made.loose, ["t"] * number, [names(each) for each in range(number)]
    )


SUBJECTS: dict[str, list[Any]] = {
    "fixed": [Point(1.5, -0.0, 3), Point(2.0, float("inf"), -3, 0, False)],
    "nested and arrays": GRIDS,
    "variable": reports(6),
    "slots in blocks": cells_of(4),
    "chars": [names(number) for number in range(5)],
    "chars beside texts": [crowded(number) for number in range(4)],
}


def rows(columns: Any, format: Format) -> list[Any]:
    """Return the rows of a RecordBatch as plain events, having checked every buffer of it."""
    columns.validate(full=True)
    return [stripped(plain(row), format) for row in columns.to_pylist()]


def expected(events: list[Any], format: Format) -> list[Any]:
    return [stripped(plain(event), format) for event in events]


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("architecture", [None, BIG, ARCHITECTURES["i386"]], ids=["native", "big-endian", "i386"])
def test_a_batch_becomes_columns_and_a_batch_again(subject: str, architecture: Any) -> None:
    events = SUBJECTS[subject]
    declared = Format.of(type(events[0]))
    format = declared if architecture is None else declared.on(architecture)
    columns = received(Batch.of(events, format)).arrow
    assert columns.schema.equals(format.arrow_schema)
    assert rows(columns, format) == expected(events, format)
    again = Batch.of(columns)
    assert again.format == format
    assert plain(received(again).events()) == plain(Batch.of(events, format).events())


@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_rows_are_a_batch_too(subject: str) -> None:
    declared = type(SUBJECTS[subject][0])
    columns = received(Batch.of([], declared)).arrow
    columns.validate(full=True)
    assert columns.num_rows == 0
    assert len(Batch.of(columns)) == 0


def test_arrays_of_one_length_keep_their_sizing_field() -> None:
    fields = [Field("n", Kind.INT, 4), *(Field(name, Kind.FLOAT, 4, dimensions=("n",)) for name in "bc")]
    batch = Batch.of([{"n": 2, "b": [1.0, 2.0], "c": [3.0, 4.0]}, {"n": 0, "b": [], "c": []}], format_of(*fields))
    again = Batch.of(batch.arrow)
    assert again.format == batch.format
    assert plain(again.events()) == plain(batch.events())


def test_a_sizing_column_that_contradicts_its_list_is_refused() -> None:
    format = format_of(Field("n", Kind.INT, 4), Field("x", Kind.FLOAT, 4, dimensions=("n",)))
    columns = pyarrow.record_batch(
        [pyarrow.array([3], pyarrow.int32()), pyarrow.array([[1.0, 2.0]], pyarrow.list_(pyarrow.float32()))], ["n", "x"]
    )
    with pytest.raises(EncodeError, match=r"Sample\.(x|n)"):
        Batch.of(columns, format)


@thorough(100)
@given(st.data())
def test_a_batch_of_any_type_becomes_columns_and_a_batch_again(data: st.DataObject) -> None:
    format = data.draw(formats())
    events = data.draw(batches(format, special=True))
    columns = received(Batch.of(events, format)).arrow
    assert rows(columns, format) == expected(events, format)
    again = Batch.of(columns)
    assert again.format == format
    assert plain(again.events()) == plain(Batch.of(events, format).events())


def test_a_table_is_made_through_the_c_stream_interface() -> None:
    for events in SUBJECTS.values():
        batch = received(Batch.of(events))
        table = pyarrow.table(batch)
        assert table.num_rows == len(events)
        assert rows(table, batch.format) == expected(events, batch.format)
        assert table.schema.equals(batch.format.arrow_schema)


def test_a_requested_schema_is_honoured() -> None:
    batch = Batch.of([Point(1.0, 2.0, 3)])
    schema = pyarrow.schema(
        [
            ("x", pyarrow.float64()),
            ("y", pyarrow.float32()),
            ("n", pyarrow.int32()),
            ("m", pyarrow.uint16()),
            ("up", pyarrow.bool_()),
        ]
    )
    table = pyarrow.table(batch, schema=schema)
    assert table.column("n").to_pylist() == [3]


def test_columns_have_the_types_that_the_format_has() -> None:
    schema = Batch.of(reports(1)).arrow.schema
    assert schema.field("samples").type == pyarrow.list_(pyarrow.field("item", pyarrow.float32(), nullable=False))
    assert schema.field("name").type == pyarrow.string()
    assert not schema.field("name").nullable
    assert schema.field("note").nullable
    assert schema.field("color").type == pyarrow.int32()
    assert schema.field("place").type.field("y").type == pyarrow.float32()
    assert Batch.of(GRIDS).arrow.schema.field("name").type == pyarrow.binary(8)


def test_values_of_a_list_column_are_just_those_of_its_rows() -> None:
    """What lies beyond the rows would be read past the end of the buffer."""
    for events in (SUBJECTS["chars"], SUBJECTS["variable"]):
        columns = Batch.of(events).arrow
        for column in columns.columns:
            if pyarrow.types.is_list(column.type):
                assert len(column.values) == sum(len(row) for row in column.to_pylist())


def test_null_texts_are_nulls_only_where_the_type_has_them() -> None:
    columns = Batch.of(reports(4)).arrow
    assert columns.column("note").to_pylist() == ["note", None, "note", None]
    assert columns.column("name").null_count == 0
    optional, required = (
        format_of(Field("s", Kind.STRING, 8, optional=each), Field("b", Kind.BYTES, 8, optional=each))
        for each in (True, False)
    )
    batch = Batch.of([{"s": None, "b": None}], optional)
    assert batch.arrow.to_pylist() == [{"s": None, "b": None}]
    assert Batch(required, 1, [batch.records], batch.bounds).arrow.to_pylist() == [{"s": "", "b": b""}]


def test_columns_of_another_library_are_events_of_a_declared_type() -> None:
    columns = pyarrow.record_batch(
        {
            "venue": pyarrow.array([7, 8], pyarrow.uint16()),
            "volume": [1, 2],
            "price": [1.5, 2.5],
            "symbol": ["a", "bé"],
            "more": ["x", "y"],
        }
    )
    made = Batch.of(columns, Trade)
    assert made.events() == [Trade("a", 1.5, 1, 7), Trade("bé", 2.5, 2, 8)]


def test_columns_without_a_declared_type_have_the_type_of_their_schema() -> None:
    columns = pyarrow.record_batch(
        {
            "a": pyarrow.array([1, 2], pyarrow.int16()),
            "b": [[1.5], []],
            "c": ["x", None],
            "d": [{"e": True}, {"e": False}],
        }
    )
    made = received(Batch.of(columns)).events()
    assert [plain(event) for event in made] == [
        {"a": 1, "b": ["1.5"], "c": "x", "d": {"e": 1}},
        {"a": 2, "b": [], "c": None, "d": {"e": 0}},
    ]


def test_sliced_columns_give_just_their_rows() -> None:
    for events in SUBJECTS.values():
        batch = Batch.of(events)
        columns = batch.arrow
        again = Batch.of(columns.slice(1, 1))
        assert plain(again.events()) == plain(batch.events()[1:2])


def column(values: Any, kind: Any) -> Any:
    return pyarrow.record_batch([pyarrow.array(values, kind)], ["x"])


NULLS: dict[str, tuple[Field, Any, Any]] = {
    "number": (Field("x", Kind.INT, 8), [1, None], pyarrow.int64()),
    "float": (Field("x", Kind.FLOAT, 8), [1.5, None], pyarrow.float64()),
    "bool": (Field("x", Kind.BOOL, 1), [True, None], pyarrow.bool_()),
    "text": (Field("x", Kind.STRING, 8), ["a", None], pyarrow.string()),
    "bytes": (Field("x", Kind.BYTES, 8), [b"a", None], pyarrow.binary()),
    "chars": (Field("x", Kind.CHAR, 1, dimensions=(2,)), [b"ab", None], pyarrow.binary(2)),
    "fixed array": (
        Field("x", Kind.FLOAT, 8, dimensions=(2,)),
        [[1.0, 2.0], None],
        pyarrow.list_(pyarrow.float64(), 2),
    ),
    "in a fixed array": (
        Field("x", Kind.FLOAT, 8, dimensions=(2,)),
        [[1.0, None]],
        pyarrow.list_(pyarrow.float64(), 2),
    ),
    "in a fixed array of integers": (
        Field("x", Kind.INT, 8, dimensions=(2,)),
        [[1, None]],
        pyarrow.list_(pyarrow.int64(), 2),
    ),
    "dynamic array": (Field("x", Kind.FLOAT, 8, dimensions=("",)), [[1.0], None], pyarrow.list_(pyarrow.float64())),
    "in a dynamic array": (
        Field("x", Kind.FLOAT, 8, dimensions=("",)),
        [[1.0, None]],
        pyarrow.list_(pyarrow.float64()),
    ),
    "in an array of texts": (
        Field("x", Kind.STRING, 8, dimensions=("",)),
        [["a", None]],
        pyarrow.list_(pyarrow.string()),
    ),
}


@pytest.mark.parametrize("case", NULLS)
def test_nulls_are_refused_naming_the_column(case: str) -> None:
    field, values, kind = NULLS[case]
    with pytest.raises(EncodeError, match=r"Sample\.x"):
        Batch.of(column(values, kind), format_of(field))


def test_nulls_inside_a_nested_record_are_refused_naming_the_field() -> None:
    inner = format_of(Field("y", Kind.FLOAT, 8), name="Inner")
    outer = format_of(Field("x", Kind.RECORD, 8, record=inner))
    kind = pyarrow.struct([("y", pyarrow.float64())])
    with pytest.raises(EncodeError, match=r"Sample\.x"):
        Batch.of(column([{"y": 1.0}, {"y": None}], kind), outer)
    with pytest.raises(EncodeError, match=r"Sample\.x"):
        Batch.of(column([{"y": 1.0}, None], kind), outer)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(EncodeError, match="`price`"):
        Batch.of(pyarrow.record_batch({"symbol": ["a"]}), Trade)


MISFITS: dict[str, tuple[Field, Any, Any]] = {
    "too wide": (Field("x", Kind.INT, 4), [1], pyarrow.int64()),
    "float for integer": (Field("x", Kind.INT, 8), [1.5], pyarrow.float64()),
    "text for number": (Field("x", Kind.INT, 8), ["1"], pyarrow.string()),
    "number for text": (Field("x", Kind.STRING, 8), [1], pyarrow.int64()),
    "bytes for text": (Field("x", Kind.STRING, 8), [b"a"], pyarrow.binary()),
    "wider chars": (Field("x", Kind.CHAR, 1, dimensions=(4,)), [b"abcdef"], pyarrow.binary(6)),
    "longer bytes for chars": (Field("x", Kind.CHAR, 1, dimensions=(4,)), [b"abcdef"], pyarrow.binary()),
    "number for chars": (Field("x", Kind.CHAR, 1, dimensions=(4,)), [1], pyarrow.int64()),
    "longer array": (
        Field("x", Kind.FLOAT, 8, dimensions=(2,)),
        [[1.0, 2.0, 3.0]],
        pyarrow.list_(pyarrow.float64(), 3),
    ),
    "list for fixed array": (
        Field("x", Kind.FLOAT, 8, dimensions=(2,)),
        [[1.0, 2.0]],
        pyarrow.list_(pyarrow.float64()),
    ),
    "number for array": (Field("x", Kind.FLOAT, 8, dimensions=(2,)), [1.0], pyarrow.float64()),
    "array for number": (Field("x", Kind.FLOAT, 8), [[1.0, 2.0]], pyarrow.list_(pyarrow.float64(), 2)),
    "time for number": (Field("x", Kind.INT, 8), [1], pyarrow.timestamp("ns")),
    "elements too wide": (Field("x", Kind.UINT, 1, dimensions=("",)), [[256]], pyarrow.list_(pyarrow.int64())),
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_column_of_another_type_is_refused_naming_it(case: str) -> None:
    field, values, kind = MISFITS[case]
    with pytest.raises(EncodeError, match=r"\.x`"):
        Batch.of(column(values, kind), format_of(field))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([{"z": 1.0}], pyarrow.struct([("z", pyarrow.float64())])),
        ([{"z": 2.0, "w": 1.0}], pyarrow.struct([("z", pyarrow.float64()), ("w", pyarrow.float64())])),
        ([1.0], pyarrow.float64()),
    ],
    ids=["another field", "other fields", "no struct"],
)
def test_a_struct_without_the_field_is_refused_naming_it(values: Any, kind: Any) -> None:
    inner = format_of(Field("y", Kind.FLOAT, 8), name="Inner")
    with pytest.raises(EncodeError, match=r"Sample\.x"):
        Batch.of(column(values, kind), format_of(Field("x", Kind.RECORD, 8, record=inner)))


def test_narrower_numbers_are_widened() -> None:
    for field, kind in (
        (Field("x", Kind.INT, 8), pyarrow.int16()),
        (Field("x", Kind.INT, 4), pyarrow.uint8()),
        (Field("x", Kind.FLOAT, 8), pyarrow.float32()),
        (Field("x", Kind.FLOAT, 8), pyarrow.int32()),
    ):
        made = Batch.of(column([1, 2], kind), format_of(field, architecture=BIG))
        assert [event.x for event in made.events()] == [1, 2]


@pytest.mark.parametrize("name", ["values", "items", "keys", "get", "copy", "pop"])
def test_a_column_may_be_called_like_a_method_of_a_mapping(name: str) -> None:
    format = format_of(Field(name, Kind.INT, 8), Field("s", Kind.STRING, 8))
    batch = Batch.of([format_event(format, 7)], format)
    assert [getattr(event, name) for event in Batch.of(batch.arrow).events()] == [7]


def format_event(format: Format, value: int) -> Any:
    """Return an event with attributes; a mapping could not have this name."""
    from tests.strategies import to_object

    return to_object({format.fields[0].name: value, "s": "text"}, format)


def test_dictionary_columns_are_events() -> None:
    columns = pyarrow.record_batch([pyarrow.array(["a", "b", "a"]).dictionary_encode()], ["x"])
    assert [event.x for event in Batch.of(columns).events()] == ["a", "b", "a"]


def test_a_schema_that_cannot_be_an_event_type_is_refused_naming_the_column() -> None:
    with pytest.raises(FormatError, match=r"Record\.x"):
        Batch.of(column([1], pyarrow.timestamp("ns")))


def test_a_malformed_batch_gives_no_columns() -> None:
    payload = bytearray(Batch.of(reports(2)).records)
    payload[Format.of(Report).field("name").offset] = 3
    batch = Batch(Format.of(Report), 2, [bytes(payload)], Batch.of(reports(2)).bounds)
    with pytest.raises(MalformedBatchError, match=r"Report\.name.*record 0 of 2"):
        pyarrow.table(batch)


def test_only_record_batches_are_record_batches() -> None:
    assert is_record_batch(pyarrow.record_batch({"a": [1]}))
    assert not is_record_batch(pyarrow.table({"a": [1]}))
    assert not is_record_batch([1])


def test_bools_are_true_whatever_byte_stands_for_them() -> None:
    format = format_of(Field("b", Kind.BOOL, 1), Field("c", Kind.BOOL, 1, dimensions=(2,)))
    columns = Batch(format, 2, [bytes([0, 1, 2, 255, 0, 128])]).arrow
    assert columns.to_pylist() == [{"b": False, "c": [True, True]}, {"b": True, "c": [False, True]}]


def test_a_format_for_c_pointers_becomes_columns_too() -> None:
    fields = [field for field in Format.of(Mesh).fields if field.name != "tags"]
    format = Format.place("Mesh", fields, BIG.with_pointers())
    events = [{field.name: getattr(event, field.name) for field in fields} for event in cells_of(3)]
    assert rows(received(Batch.of(events, format)).arrow, format) == expected(events, format)


def test_while_another_thread_imports_pyarrow_events_are_batched_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    events = numpy.zeros(2, [("x", "i4")])
    monkeypatch.setitem(sys.modules, "pyarrow", ModuleType("pyarrow"))  # as it looks while it is being imported
    assert not is_record_batch(events)
    assert Format.of(events.dtype).name
    assert Batch.of([{"x": 1}], Format.of(events.dtype)).count == 1
