"""The log of an intake on a disk that fails, as a campaign of any length.

A log lives several times, made from its seed alone: rows are staged, few of them in memory and many in files, epochs
are committed, published and forgotten, attempts are dropped, the log is begun anew. Each life ends with a loss of
power, a kill or a proper close, many of them in the middle of an operation, also of an opening; disks are full for a
while, syncs fail, and a writer who was refused commits the same rows again. Then the log is opened and compared:

    every epoch that was acknowledged is known, and those which are yet to be published have all their rows
    an epoch that was not acknowledged is there with all its rows, if it was the last thing asked for, or not at all
    the numbers of the rows are those after the epoch before, and files are there that an epoch names, and no others

A failure raises AssertionError with the seed and the last things that happened.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import ClassVar, Final

import msgspec

from echoic.errors import EchoicError, JournalError
from echoic.hub.intake_book import Attempt
from echoic.hub.intake_log import Entry, IntakeLog, LoggedPart
from echoic.hub.intake_spool import Spool
from echoic.testing.ledger import check
from echoic.testing.simulated_disk import SimulatedDisk

__all__ = ["IntakeCampaignReport", "IntakeLives", "run_intake_lives"]

FOLDER: Final = "ticks/intake"
QUERY: Final = "query"
LIVES: Final = 8
STEPS_MAX: Final = 20
OPENINGS_MAX: Final = 50
TRACE_MAX: Final = 40


class IntakeCampaignReport(msgspec.Struct, frozen=True):
    """What happened in the lives of one seed, or of many."""

    seeds: int = 0
    losses: int = 0
    kills: int = 0
    openings_interrupted: int = 0
    acknowledged: int = 0
    """Epochs."""
    undone: int = 0
    """Epochs that were not acknowledged, and are gone."""
    kept: int = 0
    """Epochs that were not acknowledged, and are there."""
    spilled: int = 0
    """Portions of rows that were in files."""
    full: int = 0
    failed_syncs: int = 0

    def __add__(self, other: "IntakeCampaignReport") -> "IntakeCampaignReport":
        names = self.__struct_fields__
        return IntakeCampaignReport(**{name: getattr(self, name) + getattr(other, name) for name in names})


class Committed(msgspec.Struct, frozen=True):
    """An epoch as it must be found: its rows, by source, and how many of them there are."""

    bodies: tuple[tuple[int, bytes], ...]
    rows: tuple[int, ...]


class IntakeLives:
    """One log of an intake, from its making on, through several lives."""

    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed)
        self.seed: Final = seed
        self.disk: Final = SimulatedDisk(Random(random.getrandbits(64)))
        self.disk.make_directory("ticks")
        self.disk.sync_directory("")  # as the journal does, which is there before its intake
        self.lanes: Final = random.choice((1, 2, 3))
        self.memory_bytes_max: Final = random.choice((0, 100, 2000))
        self.trace: Final[deque[str]] = deque(maxlen=TRACE_MAX)
        self.report = IntakeCampaignReport(seeds=1)
        self.epochs: Final[list[Committed]] = []
        """Every epoch that is committed, from the first on."""
        self.uncertain: Committed | None = None
        """What may have been committed, though nobody was told so."""
        self.published = 0
        """How many epochs are in the journal."""
        self.entries: dict[int, Entry] = {}
        self.attempts = 0
        self.faults = (0, 0)
        self.log, self.spool = self._open()

    def run(self, lives: int = LIVES) -> IntakeCampaignReport:
        """Live so many times, and return what happened.

        Raises:
            AssertionError: A promise was broken.
        """
        for _ in range(lives):
            self._live()
            self.log, self.spool = self._open()
        counted = self.disk.statistics()
        return self.report + IntakeCampaignReport(full=counted.full, failed_syncs=counted.failed_syncs)

    def explain(self, problem: str) -> str:
        """Return the seed, the problem and the last things that happened."""
        return "\n  ".join([f"seed {self.seed}: {problem}", *self.trace])

    def _live(self) -> None:
        random = self.random
        self.faults = self._faults()
        if random.random() < 0.6:
            self._note("stop", after := random.randrange(25))
            self.disk.stop(after)
        if random.random() < 0.25:
            self._note("fail sync", after := random.randrange(8), cached := random.random() < 0.5)
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
                check(self.disk.stopped or self._faults() != self.faults, f"the disk is sound, but: {error}")
                self.disk.capacity_bytes = 0
                if self.disk.stopped or self.log.failed:
                    break
        self._end()

    def _faults(self) -> tuple[int, int]:
        counted = self.disk.statistics()
        return counted.full, counted.failed_syncs

    def _stage(self) -> tuple[Attempt, ...]:
        """Stage rows of the next epoch, in one or several partitions."""
        random, staged = self.random, list[Attempt]()
        for partition in range(random.randint(1, 4)):
            self.attempts += 1
            attempt = Attempt(QUERY, len(self.epochs), partition, self.attempts)
            for _ in range(random.randint(1, 3)):
                body = self.attempts.to_bytes(4, "little") + random.randbytes(random.choice((1, 50, 700)))
                self.spool.put(attempt, body, random.randint(1, 9))
            staged.append(attempt)
        return tuple(staged)

    def _commit(self) -> None:
        attempts = self._stage()
        try:
            self._make_durable(attempts)
        except JournalError as error:
            if self.disk.stopped or self.log.failed or self.random.random() < 0.3:
                raise
            self._note("error", error)
            self.disk.capacity_bytes = 0
            self._make_durable(attempts)  # as a writer does who asks again

    def _make_durable(self, attempts: tuple[Attempt, ...]) -> None:
        """Do what an intake does when an epoch is committed."""
        kept = [self.spool.get(attempt) for attempt in attempts]
        numbered = list(zip(attempts, kept, strict=True))
        parts = [
            LoggedPart(attempt.partition % self.lanes, each.rows, tuple(each.sizes), each.file)
            for attempt, each in numbered
        ]
        epoch = len(self.epochs)
        self._note("commit", epoch, parts)
        committed = self._expected(attempts, parts)
        self.spool.sync(attempts)
        self.uncertain = committed
        try:
            entry = self.log.append(QUERY, epoch, parts, [body for each in kept for body in each.bodies])
        except JournalError:
            if not self.disk.stopped and not self.log.failed:
                self.uncertain = None
            raise
        self.uncertain = None
        self.epochs.append(committed)
        self.entries[epoch] = entry
        spilled = sum(len(each.sizes) for each in kept if each.file)
        self.report += IntakeCampaignReport(acknowledged=1, spilled=spilled)
        for attempt in attempts:
            self.spool.drop(attempt, committed=True)

    def _expected(self, attempts: tuple[Attempt, ...], parts: list[LoggedPart]) -> Committed:
        rows = [0] * self.lanes
        bodies: list[tuple[int, bytes]] = []
        for attempt, part in zip(attempts, parts, strict=True):
            rows[part.lane] += part.rows
            kept = self.spool.get(attempt)
            data = self.disk.read(f"{FOLDER}/{kept.file}") if kept.file else b"".join(kept.bodies)
            place = 0
            for size in part.sizes:
                bodies.append((part.lane, data[place : place + size]))
                place += size
        return Committed(tuple(bodies), tuple(rows))

    def _publish(self) -> None:
        """Let the journal have the next epoch, and the log forget its files."""
        if self.published < len(self.epochs):
            self._note("publish", self.published)
            self.published += 1
            self.log.forget(self.entries.pop(self.published - 1))

    def _abort(self) -> None:
        self._note("abort")
        for attempt in self._stage():
            self.spool.drop(attempt)

    def _renew(self) -> None:
        if self.published == len(self.epochs) > 0:
            self._note("renew")
            self.log.renew([(QUERY, len(self.epochs) - 1)])

    def _end(self) -> None:
        self.disk.capacity_bytes = 0
        end = self.random.choice(("power", "power", "kill", "close"))
        if end == "close" and not self.disk.stopped:
            self.log.close()
        self._fall(power=end != "kill")

    def _fall(self, *, power: bool) -> None:
        (self.disk.crash if power else self.disk.kill)()
        self.report += IntakeCampaignReport(losses=power, kills=not power)
        self._note("power lost" if power else "killed", self.disk.files())

    def _open(self) -> tuple[IntakeLog, Spool]:
        """Open the log, though that may be interrupted again and again, and compare it with what was committed."""
        for attempt in range(OPENINGS_MAX):
            if attempt < OPENINGS_MAX // 2 and self.random.random() < 0.3:
                self._note("stop opening", after := self.random.randrange(10))
                self.disk.stop(after)
            try:
                log = IntakeLog.open(self.disk, FOLDER, self._numbers(self.published))
                self._note("opened", [entry.epoch.epoch for entry in log.entries], log.queries)
                if not self.disk.stopped:
                    self._compare(log)
                    return log, Spool(self.disk, FOLDER, memory_bytes_max=self.memory_bytes_max)
            except JournalError as error:
                self._note("not opened", error)
                check(self.disk.stopped, f"the disk is sound, but the log is not opened: {error}")
            self.report += IntakeCampaignReport(openings_interrupted=1)
            self._fall(power=self.random.random() < 0.5)
        raise AssertionError(f"the log was not opened {OPENINGS_MAX} times")

    def _numbers(self, epochs: int) -> tuple[int, ...]:
        """Return the number of the next row of each source, after so many epochs."""
        return tuple(sum(epoch.rows[lane] for epoch in self.epochs[:epochs]) for lane in range(self.lanes))

    def _compare(self, log: IntakeLog) -> None:
        known = max([*(entry.epoch.epoch for entry in log.entries), *(epoch for _, epoch in log.queries), -1]) + 1
        if known == len(self.epochs) + 1 and self.uncertain is not None:
            self.epochs.append(self.uncertain)
            self.report += IntakeCampaignReport(kept=1)
        elif self.uncertain is not None:
            self.report += IntakeCampaignReport(undone=1)
        self.uncertain = None
        check(known == len(self.epochs), f"{known} epochs are known, {len(self.epochs)} were committed")
        check(log.nexts == self._numbers(known), f"rows go on at {log.nexts}, expected {self._numbers(known)}")
        self.entries = {entry.epoch.epoch: entry for entry in log.entries if entry.epoch.epoch >= self.published}
        check(list(self.entries) == list(range(self.published, known)), f"there are only the epochs {self.entries}")
        for epoch, entry in self.entries.items():
            found = tuple(log.bodies(entry))
            check(found == self.epochs[epoch].bodies, f"epoch {epoch} has other rows than were committed")
        log.clear(list(self.entries.values()))
        files = {path for path in self.disk.files() if path.endswith(".part")}
        named = {f"{FOLDER}/{part.file}" for entry in self.entries.values() for part in entry.epoch.parts if part.file}
        check(files == named, f"there are the files {files}, epochs name {named}")

    def _note(self, *words: object) -> None:
        self.trace.append(" ".join(str(word) for word in words))

    _actions: ClassVar[dict[Callable[["IntakeLives"], None], float]] = {_commit: 8, _publish: 5, _renew: 2, _abort: 1}


def run_intake_lives(seed: int, lives: int = LIVES) -> IntakeCampaignReport:
    """Run the lives of one log, and return what happened.

    Raises:
        AssertionError: A promise was broken; the message has the seed and the last things that happened.
    """
    log: IntakeLives | None = None
    try:
        log = IntakeLives(seed)
        return log.run(lives)
    except (AssertionError, EchoicError, OSError, LookupError, ValueError, TypeError, RuntimeError) as problem:
        text = f"{type(problem).__name__}: {problem}"
        raise AssertionError(log.explain(text) if log else f"seed {seed}: {text}") from problem
