"""One member of a group over an engine that orders messages, but lets every side of a partition go on by itself.

*What the engine below gives.* Within one of its views, all members get the same messages in the same order, their own
ones too. When the view breaks, those who stay together have got the same messages; others may have got more, fewer, or,
behind a message that is missing, other ones. A message that was sent in one view may come in the next one. Nothing is
asked about how views are named: whatever looks like a change begins a round, and a round can begin at any time.

*What this makes of it*: one order of packs and views, with positions from 1 on, the same at every member; a pack is
delivered when every participant of the primary view holds it; at most one side goes on; who was away is brought up to
date. Below is the life of an *epoch*, the time of one primary view.

    1  a view changes below        every member multicasts its State: what it holds, what it has promised
    2  States of all are there     all apply one rule (`primary`): is this side primary, whose order is chosen, who
                                   takes part, which epoch is it; participants promise that epoch
    3  Promises of all are there   who holds the chosen order accepts the epoch, puts the view behind it, and is ready;
                                   the others ask for what they miss (`catching_up`), and are ready later
    4  Readies of all are there    all participants hold the order: it is delivered, with the view at its end;
                                   each sends again those of its packs that are not in it
    5  packs and acks              a pack takes the next position where it comes; it is delivered when all participants
                                   have acknowledged it (`uniform`)
    6  Caught, Admitted            the chosen one lets in who has caught up (`round`): a view is put there

*Why it is safe.* It is the argument of Paxos and Viewstamped Replication, with the view of the engine below in the
place of a leader. An order counts as accepted (3) only if every participant, a majority with history, has promised its
epoch (2), so of two epochs that share a participant the later one is larger. What was delivered in an epoch is held by
all its participants (4, 5); one of them is in every later primary view, with the highest epoch, and there the longest
order of that epoch is chosen, which has all that was delivered (`round`). Without the promises two sides could settle
the same epoch, one of them unheard by the other. A member that catches up keeps what it held until it has all of the
chosen order: it may yet be the one on whom it depends.

*Limbo.* What a member holds but nobody has delivered stays with it when its side is not primary. If the order chosen
later does not have it, it is dropped, and its sender, if it lives, sends it again: packs carry the sender's life and
number, a pack of another epoch never counts, and one that is not its sender's next is dropped. So each pack comes once,
in the order in which it was sent, and none is lost as long as its sender lives.

*What it costs.* Three multicasts of each member when a view changes; in between, one ack of each member per turn,
unless a pack of its own carries it. A member whose process hangs holds up all others until the engine below drops it,
as with any safe delivery.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias, assert_never

from echoic.errors import LocalError, MalformedFrameError
from echoic.groups.agreement.catching_up import Gap, Given, missed_pieces, state_pieces
from echoic.groups.agreement.messages import (
    ACK,
    CONTROL,
    PACK,
    VERSION,
    Admitted,
    Beginning,
    Caught,
    Chunk,
    Control,
    Done,
    Item,
    Membership,
    Missed,
    Outgoing,
    Pack,
    Piece,
    Place,
    Promise,
    Ready,
    State,
    Want,
    decode_ack,
    decode_control,
    decode_pack,
    encode_ack,
    encode_control,
    encode_pack,
)
from echoic.groups.agreement.order import Order
from echoic.groups.agreement.primary import Decision, decide, is_replaced
from echoic.groups.agreement.round import Round
from echoic.groups.agreement.standing import AgreementStatistics
from echoic.groups.engine import (
    Delivered,
    Ended,
    EngineEvent,
    Restored,
    StateWanted,
    Suspended,
    View,
    Viewed,
)
from echoic.wire import Buffer

__all__ = ["Agreement"]

KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
QUEUED_BYTES_MAX: Final = 64 * 1024 * 1024
GAP_BYTES_MAX: Final = 1024 * 1024 * 1024
"""What a member may hold of a state and of missed packs; beyond it, it begins to catch up from the start."""
SETTLE_NS: Final = 1_000_000_000
"""After this time without a view the group is told."""
PIECES_MAX: Final = 4
"""How many pieces of a state may be on their way."""
NEVER_NS: Final = 2**62

_Tables: TypeAlias = dict[int, tuple[Place, int]]


class Agreement:
    """One life of a member of a group.

    Of two lives of a member the later one must have the larger number. `applied` is the number of messages that its
    application, if it is durable, already has.
    """

    def __init__(
        self,
        me: str,
        members: Sequence[str],
        *,
        life: int,
        applied: int = 0,
        kept_bytes_max: int = KEPT_BYTES_MAX,
        gap_bytes_max: int = GAP_BYTES_MAX,
    ) -> None:
        self.outgoing: Final[deque[Outgoing]] = deque()
        """What is to be multicast, in order; whoever does it takes it out from the left."""
        self._me = me
        self._members = tuple(sorted(members))
        self._life = life
        self._applied = applied
        self._kept_bytes_max = kept_bytes_max
        self._gap_bytes_max = gap_bytes_max
        if me not in self._members or len(set(self._members)) != len(self._members):
            raise LocalError(f"expected {me!r} to be one of the members, each named once, got {list(self._members)}")
        self._places: frozenset[Place] = frozenset()
        self._own: Place = (0, 0)
        self._states: dict[Place, State] = {}
        self._round: Round | None = None
        self._gap: Gap | None = None
        self._order = Order()
        self._origin = -1
        """How many messages the application had when the order began; below 0 if that is not known here."""
        self._shown = 0
        """Where that is which the group has been told last."""
        self._history = self._altered = self._suspended = self.ended = False
        self._serial = self._promised = self._accepted = self._delivered = self._told = self._since_ns = 0
        self._number = self._queued_bytes = self._wants = self._under_way = self._ticket = 0
        self._queue: deque[tuple[int, Buffer]] = deque()
        self._transfers: dict[Place, Iterator[Piece]] = {}
        self._tickets: _Tables = {}
        self._early: dict[Place, Want] = {}
        """Who wants a state, and has been given more than this member so far."""
        self._events: list[EngineEvent] = []
        self._rounds = self._views = self._stale = self._dropped = self._malformed = 0
        self._resent = self._states_given = self._states_taken = 0

    def changed(self, places: Iterable[Place], own: Place, now_ns: int) -> None:
        """Learn that the view of the engine below has changed: who is in it, and which of them this member is."""
        self._deliver()
        self._places, self._own, self._since_ns = frozenset(places), own, now_ns
        self._states.clear()
        self._void()
        self.outgoing.clear()
        if not self.ended:
            self._announce()

    def received(self, place: Place, data: Buffer) -> None:
        """Take a message of the engine below, in its order."""
        if self.ended or place not in self._places or not data:
            return
        try:
            match data[0]:
                case 1:
                    self._take_pack(place, data)
                case 2:
                    self._take_ack(place, data)
                case _:
                    self._take_control(place, data)
        except MalformedFrameError:
            self._malformed += 1

    def send(self, payload: Buffer) -> None:
        """Multicast a pack, this member's next.

        Raises:
            LocalError: More is waiting than may wait.
        """
        size = len(payload)
        if self._queued_bytes + size > QUEUED_BYTES_MAX and self._queue:
            raise LocalError(f"{self._queued_bytes} bytes are waiting to be ordered, limit is {QUEUED_BYTES_MAX}")
        self._number += 1
        self._queued_bytes += size
        self._queue.append((self._number, payload))
        round_ = self._round
        if round_ is not None and self._takes_part(round_):
            self._submit(round_, self._number, payload)

    def flush(self, now_ns: int) -> list[EngineEvent]:
        """Do what is due at the end of a turn, and return what the group must learn, in order."""
        self._deliver()
        self._serve_early()
        self._pump()
        round_ = self._round
        if round_ is not None and self._order.end > self._told and self._takes_part(round_):
            self._told = self._order.end
            self.outgoing.append(Outgoing(encode_ack(round_.epoch, self._told)))
        if now_ns >= self.wake_ns():
            self._suspend(self._waiting_for())
        events, self._events = self._events, []
        return events

    def wake_ns(self) -> int:
        """Return when `flush` is due at the latest."""
        if self.ended or self._suspended or (self._round is not None and self._takes_part(self._round)):
            return NEVER_NS
        return self._since_ns + SETTLE_NS

    def give_state(self, ticket: int, position: int, summary: bytes, chunks: Iterable[bytes]) -> None:
        """Answer StateWanted; an answer that nobody waits for any more is dropped.

        Raises:
            LocalError: There is no such position yet.
        """
        asked = self._tickets.pop(ticket, None)
        round_ = self._round
        if asked is None or round_ is None:
            return
        if not 0 <= position <= self._delivered:
            raise LocalError(f"expected the state as of a position up to {self._delivered}, got {position}")
        to, want = asked
        if position >= self._shown:  # between it and what is delivered are views that were not this member's
            position = self._delivered
        if position + 1 < self._order.first:  # what came after it was forgotten meanwhile
            self._ask(to, want, round_.states[to].applied)
            return
        self._states_given += 1
        given = Given(round_.epoch, to, want)
        beginning = Beginning(round_.epoch, to, want, position, self._order.senders_at(position), summary)
        self._transfers[to] = state_pieces(given, beginning, chunks, list(self._order.after(position)))

    def note_applied(self, count: int) -> None:
        """Learn how many messages the application has; it decides with whom the group goes on after a cold start."""
        self._applied = max(self._applied, count)

    def compact(self, position: int) -> None:
        """Forget what was delivered up to a position."""
        self._order.trim(min(position, self._delivered), 0)

    def statistics(self) -> AgreementStatistics:
        """Return how this member stands."""
        round_ = self._round
        takes_part = round_ is not None and self._takes_part(round_)
        names = tuple(name for name, _ in round_.membership.members) if round_ is not None and takes_part else ()
        return AgreementStatistics(
            epoch=self._accepted,
            primary=takes_part,
            history=self._history,
            participants=names,
            delivered=self._delivered,
            held=self._order.end,
            kept_bytes=self._order.bytes,
            queued_bytes=self._queued_bytes,
            rounds=self._rounds,
            views=self._views,
            stale=self._stale,
            dropped=self._dropped,
            malformed=self._malformed,
            resent=self._resent,
            states_given=self._states_given,
            states_taken=self._states_taken,
        )

    def _takes_part(self, round_: Round) -> bool:
        return round_.established and self._own in round_.participants and self._accepted == round_.epoch

    def _tell(self, message: Control) -> None:
        self.outgoing.append(Outgoing(encode_control(message), b"", isinstance(message, State)))

    def _announce(self) -> None:
        """Say what this member has; it has to be said again if it has changed and another round begins."""
        self._serial += 1
        self._altered = False
        self._states.pop(self._own, None)
        order = self._order
        has = (self._history, self._promised, self._accepted, self._delivered, order.end, order.senders, self._applied)
        self._tell(State(VERSION, self._me, self._life, self._members, self._serial, *has))

    def _void(self) -> None:
        """End the round: nothing of its epoch counts any more, here and at all others of the view."""
        self._round = self._gap = None
        self._transfers.clear()
        self._tickets.clear()
        self._early.clear()
        self._under_way = 0
        lasting = [out for out in self.outgoing if out.lasting]
        self.outgoing.clear()
        self.outgoing.extend(lasting)

    def _take_control(self, place: Place, data: Buffer) -> None:
        if data[0] != CONTROL:
            raise MalformedFrameError(f"expected a message of kind {PACK}, {ACK} or {CONTROL}, got {data[0]}")
        message = decode_control(data)
        if isinstance(message, State):
            self._take_state(place, message)
            return
        round_ = self._round
        if round_ is None or message.epoch != round_.epoch:
            self._stale += 1
            return
        match message:
            case Promise():
                if message.signature == round_.decision.signature and not round_.settled and round_.promise(place):
                    self._settle(round_)
            case Ready():
                if round_.settled and round_.ready(place):
                    self._establish(round_)
            case Want():
                if round_.decision.chosen == self._own and self._accepted == round_.epoch:
                    self._serve(round_, place, message)
            case Caught() | Admitted():
                self._let_in(round_, place, message)
            case Beginning() | Chunk() | Missed() | Done():
                self._take_piece(round_, place, message)
            case _:
                assert_never(message)

    def _take_state(self, place: Place, state: State) -> None:
        if place == self._own and (state.serial, state.life) != (self._serial, self._life):
            return  # it was sent in an earlier view, and is out of date
        self._deliver()
        self._void()
        self._states[place] = state
        if place != self._own and self._altered:
            self._announce()  # another began a round
        if self._own in self._states and len(self._states) == len(self._places):
            self._decide()

    def _decide(self) -> None:
        self._rounds += 1
        if is_replaced(self._own, self._states):
            self._end(f"another process has joined as {self._me!r}, with a later life than {self._life}")
            return
        decision = self._rule()
        if self._own not in decision.counted:
            self._suspend("the other processes of the group have another configuration of members")
        elif not decision.primary:
            self._suspend(decision.reason)
        elif decision.anew and self._history:
            # Nobody can tell which of its packs the chosen application has: another life begins with the first one.
            # It ends before it promises. If it was cut off when the others settle, it would still have a history then,
            # and later on be given what comes behind what it holds.
            self._end("a majority was lost, and the group goes on from what an application has kept: start anew")
        else:
            self._round = Round(decision, self._states)
            if self._own in decision.participants:
                self._promised = decision.epoch
                self._tell(Promise(decision.epoch, decision.signature))

    def _rule(self) -> Decision:
        return decide(self._members, self._states)

    def _settle(self, round_: Round) -> None:
        """All participants have promised: accept the chosen order, or ask for what is missing of it."""
        round_.settled = True
        decision = round_.decision
        if self._own in decision.same:
            if decision.anew:
                self._order, self._origin = Order(decision.position), self._applied
            elif decision.cold:  # what was given to anybody is given here; else who has kept it would wait for this one
                given = max(round_.states[place].delivered for place in decision.counted)
                self._deliver_until(min(given, self._order.end))
            self._accept(round_)
            self._order.append(round_.membership)
            self._tell(Ready(round_.epoch))
            return
        senders = {} if decision.anew else round_.states[decision.chosen].senders
        have = self._delivered if self._history else -1
        self._gap = Gap(have, Order(decision.position, senders), self._gap_bytes_max)
        self._gap.follow(round_.membership)
        self._want(round_, self._gap)

    def _accept(self, round_: Round) -> None:
        self._accepted = self._promised = round_.epoch
        self._history = self._altered = True
        self._told = 0

    def _establish(self, round_: Round) -> None:
        """All participants hold the order: its packs are delivered, and those of the epoch count from here on."""
        round_.established = True
        if self._own in round_.participants:
            self._resume(round_)
        elif self._accepted == round_.epoch:
            self._tell(Caught(round_.epoch))

    def _let_in(self, round_: Round, place: Place, message: Caught | Admitted) -> None:
        """Answer who has caught up, if this member is the chosen one; where that one has answered, it takes part."""
        chosen = round_.decision.chosen
        if isinstance(message, Caught):
            if chosen == self._own and round_.lacks(place):
                self._tell(Admitted(round_.epoch, place))
        elif chosen == place and round_.lacks(message.place):
            self._admit(round_, message.place)

    def _admit(self, round_: Round, place: Place) -> None:
        """Let a member that has caught up take part: a view is put at this place."""
        round_.admit(place)
        self._append(round_.membership)
        if place == self._own:
            self._resume(round_)

    def _resume(self, round_: Round) -> None:
        """Send those packs that are not in the order; none of an earlier epoch will get into it any more."""
        last = self._resume_after()
        for number, payload in self._queue:
            if number > last:
                self._resent += 1
                self._submit(round_, number, payload)

    def _resume_after(self) -> int:
        return self._order.last_of(self._me, self._life)

    def _submit(self, round_: Round, number: int, payload: Buffer) -> None:
        self._told = self._order.end
        self.outgoing.append(Outgoing(encode_pack(round_.epoch, number, self._told), payload))

    def _take_pack(self, place: Place, data: Buffer) -> None:
        epoch, number, held, payload = decode_pack(data)
        round_ = self._round
        if round_ is None or not round_.established or epoch != round_.epoch or place not in round_.participants:
            self._stale += 1
            return
        round_.uniform.acknowledge(place, held)
        name, life = round_.participants[place]
        order = self._order if self._gap is None else self._gap.live
        if self._fits(order, name, life, number):
            self._append(Pack(name, life, number, payload))
        else:
            self._dropped += 1

    def _fits(self, order: Order, name: str, life: int, number: int) -> bool:
        return order.fits(name, life, number)

    def _append(self, item: Item) -> None:
        if self._gap is None:
            self._order.append(item)
        else:
            self._gap.follow(item)

    def _take_ack(self, place: Place, data: Buffer) -> None:
        epoch, held = decode_ack(data)
        round_ = self._round
        if round_ is None or epoch != round_.epoch or place not in round_.participants:
            self._stale += 1
            return
        round_.uniform.acknowledge(place, held)

    def _stable(self, round_: Round) -> int:
        return round_.uniform.stable()

    def _deliver(self) -> None:
        """Give the group what every participant holds."""
        round_ = self._round
        if round_ is None or not round_.established or self._accepted != round_.epoch:
            return
        round_.uniform.acknowledge(self._own, self._order.end)
        self._deliver_until(min(self._stable(round_), self._order.end))

    def _deliver_until(self, last: int) -> None:
        order, events = self._order, self._events
        if last <= self._delivered:
            return
        for position, item in enumerate(order.after(self._delivered), self._delivered + 1):
            if position > last:
                break
            if isinstance(item, Pack):
                self._shown = position
                events.append(Delivered(position, item.sender, item.life, item.number, item.payload))
                if item.sender == self._me and item.life == self._life:
                    self._settled(item.number)
            else:
                self._view(position, item)
        self._delivered = last
        order.trim(last, self._kept_bytes_max)

    def _view(self, position: int, membership: Membership) -> None:
        if (self._me, self._life) not in membership.members:
            return  # it was not in this view, and has caught up with what came after it
        self._views += 1
        self._shown = position
        self._suspended = False
        self._events.append(Viewed(View(position, tuple(name for name, _ in membership.members), True)))

    def _settled(self, number: int) -> None:
        """Forget own packs up to a number: everybody has them."""
        while self._queue and self._queue[0][0] <= number:
            self._queued_bytes -= len(self._queue.popleft()[1])

    def _want(self, round_: Round, gap: Gap) -> None:
        self._wants += 1
        gap.want = self._wants
        self._tell(Want(round_.epoch, gap.want, gap.end, not self._history, self._applied))

    def _serve(self, round_: Round, to: Place, want: Want) -> None:
        """Send a member what it misses, if it is still here; otherwise ask the group for its state.

        A process that was started anew may have been given more in its life before than this member so far, and its
        application have kept it. That is in the chosen order, so its state waits until that is delivered. In a cold
        start that was done already, though the application may be yet to say so.
        """
        decision = round_.decision
        more = want.fresh and want.applied > self._applied
        if more and not decision.cold and self._delivered < decision.position:
            self._early[to] = want
            return
        have = want.have
        if have < 0 and want.fresh and want.applied == self._origin and self._order.first == 1:
            have = 0
        if have < self._order.first - 1:
            self._ask(to, want.number, want.applied)
            return
        given = Given(round_.epoch, to, want.number)
        self._transfers[to] = missed_pieces(given, have + 1, list(self._order.after(have)))

    def _serve_early(self) -> None:
        round_ = self._round
        if self._early and round_ is not None and self._delivered >= round_.decision.position:
            early, self._early = self._early, {}
            for to, want in early.items():
                self._serve(round_, to, want)

    def _ask(self, to: Place, want: int, applied: int) -> None:
        self._ticket += 1
        self._tickets[self._ticket] = (to, want)
        self._events.append(StateWanted(self._ticket, applied))

    def _pump(self) -> None:
        """Put further pieces on their way, of each transfer in turn."""
        while self._transfers and self._under_way < PIECES_MAX:
            to, pieces = next(iter(self._transfers.items()))
            del self._transfers[to]
            piece = next(pieces, None)
            if piece is not None:
                self._transfers[to] = pieces
                self._under_way += 1
                self._tell(piece)

    def _take_piece(self, round_: Round, place: Place, piece: Piece) -> None:
        if place == self._own:
            self._under_way -= 1
        gap = self._gap
        if gap is None or piece.to != self._own or piece.want != gap.want:
            return
        done = gap.take(piece)
        if gap.overflown:
            gap.forget()
            self._want(round_, gap)
        elif done and gap.filled:
            self._fill(round_, gap)
        elif done:
            self._want(round_, gap)

    def _fill(self, round_: Round, gap: Gap) -> None:
        """Everything is there: hold the chosen order in the place of what was held."""
        self._gap = None
        self._origin = self._applied if gap.beginning is None and not self._history else self._origin
        self._order, self._delivered = gap.fill(self._order, self._delivered)
        self._accept(round_)
        if gap.beginning is not None:
            self._states_taken += 1
            self._origin, self._shown = -1, gap.beginning.position
            life, number = gap.beginning.senders.get(self._me, (self._life, 0))
            own = number if life == self._life else 0
            self._events.append(Restored(gap.beginning.position, gap.beginning.summary, gap.chunks, own))
            self._settled(own)
        if self._own in round_.participants:
            self._tell(Ready(round_.epoch))
        elif round_.established:
            self._tell(Caught(round_.epoch))

    def _suspend(self, reason: str) -> None:
        if not self._suspended:
            self._suspended = True
            self._events.append(Suspended(reason))

    def _waiting_for(self) -> str:
        if self._gap is not None:
            return "this member has missed messages, and is catching up"
        silent = sorted(self._places - self._states.keys())
        return f"{len(silent)} of {len(self._places)} processes of the group have not said what they have: {silent}"

    def _end(self, reason: str) -> None:
        self.ended = True
        self._void()
        self.outgoing.clear()
        self._events.append(Ended(reason))
