"""Leading: one member decides the order, the others follow it. There is one of these while this member is the leader.

    pack -> entry -> Append to all others ... Appended by a majority, or by all of the view -> safe -> delivered

*One pack is one entry is one Append*, the same bytes for all members that follow closely: packs are made above, so
nothing is gathered here. Members that are behind get many entries at once, those that are far behind a snapshot.

*Views are entries.* The leader appends one when it is elected, when a member falls silent, and when one has caught up:
so everybody sees the same views between the same packs.

*Safe* is what a majority holds, if it was appended in the leader's own term or lies before such an entry (section 5.4.2
of Raft's paper); with stability `all` every member of the view must hold it too, as with Spread's safe messages.

*Founding.* The first view waits until every member of the first roster holds the log. So none of them can take part in
founding another group under the same name, and before the first view nothing is delivered and nobody is seated anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import msgpack

from echoic.errors import MalformedFrameError
from echoic.groups.engine import Ended, StateWanted
from echoic.groups.log import ENTRY_BYTES
from echoic.groups.messages import Append, Appended, Forward, Install, Knock, Message, Resign, Turned
from echoic.groups.progress import Progress, Transfer
from echoic.groups.roster import SEATS_MAX, Roster, Seat, encode_roster
from echoic.groups.situation import Situation
from echoic.groups.standing import DATA, ROSTER, VIEW
from echoic.groups.writes import Entry

__all__ = ["Leadership"]

TRANSFER_PIECES: Final = 4
"""How many pieces of a snapshot are under way at once."""
TRANSFER_HEARTBEATS: Final = 20
"""After how many heartbeats without an answer a snapshot is sent anew."""
NEVER: Final = -(10**18)


class Leadership:
    """This member as the leader of a term."""

    def __init__(self, situation: Situation, votes: set[str], now_ns: int) -> None:
        s = self._s = situation
        self.latest = s.delivered.copy().advance_all(s.log.between(s.delivered.index + 1, s.log.last + 1))
        """How things stand at the end of the log."""
        self._view_index = 0
        """Of the view that this leader appended last; 0 while the group is being founded."""
        self._others: dict[str, Progress] = {}
        self._heartbeat_ns = now_ns
        self._stirred = True
        self._commit_before = s.commit
        """What was safe at the heartbeat before the last: who has that has caught up."""
        self._resigned_until_ns = NEVER
        self._expelled = False
        self._seat_others(dict.fromkeys(votes, now_ns))
        if self.latest.view_index:
            self._append_view(tuple(sorted(votes)))

    @property
    def opened(self) -> bool:
        """Whether packs are taken: the group is founded."""
        return self._view_index > 0

    @property
    def wake_ns(self) -> int:
        """When the next heartbeat is due."""
        return self._heartbeat_ns

    @property
    def view(self) -> tuple[str, ...]:
        """The last view, delivered or not."""
        return self.latest.view

    def order(self, sender: str, life: int, first: int, payloads: Sequence[bytes]) -> None:
        """Append packs of a member, those that are its next ones."""
        if not self.opened or self._resigned_until_ns > 0 or self._s.roster.find(sender) is None:
            return
        for number, payload in enumerate(payloads, first):
            if self._is_congested():
                return
            if self._is_next(sender, life, number):
                self._append(DATA, sender, life, number, payload)

    def forwarded(self, sender: str, message: Forward) -> None:
        """Take packs of another member, unless the application here does not keep up."""
        if not self._s.hold:
            self.order(sender, message.life, message.first, message.payloads)

    def appended(self, sender: str, home: int, message: Appended, now_ns: int) -> None:
        """Take a member's answer.

        Raises:
            MalformedFrameError: It agrees to what was never said.
        """
        other = self._others.get(sender)
        if other is None or not self._s.roster.holds(sender, home):
            return
        if message.index > self._s.log.last:
            raise MalformedFrameError(f"{sender} agrees up to {message.index}, the log ends at {self._s.log.last}")
        other.seen_ns = now_ns
        news = other.answered(message)
        if other.transfer is not None and message.agreed:
            self._continue_transfer(other, other.transfer, message, now_ns)
        elif news:
            self._stirred = True
            self._send_next(other)

    def tick(self, now_ns: int) -> bool:
        """Let time pass; tell whether this member can still lead: it hears a majority."""
        s = self._s
        if now_ns < self._heartbeat_ns:
            return True
        self._heartbeat_ns = now_ns + s.options.heartbeat_ns
        if self._resigned_until_ns < now_ns:
            self._resigned_until_ns = NEVER
        heard = {name for name, other in self._others.items() if now_ns - other.seen_ns < s.options.silence_ns}
        if not s.is_majority(heard | {s.name}):
            return False
        self._found()
        self._review(heard)
        self._promote(heard)
        self._commit_before = s.commit
        for other in self._others.values():
            other.asked = False
            self._beat(other, now_ns)
        return True

    def flush(self) -> None:
        """Do what follows from all that came in this turn: find out what is safe, and tell the others."""
        if self._stirred:
            self._stirred = False
            self._found()
            self._advance()
        commit, base = self._s.commit, self._s.log.base_index
        for other in self._others.values():
            follows = not other.probing and other.transfer is None and other.next > base
            if follows and other.told_commit < commit:
                self._send(other, [])
        if self._expelled:
            self._expelled = False
            self._s.events.append(Ended(f"`{self._s.name}` was expelled from the group"))

    def knock(self, message: Knock, now_ns: int) -> None:
        """Give a member that comes back with another home its seat, as a learner.

        Raises:
            MalformedFrameError: It has no home.
        """
        s, name = self._s, message.name
        seat, other = s.roster.find(name), self._others.get(name)
        if not message.home:
            raise MalformedFrameError(f"`{name}` knocks without a home")
        if seat is None and message.group == s.group:
            s.send(
                name, Turned(f"`{name}` was expelled from this group", s.roster_index <= s.commit, message.home, s.term)
            )
        elif seat is None:
            s.send(
                name, Turned(f"`{name}` has no seat in this group; a member must admit it", False, message.home, s.term)
            )
        elif seat.home == message.home:
            if other is not None:
                other.after = message.after
        elif name == s.name or (other is not None and now_ns - other.seen_ns < s.options.silence_ns):
            s.send(name, Turned(f"`{name}` is a live member of this group already", False, message.home, s.term))
        elif not self.opened:
            reason = (
                f"`{name}` ended while the group was being founded; all members must be started anew, with nothing kept"
            )
            s.send(name, Turned(reason, False, message.home, s.term))
        elif self._may_change():
            self.change(s.roster.placing(Seat(name, message.home, message.address, False)), now_ns)
            self._others[name].after = message.after

    def change(self, roster: Roster, now_ns: int) -> None:
        """Let another roster count, which differs by one voter at most."""
        self._append(ROSTER, "", 0, 0, encode_roster(roster))
        self._seat_others({seat.name: now_ns for seat in roster.seats})

    def ask(self, name: str, address: str, *, admit: bool, now_ns: int) -> None:
        """Give a name a seat, or take it away, if that can be done at the moment."""
        s = self._s
        seat = s.roster.find(name)
        if not self._may_change() or (admit and seat is not None) or (not admit and seat is None):
            return
        if admit and len(s.roster.seats) >= SEATS_MAX:
            return
        if admit:
            self.change(s.roster.placing(Seat(name, 0, address, False)), now_ns)
        elif len(s.roster.without(name).voters) >= 1:
            self.change(s.roster.without(name), now_ns)

    def left(self, sender: str) -> None:
        """Do not wait for a member that has taken leave."""
        if sender in self._others:
            self._others[sender].seen_ns = NEVER
            self._heartbeat_ns = 0

    def resign(self, now_ns: int) -> None:
        """Order no more packs for a moment, and have the member that is closest behind begin a term."""
        s = self._s
        followers = [other for other in self._others.values() if other.name in self.view]
        if followers:
            best = max(followers, key=lambda other: other.agreed)
            self._resigned_until_ns = now_ns + s.options.election_ns
            s.send(best.name, Resign(s.group, s.term))

    def give_state(self, ticket: int, position: int, summary: bytes, chunks: Iterable[bytes], now_ns: int) -> None:
        """Send a snapshot to the member that needs it."""
        s = self._s
        for other in self._others.values():
            transfer = other.transfer
            if transfer is None or transfer.ticket != ticket:
                continue
            if position < s.log.base_index:
                other.transfer = None  # more was forgotten meanwhile: it is asked for again
                return
            transfer.index, transfer.index_term = position, s.log.term_at(position)
            transfer.chunks, transfer.since_ns, transfer.number = iter(chunks), now_ns, 1
            body = s.log.standing_at(position).encode()
            s.send(other.name, self._piece(transfer, 0, body=body, summary=summary))
            for _ in range(TRANSFER_PIECES):
                self._send_piece(other, transfer)

    def compact_limit(self, position: int) -> int:
        """Return up to where entries may be forgotten: not what a member of the view will need."""
        others = self._others.values()
        under_way = [other.transfer.index for other in others if other.transfer and other.transfer.index]
        behind = [other.agreed for other in others if other.name in self.view]
        return min([position, *under_way, *behind])

    def _is_congested(self) -> bool:
        """Whether a member of the view is too far behind for more to be ordered."""
        log, lag_bytes_max, view = self._s.log, self._s.options.lag_bytes_max, self.latest.view
        if log.entry_bytes <= lag_bytes_max:
            return False
        return any(
            log.bytes_after(other.agreed) > lag_bytes_max for other in self._others.values() if other.name in view
        )

    def _is_next(self, sender: str, life: int, number: int) -> bool:
        return number == self.latest.last(sender, life) + 1

    def _append(self, kind: int, sender: str, life: int, number: int, payload: bytes) -> None:
        s = self._s
        index = s.log.last + 1
        entry = Entry(s.term, kind, sender, life, number, payload)
        previous_term = s.log.last_term
        s.append(index, (entry,))
        self.latest.advance(entry)
        self._stirred = True
        size = len(payload) + ENTRY_BYTES
        close = [other for other in self._others.values() if other.next == index and self._has_room(other)]
        if close:
            for other in close:
                other.sent(index + 1, size)
                other.told_commit = s.commit
            message = Append(s.group, s.term, index - 1, previous_term, [entry], s.commit)
            s.outbox.append((tuple(other.name for other in close), message))

    def _append_view(self, members: tuple[str, ...]) -> None:
        self._view_index = self._s.log.last + 1
        self._append(VIEW, "", 0, 0, msgpack.encode(members))

    def _has_room(self, other: Progress) -> bool:
        options = self._s.options
        if other.probing:
            return not other.asked and not other.paused and other.transfer is None
        return (
            other.transfer is None
            and not other.paused
            and other.flights < options.flights_max
            and (other.flight_bytes < options.flight_bytes_max or not other.flights)
        )

    def _send_next(self, other: Progress) -> None:
        """Send a member the next entries, as long as there is room on the way."""
        s = self._s
        while other.next <= s.log.last and self._has_room(other):
            if other.next <= s.log.base_index:
                self._want_state(other)
                return
            self._send(other, s.log.portion(other.next, s.options.append_bytes_max))

    def _beat(self, other: Progress, now_ns: int) -> None:
        """Let a member hear of the leader, with entries if it can take some."""
        transfer = other.transfer
        if transfer is not None:
            self._beat_transfer(other, transfer, now_ns)
        elif other.next <= self._s.log.base_index:
            if now_ns - other.seen_ns < self._s.options.silence_ns:
                self._want_state(other)
            self._tell_end(other)
        elif other.next <= self._s.log.last and self._has_room(other):
            self._send_next(other)
        else:
            self._send(other, [])

    def _send(self, other: Progress, entries: list[Entry]) -> None:
        s = self._s
        previous = other.next - 1
        s.send(other.name, Append(s.group, s.term, previous, s.log.term_at(previous), entries, s.commit))
        other.told_commit = s.commit
        if entries:
            other.sent(other.next + len(entries), sum(len(entry.payload) + ENTRY_BYTES for entry in entries))

    @property
    def held(self) -> int:
        """Up to where a majority holds the log."""
        reached = sorted(self._reached(name) for name in self._s.roster.voters)
        return reached[(len(reached) - 1) // 2]

    def _advance(self) -> None:
        """Find out up to where the log is safe, and hand that over."""
        s = self._s
        if not self.opened:
            return
        safe = self.held
        if s.options.stability == "all":
            safe = min([safe, *(self._reached(name) for name in self.view)])
        if safe > s.commit and self._is_own(safe):
            s.deliver(safe)
            self._expelled = s.roster_index <= s.commit and s.roster.find(s.name) is None

    def _reached(self, name: str) -> int:
        if name == self._s.name:
            return self._s.log.last
        other = self._others.get(name)
        return other.agreed if other is not None else 0

    def _is_own(self, index: int) -> bool:
        return self._s.log.term_at(index) == self._s.term

    def _found(self) -> None:
        """Append the first view of the group, once every member of the first roster holds the log."""
        s = self._s
        if self.opened or self.latest.view_index:
            return
        if all(other.agreed >= s.roster_index for other in self._others.values()):
            self._append_view(tuple(sorted(name for name in s.roster.voters)))

    def _review(self, heard: set[str]) -> None:
        """Append a view when a member has fallen silent or has caught up.

        Views grow one after the other. A view shrinks at any time: under stability `all` it may be waiting for the very
        member that is gone.
        """
        s = self._s
        if not self.opened:
            return
        voters, view = set(s.roster.voters), self.view
        present = (heard | {s.name}) & voters
        members = tuple(sorted(name for name in present if name in view or self._reached(name) >= self._commit_before))
        if members != view and (self._view_index <= s.commit or not set(view) <= present):
            self._append_view(members)

    def _promote(self, heard: set[str]) -> None:
        """Give a learner that has caught up its vote."""
        s = self._s
        for seat in s.roster.seats:
            other = self._others.get(seat.name)
            if other is None or seat.voting or not seat.home or seat.name not in heard:
                continue
            if other.agreed >= self._commit_before and self._may_change():
                self.change(s.roster.placing(Seat(seat.name, seat.home, seat.address, True)), other.seen_ns)
                return

    def _may_change(self) -> bool:
        """Whether the roster may change: the last change is safe, and so is an entry of this term (Raft, errata)."""
        s = self._s
        return self.opened and s.roster_index <= s.commit and self._is_own(s.commit)

    def _seat_others(self, seen_ns: Mapping[str, int]) -> None:
        """Keep account of all who have a seat, and of nobody else."""
        s = self._s
        before, self._others = self._others, {}
        for seat in s.roster.seats:
            if seat.name == s.name or not seat.home:
                continue
            known = before.get(seat.name)
            if known is None or known.home != seat.home:
                known = Progress(seat.name, seat.home, s.log.last + 1, seen_ns.get(seat.name, NEVER))
            self._others[seat.name] = known

    def _want_state(self, other: Progress) -> None:
        s = self._s
        s.tickets += 1
        other.transfer = Transfer(s.tickets)
        s.events.append(StateWanted(s.tickets, other.after))

    def _beat_transfer(self, other: Progress, transfer: Transfer, now_ns: int) -> None:
        """Let a member that gets a snapshot hear of the leader; begin anew if it has not answered for long."""
        s = self._s
        self._tell_end(other)
        if transfer.index and now_ns - transfer.since_ns > TRANSFER_HEARTBEATS * s.options.heartbeat_ns:
            other.transfer = None  # asked for again by the next heartbeat

    def _tell_end(self, other: Progress) -> None:
        """Let a member hear of the leader that is too far behind for entries."""
        s = self._s
        s.send(other.name, Append(s.group, s.term, s.log.last, s.log.last_term, [], s.commit))

    def _continue_transfer(self, other: Progress, transfer: Transfer, message: Appended, now_ns: int) -> None:
        """Send the next piece of a snapshot when one has arrived, and entries behind the last one."""
        transfer.since_ns = now_ns
        if transfer.index and message.index >= transfer.index:
            other.transfer = None
            self._stirred = True
            self._send_next(other)
        elif transfer.index:
            self._send_piece(other, transfer)

    def _send_piece(self, other: Progress, transfer: Transfer) -> None:
        if transfer.number:
            chunk = next(transfer.chunks, None)
            last = chunk is None
            self._s.send(other.name, self._piece(transfer, transfer.number, chunk or b"", last=last))
            transfer.number = 0 if last else transfer.number + 1

    def _piece(
        self,
        transfer: Transfer,
        number: int,
        chunk: bytes = b"",
        body: bytes = b"",
        summary: bytes = b"",
        *,
        last: bool = False,
    ) -> Message:
        s = self._s
        index, index_term, ticket = transfer.index, transfer.index_term, transfer.ticket
        return Install(s.group, s.term, index, index_term, ticket, number, body, summary, chunk, last)
