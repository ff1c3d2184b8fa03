"""The concentrator: everything a hub decides, without a socket, a thread or a clock.

JECho's section 4 puts one concentrator into each process: a hub for all incoming and outgoing events, with one link to
each other hub. This is its mind. It is told what happens (`receive`, `meet`, `broken`, `unreachable`, `tick`) and what
the program wants (`create`, `join`, `submit`, `call`), and leaves behind what must be done:

    stirred      hubs whose session has something in its outbox; whoever writes their links takes it from there
    effects      Dial, Missed, Ended, Forgotten, Compile, Troubled
    sharing      shared objects that show something else, in `sharing.changed`
    Delivery     returned by `receive`: events for the sinks here

Requests between hubs are answered later; whoever asks gives a function for the answer. The same code runs inside a hub
between sockets and in simulation, with a seeded network in their place (`echoic.testing`).
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from echoic.channels.admission import Admission, check_place
from echoic.channels.answering import carry_out
from echoic.channels.arrivals import receive_events, receive_runs
from echoic.channels.attaching import arrange
from echoic.channels.binding import CREDIT, answered, bind, cut, granted, skip
from echoic.channels.effects import Delivery, Dial, Effect, Ended, Forgotten, Missed
from echoic.channels.express import encode_reply
from echoic.channels.fanout import Run
from echoic.channels.greeting import COUNT, Greeting, tell_count
from echoic.channels.identity import ChannelId
from echoic.channels.installing import review
from echoic.channels.joining import join
from echoic.channels.journal_messages import Kept
from echoic.channels.keeping import confirm, keep_call
from echoic.channels.large import HeapStorage, Large, LargeRules, Storage, event_limit, frame_of
from echoic.channels.manager import Manager
from echoic.channels.member import CALL_HEADER, EVENT_HEADER, Call, Member
from echoic.channels.messages import (
    Attach,
    Bind,
    Cut,
    Envelope,
    Farewell,
    Gap,
    Leave,
    Message,
    Placed,
    Refused,
    Role,
    Turn,
    decode_message,
    encode_message,
)
from echoic.channels.neighbour import Neighbour
from echoic.channels.neighbourhood import Neighbourhood
from echoic.channels.policy import Policy
from echoic.channels.quiet import Quiet
from echoic.channels.requests import Answer, Requests, ignore
from echoic.channels.search import Search, Then
from echoic.channels.session import UNTOLD_BYTES_MAX, Session
from echoic.channels.shares import TuneRates, check_link, crowd
from echoic.channels.sharing import Sharing
from echoic.channels.transfers import TRANSFERS_FROM, go_on, receive_transfer
from echoic.channels.turning import call_back
from echoic.channels.upkeep import concerns_all, look_after, make_known, make_up
from echoic.errors import ChannelNotFoundError, MalformedFrameError
from echoic.formats import Format
from echoic.wire import Batch, Buffer, Frame, FrameKind, decode_formats, encode_formats, encode_frame

if TYPE_CHECKING:
    from echoic.channels.derivation import Derivation

__all__ = ["Concentrator", "Delivery", "Dial", "Effect", "Ended", "Forgotten", "Missed"]

RETRY_NS: Final = 1_000_000_000
COUNT_MAX: Final = 2**64 - 1  # a message can tell no more, whatever gaps a peer claims


class Concentrator:
    """What one hub knows and decides."""

    def __init__(
        self,
        id: str,
        address: str,
        name: str = "",
        *,
        policy: Policy | None = None,
        untold_bytes_max: int = UNTOLD_BYTES_MAX,
        rules: LargeRules | None = None,
        storage: Storage | None = None,
        admission: Admission | None = None,
    ) -> None:
        self.id: Final = id
        self.address: Final = address
        self.name: Final = name
        self.manager: Final = Manager(address)
        self.policy: Final = policy or Policy()
        self.admission: Final = admission or Admission()
        self.derivations: Final[dict[str, Derivation]] = {}
        self.births: Final = itertools.count(1)
        self.crowded: Final[set[Member]] = set()  # whose derivations were refused for want of room
        self.denied: set[Member] = set()  # in which somebody was, who may be let in by other rules
        self.load = 0.0  # the share of a processor that they took lately
        self.reviewed_ns = 0
        self.neighbours: Final[dict[str, Neighbour]] = {}
        self.neighbourhood: Final = Neighbourhood()  # Invariant: it holds the values of `neighbours`, and no others
        self.members: Final[dict[str, Member]] = {}
        self.passing: Final[set[str]] = set()  # those that are open for a derivation only
        self.stirred: Final[set[str]] = set()
        self.effects: Final[list[Effect]] = []
        self.by_number: Final[dict[int, Member]] = {}
        self._numbers = itertools.count(1)
        self.requests: Final = Requests()
        self.calls: dict[int, Call] = {}
        self.call_numbers = itertools.count(1)
        self.search: Final = Search()
        self.sharing: Final = Sharing(self)
        self.quiet: Final = Quiet()
        self.tunes: Final = TuneRates()
        self.turning: Final[dict[tuple[str, str], Attach]] = {}  # for sinks whose turn is yet to come, the last order
        self.rules: Final = rules or LargeRules()
        self.storage: Final[Storage] = storage or HeapStorage()
        self._untold_bytes_max = untold_bytes_max
        self.subscriptions: Final = itertools.count(1)
        self.retry_ns = 0
        self.now_ns = 0
        self.leaving = False

    def open(self, id: ChannelId, format: Format | None) -> Member:
        """Return this hub's part in a channel."""
        member = self.members.get(str(id))
        if member is None:
            member = Member(id, next(self._numbers), format)
            self.members[member.id] = member
            self.by_number[member.number] = member
        self.passing.discard(member.id)
        return member

    def close(self, member: Member) -> None:
        """Forget a channel in which nobody here takes part."""
        del self.members[member.id], self.by_number[member.number]
        self.passing.discard(member.id)
        self.denied.discard(member)

    def join(
        self, member: Member, role: Role, answer: Answer, *, instead: str = "", handle: str = "", successor: str = ""
    ) -> None:
        """Take part in a channel with sources or sinks; `answer` gets Joined or Refused.

        For a sink, Joined means that every source that the manager knows sends to this hub, or will tell it what it
        did not send.

        Args:
            member: The channel.
            role: As what.
            answer: Gets the reply.
            instead: The name of a channel of the same manager that a sink leaves for this one.
            handle: The name of that sink there.
            successor: Its name here.
        """
        join(self, member, role, answer, instead, handle, successor)

    def leave(self, member: Member, role: Role, *, held: bool = False) -> None:
        """Take no more part in a channel with sources or sinks; `held` for a recorder that will come back."""
        member.roles -= {role}
        member.lose(role)
        if role == "sink":
            member.sink = None
            member.positions.clear()
        else:
            member.told = {}
        arrange(member)
        self.ask(member.manager, Leave(member.name, role, self.address, held), ignore)

    def blocked(self, member: Member) -> bool:
        """Whether a source of this channel must wait before it submits."""
        for hub, target in member.fanout.targets.items():
            if target.sink.slow == "block" and (target.credit <= 0 or self.neighbours[hub].full):
                return True
        return any(keeping.full for keeping in member.keepings)

    def submit(self, member: Member, source: int, batch: Batch, large: Large | None = None) -> None:
        """Send the next events of a source to every hub that has sinks; `large` if that is what they make (`large`).

        Raises:
            ClosedError: There is no such source any more.
            EncodeError: They are too large for somebody; nothing was sent.
            LimitExceededError: There is no room for them; nothing was sent.
        """
        first, count = member.position(source), batch.count
        targets = member.fanout.targets
        if not targets and not member.keepings:
            member.pass_over(source, count)
            return
        frame = frame_of(self, member, FrameKind.EVENTS, EVENT_HEADER.pack(first, source), batch, large)
        member.pass_over(source, count)
        member.bytes_out += len(frame)
        for keeping in member.keepings:
            keeping.note(Run(source, first, first + count - 1, frame), batch.format)
        self.announce(targets, batch.format)
        full = frozenset([hub for hub in targets if self.neighbours[hub].full])
        if not full and isinstance(frame, bytes) and member.fanout.flows:
            member.fanout.spend(len(frame))
            for hub in targets:
                self.neighbours[hub].session.post(frame)
            self.stirred.update(targets)
            return
        for hub, item in member.fanout.submit(Run(source, first, first + count - 1, frame), full):
            self.send(hub, item)
            if isinstance(item, Cut):
                member.owe(targets[hub].sink, targets[hub].since)
                arrange(member)

    def call(self, member: Member, source: int, batch: Batch, large: Large | None = None) -> tuple[int, Call]:
        """Send a synchronous event to every hub that has sinks; return its number, and what will hold the answers.

        Raises:
            EchoicError: As `submit` does.
        """
        number, first = next(self.call_numbers), member.position(source)
        targets = member.fanout.targets
        call = Call({hub: target.sink for hub, target in targets.items()})
        head = CALL_HEADER.pack(first, source, number)
        frame = frame_of(self, member, FrameKind.CALLS, head, batch, large) if targets else b""
        keep_call(member, source, batch)
        if targets:
            for hub, item in member.fanout.hurry():
                self.send(hub, item)
            member.bytes_out += len(frame)
            self.announce(targets, batch.format)
            for hub in targets:
                self.send(hub, frame)
        member.pass_over(source, batch.count)
        self.calls[number] = call
        return number, call

    def forget_call(self, number: int) -> None:
        """Wait no longer for the answers to a synchronous event."""
        self.calls.pop(number, None)

    def handled(self, delivery: Delivery) -> None:
        """Grant a sender credit for events that the sinks here are done with."""
        neighbour = self.neighbours.get(delivery.hub)
        binding = neighbour.bindings.get(delivery.number) if neighbour else None
        if binding is not None:
            grant = binding.meter.handled(delivery.size)
            if grant:
                self.post(delivery.hub, FrameKind.CREDITS, CREDIT.pack(delivery.number, grant))

    def reply(self, delivery: Delivery, failures: Mapping[str, str]) -> None:
        """Answer a synchronous event."""
        if delivery.hub in self.neighbours:
            self.send(delivery.hub, encode_reply(delivery.number, delivery.call, failures))

    def ask(self, address: str, message: Message, answer: Answer) -> None:
        """Send a request to the hub at an address; `answer` gets the reply, or Refused."""

        def linked(neighbour: Neighbour | None, reason: str) -> None:
            if neighbour is None:
                answer(Refused("UnreachableError", reason))
                return
            make_known(self, address, message)
            number = self.requests.add(neighbour.id, self.now_ns, answer)
            self.post(neighbour.id, FrameKind.CONTROL, encode_message(number, message))

        if address == self.address:
            carry_out(self, message, answer)
        else:
            self.when_linked(address, linked, last=concerns_all(message))

    def farewell(self) -> None:
        """Tell every neighbour that this hub ends."""
        self.leaving = True
        for hub, neighbour in self.neighbours.items():
            self.post(hub, FrameKind.CONTROL, encode_message(0, Farewell()))
            neighbour.leaving = True  # it is not dialled again

    def known(self, hub: str) -> tuple[int, int]:
        """Return the session with a hub and how many frames have arrived in it, for a greeting."""
        neighbour = self.neighbours.get(hub)
        return (neighbour.session.id, neighbour.session.received) if neighbour else (0, 0)

    def meet(self, greeting: Greeting) -> Neighbour | None:
        """Take a connection whose greeting is done; None when it must be closed, because there is a better one.

        Raises:
            DeniedError: The peer says it stands where another does.
            LimitExceededError: There are too many links.
            MalformedFrameError: The peer claims to have got more than was sent, or to be somebody else.
        """
        hello = greeting.peer
        if hello is None or hello.hub == self.id:
            raise MalformedFrameError("a hub cannot be its own peer")
        dialler = self.id if greeting.dialled else hello.hub
        neighbour = self.neighbours.get(hello.hub)
        if neighbour is not None and neighbour.who != greeting.who:
            raise MalformedFrameError(f"`{greeting.who}` says it is a hub of `{neighbour.who}`")
        check_place(self, hello, greeting)
        if neighbour is not None and not (neighbour.prefers(dialler) and greeting.holds(neighbour.session)):
            self.linked(neighbour, greeting.address)
            return None
        if neighbour is not None and (not greeting.resumed or neighbour.session.id != greeting.session):
            self.gone(hello.hub, "it began afresh")
            neighbour = None
        there = self.neighbourhood.at(greeting.address) if greeting.dialled else []
        for other in [*self.neighbourhood.at(hello.address), *there]:
            if other.id != hello.hub and (greeting.dialled or not other.connected):
                self.gone(other.id, "another hub stands at its address")
        if neighbour is None:
            check_link(self, greeting.who)
            session = Session(greeting.session, untold_bytes_max=self._untold_bytes_max)
            neighbour = Neighbour(hello.hub, hello.address, hello.name, session, event_limit(hello), greeting.who)
            self.neighbours[hello.hub] = neighbour
            self.neighbourhood.add(neighbour)
        else:
            neighbour.session.resume(greeting.received_by_peer)
            self._relieve(neighbour)
        neighbour.connect(dialler)
        self.stirred.add(hello.hub)
        self.linked(neighbour, greeting.address)
        return neighbour

    def broken(self, hub: str, now_ns: int) -> None:
        """Learn that the connection to a hub broke."""
        neighbour = self.neighbours.get(hub)
        if neighbour is not None and neighbour.connected:
            neighbour.disconnect(now_ns, self.id)
            self.now_ns = now_ns
            self.requests.overdue(now_ns)  # which must see every time that requests are made at
            if any(other.connected for other in self.neighbourhood.at(neighbour.address)):
                self.gone(hub, "another hub stands at its address")
            else:
                look_after(self, neighbour)
            self.sharing.tick(now_ns)  # what the hub shares is stale from here on

    def unreachable(self, address: str, reason: str, *, refused: bool) -> None:
        """Learn that a dialled hub did not answer; `refused` when nobody listens there."""
        for neighbour in self.neighbourhood.at(address):
            if not neighbour.connected:
                neighbour.refusals += int(refused)
        if self.search.failed(address, reason, self.now_ns, refused=refused):
            self.effects.append(Dial(address))

    def gone(self, hub: str, reason: str) -> None:
        """Give a hub up: forget it, and let the channels that it took part in be joined anew."""
        neighbour = self.neighbours.pop(hub, None)
        if neighbour is None:
            return
        self.neighbourhood.remove(neighbour)
        neighbour.transfers.clear()
        self.tunes.forget(hub)
        self.effects.append(Forgotten(hub, reason))
        self.manager.register_again(neighbour.stands_at)
        heir = next(iter(self.neighbourhood.at(neighbour.address)), None)
        if heir is None:
            self.manager.forget(neighbour.address)
        elif self.manager.forget_former(neighbour.address, hub, heir.id):
            self.gone(heir.id, "a hub that stood at its address before was heard after it")  # so that it joins again
        for binding in neighbour.bindings.values():
            if binding.member is not None:
                binding.member.lose("sink")
        for member in list(self.members.values()):  # whoever has waited for a turn may open channels
            member.turns.gone(hub)
            if (target := member.fanout.detach(hub)) is not None:
                member.owe(target.sink, target.since)
                arrange(member)
            if member.owes(hub):  # perhaps since it was cut off, which it may never have heard
                member.lose("source")
            if neighbour.stands_at(member.manager):
                member.lose("source", "sink")
                member.told = {}  # what it says when it is back is later than all that was turned here
        call_back(self, neighbour)
        for call in self.calls.values():
            call.gone(hub, reason)
        self.sharing.gone(neighbour)
        self.requests.gone(hub, f"the hub at {neighbour.address} is gone: {reason}")

    def end(self) -> None:
        """Let go of large events: this hub sends and receives no more."""
        for neighbour in self.neighbours.values():
            neighbour.transfers.clear()
        for member in self.members.values():
            for hub in list(member.fanout.targets):
                member.fanout.detach(hub)

    def tick(self, now_ns: int) -> None:
        """Do what time demands: tell counts, dial again, give up, join again. Call it about ten times a second."""
        self.now_ns = now_ns
        for neighbour in list(self.neighbours.values()):
            look_after(self, neighbour)
        self.requests.overdue(now_ns)
        self.quiet.expire(now_ns)
        self.sharing.tick(now_ns)
        crowd(self)
        review(self, now_ns)
        if now_ns >= self.retry_ns:
            self.retry_ns = now_ns + RETRY_NS
            make_up(self)

    def receive(self, hub: str, frame: Frame) -> Sequence[Delivery]:
        """Take the next frame of a neighbour; return the events it holds for sinks here.

        What is `ripe` among the neighbour's transfers after that must be given to `take` before the next.

        Raises:
            RemoteError: The neighbour broke a rule; it is best given up.
        """
        neighbour = self.neighbours.get(hub)
        if neighbour is None:
            return ()
        kind = frame.kind
        if kind is FrameKind.ACKS:
            self._told(neighbour, frame)
            return ()
        if neighbour.session.receive(len(frame.payload)):
            self.tell(neighbour)
        if kind >= TRANSFERS_FROM:
            receive_transfer(self, neighbour, frame)
            return ()
        if neighbour.transfers.held and neighbour.transfers.keep_back(frame):
            return ()
        return self._take(neighbour, frame)

    def take(self, hub: str, frame: Frame) -> Sequence[Delivery]:
        """Take a frame that has ripened; return the events it holds for sinks here.

        Raises:
            RemoteError: The neighbour broke a rule; it is best given up.
        """
        neighbour = self.neighbours.get(hub)
        if neighbour is None:
            return ()
        deliveries = self._take(neighbour, frame)
        go_on(self, neighbour)
        return deliveries

    def _take(self, neighbour: Neighbour, frame: Frame) -> Sequence[Delivery]:
        hub, kind = neighbour.id, frame.kind
        if kind is FrameKind.EVENTS or kind is FrameKind.CALLS:
            return receive_events(self, neighbour, frame, call=kind is FrameKind.CALLS)
        if kind is FrameKind.RUNS:
            return receive_runs(self, neighbour, frame)
        if kind is FrameKind.REPLIES:
            answered(self, hub, frame)
        elif kind is FrameKind.CREDITS:
            granted(self, hub, frame)
        elif kind is FrameKind.FORMATS:
            decode_formats(frame.payload, neighbour.registry)
        elif kind is FrameKind.CONTROL:
            self._control(neighbour, decode_message(frame.payload))
        return ()

    def miss(self, member: Member, gap: Gap) -> None:
        """Note that events will not arrive."""
        member.missed = min(member.missed + gap.last - gap.first + 1, COUNT_MAX)
        self.effects.append(Missed(member, gap))

    def _told(self, neighbour: Neighbour, frame: Frame) -> None:
        if len(frame.payload) != COUNT.size:
            raise MalformedFrameError(f"a count has {len(frame.payload)} bytes, expected {COUNT.size}")
        session, count = COUNT.unpack(frame.payload)
        if session == neighbour.session.id:
            neighbour.session.told(count)
            neighbour.settle()
            self._relieve(neighbour)

    def _relieve(self, neighbour: Neighbour) -> None:
        """Send what was parked because the link was full, now that it is not."""
        if neighbour.relieve():
            for member in self.members.values():
                for hub, item in member.fanout.grant(neighbour.id, 0):
                    self.send(hub, item)

    def tell(self, neighbour: Neighbour) -> None:
        """Tell a neighbour how many frames have arrived."""
        tell_count(neighbour.session)
        self.stirred.add(neighbour.id)

    def _control(self, neighbour: Neighbour, envelope: Envelope) -> None:
        hub, message = neighbour.id, envelope.message
        if envelope.reply:
            self.requests.answered(hub, envelope.number, message)
            return
        match message:
            case Bind():
                bind(self, neighbour, message)
            case Gap():
                skip(self, neighbour, message)
            case Cut():
                cut(self, neighbour, message)
            case Placed():
                neighbour.place(message)
            case Turn():
                neighbour.turn(message)
            case Kept():
                confirm(self, message, hub)
            case Farewell():
                neighbour.leaving = True
            case _:

                def answer(reply: Message) -> None:
                    if envelope.number and hub in self.neighbours:
                        self.post(hub, FrameKind.CONTROL, encode_message(envelope.number, reply, reply=True))

                carry_out(self, message, answer, hub)

    def opened(self, id: str) -> Member:
        """Return this hub's part in a channel.

        Raises:
            ChannelNotFoundError: It is not open here.
        """
        member = self.members.get(id)
        if member is None:
            raise ChannelNotFoundError(f"channel `{id}` is not open here")
        return member

    def when_linked(self, address: str, then: Then, hub: str = "", *, last: bool = False) -> None:
        """Go on when there is a link to an address, to a certain hub there if one is named, or it cannot be made.

        Who has taken leave is not asked but whoever comes after him. A hub that takes leave itself goes on with those
        whom it has, since they refuse a further connection as long as there is one.
        """
        known = [one for one in self.neighbourhood.at(address) if hub in ("", one.id)]
        found = [one for one in known if self.leaving or not one.leaving]
        if found:  # of several the last came after the others had ended
            then(max(reversed(found), key=lambda one: one.connected), "")
        elif self.search.add(address, then, self.now_ns, last=last):
            self.effects.append(Dial(address))

    def linked(self, neighbour: Neighbour, address: str) -> None:
        """Go on with what waited for a hub, which may have been looked for at an address that it does not name."""
        if self.neighbours.get(neighbour.id) is not neighbour:
            return  # it was given up meanwhile
        if address and address != neighbour.address:
            self.neighbourhood.add_alias(neighbour, address)
        for place in (neighbour.address, address):
            self.search.found(place, neighbour)

    def announce(self, targets: Iterable[str], format: Format) -> None:
        """Describe a format to hubs that do not know it."""
        for hub in targets:
            announced = self.neighbours[hub].announced
            if format.token not in announced:
                announced.add(format.token)
                self.post(hub, FrameKind.FORMATS, encode_formats([format]))

    def send(self, hub: str, item: bytes | Large | Message) -> None:
        """Put a frame, what stands for a large one, or a message into the outbox of a hub."""
        if isinstance(item, Large):
            self.neighbours[hub].transfers.offer(item)
            item = item.frame
        if isinstance(item, bytes):
            self.neighbours[hub].session.post(item)
            self.stirred.add(hub)
        else:
            self.post(hub, FrameKind.CONTROL, encode_message(0, item))

    def post(self, hub: str, kind: FrameKind, *payload: Buffer) -> None:
        """Put a frame that is about no channel into the outbox of a hub."""
        self.neighbours[hub].session.post(b"".join(encode_frame(kind, payload)))
        self.stirred.add(hub)
