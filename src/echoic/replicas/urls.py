"""How databases are named.

    sqlite:orders.db                                           a file beside the program; `?durability=full`
    postgresql://user@host/database                            whatever libpq takes; `durability` as well
    mariadb://user:password@host:3306/database                 `?unix_socket=PATH`, `?ssl_ca=FILE`

`durability` is what a commit waits for. With `full` it is the disk: what is committed survives a power cut. With
`normal` a crash of whoever runs the database takes back the latest commits as a whole, rows and number together:

    SQLite        normal is the default: it runs in the program itself, whose end does no harm; only a power cut does,
                  and after that the group delivers again, from the number that is left
    PostgreSQL    full is the default: a server that crashes alone would forget what a log that lives on has counted,
                  and the log would have to end; opened again, it goes on from the number that is left
    MariaDB       has a setting of the server for it, innodb_flush_log_at_trx_commit, which is left as it is
"""

from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from echoic.errors import AddressError
from echoic.replicas.databases import Database, Durability

__all__ = ["database_of"]

KINDS: Final = "sqlite:PATH, postgresql://... or mariadb://..."


def database_of(url: str) -> Database:
    """Return the database that a URL names. It is not opened yet.

    Raises:
        AddressError: This is no such URL.
        LocalError: The package for this kind of database is not installed.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    match parts.scheme:
        case "sqlite":
            from echoic.replicas.sqlite import SQLiteDatabase

            path = unquote(parts.path) if not parts.netloc else ""
            if not path:
                raise AddressError(f"expected sqlite:PATH, got `{url}`")
            return SQLiteDatabase(path, _durability(options, "normal", only=True))
        case "postgresql" | "postgres":
            from echoic.replicas.postgresql import PostgreSQLDatabase

            durability = _durability(options, "full")
            rest = f"?{urlencode(options, quote_via=quote)}" if options else ""
            return PostgreSQLDatabase(f"postgresql://{parts.netloc}{parts.path}{rest}", durability)
        case "mariadb":
            from echoic.replicas.mariadb import mariadb_database_of

            return mariadb_database_of(parts, options)
        case _:
            raise AddressError(f"expected {KINDS}, got a URL that begins with `{parts.scheme or url[:20]}`")


def _durability(options: dict[str, str], usual: Durability, *, only: bool = False) -> Durability:
    """Take the durability out of the options of a URL; it may be the only one."""
    told = options.pop("durability", usual)
    if only and options:
        raise AddressError(f"unknown option `{next(iter(options))}` of a database, expected durability")
    if told == "full":
        return "full"
    if told == "normal":
        return "normal"
    raise AddressError(f"the durability of a database is `{told}`, expected full or normal")
