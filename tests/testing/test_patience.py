"""How long a trial waits for work that may never come back."""

import signal
import subprocess
import sys

import pytest

from echoic.testing.patience import EXHAUSTED, Waiting, within


def test_looks_at_work_add_up() -> None:
    waiting = Waiting(100.0)
    assert [waiting.look(100.0 + second) for second in range(1, 6)] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_time_in_which_nobody_could_look_does_not_count() -> None:
    waiting = Waiting(100.0)
    assert waiting.look(101.0) == 1.0
    assert waiting.look(341.0) < 10.0


def test_work_that_is_done_in_time_leaves_no_limit_behind() -> None:
    assert within(60, sorted, (3, 1, 2), reverse=True) == [3, 2, 1]
    with pytest.raises(ZeroDivisionError):
        within(0.2, divmod, 1, 0)
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_native_code_that_turns_for_ever_ends_its_process() -> None:
    script = """
from echoic.testing.patience import within
within(0.5, sum, iter(int, 1))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert done.returncode == -EXHAUSTED
