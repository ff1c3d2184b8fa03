"""The processes of a campaign of kills: what each of them is, and what it writes down so that a kill cannot erase it.

    names       the name server, by which everybody finds the channel
    manager     manages the channel, and tells the name server so
    recorder    records it
    source      submits events that are a function of its index and their number, from wherever the journal has it
    sink        goes on where it stopped: its position and what it has seen are one row of a database of its own

With a charter each has the certificate of its role, and just the rights that it needs.

All of them share a *scoreboard*, a file of numbers that is mapped into memory: what a process has written there stays
when it is killed a moment later, and nobody has to read pipes. What must not be is written into a file named after the
process, and read at the end.
"""

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
import numpy as np

from echoic.errors import EchoicError
from echoic.formats import event, int64, uint32
from echoic.hub import Channel, Hub, Source, Stamp
from echoic.testing.charter import PLAIN, Charter, Grants, Party
from echoic.wire import Batch

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CHANNEL",
    "GRANTS",
    "Memory",
    "Scoreboard",
    "Setting",
    "Tick",
    "consume",
    "manage",
    "publish",
    "record",
    "serve_names",
    "ticks",
    "wrong_ticks",
]

T = TypeVar("T")

CHANNEL: Final = "ticks"
GRANTS: Final[Grants] = {
    "names": (),
    "manager": (f"admin {CHANNEL}",),
    "recorder": (f"subscribe {CHANNEL}",),
    "source": (f"publish {CHANNEL}",),
    "sink": (f"subscribe {CHANNEL}",),
}
MULTIPLIER: Final = np.uint64(6364136223846793005)
INCREMENT: Final = np.uint64(1442695040888963407)
RETRY_SECONDS: Final = 0.02
BEAT_SECONDS: Final = 0.01
STOP_SECONDS: Final = 0.5
DRAIN_SECONDS: Final = 30.0
DRAIN_EVERY: Final = 32
PATIENCE_SECONDS: Final = 60.0


@event
class Tick:
    """An event of the campaign, which can be made again from its first and its last field."""

    producer: uint32
    check: uint32
    number: int64


class Setting(msgspec.Struct, frozen=True):
    """What all processes of a campaign know."""

    folder: str
    events_each: int
    """How many events each source submits."""
    sources: int
    sinks: int
    names: str = ""
    """Where the name server is, whenever it is there."""
    manager: str = ""
    """Where the manager is, likewise."""
    batch_max: int = 4096
    segment_bytes_max: int = 4 * 1024 * 1024
    partitions: int = 2
    charter: str = ""
    """The folder of the charter by which all go; without one, all are plain."""

    def party(self, role: str) -> Party:
        """Return what a hub of a role is started with."""
        return Charter(Path(self.charter)).party(role) if self.charter else PLAIN

    @property
    def journal(self) -> Path:
        """Where the journal is."""
        return Path(self.folder) / "journal"

    def database(self, sink: int) -> Path:
        """Where a sink keeps what it has seen."""
        return Path(self.folder) / f"sink-{sink}.sqlite"


class Scoreboard:
    """Numbers that all processes see, and that no kill erases."""

    def __init__(self, setting: Setting) -> None:
        path, slots = Path(setting.folder) / "scoreboard", 3 * setting.sources + setting.sinks
        if not path.exists():
            path.write_bytes(bytes(8 * slots))
        numbers = np.memmap(path, np.int64, "r+", shape=(slots,))
        self.submitted: Final = numbers[: setting.sources]
        self.acknowledged: Final = numbers[setting.sources : 2 * setting.sources]
        """How far each source knows its events to be on the disk."""
        self.allowed: Final = numbers[2 * setting.sources : 3 * setting.sources]
        """How far each source may go for the moment."""
        self.seen: Final = numbers[3 * setting.sources :]


def ticks(producer: int, first: int, count: int) -> "NDArray[np.void]":
    """Return the events of a source from a number on."""
    made = np.zeros(count, np.dtype([("producer", "<u4"), ("check", "<u4"), ("number", "<i8")]))
    made["producer"] = producer
    made["number"] = numbers = np.arange(first, first + count)
    made["check"] = _check(np.uint64(producer), numbers.astype(np.uint64))
    return made


def wrong_ticks(batch: Batch, first: int) -> str:
    """Return what is wrong with events of one source, of which the first has a number, "" for nothing."""
    found = batch.array
    if not len(found):
        return ""
    expected = ticks(int(found["producer"][0]), first, len(found))
    for name in ("producer", "number", "check"):
        differing = np.flatnonzero(found[name] != expected[name])
        if len(differing):
            place = int(differing[0])
            return f"event {first + place} has {name} {found[name][place]}, expected {expected[name][place]}"
    return ""


def _check(producer: np.uint64, numbers: "NDArray[np.uint64]") -> "NDArray[np.uint64]":
    with np.errstate(over="ignore"):
        return (numbers * MULTIPLIER + (producer + np.uint64(1)) * INCREMENT) >> np.uint64(32)


def complain(setting: Setting, problem: str) -> None:
    """Write down what must not be."""
    with (Path(setting.folder) / f"problem-{os.getpid()}").open("a", encoding="utf-8") as file:
        file.write(problem + "\n")


def serve_names(setting: Setting) -> None:
    """Know by name what hubs manage, until told to stop."""
    stopped = _stop_signal()
    with Hub(setting.names, **setting.party("names")):
        _wait(stopped)


def manage(setting: Setting) -> None:
    """Manage the channel until told to stop."""
    stopped = _stop_signal()
    with Hub(setting.manager, names=setting.names, **setting.party("manager")) as hub:
        _retried(lambda: hub.create(CHANNEL, Tick))
        _wait(stopped)


def record(setting: Setting, listen: str) -> None:
    """Record the channel until told to stop."""
    stopped = _stop_signal()
    with Hub(listen, names=setting.names, **setting.party("recorder")) as hub:
        opened = _channel(hub)
        recording = _retried(
            lambda: hub.record(
                opened, setting.journal, partitions=setting.partitions, segment_bytes_max=setting.segment_bytes_max
            )
        )
        _wait(stopped)
        recording.close()


def publish(setting: Setting, index: int, seed: int) -> None:
    """Submit the events of a source that its journal does not have yet, and end when all are on the disk."""
    board, chance = Scoreboard(setting), np.random.default_rng(seed)
    with Hub(names=setting.names, **setting.party("source")) as hub:
        opened = _channel(hub)
        source = _retried(lambda: opened.source(name=f"feed-{index}"))
        position = source.position
        if position < board.acknowledged[index]:
            complain(setting, f"source {index}: {board.acknowledged[index]} were acknowledged, {position} are recorded")
        batches = 0
        while position < setting.events_each:
            room = min(int(board.allowed[index]), setting.events_each) - position
            if room <= 0:
                time.sleep(BEAT_SECONDS / 10)
                continue
            count = min(room, int(chance.integers(1, setting.batch_max)))
            source.submit_batch(ticks(index, position, count))
            position += count
            board.submitted[index] = position
            batches += 1
            if batches % DRAIN_EVERY == 0 and chance.random() < 0.5:
                _drain(source, board, index, position)
        _drain(source, board, index, position)


def _drain(source: Source, board: Scoreboard, index: int, position: int) -> None:
    """Wait until all events so far are on the disk, however often the recorder is killed meanwhile."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            source.drain(DRAIN_SECONDS)
        except EchoicError:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            board.acknowledged[index] = position
            return


def consume(setting: Setting, index: int) -> None:
    """Go on as a durable sink where the one before has stopped, until told to stop."""
    board, stopped = Scoreboard(setting), _stop_signal()
    memory = Memory(setting.database(index))
    with Hub(names=setting.names, **setting.party("sink")) as hub:
        opened = _channel(hub)

        def handle(batch: Batch, stamp: Stamp) -> None:
            problem = memory.note(batch, stamp)
            if problem:
                complain(setting, f"sink {index}: {problem}")
            board.seen[index] = memory.events

        sink = _retried(
            lambda: opened.resume(handle, positions=memory.positions or (0,) * setting.partitions, batch=True)
        )
        while not stopped.wait(BEAT_SECONDS) and not sink.closed:
            pass
        if sink.error is not None:
            raise sink.error
        sink.close()


class Memory:
    """What a sink has seen and where it goes on, which change together or not at all."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=OFF")  # a kill is survived, and a loss of power not tried here
        self._database.execute("CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value BLOB)")
        row = self._database.execute("SELECT value FROM state WHERE name = 'state'").fetchone()
        self._state = msgspec.json.decode(row[0], type=Seen) if row else Seen((), {}, 0, 0)

    @property
    def positions(self) -> tuple[int, ...]:
        """Where it goes on in each partition; nothing at the beginning."""
        return self._state.positions

    @property
    def events(self) -> int:
        """How many events it has seen."""
        return self._state.events

    @property
    def seen(self) -> "Seen":
        """All that it knows."""
        return self._state

    def note(self, batch: Batch, stamp: Stamp) -> str:
        """Take note of events of one source; return what is wrong with them."""
        found, state = batch.array, self._state
        producer = int(found["producer"][0])
        expected = state.numbers.get(producer, 0)
        problem = wrong_ticks(batch, expected)
        total = (state.checksum + int(found["check"].sum(dtype=np.uint64))) % 2**53
        numbers = {**state.numbers, producer: int(found["number"][-1]) + 1}
        state = Seen(stamp.positions, numbers, state.events + batch.count, total)
        self._database.execute("INSERT OR REPLACE INTO state VALUES ('state', ?)", (msgspec.json.encode(state),))
        self._state = state
        return problem


class Seen(msgspec.Struct, frozen=True):
    """What a sink has seen."""

    positions: tuple[int, ...]
    numbers: dict[int, int]
    """For each source the number of its next event."""
    events: int
    checksum: int


def _channel(hub: Hub) -> Channel:
    return _retried(lambda: hub.open(CHANNEL, Tick))


def _retried(act: Callable[[], T]) -> T:
    """Do something that others who are being killed may hinder, again and again."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return act()
        except EchoicError:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)


def _wait(stopped: threading.Event) -> None:
    """Wait until told to stop, and look now and then: a signal that another thread takes wakes nobody who waits."""
    while not stopped.wait(STOP_SECONDS):
        pass


def _stop_signal() -> threading.Event:
    """Return what is set when the process is told to stop."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    return stopped
