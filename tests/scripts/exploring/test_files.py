"""Transition systems: files, minimal ones, and limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import MalformedFormatError
from echoic.scripts.exploring import ExplorationLimits, FindingKind, TransitionSystem, minimise, read_aut, write_aut
from tests.scripts.exploring.explored import explored, philosophers

LABELS = st.sampled_from(["a", "b", 'say("x")', "back\\slash", "two\nlines", ""]) | st.text(max_size=5)
FEW_LABELS = st.sampled_from("ab")


@st.composite
def systems(draw: st.DrawFn, labels: st.SearchStrategy[str] = LABELS) -> TransitionSystem:
    states = draw(st.integers(1, 6))
    numbers = st.integers(0, states - 1)
    return TransitionSystem(states, tuple(draw(st.lists(st.tuples(numbers, labels, numbers)))), draw(numbers))


@given(systems())
def test_aut_files_are_read_as_they_were_written(system: TransitionSystem) -> None:
    assert read_aut(write_aut(system)) == system


def test_aut_files_of_others_are_read() -> None:
    text = 'des (0,2,2)\n(0,i,1)\n( 1 , "a b" , 0 )\n\n'
    assert read_aut(text) == TransitionSystem(2, ((0, "i", 1), (1, "a b", 0)))


@pytest.mark.parametrize(
    "text",
    ["", "des (0, 1)", "des (0, 1, 1)\n", "des (0, 1, 1)\n(0, a, 1)", "des (0, 1, 2)\n0, a, 1", "des (0,1,1)\nx"],
)
def test_what_is_no_aut_file_is_refused(text: str) -> None:
    with pytest.raises(MalformedFormatError):
        read_aut(text)


def test_an_exploration_is_written() -> None:
    exploration = explored("process P is snd-msg(a) . rec-msg(b)\nprocess Q is rec-msg(a)\ntoolbus(P, Q)")
    assert exploration.write_aut() == 'des (0, 1, 2)\n(0, "snd-msg(a)", 1)\n'
    assert exploration.write_dot() == (
        'digraph "script" {\n  rankdir=LR;\n  node [shape=circle];\n  start [shape=point]; start -> "0";\n'
        '  "1" [color=red, style=bold];\n  "0" -> "1" [label="snd-msg(a)"];\n}\n'
    )


def test_states_that_do_the_same_are_one() -> None:
    text = "process P is (snd-msg(a) . snd-msg(a)) * delta\nprocess Q is rec-msg(a) * delta\ntoolbus(P, Q)"
    exploration = explored(text)
    assert exploration.states == 2
    assert exploration.write_aut(minimal=True) == 'des (0, 1, 1)\n(0, "snd-msg(a)", 0)\n'
    assert "color=red" not in exploration.write_dot(minimal=True)


def bisimilar(one: TransitionSystem, other: TransitionSystem) -> bool:
    """Whether two systems are strongly bisimilar, found from the definition."""
    related = {(a, b) for a in range(one.states) for b in range(other.states)}

    def simulated(a: int, b: int, forth: TransitionSystem, back: TransitionSystem, turned: bool) -> bool:
        return all(
            any(
                label == reply and ((after, target) if turned else (target, after)) in related
                for source, reply, after in back.transitions
                if source == b
            )
            for start, label, target in forth.transitions
            if start == a
        )

    while True:
        kept = {(a, b) for a, b in related if simulated(a, b, one, other, False) and simulated(b, a, other, one, True)}
        if kept == related:
            return (one.initial, other.initial) in related
        related = kept


@given(systems(FEW_LABELS))
def test_the_smallest_system_does_the_same_and_cannot_be_made_smaller(system: TransitionSystem) -> None:
    minimal = minimise(system)
    assert bisimilar(system, minimal)
    assert minimal.states <= system.states
    for one in range(minimal.states):
        for other in range(one):
            first = TransitionSystem(minimal.states, minimal.transitions, one)
            assert not bisimilar(first, TransitionSystem(minimal.states, minimal.transitions, other))


def test_an_exploration_stops_at_its_limits_and_says_so() -> None:
    exploration = explored(philosophers(4), limits=ExplorationLimits(states_max=20))
    assert not exploration.complete
    assert exploration.left_out == ("what comes after 20 states",)
    assert 20 < exploration.states < 40
    assert exploration.text.startswith(f"{exploration.states} states, ")
    assert "not looked at: what comes after 20 states" in exploration.text
    fewer = explored(philosophers(4), limits=ExplorationLimits(transitions_max=10))
    assert fewer.left_out == ("what comes after 10 transitions",)


def test_what_was_not_looked_at_is_not_called_unreachable() -> None:
    text = "process P is tau . tau . tau . tau . rec-msg(a)\nprocess Q is snd-msg(a)\ntoolbus(P, Q)"
    exploration = explored(text, limits=ExplorationLimits(states_max=2))
    assert exploration.of_kind(FindingKind.UNREACHABLE) == ()
    assert exploration.of_kind(FindingKind.DEADLOCK) == ()


def test_a_counter_has_no_end_of_states() -> None:
    text = "process P is let X : int in X := 0 . (X := add(X,1)) * delta endlet\ntoolbus(P)"
    exploration = explored(text, limits=ExplorationLimits(states_max=100))
    assert not exploration.complete
    assert exploration.findings == ()
