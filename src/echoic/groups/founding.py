"""Founding: how members that are all new become a group, and how a single new one finds it.

A member without a seat knocks at all the others. Where a group is, its leader gives the knocking member its seat
(`leadership`). Where none is, one of the new ones waits until *all* members of the first start are there and new, makes
the roster of them, and stands for election: the one whose application has most, which is how a group goes on whose
members kept nothing but what is in their databases; else the first by name. All must be there, because a member that is
missing might belong to a group of the same name already, whose messages the others have forgotten.
"""

from echoic.groups.election import Election
from echoic.groups.engine import Restored
from echoic.groups.messages import Knock
from echoic.groups.roster import Roster, Seat, encode_roster
from echoic.groups.situation import Situation
from echoic.groups.standing import ROSTER
from echoic.groups.writes import Entry

__all__ = ["Founding"]


class Founding:
    """This member while it has no seat."""

    def __init__(self, situation: Situation, election: Election, beginning: bytes, now_ns: int) -> None:
        """Begin to knock.

        Args:
            situation: What the member knows.
            election: Its part in elections.
            beginning: What the group object says of itself at the start, if its application has something already.
            now_ns: The time.
        """
        self._s = situation
        self._election = election
        self._beginning = beginning
        self._new: dict[str, tuple[Knock, int]] = {}
        self.due_ns = now_ns

    @property
    def missing(self) -> tuple[str, ...]:
        """Who has not knocked lately, of those that a first start needs."""
        return tuple(sorted(name for name in self._s.peers if name != self._s.name and name not in self._new))

    def tick(self, now_ns: int) -> None:
        """Knock while this member has no seat, and found the group if all are there."""
        s = self._s
        if not s.outside or now_ns < self.due_ns:
            return
        self.due_ns = now_ns + s.options.heartbeat_ns
        fresh_ns = now_ns - 5 * s.options.heartbeat_ns
        self._new = {name: (knock, at) for name, (knock, at) in self._new.items() if at >= fresh_ns}
        others = {*s.peers, *(seat.name for seat in s.roster.seats)} - {s.name}
        if not s.group and not self.missing and self._is_founder():
            self._found(now_ns)
        elif others:
            s.outbox.append((tuple(sorted(others)), self._knock()))

    def knock(self, sender: str, message: Knock, now_ns: int) -> None:
        """Hear of another member that has no group; whoever has one passes it on to the leader."""
        s = self._s
        if not s.group and sender == message.name and sender in s.peers:
            self._new[sender] = (message, now_ns)
        elif s.group and sender == message.name and s.leader is not None:
            s.send(s.leader, message)

    def _knock(self) -> Knock:
        s = self._s
        return Knock(s.group, s.name, s.home, s.peers.get(s.name, ""), s.applied_sequence, tuple(sorted(s.peers)))

    def _is_founder(self) -> bool:
        s = self._s
        if any(set(knock.peers) != set(s.peers) for knock, _ in self._new.values()):
            return False
        others = [(-knock.after, name) for name, (knock, _) in self._new.items()]
        return all((-s.applied_sequence, s.name) < other for other in others)

    def _found(self, now_ns: int) -> None:
        s = self._s
        homes = {s.name: s.home} | {name: knock.home for name, (knock, _) in self._new.items()}
        addresses = s.peers | {name: knock.address for name, (knock, _) in self._new.items() if knock.address}
        seats = tuple(Seat(name, homes[name], addresses[name], True) for name in sorted(s.peers))
        s.append(1, (Entry(0, ROSTER, "", 0, 0, encode_roster(Roster(seats))),))
        if s.applied_sequence:  # then the others must be given what they lack: the log begins behind its first entry
            s.deliver(1)
            s.compact(1, self._beginning, ())
            s.events.append(Restored(1, self._beginning, ()))
        self._election.stand(now_ns)
