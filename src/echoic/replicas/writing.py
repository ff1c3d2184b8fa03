"""The thread that writes a log: what is handed over is committed, many batches at a time, and each event once.

    add       add add add       add add ...          whoever has events
    [ commit 1 ][  commit 2-4  ][ commit 5-6 ]       the writer's thread

A transaction has everything that was handed over while the one before it was under way, up to a limit. Nothing waits
for a transaction to be filled, unless it is told to, and the longer the database takes, the more goes into the next
one. What waits is limited too, and whoever has more waits with it.

A database that is gone is tried again for a while. Before that it is asked how far the log is: if the answer to a
commit was lost, this tells whether it was done. If the database refuses, does not come back, or has forgotten what it
had committed, the writer ends with the cause, and says so to everybody who asks something of it.
"""

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from echoic.errors import ClosedError, EchoicError, JournalError, LocalError, UnreachableError
from echoic.replicas.databases import Database
from echoic.replicas.portions import Portion

__all__ = ["FLUSH_SECONDS_MAX", "LogOptions", "LogStatistics", "LogWriter"]

PAUSE_SECONDS: Final = (0.05, 1.0)
FLUSH_SECONDS_MAX: Final = 120.0


class LogOptions(msgspec.Struct, frozen=True):
    """How a log writes."""

    transaction_rows_max: int = 4096
    """A transaction is not made larger than this by adding another batch to it."""
    transaction_bytes_max: int = 8 * 1024 * 1024
    gather_seconds: float = 0.0
    """How long a transaction waits for more after its first batch; 0 for what is there already."""
    pending_rows_max: int = 65_536
    """So much may wait for the database; `deliver` waits if it is more."""
    pending_bytes_max: int = 64 * 1024 * 1024
    retry_seconds_max: float = 30.0
    """How long a database that is gone is tried again."""


class LogStatistics(msgspec.Struct, frozen=True):
    """What a log has done since it was opened."""

    applied: int
    """The sequence number of the last event in the table."""
    pending: int
    """Events that wait for the database."""
    rows: int
    transactions: int
    rows_per_transaction: float
    dropped: int
    """Events that were delivered again and dropped."""
    retries: int
    database_seconds: float
    """What transactions took, together."""
    trouble: str
    """What the database said last; empty while all is well."""
    ended: bool
    """Whether the log has ended because of it."""


class LogWriter:
    """Writes one log. It has a thread of its own, and is for any.

    Args:
        name: The log's, for messages.
        database: Prepared for it.
        options: How to write.

    Raises:
        JournalError: The database refuses.
        LocalError: An option is not positive.
        UnreachableError: The database does not answer.
    """

    def __init__(self, name: str, database: Database, options: LogOptions) -> None:
        self._name = name
        self._database = database
        self._options = _checked(options)
        self.applied = database.applied()
        """The sequence number of the last event in the table."""
        self._added = self.applied
        """Invariant: what lies between `applied` and this is pending, or in the transaction that is under way."""
        self._changed = threading.Condition()
        self._pending: deque[Portion] = deque()
        self._pending_rows = self._pending_bytes = 0
        self._hurried = 0
        """Somebody waits for the events up to this; they shall not wait for others."""
        self._closing = False
        self._failure: EchoicError | None = None
        self._rows = self._transactions = self._dropped = self._retries = 0
        self._database_seconds = 0.0
        self._trouble = ""
        self._thread = threading.Thread(target=self._serve, name=f"echoic-log {name}", daemon=True)
        self._thread.start()

    def add(self, portion: Portion) -> None:
        """Take what follows; what was added already is dropped. Waits while too much is pending.

        Raises:
            ClosedError: The writer was closed.
            JournalError: Events are missing before it; or the writer has ended.
        """
        with self._changed:
            while self._check_open() and self._full():
                self._changed.wait()
            if portion.first > self._added + 1:
                raise JournalError(
                    f"the log `{self._name}` ends at {self._added}, the next events begin at {portion.first}: "
                    f"{portion.first - self._added - 1} are missing"
                )
            wanted = portion.after(self._added)
            self._dropped += portion.batch.count - (wanted.batch.count if wanted else 0)
            if wanted is None:
                return
            self._pending.append(wanted)
            self._pending_rows += wanted.batch.count
            self._pending_bytes += wanted.batch.record_bytes
            self._added = wanted.last
            self._changed.notify_all()

    def flush(self, seconds_max: float = FLUSH_SECONDS_MAX) -> None:
        """Return when everything that was added is in the table.

        Raises:
            ClosedError: The writer was closed.
            JournalError: The writer has ended, or it takes too long.
        """
        with self._changed:
            target = self._added
            self._hurried = target
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.applied >= target or self._failure or self._closing, seconds_max)
            if self.applied < target and self._check_open():
                raise JournalError(
                    f"the log `{self._name}` is at {self.applied} and not at {target} after {seconds_max:g} s"
                    + (f": {self._trouble}" if self._trouble else "")
                )

    def statistics(self) -> LogStatistics:
        """Return what it has done."""
        with self._changed:
            return LogStatistics(
                applied=self.applied,
                pending=self._added - self.applied,
                rows=self._rows,
                transactions=self._transactions,
                rows_per_transaction=self._rows / self._transactions if self._transactions else 0.0,
                dropped=self._dropped,
                retries=self._retries,
                database_seconds=self._database_seconds,
                trouble=self._trouble,
                ended=self._failure is not None,
            )

    def close(self) -> None:
        """Commit what is pending, if the database lets us, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _check_open(self) -> bool:
        if self._failure is not None:
            raise JournalError(
                f"the log `{self._name}` has ended at {self.applied}: {self._failure}"
            ) from self._failure
        if self._closing:
            raise ClosedError(f"the log `{self._name}` is closed")
        return True

    def _full(self) -> bool:
        options = self._options
        return self._pending_rows >= options.pending_rows_max or self._pending_bytes >= options.pending_bytes_max

    def _serve(self) -> None:
        """Commit what is there, again and again; this is the log's thread."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closing)
                if not self._pending:
                    return
                if self._options.gather_seconds:
                    self._changed.wait_for(self._enough, self._options.gather_seconds)
                portions = self._taken()
            if not self._commit(portions):
                return

    def _enough(self) -> bool:
        rows, size = self._options.transaction_rows_max, self._options.transaction_bytes_max
        waited_for = self._closing or self._hurried >= self._pending[0].first
        return waited_for or self._pending_rows >= rows or self._pending_bytes >= size

    def _taken(self) -> list[Portion]:
        """Take what is pending, but no more than a transaction may have, and one batch at least."""
        rows = size = 0
        taken: list[Portion] = []
        while self._pending:
            batch = self._pending[0].batch
            rows, size = rows + batch.count, size + batch.record_bytes
            too_much = rows > self._options.transaction_rows_max or size > self._options.transaction_bytes_max
            if taken and too_much:
                break
            taken.append(self._pending.popleft())
            self._pending_rows -= batch.count
            self._pending_bytes -= batch.record_bytes
        return taken

    def _commit(self, portions: Sequence[Portion]) -> bool:
        """Write portions in one transaction, and tell whether that was done; otherwise the log has ended."""
        begun = time.monotonic()
        failure: EchoicError | None = None
        try:
            self._append(portions)
        except EchoicError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - a thread that ends in silence would be worse than any error
            failure = JournalError(f"{type(error).__name__}: {error}")
            failure.__cause__ = error
        with self._changed:
            self._database_seconds += time.monotonic() - begun
            if failure is None:
                self.applied = portions[-1].last
                self._rows += sum(portion.batch.count for portion in portions)
                self._transactions += 1
                self._trouble = ""
            else:
                self._failure, self._trouble = failure, str(failure)
                self._pending.clear()
            self._changed.notify_all()
        return failure is None

    def _append(self, portions: Sequence[Portion]) -> None:
        """Write portions in one transaction, if need be when the database is back.

        Raises:
            EchoicError: It refuses, or does not come back.
        """
        before, last = portions[0].first - 1, portions[-1].last
        deadline, pause, lost = 0.0, PAUSE_SECONDS[0], False
        while True:
            try:
                if self._is_lacking(before, last, asked=lost):
                    self._database.append(portions)
                return
            except UnreachableError as error:
                now = time.monotonic()
                deadline, lost = deadline or now + self._options.retry_seconds_max, True
                if not self._wait_again(str(error), min(pause, deadline - now)):
                    raise JournalError(
                        f"the database did not come back within {self._options.retry_seconds_max:g} s: {error}"
                    ) from error
                pause = min(2 * pause, PAUSE_SECONDS[1])

    def _is_lacking(self, before: int, last: int, *, asked: bool) -> bool:
        """Tell whether a transaction is still to be done; `asked` if there was one whose answer was lost.

        Raises:
            JournalError: The log is neither where it was nor where it was to be.
            UnreachableError: The database is gone.
        """
        applied = self._database.applied() if asked else before
        if applied < before:
            raise JournalError(
                f"the database is back without what it had committed, {applied} events of {before}: open the log again"
            )
        if before < applied != last:
            raise JournalError(f"the log was at {before} and is at {applied}: another writer has it")
        return applied == before

    def _wait_again(self, trouble: str, seconds: float) -> bool:
        """Wait before the next try; return False if there shall be none."""
        with self._changed:
            self._trouble = trouble
            self._retries += 1
            if seconds <= 0 or self._closing:
                return False
            self._changed.wait_for(lambda: self._closing, seconds)
            return True


def _checked(options: LogOptions) -> LogOptions:
    for name in ("transaction_rows_max", "transaction_bytes_max", "pending_rows_max", "pending_bytes_max"):
        if getattr(options, name) < 1:
            raise LocalError(f"the option {name} of a log is {getattr(options, name)}, must be at least 1")
    for name in ("gather_seconds", "retry_seconds_max"):
        if getattr(options, name) < 0:
            raise LocalError(f"the option {name} of a log is {getattr(options, name)}, must not be negative")
    return options
