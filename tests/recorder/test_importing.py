"""What was exported comes back, what strangers wrote is understood, and what is broken is refused in one sentence."""

import base64
import json
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random

import hypothesis.strategies as st
import lz4.frame
import pyarrow
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis.strategies import DataObject
from mcap.data_stream import RecordBuilder
from mcap.records import Chunk, Header
from mcap.writer import Writer

import echoic
from echoic.errors import EchoicError, EncodeError, FormatError, JournalError, LocalError
from echoic.formats import Format
from echoic.recorder import Contents, Journal, JournalOptions, JournalWriter, export, import_file
from echoic.recorder.disk import Disk
from echoic.recorder.json_events import events_as_json, events_of_json, format_of_json_schema, json_schema_of
from echoic.wire import Batch
from tests.strategies import batches, formats

START_NS = 1_700_000_000_000_000_000
MAGIC = b"\x89MCAP0\r\n"
ZEROS = 16_000_000
MEMORY_MAX = (3 * ZEROS, ZEROS // 4)  # for a chunk that says what it has, or nearly, and for one that says little
KINDS = ["parquet", "arrow", "csv", "mcap"]
QUICK = JournalOptions(durability="os")  # nobody pulls the plug


@echoic.event
class Point:
    x: float
    y: float


@echoic.event
class Trade:
    symbol: str
    price: float
    at: Point
    volume: int = 0


TRADES = [Trade(f"S{number}", number / 4, Point(number, -number), number) for number in range(1000)]


def record(path: Path, batch: Batch, parts: int = 1) -> Journal:
    """Make a journal of a batch, in parts a second apart, of two sources in turn."""
    writer = JournalWriter.open(Disk(path), "trades", QUICK, id=bytes(16), now_ns=START_NS)
    sizes = [len(part) for part in [range(batch.count)[number::parts] for number in range(parts)]]
    numbers = [0, 100]
    for number, part in enumerate(batch.parts(sizes)):
        writer.append(part, number % 2 + 1, numbers[number % 2], START_NS + number * 1_000_000_000)
        numbers[number % 2] += part.count
    writer.close(START_NS)
    return Journal(path, "trades")


def stamped(journal: Journal) -> list[tuple[int, int, int, str]]:
    """Return everything that a journal knows of its events."""
    return [
        (each.source, number, each.time_ns, str(event))
        for each in journal.read()
        for number, event in zip(each.numbers.tolist(), each.arrow.to_pylist(), strict=True)
    ]


def events_of(journal: Journal) -> list[str]:
    return [event for *_, event in stamped(journal)]


@settings(max_examples=25)
@given(st.data())
def test_events_of_any_type_come_back_as_they_were(data: DataObject) -> None:
    format = data.draw(formats())
    batch = Batch.of(data.draw(batches(format).filter(len)), format)
    kind, metadata = data.draw(st.sampled_from(KINDS)), data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        journal = record(path / "journal", batch, parts=3)
        file, again = path / f"x.{kind}", path / f"y.{kind}"
        export(journal, file, metadata=metadata)
        contents = Contents(declared=format if kind == "csv" else None)
        done = import_file(file, path / "copy", "trades", contents=contents, options=QUICK)
        copy = Journal(path / "copy", "trades")
        assert done.events == done.fresh == batch.count
        assert events_of(copy) == events_of(journal)
        assert copy.format == journal.format
        export(copy, again, metadata=metadata)
        if metadata or kind == "mcap":
            assert stamped(copy) == stamped(journal)
            assert again.read_bytes() == file.read_bytes()
        elif kind != "parquet":  # which has other pages when a journal has other batches
            assert again.read_bytes() == file.read_bytes()


@given(st.data())
def test_json_and_its_schema_say_all_of_an_event(data: DataObject) -> None:
    format = data.draw(formats())
    batch = Batch.of(data.draw(batches(format)), format)
    texts = events_as_json(batch)
    for text in texts:
        json.loads(text, parse_constant=pytest.fail)  # NaN is no JSON
    assert format_of_json_schema(json_schema_of(format), "Record") == format
    assert str(events_of_json(texts, format).events()) == str(batch.events())


@pytest.mark.parametrize("kind", KINDS)
def test_sources_numbers_and_times_are_kept(tmp_path: Path, kind: str) -> None:
    journal = record(tmp_path / "journal", Batch.of(TRADES, Trade), parts=7)
    export(journal, tmp_path / f"x.{kind}", metadata=True)
    contents = Contents(declared=Trade)
    assert (
        import_file(tmp_path / f"x.{kind}", tmp_path / "copy", "trades", contents=contents, options=QUICK).fresh == 1000
    )
    assert stamped(Journal(tmp_path / "copy", "trades")) == stamped(journal)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_journal_has_already_is_dropped(tmp_path: Path, kind: str) -> None:
    journal = record(tmp_path / "journal", Batch.of(TRADES, Trade), parts=7)
    before = stamped(journal)
    export(journal, tmp_path / f"x.{kind}", metadata=True)
    contents = Contents(declared=Trade)
    done = import_file(tmp_path / f"x.{kind}", tmp_path / "journal", "trades", contents=contents, append=True)
    assert (done.events, done.fresh) == (1000, 0)
    assert stamped(Journal(tmp_path / "journal", "trades")) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_that_is_given_counts_anew(tmp_path: Path, kind: str) -> None:
    journal = record(tmp_path / "journal", Batch.of(TRADES, Trade), parts=7)
    export(journal, tmp_path / f"x.{kind}", metadata=True)
    contents = Contents(declared=Trade, source=2**64 - 1)
    for _ in range(2):
        done = import_file(tmp_path / f"x.{kind}", tmp_path / "copy", "trades", contents=contents, append=True)
        assert done.fresh == 1000
    known = stamped(Journal(tmp_path / "copy", "trades"))
    assert [(source, number) for source, number, _, _ in known] == [(2**64 - 1, number) for number in range(2000)]
    assert [time for _, _, time, _ in known[:1000]] == [time for _, _, time, _ in stamped(journal)]


def test_the_file_says_what_the_channel_is_called(tmp_path: Path) -> None:
    journal = record(tmp_path / "journal", Batch.of(TRADES, Trade))
    for kind in KINDS:
        export(journal, tmp_path / f"lines.{kind}")
        done = import_file(tmp_path / f"lines.{kind}", tmp_path / kind)
        assert done.channel == ("lines" if kind == "csv" else "trades")
        assert Journal.channels(tmp_path / kind) == [done.channel]


def test_a_channel_that_is_there_is_not_touched_by_accident(tmp_path: Path) -> None:
    journal = record(tmp_path / "journal", Batch.of(TRADES, Trade))
    export(journal, tmp_path / "x.arrow")
    with pytest.raises(LocalError, match=r"channel 'trades' is in .* already; --append adds to it"):
        import_file(tmp_path / "x.arrow", tmp_path / "journal")
    done = import_file(tmp_path / "x.arrow", tmp_path / "journal", "others", options=JournalOptions(partitions=3))
    assert (done.channel, done.fresh) == ("others", 1000)
    assert Journal.channels(tmp_path / "journal") == ["others", "trades"]
    assert Journal(tmp_path / "journal", "others").partitions == 3


def test_csv_without_a_type_is_guessed(tmp_path: Path) -> None:
    file = tmp_path / "things.csv"
    file.write_text(
        'id,price,good,name,day,at.x,at.y\n1,2,true,a,2024-01-01,1.5,2\n2,2.5,false,"",,2.5,3\n3,nan,true,,,0,4\n'
    )
    import_file(file, tmp_path / "journal")
    (recorded,) = Journal(tmp_path / "journal").read()
    assert [(field.name, field.spelling) for field in recorded.batch.format.fields] == [
        ("id", "int64"),
        ("price", "float64"),
        ("good", "bool"),
        ("name", "string?"),
        ("day", "string?"),
        ("at", "at"),
    ]
    assert recorded.batch.arrow.column("name").to_pylist() == ["a", "", None]
    assert recorded.batch.arrow.column("at").to_pylist() == [{"x": 1.5, "y": 2}, {"x": 2.5, "y": 3}, {"x": 0.0, "y": 4}]


def test_tables_of_strangers_become_events(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "when": pyarrow.array([1_700_000_000_000_000, 0], pyarrow.timestamp("us", "UTC")),
            "half": pyarrow.array([0.5, 1.5], pyarrow.float16()),
            "word": pyarrow.array(["a", None]).dictionary_encode(),
            "list": pyarrow.array([[1, 2], []], pyarrow.large_list(pyarrow.int16())),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    with pyarrow.ipc.new_stream(tmp_path / "x.arrow", table.schema) as stream:  # a stream, which is no Arrow file
        stream.write_table(table)
    for kind in ("parquet", "arrow"):
        import_file(tmp_path / f"x.{kind}", tmp_path / kind)
        (recorded,) = Journal(tmp_path / kind).read()
        assert recorded.batch.arrow.to_pylist() == [
            {"when": START_NS, "half": 0.5, "word": "a", "list": [1, 2]},
            {"when": 0, "half": 1.5, "word": None, "list": []},
        ]


def write_mcap(file: Path, schema: object, messages: list[bytes], topic: str = "/imu", encoding: str = "json") -> None:
    with file.open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        data = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
        id = writer.register_channel(topic, encoding, writer.register_schema("some.Schema", "jsonschema", data))
        for number, message in enumerate(messages):
            writer.add_message(id, START_NS + number // 2, message, 0, 0)
        writer.finish()


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "data": {"type": "string", "contentEncoding": "base64"},
        "on": {"type": "boolean"},
        "count": {"type": "integer"},
        "position": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
        "matrix": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["position", "matrix", "on"],
}


def test_messages_of_strangers_become_events(tmp_path: Path) -> None:
    full = {
        "name": "a",
        "data": base64.b64encode(b"\0\1").decode(),
        "on": True,
        "count": 3,
        "position": {"x": 1, "y": "NaN"},
        "matrix": [1, 2.5],
        "tags": ["u", "v"],
        "unknown": [{}],
    }
    sparse = {"on": False, "position": {"x": 0.5, "y": 2}, "matrix": [0, 0]}
    write_mcap(tmp_path / "x.mcap", SCHEMA, [json.dumps(each).encode() for each in (full, sparse, full)])
    done = import_file(tmp_path / "x.mcap", tmp_path / "journal")
    assert (done.channel, done.fresh) == ("imu", 3)
    recorded = list(Journal(tmp_path / "journal").read())
    assert [(each.count, each.time_ns) for each in recorded] == [(2, START_NS), (1, START_NS + 1)]
    first, second = recorded[0].batch.arrow.to_pylist()
    assert (first["data"], first["matrix"], first["tags"], first["position"]["x"]) == (
        b"\0\1",
        [1.0, 2.5],
        ["u", "v"],
        1,
    )
    assert (second["name"], second["data"], second["count"], second["tags"]) == (None, None, 0, [])


def test_one_of_several_topics_is_chosen(tmp_path: Path) -> None:
    with (tmp_path / "x.mcap").open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        schema = writer.register_schema("S", "jsonschema", json.dumps(SCHEMA).encode())
        for topic, encoding in (("a", "json"), ("b", "json"), ("c", "ros1")):
            id = writer.register_channel(topic, encoding, schema)
            text = b'{"on": true, "position": {"x": 0, "y": 0}, "matrix": [0, 0]}'
            writer.add_message(id, 1, text if encoding == "json" else b"\0", 1)
        writer.finish()
    with pytest.raises(LocalError, match=r"not exactly one topic, so one must be chosen; there are: 'a', 'b', 'c'"):
        import_file(tmp_path / "x.mcap", tmp_path / "journal")
    with pytest.raises(LocalError, match="no topic 'd'; there are"):
        import_file(tmp_path / "x.mcap", tmp_path / "journal", contents=Contents(topic="d"))
    with pytest.raises(JournalError, match="messages are in 'ros1', expected 'json' - at topic 'c'"):
        import_file(tmp_path / "x.mcap", tmp_path / "journal", contents=Contents(topic="c"))
    assert import_file(tmp_path / "x.mcap", tmp_path / "journal", contents=Contents(topic="b")).fresh == 1


MESSAGES = {
    b"{": (EncodeError, "a message is not JSON"),
    b"[" * 100_000: (EncodeError, "a message is not JSON"),
    b"7": (EncodeError, "expected an object, got 7"),
    b'{"on": true}': (EncodeError, "the field is missing - at `Record.position"),
    b'{"on": 1, "position": {"x": 0, "y": 0}, "matrix": [0, 0]}': (EncodeError, "Record.on|`on`"),
    b'{"on": true, "position": {"x": "far", "y": 0}, "matrix": [0, 0]}': (EncodeError, "expected `float64`, got 'far'"),
    b'{"on": true, "position": {"x": 0, "y": 0}, "matrix": [0]}': (EncodeError, "matrix"),
    b'{"on": true, "data": "?", "position": {"x": 0, "y": 0}, "matrix": [0, 0]}': (EncodeError, "as base64, got"),
}


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message[:20].decode())
def test_a_message_that_is_none_is_refused(tmp_path: Path, message: bytes) -> None:
    write_mcap(tmp_path / "x.mcap", SCHEMA, [message])
    kind, told = MESSAGES[message]
    with pytest.raises(kind, match=told):
        import_file(tmp_path / "x.mcap", tmp_path / "journal")
    assert not list((tmp_path / "journal").iterdir())


def deep(inside: str) -> object:
    """Return a schema of a hundred arrays, or objects, one in the other."""
    schema: object = {"type": "number"}
    for _ in range(100):
        more = {"items": schema} if inside == "array" else {"properties": {"a": schema}}
        schema = {"type": inside, "minItems": 1, "maxItems": 1, **more}
    return {"type": "object", "properties": {"a": schema}}


SCHEMAS = [
    (b"{", "the schema is not JSON"),
    (b"[]", "expected a JSON Schema of an object"),
    ({}, "have no `properties`"),
    ({"properties": {}}, "at least one field"),
    ({"properties": {"a b": {"type": "number"}}}, "is not an identifier"),
    ({"properties": {"a": {"type": ["number", "null"]}}}, "expected a schema with one `type`"),
    ({"properties": {"a": {"type": "null"}}}, "cannot be fields"),
    ({"properties": {"a": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}}}, "any length"),
    ({"properties": {"a": {"type": "array", "items": {"type": "number"}, "minItems": -1, "maxItems": -1}}}, "a"),
    ({"x-echoic-descriptor": "no"}, "is no descriptor"),
    ({"x-echoic-descriptor": 7}, "is no descriptor"),
    (deep("array"), "nested more than"),
    (deep("object"), "nested more than"),
]


@pytest.mark.parametrize(("schema", "told"), SCHEMAS, ids=[told for _, told in SCHEMAS])
def test_a_schema_that_is_no_type_is_refused(tmp_path: Path, schema: object, told: str) -> None:
    write_mcap(tmp_path / "x.mcap", schema, [b"{}"])
    with pytest.raises(FormatError, match=told):
        import_file(tmp_path / "x.mcap", tmp_path / "journal")


def refusal(work: Callable[[], object]) -> str:
    """Return in which words something is refused, none if it is not."""
    try:
        work()
    except EchoicError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_not_there_or_something_else_is_refused(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"x.{kind}"
    with pytest.raises(JournalError, match=f"x.{kind}"):
        import_file(file, tmp_path / "journal")
    contents = [b"", b"\0" * 1000, b"PAR1" * 10, b"ARROW1\0\0" * 10, b"\x89MCAP0\r\n" * 3]
    for data in contents:
        file.write_bytes(data)
        told = refusal(lambda: import_file(file, tmp_path / "journal"))
        assert told or kind == "csv"
        assert "\n" not in told
    assert not (tmp_path / "journal" / "x").exists() or kind == "csv"


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_refused_in_one_sentence_or_read(tmp_path: Path, kind: str) -> None:
    export(record(tmp_path / "journal", Batch.of(TRADES[:50], Trade)), tmp_path / f"x.{kind}", metadata=True)
    data = (tmp_path / f"x.{kind}").read_bytes()
    chance = Random(6)
    refused = 0
    for number in range(40):
        broken = bytearray(data[: chance.randrange(len(data))] if number % 5 == 0 else data)
        for _ in range(min(3, len(broken))):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        (tmp_path / f"y.{kind}").write_bytes(broken)
        journal = tmp_path / f"journal{number}"
        told = refusal(lambda: import_file(tmp_path / f"y.{kind}", journal, "trades", options=QUICK))  # noqa: B023
        assert "\n" not in told
        assert (journal / "trades").exists() == (not told)
        refused += bool(told)
    assert refused > 10


def spoil_csv(file: Path) -> None:
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[-1].replace(",", ",x", 1)]) + "\n")


def spoil_mcap(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


@pytest.mark.parametrize(("kind", "spoil"), [("csv", spoil_csv), ("mcap", spoil_mcap)])
def test_what_breaks_in_the_middle_leaves_no_journal(tmp_path: Path, kind: str, spoil: Callable[[Path], None]) -> None:
    export(record(tmp_path / "journal", Batch.of(TRADES, Trade)), tmp_path / f"x.{kind}")
    spoil(tmp_path / f"x.{kind}")
    with pytest.raises(JournalError, match="cannot read"):
        import_file(tmp_path / f"x.{kind}", tmp_path / "copy", contents=Contents(declared=Trade))
    assert not list((tmp_path / "copy").iterdir()) if (tmp_path / "copy").exists() else True


@pytest.mark.parametrize(
    ("compression", "says", "told"),
    [
        ("zstd", 100, "a chunk has more bytes than the 100 that it says"),
        ("lz4", 100, "a chunk has more bytes than the 100 that it says"),
        ("zstd", ZEROS + 1, f"a chunk has fewer bytes than the {ZEROS + 1} that it says"),
        ("lz4", 1 << 40, "a chunk has 1099511627776 bytes, limit is 268435456"),
        ("brotli", 100, "a chunk is compressed by 'brotli', expected zstd or lz4"),
    ],
)
def test_a_chunk_is_given_no_more_memory_than_it_says_and_may_say(
    tmp_path: Path, compression: str, says: int, told: str
) -> None:
    """Some kilobytes of zstd may stand for gigabytes of zeros."""
    packed = zstandard.compress(bytes(ZEROS)) if compression == "zstd" else lz4.frame.compress(bytes(ZEROS))
    builder = RecordBuilder()
    Header(profile="", library="").write(builder)
    Chunk(compression, packed, 0, 0, 0, says).write(builder)
    (tmp_path / "x.mcap").write_bytes(MAGIC + builder.end())
    tracemalloc.start()
    try:
        with pytest.raises(JournalError, match=told):
            import_file(tmp_path / "x.mcap", tmp_path / "journal")
        assert tracemalloc.get_traced_memory()[1] < MEMORY_MAX[says <= 100]
    finally:
        tracemalloc.stop()


def test_values_that_do_not_fit_the_declared_type_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,\n")
    pair = Format.of(
        pyarrow.schema([pyarrow.field("a", pyarrow.int64(), False), pyarrow.field("b", pyarrow.int64(), False)])
    )
    with pytest.raises(EncodeError, match=r"the column has 1 nulls, `int64` has none - at `Record.b`"):
        import_file(tmp_path / "x.csv", tmp_path / "journal", contents=Contents(declared=pair))
    with pytest.raises(EncodeError, match="no column"):
        import_file(tmp_path / "x.csv", tmp_path / "journal", contents=Contents(declared=Trade))
    (tmp_path / "x.csv").write_text("a,a\n1,2\n")
    with pytest.raises(FormatError, match="two columns have the same name"):
        import_file(tmp_path / "x.csv", tmp_path / "journal")
    with pytest.raises(LocalError, match="the number of a source is 0 to"):
        import_file(tmp_path / "x.csv", tmp_path / "journal", contents=Contents(source=-1))


def test_progress_counts_events_and_knows_the_total_of_parquet(tmp_path: Path) -> None:
    export(record(tmp_path / "journal", Batch.of(TRADES, Trade)), tmp_path / "x.parquet")
    told: list[tuple[int, int | None]] = []
    import_file(tmp_path / "x.parquet", tmp_path / "copy", progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (1000, 1000)
