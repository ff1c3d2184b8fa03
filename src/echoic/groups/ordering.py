"""The ordering core: total order, safe delivery and primary views among members that fail. Shaped after Raft.

It decides and does nothing itself. Whoever drives it feeds it what happens,

    submit(payload)   receive(sender, home, message)   tick()          each with the time

and after each turn calls `flush`, and then, in this order, or promises are broken:

    1. puts `take_writes()` on the disk and waits for it
    2. sends `take_outbox()`
    3. hands `take_events()` to the group

A message may be lost, doubled or late; an answer that never comes is asked for again. In the failure-free case the
pattern of messages is that of a fixed sequencer with acknowledgements: the leader is the sequencer. What is hard about
a sequencer, going over to the next one, is what Raft is for. The parts each have a module: `election`, `leadership`,
`following`, `submission`, `founding`; what they share is the `situation`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from echoic.errors import MalformedFrameError
from echoic.groups.election import Election
from echoic.groups.engine import Ended, EngineEvent, Restored, Suspended
from echoic.groups.following import Following
from echoic.groups.founding import Founding
from echoic.groups.messages import (
    Append,
    Appended,
    Ask,
    Bye,
    Forward,
    Install,
    Knock,
    Message,
    PreVote,
    PreVoted,
    Resign,
    Turned,
    Vote,
    Voted,
)
from echoic.groups.options import Chance, Options
from echoic.groups.situation import Role, Situation
from echoic.groups.submission import Submission
from echoic.groups.writes import Image, Write

__all__ = ["Ordering", "OrderingStatistics"]


TERMS_MAX: Final = 2**32
"""How many terms somebody may have missed."""


class OrderingStatistics(msgspec.Struct, frozen=True):
    """How things stand with a member."""

    role: str
    leader: str
    term: int
    commit: int
    last: int
    base: int
    log_bytes: int
    group: int
    roster: tuple[str, ...]
    missing: tuple[str, ...]
    """Who is needed for the first start and is not there."""


class Ordering:
    """One member of a group."""

    def __init__(  # noqa: PLR0913 - what a member is made of
        self,
        name: str,
        life: int,
        peers: Mapping[str, str],
        image: Image,
        options: Options,
        chance: Chance,
        now_ns: int,
        *,
        applied_sequence: int = 0,
        beginning: bytes = b"",
    ) -> None:
        """Go on from what was found on a disk.

        Args:
            name: Which member this is.
            life: Drawn at every start.
            peers: The members at the first start with their addresses, this one among them.
            image: What was on the disk; its `life` is this member's home. Without a disk, an empty one.
            options: Times and limits.
            chance: Where random numbers come from.
            now_ns: The time.
            applied_sequence: The last message that the application has.
            beginning: What the group object says of itself then.

        Raises:
            MalformedFrameError: What was on the disk cannot be read.
        """
        s = self._s = Situation(name, life, peers, image, options, chance)
        s.applied_sequence = applied_sequence
        self._election = Election(s, now_ns)
        self._following = Following(s, self._election)
        self._submission = Submission(s, now_ns)
        self._founding = Founding(s, self._election, beginning, now_ns)
        if image.snapshot is not None:
            snapshot = image.snapshot
            s.events.append(Restored(snapshot.index, snapshot.summary, snapshot.chunks))

    @property
    def applied_sequence(self) -> int:
        """The last message that the application has."""
        return self._s.applied_sequence

    @applied_sequence.setter
    def applied_sequence(self, sequence: int) -> None:
        self._s.applied_sequence = sequence

    @property
    def hold(self) -> bool:
        """Whether this member takes no more for the moment: its application does not keep up."""
        return self._s.hold

    @hold.setter
    def hold(self, hold: bool) -> None:
        self._s.hold = hold

    def submit(self, payload: bytes) -> int:
        """Have a pack ordered, and return its number."""
        return self._submission.submit(payload)

    def tick(self, now_ns: int) -> None:
        """Let time pass."""
        s = self._s
        if s.leadership is not None:
            if not s.leadership.tick(now_ns):
                s.follow(s.term, None)
                self._election.wait(now_ns)
                s.suspend("no majority of the members answers")
        else:
            self._founding.tick(now_ns)
            self._election.tick(now_ns)

    def receive(self, sender: str, home: int, message: Message, now_ns: int) -> None:
        """Take a message of another member.

        Raises:
            MalformedFrameError: It contradicts what is known.
        """
        s = self._s
        match message:
            case Append() | Install():
                if s.is_foreign(message.group) or (message.term == s.term and s.role is Role.LEADER):
                    return
                self._heed(message.term)
                follow = self._following
                if isinstance(message, Append):
                    follow.append(sender, message, now_ns)
                else:
                    follow.install(sender, message, now_ns)
            case Appended():
                if not s.roster.holds(sender, home):
                    return
                self._heed(message.term)
                if s.leadership is not None and message.term == s.term:
                    s.leadership.appended(sender, home, message, now_ns)
            case PreVote() | PreVoted() | Vote() | Voted() | Resign():
                self._elect(sender, home, message, now_ns)
            case Turned():
                self._turned(sender, home, message)
            case Forward() | Knock() | Ask() | Bye():
                self._serve(sender, home, message, now_ns)

    def flush(self, now_ns: int) -> None:
        """Do what follows from all that came in this turn."""
        if self._s.leadership is not None:
            self._s.leadership.flush()
        self._following.flush()
        self._submission.tick(now_ns)

    def take_writes(self) -> list[Write]:
        """Return what must be on the disk before anything is sent or handed over."""
        taken, self._s.log.writes = self._s.log.writes, []
        return taken

    def take_outbox(self) -> list[tuple[tuple[str, ...], Message]]:
        """Return what must be sent, to whom."""
        taken, self._s.outbox = self._s.outbox, []
        return taken

    def take_events(self) -> list[EngineEvent]:
        """Return what the group must learn."""
        taken, self._s.events = self._s.events, []
        return taken

    def wake_ns(self) -> int:
        """Return when `tick` is due."""
        s = self._s
        if s.leadership is not None:
            return s.leadership.wake_ns
        due = self._election.deadline_ns
        if s.outside:
            due = min(due, self._founding.due_ns)
        return min(due, self._submission.check_ns) if self._submission.waiting and s.leader else due

    def give_state(self, ticket: int, position: int, summary: bytes, chunks: Iterable[bytes], now_ns: int) -> None:
        """Send what stands for everything up to a position to the member that needs it."""
        if self._s.leadership is not None:
            self._s.leadership.give_state(ticket, position, summary, chunks, now_ns)

    def compact(self, position: int, summary: bytes, chunks: Sequence[bytes]) -> None:
        """Forget the entries up to a position that was delivered, unless one of them is needed."""
        s = self._s
        limit = s.leadership.compact_limit(position) if s.leadership is not None else position
        if s.log.base_index < limit == position <= s.commit:
            s.compact(position, summary, chunks)

    def change(self, name: str, address: str, *, admit: bool, now_ns: int) -> None:
        """Have a name given a seat or taken one away; it may have to be asked for again."""
        s = self._s
        if s.leadership is not None:
            s.leadership.ask(name, address, admit=admit, now_ns=now_ns)
        elif s.leader is not None:
            s.send(s.leader, Ask(s.group, name, address, admit))

    def leave(self, now_ns: int) -> None:
        """Take leave: the others need not find out."""
        s = self._s
        if s.leadership is not None:
            s.leadership.resign(now_ns)
        elif s.leader is not None:
            s.send(s.leader, Bye(s.group))

    def addresses_of(self, name: str) -> tuple[str, ...]:
        """Return where a member may be reached, the best guess first."""
        return self._s.addresses_of(name)

    def learn_address(self, name: str, home: int, address: str) -> None:
        """Learn from a member where it is reached: it may have moved. It counts if it has a seat, or nobody has."""
        s = self._s
        if address and name != s.name and (s.roster.holds(name, home) or (not s.group and name in s.peers)):
            s.learned[name] = (home, address)

    def names(self) -> tuple[str, ...]:
        """Return the names of all other members, of the roster and of the first start."""
        s = self._s
        seated = {seat.name for seat in s.roster.seats}
        return tuple(sorted((seated or set(s.peers)) - {s.name}))

    def has_seat(self, name: str) -> bool:
        """Whether a name has a seat."""
        return self._s.roster.find(name) is not None

    @property
    def term(self) -> int:
        """The term this member is in."""
        return self._s.term

    @property
    def leads(self) -> bool:
        """Whether this member leads in it."""
        return self._s.leadership is not None

    @property
    def tempted(self) -> bool:
        """Whether a majority holds more than is safe, but nothing of the leader's own term: where leaders go wrong."""
        s = self._s
        held = s.leadership.held if s.leadership is not None else 0
        return held > s.commit and s.log.term_at(held) < s.term

    def knows(self, name: str, home: int) -> bool:
        """Whether a member has a seat with this home."""
        return self._s.roster.holds(name, home)

    @property
    def settled(self) -> bool:
        """Whether the roster is safe, and all of it may vote."""
        s = self._s
        return 0 < s.roster_index <= s.commit and all(seat.voting for seat in s.roster.seats)

    def statistics(self) -> OrderingStatistics:
        """Return how things stand."""
        s = self._s
        return OrderingStatistics(
            s.role.value,
            s.leader or "",
            s.term,
            s.commit,
            s.log.last,
            s.log.base_index,
            s.log.entry_bytes,
            s.group,
            tuple(seat.name + ("" if seat.voting else "?") for seat in s.roster.seats),
            () if s.group else self._founding.missing,
        )

    def _elect(self, sender: str, home: int, message: PreVote | PreVoted | Vote | Voted | Resign, now_ns: int) -> None:
        """Take part in an election."""
        s, election = self._s, self._election
        if not isinstance(message, PreVoted | Voted) and s.is_foreign(message.group):
            return
        if isinstance(message, Voted | Resign) and not s.roster.holds(sender, home):
            return  # who answers, or resigns, is known
        if not isinstance(message, PreVote | PreVoted):
            self._heed(message.term)
        match message:
            case PreVote():
                self._turn_away(sender, home)
                election.pre_vote(sender, message, now_ns)
            case PreVoted():
                election.pre_voted(sender, home, message, now_ns)
            case Vote():
                election.vote(sender, home, message, now_ns)
            case Voted():
                election.voted(sender, home, message, now_ns)
            case Resign():
                election.resign(sender, message, now_ns)

    def _serve(self, sender: str, home: int, message: Forward | Knock | Ask | Bye, now_ns: int) -> None:
        """Do what a member asks of the leader."""
        s = self._s
        lead = s.leadership
        if isinstance(message, Knock):
            s.meet_stranger(message.name, message.home, message.address)
            if lead is not None:
                lead.knock(message, now_ns)
            else:
                self._founding.knock(sender, message, now_ns)
        elif lead is not None and not s.is_foreign(message.group) and s.roster.holds(sender, home):
            match message:
                case Forward():
                    lead.forwarded(sender, message)
                case Ask():
                    lead.ask(message.name, message.address, admit=message.admit, now_ns=now_ns)
                case Bye():
                    lead.left(sender)

    def _heed(self, term: int) -> None:
        """Be in a later term that a message is of.

        Raises:
            MalformedFrameError: No group comes to so many terms.
        """
        s = self._s
        if term > s.term + TERMS_MAX:
            raise MalformedFrameError(f"a message is of term {term}, this member is in term {s.term}")
        if term > s.term:
            if s.role is Role.LEADER:
                s.suspend("another leader is being elected")
            s.follow(term, None)

    def _turn_away(self, sender: str, home: int) -> None:
        """Tell a member whose seat was taken away, or given to another home, that it is not one any more."""
        s = self._s
        if s.leadership is not None and s.group and s.roster_index <= s.commit and not s.roster.holds(sender, home):
            s.send(sender, Turned(f"`{sender}` has no seat in this group any more", True, home, s.term))

    def _turned(self, sender: str, home: int, message: Turned) -> None:
        """Learn why this member is not let in, or that it is not a member any more, from one that is."""
        s = self._s
        if message.home != s.home or message.term < s.term:
            return  # it is meant for another under this name, or comes from a leader that is none any more
        if message.final and s.roster.holds(sender, home):
            s.events.append(Ended(message.reason))
        elif s.outside:
            s.events.append(Suspended(message.reason))
