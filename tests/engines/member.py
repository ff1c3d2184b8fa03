"""A member of a group that does what it is told and writes down what it is given (`stories`): here, or as a process.

    python -m tests.engines.member NAME ADDRESS [CERTIFICATE KEY AUTHORITY [RIGHTS]]

As a process it has a hub at the address, reads one command a line, as `{"do": "submit", "count": 3}`, and answers each
with a line, `{"result": 3}` or `{"error": "DeliveryError", "reason": "..."}`. It ends when nobody speaks to it any
more.
"""

import json
import resource
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from echoic import Hub
from echoic.engines.corosync import engine as corosync_engine
from echoic.errors import EchoicError
from echoic.hub.group import Group
from echoic.hub.group_delivery import GroupStamp
from echoic.links import Identity
from echoic.replicas import ReplicatedLog
from echoic.testing import planted_agreement, planted_bugs
from echoic.wire import Batch
from tests.engines.stories import LIFE

__all__ = ["Attendant", "Note", "SignedNote"]


class Note(msgspec.Struct):
    number: int
    text: str


class SignedNote(msgspec.Struct):
    """What a later version of a program submits: the same, and more."""

    number: int
    text: str
    signature: str = "nobody"
    pages: float = 1.0


TYPES = {"Note": Note, "SignedNote": SignedNote}


class Notebook:
    """State of an application: all events. Without a disk it is in the group's snapshots."""

    durable = False

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self.events: list[tuple[int, str, int, str]] = []

    def applied(self) -> int:
        return self.events[-1][0] if self.events else 0

    def save(self, after: int) -> Iterable[bytes]:
        text = json.dumps([event for event in self.events if event[0] > after]).encode()
        return [text[start : start + 1000] for start in range(0, len(text), 1000)]

    def load(self, chunks: Iterable[bytes], upto: int) -> None:
        loaded = [tuple(event) for event in json.loads(b"".join(chunks) or b"[]")]
        known = self.applied()
        self.events += [event for event in loaded if event[0] > known]
        self._write(f"R {upto} {json.dumps(loaded)}\n")


class Attendant:
    """One member of one group at a time."""

    def __init__(self, name: str, join: Callable[..., Group]) -> None:
        self.name = name
        self._join = join
        self.group: Group | None = None
        self._closing: list[Callable[[], None]] = []
        self._loading = threading.Event()
        self._loader: threading.Thread | None = None

    def join(
        self,
        group: str,
        peers: Mapping[str, str],
        story: str,
        life: int,
        *,
        kind: str = "Note",
        state: str = "",
        slow: float = 0.0,
        batch: bool = True,
        **options: object,
    ) -> None:
        """Join a group; `state` is `notebook`, or the URL of a database; `slow` is how long an event takes."""
        path = Path(story) / f"{self.name}.{life}.story"
        self._file = path.open("wb", buffering=0)
        self.life, self.slow, self.declared = life, slow, TYPES[kind]
        self.notebook = Notebook(self.write)
        self._log: ReplicatedLog | None = None
        if state == "notebook":
            options["state"] = self.notebook
        elif state:
            self._log = ReplicatedLog("notes", self.declared, state)
            options["state"] = self._log
            self._closing.append(self._log.close)
        self.group = self._join(group, self.declared, me=self.name, peers=peers, **options)
        self.group.subscribe(
            self.take_batch if batch else self.take, batch=batch, on_view=self.take_view, on_gap=self.take_gap
        )

    def write(self, text: str) -> None:
        self._file.write(text.encode())

    def take(self, event: object, stamp: GroupStamp) -> None:
        self.take_events([event], stamp)

    def take_batch(self, batch: Batch, stamp: GroupStamp) -> None:
        if self._log is not None:
            self._log.deliver(batch, stamp)
        self.take_events(list(batch.to(self.declared).events()), stamp)

    def take_events(self, events: list[object], stamp: GroupStamp) -> None:
        lines: list[str] = []
        view = stamp.view.position if stamp.view.primary else 0
        for sequence, event in enumerate(events, stamp.sequence):
            digest = f"{len(event.text)}.{zlib.crc32(event.text.encode()):x}"
            self.notebook.events.append((sequence, stamp.sender, event.number, digest))
            lines.append(f"E {sequence} {view} {stamp.sender} {event.number} {digest}\n")
            if self.slow:
                time.sleep(self.slow)
        self.write("".join(lines))

    def take_view(self, view: object) -> None:
        self.write(f"V {view.position} {view.primary:d} {','.join(view.members)}\n")

    def take_gap(self, first: int, last: int) -> None:
        self.write(f"G {first} {last}\n")

    @property
    def submitted(self) -> int:
        return self.group.statistics().submitted

    def note(self, text: str) -> object:
        return self.declared(self.life * LIFE + self.submitted + 1, text)

    def submit(self, count: int = 1, text: str = "", size: int = 0) -> int:
        """Submit events, and return how many there are now."""
        for _ in range(count):
            self.group.submit(self.note(text * (size or 1)))
        return self.submitted

    def submit_sync(self, text: str = "", timeout: float = 5.0) -> list[object]:
        stamp = self.group.submit_sync(self.note(text), timeout)
        return [stamp.sequence, stamp.sender, list(stamp.view.members)]

    def load(self, text: str = "load", pause: float = 0.0) -> None:
        """Submit until `unload`, in a thread."""
        self._loading.set()

        def run() -> None:
            group = self.group
            while self._loading.is_set():
                try:
                    group.submit(self.declared(self.life * LIFE + group.statistics().submitted + 1, text))
                except EchoicError:  # closed, or nobody answers
                    return
                if pause:
                    time.sleep(pause)

        self._loader = threading.Thread(target=run, daemon=True)
        self._loader.start()

    def unload(self) -> int:
        """Submit no more; return how many events were submitted."""
        self._loading.clear()
        if self._loader is not None:
            self._loader.join(40)
            self._loader = None
        return self.submitted

    def set_clock(self, seconds: float) -> None:
        """See another date from here on, as if the clock of this machine were wrong."""
        clock_ns = time.time_ns
        time.time_ns = lambda: clock_ns() + int(seconds * 1e9)
        time.time = lambda: time.time_ns() / 1e9

    def plant(self, bug: str) -> None:
        """Have a mistake, as long as this process lives: what a campaign is worth shows when it finds one."""
        if bug in planted_agreement.BUGS:
            corosync_engine.Agreement = planted_agreement.BUGS[bug]
        else:
            kind, method, wrong, _ = planted_bugs.BUGS[bug]
            setattr(kind, method, wrong)

    def hurry(self) -> None:
        """Be slow no more."""
        self.slow = 0.0

    def drain(self, timeout: float = 60.0) -> None:
        self.group.drain(timeout)

    def statistics(self) -> dict[str, object]:
        """Return how this member stands, as JSON can tell it."""
        found = msgspec.to_builtins(self.group.statistics())
        found["memory_bytes"] = _resident_bytes()
        return json.loads(json.dumps(found))

    def changes(self) -> list[str]:
        return [repr(change) for change in self.group.packing.changes()]

    def admit(self, name: str, address: str) -> None:
        self.group.admit(name, address)

    def expel(self, name: str) -> None:
        self.group.expel(name)

    def table(self) -> list[list[object]]:
        """Return what is in the database."""
        self._log.flush()
        return [[row.sequence, row.sender, row.event.number, row.event.text] for row in self._log.read()]

    def close(self) -> None:
        """Leave the group."""
        self._loading.clear()
        if self.group is not None:
            group, self.group = self.group, None
            group.close()
            self.abandon()

    def abandon(self) -> None:
        """Let go of everything but the group."""
        self.group = None
        while self._closing:
            self._closing.pop()()
        self._file.close()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main(name: str, address: str, *identity: str) -> None:
    """Do what is read, until nothing more is."""
    proof = Identity(*map(Path, identity[:3])) if identity else None
    with Hub(address, identity=proof, insecure=proof is None, rights="".join(identity[3:]) or None) as hub:
        attendant = Attendant(name, hub.join)
        print(json.dumps({"result": hub.address}), flush=True)
        for line in sys.stdin:
            command = json.loads(line)
            try:
                answer = {"result": getattr(attendant, command.pop("do"))(**command)}
            except EchoicError as error:
                answer = {"error": type(error).__name__, "reason": str(error)}
            print(json.dumps(answer), flush=True)
        attendant.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
