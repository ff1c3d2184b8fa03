"""Parsers of what hubs send: frames, hellos, descriptors, batches, bundles of them, and answers to a bare question."""

import selectors
import socket
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Final

from echoic.channels.messages import ChannelEntry, Described, Listing, encode_message
from echoic.eager.ready.bundles import Unpacking, pack
from echoic.errors import EchoicError
from echoic.formats import ARCHITECTURES, Format, Registry
from echoic.testing.fuzz import FrameFuzzer
from echoic.testing.parsers.parser import Target, load_place
from echoic.testing.parsers.repairs import seal_frames, twist_msgpack
from echoic.testing.samples import Trade, sample_events
from echoic.wire import (
    Batch,
    Frame,
    FrameKind,
    FrameReader,
    Hello,
    decode_formats,
    decode_hello,
    encode_formats,
    encode_frame,
    encode_hello,
    parse_batch,
)
from echoic.wire.hello import MAGIC

__all__ = ["ANSWERS", "BATCHES", "BUNDLES", "DESCRIPTORS", "FRAMES", "HELLO"]

PAYLOAD_BYTES_MAX: Final = 4096
BUNDLED: Final = 2


def _read(pieces: list[bytes], *, checked: bool) -> tuple[list[Frame], str]:
    """Return the frames of a stream, and the name of the error that ended it."""
    reader = FrameReader(payload_bytes_max=PAYLOAD_BYTES_MAX, checked=checked)
    frames: list[Frame] = []
    try:
        for piece in (*pieces, b""):
            frames += reader.receive(piece)
    except EchoicError as error:
        return frames, type(error).__name__
    return frames, ""


def _feed_frames(data: bytes) -> None:
    """Read a stream; it must be the same stream when it is cut."""
    for checked in (False, True):
        middle = len(data) * 2 // 5
        whole, cut = _read([data], checked=checked), _read([data[:middle], data[middle:]], checked=checked)
        if whole != cut:
            raise AssertionError(f"a stream that is cut at {middle} gives {cut}, else {whole}")


def _frame_seeds() -> Iterator[bytes]:
    for kind in (FrameKind.HELLO, FrameKind.EVENTS, FrameKind.CONTROL):
        yield b"".join(encode_frame(kind, [b"payload"], channel=7, checked=True))
        yield b"".join(encode_frame(kind, [bytes(16)])) * 3


def _feed_hello(data: bytes) -> None:
    encode_hello(decode_hello(data))


def _hello_seeds() -> Iterator[bytes]:
    yield encode_hello(Hello(features=("checksum", "batch"), name="sample", hub="1", address="[::1]:7"))
    yield encode_hello(Hello(version=2, event_bytes_max=9))


def _repair_hello(data: bytes, draw: Random) -> bytes:
    return MAGIC + twist_msgpack(data[len(MAGIC) :], draw)


def _feed_descriptors(data: bytes) -> None:
    """Read descriptors; whatever one describes can be described, laid out and given as a dtype."""
    for format in decode_formats(data, Registry()):
        format.describe()
        Format.from_descriptor(format.descriptor)


@cache
def _batches() -> list[Batch]:
    found = []
    for events in sample_events():
        batch = Batch.of(events)
        found += [batch.to(batch.format.on(ARCHITECTURES[name])) for name in ("x86_64", "sparc32", "packed")]
    return found


def _descriptor_seeds() -> Iterator[bytes]:
    return (encode_formats([batch.format]) for batch in _batches())


@cache
def _fuzzer() -> FrameFuzzer:
    return FrameFuzzer(Random(1))


def _feed_batches(data: bytes) -> None:
    """Take a batch apart in every way; the first byte says of which sample type it is."""
    if data:
        format = _batches()[data[0] % len(_batches())].format
        payload = format.token.to_bytes(8, "little") + data[1:]
        _fuzzer().take_batch(parse_batch(payload, _fuzzer().registry))


def _batch_seeds() -> Iterator[bytes]:
    return (bytes([number]) + b"".join(batch.buffers())[8:] for number, batch in enumerate(_batches()))


def _feed_bundles(data: bytes) -> None:
    """Take a bundle for one of events that are as they come, and for one of a type that the sink has."""
    for declared in (None, Trade):
        try:
            Unpacking(declared).unpack(data, BUNDLED)
        except EchoicError:
            continue


def _bundle_seeds() -> Iterator[bytes]:
    for events in sample_events():
        yield pack([events[0]] * BUNDLED, 0)
    trade = Trade("IBM", 75.5, 100)
    yield pack([trade] * BUNDLED, Format.of(Trade).token)


def _feed_answers(data: bytes) -> None:
    """Be a hub that `echoic ls` has asked, and that says this."""
    asking, hub = socket.socketpair()
    with asking, hub:
        hub.sendall(data)
        hub.shutdown(socket.SHUT_WR)
        question = load_place("echoic.cli.asking:Question")(
            "h:1", load_place("echoic.cli.lines:Line")(asking), {"type": "Browse"}
        )
        question.go_on(selectors.EVENT_WRITE)
        while question.go_on(selectors.EVENT_READ):
            pass


def _answer_seeds() -> Iterator[bytes]:
    hello = encode_frame(FrameKind.HELLO, [encode_hello(Hello(hub="1", address="h:1"))])
    greeting = b"".join([*hello, *encode_frame(FrameKind.ACKS, [bytes(16)])])
    entry = ChannelEntry("trades", "echoic://h:1/trades", "Trade", 1, 2, "parent")
    for answer in (Listing([entry, entry]), Described("trades", b"", ["h:1"], [])):
        payload = encode_message(1, answer, reply=True)
        yield greeting + b"".join(encode_frame(FrameKind.CONTROL, [payload]))
        yield greeting + b"".join(encode_frame(FrameKind.CONTROL, [payload], checked=True))


FRAMES: Final = Target(_feed_frames, _frame_seeds, seal_frames)
HELLO: Final = Target(_feed_hello, _hello_seeds, _repair_hello)
DESCRIPTORS: Final = Target(_feed_descriptors, _descriptor_seeds)
BATCHES: Final = Target(_feed_batches, _batch_seeds)
BUNDLES: Final = Target(_feed_bundles, _bundle_seeds)
ANSWERS: Final = Target(_feed_answers, _answer_seeds, seal_frames)
