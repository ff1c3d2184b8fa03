"""Who waits for whom: in scripts that rest, and what is said of any script is true."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine, Party, Wait
from echoic.scripts.running.messages import Connected, FromTool, Input, Said
from echoic.scripts.syntax import load
from echoic.terms import Term
from tests.scripts.running.random_scripts import inputs, processes, script_of

TURNS_MAX = 5_000
STEP_NS = 2_000_000
RING = """
process LEFT is rec-msg(b) . snd-msg(a)
process RIGHT is rec-msg(a) . snd-msg(b)
"""


def resting(text: str, *heard: Input, seed: int = 1) -> Machine:
    machine = Machine(compile(load(text, "script")), chance=random.Random(seed), now_ns=0)
    machine.start()
    machine.run(TURNS_MAX, 0)
    for each in heard:
        machine.receive(each, 0)
        machine.run(TURNS_MAX, 0)
    return machine


def told(wait: Wait) -> str:
    """Return a wait in words."""
    awaited = "nobody" if wait.awaited is None else name(wait.awaited)
    words = f"{name(wait.waiter)} -> {awaited} {wait.atom}({','.join(map(str, wait.arguments))})"
    return words + (" at once" if wait.at_once else "") + (" in vain" if wait.hopeless else "")


def name(party: Party) -> str:
    return f"{'tool ' if party.is_tool else ''}{party.name}{party.number}"


TABLE = {
    "a message waits for who can send it later": (
        "process A is rec-msg(go) process B is LATER snd-msg(go) toolbus(A, B)",
        ["A1 -> B2 rec-msg(go)"],
    ),
    "and for nobody where nobody can": (
        "process A is rec-msg(go) process B is LATER snd-msg(stop) toolbus(A, B)",
        ["A1 -> nobody rec-msg(go) in vain"],
    ),
    "arguments that stay as they are tell one from the other": (
        "process A is snd-msg(take(2)) process F(I : int) is LATER rec-msg(take(I)) toolbus(A, F(1), F(2))",
        ["A1 -> F3 snd-msg(take(2))"],
    ),
    "those that are assigned on the way do not": (
        "process A is snd-msg(take(2)) process F(I : int) is LATER I := 2 . rec-msg(take(I)) toolbus(A, F(1), F(7))",
        ["A1 -> F2 snd-msg(take(2))", "A1 -> F3 snd-msg(take(2))"],
    ),
    "two that wait for each other wait in vain": (
        f"{RING} toolbus(LEFT, RIGHT)",
        ["LEFT1 -> RIGHT2 rec-msg(b) in vain", "RIGHT2 -> LEFT1 rec-msg(a) in vain"],
    ),
    "unless a third can help one": (
        f"{RING} process THIRD is LATER snd-msg(a) toolbus(LEFT, RIGHT, THIRD)",
        ["LEFT1 -> RIGHT2 rec-msg(b)", "RIGHT2 -> LEFT1 rec-msg(a)", "RIGHT2 -> THIRD3 rec-msg(a)"],
    ),
    "or create somebody who can": (
        f"{RING} process C is let P : int in LATER create(LEFT, P?) endlet toolbus(LEFT, RIGHT, C)",
        ["LEFT1 -> RIGHT2 rec-msg(b)", "RIGHT2 -> LEFT1 rec-msg(a)"],
    ),
    "or time can": (
        "process A is rec-msg(go) + tau delay(sec(9)) toolbus(A)",
        ["A1 -> nobody rec-msg(go)"],
    ),
    "what a test forbids nobody waits for": (
        "process A is if false then rec-msg(go) fi + rec-msg(stop)\nprocess B is LATER snd-msg(go) toolbus(A, B)",
        ["A1 -> nobody rec-msg(stop) in vain"],
    ),
    "a message that only time holds up is waited for at once": (
        "process A is snd-msg(go) process B is rec-msg(go) delay(sec(9)) toolbus(A, B)",
        ["A1 -> B2 snd-msg(go) at once", "B2 -> A1 rec-msg(go) at once"],
    ),
    "a note waits for who can send it": (
        "process A is subscribe(n(<int>)) . rec-note(n(<int>)) process B is LATER snd-note(n(1)) toolbus(A, B)",
        ["A1 -> B2 rec-note(n(<int>))"],
    ),
    "a tool that is awaited has a name": (
        'tool t is { command = "t" } process A is let T : t in rec-connect(T?) endlet toolbus(A)',
        ["A1 -> tool t0 rec-connect(<t>)"],
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_who_waits_for_whom(case: str) -> None:
    text, expected = TABLE[case]
    machine = resting(text.replace("LATER", "tau delay(sec(9)) ."))
    assert [told(each) for each in machine.waits()] == expected


def test_processes_wait_for_tools_and_tools_for_processes() -> None:
    text = """
    tool t is { command = "t" }
    process A is let T : t, X : int in
      rec-connect(T?) . rec-event(T, e(X?)) . snd-eval(T, q(X)) . rec-value(T, v(X?)) . snd-ack-event(T, e(1)) endlet
    toolbus(A)
    """
    event = Said(1, FromTool.EVENT, (Term("e", 1),))
    connected = resting(text, Connected("t"))
    assert [told(each) for each in connected.waits()] == ["A1 -> tool t1 rec-event(t(1),e(<int>))"]
    asked = resting(text, Connected("t"), event)
    assert [told(each) for each in asked.waits()] == [
        "A1 -> tool t1 rec-value(t(1),v(<int>))",
        "tool t1 -> A1 snd-ack-event(t(1),e(1))",
    ]
    twice = resting(text, Connected("t"), event, event)
    assert "tool t1 -> A1 snd-ack-event(t(1),e(1))" in [told(each) for each in twice.waits()]


def test_philosophers_who_starve_are_a_ring() -> None:
    philosophers = """
    process P(A : int, B : int) is snd-msg(take(A)) . snd-msg(take(B)) . snd-msg(put(A)) . snd-msg(put(B))
    process F(N : int) is ( rec-msg(take(N)) . rec-msg(put(N)) ) * delta
    toolbus(F(0), F(1), F(2), P(0,1), P(1,2), P(2,0))
    """
    starved = next(
        each for seed in range(100) if (each := resting(philosophers, seed=seed)).statistics().processes == 6
    )
    waits = starved.waits()
    assert all(each.hopeless for each in waits)
    awaited = {each.waiter.number: each.awaited.number for each in waits if each.atom == "snd-msg" and each.awaited}
    assert awaited == {4: 2, 5: 3, 6: 1}


@settings(max_examples=100, deadline=None)
@given(st.lists(processes, min_size=1, max_size=4), st.integers(0, 2**32), st.lists(st.none() | inputs, max_size=12))
def test_whoever_is_said_to_wait_in_vain_never_goes_on(bodies: list[str], seed: int, plan: list[Input | None]) -> None:
    machine = resting(script_of(bodies), seed=seed)
    hopeless: dict[int, object] = {}
    now_ns = 0
    for heard in [*plan, None]:
        if machine.halted:
            return
        states = {each.number: each.waiting for each in machine.state().processes}
        assert all(states[number] == waiting for number, waiting in hopeless.items())
        hopeless |= {each.waiter.number: states[each.waiter.number] for each in machine.waits() if each.hopeless}
        if heard is None:
            now_ns += STEP_NS
        else:
            machine.receive(heard, now_ns)
        machine.run(300, now_ns)


@settings(max_examples=40, deadline=None)
@given(st.lists(processes, min_size=1, max_size=4), st.integers(0, 2**32), st.lists(st.none() | inputs, max_size=8))
def test_to_ask_changes_nothing(bodies: list[str], seed: int, plan: list[Input | None]) -> None:
    plain, asked = (resting(script_of(bodies), seed=seed) for _ in range(2))
    for number, heard in enumerate(plan, 1):
        for machine in (plain, asked):
            if heard is None:
                machine.run(300, number * STEP_NS)
            elif not machine.halted:
                machine.receive(heard, number * STEP_NS)
                machine.run(300, number * STEP_NS)
        asked.waits()
        assert asked.state() == plain.state()
