"""Trial 16: wall clocks that leap by an hour, run backwards and are stepped.

Half of the leaps happen to a journal's writer, also while it is closed: every event is there, by its number, with the
time that the clock had, and a window of time has just what the clock put there. The other half happens to a running
system: sources, a recorder, a durable sink, an ordered group and a replay, all with the clock of the process
(`LeapingClock`). Events come once and in the order of their numbers, the group has the leader it had, and nobody was
taken for dead. (The leases of a bus's tools are tried in `tests/reliability`.)
"""

import math
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from echoic.errors import EchoicError
from echoic.hub import Group, GroupStamp, Hub, Stamp
from echoic.recorder import Disk, Journal, JournalOptions, JournalWriter, LocalShelf, verify
from echoic.testing.kill_roles import Tick, ticks, wrong_ticks
from echoic.testing.ledger import check
from echoic.testing.simulated_disk import SimulatedDisk
from echoic.testing.trials.leaping_clock import LeapingClock
from echoic.testing.trials.trial import Findings, Tell
from echoic.wire import Batch

__all__ = ["run"]

SOURCE: Final = 7
EACH: Final = 20
LEAPS_PER_JOURNAL: Final = 50
LEAPS_PER_SYSTEM: Final = 500
WINDOWS: Final = 10
PATIENCE_SECONDS: Final = 30.0
ELECTION_SECONDS: Final = 5.0
"""Long enough that no machine is so busy; the clock leaps by more."""


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Let clocks leap so many times."""
    began = time.monotonic()
    written, done = size // 2, 0
    try:
        while done < written:
            leaps = min(LEAPS_PER_JOURNAL, written - done)
            write_through(seed + done, leaps)
            done += leaps
            tell(done)
        while done < size:
            leaps = min(LEAPS_PER_SYSTEM, size - done)
            with tempfile.TemporaryDirectory(prefix="echoic-clocks-") as folder:
                live_through(seed + done, leaps, Path(folder), tell, done)
            done += leaps
    except (AssertionError, EchoicError) as problem:
        return Findings((f"after {done} of {size} leaps, seed {seed}: {problem}",))
    figures = {"leaps_of_a_writer": written, "leaps_of_a_system": size - written}
    return Findings((), {**figures, "seconds": round(time.monotonic() - began, 1)})


def write_through(seed: int, leaps: int) -> None:
    """Write a journal by a clock that leaps, and read it by number and by time.

    Raises:
        AssertionError: An event is not there, or not in its place, or in a window of time that is not its own.
    """
    chance = random.Random(seed)
    clock, disk, times = LeapingClock(chance), SimulatedDisk(random.Random(seed)), list[int]()
    options = JournalOptions(segment_bytes_max=chance.choice((2000, 8000, 40_000)))
    while len(times) < leaps:
        clock.leap()
        writer = JournalWriter.open(disk, "ticks", options, id=bytes(16), now_ns=clock.now_ns())
        for _ in range(min(chance.randint(1, 10), leaps - len(times))):
            clock.leap()
            first = len(times) * EACH
            times.append(clock.now_ns())
            writer.append(Batch.of(ticks(0, first, EACH), Tick), SOURCE, first, times[-1])
            writer.commit(times[-1])
        writer.close(clock.now_ns())
    journal = Journal(LocalShelf(disk, "ticks"))
    found = [(one.first, one.time_ns) for one in journal.read()]
    check(found == [(place * EACH, now_ns) for place, now_ns in enumerate(times)], f"the journal has {found}")
    for _ in range(WINDOWS):
        since, until = sorted(chance.choices(times, k=2))
        places = [one.first // EACH for one in journal.read(since=since, until=until)]
        expected = [place for place, now_ns in enumerate(times) if since <= now_ns < until]
        check(places == expected, f"from {since} to {until} there are {places}, expected {expected}")
    check(not verify(disk, "ticks"), f"verify finds {verify(disk, 'ticks')}")


def live_through(seed: int, leaps: int, folder: Path, tell: Tell, before: int = 0) -> None:
    """Let the clock leap under a running system, which tells of its leaps behind those before.

    Raises:
        AssertionError: Something was lost, doubled or in disorder, or somebody was taken for dead.
        EchoicError: Something did not work any more.
    """
    chance = random.Random(seed)
    with LeapingClock(chance) as clock, ExitStack() as stack:
        system = System(folder, stack)
        for number in range(leaps):
            clock.leap()
            system.step(chance.randint(1, EACH))
            tell(before + number + 1)
        system.finish()


class System:
    """Sources, a recorder, a durable sink, and a group of three, in one process."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        market, keeper, reader = (stack.enter_context(Hub()) for _ in range(3))
        self._folder: Final = folder
        self._channel: Final = market.create("ticks", Tick)
        self._recording: Final = keeper.record(self._channel.id, folder, segment_bytes_max=20_000)
        self._source: Final = self._channel.source(name="feed")
        self._seen = self._ordered = 0
        self._problems: Final[list[str]] = []
        opened = reader.open(self._channel.id, Tick)
        self._sink: Final = stack.enter_context(opened.resume(self._take, name="billing", batch=True))
        self._groups: Final = join_three(stack)
        self._groups[-1].subscribe(self._order, batch=True)
        self._standing: Final = [standing_of(group) for group in self._groups]

    def step(self, count: int) -> None:
        """Submit events to the channel and to the group, and see that they arrive."""
        first = self._source.position
        self._source.submit_batch(ticks(0, first, count))
        self._source.drain(PATIENCE_SECONDS)
        self._groups[0].submit_batch(ticks(1, first, count))
        self._groups[0].drain(PATIENCE_SECONDS)
        for group, before in zip(self._groups, self._standing, strict=True):
            check(standing_of(group) == before, f"the group stands at {standing_of(group)}, it stood at {before}")
        check(not self._problems, "; ".join(self._problems))

    def finish(self) -> None:
        """See that all has come to everybody, in the order of its numbers."""
        total = self._source.position
        wait_until(lambda: self._seen == total, lambda: f"the durable sink has {self._seen} of {total} events")
        wait_until(lambda: self._ordered == total, lambda: f"a member has {self._ordered} of {total} events")
        check(not self._problems and not self._sink.trouble, f"{self._problems} {self._sink.trouble}")
        self._sink.close()
        self._recording.close()
        numbers = [int(number) for one in Journal(self._folder, "ticks").read() for number in one.batch.array["number"]]
        check(numbers == list(range(total)), f"the journal has {len(numbers)} of {total} events, or others")
        check(not verify(Disk(self._folder), "ticks"), "verify finds flaws")
        self._replay(total)

    def _replay(self, total: int) -> None:
        replayed: list[int] = []
        with Hub() as hub, hub.replay(self._folder, rate=math.inf, paused=True) as replay:
            replay.channel.subscribe(lambda batch: replayed.extend(batch.array["number"].tolist()), batch=True)
            replay.resume()
            check(replay.wait(PATIENCE_SECONDS), "the replay does not end")
            wait_until(lambda: len(replayed) >= total, lambda: f"{len(replayed)} of {total} events were replayed")
        check(replayed == list(range(total)), "a replay is in the order of times, and not of numbers")

    def _take(self, batch: Batch, _stamp: Stamp) -> None:
        self._note("the durable sink", wrong_ticks(batch, self._seen))
        self._seen += batch.count

    def _order(self, batch: Batch, _stamp: GroupStamp) -> None:
        self._note("a member", wrong_ticks(batch, self._ordered))
        self._ordered += batch.count

    def _note(self, who: str, problem: str) -> None:
        if problem:
            self._problems.append(f"{who}: {problem}")


def join_three(stack: ExitStack) -> list[Group]:
    """Return the members of a group that are there and agree."""
    hubs = [stack.enter_context(Hub()) for _ in range(3)]
    peers = {f"n{place}": hub.address for place, hub in enumerate(hubs)}
    groups = [
        hub.join("ledger", Tick, me=me, peers=peers, election_timeout=ELECTION_SECONDS)
        for me, hub in zip(peers, hubs, strict=True)
    ]
    for group in groups:
        stack.enter_context(group)
        group.wait_for(lambda view: len(view.members) == len(groups), timeout=PATIENCE_SECONDS)
    return groups


def standing_of(group: Group) -> tuple[object, object, object]:
    """Return what a lease that is lost would change."""
    told = group.statistics()
    return told.view, told.engine.get("term"), told.engine.get("leader")


def wait_until(condition: Callable[[], bool], problem: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        check(time.monotonic() < deadline, problem())
        time.sleep(0.01)
