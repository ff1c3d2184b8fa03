"""Trial 3: every rule of every part holds at every step of every simulation.

A test run begins at one seed, so that it tells of the change at hand and not of chance; releases look further, and so
does whoever gives another seed.
"""

import pytest

from echoic.testing.planted_world import planted
from echoic.testing.trials.safety import run
from tests.reliability.trying import try_out

SEED = 1


@pytest.mark.slow
def test_nothing_that_must_hold_is_broken_whatever_fails(request: pytest.FixtureRequest) -> None:
    figures = try_out(request, "safety", SEED).figures
    assert all(int(figures[f"{kind}_seeds"]) > 0 for kind in ("channels", "recording", "groups", "turning", "world"))


def test_a_mistake_is_found_with_its_seed() -> None:
    with planted("a session between hubs that sends nothing again"):
        findings = run(60, 1, lambda done: None)
    assert "seed" in findings.problems[0]
