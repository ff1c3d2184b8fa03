"""Which events a sink takes while it goes over: by the hub that sends, and by the numbers of each source."""

from hypothesis import given
from hypothesis import strategies as st

from echoic.channels.turns import HANDLES_MAX, TURNS_MAX, Turns

LEFT, RIGHT = "left", "right"


def test_a_sink_that_never_turned_takes_everything() -> None:
    turns = Turns()
    assert turns.takes("sink", LEFT, 1, 0)
    assert not turns


def test_a_sink_that_has_left_takes_what_was_submitted_before() -> None:
    turns = Turns()
    turns.note("sink", LEFT, {1: 5, 2: 0}, taken=False)
    assert [turns.takes("sink", LEFT, 1, first) for first in (0, 4, 5, 6)] == [True, True, False, False]
    assert not turns.takes("sink", LEFT, 2, 0)
    assert not turns.takes("sink", LEFT, 3, 0), "a source that is not named turned before its first event"
    assert turns.takes("sink", RIGHT, 1, 9), "another hub has yet to turn"
    assert turns.takes("other", LEFT, 1, 9)


def test_a_sink_that_comes_takes_nothing_of_a_hub_that_has_not_turned() -> None:
    turns = Turns()
    turns.expect("sink")
    turns.note("sink", LEFT, {1: 5}, taken=True)
    assert [turns.takes("sink", LEFT, 1, first) for first in (4, 5)] == [False, True]
    assert not turns.takes("sink", RIGHT, 1, 9)
    assert [turns.taking("sink", hub) for hub in (LEFT, RIGHT)] == [True, False]


def test_a_hub_that_says_the_same_again_changes_nothing() -> None:
    turns = Turns()
    turns.expect("sink")
    for position in (5, 8):
        turns.note("sink", LEFT, {1: position}, taken=True)
    assert [turns.takes("sink", LEFT, 1, first) for first in (4, 5, 9)] == [False, True, True]


def test_a_hub_that_turns_away_a_sink_that_never_came_has_never_had_it() -> None:
    turns = Turns()
    turns.expect("sink")
    turns.note("sink", LEFT, {1: 5}, taken=False)
    assert [turns.takes("sink", LEFT, 1, first) for first in (4, 5)] == [False, False]
    turns.note("sink", LEFT, {1: 8}, taken=True)
    assert [turns.takes("sink", LEFT, 1, first) for first in (4, 7, 8)] == [False, False, True]


def test_a_hub_that_takes_back_a_sink_that_it_never_turned_away_has_had_it_all_the_time() -> None:
    turns = Turns()
    turns.note("sink", LEFT, {1: 5}, taken=True)
    assert [turns.takes("sink", LEFT, 1, first) for first in (4, 5)] == [True, True]
    turns.note("sink", LEFT, {1: 8}, taken=False)
    assert [turns.takes("sink", LEFT, 1, first) for first in (4, 7, 8)] == [True, True, False]


@given(st.lists(st.integers(0, 20), max_size=10).map(sorted), st.integers(0, 25))
def test_there_and_back_is_told_apart_by_the_numbers(positions: list[int], first: int) -> None:
    turns = Turns()
    for n, position in enumerate(positions):
        turns.note("sink", LEFT, {1: position}, taken=bool(n % 2))
    assert turns.takes("sink", LEFT, 1, first) == (sum(position <= first for position in positions) % 2 == 0)


def test_whoever_waits_goes_on_when_the_last_hub_has_turned() -> None:
    turns, done = Turns(), list[str]()
    turns.note("sink", LEFT, {}, taken=False)
    turns.when_turned("sink", [LEFT, RIGHT], lambda: done.append("turned"))
    assert not done
    turns.note("other", RIGHT, {}, taken=False)
    turns.note("sink", RIGHT, {}, taken=True)
    assert not done
    turns.note("sink", RIGHT, {}, taken=False)
    assert done == ["turned"]
    turns.note("sink", RIGHT, {}, taken=False)
    assert done == ["turned"]


def test_whoever_waits_goes_on_at_once_if_there_is_nobody_to_wait_for() -> None:
    turns, done = Turns(), list[str]()
    turns.when_turned("sink", [], lambda: done.append("none"))
    turns.note("sink", LEFT, {}, taken=False)
    turns.when_turned("sink", [LEFT], lambda: done.append("told before"))
    assert done == ["none", "told before"]


def test_a_hub_that_came_back_since_is_waited_for_again() -> None:
    turns, done = Turns(), list[str]()
    turns.note("sink", LEFT, {1: 1}, taken=False)
    turns.note("sink", LEFT, {1: 2}, taken=True)
    turns.when_turned("sink", [LEFT], lambda: done.append("again"))
    assert not done
    turns.note("sink", LEFT, {1: 3}, taken=False)
    assert done == ["again"]


def test_a_hub_that_is_gone_is_not_waited_for() -> None:
    turns, done = Turns(), list[str]()
    turns.when_turned("sink", [LEFT, RIGHT], lambda: done.append("one"))
    turns.when_turned("other", [LEFT], lambda: done.append("other"))
    turns.gone(LEFT)
    assert done == ["other"]
    turns.gone(RIGHT)
    assert done == ["other", "one"]


def test_a_hub_that_was_never_met_is_waited_for_only_by_whoever_gives_it_up() -> None:
    turns, done = Turns(), list[str]()
    turns.when_turned("sink", [LEFT], lambda: done.append("one"))
    turns.when_turned("other", [LEFT], lambda: done.append("other"))
    turns.turned("sink", LEFT)
    assert done == ["one"]
    assert [turns.awaited(name) for name in ("sink", "other")] == [False, True]


def test_a_sink_that_is_closed_is_not_waited_for_and_leaves_nothing() -> None:
    turns, done = Turns(), list[str]()
    turns.expect("sink")
    turns.note("sink", LEFT, {1: 1}, taken=False)
    turns.when_turned("sink", [RIGHT], lambda: done.append("closed"))
    turns.forget("sink")
    assert done == ["closed"], "whoever waited for it goes on"
    turns.note("other", RIGHT, {}, taken=False)
    turns.gone(RIGHT)
    turns.forget("other")
    assert done == ["closed"]
    assert not turns


def test_who_waits_for_a_sink_that_another_waits_for_too_displaces_nobody() -> None:
    turns, done = Turns(), list[str]()
    turns.when_turned("sink", [LEFT], lambda: done.append("one"))
    turns.when_turned("sink", [RIGHT], lambda: done.append("other"))
    turns.note("sink", RIGHT, {}, taken=False)
    assert done == []
    turns.note("sink", LEFT, {}, taken=False)
    assert done == ["one", "other"]


def test_a_peer_that_turns_without_end_is_remembered_only_so_far() -> None:
    turns = Turns()
    for position in range(3 * TURNS_MAX):
        turns.note("sink", LEFT, {1: position}, taken=bool(position % 2))
    assert turns.takes("sink", LEFT, 1, 3 * TURNS_MAX)
    for number in range(HANDLES_MAX + 10):
        turns.note(f"sink {number}", LEFT, {1: 0}, taken=False)
    refused = [number for number in range(HANDLES_MAX + 10) if turns.takes(f"sink {number}", LEFT, 1, 0)]
    assert len(refused) == 11
