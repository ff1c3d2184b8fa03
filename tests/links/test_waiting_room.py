"""Strangers who wait: so many in all and from each address, and a flood pushes out its own."""

from dataclasses import dataclass

from echoic.links import WaitingRoom


@dataclass(eq=False)
class Stranger:
    """All that the room looks at."""

    peer: str


def test_who_came_first_leaves_when_there_are_too_many() -> None:
    room = WaitingRoom(3, 16)
    strangers = [Stranger(f"127.0.0.1:{port}") for port in range(1, 6)]
    assert [room.enter(each) for each in strangers] == [[], [], [], [strangers[0]], [strangers[1]]]
    assert len(room) == 3


def test_a_flood_from_one_address_pushes_out_its_own() -> None:
    room = WaitingRoom(8, 16)
    honest = Stranger("192.0.2.1:5")
    assert room.enter(honest) == []
    flood = [Stranger(f"192.0.2.66:{port}") for port in range(1, 50)]
    left = [leaving for each in flood for leaving in room.enter(each)]
    assert left == flood[: len(left)]
    assert len(room) == 8


def test_one_address_of_another_machine_has_only_so_many_though_there_is_room() -> None:
    room = WaitingRoom(64, 2)
    first, second, third = (Stranger(f"[2001:db8::1]:{port}") for port in (1, 2, 3))
    assert [room.enter(each) for each in (first, second, third)] == [[], [], [first]]
    many = [Stranger("127.0.0.1:1") for _ in range(20)]
    assert not any(room.enter(each) for each in many)


def test_who_is_no_stranger_any_more_makes_room() -> None:
    room = WaitingRoom(1, 1)
    first, second = Stranger("a Unix socket"), Stranger("127.0.0.1:2")
    room.enter(first)
    room.leave(first)
    room.leave(first)
    assert room.enter(second) == []
    assert room.empty() == [second]
    assert len(room) == 0
