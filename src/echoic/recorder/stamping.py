"""The time at which events were recorded, written into a field of theirs.

Sinks in other processes get events and nothing else. Who replays for them can have the recorded time put into a field
that the type has for it: nanoseconds since 1970 if that is a whole number of 64 bits, seconds if it is a float64. The
records are copied; the eight bytes are put where the sender's layout has them, in its byte order.
"""

import numpy

from echoic.errors import FormatError
from echoic.formats import Format, Kind, element_dtype
from echoic.wire import Batch

__all__ = ["check_stamp", "stamped"]

STAMP_BYTES = 8
KINDS = (Kind.INT, Kind.UINT, Kind.FLOAT)


def check_stamp(format: Format, name: str) -> None:
    """Make sure that a time can be written into a field.

    Raises:
        FormatError: There is no such field, or it is not a number of 64 bits.
    """
    field = format.member(name)
    if field.kind not in KINDS or field.size != STAMP_BYTES or field.dimensions or field.optional:
        raise FormatError(
            f"expected int64, uint64 or float64 for a time, got `{field.spelling}` - at `{format.name}.{name}`"
        )


def stamped(batch: Batch, name: str, time_ns: int) -> Batch:
    """Return the events with a time in one of their fields, which `check_stamp` has found fit.

    Raises:
        MalformedBatchError: The offsets of the batch are not those of records.
    """
    format = batch.format
    field = format.member(name)
    time = time_ns / 1e9 if field.kind is Kind.FLOAT else max(0, time_ns) if field.kind is Kind.UINT else time_ns
    stamp = numpy.array([time], element_dtype(field, format)).view(numpy.uint8)
    records = numpy.frombuffer(batch.records, numpy.uint8).copy()
    if format.variable:
        bounds = list(batch.bounds)
        starts = numpy.asarray(bounds[:-1], numpy.int64) + field.offset
        records[starts[:, None] + numpy.arange(STAMP_BYTES)] = stamp
        return Batch(format, batch.count, [records.data], bounds)
    records.reshape(batch.count, format.size)[:, field.offset : field.offset + STAMP_BYTES] = stamp
    return Batch(format, batch.count, [records.data])
