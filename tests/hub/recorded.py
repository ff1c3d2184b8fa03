"""A channel that is recorded, and a sink that remembers what it was given and where that stands."""

import threading
from collections.abc import Iterable
from pathlib import Path

from echoic import Hub
from echoic.hub import Channel, DurableSink, Recording, Source, Stamp
from tests.hub.parties import Tick, eventually

__all__ = ["Ledger", "Recorded", "submit", "ticks"]


def ticks(numbers: Iterable[int], producer: int = 0) -> list[Tick]:
    return [Tick(producer=producer, number=number) for number in numbers]


def submit(source: Source, numbers: Iterable[int]) -> None:
    """Submit events, and return when they are on the recorder's disk."""
    source.submit_batch(ticks(numbers))
    source.drain(30)


class Ledger:
    """What a handler was called with; it raises at events of `poison`."""

    def __init__(self, poison: Iterable[int] = ()) -> None:
        self.numbers: list[int] = []
        self.stamps: list[Stamp] = []
        self.gaps: list[object] = []
        self.poison = set(poison)
        self.lock = threading.Lock()

    def __call__(self, tick: Tick, stamp: Stamp) -> None:
        if tick.number in self.poison:
            raise ValueError(f"{tick.number} is not wanted")
        with self.lock:
            self.numbers.append(tick.number)
            self.stamps.append(stamp)

    def has(self, count: int) -> None:
        """Wait for so many events, and for no more."""
        eventually(lambda: len(self.numbers) >= count)
        assert len(self.numbers) == count


class Recorded:
    """A channel `ticks`, managed by one hub and recorded by another, which can be restarted."""

    def __init__(self, path: Path, **options: object) -> None:
        self.path = path
        self.options = options
        self.manager = Hub()
        self.channel: Channel = self.manager.create("ticks", Tick)
        self.recorder: Hub
        self.recording: Recording
        self.start()
        self.source: Source = self.channel.source()

    def start(self) -> None:
        """Record, in a hub that has not been there before."""
        self.recorder = Hub()
        self.recording = self.recorder.record(self.channel.id, self.path, **self.options)

    def stop(self) -> None:
        """End the recorder's hub, so that another one will go on with its journal."""
        self.recording.close(release=False)
        self.recorder.close()

    def open(self, hub: Hub) -> Channel:
        return hub.open(self.channel.id, Tick)

    def behind(self, sink: DurableSink) -> int:
        return sum(self.recording.heads) - sum(sink.positions)

    def close(self) -> None:
        self.recorder.close()
        self.manager.close()
