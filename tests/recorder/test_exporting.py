"""What is exported is what was recorded, for programs that know nothing of journals."""

import base64
import csv
import json
import os
from pathlib import Path

import numpy
import pyarrow.ipc
import pyarrow.parquet
import pytest
from mcap.reader import make_reader

import echoic
from echoic.errors import JournalError, LocalError
from echoic.formats import Format
from echoic.recorder import Hole, Journal, JournalOptions, JournalWriter, Selection, export
from echoic.recorder.disk import Disk
from echoic.wire import Batch

START_NS = 1_700_000_000_000_000_000
QUICK = JournalOptions(durability="os")  # nobody pulls the plug
FILES = ["x.parquet", "x.arrow", "x.csv", "x.mcap"]


@echoic.event
class Trade:
    symbol: str
    price: float
    volume: int = 0


@echoic.event
class Sample:
    at: float
    raw: bytes
    tag: echoic.Array[echoic.char, 4]
    note: str | None
    n: int
    values: echoic.Array[echoic.float32, "n"]


TRADES = [Trade("IBM", 75.5, 1), Trade('a "quoted", text\nof two lines', float("nan"), -1), Trade("", float("inf"), 2)]


def record(path: Path, batches: list[Batch], source: int = 7) -> Journal:
    """Make a journal of batches, one second apart."""
    writer = JournalWriter.open(Disk(path), "trades", QUICK, id=bytes(16), now_ns=START_NS)
    number = 0
    for seconds, batch in enumerate(batches):
        writer.append(batch, source, number, START_NS + seconds * 1_000_000_000)
        number += batch.count
    writer.close(START_NS)
    return Journal(path, "trades")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return record(tmp_path / "journal", [Batch.of(TRADES, Trade), Batch.of([Trade("DEC", 12.25)], Trade)])


def test_parquet_and_arrow_files_have_the_recorded_type(journal: Journal, tmp_path: Path) -> None:
    assert export(journal, tmp_path / "x.parquet").events == 4
    assert export(journal, tmp_path / "x.arrow").events == 4
    parquet = pyarrow.parquet.read_table(tmp_path / "x.parquet")
    arrow = pyarrow.ipc.open_file(tmp_path / "x.arrow").read_all()
    for table in (parquet, arrow):
        assert table.column("symbol").to_pylist() == [*(trade.symbol for trade in TRADES), "DEC"]
        assert table.column("volume").to_pylist() == [1, -1, 2, 0]
        assert Format.of(table.schema) == Format.of(Trade)


def test_csv_files_are_what_others_read(journal: Journal, tmp_path: Path) -> None:
    export(journal, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="") as lines:
        rows = list(csv.reader(lines))
    assert rows == [
        ["symbol", "price", "volume"],
        ["IBM", "75.5", "1"],
        ['a "quoted", text\nof two lines', "nan", "-1"],
        ["", "inf", "2"],
        ["DEC", "12.25", "0"],
    ]


def test_mcap_files_have_a_message_for_each_event(journal: Journal, tmp_path: Path) -> None:
    export(journal, tmp_path / "x.mcap")
    with (tmp_path / "x.mcap").open("rb") as stream:
        found = list(make_reader(stream, validate_crcs=True).iter_messages())
    schema, channel, _ = found[0]
    assert (channel.topic, channel.message_encoding, channel.metadata["source"]) == ("trades", "json", "7")
    assert schema is not None
    assert (schema.name, schema.encoding) == ("Trade", "jsonschema")
    described = json.loads(schema.data)
    assert described["properties"] == {
        "symbol": {"type": "string"},
        "price": {"type": "number"},
        "volume": {"type": "integer"},
    }
    assert "price   float64" in described["description"]
    assert base64.b64decode(described["x-echoic-descriptor"]) == Format.of(Trade).descriptor
    assert [json.loads(message.data) for _, _, message in found][:2] == [
        {"symbol": "IBM", "price": 75.5, "volume": 1},
        {"symbol": TRADES[1].symbol, "price": "NaN", "volume": -1},
    ]
    times = [START_NS] * 3 + [START_NS + 1_000_000_000]
    assert [(message.sequence, message.log_time, message.publish_time) for _, _, message in found] == [
        (number, time, time) for number, time in enumerate(times)
    ]


def test_what_json_cannot_say_is_spelled_as_the_schema_tells(tmp_path: Path) -> None:
    sample = Sample(0.5, b"\0\xff", b"ab", None, 2, numpy.array([1, 2], "f4"))
    export(record(tmp_path / "journal", [Batch.of([sample], Sample)]), tmp_path / "x.mcap")
    with (tmp_path / "x.mcap").open("rb") as stream:
        ((schema, _, message),) = make_reader(stream).iter_messages()
    assert json.loads(message.data) == {"at": 0.5, "raw": "AP8=", "tag": "ab", "n": 2, "values": [1.0, 2.0]}
    assert schema is not None
    described = json.loads(schema.data)
    assert described["properties"]["raw"] == {"type": "string", "contentEncoding": "base64"}
    assert described["properties"]["values"] == {"type": "array", "items": {"type": "number"}}
    assert "note" not in described["required"]


def test_each_source_is_a_channel_of_an_mcap_file(tmp_path: Path) -> None:
    writer = JournalWriter.open(Disk(tmp_path), "trades", QUICK, id=bytes(16), now_ns=START_NS)
    large = 2**32 + 5
    writer.append(Batch.of([Trade("a", 1.0)], Trade), 2**64 - 1, large, START_NS)
    writer.append(Batch.of([Trade("b", 2.0)], Trade), 3, 0, START_NS)
    writer.close(START_NS)
    export(Journal(tmp_path, "trades"), tmp_path / "x.mcap")
    with (tmp_path / "x.mcap").open("rb") as stream:
        found = [(channel.metadata, message.sequence) for _, channel, message in make_reader(stream).iter_messages()]
    assert [(about["source"], about["first"], sequence) for about, sequence in found] == [
        (str(2**64 - 1), str(large), 5),
        ("3", "0", 0),
    ]


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.csv"])
def test_metadata_says_who_and_when(journal: Journal, tmp_path: Path, name: str) -> None:
    export(journal, tmp_path / name, metadata=True)
    if name.endswith(".csv"):
        text = (tmp_path / name).read_text()
        assert text.splitlines()[0].replace('"', "").endswith("volume,_sequence,_source,_number,_time,_partition")
        assert ",3,7,3,2023-11-14 22:13:21" in text
        return
    reader = (
        pyarrow.parquet.read_table if name.endswith("parquet") else lambda path: pyarrow.ipc.open_file(path).read_all()
    )
    table = reader(tmp_path / name)
    assert table.column("_sequence").to_pylist() == [0, 1, 2, 3]
    assert table.column("_source").to_pylist() == [7] * 4
    assert table.column("_time").cast("int64").to_pylist() == [START_NS] * 3 + [START_NS + 1_000_000_000]


@pytest.mark.parametrize("name", FILES)
def test_a_selection_is_exported(journal: Journal, tmp_path: Path, name: str) -> None:
    chosen = Selection(start=1, columns=["symbol"], where="input.volume >= 0")
    assert export(journal, tmp_path / name, selection=chosen).events == 2
    later = Selection(since=START_NS + 1)
    assert export(journal, tmp_path / name, selection=later, force=True).events == 1


@pytest.mark.parametrize("name", FILES)
def test_a_journal_without_events_becomes_a_file_without_events(tmp_path: Path, name: str) -> None:
    journal = record(tmp_path / "journal", [Batch.of(TRADES, Trade)])
    done = export(journal, tmp_path / name, selection=Selection(where="0"))
    assert done.events == 0
    assert (tmp_path / name).stat().st_size == done.bytes > 0


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_replaced_only_on_demand(journal: Journal, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(LocalError, match="is there already and would be lost; --force replaces it"):
        export(journal, tmp_path / name)
    assert (tmp_path / name).read_text() == "precious"
    export(journal, tmp_path / name, force=True)
    assert (tmp_path / name).read_bytes() != b"precious"


@pytest.mark.parametrize("name", FILES)
def test_an_export_that_fails_leaves_nothing_behind(journal: Journal, tmp_path: Path, name: str) -> None:
    def fail(events: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(journal, tmp_path / name, progress=fail)
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]


def test_an_export_that_cannot_be_written_is_said(journal: Journal, tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"cannot write .*: No such file or directory"):
        export(journal, tmp_path / "nowhere" / "x.csv")
    with pytest.raises(LocalError, match=r"the suffix of .* says no format; there are parquet, arrow, csv, mcap"):
        export(journal, tmp_path / "x.xlsx")
    with pytest.raises(LocalError, match="'xlsx' is no format"):
        export(journal, tmp_path / "x.csv", "xlsx")
    with pytest.raises(LocalError, match="is a directory"):
        export(journal, tmp_path / "journal", "csv")


@echoic.event
class Priced:
    symbol: str
    price: float
    volume: int = 0
    venue: str = "NYSE"


def test_a_changed_type_is_converted_in_columns_and_kept_in_messages(tmp_path: Path) -> None:
    batches = [Batch.of([Trade("IBM", 1.0)], Trade), Batch.of([Priced("DEC", 2.0, 3, "LSE")], Priced)]
    journal = record(tmp_path / "journal", batches)
    export(journal, tmp_path / "x.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "x.parquet").column("venue").to_pylist() == ["NYSE", "LSE"]
    export(journal, tmp_path / "x.mcap")
    with (tmp_path / "x.mcap").open("rb") as stream:
        found = [json.loads(message.data) for _, _, message in make_reader(stream).iter_messages()]
    assert [set(each) for each in found] == [{"symbol", "price", "volume"}, {"symbol", "price", "volume", "venue"}]


@echoic.event
class Other:
    at: float


@pytest.mark.parametrize("name", FILES)
def test_what_another_type_does_not_have_is_null_in_columns(tmp_path: Path, name: str) -> None:
    sample = Sample(0.5, b"\0\xff", b"ab", "x", 2, numpy.array([1, 2], "f4"))
    journal = record(tmp_path / "journal", [Batch.of([Other(1.5)], Other), Batch.of([sample], Sample)])
    assert export(journal, tmp_path / name).events == 2
    if name == "x.parquet":
        assert pyarrow.parquet.read_table(tmp_path / name).column("values").to_pylist() == [None, [1.0, 2.0]]
    if name == "x.csv":
        assert (tmp_path / name).read_text().splitlines()[1:] == ["1.5,,,,,", '0.5,"AP8=","ab","x",2,"[1.0,2.0]"']


def test_damage_ends_an_export_unless_it_may_be_skipped(tmp_path: Path) -> None:
    journal = record(tmp_path / "journal", [Batch.of(TRADES, Trade)] * 3)
    (segment,) = (tmp_path / "journal" / "trades" / "0").glob("*.segment")
    data = bytearray(segment.read_bytes())
    at = data.index(b"IBM", data.index(b"IBM") + 1)
    data[at] ^= 1
    segment.write_bytes(data)
    journal = Journal(tmp_path / "journal", "trades")
    with pytest.raises(JournalError, match="3 to 5"):
        export(journal, tmp_path / "x.csv")
    holes: list[Hole] = []
    assert export(journal, tmp_path / "x.csv", on_hole=holes.append).events == 6
    assert [(hole.first, hole.last) for hole in holes] == [(3, 5)]


def test_progress_counts_events(journal: Journal, tmp_path: Path) -> None:
    for name in FILES:
        told: list[int] = []
        export(journal, tmp_path / name, progress=told.append)
        assert told[-1] == 4


def test_a_file_that_an_export_left_unfinished_does_not_matter(journal: Journal, tmp_path: Path) -> None:
    (tmp_path / f".x.csv.{os.getpid()}.part").write_text("rest")
    assert export(journal, tmp_path / "x.csv").events == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "x.csv"]
