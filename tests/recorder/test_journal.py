"""A journal as people read it: by sequence, by time, filtered, as another type, and while it is being written."""

import gc
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec
import numpy
import pytest

import echoic
from echoic.errors import ECodeError, FormatError, IncompatibleTypesError, JournalError, LocalError
from echoic.formats import ARCHITECTURES, Array, event, float32, float64, int32, uint16
from echoic.recorder import Disk, Hole, Journal, Missing, Recorded
from echoic.recorder.blocks import BlockKind
from echoic.wire import Batch
from tests.recorder.recordings import BEGIN, DTYPE, SECOND, Forger, Scribe, Trade, disk, numbers, rows

BIG = ARCHITECTURES["sparc64"]


@event
class Venued:
    number: int
    price: float64
    venue: int32 = 0
    note: str = "none"


@event
class Renamed:
    serial: int


@event
class Report:
    number: int
    n: int32
    samples: Array[float32, "n"]
    name: str


def journal(scribe: Scribe) -> Journal:
    return Journal(scribe.shelf())


def hundred(**options: object) -> Journal:
    """A journal with a batch of 10 events each second."""
    scribe = Scribe(disk(), **options)
    for number in range(10):
        scribe.write(rows(10 * number, 10), at=number)
    return journal(scribe)


def test_the_names_are_public() -> None:
    assert (echoic.Journal, echoic.Recorded, echoic.Hole) == (Journal, Recorded, Hole)


def test_a_journal_on_a_disk_is_opened_by_its_path_and_channel(tmp_path: Path) -> None:
    for name in ("trades", "a/b"):
        scribe = Scribe(Disk(tmp_path), name)
        scribe.write(rows(0, 3))
        scribe.close()
    assert Journal.channels(tmp_path) == ["a/b", "trades"]
    assert numbers(Journal(str(tmp_path), "a/b").read()) == [0, 1, 2]
    found = Journal(tmp_path, "trades")
    assert (found.name, found.partitions, found.heads, found.firsts) == ("trades", 1, (3,), (0,))
    assert repr(found) == f"<Journal of trades, 1 partitions, id {found.id}>"


def test_the_channel_may_be_left_out_where_there_is_one(tmp_path: Path) -> None:
    Scribe(Disk(tmp_path), "trades").close()
    assert Journal(tmp_path).name == "trades"
    Scribe(Disk(tmp_path), "quotes").close()
    with pytest.raises(JournalError, match="several channels, name one of `quotes`, `trades`"):
        Journal(tmp_path)
    with pytest.raises(JournalError, match="no journal of channel `quote`, only of `quotes`, `trades` - at"):
        Journal(tmp_path, "quote")


def test_where_nothing_was_recorded_there_is_no_journal(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(JournalError, match="there is no journal - at"):
            Journal(path)
    with pytest.raises(JournalError, match="expected `quotes`"):
        Journal(Scribe(disk()).shelf(), "quotes")


def test_an_empty_journal_has_no_type_and_no_events() -> None:
    empty = journal(Scribe(disk()))
    assert (empty.formats, list(empty.read()), list(empty.tail(timeout=0))) == ((), [], [])
    with pytest.raises(JournalError, match="nothing was recorded yet, so there is no type - at channel `trades`"):
        _ = empty.format


def test_ranges_are_by_sequence() -> None:
    read = hundred().read
    assert numbers(read(25, 42)) == list(range(25, 42))
    assert numbers(read(95)) == list(range(95, 100))
    assert numbers(read(end=3)) == [0, 1, 2]
    assert numbers(read(200)) == []
    assert numbers(read(50, 40)) == []


@pytest.mark.parametrize(
    "moment",
    [
        BEGIN + 3 * SECOND,
        datetime.fromtimestamp(BEGIN // SECOND + 3, UTC),
        datetime.fromtimestamp(BEGIN // SECOND + 3, timezone(timedelta(hours=5))),
        datetime.fromtimestamp(BEGIN // SECOND + 3, UTC).replace(tzinfo=None),
        datetime.fromtimestamp(BEGIN // SECOND + 3, UTC).isoformat(),
    ],
)
def test_ranges_are_by_time_in_any_spelling(moment: int | datetime | str) -> None:
    read = hundred().read
    assert numbers(read(since=moment)) == list(range(30, 100))
    assert numbers(read(until=moment)) == list(range(30))
    assert numbers(read(5, 35, since=BEGIN + SECOND, until=moment)) == list(range(10, 30))


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(LocalError, match="`since` is not a time in ISO 8601: 'yesterday'"):
        hundred().read(since="yesterday")


def test_several_partitions_are_read_one_after_the_other_or_one_alone() -> None:
    scribe = Scribe(disk(), partitions=3)
    for source in range(6):
        scribe.write(rows(10 * source, 10), source=source)
    found = journal(scribe)
    assert found.heads == (20, 20, 20)
    assert [one.partition for one in found.read()] == [0, 0, 1, 1, 2, 2]
    assert numbers(found.read(5, 12, partition=1)) == [15, 16, 17, 18, 19, 40, 41]
    assert numbers(found.read((19, 20, 18))) == [39, 58, 59]
    assert numbers(found.read((19, 20, 18), partition=2)) == [58, 59]
    with pytest.raises(LocalError, match="1 sequence numbers for 3 partitions: name one partition"):
        found.read(5)
    with pytest.raises(LocalError, match="there is no partition 3, the journal of `trades` has 3"):
        found.read(partition=3)
    with pytest.raises(LocalError, match="a sequence number is 0 or more, got -2"):
        found.read(-2, partition=0)


def test_what_is_read_is_what_was_committed_when_reading_began() -> None:
    scribe = Scribe(disk())
    scribe.write(rows(0, 5))
    reading = journal(scribe).read()
    scribe.write(rows(5, 5))
    assert numbers(reading) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "where",
    [
        "input.price < 3",
        "{ if (input.price < 3) { return 1; } return 0; }",
        "def cheap(input):\n    return input.price < 3\n",
    ],
)
def test_a_filter_is_an_expression_a_body_or_a_function(where: str) -> None:
    assert numbers(hundred().read(where=where)) == [0, 1, 2, 3, 4, 5]


def test_a_filter_may_be_a_function_itself() -> None:
    def cheap(input, param):  # noqa: A002, ANN001, ANN202
        return input.price < param.low

    assert numbers(hundred().read(where=cheap, params={"low": 2.0})) == [0, 1, 2, 3]


def test_filtered_events_keep_their_own_numbers() -> None:
    (first, second) = hundred().read(5, 25, where="input.number % param.divisor == 0", params={"divisor": 9})
    assert (first.sequences.tolist(), first.numbers.tolist()) == ([9], [9])
    assert second.sequences.tolist() == [18]
    (both,) = hundred().read(0, 10, where="input.number == 3 || input.number == 8")
    assert both.sequences.tolist() == [3, 8]
    assert (both.sequence, both.first, both.count) == (0, 0, 2)


def test_a_filter_has_its_own_static_variables_for_each_source() -> None:
    scribe = Scribe(disk())
    for number in range(4):
        scribe.write(rows(10 * number, 5), source=number % 2)
    found = journal(scribe).read(where="{ static int seen = 0; seen = seen + 1; return seen > 8; }")
    assert numbers(found) == [23, 24, 33, 34]


def test_a_wrong_filter_is_refused_at_once() -> None:
    with pytest.raises(ECodeError, match="prize"):
        hundred().read(where="input.prize < 3")
    with pytest.raises(ECodeError, match="param"):
        hundred().read(where="input.price < param.low")


def test_a_filter_that_faults_is_an_error_that_names_the_event() -> None:
    with pytest.raises(
        LocalError, match=r"`where` faults at event 13, line 1, .*: an integer is divided by zero - at "
    ):
        list(hundred().read(where="100 / (input.number - 13) > 0"))


def test_columns_are_what_was_asked_for_in_that_order() -> None:
    (first, *_) = hundred().read(3, 7, columns=["lot", "number"])
    assert first.array.dtype.names == ("lot", "number")
    assert first.array["number"].tolist() == [3, 4, 5, 6]
    assert first.batch.format.size == 16
    with pytest.raises(FormatError, match="prize"):
        hundred().read(columns=["prize"])
    for none in ([], "lot"):
        with pytest.raises(LocalError, match="expected the names of columns"):
            hundred().read(columns=none)


def test_events_are_given_the_type_that_is_declared() -> None:
    events = [event for one in hundred().read(8, 12, declared=Trade) for event in one.batch]
    assert events == [Trade(8, 4.0), Trade(9, 4.5), Trade(10, 5.0), Trade(11, 5.5)]
    with pytest.raises(FormatError):
        hundred().read(declared=7)
    reading = hundred().read(declared=Renamed)
    with pytest.raises(IncompatibleTypesError, match=r"serial.* - at channel `trades`, partition 0, `.*`, offset \d+"):
        next(reading)


def changed() -> Journal:
    """The type gets fields, then the same from a big-endian machine, then fewer again."""
    scribe = Scribe(disk())
    scribe.write([Trade(number, number / 2, 7) for number in range(4)])
    scribe.write([Venued(number, number / 2, 8, f"n{number}") for number in range(4, 8)])
    foreign = Batch.of([Venued(number, number / 2, 9, "x") for number in range(8, 12)]).to(
        echoic.Format.of(Venued).on(BIG)
    )
    scribe.write(foreign)
    scribe.write([Trade(number, number / 2) for number in range(12, 16)])
    return journal(scribe)


def test_a_type_may_change_in_the_middle_and_each_batch_has_its_own() -> None:
    found = changed()
    assert [one.batch.format.name for one in found.read()] == ["Trade", "Venued", "Venued", "Trade"]
    assert [one.batch.format.byte_order for one in found.read()] == ["little", "little", "big", "little"]
    assert [format.name for format in found.formats] == ["Trade", "Venued", "Venued"]
    assert found.format == echoic.Format.of(Venued)


def test_a_filter_looks_at_every_type_through_the_newest() -> None:
    found = changed()
    assert numbers(found.read(where="input.venue == 9 || input.number < 2")) == [0, 1, 8, 9, 10, 11]
    assert numbers(found.read(where="{ return input.note[0] == 'n'; }")) == [*range(8), *range(12, 16)]
    assert numbers(found.read(where="input.venue == 0", declared=Trade)) == [12, 13, 14, 15]


def test_columns_of_every_type_are_those_of_the_newest() -> None:
    notes = [event.note for one in changed().read(columns=["number", "note"]) for event in one.batch]
    assert notes == ["none"] * 4 + ["n4", "n5", "n6", "n7"] + ["x"] * 4 + ["none"] * 4


def test_strings_and_dynamic_arrays_are_read_cut_and_filtered() -> None:
    scribe = Scribe(disk())
    reports = [Report(number, number % 4, numpy.arange(number % 4, dtype="f4"), "r" * number) for number in range(20)]
    scribe.write(reports[:10])
    scribe.write(Batch.of(reports[10:]).to(echoic.Format.of(Report).on(BIG)))
    found = journal(scribe)
    events = [event for one in found.read(3, 17, declared=Report) for event in one.batch]
    assert [(event.number, event.name, event.samples.tolist()) for event in events] == [
        (one.number, one.name, one.samples.tolist()) for one in reports[3:17]
    ]
    threes = [event.number for one in found.read(where="input.n == 3 && input.samples[2] > 1") for event in one.batch]
    assert threes == [3, 7, 11, 15, 19]
    samples = [len(event.samples) for one in found.read(columns=["samples"]) for event in one.batch]
    assert samples == [number % 4 for number in range(20)]


def test_a_hole_is_an_error_unless_somebody_is_told() -> None:
    scribe = Scribe(disk(), segment_bytes_max=600)
    for number in range(20):
        scribe.write(rows(7 * number, 7))
    scribe.writer.trim(0, 50)
    found = journal(scribe)
    first = found.firsts[0]
    assert first > 0
    assert numbers(found.read()) == list(range(first, 140))
    with pytest.raises(
        JournalError,
        match=rf"events 3 to {first - 1} cannot be read: they were removed.* channel `trades`, partition 0",
    ):
        list(found.read(3))
    told: list[Hole] = []
    assert numbers(found.read(3, on_hole=told.append)) == list(range(first, 140))
    assert [(hole.partition, hole.first, hole.last) for hole in told] == [(0, 3, first - 1)]


def test_what_never_arrived_is_told_to_whom_it_interests() -> None:
    scribe = Scribe(disk())
    scribe.write(rows(0, 2), source=3)
    scribe.writer.miss(3, 2, 5, "dropped", BEGIN)
    scribe.write(rows(2, 2), source=4)
    told: list[Missing] = []
    assert numbers(journal(scribe).read(on_missing=told.append)) == [0, 1, 2, 3]
    assert told == [Missing(3, 2, 5, "dropped")]


def test_a_malformed_record_is_refused_by_a_filter_with_its_place() -> None:
    batch = Batch.of([Report(1, 2, numpy.zeros(2, "f4"), "name")])
    payload = bytearray(b"".join(batch.buffers()))
    field = batch.format.field("name")
    at = 16 + 8 + field.offset
    payload[at : at + 4] = (1 << 20).to_bytes(4, "little")
    forger = Forger()
    forger.format(batch.format)
    place = forger.add(BlockKind.BATCH, [bytes(payload)], 0, count=1)
    found = Journal(forger.shelf(1))
    with pytest.raises(JournalError, match=rf"event 0 contradicts its type - at channel `trades`, .* offset {place}"):
        list(found.read(where="{ return input.name[0] == 'n'; }"))
    with pytest.raises(JournalError, match=f"offset {place}"):
        list(found.read(columns=["name"]))


def test_positions_of_sinks_are_found() -> None:
    scribe = Scribe(disk(), partitions=2)
    scribe.writer.mark("billing", (5, 7))
    assert journal(scribe).positions("billing") == (5, 7)
    assert journal(scribe).positions("nobody") is None


def test_a_journal_tells_what_it_has() -> None:
    info = hundred(segment_bytes_max=1000).info()
    assert (info.channel, info.created_ns, info.firsts, info.heads, info.events) == ("trades", BEGIN, (0,), (100,), 100)
    assert info.segments > 2
    assert info.bytes > 2400
    assert len(info.types) == 1
    assert msgspec.json.decode(msgspec.json.encode(info))["heads"] == [100]


def test_a_tail_begins_with_what_comes_next_and_ends_after_silence() -> None:
    scribe = Scribe(disk(), segment_bytes_max=700)
    scribe.write(rows(0, 5))
    tail = journal(scribe).tail(timeout=0)
    scribe.write(rows(5, 5))
    assert numbers(tail) == [5, 6, 7, 8, 9]
    assert numbers(journal(scribe).tail(3, timeout=0)) == list(range(3, 10))
    assert numbers(journal(scribe).tail(0, timeout=0, where="input.number > 7", columns=["number"])) == [8, 9]
    with pytest.raises(LocalError, match="a timeout is 0 seconds or more, got -1"):
        journal(scribe).tail(timeout=-1)


def test_a_tail_follows_all_partitions() -> None:
    scribe = Scribe(disk(), partitions=2)
    tail = journal(scribe).tail(timeout=0)
    for source in (0, 1, 1, 0):
        scribe.write(rows(0, 2), source=source)
    assert sorted((one.partition, one.sequence) for one in tail) == [(0, 0), (0, 2), (1, 0), (1, 2)]


WRITER = """
import sys, numpy
from echoic.recorder import Disk
from tests.recorder.recordings import Scribe, rows
scribe = Scribe(Disk(sys.argv[1]), segment_bytes_max=20_000, durability="os")
print("ready", flush=True)
sys.stdin.readline()
for number in range(300):
    scribe.write(rows(20 * number, 20), source=number % 3)
scribe.close()
"""


@pytest.mark.system
def test_a_tail_follows_another_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        tail = Journal(tmp_path).tail(0, timeout=30)
        process.stdin.write("go\n")
        process.stdin.flush()
        found: list[int] = []
        while len(found) < 6000:
            found += numbers([next(tail)])
    assert found == list(range(6000))
    assert process.returncode == 0


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts the files that this process has open")
def test_a_journal_lets_go_of_its_files_when_it_is_closed_or_forgotten(tmp_path: Path) -> None:
    scribe = Scribe(Disk(tmp_path), segment_bytes_max=600)
    for number in range(20):
        scribe.write(rows(7 * number, 7))
    gc.collect()
    before = open_files()
    with Journal(tmp_path) as found:
        assert sum(one.count for one in found.read()) == 140
    del found
    assert open_files() == before
    assert sum(one.count for one in Journal(tmp_path).read()) == 140
    assert open_files() == before
    (first, *_) = Journal(tmp_path).read()
    assert numbers([first]) == [0, 1, 2, 3, 4, 5, 6]


def test_a_dtype_is_the_one_that_was_sent() -> None:
    (first, *_) = hundred().read()
    assert first.array.dtype == DTYPE
    assert first.arrow.column("number").to_pylist() == list(range(10))


def test_an_older_type_without_a_field_that_the_filter_names_is_refused() -> None:
    @event
    class Later:
        number: int
        region: uint16

    scribe = Scribe(disk())
    scribe.write(rows(0, 3))
    scribe.write([Later(3, 1)])
    with pytest.raises(IncompatibleTypesError, match=r"region.* - at channel `trades`"):
        list(journal(scribe).read(where="input.region == 1"))
