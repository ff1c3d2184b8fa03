"""`echoic echo`: the events of a channel, as they come."""

import queue
import sys
import threading
import time
from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from echoic.channels import Gap
from echoic.cli.meeting import attend
from echoic.cli.rendering import TRUNCATE_DEFAULT, Renderer, as_blocks, as_csv, as_json
from echoic.cli.screen import say
from echoic.cli.where import NOWHERE, Where
from echoic.errors import EchoicError, UnreachableError
from echoic.hub import Channel, Hub, Sink
from echoic.monitor import Following
from echoic.wire import Batch

__all__ = ["echo"]

QUEUE_BATCHES_MAX: Final = 64
WAKE_SECONDS: Final = 0.1


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Shape:
    """How events are shown."""

    field: Annotated[str, Parameter(help="Show only this field; dots lead into nested records.")] = ""
    csv: Annotated[bool, Parameter(help="Print CSV with a header.", negative=(), show_default=False)] = False
    as_json: Annotated[bool, Parameter(name="--json", help="Print lines of JSON.", negative=(), show_default=False)] = (
        False
    )
    truncate_length: Annotated[
        int | None, Parameter(name=["--truncate-length", "-l"], help="Cut longer texts and arrays; 0 for none.")
    ] = None

    def renderer(self) -> Renderer:
        """Return what turns events into text."""
        if self.as_json:
            return as_json(self.field, self.truncate_length or 0)
        if self.csv:
            return as_csv(self.field, self.truncate_length or 0)
        return as_blocks(self.field, TRUNCATE_DEFAULT if self.truncate_length is None else self.truncate_length)


SHAPE: Final = Shape()


def echo(
    channel: str,
    /,
    *,
    once: Annotated[bool, Parameter(name=["--once", "-1"], negative=(), show_default=False)] = False,
    count: Annotated[int | None, Parameter(name=["--count", "-n"])] = None,
    timeout: float | None = None,
    condition: Annotated[str, Parameter(name=["--filter", "-f"], show_default=False)] = "",
    slow: str = "drop_oldest",
    shape: Shape = SHAPE,
    where: Where = NOWHERE,
) -> None:
    """Print the events of a channel as they come.

    The type need not be known here. If the channel does not exist, wait for it. Ctrl-C ends. Events that were missed
    are told on stderr: by default a reader that does not keep up misses the oldest, and never slows the sources down.

    Try:
        echoic echo trades
        echoic echo trades --field price --once
        echoic echo trades --filter 'input.price < 75.5 && input.symbol == "IBM"'
        echoic echo trades --csv > trades.csv
        echoic echo echoic://127.0.0.1:7401/trades --json | jq .price

    Args:
        channel: Its name, or its id echoic://HOST:PORT/NAME.
        once: End after the first event.
        count: End after so many events.
        timeout: End when nothing comes for so many seconds: exit code 3 if there is no channel, 1 if it is silent.
        condition: Only events for which this E-Code is true; it runs inside the sources, and the others are never sent.
        slow: What happens when printing does not keep up: drop_oldest, latest, block the sources, or disconnect.
        shape: How events are shown.
        where: Where to look for it.
    """
    wanted = 1 if once else count
    with attend(where, "echo") as hub:
        reader = Reader(hub, channel, slow, condition)
        try:
            _print_all(reader, shape.renderer(), wanted, timeout)
        finally:
            reader.stop()


class Reader:
    """Takes the events of a channel, wherever it is, batch by batch."""

    def __init__(self, hub: Hub, channel: str, slow: str, condition: str = "") -> None:
        self._batches: queue.Queue[Batch] = queue.Queue(QUEUE_BATCHES_MAX)
        self._stopped = threading.Event()
        self._slow = slow
        self._condition = condition
        self.following: Final = Following(hub, channel, self._subscribe, say)

    def take(self, timeout: float | None) -> Batch:
        """Return the next batch.

        Raises:
            EchoicError: The channel cannot be read, or nothing came in time.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return self._batches.get(timeout=WAKE_SECONDS)
            except queue.Empty:
                if self.following.failure is not None:
                    raise self.following.failure from None
                if deadline is not None and time.monotonic() >= deadline:
                    raise self._silence(timeout) from None

    def stop(self) -> None:
        """Take no more."""
        self._stopped.set()
        self.following.stop()

    def _subscribe(self, channel: Channel) -> Sink:
        def echo(batch: Batch) -> None:  # which is what the sink is called, where others look
            self._put(batch)

        wanted = channel.derive(self._condition) if self._condition else channel
        return wanted.subscribe(echo, batch=True, slow=self._slow, thread=True, on_gap=_tell)

    def _put(self, batch: Batch) -> None:
        while not self._stopped.is_set():
            try:
                self._batches.put(batch, timeout=WAKE_SECONDS)
            except queue.Full:
                continue
            return

    def _silence(self, timeout: float | None) -> EchoicError:
        channel = self.following.channel
        if channel is None:
            return self.following.missing()
        return UnreachableError(f"no event of channel '{channel.name}' within {timeout} s")


def _print_all(reader: Reader, render: Renderer, wanted: int | None, timeout: float | None) -> None:
    left = wanted
    while left is None or left > 0:
        events = reader.take(timeout).events()
        if left is not None:
            events = events[:left]
            left -= len(events)
        sys.stdout.write("".join(map(render, events)))
        sys.stdout.flush()


def _tell(gap: Gap) -> None:
    say(f"missed {gap.last - gap.first + 1} events of source {gap.source:x}: {gap.reason}")
