"""What can be saved of a damaged journal is saved: every sound block of every segment.

Damaged segments are made again (`rebuilding`), missing ones are replaced by one that says what is lost, so that
afterwards the journal is sound, can be written, and its holes are in it for every reader to see. Nothing is deleted:
what was replaced is kept beside it as `.damaged`, copied before the rebuilt file takes its name in one step, so that a
crash in the middle leaves either of them. Only what cannot even be read is renamed instead of copied.

If the end of a partition is lost, nobody knows how many events it had, and their numbers must not be used again: a sink
that had seen them would take other events for them. So the partition goes on with a number that they cannot have
reached, by the bytes that are lost and by what the sinks have said.
"""

from collections import Counter
from collections.abc import Callable

import msgspec

from echoic.errors import JournalError
from echoic.recorder.blocks import SegmentHeader, encode_segment_header
from echoic.recorder.catalog import (
    INFO,
    PARTITIONS_MAX,
    SEGMENT,
    TEMPORARY,
    U64_MAX,
    VERSION,
    Catalog,
    JournalInfo,
    named_by_sequence,
    said,
)
from echoic.recorder.examining import Examined, examine, examine_index, read_headers
from echoic.recorder.index import IndexBuilder
from echoic.recorder.mending import free_name, load_segment, redo, save_aside
from echoic.recorder.partition import SEGMENT_BYTES_MAX, JournalOptions, PartitionWriter, is_put_aside
from echoic.recorder.rebuilding import Rebuilding
from echoic.recorder.scanning import Scan
from echoic.recorder.standing import Standing
from echoic.recorder.storage import File, Storage

__all__ = ["Lost", "RecoveryReport", "identify", "recover"]


class Lost(msgspec.Struct, frozen=True):
    """Sequence numbers of a partition, from `first` to `last`, whose events could not be saved."""

    partition: int
    first: int
    last: int


class RecoveryReport(msgspec.Struct, frozen=True):
    """What was done to a journal."""

    rebuilt: tuple[str, ...]
    """The files that were made again."""
    aside: tuple[str, ...]
    """Where the damaged ones are kept."""
    lost: tuple[Lost, ...]
    notes: tuple[str, ...]
    """Everything else that was done, for people."""


def recover(storage: Storage, channel: str, progress: Callable[[int, int], None] | None = None) -> RecoveryReport:
    """Make a damaged journal sound, with everything that can be saved.

    Args:
        storage: Where journals are.
        channel: Which of them.
        progress: Is told how many segments were looked at, and how many there are.

    Raises:
        LocalError: This is not the name of a channel.
        JournalError: There is no such journal, a writer has it, nothing is left of it, or the storage fails.
    """
    catalog = Catalog(storage, channel)
    with said("recover the journal", catalog.directory):
        if not storage.exists(catalog.directory):
            raise JournalError(f"there is no journal of channel {channel!r} - at {catalog.directory}")
        lock = catalog.lock()
        try:
            return Recovery(catalog, progress).run()
        finally:
            lock.release()


def identify(catalog: Catalog) -> JournalInfo:
    """Return what a journal without a sound `journal.json` is, by the headers of its segments.

    Raises:
        JournalError: Not a single one can be read.
    """
    with said("look at the journal", catalog.directory):
        names = catalog.storage.names(catalog.directory)
    numbers = [int(name) for name in names if name.isdecimal() and int(name) < PARTITIONS_MAX]
    headers = [header for number in numbers for header in read_headers(catalog, number)]
    if not headers:
        raise JournalError(f"there is no journal: neither {INFO} nor a segment can be read - at {catalog.directory}")
    (journal, _), *_ = Counter(header.journal for header in headers).most_common(1)
    created_ns = min(header.time_ns for header in headers)
    return JournalInfo(VERSION, journal.hex(), catalog.channel, max(numbers) + 1, created_ns)


class Recovery:
    """One recovery of a journal."""

    def __init__(self, catalog: Catalog, progress: Callable[[int, int], None] | None) -> None:
        self._catalog = catalog
        self._progress = progress
        self._formats: dict[int, bytes] = {}
        self._rebuilt: list[str] = []
        self._aside: list[str] = []
        self._lost: list[Lost] = []
        self._notes: list[str] = []
        self._done = self._total = 0

    def run(self) -> RecoveryReport:
        """Do it."""
        catalog = self._catalog
        info = self._recover_info()
        journal = bytes.fromhex(info.id)
        self._recover_sinks()
        for number in range(info.partitions):
            self._prepare(number)
        self._total = sum(len(catalog.segments(number)) for number in range(info.partitions))
        examined = [self._examine(number, journal) for number in range(info.partitions)]
        for number, segments in enumerate(examined):
            PartitionRecovery(self, number, journal).run(segments)
        return RecoveryReport(tuple(self._rebuilt), tuple(self._aside), tuple(self._lost), tuple(self._notes))

    @property
    def catalog(self) -> Catalog:
        """The journal's files."""
        return self._catalog

    @property
    def formats(self) -> dict[int, bytes]:
        """Every descriptor that was found, by token."""
        return self._formats

    def note(self, *notes: str) -> None:
        """Tell what was done."""
        self._notes += notes

    def report_rebuilt(self, path: str, lost: list[Lost]) -> None:
        """Tell what was made again, and what could not be."""
        self._rebuilt.append(path)
        self._lost += lost

    def put_aside(self, path: str) -> None:
        """Rename a file that is of no use."""
        to = free_name(self._catalog, path, ".damaged")
        self._catalog.storage.rename(path, to)
        self._catalog.storage.sync_directory(path.rpartition("/")[0])
        self._aside.append(to)

    def copy_aside(self, path: str, data: memoryview) -> None:
        """Keep a copy of a file that will be replaced."""
        self._aside.append(save_aside(self._catalog, path, ".damaged", data))

    def seen_by_sinks(self, partition: int) -> int:
        """Return the largest sequence that a sink said it wants next."""
        positions = [self._catalog.read_positions(path) for path in self._catalog.sink_paths()]
        return max((each[partition] for each in positions if partition < len(each)), default=0)

    def _recover_info(self) -> JournalInfo:
        catalog, path = self._catalog, f"{self._catalog.directory}/{INFO}"
        try:
            return catalog.info()
        except JournalError as error:
            info = identify(catalog)
            self.note(f"{path} was written again, since {error}")
        if catalog.storage.exists(path):
            self._keep_aside(path)
        catalog.write_info(info)
        self._rebuilt.append(path)
        return info

    def _keep_aside(self, path: str) -> None:
        """Copy a file that will be replaced; if it cannot be read, rename it."""
        file = self._catalog.storage.open(path)
        try:
            data = file.view()
        except OSError:
            self.put_aside(path)
        else:
            self.copy_aside(path, data)
        finally:
            file.close()

    def _recover_sinks(self) -> None:
        for path in self._catalog.sink_paths():
            try:
                self._catalog.read_positions(path)
            except JournalError as error:
                self.put_aside(path)
                self.note(f"the position of a sink is lost: {error}")

    def _prepare(self, number: int) -> None:
        """Leave nothing in a partition but what belongs there."""
        catalog, directory = self._catalog, self._catalog.partition(number)
        if not catalog.storage.exists(directory):
            catalog.storage.make_directory(directory)
            catalog.storage.sync_directory(catalog.directory)
        for name in catalog.names(number):
            path = f"{directory}/{name}"
            if name.endswith(TEMPORARY):
                catalog.storage.remove(path)
            elif name.endswith(SEGMENT) and not named_by_sequence(name.removesuffix(SEGMENT)):
                self.put_aside(path)
        catalog.storage.sync_directory(directory)
        for name in catalog.names(number):
            if name.endswith(".tail"):
                self._finish(number, f"{directory}/{name}", name.removesuffix(".tail"))

    def _finish(self, number: int, path: str, stem: str) -> None:
        """Finish an opening that was interrupted."""
        try:
            if not named_by_sequence(stem):
                raise JournalError(f"this is not how a segment is called - at {path}")
            with said("open the segment", path):
                file = self._catalog.storage.open(self._catalog.segment(number, int(stem)), write=True)
            try:
                self.note(*redo(self._catalog, number, int(stem), file))
            finally:
                file.close()
        except JournalError as error:
            self.put_aside(path)
            self.note(f"the end of a segment could not be written again: {error}")

    def _examine(self, number: int, journal: bytes) -> list[Examined]:
        examined = []
        segments = self._catalog.segments(number)
        for sequence in segments:
            last = sequence == segments[-1]
            examined.append(examine(self._catalog, number, sequence, journal, last=last, formats=self._formats))
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self._total)
        return examined


class PartitionRecovery:
    """Makes the segments of one partition sound, and fit together."""

    def __init__(self, recovery: Recovery, number: int, journal: bytes) -> None:
        self._recovery = recovery
        self._catalog = recovery.catalog
        self._number = number
        self._journal = journal
        self._standing = Standing()
        # Of the last block: there is no clock here, and nothing is to look younger or older than it is.
        self._time_ns = 0

    def run(self, segments: list[Examined]) -> None:
        """Go from the first segment to the last."""
        if not segments:
            lost = Examined(0, self._catalog.segment(self._number, 0), [], unreadable=True)
            self._rebuild(lost, None, self._bound(lost))
        for place, found in enumerate(segments, 1):
            self._recover(found, segments[place].first if place < len(segments) else None)
        self._open()

    def _open(self) -> None:
        """Open the partition as a writer does, which puts aside a torn end and marks what is there."""
        partition = PartitionWriter(self._catalog, self._number, self._journal, JournalOptions())
        partition.open(self._time_ns)
        partition.close()
        self._recovery.note(*partition.recovered)

    def _recover(self, found: Examined, upto: int | None) -> None:
        scan = found.scan
        short = scan is not None and upto is not None and scan.sequence < upto
        over = scan is not None and upto is not None and scan.sequence > upto
        if found.damaged or scan is None or found.standing is None or over or (short and scan.sequence == found.first):
            self._rebuild(found, scan, self._bound(found) if upto is None else upto, sealed=upto is not None)
            return
        self._standing, self._time_ns = found.standing, found.time_ns
        if examine_index(self._catalog, self._number, found) is not None:
            data = load_segment(self._catalog, self._number, found.first)
            self._put_index(found.first, _index_of(scan, data))
            self._recovery.note(f"{self._catalog.index(self._number, found.first)} was made again")
        following = Examined(scan.sequence, self._catalog.segment(self._number, scan.sequence), [])
        if short and upto is not None:
            self._rebuild(following, None, upto, sealed=True)
        elif upto is None and scan.sealed and is_put_aside(self._catalog, self._number, scan.sequence):
            self._rebuild(following, None, self._bound(following))  # a recovery came no further than to put it aside

    def _bound(self, found: Examined) -> int:
        """Return with which number a last segment goes on: what its last blocks say, or one that is safe."""
        if found.scan is not None:
            return found.scan.sequence
        lost = found.bytes or SEGMENT_BYTES_MAX
        return min(max(found.first + lost, self._recovery.seen_by_sinks(self._number)), U64_MAX)

    def _rebuild(self, found: Examined, scan: Scan | None, upto: int, *, sealed: bool = False) -> None:
        """Replace a segment by what is sound in it; one that is missing by one that says so."""
        catalog, path = self._catalog, found.path
        there = catalog.storage.exists(path)
        data = load_segment(catalog, self._number, found.first) if there and not found.unreadable else memoryview(b"")
        header = self._header(found.first, scan)
        rebuilding = Rebuilding(header, self._standing, self._recovery.formats)
        is_sealed = sealed or (scan is not None and scan.sealed)
        file = self._write(path, rebuilding, scan, data, upto, is_sealed)
        file.close()
        if there and found.unreadable:
            self._recovery.put_aside(path)
        elif there:
            self._recovery.copy_aside(path, data)
        catalog.storage.rename(path + TEMPORARY, path)
        catalog.storage.sync_directory(catalog.partition(self._number))
        self._put_index(found.first, rebuilding.builder.take())
        self._standing, self._time_ns = rebuilding.standing, rebuilding.time_ns
        self._recovery.report_rebuilt(path, [Lost(self._number, *span) for span in rebuilding.lost])

    def _header(self, first: int, scan: Scan | None) -> SegmentHeader:
        """Return the header of a rebuilt segment, of about the same time but another seed."""
        if scan is None:
            return SegmentHeader(self._journal, self._number, first, self._time_ns)
        former = scan.header.time_ns
        step = -1 if former > 0 else 1
        headers = [SegmentHeader(self._journal, self._number, first, former + step * count) for count in (1, 2)]
        return next(header for header in headers if encode_segment_header(header)[1] != scan.header.seed)

    def _write(
        self, path: str, rebuilding: Rebuilding, scan: Scan | None, data: memoryview, upto: int, sealed: bool
    ) -> File:
        file = self._catalog.begin(path, [], sync=False)
        try:
            for portion in rebuilding.portions(scan, data, upto, sealed):
                file.append(portion)
            file.sync()
        except OSError:
            self._catalog.abandon(path, file)
            raise
        return file

    def _put_index(self, sequence: int, entries: list[bytes]) -> None:
        self._catalog.put(self._catalog.index(self._number, sequence), entries, sync=False)


def _index_of(found: Scan, data: memoryview) -> list[bytes]:
    """Return the entries of a sound segment's index."""
    builder = IndexBuilder(found.header.seed, found.header.sequence)
    for _, head in found.heads(data):
        builder.add(head, head.block_bytes)
    return builder.take()
