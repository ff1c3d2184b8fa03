"""Strangers: room for so many, and nobody pushes out others."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.links.strangers import Strangers, origin_of


@dataclass(eq=False)
class Somebody:
    """Who has connected, from somewhere."""

    peer: str


def stranger(host: str, port: int) -> Somebody:
    return Somebody(f"{host}:{port}")


@dataclass
class Flood:
    """Connections by the address they come from."""

    strangers: Strangers[Somebody]

    def come(self, host: str, count: int) -> list[Somebody]:
        came = (self.strangers.admit(stranger(host, port)) for port in range(count))
        return [leaving for leaving in came if leaving is not None]


def test_one_address_may_have_all_the_room_and_then_pushes_out_itself() -> None:
    flood = Flood(Strangers(8))
    assert flood.come("10.0.0.1", 8) == []
    assert [each.peer for each in flood.come("10.0.0.1", 2)] == ["10.0.0.1:0", "10.0.0.1:1"]


def test_a_flood_from_one_address_does_not_push_out_another() -> None:
    strangers = Strangers[Somebody](8)
    honest = stranger("10.0.0.2", 1)
    strangers.admit(honest)
    left = Flood(strangers).come("10.0.0.1", 1000)
    assert len(left) == 1000 - 7
    assert honest not in left


def test_somebody_comes_in_though_a_flood_has_taken_all_the_room() -> None:
    flood = Flood(Strangers(8))
    flood.come("10.0.0.1", 100)
    assert [each.peer.partition(":")[0] for each in flood.come("10.0.0.2", 3)] == ["10.0.0.1"] * 3


@given(st.lists(st.sampled_from("abcd"), max_size=60))
def test_room_is_limited_and_only_who_has_the_most_gives_way(hosts: list[str]) -> None:
    strangers, here = Strangers[Somebody](5), list[Somebody]()
    for port, host in enumerate(hosts):
        arrived = stranger(host, port)
        leaving = strangers.admit(arrived)
        here.append(arrived)
        if leaving is not None:
            counts = {each: sum(one.peer[0] == each for one in here) for each in "abcd"}
            assert counts[leaving.peer[0]] == max(counts.values())
            assert leaving is next(one for one in here if one.peer[0] == leaving.peer[0])
            here.remove(leaving)
        assert len(strangers) == len(here) <= 5
    for each in here:
        strangers.leave(each)
        strangers.leave(each)
    assert len(strangers) == 0


@pytest.mark.parametrize(
    ("peer", "origin"),
    [
        ("10.0.0.1:5", "10.0.0.1"),
        ("[fd00::1]:5", "fd00::/64"),
        ("[fd00::2:3]:9", "fd00::/64"),
        ("[::ffff:10.0.0.1]:9", "10.0.0.1"),
        ("this process", "this process"),
        ("", ""),
    ],
)
def test_strangers_are_counted_by_their_host_and_by_their_network(peer: str, origin: str) -> None:
    assert origin_of(peer) == origin
