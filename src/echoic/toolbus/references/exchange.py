"""The exchange: where the tools of a process have their large values, and the links to other processes.

    Exchange --- ValueStore         what the tools of this process keep for others
             --- ConstantPool       what they have fetched, as long as somebody has it
             --- members            by (epoch of the bus, number): whose value is here is taken from here
             --- doors              a listener for each (address, identity), opened when it is first needed
             --- links              to each process that was dialled, closed when not used for 30 seconds
             --- requests           what is being fetched, by the number that its chunks have

One for a process, since a value is then fetched once for all tools in it, and two tools in one process hand it over as
it is. Tests have several, to be several processes in one.

Every link has a thread that reads, and never waits for anything else: answers are written as far as they go, the rest
by the writer of the link (`outgoing.py`), and what takes long is done by a few workers. So a peer that is stalled costs
its own link. What waits for a peer has a time limit, which one more thread watches, while there is something to watch.

A stranger must first say something that only a tool of the same bus can know: a GET with the token for the value, or a
PUT with the nonce of a request that we made (`RELAYED`). Until then it is told nothing and may say little.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, Final, Protocol, TypeAlias

from echoic.errors import ClosedError, EchoicError, MalformedFrameError, UnreachableError
from echoic.links import Connection, Identity, dial
from echoic.terms import TermList, Value
from echoic.terms.saf import decode_saf, encode_pieces
from echoic.toolbus.doorkeeper import Doorkeeper
from echoic.toolbus.limits import BusLimits
from echoic.toolbus.protocol import Message, MessageKind
from echoic.toolbus.references.serving import Sending
from echoic.toolbus.references.transfer import VALUE_BYTES_MAX, Link
from echoic.toolbus.references.turnstile import Turnstile
from echoic.toolbus.references.words import (
    Chunk,
    Get,
    Put,
    Refusal,
    decode_chunk,
    decode_get,
    decode_more,
    decode_put,
    decode_refusal,
    encode_refusal,
)
from echoic.toolbus.references.workers import Workers
from echoic.values import ConstantPool, ValueStore, Variable
from echoic.wire.frames import Buffer

__all__ = ["Asking", "Exchange", "Owner"]

LINKS_MAX: Final = 512
REQUESTS_MAX: Final = 16_384
SENDINGS_MAX: Final = 16_384
WORKERS_MAX: Final = 16
DIAL_SECONDS: Final = 3.0
IDLE_NS: Final = 30 * 10**9
SILENT_NS: Final = 60 * 10**9
WATCH_SECONDS: Final = 0.25
REQUEST_BIT: Final = 0x8000_0000
"""Set in all numbers of requests, and in no other transaction, so that the two cannot be mistaken for each other."""
log: Final = logging.getLogger("echoic.toolbus")

Values: TypeAlias = tuple[Value, ...]
Learn: TypeAlias = Callable[[Variable[Value] | None, str, bool], None]
"""Called with a value, or with why there is none and whether somebody else may have more luck."""
WithLink: TypeAlias = Callable[[Link | None, str], None]


class Asking(Protocol):
    """A value that is being fetched. A link of None is the connection to the bus."""

    def answered(self, put: Put, link: Link | None) -> None:
        """Learn that it comes."""

    def arrived(self, chunk: Chunk, link: Link | None) -> None:
        """Take a chunk of it."""

    def refused(self, refusal: Refusal, link: Link | None) -> None:
        """Learn that it does not come."""

    def broke(self, link: Link, reason: str) -> None:
        """Learn that a link is gone."""

    def check(self, now_ns: int) -> None:
        """Look whether it takes too long."""


class Owner(Protocol):
    """A member, as links see it."""

    @property
    def number(self) -> int:
        """Its number at the bus."""

    @property
    def epoch(self) -> int:
        """The run of the bus."""

    def admits(self, get: Get) -> bool:
        """Whether the token of a request is right."""

    def serve(self, get: Get, link: Link) -> None:
        """Send a value over a link."""


class Exchange:
    """The values and links of a process."""

    _of_process: ClassVar["Exchange | None"] = None
    _making: ClassVar = threading.Lock()

    def __init__(self, *, store: ValueStore[Values] | None = None, pool_bytes: int = 0) -> None:
        """Make one without members.

        Args:
            store: Where values are kept; one with the usual limits by default.
            pool_bytes: How many bytes of fetched values are kept although nobody has them any more.
        """
        self.store: Final = store if store is not None else ValueStore(encode=_encode, decode=_decode)
        self.pool: Final[ConstantPool[Value]] = ConstantPool(pool_bytes)
        self.turnstile: Final = Turnstile()
        self.workers: Final = Workers("echoic-exchange-work", WORKERS_MAX, REQUESTS_MAX)
        self._members: dict[tuple[int, int], Owner] = {}
        self._doors: dict[tuple[str, Identity | None], Doorkeeper] = {}
        self._dialled: dict[tuple[str, Identity | None], Link] = {}
        self._links: set[Link] = set()
        self._dialling: dict[tuple[tuple[str, ...], Identity | None], list[WithLink]] = {}
        self._requests: dict[int, Asking] = {}
        self._shared: dict[Hashable, list[Learn]] = {}
        self._sendings: dict[tuple[object, int], Sending] = {}
        self._watching = False
        self._lock = threading.Lock()

    @classmethod
    def of_process(cls) -> "Exchange":
        """Return the one that the tools of this process share."""
        with cls._making:
            if cls._of_process is None:
                cls._of_process = cls()
            return cls._of_process

    def join(self, member: Owner) -> None:
        """Take in a member.

        Raises:
            ClosedError: It is here already.
        """
        with self._lock:
            if self._members.setdefault((member.epoch, member.number), member) is not member:
                raise ClosedError(f"tool {member.number} of epoch {member.epoch} is in this exchange already")

    def leave(self, member: Owner) -> None:
        """Forget a member; with the last one, close doors and links."""
        with self._lock:
            if self._members.get((member.epoch, member.number)) is member:
                del self._members[member.epoch, member.number]
            if self._members:
                return
            doors, links = list(self._doors.values()), list(self._links)
            self._doors.clear()
            self._dialled.clear()
        for door in doors:
            door.close()
        for link in links:
            link.close()

    def find(self, epoch: int, number: int) -> Owner | None:
        """Return a member."""
        return self._members.get((epoch, number))

    def listen(self, address: str, identity: Identity | None) -> str:
        """Return where this process is listening for others who were given an address to listen at.

        Raises:
            AddressError: It is not an address.
            InsecureError: The files of the identity cannot be used.
            UnreachableError: It cannot be listened at.
        """
        with self._lock:
            door = self._doors.get((address, identity))
            if door is None:
                door = Doorkeeper(address, identity, BusLimits(), self._welcome, "echoic-exchange")
                door.start()
                self._doors[address, identity] = door
            return door.address

    def with_link(self, endpoints: Sequence[str], identity: Identity | None, then: WithLink) -> None:
        """Call something with a link to one of some endpoints, at once if there is one; with None and a reason if not.

        Does not wait: a worker dials, once for all who want to reach the same place.
        """
        key = (tuple(endpoints), identity)
        with self._lock:
            found = next(
                (self._dialled[each, identity] for each in endpoints if (each, identity) in self._dialled), None
            )
            if found is None or not found.open:
                found = None
                waiting = self._dialling.get(key)
                if waiting is not None:
                    waiting.append(then)
                    return
                self._dialling[key] = [then]
        if found is not None:
            found.used_ns = time.monotonic_ns()
            then(found, "")
        elif not self.workers.run(lambda: self._dial(*key)):
            self._give_link(key, None, f"{REQUESTS_MAX} jobs wait already")

    def open_request(self, asking: Asking) -> int:
        """Return a number for a request, under which answers are found; 0 when there are too many."""
        with self._lock:
            if len(self._requests) >= REQUESTS_MAX:
                return 0
            number = self.request_number()
            while number in self._requests:
                number = self.request_number()
            self._requests[number] = asking
        self._watch()
        return number

    def close_request(self, number: int) -> None:
        """Forget a request."""
        with self._lock:
            self._requests.pop(number, None)

    def request(self, number: int) -> Asking | None:
        """Return what a request is for."""
        return self._requests.get(number)

    def share_fetch(self, key: Hashable, learn: Learn) -> bool:
        """Have somebody learn how the fetch of a value ends; whether there is one, else it has to be begun."""
        with self._lock:
            waiting = self._shared.setdefault(key, [])
            waiting.append(learn)
            return len(waiting) > 1

    def end_sharing(self, key: Hashable) -> list[Learn]:
        """Return who waits for a fetch that has ended."""
        with self._lock:
            return self._shared.pop(key, [])

    @staticmethod
    def request_number() -> int:
        """Return a number that no other request is likely to have."""
        return REQUEST_BIT | secrets.randbits(31)

    def add_sending(self, way: object, request: int, sending: Sending) -> bool:
        """Remember a value that goes out on some way; False when there are too many, or it is going already."""
        with self._lock:
            if len(self._sendings) >= SENDINGS_MAX or (way, request) in self._sendings:
                return False
            self._sendings[way, request] = sending
        self._watch()
        return True

    def find_sending(self, way: object, request: int) -> Sending | None:
        """Return what goes out on some way for a request."""
        return self._sendings.get((way, request))

    def drop_sending(self, way: object, request: int) -> None:
        """Forget a value that went out."""
        with self._lock:
            self._sendings.pop((way, request), None)

    def end_sendings(self, way: object) -> None:
        """Send nothing more on some way."""
        with self._lock:
            sendings = [each for (there, _), each in self._sendings.items() if there == way]
        for sending in sendings:
            sending.end()

    def heard(self, link: Link, message: Message) -> None:
        """Take what comes over a link.

        Raises:
            MalformedFrameError: That is not what links are for, or a stranger said it.
        """
        match message.kind:
            case MessageKind.CHUNK:
                chunk = decode_chunk(message)
                self._require_known(link, message)
                asking = self.request(chunk.transaction)
                if asking is not None:
                    asking.arrived(chunk, link)
            case MessageKind.MORE:
                more = decode_more(message)
                self._require_known(link, message)
                sending = self.find_sending(link, more.request)
                if sending is not None:
                    sending.more(more.chunks)
            case MessageKind.GET:
                self._hear_get(link, decode_get(message))
            case MessageKind.PUT:
                put = decode_put(message)
                asking = self.request(put.transaction)
                if asking is not None:
                    asking.answered(put, link)
                self._require_known(link, message)
            case MessageKind.NAK:
                refusal = decode_refusal(message)
                self._require_known(link, message)
                asking = self.request(refusal.request)
                if asking is not None:
                    asking.refused(refusal, link)
            case _:
                raise MalformedFrameError(f"expected GET PUT CHUNK MORE or NAK between tools, got {message.kind.name}")

    def gone(self, link: Link, reason: str) -> None:
        """Learn that a link is dead."""
        if not link.known:
            log.info("hung up on a stranger at %s: %s", link.connection.peer, reason)
        with self._lock:
            self._links.discard(link)
            for key in [key for key, each in self._dialled.items() if each is link]:
                del self._dialled[key]
            requests = list(self._requests.values())
        for asking in requests:
            asking.broke(link, reason)
        self.end_sendings(link)

    def _hear_get(self, link: Link, get: Get) -> None:
        member = self.find(get.epoch, get.source)
        if member is not None and member.admits(get):
            link.believe()
            member.serve(get, link)
        elif link.known:
            reason = "the token is not that of the value" if member is not None else f"tool {get.source} is gone"
            link.say(encode_refusal(Refusal(get.request, reason)))
        else:
            raise MalformedFrameError(f"{link.connection.peer} asks for what it may not have")

    def _require_known(self, link: Link, message: Message) -> None:
        if not link.known:
            raise MalformedFrameError(f"{link.connection.peer} began with {message.kind.name}, unasked")

    def _welcome(self, connection: Connection, known: Callable[[], None]) -> None:
        """Go on with a connection that was accepted, in a thread of its own."""
        link = Link(connection, self, known=False, on_known=known)
        if not self._add_link(link):
            raise UnreachableError(f"there are {LINKS_MAX} links already")
        link.serve()

    def _dial(self, endpoints: tuple[str, ...], identity: Identity | None) -> None:
        """Connect to the first of some endpoints that answers; in a worker."""
        reason = "it cannot be reached"
        for endpoint in endpoints:
            try:
                connection = dial(endpoint, identity, timeout=DIAL_SECONDS)
            except EchoicError as error:
                reason = str(error)
                continue
            link = Link(connection, self, known=True)
            if not self._add_link(link):
                connection.close()
                reason = f"there are {LINKS_MAX} links already"
                break
            with self._lock:
                self._dialled[endpoint, identity] = link
            threading.Thread(target=link.serve, name="echoic-exchange-read", daemon=True).start()
            self._give_link((endpoints, identity), link, "")
            return
        self._give_link((endpoints, identity), None, reason)

    def _give_link(self, key: tuple[tuple[str, ...], Identity | None], link: Link | None, reason: str) -> None:
        with self._lock:
            waiting = self._dialling.pop(key, [])
        for then in waiting:
            then(link, reason)

    def _add_link(self, link: Link) -> bool:
        with self._lock:
            if len(self._links) >= LINKS_MAX:
                return False
            self._links.add(link)
        self._watch()
        return True

    def _watch(self) -> None:
        """See that somebody looks at the clock."""
        with self._lock:
            if self._watching:
                return
            self._watching = True
        threading.Thread(target=self._watch_all, name="echoic-exchange-watch", daemon=True).start()

    def _watch_all(self) -> None:
        """End what takes too long or is not used, until there is nothing left to watch."""
        while self._look(time.monotonic_ns()):
            time.sleep(WATCH_SECONDS)  # with nothing in hand: what was looked at may be large

    def _look(self, now_ns: int) -> bool:
        """End what takes too long or is not used; whether there is anything left to watch."""
        with self._lock:
            requests, sendings = list(self._requests.values()), list(self._sendings.items())
            self._watching = watching = bool(requests or sendings or self._links)
            busy = {way for (way, _), _ in sendings}
            idle = [each for each in self._links if now_ns - each.used_ns > IDLE_NS and each not in busy]
        for asking in requests:
            asking.check(now_ns)
        for _, sending in sendings:
            if now_ns - sending.used_ns > SILENT_NS:
                sending.end()
        for link in idle:
            link.close()
        return watching


def _encode(values: Values) -> Sequence[Buffer]:
    return encode_pieces(TermList(*values))


def _decode(pieces: Sequence[Buffer]) -> Values:
    content = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    values = decode_saf(content, bytes_max=VALUE_BYTES_MAX)
    return values.elements if isinstance(values, TermList) else (values,)
