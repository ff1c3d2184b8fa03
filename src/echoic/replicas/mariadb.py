"""A log in MariaDB (InnoDB): rows go in by inserts of many rows, statements of 1 MB at most.

Sessions are strict, so that nothing is ever cut off or put right in silence. Floats of 32 bits are DOUBLE, because a
FLOAT is told with six digits; JSON is LONGTEXT, on which the functions for JSON work, since the type of that name
refuses what is nested deeper than 32. When a commit waits for the disk is a setting of the server.

It needs PyMySQL, which `echoic[mariadb]` brings along.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import SplitResult, unquote

import numpy

from echoic.errors import AddressError, EchoicError, JournalError, LocalError, UnreachableError
from echoic.replicas.relational import Dialect, Insertion, RelationalDatabase
from echoic.replicas.rows import Value

__all__ = ["MariaDBDatabase", "mariadb_database_of"]

CONNECT_SECONDS_MAX: Final = 10
ANSWER_SECONDS_MAX: Final = 60
PACKET_BYTES_MAX: Final = 1 << 30  # what the protocol can have; the server has a limit of its own
OPTIONS: Final = frozenset(("unix_socket", "ssl_ca"))
# Too many connections, a server that ends, a table that changes, locks, and 2000 and above: the client's own errors,
# most of which are that the server is gone.
PASSING: Final = frozenset((1020, 1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1205, 1213, 1927))
CLIENT_ERRORS: Final = range(2000, 3000)
WIDE: Final = ("text", "bytes", "json")
EXPANSION: Final = 8  # at most: four bytes for a character, each of them escaped
PACKET_BYTES_SPARED: Final = 64 * 1024  # for names and numbers
TEXT: Final = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


def _no_float(values: Sequence[Any]) -> dict[int, Value]:
    """Find NaN and infinities, which there are not, and negative zero, which becomes zero."""
    numbers = numpy.asarray(values, numpy.float64)
    found = ~numpy.isfinite(numbers) | ((numbers == 0) & numpy.signbit(numbers))
    return {place: None if values[place] else 0.0 for place in numpy.flatnonzero(found).tolist()}


DIALECT: Final = Dialect(
    name="MariaDB",
    mark="%s",
    quote="`",
    types={
        **{f"int{bits}": kind for bits, kind in ((8, "TINYINT"), (16, "SMALLINT"), (32, "INT"), (64, "BIGINT"))},
        **{
            f"uint{bits}": f"{kind} UNSIGNED"
            for bits, kind in ((8, "TINYINT"), (16, "SMALLINT"), (32, "INT"), (64, "BIGINT"))
        },
        **dict.fromkeys(("float32", "float64"), "DOUBLE"),
        **dict.fromkeys(("text", "json"), f"LONGTEXT {TEXT}"),
        "bool": "BOOLEAN",
        "bytes": "LONGBLOB",
        "key": f"VARCHAR(128) {TEXT}",
    },
    table_options=" ENGINE=InnoDB",
    tables="SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?",
    columns="SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ?",
    misfits={"float32": _no_float, "float64": _no_float},
    lock=f"SELECT GET_LOCK('echoic', {ANSWER_SECONDS_MAX - 5})",
    unlock="SELECT RELEASE_LOCK('echoic')",
)


class MariaDBDatabase(RelationalDatabase):
    """A log in a database of MariaDB.

    Args:
        place: Where it is, for messages.
        options: As `pymysql.connect` takes them.

    Raises:
        LocalError: PyMySQL is not installed.
    """

    def __init__(self, place: str, options: Mapping[str, object]) -> None:
        try:
            import pymysql  # type: ignore[import-untyped] # noqa: F401 - whether it is there; it ships no types
        except ImportError as error:
            raise LocalError(f"MariaDB needs PyMySQL ({error}): pip install 'echoic[mariadb]'") from error
        super().__init__(DIALECT, place, lambda: MariaDBConnection(options, place))


def mariadb_database_of(url: SplitResult, options: Mapping[str, str]) -> MariaDBDatabase:
    """Return the database that a URL names.

    Raises:
        AddressError: It names no database, or has options that are not known.
        LocalError: PyMySQL is not installed.
    """
    name = unquote(url.path.lstrip("/"))
    unknown = sorted(set(options) - OPTIONS)
    if not name or unknown:
        wrong = f"has an unknown option `{unknown[0]}`" if unknown else "names no database"
        raise AddressError(
            f"the URL of a MariaDB database {wrong}, expected mariadb://user@host/database?unix_socket=PATH"
        )
    try:
        port = url.port or 3306
    except ValueError as error:
        raise AddressError(f"the URL of a MariaDB database has a port that is none: {error}") from error
    given: dict[str, object] = {"host": url.hostname or "localhost", "port": port, "database": name, **options}
    if url.username is not None:
        given["user"] = unquote(url.username)
    if url.password is not None:
        given["password"] = unquote(url.password)
    return MariaDBDatabase(f"MariaDB database {name} on {options.get('unix_socket', given['host'])}", given)


class MariaDBConnection:
    """A connection to a server.

    Raises:
        JournalError: The server refuses.
        UnreachableError: Nobody answers.
    """

    def __init__(self, options: Mapping[str, object], place: str) -> None:
        import pymysql

        self._errors = (pymysql.MySQLError, OSError)
        self._broken = pymysql.InterfaceError
        self._place = place
        with self._translated():
            self._connection = pymysql.connect(
                defer_connect=True,
                charset="utf8mb4",
                autocommit=True,
                sql_mode="STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION",
                connect_timeout=CONNECT_SECONDS_MAX,
                read_timeout=ANSWER_SECONDS_MAX,
                write_timeout=ANSWER_SECONDS_MAX,
                max_allowed_packet=PACKET_BYTES_MAX,
                **options,
            )
            self._connection.connect(_reached(options.get("unix_socket")))
        try:
            self._packet_bytes_max = int(self.ask("SELECT @@max_allowed_packet")[0][0])
        except EchoicError:
            self.close()
            raise

    def ask(self, statement: str, values: Sequence[Value] = ()) -> Sequence[Sequence[Any]]:
        """Return the rows that a statement gives.

        Raises:
            JournalError: The server refuses.
            UnreachableError: It is gone.
        """
        with self._translated(), self._connection.cursor() as cursor:
            cursor.execute(statement, tuple(values) or None)
            found: Sequence[Sequence[Any]] = cursor.fetchall()
            return found

    def change(self, statement: str, values: Sequence[Value] = ()) -> int:
        """Run a statement and return how many rows it changed.

        Raises:
            JournalError: The server refuses.
            UnreachableError: It is gone.
        """
        with self._translated(), self._connection.cursor() as cursor:
            return int(cursor.execute(statement, tuple(values) or None))

    def insert(self, insertion: Insertion, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, many in each statement.

        Raises:
            JournalError: The server refuses, such as for a full disk.
            UnreachableError: It is gone.
        """
        self._check_sizes(insertion, rows)
        marks = ", ".join(["%s"] * len(insertion.names))
        statement = f"INSERT INTO {insertion.table} ({', '.join(insertion.names)}) VALUES ({marks})"  # noqa: S608 - quoted
        with self._translated(), self._connection.cursor() as cursor:
            cursor.executemany(statement, rows)

    def begin(self) -> None:
        """Begin a transaction.

        Raises:
            JournalError: The server refuses.
            UnreachableError: It is gone.
        """
        with self._translated():
            self._connection.begin()

    def commit(self) -> None:
        """Commit it.

        Raises:
            JournalError: The server refuses.
            UnreachableError: It is gone; whether it has committed is not known.
        """
        with self._translated():
            self._connection.commit()

    def rollback(self) -> None:
        """Take it back.

        Raises:
            UnreachableError: The server is gone, and the transaction with it.
        """
        with self._translated():
            self._connection.rollback()

    def close(self) -> None:
        """Close it."""
        try:
            self._connection.close()
        except self._errors:
            pass  # it was broken

    def _check_sizes(self, insertion: Insertion, rows: Sequence[Sequence[Any]]) -> None:
        """Refuse a row that no statement can have, at which the server would hang up without a word."""
        wide = [place for place, kind in enumerate(insertion.kinds) if kind in WIDE]
        if EXPANSION * sum(max(len(row[place] or "") for row in rows) for place in wide) < self._packet_bytes_max // 2:
            return
        for row in rows:
            size = sum(2 * len(_raw(row[place])) for place in wide)
            if size + PACKET_BYTES_SPARED > self._packet_bytes_max:
                raise JournalError(
                    f"event {row[0]} needs a statement of {size} bytes, the server's max_allowed_packet is "
                    f"{self._packet_bytes_max} - at {self._place}"
                )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
            passes = isinstance(error, OSError | self._broken) or code in PASSING or code in CLIENT_ERRORS
            kind = UnreachableError if passes else JournalError
            raise kind(f"{error.args[-1] if error.args else error} - at {self._place}") from error


def _reached(path: object) -> socket.socket | None:
    """Return a Unix socket that is connected; PyMySQL would leave its own one open where nobody listens."""
    if not isinstance(path, str):
        return None
    reached = socket.socket(socket.AF_UNIX)
    try:
        reached.settimeout(CONNECT_SECONDS_MAX)
        reached.connect(path)
    except OSError:
        reached.close()
        raise
    return reached


def _raw(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""
