"""Which logs a database has, and what type their events are of, for whoever only reads them.

A log's table says what its columns are, and beside it stands for each field the type (`columns`, `relational`). From
that a type can be made whose events are read from the table as they are, without the program that wrote it:

    echoic_columns   ledger  account  text                 ledger{account: str?, amount: int64}
                     ledger  amount   int64         --->

Names of types, defaults and members of enumerations are not written down, so they are not in it; a text may be missing,
as it is in rows that are older than its column. Nothing is made that is not there.
"""

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from echoic.errors import AddressError, JournalError
from echoic.formats import Format, format_of_text
from echoic.replicas.columns import check_log_name
from echoic.replicas.relational import RelationalDatabase
from echoic.replicas.urls import database_of

__all__ = ["open_log"]

# A type, and not a name, which has a colon behind it.
TEXT: Final = re.compile(r"(?<!\w)text(?=[,}\[]|\Z)")
SHOWN_LOGS_MAX: Final = 8


def open_log(url: str, log: str) -> tuple[RelationalDatabase, Format]:
    """Return a database that is prepared to read a log that is there, and the type of its events.

    Raises:
        AddressError: The URL is none, or the name cannot be that of a log.
        JournalError: There is no such log, or the database refuses.
        LocalError: The database's package is not installed.
        UnreachableError: It does not answer.
    """
    check_log_name(log)
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and not Path(unquote(parts.path)).is_file():
        raise JournalError(f"there is no file `{unquote(parts.path)}`, so no log in it")
    database = database_of(url)
    if not isinstance(database, RelationalDatabase):
        raise AddressError(f"`{parts.scheme}` is not a database with tables")
    try:
        format = _format_of(database, log)
        database.prepare(log, format)
    except BaseException:
        database.close()
        raise
    return database, format


def _format_of(database: RelationalDatabase, log: str) -> Format:
    """Return the type of a log's events, as far as it is written down.

    Raises:
        JournalError: There is no such log, or what is written down is no type.
    """
    dialect = database._dialect  # noqa: SLF001 - a part of it that is of use only here
    with database._reading.use() as connection:  # noqa: SLF001 - as above
        books = connection.ask(dialect.tables.replace("?", dialect.mark), ("echoic_columns",))
        logs = [str(row[0]) for row in connection.ask("SELECT log FROM echoic_applied")] if books else []
        if log not in logs:
            known = ", ".join(sorted(logs)[:SHOWN_LOGS_MAX]) or "none"
            raise JournalError(f"there is no log `{log}`, known: {known} - at {database.place}")
        asked = f"SELECT field, name, type FROM echoic_columns WHERE log = {dialect.mark}"  # noqa: S608 - a mark
        fields = {str(name): (str(field), str(kind)) for field, name, kind in connection.ask(asked, (log,))}
        columns = [str(row[0]) for row in connection.ask(dialect.columns.replace("?", dialect.mark), (log,))]
    ordered = [fields[column] for column in columns if column in fields]
    return format_of_text(f"Logged{{{', '.join(f'{field}: {_declared(kind)}' for field, kind in ordered)}}}")


def _declared(kind: str) -> str:
    """Return a field's type as declarations have it."""
    if kind == "text":
        return "str?"
    return TEXT.sub("str", kind).replace("{", "Inner{")
