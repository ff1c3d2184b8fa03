"""Mistakes that are known to be made in protocols like this one, to be planted and found: a test of the tests.

Each is one method that is wrong, or a driver that does things in the wrong order. A simulation that does not find one
of them in a few hundred worlds is not worth much, and that happened: counting entries of former terms as safe (figure 8
of the Raft paper) was found in one of 154 worlds, until a nemesis lay in ambush for leaders who are about to do it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from echoic.groups.election import Election
from echoic.groups.following import Following
from echoic.groups.leadership import Leadership
from echoic.groups.log import Log
from echoic.groups.roster import Roster, Seat
from echoic.groups.situation import Role, Situation
from echoic.groups.standing import Standing
from echoic.testing.simulated_group import SimulatedGroup

__all__ = ["BUGS", "planted"]


def _agrees_by_place(self: Following, previous: int, previous_term: int) -> bool:  # noqa: ARG001 - that is the bug
    return previous <= self._s.log.last


def _next_is_anything(self: Leadership, sender: str, life: int, number: int) -> bool:  # noqa: ARG001
    return True


def _votes_again(self: Election, candidate: str, home: int) -> bool:  # noqa: ARG001
    return self._s.role is Role.FOLLOWER


def _takes_any_log_for_current(self: Situation, last_term: int, last: int) -> bool:  # noqa: ARG001
    return True


def _counts_former_terms(self: Leadership, index: int) -> bool:  # noqa: ARG001
    return True


def _forgets_senders(self: Log, index: int) -> Standing:
    standing = _standing_at(self, index)
    standing.senders = {}
    return standing


def _seats_with_a_vote(self: Roster, seat: Seat) -> Roster:
    return _placing(self, Seat(seat.name, seat.home, seat.address, True))


def _replaces_safe_entries(self: Following, previous: int, entries: list[object]) -> None:
    if entries:  # whatever is there, also what was delivered
        self._s.append(previous + 1, entries)  # type: ignore[arg-type]


_standing_at: Final = Log.standing_at
_placing: Final = Roster.placing


def _send_before_sync(world: SimulatedGroup) -> None:
    world.late = True


def _forget(world: SimulatedGroup) -> None:
    world.forgetful = True


def _nothing(world: SimulatedGroup) -> None:
    del world


BUGS: Final[dict[str, tuple[type | None, str, Callable[..., object], Callable[[SimulatedGroup], None]]]] = {
    "ignore-previous-term": (Following, "_agrees", _agrees_by_place, _nothing),
    "keep-duplicates": (Leadership, "_is_next", _next_is_anything, _nothing),
    "amnesia": (None, "", _nothing, _forget),
    "send-before-sync": (None, "", _nothing, _send_before_sync),
    "vote-twice": (Election, "_may_vote", _votes_again, _nothing),
    "vote-for-outdated-log": (Situation, "is_current", _takes_any_log_for_current, _nothing),
    "count-former-terms": (Leadership, "_is_own", _counts_former_terms, _nothing),
    "snapshot-without-senders": (Log, "standing_at", _forgets_senders, _nothing),
    "seat-with-vote-at-once": (Roster, "placing", _seats_with_a_vote, _nothing),
    "cut-what-is-there": (Following, "_take", _replaces_safe_entries, _nothing),
}
"""By name: the class, its method, what is put in its place, and what is done to the world."""


@contextmanager
def planted(name: str) -> Iterator[Callable[[SimulatedGroup], None]]:
    """Plant a mistake as long as the context lasts; gives what must be done to each world."""
    cls, method, wrong, prepare = BUGS[name]
    if cls is None:
        yield prepare
        return
    right = getattr(cls, method)
    setattr(cls, method, wrong)
    try:
        yield prepare
    finally:
        setattr(cls, method, right)
