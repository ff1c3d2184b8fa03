"""Write the golden vectors of the wire protocol: `python tests/golden/make.py`.

They are committed. A test compares them with what the program writes today, so a change of the format cannot go
unnoticed; clients in other languages are tested against the same file.
"""

import enum
import json
import math
import struct
from pathlib import Path

import numpy

from echoic.formats import (
    ARCHITECTURES,
    Array,
    Field,
    Format,
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
    return int(given) if isinstance(given, enum.IntEnum) else given


def batch_vector(name: str, batch: Batch) -> dict[str, object]:
    decoded = Batch(batch.format, batch.count, [batch.records], batch.offsets).events()
    events = [{f.name: value(getattr(record, f.name), f) for f in batch.format.fields} for record in decoded]
    payload = b"".join(batch.buffers())
    return {"name": name, "token": f"{batch.format.token:016x}", "payload": payload.hex(), "events": events}


def format_vector(format: Format) -> dict[str, object]:
    layout = [[path, field.spelling, field.offset] for path, field in format.walk()]
    name = f"{format.name}, {format.byte_order}-endian, slots {int(format.slots)}, alignment {format.alignment}"
    return {"name": name, "token": f"{format.token:016x}", "descriptor": format.descriptor.hex(), "layout": layout}


def frame_vector(name: str, kind: FrameKind, payload: bytes, *, channel: int, checked: bool) -> dict[str, object]:
    data = b"".join(encode_frame(kind, [payload], channel=channel, checked=checked))
    about = {"kind": int(kind), "channel": channel, "checked": checked, "payload": payload.hex()}
    return {"name": name, "bytes": data.hex(), **about}


def malformed_vectors(trades: Batch) -> list[dict[str, object]]:
    """Break one number of the batch of trades at a time."""
    good = b"".join(trades.buffers())
    offsets, records = 16, 32

    def broken(why: str, at: int, letters: str, *numbers: int) -> dict[str, object]:
        data = bytearray(good)
        struct.pack_into("<" + letters, data, at, *numbers)
        return {"why": why, "token": f"{trades.format.token:016x}", "payload": data.hex()}

    return [
        broken("the count is wrong", 8, "I", 4),
        broken("the flags are wrong", 12, "I", 0),
        broken("the first offset is not 0", offsets, "I", 8),
        broken("the last offset is not the end", offsets + 12, "I", 8),
        broken("an offset is not a multiple of 8", offsets + 4, "I", 44),
        broken("a slot points past the end of its record", records, "I", 4096),
        broken("a slot points into the fixed part", records, "I", 8),
        broken("offset and length wrap around", records, "II", 0xFFFFFFF8, 0x10),
        broken("a string does not end with NUL", records + 4, "I", 2),
        broken("a null slot has a length", records + 36, "I", 3),
        broken("a string is not UTF-8", records + 40, "B", 0xFF),
        {
            "why": "bytes follow the last record",
            "token": f"{trades.format.token:016x}",
            "payload": (good + bytes(8)).hex(),
        },
    ]


def vectors() -> dict[str, object]:
    """Return everything that the file holds."""
    batches = samples()
    hello = Hello(features=("checksum",), name="golden")
    tick_payload = b"".join(batches["ticks"].buffers())
    formats = {batch.format.token: batch.format for batch in batches.values()}
    keys = ("version", "minor", "features", "payload_bytes_max", "name")
    return {
        "frames": [
            frame_vector("hello", FrameKind.HELLO, encode_hello(hello), channel=0, checked=True),
            frame_vector(
                "a format", FrameKind.FORMATS, encode_formats([batches["ticks"].format]), channel=0, checked=True
            ),
            frame_vector("ticks", FrameKind.EVENTS, tick_payload, channel=7, checked=True),
            frame_vector("ticks without checksum", FrameKind.EVENTS, tick_payload, channel=7, checked=False),
            frame_vector("an odd length", FrameKind.CONTROL, b"odd", channel=2**32 - 1, checked=True),
            frame_vector("an empty payload", FrameKind.ACKS, b"", channel=1, checked=True),
        ],
        "hellos": [{"payload": encode_hello(hello).hex(), **{key: getattr(hello, key) for key in keys}}],
        "formats": [format_vector(format) for format in formats.values()],
        "batches": [batch_vector(name, batch) for name, batch in batches.items()],
        "malformed": malformed_vectors(batches["trades"]),
    }


def text() -> str:
    """Return the file's contents."""
    return json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    GOLDEN.write_text(text(), encoding="utf-8")
    print(f"{GOLDEN.name}: {GOLDEN.stat().st_size} bytes")
