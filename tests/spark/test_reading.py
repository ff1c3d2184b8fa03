"""Readers as plain objects, without Spark: what is read, where it begins and ends, how it is cut, what goes wrong."""

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import LongType, StringType, StructType

from echoic.errors import ECodeError, FormatError, IncompatibleTypesError, JournalError, LocalError, PipelineError
from echoic.formats import event, float64
from echoic.recorder import Disk, JournalOptions, JournalWriter, Retention
from echoic.spark import reading
from echoic.spark.batch_reader import BatchReader
from echoic.spark.source import EchoicSource
from echoic.spark.stream_reader import StreamReader
from tests.recorder.recordings import SECOND, Scribe, rows

Sent = TypeVar("Sent")
MEAN = "Mean{serial: int, double_price: float}"
DOUBLE = (
    "{ if (input.number % 2) return 0; output.serial = input.number; output.double_price = input.price * 2; return 1; }"
)


@event
class Named:
    number: int
    price: float64
    name: str


def source(folder: Path, **options: str) -> EchoicSource:
    return EchoicSource({"journal": str(folder / "journals"), **options})


def sent(value: Sent) -> Sent:
    """What an executor gets of a value, which Spark sends by its own means."""
    spark_pickles = CloudPickleSerializer()
    return spark_pickles.loads(spark_pickles.dumps(value))


def batch_reader(folder: Path, **options: str) -> BatchReader:
    made = source(folder, **options)
    reader = made.reader(made.schema())
    assert isinstance(reader, BatchReader)
    return sent(reader)


def stream_reader(folder: Path, **options: str) -> StreamReader:
    made = source(folder, **options)
    reader = made.streamReader(made.schema())
    assert isinstance(reader, StreamReader)
    return reader


def batches(folder: Path, **options: str) -> Iterator[pyarrow.RecordBatch]:
    reader = batch_reader(folder, **options)
    for part in reader.partitions():
        yield from reader.read(sent(part))


def read(folder: Path, **options: str) -> list[dict[str, object]]:
    return [row for batch in batches(folder, **options) for row in batch.to_pylist()]


def column(folder: Path, name: str = "number", **options: str) -> list[object]:
    return [row[name] for row in read(folder, **options)]


def taken(reader: StreamReader, limit: ReadLimit | None = None) -> Iterator[list[object]]:
    """What each batch of a stream has, until nothing more comes."""
    start = reader.initialOffset()
    while (end := reader.latestOffset(start, limit or reader.getDefaultReadLimit())) is not start:
        parts = reader.partitions(start, end)
        yield [row["number"] for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        start = end


@pytest.fixture
def hundred(tmp_path: Path, scribe: Scribe) -> Path:
    """A journal with ten events each second."""
    for number in range(10):
        scribe.write(rows(10 * number, 10), source=number % 3, at=number)
    return tmp_path


def test_all_that_was_recorded_is_read(hundred: Path) -> None:
    found = read(hundred)
    assert [row["number"] for row in found] == list(range(100)) == [row["_sequence"] for row in found]
    assert found[42].keys() == {
        "number", "price", "venue", "lot", "_sequence", "_source", "_number", "_time", "_partition",
    }  # fmt: skip
    assert (found[42]["_source"], found[42]["_number"], found[42]["_partition"]) == (1, 12, 0)
    assert str(found[42]["_time"]) == "2025-10-09 08:53:24+00:00"


def test_every_batch_has_the_schema_that_spark_asks_for(hundred: Path) -> None:
    made = source(hundred)
    for batch in batches(hundred):
        assert batch.schema.names == made.schema().names
        assert batch.schema.field("_time").type == pyarrow.timestamp("us", "UTC")


def test_columns_are_chosen_and_the_journals_own_left_out(hundred: Path) -> None:
    assert read(hundred, columns="price,number", metadata="false")[3] == {"price": 1.5, "number": 3}
    assert read(hundred, columns="price,_sequence")[3] == {"price": 1.5, "_sequence": 3}
    assert read(hundred, columns="_sequence,_partition")[3] == {"_sequence": 3, "_partition": 0}
    assert len(read(hundred, columns="price")[3]) == 6
    with pytest.raises(FormatError, match="price"):
        source(hundred, columns="prise").schema()


def test_a_schema_of_the_users_own_chooses_columns(hundred: Path) -> None:
    reader = source(hundred).reader(
        StructType().add("venue", LongType()).add("what", StringType()).add("_sequence", LongType())
    )
    first = next(reader.read(reader.partitions()[0])).to_pylist()[7]
    assert first == {"venue": 0, "what": None, "_sequence": 7}


def test_code_runs_where_events_are_read(hundred: Path) -> None:
    assert column(hundred, where="input.number >= 95") == [95, 96, 97, 98, 99]
    assert column(hundred, where="input.number < param.low", params='{"low": 3}') == [0, 1, 2]
    assert column(hundred, derive="{ return input.number % 50 == 0; }") == [0, 50]
    found = read(hundred, derive=DOUBLE, output=MEAN, where="input.number > 90")
    assert [(row["serial"], row["double_price"], row["_sequence"]) for row in found] == [
        (92, 92.0, 92),
        (94, 94.0, 94),
        (96, 96.0, 96),
        (98, 98.0, 98),
    ]
    assert read(hundred, derive=DOUBLE, output=MEAN, columns="serial", metadata="false")[1] == {"serial": 2}


def test_python_text_is_code_as_well(hundred: Path) -> None:
    text = (
        "def derive(input, output):\n    output.serial = input.number\n    output.double_price = 1.5\n    return True\n"
    )
    assert column(hundred, "serial", derive=text, output=MEAN) == list(range(100))


def test_wrong_code_is_told_before_anything_is_read(hundred: Path) -> None:
    with pytest.raises(ECodeError, match="<where>"):
        source(hundred, where="input.prise > 3").schema()
    with pytest.raises(ECodeError, match="<derive>"):
        source(hundred, derive="{ output.x = 1; return 1; }", output=MEAN).schema()


def test_an_event_at_which_code_faults_is_an_error_or_left_out(hundred: Path) -> None:
    code = "{ output.serial = 100 / (input.number - 50); output.double_price = 0; return 1; }"
    with pytest.raises(LocalError, match="`derive` faults at event 50, line 1, column"):
        read(hundred, derive=code, output=MEAN)
    found = column(hundred, "_sequence", derive=code, output=MEAN, onFault="skip")
    assert found == [number for number in range(100) if number != 50]


def test_reading_begins_and_ends_where_it_is_asked_to(hundred: Path) -> None:
    assert column(hundred, start='{"0": 97}') == [97, 98, 99]
    assert column(hundred, end='{"0": 3}') == [0, 1, 2]
    assert column(hundred, start="latest") == []
    assert column(hundred, end="earliest") == []
    assert column(hundred, start="2025-10-09T08:53:28") == list(range(80, 100))
    assert column(hundred, start="2025-10-09T08:53:28+00:00", end="2025-10-09T08:53:29") == list(range(80, 90))
    assert column(hundred, start="2030-01-01") == []
    assert column(hundred, end='{"0": 1000}') == list(range(100))
    with pytest.raises(PipelineError, match="go on at event 101 of partition 0, the journal of `trades` ends at 100"):
        read(hundred, start='{"0": 101}')


def test_a_large_journal_is_cut_into_parts(tmp_path: Path, scribe: Scribe) -> None:
    for number in range(4):
        scribe.write(rows(70_000 * number, 70_000))
    reader = batch_reader(tmp_path, splits="3", metadata="false", columns="number")
    parts = reader.partitions()
    assert len(parts) == 3
    counts = [[batch.num_rows for batch in reader.read(part)] for part in parts]
    assert sum(map(sum, counts)) == 280_000
    assert max(map(max, counts)) <= 65_536
    total = sum(sum(batch.column(0).to_numpy()) for part in parts for batch in reader.read(part))
    assert total == sum(range(280_000))


def test_code_that_remembers_has_a_partition_for_itself(tmp_path: Path, scribe: Scribe) -> None:
    for number in range(4):
        scribe.write(rows(70_000 * number, 70_000))
    code = "{ static int seen = 0; seen = seen + 1; return seen % 70000 == 0; }"
    reader = batch_reader(tmp_path, splits="4", derive=code)
    assert len(reader.partitions()) == 1
    assert column(tmp_path, derive=code) == [69_999, 139_999, 209_999, 279_999]


def test_a_stream_refuses_code_that_remembers_unless_it_may_forget(hundred: Path) -> None:
    code = "{ static int seen = 0; seen = seen + 1; return seen <= 2; }"
    with pytest.raises(PipelineError, match="static variables, which begin anew in each batch of a stream"):
        stream_reader(hundred, derive=code)
    reader = stream_reader(hundred, derive=code, statics="batch", maxRowsPerBatch="50")
    assert list(taken(reader)) == [[0, 1, 10, 11, 20, 21], [50, 51, 60, 61, 70, 71]]


def test_a_stream_goes_on_with_what_comes(hundred: Path, scribe: Scribe) -> None:
    reader = stream_reader(hundred)
    start = reader.initialOffset()
    assert start == {"0": 0}
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == {"0": 100} == reader.reportLatestOffset()
    assert reader.latestOffset(end, ReadAllAvailable()) is end
    scribe.write(rows(100, 5))
    assert reader.latestOffset(end, ReadAllAvailable()) == {"0": 105}
    part = reader.partitions(end, {"0": 105})[0]
    assert [row["number"] for batch in reader.read(part) for row in batch.to_pylist()] == [100, 101, 102, 103, 104]
    reader.commit({"0": 105})
    reader.stop()


def test_a_stream_respects_limits(hundred: Path) -> None:
    assert [len(batch) for batch in taken(stream_reader(hundred, maxRowsPerBatch="30"))] == [30, 30, 30, 10]
    reader = stream_reader(hundred, maxBytesPerBatch="400")
    assert isinstance(reader.getDefaultReadLimit(), ReadMaxBytes)
    sizes = [len(batch) for batch in taken(reader)]
    assert sum(sizes) == 100
    assert 1 <= max(sizes) <= 20
    both = stream_reader(hundred, maxBytesPerBatch="400", maxRowsPerBatch="1000")
    assert isinstance(both.getDefaultReadLimit(), ReadMaxRows)
    assert max(len(batch) for batch in taken(both)) <= 20
    assert [len(batch) for batch in taken(both, ReadAllAvailable())] == [100]


def test_what_is_available_ends_where_it_was_when_that_was_asked(hundred: Path, scribe: Scribe) -> None:
    reader = stream_reader(hundred, maxRowsPerBatch="60")
    reader.prepareForTriggerAvailableNow()
    scribe.write(rows(100, 5))
    assert [len(batch) for batch in taken(reader)] == [60, 40]


def test_several_partitions_are_read_side_by_side(tmp_path: Path) -> None:
    scribe = Scribe(Disk(tmp_path / "journals"), partitions=3)
    for source_number in range(12):
        scribe.write(rows(10 * source_number, 10), source=source_number)
    assert sorted(column(tmp_path)) == list(range(120))
    assert {row["_partition"] for row in read(tmp_path)} == {0, 1, 2}
    batches = list(taken(stream_reader(tmp_path, maxRowsPerBatch="50")))
    assert [len(batch) for batch in batches] == [50, 50, 20]
    assert sorted(number for batch in batches for number in batch) == list(range(120))


@settings(max_examples=25)
@given(limits=st.lists(st.integers(1, 60), min_size=1, max_size=5), splits=st.integers(1, 4))
def test_whatever_the_limits_a_stream_has_every_event_once(
    journal_of_three: Path, limits: list[int], splits: int
) -> None:
    reader = stream_reader(journal_of_three, splits=str(splits))
    start, found, turn = reader.initialOffset(), [], 0
    while (end := reader.latestOffset(start, ReadMaxRows(limits[turn % len(limits)]))) is not start:
        for part in reader.partitions(start, end):
            found += [(row["_partition"], row["_sequence"]) for b in reader.read(part) for row in b.to_pylist()]
        start, turn = end, turn + 1
        if turn > 200:
            break
    assert len(found) == len(set(found)) == 120


@pytest.fixture(scope="module")
def journal_of_three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("three")
    scribe = Scribe(Disk(folder / "journals"), partitions=3)
    for source_number in range(12):
        scribe.write(rows(10 * source_number, 10), source=source_number)
    scribe.close()
    return folder


def test_events_of_earlier_types_have_nulls_and_defaults(tmp_path: Path, scribe: Scribe) -> None:
    scribe.write(rows(0, 2))
    scribe.write([Named(2, 1.5, "two")])
    found = read(tmp_path, metadata="false")
    assert [list(row) for row in found] == [["number", "price", "name", "venue", "lot"]] * 3
    assert [(row["number"], row["name"], row["lot"]) for row in found] == [
        (0, None, 100),
        (1, None, 100),
        (2, "two", None),
    ]
    assert column(tmp_path, "name", where="input.number > 0") == [None, "two"]
    with pytest.raises(IncompatibleTypesError, match="name"):
        read(tmp_path, where='input.name == "two"')
    assert read(tmp_path, declared="T{number: int, venue: int = 7}", metadata="false")[2] == {"number": 2, "venue": 7}


def test_a_running_stream_keeps_the_schema_with_which_it_began(tmp_path: Path, scribe: Scribe) -> None:
    scribe.write(rows(0, 2))
    reader = stream_reader(tmp_path, metadata="false")
    scribe.write([Named(2, 1.5, "two")])
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    found = [row for part in reader.partitions({"0": 0}, end) for b in reader.read(part) for row in b.to_pylist()]
    assert found[2] == {"number": 2, "price": 1.5, "venue": None, "lot": None}


def test_before_anything_is_recorded_the_type_must_be_declared(tmp_path: Path, scribe: Scribe) -> None:
    with pytest.raises(PipelineError, match=r"nothing was recorded yet, .* `declared`"):
        source(tmp_path).schema()
    reader = stream_reader(tmp_path, declared="T{number: int, price: float}")
    start = reader.initialOffset()
    scribe.write(rows(0, 3))
    assert reader.latestOffset(start, ReadAllAvailable()) == {"0": 3}
    assert column(tmp_path, declared="T{number: int}") == [0, 1, 2]


def test_what_retention_has_removed_is_an_error_unless_it_may_be_left_out(tmp_path: Path) -> None:
    scribe = Scribe(Disk(tmp_path / "journals"), segment_bytes_max=65_536, retention=Retention(bytes_max=70_000))
    for number in range(20):
        scribe.write(rows(1000 * number, 1000), at=number)
    scribe.close()
    reader = stream_reader(tmp_path)
    first = reader.initialOffset()["0"]
    assert first > 0
    with pytest.raises(PipelineError, match=f"events 0 to {first - 1} of partition 0 were removed from the journal"):
        reader.partitions({"0": 0}, {"0": 20_000})
    skipping = stream_reader(tmp_path, onLoss="skip")
    found = [
        row["number"]
        for part in skipping.partitions({"0": 0}, {"0": 20_000})
        for b in skipping.read(part)
        for row in b.to_pylist()
    ]
    assert found == list(range(first, 20_000))


@pytest.mark.parametrize("start", ["earliest", "2025-10-09T08:53:21"])
def test_what_is_damaged_is_an_error_unless_it_may_be_left_out(
    hundred: Path, start: str, caplog: pytest.LogCaptureFixture
) -> None:
    (segment,) = (hundred / "journals" / "trades" / "0").glob("*.segment")
    data = bytearray(segment.read_bytes())
    place = data.index((15).to_bytes(8, "little") + struct.pack("<d", 7.5))  # in the block of events 10 to 19
    data[place] ^= 1
    segment.write_bytes(data)
    with pytest.raises(JournalError, match="events 10 to 19 cannot be read"):
        read(hundred, start=start)
    first = 0 if start == "earliest" else 20
    assert column(hundred, start=start, onLoss="skip") == [n for n in range(first, 100) if n // 10 != 1]
    assert start != "earliest" or "events 10 to 19 are left out" in caplog.text


def test_a_worker_reads_a_journal_that_was_recorded_anew_in_the_same_folder(hundred: Path, scribe: Scribe) -> None:
    reader = batch_reader(hundred)
    (part,) = reader.partitions()
    assert len(list(reader.read(part))) == 1  # the journal is open in this process from here on
    scribe.close()
    shutil.rmtree(hundred / "journals")
    another = JournalWriter.open(Disk(hundred / "journals"), "trades", JournalOptions(), id=bytes(16), now_ns=1)
    another.append(rows(500, 3), 0, 0, 1)
    another.commit(1)
    assert column(hundred) == [500, 501, 502]
    with pytest.raises(PipelineError, match=r"reading began in journal 0001.*, here is journal 0000"):
        list(reader.read(part))
    assert column(hundred) == [500, 501, 502]


def test_all_that_there_is_at_a_moment_is_read_though_a_partition_is_beyond_it(tmp_path: Path) -> None:
    scribe = Scribe(Disk(tmp_path / "journals"), partitions=2)
    for number in range(2):
        scribe.write(rows(0, 50), source=number)
    reader = stream_reader(tmp_path, onLoss="skip")
    reader.prepareForTriggerAvailableNow()
    scribe.write(rows(50, 50), source=0)
    assert reader.latestOffset({"0": 100, "1": 0}, ReadAllAvailable()) == {"0": 100, "1": 50}


def test_a_checkpoint_of_another_journal_is_refused(hundred: Path) -> None:
    reader = stream_reader(hundred)
    with pytest.raises(PipelineError, match="go on at event 500 of partition 0, the journal of `trades` ends at 100"):
        reader.latestOffset({"0": 500}, ReadAllAvailable())
    with pytest.raises(PipelineError, match="the journal of `trades` has 1 partitions: it belongs to another journal"):
        reader.latestOffset({"0": 0, "1": 0}, ReadAllAvailable())


def test_an_executor_that_sees_less_than_the_driver_fails(
    hundred: Path, scribe: Scribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PATIENCE_SECONDS", 0.01)
    reader = stream_reader(hundred)
    part = reader.partitions({"0": 50}, {"0": 101})[0]
    with pytest.raises(PipelineError, match="events 50 to 100 are to be read, only those before 100 are seen here"):
        list(reader.read(part))


def test_a_journal_that_is_not_there_is_told(tmp_path: Path, hundred: Path) -> None:
    with pytest.raises(JournalError, match="there is no journal"):
        EchoicSource({"journal": str(tmp_path / "nowhere")}).schema()
    with pytest.raises(JournalError, match="there is no journal of channel `quotes`, only of `trades`"):
        source(hundred, channel="quotes").schema()


def test_times_of_events_are_those_of_the_recorder(hundred: Path) -> None:
    stamps = [row["_time"] for row in read(hundred, columns="_time")]
    assert (stamps[-1] - stamps[0]).total_seconds() * SECOND == 9 * SECOND
