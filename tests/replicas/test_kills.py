"""SIGKILL of the process that writes, with overlapping redelivery: each event is in the table once."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.replicas.kill_campaign import KINDS

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
CAMPAIGN_SECONDS_MAX = 120


@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_is_killed_again_and_again_loses_and_doubles_nothing(kind: str) -> None:
    if kind == "postgresql" and not Path("/usr/lib/postgresql").exists():
        pytest.skip("PostgreSQL is not installed")
    if kind == "mariadb" and shutil.which("mariadbd", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("MariaDB is not installed")
    # A process of its own: children are forked from it, which a process with threads should not do.
    command = [sys.executable, "-m", "tests.replicas.kill_campaign", "--kills", "6", "--seconds", "0.3"]
    done = subprocess.run(
        [*command, "--database", kind],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=CAMPAIGN_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["problem"] == ""
    assert report["kills"] == 6
    assert report["events"] > 0
