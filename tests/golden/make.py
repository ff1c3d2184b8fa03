"""Write the golden vectors of the wire protocol: `python -m tests.golden.make`.

They are committed. A test compares them with what the program writes today, so a change of the format cannot go
unnoticed; clients in other languages are tested against the same file.
"""

import enum
import json
import math
import struct
from pathlib import Path

import msgspec
import numpy

from echoic.channels.member import EVENT_HEADER
from echoic.formats import (
    ARCHITECTURES,
    Array,
    Field,
    Format,
    Kind,
    char,
    event,
    float32,
    float64,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
    uint64,
)
from echoic.wire import Batch, FrameKind, Hello, encode_formats, encode_frame, encode_hello
from echoic.wire.hello import MAGIC
from tests.golden import derived, groups, hubs, large, modulators, recording

GOLDEN = Path(__file__).with_name("wire.json")


class Side(enum.IntEnum):
    BUY = 1
    SELL = -2


@event
class Tick:
    sequence: int
    price: float
    size: int32
    venue: uint16
    last: bool


@event
class Trade:
    symbol: str
    price: float
    volume: int
    venue: uint16 = 0
    side: Side = Side.BUY
    note: str | None = None


@event
class Numbers:
    a: int8
    b: int16
    c: int32
    d: int
    e: uint8
    f: uint16
    g: uint32
    h: uint64
    i: float32
    j: float64
    k: bool
    letter: char
    code: Array[char, 5]


@event
class Station:
    name: str
    latitude: float
    longitude: float


@event
class WindField:
    at: float
    n: int
    wind: Array[float64, 2, 3]
    samples: Array[float32, "n"]
    cells: Array[float64, "n", 2]
    station: Station
    neighbours: Array[Station, "n"]
    tags: Array[str, ...]
    pair: Array[str, 2]
    data: bytes


@event
class Lists:
    """Arrays behind C pointers: the sizing field stands behind the array it sizes."""

    cells: Array[int16, "n", 2]
    names: Array[str, "n"]
    n: uint8


LISTS = [Lists([[1, -2], [3, -4]], ["a", "bc"], 2), Lists([], [], 0)]
TICKS = [Tick(1, 75.5, -100, 7, last=False), Tick(2**53 + 1, -0.0, 2**31 - 1, 65535, last=True)]
TRADES = [
    Trade("IBM", 75.5, 100),
    Trade("Zürich", float("nan"), -1, 7, Side.SELL, "odd lot"),
    Trade("", 0.0, 0, note=""),
]
NUMBERS = [
    Numbers(-128, -32768, -(2**31), -(2**63), 255, 65535, 2**32 - 1, 2**64 - 1, 1.5, 1e300, True, b"x", b"code"),
    Numbers(0, 0, 0, 0, 0, 0, 0, 0, float("inf"), float("-inf"), False, b"\0", b""),
]


def wind_fields() -> list[WindField]:
    zurich, nowhere = Station("Zürich", 47.4, 8.5), Station("", 0.0, 0.0)
    grid = numpy.arange(6.0).reshape(2, 3)
    return [
        WindField(
            0.5, 2, grid, [1, 2], [[1, 2], [3, 4]], zurich, [nowhere, zurich], ["a", "", "ccc"], ["x", "y"], b"\1\0"
        ),
        WindField(1.5, 0, -grid, [], [], nowhere, [], [], ["", ""], b""),
    ]


def samples() -> dict[str, Batch]:
    """Return batches by name, in this machine's layout and in others."""
    native = ARCHITECTURES["x86_64"]
    made = {"ticks": TICKS, "trades": TRADES, "numbers": NUMBERS, "wind": wind_fields()}
    batches = {name: Batch.of(events).to(Format.of(type(events[0])).on(native)) for name, events in made.items()}
    for name, machine in (("ticks", "sparc32"), ("trades", "sparc64"), ("numbers", "i386"), ("wind", "ppc64")):
        batches[f"{name}, {machine}"] = batches[name].to(batches[name].format.on(ARCHITECTURES[machine]))
    pointers = ARCHITECTURES["sparc32"].with_pointers()
    batches["trades, sparc32 with pointers"] = batches["trades"].to(batches["trades"].format.on(pointers))
    pointers = ARCHITECTURES["ppc64"].with_pointers()
    batches["lists, ppc64 with pointers"] = Batch.of(LISTS).to(Format.of(Lists).on(pointers))
    batches["no trades"] = Batch.of([], Trade).to(batches["trades"].format)
    return batches


def value(given: object, field: Field) -> object:
    """Return a field as the vectors spell it."""
    if isinstance(given, numpy.ndarray):
        given = given.tolist()
    if isinstance(given, list):
        return [value(item, field) for item in given]
    if field.record is not None:
        return {inner.name: value(getattr(given, inner.name), inner) for inner in field.record.fields}
    if isinstance(given, bytes):
        return given.hex()
    if isinstance(given, float) and not math.isfinite(given):
        return str(given)
    if field.kind in (Kind.INT, Kind.UINT) and field.size == 8:
        return str(given)
    return int(given) if isinstance(given, enum.IntEnum) else given


def events_of(batch: Batch) -> list[object]:
    """Return the events of a batch as the vectors spell them."""
    decoded = Batch(batch.format, batch.count, [batch.records], batch.offsets).events()
    return [{f.name: value(getattr(record, f.name), f) for f in batch.format.fields} for record in decoded]


def batch_vector(name: str, batch: Batch) -> dict[str, object]:
    payload = b"".join(batch.buffers())
    return {"name": name, "token": f"{batch.format.token:016x}", "payload": payload.hex(), "events": events_of(batch)}


def format_vector(format: Format) -> dict[str, object]:
    layout = [[path, field.spelling, field.offset] for path, field in format.walk()]
    name = f"{format.name}, {format.byte_order}-endian, slots {int(format.slots)}, alignment {format.alignment}"
    return {"name": name, "token": f"{format.token:016x}", "descriptor": format.descriptor.hex(), "layout": layout}


def frame_vector(name: str, kind: FrameKind, payload: bytes, *, channel: int, checked: bool) -> dict[str, object]:
    data = b"".join(encode_frame(kind, [payload], channel=channel, checked=checked))
    about = {"kind": int(kind), "channel": channel, "checked": checked, "payload": payload.hex()}
    return {"name": name, "bytes": data.hex(), **about}


def malformed_batches(batches: dict[str, Batch]) -> list[dict[str, object]]:
    """Break one number of a good batch at a time."""

    def broken(why: str, name: str, at: int, letters: str, *numbers: int) -> dict[str, object]:
        data = bytearray(b"".join(batches[name].buffers()))
        struct.pack_into("<" + letters, data, at, *numbers)
        return {"why": why, "token": f"{batches[name].format.token:016x}", "payload": data.hex()}

    def cut(why: str, name: str, data: bytes) -> dict[str, object]:
        return {"why": why, "token": f"{batches[name].format.token:016x}", "payload": data.hex()}

    trades, ticks = b"".join(batches["trades"].buffers()), b"".join(batches["ticks"].buffers())
    offsets, record = 16, 32  # of trades
    wind = 32  # where the first wind field starts; its slots: samples at 64, cells at 72, n at 8
    pointers = "trades, sparc32 with pointers"
    return [
        broken("the count is wrong", "trades", 8, "I", 4),
        broken("the flags are wrong", "trades", 12, "I", 0),
        broken("unknown flags are set", "trades", 12, "I", 3),
        broken("the first offset is not 0", "trades", offsets, "I", 8),
        broken("the last offset is past the end", "trades", offsets + 12, "I", len(trades)),
        broken("the last offset is before the end", "trades", offsets + 12, "I", len(trades) - record - 8),
        broken("an offset is not a multiple of 8", "trades", offsets + 4, "I", 44),
        broken("a record is shorter than its fixed part", "trades", offsets + 4, "I", 8),
        broken("a slot points past the end of its record", "trades", record, "I", 4096),
        broken("a slot points into the fixed part", "trades", record, "I", 8),
        broken("offset and length wrap around", "trades", record, "II", 0xFFFFFFF8, 0x10),
        broken("a string does not end with NUL", "trades", record + 4, "I", 2),
        broken("a null slot has a length", "trades", record + 36, "I", 3),
        broken("a string is not UTF-8", "trades", record + 40, "B", 0xFF),
        cut("bytes follow the last record", "trades", trades + bytes(8)),
        cut("the header is cut", "trades", trades[:12]),
        cut("the offsets are cut", "trades", trades[:24]),
        cut("a fixed batch is too short", "ticks", ticks[:-8]),
        broken("a fixed batch has the flag of a variable one", "ticks", 12, "I", 1),
        broken("the length differs from the sizing field", "wind", wind + 8, "q", 3),
        broken("the sizing field is negative", "wind", wind + 8, "q", -1),
        broken("a block is misaligned", "wind", wind + 72, "I", 193),
        broken("a pointer leads past the end", pointers, record + 3, "B", 0xFF),
    ]


def malformed_frames() -> list[dict[str, object]]:
    """Break one byte of a good frame at a time."""
    good = b"".join(encode_frame(FrameKind.EVENTS, [b"payload"], channel=7, checked=True))

    def broken(why: str, at: int, letters: str, number: int) -> dict[str, object]:
        data = bytearray(good)
        struct.pack_into("<" + letters, data, at, number)
        return {"why": why, "bytes": data.hex()}

    return [
        broken("the length is above 16 MiB", 0, "I", 16 * 1024 * 1024 + 1),
        broken("the kind is 0", 4, "B", 0),
        broken("an unknown flag is set", 5, "B", 3),
        broken("the reserved bytes are not 0", 6, "H", 1),
        broken("the checksum is wrong", 12, "I", 0),
        broken("the payload was changed", 16, "B", 0),
        broken("the channel was changed", 8, "I", 8),
    ]


def malformed_hellos() -> list[dict[str, object]]:
    """Say in a hello what no hello may say."""

    def said(why: str, **keys: object) -> dict[str, object]:
        return {"why": why, "payload": (MAGIC + msgspec.msgpack.encode(keys)).hex()}

    good = MAGIC + msgspec.msgpack.encode({})
    return [
        said("another version", version=2),
        said("a negative minor", minor=-1),
        said("no payload is accepted", payload_bytes_max=0),
        said("features that are no array", features="checksum"),
        said("a feature that is too long", features=["x" * 65]),
        said("a name that is too long", name="x" * 65),
        said("a hub that is no text", hub=7),
        said("an address that cannot be printed", address="127.0.0.1:7401\n"),
        {"why": "another signature", "payload": good.replace(b"\r\n", b"\n\n").hex()},
        {"why": "bytes behind the map", "payload": (good + b"\0").hex()},
    ]


def malformed_formats() -> list[dict[str, object]]:
    """Say in a descriptor what no descriptor may say."""

    def described(why: str, *fields: list[object], size: int = 8, slots: int = 0) -> dict[str, object]:
        rows = [list(field) for field in fields]
        data = msgspec.msgpack.encode([1, 0, slots, [["T", 8, size, rows]]])
        return {"why": why, "descriptor": data.hex()}

    number = ["a", 1, 8, 0, [], 0, None, []]
    good = bytes.fromhex(str(described("", number)["descriptor"]))
    return [
        described("there is no field"),
        described("two fields have one name", number, ["a", 1, 8, 8, [], 0, None, []], size=16),
        described("two fields overlap", number, ["b", 1, 8, 4, [], 0, None, []], size=16),
        described("a field leaves the record", ["a", 1, 8, 4, [], 0, None, []]),
        described("an int of 3 bytes", ["a", 1, 3, 0, [], 0, None, []]),
        described("an unknown kind", ["a", 10, 8, 0, [], 0, None, []]),
        described("unknown flags", ["a", 1, 8, 0, [], 4, None, []]),
        described("an optional number", ["a", 1, 8, 0, [], 1, None, []]),
        described("a name that is no identifier", ["a b", 1, 8, 0, [], 0, None, []]),
        described("a dimension of 0", ["a", 1, 8, 0, [0], 0, None, []]),
        described("a billion elements", ["a", 1, 8, 0, [10**9], 0, None, []]),
        described("a sizing field that is not there", ["a", 1, 8, 0, ["n"], 0, None, []]),
        described("a pointer to an array without a sizing field", ["a", 1, 8, 0, [""], 0, None, []], slots=2),
        described("a record that contains itself", ["a", 9, 8, 0, [], 0, 0, []]),
        described("a default of another type", ["a", 1, 8, 0, [], 0, None, ["text"]]),
        described("an unknown kind of slots", number, slots=3),
        {"why": "a version that is not 1", "descriptor": good.replace(b"\x94\x01", b"\x94\x02", 1).hex()},
        {
            "why": "an integer that is not in its shortest form",
            "descriptor": good.replace(b"\x94\x01", b"\x94\xcc\x01", 1).hex(),
        },
        {"why": "bytes after the descriptor", "descriptor": (good + b"\0").hex()},
        {"why": "a descriptor that is cut", "descriptor": good[:-1].hex()},
    ]


def hello_vectors(hello: Hello) -> list[dict[str, object]]:
    short = Hello(minor=7, payload_bytes_max=2**20, hub="b" * 64)
    payload = MAGIC + msgspec.msgpack.encode({"unknown": [1], "hub": short.hub, "payload_bytes_max": 2**20, "minor": 7})
    written = [hubs.hello_vector(each, encode_hello(each)) for each in (hello, hubs.MANAGER, hubs.SINK)]
    return [*written, hubs.hello_vector(Hello(), MAGIC + b"\x80"), hubs.hello_vector(short, payload)]


def vectors() -> dict[str, object]:
    """Return everything that the file holds."""
    batches = samples()
    hello = Hello(features=("checksum",), name="golden")
    ticks = batches["ticks"]
    tick_payload = EVENT_HEADER.pack(2**40, hubs.SOURCE) + b"".join(ticks.buffers())
    formats = {batch.format.token: batch.format for batch in batches.values()}
    return {
        "frames": [
            frame_vector("hello", FrameKind.HELLO, encode_hello(hello), channel=0, checked=True),
            frame_vector("a format", FrameKind.FORMATS, encode_formats([ticks.format]), channel=0, checked=True),
            frame_vector("ticks", FrameKind.EVENTS, tick_payload, channel=7, checked=True),
            frame_vector("ticks without checksum", FrameKind.EVENTS, tick_payload, channel=7, checked=False),
            frame_vector("an odd length", FrameKind.CONTROL, b"odd", channel=2**32 - 1, checked=True),
            frame_vector("an empty payload", FrameKind.ACKS, b"", channel=1, checked=True),
        ],
        "hellos": hello_vectors(hello),
        "formats": [format_vector(format) for format in formats.values()],
        "batches": [batch_vector(name, batch) for name, batch in batches.items()],
        "conversation": hubs.conversation(ticks, events_of),
        "hub_frames": hubs.hub_frames(ticks, events_of),
        "derived_conversation": derived.derived_conversation(ticks, events_of),
        "turning_conversation": modulators.turning_conversation(ticks, events_of),
        "parcels": modulators.parcel_vectors(),
        "messages": hubs.message_vectors(
            [
                *hubs.every_message(),
                *derived.derived_messages(),
                *modulators.modulator_messages(),
                *recording.recording_messages(),
            ]
        ),
        "group_messages": groups.group_vectors(),
        "packs": groups.pack_vectors(ticks),
        "malformed_group_messages": groups.malformed_messages(),
        "large_frames": large.frames(),
        "malformed_large_frames": large.malformed(),
        "malformed_frames": malformed_frames(),
        "malformed_hellos": malformed_hellos(),
        "malformed_formats": malformed_formats(),
        "malformed": malformed_batches(batches),
        "malformed_parcels": modulators.malformed_parcels(),
        "malformed_hub_frames": [
            *hubs.malformed_hubs(ticks),
            *derived.malformed_messages(),
            *modulators.malformed_messages(),
            *recording.malformed_messages(),
        ],
    }


def text() -> str:
    """Return the file's contents."""
    return json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    GOLDEN.write_text(text(), encoding="utf-8")
    print(f"{GOLDEN.name}: {GOLDEN.stat().st_size} bytes")
