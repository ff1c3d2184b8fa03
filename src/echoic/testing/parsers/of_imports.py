"""Parsers of what a recorder imports: files of other programs, whose events have a type that nobody has declared.

Each is made a journal by `import_file` itself, in memory. Parquet and Arrow files are not here: their bytes are Arrow's
to read.
"""

import io
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from mcap.writer import CompressionType, IndexType, Writer

from echoic.errors import EchoicError
from echoic.formats import Format
from echoic.recorder.importing import Contents, import_file
from echoic.recorder.json_events import events_as_json, events_of_json, format_of_json_schema, json_schema_of
from echoic.testing.parsers.of_files import fresh_folder, written
from echoic.testing.parsers.parser import Target
from echoic.testing.parsers.repairs import twist_json
from echoic.testing.samples import Everything, Mean, sample_events
from echoic.wire import Batch

__all__ = ["CSV", "JSON", "MCAP"]

LINES: Final = (
    b'at.x,at.y,symbol,samples\n1.5,2.0,"IBM","[1.0,2.0]"\n,,"",\n',
    b"price,volume,live\n75.5,100,true\nnan,-1,false\ninf,9223372036854775807,true\n",
    b"_at,b c,b c\n1,2,3\n",
    b'symbol,price,volume,venue,side,note\n"IBM",75.5,100,7,1,\n"HAL",1e3,-5,0,2,"x ""y"""\n',
    b"at,average_velocity\n1.5,2.5\n\n3,4\n",
)
STRANGE_SCHEMA: Final = (
    b'{"title":"Pose","type":"object","required":["x"],"properties":{"x":{"type":"number"},"n":{"type":"integer"},'
    b'"name":{"type":"string"},"data":{"type":"string","contentEncoding":"base64"},"on":{"type":"boolean"},'
    b'"at":{"type":"object","properties":{"s":{"type":"integer"}}},"row":{"type":"array","items":{"type":"number"},'
    b'"minItems":2,"maxItems":2},"list":{"type":"array","items":{"type":"string"}}}}'
)
STRANGE_EVENT: Final = (
    b'{"x":"NaN","n":1,"name":"a","data":"eHk=","on":true,"at":{"s":3},"row":[1,2.5],"list":["a","b"]}'
)


def _feed_file(data: bytes, contents: Contents) -> None:
    with fresh_folder() as folder:
        import_file(written(data), folder, "c", contents=contents)


def _feed_csv(data: bytes) -> None:
    """Read lines of a type that is guessed, and of one that is declared."""
    for declared in (None, Everything):
        try:
            _feed_file(data, Contents("csv", declared=declared))
        except EchoicError:
            continue


def _csv_seeds() -> Iterator[bytes]:
    return iter(LINES)


def _feed_json(data: bytes) -> None:
    """Take the first line for a schema, the others for its events; and for events of a type that is declared."""
    first, *rest = data.split(b"\n")
    _feed_events(rest or [first], Format.of(Everything))
    _feed_events(rest, format_of_json_schema(first, "Record"))


def _feed_events(texts: list[bytes], format: Format) -> None:
    for text in texts:
        try:
            events_as_json(events_of_json([text], format))
        except EchoicError:
            continue


def _json_seeds() -> Iterator[bytes]:
    yield STRANGE_SCHEMA + b"\n" + STRANGE_EVENT
    for events in sample_events():
        batch = Batch.of(events)
        yield b"\n".join([json_schema_of(batch.format), *events_as_json(batch)])
        yield b"\n".join(events_as_json(batch))


def _repair_json(data: bytes, draw: Random) -> bytes:
    """Return lines of which some have a few other values."""
    return b"\n".join(twist_json(line, draw) if draw.random() < 0.3 else line for line in data.split(b"\n"))


def _feed_mcap(data: bytes) -> None:
    _feed_file(data, Contents("mcap"))


def _mcap_seeds() -> Iterator[bytes]:
    for compression in (None, CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD):
        yield _mcap_file(STRANGE_SCHEMA, [STRANGE_EVENT] * 2, compression)
    means = Batch.of([Mean(at=1.0, average_velocity=2.0), Mean(at=2.0, average_velocity=3.0)])
    yield _mcap_file(json_schema_of(means.format), events_as_json(means), None, source="7", first="4294967295")


def _mcap_file(schema: bytes, texts: list[bytes], compression: CompressionType | None, **about: str) -> bytes:
    """Return a file with little beside its messages, since what is short is mutated where it matters."""
    stream = io.BytesIO()
    writer: Any = Writer(
        stream,
        compression=compression or CompressionType.NONE,
        use_chunking=compression is not None,
        index_types=IndexType.NONE,
        repeat_channels=False,
        repeat_schemas=False,
        use_statistics=False,
        use_summary_offsets=False,
        enable_crcs=False,
    )
    writer.start()
    channel = writer.register_channel("t", "json", writer.register_schema("Pose", "jsonschema", schema), about)
    for number, text in enumerate(texts):
        writer.add_message(channel, 5, text, 5, number)
    writer.finish()
    return stream.getvalue()


CSV: Final = Target(_feed_csv, _csv_seeds)
JSON: Final = Target(_feed_json, _json_seeds, _repair_json)
MCAP: Final = Target(_feed_mcap, _mcap_seeds)
