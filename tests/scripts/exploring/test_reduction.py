"""A reduced exploration finds what a full one finds; and what a machine does has been explored."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.scripts.exploring import Environment, Exploration, ExplorationLimits, FindingKind, explore
from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine
from echoic.scripts.running.messages import Step
from echoic.scripts.syntax import load
from echoic.terms import write_text
from tests.scripts.exploring.explored import TOOL, explored, summary

INNER = ["tau", "X := Y", "X := 1", "X := sub(1,X)", "Y := X", 'printf("%d", X)']
MESSAGES = ["snd-msg(a)", "rec-msg(a)", "snd-msg(b(X))", "rec-msg(b(X?))", "snd-msg(b(0))", "rec-msg(b(1))"]
NOTES = ["subscribe(n(<int>))", "snd-note(n(X))", "rec-note(n(X?))", "no-note(n(1))", "unsubscribe(n(<int>))"]
TOOLS = [
    "execute(t, T?)",
    "snd-eval(T, q)",
    "rec-value(T, v(X?))",
    "rec-event(T, e)",
    "snd-ack-event(T, e)",
    "rec-disconnect(T)",
]
OTHERS = [
    "delta",
    "tau delay(1)",
    "rec-msg(a) timeout(1)",
    "snd-terminate(T, 0)",
    "shutdown(0)",
    "create(C(X), X?)",
    "D",
]
LIMITS = ExplorationLimits(states_max=3000, notes_per_process_max=2, processes_max=4, tools_max=2)
SMALL = Environment(domain={"int": (0, 1)})


def bodies(atoms: list[str], operators: list[str]) -> st.SearchStrategy[str]:
    tree = st.recursive(
        st.sampled_from(atoms),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(operators), inner).map(lambda parts: f"({' '.join(parts)})"),
            inner.map(lambda body: f"if equal(X,1) then {body} else tau fi"),
            inner.map(lambda body: f"if equal(X,1) then {body} fi"),
        ),
        max_leaves=6,
    )
    return st.one_of(tree, tree.map("({}) * delta".format))


def script(*parts: str, first: tuple[str, ...] = ()) -> str:
    """Return a script of processes with these bodies, each of which begins with one of `first`."""
    beginnings = (*first, *[""] * len(parts))
    processes = "\n".join(
        f"process P{number} is let X : int, Y : int, T : t in X := {number % 2} . {beginnings[number]} {body} endlet"
        for number, body in enumerate(parts)
    )
    return (
        f"{TOOL}{processes}\nprocess C(I : int) is tau . snd-msg(b(I))\nprocess D is rec-msg(a) + tau . tau\n"
        f"toolbus({', '.join(f'P{number}' for number in range(len(parts)))})"
    )


EVERYTHING = bodies(
    [*INNER, *INNER, *MESSAGES, *NOTES, *TOOLS, *OTHERS], [".", ".", ".", "+", "*", "||", ">>", "+>", "<+"]
)
TOOLED = bodies([*INNER, *TOOLS, *TOOLS, "snd-terminate(T, 0)"], [".", ".", "+", "*"])
NOTED = bodies([*INNER, *NOTES, *NOTES, "rec-msg(a)", "snd-msg(a)"], [".", ".", "+", "*"])
CLOSED = bodies([*INNER, *MESSAGES, *NOTES, "delta", "shutdown(0)", "D"], [".", ".", "+", "*", "||", ">>", "+>", "<+"])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(EVERYTHING, TOOLED, NOTED), min_size=1, max_size=3))
def test_a_reduced_exploration_finds_what_a_full_one_finds(parts: list[str]) -> None:
    text = script(*parts, first=("execute(t, T?) .", "subscribe(n(<int>)) ."))
    full = explored(text, reduce=False, environment=SMALL, limits=LIMITS)
    reduced = explored(text, environment=SMALL, limits=LIMITS)
    if any("after" in each for each in full.left_out):
        return  # not everything was looked at
    assert reduced.states <= full.states
    assert len(reduced.stuck) == len(full.stuck)
    assert summary(reduced) == summary(full)
    assert reduced.left_out == full.left_out


@settings(max_examples=150, deadline=None)
@given(st.lists(CLOSED, min_size=1, max_size=3), st.integers(0, 3))
def test_what_a_machine_does_has_been_explored(parts: list[str], seed: int) -> None:
    program = compile(load(script(*parts), "test.tb"))
    exploration = explore(program, limits=LIMITS, reduce=False)
    if not exploration.complete:
        return
    machine = Machine(program, chance=random.Random(seed), now_ns=0, traced=True)
    machine.start()
    waiting = machine.run(60, 0)
    done = [effect for effect in machine.take_effects() if isinstance(effect, Step)]
    reached = follow(exploration, [(step.span, step.partner_span, label(step)) for step in done])
    assert reached
    if machine.halted:
        assert any(not exploration.steps_from(state) for state in reached)
    elif not waiting:
        assert reached & exploration.stuck


def label(step: Step) -> str:
    if step.atom == "tau":
        return "tau"
    if step.atom == ":=":
        return f":= {write_text(step.arguments[0])}"
    return f"{step.atom}({','.join(map(write_text, step.arguments))})"


def follow(exploration: Exploration, steps: list[tuple[object, object, str]]) -> set[int]:
    """Return the states in which an exploration may be after steps, each given by its places and its label."""
    states = {0}
    for place, other, text in steps:
        states = {
            target
            for state in states
            for step, target in exploration.steps_from(state)
            if (step.span, step.partner_span) == (place, other) and step.text.endswith(text)
        }
    return states


def test_exploring_twice_gives_the_same() -> None:
    text = script("(snd-msg(b(X)) . tau) * rec-msg(a)", "rec-msg(b(X?)) * (tau . snd-msg(a))", "tau || tau")
    one, other = explored(text), explored(text)
    assert one.text == other.text
    assert one.write_aut() == other.write_aut()


def test_a_process_prefers_what_it_can_do_by_itself() -> None:
    text = "process P is snd-msg(a) +> tau\nprocess Q is rec-msg(a) + tau\ntoolbus(P, Q)"
    never = {(each.text, each.span.line, each.span.column) for each in explored(text).of_kind(FindingKind.UNREACHABLE)}
    assert never == {("this is never enabled", 1, 14), ("this is never enabled", 2, 14)}


def test_what_is_preferred_may_come_too_late_when_others_take_part() -> None:
    text = """
process P is snd-msg(a) +> rec-msg(b)
process Q is rec-msg(a) + tau
process R is snd-msg(b) + tau
toolbus(P, Q, R)"""
    labels = {label for _, label, _ in explored(text).system().transitions}
    assert {"snd-msg(a)", "snd-msg(b)"} <= labels
