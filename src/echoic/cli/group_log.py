"""`echoic group log`: what a group has ordered, from the table into which a replica has written it."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Final

from cyclopts import Parameter

from echoic.cli.echo import Shape
from echoic.cli.group_stamps import stamped
from echoic.cli.rendering import as_lines
from echoic.cli.tables import table_lines
from echoic.cli.where import AsJson, Flag
from echoic.errors import LocalError
from echoic.formats import Record
from echoic.replicas import Portion
from echoic.replicas.catalogue import open_log
from echoic.replicas.relational import RelationalDatabase

__all__ = ["log"]

PORTION_EVENTS: Final = 512
POLL_SECONDS: Final = 0.2
CELL_CHARACTERS_MAX: Final = 40

Row = tuple[int, str, Record]
"""Sequence, sender, event."""


def log(
    database: str,
    name: str,
    /,
    *,
    after: int = 0,
    limit: Annotated[int | None, Parameter(name=["--limit", "-n"])] = None,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative=(), show_default=False)] = False,
    csv: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Print a replicated log, in the order that all replicas have.

    The log is read from the database of one replica, also while that writes it; only what is committed is shown. The
    type need not be known here. In a table, long texts are cut; they are not in CSV and JSON.

    Try:
        echoic group log sqlite:ledger.db ledger
        echoic group log sqlite:ledger.db ledger --after 1000 --limit 20
        echoic group log postgresql://me@host/orders orders --follow --json | jq .amount

    Args:
        database: sqlite:PATH, postgresql://... or mariadb://...
        name: The log's name, which is that of the group and of the table.
        after: Begin behind this sequence number.
        limit: End after so many events.
        follow: Wait for events that are still to come, until Ctrl-C.
        csv: Print CSV with a header.
        as_json: Print lines of JSON.
    """
    if after < 0 or (limit is not None and limit < 0):
        raise LocalError(f"expected --after and --limit to be 0 or more, got {after} and {limit}")
    opened, _ = open_log(database, name)
    try:
        render = _lines(Shape(csv=csv, as_json=as_json)) if csv or as_json else _table()
        for rows in _read(opened, after, limit, follow=follow):
            sys.stdout.write(render(rows))
            sys.stdout.flush()
    except KeyboardInterrupt:
        if not follow:
            raise
    finally:
        opened.close()


def _read(database: RelationalDatabase, after: int, limit: int | None, *, follow: bool) -> Iterator[list[Row]]:
    """Yield what is there, some rows at a time, and what comes to be there."""
    left = sys.maxsize if limit is None else limit
    while left > 0:
        portion = database.read(after, sys.maxsize, min(left, PORTION_EVENTS))
        if portion is not None:
            after = portion.last
            left -= portion.batch.count
            yield list(_rows(portion))
        elif follow:
            time.sleep(POLL_SECONDS)
        else:
            return


def _rows(portion: Portion) -> Iterator[Row]:
    senders = [sender for sender, events in portion.senders for _ in range(events)]
    for number, (sender, event) in enumerate(zip(senders, portion.batch.events(), strict=True)):
        assert isinstance(event, Record)  # noqa: S101 - since no class was declared
        yield portion.first + number, sender, event


def _lines(shape: Shape) -> Callable[[list[Row]], str]:
    """Return what makes CSV or JSON of rows."""
    render = stamped(shape, metadata=True)
    return lambda rows: "".join(render(event, sequence, sender) for sequence, sender, event in rows)


def _table() -> Callable[[list[Row]], str]:
    """Return what makes a table of rows; the first of them have a header."""
    headed = False

    def lines(rows: list[Row]) -> str:
        nonlocal headed
        names = list(rows[0][2])
        render = [as_lines(name, CELL_CHARACTERS_MAX) for name in names]
        cells = [[sequence, sender, *(each(event).strip() for each in render)] for sequence, sender, event in rows]
        made = table_lines(["SEQUENCE", "SENDER", *(name.upper() for name in names)], cells)
        shown = made[1:] if headed else made
        headed = True
        return "".join(f"{line}\n" for line in shown)

    return lines
