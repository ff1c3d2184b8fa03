"""A replicated log: what a group has ordered, in a table of every replica's own database.

    with ReplicatedLog("orders", Order, "sqlite:orders.db") as log:
        group = hub.join(..., state=log)
        group.subscribe(log.deliver, batch=True)

This is the application of the paper (sections 2.2 and 5), in which each replica writes the messages that it receives
into a database of its own. A transaction has everything that was handed over while the one before it was under way
(`writing`). So a pack of the group, which comes in one go, costs one commit and not as many as it has events, and packs
that come faster than commits share one.

Rows and the sequence number of the last of them are one transaction. After any crash the number is what the log tells
the group (`applied`), which delivers from there on, and what comes twice is dropped by its number: each event is in the
table once. A number left out is refused, since a log with a gap is none.

A database that is gone is tried again for a while. What it says then about the number tells whether a transaction was
committed whose answer was lost. If it refuses (a full disk), or does not come back, the log ends: `deliver` raises the
cause, and nothing is lost, since the events are still with the group. After mending, a log that is opened again goes on
where this one stopped.

A member that was away longer than the group remembers gets the missing rows from another member's log (`save`, `load`),
whatever databases the two have.
"""

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Final, Protocol, Self

import msgspec

from echoic.errors import JournalError
from echoic.formats import Format, bind
from echoic.replicas.databases import Database
from echoic.replicas.portions import Portion, decode_portions, encode_portions
from echoic.replicas.urls import database_of
from echoic.replicas.writing import FLUSH_SECONDS_MAX, LogOptions, LogStatistics, LogWriter
from echoic.wire import Batch, decoder_of

__all__ = ["Logged", "ReplicatedLog", "Stamp"]

PORTION_BYTES: Final = 512 * 1024
PORTION_EVENTS_FIRST: Final = 16
PORTION_EVENTS_MAX: Final = 8192


class Stamp(Protocol):
    """What a group says of a batch that it delivers."""

    @property
    def sequence(self) -> int:
        """The number of the first event, counted from 1, the same at every replica."""

    @property
    def sender(self) -> str:
        """Who sent it."""


class Logged(msgspec.Struct, frozen=True):
    """An event that was read back."""

    sequence: int
    sender: str
    event: object


class ReplicatedLog:
    """Writes what a group delivers into a database, each event once.

    It is the `state` of a group (`applied`, `save`, `load`), and `deliver` is its handler.

    Args:
        name: The log's name, which is that of its table; that of the group, as a rule.
        declared: The event type: a class, or a Format. Events come back as this.
        database: Where to, or the URL of it (`database_of`). It is the log's from here on, and is closed with it.
        options: How to write.

    Raises:
        AddressError: The name cannot be that of a table, or the URL is none.
        FormatError: `declared` is not an event type, or has too many fields for a table.
        IncompatibleTypesError: The table has a field with another type.
        JournalError: The database refuses, or the table belongs to somebody else.
        LocalError: An option is not positive, or the database's package is not installed.
        UnreachableError: The database does not answer.
    """

    durable: bool = True
    """Its rows survive the end of the process, so that no snapshots are needed (`GroupState`)."""

    def __init__(
        self, name: str, declared: object, database: Database | str, options: LogOptions | None = None
    ) -> None:
        self.name: Final = name
        self.format: Final[Format] = bind(declared).format
        self._declared = decoder_of(declared)
        self._plain = decoder_of(self.format)
        self._database = database_of(database) if isinstance(database, str) else database
        try:
            self._database.prepare(name, self.format)
            self._writer = LogWriter(name, self._database, options or LogOptions())
        except BaseException:
            self._database.close()
            raise

    def applied(self) -> int:
        """Return the sequence number of the last event in the table, 0 for none."""
        return self._writer.applied

    def deliver(self, batch: Batch, stamp: Stamp) -> None:
        """Take a batch; it is in the table soon. What is there already is dropped. Waits while too much is pending.

        Raises:
            ClosedError: The log was closed.
            IncompatibleTypesError: The batch is of a type that the log's cannot be made of.
            JournalError: Events are missing before it; or the log has ended, for the reason that is told.
            MalformedBatchError: A record contradicts its type.
        """
        if batch.count:
            self._writer.add(Portion(stamp.sequence, ((stamp.sender, batch.count),), batch.to(self._plain)))

    def flush(self, seconds_max: float = FLUSH_SECONDS_MAX) -> None:
        """Return when everything that was delivered is in the table.

        Raises:
            ClosedError: The log was closed.
            JournalError: The log has ended, or it takes too long.
        """
        self._writer.flush(seconds_max)

    def save(self, after: int) -> Iterator[bytes]:
        """Return the events after a number, up to the last one that was delivered so far, for another's `load`.

        They are read while the result is iterated, which any one thread may do while further events are delivered.

        Raises:
            ClosedError: The log was closed; also later.
            JournalError: The other has more than this log; or this one has ended, or cannot be read; also later.
        """
        self.flush()
        upto = self.applied()
        if not 0 <= after <= upto:
            raise JournalError(f"the log `{self.name}` has {upto} events, another member claims to have {after}")
        return encode_portions(self._portions(after, upto))

    def load(self, chunks: Iterable[bytes], upto: int) -> None:
        """Take over what another's `save` gave. If it fails, what came so far is there, and the rest can come later.

        Raises:
            ClosedError: The log was closed.
            EchoicError: The chunks are not those of a log, or of one of another type.
            JournalError: Events are missing, the state ends before or after `upto`, or the log has ended.
        """
        for portion in decode_portions(chunks):
            if portion.last > upto:
                raise JournalError(f"a state of {upto} events has one with the number {portion.last}")
            self._writer.add(portion.to(self._plain))
        self.flush()
        if self.applied() != upto:
            raise JournalError(f"the log `{self.name}` has {self.applied()} events after a state of {upto}")

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Logged]:
        """Yield the events in the table after a sequence number, in order; those that are committed by now.

        Raises:
            ClosedError: The log was closed.
            JournalError: The database refuses, or rows are missing.
            UnreachableError: It is gone.
        """
        upto = self.applied() if limit is None else min(self.applied(), after + limit)
        for portion in self._portions(after, upto):
            senders = (sender for sender, events in portion.senders for _ in range(events))
            events = portion.batch.to(self._declared).events()
            for number, (sender, event) in enumerate(zip(senders, events, strict=True)):
                yield Logged(portion.first + number, sender, event)

    def statistics(self) -> LogStatistics:
        """Return what it has done."""
        return self._writer.statistics()

    def close(self) -> None:
        """Commit what is pending, if the database lets us, and close it. What is not committed comes again."""
        self._writer.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _portions(self, after: int, upto: int) -> Iterator[Portion]:
        """Yield what lies between two numbers, about half a megabyte at a time."""
        events, size = PORTION_EVENTS_FIRST, 0
        begun = after
        while after < upto:
            portion = self._database.read(after, upto, events)
            if portion is None:
                raise JournalError(f"the log `{self.name}` has {upto} events, but no row {after + 1}")
            yield portion
            after = portion.last
            size += max(portion.batch.record_bytes, 1)
            events = min(max(PORTION_BYTES * (after - begun) // size, 1), PORTION_EVENTS_MAX)
