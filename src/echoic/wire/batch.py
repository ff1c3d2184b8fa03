"""Batches: many records of one type, which is what travels.

    0        8       12      16
    | token  | count | flags | count records of S bytes                                   all records alike in length
    | u64    | u32   | u32   | u32 offsets[count + 1] | zeros to 8 | records              flag 1: records differ

Offsets count from the first record; each record starts at a multiple of 8. The token names the layout of the records,
which is their sender's. A batch made from a NumPy array is the array; a batch that arrived is a view of the bytes that
arrived; nothing is decoded, converted or even looked at before somebody asks for it.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy
from numpy import ndarray

from echoic.errors import EncodeError, MalformedBatchError
from echoic.formats import Format, Registry, html_table, round_up
from echoic.wire import arrow, columns
from echoic.wire.bounds import Bounds, bounds_of, checked_bounds
from echoic.wire.convert import conversion_of
from echoic.wire.decode import Decoder, decoder_of
from echoic.wire.encode import encoder_of
from echoic.wire.frames import PADDING, Buffer

if TYPE_CHECKING:
    import pyarrow

__all__ = ["HEADER_BYTES", "Batch", "parse_batch"]

HEADER: Final = struct.Struct("<QII")
HEADER_BYTES: Final = 16
OFFSETS: Final = 1
SHOWN_EVENTS_MAX: Final = 10

unpack_header: Final = HEADER.unpack_from


class Batch(msgspec.Struct, eq=False, gc=False):
    """Records of one format. Iterating gives objects, `array` NumPy, `arrow` a RecordBatch, `buffers` the wire.

    Use `Batch.of` or `parse_batch` to make one. `pieces` are the records one after the other, cut anywhere, or None
    while they are still inside `payload`; `offsets` are where the records of a variable format begin and end: a NumPy
    array as received, not believed, or anything else, made here and right. It is a Struct because one is made for every
    received frame.
    """

    format: Format
    count: int
    pieces: list[Buffer] | None = None
    offsets: Bounds | None = None
    decoder: Decoder | None = None
    payload: Buffer | None = None
    whole: "Whole | None" = None
    start: int = 0

    @classmethod
    def of(cls, events: object, declared: object | None = None) -> "Batch":
        """Make a batch of a sequence of events, a NumPy structured array or an Arrow RecordBatch.

        Args:
            events: What to send.
            declared: The event type; may be left out for arrays, RecordBatches and non-empty sequences.

        Raises:
            EncodeError: A value does not fit its field.
            FormatError: `declared`, or the type of the events, is not an event type.
            IncompatibleTypesError: An array cannot be received as `declared`.
        """
        if isinstance(events, numpy.ndarray):
            return _of_array(events, declared)
        if arrow.is_record_batch(events):
            return _of_arrow(events, declared)
        if not isinstance(events, Sequence) or isinstance(events, str | bytes):
            raise EncodeError(f"expected a sequence of events, an array or a RecordBatch, got {type(events).__name__}")
        if declared is None:
            if not events:
                raise EncodeError("an empty sequence does not tell its event type; name it")
            declared = type(events[0])
        decoder = decoder_of(declared)
        pieces, bounds = encoder_of(decoder.binding.format).encode(events)
        return cls(decoder.binding.format, len(events), pieces, bounds, decoder)

    @classmethod
    def of_record(cls, record: bytes, format: Format) -> "Batch":
        """Make a batch of one record as it lies in memory, or came over a wire.

        Raises:
            MalformedBatchError: It has not the size of its type.
        """
        if not format.variable and len(record) != format.size:
            raise MalformedBatchError(f"a block of `{format.name}` has {len(record)} bytes, expected {format.size}")
        return cls(format, 1, [record], [0, len(record)] if format.variable else None)

    def parts(self, counts: Iterable[int]) -> "Iterator[Batch]":
        """Yield the records as neighbouring batches of so many each.

        Decoding or converting one of them decodes or converts all, once for all of them.
        """
        whole, start = Whole(self), 0
        for count in counts:
            yield Batch(self.format, count, None, None, self.decoder, None, whole, start)
            start += count

    def select(self, numbers: "ndarray[Any, numpy.dtype[Any]]") -> "Batch":
        """Return the records of these numbers, which ascend; the batch itself if that is all of them.

        Raises:
            MalformedBatchError: The offsets are not those of records.
        """
        if len(numbers) == self.count:
            return self
        records = self.records
        if not self.format.variable:
            rows = ndarray(self.count, f"V{self.format.size}", records)[numbers]
            return Batch(self.format, len(numbers), [rows.view(numpy.uint8).data], None, self.decoder)
        bounds = self.bounds
        picked = [records[bounds[number] : bounds[number + 1]] for number in numbers.tolist()]
        return Batch(self.format, len(picked), list(picked), bounds_of(picked), self.decoder)

    @property
    def records(self) -> memoryview:
        """The bytes of all records."""
        if self.pieces is None and self.whole is not None:
            pieces, self.offsets = self.whole.cut(self.start, self.count)
            self.pieces = pieces  # last, since another thread may look at a part at the same time
        if self.pieces is None:
            self.pieces = [_records_of(memoryview(self.payload or b""), self.format, self.count)]
        elif len(self.pieces) != 1:
            self.pieces = [b"".join(self.pieces)]
        return memoryview(self.pieces[0])

    @property
    def record_bytes(self) -> int:
        """How many bytes all records have."""
        return len(self.records) if self.format.variable else self.count * self.format.size

    @property
    def bounds(self) -> Sequence[int]:
        """Where each record begins in `records`, and where the last one ends.

        Raises:
            MalformedBatchError: The offsets are not those of records.
        """
        if not self.format.variable:
            return range(0, self.count * self.format.size + 1, self.format.size)
        size = len(self.records)
        bounds = checked_bounds(self.known_offsets, self.format.size, size)
        self.offsets = bounds
        return bounds

    @property
    def known_offsets(self) -> Bounds:
        """The bounds of the records, checked or not."""
        if self.offsets is None and self.whole is not None:
            _ = self.records  # which are cut out of the whole, with their bounds
        if self.offsets is None:
            return range(0, self.count * self.format.size + 1, self.format.size)
        return self.offsets

    @property
    def array(self) -> "numpy.ndarray[Any, Any]":
        """The records as a NumPy structured array: a view for fixed formats.

        Text and dynamic arrays of variable formats appear as Python objects, so those are copied.

        Raises:
            MalformedBatchError: A record contradicts the format.
        """
        if self.format.variable:
            return columns.object_array(self.format, self.records, self.bounds)
        if self.pieces is None and self.payload is not None:
            return ndarray(self.count, self.format.dtype, self.payload, HEADER_BYTES)
        return ndarray(self.count, self.format.dtype, self.records)

    @property
    def arrow(self) -> "pyarrow.RecordBatch":
        """The records as Arrow columns.

        Raises:
            MalformedBatchError: A record contradicts the format.
        """
        return arrow.to_record_batch(self.format, self.records, self.bounds)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the columns to any library that speaks Arrow's C interface: pandas, polars, DuckDB."""
        return arrow.c_stream(self.arrow, requested_schema)

    def to(self, declared: object, *, narrow: bool = False) -> "Batch":
        """Return these events as another type has them, by the rules of type extension.

        Equal layouts share the memory of the records; any other pair is converted.

        Raises:
            FormatError: `declared` is not an event type.
            IncompatibleTypesError: The types do not match.
            MalformedBatchError: A record contradicts the format.
            LimitExceededError: The result would be unreasonably large.
        """
        decoder = declared if isinstance(declared, Decoder) else decoder_of(declared)
        if self.whole is not None:
            return self.whole.to(decoder, narrow).part(self.start, self.count)
        target = decoder.binding.format
        if target.token == self.format.token:
            return Batch(target, self.count, self.pieces, self.offsets, decoder, self.payload)
        conversion = conversion_of(self.format, target, narrow=narrow)
        if conversion.identical:
            return Batch(target, self.count, self.pieces or [self.records], self.offsets, decoder)
        records, bounds = conversion.convert(self.records, self.known_offsets, self.count)
        return Batch(target, self.count, [records], bounds, decoder)

    def events(self) -> list[object]:
        """Return the records as objects.

        Raises:
            MalformedBatchError: A record contradicts the format.
        """
        if self.whole is not None:
            return self.whole.events()[self.start : self.start + self.count]
        decoder = self.decoder
        if decoder is None:
            decoder = self.decoder = decoder_of(self.format)
        return decoder.decode(self.records, self.known_offsets)

    def events_as(self, declared: object, *, narrow: bool = False) -> list[object]:
        """Return the records as objects of another type, as `to(declared).events()` does, without a batch between.

        Raises:
            EchoicError: As `to` and `events` do.
        """
        whole = self.whole
        if whole is None:
            return self.to(declared, narrow=narrow).events()
        return whole.events_as(declared, narrow)[self.start : self.start + self.count]

    def buffers(self) -> list[Buffer]:
        """Return the batch as it goes onto the wire, for one gathering write; records are not copied.

        Raises:
            MalformedBatchError: The offsets of a batch that was received as another type are not those of records.
        """
        if self.payload is not None:
            return [self.payload]
        token, count, pieces = self.format.token, self.count, self.pieces or [self.records]
        if not self.format.variable:
            return [HEADER.pack(token, count, 0), *pieces]
        offsets = numpy.asarray(self.bounds, "<u4").tobytes()
        return [HEADER.pack(token, count, OFFSETS) + offsets + PADDING[len(offsets) & 7], *pieces]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[object]:
        return iter(self.events())

    def __repr__(self) -> str:
        return f"<Batch of {self.count} {self.format.name}>"

    def _repr_html_(self) -> str:
        """Return the first and the last events as a table, for notebooks."""
        names = [field.name for field in self.format.fields]
        numbers = numpy.arange(self.count)
        if self.count > SHOWN_EVENTS_MAX:
            numbers = numpy.r_[: SHOWN_EVENTS_MAX // 2, self.count - SHOWN_EVENTS_MAX // 2 : self.count]
        events = self.select(numbers).to(self.format).events()
        rows = [
            [number, *(getattr(event, name) for name in names)]
            for number, event in zip(numbers.tolist(), events, strict=True)
        ]
        return html_table(repr(self), ["", *names], rows)


class Whole:
    """A batch that is handed out in parts, and what was made of it for one of them."""

    __slots__ = ("_batch", "_events", "_last", "_typed")

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._last: tuple[object, bool, list[object]] = (None, False, [])
        self._events: list[object] | None = None
        self._typed: dict[tuple[Decoder, bool], Whole] = {}

    def part(self, start: int, count: int) -> Batch:
        """Return some of the records."""
        batch = self._batch
        return Batch(batch.format, count, None, None, batch.decoder, None, self, start)

    def to(self, decoder: Decoder, narrow: bool) -> "Whole":
        """Return the records as another type has them.

        Raises:
            EchoicError: As `Batch.to` does.
        """
        typed = self._typed.get((decoder, narrow))
        if typed is None:
            typed = self._typed[decoder, narrow] = Whole(self._batch.to(decoder, narrow=narrow))
        return typed

    def events(self) -> list[object]:
        """Return all records as objects.

        Raises:
            MalformedBatchError: A record contradicts the format.
        """
        if self._events is None:
            self._events = self._batch.events()
        return self._events

    def events_as(self, declared: object, narrow: bool) -> list[object]:
        """Return all records as objects of another type, at once if the one who asked before wanted the same.

        Raises:
            EchoicError: As `Batch.to` and `Batch.events` do.
        """
        last, narrowed, events = self._last
        if last is not declared or narrowed is not narrow or last is None:
            decoder = declared if isinstance(declared, Decoder) else decoder_of(declared)
            events = self.to(decoder, narrow).events()
            self._last = (declared, narrow, events)
        return events

    def cut(self, start: int, count: int) -> tuple[list[Buffer], Bounds | None]:
        """Return the bytes of some of the records, and where each begins if they differ in length.

        Raises:
            MalformedBatchError: The offsets are not those of records.
        """
        bounds = self._batch.bounds[start : start + count + 1]
        piece = self._batch.records[bounds[0] : bounds[-1]]
        return [piece], [place - bounds[0] for place in bounds] if self._batch.format.variable else None


def parse_batch(payload: Buffer, registry: Registry) -> Batch:
    """Return the batch that a payload holds, as a view of it.

    Raises:
        MalformedBatchError: The payload is not a batch of the format it names.
        UnknownFormatError: The format it names was never described.
    """
    size = len(payload)
    if size < HEADER_BYTES:
        raise MalformedBatchError(f"a batch has {size} bytes, its header needs {HEADER_BYTES}")
    token, count, flags = unpack_header(payload)
    format = registry.find(token) or registry.get(token)
    if format.variable:
        return _parse_variable(payload, format, count, flags)
    if flags or size - HEADER_BYTES != count * format.size:
        raise MalformedBatchError(
            f"a batch of {count} `{format.name}` has {size - HEADER_BYTES} bytes of records and flags {flags}, "
            f"expected {count * format.size} and 0"
        )
    return Batch(format, count, None, None, None, payload)


def _parse_variable(payload: Buffer, format: Format, count: int, flags: int) -> Batch:
    start = _records_start(count)
    if flags != OFFSETS or start > len(payload):
        raise MalformedBatchError(
            f"a batch of {count} `{format.name}` has {len(payload)} bytes and flags {flags}, "
            f"expected at least {start} and {OFFSETS}"
        )
    offsets = ndarray(count + 1, "<u4", payload, HEADER_BYTES)
    return Batch(format, count, None, offsets, None, payload)


def _records_start(count: int) -> int:
    """Return where the records of a variable batch begin in its payload."""
    return HEADER_BYTES + round_up(4 * (count + 1))


def _records_of(payload: memoryview, format: Format, count: int) -> memoryview:
    return payload[_records_start(count) if format.variable else HEADER_BYTES :]


def _of_array(array: "numpy.ndarray[Any, Any]", declared: object | None) -> Batch:
    """Make a batch whose records are the array's memory, converted only when the declared type is another."""
    format = Format.of(array.dtype)
    flat = numpy.ascontiguousarray(array).reshape(-1)
    pieces: list[Buffer] = [flat.view(numpy.uint8).data] if flat.size else [b""]
    batch = Batch(format, flat.size, pieces)
    return batch if declared is None else batch.to(declared)


def _of_arrow(table: "pyarrow.RecordBatch", declared: object | None) -> Batch:
    decoder = decoder_of(declared if declared is not None else Format.of(table.schema))
    own, pieces, bounds = arrow.from_record_batch(table, decoder.binding.format)
    return Batch(own, table.num_rows, pieces, bounds).to(decoder)
