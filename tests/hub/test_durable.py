"""Durable sinks: they go on where they stopped, each event once, whoever stops, fails or is away meanwhile."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic import Hub, event, int64
from echoic.errors import IncompatibleTypesError, JournalError, LocalError
from echoic.hub import Channel, SourceState, Stamp
from echoic.recorder import Hole, Missing, Retention
from tests.hub.parties import Tick, eventually
from tests.hub.recorded import Ledger, Recorded, submit

if TYPE_CHECKING:
    from echoic.wire import Batch


@event
class Number:
    """What is left of a tick."""

    number: int64


@event
class Named:
    """What no tick is."""

    name: str


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    recorded = Recorded(tmp_path)
    yield recorded
    recorded.close()


@pytest.fixture(params=["in another hub", "in the recorder's hub"])
def reader(request: pytest.FixtureRequest, recorded: Recorded) -> Iterator[Hub]:
    """Where the sink is."""
    if request.param == "in another hub":
        with Hub() as hub:
            yield hub
    else:
        yield recorded.recorder


def test_a_sink_gets_what_was_recorded_and_then_what_follows(recorded: Recorded, reader: Hub) -> None:
    submit(recorded.source, range(1000))
    ledger = Ledger()
    with recorded.open(reader).resume(ledger) as sink:
        ledger.has(1000)
        submit(recorded.source, range(1000, 1500))
        ledger.has(1500)
        assert ledger.numbers == list(range(1500))
        assert sink.trouble == ""
        assert sink.statistics().behind == 0


def test_a_stamp_tells_where_an_event_stands_and_where_to_go_on(recorded: Recorded, reader: Hub) -> None:
    submit(recorded.source, range(50))
    ledger = Ledger()
    with recorded.open(reader).resume(ledger, positions=(40,)):
        ledger.has(10)
    assert [stamp.sequence for stamp in ledger.stamps] == list(range(40, 50))
    assert [stamp.number for stamp in ledger.stamps] == list(range(40, 50))
    assert [stamp.positions for stamp in ledger.stamps] == [(number + 1,) for number in range(40, 50)]
    assert {(stamp.partition, stamp.source) for stamp in ledger.stamps} == {(0, recorded.source.id)}
    assert all(stamp.time_ns > 0 for stamp in ledger.stamps)


def test_a_named_sink_goes_on_with_the_very_next_event_after_it_was_closed(recorded: Recorded, reader: Hub) -> None:
    channel = recorded.open(reader)
    ledger = Ledger()
    for start in range(0, 500, 100):
        submit(recorded.source, range(start, start + 100))
        with channel.resume(ledger, name="billing") as sink:
            ledger.has(start + 100)
        assert sink.closed
        assert sink.statistics().kept == (start + 100,)
    assert ledger.numbers == list(range(500))


def test_names_are_independent(recorded: Recorded, reader: Hub) -> None:
    submit(recorded.source, range(10))
    one, other = Ledger(), Ledger()
    with recorded.open(reader).resume(one, name="one"), recorded.open(reader).resume(other, name="other/../x"):
        one.has(10)
        other.has(10)


def test_positions_count_more_than_what_the_journal_has_kept(recorded: Recorded, reader: Hub) -> None:
    submit(recorded.source, range(10))
    with recorded.open(reader).resume(ledger := Ledger(), name="billing"):
        ledger.has(10)
    with recorded.open(reader).resume(ledger := Ledger(), name="billing", positions=(5,)):
        ledger.has(5)


def test_the_position_is_kept_while_the_sink_runs(recorded: Recorded, reader: Hub) -> None:
    submit(recorded.source, range(10))
    with recorded.open(reader).resume(Ledger(), name="billing") as sink:
        eventually(lambda: sink.statistics().kept == (10,))


def test_batches_come_as_they_were_recorded(recorded: Recorded, reader: Hub) -> None:
    submit(recorded.source, range(100))
    submit(recorded.source, range(100, 150))
    got: list[tuple[Batch, Stamp]] = []
    with recorded.open(reader).resume(lambda batch, stamp: got.append((batch, stamp)), batch=True, positions=(30,)):
        eventually(lambda: sum(batch.count for batch, _ in got) == 120)
    assert [number for batch, _ in got for number in batch.array["number"].tolist()] == list(range(30, 150))
    assert (got[0][1].sequence, got[0][1].number) == (30, 30)
    assert got[-1][1].positions == (150,)


def test_events_are_received_as_the_type_that_was_declared(recorded: Recorded, reader: Hub) -> None:
    submit(recorded.source, range(3))
    got: list[object] = []
    with recorded.open(reader).resume(lambda number, _: got.append(number), declared=Number):
        eventually(lambda: len(got) == 3)
    assert got == [Number(0), Number(1), Number(2)]
    with pytest.raises(IncompatibleTypesError):
        recorded.open(reader).resume(lambda *_: None, declared=Named)


def test_a_handler_that_raises_stops_the_sink_at_that_event(recorded: Recorded, reader: Hub) -> None:
    submit(recorded.source, range(100))
    ledger = Ledger(poison=[42])
    sink = recorded.open(reader).resume(ledger, name="billing")
    assert sink.wait(30)
    assert "event 42 of partition 0" in sink.trouble
    assert "ValueError: 42 is not wanted" in sink.trouble
    assert isinstance(sink.error, ValueError)
    assert sink.positions == sink.statistics().kept == (42,)
    ledger.poison.clear()
    with recorded.open(reader).resume(ledger, name="billing"):
        ledger.has(100)
    assert ledger.numbers == list(range(100))


def test_a_handler_may_close_its_own_sink(recorded: Recorded, reader: Hub) -> None:
    submit(recorded.source, range(10))
    got: list[int] = []
    known = threading.Event()

    def handle(tick: Tick, _: Stamp) -> None:
        known.wait()
        got.append(tick.number)
        sink.close()

    sink = recorded.open(reader).resume(handle, name="billing")
    known.set()
    assert sink.wait(30)
    assert got == [0]
    assert sink.statistics().kept == (1,)


def test_sinks_of_a_hub_that_is_closed_are_closed_with_it(recorded: Recorded) -> None:
    submit(recorded.source, range(10))
    ledger = Ledger()
    with Hub() as hub:
        sink = recorded.open(hub).resume(ledger, name="billing")
        ledger.has(10)
    assert sink.closed
    assert sink.statistics().kept == (10,)


def test_a_recorder_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    with Hub() as manager, Hub() as hub, Hub() as recorder:
        channel = manager.create("ticks", Tick)
        ledger = Ledger()
        with hub.open(channel.id, Tick).resume(ledger, name="billing") as sink:
            assert "no recorder of `ticks` is there" in sink.trouble
            with recorder.record(channel.id, tmp_path), channel.source() as source:
                submit(source, range(5))
                ledger.has(5)
                assert sink.trouble == ""


def test_a_sink_goes_on_with_a_recorder_that_was_restarted_elsewhere(recorded: Recorded) -> None:
    ledger = Ledger()
    with Hub() as hub, recorded.open(hub).resume(ledger, name="billing") as sink:
        for start in range(0, 400, 100):
            submit(recorded.source, range(start, start + 100))
            ledger.has(start + 100)
            recorded.stop()
            eventually(lambda: sink.trouble)
            recorded.start()
            eventually(lambda: not sink.trouble)
        submit(recorded.source, range(400, 500))
        ledger.has(500)
    assert ledger.numbers == list(range(500))
    assert sink.statistics().kept == (500,)


def test_another_journal_is_not_taken_for_the_one_that_was_read(recorded: Recorded, tmp_path: Path) -> None:
    submit(recorded.source, range(10))
    ledger = Ledger()
    with Hub() as hub, Hub() as other, recorded.open(hub).resume(ledger) as sink:
        ledger.has(10)
        journal = recorded.recording.journal
        recorded.recording.close()
        with other.record(recorded.channel.id, tmp_path / "other"):
            submit(recorded.source, range(10, 20))
            eventually(lambda: f"is not recorded in journal {journal}" in sink.trouble)
        recorded.recorder.close()
        recorded.start()
        submit(recorded.source, range(20, 30))
        ledger.has(20)
    assert ledger.numbers == [*range(10), *range(20, 30)]


def test_of_several_journals_one_must_be_named(recorded: Recorded, tmp_path: Path) -> None:
    with Hub() as other, Hub() as hub, other.record(recorded.channel.id, tmp_path / "other") as second:
        submit(recorded.source, range(10))
        channel = recorded.open(hub)
        with pytest.raises(JournalError, match="recorded in several journals, name one of them"):
            channel.resume(Ledger())
        for journal in (second.journal, recorded.recording.journal):
            with channel.resume(ledger := Ledger(), journal=journal):
                ledger.has(10)


def test_positions_that_cannot_be_are_refused_at_once(recorded: Recorded, reader: Hub) -> None:
    submit(recorded.source, range(10))
    channel = recorded.open(reader)
    for positions in ((1, 2), (), (-1,)):
        with pytest.raises(LocalError, match="position"):
            channel.resume(Ledger(), positions=positions)
    with pytest.raises(JournalError, match="is 11, but journal"):
        channel.resume(Ledger(), positions=(11,))
    with pytest.raises(LocalError, match="name of a durable sink"):
        channel.resume(Ledger(), name="x" * 500)


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Recorded]:
    """A recorder that keeps hardly anything."""
    recorded = Recorded(tmp_path, segment_bytes_max=20_000, retention=Retention(bytes_max=60_000))
    yield recorded
    recorded.close()


def test_a_sink_that_comes_too_late_is_told_and_goes_on_with_what_is_there(forgetful: Recorded) -> None:
    with Hub() as hub:
        for start in range(0, 30_000, 500):
            submit(forgetful.source, range(start, start + 500))
        first = forgetful.recording.writer.firsts[0]
        assert first > 0
        ledger = Ledger()
        with forgetful.open(hub).resume(ledger, positions=(100,), on_gap=ledger.gaps.append) as sink:
            ledger.has(30_000 - first)
            assert sink.statistics().missed == first - 100
        assert ledger.numbers == list(range(first, 30_000))
        (hole,) = ledger.gaps
        assert isinstance(hole, Hole)
        assert (hole.partition, hole.first, hole.last) == (0, 100, first - 1)
        with forgetful.open(hub).resume(ledger := Ledger()):
            ledger.has(30_000 - first)


def test_a_sink_that_comes_too_late_and_does_not_want_to_be_told_ends(forgetful: Recorded) -> None:
    with Hub() as hub:
        for start in range(0, 30_000, 500):
            submit(forgetful.source, range(start, start + 500))
        sink = forgetful.open(hub).resume(Ledger(), positions=(100,))
        assert sink.wait(30)
        assert "events 100 to" in sink.trouble
        assert isinstance(sink.error, JournalError)
        assert sink.positions == (100,)


def test_events_that_never_reached_the_journal_are_told_and_do_not_end_the_sink(
    recorded: Recorded, reader: Hub
) -> None:
    for start, numbers in ((0, range(3)), (10, range(10, 15))):
        with recorded.channel.source(resume=SourceState(recorded.channel.id, 5, start)) as source:
            submit(source, numbers)
    ledger = Ledger()
    with recorded.open(reader).resume(ledger, on_gap=ledger.gaps.append) as sink:
        ledger.has(8)
    (missing,) = ledger.gaps
    assert isinstance(missing, Missing)
    assert (missing.source, missing.first, missing.last) == (5, 3, 9)
    assert [stamp.number for stamp in ledger.stamps] == [*range(3), *range(10, 15)]
    with recorded.open(reader).resume(ledger := Ledger()) as sink:
        ledger.has(8)
        assert sink.statistics().missed == 7


def test_events_of_every_partition_come_in_the_order_of_their_source(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, partitions=4)
    got: dict[int, list[int]] = {}
    ledger = Ledger()

    def handle(tick: Tick, stamp: Stamp) -> None:
        got.setdefault(stamp.source, []).append(tick.number)
        assert stamp.partition == stamp.source % 4
        ledger(tick, stamp)

    with Hub() as hub:
        sources = [recorded.channel.source() for _ in range(12)]
        for _ in range(3):
            with recorded.open(hub).resume(handle, name="billing"):
                for source in sources:
                    done = len(got.get(source.id, ()))
                    submit(source, range(done, done + 50))
                eventually(lambda: sum(map(len, got.values())) == sum(recorded.recording.heads))
    assert got == {source.id: list(range(150)) for source in sources}
    assert ledger.stamps[-1].positions == recorded.recording.heads
    recorded.close()


class Program:
    """Handles so many events and then stops: by closing its sink, or by failing at the next event."""

    def __init__(self) -> None:
        self.got: list[tuple[int, int]] = []
        self.positions: tuple[int, ...] | None = None

    def run(self, channel: Channel, name: str, count: int, end: str, total: int) -> None:
        """Go on where it has stopped, until it stops again or all there is was handled."""
        stop, started = len(self.got) + count, threading.Event()

        def handle(tick: Tick, stamp: Stamp) -> None:
            started.wait()
            if len(self.got) >= stop:
                if end == "fail":
                    raise ValueError("enough")
                sink.close()  # this event is handled, and no further one
            self.got.append((stamp.source, tick.number))
            self.positions = stamp.positions

        sink = channel.resume(handle, name=name, positions=None if name else self.positions)
        started.set()
        eventually(lambda: sink.closed or len(self.got) == total)
        sink.close()


@settings(max_examples=8)
@given(
    steps=st.lists(
        st.tuples(st.integers(1, 60), st.integers(1, 80), st.sampled_from(["close", "fail", "restart"])),
        min_size=1,
        max_size=5,
    ),
    partitions=st.integers(1, 3),
    name=st.sampled_from(["", "billing"]),
)
def test_any_number_of_stops_and_resumes_gives_each_event_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, str]], partitions: int, name: str
) -> None:
    recorded = Recorded(tmp_path_factory.mktemp("journal"), partitions=partitions)
    sources = [recorded.channel.source() for _ in range(3)]
    program, sent = Program(), 0
    with Hub() as hub:
        channel = recorded.open(hub)
        for count, taken, end in [*steps, (1, 1 << 30, "close")]:
            for source in sources:
                submit(source, range(sent, sent + count))
            sent += count
            program.run(channel, name, taken, end, 3 * sent)
            if end == "restart":
                recorded.stop()
                recorded.start()
    recorded.close()
    assert len(program.got) == len(set(program.got)) == 3 * sent
    for source in sources:
        assert [number for id, number in program.got if id == source.id] == list(range(sent))


PROGRAM = """
import os, sys
from echoic import Hub
from tests.hub.parties import Tick

channel, file = sys.argv[1:]
lines = open(file).read().split() if os.path.exists(file) else []
data = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def handle(tick, stamp):
    os.write(data, f"{tick.number}:{stamp.positions[0]} ".encode())

with Hub() as hub:
    start = (int(lines[-1].split(":")[1]),) if lines else None
    hub.open(channel, Tick).resume(handle, positions=start).wait()
"""


def test_a_program_that_is_killed_goes_on_exactly_where_its_own_data_end(recorded: Recorded, tmp_path: Path) -> None:
    file = tmp_path / "data"
    sent = 0
    for _ in range(4):
        command = [sys.executable, "-c", PROGRAM, recorded.channel.id, str(file)]
        with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(Path.cwd())}) as process:
            for _ in range(5):
                submit(recorded.source, range(sent, sent + 300))
                sent += 300
            eventually(lambda: file.exists() and file.stat().st_size)
            process.send_signal(signal.SIGKILL)
    with recorded.open(recorded.manager).resume(ledger := Ledger(), positions=(len(file.read_text().split()),)):
        ledger.has(sent - len(file.read_text().split()))
    numbers = [int(line.split(":")[0]) for line in file.read_text().split()]
    assert numbers + ledger.numbers == list(range(sent))
