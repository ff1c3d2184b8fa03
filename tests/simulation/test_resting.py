"""Hubs that rest: what is left out is nothing that anybody could have seen."""

import pytest

from echoic.channels import Concentrator, idle_looks
from echoic.testing import simulated_hub
from echoic.testing.simulated_recording import run_recording
from echoic.testing.simulation import run_simulation, run_turning

TICK = simulated_hub.TICK_NS


def reports() -> list[object]:
    channels = [run_simulation(seed) for seed in range(40, 48)]
    derived = [run_simulation(seed, "liveness", derived=True) for seed in range(40, 42)]
    return [*channels, *derived, run_turning(40), run_recording(40), run_recording(41)]


def test_the_same_seeds_give_the_same_runs_whether_hubs_rest_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rested = reports()
    monkeypatch.setattr(simulated_hub, "idle_looks", lambda core, now_ns, tick_ns: 0)
    assert reports() == rested


def test_a_hub_that_rests_where_it_should_not_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_hub, "idle_looks", lambda core, now_ns, tick_ns: 8)
    with pytest.raises(AssertionError, match="has rested where it should not have"):
        reports()


def test_a_hub_rests_until_it_joins_again_and_not_while_it_waits_for_an_answer() -> None:
    core = Concentrator("a", "a:1")
    core.tick(0)
    assert idle_looks(core, 0, TICK) == 9
    core.requests.add("b", 0, lambda reply: None)
    assert idle_looks(core, 0, TICK) == 0
