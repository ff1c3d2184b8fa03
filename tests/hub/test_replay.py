"""Recordings that flow through channels of real hubs once more."""

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from echoic import ARCHITECTURES, Batch, Format, Hub, event, float64, int64
from echoic.errors import (
    ClosedError,
    FormatError,
    IncompatibleTypesError,
    JournalError,
    LocalError,
)
from echoic.recorder import Journal, Recorded
from tests.conftest import StartHub
from tests.hub.parties import Collector, Quote, Tick, Trade, WideTrade, eventually, trade
from tests.recorder.journals import BEGIN, SECOND, Scribe

TICK_SECONDS = 0.02


@event
class Stamped:
    at: int64
    number: int64


@event
class Reading:
    producer: int64
    number: int64
    value: float64 = 1.5


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Sixty ticks of two sources that take turns, in batches of five, a fiftieth of a second apart."""
    scribe = Scribe(tmp_path)
    for number in range(12):
        source = number % 2
        scribe.write(
            [Tick(source, each) for each in range(5 * number, 5 * number + 5)], 10 + source, number * TICK_SECONDS
        )
    return scribe.close()


def test_a_replay_creates_the_recorded_channel_and_everything_arrives_in_order(start_hub: StartHub, path: Path) -> None:
    hub, got = start_hub(), Collector()
    with hub.replay(path, paused=True) as replay:
        assert (replay.channel.name, replay.channel.format) == ("ticks", Format.of(Tick))
        replay.channel.subscribe(got)
        replay.resume()
        assert replay.wait(30)
        assert got.numbers == list(range(60))
        told = replay.statistics()
        assert (told.state, told.events, told.batches, told.sources, told.passes) == ("ended", 60, 12, 2, 1)
        assert (told.positions, told.bounds) == ((60,), ((0, 60),))
        assert told.time_ns == BEGIN + round(11 * TICK_SECONDS * SECOND)
    assert replay.statistics().state == "closed"


def test_no_batch_comes_before_its_time(start_hub: StartHub, path: Path) -> None:
    hub = start_hub()
    times: list[tuple[int, int]] = []
    begun = time.monotonic_ns()
    replay = hub.replay(path, rate=2.0, on_batch=lambda each: times.append((each.time_ns, time.monotonic_ns())))
    assert replay.wait(30)
    assert len(times) == 12
    for recorded, actual in times:
        assert actual - begun >= (recorded - BEGIN) / 2


@pytest.mark.parametrize("rate", [0, math.inf])
def test_at_full_speed_hours_take_no_time(start_hub: StartHub, tmp_path: Path, rate: float) -> None:
    scribe = Scribe(tmp_path)
    for number in range(100):
        scribe.write([Tick(0, number)], at=3600.0 * number)
    hub = start_hub()
    replay = hub.replay(scribe.close(), rate=rate, gap_seconds_max=math.inf)
    assert replay.wait(30)
    assert replay.statistics().events == 100
    assert replay.rate == math.inf


def test_a_clock_that_was_set_back_or_leapt_neither_stalls_nor_floods(start_hub: StartHub, tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    for number, at in enumerate([0.0, 0.01, -(10.0**8), -(10.0**8) + 0.01, 10.0**8, 10.0**8 + 0.01]):
        scribe.write([Tick(0, number)], at=at)
    hub = start_hub()
    replay = hub.replay(scribe.close(), gap_seconds_max=0.02)
    assert replay.wait(30)
    told = replay.statistics()
    assert told.events == 6
    assert (told.pace.steps_back, told.pace.leaps) == (1, 1)


def test_the_sources_of_the_recording_stay_apart(start_hub: StartHub, path: Path) -> None:
    near, far = start_hub(), start_hub()
    near.create("ticks", Tick)
    got = Collector()
    sink = far.open(f"echoic://{near.address}/ticks", Tick).subscribe(got)
    with near.replay(path, rate=0) as replay:
        assert replay.wait(30)
        replay.drain()
        assert replay.sources.keys() == {10, 11}
        assert set(replay.sources.values()) == set(sink.state().positions)
    assert got.of(0) == [each for each in range(60) if each // 5 % 2 == 0]
    assert got.of(1) == [each for each in range(60) if each // 5 % 2 == 1]
    assert got.gaps == []


def test_a_replay_of_a_replay_has_the_same_events_of_the_same_sources(
    start_hub: StartHub, path: Path, tmp_path: Path
) -> None:
    hub = start_hub()
    hub.create("again", Tick)
    again = tmp_path / "again"
    with hub.record("again", again), hub.replay(path, "again", 0) as replay:
        assert replay.wait(30)
        replay.drain()
        ids = replay.sources
    first, second = list(Journal(path).read()), list(Journal(again).read())
    assert [
        (ids[each.source], each.first + step, event.number) for each in first for step, event in enumerate(each.batch)
    ] == [(each.source, each.first + step, event.number) for each in second for step, event in enumerate(each.batch)]


def test_a_channel_recorded_into_the_journal_it_is_replayed_from_comes_to_an_end(
    start_hub: StartHub, path: Path
) -> None:
    hub = start_hub()
    hub.create("ticks", Tick)
    with hub.record("ticks", path), hub.replay(path, rate=0) as replay:
        assert replay.wait(30)
        replay.drain()
        assert replay.statistics().events == 60
    assert Journal(path).heads == (120,)


def test_a_pause_holds_and_steps_give_events_or_batches(start_hub: StartHub, path: Path) -> None:
    hub, got = start_hub(), Collector()
    hub.create("ticks", Tick).subscribe(got)
    with hub.replay(path, rate=0, paused=True) as replay:
        assert replay.state == "paused"
        replay.step(3)
        got.has(3)
        replay.step()
        got.has(5)
        replay.step()
        got.has(10)
        replay.step(7)
        got.has(17)
        assert not replay.wait(0.05)
        assert got.numbers == list(range(17))
        assert replay.statistics().positions == (17,)
        replay.resume()
        assert replay.wait(30)
    assert got.numbers == list(range(60))


def test_parts_of_a_batch_are_told_with_their_own_numbers(start_hub: StartHub, path: Path) -> None:
    told: list[Recorded] = []
    hub, got = start_hub(), Collector()
    hub.create("ticks", Tick).subscribe(got)
    with hub.replay(path, paused=True, start=6, on_batch=told.append) as replay:
        for step in (1, 2, 3):
            replay.step(step)
        got.has(6)
    assert [(each.source, int(number)) for each in told for number in each.numbers] == [
        *((11, number) for number in range(1, 5)),
        *((10, number) for number in range(5, 7)),
    ]
    assert [int(number) for each in told for number in each.sequences] == list(range(6, 12))
    assert [event.number for each in told for event in each.batch] == list(range(6, 12))
    assert got.numbers == list(range(6, 12))


def test_a_replay_can_be_paused_and_changed_while_it_waits(start_hub: StartHub, tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    for number in range(3):
        scribe.write([Tick(0, number)], at=40.0 * number)
    hub, got = start_hub(), Collector()
    hub.create("ticks", Tick).subscribe(got)
    with hub.replay(scribe.close()) as replay:
        got.has(1)
        replay.pause()
        assert replay.state == "paused"
        replay.rate = 10_000.0
        assert got.numbers == [0]
        replay.resume()
        assert replay.wait(30)
    assert got.numbers == [0, 1, 2]


def test_a_window_of_sequence_numbers_or_of_time_is_replayed(start_hub: StartHub, path: Path) -> None:
    hub, got = start_hub(), Collector()
    hub.create("ticks", Tick).subscribe(got)
    hub.replay(path, rate=0, start=7, end=23).wait(30)
    assert got.numbers == list(range(7, 23))
    got.events.clear()
    since, until = (BEGIN + round(at * TICK_SECONDS * SECOND) for at in (3, 5))
    hub.replay(path, rate=0, since=since, until=until).wait(30)
    assert got.numbers == list(range(15, 25))


def test_seeking_goes_forth_and_back_by_number_and_by_time(start_hub: StartHub, path: Path) -> None:
    hub, got = start_hub(), Collector()
    hub.create("ticks", Tick).subscribe(got)
    with hub.replay(path, rate=0, paused=True, end=55) as replay:
        replay.step(2)
        got.has(2)
        replay.seek(50)
        replay.step(1)
        got.has(3)
        replay.seek(time=BEGIN + round(2 * TICK_SECONDS * SECOND))
        replay.step(1)
        got.has(4)
        replay.seek(53)
        replay.resume()
        assert replay.wait(30)
        with pytest.raises(ClosedError, match="cannot seek: the replay has come to its end"):
            replay.seek(0)
    assert got.numbers == [0, 1, 50, 10, 53, 54]


def test_a_loop_goes_round_so_many_times(start_hub: StartHub, path: Path) -> None:
    hub, got = start_hub(), Collector()
    hub.create("ticks", Tick).subscribe(got)
    replay = hub.replay(path, rate=0, loop=3, start=50)
    assert replay.wait(30)
    assert got.numbers == list(range(50, 60)) * 3
    assert replay.statistics().passes == 3


def test_an_endless_loop_goes_on_until_it_is_closed_by_a_handler_too(start_hub: StartHub, path: Path) -> None:
    hub, seen = start_hub(), []
    replay = hub.replay(path, rate=0, loop=0, paused=True)

    def handle(tick: Tick) -> None:
        seen.append(tick.number)
        if len(seen) == 500:
            replay.close()

    replay.channel.subscribe(handle)
    replay.resume()
    assert replay.wait(30)
    assert replay.state == "closed"
    assert seen == (list(range(60)) * 10)[: len(seen)]
    assert len(seen) == 500


def test_an_empty_window_ends_even_an_endless_loop(start_hub: StartHub, path: Path) -> None:
    replay = start_hub().replay(path, rate=0, loop=0, since=BEGIN + 10**6 * SECOND)
    assert replay.wait(30)
    assert replay.statistics().events == 0


@pytest.mark.parametrize("elsewhere", [False, True])
def test_changing_types_keep_going_as_one_source(start_hub: StartHub, tmp_path: Path, elsewhere: bool) -> None:
    scribe = Scribe(tmp_path)
    numbers = iter(range(100))
    for declared in (Tick, Reading, Tick, Reading):
        for _ in range(3):
            scribe.write([declared(1, next(numbers)) for _ in range(2)])
    path = scribe.close()
    hub, got = start_hub(), Collector()
    with hub.replay(path, rate=0, paused=True) as replay:
        listening = start_hub().open(replay.channel.id, Tick) if elsewhere else hub.open("ticks", Tick)
        sink = listening.subscribe(got, on_gap=got.gaps.append)
        replay.resume()
        assert replay.wait(30)
        replay.drain()
        assert len(replay.sources) == 1
        assert len(sink.state().positions) == 1
    assert got.numbers == list(range(24))
    assert got.gaps == []


def test_changing_types_keep_going_while_they_are_recorded_once_more(start_hub: StartHub, tmp_path: Path) -> None:
    scribe = Scribe(tmp_path / "first")
    for number in range(30):
        scribe.write([(Tick, Reading)[number % 2](1, number)], source=number % 3)
    path = scribe.close()
    keeper, hub = start_hub(), start_hub()
    channel = keeper.create("ticks", Tick)
    with keeper.record("ticks", tmp_path / "second"), hub.replay(path, channel.id, rate=0) as replay:
        assert replay.wait(30)
        replay.drain()
    again = list(Journal(tmp_path / "second").read())
    assert [event.number for each in again for event in each.batch] == list(range(30))
    assert len({each.source for each in again}) == 3
    assert {each.batch.format.name for each in again} == {"Tick", "Reading"}


def test_a_channel_gets_the_latest_type_that_suits_all_or_none(start_hub: StartHub, tmp_path: Path) -> None:
    for folder, types, expected in (
        ("extended", (Tick, Reading), "Reading"),
        ("narrowed", (WideTrade, Trade), "Trade"),
        ("unlike", (Tick, Trade), None),
    ):
        scribe = Scribe(tmp_path / folder, folder)
        for source, declared in enumerate(types):
            format = Format.of(declared)
            scribe.write(Batch.of([declared(*(0 if field.kind < 4 else "" for field in format.fields))]), source)
        with start_hub().replay(scribe.close(), rate=0) as replay:
            assert replay.wait(30)
            assert replay.statistics().events == 2
            assert (replay.channel.format.name if replay.channel.format else None) == expected


def test_events_of_another_machine_are_sent_as_they_were_recorded(start_hub: StartHub, tmp_path: Path) -> None:
    foreign = Format.of(Trade).on(ARCHITECTURES["sparc32"])
    scribe = Scribe(tmp_path)
    scribe.write(Batch.of([trade(number) for number in range(10)]).to(foreign))
    path = scribe.close()
    hub, other, got, formats = start_hub(), start_hub(), Collector(), []
    with hub.replay(path, rate=0, paused=True, on_batch=lambda each: formats.append(each.batch.format)) as replay:
        other.open(replay.channel.id, Trade).subscribe(got)
        replay.resume()
        assert replay.wait(30)
        replay.drain()
    assert formats == [foreign]
    assert got.numbers == list(range(10))
    assert [each.symbol for each in got.events] == [f"S{number % 7}" for number in range(10)]


def test_handlers_can_ask_for_the_time_of_the_recording(start_hub: StartHub, path: Path) -> None:
    hub = start_hub()
    replay = hub.replay(path, rate=0, paused=True)
    assert replay.now_ns is None
    times: list[tuple[int | None, int]] = []

    def handle(tick: Tick) -> None:
        assert replay.current is not None
        times.append((replay.now_ns, replay.current.time_ns))

    replay.channel.subscribe(handle)
    replay.resume()
    assert replay.wait(30)
    expected = [BEGIN + round(number // 5 * TICK_SECONDS * SECOND) for number in range(60)]
    assert times == [(each, each) for each in expected]
    assert replay.current is None


def test_recorded_times_can_be_written_into_a_field_for_sinks_anywhere(start_hub: StartHub, tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    for number in range(5):
        scribe.write([Stamped(0, number), Stamped(0, number)], at=number)
    path = scribe.close()
    hub, got = start_hub(), Collector()
    with hub.replay(path, rate=0, paused=True, stamp="at") as replay:
        start_hub().open(replay.channel.id, Stamped).subscribe(got)
        replay.resume()
        assert replay.wait(30)
        replay.drain()
    assert [each.at for each in got.events] == [BEGIN + each.number * SECOND for each in got.events]
    with pytest.raises(FormatError, match="has no field `when`"):
        hub.replay(path, stamp="when")


def test_partitions_are_merged_by_time(start_hub: StartHub, tmp_path: Path) -> None:
    scribe = Scribe(tmp_path, partitions=3)
    for number in range(30):
        scribe.write([Tick(number % 5, number)], source=number % 5, at=number / 10)
    path = scribe.close()
    hub, got = start_hub(), Collector()
    hub.create("ticks", Tick).subscribe(got)
    replay = hub.replay(path, rate=0)
    assert replay.wait(30)
    assert got.numbers == list(range(30))
    assert sum(replay.statistics().positions) == 30
    got.events.clear()
    assert hub.replay(path, rate=0, partition=1, start=2).wait(30)
    assert got.numbers == [number for number in range(30) if number % 5 % 3 == 1][2:]
    with pytest.raises(LocalError, match="a sequence number is one of a partition, and 3 are replayed"):
        hub.replay(path, paused=True).seek(3)
    with pytest.raises(LocalError, match="a sequence number is one of a partition, and there are 3"):
        hub.replay(path, start=3)
    with pytest.raises(LocalError, match="there is no partition 3, the journal of `ticks` has 3"):
        hub.replay(path, partition=3)


def test_a_sink_that_blocks_slows_the_replay_and_loses_nothing(start_hub: StartHub, tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    array = numpy.zeros(50_000, Format.of(Tick).dtype)
    for number in range(40):
        array["number"] = numpy.arange(number * 50_000, (number + 1) * 50_000)
        scribe.write(Batch.of(array.copy(), Tick))
    path = scribe.close()
    hub, numbers, gate = start_hub(), [], threading.Event()

    def handle(batch: Batch) -> None:
        gate.wait(30)
        numbers.append(batch.array["number"].copy())

    with hub.replay(path, rate=0, paused=True) as replay:
        start_hub().open(replay.channel.id, Tick).subscribe(handle, batch=True, thread=True)
        replay.resume()
        assert not replay.wait(0.2)
        assert replay.statistics().events < 2_000_000
        gate.set()
        assert replay.wait(30)
        replay.drain(30)
    assert numpy.array_equal(numpy.concatenate(numbers), numpy.arange(2_000_000))


def test_what_goes_wrong_is_told_to_whoever_waits(start_hub: StartHub, path: Path) -> None:
    def fail(recorded: Recorded) -> None:
        raise RuntimeError("no more of this")

    with start_hub().replay(path, on_batch=fail) as replay:
        with pytest.raises(RuntimeError, match="no more of this"):
            replay.wait(30)
        assert replay.state == "failed"


def test_events_that_cannot_be_read_end_a_replay_or_are_told(start_hub: StartHub, path: Path) -> None:
    (segment,) = path.glob("ticks/0/*.segment")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    hub, got, holes = start_hub(), Collector(), []
    hub.create("ticks", Tick).subscribe(got)
    with hub.replay(path, rate=0) as replay, pytest.raises(JournalError, match=r"events .* cannot be read"):
        replay.wait(30)
    got.events.clear()
    with hub.replay(path, rate=0, on_hole=holes.append) as replay:
        assert replay.wait(30)
        assert replay.statistics().holes == len(holes) == 1
    lost = set(range(holes[0].first, holes[0].last + 1))
    assert lost
    assert got.numbers == [number for number in range(60) if number not in lost]


def test_a_hub_that_closes_ends_its_replays(path: Path) -> None:
    with Hub() as hub:
        replay = hub.replay(path, loop=0)
        eventually(lambda: replay.statistics().events > 60)
    with pytest.raises(ClosedError):
        replay.wait(30)


def test_a_channel_that_cannot_take_the_events_is_named(start_hub: StartHub, path: Path) -> None:
    hub = start_hub()
    hub.create("ticks", Quote)
    with (
        hub.replay(path) as replay,
        pytest.raises(IncompatibleTypesError, match="`Tick` cannot be received as `Quote`"),
    ):
        replay.wait(30)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": -1.0}, "expected a rate of at least 0, got -1"),
        ({"loop": -1}, "expected a loop of at least 1, or 0 for ever, got -1"),
        ({"gap_seconds_max": -1.0}, "gap_seconds_max of at least 0, got -1"),
        ({"start": 61}, "cannot start at sequence number 61, the journal has 0 to 60"),
        ({"since": "yesterday"}, "yesterday"),
    ],
)
def test_wrong_options_are_refused_at_once(
    start_hub: StartHub, path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(LocalError, match=message):
        start_hub().replay(path, **options)


@pytest.mark.parametrize(
    ("seek", "message"),
    [
        (lambda replay: replay.seek(61), "cannot seek sequence number 61, the replay has 0 to 60"),
        (lambda replay: replay.seek(), "either a sequence number or a time to seek"),
        (lambda replay: replay.seek(1, time=1), "either a sequence number or a time to seek"),
        (lambda replay: replay.seek(time="noon"), "noon"),
        (lambda replay: replay.step(-1), "a step of at least 1 event, or 0 for a batch, got -1"),
    ],
)
def test_wrong_wishes_are_refused_and_the_replay_goes_on(
    start_hub: StartHub, path: Path, seek: Callable[[object], None], message: str
) -> None:
    with start_hub().replay(path, rate=0, paused=True) as replay:
        with pytest.raises(LocalError, match=message):
            seek(replay)
        replay.resume()
        assert replay.wait(30)


def test_a_journal_that_is_not_there_is_named_and_no_channel_made(start_hub: StartHub, tmp_path: Path) -> None:
    hub = start_hub()
    with pytest.raises(JournalError, match="nowhere"):
        hub.replay(tmp_path / "nowhere")
    assert hub.channels() == []


def test_of_several_recorded_channels_one_is_named(start_hub: StartHub, tmp_path: Path) -> None:
    for name in ("ticks", "tocks"):
        scribe = Scribe(tmp_path, name)
        scribe.write([Tick(0, 1 if name == "ticks" else 2)])
        scribe.close()
    hub, got = start_hub(), Collector()
    with pytest.raises((JournalError, LocalError), match=r"ticks.*tocks"):
        hub.replay(tmp_path)
    hub.create("ticks", Tick).subscribe(got)
    assert hub.replay(tmp_path, "ticks", 0).wait(30)
    assert hub.replay(tmp_path, "ticks", 0, recorded="tocks").wait(30)
    assert got.numbers == [1, 2]


def test_many_threads_may_drive_one_replay(start_hub: StartHub, path: Path) -> None:
    hub, got = start_hub(), Collector()
    hub.create("ticks", Tick).subscribe(got)
    with hub.replay(path, rate=100.0, paused=True) as replay:

        def drive(number: int) -> None:
            for turn in range(50):
                match (turn + number) % 4:
                    case 0:
                        replay.pause()
                    case 1:
                        replay.resume()
                    case 2:
                        replay.step(1)
                    case 3:
                        replay.rate = 50.0 * (1 + turn)
                replay.statistics()

        threads = [threading.Thread(target=drive, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        replay.resume()
        assert replay.wait(30)
    assert got.numbers == list(range(60))
