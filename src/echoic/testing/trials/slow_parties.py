"""The processes of the trial of slow sinks: a source, sinks that count, and a recorder.

What sinks have counted is in a file that all map, so that the source knows when a sink is done without asking it. Each
has the certificate and the rights of its role, if the environment says so.
"""

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from echoic.channels import Gap
from echoic.hub import Hub, Source
from echoic.testing.charter import Grants, party_of_environment
from echoic.testing.trials.accounts import Spans
from echoic.testing.trials.workers import Conversation
from echoic.wire import Batch

__all__ = ["AFFLICTED", "BATCH", "COUNT", "EVENT_BYTES", "FEED", "FREE", "GRANTS", "KEEP", "Tallies"]

FEED: Final = f"{__name__}:feed"
COUNT: Final = f"{__name__}:count"
KEEP: Final = f"{__name__}:keep"
AFFLICTED, FREE = "afflicted", "free"
SLOTS: Final = (AFFLICTED, FREE)
GRANTS: Final[Grants] = {
    "source": [f"publish,admin {channel}" for channel in SLOTS],
    "keen": [f"subscribe {channel}" for channel in SLOTS],
    "slow": [f"subscribe {AFFLICTED}"],
    "recorder": [f"subscribe {AFFLICTED}"],
}
BATCH: Final = 1000
EVENT_BYTES: Final = 100
EVENT: Final = np.dtype([("number", "<i8"), ("filler", "S92")])
LOOK_SECONDS: Final = 0.0002
SLICE_SECONDS_MAX: Final = 60.0
RESTING_SECONDS: Final = 0.5


class Tallies:
    """How many events of each channel a sink has got, for all to see."""

    def __init__(self, path: str) -> None:
        if not Path(path).exists():
            Path(path).write_bytes(bytes(8 * len(SLOTS)))
        self._numbers = np.memmap(path, np.int64, "r+", shape=(len(SLOTS),))

    def of(self, channel: str) -> int:
        """Return how many there are."""
        return int(self._numbers[SLOTS.index(channel)])

    def set(self, channel: str, count: int) -> None:
        """Note how many there are."""
        self._numbers[SLOTS.index(channel)] = count


class Feeding:
    """A source of one channel, and how long a slice of its events takes to reach the sink that keeps up."""

    def __init__(self, source: Source, name: str, tallies: Tallies) -> None:
        self.submitted = 0
        self._source, self._name, self._tallies = source, name, tallies
        self._behind: threading.Thread | None = None

    def pour(self, count: int) -> None:
        """Submit so many events."""
        for _ in range(count // BATCH):
            made = np.zeros(BATCH, EVENT)
            made["number"] = np.arange(self.submitted, self.submitted + BATCH)
            self._source.submit_batch(made)
            self.submitted += BATCH

    def measure(self, count: int) -> float:
        """Submit so many events, and return how many a second the sink that keeps up has got."""
        began = time.perf_counter()
        self.pour(count)
        while self._tallies.of(self._name) < self.submitted:
            time.sleep(LOOK_SECONDS)
            if time.perf_counter() - began > SLICE_SECONDS_MAX:
                return 0.0
        return count / (time.perf_counter() - began)

    def pour_aside(self, count: int) -> bool:
        """Submit so many events in another thread; return, when nothing moves any more, whether it has to wait."""
        self._behind = threading.Thread(target=self.pour, args=(count,))
        self._behind.start()
        before = -1
        while before != self.submitted:
            before = self.submitted
            time.sleep(RESTING_SECONDS)
        return self._behind.is_alive()

    def join(self) -> None:
        """Wait until what is poured aside was submitted."""
        if self._behind is not None:
            self._behind.join()


def feed(conversation: Conversation) -> None:
    """Be the source of both channels; this runs in a worker."""
    tallies = Tallies(conversation.options["tallies"])
    with Hub(**party_of_environment()) as hub:
        channels = {name: hub.create(name, EVENT) for name in SLOTS}
        feedings = {name: Feeding(channel.source(), name, tallies) for name, channel in channels.items()}
        conversation.say(**{name: channel.id for name, channel in channels.items()})
        for question in conversation.questions():
            feeding = feedings[question.get("channel", AFFLICTED)]
            match question["do"]:
                case "measure":
                    conversation.say(rate=feeding.measure(question["count"]))
                case "pour_aside":
                    conversation.say(waits=feeding.pour_aside(question["count"]))
                case "join":
                    feeding.join()
                    conversation.say(submitted=feeding.submitted)
                case _:
                    conversation.say(submitted=feeding.submitted)


def count(conversation: Conversation) -> None:
    """Be a sink that writes down what it gets and what it is told that it will not get; this runs in a worker."""
    options = conversation.options
    tallies = Tallies(options["tallies"])
    got = {name: Spans() for name in options["channels"]}
    gaps: list[tuple[int, int]] = []

    def take(name: str, batch: Batch, _: object = None) -> None:
        numbers = batch.array["number"]
        for part in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
            got[name].add(int(part[0]), int(part[-1]))
        tallies.set(name, got[name].count)

    def note(gap: Gap) -> None:
        gaps.append((gap.first, gap.last))

    with Hub(**party_of_environment()) as hub:
        sinks: list[Any] = []
        for name, id in options["channels"].items():
            channel = hub.open(id)
            handle = partial(take, name)
            if options["slow"] == "spill":
                sinks.append(channel.resume(handle, batch=True))
            else:
                sinks.append(channel.subscribe(handle, batch=True, slow=options["slow"], on_gap=note))
        conversation.say(ready=True)
        for _ in conversation.questions():
            conversation.say(
                spans={name: spans.all for name, spans in got.items()},
                counts={name: spans.count for name, spans in got.items()},
                gaps=gaps,
                closed=any(sink.closed for sink in sinks),
            )


def keep(conversation: Conversation) -> None:
    """Record a channel; this runs in a worker."""
    options = conversation.options
    with Hub(**party_of_environment()) as hub, hub.record(hub.open(options["channel"]), options["folder"]):
        conversation.say(ready=True)
        for _ in conversation.questions():
            conversation.say(ok=True)
