"""Time and chance in processes of the ToolBus: delays and timeouts, who goes first, fairness, repeated runs, ends."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine, RunLog, digest_of, replay
from echoic.scripts.running.messages import Connected, Note
from echoic.scripts.syntax import load
from echoic.terms import parse_text
from tests.papers.toolbus_driver import SECOND_NS, Bus, alone, outcomes, printed
from tests.papers.toolbus_rules import steps_of, written

# Timing


def test_delays_and_timeouts_begin_when_the_state_is_entered() -> None:
    body = '(tau delay(sec(1))) . printf("a") delay(sec(1)) . (printf("b") delay(msec(1500)) + printf("c") delay(2))'
    bus = alone(body)
    assert [bus.wait(step).text for step in (1.999, 0.001, 1.499, 0.001)] == ["", "a", "a", "ab"]
    assert bus.ending == "halted"


def test_a_delay_includes_its_moment_and_a_timeout_does_not() -> None:
    script = """process P is rec-msg(go) timeout(sec(1)) . printf("in time") + printf("late") delay(sec(1))
    process R is snd-msg(go) delay(msec({})) toolbus(P, R)"""
    assert printed(script.format(999), 3) == "in time"
    assert printed(script.format(1000), 3) == "late"
    assert printed('process P is printf("a") timeout(sec(0))', 3) == ""


def test_delay_and_timeout_together_make_a_window() -> None:
    script = """process P is rec-msg(go) delay(sec(1)) timeout(sec(3)) . printf("met")
    process R is tau delay(sec({0})) . snd-msg(go) timeout(msec(1)) toolbus(P, R)"""
    assert [printed(script.format(second), 9) for second in (0, 1, 2, 3, 4)] == ["", "met", "met", "", ""]


def test_time_goes_on_for_the_untouched_side_of_a_merge() -> None:
    busy = "(tau delay(msec(700)) . tau delay(msec(700)) . tau delay(msec(700)) . tau)"
    bus = alone(f'printf("a") delay(sec(2)) || {busy}')
    assert [bus.wait(step).text for step in (1.999, 0.001)] == ["", "a"]
    late = f'((rec-msg(x) timeout(sec(2)) + printf("a") delay(sec(2))) || {busy})'
    bus = alone(late)
    assert [bus.wait(step).text for step in (1.999, 0.001)] == ["", "a"]


@pytest.mark.parametrize(
    "around",
    [
        "{} . tau",
        "tau . {}",
        "{} >> rec-msg(never)",
        "({} >> rec-msg(never)) >> rec-msg(never)",
        "if true then {} fi",
        "let X:int in {} endlet",
        "delta <+ {}",
        "{} +> rec-msg(never)",
        "rec-msg(never) + {}",
        "({}) * delta",
        "{} || (tau delay(msec(300)) . tau delay(msec(300)))",
        "((tau delay(msec(300)) . tau delay(msec(300))) || {}) . tau",
    ],
)
def test_time_goes_on_wherever_a_merge_stands(around: str) -> None:
    busy = "(tau delay(msec(700)) . tau delay(msec(700)) . tau delay(msec(700)))"
    bus = alone(around.format(f'(printf("a") delay(sec(2)) || {busy})'))
    assert [bus.wait(step).text for step in (1.999, 0.001)] == ["", "a"]


def test_time_goes_on_for_those_who_are_woken_in_vain() -> None:
    bus = alone(
        "subscribe(n(<int>)) . (rec-note(n(5)) timeout(sec(2)) + printf(LATE) delay(sec(2)))".replace("LATE", '"l"')
    )
    bus.wait(1).hear(Note(parse_text("n(1)")))
    assert [bus.wait(step).text for step in (0.999, 0.001)] == ["", "l"]


def test_time_begins_again_with_each_round_of_a_loop() -> None:
    assert alone('(printf("t") delay(sec(1))) * delta').wait(4.5).text == "tttt"
    assert alone('(tau delay(sec(1))) * (printf("never") delay(sec(3)))').wait(20).text == ""


def test_what_may_disrupt_keeps_its_time() -> None:
    assert alone('((printf("w") delay(sec(1))) * delta) >> (printf("stop") delay(msec(2500)))').wait(9).text == "wwstop"


@pytest.mark.parametrize("date", ["101,9,9,1,46,45", "9,9,1,46,45", "9,1,46,45", "1,46,45"])
def test_absolute_times_have_three_to_six_fields(date: str) -> None:
    epoch_ns = 1_000_000_000 * SECOND_NS  # 2001-09-09 01:46:40
    bus = alone(f'printf("a") abs-delay({date})', epoch_ns=epoch_ns)
    assert [bus.wait(step).text for step in (4.999, 0.001)] == ["", "a"]
    script = f"""process P is rec-msg(go) abs-timeout({date}) . printf("met") process R is snd-msg(go) delay(msec(#))
    toolbus(P, R)"""
    assert Bus(script.replace("#", "4999"), epoch_ns=epoch_ns).wait(9).text == "met"
    assert Bus(script.replace("#", "5000"), epoch_ns=epoch_ns).wait(9).text == ""


# Scheduling, fairness, ending


def test_ties_are_broken_by_chance_and_evenly() -> None:
    choice = 'process P is printf("a") + printf("b") + printf("c") toolbus(P)'
    texts = [Bus(choice, seed).text for seed in range(300)]
    assert all(texts.count(letter) > 60 for letter in "abc")
    text = alone('(printf("a") + printf("b")) * delta').text
    assert 0.45 < text.count("a") / len(text) < 0.55
    assert "a" * 40 not in text


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "script",
    [
        'process P is tau * delta process Q is tau . tau . printf("done") toolbus(P, Q)',
        'process P is tau * (printf("done") . tau * delta) toolbus(P)',
        'process P is (tau * delta) || printf("done") toolbus(P)',
        'process P is (tau + snd-msg(x)) * delta process Q is rec-msg(x) . printf("done") toolbus(P, Q)',
        'process P is (tau * delta) || snd-msg(x) process Q is rec-msg(x) . printf("done") toolbus(P, Q)',
        'process P is LOOP || snd-msg(x) process Q is LOOP || rec-msg(x) . printf("done") toolbus(P, Q)',
        'process P is snd-msg(x) * delta process S is snd-msg(x) . DONE process Q is rec-msg(x) * delta toolbus(P,S,Q)',
        'process P is snd-msg(x) * delta process S is rec-msg(x) . DONE process Q is rec-msg(x) * delta toolbus(P,S,Q)',
        'process P is subscribe(n) . ((rec-note(n) + tau) * delta) process Q is snd-note(n) * DONE toolbus(P, Q)',
        '''process P is snd-msg(a) * delta process S is snd-msg(b) . printf("done")
        process Q is (rec-msg(a) + rec-msg(b)) * delta toolbus(P, S, Q)''',
    ],
)  # fmt: skip
def test_what_can_always_be_done_is_done_in_the_end(script: str, seed: int) -> None:
    bus = Bus(script.replace("LOOP", "(tau * delta)").replace("DONE", 'printf("done")'), seed)
    assert bus.endless
    assert "done" in bus.text


def test_two_that_are_busy_meet_as_well_as_two_that_wait() -> None:
    script = 'process P is printf("p") + snd-msg(x) process Q is printf("q") + rec-msg(x) toolbus(P, Q)'
    found = outcomes(script)
    assert "" in found
    assert found <= {"", "pq", "qp"}
    assert len(found) > 1
    script = 'process P is printf("p") +> snd-msg(x) process Q is printf("q") +> rec-msg(x) toolbus(P, Q)'
    assert printed(script) == ""


@pytest.mark.parametrize("order", ["P, A, B", "A, P, B", "A, B, P", "B, A, P"])
def test_which_partner_is_met_is_decided_by_chance(order: str) -> None:
    script = f"""process A is rec-msg(a) . printf("a") process B is rec-msg(b) . printf("b")
    process P is snd-msg(a) + snd-msg(b) toolbus({order})"""
    assert outcomes(script) == {"a", "b"}


talk = st.recursive(
    st.sampled_from(["a", "b", "snd-msg(x)", "rec-msg(x)", "snd-msg(y)", "rec-msg(y)"]),
    lambda parts: st.tuples(st.sampled_from([".", ".", "+", ">>", "||"]), parts, parts),
    max_leaves=5,
)


def worlds_after(worlds: Iterable[tuple[object, ...]], letter: str) -> dict[str, tuple[object, ...]]:
    """Return what processes may have become when one has printed this, or, for "", when some have met."""
    found = {}
    for world in worlds:
        for place, process in enumerate(world):
            for atom, rest in steps_of(process):
                if atom == letter:
                    changed = (*world[:place], rest, *world[place + 1 :])
                    found[repr(changed)] = changed
                if letter or not atom.startswith("snd"):
                    continue
                for other, partner in enumerate(world):
                    meeting = [then for each, then in steps_of(partner) if each == atom.replace("snd", "rec")]
                    for then in meeting if other != place else ():
                        met = {place: rest, other: then}
                        changed = tuple(met.get(index, each) for index, each in enumerate(world))
                        found[repr(changed)] = changed
    return found


def with_meetings(worlds: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    fresh = worlds
    while fresh:
        fresh = {key: each for key, each in worlds_after(fresh.values(), "").items() if key not in worlds}
        worlds = worlds | fresh
    return worlds


@settings(max_examples=120, deadline=None)
@given(st.lists(talk, min_size=2, max_size=3), st.integers(0, 999))
def test_nobody_waits_where_two_could_meet(processes: list[object], seed: int) -> None:
    defined = " ".join(f"process P{index} is {written(each)}" for index, each in enumerate(processes))
    bus = Bus(f"{defined} toolbus({', '.join(f'P{index}' for index in range(len(processes)))})", seed)
    worlds = with_meetings({"": tuple(processes)})
    for letter in bus.text:
        worlds = with_meetings(worlds_after(worlds.values(), letter))
    ended = [world for world in worlds.values() if not worlds_after([world], "") and not can_print(world)]
    assert ended, f"{bus.text} by {defined}"


def can_print(world: tuple[object, ...]) -> bool:
    return any(atom in ("a", "b") for process in world for atom, _ in steps_of(process))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 50))
def test_the_same_seed_and_inputs_give_the_same_run(seed: int, turns_at_once: int) -> None:
    script = """process P(N:int) is let X:int in ((snd-msg(m(N)) + rec-msg(m(X?)) + snd-note(n(N))) * tau) .
    printf("%d %t;", N, X) endlet
    process Q is let X:int in subscribe(n(<int>)) . ((rec-note(n(X?)) . printf("note %d;", X)) * delta) endlet
    toolbus(P(1), P(2), P(3), P(4), Q)"""
    first = Bus(script, seed, traced=True)
    assert first.effects == Bus(script, seed, traced=True, turns_at_once=turns_at_once).effects


def test_a_run_is_repeated_from_its_log() -> None:
    script = load("""tool t is { command = "c" }
    process P is let T:t, X:int in rec-connect(T?) . ((rec-event(T, e(X?)) . printf("%d", X) + printf("-")) *
    tau delay(1)) endlet toolbus(P, P)""")
    log = RunLog(digest_of(script), 5, 0)
    machine = Machine(compile(script), chance=random.Random(5), now_ns=0, log=log.entries, traced=True)
    machine.start()
    effects = []
    for now_ns in range(0, 3 * SECOND_NS, SECOND_NS // 7):
        machine.run(3, now_ns)
        machine.receive(Connected("t"), now_ns)
        machine.run(5, now_ns + 1)
        effects += machine.take_effects()
    turns = machine.statistics().turns
    again = replay(log, compile(script), random.Random(5), turns_max=turns)
    assert [effect for part in again for effect in part] == effects


@pytest.mark.parametrize(
    "body",
    ["delta", "delta . tau", "delta + delta", "delta || delta", "tau . delta", "delta * delta", "delta >> delta"],
)
def test_a_process_that_can_only_do_delta_is_removed_and_the_last_to_end_halts_the_bus(body: str) -> None:
    assert alone(body).ending == "halted"
    assert alone("if false then tau fi").ending == "waiting"


def test_shutdown_stops_everybody() -> None:
    script = (
        'process P is shutdown("end") delay(sec(1)) process Q is (printf("q") delay(msec(400))) * delta toolbus(P, Q)'
    )
    bus = Bus(script).wait(10)
    assert (bus.text, bus.ending) == ("qq", 'shutdown "end"')
