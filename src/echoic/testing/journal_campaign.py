"""Journals on a disk that fails, as a campaign of any length: power losses, kills, full disks, and flipped bits.

    python -m echoic.testing.journal_campaign --losses 50000 --flips 100000

A *life* of the journal is made from its seed alone: several sources append batches, some of them twice, overlapping or
with holes between, of types that change; there are commits, tiny segments that are rotated and given up, sinks that
mark where they are, a wall clock that steps by an hour either way, a disk that is full for a while, syncs that fail.
Each life ends with a loss of power, a kill or a proper close, many of them in the middle of an operation, also of the
recovery after the one before. Then the journal is opened again and compared with the book (`JournalBook`):

    every acknowledged event is there, once, in order, with equal bytes
    what was not acknowledged is a beginning of it, of whole batches, and nothing else is there
    positions, heads and firsts are those of the entries, sinks are where they were marked
    `verify` finds nothing wrong but an index, which is never synced, and the reader reads the same

The bits are flipped by `echoic.testing.flip_campaign`. A failure raises AssertionError with the seed and the last
things that happened; `--seed N --losses 1 --flips 0` repeats it.
"""

import argparse
import sys
from collections import deque
from collections.abc import Callable
from random import Random
from typing import ClassVar, Final, Literal, TypeAlias

import msgspec

from echoic.errors import EchoicError, JournalError
from echoic.recorder.verifying import verify
from echoic.recorder.writer import JournalOptions, JournalWriter, Retention
from echoic.testing.flip_campaign import FlippedJournal, FlipReport
from echoic.testing.journal_book import JournalBook, find_entries, segments_of
from echoic.testing.journal_events import RUN_EVENTS, batch_of
from echoic.testing.journal_sight import Seen, see
from echoic.testing.ledger import check
from echoic.testing.simulated_disk import SimulatedDisk

__all__ = ["CampaignReport", "JournalLives", "run_flips", "run_lives", "run_losses"]

CHANNEL: Final = "trades"
HOUR_NS: Final = 3_600_000_000_000
LIVES: Final = 12
STEPS_MAX: Final = 30
OPENINGS_MAX: Final = 50
TRACE_MAX: Final = 40
FLIPS_PER_JOURNAL: Final = 250
SINKS: Final = ("billing", "a/b")
End: TypeAlias = Literal["power", "kill", "close"]


class CampaignReport(msgspec.Struct, frozen=True):
    """What happened in the lives of one seed, or of many."""

    seeds: int = 0
    losses: int = 0
    kills: int = 0
    recoveries_interrupted: int = 0
    acknowledged: int = 0
    """Entries: batches, or gaps."""
    undone: int = 0
    """Entries that were not acknowledged and are gone."""
    put_aside: int = 0
    """How often the end of a segment was torn, and put aside."""
    torn_files: int = 0
    full: int = 0
    failed_syncs: int = 0

    def __add__(self, other: "CampaignReport") -> "CampaignReport":
        names = self.__struct_fields__
        return CampaignReport(**{name: getattr(self, name) + getattr(other, name) for name in names})


class JournalLives:
    """One journal, from its making on, through several lives."""

    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed)
        self.seed: Final = seed
        self.disk: Final = SimulatedDisk(Random(random.getrandbits(64)))
        self.options: Final = JournalOptions(
            partitions=random.choice((1, 1, 2, 3)),
            segment_bytes_max=random.choice((700, 1500, 4000, 20_000)),
            retention=random.choice(
                (Retention(), Retention(), Retention(bytes_max=4000), Retention(age_ns_max=HOUR_NS // 2))
            ),
            durability=random.choice(("disk", "disk", "disk", "os")),
        )
        self.book: Final = JournalBook(self.options.partitions)
        self.now_ns = 1_700_000_000_000_000_000
        self.sources: Final = range(random.randint(1, 5))
        self.trace: Final[deque[str]] = deque(maxlen=TRACE_MAX)
        self.marks: Final[dict[str, set[tuple[int, ...] | None]]] = {sink: {None} for sink in SINKS}
        self.failed_syncs = 0
        self.power_lost = False
        self.firsts = [0] * self.options.partitions
        self.trimmed = self.options.retention != Retention()
        self.report = CampaignReport(seeds=1)
        self.writer = self._open()

    def run(self, lives: int = LIVES) -> CampaignReport:
        """Live so many times, and return what happened.

        Raises:
            AssertionError: A promise was broken.
        """
        for _ in range(lives):
            self._live()
            self.writer = self._open()
            self._compare()
        counted = self.disk.statistics()
        faults = CampaignReport(full=counted.full, failed_syncs=counted.failed_syncs, torn_files=counted.torn_files)
        return self.report + faults

    def explain(self, problem: str) -> str:
        """Return the seed, the problem and the last things that happened."""
        return "\n  ".join([f"seed {self.seed}: {problem} - {self.options}", *self.trace])

    def _live(self) -> None:
        random = self.random
        self.failed_syncs = self.disk.statistics().failed_syncs
        self.power_lost = False
        if random.random() < 0.6:
            self._note("stop", after := random.randrange(40))
            self.disk.stop(after)
        if random.random() < 0.2:
            self._note("fail sync", after := random.randrange(12), cached := random.random() < 0.5)
            self.disk.fail_sync(after, cached=cached)
        if random.random() < 0.15:
            self._note("fill", room := random.randrange(3000))
            self.disk.capacity_bytes = self.disk.used_bytes + room
        for _ in range(random.randrange(1, STEPS_MAX)):
            if not self._act():
                break
        self._end()

    def _act(self) -> bool:
        """Do one thing; return whether the writer can go on."""
        self.now_ns += self.random.randrange(1_000_000_000)
        action = self.random.choices(list(self._actions), list(self._actions.values()))[0]
        try:
            action(self)
        except JournalError as error:
            self._note("error", error)
            check(self._is_excused(), f"the disk is sound, but: {error}")
            if self.disk.stopped or (self.writer.failed and self.random.random() < 0.5):
                return False
            if self.random.random() < 0.5:
                self.disk.capacity_bytes = 0
                self._note("space")
        return True

    def _is_excused(self) -> bool:
        return self.disk.stopped or self.disk.capacity_bytes > 0 or self.writer.failed or self._syncs_failed()

    def _syncs_failed(self) -> bool:
        return self.disk.statistics().failed_syncs > self.failed_syncs

    def _append(self) -> None:
        source = self.random.choice(self.sources)
        due = self.book.next.get(source, 0)
        back, forth = self.random.randrange(20), self.random.randrange(40)
        first = self.random.choices((due, max(0, due - back), due + forth), (6, 1, 1))[0]
        count = self.random.randint(1, RUN_EVENTS - first % RUN_EVENTS)
        self._note("append", source, first, count)
        fresh = self.writer.append(batch_of(source, first, count), source, first, self.now_ns)
        expected = self.book.append(source, first, count)
        check(fresh == expected, f"{fresh} events were fresh, expected {expected}")

    def _miss(self) -> None:
        source = self.random.choice(self.sources)
        first = self.book.next.get(source, 0)
        last = first + self.random.randrange(5)
        self._note("miss", source, first, last)
        self.writer.miss(source, first, last, "dropped", self.now_ns)
        self.book.miss(source, first, last)

    def _commit(self) -> None:
        self._note("commit")
        committed = self.writer.commit(self.now_ns)
        advanced = {
            entry.source: entry.end
            for log, count in zip(self.book.logs, self.book.acknowledged, strict=True)
            for entry in log[count:]
        }
        check(committed.positions == advanced, f"positions {committed.positions}, expected {advanced}")
        self._acknowledge()
        heads = tuple(self.book.head(partition) for partition in range(self.book.partitions))
        check(committed.heads == heads, f"heads {committed.heads}, expected {heads}")
        if self.random.random() < 0.1:
            self._look()
            if not self.disk.capacity_bytes and not self.writer.failed:  # else the mark may not be written
                self._read()

    def _acknowledge(self) -> None:
        before = sum(self.book.acknowledged)
        self.book.acknowledge()
        self.report += CampaignReport(acknowledged=sum(self.book.acknowledged) - before)

    def _settle(self) -> None:
        self._note("settle")
        self.writer.settle(self.now_ns)

    def _step_clock(self) -> None:
        self.now_ns += self.random.choice((-HOUR_NS, HOUR_NS, -self.random.randrange(HOUR_NS)))
        self._note("clock", self.now_ns)

    def _mark(self) -> None:
        sink = self.random.choice(SINKS)
        positions = tuple(self.random.randrange(1000) for _ in range(self.book.partitions))
        self._note("mark", sink, positions)
        self.marks[sink].add(positions)
        self.writer.mark(sink, positions)
        self.marks[sink] = {positions}

    def _trim(self) -> None:
        partition = self.random.randrange(self.book.partitions)
        upto = self.random.randint(0, self.book.acknowledged_head(partition))
        self._note("trim", partition, upto)
        self.trimmed = True
        self.writer.trim(partition, upto)

    def _end(self) -> None:
        """End this life: with the power or the process, or properly."""
        end: End = self.random.choice(("power", "power", "kill", "close"))
        if end == "close" and not self.disk.stopped:
            self._close()
        self._fall(end)

    def _close(self) -> None:
        self._note("close")
        self.disk.capacity_bytes = 0
        failed = self.writer.failed
        try:
            self.writer.close(self.now_ns)
        except JournalError as error:
            self._note("error", error)
            check(self._is_excused(), f"the disk is sound, but the journal was not closed: {error}")
        else:
            if not failed:
                self._acknowledge()

    def _fall(self, end: End) -> None:
        """Let the power or the process end; without durability on the disk, only the process."""
        self.disk.capacity_bytes = 0
        if end == "kill" or self.options.durability == "os":
            self.disk.kill()
            self.power_lost = False
            self.report += CampaignReport(kills=1)
        else:
            self.disk.crash()
            self.power_lost = True
            self.report += CampaignReport(losses=1)
        sizes = {path.removeprefix(f"{CHANNEL}/"): size for path, size in self.disk.files().items() if size}
        self._note("power lost" if self.power_lost else "killed", sizes)

    def _open(self) -> JournalWriter:
        """Open the journal, though recovery may be interrupted again and again."""
        for attempt in range(OPENINGS_MAX):
            if attempt < OPENINGS_MAX // 2 and self.random.random() < 0.4:
                self._note("stop opening", after := self.random.randrange(25))
                self.disk.stop(after)
            try:
                writer = JournalWriter.open(self.disk, CHANNEL, self.options, id=bytes(range(16)), now_ns=self.now_ns)
            except JournalError as error:
                self._note("not opened", error)
                check(self.disk.stopped, f"the disk is sound, but the journal is not opened: {error}")
            else:
                self._note("opened", writer.heads, *writer.recovered)
                if not self.disk.stopped:
                    self.report += CampaignReport(put_aside=len(writer.recovered) > 0)
                    return writer
            self.report += CampaignReport(recoveries_interrupted=1)
            self._fall(self.random.choice(("power", "kill")))
        raise AssertionError(f"the journal was not opened {OPENINGS_MAX} times")

    def _compare(self) -> None:
        """Compare what is there with the book, and go on from what is there."""
        firsts = self.writer.firsts
        given_up = any(first != former for first, former in zip(firsts, self.firsts, strict=True))
        check(self.trimmed or not given_up, f"the journal begins with {firsts}, and nothing was to be given up")
        backwards = any(first < former for first, former in zip(firsts, self.firsts, strict=True))
        check(not backwards, f"the journal begins with {firsts}, but before with {self.firsts}")
        self.firsts = list(firsts)
        for partition, first in enumerate(firsts):
            located = find_entries(self.disk, CHANNEL, partition)
            found = [block.entry for block in located if block.entry is not None]
            undone = self.book.settle(partition, found, first)
            self.report += CampaignReport(undone=undone)
        self.book.count_again()
        self._look()
        flaws = [flaw for flaw in verify(self.disk, CHANNEL) if not flaw.path.endswith(".index")]
        check(not flaws, f"verify finds {flaws}")
        self._read()
        self._compare_marks()

    def _read(self) -> None:
        """Check that a reader sees what is acknowledged, and nothing else."""
        sight = see(self.disk, CHANNEL)
        for partition, log in enumerate(self.book.logs):
            first = int(segments_of(self.disk, CHANNEL, partition)[0][-28:-8])  # the writer's, if it could remove all
            held = [entry for entry in log[: self.book.acknowledged[partition]] if entry.sequence >= first]
            expected = sum(entry.count for entry in held if not entry.missing)
            events, holes = sight.events[partition], sight.holes[partition]
            check(not holes, f"the reader has the holes {holes} in partition {partition}")
            check(len(events) == expected, f"the reader has {len(events)} events, expected {expected}")
            for entry in held:
                read = entry.missing or Seen(entry.sequence, entry.source, entry.first) in events
                check(read, f"the reader of partition {partition} has not {entry}")

    def _compare_marks(self) -> None:
        for sink, expected in self.marks.items():
            marked = self.writer.marked(sink)
            check(marked in expected, f"sink {sink} is marked {marked}, expected one of {expected}")
            if self.power_lost:
                self.marks[sink] = {marked}

    def _look(self) -> None:
        """Check what the writer says of itself."""
        for partition in range(self.book.partitions):
            head = self.book.acknowledged_head(partition)
            check(self.writer.heads[partition] == head, f"head {self.writer.heads[partition]}, expected {head}")
        found = dict(self.writer.positions)
        check(found == self.book.next, f"positions {found}, expected {self.book.next}")

    def _note(self, *words: object) -> None:
        self.trace.append(" ".join(str(word) for word in words))

    _actions: ClassVar[dict[Callable[["JournalLives"], None], int]] = {
        _append: 12,
        _commit: 6,
        _settle: 1,
        _miss: 1,
        _step_clock: 1,
        _mark: 1,
        _trim: 1,
    }


def run_lives(seed: int, lives: int = LIVES) -> CampaignReport:
    """Run the lives of one journal, and return what happened.

    Raises:
        AssertionError: A promise was broken; the message has the seed and the last things that happened.
    """
    journal: JournalLives | None = None
    try:
        journal = JournalLives(seed)
        return journal.run(lives)
    except (AssertionError, EchoicError, OSError, LookupError, ValueError, TypeError, RuntimeError) as problem:
        text = f"{type(problem).__name__}: {problem}"
        raise AssertionError(journal.explain(text) if journal else f"seed {seed}: {text}") from problem


def main() -> None:
    """Run the campaigns that were asked for, and print what happened."""
    parser = argparse.ArgumentParser(
        description="Run journals on a simulated disk that loses power, fills up and fails, and check that nothing "
        "acknowledged is lost; flip bits of journals, and check that each is detected, never delivered and recovered.",
        epilog="A failure is printed with its seed and the last things that happened; the same seed repeats it.",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--losses", type=int, default=1000, help="how many losses of power")
    parser.add_argument("--flips", type=int, default=10_000, help="how many flipped bits")
    wish = parser.parse_args()
    try:
        if wish.losses:
            _say(str(run_losses(wish.seed, wish.losses, _show)))
        if wish.flips:
            _say(str(run_flips(wish.seed, wish.flips, _show)))
    except AssertionError as error:
        _say(str(error))
        sys.exit(1)


def run_losses(seed: int, losses: int, show: Callable[[str, int, int], None] | None = None) -> CampaignReport:
    """Run journals from a seed on until the power was lost so many times.

    Raises:
        AssertionError: A promise was broken; the message has the seed and the last things that happened.
    """
    report = CampaignReport()
    while report.losses < losses:
        report += run_lives(seed + report.seeds)
        if show is not None:
            show("losses of power", min(report.losses, losses), losses)
    return report


def run_flips(seed: int, flips: int, show: Callable[[str, int, int], None] | None = None) -> FlipReport:
    """Flip so many bits of journals made from a seed on, one at a time.

    Raises:
        AssertionError: A promise was broken; the message has the seed, the file and the bit.
    """
    report = FlipReport()
    while report.flips < flips:
        journal = FlippedJournal(seed + report.journals)
        report += journal.run(min(FLIPS_PER_JOURNAL, flips - report.flips))
        if show is not None:
            show("flipped bits", report.flips, flips)
    return report


def _show(what: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done} of {total} {what}{'' if done < total else chr(10)}")
        sys.stderr.flush()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
