"""A recorded channel under every fault we know of: many seeds, and faults put in by hand that must be found.

`python -m echoic.testing.simulation --recording --seed N` repeats a seed that failed.
"""

import pytest

from echoic.channels import attaching, concentrator
from echoic.channels.keeping import Keeping
from echoic.recorder.standing import Standing
from echoic.testing.simulated_recording import run_recording
from tests.simulation.hash_seeds import printed_under_hash_seeds

SEEDS, SEEDS_PER_TEST = 20, 20


@pytest.mark.parametrize("start", range(0, SEEDS, SEEDS_PER_TEST))
def test_the_journal_has_every_event_once_and_in_order_whatever_fails(start: int) -> None:
    reports = [run_recording(seed) for seed in range(start, start + SEEDS_PER_TEST)]
    assert sum(report.recorded for report in reports) > 1000
    assert sum(report.confirmed for report in reports) > 1000
    assert sum(report.faults.get("cut_power", 0) + report.faults.get("kill_recorder", 0) for report in reports) > 3


def test_a_seed_gives_the_same_run_whatever_the_hash_seed() -> None:
    program = (
        "from echoic.testing.simulated_recording import run_recording; print([run_recording(seed) for seed in (4, 5)])"
    )
    assert len(printed_under_hash_seeds(program)) == 1


def run_until_one_fails() -> str:
    for seed in range(200):
        try:
            run_recording(seed)
        except AssertionError as error:
            return str(error)
    return ""


def test_a_hub_that_sends_nothing_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attaching, "resend", lambda *_: None)
    assert run_until_one_fails().startswith("seed ")


def test_a_hub_that_keeps_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Keeping, "note", lambda *_: None)
    assert run_until_one_fails().startswith("seed ")


def test_a_hub_that_keeps_nothing_of_synchronous_events_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concentrator, "keep_call", lambda *_: None)
    assert run_until_one_fails().startswith("seed ")


def test_a_recorder_that_does_not_wait_for_its_disk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echoic.testing.simulated_disk.SimulatedFile.sync", lambda _: None)
    assert run_until_one_fails().startswith("seed ")


def test_a_journal_that_forgets_what_it_has_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: Standing, source: int, position: int) -> None:
        self.positions[source] = position
        if len(self.positions) > 1:
            self.positions.popitem(last=False)

    monkeypatch.setattr(Standing, "advance", forget)
    assert run_until_one_fails().startswith("seed ")
