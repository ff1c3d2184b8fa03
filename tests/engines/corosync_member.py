"""A member of a group over Corosync, as a process of its own: it sends, and writes down what it is given.

    D position sender life number      a pack
    V position name,name               a view
    R position [[sender, life, number], ...]    another's state
    S, E reason                        suspended, ended
    P number                           has sent so many, and sends no more

It sends until there is a file `stop` in its folder, at most `window` packs ahead of what came back. With the name of a
planted bug (`echoic.testing.planted_agreement`) it has that bug: what a campaign is worth shows when it finds one.
"""

import json
import select
import sys
import time
from pathlib import Path

from echoic.engines.corosync import CorosyncEngine, engine
from echoic.groups.engine import Delivered, Ended, EngineEvent, Restored, StateWanted, Suspended, Viewed
from echoic.testing.planted_agreement import BUGS

MEMBERS = ("n1", "n2", "n3")
RUN_SECONDS_MAX = 900


class Member:
    def __init__(self, name: str, life: int, folder: Path, window: int, kept_bytes_max: int) -> None:
        self.name, self.life, self.folder, self.window = name, life, folder, window
        now_ns = time.monotonic_ns()
        options = {"life": life, "kept_bytes_max": kept_bytes_max, "now_ns": now_ns}
        self.engine = CorosyncEngine("echoic", name, MEMBERS, **options)
        self.out = (folder / f"{name}.{life}.log").open("w", buffering=1 << 16)
        self.given: list[tuple[str, int, int]] = []
        self.position = self.sent = self.came = 0
        self.payload = b"x" * 1000
        self.stopped = self.ended = False

    def run(self) -> None:
        poll = select.poll()
        for descriptor, events in self.engine.descriptors().items():
            poll.register(descriptor, events)
        deadline = time.monotonic() + RUN_SECONDS_MAX
        while not self.ended and time.monotonic() < deadline:
            now_ns = time.monotonic_ns()
            wait_ns = min(max(0, self.engine.wake_ns() - now_ns), 20_000_000)
            ready = poll.poll(wait_ns / 1e6)
            for event in self.engine.turn(ready, time.monotonic_ns()):
                self.learn(event)
            self.send()
            self.out.flush()

    def send(self) -> None:
        if not self.stopped and (self.folder / "stop").exists():
            self.stopped = True
            self.write(f"P {self.sent}")
        while not self.stopped and self.sent < self.came + self.window:
            self.sent += 1
            self.engine.send(self.sent.to_bytes(8, "big") + self.payload, time.monotonic_ns())

    def write(self, line: str) -> None:
        self.out.write(line + "\n")

    def learn(self, event: EngineEvent) -> None:
        match event:
            case Delivered():
                assert int.from_bytes(event.payload[:8], "big") == event.number
                self.position = event.position
                self.given.append((event.sender, event.life, event.number))
                if (event.sender, event.life) == (self.name, self.life):
                    self.came = event.number
                self.write(f"D {event.position} {event.sender} {event.life} {event.number}")
            case Viewed():
                self.position = event.view.position
                self.write(f"V {event.view.position} {','.join(event.view.members)}")
            case Restored():
                self.position = event.position
                self.given = [tuple(one) for one in json.loads(b"".join(event.chunks))]
                assert len(self.given) == int(event.summary)
                own = [number for sender, life, number in self.given if (sender, life) == (self.name, self.life)]
                self.came = max([self.came, *own])
                self.write(f"R {event.position} {json.dumps(self.given)}")
            case StateWanted():
                chunks = [json.dumps(self.given).encode()]
                self.engine.give_state(event.ticket, self.position, b"%d" % len(self.given), chunks)
            case Suspended():
                self.write(f"S {event.reason}")
            case Ended():
                self.ended = True
                self.write(f"E {event.reason}")


if __name__ == "__main__":
    name, life, folder, window, kept, *bugs = sys.argv[1:]
    for bug in bugs:
        engine.Agreement = BUGS[bug]  # type: ignore[misc]
    Member(name, int(life), Path(folder), int(window), int(kept)).run()
