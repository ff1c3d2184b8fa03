"""What chance, numbers and limits do to a machine."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.errors import ScriptError
from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine, ToolState
from echoic.scripts.running.instances import ProcessInstance
from echoic.scripts.running.messages import Connected, FromTool, Input, Print, Said, Step
from echoic.scripts.running.offers import Offers
from echoic.scripts.running.timers import Timers
from echoic.scripts.running.world import World
from echoic.scripts.syntax import load
from echoic.terms import Term
from tests.scripts.running.random_scripts import inputs, processes, script_of


def machine_of(text: str, seed: int = 1, *, traced: bool = False) -> Machine:
    machine = Machine(compile(load(text, "script")), chance=random.Random(seed), now_ns=0, traced=traced)
    machine.start()
    return machine


def run_out(machine: Machine, now_ns: int = 0, turns_max: int = 5_000) -> bool:
    """Let everything happen that can; false where it does not end."""
    return not machine.run(turns_max, now_ns)


def printed(machine: Machine) -> str:
    return "".join(effect.text for effect in machine.take_effects() if isinstance(effect, Print))


@settings(max_examples=400, deadline=None)
@given(st.lists(processes, min_size=1, max_size=4), st.integers(0, 2**32), st.lists(st.none() | inputs, max_size=12))
def test_when_nothing_is_left_to_do_nothing_is_possible(bodies: list[str], seed: int, plan: list[Input | None]) -> None:
    machine = machine_of(script_of(bodies), seed)
    now_ns = 0
    for heard in [None, *plan]:
        if heard is None:
            now_ns += 2_000_000
            machine.run(0, now_ns)
        else:
            machine.receive(heard, now_ns)
        if not run_out(machine, now_ns, 300) or machine.halted:
            return
        assert machine.possible() == ()


def test_each_alternative_has_the_same_chance() -> None:
    machine = machine_of(
        'process P is (printf("a") + if false then tau fi + printf("b") + rec-msg(never) + printf("c")) * delta '
        "toolbus(P)"
    )
    machine.run(6_000, 0)
    counts = Counter(printed(machine))
    assert set(counts) == set("abc")
    assert all(1_800 < count < 2_200 for count in counts.values())


def test_both_sides_of_a_merge_go_on() -> None:
    machine = machine_of('process P is (printf("a") * delta) || (printf("b") * delta) toolbus(P)')
    machine.run(2_000, 0)
    counts = Counter(printed(machine))
    assert all(800 < counts[letter] < 1_200 for letter in "ab")


def test_what_is_not_preferred_does_not_starve_beside_something_else() -> None:
    machine = machine_of('process P is ((printf("a") +> rec-msg(never)) * delta) || (printf("b") * delta) toolbus(P)')
    machine.run(2_000, 0)
    counts = Counter(printed(machine))
    assert all(800 < counts[letter] < 1_200 for letter in "ab")


def test_processes_have_their_turns_in_turn() -> None:
    script = 'process P(S:str) is printf(S) * delta toolbus(P("a"),P("b"),P("c"))'
    machine = machine_of(script)
    machine.run(3_000, 0)
    assert Counter(printed(machine)) == Counter(dict.fromkeys("abc", 1_000))


def test_who_waits_longest_is_met_first() -> None:
    script = """process R(S:str) is (rec-msg(m) . printf(S)) * delta
process G is let T:term in (rec-msg(T?) . printf("g")) * delta endlet
process S is snd-msg(m) * delta
toolbus(R("a"),R("b"),G,S)"""
    machine = machine_of(script)
    machine.run(7_000, 0)
    counts = Counter(printed(machine))
    assert max(counts.values()) - min(counts.values()) <= 1


def test_many_processes_cost_little_and_are_found_by_what_they_wait_for() -> None:
    script = """process Q(N:int) is rec-msg(to(N)) . printf("%d", N)
process P is let I:int, N:int in N := 0 .
  (if less(N,100000) then create(Q(N),I?) . N := add(N,1) fi * if equal(N,100000) then snd-msg(to(77777)) fi) endlet
toolbus(P)"""
    machine = machine_of(script)
    while machine.run(50_000, 0):
        pass
    assert printed(machine) == "77777"
    assert machine.statistics().processes == 99_999


def test_places_of_those_who_no_longer_wait_are_swept_away() -> None:
    offers, process = Offers(), waiting_process()
    for number in range(10_000):
        place = offers.add(number, (process, process.node.edges[0]), ("f", 1), (number,))
        del place[number]
    assert offers.places < 1_000
    assert len(offers) == 0


def waiting_process() -> ProcessInstance:
    graph = compile(load("process P is rec-msg(a) toolbus(P)", "script")).graph("P")
    return ProcessInstance(1, graph, (), World)  # type: ignore[arg-type] - nobody asks for the time


def test_stale_timers_are_thrown_out() -> None:
    timers, one, other = Timers(0), waiting_process(), waiting_process()
    timers.remind(other, 5_000_000)
    for due_ns in range(10_000):
        timers.remind(one, due_ns)
        timers.forget(one)
    assert len(timers) < 200
    assert timers.deadline_ns() == 5_000_000
    assert timers.due(4_999_999) == []
    assert timers.due(5_000_000) == [other]
    assert timers.deadline_ns() is None


def test_the_earliest_time_counts() -> None:
    timers, process = Timers(0), waiting_process()
    for due_ns in (30, 10, 20):
        timers.remind(process, due_ns)
    assert timers.deadline_ns() == 10
    assert timers.due(100) == [process]


def test_steps_are_told_with_both_places() -> None:
    machine = machine_of(
        "process P is snd-msg(f(1)) process Q is let X:int in rec-msg(f(X?)) endlet toolbus(Q,P)", traced=True
    )
    assert run_out(machine)
    (step,) = [effect for effect in machine.take_effects() if isinstance(effect, Step)]
    assert (step.number, step.process, step.name, step.atom, step.partner) == (1, 2, "P", "snd-msg", 1)
    assert step.arguments == (Term("f", 1),)
    assert step.span.column < (step.partner_span or step.span).column


def test_a_console_sees_what_everybody_waits_for() -> None:
    machine = machine_of(
        'tool t is { command = "t" } process P is let T:t, X:int in rec-connect(T?) . subscribe(n(<int>)) . '
        "snd-note(n(1)) . X := 3 . (rec-msg(a(X)) + rec-event(T,e)) endlet toolbus(P)"
    )
    assert machine.receive(Connected("t"), 0) == 1
    assert run_out(machine)
    machine.receive(Said(1, FromTool.EVENT, (Term("other"),)), 0)
    assert run_out(machine)
    state = machine.state()
    (process,) = state.processes
    assert [(each.atom, each.arguments) for each in process.waiting] == [
        ("rec-msg", (Term("a", 3),)),
        ("rec-event", (Term("t", 1), Term("e"))),
    ]
    assert process.notes == (Term("n", 1),)
    (tool,) = state.tools
    assert tool.state is ToolState.READY
    assert tool.queued == (("event", (Term("other"),)),)


def test_arguments_of_another_type_start_nothing() -> None:
    program = compile(load('process P(N:int) is tau toolbus(P("s"))', "script"))
    machine = Machine(program, chance=random.Random(1), now_ns=0)
    with pytest.raises(ScriptError, match="other types"):
        machine.start()


def test_a_long_chain_of_preferences_is_tried_in_one_turn() -> None:
    chain = " +> ".join(f"rec-msg(a{number})" for number in range(60))
    machine = machine_of(f"process P is {chain} process Q is rec-msg(b) toolbus(P,Q)")
    assert run_out(machine)
    assert not machine.halted


@pytest.mark.parametrize("seed", range(20))
def test_two_who_prefer_each_others_second_choice_meet(seed: int) -> None:
    machine = machine_of(
        "process P is snd-msg(c) +> snd-msg(b) process Q is rec-msg(b) +> rec-msg(c) process R is rec-msg(c) "
        "toolbus(P,Q,R)",
        seed,
    )
    assert run_out(machine)
    assert machine.statistics().handshakes == 1


def test_who_was_refused_asks_again_when_his_partner_has_nothing_better_left() -> None:
    text = (
        "process P is rec-msg(c) +> rec-msg(b) process Q is tau . tau . snd-msg(b) "
        "process T is tau . tau . rec-msg(b) process R is tau . tau . snd-msg(c) toolbus(P,Q,T,R)"
    )
    for seed in range(100):
        machine = machine_of(text, seed)
        assert run_out(machine)
        assert machine.halted or machine.possible() == ()


def test_notes_that_nobody_takes_wake_nobody() -> None:
    machine = machine_of(
        "process P is subscribe(n(<int>)) . rec-note(n(7)) process Q is tau . (snd-note(n(1)) * snd-note(n(7))) "
        "toolbus(P,Q)",
        3,
    )
    assert run_out(machine)
    statistics = machine.statistics()
    assert machine.halted
    assert statistics.turns <= statistics.steps + 1
