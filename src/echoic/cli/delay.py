"""`echoic delay`: how old events are when they come, by a field in which their source has written when it made them.

Both clocks count: between machines whose clocks differ, the difference is in every delay.
"""

import statistics
import threading
import time
from collections import deque
from typing import Final

from echoic.cli.rates import WINDOW_DEFAULT, Count, Size, shown, watch
from echoic.cli.rendering import pick
from echoic.cli.where import NOWHERE, AsJson, Where
from echoic.errors import EchoicError, FormatError
from echoic.wire import Batch

__all__ = ["Delays", "delay"]

LOOKED_AT_MAX: Final = 1000
"""How many events of a batch are looked at: those of one batch came together."""
UNITS: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From where on an integer is a time in nanoseconds, microseconds, milliseconds since 1970; below, seconds."""


class Delays:
    """How old the last events were."""

    def __init__(self, field: str, events_max: int) -> None:
        self.total = 0
        self.failure: EchoicError | None = None
        self._field = field
        self._delays: deque[float] = deque(maxlen=max(2, events_max))
        self._lock = threading.Lock()

    def note(self, batch: Batch) -> None:
        """Note events that came together, just now."""
        now = time.time()
        try:
            found = [now - seconds_of(pick(each, self._field), self._field) for each in batch.events()[-LOOKED_AT_MAX:]]
        except EchoicError as error:
            self.failure, found = error, []
        with self._lock:
            self._delays.extend(found)
            self.total += len(batch.bounds) - 1

    def report(self) -> dict[str, float] | None:
        """Return the delays in seconds; None without events.

        Raises:
            EchoicError: The field is not there, or is no time.
        """
        if self.failure is not None:
            raise self.failure
        with self._lock:
            delays = list(self._delays)
        if not delays:
            return None
        return {
            "delay": statistics.fmean(delays),
            "min": min(delays),
            "max": max(delays),
            "std_dev": statistics.pstdev(delays),
            "window": len(delays),
        }


def delay(
    channel: str,
    /,
    *,
    field: str = "at",
    window: Size = WINDOW_DEFAULT,
    count: Count = None,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Show how old events are when they come, once a second.

    A field of the events says when they were made: seconds since 1970, or milliseconds, microseconds or nanoseconds as
    an integer. Between machines, the difference of their clocks counts as well.

    Try:
        echoic delay pipeline.market --field at
        echoic delay trades --field header.stamp --json

    Args:
        channel: Its name, or its id echoic://HOST:PORT/NAME.
        field: Where the time is; dots lead into records.
        window: Over how many of the last events.
        count: End after so many reports.
        as_json: Print a line of JSON each time.
        where: Where to look for the channel.
    """

    def text(found: dict[str, float]) -> str:
        spread = f"min: {found['min']:.6f}s max: {found['max']:.6f}s std dev: {found['std_dev']:.6f}s"
        return f"average delay: {found['delay']:.6f}\n\t{spread} window: {found['window']}"

    seen = Delays(field, window)
    watch(channel, "delay", seen, count, where, lambda: shown(seen.report(), text, as_json=as_json))


def seconds_of(value: object, field: str) -> float:
    """Return a time in seconds since 1970.

    Raises:
        FormatError: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FormatError(f"expected a time, a number, at `{field}`, got {type(value).__name__} (echoic type)")
    if isinstance(value, float):
        return value
    return next((value / unit for above, unit in UNITS if abs(value) >= above), float(value))
