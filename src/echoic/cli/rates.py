"""`echoic hz` and `echoic bw`: how often events come, and how large they are, once a second.

Events that were sent together arrive together, so the smallest interval of a busy channel is 0.
"""

import itertools
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Annotated, Final, Protocol

from cyclopts import Parameter

from echoic.cli.meeting import attend
from echoic.cli.screen import json_text, say
from echoic.cli.where import NOWHERE, AsJson, Where
from echoic.hub import Channel, Sink
from echoic.monitor import Following, bytes_text
from echoic.wire import Batch

__all__ = ["WINDOW_DEFAULT", "Count", "Noting", "Size", "Window", "bw", "hz", "shown", "watch"]

PERIOD_SECONDS: Final = 1.0
WINDOW_DEFAULT: Final = 10_000

Count = Annotated[int | None, Parameter(name=["--count", "-n"])]
Size = Annotated[int, Parameter(name=["--window", "-w"])]


class Window:
    """The last events: when they came, and how large they were."""

    def __init__(self, events_max: int) -> None:
        self._times: deque[float] = deque(maxlen=max(2, events_max))
        self._sizes: deque[int] = deque(maxlen=max(2, events_max))
        self._lock = threading.Lock()
        self.total = 0

    def add(self, sizes: list[int], now: float) -> None:
        """Note events that came together."""
        with self._lock:
            self._times.extend([now] * len(sizes))
            self._sizes.extend(sizes)
            self.total += len(sizes)

    def note(self, batch: Batch) -> None:
        """Note events that came together, just now."""
        self.add([after - before for before, after in itertools.pairwise(batch.bounds)], time.monotonic())

    def rate(self) -> dict[str, float] | None:
        """Return events per second and their intervals; None with fewer than two events."""
        with self._lock:
            times = list(self._times)
        if len(times) < 2 or times[-1] == times[0]:
            return None
        intervals = [after - before for before, after in itertools.pairwise(times)]
        return {
            "rate": len(intervals) / (times[-1] - times[0]),
            "min": min(intervals),
            "max": max(intervals),
            "std_dev": statistics.pstdev(intervals),
            "window": len(times),
        }

    def bandwidth(self, now: float) -> dict[str, float] | None:
        """Return bytes per second since the oldest event, and sizes; None without events."""
        with self._lock:
            times, sizes = list(self._times), list(self._sizes)
        if not times or now <= times[0]:
            return None
        return {
            "bytes_per_second": sum(sizes) / (now - times[0]),
            "mean": statistics.fmean(sizes),
            "min": min(sizes),
            "max": max(sizes),
            "window": len(times),
        }


def hz(
    channel: str,
    /,
    *,
    window: Size = WINDOW_DEFAULT,
    count: Count = None,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Show how many events a second come, and how regularly, once a second.

    Try:
        echoic hz trades
        echoic hz trades --json --count 1

    Args:
        channel: Its name, or its id echoic://HOST:PORT/NAME.
        window: Over how many of the last events.
        count: End after so many reports.
        as_json: Print a line of JSON each time.
        where: Where to look for the channel.
    """

    def text(found: dict[str, float]) -> str:
        intervals = f"min: {found['min']:.6f}s max: {found['max']:.6f}s std dev: {found['std_dev']:.6f}s"
        return f"average rate: {found['rate']:.3f}\n\t{intervals} window: {found['window']}"

    seen = Window(window)
    watch(channel, "hz", seen, count, where, lambda: shown(seen.rate(), text, as_json=as_json))


def bw(
    channel: str,
    /,
    *,
    window: Size = WINDOW_DEFAULT,
    count: Count = None,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Show how many bytes a second come, and how large events are, once a second.

    Counted are the records, without what it takes to carry them.

    Try:
        echoic bw fields
        echoic bw fields --window 100

    Args:
        channel: Its name, or its id echoic://HOST:PORT/NAME.
        window: Over how many of the last events.
        count: End after so many reports.
        as_json: Print a line of JSON each time.
        where: Where to look for the channel.
    """

    def text(found: dict[str, float]) -> str:
        sizes = " ".join(f"{name}: {bytes_text(found[name])}" for name in ("mean", "min", "max"))
        return f"{bytes_text(found['bytes_per_second'])}/s from {found['window']} events\n\tevent size {sizes}"

    seen = Window(window)
    watch(channel, "bw", seen, count, where, lambda: shown(seen.bandwidth(time.monotonic()), text, as_json=as_json))


class Noting(Protocol):
    """What is kept of the events that come."""

    @property
    def total(self) -> int:
        """How many have come."""

    def note(self, batch: Batch) -> None:
        """Note events that came together."""


def shown(found: dict[str, float] | None, text: Callable[[dict[str, float]], str], *, as_json: bool) -> str:
    """Return a report, as a line of JSON or for people; "" for none."""
    if found is None:
        return ""
    return json_text(found) if as_json else text(found)


def watch(channel: str, verb: str, noting: Noting, count: int | None, where: Where, report: Callable[[], str]) -> None:
    """Report once a second, when events have come since."""

    def note(batch: Batch) -> None:
        noting.note(batch)

    def subscribe(found: Channel) -> Sink:
        return found.subscribe(note, batch=True, slow="drop_oldest")

    note.__name__ = verb  # which is what the sink is called, where others look

    with attend(where, verb) as hub:
        following = Following(hub, channel, subscribe, say)
        try:
            reports = 0
            seen, silent = 0, False
            while count is None or reports < count:
                time.sleep(PERIOD_SECONDS)
                if following.failure is not None:
                    raise following.failure
                total = noting.total
                line = report() if total != seen else ""
                if line:
                    print(line, flush=True)
                    reports += 1
                elif not silent and following.channel is not None:
                    say(f"no events of '{channel}'")
                silent, seen = not line, total
        finally:
            following.stop()
