"""Events as rows of a table, and back, exactly.

    batch -> objects -> one tuple for each field -> what the database holds of them -> rows
                                                    |
                                                    what it cannot hold: the row has the event itself as well

No database holds everything. SQLite has no NaN and no negative zero, and integers of 63 bits; MariaDB has no infinity;
text in PostgreSQL has no NUL. Such a value is stored as the nearest thing that the column can have, for those who read
it with SQL, and then the column `exact`, which is NULL in nearly every row, has the event as it travelled. So what is
read back is what was delivered, whatever it was, and no event can bring a log to its end.

Values are looked at by the column, not one by one, so that a check which finds nothing costs next to nothing.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any, Final, TypeAlias

import msgspec

from echoic.errors import EchoicError, JournalError
from echoic.formats import MISSING, Field, Format, Kind, Registry, round_up
from echoic.recorder.json_events import plain_value, value_of
from echoic.replicas.columns import Column
from echoic.replicas.portions import Portion
from echoic.wire import Batch, decoder_of, parse_batch

__all__ = ["Misfits", "RowCodec", "Value"]

Value: TypeAlias = bool | int | float | Decimal | str | bytes | None
Misfits: TypeAlias = Callable[[Sequence[Any]], dict[int, Value]]
"""From the values of a column to those that the database cannot hold: by their places, what to store instead."""

Row: TypeAlias = tuple[Value, ...]
Reader: TypeAlias = Callable[[Any], object]

JSON: Final = msgspec.json.Encoder()
OWN: Final = 2  # sequence and sender are before the fields


class RowCodec:
    """Makes rows of portions, and portions of rows: sequence, sender, the fields in their order, the exact event."""

    def __init__(self, format: Format, columns: Sequence[Column], misfits: Mapping[str, Misfits]) -> None:
        self._decoder = decoder_of(format)
        self._format = format
        self._columns = columns
        self._misfits = [misfits.get(column.kind) for column in columns]
        self._get = _getter([field.name for field in format.fields])
        self._readers = [_reader(column, default) for column, default in zip(columns, _defaults(format), strict=True)]

    def rows(self, portions: Iterable[Portion]) -> list[Row]:
        """Return the rows of portions.

        Raises:
            MalformedBatchError: A record contradicts its type.
        """
        rows: list[Row] = []
        for portion in portions:
            rows += self._rows(portion.to(self._decoder))
        return rows

    def portion(self, rows: Sequence[Sequence[Any]]) -> Portion:
        """Return the portion of rows, of which there is at least one.

        Raises:
            JournalError: Rows are missing, or hold what the log did not write.
        """
        first = int(rows[0][0])
        for place, row in enumerate(rows):
            if row[0] != first + place:
                raise JournalError(f"the table of the log has no row {first + place}, the next one is {row[0]}")
        senders = tuple((str(name), len(list(run))) for name, run in groupby(row[1] for row in rows))
        try:
            return Portion(first, senders, Batch.of([self._event(row) for row in rows], self._format))
        except (EchoicError, msgspec.MsgspecError, AttributeError, TypeError, ValueError) as error:
            raise JournalError(
                f"the rows {first} to {first + len(rows) - 1} hold what the log did not write: {error}"
            ) from error

    def _rows(self, portion: Portion) -> Iterator[Row]:
        batch = portion.batch
        values = list(zip(*map(self._get, batch.events()), strict=True))
        exact: list[Value] = [None] * batch.count
        for place, (column, misfits) in enumerate(zip(self._columns, self._misfits, strict=True)):
            values[place] = _stored(column, values[place])
            found = misfits(values[place]) if misfits is not None else None
            if found:
                values[place] = tuple(found.get(at, value) for at, value in enumerate(values[place]))
                for at in found:
                    exact[at] = _exact(batch, at)
        senders = [sender for sender, events in portion.senders for _ in range(events)]
        return zip(range(portion.first, portion.last + 1), senders, *values, exact, strict=True)

    def _event(self, row: Sequence[Any]) -> object:
        end = OWN + len(self._columns)
        if row[end] is not None:
            return self._exactly(bytes(row[end]), row[OWN:end])
        return self._decoder.binding.make(*map(_read, self._readers, row[OWN:end]))

    def _exactly(self, told: bytes, row: Sequence[Any]) -> object:
        """Return an event that was stored as it travelled; fields that its type had not yet are in their columns."""
        batch, format = _travelled(told)
        (event,) = batch.events()
        values = [
            getattr(event, column.field.name) if column.field.name in format.by_name else read(value)
            for column, read, value in zip(self._columns, self._readers, row, strict=True)
        ]
        return self._decoder.binding.make(*values)


def _read(read: Reader, value: Any) -> object:  # noqa: ANN401 - whatever a driver gives
    return read(value)


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    get = operator.attrgetter(*names)
    return get if len(names) > 1 else lambda event: (get(event),)


def _stored(column: Column, values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the values of a field in the words that databases have."""
    field = column.field
    if column.kind == "json":
        return tuple([JSON.encode(plain_value(value, field)).decode() for value in values])
    if field.kind is Kind.CHAR:
        return tuple([value.rstrip(b"\0").decode("latin-1") for value in values])
    return tuple(values)


def _reader(column: Column, default: object) -> Reader:
    """Return what makes a field's value of a column's; NULL is in rows that are older than the column."""
    read = _value_reader(column)
    return lambda value: default if value is None else read(value)


def _value_reader(column: Column) -> Reader:
    field = column.field
    if column.kind == "json":
        return lambda text: value_of(msgspec.json.decode(text), field, column.name)
    if field.kind is Kind.CHAR:
        width = 0 if field.dimensions else 1
        return lambda text: text.encode("latin-1").ljust(width, b"\0")
    match column.kind:
        case "bool":
            return bool
        case "uint64":
            return int
        case "bytes":
            return bytes
        case _:
            return lambda value: value


def _defaults(format: Format) -> list[object]:
    """Return for each field what it is where nothing was said: nothing if it may be, its default, or zero."""
    size = round_up(format.size) if format.variable else format.size
    (empty,) = Batch.of_record(bytes(size), format).events()
    return [_default(field, getattr(empty, field.name)) for field in format.fields]


def _default(field: Field, empty: object) -> object:
    if field.optional:
        return None
    return empty if field.default is MISSING or field.dimensions else field.default


def _exact(batch: Batch, place: int) -> bytes:
    """Return one event of a batch as it travels, with its descriptor."""
    bounds = batch.bounds
    record = Batch.of_record(bytes(batch.records[bounds[place] : bounds[place + 1]]), batch.format)
    return msgspec.msgpack.encode((batch.format.descriptor, b"".join(record.buffers())))


def _travelled(told: bytes) -> tuple[Batch, Format]:
    descriptor, payload = msgspec.msgpack.decode(told, type=tuple[bytes, bytes])
    registry = Registry(formats_max=1)
    format = registry.add_descriptor(descriptor)
    return parse_batch(payload, registry), format
