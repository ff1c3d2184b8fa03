"""Rights in simulations: every other seed goes by rules, which must be enough for everybody and too little for one."""

import pytest

from echoic.testing import surroundings
from echoic.testing.simulated_recording import run_recording
from echoic.testing.simulation import run_simulation
from echoic.testing.surroundings import RULES, Surroundings

GUARDED = range(1, 12, 2)


def test_every_other_seed_goes_by_rights() -> None:
    assert [Surroundings(seed).network.rights is not None for seed in range(4)] == [False, True, False, True]


def test_somebody_without_rights_tries_and_gets_nothing() -> None:
    assert all(run_simulation(seed).faults["intrusion"] > 0 for seed in GUARDED)


@pytest.mark.parametrize("right", ["subscribe", "publish", "steer", "admin"])
def test_a_right_that_the_intruder_should_not_have_is_noticed(right: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "RULES", f"{RULES}\nallow intruder {right} *\n")
    with pytest.raises(AssertionError, match="intruder"):
        list(map(run_simulation, GUARDED))


def test_a_right_that_the_recorder_lacks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "RULES", RULES.replace("allow recorder", "deny recorder"))
    run_recording(2)
    with pytest.raises(AssertionError, match="the recorder has not joined"):
        run_recording(1)
