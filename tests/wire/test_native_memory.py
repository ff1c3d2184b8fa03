"""Native code reads and writes nothing but its buffers, and goes when it is no longer needed.

A mistake here ends the process, so each trial (`native_trials`) has a process of its own.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 120


def run_trial(*arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.wire.native_trials", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "20260801"])
def test_mutated_records_never_lead_native_code_out_of_its_buffers(seed: str) -> None:
    done = run_trial("guard", seed)
    assert done.returncode == 0, (seed, done.returncode, done.stdout, done.stderr)
    seen = json.loads(done.stdout.splitlines()[-1])
    assert min(seen["made"], seen["malformed"], seen["full"]) > 100, seen


@pytest.mark.parametrize("where", ["end", "start"])
def test_the_trial_notices_a_single_byte_too_many(where: str) -> None:
    done = run_trial("overrun", where)
    assert done.stdout == "0\n"
    assert done.returncode == -signal.SIGSEGV


@pytest.mark.slow
def test_dropped_routines_leave_no_memory_behind() -> None:
    done = run_trial("compile", "300")
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    # The optimiser of llvmlite itself keeps about 100 KiB of each routine: 24 MiB of the 240 that are counted.
    assert found["late"] - found["early"] < 48 * 1024, found
