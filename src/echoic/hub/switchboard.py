"""The concentrator among sockets: links gained and lost; frames in, frames out.

`channels.Concentrator` decides, under one lock; this module tells it what happened and does what it wants. The lock is
never held while anything is waited for: sends are put into outboxes under it, written after it.
"""

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from echoic.channels import (
    REPLY_BYTES,
    Admission,
    ArrivalLane,
    Audited,
    Call,
    CallLane,
    Compile,
    Concentrator,
    Consult,
    Delivery,
    Derivation,
    Dial,
    Dismiss,
    Drain,
    Effect,
    Ended,
    Forgotten,
    Greeting,
    Large,
    Member,
    Message,
    Missed,
    Modulation,
    Policy,
    Refused,
    Runner,
    Share,
    SourceRun,
    Troubled,
    congested,
    decode_reply,
    hub_id,
    keep_large,
    note_room,
    report_trouble,
    send_share,
    submit_runs,
)
from echoic.errors import ClosedError, EchoicError, UnreachableError
from echoic.formats import Format
from echoic.hub.answers import READING, Request, answer_of, reply_to
from echoic.hub.compiling import Compiler
from echoic.hub.deliveries import Deliveries
from echoic.hub.diallers import Diallers
from echoic.hub.hello import hello_of
from echoic.hub.large_storage import LargeStorage
from echoic.hub.link import Link, LoneWay
from echoic.hub.proving import Proofs
from echoic.hub.reception import Reception
from echoic.hub.room import Room, hindered, hindered_plainly, makes_room_itself
from echoic.hub.shared_objects import SharedObjects
from echoic.links import Connection, Identity, Listener, format_address, parse_address
from echoic.wire import Batch, Frame, FrameReader

if TYPE_CHECKING:
    from echoic.engines.embedded import EmbeddedEngine
    from echoic.hub.endpoints import Endpoints
    from echoic.hub.sink import Sink

__all__ = ["GIVEN_UP", "Switchboard"]

log: Final = logging.getLogger("echoic.hub")
GIVEN_UP: Final = "the link with %s is given up: %s"

M = TypeVar("M")


class Switchboard:
    """A concentrator, its listener and its links."""

    def __init__(
        self,
        listen: str,
        advertise: str,
        identity: Identity | None,
        name: str,
        deliveries: Deliveries,
        policy: Policy | None = None,
        storage: LargeStorage | None = None,
        admission: Admission | None = None,
    ) -> None:
        """Listen, and tell others to come to the host `advertise`, if that is not "".

        Raises:
            AddressError: This is not an address.
            UnreachableError: It cannot be listened at.
        """
        listener = Listener(listen, identity)
        port = parse_address(listener.address)[1]
        self.address: Final = format_address(advertise, port) if advertise else listener.address
        self.storage: Final = storage or LargeStorage()
        self.core: Final = Concentrator(
            hub_id(secrets.token_hex(8), admission.who if admission is not None else ""),
            self.address,
            name,
            policy=policy,
            rules=self.storage.rules,
            storage=self.storage,
            admission=admission,
        )
        self.core.tick(time.monotonic_ns())  # requests have deadlines, so it must know the time from the start
        self.lock: Final = threading.Lock()
        self.closed = False
        self._room = Room(self.lock)
        self._compiler = Compiler(self)
        self.shared_objects: Final = SharedObjects(self)
        self._links: dict[str, Link] = {}
        self.groups: Final[dict[str, EmbeddedEngine]] = {}
        """The groups that were joined here, by name: their members connect to this hub's address."""
        self.proofs: Final = Proofs()
        self._deliveries = deliveries
        self._reception = Reception(listener, identity, hello_of(self.core), self)
        self._diallers = Diallers(self._reception.dial)

    def do(self, action: Callable[[Concentrator], M]) -> M:
        """Let the concentrator do something, then do what it wants."""
        with self.lock:
            result = action(self.core)
            todo = self._settle()
        for act in todo:
            act()
        return result

    def submit(self, member: Member, source: int, batch: Batch, *, wait: bool = True) -> bool | None:
        """Send events, when every sink that wants all of them has room; tell whether that is so.

        None, and nothing done, when something is derived from them by now.

        Args:
            member: The channel.
            source: Whose events they are.
            batch: The events.
            wait: Wait for room, and write the links. Else somebody will call `pump_all`.

        Raises:
            ClosedError: The hub was closed while waiting.
            EncodeError, LimitExceededError: They are too large for somebody, or there is no room for them.
        """
        large = keep_large(self.core, member, batch)
        with self.lock:
            if not self._await_room(partial(hindered_plainly, self.core), member, wait=wait):
                return False
            if member.derivations:
                return None
            self.core.submit(member, source, batch, large)
            todo = self._settle() if wait else ()
        for act in todo:
            act()
        return True

    def begin_deriving(self, member: Member, *, wait: bool) -> bool:
        """Wait until there is room for events and what is derived from them, if that is wanted; tell whether there is.

        Until `submit_shares`, which must follow, nobody goes over to another channel.

        Raises:
            ClosedError: The hub was closed while waiting.
        """
        core = self.core
        with self.lock:
            if not self._await_room(partial(hindered, core), member, wait=wait):
                return False
            core.quiet.begin(member)
            note_room(core, member)
            return True

    @contextlib.contextmanager
    def calling(self, member: Member) -> Iterator[None]:
        """Let nobody go over to another channel while a synchronous event is sent, and what is derived from it.

        Raises:
            ClosedError: The hub was closed while waiting.
        """
        with self.lock:
            self._await_room(self.core.quiet.paused, member, wait=True)
            self.core.quiet.begin(member)
        try:
            yield
        finally:
            self.do(lambda core: core.quiet.end(member))

    def submit_shares(
        self,
        member: Member,
        source: int,
        batch: Batch | None,
        shares: Sequence[Share],
        *,
        pump: bool,
        large: Large | None = None,
    ) -> list[int]:
        """Send events, and what was derived from them; return the number of the first event of each share.

        Args:
            member: The channel.
            source: Whose events they are.
            batch: The events, None if modulators have sent something by themselves.
            shares: What was derived.
            pump: Write the links. Else somebody will call `pump_all`.
            large: The events, if `keep_large` has put them into the storage.
        """
        with self.lock:
            try:
                if batch is not None:
                    self.core.submit(member, source, batch, large)
                firsts = [send_share(self.core, share) for share in shares]
                report_trouble(self.core, member)
            finally:
                self.core.quiet.end(member)
            todo = self._settle() if pump else ()
        for act in todo:
            act()
        return firsts

    def call_share(self, share: Share) -> tuple[int, tuple[int, Call] | None]:
        """Send what was derived from a synchronous event; return its number, and what will hold the answers."""
        member = share.member
        with self.lock:
            first = send_share(self.core, msgspec.structs.replace(share, remote=False))
        return first, self.call(member, share.source, share.batch) if share.remote else None

    def report_trouble(self, member: Member) -> None:
        """Tell those who listen what is wrong with what is derived from a channel."""
        self.do(lambda core: report_trouble(core, member))

    def _await_room(self, full: Callable[[Member], bool], member: Member, *, wait: bool) -> bool:
        """Wait until there is room, if that is wanted; tell whether there is. The lock is held."""
        while full(member):
            if not wait:
                return False
            if self.closed:
                raise ClosedError("the hub was closed while events waited for room")
            if makes_room_itself(self, member):
                break
            self._room.wait(partial(full, member))
        return True

    def submit_runs(self, runs: Sequence[SourceRun], batch: Batch) -> bool:
        """Send a batch as the next events of several sources, for `pump_all` to write; False when that cannot be."""
        with self.lock:
            return submit_runs(self.core, runs, batch)

    def blocked(self, member: Member) -> bool:
        """Whether a sink that wants every event has no room for more."""
        with self.lock:
            return congested(self.core, member)

    def pass_over(self, member: Member, source: int, count: int, derivations: tuple[Derivation, ...] = ()) -> bool:
        """Count events that no other hub wants; False, and nothing done, when one does by now.

        Args:
            member: The channel.
            source: Whose events they are.
            count: How many.
            derivations: Those that have rejected them.
        """
        with self.lock:
            if member.fanout.targets or member.keepings or member.derivations != derivations:
                return False
            if self.core.quiet.paused(member):
                return False
            member.pass_over(source, count)
            return True

    def call(self, member: Member, source: int, batch: Batch) -> tuple[int, Call]:
        """Send a synchronous event.

        Raises:
            EncodeError, LimitExceededError: It is too large for somebody, or there is no room for it.
        """
        large = keep_large(self.core, member, batch)
        with self.lock:
            number, call = self.core.call(member, source, batch, large)
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
                link.open_lane((lane, sink, decode))

    def close_arrivals(self) -> None:
        """Take synchronous events the long way: the sinks of a channel are about to change."""
        with self.lock:
            for link in self._links.values():
                link.lanes.clear()

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
        again = isinstance(message, READING)
        return self.wait_for(address, lambda core, answer: core.ask(address, message, answer), expected, again=again)

    def wait_for(self, address: str, request: Request, expected: type[M], *, again: bool = False) -> M:
        """Make a request that the hub at an address must answer, `again` if its link begins afresh; return the reply.

        Raises:
            EchoicError: As `ask` does.
        """
        if self.closed:
            raise ClosedError("the hub was closed")
        if any(link.reads_here for link in self.links_at(address)):
            raise UnreachableError(
                f"a handler asks the hub at {address}, whose answer only its own thread could read; "
                "subscribe with thread=True"
            )
        return answer_of(reply_to(request, self.do, again=again), expected)

    def tick(self) -> None:
        """Let time pass."""
        self.storage.settle()
        self.do(lambda core: core.tick(time.monotonic_ns()))

    def pump_all(self) -> None:
        """Write what has been put into outboxes without being written."""
        self.do(lambda _: None)

    def busy(self, member: Member) -> bool:
        """Whether a link that the channel's events take is clogged, so that they may as well gather."""
        links = self._links
        return any((link := links.get(hub)) is not None and link.is_clogged for hub in member.fanout.targets)

    def written(self) -> bool:
        """Whether all frames have been handed to the network, and large events fetched."""
        known = [link.neighbour for link in self._links.values() if link.connection]
        return not any(neighbour.session.outbox or neighbour.transfers.departing for neighbour in known)

    def announced(self, address: str) -> str:
        """Return what the hub that was found at an address gives as its own."""
        return next((link.neighbour.address for link in self.links_at(address)), address)

    @property
    def link_count(self) -> int:
        """How many links there are."""
        return len(self._links)

    def link_to(self, hub: str) -> Link | None:
        """Return the link to a hub, if there is one."""
        return self._links.get(hub)

    def links(self) -> list[Link]:
        """Return the links there are."""
        return list(self._links.values())

    def links_at(self, address: str) -> list[Link]:
        """Return the links to the hubs that stand at an address, without asking all: there may be thousands."""
        with self.lock:
            return [self._links[one.id] for one in self.core.neighbourhood.at(address) if one.id in self._links]

    def close(self) -> None:
        """Close the listener and all connections."""
        self.closed = True
        self._compiler.close()
        self._reception.close()
        for link in self.links():
            link.close()
        with self.lock:
            self.core.end()
        self.storage.settle()

    def arrived(self, link: Link, frame: Frame) -> None:
        """Take a frame of a neighbour, and whatever has waited for it."""
        transfers = link.neighbour.transfers
        if transfers.ripe:  # of before, when whoever took it was interrupted
            self._take_ripe(link)
        self._take(link, frame, self.core.receive)
        if transfers.ripe:
            self._take_ripe(link)

    def _take_ripe(self, link: Link) -> None:
        while True:
            with self.lock:
                ripened = link.neighbour.transfers.next_ripe()
            if ripened is None:
                return
            self._take(link, ripened(), self.core.take)  # a large event is put together outside of the lock

    def _take(self, link: Link, frame: Frame, take: Callable[[str, Frame], Sequence[Delivery]]) -> None:
        with self.lock:
            if self._links.get(link.hub) is not link:
                return  # it was given up, and what is left of it must not be taken for what comes afresh
            try:
                deliveries = take(link.hub, frame)
            except EchoicError as error:
                log.warning("%s broke a rule and is given up: %s", link.neighbour.address, error)
                self.core.gone(link.hub, f"it broke a rule: {error}")
                deliveries = ()
            todo = self._settle()
            self._room.look()
        for act in todo:
            act()
        if deliveries:
            self._deliver(deliveries)

    def called(self, link: Link, way: LoneWay, data: bytes) -> int:
        """Count a lone synchronous event as arrived; return its call, 0 when it is not one."""
        with self.lock:  # under which ways are closed: sinks that have come meanwhile must not be left out
            return way[0].take(data) if link.lanes.get(way[0].key) is way and self._links.get(link.hub) is link else 0

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
        if core.sharing.changed:
            todo.append(self.shared_objects.take_changed())
        if core.stirred:
            links = self._links
            todo += [links[hub].pump for hub in core.stirred if hub in links]
            core.stirred.clear()
        self._room.look()
        return todo

    def _act_of(self, effect: Effect) -> Callable[[], None] | None:
        match effect:
            case Dial(address):
                return partial(self._diallers.add, address)
            case Forgotten(hub, reason):
                self._room.wake()
                link = self._links.pop(hub, None)
                return partial(_part, link, reason) if link is not None else None
            case Audited():
                return partial(self._deliveries.audited, effect)
            case Missed():
                return partial(self._deliveries.missed, effect)
            case Ended():
                return partial(self._deliveries.ended, effect)
            case Troubled():
                return partial(self._deliveries.troubled, effect)
            case Compile(derivation):
                return self._compiler.add(derivation)
            case Dismiss(runner):
                return runner.close
            case Consult():
                return partial(self._deliveries.consult, effect)
            case Drain(modulation, then):
                return partial(self._deliveries.drain, modulation, then)

    def prepare(self, modulation: Modulation) -> Runner | Refused:
        """Return what runs a modulator in this hub, or why that cannot be."""
        return self._deliveries.prepare(modulation)

    def ends_of(self, channel: str) -> "Endpoints | None":
        """Return the ends of a channel in this hub."""
        return self._deliveries.ends_of(channel)

    def adopt(self, connection: Connection, greeting: Greeting, reader: FrameReader, early: list[Frame]) -> None:
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


def _part(link: Link, reason: str) -> None:
    """Close a link that was given up. No lock is held: whoever reads the log may ask this hub."""
    log.info(GIVEN_UP, link.neighbour.address, reason)
    link.close()
