"""What tests of eager handlers share: modulators and demodulators that do one thing each, and who listens to them."""

# ruff: noqa: SLF001 - links are cut at moments that a test chooses

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from echoic import Channel, Demodulator, Hub, Modulator, SharedObject, SigningKey, Source, Trouble
from tests.eager.installing import CONFINING
from tests.hub.parties import Collector, Note, Quote, Trade, eventually, trade

KEY = SigningKey.generate()
SECONDS_MAX = 0.1

MakeHub = Callable[..., Hub]


class Every(Modulator):
    """Passes every so-many'th event."""

    n: int

    def enqueue(self, event: Any) -> None:
        if event.number % self.n == 0:
            super().enqueue(event)


class Counting(Modulator):
    """Numbers what it has seen, so that it shows whether it is the same object."""

    label: str = ""

    def start(self) -> None:
        self._count = 0

    def enqueue(self, event: Any) -> None:
        event.number = self._count
        self._count += 1
        super().enqueue(event)


class Raising(Modulator):
    """Does not like some events."""

    every: int

    def enqueue(self, event: Any) -> None:
        if event.number % self.every == 0:
            raise ValueError(f"event {event.number} is not liked")
        super().enqueue(event)


class Hanging(Modulator):
    """Never comes back from one event."""

    number: int

    def enqueue(self, event: Any) -> None:
        while event.number == self.number:
            pass
        super().enqueue(event)


class FailingPeriod(Modulator):
    period_ns = 1_000_000

    def period(self) -> None:
        raise RuntimeError("the period is over")


class FailingDequeue(Modulator):
    def dequeue(self) -> Any:
        raise RuntimeError("there is no next one")


class Priced(Modulator):
    """Makes another type of event."""

    output = Quote

    def enqueue(self, event: Any) -> None:
        super().enqueue(Quote(event.price, event.number))


class Wrong(Modulator):
    """Says one thing and does another."""

    output = Note

    def enqueue(self, event: Any) -> None:
        super().enqueue(Quote(event.price, event.number))


class Twice(Modulator):
    def enqueue(self, event: Any) -> None:
        super().enqueue(event)
        super().enqueue(event)


class Doubling(Modulator):
    """Writes into the event that it is given."""

    def enqueue(self, event: Any) -> None:
        event.number = 2 * event.number
        super().enqueue(event)


class Keeping(Modulator):
    """Holds everything back until it is told to go."""

    def dequeue(self) -> Any:
        return None


class Asking(Modulator):
    """Calls the service that it requires."""

    requires = ("desk",)

    def enqueue(self, event: Any) -> None:
        if self.services.desk.wants(event.number, {"symbols": ["S1", "S3"]}):
            event.symbol = self.services.desk.name
            super().enqueue(event)


class Prying(Modulator):
    """Asks a service for what is not public, or not there."""

    requires = ("desk",)

    def enqueue(self, event: Any) -> None:
        if event.number == 0:
            self.services.desk._secret()
        elif event.number == 1:
            self.services.desk.missing()
        elif event.number == 2:
            self.services.other.wants(1)
        elif event.number == 3:
            self.services.desk.fails()
        super().enqueue(event)


class Beating(Modulator):
    """Sends events of its own, as time passes."""

    period_ns = 2_000_000

    def start(self) -> None:
        self._beats = 0

    def enqueue(self, event: Any) -> None:
        """Drop it."""

    def period(self) -> None:
        self._beats += 1
        super().enqueue(Trade(self._beats, 0.0, "beat"))


class Above(Modulator):
    """Reads a limit in the program of the source."""

    requires = ("context",)

    def enqueue(self, event: Any) -> None:
        if event.price > self.services.context.limit:
            super().enqueue(event)


class Quota(SharedObject):
    left: int
    taken: int = 0


class Taking(Modulator):
    """Writes a shared object where it runs."""

    quota: Quota

    def enqueue(self, event: Any) -> None:
        if self.quota.left > 0:
            self.quota.left = self.quota.left - 1
            self.quota.taken = self.quota.taken + 1
            self.quota.publish()
            super().enqueue(event)


class Bounds(SharedObject):
    low: int = 0
    high: int = 10


class Between(Modulator):
    bounds: Bounds

    def enqueue(self, event: Any) -> None:
        if self.bounds.low <= event.number < self.bounds.high:
            super().enqueue(event)


class Desk:
    """What a source has for others."""

    name = "desk 1"

    def wants(self, number: int, only: dict[str, list[str]]) -> bool:
        return f"S{number % 7}" in only["symbols"]

    def fails(self) -> None:
        raise OSError("the desk is closed")

    def _secret(self) -> str:
        return "the secret"


PLACES = {"in process": {"trusted_keys": (KEY.public,)}, "confined": {"sandboxed_keys": (KEY.public,)}}
confining = pytest.mark.skipif(not CONFINING, reason="needs bubblewrap, which `./run test` installs")


LOCK = threading.Lock()


class Unshippable(Modulator):
    def enqueue(self, event: Any) -> None:
        with LOCK:
            super().enqueue(event)


class Cautious(Demodulator):
    """Drops, changes and repeats; keeps the last one until the end."""

    def __init__(self) -> None:
        self.started = 0
        self._kept: Any = None

    def start(self) -> None:
        self.started += 1

    def enqueue(self, event: Any) -> None:
        if event.number == 3:
            raise ValueError("three")
        if event.number % 2:
            return
        super().enqueue(Trade(event.number, event.price, "seen"))
        super().enqueue(event)


class Newest(Demodulator):
    """Hands over what came last, when its period is over."""

    period_ns = 1_000_000

    def __init__(self) -> None:
        self._newest: Any = None
        self.failures = 0

    def enqueue(self, event: Any) -> None:
        self._newest = event

    def period(self) -> None:
        if self._newest is not None and self._newest.number == 1:
            self._newest, self.failures = None, self.failures + 1
            raise ValueError("one")
        if self._newest is not None:
            super().enqueue(self._newest)
            self._newest = None


class Held(Demodulator):
    """Keeps its events until there are three."""

    def dequeue(self) -> Any:
        return super().dequeue() if self.waiting >= 3 else None


class Listener(Collector):
    """A handler that remembers trouble as well."""

    def __init__(self) -> None:
        super().__init__()
        self.troubles: list[Trouble] = []

    def told(self, text: str) -> Trouble:
        """Wait for trouble that says something."""
        eventually(lambda: any(text in trouble.text for trouble in self.troubles), f"{text}: {self.troubles}")
        return next(trouble for trouble in self.troubles if text in trouble.text)


def listen(channel: Channel, modulator: Modulator | None, demodulator: Demodulator | None = None) -> Listener:
    seen = Listener()
    channel.subscribe(
        seen,
        modulator=modulator,
        demodulator=demodulator or Demodulator(),
        on_gap=seen.gaps.append,
        on_trouble=seen.troubles.append,
    )
    return seen


def publish(source: Source, first: int, last: int) -> None:
    for number in range(first, last):
        source.submit(trade(number))
    source.drain(30)


def cut_links(hub: Hub) -> None:
    for link in hub._switchboard.links():
        if link.connection is not None:
            link.connection.close()


def children() -> set[int]:
    """Return the processes that this one has started and that still run."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found |= {int(child) for child in (task / "children").read_text().split()}
        except OSError:
            pass  # a thread that has ended meanwhile
    return found
