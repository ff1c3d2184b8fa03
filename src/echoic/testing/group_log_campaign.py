"""The log of a group's member on a disk that fails, as a campaign of any length.

    python -m echoic.testing.group_log_campaign --seeds 0:2000

A log lives several times, made from its seed alone: entries are appended, others take their place, ballots are cast,
snapshots are taken in the middle of the log and installed beyond its end, segments are tiny. Each life ends with a loss
of power, a kill or a proper close, many of them in the middle of an operation, also of an opening; disks are full for a
while, syncs fail. The book (`LogBook`) has the state of the log after every step that was asked for:

    states     s0 ---- s1 ---- s2 ---- s3 ---- s4 ---- s5
    synced                     ^ the last sync returned here

What is found must be exactly one of the states from the synced one on. So everything synced is there, entries have no
holes, nothing is half there, and what a synced truncation has discarded does not come back. When it has been found it
is there for good: the next life begins with this state alone.

At the end of each seed bits are flipped, one at a time: the log is refused, or is exactly what it was. A failure raises
AssertionError with the seed and the last things that happened.
"""

import argparse
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import ClassVar, Final

import msgspec

from echoic.engines.embedded.log_file import LogFile
from echoic.errors import EchoicError, JournalError
from echoic.groups.writes import Append, Ballot, Entry, Image, Snapshot, Write
from echoic.testing.ledger import check
from echoic.testing.simulated_disk import SimulatedDisk

__all__ = ["LogBook", "LogCampaignReport", "LogLives", "LogState", "run_log_lives", "steps_of"]

LIVES: Final = 8
STEPS_MAX: Final = 25
OPENINGS_MAX: Final = 50
FLIPS: Final = 6
TRACE_MAX: Final = 40


class LogCampaignReport(msgspec.Struct, frozen=True):
    """What happened in the lives of one seed, or of many."""

    seeds: int = 0
    losses: int = 0
    kills: int = 0
    openings_interrupted: int = 0
    synced: int = 0
    """States that were synced."""
    undone: int = 0
    """States that were not synced, and are gone."""
    kept: int = 0
    """States that were not synced, and are there."""
    snapshots: int = 0
    torn: int = 0
    """How often an unfinished write was cut off."""
    full: int = 0
    failed_syncs: int = 0
    flips_refused: int = 0
    flips_harmless: int = 0

    def __add__(self, other: "LogCampaignReport") -> "LogCampaignReport":
        names = self.__struct_fields__
        return LogCampaignReport(**{name: getattr(self, name) + getattr(other, name) for name in names})


class LogState(msgspec.Struct, frozen=True):
    """What a log holds: the simplest form of it."""

    ballot: Ballot = Ballot(0, "")
    snapshot: Snapshot | None = None
    entries: tuple[Entry, ...] = ()

    @property
    def start(self) -> int:
        """The index of the snapshot."""
        return self.snapshot.index if self.snapshot is not None else 0

    @property
    def end(self) -> int:
        """The index of the last entry."""
        return self.start + len(self.entries)

    def term_of(self, index: int) -> int | None:
        """Return the term at an index, None if it is not known."""
        if index == self.start:
            return self.snapshot.term if self.snapshot is not None else 0
        return self.entries[index - self.start - 1].term if self.start < index <= self.end else None

    @classmethod
    def of(cls, image: Image) -> "LogState":
        """Return what an image says, without the life."""
        return cls(image.ballot, image.snapshot, image.entries)


def steps_of(state: LogState, write: Write) -> Iterator[LogState]:
    """Yield the states that a write leads to, one after the other; the last is the one it asks for."""
    match write:
        case Ballot():
            yield msgspec.structs.replace(state, ballot=write)
        case Append(first, entries):
            kept = state.entries[: first - state.start - 1]
            for count in range(min(1, len(entries)), len(entries) + 1):
                yield msgspec.structs.replace(state, entries=kept + entries[:count])
        case Snapshot(index, term):
            kept = state.entries[index - state.start :] if state.term_of(index) == term else ()
            yield LogState(state.ballot, write, kept)


class LogBook:
    """Every state that may be found."""

    def __init__(self) -> None:
        self.states = [LogState()]

    @property
    def state(self) -> LogState:
        """The state after everything that was asked for."""
        return self.states[-1]

    def write(self, write: Write) -> None:
        """Note that something is asked for."""
        self.states += steps_of(self.state, write)

    def sync(self) -> int:
        """Note that everything is synced; return how many states that settles."""
        done = len(self.states) - 1
        del self.states[:-1]
        return done

    def settle(self, found: LogState) -> tuple[int, int]:
        """Note what was found; return how many states were kept and undone.

        Raises:
            AssertionError: It is none that may be found.
        """
        place = max((place for place, state in enumerate(self.states) if state == found), default=-1)
        check(place >= 0, f"found {_short(found)}, expected one of {[_short(state) for state in self.states[-5:]]}")
        undone = len(self.states) - 1 - place
        self.states = [found]
        return place, undone


class LogLives:
    """One log, from its making on, through several lives."""

    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed)
        self.seed: Final = seed
        self.disk: Final = SimulatedDisk(Random(random.getrandbits(64)))
        self.segment_bytes_max: Final = random.choice((1, 300, 1000, 4000, 1 << 20))
        self.payload_bytes_max: Final = random.choice((0, 40, 400, 3000))
        self.book: Final = LogBook()
        self.trace: Final[deque[str]] = deque(maxlen=TRACE_MAX)
        self.report = LogCampaignReport(seeds=1)
        self.life = 0
        self.number = self.term = 0
        self.durable = self.safe = True
        self.log = self._open()

    def run(self, lives: int = LIVES, flips: int = FLIPS) -> LogCampaignReport:
        """Live so many times, flip so many bits at the end, and return what happened.

        Raises:
            AssertionError: A promise was broken.
        """
        for _ in range(lives):
            self._live()
            self.log = self._open()
        self.disk.kill()  # what is left of a halt that was to come in the last opening is forgotten
        self._open(calm=True).close()
        self._flip_bits(flips)
        counted = self.disk.statistics()
        return self.report + LogCampaignReport(full=counted.full, failed_syncs=counted.failed_syncs)

    def explain(self, problem: str) -> str:
        """Return the seed, the problem and the last things that happened."""
        return "\n  ".join([f"seed {self.seed}: {problem}", *self.trace])

    def _live(self) -> None:
        random, before = self.random, self.disk.statistics()
        if random.random() < 0.6:
            self._note("stop", after := random.randrange(30))
            self.disk.stop(after)
        if self.durable and random.random() < 0.25:
            self._note("fail sync", after := random.randrange(10), cached := random.random() < 0.5)
            self.disk.fail_sync(after, cached=cached)
        if random.random() < 0.15:
            self._note("fill", room := random.randrange(3000))
            self.disk.capacity_bytes = self.disk.used_bytes + room
        for _ in range(random.randrange(1, STEPS_MAX)):
            action = random.choices(list(self._actions), list(self._actions.values()))[0]
            try:
                action(self)
            except JournalError as error:
                self._note("error", error)
                now = self.disk.statistics()
                faults = (now.full, now.failed_syncs) != (before.full, before.failed_syncs)
                check(self.disk.stopped or faults, f"the disk is sound, but: {error}")
                self._check_refusal()
                break
        self._end()

    def _check_refusal(self) -> None:
        """Check that nothing is taken any more."""
        self.disk.capacity_bytes = 0
        attempts: list[Callable[[], None]] = [partial(self.log.write, [Ballot(1 << 40, "late")]), self.log.sync]
        for attempt in attempts:
            try:
                attempt()
            except JournalError:
                continue
            raise AssertionError("the log takes something after it has failed")

    def _append(self) -> None:
        state, random = self.book.state, self.random
        back = random.choices((0, random.randrange(1, 5), state.end), (8, 2, 0.2))[0]
        first = max(state.end + 1 - back, state.start + 1)
        entries = tuple(self._entry() for _ in range(random.choice((0, 1, 1, 1, 2, 5, 20))))
        self._write(Append(first, entries))

    def _entry(self) -> Entry:
        self.number += 1
        payload = self.number.to_bytes(4, "little") + self.random.randbytes(self.random.randint(0, 1))
        payload += bytes(self.random.randint(0, self.payload_bytes_max))  # zeros look like what was never written
        return Entry(self.term, self.random.randrange(3), self.random.choice("abc"), 1 << 63, self.number, payload)

    def _vote(self) -> None:
        self.term += self.random.randrange(2)
        self._write(Ballot(self.term, self.random.choice(("", "a", "b"))))

    def _snapshot(self) -> None:
        state, random = self.book.state, self.random
        index = random.choice((state.start, random.randint(state.start, state.end), state.end, state.end + 7))
        known = state.term_of(index)
        term = known if known is not None and random.random() < 0.9 else self.term + 1
        self.term = max(self.term, term)
        self.number += 1
        chunks = tuple(random.randbytes(random.randrange(700)) for _ in range(random.randrange(4)))
        self._write(Snapshot(index, term, str(self.number).encode(), b"summary", chunks))

    def _burst(self) -> None:
        """Write several things in one call."""
        self._write(Ballot(self.term, "b"), Append(self.book.state.end + 1, (self._entry(), self._entry())))

    def _write(self, *writes: Write) -> None:
        for write in writes:
            self._note("write", _short_write(write))
            self.book.write(write)
        self.log.write(writes)
        if isinstance(writes[-1], Snapshot):
            self.report += LogCampaignReport(snapshots=1, synced=self.book.sync())

    def _sync(self) -> None:
        self._note("sync")
        self.log.sync()
        self.report += LogCampaignReport(synced=self.book.sync())

    def _end(self) -> None:
        """End this life: with the power or the process, or properly."""
        self.disk.capacity_bytes = 0
        end = self.random.choice(("power", "power", "kill", "close"))
        if end == "close" and not self.disk.stopped:
            self._note("close")
            failed = bool(self.log.statistics().failure)
            try:
                self.log.close()
                if not failed:
                    self.book.sync()
            except JournalError as error:
                self._note("error", error)
        self._fall(power=end != "kill")

    def _fall(self, *, power: bool) -> None:
        """Let the power or the process end; without durability, only the process."""
        if power and self.safe:
            self.disk.crash()
        else:
            self.disk.kill()
        self.report += LogCampaignReport(losses=power and self.safe, kills=not (power and self.safe))
        self._note("power lost" if power and self.safe else "killed", self.disk.files())

    def _open(self, *, calm: bool = False) -> LogFile:
        """Open the log, though that may be interrupted again and again, and compare it with the book."""
        for attempt in range(OPENINGS_MAX):
            if not calm and attempt < OPENINGS_MAX // 2 and self.random.random() < 0.4:
                self._note("stop opening", after := self.random.randrange(12))
                self.disk.stop(after)
            durable = self.random.random() < 0.8
            try:
                log = LogFile.open(
                    self.disk,
                    life=self.random.getrandbits(64),
                    segment_bytes_max=self.segment_bytes_max,
                    durable=durable,
                    draw=lambda: self.random.getrandbits(64),
                )
            except JournalError as error:
                self._note("not opened", error)
                check(self.disk.stopped, f"the disk is sound, but the log is not opened: {error}")
            else:
                if not self.disk.stopped:
                    self.durable = self.safe = durable
                    self._compare(log)
                    return log
            self.report += LogCampaignReport(openings_interrupted=1)
            self._fall(power=self.random.random() < 0.5)
        raise AssertionError(f"the log was not opened {OPENINGS_MAX} times")

    def _compare(self, log: LogFile) -> None:
        image, statistics = log.image(), log.statistics()
        self._note("opened", "durable" if self.durable else "not durable", statistics)
        check(self.life in {0, image.life}, f"the life is {image.life}, it was {self.life}")
        self.life = image.life
        kept, undone = self.book.settle(LogState.of(image))
        state = self.book.state
        found = (statistics.first, statistics.end)
        check(found == (state.start + 1, state.end), f"the log says that it has {found}, expected {_short(state)}")
        self.report += LogCampaignReport(kept=kept, undone=undone, torn=statistics.torn_bytes > 0)
        names = [name for name in self.disk.files() if name != "lock"]
        snapshots = [name for name in names if name.endswith(".snapshot")]
        check(len(snapshots) == (state.snapshot is not None), f"there are the snapshots {snapshots}")
        check(not any(name.endswith(".tmp") for name in names), f"something unfinished is left: {names}")

    def _flip_bits(self, flips: int) -> None:
        """Flip some bits: the log is refused, or what it was."""
        files = [(path, size) for path, size in self.disk.files().items() if size]
        for _ in range(flips):
            path, size = self.random.choice(files)
            bit = self.random.randrange(8 * size)
            copy = self.disk.copy(self.random)
            copy.flip(path, bit)
            try:
                log = LogFile.open(copy, life=0, draw=lambda: self.random.getrandbits(64))
            except JournalError:
                self.report += LogCampaignReport(flips_refused=1)
                continue
            found = LogState.of(log.image())
            check(found == self.book.state, f"bit {bit} of {path} flipped, found {_short(found)}")
            self.report += LogCampaignReport(flips_harmless=1)

    def _note(self, *words: object) -> None:
        self.trace.append(" ".join(str(word) for word in words))

    _actions: ClassVar[dict[Callable[["LogLives"], None], float]] = {
        _append: 10,
        _sync: 6,
        _vote: 2,
        _burst: 1,
        _snapshot: 1,
    }


def _short(state: LogState) -> str:
    numbers = [entry.number for entry in state.entries]
    return f"{state.ballot}, snapshot of {state.start}, entries {numbers[:3]} to {numbers[-3:]} ({len(numbers)})"


def _short_write(write: Write) -> str:
    match write:
        case Append(first, entries):
            return f"Append from {first}, numbers {[entry.number for entry in entries]}"
        case Snapshot(index, term):
            return f"Snapshot of {index} in term {term}, {len(write.chunks)} chunks"
        case Ballot():
            return str(write)


def run_log_lives(seed: int, lives: int = LIVES, flips: int = FLIPS) -> LogCampaignReport:
    """Run the lives of one log, and return what happened.

    Raises:
        AssertionError: A promise was broken; the message has the seed and the last things that happened.
    """
    log: LogLives | None = None
    try:
        log = LogLives(seed)
        return log.run(lives, flips)
    except (AssertionError, EchoicError, OSError, LookupError, ValueError, TypeError, RuntimeError) as problem:
        text = f"{type(problem).__name__}: {problem}"
        raise AssertionError(log.explain(text) if log else f"seed {seed}: {text}") from problem


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the seeds that were asked for, and print what happened."""
    parser = argparse.ArgumentParser(
        description="Run logs on a simulated disk that loses power, tears writes, fills up and fails to sync, and "
        "check that what is found may be found; flip bits, and check that each is refused or harmless.",
        epilog="A failure is printed with its seed and the last things that happened; --seeds N:N+1 repeats it.",
    )
    parser.add_argument("--seeds", type=_seeds, default=range(1000), metavar="A:B", help="from A up to B, without B")
    report = LogCampaignReport()
    try:
        for seed in parser.parse_args(arguments).seeds:
            report += run_log_lives(seed)
    except AssertionError as error:
        sys.stdout.write(f"{error}\n")
        sys.exit(1)
    sys.stdout.write(f"{report}\n")


def _seeds(text: str) -> range:
    first, colon, end = text.partition(":")
    if not (first.isdecimal() and (end.isdecimal() or not colon)):
        raise argparse.ArgumentTypeError(f"expected A:B or one seed, got {text!r}")
    return range(int(first), int(end) if colon else int(first) + 1)


if __name__ == "__main__":
    main()
