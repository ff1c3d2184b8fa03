"""The how-to of a bus that tools of other machines reach, run as it stands."""

import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "let_tools_come_from_other_machines.py"


@pytest.mark.system
def test_the_example_lets_in_who_may_be_the_tool_and_nobody_else() -> None:
    done = subprocess.run([sys.executable, str(PAGE)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "the bus refuses this tool: the token of `alice` does not grant `publish` on `tool:sums`",
        "the sum is 3",
    ]
