"""`echoic demo`: the main job. It grows with the product; it shows what there is."""

import numpy
from rich.console import Console
from rich.text import Text

from echoic.formats import ARCHITECTURES, Format, Registry, compatibility, event
from echoic.testing.samples import Trade
from echoic.wire import Batch, FrameKind, FrameReader, decode_formats, encode_formats, encode_frame, parse_batch

__all__ = ["demo"]


@event
class Quote:
    """What a sink of trades may declare: fewer fields, in another order, one of its own with a default."""

    price: float
    symbol: str
    currency: str = "USD"


def demo() -> None:
    """Show an event type, its layout here and elsewhere, and a foreign record decoded.

    A trade is declared in Python, laid out as a 32-bit Sparc would, sent as frames, and received by a program that has
    never seen the type, by one that declares the same type, and by one that declares another.
    """
    screen = Console(highlight=False)
    trades = [Trade("IBM", 75.5, 100), Trade("ECHO", 75.25, 3, venue=7, note="odd lot")]

    _title(screen, "An event type, and where its fields lie on this machine")
    print(Format.of(Trade).describe())

    sparc = Format.of(Trade).on(ARCHITECTURES["sparc32"])
    _title(screen, "Two trades as a 32-bit Sparc has them: big-endian")
    sent = Batch.of(trades).to(sparc)
    print(_hex(sent.records))

    _title(screen, "What crosses the wire: the descriptor, once, and the records as they are")
    stream = [*encode_frame(FrameKind.FORMATS, [encode_formats([sparc])], checked=True)]
    stream += encode_frame(FrameKind.EVENTS, sent.buffers(), checked=True)
    print(f"{sum(map(len, stream))} bytes: descriptor {len(sparc.descriptor)}, records {len(sent.records)}")

    announced, events = FrameReader(checked=True).receive(b"".join(stream))
    registry = Registry()
    (seen,) = decode_formats(announced.payload, registry)
    received = parse_batch(events.payload, registry)
    _title(screen, "A receiver that has never seen the type reads it (reflection)")
    for record in received:
        print(record)

    _title(screen, "A receiver with the same type gets this machine's layout")
    native = received.to(Trade)
    print(f"equal to what was sent: {native.events() == trades}")

    _title(screen, "A receiver with another type gets what matches (type extension)")
    for quote in received.to(Quote):
        print(quote)
    report = compatibility(Trade, Quote)
    print(f"Trade to Quote is {report.level.value}; the way back: {report.forward_problems[0]}")

    _title(screen, "And as columns")
    prices = received.arrow.column("price")
    print(f"mean price {numpy.mean(prices.to_numpy())}, schema {received.arrow.schema.names}, type of {seen.name}")
    _title(screen, "Next: ./run echoic layout echoic.testing.samples:Trade --on i386")


def _title(screen: Console, text: str) -> None:
    screen.print(Text(f"\n{text}", style="bold"))


def _hex(data: memoryview) -> str:
    lines = (data[start : start + 16] for start in range(0, len(data), 16))
    return "\n".join(f"{16 * number:4}  {line.hex(' ', 8)}" for number, line in enumerate(lines))
