"""The embedded engine: the ordering core among sockets and disks. No daemon; members are processes with hubs.

    group's loop ----- send(pack) ----> Ordering <---- messages of members ---- connections made by others
                                           |
              1. writes -> LogFile, one fdatasync for all of a turn (group commit)
              2. messages -> connections made by this member
              3. events -> the group

Everything happens in the thread of the group's loop but dialling, which may take seconds and has threads of its own.
Members have connections of their own beside the links of their hubs, at the same address, with the same TLS: a leader
must be heard within its heartbeat, however many events of channels are under way.

Who may be a member is asked of `Contact.permit`, which knows the rights: before a connection is used, in the thread of
the loop, and again of all connections when the rights have changed (`review`). So there is no moment between the two at
which somebody could slip in.
"""

import logging
import os
import random
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, msgpack, structs

from echoic.engines.embedded.conversation import Incoming, Outgoing
from echoic.engines.embedded.log_file import LogFile
from echoic.errors import DeniedError, EchoicError, JournalError
from echoic.groups.engine import Capabilities, Ended, EngineEvent
from echoic.groups.messages import Introduction, Message, encode_message
from echoic.groups.options import Options
from echoic.groups.ordering import Ordering
from echoic.groups.writes import Ballot, Image
from echoic.links import Connection
from echoic.wire import Frame, FrameKind, FrameReader, Hello, encode_frame, encode_hello

__all__ = ["GROUP_FEATURE", "Contact", "EmbeddedEngine", "Membership", "draw_life"]

GROUP_FEATURE: Final = "group"
"""What a hello names whose connection is not a link, but a member's."""
INCOMING_MAX: Final = 256
CONNECT_NS: Final = 50_000_000
"""How often it is looked at whether there are connections to all members."""
log: Final = logging.getLogger("echoic.groups")


class Contact(Struct, frozen=True):
    """How a member comes by connections with others."""

    dial: Callable[[str], Connection]
    """Connects to an address."""
    permit: Callable[[Connection], None]
    """Raises DeniedError if who is at the other side may not be a member."""


class Membership:
    """Which member of which group this is, and with whom."""

    def __init__(self, group: str, name: str, peers: Mapping[str, str]) -> None:
        self.group: Final = group
        self.name: Final = name
        self.peers: Final = dict(peers)


class EmbeddedEngine:
    """One member of a group that orders messages among its members."""

    def __init__(
        self,
        membership: Membership,
        *,
        options: Options,
        store: LogFile | None,
        contact: Contact,
        wake: Callable[[], None],
        life: int,
        applied_sequence: int = 0,
        beginning: bytes = b"",
    ) -> None:
        """Be a member.

        Args:
            membership: Which one, of which group.
            options: Times and limits.
            store: Where the log is kept; None to keep it in memory.
            contact: Makes connections, and refuses those with whom there may be none.
            wake: Makes the group's loop call `turn`.
            life: Drawn at every start.
            applied_sequence: The last message that the application has.
            beginning: What the group says of itself then.

        Raises:
            EchoicError: What was kept cannot be read.
        """
        now_ns = time.monotonic_ns()
        chance = random.Random(life)  # noqa: S311 - spreads elections, guards nothing
        image = store.image() if store is not None else Image(life | 1, Ballot(0, ""), None, ())
        name = membership.name
        self._ordering = Ordering(
            name,
            life,
            membership.peers,
            image,
            options,
            chance,
            now_ns,
            applied_sequence=applied_sequence,
            beginning=beginning,
        )
        self._name = name
        self._store, self._contact, self._wake = store, contact, wake
        self._durable = store is not None
        self._outgoing: dict[str, Outgoing] = {}
        self._incoming: dict[int, Incoming] = {}
        self._arrived: deque[Callable[[int], None]] = deque()
        self._unmarked = False
        self._proofs = 0
        self._connect_ns = now_ns
        self._ended = ""
        hello = Hello(features=(GROUP_FEATURE,), name=name)
        introduction = msgpack.encode(Introduction(membership.group, name, image.life, membership.peers.get(name, "")))
        self._opening = b"".join(
            [
                *encode_frame(FrameKind.HELLO, [encode_hello(hello)]),
                *encode_frame(FrameKind.GROUP, [introduction]),
            ]
        )

    @property
    def applied_sequence(self) -> int:
        """The last message that the application has."""
        return self._ordering.applied_sequence

    @applied_sequence.setter
    def applied_sequence(self, sequence: int) -> None:
        self._ordering.applied_sequence = sequence

    @property
    def hold(self) -> bool:
        """Whether this member takes no more for the moment: its application does not keep up."""
        return self._ordering.hold

    @hold.setter
    def hold(self, hold: bool) -> None:
        self._ordering.hold = hold

    @property
    def capabilities(self) -> Capabilities:
        """Everything; and with a log on a disk, that it lasts."""
        return Capabilities(durable=self._durable)

    def descriptors(self) -> Mapping[int, int]:
        """Return the connections to wait for."""
        waited = dict.fromkeys(self._incoming, select.POLLIN)
        for outgoing in self._outgoing.values():
            if outgoing.connection is not None:
                waited[outgoing.connection.fileno()] = outgoing.interest
        return waited

    def wake_ns(self) -> int:
        """Return when a heartbeat, an election or a call is due."""
        return 0 if self._arrived else min(self._ordering.wake_ns(), self._connect_ns)

    def send(self, payload: bytes, now_ns: int) -> None:  # noqa: ARG002 - others need the time
        """Multicast a pack."""
        self._ordering.submit(payload)

    def turn(self, ready: Sequence[tuple[int, int]], now_ns: int) -> list[EngineEvent]:
        """Read, decide, keep, send; return what the group must learn."""
        if self._ended:
            return []
        while self._arrived:
            self._arrived.popleft()(now_ns)
        self._hear(ready, now_ns)
        ordering = self._ordering
        if now_ns >= ordering.wake_ns():
            ordering.tick(now_ns)
        if now_ns >= self._connect_ns:
            self._connect(now_ns)
        ordering.flush(now_ns)
        try:
            self._keep()
        except JournalError as error:
            self._ended = str(error)
            self._hang_up()
            return [Ended(f"the log of this member cannot be kept: {error}")]
        self._speak(now_ns)
        return ordering.take_events()

    def adopt(
        self, introduction: Introduction, connection: Connection, reader: FrameReader, early: list[Frame]
    ) -> None:
        """Listen to a member that has connected to this hub; called by any thread."""

        def listen(now_ns: int) -> None:
            if self._ended or len(self._incoming) >= INCOMING_MAX or connection.fileno() < 0:
                connection.close()
                return
            incoming = Incoming(introduction.name, introduction.home, connection, reader)
            try:
                self._contact.permit(connection)
                self._ordering.learn_address(introduction.name, introduction.home, introduction.address)
                heard = incoming.read(early)
            except EchoicError as error:
                log.warning("%s broke a rule and is hung up: %s", introduction.name, error)
                connection.close()
                return
            if self._receive(incoming, heard, now_ns) and (not connection.holds or self._listen(incoming, now_ns)):
                self._replace(incoming)
                self._incoming[connection.fileno()] = incoming
                if introduction.name in self._outgoing:
                    self._outgoing[introduction.name].hurry(now_ns)
            else:
                connection.close()

        self._arrived.append(listen)
        self._wake()
        if self._ended:
            connection.close()  # the loop has ended, or is about to

    def _replace(self, incoming: Incoming) -> None:
        """Hang up what a member had said before: it speaks on the connection that it made last."""
        for descriptor, other in list(self._incoming.items()):
            if (other.name, other.home) == (incoming.name, incoming.home):
                other.connection.close()
                del self._incoming[descriptor]

    def review(self) -> None:
        """Hang up on who may not be a member any more, and dial who may again; called by any thread."""
        self._arrived.append(self._review)
        self._wake()

    def prove_anew(self) -> None:
        """Have all who have proved who they are do so again, on other connections; called by any thread."""
        self._arrived.append(self._prove_anew)
        self._wake()

    def end_expired(self, now: float) -> None:
        """Hang up on those whose certificates have expired at a time of the Unix clock; called by any thread."""
        if self._ended:
            return  # nobody takes what arrives any more, and this is said twice a second
        self._arrived.append(lambda now_ns: self._end_expired(now, now_ns))
        self._wake()

    def change(self, name: str, address: str, *, admit: bool) -> None:
        """Have a member admitted or expelled; called by any thread, and again until it is so."""
        self._arrived.append(lambda now_ns: self._ordering.change(name, address, admit=admit, now_ns=now_ns))
        self._wake()

    def has_seat(self, name: str) -> bool:
        """Whether a name is one of a member."""
        return self._ordering.has_seat(name)

    def give_state(self, ticket: int, position: int, summary: bytes, chunks: Iterable[bytes]) -> None:
        """Send what stands for everything up to a position to the member that needs it."""
        self._ordering.give_state(ticket, position, summary, chunks, time.monotonic_ns())

    def compact(self, position: int, summary: bytes, chunks: Sequence[bytes] = ()) -> None:
        """Forget everything up to a position."""
        self._ordering.compact(position, summary, chunks)

    def statistics(self) -> Mapping[str, object]:
        """Return how things stand."""
        connected = sorted(name for name, outgoing in self._outgoing.items() if outgoing.connection is not None)
        found: dict[str, object] = {"engine": "embedded", **structs.asdict(self._ordering.statistics())}
        refused = {name: outgoing.refusal for name, outgoing in self._outgoing.items() if outgoing.refusal}
        return found | {"connected": tuple(connected), "refused": refused, "durable": self._durable}

    def close(self) -> None:
        """Take leave, and hang up."""
        if not self._ended:
            self._ended = "closed"
            self._ordering.take_outbox()  # what is not on the disk, after a failure, must not be sent
            now_ns = time.monotonic_ns()
            self._ordering.leave(now_ns)
            self._speak(now_ns)
        self._hang_up()
        while self._arrived:  # connections that came too late are closed
            self._arrived.popleft()(0)

    def _hear(self, ready: Sequence[tuple[int, int]], now_ns: int) -> None:
        for descriptor, _ in ready:
            incoming = self._incoming.get(descriptor)
            if incoming is None:
                self._notice(descriptor, now_ns)
                continue
            if not self._listen(incoming, now_ns):
                incoming.connection.close()
                del self._incoming[descriptor]

    def _listen(self, incoming: Incoming, now_ns: int) -> bool:
        """Give the core what a member says, and what its connection holds beside; False if it is to be hung up."""
        while True:
            messages = incoming.hear()
            if messages is None or not self._receive(incoming, messages, now_ns):
                return False
            if not incoming.connection.holds:
                return True

    def _notice(self, descriptor: int, now_ns: int) -> None:
        """See to a connection that this member has made: it has room again, or has ended."""
        for outgoing in self._outgoing.values():
            if outgoing.connection is not None and outgoing.connection.fileno() == descriptor:
                if outgoing.connection.readable(0):
                    outgoing.hear(now_ns)
                outgoing.flush(now_ns)
                return

    def _review(self, now_ns: int) -> None:
        for descriptor, incoming in list(self._incoming.items()):
            refusal = self._refusal_of(incoming.connection)
            if refusal:
                log.warning("%s is hung up: %s", incoming.name, refusal)
                incoming.connection.close()
                del self._incoming[descriptor]
        for outgoing in self._outgoing.values():
            refusal = self._refusal_of(outgoing.connection) if outgoing.connection is not None else ""
            if refusal:
                outgoing.refused(refusal, now_ns)
            elif outgoing.connection is None:
                outgoing.renew(now_ns)

    def _prove_anew(self, now_ns: int) -> None:
        self._proofs += 1
        for descriptor, incoming in list(self._incoming.items()):
            if incoming.connection.credentials is not None:
                incoming.connection.close()
                del self._incoming[descriptor]
        for outgoing in self._outgoing.values():
            if outgoing.connection is None or outgoing.connection.credentials is not None:
                outgoing.renew(now_ns)

    def _end_expired(self, now: float, now_ns: int) -> None:
        for descriptor, incoming in list(self._incoming.items()):
            if _has_expired(incoming.connection, now):
                log.warning("%s is hung up: its certificate has expired", incoming.name)
                incoming.connection.close()
                del self._incoming[descriptor]
        for outgoing in self._outgoing.values():
            if outgoing.connection is not None and _has_expired(outgoing.connection, now):
                outgoing.renew(now_ns)

    def _refusal_of(self, connection: Connection) -> str:
        """Return why somebody may not be a member, "" if he may."""
        try:
            self._contact.permit(connection)
        except DeniedError as error:
            return str(error)
        return ""

    def _receive(self, incoming: Incoming, messages: list[Message], now_ns: int) -> bool:
        """Give messages to the core; False if one of them breaks a rule."""
        try:
            for message in messages:
                self._ordering.receive(incoming.name, incoming.home, message, now_ns)
        except EchoicError as error:
            log.warning("%s broke a rule and is hung up: %s", incoming.name, error)
            return False
        return True

    def _keep(self) -> None:
        """Put on the disk what the core wants there."""
        writes, store = self._ordering.take_writes(), self._store
        if store is None:
            return
        if writes:
            store.write(writes)
            store.sync()
            self._unmarked = True
        elif self._unmarked:
            store.sync()  # once more at rest, which marks what is there as whole
            self._unmarked = False

    def _speak(self, now_ns: int) -> None:
        spoken: set[str] = set()
        for names, message in self._ordering.take_outbox():
            frame = b"".join(encode_frame(FrameKind.GROUP, [encode_message(message)]))
            for name in names:
                if name in self._outgoing:
                    self._outgoing[name].say(frame)
                    spoken.add(name)
        for name in spoken:
            self._outgoing[name].flush(now_ns)

    def _connect(self, now_ns: int) -> None:
        """Dial the members to whom there is no connection, and those who speak without a seat: they are told so."""
        self._connect_ns = now_ns + CONNECT_NS
        names = {*self._ordering.names(), *(incoming.name for incoming in self._incoming.values())} - {self._name}
        for name in set(self._outgoing) - names:
            self._outgoing.pop(name).close()
        for name in names:
            outgoing = self._outgoing.setdefault(name, Outgoing(name))
            outgoing.meet(self._ordering.addresses_of(name), now_ns)
            outgoing.look(now_ns)
            if (
                outgoing.connection is None
                and not outgoing.dialling
                and outgoing.address
                and now_ns >= outgoing.redial_ns
            ):
                outgoing.dialling = True
                threading.Thread(target=self._call, args=(outgoing,), name="echoic-group-dial", daemon=True).start()

    def _call(self, outgoing: Outgoing) -> None:
        """Dial, in a thread of its own."""
        connection: Connection | None = None
        refusal, proofs = "", self._proofs
        try:
            connection = self._contact.dial(outgoing.address)
        except DeniedError as error:
            refusal = str(error)
        except (EchoicError, OSError) as error:
            log.debug("%s does not answer: %s", outgoing.name, error)

        def done(now_ns: int) -> None:
            outgoing.dialling = False
            if connection is None and not refusal:
                outgoing.failed(now_ns)
            elif connection is None:
                outgoing.refused(refusal, now_ns)
            elif self._ended or outgoing.name not in self._outgoing:
                connection.close()
            elif connection.credentials is not None and proofs != self._proofs:
                connection.close()  # what it has proved was asked before certificates were revoked
                outgoing.renew(now_ns)
            elif unwanted := self._refusal_of(connection):
                connection.close()
                outgoing.refused(unwanted, now_ns)
            else:
                outgoing.attach(connection, self._opening, now_ns)
                outgoing.flush(now_ns)

        self._arrived.append(done)
        if self._ended and connection is not None:
            connection.close()  # the loop has ended, or is about to
        self._wake()

    def _hang_up(self) -> None:
        for outgoing in list(self._outgoing.values()):
            outgoing.close()
        for incoming in list(self._incoming.values()):
            incoming.connection.close()
        self._incoming.clear()
        if self._store is not None:
            self._store.close()
            self._store = None


def _has_expired(connection: Connection, now: float) -> bool:
    return connection.credentials is not None and connection.credentials.expired(now)


def draw_life() -> int:
    """Return a number for a life or a home that nobody has drawn before."""
    return int.from_bytes(os.urandom(6), "little") | 1
