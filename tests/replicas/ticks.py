"""Events whose content follows from their number, who delivers them, and what is in a table afterwards."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import echoic
from echoic.replicas import Portion, ReplicatedLog
from echoic.wire import Batch

__all__ = ["Stamped", "Tick", "deliver", "query", "sender_of", "tick", "ticks", "wrong_rows"]


@echoic.event
class Tick:
    number: int
    price: float
    symbol: str
    note: str | None
    payload: bytes
    up: bool


@dataclass(frozen=True)
class Stamped:
    sequence: int
    sender: str


def tick(number: int) -> Tick:
    """Return the event of a number; some of them have what a database has not."""
    price = float("inf") if number % 97 == 0 else -0.0 if number % 89 == 0 else number / 7
    text = f"symbol {number}\0" if number % 83 == 0 else f"symbol {number}"
    note = None if number % 3 else f"note 'of' \"{number}\" \\ %s ?"
    return Tick(number, price, text, note, number.to_bytes(8, "little") * (number % 5), number % 2 == 0)


def sender_of(number: int) -> str:
    """Return who sends an event: each member some."""
    return f"member-{number // 10 % 3}"


def deliver(log: ReplicatedLog, first: int, last: int, batch: int = 10) -> None:
    """Deliver events as a group does: each batch from one sender, so cut where the sender changes."""
    number = first
    while number <= last:
        end = min(last, number + batch - 1, (number // 10 + 1) * 10 - 1)
        events = [tick(each) for each in range(number, end + 1)]
        log.deliver(Batch.of(events, Tick), Stamped(number, sender_of(number)))
        number = end + 1


def wrong_rows(log: ReplicatedLog, last: int) -> str:
    """Return what is wrong with a log that should have all events up to a number, empty if nothing is."""
    number = 0
    for number, found in enumerate(log.read(), 1):
        wanted = tick(number)
        same = found.event == wanted and str(found.event) == str(wanted)  # which tells zeros apart
        if found.sequence != number or found.sender != sender_of(number) or not same:
            return f"event {number} is {found}, expected {wanted} of {sender_of(number)}"
    return "" if number == last else f"there are {number} events, expected {last}"


def ticks(first: int, last: int) -> Portion:
    """Return these events as a log is given them, all of one sender."""
    return Portion(first, (("n", last - first + 1),), Batch.of([tick(each) for each in range(first, last + 1)], Tick))


def query(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement as anybody may, without the log, and return its rows."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        with closing(sqlite3.connect(Path(unquote(parts.path)), isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()
    return list(_asked_server(url, statement))


def _asked_server(url: str, statement: str) -> Iterator[tuple[Any, ...]]:
    parts = urlsplit(url)
    if parts.scheme == "postgresql":
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            yield from cursor.fetchall() if cursor.description else ()
        return
    import pymysql

    options = {name: value for name, (value,) in parse_qs(parts.query).items()}
    with (
        closing(
            pymysql.connect(user=parts.username, database=parts.path[1:], autocommit=True, **options)
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
        yield from cursor.fetchall()
