"""The issue's hardest line: whoever is killed in the middle of a batch, tables and channels equal the journal.

The campaign (`python -m tests.spark.kill_campaign --kills 30`) does the same for longer, and to everybody often.
"""

from pathlib import Path

import pytest

from tests.spark.kill_campaign import run_campaign

pytestmark = [pytest.mark.system, pytest.mark.slow]


def test_driver_workers_recorder_and_intake_may_be_killed_and_each_event_counts_once(tmp_path: Path) -> None:
    report = run_campaign(tmp_path, ["workers", "driver", "intake", "recorder"], seed=7)
    assert report.kills == {"workers": 1, "driver": 1, "recorder": 1, "intake": 1}
    assert report.recorded > 0
    assert not report.wrong
