"""Trial 4: what is healed goes on within ten virtual seconds.

A test run begins at one seed, so that it tells of the change at hand and not of chance; releases look further, and so
does whoever gives another seed.
"""

import pytest

from echoic.testing.planted_world import planted
from echoic.testing.trials.liveness import run
from tests.reliability.trying import try_out

SEED = 1001


@pytest.mark.slow
def test_everything_goes_on_when_it_is_healed(request: pytest.FixtureRequest) -> None:
    assert int(try_out(request, "liveness", SEED).figures["world_seeds"]) > 0


def test_a_conversation_that_does_not_go_on_is_found() -> None:
    with planted("a tool and a bus that say nothing again"):
        findings = run(13, 4, lambda done: None)  # worlds are seeds 6 and 16
    assert "the bus does not go on" in "".join(findings.problems)
