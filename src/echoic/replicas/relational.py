"""A log in any database that speaks SQL: the tables, the transaction, the way back. What differs is a `Dialect`.

    echoic_applied     log (key), sequence                   one row for each log
    echoic_columns     log, field (key), name, type          which column each field has, see `columns`
    <log>              sequence (key), sender, ..., exact    the events

    append:   begin
              update echoic_applied set sequence = 128 where log = 'orders' and sequence = 100     one row, or refuse
              insert 28 rows
              commit

The update names the number from which it counts on, and comes first. So two writers of one log cannot mix their rows:
the second waits for the first, finds another number, and ends with an error.

Tables are made in steps that can be repeated, because MariaDB commits before and after each: first it is written down
which columns there shall be, then those are made that are not there. A table of the log's name that is not a log is
somebody else's, and refused.

There are two connections, one that writes and one that reads, so that a member which takes over a large log from here
does not hold up what is being delivered. A connection that breaks is thrown away; the next call makes another.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from echoic.errors import ClosedError, JournalError, UnreachableError
from echoic.formats import Format
from echoic.replicas.columns import EXACT, SENDER, SEQUENCE, Column, check_log_name, columns_of
from echoic.replicas.portions import Portion
from echoic.replicas.rows import Misfits, RowCodec, Value

__all__ = ["Connection", "Dialect", "Insertion", "RelationalDatabase"]

Rows: TypeAlias = Sequence[Sequence[Any]]


class Insertion(msgspec.Struct, frozen=True):
    """Where rows go: what a driver needs to say so in its fastest way."""

    table: str
    """Quoted."""
    names: tuple[str, ...]
    """Quoted."""
    kinds: tuple[str, ...]
    """As `Column.kind`."""


class Dialect(msgspec.Struct, frozen=True):
    """How a database spells what all have."""

    name: str
    mark: str
    """What stands for a value in a statement."""
    quote: str
    types: Mapping[str, str]
    """For each kind of column its type; `key` is a short text that can be a key."""
    table_options: str
    tables: str
    """Asks whether there is a table of a name."""
    columns: str
    """Asks for the names of a table's columns."""
    misfits: Mapping[str, Misfits]
    lock: str = ""
    """Lets nobody else make tables until the end of the transaction, or until `unlock`."""
    unlock: str = ""
    text_of_json: str = "{}"
    """How a column of JSON is asked for as text."""


class Connection(Protocol):
    """A connection of a driver. Every method raises UnreachableError if it is broken, JournalError if refused."""

    def ask(self, statement: str, values: Sequence[Value] = ()) -> Rows:
        """Return the rows that a statement gives."""

    def change(self, statement: str, values: Sequence[Value] = ()) -> int:
        """Run a statement and return how many rows it changed."""

    def insert(self, insertion: Insertion, rows: Rows) -> None:
        """Insert rows."""

    def begin(self) -> None:
        """Begin a transaction that writes."""

    def commit(self) -> None:
        """Commit it."""

    def rollback(self) -> None:
        """Take it back."""

    def close(self) -> None:
        """Close it; this never fails."""


class _Line:
    """A connection that is made when it is needed, for one caller at a time."""

    def __init__(self, connect: Callable[[], Connection], place: str) -> None:
        self._connect = connect
        self._place = place
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._closed = False

    @contextmanager
    def use(self) -> Iterator[Connection]:
        with self._lock:
            if self._closed:
                raise ClosedError(f"the database is closed - at {self._place}")
            if self._connection is None:
                self._connection = self._connect()
            try:
                yield self._connection
            except UnreachableError:
                self._connection.close()
                self._connection = None
                raise

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None


class RelationalDatabase:
    """A log in a database that speaks SQL.

    Args:
        dialect: What it speaks.
        place: Where it is, for messages: without passwords.
        connect: Makes a connection; raises UnreachableError or JournalError.
    """

    def __init__(self, dialect: Dialect, place: str, connect: Callable[[], Connection]) -> None:
        self.place: Final = place
        self._dialect = dialect
        self._writing = _Line(connect, place)
        self._reading = _Line(connect, place)
        self._log = ""
        self._prepared: tuple[RowCodec, Insertion, str] | None = None

    def prepare(self, log: str, format: Format) -> None:
        """Make what the log needs and does not have, and be open for it.

        Raises:
            AddressError: The log's name cannot be that of a table.
            FormatError: The type has too many fields.
            IncompatibleTypesError: A column has another type.
            JournalError: The database refuses, or the table belongs to somebody else.
            UnreachableError: Nobody answers.
        """
        check_log_name(log)
        with self._writing.use() as connection, self._alone(connection):
            with transaction(connection):
                self._make_books(connection)
                columns = self._enter(connection, log, format)
            with transaction(connection):
                self._make_table(connection, log, columns)
        self._log = log
        names = (SEQUENCE, SENDER, *(column.name for column in columns), EXACT)
        kinds = ("int64", "text", *(column.kind for column in columns), "bytes")
        insertion = Insertion(self._quoted(log), tuple(map(self._quoted, names)), kinds)
        self._prepared = RowCodec(format, columns, self._dialect.misfits), insertion, self._selection(insertion)

    def applied(self) -> int:
        """Return the sequence number of the last event in the table, 0 for none.

        Raises:
            JournalError: The database refuses, or does not know the log.
            UnreachableError: It is gone.
        """
        with self._writing.use() as connection:
            rows = connection.ask(self._said("SELECT sequence FROM echoic_applied WHERE log = ?"), (self._log,))
        if not rows:
            raise JournalError(f"the log `{self._log}` is not prepared, or was removed - at {self.place}")
        return int(rows[0][0])

    def append(self, portions: Sequence[Portion]) -> None:
        """Add portions that follow one another and what is there, all of them in one transaction.

        Raises:
            JournalError: The database refuses, or another writer was here.
            MalformedBatchError: A record contradicts its type.
            UnreachableError: It is gone. Whether this was committed, `applied` tells when it is back.
        """
        codec, insertion, _ = self._open()
        rows = codec.rows(portions)
        before, last = portions[0].first - 1, portions[-1].last
        if len(rows) != last - before:
            raise JournalError(f"{len(rows)} events cannot be those from {before + 1} to {last} - at {self.place}")
        advance = self._said("UPDATE echoic_applied SET sequence = ? WHERE log = ? AND sequence = ?")
        with self._writing.use() as connection, transaction(connection):
            if connection.change(advance, (last, self._log, before)) != 1:
                raise JournalError(
                    f"the log `{self._log}` does not end at {before}: another writer has it, or it was changed by hand "
                    f"- at {self.place}"
                )
            connection.insert(insertion, rows)

    def read(self, after: int, upto: int, limit: int) -> Portion | None:
        """Return the first events after a sequence number and up to another, None if there are none.

        Raises:
            JournalError: The database refuses, or rows are missing.
            UnreachableError: It is gone.
        """
        codec, _, selection = self._open()
        try:
            rows = self._ask_reader(selection, (after, upto, limit))
        except UnreachableError:  # it may have been started anew since it was last asked
            rows = self._ask_reader(selection, (after, upto, limit))
        if not rows:
            return None
        if rows[0][0] != after + 1:
            raise JournalError(f"the log `{self._log}` has no row {after + 1} - at {self.place}")
        return codec.portion(rows)

    def close(self) -> None:
        """Let go of it; calls after that raise ClosedError."""
        self._writing.close()
        self._reading.close()

    def _ask_reader(self, selection: str, values: Sequence[Value]) -> Rows:
        with self._reading.use() as connection:
            return connection.ask(selection, values)

    def _open(self) -> tuple[RowCodec, Insertion, str]:
        if self._prepared is None:
            raise ClosedError(f"the database is not prepared for a log - at {self.place}")
        return self._prepared

    def _quoted(self, name: str) -> str:
        # Names have letters, digits and _ . / - alone: `columns` sees to it, and the quote is none of these.
        return f"{self._dialect.quote}{name}{self._dialect.quote}"

    def _said(self, statement: str) -> str:
        return statement.replace("?", self._dialect.mark)

    def _selection(self, insertion: Insertion) -> str:
        asked = [
            self._dialect.text_of_json.format(name) if kind == "json" else name
            for name, kind in zip(insertion.names, insertion.kinds, strict=True)
        ]
        return self._said(
            f"SELECT {', '.join(asked)} FROM {insertion.table} "  # noqa: S608 - quoted names, see `_quoted`
            "WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?"
        )

    @contextmanager
    def _alone(self, connection: Connection) -> Iterator[None]:
        """Keep others from making tables at the same time, which some databases answer with an error."""
        if self._dialect.lock:
            connection.ask(self._dialect.lock)
        try:
            yield
        finally:
            if self._dialect.unlock:
                connection.ask(self._dialect.unlock)

    def _make_books(self, connection: Connection) -> None:
        key, text, number = (self._dialect.types[kind] for kind in ("key", "text", "int64"))
        options = self._dialect.table_options
        connection.change(
            f"CREATE TABLE IF NOT EXISTS echoic_applied (log {key} PRIMARY KEY, sequence {number} NOT NULL){options}"
        )
        connection.change(
            f"CREATE TABLE IF NOT EXISTS echoic_columns (log {key} NOT NULL, field {key} NOT NULL, "
            f"name {key} NOT NULL, type {text} NOT NULL, PRIMARY KEY (log, field)){options}"
        )

    def _enter(self, connection: Connection, log: str, format: Format) -> list[Column]:
        """Write down the log and the columns that it shall have, and return these."""
        logs = {str(row[0]) for row in connection.ask("SELECT log FROM echoic_applied")}
        if log not in logs:
            alike = [each for each in logs if each.casefold() == log.casefold()]
            if alike or connection.ask(self._said(self._dialect.tables), (log,)):
                whose = f"is that of the log `{alike[0]}`" if alike else "is there already and is not that of a log"
                raise JournalError(f"the table `{log}` {whose} - at {self.place}")
            connection.change(self._said("INSERT INTO echoic_applied (log, sequence) VALUES (?, 0)"), (log,))
        known = connection.ask(self._said("SELECT field, name, type FROM echoic_columns WHERE log = ?"), (log,))
        named = {str(field): (str(name), str(kind)) for field, name, kind in known}
        columns = columns_of(format, named)
        enter = self._said("INSERT INTO echoic_columns (log, field, name, type) VALUES (?, ?, ?, ?)")
        for column in columns:
            if column.field.name not in named:
                connection.change(enter, (log, column.field.name, column.name, column.type))
        return columns

    def _make_table(self, connection: Connection, log: str, columns: Sequence[Column]) -> None:
        """Make the table, or the columns that it lacks."""
        types, table = self._dialect.types, self._quoted(log)
        wanted = {column.name: types[column.kind] for column in columns}
        there = {str(row[0]) for row in connection.ask(self._said(self._dialect.columns), (log,))}
        if not there:
            own = f"{SEQUENCE} {types['int64']} PRIMARY KEY, {SENDER} {types['text']} NOT NULL"
            listed = "".join(f", {self._quoted(name)} {kind}" for name, kind in wanted.items())
            made = f"CREATE TABLE {table} ({own}{listed}, {EXACT} {types['bytes']}){self._dialect.table_options}"
            connection.change(made)
            return
        for name, kind in wanted.items():
            if name not in there:
                connection.change(f"ALTER TABLE {table} ADD COLUMN {self._quoted(name)} {kind}")


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Do what is inside as one, or not at all."""
    connection.begin()
    try:
        yield
        connection.commit()
    except UnreachableError:
        raise  # with it went the transaction
    except BaseException:
        connection.rollback()
        raise
