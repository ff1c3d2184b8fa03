"""From files of other programs, or of an export, into a journal.

A file is made a journal of its own, beside the others and out of sight, and moved to its place when it is whole: a file
that turns out to be broken in the middle leaves nothing behind. Only when events are added to a journal that is there
already (`append`) those before the mistake stay.

Which type the events have is found in the file: exactly, if an export of ours wrote it (Parquet, Arrow, MCAP), by the
columns or the JSON Schema if not; CSV files say little, so for them a type can be declared. Who sent an event, which
number it had and when it was recorded are kept if the file knows them (`metadata` of an export, always in MCAP), so a
journal that already has some of the events drops those, as it does with a source that sends again. A file that does not
know gets one source and counts from where that source stands.

What an export and an import of all events do not keep: gaps (events that never arrived), positions of sinks, how
events were batched, partitions but for the number asked for; and sequence numbers, which begin at 0.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy

from echoic.errors import EncodeError, JournalError, LocalError
from echoic.formats import Format
from echoic.recorder.catalog import U64_MAX, Catalog
from echoic.recorder.disk import Disk
from echoic.recorder.exporting import FileKind, kind_of_file
from echoic.recorder.writer import JournalOptions, JournalWriter
from echoic.wire import Batch

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Contents", "Imported", "import_file"]

SOURCE_DEFAULT: Final = 1
COMMIT_BYTES: Final = 8 * 1024 * 1024
BATCH_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Imported:
    """What was read, and how much of it the journal did not have yet."""

    file: str
    kind: FileKind
    channel: str
    journal: str
    events: int
    fresh: int
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a file, where it does not say so itself.

    `kind` is parquet, arrow, csv or mcap, by default what the suffix says; `declared` the type of the events; `topic`
    which one of an MCAP file is meant, if it has several. With `source`, all events are taken as those of this source,
    and counted anew.
    """

    kind: str = ""
    declared: object | None = None
    topic: str = ""
    source: int | None = None


PLAIN: Final = Contents()


@dataclass(frozen=True, slots=True)
class Piece:
    """A batch, and what its file knows of it."""

    batch: Batch
    source: int | None = None
    first: int | None = None
    time_ns: int | None = None


def import_file(
    file: Path | str,
    path: Path | str,
    name: str = "",
    *,
    contents: Contents = PLAIN,
    append: bool = False,
    options: JournalOptions | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Imported:
    """Make a journal of a file, or add the events of a file to one.

    Args:
        file: Where the events are.
        path: The directory of journals.
        name: The channel; by default what the file calls it, or else the name of the file.
        contents: What is in the file, where it does not say so itself.
        append: Add to a journal that is there already.
        options: How a journal is made.
        progress: Is told how many events were read so far, and how many there are if the file says so.

    Raises:
        EncodeError: An event does not fit its type.
        FormatError: What the file says is no event type.
        JournalError: The file cannot be read, or the journal not be written.
        LimitExceededError: An event is too large for a journal.
        LocalError: The format of the file is not known, or the channel is there already.
    """
    opened, wanted, source = Path(file), kind_of_file(Path(file), contents.kind), contents.source
    if source is not None and not 0 <= source <= U64_MAX:
        raise LocalError(f"the number of a source is 0 to {U64_MAX}, got {source}")
    declared = Format.of(contents.declared) if contents.declared is not None else None
    with _pieces(opened, wanted, declared, contents.topic) as (called, total, pieces):
        channel = name or called or opened.stem
        with _destination(Path(path), channel, options or JournalOptions(), append=append) as writer:
            filling = _Filling(writer, source)
            for _ in filling.fill(pieces):
                if progress is not None:
                    progress(filling.events, total)
    return Imported(str(opened), wanted, channel, writer.id, filling.events, filling.fresh, tuple(filling.types))


class _Filling:
    """Appends pieces to a journal, and counts."""

    def __init__(self, writer: JournalWriter, source: int | None) -> None:
        self.events = 0
        self.fresh = 0
        self.types: dict[str, None] = {}
        self._writer = writer
        self._source = source
        self._numbers = dict(writer.positions)

    def fill(self, pieces: Iterable[Piece]) -> Iterator[None]:
        """Append all pieces, one at each step, and bring them to the disk.

        Raises:
            EchoicError: The file or the journal is at fault.
        """
        for piece in pieces:
            self._append(piece)
            if self._writer.pending_bytes >= COMMIT_BYTES:
                self._writer.commit(time.time_ns())
            yield
        self._writer.commit(time.time_ns())

    def _append(self, piece: Piece) -> None:
        known = self._source is None and piece.source is not None
        source = piece.source if known and piece.source is not None else self._source
        source = SOURCE_DEFAULT if source is None else source
        first = piece.first if known and piece.first is not None else self._numbers.get(source, 0)
        time_ns = time.time_ns() if piece.time_ns is None else piece.time_ns
        self.fresh += self._writer.append(piece.batch, source, first, time_ns)
        self._numbers[source] = first + piece.batch.count
        self.events += piece.batch.count
        self.types[piece.batch.format.name] = None


@contextmanager
def _destination(path: Path, channel: str, options: JournalOptions, *, append: bool) -> Iterator[JournalWriter]:
    """Open a journal for writing: out of sight until it is complete, or the one that is there.

    Raises:
        JournalError: It cannot be written, or is in use.
        LocalError: It is there, and nothing shall be added.
    """
    catalog = Catalog(Disk(path), channel)
    if catalog.exists():
        if not append:
            raise LocalError(
                f"channel '{channel}' is in {path} already; --append adds to it, --name calls it otherwise"
            )
        with _opened(path, channel, options) as writer:
            yield writer
        return
    hidden = path / f".import-{os.getpid()}"
    try:
        shutil.rmtree(hidden, ignore_errors=True)
        Disk(path).make_directory(hidden.name)
        try:
            with _opened(hidden, channel, options) as writer:
                yield writer
            (hidden / catalog.directory).rename(path / catalog.directory)
            Disk(path).sync_directory("")
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
    except OSError as error:
        raise JournalError(f"cannot write the journal: {error.strerror or error} - at {path}") from error


@contextmanager
def _opened(path: Path, channel: str, options: JournalOptions) -> Iterator[JournalWriter]:
    writer = JournalWriter.open(Disk(path), channel, options, id=os.urandom(16), now_ns=time.time_ns())
    try:
        yield writer
    finally:
        writer.close(time.time_ns())


@contextmanager
def _pieces(
    file: Path, kind: FileKind, declared: Format | None, topic: str
) -> Iterator[tuple[str, int | None, Iterator[Piece]]]:
    """Open a file: what it calls the channel, how many events it has if it says so, and the events."""
    if kind == "mcap":
        from echoic.recorder import mcap_files

        chosen = mcap_files.choose_topic(mcap_files.topics_of(file), topic, file)
        messages = mcap_files.read_messages(file, chosen, declared)
        yield chosen.strip("/"), None, (Piece(each.batch, each.source, each.first, each.time_ns) for each in messages)
        return
    from echoic.recorder.columnar import read_columns

    with read_columns(file, kind, declared) as columns:
        yield columns.channel, columns.rows, _columns(columns.batches, columns.format, stamped=columns.stamped)


def _columns(batches: Iterator["pyarrow.RecordBatch"], format: Format, *, stamped: bool) -> Iterator[Piece]:
    from echoic.recorder.columnar import STAMPS

    for large in batches:
        for table in _small(large):
            events = table.drop_columns(list(STAMPS)) if stamped else table
            batch = Batch.of(events, format)
            yield from _runs(batch, table) if stamped else [Piece(batch)]


def _small(table: "pyarrow.RecordBatch") -> "Iterator[pyarrow.RecordBatch]":
    """Yield the rows in batches of about a megabyte, well below what a block of a journal can hold."""
    rows = max(1, table.num_rows * BATCH_BYTES // max(table.nbytes, 1))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def _runs(batch: Batch, table: "pyarrow.RecordBatch") -> Iterator[Piece]:
    """Yield the events of a batch cut where the source or the time is another, or a number does not follow."""
    sources, numbers, times = (_stamps(table, name) for name in ("_source", "_number", "_time"))
    follows = (sources[1:] == sources[:-1]) & (times[1:] == times[:-1]) & (numbers[1:] == numbers[:-1] + 1)
    starts = [0, *(numpy.flatnonzero(~follows) + 1).tolist()]
    counts = numpy.diff([*starts, batch.count]).tolist()
    parts: Sequence[Batch] = [batch] if len(counts) == 1 else list(batch.parts(counts))
    for start, part in zip(starts, parts, strict=True):
        yield Piece(part, int(sources[start]), int(numbers[start]), int(times[start]))


def _stamps(table: "pyarrow.RecordBatch", name: str) -> Any:  # noqa: ANN401 - a NumPy array
    column: Any = table.column(name)
    if column.null_count:
        raise EncodeError(f"the column has {column.null_count} nulls, expected none - at `{name}`")
    return column.cast("int64").to_numpy() if name == "_time" else column.to_numpy()
