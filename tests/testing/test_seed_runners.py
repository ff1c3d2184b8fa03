"""Processes that run seeds: what becomes of one that dies, is silent or breaks down, and of all that goes well."""

import multiprocessing
import os
import signal
import time
from contextlib import closing

import pytest

from echoic.errors import LocalError
from echoic.testing.trials import seed_runners
from echoic.testing.trials.seed_runners import Portion, run_portions
from echoic.testing.trials.seeds import run_seeds
from echoic.testing.trials.trial import BY_THE_CLOCK


def hold(seed: int) -> object:
    return seed


def kill_itself_at_seven(seed: int) -> object:
    if seed == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return seed


def leave_at_seven(seed: int) -> object:
    if seed == 7:
        os._exit(3)
    return seed


def hang_at_seven(seed: int) -> object:
    while seed == 7:
        time.sleep(1)
    return seed


def break_a_promise(seed: int) -> object:
    raise AssertionError(f"an event of {seed} came twice")


def break_down_at_seven(seed: int) -> object:
    return {}[seed] if seed == 7 else seed


def test_every_seed_is_run_once_whatever_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOIC_SOAK_WORKERS", "3")
    told: list[int] = []
    findings = run_seeds({"one": (hold, 3), "two": (hold, 1)}, 200, 5, told.append)
    assert findings.clean
    assert (findings.figures["one_seeds"], findings.figures["two_seeds"]) == (150, 50)
    assert told == list(range(1, 201))


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (kill_itself_at_seven, "one, seed 7: its process was killed by SIGKILL"),
        (leave_at_seven, "one, seed 7: its process ended by 3"),
        (break_down_at_seven, "one, seed 7: KeyError: 7"),
    ],
)
def test_a_process_that_dies_is_a_finding_with_its_seed_and_the_others_go_on(
    kind: seed_runners.Kind, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHOIC_SOAK_WORKERS", "2")
    findings = run_seeds({"one": (kind, 1)}, 100, 1, lambda done: None)
    assert findings.problems == (problem,)
    assert findings.figures["one_seeds"] == 100


def test_a_process_that_is_silent_for_too_long_is_killed_and_is_a_finding_of_the_clock() -> None:
    verdicts = list(run_portions({"one": hang_at_seven}, [Portion("one", (5, 6, 7, 8, 9))], 1, seconds_max=2))
    assert len(verdicts) == 5
    assert ("one", f"one, seed 7: it took too long{BY_THE_CLOCK}") in verdicts


def test_a_run_ends_when_enough_has_failed_and_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOIC_SOAK_WORKERS", "2")
    findings = run_seeds({"one": (break_a_promise, 1)}, 10_000, 1, lambda done: None)
    assert len(findings.problems) == 5
    assert "came twice" in findings.problems[0]
    assert not multiprocessing.active_children()


def test_a_process_is_replaced_after_many_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_runners, "SEEDS_MAX", 10)
    parent = os.getpid()

    def tell_who(seed: int) -> object:
        raise AssertionError(f"{os.getpid()} has run {seed}")

    portions = [Portion("one", tuple(range(start, start + 10))) for start in range(0, 50, 10)]
    with closing(run_portions({"one": tell_who}, portions, 1)) as verdicts:
        found = [problem.split()[3] for _, problem in verdicts]
    assert len(set(found)) == 5
    assert str(parent) not in found


def test_a_wish_for_processes_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOIC_SOAK_WORKERS", "many")
    with pytest.raises(LocalError, match="got `many`"):
        run_seeds({"one": (hold, 1)}, 10, 1, lambda done: None)


def test_a_process_that_has_done_enough_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(seed_runners, "SEEDS_MAX", 10)
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line has it
    try:
        verdicts = list(run_portions({"one": hold}, [Portion("one", tuple(range(at, at + 10))) for at in (0, 10)], 1))
    finally:
        signal.signal(signal.SIGTERM, former)
    assert [problem for _, problem in verdicts] == [""] * 20
    assert capfd.readouterr() == ("", "")
