"""The check of what members were given finds what it is there to find."""

from collections.abc import Callable

import pytest

from tests.engines.stories import LIFE, Story, problems_of

BEGINNING = "V 2 1 n1,n2"


def told(name: str, life: int, *lines: str) -> Story:
    story = Story(name, life)
    for line in (BEGINNING, *lines):
        story.tell(line)
    return story


def event(sequence: int, sender: str = "n1", place: int = 0, *, view: int = 2) -> str:
    return f"E {sequence} {view} {sender} {1 * LIFE + (place or sequence)} 0.0"


def test_equal_stories_and_shorter_ones_are_in_order() -> None:
    whole = [event(number) for number in range(1, 6)]
    assert problems_of([told("n1", 1, *whole), told("n2", 2, *whole[:3])]) == []


def test_events_of_a_state_that_was_taken_over_count_as_given() -> None:
    state = f'R 3 [[1, "n1", {LIFE + 1}, "0.0"], [2, "n1", {LIFE + 2}, "0.0"], [3, "n1", {LIFE + 3}, "0.0"]]'
    whole = [event(number) for number in range(1, 6)]
    assert problems_of([told("n1", 1, *whole), told("n2", 2, state, event(4), event(5))]) == []


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda: [event(1), event(2, "n2", 1)], "was given"),
        (lambda: [event(1), event(3)], "event 3 after 1"),
        (lambda: [event(1), event(1)], "event 1 after 1"),
        (lambda: [event(1), event(2, view=7)], "in view 7, others in 2"),
        (lambda: [event(1), "V 2 1 n1", event(2)], "has the view ('n1',) at 2"),
        (lambda: [f'R 1 [[1, "n2", {LIFE + 1}, "0.0"]]', event(2)], "was given"),
        (lambda: [event(1), event(2), event(3, place=9)], "number 9 of n1/1 comes after 2"),
        (lambda: [event(1), event(2), event(3, place=2)], "number 2 of n1/1 comes after 2"),
    ],
)
def test_what_contradicts_is_found(spoil: Callable[[], list[str]], found: str) -> None:
    problems = problems_of([told("n1", 1, event(1), event(2)), told("n2", 2, *spoil())])
    assert any(found in problem for problem in problems), problems
