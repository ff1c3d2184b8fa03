"""What a member knows, shared by the parts that decide: its log, its term, its role, what it has delivered.

The parts (`election`, `following`, `leadership`, `submission`, `founding`) each decide one matter, and write what they
want done here: messages into `outbox`, what the group must learn into `events`, what must be on the disk into the log's
`writes`. Whoever drives them puts the writes on the disk first, then sends, then hands over (`ordering`).
"""

import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from echoic.groups.engine import Delivered, EngineEvent, Suspended, View, Viewed
from echoic.groups.log import Log
from echoic.groups.messages import Message
from echoic.groups.options import Chance, Options
from echoic.groups.roster import Roster, Seat, decode_roster, group_of
from echoic.groups.standing import DATA, ROSTER, VIEW, Standing
from echoic.groups.writes import Entry, Image, Snapshot

if TYPE_CHECKING:
    from echoic.groups.leadership import Leadership

__all__ = ["Role", "Situation"]

STRANGERS_MAX: Final = 64


class Role(enum.Enum):
    """What a member does at the moment."""

    FOLLOWER = "follower"
    ASKING = "asking"
    """whether it would be elected"""
    CANDIDATE = "candidate"
    LEADER = "leader"


class Situation:
    """Everything that the parts of the ordering core share."""

    def __init__(
        self, name: str, life: int, peers: Mapping[str, str], image: Image, options: Options, chance: Chance
    ) -> None:
        """Go on from what was found on a disk.

        Args:
            name: Which member this is.
            life: Drawn at every start, so that this member's packs are told from those of its former lives.
            peers: The members at the first start with their addresses, this one among them.
            image: What was on the disk; its `life` is this member's home.
            options: Times and limits.
            chance: Where random numbers come from.

        Raises:
            MalformedFrameError: The snapshot cannot be read.
        """
        self.name, self.life, self.home = name, life, image.life
        self.peers = dict(peers)
        self.learned: dict[str, tuple[int, str]] = {}
        """What members have said of their homes and addresses."""
        self.options, self.chance = options, chance
        self.log = Log(image)
        self.term, self.vote = image.ballot.term, image.ballot.vote
        self.role = Role.FOLLOWER
        self.leader: str | None = None
        self.leadership: Leadership | None = None
        self.delivered: Standing = self.log.base.copy()
        self.commit = self.log.base_index
        self.primary = False
        self.applied_sequence = 0
        self.hold = False
        """Whether this member takes no more entries for the moment: its application does not keep up."""
        self.tickets = 0
        """How often a state was wanted."""
        self.confirmed = 0
        """The number of this member's last pack that was delivered here."""
        self.outbox: list[tuple[tuple[str, ...], Message]] = []
        self.events: list[EngineEvent] = []
        self.group = self.log.base.group
        self._rosters: list[tuple[int, Roster]] = [(self.log.base_index, self.log.base.roster)]
        self._adopt(self.log.base_index + 1, image.entries)

    @property
    def roster(self) -> Roster:
        """The latest roster in the log, which counts from the moment it is there."""
        return self._rosters[-1][1]

    @property
    def roster_index(self) -> int:
        """The index of the entry that has it."""
        return self._rosters[-1][0]

    @property
    def seat(self) -> Seat | None:
        """This member's seat, if it has one."""
        seat = self._rosters[-1][1].find(self.name)
        return seat if seat is not None and seat.home == self.home else None

    @property
    def electable(self) -> bool:
        """Whether this member may be voted for."""
        seat = self.seat
        return seat is not None and seat.voting

    @property
    def outside(self) -> bool:
        """Whether this member must knock: it has no seat, or may only think that it has one.

        A learner may: its seat may stand in entries that are not safe, and be lost with them, while a leader that never
        had them goes on speaking to its name.
        """
        seat = self.seat
        return seat is None or (not seat.voting and (self.leader is None or self.roster_index > self.commit))

    def addresses_of(self, name: str) -> tuple[str, ...]:
        """Return where a member may be reached: as it says itself, as the program was told, as the roster has it."""
        seat = self.roster.find(name)
        home, address = self.learned.get(name, (0, ""))
        learned = address if seat is None or seat.home == home else ""
        found = (learned, self.peers.get(name, ""), seat.address if seat is not None else "")
        return tuple(dict.fromkeys(each for each in found if each))

    def meet_stranger(self, name: str, home: int, address: str) -> None:
        """Learn where somebody is reached that has no seat, so that it can be told so."""
        if self.roster.find(name) is None and address and len(self.learned) < STRANGERS_MAX:
            self.learned[name] = (home, address)

    def is_foreign(self, group: int) -> bool:
        """Whether a message is of another group than this member's."""
        return self.group not in (0, group)

    def is_voter(self, name: str, home: int) -> bool:
        """Whether somebody's word counts."""
        seat = self.roster.find(name)
        return seat is not None and seat.home == home and seat.voting

    def is_majority(self, names: set[str]) -> bool:
        """Whether these are more than half of the voters."""
        voters = self.roster.voters
        return 2 * sum(name in names for name in voters) > len(voters)

    def is_current(self, last_term: int, last: int) -> bool:
        """Whether a log that ends so has all that this one has."""
        return (last_term, last) >= (self.log.last_term, self.log.last)

    def send(self, to: str, message: Message) -> None:
        """Have a message sent."""
        self.outbox.append(((to,), message))

    def send_voters(self, message: Message) -> None:
        """Have a message sent to all others whose word counts."""
        others = tuple(name for name in self.roster.voters if name != self.name)
        if others:
            self.outbox.append((others, message))

    def cast(self, term: int, vote: str) -> None:
        """Be in a term, with a vote in it."""
        self.term, self.vote = term, vote
        self.log.vote(term, vote)

    def follow(self, term: int, leader: str | None) -> None:
        """Be a follower in a term, of a leader if there is one."""
        if term > self.term:
            self.cast(term, "")
        self.role, self.leader, self.leadership = Role.FOLLOWER, leader, None

    def suspend(self, reason: str) -> None:
        """Tell the group that this member is not in the primary partition."""
        if self.primary:
            self.primary = False
            self.events.append(Suspended(reason))

    def resume(self) -> None:
        """Tell the group that this member is in the primary partition again, if it is in the view."""
        if not self.primary and self.name in self.delivered.view:
            self.tell_view()

    def append(self, first: int, entries: Sequence[Entry]) -> None:
        """Put entries into the log."""
        self.log.append(first, entries)
        if self._rosters[-1][0] >= first or entries[-1].kind != DATA or len(entries) > 1:
            self._adopt(first, entries)

    def deliver(self, commit: int) -> None:
        """Hand over everything up to an index."""
        standing, events = self.delivered, self.events
        self.commit = commit
        for entry in self.log.between(standing.index + 1, commit + 1):
            standing.advance(entry)
            if entry.kind == DATA:
                if entry.life == self.life and entry.sender == self.name:
                    self.confirmed = entry.number
                events.append(Delivered(standing.index, entry.sender, entry.life, entry.number, entry.payload))
            elif entry.kind == VIEW:
                self.tell_view()

    def install(self, snapshot: Snapshot) -> None:
        """Go on behind another member's snapshot.

        Raises:
            MalformedFrameError: It cannot be read.
        """
        self.log.install(snapshot)
        self.delivered = self.log.base.copy()
        self.commit = snapshot.index
        self.confirmed = self.delivered.last(self.name, self.life)
        self._restart_rosters()

    def compact(self, index: int, summary: bytes, chunks: Sequence[bytes]) -> None:
        """Forget the entries up to an index, which was delivered."""
        self.log.compact(index, summary, chunks)
        self._restart_rosters()

    def _restart_rosters(self) -> None:
        base = self.log.base
        self.group = base.group
        self._rosters = [(base.index, base.roster)]
        self._adopt(base.index + 1, self.log.between(base.index + 1, self.log.last + 1))

    def _adopt(self, first: int, entries: Sequence[Entry]) -> None:
        """Let the rosters of entries count, and those that they have replaced no more."""
        while len(self._rosters) > 1 and self._rosters[-1][0] >= first:
            self._rosters.pop()
        for index, entry in enumerate(entries, first):
            if entry.kind == ROSTER:
                self._rosters.append((index, decode_roster(entry.payload)))
                self.group = self.group or group_of(entry.payload)

    def tell_view(self) -> None:
        """Tell the group of the view that was delivered last."""
        members = self.delivered.view
        self.primary = self.name in members
        self.events.append(Viewed(View(self.delivered.view_index, members, self.primary)))
