"""A process with a hub that has a source, or an eager handler, told by lines of JSON what to do.

A source publishes until it is told to halt, and runs the modulators of the keys that it is told to. A viewer subscribes
with a modulator that it has signed, and tells what has come, what is missing and what trouble there was.
"""

import itertools
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import echoic
from echoic.errors import EchoicError

PAUSE_EVERY = 50
PAUSE_SECONDS = 0.01
POOR_BYTES = 16


@echoic.event
class Tick:
    number: echoic.int64
    payload: bytes


class View(echoic.SharedObject):
    """What a viewer wants, and may change."""

    every: int = 1


class Every(echoic.Modulator):
    """Sends every so-many'th event."""

    view: View

    def enqueue(self, event: Any) -> None:
        if event.number % self.view.every == 0:
            super().enqueue(event)


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def command() -> list[str]:
    return sys.stdin.readline().split() or ["stop"]


def produce(options: dict[str, Any]) -> None:
    # No limit of load, and a long one of calls: where others use the processors too, what runs briefly seems to take
    # long, and is suspended.
    keys = {"trusted_keys": tuple(options["trusted"]), "sandboxed_keys": tuple(options["sandboxed"])}
    policy = echoic.Policy(load_max=1000.0, modulator_seconds_max=5.0, **keys)
    submitted, halted = 0, threading.Event()
    with echoic.Hub("127.0.0.1:0", policy=policy) as hub:
        channel = hub.create("ticks", Tick)
        source = channel.source()

        def run() -> None:
            nonlocal submitted
            while not halted.is_set():
                source.submit(Tick(submitted, bytes(POOR_BYTES)))
                submitted += 1
                if submitted % PAUSE_EVERY == 0:
                    time.sleep(PAUSE_SECONDS)
            source.flush()

        thread = threading.Thread(target=run)
        thread.start()
        say(id=channel.id, address=hub.address)
        while (word := command()[0]) != "stop":
            if word == "halt":
                halted.set()
                thread.join()
            derivations = hub.report(hub.address).derivations
            say(
                submitted=submitted,
                events_in=sum(counts.events_in for counts in derivations),
                suspended=[counts.suspended for counts in derivations if counts.suspended],
            )
        halted.set()
        thread.join(10)


class Viewer:
    """Remembers what has come, as one event after the other."""

    def __init__(self, hub: echoic.Hub, options: dict[str, Any]) -> None:
        self.view = View(options["every"])
        self.numbers: list[int] = []
        self.gaps: list[tuple[int, int]] = []
        self.troubles: list[str] = []
        channel = hub.open(options["channel"], Tick)
        modulator = Every(self.view) if options["every"] else None
        self.handle = channel.subscribe(
            lambda tick: self.numbers.append(tick.number),
            modulator=modulator,
            demodulator=echoic.Demodulator(),
            on_gap=lambda gap: self.gaps.append((gap.first, gap.last)),
            on_trouble=lambda trouble: self.troubles.append(trouble.text),
        )

    def tell(self) -> None:
        numbers = list(self.numbers)
        steps = {later - earlier for earlier, later in itertools.pairwise(numbers)}
        say(
            count=len(numbers),
            first=numbers[0] if numbers else -1,
            last=numbers[-1] if numbers else -1,
            steps=sorted(steps),
            gaps=self.gaps,
            troubles=self.troubles,
        )


def view(options: dict[str, Any]) -> None:
    with echoic.Hub("127.0.0.1:0", key=echoic.SigningKey.load(Path(options["key"]))) as hub:
        try:
            viewer = Viewer(hub, options)
        except EchoicError as error:
            say(refused=f"{type(error).__name__}: {error}")
            return
        say(refused="")
        while (words := command())[0] != "stop":
            if words[0] == "every":
                viewer.view.every = int(words[1])
                viewer.view.publish()
            elif words[0] == "again":
                viewer.handle.reset(Every(View(int(words[1]))))
            elif words[0] == "forget":
                viewer.numbers.clear()
            viewer.tell()


def main() -> None:
    options = json.loads(sys.stdin.readline())
    {"produce": produce, "view": view}[options["role"]](options)


if __name__ == "__main__":
    main()
