"""Eager handlers between processes: where the shipped code runs, and what becomes of everybody when somebody is killed.

The viewer's classes are those of a program that was started by its path, so their text is found there and sent.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from echoic import SigningKey
from tests.eager.installing import CONFINING
from tests.system.processes import Process, Start, processes, wait_until

pytestmark = pytest.mark.system

WORKER = Path(__file__).with_name("eager_worker.py")
confining = pytest.mark.skipif(not CONFINING, reason="needs bubblewrap, which `./run test` installs")

View = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    with processes(WORKER) as start:
        yield start


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    key = SigningKey.generate()
    key.save(tmp_path / "viewer.key")
    return key


@pytest.fixture
def view(start: Start, key: SigningKey, tmp_path: Path) -> View:
    """Start a viewer with a key of its own; one that wants every 0th event has no modulator."""
    return lambda source, every: start(
        "view", channel=source.started["id"], every=every, key=str(tmp_path / "viewer.key")
    )


@pytest.fixture(params=["in process", pytest.param("confined", marks=confining)])
def source(request: pytest.FixtureRequest, start: Start, key: SigningKey) -> Process:
    keys = [[key.public], []]
    trusted, sandboxed = keys if request.param == "in process" else reversed(keys)
    return start("produce", trusted=trusted, sandboxed=sandboxed)


@pytest.fixture
def confining_source(start: Start) -> Process:
    return start("produce", trusted=[], sandboxed=["*"])


def descendants(process: int) -> set[int]:
    """Return the processes that a process has started, and those that they have."""
    found: set[int] = set()
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = {int(child) for child in file.read_text().split()}
        except OSError:
            continue  # it has ended meanwhile
        found |= children.union(*(descendants(child) for child in children))
    return found


def cells(source: Process) -> set[int]:
    """Return the processes of a confined modulator and of the spare one beside it, when both have begun.

    Who is stopped while it is being confined cannot be told from one that takes long to start.
    """

    def begun() -> bool:
        lines = map(command_line, descendants(source.id))
        return sum(b"boot.py" in line.partition(b"--")[0] for line in lines) == 2

    wait_until(begun, "both have begun")
    return descendants(source.id)


def command_line(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""  # it has ended meanwhile


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def flows(viewer: Process, more: int) -> None:
    goal = viewer.ask()["count"] + more
    wait_until(lambda: viewer.ask()["count"] >= goal, "events flow")


def has_everything(source: Process, plain: Process) -> None:
    """Check that a viewer without a modulator got every event since its first, though others were in trouble."""
    submitted = source.ask("halt")["submitted"]
    wait_until(lambda: plain.ask()["last"] == submitted - 1, "all events")
    told = plain.ask()
    assert (told["steps"], told["gaps"], told["troubles"]) == ([1], [], [])
    assert told["count"] == submitted - told["first"]


def test_the_code_runs_where_its_key_is_listed(source: Process, view: View) -> None:
    plain, viewer = view(source, 0), view(source, 50)
    assert viewer.started["refused"] == ""
    flows(viewer, 20)
    told = viewer.ask()
    assert (told["steps"], told["gaps"], told["troubles"]) == ([50], [], [])
    viewer.ask("every 7")

    def changed() -> bool:
        viewer.ask("forget")
        flows(viewer, 5)
        return viewer.ask()["steps"] == [7]

    wait_until(changed, "the source has heard of another view")
    has_everything(source, plain)


def test_trusted_code_needs_no_other_process_and_confined_code_has_one(
    start: Start, key: SigningKey, view: View, confining_source: Process
) -> None:
    trusting = start("produce", trusted=[key.public], sandboxed=["*"])
    flows(view(trusting, 5), 5)
    assert not descendants(trusting.id)
    if CONFINING:
        flows(view(confining_source, 5), 5)
        assert descendants(confining_source.id)


def test_a_key_that_is_not_listed_is_refused_and_nothing_is_run(start: Start, view: View, key: SigningKey) -> None:
    source = start("produce", trusted=[SigningKey.generate().public], sandboxed=[])
    plain, refused = view(source, 0), view(source, 10)
    assert refused.started["refused"].startswith("RefusedError")
    assert f"runs no modulators signed by {key.public}" in refused.started["refused"]
    assert "echoic keys trust" in refused.started["refused"]
    flows(plain, 500)
    assert source.ask()["events_in"] == 0
    assert not descendants(source.id)
    has_everything(source, plain)


@confining
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_confined_process_comes_to_harm_and_the_source_does_not(
    confining_source: Process, view: View, number: signal.Signals
) -> None:
    """Whoever listens is told, and can begin again."""
    plain, viewer = view(confining_source, 0), view(confining_source, 10)
    flows(viewer, 20)
    flows(plain, 200)
    victims = cells(confining_source)
    for victim in victims:
        os.kill(victim, number)
    wait_until(lambda: viewer.ask()["troubles"], "the viewer is told")
    [reason] = confining_source.ask()["suspended"]
    assert "`Every`" in reason
    wait_until(lambda: not any(map(alive, victims)), "nothing is left of them")
    flows(plain, 1000)
    viewer.ask("again 20")
    viewer.ask("forget")
    flows(viewer, 20)
    assert viewer.ask()["steps"] == [20]
    has_everything(confining_source, plain)


def test_a_viewer_is_killed_and_its_modulator_runs_no_more(source: Process, view: View) -> None:
    plain, victim = view(source, 0), view(source, 10)
    flows(victim, 20)
    flows(plain, 200)
    victim.kill()
    wait_until(lambda: rests(source, plain), "the modulator has nothing to do")
    successor = view(source, 10)
    flows(successor, 20)
    told = successor.ask()
    assert (told["steps"], told["gaps"], told["troubles"]) == ([10], [], [])
    has_everything(source, plain)


def rests(source: Process, plain: Process) -> bool:
    """Whether no modulator sees events while they flow."""
    before = source.ask()["events_in"]
    flows(plain, 1000)
    return source.ask()["events_in"] == before


@confining
@pytest.mark.parametrize("way", ["killed", "stopped"])
def test_a_source_that_ends_leaves_no_confined_process(confining_source: Process, view: View, way: str) -> None:
    flows(view(confining_source, 10), 20)
    confined = descendants(confining_source.id)
    assert confined
    if way == "killed":
        confining_source.kill()
    else:
        confining_source.end()
    wait_until(lambda: not any(map(alive, confined)), "they end with it")
