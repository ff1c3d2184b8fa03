"""A journal as Arrow batches: joined, projected, of one schema however often the type has changed."""

import enum

import numpy
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import echoic
from echoic.errors import FormatError, IncompatibleTypesError, JournalError, LocalError
from echoic.formats import ARCHITECTURES, Array, Format, char, event, float32, float64, int16, int32, int64, uint8
from echoic.recorder import Hole, Journal
from echoic.recorder.arrow_stream import JOINED_BYTES_MAX
from echoic.recorder.blocks import BlockKind
from echoic.wire import Batch
from tests.recorder.recordings import BEGIN, DTYPE, SECOND, Forger, Scribe, disk, rows

BIG = ARCHITECTURES["sparc64"]


class Side(enum.IntEnum):
    BUY = 1
    SELL = 2


@event
class Point:
    x: float64
    y: float32


@event
class Sample:
    """One field of each sort."""

    number: int64
    n: int32
    values: Array[float32, "n"]
    name: str
    note: str | None
    data: bytes
    tag: Array[char, 4]
    wind: Array[float64, 2, 3]
    at: Point
    side: Side
    up: bool


@event
class First:
    number: int32
    price: float32


@event
class Second:
    number: int64
    price: float64
    venue: int16 = 5


@event
class Third:
    number: int64
    price: float64
    venue: int16
    trader: str
    at: Point


def sample(number: int) -> Sample:
    return Sample(
        number,
        number % 3,
        numpy.arange(number % 3, dtype="f4"),
        f"name {number}",
        None if number % 2 else "note",
        bytes(number % 5),
        b"tag",
        numpy.full((2, 3), number, "f8"),
        Point(number, 0.5),
        Side.SELL,
        number % 2 == 0,
    )


def journal(*batches: object, **options: object) -> Journal:
    scribe = Scribe(disk(), **options)
    for number, events in enumerate(batches):
        scribe.write(events, source=number % 3, at=number)
    return Journal(scribe.shelf())


def table(journal: Journal, **options: object) -> pyarrow.Table:
    read = journal.arrow(**options).read_all()
    read.validate(full=True)
    return read


def many(count: int = 50, each: int = 30) -> Journal:
    return journal(*(rows(each * number, each) for number in range(count)), segment_bytes_max=8000)


def test_all_events_come_in_order_in_batches_as_large_as_asked_for() -> None:
    batches = list(many().arrow(rows=256))
    assert [number for batch in batches for number in batch.column("number").to_pylist()] == list(range(1500))
    assert all(batch.num_rows == 240 for batch in batches[:-1])  # what fits of batches of 30


@given(
    sizes=st.lists(st.integers(1, 40), max_size=12),
    most=st.integers(1, 50),
    cut=st.tuples(st.integers(0, 200), st.integers(0, 200)),
)
def test_however_batches_are_cut_the_events_are_the_same(sizes: list[int], most: int, cut: tuple[int, int]) -> None:
    starts = numpy.cumsum([0, *sizes]).tolist()
    found = journal(rows(0, 0) if not sizes else rows(0, sizes[0]), *map(rows, starts[1:], sizes[1:]))
    if not sizes:
        return
    batches = list(found.arrow(*cut, rows=most))
    assert all(0 < batch.num_rows <= most for batch in batches)
    expected = list(range(cut[0], min(cut[1], starts[-1])))
    assert [number for batch in batches for number in batch.column("number").to_pylist()] == expected


def test_a_batch_that_is_larger_than_asked_for_is_cut() -> None:
    assert [batch.num_rows for batch in journal(rows(0, 1000)).arrow(rows=300)] == [300, 300, 300, 100]
    with pytest.raises(LocalError, match="a RecordBatch has at least 1 row, got 0"):
        many().arrow(rows=0)


def test_the_schema_is_that_of_the_type_and_gives_it_back() -> None:
    reader = journal([sample(1)]).arrow()
    assert reader.schema.equals(Format.of(Sample).arrow_schema, check_metadata=True)
    assert Format.of(reader.schema) == Format.of(Sample)


def test_every_sort_of_field_is_as_a_single_batch_has_it() -> None:
    samples = [sample(number) for number in range(40)]
    found = table(journal(samples[:7], samples[7:8], samples[8:]))
    assert found.equals(pyarrow.Table.from_batches([Batch.of(samples).arrow]))


def test_the_same_type_from_other_machines_becomes_the_same_columns() -> None:
    samples = [sample(number) for number in range(40)]
    foreign = Batch.of(samples[20:30]).to(Format.of(Sample).on(BIG))
    packed = Batch.of(samples[30:]).to(Format.of(Sample).on(ARCHITECTURES["packed"]))
    found = table(journal(samples[:20], foreign, packed))
    assert found.equals(pyarrow.Table.from_batches([Batch.of(samples).arrow]))


@pytest.mark.parametrize("name", [field.name for field in Format.of(Sample).fields])
def test_each_column_can_be_had_alone(name: str) -> None:
    samples = [sample(number) for number in range(20)]
    found = table(journal(samples[:9], Batch.of(samples[9:]).to(Format.of(Sample).on(BIG))), columns=[name])
    assert found.column_names == [name]
    assert found.column(name).equals(pyarrow.Table.from_batches([Batch.of(samples).arrow]).column(name))


def test_columns_come_in_the_order_asked_for() -> None:
    found = table(many(), columns=["lot", "number"])
    assert found.column_names == ["lot", "number"]
    assert found.column("number").to_pylist() == list(range(1500))
    with pytest.raises(FormatError, match="prize"):
        many().arrow(columns=["prize"])


def changed() -> Journal:
    return journal(
        [First(0, 0.5), First(1, 1.5)],
        [Second(2, 2.5, 7)],
        [Third(3, 3.5, 8, "ann", Point(1, 2))],
        Batch.of([Second(4, 4.5, 9)]).to(Format.of(Second).on(BIG)),
        [First(5, 5.5)],
    )


def test_earlier_types_become_the_newest_with_nulls_for_what_they_did_not_have() -> None:
    found = table(changed())
    assert found.column("number").to_pylist() == [0, 1, 2, 3, 4, 5]
    assert found.column("price").to_pylist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert found.column("venue").to_pylist() == [None, None, 7, 8, 9, None]
    assert found.column("trader").to_pylist() == [None, None, None, "ann", None, None]
    assert found.column("at").to_pylist() == [None, None, None, {"x": 1.0, "y": 2.0}, None, None]
    assert [found.schema.field(name).nullable for name in found.column_names] == [False, False, True, True, True]


def test_a_default_stands_for_what_was_not_there() -> None:
    found = table(changed(), declared=Second)
    assert found.column("venue").to_pylist() == [5, 5, 7, 8, 9, 5]
    assert found.schema.equals(Format.of(Second).arrow_schema)


def test_some_columns_of_changed_types() -> None:
    assert table(changed(), columns=["trader", "number"]).to_pydict() == {
        "trader": [None, None, None, "ann", None, None],
        "number": [0, 1, 2, 3, 4, 5],
    }


def test_a_type_that_does_not_fit_is_refused_with_its_place() -> None:
    @event
    class Narrow:
        number: int16

    with pytest.raises(IncompatibleTypesError, match=r"does not fit .* - at channel `trades`, partition 0, `.*`, off"):
        table(changed(), declared=Narrow)
    with pytest.raises(IncompatibleTypesError, match="has none of the columns `trader`"):
        table(journal([First(1, 2)]), declared=Third, columns=["trader"])


def test_the_journals_own_columns_follow_those_of_the_events() -> None:
    scribe = Scribe(disk(), partitions=2)
    scribe.write(rows(0, 3), source=4, at=1)
    scribe.write(rows(3, 2), source=7, at=2)
    scribe.write(rows(5, 2), source=4, at=3)
    found = table(Journal(scribe.shelf()), metadata=True, columns=["number"], where="input.number != 1")
    assert found.column_names == ["number", "_sequence", "_source", "_number", "_time", "_partition"]
    assert found.column("number").to_pylist() == [0, 2, 5, 6, 3, 4]
    assert found.column("_sequence").to_pylist() == [0, 2, 3, 4, 0, 1]
    assert found.column("_number").to_pylist() == [0, 2, 3, 4, 0, 1]
    assert found.column("_source").to_pylist() == [4, 4, 4, 4, 7, 7]
    assert found.column("_partition").to_pylist() == [0, 0, 0, 0, 1, 1]
    assert found.schema.field("_time").type == pyarrow.timestamp("ns", "UTC")
    seconds = [(time - BEGIN) // SECOND for time in found.column("_time").cast(pyarrow.int64()).to_pylist()]
    assert seconds == [1, 1, 3, 3, 2, 2]


def test_events_that_have_such_a_column_themselves_are_refused() -> None:
    odd = numpy.zeros(3, [("_time", "<i8")])
    with pytest.raises(LocalError, match="the events have a column `_time` of their own"):
        journal(Batch.of(odd)).arrow(metadata=True)


def test_filters_apply_to_what_is_joined() -> None:
    found = table(many(), where="input.number % param.of == 0", params={"of": 100}, columns=["number"])
    assert found.column("number").to_pylist() == list(range(0, 1500, 100))
    assert table(many(), where="0").num_rows == 0
    assert table(many(), since=BEGIN + 3 * SECOND, until=BEGIN + 4 * SECOND).num_rows == 30


def test_any_library_that_speaks_arrow_can_take_a_journal() -> None:
    found = pyarrow.table(many())
    assert found.column("number").to_pylist() == list(range(1500))
    reader = pyarrow.RecordBatchReader.from_stream(many())
    assert reader.schema == Format.of(DTYPE).arrow_schema


def test_an_empty_journal_needs_a_declared_type() -> None:
    empty = journal()
    with pytest.raises(JournalError, match="nothing was recorded yet"):
        empty.arrow()
    assert table(empty, declared=Second).num_rows == 0


def spoilt() -> tuple[Journal, int]:
    """A journal with a record that contradicts its type, in the second of three batches of two."""
    forger = Forger()
    batches = [Batch.of([sample(number), sample(number + 1)]) for number in (0, 2, 4)]
    forger.format(batches[0].format)
    places = []
    for number, batch in enumerate(batches):
        payload = bytearray(b"".join(batch.buffers()))
        if number == 1:
            at = 16 + 16 + batch.format.field("name").offset
            payload[at : at + 4] = (1 << 20).to_bytes(4, "little")
        places.append(forger.add(BlockKind.BATCH, [bytes(payload)], 2 * number, count=2))
    return Journal(forger.shelf(6)), places[1]


def test_a_record_that_contradicts_its_type_is_named_and_the_rest_is_read_on_demand() -> None:
    found, place = spoilt()
    with pytest.raises(JournalError, match=rf"events 2 to 3 cannot be read: .*, offset {place} - at channel `trades`"):
        table(found)
    told: list[Hole] = []
    assert table(found, on_hole=told.append).column("number").to_pylist() == [0, 1, 4, 5]
    assert [(hole.first, hole.last) for hole in told] == [(2, 3)]


def test_offsets_that_are_not_those_of_records_are_named_too() -> None:
    forger = Forger()
    batches = [Batch.of([sample(number), sample(number + 1)]) for number in (0, 2)]
    forger.format(batches[0].format)
    for number, batch in enumerate(batches):
        payload = bytearray(b"".join(batch.buffers()))
        payload[16 + 4] ^= 8 * number
        forger.add(BlockKind.BATCH, [bytes(payload)], 2 * number, count=2)
    told: list[Hole] = []
    found = table(Journal(forger.shelf(4)), on_hole=told.append)
    assert found.column("number").to_pylist() == [0, 1]
    assert [(hole.first, hole.last) for hole in told] == [(2, 3)]


def test_types_that_alternate_are_joined_in_order() -> None:
    batches: list[list[object]] = []
    for number in range(0, 60, 2):
        batches += [[First(number, 1)], [Second(number + 1, 2)]]
    found = list(journal(*batches).arrow(rows=25))
    assert [batch.num_rows for batch in found] == [25, 25, 10]
    assert [number for batch in found for number in batch.column("number").to_pylist()] == list(range(60))


def test_arrays_of_records_and_of_text_go_through_objects() -> None:
    @event
    class Cell:
        label: str
        k: uint8

    @event
    class Mesh:
        cells: Array[Cell, ...]
        tags: Array[str, ...]
        number: int

    meshes = [Mesh([Cell("a" * number, 1)] * number, ["t"] * number, number) for number in range(5)]
    found = table(journal(meshes[:2], meshes[2:]), columns=["number", "tags"])
    assert found.column("tags").to_pylist() == [["t"] * number for number in range(5)]
    assert found.column("number").to_pylist() == list(range(5))
    assert echoic.Format.of(Mesh).variable


def test_large_events_are_not_gathered_without_a_limit_of_bytes() -> None:
    picture = numpy.zeros(1, numpy.dtype([("pixels", "u1", (8_000_000,))]))
    scribe = Scribe(disk())
    for _ in range(20):
        scribe.write(Batch.of(picture))
    found = [(batch.num_rows, batch.nbytes) for batch in Journal(scribe.shelf()).arrow()]
    assert sum(rows for rows, _ in found) == 20
    assert max(size for _, size in found) <= JOINED_BYTES_MAX
