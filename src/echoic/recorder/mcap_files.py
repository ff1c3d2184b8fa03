"""MCAP files: one message for each event, as JSON, which Foxglove and many other programs show.

    MCAP                    here
    topic                   the channel's name
    channel                 one for each source and type; its metadata has `source`, `partition` and `first`
    schema                  encoding `jsonschema`: the type, with its layout as text and its descriptor
    message                 encoding `json`
    log_time, publish_time  when the event was recorded
    sequence                the number of the event among those of its source, modulo 2**32, which is all it can hold

`first` is the number of the channel's first message in full, from which the others are found again. A type that changes
goes on with a schema of its own, as in the journal; nothing is converted. Files with the schemas of ROS or Protocol
Buffers would need their compilers at both ends, and could not say what a descriptor says.

Files of strangers are read if their messages are JSON with a JSON Schema. Neighbouring messages of one channel and one
time become one batch.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from echoic.errors import EchoicError, JournalError, LocalError
from echoic.formats import Format, shown
from echoic.recorder.json_events import events_as_json, events_of_json, format_of_json_schema, json_schema_of
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.recorder.reader import Recorded

__all__ = ["Messages", "choose_topic", "read_messages", "topics_of", "write_messages"]

SEQUENCES: Final = 1 << 32
CHANNELS_MAX: Final = 65_535
RECORD_BYTES_MAX: Final = 256 * 1024 * 1024
BATCH_MESSAGES_MAX: Final = 4096
BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
TIME_MAX: Final = (1 << 63) - 1
LIBRARY: Final = "echoic"


def write_messages(recorded: Iterable["Recorded"], file: Path, channel: str, progress: Callable[[int], None]) -> int:
    """Write recorded events into a file, and return how many they were.

    Raises:
        JournalError: There are more sources and types than an MCAP file can have channels.
        MalformedBatchError: A record contradicts its type.
    """
    from mcap.writer import Writer

    events = 0
    with file.open("wb") as stream:
        writer: Any = Writer(stream)
        writer.start(library=LIBRARY)
        book = _Book(writer, channel)
        for each in recorded:
            id = book.channel(each)
            time_ns = max(each.time_ns, 0)
            for number, text in zip(each.numbers.tolist(), events_as_json(each.batch), strict=True):
                writer.add_message(id, time_ns, text, time_ns, number % SEQUENCES)
            events += each.count
            progress(events)
        writer.finish()
    return events


class _Book:
    """The channels and schemas of a file that is being written."""

    def __init__(self, writer: Any, topic: str) -> None:  # noqa: ANN401 - mcap's writer has few types
        self._writer = writer
        self._topic = topic
        self._schemas: dict[int, int] = {}
        self._channels: dict[tuple[int, int], int] = {}

    def channel(self, recorded: "Recorded") -> int:
        """Return the number of the channel for events, which is made when they are the first."""
        token = recorded.batch.format.token
        known = self._channels.get((recorded.source, token))
        if known is not None:
            return known
        if len(self._channels) >= CHANNELS_MAX:
            raise JournalError(f"there are more than {CHANNELS_MAX} sources and types, and MCAP files have no more")
        first = int(recorded.numbers[0]) if recorded.count else recorded.first
        about = {"source": str(recorded.source), "partition": str(recorded.partition), "first": str(first)}
        made: int = self._writer.register_channel(self._topic, "json", self._schema(recorded.batch.format), about)
        self._channels[recorded.source, token] = made
        return made

    def _schema(self, format: Format) -> int:
        if format.token not in self._schemas:
            made = self._writer.register_schema(format.name, "jsonschema", json_schema_of(format))
            self._schemas[format.token] = made
        return self._schemas[format.token]


@dataclass(frozen=True, slots=True)
class Messages:
    """Neighbouring messages as a batch. `first` is None in files of strangers, which do not count 64 bits."""

    batch: Batch
    source: int
    first: int | None
    time_ns: int


@dataclass(slots=True)
class _Topic:
    """A channel of a file that is being read, and the messages that wait to become a batch."""

    topic: str
    format: Format
    id: int
    source: int | None
    number: int | None
    time_ns: int = 0
    texts: list[bytes] = field(default_factory=list)
    size: int = 0

    def follows(self, time_ns: int, sequence: int, size: int) -> bool:
        """Tell whether a message belongs into the same batch."""
        goes_on = self.number is None or (self.number + len(self.texts)) % SEQUENCES == sequence
        room = len(self.texts) < BATCH_MESSAGES_MAX and self.size + size <= BATCH_BYTES_MAX
        return goes_on and room and time_ns == self.time_ns

    def take(self) -> Messages:
        """Return the messages that wait.

        Raises:
            EncodeError: One is not JSON, or not of the type.
        """
        batch = events_of_json(self.texts, self.format)
        first = self.number
        if self.number is not None:
            self.number += len(self.texts)
        self.texts, self.size = [], 0
        return Messages(batch, self.id if self.source is None else self.source, first, self.time_ns)

    def jump(self, time_ns: int, sequence: int) -> None:
        """Be ready for a message that does not follow the last one."""
        self.time_ns = time_ns
        if self.number is not None:
            self.number += (sequence - self.number) % SEQUENCES


def topics_of(file: Path) -> list[str]:
    """Return the topics of a file.

    Raises:
        JournalError: It is not there, or no MCAP file.
    """
    with _records(file) as records:
        return list(dict.fromkeys(record.topic for record in records if _kind(record) == "Channel"))


def choose_topic(topics: list[str], wanted: str, file: Path) -> str:
    """Return the topic to read: the one that is wanted, or the only one.

    Raises:
        LocalError: It is not there, or there are several.
    """
    if wanted in topics or (not wanted and len(topics) == 1):
        return wanted or topics[0]
    known = ", ".join(f"'{shown(topic)}'" for topic in topics[:10]) or "none"
    asked = f"no topic '{wanted}'" if wanted else "not exactly one topic, so one must be chosen"
    raise LocalError(f"{file} has {asked}; there are: {known}")


def read_messages(file: Path, topic: str, declared: Format | None) -> Iterator[Messages]:
    """Yield the messages of one topic in the order of the file.

    Raises:
        EncodeError: A message is not JSON, or not of its type.
        FormatError: A schema cannot be an event type.
        JournalError: The file is damaged, or its messages are not JSON.
    """
    reading = _Reading(file, topic, declared)
    with _records(file) as records:
        for record in records:
            if _kind(record) == "Message":
                yield from reading.message(record)
            elif _kind(record) == "Schema":
                reading.schemas[record.id] = record
            elif _kind(record) == "Channel":
                reading.channel(record)
    yield from reading.rest()


class _Reading:
    """What is known of a file while it is read. All ids have 16 bits, so there are not too many of anything."""

    def __init__(self, file: Path, topic: str, declared: Format | None) -> None:
        self.schemas: dict[int, Any] = {}
        self._file = file
        self._topic = topic
        self._declared = declared
        self._topics: dict[int, _Topic | None] = {}
        self._last: _Topic | None = None

    def channel(self, record: Any) -> None:  # noqa: ANN401 - mcap's records
        """Learn of a channel; files tell of each twice."""
        if record.id not in self._topics:
            wanted = record.topic == self._topic
            schema = self.schemas.get(record.schema_id)
            self._topics[record.id] = _topic(record, schema, self._declared, self._file) if wanted else None

    def message(self, record: Any) -> Iterator[Messages]:  # noqa: ANN401 - mcap's records
        """Take a message, and yield those before it that it does not belong to."""
        if record.channel_id not in self._topics:
            raise JournalError(f"a message of {self._file} is of channel {record.channel_id}, which is not described")
        topic = self._topics[record.channel_id]
        if topic is None:
            return
        if topic is not self._last or not topic.follows(record.log_time, record.sequence, len(record.data)):
            yield from self.rest()
            topic.jump(_time(record, self._file), record.sequence)
            self._last = topic
        topic.texts.append(record.data)
        topic.size += len(record.data)

    def rest(self) -> Iterator[Messages]:
        """Yield the messages that wait."""
        if self._last is not None and self._last.texts:
            yield self._last.take()


def _time(message: Any, file: Path) -> int:  # noqa: ANN401 - mcap's records
    time_ns: int = message.log_time
    if time_ns > TIME_MAX:
        raise JournalError(f"a message has the time {time_ns}, limit is {TIME_MAX} - at {file}")
    return time_ns


def _topic(channel: Any, schema: Any, declared: Format | None, file: Path) -> _Topic:  # noqa: ANN401 - mcap's records
    """Return what is known of a channel.

    Raises:
        JournalError: Its messages cannot be read here.
    """
    place = f"at topic '{shown(channel.topic)}' of {file}"
    if channel.message_encoding != "json":
        raise JournalError(f"messages are in '{shown(channel.message_encoding)}', expected 'json' - {place}")
    if declared is None and (schema is None or schema.encoding != "jsonschema"):
        told = "no schema" if schema is None else f"a schema in '{shown(schema.encoding)}'"
        raise JournalError(f"messages have {told}, expected one in 'jsonschema', or a declared type - {place}")
    try:
        format = declared if declared is not None else format_of_json_schema(schema.data, "Record")
    except EchoicError as error:
        raise type(error)(f"{error} - {place}") from error
    source, first = channel.metadata.get("source", ""), channel.metadata.get("first", "")
    stamped = _is_number(source) and _is_number(first)
    return _Topic(channel.topic, format, channel.id, int(source) if stamped else None, int(first) if stamped else None)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 1 << 64


@contextmanager
def _records(file: Path) -> Iterator[Iterator[Any]]:
    """Open a file for its records.

    Raises:
        JournalError: It is not there, or not an MCAP file; also later, while it is read.
    """
    try:
        stream = file.open("rb")
    except OSError as error:
        raise JournalError(f"cannot read {file}: {error.strerror or error}") from error
    with stream:
        yield _guarded(stream, file)


def _guarded(stream: Any, file: Path) -> Iterator[Any]:  # noqa: ANN401 - mcap's records
    from mcap.stream_reader import StreamReader, breakup_chunk

    reader = StreamReader(stream, emit_chunks=True, validate_crcs=True, record_size_limit=RECORD_BYTES_MAX)
    try:
        for record in reader.records:
            if _kind(record) == "Chunk":
                yield from breakup_chunk(_unpacked(record), validate_crc=True)
            else:
                yield record
    except Exception as error:  # the parser of strangers' bytes raises whatever comes to its mind
        short = type(error).__name__ == "EndOfFile" or isinstance(error, struct.error)
        told = "it ends too early" if short else shown(str(error).split("\n", 1)[0]) or type(error).__name__
        raise JournalError(f"cannot read {file} as mcap: {told}") from error


def _unpacked(chunk: Any) -> Any:  # noqa: ANN401 - mcap's records
    """Return a chunk as it was before it was compressed; it gets no more memory than it says, and may say so much.

    Left to mcap, the few kilobytes of a hostile chunk become as many gigabytes as they like.
    """
    compression, size = chunk.compression, chunk.uncompressed_size
    if not compression:
        return chunk
    if size > RECORD_BYTES_MAX:
        raise JournalError(f"a chunk has {size} bytes, limit is {RECORD_BYTES_MAX}")
    if compression == "zstd":
        from zstandard import ZstdDecompressor

        data = ZstdDecompressor().stream_reader(chunk.data).read(size + 1)
    elif compression == "lz4":
        from lz4.frame import LZ4FrameDecompressor

        data = LZ4FrameDecompressor().decompress(chunk.data, max_length=size + 1)
    else:
        raise JournalError(f"a chunk is compressed by '{shown(compression)}', expected zstd or lz4")
    if len(data) != size:
        raise JournalError(f"a chunk has {'more' if len(data) > size else 'fewer'} bytes than the {size} that it says")
    return replace(chunk, compression="", data=data)


def _kind(record: object) -> str:
    return type(record).__name__
