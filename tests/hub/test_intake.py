"""Intakes: epochs that are staged and committed become events of a channel, each once."""

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from echoic import Hub, event, float64, int64
from echoic.errors import (
    ChannelNotFoundError,
    DeliveryError,
    EchoicError,
    JournalError,
    LocalError,
    RefusedError,
    UnreachableError,
)
from echoic.formats import Format
from echoic.hub import Intake, IntakeClient, IntakeLimits
from echoic.hub.intake_book import Attempt
from echoic.hub.intake_messages import BODY_BYTES_MAX, CarriedPart, Portion, bodies_of, intake_name
from echoic.hub.intake_publisher import lane_names
from echoic.hub.intake_spool import Spool
from echoic.recorder import Disk, Journal, verify
from echoic.wire import Batch
from tests.conftest import StartHub
from tests.hub.intake_parties import Writer, body, recorded
from tests.hub.parties import Collector, Note, Quote, Tick, eventually

MakeIntake = Callable[..., Intake]
SMALL = 1000


@event
class WideTick:
    """A tick of somebody who knows more."""

    extra: float64
    producer: int64
    number: int64


@event
class Small:
    """A grid of somebody who knows only its number."""

    number: int64


@event
class Grid:
    number: int64
    cells: str = "x" * 4000


@pytest.fixture
def intake(start_hub: StartHub, tmp_path: Path) -> Intake:
    return start_hub().intake("ticks", tmp_path, Tick)


@pytest.fixture
def writer(start_hub: StartHub, intake: Intake) -> Writer:
    return Writer(start_hub(), intake.channel.id)


@pytest.fixture
def make_intake(start_hub: StartHub, tmp_path: Path) -> Iterator[MakeIntake]:
    """Open intakes with limits of their own."""
    made: list[Intake] = []

    def make(declared: object | None = Tick, partitions: int = 1, **limits: int) -> Intake:
        made.append(Intake(start_hub(), "ticks", tmp_path, declared, partitions, IntakeLimits(**limits)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def restarted(start_hub: StartHub, intake: Intake, path: Path) -> tuple[Intake, Writer]:
    """Close an intake and its hub, and open another on what it has left."""
    intake.close()
    again = start_hub().intake("ticks", path, Tick)
    return again, Writer(start_hub(), again.channel.id)


def test_what_is_staged_is_published_when_it_is_committed_and_not_before(
    intake: Intake, writer: Writer, tmp_path: Path
) -> None:
    heard = Collector()
    intake.channel.subscribe(heard)
    writer.stage(0, [1, 2])
    writer.stage(0, [3], index=1)
    assert (recorded(tmp_path), heard.events) == ([], [])
    writer.commit(0, (0, 1, 2))
    assert recorded(tmp_path) == [1, 2, 3]
    assert [tick.number for tick in heard.events] == [1, 2, 3]


def test_a_commit_that_carries_its_rows_needs_no_staging(intake: Intake, writer: Writer, tmp_path: Path) -> None:
    for epoch in range(5):
        writer.write(epoch, [10 * epoch, 10 * epoch + 1])
    assert recorded(tmp_path) == [0, 1, 10, 11, 20, 21, 30, 31, 40, 41]
    assert intake.statistics().epochs == 5
    assert intake.statistics().rows == 10


def test_a_repeated_commit_is_acknowledged_and_does_nothing(intake: Intake, writer: Writer, tmp_path: Path) -> None:
    writer.write(3, [1])
    writer.write(3, [1])
    writer.stage(3, [1])
    writer.commit(3)
    assert recorded(tmp_path) == [1]
    assert intake.statistics().repeated == 2
    assert intake.statistics().staged_bytes == 0


def test_a_named_query_whose_checkpoint_was_removed_is_told_and_its_rows_are_not_swallowed(
    intake: Intake, writer: Writer, tmp_path: Path
) -> None:
    for epoch in range(3):
        writer.write(epoch, [epoch])
    with pytest.raises(RefusedError, match=r"`query` has committed epoch 2 and comes with epoch 0.*option `query`"):
        writer.write(0, [99])
    with pytest.raises(RefusedError, match="its checkpoint was removed"):
        writer.stage(1, [99])
    assert recorded(tmp_path) == [0, 1, 2]
    assert intake.statistics().staged_bytes == 0


def test_what_is_aborted_is_dropped_and_can_be_staged_again(intake: Intake, writer: Writer, tmp_path: Path) -> None:
    writer.stage(0, [1])
    writer.client.abort("query", 0)
    assert intake.statistics().staged_bytes == 0
    with pytest.raises(RefusedError, match=r"names 1 portions of partition 0, epoch 0, query `query`, 0 are there"):
        writer.commit(0)
    writer.stage(0, [2])
    writer.commit(0)
    writer.client.abort("query", 0)
    assert recorded(tmp_path) == [2]


def test_attempts_that_are_not_named_are_dropped(intake: Intake, writer: Writer, tmp_path: Path) -> None:
    writer.stage(0, [1], attempt=1)
    writer.stage(0, [2], attempt=2)
    writer.stage(0, [3], attempt=1, index=1)
    writer.commit(0, (0, 2, 1))
    assert recorded(tmp_path) == [2]
    assert intake.statistics().staged_bytes == 0


def test_a_portion_that_is_sent_twice_is_there_once(intake: Intake, writer: Writer, tmp_path: Path) -> None:
    writer.stage(0, [1])
    writer.stage(0, [1])
    writer.stage(0, [2], index=1)
    writer.commit(0, (0, 1, 2))
    assert recorded(tmp_path) == [1, 2]


def test_two_queries_do_not_know_of_each_other(start_hub: StartHub, intake: Intake, tmp_path: Path) -> None:
    hub = start_hub()
    first, second = (Writer(hub, intake.channel.id, query) for query in ("first", "second"))
    first.stage(0, [1])
    second.stage(0, [2])
    second.commit(0)
    first.commit(0)
    second.write(1, [3])
    first.write(1, [4])
    assert recorded(tmp_path) == [2, 1, 3, 4]


def test_rows_of_a_partition_stay_in_order_in_one_partition_of_the_journal(start_hub: StartHub, tmp_path: Path) -> None:
    intake = start_hub().intake("ticks", tmp_path, Tick, partitions=3)
    writer = Writer(start_hub(), intake.channel.id)
    for epoch in range(4):
        for partition in range(5):
            writer.stage(epoch, [epoch * 10 + partition], partition=partition)
        writer.commit(epoch, *((partition, 1, 1) for partition in range(5)))
    assert recorded(tmp_path, partition=0) == [0, 3, 10, 13, 20, 23, 30, 33]
    assert recorded(tmp_path, partition=1) == [1, 4, 11, 14, 21, 24, 31, 34]
    assert recorded(tmp_path, partition=2) == [2, 12, 22, 32]


def test_there_is_a_source_for_each_partition_of_the_largest_journal() -> None:
    assert len(set(lane_names("ticks", 1024))) == 1024


def test_rows_of_a_type_that_does_not_match_are_refused_before_anything_is_staged(
    intake: Intake, writer: Writer, tmp_path: Path
) -> None:
    (wrong,) = bodies_of(Batch.of([Note(number=1, text="x")]))
    with pytest.raises(RefusedError, match=r"the rows cannot be events of channel `ticks`.*producer"):
        writer.client.stage(Attempt("query", 0, 0, 1), 0, wrong)
    with pytest.raises(RefusedError, match="the rows cannot be events of channel `ticks`"):
        writer.client.commit("query", 0, [CarriedPart(0, 1, 1, (wrong,))])
    assert intake.statistics().staged_bytes == 0
    writer.write(0, [5])
    assert recorded(tmp_path) == [5]


def test_rows_of_a_type_with_more_fields_become_events_of_the_channels_type(
    intake: Intake, writer: Writer, tmp_path: Path
) -> None:
    (wide,) = bodies_of(Batch.of([WideTick(extra=1.5, producer=0, number=7)]))
    writer.client.commit("query", 0, [CarriedPart(0, 1, 1, (wide,))])
    assert recorded(tmp_path) == [7]
    assert [format.name for format in Journal(tmp_path, "ticks").formats] == ["Tick"]


def test_rows_that_grow_beyond_measure_as_the_channels_type_are_refused_before_they_do(
    start_hub: StartHub, tmp_path: Path
) -> None:
    intake = start_hub().intake("grids", tmp_path, Grid)
    client = IntakeClient(start_hub(), intake.channel.id)
    for count, right in ((100, True), (10_000, False)):
        (small,) = bodies_of(Batch.of([Small(number) for number in range(count)]))
        told = contextlib.nullcontext() if right else pytest.raises(RefusedError, match=r"10000 rows has .* limit is")
        with told:
            client.commit("query", count, [CarriedPart(0, 1, 1, (small,))])
    assert sum(one.count for one in Journal(tmp_path, "grids").read()) == 100


def test_a_channel_without_a_type_gets_that_of_the_first_rows(start_hub: StartHub, tmp_path: Path) -> None:
    intake = start_hub().intake("ticks", tmp_path)
    hub = start_hub()
    early = Collector()
    hub.open(intake.channel.id).subscribe(early)
    writer = Writer(hub, intake.channel.id)
    assert writer.client.type() is None
    writer.write(0, [1, 2])
    assert writer.client.type() == Format.of(Tick)
    with pytest.raises(RefusedError, match="cannot be events of channel"):
        writer.client.stage(Attempt("query", 1, 0, 1), 0, next(bodies_of(Batch.of([Quote(1.0, 2)]))))
    eventually(lambda: [tick.number for tick in early.events] == [1, 2])
    assert [tick.number for tick in early.events] == [1, 2]
    intake.close()
    assert start_hub().intake("ticks", tmp_path).format == Format.of(Tick)


def test_epochs_and_numbers_go_on_in_another_hub(
    start_hub: StartHub, intake: Intake, writer: Writer, tmp_path: Path
) -> None:
    writer.write(0, [1])
    writer.write(1, [2, 3])
    writer.stage(2, [4])
    again, successor = restarted(start_hub, intake, tmp_path)
    successor.write(1, [2, 3])
    with pytest.raises(RefusedError, match="started anew: repeat the epoch"):
        successor.commit(2)
    successor.stage(2, [4])
    successor.commit(2)
    assert recorded(tmp_path) == [1, 2, 3, 4]
    assert again.statistics().repeated == 1
    assert verify(Disk(tmp_path), "ticks") == []


def test_a_writer_goes_on_with_an_intake_that_was_started_anew(start_hub: StartHub, tmp_path: Path) -> None:
    hub = start_hub()
    writer = Writer(start_hub(), hub.intake("ticks", tmp_path, Tick).channel.id)
    writer.write(0, [1])
    hub.close()
    starting = threading.Timer(0.5, lambda: start_hub(hub.address).intake("ticks", tmp_path, Tick))
    starting.start()
    writer.write(0, [1])
    writer.write(1, [2])
    starting.join()
    assert recorded(tmp_path) == [1, 2]


def test_what_was_committed_and_not_published_is_published_after_a_restart(
    start_hub: StartHub, intake: Intake, writer: Writer, tmp_path: Path
) -> None:
    going_on, called = threading.Event(), threading.Event()

    def wait(_: Tick) -> None:
        called.set()
        going_on.wait(30)

    intake.channel.subscribe(wait)
    hub = start_hub()
    failures: list[EchoicError] = []

    def commit_all() -> None:
        for epoch, timeout in enumerate((1.5, 0.2, 0.2)):
            try:
                Writer(hub, intake.channel.id, timeout=timeout).write(epoch, [epoch])
            except UnreachableError as error:
                failures.append(error)

    committing = threading.Thread(target=commit_all)
    committing.start()
    assert called.wait(30)
    committing.join()
    assert len(failures) == 3
    assert "has not got further in 1.5 s: a sink of the channel does not keep up" in str(failures[0])
    assert intake.statistics().under_way == 3
    intake.close()
    going_on.set()
    again, successor = restarted(start_hub, intake, tmp_path)
    successor.write(2, [99])
    assert recorded(tmp_path) == [0, 1, 2]
    assert (again.statistics().epochs, again.statistics().under_way) == (0, 0)


def test_a_slow_sink_makes_the_writer_wait_and_nothing_is_lost(
    start_hub: StartHub, intake: Intake, writer: Writer, tmp_path: Path
) -> None:
    going_on, heard = threading.Event(), Collector()

    def take(tick: Tick) -> None:
        going_on.wait(30)
        heard(tick)

    intake.channel.subscribe(take)
    written = threading.Event()

    def write() -> None:
        writer.write(0, range(SMALL))
        written.set()

    thread = threading.Thread(target=write)
    thread.start()
    other = Writer(start_hub(), intake.channel.id, "other")
    other.stage(0, [1])  # it can be staged meanwhile
    assert not written.wait(1.5)  # longer than a commit waits for its answer
    going_on.set()
    thread.join()
    assert recorded(tmp_path) == list(range(SMALL))
    eventually(lambda: len(heard.events) == SMALL)


def test_rows_that_are_too_many_for_memory_go_to_files_that_are_gone_when_they_are_published(
    make_intake: MakeIntake, start_hub: StartHub, tmp_path: Path
) -> None:
    intake = make_intake(memory_bytes_max=500)
    writer = Writer(start_hub(), intake.channel.id)
    folder = tmp_path / "ticks" / "intake"
    for index in range(4):
        writer.stage(0, range(index * 20, index * 20 + 20), index=index)
        writer.stage(0, range(200), partition=1, index=index, attempt=9)
    assert len(list(folder.glob("*.part"))) == 2
    writer.commit(0, (0, 1, 4))
    assert recorded(tmp_path) == list(range(80))
    eventually(lambda: not list(folder.glob("*.part")))


def test_a_commit_with_more_than_one_request_can_carry_is_staged_by_itself(
    intake: Intake, writer: Writer, tmp_path: Path
) -> None:
    rows = BODY_BYTES_MAX // 16 // 3
    parts = [CarriedPart(number, 1, 1, (body(range(rows), number),)) for number in range(4)]
    writer.client.commit("query", 0, parts)
    assert recorded(tmp_path) == list(range(rows)) * 4


def test_staged_rows_are_bounded(make_intake: MakeIntake, start_hub: StartHub, tmp_path: Path) -> None:
    intake = make_intake(staged_bytes_max=2000, age_ns_max=1)
    writer = Writer(start_hub(), intake.channel.id)
    writer.stage(0, range(50))
    with pytest.raises(RefusedError, match="more are too many, the limit is 2000"):
        writer.stage(0, range(100), index=1)
    eventually(lambda: intake.statistics().staged_bytes == 0)
    writer.write(0, [1])
    assert recorded(tmp_path) == [1]


def test_the_log_is_begun_anew_when_it_is_large(make_intake: MakeIntake, start_hub: StartHub, tmp_path: Path) -> None:
    intake = make_intake(log_bytes_max=2000)
    writer = Writer(start_hub(), intake.channel.id)
    for epoch in range(20):
        writer.write(epoch, range(epoch * 20, epoch * 20 + 20))
    assert (tmp_path / "ticks" / "intake" / "log").stat().st_size < 6000
    intake.close()
    again = make_intake()
    successor = Writer(start_hub(), again.channel.id)
    successor.write(19, [99])
    successor.write(20, [400])
    assert recorded(tmp_path) == list(range(401))


def test_a_log_that_was_not_finished_is_cut_and_one_that_is_damaged_is_refused(
    start_hub: StartHub, intake: Intake, writer: Writer, tmp_path: Path
) -> None:
    for epoch in range(3):
        writer.write(epoch, [epoch])
    intake.close()
    path = tmp_path / "ticks" / "intake" / "log"
    whole = path.read_bytes()
    middle = whole.index(b"EIL1", 1) + 20
    for place in (20, middle):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(JournalError, match=r"damaged at byte|no beginning"):
            start_hub().intake("ticks", tmp_path, Tick)
    start = whole.rindex(b"EIL1")
    path.write_bytes(whole + whole[start : start + 50])
    again = start_hub().intake("ticks", tmp_path, Tick)
    assert len(path.read_bytes()) == len(whole)
    Writer(start_hub(), again.channel.id).write(3, [3])
    assert recorded(tmp_path) == [0, 1, 2, 3]


def test_a_journal_that_was_replaced_is_told(
    start_hub: StartHub, intake: Intake, writer: Writer, tmp_path: Path
) -> None:
    writer.write(0, [1])
    intake.close()
    (tmp_path / "ticks" / "intake").rename(tmp_path / "kept")
    elsewhere = tmp_path / "elsewhere"
    hub = start_hub()
    hub.intake("ticks", elsewhere, Tick).close()
    hub.close()
    log = (tmp_path / "kept" / "log").read_bytes()
    (elsewhere / "ticks" / "intake" / "log").write_bytes(log)
    with start_hub().intake("ticks", elsewhere, Tick):
        eventually(lambda: recorded(elsewhere) == [1], "what the log has and the journal has not is published")
    (tmp_path / "ticks" / "intake").mkdir()
    (tmp_path / "ticks" / "intake" / "log").write_bytes(log[: log.rindex(b"EIL1")])
    with pytest.raises(JournalError, match="has 1 rows of its intake, the intake's log is about rows 0 to 0"):
        start_hub().intake("ticks", tmp_path, Tick)


def test_a_channel_without_an_intake_is_told_with_what_to_do(start_hub: StartHub) -> None:
    channel = start_hub().create("alerts", Tick)
    client = IntakeClient(start_hub(), channel.id, timeout=0.3)
    with pytest.raises(
        ChannelNotFoundError, match=r"has no intake.*hub.intake\('alerts', folder\).*echoic intake alerts"
    ):
        client.type()
    with pytest.raises(EchoicError, match="intake"):
        client.abort("query", 0)


def test_a_hub_that_is_gone_is_told_with_the_channel_that_was_meant() -> None:
    with Hub() as hub:
        client = IntakeClient(hub, "echoic://127.0.0.1:1/alerts", timeout=0.1)
        with pytest.raises(UnreachableError, match=r"the intake of channel `echoic://.*/alerts` has not answered"):
            client.type()


def test_an_intake_opens_a_channel_that_is_there(start_hub: StartHub, tmp_path: Path) -> None:
    hub = start_hub()
    channel, heard = hub.create("ticks", Tick), Collector()
    channel.subscribe(heard)
    intake = hub.intake("ticks", tmp_path)
    Writer(hub, "ticks").write(0, [1])
    assert [tick.number for tick in heard.events] == [1]
    assert intake.channel.id == channel.id
    with pytest.raises(LocalError):
        hub.intake("ticks", tmp_path)
    intake.close()
    intake.close()
    with hub.intake("ticks", tmp_path, Tick):
        Writer(hub, "ticks").write(1, [2])
    assert recorded(tmp_path) == [1, 2]


def test_an_intake_is_found_by_name(start_hub: StartHub, tmp_path: Path) -> None:
    names = start_hub()
    intake = start_hub(names=names.address).intake("ticks", tmp_path, Tick)
    Writer(start_hub(names=names.address), "ticks").write(0, [1])
    assert recorded(tmp_path) == [1]
    assert intake.trouble == ""


def test_nonsense_is_refused_and_others_are_served(
    start_hub: StartHub, intake: Intake, writer: Writer, tmp_path: Path
) -> None:
    client = writer.client
    source = start_hub().open(intake_name(intake.channel.id), Portion).source()
    for kind, text in ((1, b"x"), (1, bytes(100)), (2, b"\xc1"), (2, b"\x91\x01"), (9, b"")):
        with pytest.raises(DeliveryError, match="refused"):
            source.submit_sync(
                Portion(query="query", epoch=0, partition=0, attempt=0, kind=kind, index=0, body=text), 30
            )
    with pytest.raises(RefusedError, match="printable"):
        client.stage(Attempt("a\nb", 0, 0, 0), 0, body([1]))
    with pytest.raises(RefusedError, match="0 or more"):
        client.stage(Attempt("query", -1, 0, 0), 0, body([1]))
    writer.write(0, [1])
    assert recorded(tmp_path) == [1]


def test_a_hub_that_is_closed_closes_its_intakes(start_hub: StartHub, tmp_path: Path) -> None:
    hub = Hub()
    intake = hub.intake("ticks", tmp_path, Tick)
    Writer(start_hub(), intake.channel.id).write(0, [1])
    hub.close()
    assert intake.closed
    assert recorded(tmp_path) == [1]


def test_rows_whose_file_could_not_be_synced_are_lost_and_have_to_be_staged_again(
    start_hub: StartHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, query = start_hub(), start_hub()

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with Intake(hub, "ticks", tmp_path, Tick, limits=IntakeLimits(memory_bytes_max=0)) as intake:
        writer = Writer(query, intake.channel.id)
        writer.stage(0, range(10))
        with monkeypatch.context() as failing:
            failing.setattr(Spool, "_sync", fail)
            with pytest.raises(RefusedError, match="cannot sync staged rows"):
                writer.commit(0)
        with pytest.raises(RefusedError, match="repeat the epoch"):
            writer.commit(0)
        writer.stage(0, range(10), attempt=2)
        writer.commit(0, (0, 2, 1))
    assert recorded(tmp_path) == list(range(10))
