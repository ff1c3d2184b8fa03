"""What a hub does for its own sinks, and for one peer, costs the same however many others are linked with it."""

from collections.abc import Callable

import pytest

from echoic import Hub
from tests.counting import counted_calls
from tests.hub.parties import Collector, StartHub, Tick, eventually

FEW, MANY = 2, 12


def cost_of_a_submit(host: Hub, _: Hub) -> int:
    """How many calls it takes to hand an event to a sink in the same hub."""
    channel, seen = host.create("here", Tick), Collector()
    channel.subscribe(seen)
    source = channel.source()
    source.submit(Tick(1, 0))
    with counted_calls() as calls:
        source.submit(Tick(1, 1))
    assert seen.numbers == [0, 1]
    return calls[0]


def cost_of_finding_a_peer(host: Hub, peer: Hub) -> int:
    """How many calls it takes to open a channel that one of many peers manages."""
    channel = peer.create("there", Tick)
    with counted_calls() as calls:
        host.open(channel.id, Tick)
    return calls[0]


def among(start_hub: StartHub, guests: int, cost: Callable[[Hub, Hub], int]) -> int:
    host = start_hub()
    visited = host.create("visited", Tick)
    company = [start_hub() for _ in range(guests)]
    for guest in company:
        guest.open(visited.id, Tick)
    eventually(lambda: len(host.statistics().links) == guests, "all are linked")
    return cost(host, company[-1])


@pytest.mark.parametrize("cost", [cost_of_a_submit, cost_of_finding_a_peer])
def test_many_links_cost_as_much_as_few(start_hub: StartHub, cost: Callable[[Hub, Hub], int]) -> None:
    assert among(start_hub, MANY, cost) <= among(start_hub, FEW, cost) + 5
