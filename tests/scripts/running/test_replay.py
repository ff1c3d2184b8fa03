"""A run is the same again: random scripts, random inputs, and the log of the run."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.errors import RefusedError
from echoic.scripts.graph import Options, compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine, RunLog, digest_of, replay
from echoic.scripts.running.messages import Effect, Input, Step
from echoic.scripts.syntax import load
from tests.scripts.running.random_scripts import plans, processes, script_of

Plan = list[tuple[int, int, Input | None]]


def run_logged(text: str, seed: int, plan: Plan) -> tuple[RunLog, list[Effect], int]:
    script = load(text, "script")
    log = RunLog(digest_of(script), seed, 0)
    machine = Machine(compile(script), chance=random.Random(seed), now_ns=0, traced=True, log=log.entries)
    machine.start()
    now_ns = 0
    for turns, milliseconds, heard in plan:
        now_ns += milliseconds * 1_000_000
        machine.run(turns, now_ns)
        if heard is not None:
            machine.receive(heard, now_ns)
    machine.run(50, now_ns)
    return log, machine.take_effects(), machine.turns


@settings(max_examples=300, deadline=None)
@given(st.lists(processes, min_size=1, max_size=4), st.integers(0, 2**32), plans)
def test_a_run_is_the_same_again(bodies: list[str], seed: int, plan: Plan) -> None:
    text = script_of(bodies)
    log, effects, turns = run_logged(text, seed, plan)
    again = replay(log, compile(load(text, "script")), random.Random(seed), turns_max=turns)
    assert [effect for batch in again for effect in batch] == effects


@settings(max_examples=200, deadline=None)
@given(st.lists(processes, min_size=1, max_size=4), st.integers(0, 2**32), plans)
def test_a_shared_program_makes_the_same_run(bodies: list[str], seed: int, plan: Plan) -> None:
    text = script_of(bodies)
    program = compile(load(text, "script"))
    log, effects, turns = run_logged(text, seed, plan)
    for _ in range(2):
        again = replay(log, program, random.Random(seed), turns_max=turns)
        assert [effect for batch in again for effect in batch] == effects


def test_another_seed_is_another_run() -> None:
    text = 'process P is (printf("a") + printf("b")) * delta toolbus(P)'
    runs = []
    for seed in (1, 2):
        _, effects, _ = run_logged(text, seed, [(50, 0, None)])
        runs.append([effect.span for effect in effects if isinstance(effect, Step)])
    assert runs[0] != runs[1]


def test_a_log_of_another_script_is_refused() -> None:
    log, _, _ = run_logged("process P is tau toolbus(P)", 1, [])
    with pytest.raises(RefusedError, match="another script"):
        next(replay(log, compile(load("process P is delta toolbus(P)", "script")), random.Random(1)))
    with pytest.raises(RefusedError, match="another size"):
        next(replay(log, compile(load("process P is tau toolbus(P)", "script"), Options(int32=True)), random.Random(1)))


def test_moments_at_which_somebody_was_woken_are_not_left_out() -> None:
    text = (
        "process A is rec-msg(x) delay(msec(1)) + rec-msg(y) delay(msec(3)) "
        "process B is rec-msg(y) delay(msec(2)) + rec-msg(z) "
        f"process S is {'tau . ' * 4} snd-msg(y) toolbus(A,B,S)"
    )
    for seed in range(20):
        log, effects, turns = run_logged(text, seed, [(6, 0, None), (0, 1, None), (0, 3, None)])
        again = replay(log, compile(load(text, "script")), random.Random(seed), turns_max=turns)
        assert [effect for batch in again for effect in batch] == effects
