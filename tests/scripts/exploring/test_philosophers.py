"""Dining philosophers: numbers that are known, deadlocks that are there, and none where there are none."""

import pytest

from echoic.scripts.exploring import FindingKind
from tests.scripts.exploring.explored import explored, philosophers


@pytest.mark.parametrize("count", [3, 4, 5])
def test_there_are_as_many_states_as_forks_can_be_held(count: int) -> None:
    # A philosopher holds nothing, the left, both, or the right fork. A row of them in which nobody holds the same fork
    # has 3 ** n members; the one in which all hold their right fork cannot be reached.
    assert explored(philosophers(count), reduce=False).states == 3**count - 1


@pytest.mark.parametrize(("count", "states"), [(3, 197), (4, 1153), (5, 6725)])
def test_a_tau_before_each_loop_makes_the_states_of_the_java_toolbus(count: int, states: int) -> None:
    assert explored(philosophers(count, patient=True), reduce=False).states == states


@pytest.mark.parametrize("count", [3, 4, 5])
@pytest.mark.parametrize("reduce", [False, True])
@pytest.mark.parametrize("patient", [False, True])
def test_all_take_their_left_fork_and_that_is_that(count: int, reduce: bool, patient: bool) -> None:
    exploration = explored(philosophers(count, patient=patient), reduce=reduce)
    (deadlock,) = exploration.findings
    assert deadlock.kind is FindingKind.DEADLOCK
    assert deadlock.shortest
    taken = sorted(step.text for step in deadlock.trace if step.partner)
    assert taken == [f"snd-msg(get({number}))" for number in range(count)]
    assert len(deadlock.trace) == count * (3 if patient else 1)


@pytest.mark.parametrize("count", [3, 4, 5])
@pytest.mark.parametrize("reduce", [False, True])
def test_one_courteous_philosopher_keeps_all_alive(count: int, reduce: bool) -> None:
    exploration = explored(philosophers(count, courteous=True), reduce=reduce)
    assert exploration.findings == ()
    assert exploration.complete


def test_reduction_leaves_out_the_order_of_what_has_nothing_to_do_with_each_other() -> None:
    reduced = explored(philosophers(5, patient=True))
    assert reduced.states < 300
    assert reduced.reduced > 0


def test_the_text_shows_the_place_and_the_way() -> None:
    assert explored(philosophers(3)).text == (
        "26 states, 51 transitions, everything was looked at\n"
        "test.tb:2:54: deadlock: PHIL(1) waits for snd-msg(get(1)), FORK(2) waits for rec-msg(put(0)), "
        "PHIL(3) waits for snd-msg(get(2)), FORK(4) waits for rec-msg(put(1)), PHIL(5) waits for snd-msg(get(0)), "
        "FORK(6) waits for rec-msg(put(2))\n"
        "    process PHIL(L : int, R : int) is (snd-msg(get(L)) . snd-msg(get(R)) . snd-msg(put(L)) . "
        "snd-msg(put(R))) * delta\n"
        "                                                         ^\n"
        "    1. PHIL(1) -> FORK(2): snd-msg(get(0))  at 2:36, 3:27\n"
        "    2. PHIL(3) -> FORK(4): snd-msg(get(1))  at 2:36, 3:27\n"
        "    3. PHIL(5) -> FORK(6): snd-msg(get(2))  at 2:36, 3:27"
    )
