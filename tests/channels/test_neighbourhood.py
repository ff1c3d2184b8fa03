"""Who stands where, and that to know it costs the same however many neighbours there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.channels import Message, Neighbour, Refused, Session
from echoic.channels.messages import Browse
from echoic.channels.neighbourhood import Neighbourhood
from echoic.channels.requests import REQUEST_NS
from tests.channels.company import Company
from tests.counting import counted_calls

SECOND = 1_000_000_000
FEW, MANY = 20, 200

addresses = st.sampled_from(["", "a:1", "b:1", "c:1"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), addresses),
        st.tuples(st.just("alias"), st.integers(0, 9), addresses.filter(bool)),
        st.tuples(st.just("remove"), st.integers(0, 9)),
    ),
    max_size=40,
)


@given(steps)
def test_who_is_found_by_address_and_name_is_who_says_so_of_itself(taken: list[tuple[object, ...]]) -> None:
    neighbourhood, there = Neighbourhood(), list[Neighbour]()
    for number, step in enumerate(taken):
        match step:
            case ("add", str(address)):
                there.append(Neighbour(f"hub-{number}", address, "", Session(1), who=f"who-{number % 3}"))
                neighbourhood.add(there[-1])
            case ("alias", int(which), str(address)) if which < len(there):
                neighbourhood.add_alias(there[which], address)
            case ("remove", int(which)) if which < len(there):
                neighbourhood.remove(there.pop(which))
        for address in ("", "a:1", "b:1", "c:1"):
            standing = {one.id for one in there if one.stands_at(address)}
            assert {one.id for one in neighbourhood.at(address)} == standing
        for who in ("who-0", "who-1", "who-2", "nobody"):
            assert neighbourhood.count_named(who) == sum(one.who == who for one in there)


def test_those_at_one_place_are_told_in_the_order_in_which_they_came() -> None:
    neighbourhood = Neighbourhood()
    for name in ("z", "a", "m"):
        neighbourhood.add(Neighbour(name, "door:1", "", Session(1)))
    assert [one.id for one in neighbourhood.at("door:1")] == ["z", "a", "m"]


def cost_of_a_visit(guests: int) -> dict[str, int]:
    """Return how many calls it takes one hub among so many to come, to break off, and to be given up."""
    company = Company("host", *(f"guest{number}" for number in range(guests)))
    host = company.hubs["host"]
    for number in range(guests - 1):
        company.meet(f"guest{number}", "host")
    host.effects.clear()
    costs = {}
    with counted_calls() as calls:
        company.meet(f"guest{guests - 1}", "host")
    costs["come"] = calls[0]
    with counted_calls() as calls:
        host.broken(f"id-guest{guests - 1}", SECOND)
    costs["break off"] = calls[0]
    with counted_calls() as calls:
        host.gone(f"id-guest{guests - 1}", "it is time")
    costs["be given up"] = calls[0]
    return costs


@pytest.mark.parametrize("what", ["come", "break off", "be given up"])
def test_a_hub_among_many_costs_as_much_as_one_among_few(what: str) -> None:
    assert cost_of_a_visit(MANY)[what] <= cost_of_a_visit(FEW)[what] + 5


def test_who_stood_still_and_first_hears_of_a_break_gives_requests_as_long_as_ever() -> None:
    company = Company("m", "a", "b")
    for name in ("a", "b"):
        company.meet(name, "m")
    asking, replies = company.hubs["m"], list[Message]()
    asking.tick(SECOND)
    later = 3601 * SECOND
    asking.broken("id-a", later)
    asking.ask("b:1", Browse(), replies.append)
    for now_ns in range(later, later + REQUEST_NS, SECOND // 10):
        asking.tick(now_ns)
    assert not replies
    asking.tick(later + REQUEST_NS + SECOND // 10)
    assert [type(reply) for reply in replies] == [Refused]
