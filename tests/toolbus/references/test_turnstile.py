"""The turnstile: never more than so many at a time, everybody in order, and nobody is forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from echoic.toolbus.references.turnstile import Ticket, Turnstile


@given(st.integers(1, 4), st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 30)), max_size=80))
def test_so_many_go_through_at_a_time_and_all_in_order(at_once: int, acts: list[tuple[bool, int, int]]) -> None:
    turnstile = Turnstile(at_once)
    tickets: list[Ticket] = []
    begun: list[int] = []
    inside: dict[int, set[int]] = {key: set() for key in range(3)}

    def begin(number: int, key: int) -> None:
        begun.append(number)
        inside[key].add(number)
        assert len(inside[key]) <= at_once

    def leave(number: int) -> None:
        ticket = tickets[number]
        inside[ticket.key].discard(number)  # type: ignore[index] # keys are numbers here
        turnstile.leave(ticket)

    gone: set[int] = set()
    for entering, key, pick in acts:
        if entering or not tickets:
            number = len(tickets)
            tickets.append(Ticket(key, lambda number=number, key=key: begin(number, key)))
            turnstile.enter(tickets[-1])
        else:
            gone.add(pick % len(tickets))
            leave(pick % len(tickets))
    while left := [number for number in range(len(tickets)) if number not in gone]:
        gone.add(left[0])
        assert left[0] in begun, "who has waited longest is through"
        leave(left[0])

    for key in range(3):
        mine = [number for number in begun if tickets[number].key == key]
        assert mine == sorted(mine)
    assert turnstile._through == {} == turnstile._waiting  # noqa: SLF001 - nothing is kept
