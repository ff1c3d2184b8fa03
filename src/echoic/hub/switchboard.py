"""The concentrator among sockets: connections made, accepted, greeted, lost; frames in, frames out.

`channels.Concentrator` decides, under one lock; this module tells it what happened and does what it wants. The lock is
never held while anything is waited for: sends are put into outboxes under it, written after it.
"""

import contextlib
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from echoic.channels import (
    REPLY_BYTES,
    ArrivalLane,
    Call,
    CallLane,
    Concentrator,
    Delivery,
    Dial,
    Effect,
    Ended,
    Forgotten,
    Greeting,
    Member,
    Message,
    Missed,
    Refused,
    SourceRun,
    decode_reply,
    submit_runs,
)
from echoic.errors import (
    AddressError,
    ChannelExistsError,
    ChannelNotFoundError,
    ClosedError,
    EchoicError,
    RefusedError,
    UnreachableError,
)
from echoic.formats import Format
from echoic.hub.hello import HELLO_SECONDS, greet
from echoic.hub.link import Link, LoneWay
from echoic.links import Connection, Identity, Listener, dial, format_address, parse_address
from echoic.wire import Batch, Frame, FrameReader, Hello
from echoic.wire.frames import PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX_UNAUTHENTICATED

if TYPE_CHECKING:
    from echoic.hub.sink import Sink

__all__ = ["Deliveries", "Switchboard"]

REQUEST_SECONDS: Final = 15.0
SETTLED_NS: Final = 2_000_000_000
CROSSING_SECONDS: Final = (0.02, 0.1, 0.5, 1.0, 0.0)  # the last try is the last
STRANGERS_MAX: Final = 64
ACCEPT_MILLISECONDS: Final = 200
ROOM_SECONDS: Final = 0.2
NAMED_ERRORS: Final = {
    kind.__name__: kind for kind in (AddressError, ChannelExistsError, ChannelNotFoundError, UnreachableError)
}
log: Final = logging.getLogger("echoic.hub")

M = TypeVar("M")


class Deliveries(Protocol):
    """Who takes what arrives."""

    def deliver(self, delivery: Delivery) -> dict[str, str] | None:
        """Hand events to the sinks of a channel; return who failed, None when some are not done with them yet."""

    def missed(self, missed: Missed) -> None:
        """Tell the sinks of a channel what will not arrive."""

    def ended(self, ended: Ended) -> None:
        """Tell the sinks of a channel that they are sent no more."""

    def clogged(self, link: Link) -> None:
        """Go on with a link when it can be written again."""


class Switchboard:
    """A concentrator, its listener and its links."""

    def __init__(
        self, listen: str, advertise: str, identity: Identity | None, name: str, deliveries: Deliveries
    ) -> None:
        """Listen, and tell others to come to the host `advertise`, if that is not "".

        Raises:
            AddressError: This is not an address.
            UnreachableError: It cannot be listened at.
        """
        self._listener = Listener(listen, identity)
        self._identity = identity
        port = parse_address(self._listener.address)[1]
        self.address: Final = format_address(advertise, port) if advertise else self._listener.address
        self.core: Final = Concentrator(secrets.token_hex(8), self.address, name)
        self.core.tick(time.monotonic_ns())  # requests have deadlines, so it must know the time from the start
        self.lock: Final = threading.Lock()
        self.closed = False
        self._room = threading.Condition(self.lock)
        self._waiting_for_room = 0
        self._links: dict[str, Link] = {}
        self._dialling: list[str] = []
        self._answering: list[str] = []
        self._deliveries = deliveries
        self._hello = Hello(name=name, hub=self.core.id, address=self.address)
        self._strangers: deque[Connection] = deque()
        threading.Thread(target=self._accept_all, name="echoic-accept", daemon=True).start()

    def do(self, action: Callable[[Concentrator], M]) -> M:
        """Let the concentrator do something, then do what it wants."""
        with self.lock:
            result = action(self.core)
            todo = self._settle()
        for act in todo:
            act()
        return result

    def submit(self, member: Member, source: int, batch: Batch, *, wait: bool = True) -> bool:
        """Send events, when every sink that wants all of them has room; tell whether that is so.

        Args:
            member: The channel.
            source: Whose events they are.
            batch: The events.
            wait: Wait for room, and write the links. Else somebody will call `pump_all`.

        Raises:
            ClosedError: The hub was closed while waiting.
        """
        core = self.core
        with self.lock:
            while core.blocked(member):
                if not wait:
                    return False
                if self.closed:
                    raise ClosedError("the hub was closed while events waited for room")
                if self._makes_room_itself(member):
                    break
                self._waiting_for_room += 1
                self._room.wait(ROOM_SECONDS)
                self._waiting_for_room -= 1
            core.submit(member, source, batch)
            todo = self._settle() if wait else ()
        for act in todo:
            act()
        return True

    def _makes_room_itself(self, member: Member) -> bool:
        """Whether waiting for room would be for ever: this thread is in a handler of the link by which it is granted.

        Such events pass, as messages do; a peer that does not take them in the end is given up (`Session.overrun`).
        """
        for hub, target in member.fanout.targets.items():
            link = self._links.get(hub)
            if link is not None and link.reads_here and (target.credit <= 0 or link.neighbour.full):
                return True
        return False

    def submit_runs(self, runs: Sequence[SourceRun], batch: Batch) -> bool:
        """Send a batch as the next events of several sources, for `pump_all` to write; False when that cannot be."""
        with self.lock:
            return submit_runs(self.core, runs, batch)

    def blocked(self, member: Member) -> bool:
        """Whether a sink that wants every event has no room for more."""
        with self.lock:
            return self.core.blocked(member)

    def pass_over(self, member: Member, source: int, count: int) -> None:
        """Count events that no other hub wants."""
        with self.lock:
            member.pass_over(source, count)

    def call(self, member: Member, source: int, batch: Batch) -> tuple[int, Call]:
        """Send a synchronous event."""
        with self.lock:
            number, call = self.core.call(member, source, batch)
            links = [self._links[hub] for hub in call.waiting]
            todo = self._settle()
        for link in links:
            link.pump_express()
        for act in todo:
            act()
        return number, call

    def open_lane(self, member: Member, source: int, format: Format) -> tuple[CallLane, list[Link]] | None:
        """Return a lane for synchronous events of a source and the links it takes, if one can be used now."""
        with self.lock:
            lane = CallLane.open(member, source, format, self.core.neighbours)
            return (lane, [self._links[hub] for hub in lane.hubs]) if lane is not None else None

    def call_express(self, lane: CallLane, record: bytes) -> tuple[int, Call] | None:
        """Post a synchronous event on a lane, for the caller to pump; None when that cannot be used any more."""
        core = self.core
        with self.lock:
            number = next(core.call_numbers)
            call = lane.post(record, number)
            if call is None:
                return None
            core.calls[number] = call
        return number, call

    def open_arrivals(self, delivery: Delivery, sink: "Sink", decode: Callable[[bytes], object]) -> None:
        """Take the synchronous events that follow one the short way, until the channel's sinks change."""
        with self.lock:
            link = self._links.get(delivery.hub)
            if link is not None:
                lane = ArrivalLane(link.neighbour, delivery.member, delivery.number, delivery.batch.format)
                link.lane = (lane, sink, decode)

    def close_arrivals(self) -> None:
        """Take synchronous events the long way: the sinks of a channel are about to change."""
        with self.lock:
            for link in self._links.values():
                link.lane = None

    def forget_call(self, number: int) -> None:
        """Wait no longer for the answers to a synchronous event."""
        with self.lock:
            self.core.forget_call(number)

    def answers(self, call: Call, deadline_ns: int) -> None:
        """Wait until all hubs have answered a call, or it is too late."""
        waiting = call.waiting
        while waiting:
            hub = next(iter(tuple(waiting)), "")
            link = self._links.get(hub)
            if link is None:
                time.sleep(0)  # it is being given up, which ends the waiting for it
            elif not link.answer(call, deadline_ns):
                return
            if time.monotonic_ns() >= deadline_ns:
                return

    def waits_for_itself(self, member: Member) -> str:
        """Return the hub that could not answer, because this thread is in one of its handlers; "" if there is none."""
        for hub in member.fanout.targets:
            link = self._links.get(hub)
            if link is not None and link.reads_here:
                return link.neighbour.address
        return ""

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Hand events over, and tell the sender of those that were handled at once."""
        deliver = self._deliveries.deliver
        done = [(delivery, failures) for delivery in deliveries if (failures := deliver(delivery)) is not None]
        if done:
            self.finish(done)

    def finish(self, done: Sequence[tuple[Delivery, Mapping[str, str]]]) -> None:
        """Tell the senders of events that they were handled, and who failed at them."""

        def tell(core: Concentrator) -> None:
            for delivery, failures in done:
                if delivery.call:
                    core.reply(delivery, failures)
                else:
                    core.handled(delivery)

        self.do(tell)

    def ask(self, address: str, message: Message, expected: type[M]) -> M:
        """Send a request to the hub at an address, and return its reply.

        Raises:
            AddressError, ChannelExistsError, ChannelNotFoundError, RefusedError: The peer did not do it, and says why.
            UnreachableError: It does not answer.
        """
        return self.wait_for(address, lambda core, answer: core.ask(address, message, answer), expected)

    def wait_for(
        self, address: str, request: Callable[[Concentrator, Callable[[Message], None]], None], expected: type[M]
    ) -> M:
        """Make a request that the hub at an address must answer, and return the reply.

        Raises:
            EchoicError: As `ask` does.
        """
        if self.closed:
            raise ClosedError("the hub was closed")
        if any(link.reads_here and link.neighbour.stands_at(address) for link in self.links()):
            raise UnreachableError(
                f"a handler asks the hub at {address}, whose answer only its own thread could read; "
                "subscribe with thread=True"
            )
        replies: list[Message] = []
        answered = threading.Event()

        def answer(reply: Message) -> None:
            replies.append(reply)
            answered.set()

        self.do(lambda core: request(core, answer))
        if not answered.wait(REQUEST_SECONDS):
            raise UnreachableError(f"no answer within {REQUEST_SECONDS:.0f} s")
        reply = replies[0]
        if isinstance(reply, Refused):
            raise NAMED_ERRORS.get(reply.kind, RefusedError)(reply.reason)
        if not isinstance(reply, expected):
            raise RefusedError(f"expected {expected.__name__}, got {type(reply).__name__}")
        return reply

    def tick(self) -> None:
        """Let time pass."""
        self.do(lambda core: core.tick(time.monotonic_ns()))

    def pump_all(self) -> None:
        """Write what has been put into outboxes without being written."""
        self.do(lambda _: None)

    def busy(self, member: Member) -> bool:
        """Whether a link that the channel's events take is clogged, so that they may as well gather."""
        links = self._links
        return any((link := links.get(hub)) is not None and link.is_clogged for hub in member.fanout.targets)

    def written(self) -> bool:
        """Whether all frames have been handed to the network."""
        return not any(link.neighbour.session.outbox for link in self._links.values() if link.connection)

    def announced(self, address: str) -> str:
        """Return what the hub that was found at an address gives as its own."""
        found = (link.neighbour for link in self.links() if link.neighbour.stands_at(address))
        return next((neighbour.address for neighbour in found), address)

    @property
    def link_count(self) -> int:
        """How many links there are."""
        return len(self._links)

    def links(self) -> list[Link]:
        """Return the links there are."""
        return list(self._links.values())

    def close(self) -> None:
        """Close the listener and all connections."""
        self.closed = True
        self._listener.close()
        for link in self.links():
            link.close()

    def arrived(self, link: Link, frame: Frame) -> None:
        """Take a frame of a neighbour."""
        with self.lock:
            if self._links.get(link.hub) is not link:
                return  # it was given up, and what is left of it must not be taken for what comes afresh
            try:
                deliveries = self.core.receive(link.hub, frame)
            except EchoicError as error:
                log.warning("%s broke a rule and is given up: %s", link.neighbour.address, error)
                self.core.gone(link.hub, f"it broke a rule: {error}")
                deliveries = ()
            todo = self._settle()
            if self._waiting_for_room:
                self._room.notify_all()
        for act in todo:
            act()
        if deliveries:
            self._deliver(deliveries)

    def called(self, link: Link, way: LoneWay, data: bytes) -> int:
        """Count a lone synchronous event as arrived; return its call, 0 when it is not one."""
        with self.lock:  # under which ways are closed: sinks that have come meanwhile must not be left out
            return way[0].take(data) if link.lane is way and self._links.get(link.hub) is link else 0

    def reply(self, lane: ArrivalLane, call: int, failures: Mapping[str, str] | None) -> None:
        """Answer a lone synchronous event."""
        with self.lock:
            lane.reply(call, failures)

    def answered(self, link: Link, data: bytes) -> bool:
        """Take a lone answer; False, and nothing done, when it is not one."""
        number = decode_reply(data)
        if not number:
            return False
        neighbour, calls = link.neighbour, self.core.calls
        with self.lock:
            if neighbour.session.receive(REPLY_BYTES):
                self.core.tell(neighbour)
            call = calls.get(number)
            if call is not None:
                call.waiting.pop(link.hub, None)
                if not call.waiting:
                    calls.pop(number, None)
        return True

    def broke(self, link: Link) -> None:
        """Learn that a connection broke."""

        def broken(core: Concentrator) -> None:
            if self._links.get(link.hub) is link and link.connection is None:
                core.broken(link.hub, time.monotonic_ns())

        if not self.closed:
            self.do(broken)

    def clogged(self, link: Link) -> None:
        """Learn that a connection takes no more for the moment."""
        self._deliveries.clogged(link)

    def _settle(self) -> list[Callable[[], None]]:
        """Return what must be done now that the concentrator has decided, once the lock is released. It is held."""
        core, todo = self.core, []
        if core.effects:
            effects = core.effects[:]
            core.effects.clear()
            todo += [act for effect in effects if (act := self._act_of(effect)) is not None]
        if core.stirred:
            links = self._links
            todo += [links[hub].pump for hub in core.stirred if hub in links]
            core.stirred.clear()
        return todo

    def _act_of(self, effect: Effect) -> Callable[[], None] | None:
        match effect:
            case Dial(address):
                return threading.Thread(target=self._dial, args=(address,), name="echoic-dial", daemon=True).start
            case Forgotten(hub):
                self._room.notify_all()
                link = self._links.pop(hub, None)
                return link.close if link is not None else None
            case Missed():
                return partial(self._deliveries.missed, effect)
            case Ended():
                return partial(self._deliveries.ended, effect)

    def _accept_all(self) -> None:
        while not self.closed:
            connection = self._listener.accept(ACCEPT_MILLISECONDS)
            if connection is None:
                continue
            self._strangers.append(connection)
            if len(self._strangers) > STRANGERS_MAX:
                self._strangers.popleft().close()  # too many that have not said who they are: who came last may go on
            greeting = threading.Thread(target=self._welcome, args=(connection,), name="echoic-greet", daemon=True)
            try:
                greeting.start()
            except RuntimeError as error:  # the system has no more threads, perhaps for a moment
                log.warning("cannot greet %s: %s", connection.peer, error)
                self._strangers.remove(connection)
                connection.close()

    def _welcome(self, connection: Connection) -> None:
        """Greet a stranger; one that does not know how is sent away."""
        try:
            connection.handshake(HELLO_SECONDS)
            self._meet(connection)
        except (EchoicError, OSError) as error:
            log.info("refused a connection from %s: %s", connection.peer, error)
            connection.close()
        finally:
            with contextlib.suppress(ValueError):  # it was sent away
                self._strangers.remove(connection)

    def _dial(self, address: str) -> None:
        """Connect to a hub, and tell the concentrator how it went."""
        self._dialling.append(address)
        try:
            self._dial_patiently(address)
        except (EchoicError, OSError) as error:
            refused = isinstance(error.__cause__, ConnectionRefusedError | FileNotFoundError)
            reason = str(error)
            self.do(lambda core: core.unreachable(address, reason, refused=refused))
        finally:
            self._dialling.remove(address)

    def _dial_patiently(self, address: str) -> None:
        """Connect to a hub, which may hang up because it dials this one at the same moment.

        Raises:
            EchoicError: There is no hub that can be spoken with.
            OSError: The connection broke.
        """
        for pause in CROSSING_SECONDS:
            if self.closed:
                return
            started = time.monotonic()
            connection = dial(address, self._identity)
            try:
                self._meet(connection, dialled=address)
                return
            except (EchoicError, OSError) as error:
                connection.close()
                hung_up = isinstance(error, UnreachableError | OSError) and time.monotonic() - started < 1
                if not hung_up or not pause:
                    raise
            time.sleep(pause)
            if any(link.connection and link.neighbour.stands_at(address) for link in self.links()):
                return  # the other was faster

    def _meet(self, connection: Connection, dialled: str = "") -> None:
        """Greet a peer, and go on with its link.

        Raises:
            EchoicError: It is not a peer that can be spoken with.
            OSError: The connection broke.
        """
        answering: list[str] = []

        def known(hub: str) -> tuple[int, int]:
            if not dialled and not answering:
                self._give_way(greeting.peer)
                answering.append(hub)
                self._answering.append(hub)
            return self._known(hub, dialled=bool(dialled))

        greeting = Greeting(
            self._hello, known, dialled=bool(dialled), fresh=secrets.randbelow(2**63 - 1) + 1, address=dialled
        )
        reader = FrameReader(payload_bytes_max=PAYLOAD_BYTES_MAX_UNAUTHENTICATED)
        try:
            early = greet(connection, greeting, reader)
            reader.payload_bytes_max = PAYLOAD_BYTES_MAX
            self._adopt(connection, greeting, reader, early)
        except (EchoicError, OSError):
            link = self._links.get(greeting.peer.hub) if greeting.peer is not None else None
            if link is not None:
                self.broke(link)  # it may have been frozen for this greeting
                self.do(lambda core: core.linked(link.neighbour, dialled))  # there may be a better connection
            raise
        finally:
            for hub in answering:
                self._answering.remove(hub)

    def _adopt(self, connection: Connection, greeting: Greeting, reader: FrameReader, early: list[Frame]) -> None:
        """Go on with a link over a connection whose greeting is done."""
        hub = greeting.peer.hub if greeting.peer is not None else ""
        while True:
            existing = self._links.get(hub)
            with existing.writing if existing is not None else contextlib.nullcontext(), self.lock:
                if self._links.get(hub) is not existing:
                    continue  # somebody was faster
                neighbour = self.core.meet(greeting)
                todo = self._settle()
                if neighbour is None or self.closed:
                    connection.close()
                    return
                link = self._links.get(hub)
                if link is None:
                    link = self._links[hub] = Link(neighbour, self)
                link.attach(connection, reader, early)
            break
        link.start()
        for act in [*todo, link.pump]:
            act()

    def _give_way(self, peer: Hello | None) -> None:
        """Let one of two hubs that dial each other go on, the one with the smaller id, and the other hang up.

        Whoever has answered a dialler does not end a greeting of its own with it (`_known`), so that never both are
        ended, each with another session.

        Raises:
            UnreachableError: This one goes on.
        """
        if peer is not None and peer.address in self._dialling and self.core.id < peer.hub:
            raise UnreachableError(f"the hub at {peer.address} is being dialled by this one")

    def _known(self, hub: str, *, dialled: bool) -> tuple[int, int]:
        """Return the session with a hub and how many frames have arrived in it, after which no more do.

        Raises:
            UnreachableError: There is a better connection, or what has arrived cannot be counted yet.
        """
        if dialled and hub in self._answering:
            raise UnreachableError("it dials this hub at the same moment")
        with self.lock:
            neighbour, link = self.core.neighbours.get(hub), self._links.get(hub)
        if neighbour is not None and link is not None:
            lost = not dialled and time.monotonic_ns() - link.attached_ns > SETTLED_NS
            if link.connection is not None and not lost:
                raise UnreachableError(f"the hub at {neighbour.address} is connected already")
            if not link.freeze(HELLO_SECONDS):
                raise UnreachableError(f"a handler of events from {neighbour.address} hangs")
            if lost:
                self.broke(link)  # a peer that dials again some time later has lost the connection
        with self.lock:
            return self.core.known(hub)
