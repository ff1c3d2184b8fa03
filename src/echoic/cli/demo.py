"""`echoic demo`: the main job. It grows with the product; it shows what there is."""

import subprocess
import sys
import time
from typing import Final

import msgspec
import numpy
from rich.console import Console
from rich.text import Text

from echoic.cli.exchange import Measured
from echoic.errors import ChannelNotFoundError
from echoic.formats import ARCHITECTURES, Format, Registry, compatibility, event
from echoic.hub import Channel, Hub
from echoic.testing.samples import Trade
from echoic.wire import Batch, FrameKind, FrameReader, decode_formats, encode_formats, encode_frame, parse_batch

__all__ = ["demo"]

DEMO_SECONDS_MAX: Final = 60.0


@event
class Quote:
    """What a sink of trades may declare: fewer fields, in another order, one of its own with a default."""

    price: float
    symbol: str
    currency: str = "USD"


@event
class Lot:
    """What another sink cares about."""

    volume: int


def demo() -> None:
    """Show events of any machine understood here, and a channel of trades from another process.

    A trade is declared in Python, laid out as a 32-bit Sparc would, sent as frames, and received by a program that has
    never seen the type, by one that declares the same type, and by one that declares another. Then an exchange, which
    is another process, publishes 200,000 trades to three sinks here, and some synchronously.
    """
    screen = Console(highlight=False)
    show_types(screen)
    show_channels(screen)
    _title(screen, "Next, in two terminals")
    print("./run echoic echo trades")
    print("./run echoic pub trades 'Trade{symbol: str, price: float}' symbol=IBM price=75.5 -w 1 -r 2")


def show_channels(screen: Console) -> None:
    """Let an exchange in another process publish trades, and listen to it in three ways."""
    _title(screen, "A name server, an exchange in another process, three sinks here")
    counted = {"objects": 0, "shares": 0, "cheap": 0}

    def count_object(_: Trade) -> None:
        counted["objects"] += 1

    def count_shares(batch: Batch) -> None:
        counted["shares"] += sum(trade.volume for trade in batch.to(Lot).events())  # type: ignore[attr-defined]

    def count_cheap(quote: Quote) -> None:
        counted["cheap"] += quote.price < 76

    with Hub(name="names") as names, Hub(names=names.address, name="desk") as desk:
        command = [sys.executable, "-m", "echoic.cli.exchange", names.address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as exchange:
            trades = _wait_for(desk, "trades")
            trades.subscribe(count_object, Trade)
            trades.subscribe(count_shares, batch=True)
            trades.subscribe(count_cheap, Quote)
            print(f"{trades.id}: {trades.format.name if trades.format else 'untyped'}")
            output, _ = exchange.communicate(timeout=DEMO_SECONDS_MAX)
        measured = msgspec.json.decode(output, type=Measured)
        missed = trades.statistics().missed
    print(f"{counted['objects']} trades as objects, {counted['shares']} shares traded, {counted['cheap']} below 76")
    print(f"{measured.trades / measured.submit_seconds / 1000:.0f} thousand trades a second, submitted one at a time")
    print(f"{measured.call_microseconds:.0f} us for a synchronous one, until all three handlers have returned")
    print(f"{missed} missed; {measured.bytes_sent / 1e6:.1f} MB crossed the link, once for all three")


def _wait_for(hub: Hub, name: str) -> Channel:
    """Open a channel as soon as somebody has created it.

    Raises:
        ChannelNotFoundError: Nobody has in time.
    """
    deadline = time.monotonic() + DEMO_SECONDS_MAX
    while True:
        try:
            return hub.open(name)
        except ChannelNotFoundError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def show_types(screen: Console) -> None:
    """Show an event type, its layout here and elsewhere, and a foreign record decoded."""
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


def _title(screen: Console, text: str) -> None:
    screen.print(Text(f"\n{text}", style="bold"))


def _hex(data: memoryview) -> str:
    lines = (data[start : start + 16] for start in range(0, len(data), 16))
    return "\n".join(f"{16 * number:4}  {line.hex(' ', 8)}" for number, line in enumerate(lines))
