"""A recorded channel, to be read: by anybody who sees the files, without a hub, while it is being recorded or after.

    journal = echoic.Journal("journals", "trades")
    for recorded in journal.read(since="2026-01-31T09:00", where="input.price < 75"):
        recorded.array, recorded.sequence, recorded.time_ns
    polars.DataFrame(journal)                                     Arrow's C interface
    for recorded in journal.tail(): ...                           goes on with what is appended

Nothing is decoded or converted unless it is asked for: a batch is a view of the mapped file, in its sender's layout.
Filter, columns and type are applied batch by batch while reading, by compiled code.

Sequence numbers count the events of a partition, so a range of them needs one partition: the only one there is, or one
that is named; or a number for each. Times are those at which events were recorded, and may repeat or step back when
the recorder's clock was set, so a range of time is all that was recorded at such times, in the order of the sequence.
Several partitions are read one after the other; a tail takes what comes first.

What is read is what was committed when reading began. What cannot be read is an error, or is told to `on_hole`: it is
never left out silently.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeAlias

import msgspec

from echoic.errors import JournalError, LocalError, RemoteError
from echoic.formats import NATIVE, Format
from echoic.recorder.arrow_stream import ROWS_MAX, ArrowStream
from echoic.recorder.catalog import channels_of
from echoic.recorder.disk import Disk
from echoic.recorder.reader import ALWAYS, TIME_MAX, TIME_MIN, Hole, Missing, PartitionReader, Recorded, Span, fill_hole
from echoic.recorder.selecting import Filter, project, retype
from echoic.recorder.shelf import LocalShelf, Shelf
from echoic.recorder.transforming import Transform

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Journal", "JournalSummary", "Moment", "Positions", "Where"]

Moment: TypeAlias = int | datetime | str
"""A time: nanoseconds since 1970, a datetime, or ISO 8601 text; without a zone it is UTC."""
Positions: TypeAlias = int | Sequence[int]
"""A sequence number of the only partition, or one for each."""
Where: TypeAlias = str | Callable[..., object]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
POLL_SECONDS: Final = 5.0


class JournalSummary(msgspec.Struct, frozen=True):
    """What a journal has. Segments and bytes are 0 for one that is read through a recorder."""

    id: str
    channel: str
    created_ns: int
    firsts: tuple[int, ...]
    heads: tuple[int, ...]
    types: tuple[str, ...]
    segments: int
    bytes: int

    @property
    def events(self) -> int:
        """How many events are there, holes included."""
        return sum(self.heads) - sum(self.firsts)


class _Selection(msgspec.Struct, frozen=True):
    """What is wanted of each batch."""

    filter: Filter | None
    declared: object | None
    on_hole: Callable[[Hole], None] | None
    on_missing: Callable[[Missing], None] | None


class Journal:
    """A recorded channel."""

    def __init__(self, path: str | Path | Shelf, channel: str = "") -> None:
        """Open a journal for reading.

        Args:
            path: The directory that `hub.record` was given, or where else chunks come from.
            channel: Whose events; may be left out where only one channel was recorded.

        Raises:
            JournalError: There is no such journal, or it cannot be read.
        """
        self.shelf: Final[Shelf] = _shelf(path, channel) if isinstance(path, str | Path) else path
        if channel and self.shelf.channel != channel:
            raise JournalError(f"this is the journal of channel `{self.shelf.channel}`, expected `{channel}`")
        self.id: Final = self.shelf.id
        self.name: Final = self.shelf.channel
        self.partitions: Final = self.shelf.partitions
        self._formats: dict[bytes, Format | None] = {}

    @staticmethod
    def channels(path: str | Path) -> list[str]:
        """Return the channels that were recorded in a directory.

        Raises:
            JournalError: It cannot be listed.
        """
        return channels_of(Disk(path))

    @property
    def heads(self) -> tuple[int, ...]:
        """For each partition the sequence number of the next event; all before it are committed.

        Raises:
            JournalError: The journal cannot be read.
        """
        return self.shelf.heads()

    @property
    def firsts(self) -> tuple[int, ...]:
        """For each partition the first sequence number that is still there.

        Raises:
            JournalError: The journal cannot be read.
        """
        return self.shelf.firsts()

    @property
    def formats(self) -> tuple[Format, ...]:
        """Every type that was recorded, in the sender's layout, in the order in which they came.

        Raises:
            JournalError: The journal cannot be read.
        """
        for descriptor in self.shelf.descriptors():
            if descriptor not in self._formats:
                self._formats[descriptor] = _described(descriptor)
        return tuple(format for format in self._formats.values() if format is not None)

    @property
    def format(self) -> Format:
        """The newest type that was recorded, as this machine lays it out.

        It is the last that was not there before, on whatever machine.

        Raises:
            JournalError: The journal cannot be read, or nothing was recorded yet.
        """
        types = list(dict.fromkeys(format.on(NATIVE) for format in self.formats))
        if not types:
            raise JournalError(f"nothing was recorded yet, so there is no type - at channel `{self.name}`")
        return types[-1]

    def info(self) -> JournalSummary:
        """Return what the journal has.

        Raises:
            JournalError: The journal cannot be read.
        """
        shelf = self.shelf
        created_ns, (segments, size) = 0, (0, 0)
        if isinstance(shelf, LocalShelf):
            created_ns, (segments, size) = shelf.info.created_ns, shelf.sizes()
        types = tuple(format.name for format in self.formats)
        return JournalSummary(self.id, self.name, created_ns, self.firsts, self.heads, types, segments, size)

    def positions(self, sink: str) -> tuple[int, ...] | None:
        """Return where a named sink goes on, for each partition; None if it was never marked.

        Raises:
            LocalError: This cannot be the name of a sink.
            JournalError: It cannot be read.
        """
        return self.shelf.marked(sink)

    def read(  # noqa: PLR0913 - every one has a default, and is named by the caller
        self,
        start: Positions | None = None,
        end: Positions | None = None,
        *,
        partition: int | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        columns: Sequence[str] | None = None,
        where: Where = "",
        params: object | None = None,
        declared: object | None = None,
        on_hole: Callable[[Hole], None] | None = None,
        on_missing: Callable[[Missing], None] | None = None,
    ) -> Iterator[Recorded]:
        """Read what is committed at this moment.

        Args:
            start: The first sequence number; by default the first that is there.
            end: The sequence number behind the last; by default that of the next event to come.
            partition: Which partition; by default all, one after the other.
            since: Leave out what was recorded earlier.
            until: Leave out what was recorded then or later.
            columns: Give events only these fields, in this order, as the newest or declared type has them.
            where: Leave out events that this E-Code rejects: an expression, a body in braces, or a Python function.
            params: What the code knows as `param`: a mapping, or an object of an event class.
            declared: Give events this type; by default they have that of their sender.
            on_hole: Is told what cannot be read; without it that is an error.
            on_missing: Is told which events never reached the journal.

        Raises:
            LocalError: An argument is wrong; ECodeError if it is the code, FormatError if it is a type or column. Also
                later, if the code faults.
            IncompatibleTypesError: Later: events cannot have the type that is asked for.
            JournalError: The journal cannot be read; also later.
        """
        span = _span(since, until)
        spans = self._ranges(start, end, partition)
        selection = self._selection(columns, where, params, declared, on_hole, on_missing)
        return self._read(spans, span, selection)

    def tail(  # noqa: PLR0913 - every one has a default, and is named by the caller
        self,
        start: Positions | None = None,
        *,
        partition: int | None = None,
        timeout: float | None = None,
        columns: Sequence[str] | None = None,
        where: Where = "",
        params: object | None = None,
        declared: object | None = None,
        on_hole: Callable[[Hole], None] | None = None,
        on_missing: Callable[[Missing], None] | None = None,
    ) -> Iterator[Recorded]:
        """Read on as events are committed, by whatever process.

        Args:
            start: The first sequence number; by default that of the next event to come.
            partition: Which partition; by default all.
            timeout: How many seconds to wait for the next event before it ends; by default without end.
            columns: As in `read`.
            where: As in `read`; needs `declared` while nothing is recorded yet.
            params: As in `read`.
            declared: As in `read`.
            on_hole: As in `read`.
            on_missing: As in `read`.

        Raises:
            LocalError: An argument is wrong, as in `read`; also later.
            IncompatibleTypesError: Later: events cannot have the type that is asked for.
            JournalError: The journal cannot be read; also later.
        """
        if timeout is not None and timeout < 0:
            raise LocalError(f"a timeout is 0 seconds or more, got {timeout}")
        partitions = self._partitions(partition)
        starts = self._one_each(start, partitions, self.heads)
        selection = self._selection(columns, where, params, declared, on_hole, on_missing)
        readers = [PartitionReader(self.shelf, each, at) for each, at in zip(partitions, starts, strict=True)]
        return self._tail(readers, timeout, selection)

    def arrow(  # noqa: PLR0913 - every one has a default, and is named by the caller
        self,
        start: Positions | None = None,
        end: Positions | None = None,
        *,
        partition: int | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        columns: Sequence[str] | None = None,
        where: Where = "",
        params: object | None = None,
        declared: object | None = None,
        derive: Where = "",
        output: object | None = None,
        on_hole: Callable[[Hole], None] | None = None,
        metadata: bool = False,
        rows: int = ROWS_MAX,
    ) -> "pyarrow.RecordBatchReader":
        """Read what is committed at this moment as large Arrow batches of one schema.

        The schema is that of the newest type, or of `declared`; what earlier events do not have is the default, or
        null where there is none.

        Args:
            start: As in `read`.
            end: As in `read`.
            partition: As in `read`.
            since: As in `read`.
            until: As in `read`.
            columns: As in `read`.
            where: As in `read`.
            params: As in `read`.
            declared: The type whose columns there are, and that code is written for.
            derive: Code that makes events of type `output`, run over what passes `where`: a body in braces or a Python
                function. Columns are those of what it makes.
            output: The type that it makes.
            on_hole: As in `read`.
            metadata: Whether to add `_sequence`, `_source`, `_number`, `_time` and `_partition`.
            rows: How many events a RecordBatch has at most.

        Raises:
            LocalError: An argument is wrong, as in `read`; also later.
            IncompatibleTypesError: Later: events cannot have the type that is asked for.
            JournalError: The journal cannot be read; also later.
        """
        import pyarrow

        span, ranges = _span(since, until), self._ranges(start, end, partition)
        formats = self.formats
        target = Format.of(declared) if declared is not None else self.format
        selection = _Selection(Filter(where, params, target) if where else None, None, on_hole, None)
        transform = _transform(derive, output, params, target)
        if transform is not None:
            target, formats = transform.output, ()
        stream = ArrowStream(
            project(target, columns) if columns is not None else target,
            formats,
            metadata=metadata,
            rows=rows,
            on_hole=lambda hole: fill_hole(hole, self.name, on_hole),
        )
        events = self._read(ranges, span, selection)
        if transform is not None:
            events = (made for recorded in events if (made := transform.apply(recorded)) is not None)
        return pyarrow.RecordBatchReader.from_batches(stream.schema, stream.batches(events))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give all events to any library that speaks Arrow's C interface: pandas, polars, DuckDB.

        Raises:
            JournalError: The journal cannot be read, or nothing was recorded yet.
        """
        reader: object = self.arrow()
        return reader.__arrow_c_stream__(requested_schema)  # type: ignore[attr-defined] # the stubs lack it

    def close(self) -> None:
        """Let go of the files that are open; what was read stays good, and reading on opens them again."""
        if isinstance(self.shelf, LocalShelf):
            self.shelf.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Journal of {self.name}, {self.partitions} partitions, id {self.id}>"

    def _selection(
        self,
        columns: Sequence[str] | None,
        where: Where,
        params: object | None,
        declared: object | None,
        on_hole: Callable[[Hole], None] | None,
        on_missing: Callable[[Missing], None] | None,
    ) -> _Selection:
        if columns is None and not where:
            if declared is not None:
                Format.of(declared)  # tells at once if it is none
            return _Selection(None, declared, on_hole, on_missing)
        format = Format.of(declared) if declared is not None else self.format
        kept = project(format, columns) if columns is not None else declared
        return _Selection(Filter(where, params, format) if where else None, kept, on_hole, on_missing)

    def _partitions(self, partition: int | None) -> tuple[int, ...]:
        if partition is None:
            return tuple(range(self.partitions))
        if not 0 <= partition < self.partitions:
            raise LocalError(f"there is no partition {partition}, the journal of `{self.name}` has {self.partitions}")
        return (partition,)

    def _one_each(self, given: Positions | None, partitions: Sequence[int], default: Sequence[int]) -> list[int]:
        """Return a sequence number for each partition that is read."""
        if given is None:
            return [default[partition] for partition in partitions]
        numbers = [given] if isinstance(given, int) else list(given)
        if len(numbers) == self.partitions and len(partitions) < len(numbers):
            numbers = [numbers[partition] for partition in partitions]
        if len(numbers) != len(partitions):
            raise LocalError(
                f"{len(numbers)} sequence numbers for {len(partitions)} partitions: name one partition, or give a "
                f"number for each - at channel `{self.name}`"
            )
        if any(number < 0 for number in numbers):
            raise LocalError(f"a sequence number is 0 or more, got {min(numbers)} - at channel `{self.name}`")
        return numbers

    def _ranges(
        self, start: Positions | None, end: Positions | None, partition: int | None
    ) -> list[tuple[int, int, int]]:
        """Return partition, start and end of everything that is to be read."""
        partitions, heads = self._partitions(partition), self.heads
        starts = self._one_each(start, partitions, self.firsts)
        ends = self._one_each(end, partitions, heads)
        return [
            (each, first, min(last, heads[each])) for each, first, last in zip(partitions, starts, ends, strict=True)
        ]

    def _read(self, ranges: list[tuple[int, int, int]], span: Span, selection: _Selection) -> Iterator[Recorded]:
        for partition, start, end in ranges:
            for item in PartitionReader(self.shelf, partition, start, span).read(end):
                recorded = self._selected(item, selection)
                if recorded is not None:
                    yield recorded

    def _tail(self, readers: list[PartitionReader], timeout: float | None, selection: _Selection) -> Iterator[Recorded]:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            heads = self.heads
            for reader in readers:
                for item in reader.read(heads[reader.partition]):
                    recorded = self._selected(item, selection)
                    if recorded is not None:
                        yield recorded
                        deadline = None if timeout is None else time.monotonic() + timeout
            left = POLL_SECONDS if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return
            self.shelf.wait(heads, min(left, POLL_SECONDS))

    def _selected(self, item: Recorded | Hole | Missing, selection: _Selection) -> Recorded | None:
        """Return what is wanted of some events, and tell of those that are not there."""
        if isinstance(item, Hole):
            fill_hole(item, self.name, selection.on_hole)
            return None
        if isinstance(item, Missing):
            if selection.on_missing is not None:
                selection.on_missing(item)
            return None
        recorded = item if selection.filter is None else selection.filter.apply(item)
        if recorded is None or selection.declared is None:
            return recorded
        return retype(recorded, selection.declared)


def _shelf(path: str | Path, channel: str) -> LocalShelf:
    """Open the journal of a channel in a directory.

    Raises:
        JournalError: There is none; the message names those there are.
    """
    storage = Disk(path)
    known = channels_of(storage) if storage.exists("") else []
    if not known:
        raise JournalError(f"there is no journal - at {path}")
    names = ", ".join(f"`{name}`" for name in known)
    if not channel and len(known) > 1:
        raise JournalError(f"there are journals of several channels, name one of {names} - at {path}")
    if channel and channel not in known:
        raise JournalError(f"there is no journal of channel `{channel}`, only of {names} - at {path}")
    return LocalShelf(storage, channel or known[0])


def _transform(derive: Where, output: object | None, params: object | None, format: Format) -> Transform | None:
    """Return the code that makes other events, None if none is wanted.

    Raises:
        LocalError: Only one of code and type is given.
        ECodeError: The code is wrong.
    """
    if not derive and output is None:
        return None
    if not derive or output is None:
        raise LocalError("`derive` and `output` belong together: code, and the type of what it makes")
    return Transform(derive, params, format, Format.of(output))


def _described(descriptor: bytes) -> Format | None:
    """Return the type of a descriptor, None if it is damaged or hostile: batches of such a type are holes."""
    try:
        return Format.from_descriptor(descriptor)
    except RemoteError:
        return None


def _span(since: Moment | None, until: Moment | None) -> Span:
    """Return a range of time.

    Raises:
        LocalError: A moment is none.
    """
    if since is None and until is None:
        return ALWAYS
    return Span(
        TIME_MIN if since is None else _nanoseconds(since, "since"),
        TIME_MAX if until is None else _nanoseconds(until, "until"),
    )


def _nanoseconds(moment: Moment, name: str) -> int:
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError as error:
            raise LocalError(f"`{name}` is not a time in ISO 8601: {moment!r}") from error
    if isinstance(moment, datetime):
        known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (known - EPOCH) // timedelta(microseconds=1) * 1000
    return moment
