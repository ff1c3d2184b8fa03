"""A log in PostgreSQL: rows go in by binary COPY, which is the fastest way there is.

`durability` is the session's `synchronous_commit`. A transaction is COPY between an update and a commit. JSON is kept
as text (`json`), so that what comes back is what went in; `jsonb` would put numbers in another form and refuse NUL.

It needs psycopg 3, which `echoic[postgresql]` brings along.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from echoic.errors import JournalError, LocalError, UnreachableError
from echoic.replicas.databases import Durability
from echoic.replicas.relational import Dialect, Insertion, RelationalDatabase
from echoic.replicas.rows import Value

__all__ = ["PostgreSQLDatabase"]

CONNECT_SECONDS_MAX: Final = 10
SILENT_SECONDS_MAX: Final = 30
ANSWER_SECONDS_MAX: Final = 60
LOCK: Final = 0x6563686F  # "echo": what the advisory locks of echoic are called
# Classes and codes of SQLSTATE after which trying again helps: the connection, conflicts, too many connections, a
# server that ends or begins, a statement that took too long.
PASSING: Final = ("08", "40", "53300", "57P", "57014", "55P03")
NUL, SHOWN_NUL = "\0", "\u2400"
COPIED: Final = {
    "int8": "int2",
    "int16": "int2",
    "int32": "int4",
    "int64": "int8",
    "uint8": "int2",
    "uint16": "int4",
    "uint32": "int8",
    "uint64": "numeric",
    "float32": "float4",
    "float64": "float8",
    "bool": "bool",
    "text": "text",
    "bytes": "bytea",
    "json": "text",  # a column of JSON is copied as the text that it is
}


def _no_text(values: Sequence[Any]) -> dict[int, Value]:
    """Find texts with NUL."""
    return {place: text.replace(NUL, SHOWN_NUL) for place, text in enumerate(values) if text and NUL in text}


DIALECT: Final = Dialect(
    name="PostgreSQL",
    mark="%s",
    quote='"',
    types={
        **COPIED,
        "uint64": "numeric(20, 0)",
        "json": "json",
        "key": "text",
    },
    table_options="",
    tables="SELECT 1 FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = ?",
    columns="SELECT column_name FROM information_schema.columns "
    "WHERE table_schema = current_schema() AND table_name = ?",
    misfits={"text": _no_text},
    lock=f"SELECT pg_advisory_lock({LOCK})",
    unlock=f"SELECT pg_advisory_unlock({LOCK})",
    text_of_json="{}::text",
)


class PostgreSQLDatabase(RelationalDatabase):
    """A log in a database of PostgreSQL.

    Args:
        url: As libpq takes it: `postgresql://user@host/database`.
        durability: `full` waits for the disk at each commit; with `normal`, a crash of the server takes back commits of
            the last second, which ends a log that has counted them.

    Raises:
        LocalError: psycopg is not installed.
    """

    def __init__(self, url: str, durability: Durability = "full") -> None:
        try:
            import psycopg  # noqa: F401 - whether it is there
        except ImportError as error:
            raise LocalError(f"PostgreSQL needs psycopg 3 ({error}): pip install 'echoic[postgresql]'") from error
        parts = urlsplit(url)
        place = f"PostgreSQL database {parts.path.lstrip('/')}{f' on {parts.hostname}' if parts.hostname else ''}"
        super().__init__(DIALECT, place, lambda: PostgreSQLConnection(url, durability, place))


class PostgreSQLConnection:
    """A connection to a server.

    Raises:
        JournalError: The server refuses.
        UnreachableError: Nobody answers.
    """

    def __init__(self, url: str, durability: Durability, place: str) -> None:
        import psycopg

        self._errors = (psycopg.Error, OSError)
        self._place = place
        with self._translated():
            self._connection = psycopg.connect(
                url,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS_MAX,
                tcp_user_timeout=SILENT_SECONDS_MAX * 1000,
                application_name="echoic",
            )
        try:
            self._set_up(durability)
        except BaseException:
            self._connection.close()
            raise

    def ask(self, statement: str, values: Sequence[Value] = ()) -> Sequence[Sequence[Any]]:
        """Return the rows that a statement gives.

        Raises:
            JournalError: The server refuses.
            UnreachableError: It is gone.
        """
        with self._translated():
            found = self._connection.execute(statement.encode(), tuple(values), binary=True)
            return found.fetchall()

    def change(self, statement: str, values: Sequence[Value] = ()) -> int:
        """Run a statement and return how many rows it changed.

        Raises:
            JournalError: The server refuses.
            UnreachableError: It is gone.
        """
        with self._translated():
            return self._connection.execute(statement.encode(), tuple(values) or None).rowcount

    def insert(self, insertion: Insertion, rows: Sequence[Sequence[Any]]) -> None:
        """Copy rows in.

        Raises:
            JournalError: The server refuses, such as for a full disk.
            UnreachableError: It is gone.
        """
        statement = f"COPY {insertion.table} ({', '.join(insertion.names)}) FROM STDIN (FORMAT BINARY)"
        with self._translated(), self._connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            copy.set_types([COPIED[kind] for kind in insertion.kinds])
            write = copy.write_row
            for row in rows:
                write(row)

    def begin(self) -> None:
        """Begin a transaction.

        Raises:
            JournalError: The server refuses.
            UnreachableError: It is gone.
        """
        self.change("BEGIN")

    def commit(self) -> None:
        """Commit it.

        Raises:
            JournalError: The server refuses.
            UnreachableError: It is gone; whether it has committed is not known.
        """
        self.change("COMMIT")

    def rollback(self) -> None:
        """Take it back.

        Raises:
            UnreachableError: The server is gone, and the transaction with it.
        """
        self.change("ROLLBACK")

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def _set_up(self, durability: Durability) -> None:
        self.change(f"SET synchronous_commit = {'on' if durability == 'full' else 'off'}")
        self.change(f"SET statement_timeout = '{ANSWER_SECONDS_MAX}s'")
        (row,) = self.ask("SHOW server_encoding")
        if row[0] != "UTF8":
            raise JournalError(f"the database has the encoding {row[0]}, a log needs UTF8 - at {self._place}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            told = " ".join(str(error).split()) or type(error).__name__
            kind = UnreachableError if _passes(error) else JournalError
            raise kind(f"{told} - at {self._place}") from error


def _passes(error: Exception) -> bool:
    """Tell whether an error is of the connection or of the moment, and not of what was asked."""
    import psycopg

    state: str | None = getattr(error, "sqlstate", None)
    if state is not None:
        return state.startswith(PASSING)
    # Without a state it was not the server who said it, or it said it before there was a session.
    return isinstance(error, psycopg.OperationalError | OSError)
