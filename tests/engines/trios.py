"""Three members of a group, whatever orders their events and wherever they live. The suite is written against this.

    HubTrio         hubs in this process: embedded in memory, on disk, with TLS; local
    ProcessTrio     processes, each in a network namespace if there can be any: embedded, corosync; they can be killed
    SimulatedTrio   virtual time

What a trio cannot do it says (`lacks`), and tests that need it are skipped with that reason. Members write down what
they are given (`stories`); `settle` waits until all have everything, and checks all that must hold.
"""

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from echoic import Hub, errors
from echoic.hub.group import Group
from echoic.links import Identity
from echoic.testing import SimulatedMembers
from echoic.testing.charter import Charter, party_of
from echoic.testing.readable import is_readable
from tests.engines.corosync_cluster import CorosyncCluster
from tests.engines.member import Attendant
from tests.engines.nursery import Fledgling, hatch
from tests.engines.stories import LIFE, Stories, Story, problems_of

__all__ = [
    "NAMES",
    "CorosyncNodes",
    "HubTrio",
    "Namespaces",
    "ProcessTrio",
    "SimulatedTrio",
    "Trio",
    "corosync_nodes",
    "namespaces",
    "why_no_namespaces",
]

NAMES = ("n1", "n2", "n3")
ANSWER_SECONDS_MAX = 60.0
PORTS = itertools.count(7411)


class Trio(ABC):
    """Three members of a group."""

    def __init__(self, title: str, folder: Path, lacks: Mapping[str, str], **defaults: object) -> None:
        self.title, self.folder = title, folder
        self.lacks = dict(lacks)
        self.defaults = defaults
        self.lives = 0
        self._groups = 0
        self.fresh()

    def need(self, *abilities: str) -> None:
        """Skip a test that needs what this trio cannot do."""
        for ability in abilities:
            if ability in self.lacks:
                pytest.skip(f"{self.title} cannot {ability}: {self.lacks[ability]}")

    def fresh(self) -> None:
        """Be another group from here on, of which nobody is a member yet."""
        self._groups += 1
        self.group = f"{self.title.replace(' ', '-')}-{self._groups}"
        self.place = self.folder / self.group
        self.place.mkdir(parents=True)
        self.stories = Stories(self.place)
        self.present: dict[str, int] = {}
        """Who is there, in which life."""
        self.logs: dict[str, Path] = {}
        """Where members have their logs, if they are on a disk."""

    def join(self, *names: str, wait: bool = True, **options: object) -> None:
        """Let members join, all if none is named, and wait until they are in the view of all."""
        tasks: dict[str, dict[str, object]] = {}
        for name in names or NAMES:
            self.lives += 1
            self.present[name] = self.lives
            given = {**self.defaults, **options}
            if given.get("durability") == "disk":
                given["path"] = str(self.logs.setdefault(name, self.place / f"log-{name}"))
            tasks[name] = {"group": self.group, "story": str(self.place), "life": self.lives, **given}
        self.each("join", tasks)
        if wait:
            self.wait_for_view()

    def wait_for_view(self, seconds: float = 60.0) -> None:
        """Wait until everybody who is there was told of a view of all who are."""
        everybody = tuple(sorted(self.present))

        def seen() -> bool:
            return all(tuple(found["view"]["members"]) == everybody for found in self.ask_all("statistics").values())

        self.until(seen, seconds, lambda: f"no view of {everybody}")

    def settle(self, seconds: float = 60.0) -> list[tuple[int, str, int]]:
        """Wait until all have all that was submitted, check everything, and return what they have."""
        submitted = {name: answer["submitted"] for name, answer in self.ask_all("statistics").items()}

        def complete() -> bool:
            latest = self.stories.latest()
            if any(name not in latest for name in self.present):
                return False
            return all(
                latest[name].last == max(story.last for story in latest.values())
                and self.delivered_of(latest[name], name) >= submitted[name]
                for name in self.present
            )

        self.until(complete, seconds, lambda: f"not everything is everywhere, submitted were {submitted}")
        stories = self.stories.read()
        assert problems_of(stories) == []
        latest = self.stories.latest()
        ends = {story.last for name, story in latest.items() if name in self.present}
        assert ends == {max(story.last for story in stories)}, f"somebody had more than all: {stories} {ends}"
        return latest[min(self.present)].history

    def delivered_of(self, story: Story, name: str) -> int:
        """Return how many events of a member's present life a story has, or stands for by its state."""
        own = (name, self.present[name])
        return max((number % LIFE for _, who, number in story.history if (who, number // LIFE) == own), default=0)

    def until(
        self, condition: Callable[[], bool], seconds: float = 15.0, about: Callable[[], str] = lambda: ""
    ) -> None:
        """Let time pass until something is true.

        Raises:
            AssertionError: It takes too long.
        """
        if not self._wait(condition, seconds):
            shown = [(story, story.last, story.views[-2:], story.restored) for story in self.stories.read()]
            state = {name: self._state_of(name) for name in self.present}
            raise AssertionError(f"{about() or 'it does not come true'} in {seconds} s: {shown} {state}")

    def _state_of(self, name: str) -> object:
        try:
            found = self.ask(name, "statistics")
            return found["reason"], found["delivered"], found["engine"]
        except Exception as error:  # noqa: BLE001 - this is only to be shown
            return repr(error)

    def ask(self, name: str, do: str, /, **arguments: object) -> object:
        """Have a member do something, and return its answer."""
        return self.each(do, {name: arguments})[name]

    def ask_all(self, do: str, /, **arguments: object) -> dict[str, object]:
        """Have all who are there do something at the same time."""
        return self.each(do, dict.fromkeys(self.present, arguments))

    def leave(self, name: str) -> None:
        """Let a member leave the group."""
        self.ask(name, "close")
        del self.present[name]

    def leader(self) -> str:
        """Return who leads; somebody, where nobody does."""
        answers = [self.ask(name, "statistics")["engine"].get("leader") for name in self.present]
        return next((name for name in answers if name in self.present), min(self.present))

    def followers(self) -> list[str]:
        """Return all others."""
        leader = self.leader()
        return [name for name in self.present if name != leader]

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._wait(lambda: False, seconds)

    def end(self) -> None:
        """Let all leave, so that another test can begin."""
        with contextlib.suppress(Exception):
            self.ask_all("close")
        self.fresh()

    @abstractmethod
    def each(self, do: str, tasks: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
        """Have members do something, each with arguments of its own, at the same time."""

    @abstractmethod
    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool: ...

    def forget(self, name: str) -> None:
        """Lose what a member that is not there has on its disk."""
        if name in self.logs:
            shutil.rmtree(self.logs[name], ignore_errors=True)

    def kill(self, name: str) -> None:
        """End a member as kill -9 does."""
        raise NotImplementedError

    def cut(self, name: str) -> None:
        """Part a member from the others."""
        raise NotImplementedError

    def heal(self, name: str) -> None:
        """Let a member's messages pass again."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 - there may be nothing
        """Leave nothing behind."""


class HubTrio(Trio):
    """Hubs in this process."""

    def __init__(
        self, title: str, folder: Path, identity: Callable[[str], Identity] | None = None, **defaults: object
    ) -> None:
        lacks = {
            "kill": "its members are in the process of the test",
            "cut": "its members are in the process of the test",
        }
        if defaults.get("engine") == "local":
            lacks["admit"] = "whoever is in the process may join"
        super().__init__(title, folder, lacks, **defaults)
        self.hubs = {name: Hub(identity=identity(name) if identity else None) for name in NAMES}
        self.peers = {name: hub.address for name, hub in self.hubs.items()}
        self.attendants = {name: Attendant(name, hub.join) for name, hub in self.hubs.items()}
        self._pool = ThreadPoolExecutor(len(NAMES))

    def each(self, do: str, tasks: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
        if do == "join":
            tasks = {name: {**task, "peers": self.peers} for name, task in tasks.items()}
        futures = {name: self._pool.submit(getattr(self.attendants[name], do), **task) for name, task in tasks.items()}
        return {name: future.result(ANSWER_SECONDS_MAX) for name, future in futures.items()}

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        return wait_in_real_time(condition, seconds)

    def close(self) -> None:
        for attendant in self.attendants.values():
            attendant.close()
        for hub in self.hubs.values():
            hub.close()
        self._pool.shutdown()


class SimulatedAttendant(Attendant):
    """A member in virtual time, whose load comes by the clock."""

    world: SimulatedMembers

    def load(self, text: str = "load", pause: float = 0.0) -> None:
        group = self.group

        def run() -> None:
            if self.group is group and self._loading.is_set():
                statistics = group.statistics()
                if not statistics.packing.full:
                    self.submit(3, text)
                self.world.clock.after(max(2_000_000, int(pause * 1e9)), run)

        self._loading.set()
        run()


class SimulatedTrio(Trio):
    """The real core on virtual time."""

    def __init__(self, title: str, folder: Path, seed: int = 0) -> None:
        super().__init__(title, folder, {"be slow": "no virtual time passes in a handler"})
        self.seed = seed

    def fresh(self) -> None:
        super().fresh()
        self.world: SimulatedMembers | None = None
        self._forgotten: set[str] = set()
        self.attendants: dict[str, SimulatedAttendant] = {}

    def join(self, *names: str, wait: bool = True, **options: object) -> None:
        stability = options.pop("stability", "majority")
        for unknown in ("election_timeout", "durability"):
            options.pop(unknown, None)
        if self.world is None:
            self.seed += 1
            self.world = SimulatedMembers(NAMES, self.seed, stability=stability)
        super().join(*names, wait=wait, **options)

    def each(self, do: str, tasks: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
        answers: dict[str, object] = {}
        for name, task in tasks.items():
            if do == "join":
                self.attendants[name] = SimulatedAttendant(name, self._join)
                self.attendants[name].world = self.world
                task = {**task, "peers": {}}
            answers[name] = getattr(self.attendants[name], do)(**task)
        return answers

    def kill(self, name: str) -> None:
        self.world.crash(name)
        del self.present[name]
        self.attendants.pop(name).abandon()

    def forget(self, name: str) -> None:
        self._forgotten.add(name)

    def cut(self, name: str) -> None:
        self.world.cut(name)

    def heal(self, name: str) -> None:
        self.world.heal(name)

    def settled_members(self) -> list[str]:
        """Return who is there and in a view of all who are, so that nobody else is needed to go on."""
        everybody = sorted(self.present)
        found = self.ask_all("statistics")
        return [name for name, each in found.items() if each["view"]["members"] == everybody]

    def leader(self) -> str:
        self.world.advance_until(lambda: self.world.leader is not None)
        return self.world.leader

    def _join(self, group: str, declared: object, *, me: str, peers: object, **options: object) -> Group:
        anew = me in self._forgotten
        self._forgotten.discard(me)
        return self.world.join(me, declared, group=group, anew=anew, **options)

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        end_ns = self.world.clock.now_ns + int(seconds * 1e9)
        while not condition():
            if self.world.clock.now_ns >= end_ns:
                return False
            self.world.advance(20_000_000)
        return True


class CorosyncNodes(CorosyncCluster):
    """A cluster whose members are started without a shell."""

    def places(self, node: int) -> list[str]:
        """Return the files of the namespaces of a node."""
        return [f"/proc/{self._daemons[node].pid}/ns/{kind}" for kind in ("net", "mnt")]


class Namespaces(CorosyncCluster):
    """Network namespaces as a cluster has them, without its daemons."""

    def __init__(self, folder: Path, count: int = 3) -> None:
        super().__init__(folder, count)
        self.id = f"echoic-{os.getpid()}-e"

    def start_daemon(self, node: int) -> None:
        """There is none."""

    def _wait_until_up(self, node: int) -> None:
        """A namespace is."""

    def places(self, node: int) -> list[str]:
        """Return the files of the namespaces of a node."""
        return [f"/run/netns/{self.id}-n{node}"]


def why_no_namespaces() -> str:
    """Return why there can be no namespaces here; nothing if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [program for program in ("ip", "nsenter") if not shutil.which(program)]
    if missing:
        return f"not installed: {', '.join(missing)}"
    name = f"echoic-{os.getpid()}-p"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return f"no network namespaces: {made.stderr.strip()}" if made.returncode else ""


@contextlib.contextmanager
def namespaces(folder: Path) -> Iterator[Namespaces | None]:
    """Make namespaces for three nodes, and leave none behind; None where there can be none."""
    if why_no_namespaces():
        yield None
        return
    made = Namespaces(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@contextlib.contextmanager
def corosync_nodes(folder: Path) -> Iterator[CorosyncNodes]:
    """Run a cluster, and leave nothing behind."""
    made = CorosyncNodes(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()


class ProcessTrio(Trio):
    """Processes, on nodes of their own if there are any."""

    def __init__(
        self,
        title: str,
        folder: Path,
        nodes: CorosyncNodes | Namespaces | None,
        identity: Callable[[str], Identity] | None = None,
        charter: Charter | None = None,
        **defaults: object,
    ) -> None:
        lacks = {} if nodes is not None else {"cut": why_no_namespaces()}
        if defaults.get("engine") == "corosync":
            lacks["admit"] = "its members are configured"
        super().__init__(title, folder, lacks, **defaults)
        self.nodes = nodes
        self.processes: dict[str, Fledgling] = {}
        self.peers = {name: address_of(name, nodes, port=next(PORTS)) for name in NAMES}
        self.charter = charter
        """By which certificates and rights members go, if not by an identity alone."""
        self._identities = {name: identity(name) for name in NAMES} if identity else {}
        self.bug = ""
        """A mistake that all processes have which are started from here on."""

    def start(self, *names: str) -> None:
        """Start the processes of members, which are of no group yet."""
        for name in names:
            party = party_of(self.charter, name)
            identity = party["identity"] or self._identities.get(name)
            proof = [str(identity.certificate), str(identity.key), str(identity.authority)] if identity else []
            proof += [str(party["rights"])] if party["rights"] else []
            errors_path = self.folder / f"{name}.errors"
            places = self.nodes.places(int(name[1:])) if self.nodes is not None else []
            self.processes[name] = hatch([name, self.peers[name], *proof], places, errors_path)
        for name in names:
            self._answer(name)
        if self.bug:
            self.each("plant", {name: {"bug": self.bug} for name in names})

    def each(self, do: str, tasks: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
        if do == "join":
            self.start(*(name for name in tasks if name not in self.processes))
            tasks = {name: {**task, "peers": self.peers} for name, task in tasks.items()}
        for name, task in tasks.items():
            told = self.processes[name].stdin
            told.write(json.dumps({"do": do, **task}).encode() + b"\n")
            told.flush()
        answers = {name: self._answer(name) for name in tasks}
        for name, answer in answers.items():
            if "error" in answer:
                kind = getattr(errors, answer["error"])
                raise kind({name: answer["reason"]} if kind is errors.DeliveryError else answer["reason"])
        return {name: answer["result"] for name, answer in answers.items()}

    def kill(self, name: str) -> None:
        self.end_process(name)
        self.present.pop(name, None)

    def stop(self, name: str) -> None:
        """Let a member stand still."""
        self.processes[name].send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let it go on."""
        self.processes[name].send_signal(signal.SIGCONT)

    def cut(self, name: str) -> None:
        self.nodes.cut(int(name[1:]))

    def heal(self, name: str) -> None:
        self.nodes.heal(int(name[1:]))

    def end_process(self, name: str) -> None:
        self.processes.pop(name).kill()

    def end(self) -> None:
        for name in NAMES:
            if self.nodes is not None:
                self.heal(name)
        try:
            self.each("close", {name: {} for name in self.processes})
        except (AssertionError, OSError, errors.EchoicError):
            for name in list(self.processes):
                self.end_process(name)
        self.fresh()

    def close(self) -> None:
        for name in list(self.processes):
            self.end_process(name)

    def _answer(self, name: str) -> dict[str, object]:
        heard = self.processes[name].stdout
        ready = is_readable(heard, ANSWER_SECONDS_MAX)
        line = heard.readline() if ready else b""
        if not line:
            told = (self.folder / f"{name}.errors").read_text()[-2000:]
            raise AssertionError(f"{name} does not answer: {told}")
        return json.loads(line)

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        return wait_in_real_time(condition, seconds)


def wait_in_real_time(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def address_of(name: str, nodes: CorosyncCluster | None, *, port: int) -> str:
    """Return where a member listens: on its node, or at a port of this machine that is free now."""
    if nodes is not None:
        return f"10.99.0.{name[1:]}:{port}"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"
