"""The real sandbox: code that breaks the rules of its pipe is ended, and where nothing can be confined nothing runs.

What else hostile modulators try is trial 21, `tests/reliability/test_21_escapes.py`.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from echoic.channels import Runner
from echoic.eager import Limits, Modulator
from echoic.eager.install import install
from echoic.eager.parcel import Parcel, sign
from echoic.errors import ModulatorError, RefusedError
from echoic.formats import Format
from echoic.testing.trials.attacks import AnswersTwice, GoesOnAfterItsAnswer
from tests.eager.installing import (
    CONFINING,
    KEY,
    PARENT,
    NoSharedObjects,
    Number,
    grant_nothing,
    numbers,
    run_confined,
)

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not CONFINING, reason="needs bubblewrap, which `./run test` installs"),
]

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 0.25
LATE_SECONDS_MAX = 30.0  # for a machine that does other work; what is measured is printed
LIMITS = Limits(seconds=LIMIT_SECONDS, memory_bytes=128 * 1024 * 1024, load_seconds=20, start_seconds=60)


class Honest(Modulator):
    least: int = 0

    def enqueue(self, event: Any) -> None:
        if event.value >= self.least:
            super().enqueue(event)


@pytest.fixture(scope="module")
def honest() -> Iterator[Runner]:
    """Somebody else's modulator, which must not notice any of this."""
    runner = run_confined(Honest(2))
    yield runner
    runner.close()


def descendants() -> set[int]:
    """Return all processes that come from this one."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = status.read_text()
        except OSError:
            continue
        parents[int(status.parent.name)] = int(text.rpartition(")")[2].split()[1])
    found, more = {os.getpid()}, True
    while more:
        children = {pid for pid, parent in parents.items() if parent in found} - found
        found |= children
        more = bool(children)
    return found - {os.getpid()}


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + LATE_SECONDS_MAX
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, f"process {pid} is left"
        time.sleep(0.005)


def test_code_that_answers_by_itself_and_goes_on_is_ended_though_nobody_asks_again(honest: Runner) -> None:
    runner = run_confined(GoesOnAfterItsAnswer())
    assert runner.work(1, numbers(1)).batch is None
    wait_until_gone(runner.pid)
    with pytest.raises(ModulatorError, match="went on after its answer"):
        runner.work(1, numbers(1))
    runner.close()


def work_twice(runner: Runner) -> None:
    """Ask twice: the second answer comes right behind the first, or before the second question."""
    for _ in range(2):
        runner.work(1, numbers(1))


def test_code_that_answers_twice_is_found_out(honest: Runner) -> None:
    runner = run_confined(AnswersTwice())
    with pytest.raises(ModulatorError, match="AnswersTwice"):
        work_twice(runner)
    wait_until_gone(runner.pid)
    runner.close()


def test_code_that_hangs_while_it_is_loaded_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = descendants()
    with pytest.raises(ModulatorError, match=r"`Slow` was stopped: it took longer than 0\.3 s, the limit of loading"):
        run_text("import time\ntime.sleep(3600)\n", limits=Limits(load_seconds=0.3, start_seconds=60))
    with pytest.raises(ModulatorError, match="ZeroDivisionError"):
        run_text("1 / 0\n")
    with pytest.raises(ModulatorError, match="cannot be loaded"):
        run_text("import socket\nsocket.socket()\n")
    assert_no_more_than(before)


def run_text(text: str, **options: Any) -> Runner:
    """Install a text that no class gives."""
    text += "from echoic.eager import Modulator\nclass Slow(Modulator): pass\n"
    settings = {"limits": LIMITS, "shared": NoSharedObjects(), "grant": grant_nothing, "sources": (1,), "hub": "here"}
    data = sign(Parcel(PARENT, "Slow", text), KEY)
    settings |= {"trusted": (), "sandboxed": ("*",), "parent": PARENT, "input": Format.of(Number)}
    return install(data, **(settings | options))


def test_a_machine_without_bubblewrap_refuses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="bubblewrap, which confines it, is not installed here"):
        run_confined(Honest())


def test_a_machine_on_which_bubblewrap_cannot_confine_refuses_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="no process can be confined here: bwrap: No permissions to create"):
        run_confined(Honest())


def test_a_bubblewrap_that_confines_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    careless = tmp_path / "bwrap"
    careless.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        "os.write(int(sys.argv[2]), json.dumps({'child-pid': os.getpid()}).encode())\n"
        "command = sys.argv[sys.argv.index('--') + 1 :]\n"
        "os.execv(command[0], command)\n"
    )
    careless.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="bubblewrap shares the namespace `ipc` with it"):
        run_confined(Honest())


def test_the_sandbox_leaves_no_process_behind() -> None:
    before = descendants()
    runners = [run_confined(Honest()) for _ in range(3)]
    assert len(descendants() - before) >= 2 * len(runners)
    for runner in runners:
        runner.close()
    assert_no_more_than(before)


def assert_no_more_than(before: set[int]) -> None:
    """Wait until there are no more processes than there were; a spare one and its bubblewrap may have come."""
    deadline = time.monotonic() + LATE_SECONDS_MAX
    while len(descendants()) > len(before) + 2:
        assert time.monotonic() < deadline, "a process is left"
        time.sleep(0.01)


HUB = """
import sys, threading
from tests.eager.installing import PATIENT, numbers, run_confined
from echoic.testing.trials.attacks import HangsIgnoringEverything
runner = run_confined(HangsIgnoringEverything(), limits=PATIENT)
print(runner.pid, flush=True)
runner.work(1, numbers(1))
"""


def test_a_confined_process_ends_with_the_hub_however_that_ends() -> None:
    hub = subprocess.Popen([sys.executable, "-c", HUB], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert hub.stdout is not None
    pid = int(hub.stdout.readline())
    assert Path(f"/proc/{pid}").exists()
    hub.kill()
    hub.wait()
    hub.stdout.close()
    wait_until_gone(pid)
