"""Neighbours: which connection is kept, when to dial again, when to give up."""

import itertools

from echoic.channels import Neighbour, Session
from echoic.channels.neighbour import LOST_NS, REDIAL_NS, REFUSALS_MAX, WAIT_FOR_DIALLER_NS
from echoic.channels.search import Search

SECOND = 1_000_000_000


def a_neighbour(dialler: str = "me") -> Neighbour:
    neighbour = Neighbour("you", "you:1", "", Session(1, untold_bytes_max=10))
    neighbour.connect(dialler)
    return neighbour


def test_of_two_connections_both_sides_keep_the_one_of_the_smaller_id() -> None:
    neighbour = a_neighbour("b")
    assert neighbour.prefers("a")
    assert neighbour.prefers("b")
    assert not neighbour.prefers("c")
    neighbour.disconnect(0, "me")
    assert neighbour.prefers("c")


def test_whoever_dialled_dials_again_at_once_and_then_ever_more_slowly() -> None:
    neighbour = a_neighbour("me")
    neighbour.disconnect(0, "me")
    dials = [ns for ns in range(0, 3 * SECOND, SECOND // 100) if neighbour.dial_due(ns)]
    pauses = [later - earlier for earlier, later in itertools.pairwise(dials)]
    assert dials[0] == 0
    assert pauses[:5] == list(REDIAL_NS[1:])
    assert not neighbour.lost(LOST_NS - 1)
    assert neighbour.lost(LOST_NS)


def test_whoever_was_dialled_waits_a_while_first() -> None:
    neighbour = a_neighbour("you")
    neighbour.disconnect(0, "me")
    assert not neighbour.dial_due(WAIT_FOR_DIALLER_NS - 1)
    assert neighbour.dial_due(WAIT_FOR_DIALLER_NS)


def test_a_connection_that_is_closed_before_it_was_of_use_is_not_dialled_again_at_once() -> None:
    neighbour = a_neighbour("me")
    neighbour.disconnect(0, "me")
    assert neighbour.dial_due(0)
    neighbour.connect("me")
    neighbour.disconnect(0, "me")
    assert not neighbour.dial_due(0)
    assert neighbour.dial_due(REDIAL_NS[1])
    neighbour.connect("me")
    neighbour.settle()
    neighbour.disconnect(0, "me")
    assert neighbour.dial_due(0)


def test_a_hub_that_refuses_or_took_leave_is_given_up_at_once_but_not_while_connected() -> None:
    neighbour = a_neighbour()
    neighbour.leaving = True
    neighbour.refusals = REFUSALS_MAX
    assert not neighbour.lost(LOST_NS)
    neighbour.disconnect(0, "me")
    assert neighbour.lost(0)
    neighbour.leaving = False
    assert neighbour.lost(0)
    neighbour.connect("me")
    assert neighbour.refusals == 0


def test_it_stands_where_it_says_and_where_it_was_found_but_not_nowhere() -> None:
    neighbour = a_neighbour()
    neighbour.aliases.add("localhost:1")
    assert neighbour.stands_at("you:1")
    assert neighbour.stands_at("localhost:1")
    assert not neighbour.stands_at("me:1")
    assert not Neighbour("x", "", "", Session(1)).stands_at("")


def test_relief_is_told_once_and_only_if_somebody_found_the_link_full() -> None:
    neighbour = a_neighbour()
    neighbour.session.post(bytes(11))
    neighbour.session.told(1)
    assert not neighbour.relieve()
    neighbour.session.post(bytes(11))
    assert neighbour.full
    assert not neighbour.relieve()
    neighbour.session.told(2)
    assert neighbour.relieve()
    assert not neighbour.relieve()


def test_whoever_waits_for_a_hub_is_called_once() -> None:
    search, neighbour, told = Search(), a_neighbour(), list[tuple[Neighbour | None, str]]()
    assert search.add("you:1", lambda *found: told.append(found), 0)
    assert not search.add("you:1", lambda *found: told.append(found), 0)
    search.found("you:1", neighbour)
    search.found("you:1", neighbour)
    assert told == [(neighbour, ""), (neighbour, "")]
    assert not search.failed("you:1", "nobody waits", SECOND, refused=False)
    assert len(told) == 2
    assert not len(search)


def test_who_is_to_be_called_last_is_though_he_came_first() -> None:
    search, told = Search(), list[str]()
    for name, last in (("tune", True), ("join", False), ("steer", True), ("leave", False)):
        search.add("you:1", lambda _, __, name=name: told.append(name), 0, last=last)
    search.found("you:1", a_neighbour())
    assert told == ["join", "leave", "tune", "steer"]


def test_a_search_that_fails_quickly_is_made_once_more_unless_it_was_refused() -> None:
    search, told = Search(), list[str]()
    search.add("you:1", lambda _, reason: told.append(reason), 0)
    assert search.failed("you:1", "it hung up", 0, refused=False)
    assert not told
    assert not search.failed("you:1", "it hung up again", 0, refused=False)
    search.add("you:1", lambda _, reason: told.append(reason), 0)
    assert not search.failed("you:1", "nobody is there", 0, refused=True)
    search.add("you:1", lambda _, reason: told.append(reason), 0)
    assert not search.failed("you:1", "it took too long", 2 * SECOND, refused=False)
    assert told == ["it hung up again", "nobody is there", "it took too long"]
