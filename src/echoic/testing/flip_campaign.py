"""Bit rot: one bit of a sound journal is flipped, anywhere in any of its files, and turned back; again and again.

What must hold each time:

    verify     names the file that has the bit; a flipped index is harmless, and may be named or not
    the reader delivers no event with other bytes than its own, and passes over none in silence: what it does not
               deliver is in a hole that it tells, or it refuses to read; if the bit is in the mark that says how much
               is committed, it ends early, as it does for a write that is under way
    recover    keeps every event but those of the block that has the bit, also if the power is lost meanwhile and it is
               done again; afterwards the journal is opened and goes on

The journals are small, so that thousands of flips take seconds. An index has an entry for each quarter of a megabyte,
so those of small journals are empty; a test that wants to flip bits of one makes its entries denser.
"""

from bisect import bisect_right
from collections import Counter
from random import Random
from typing import Final

import msgspec

from echoic.errors import EchoicError, JournalError
from echoic.recorder.blocks import SEGMENT_HEADER_BYTES, BlockKind
from echoic.recorder.reader import Span
from echoic.recorder.verifying import recover, verify
from echoic.recorder.writer import JournalOptions, JournalWriter
from echoic.testing.journal_book import Located, find_entries
from echoic.testing.journal_events import RUN_EVENTS, batch_of
from echoic.testing.journal_sight import Sight, see
from echoic.testing.ledger import check
from echoic.testing.simulated_disk import SimulatedDisk

__all__ = ["FlipReport", "FlippedJournal"]

CHANNEL: Final = "trades"
SMALL_FILES_SHARE: Final = 0.1
"""Of the flips; the rest are in segments, which are larger by far."""


class FlipReport(msgspec.Struct, frozen=True):
    """What was flipped, and what came of it."""

    journals: int = 0
    flips: int = 0
    places: dict[str, int] = {}
    """How many were where: in blocks of each kind, in headers of segments, in files of each ending."""
    recovered: int = 0

    def __add__(self, other: "FlipReport") -> "FlipReport":
        places = dict(Counter(self.places) + Counter(other.places))
        counts = self.journals + other.journals, self.flips + other.flips
        return FlipReport(*counts, places, self.recovered + other.recovered)


class FlippedJournal:
    """A sound journal, made from a seed, and its bits."""

    def __init__(self, seed: int, *, batches: int = 8, segment_bytes_max: int = 1000) -> None:
        self.random: Final = Random(seed)
        self.seed: Final = seed
        self.disk: Final = SimulatedDisk(Random(seed))
        self.partitions: Final = self.random.choice((1, 2))
        self._write(batches, segment_bytes_max)
        self.blocks: Final[dict[str, list[Located]]] = {}
        for partition in range(self.partitions):
            for block in find_entries(self.disk, CHANNEL, partition, {}):
                self.blocks.setdefault(block.path, []).append(block)
        self.segments: Final = list(self.blocks)
        self.weights: Final = [self.disk.files()[path] for path in self.segments]
        self.small: Final = [path for path, size in self.disk.files().items() if size and path not in self.blocks]
        self.whole: Final = see(self.disk, CHANNEL)
        self.span: Final = Span(batches // 4, batches // 2)
        self.spanned: Final = see(self.disk, CHANNEL, self.span)
        self.report = FlipReport(journals=1)

    def run(self, flips: int, *, recoveries: float = 0.1) -> FlipReport:
        """Flip so many bits, one at a time, and recover from a share of them.

        Raises:
            AssertionError: A promise was broken; the message has the seed, the file and the bit.
        """
        for _ in range(flips):
            path = self._draw()
            bit = self.random.randrange(8 * self.disk.files()[path])
            self.check(path, bit, recovering=self.random.random() < recoveries)
        return self.report

    def check(self, path: str, bit: int, *, recovering: bool = True) -> None:
        """Flip one bit, see what comes of it, and turn it back.

        Raises:
            AssertionError: A promise was broken; the message has the seed, the file and the bit.
        """
        self.disk.flip(path, bit)
        try:
            self._verify(path)
            self._read(path, bit)
            if recovering:
                self._recover(path, bit)
        except (AssertionError, EchoicError, OSError, LookupError, ValueError, TypeError, RuntimeError) as problem:
            where = f"{path} bit {bit} (offset {bit >> 3}, {self._name(path, bit)})"
            raise AssertionError(f"seed {self.seed}: {type(problem).__name__}: {problem} - {where}") from problem
        finally:
            self.disk.flip(path, bit)
        self.report += FlipReport(0, 1, {self._name(path, bit): 1}, recovering)

    def _draw(self) -> str:
        if self.small and self.random.random() < SMALL_FILES_SHARE:
            return self.random.choice(self.small)
        return self.random.choices(self.segments, self.weights)[0]

    def _write(self, batches: int, segment_bytes_max: int) -> None:
        options = JournalOptions(partitions=self.partitions, segment_bytes_max=segment_bytes_max)
        writer = JournalWriter.open(self.disk, CHANNEL, options, id=self.random.randbytes(16), now_ns=1)
        positions = [0, 0, 0]
        for now_ns in range(batches):
            source = self.random.randrange(3)
            first = positions[source] + self.random.choice((0, 0, 0, 3))
            count = self.random.randint(1, RUN_EVENTS - first % RUN_EVENTS)
            writer.append(batch_of(source, first, count), source, first, now_ns)
            positions[source] = first + count
            if self.random.random() < 0.4:
                writer.commit(now_ns)
        writer.mark("billing", [7] * self.partitions)
        writer.close(batches)

    def _verify(self, path: str) -> None:
        flaws = verify(self.disk, CHANNEL)
        named = any(flaw.path == path for flaw in flaws)
        check(named or path.endswith(".index"), f"verify did not see it, but {flaws}")

    def _read(self, path: str, bit: int) -> None:
        try:
            seen = see(self.disk, CHANNEL)
        except JournalError:
            check(self._may_refuse(path, bit), "the reader refused the whole journal")
            return
        if path.endswith(".index"):
            spanned = see(self.disk, CHANNEL, self.span)
            check(spanned.events == self.spanned.events, "the reader finds other events of some time")
        for partition, head in enumerate(seen.heads):
            unmarked = {event for event in self.whole.events[partition] if event.sequence >= head}
            check(not unmarked or self._is_last_mark(path, bit), f"the reader ended at {head}")
            seen.events[partition].update(unmarked)
        self._compare(seen, self._lost(path, bit, reading=True))

    def _may_refuse(self, path: str, bit: int) -> bool:
        """Whether nobody can tell what the journal has: what it is, or how far its last segment goes."""
        if path not in self.blocks:
            return path.endswith("/journal.json")
        return self._is_last(path) and self._block(path, bit) is None

    def _is_last_mark(self, path: str, bit: int) -> bool:
        """Whether a bit is in a mark of the last segment: what that says to be committed cannot be seen for a while."""
        block = self._block(path, bit) if path in self.blocks else None
        return block is not None and block.kind is BlockKind.COMMIT and self._is_last(path)

    def _is_last(self, path: str) -> bool:
        above = path.rpartition("/")[0]
        return path == max(each for each in self.segments if each.startswith(f"{above}/"))

    def _compare(self, seen: Sight, lost: dict[int, set[int]]) -> None:
        """Check that all but what may be lost is delivered, and that the holes are what is not."""
        for partition in range(self.partitions):
            whole, found, holes = self.whole.events[partition], seen.events[partition], seen.holes[partition]
            check(found <= whole, f"partition {partition} has events that were never written")
            absent = {event.sequence for event in whole - found}
            check(absent == holes, f"{absent} are not delivered, the holes are {holes}")
            check(absent <= lost[partition], f"{absent} are lost, the bit was in {lost[partition]}")

    def _recover(self, path: str, bit: int) -> None:
        disk = self.disk.copy(Random(bit))
        self._recover_at_last(disk)
        lost = self._lost(path, bit, reading=False)
        self._compare(see(disk, CHANNEL), lost)
        flaws = verify(disk, CHANNEL)
        check(not flaws, f"after recovery there are still {flaws}")
        writer = JournalWriter.open(disk, CHANNEL, id=bytes(16), now_ns=1)
        source, position = 1, dict(writer.positions).get(1, 0)
        writer.append(batch_of(source, position, 1), source, position, 2)
        writer.close(3)
        more = see(disk, CHANNEL)
        check(sum(map(len, more.events)) > 0, "nothing is left")
        check(not verify(disk, CHANNEL), "it is not sound after an append")

    def _recover_at_last(self, disk: SimulatedDisk) -> None:
        """Recover, though the power may be lost meanwhile."""
        for _ in range(self.random.choice((0, 0, 1, 2))):
            disk.stop(self.random.randrange(40))
            try:
                recover(disk, CHANNEL)
            except JournalError as error:
                check(disk.stopped, f"the disk is sound, but recovery fails: {error}")
            disk.crash()
        recover(disk, CHANNEL)

    def _lost(self, path: str, bit: int, *, reading: bool) -> dict[int, set[int]]:
        """Return the sequence numbers that may be lost: those of the block that has the bit, and what hangs on it.

        Whoever only reads may also do without a segment whose header is broken. Events of a type whose description
        is broken cannot be read, unless it is found elsewhere.
        """
        lost: dict[int, set[int]] = {partition: set() for partition in range(self.partitions)}
        blocks = self.blocks.get(path)
        if blocks is None:
            return lost
        partition = int(path.split("/")[1])
        block = self._block(path, bit)
        if block is None:
            hit = blocks if reading else []
        else:
            hit = blocks[blocks.index(block) :] if block.kind is BlockKind.FORMAT else [block]
        for each in hit:
            if each.entry is not None and not each.entry.missing:
                lost[partition].update(range(each.entry.sequence, each.entry.sequence_end))
        return lost

    def _block(self, path: str, bit: int) -> Located | None:
        """Return the block that has a bit, None for the header of the segment."""
        offset = bit >> 3
        if offset < SEGMENT_HEADER_BYTES:
            return None
        blocks = self.blocks[path]
        return blocks[bisect_right(blocks, offset, key=lambda block: block.offset) - 1]

    def _name(self, path: str, bit: int) -> str:
        if path not in self.blocks:
            return path.rpartition("/")[2].rpartition(".")[2]
        block = self._block(path, bit)
        return "header" if block is None else block.kind.name
