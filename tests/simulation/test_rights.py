"""Rights in simulations: half of the seeds go by rules, which must be enough for everybody and too little for one."""

import pytest

from echoic.testing import surroundings
from echoic.testing.simulated_recording import run_recording
from echoic.testing.simulation import run_simulation
from echoic.testing.surroundings import RULES, Surroundings

GUARDED = [seed for seed in range(12) if Surroundings(seed).network.rights is not None]


def test_half_of_the_seeds_go_by_rights_of_odd_and_even_ones_alike() -> None:
    assert GUARDED == [1, 2, 4, 7, 8, 11]


def test_somebody_without_rights_tries_and_gets_nothing() -> None:
    assert all(run_simulation(seed).faults["intrusion"] > 0 for seed in GUARDED)


@pytest.mark.parametrize("right", ["subscribe", "publish", "steer", "admin"])
def test_a_right_that_the_intruder_should_not_have_is_noticed(right: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "RULES", f"{RULES}\nallow intruder {right} *\n")
    with pytest.raises(AssertionError, match="intruder"):
        list(map(run_simulation, GUARDED))


def test_a_right_that_the_recorder_lacks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "RULES", RULES.replace("allow recorder", "deny recorder"))
    run_recording(3)
    with pytest.raises(AssertionError, match="the recorder has not joined"):
        run_recording(1)
