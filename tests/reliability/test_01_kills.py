"""Trial 1: SIGKILL of sources, sinks, name server, manager and recorder."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from echoic.testing.kill_campaign import CampaignReport
from echoic.testing.trials.kills import findings_of
from tests.reliability.trying import try_out

pytestmark = [pytest.mark.system, pytest.mark.slow]

PLANTED = Path(__file__).with_name("planted_kills.py")
KILLS = 4


def test_nothing_is_lost_or_doubled_through_kills_of_everybody(request: pytest.FixtureRequest) -> None:
    figures = try_out(request, "kills").figures
    for part in ("", "secured_"):
        kinds = {f"{part}kills_of_{kind}" for kind in ("source", "recorder", "sink", "manager", "names")}
        assert kinds <= figures.keys()


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("sinks forget their bookmarks", "sink"),
        ("the recorder acknowledges before it writes", "are lost"),
        ("payloads are changed", "has check"),
        ("sinks have no right to subscribe", "ended with status"),
    ],
)
def test_a_fault_is_found(fault: str, told: str, tmp_path: Path) -> None:
    command = [sys.executable, str(PLANTED), fault, str(KILLS), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.stdout, ran.stderr
    found = findings_of(msgspec.json.decode(ran.stdout, type=CampaignReport), KILLS)
    assert any(told in problem for problem in found.problems), found
