"""Members: one tool, or the bus, in the exchange of large values.

    what it says     outgoing    large leaves are cut off and kept here; PUTs tell where they are
    what it is told  fetch       a value is had from where it is: here, the pool, its owner, by way of the bus
    others' wishes   serve       a GET with the right token is answered, over a link or by way of the bus
    FIN              release     nobody refers to it any more

A tool has one for each bus it is connected to. The bus has one too, with the number 0: it fetches what a script looks
into, and keeps what came as a PUT with value and what is large in what it says itself. Both do the same, but for
`relay`: what a tool says to the bus, the bus says to the tool that it is for.

Where a value is looked for:

    the owner is in this process     the very object
    it is in the constant pool       the same, fetched before by another tool of this process
    it is being fetched              once for all who wait for it
    else                             fetched (`fetching.py`)
"""

import dataclasses
import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from echoic.errors import AddressError, EchoicError, EncodeError, LimitExceededError, MalformedFrameError
from echoic.links import Identity, is_loopback, parse_address
from echoic.terms import Reference, ReferenceKind, Value
from echoic.toolbus.protocol import REFERRING, Message, MessageKind
from echoic.toolbus.references.arrivals import Coming
from echoic.toolbus.references.cutting import Cut, cut, lost_value, sign, value_from
from echoic.toolbus.references.exchange import REQUEST_BIT, Exchange
from echoic.toolbus.references.fetching import Fetch
from echoic.toolbus.references.keeping import Keeping, content_of, part_in, with_content
from echoic.toolbus.references.registry import BUS
from echoic.toolbus.references.routes import Route, Routes
from echoic.toolbus.references.serving import Sending
from echoic.toolbus.references.threshold import Threshold
from echoic.toolbus.references.tokens import is_token_for
from echoic.toolbus.references.transfer import (
    LINK_CHUNK_BYTES,
    LINK_WINDOW,
    STREAM_CHUNK_BYTES,
    STREAM_WINDOW,
    Assembly,
    Link,
    chunks_of,
)
from echoic.toolbus.references.words import (
    Get,
    Put,
    Refusal,
    Registration,
    decode_chunk,
    decode_finished,
    decode_get,
    decode_more,
    decode_put,
    decode_refusal,
    encode_put,
    encode_refusal,
)
from echoic.values import Incoming, Variable

__all__ = ["Member", "MemberStatistics", "Relay"]

DECODED_HERE_BYTES_MAX: Final = 64 * 1024
log: Final = logging.getLogger("echoic.toolbus")

Relay: TypeAlias = Callable[[int, Message], None]
"""Says something by way of the bus that is for a tool of a number, or about its value; a tool's own ignores the number.

May be called by any thread, and raises nothing but ClosedError.
"""
Key: TypeAlias = tuple[int, int, int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class MemberStatistics:
    """What a member keeps, and what it did."""

    kept: int
    """Variables that are kept for others."""
    fetched: int
    """Values that were had, from wherever; those below are parts of it."""
    fetched_bytes: int
    """Bytes that came over links and by way of the bus."""
    own: int
    """The owner was in this process."""
    pool_hits: int
    """The value was, or somebody else was fetching it already."""
    direct: int
    relayed: int
    streamed: int
    lost: int
    failed_dials: int
    served: int
    served_bytes: int


class Member:
    """One tool, or the bus, in the exchange of large values."""

    def __init__(
        self,
        registration: Registration,
        relay: Relay,
        *,
        exchange: Exchange | None = None,
        listen: str = "127.0.0.1:0",
        identity: Identity | None = None,
        threshold: float | None = None,
        secluded: bool = False,
        insecure: bool = False,
    ) -> None:
        """Take part.

        Args:
            registration: Who this is, as the bus says; number 0 is the bus itself.
            relay: The way to others by way of the bus.
            exchange: With whom values are shared; that of the process by default.
            listen: Where others can reach it, once it has something for them; empty if nowhere.
            identity: Makes links TLS.
            threshold: From so many bytes on values go by reference; None leaves it to the registration.
            secluded: Whether it connects to nobody: it has nothing to prove itself by, or others could read along.
            insecure: Whether it connects to other machines without an identity, where others can read along.

        Raises:
            ClosedError: The exchange has a member of this number already.
        """
        self.number: Final = registration.tool
        self.epoch: Final = registration.epoch
        self.identity: Final = identity
        self.exchange: Final = exchange if exchange is not None else Exchange.of_process()
        self.relay: Final = relay
        self.measured: Final = Threshold(registration.threshold_bytes if threshold is None else threshold)
        self._key = registration.key
        self._listen = listen
        self._secluded = secluded
        self._far = insecure or identity is not None
        self._endpoints: tuple[str, ...] | None = None
        self._keeping = Keeping(self.exchange.store, self.number)
        self._transactions = itertools.count(1)
        self._routes = Routes()
        self._fetches: set[Fetch] = set()
        self._counts = dict.fromkeys(MemberStatistics.__dataclass_fields__, 0)
        self._closed = False
        self._lock = threading.Lock()
        self.exchange.join(self)

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Where others can reach this process, from now on; nowhere for a passive member."""
        found = self._endpoints
        if found is None:
            try:
                found = (self.exchange.listen(self._listen, self.identity),) if self._listen else ()
            except EchoicError as error:
                log.warning("large values of tool %d go by way of the bus: %s", self.number, error)
                found = ()
            self._endpoints = found
        return found

    @property
    def threshold(self) -> float:
        """From so many bytes on a leaf goes by reference."""
        return self.measured.bytes

    def part(self, values: tuple[Value, ...]) -> Cut:
        """Cut off what is too large to be said, and keep what goes by reference, under one fresh variable.

        Raises:
            EncodeError: A string cannot be written as UTF-8.
            LimitExceededError: There is no room to keep it.
        """
        variable = self._keeping.fresh()
        made = cut(values, self.threshold, self.number, variable, self.epoch)
        if made.references:
            parts = ((each.path, part_in(values, each.path), each.size) for each in made.references)
            self._keeping.keep(variable, parts)
        return made

    def outgoing(self, message: Message) -> Iterator[Message]:
        """Yield what to say instead of a message: PUTs, each with its chunks if it has them, and what refers to them.

        They must be said in this order, with no other PUT between. A message without large values is yielded as it is.
        Where there is no room to keep what goes by reference, it goes with its PUT.
        """
        try:
            made = self.part(message.values)
        except LimitExceededError:
            made = cut(message.values, math.inf, self.number, self._keeping.fresh(), self.epoch)
        except EncodeError:  # nobody can say that, as whoever encodes it will find out
            yield message
            return
        values, references = sign(made.values)
        if not references:
            yield message
            return
        transaction = next(self._transactions) % REQUEST_BIT or next(self._transactions)
        inline = frozenset(made.inline)
        for reference in references:
            put = Put.of(reference, transaction, self.endpoints)
            if reference in inline:
                yield from self.with_part(put, message.values)
            else:
                yield encode_put(put)
        yield Message(message.kind, message.transaction, values, REFERRING)

    def receive(self, size: int) -> Incoming:
        """Return room for the content of one leaf, for `adopt`.

        Raises:
            LimitExceededError: There is none.
        """
        return self.exchange.store.receive(size)

    def adopt(self, handle: int, kind: ReferenceKind) -> int:
        """Keep the content of one leaf as it came; return its variable, which has the path ()."""
        variable = self._keeping.fresh()
        self._keeping.adopt(variable, handle, kind)
        return variable

    def value(self, variable: int, path: tuple[int, ...]) -> Value:
        """Return a part of what is kept.

        Raises:
            LookupError: It is not there.
            MalformedTermError: Content that was kept as it came is not what it was said to be.
        """
        return self._keeping.value(variable, path)

    def with_value(self, put: Put) -> Iterator[Message]:
        """Yield a PUT with the value of its part of what is kept here, in the order to say it.

        Raises:
            LookupError: It is not there.
        """
        yield from with_content(put, self._keeping.content(put.variable, put.path))

    def with_part(self, put: Put, values: tuple[Value, ...]) -> Iterator[Message]:
        """Yield a PUT with its part of values that are not kept, in the order to say it.

        Raises:
            LookupError: They have no such part.
        """
        yield from with_content(put, content_of(part_in(values, put.path)))

    def fetch(self, put: Put) -> "Future[Value]":
        """Return a value that is on its way: `lost-value(reason)` if it cannot be had. Does not wait, never fails."""
        made: Future[Value] = Future()
        self.fetch_variable(put).add_done_callback(lambda coming: made.set_result(coming.result().value))
        return made

    def fetch_variable(self, put: Put) -> Coming:
        """Return a value with its name, by which others find it while somebody has the variable."""
        self.count("fetched")
        coming: Coming = Future()
        key: Key = (put.epoch, put.source, put.variable, put.path)
        owner = self.exchange.find(put.epoch, put.source)
        if isinstance(owner, Member):
            self.count("own")
            try:
                coming.set_result(Variable(key, owner.value(put.variable, put.path), put.size))
            except (LookupError, EchoicError) as error:
                self._lose(key, coming, str(error))
            return coming
        variable = self.exchange.pool.find(key)
        if variable is not None:
            self.count("pool_hits")
            coming.set_result(variable)
            return coming
        self._join_fetch(put, coming)
        return coming

    def release(self, variables: Iterable[int]) -> None:
        """Keep variables no longer; those that are not there are skipped."""
        self._keeping.release(variables)

    def hear(self, message: Message, number: int = 0) -> bool:
        """Take what comes by way of the bus, if it is for this member; whether it was. Does not wait.

        That is FIN, a GET for a value of this member, and what belongs to requests: PUT, CHUNK, NAK and MORE whose
        transaction has the highest bit.

        Args:
            message: What was said.
            number: By which tool, where this is the member of the bus.

        Raises:
            MalformedFrameError: It is not as it should be.
        """
        if message.kind is MessageKind.FIN:
            self.release(decode_finished(message))
            return True
        if message.kind is MessageKind.GET:
            self._hear_get(decode_get(message), number)
            return True
        if not message.transaction & REQUEST_BIT:
            return False
        try:
            return self._hear_answer(message, number)
        except MalformedFrameError as error:
            if self.number == BUS:
                raise  # it was the tool that has said it
            # The bus has handed on what another tool said: that one's value is lost, and not the bus.
            asking = self.exchange.request(message.transaction)
            if asking is not None:
                asking.refused(Refusal(message.transaction, str(error)), None)
            return True

    def _hear_answer(self, message: Message, number: int) -> bool:
        """Take what belongs to a request."""
        asking = self.exchange.request(message.transaction)
        match message.kind:
            case MessageKind.PUT:
                put = decode_put(message)
                if asking is not None:
                    asking.answered(put, None)
            case MessageKind.CHUNK:
                chunk = decode_chunk(message)
                if asking is not None:
                    asking.arrived(chunk, None)
            case MessageKind.NAK:
                refusal = decode_refusal(message)
                if asking is not None:
                    asking.refused(refusal, None)
            case MessageKind.MORE:
                more = decode_more(message)
                sending = self.exchange.find_sending((self, number), more.request)
                if sending is not None:
                    self.exchange.workers.run(lambda: sending.more(more.chunks))
            case _:
                return False
        return True

    def lost(self, owner: int, reason: str) -> None:
        """Learn that a tool is gone: what is being fetched from it is lost, and it wants nothing more."""
        with self._lock:
            self._routes.forget(owner)
            lost = [fetch for fetch in self._fetches if fetch.put.source == owner]
        for fetch in lost:
            fetch.fail(reason)
        self.exchange.end_sendings((self, owner))

    def admits(self, get: Get) -> bool:
        """Whether the token of a request is right."""
        return is_token_for(
            get.token,
            self._key,
            owner=self.number,
            variable=get.variable,
            path=get.path,
            asker=get.asker,
            epoch=self.epoch,
        )

    def serve(self, get: Get, link: Link) -> None:
        """Send a value over a link, whose token is right; does not wait: a worker encodes what has to be."""
        self._answer_on(get, link, b"")

    def statistics(self) -> MemberStatistics:
        """Return what is kept and what was done."""
        with self._lock:
            return MemberStatistics(**{**self._counts, "kept": len(self._keeping)})

    def close(self) -> None:
        """Keep nothing any more; what is being fetched is lost."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            fetches = list(self._fetches)
        for fetch in fetches:
            fetch.fail(f"tool {self.number} was closed")
        self._keeping.clear()
        self.exchange.leave(self)

    def count(self, name: str, amount: int = 1) -> None:
        """Count something that happened."""
        with self._lock:
            self._counts[name] += amount

    def choose(self, owner: int, *, direct: bool, relayed: bool) -> Route:
        """Return the best way to an owner that is not known to fail."""
        with self._lock:
            return self._routes.choose(
                owner, time.monotonic_ns(), direct=direct and not self._secluded, relayed=relayed
            )

    def worked(self, owner: int, route: Route) -> None:
        """Learn that a way works."""
        with self._lock:
            self._routes.worked(owner, route)

    def failed(self, owner: int, route: Route) -> None:
        """Learn that a way does not."""
        with self._lock:
            self._routes.failed(owner, route, time.monotonic_ns())

    def _join_fetch(self, put: Put, coming: Coming) -> None:
        """Wait for the fetch of a value that is under way, or begin one."""
        key: Key = (put.epoch, put.source, put.variable, put.path)

        def learn(variable: Variable[Value] | None, reason: str, again: bool) -> None:
            if variable is not None:
                coming.set_result(variable)
            elif again and not self._closed:
                self._join_fetch(put, coming)
            else:
                self._lose(key, coming, reason)

        if self.exchange.share_fetch(key, learn):
            self.count("pool_hits")
        else:
            near = dataclasses.replace(put, endpoints=self._dialled(put.endpoints))
            self._start(Fetch(self.exchange, self, near, self._end_fetch))

    def _start(self, fetch: Fetch) -> None:
        with self._lock:
            closed = self._closed
            if not closed:
                self._fetches.add(fetch)
        if closed:
            fetch.fail(f"tool {self.number} was closed")
        else:
            self.exchange.turnstile.enter(fetch.ticket)

    def _end_fetch(self, fetch: Fetch, landing: Assembly | None, reason: str) -> None:
        """Hand a value that has arrived to who waits for it; a worker decodes it if that may take long."""
        with self._lock:
            self._fetches.discard(fetch)
        self.exchange.turnstile.leave(fetch.ticket)
        kind = fetch.put.kind
        quick = kind in (ReferenceKind.STR, ReferenceKind.BLOB) or fetch.put.size <= DECODED_HERE_BYTES_MAX
        if landing is None or quick or not self.exchange.workers.run(lambda: self._decode(fetch, landing, reason)):
            self._decode(fetch, landing, reason)

    def _decode(self, fetch: Fetch, landing: Assembly | None, reason: str) -> None:
        put, variable = fetch.put, None
        key: Key = (put.epoch, put.source, put.variable, put.path)
        if landing is not None:
            try:
                value = value_from(put.kind, [landing.done()])
                variable = self.exchange.pool.add(Variable(key, value, put.size))
            except EchoicError as error:
                reason = str(error)
        for learn in self.exchange.end_sharing(key):
            learn(variable, reason, self._closed)

    def _lose(self, key: Key, coming: Coming, reason: str) -> None:
        self.count("lost")
        coming.set_result(Variable(key, lost_value(reason), 0))

    def _hear_get(self, get: Get, number: int) -> None:
        """Serve a value by way of the bus, or to somebody whom the bus says that it wants it; does not wait."""
        refuse = None
        if get.source != self.number or not self.admits(get):
            refuse = "the token is not that of the value"
        elif get.route is Route.STREAMED:
            job = lambda: self._answer(get, (self, number), self._relay_to(get.asker), b"")  # noqa: E731
            refuse = None if self.exchange.workers.run(job) else "too much is asked for"
        elif self._secluded:
            refuse = "it connects to nobody but the bus"
        else:
            places = self._dialled(get.endpoints)
            self.exchange.with_link(places, self.identity, lambda link, why: self._dial_back(get, link, why))
        if refuse is not None:
            self._relay_to(get.asker)(encode_refusal(Refusal(get.request, refuse)))

    def _dialled(self, endpoints: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of some places, named by somebody else, to which this one connects: in the clear, those here."""
        return endpoints if self._far else tuple(each for each in endpoints if _is_here(each))

    def _dial_back(self, get: Get, link: Link | None, reason: str) -> None:
        """Serve a value to somebody who could not reach us."""
        if link is not None:
            self._answer_on(get, link, get.nonce)
        else:
            self.count("failed_dials")
            self._relay_to(get.asker)(encode_refusal(Refusal(get.request, reason)))

    def _relay_to(self, number: int) -> Callable[[Message], None]:
        """Return a way to a tool by way of the bus, which does nothing when the bus is gone."""

        def say(message: Message) -> None:
            try:
                self.relay(number, message)
            except EchoicError as error:
                log.debug("tool %d cannot be told %s: %s", number, message.kind.name, error)

        return say

    def _answer_on(self, get: Get, link: Link, token: bytes) -> None:
        quick = self._keeping.is_at_hand(get.variable, get.path)
        if quick or not self.exchange.workers.run(lambda: self._answer(get, link, link.say, token)):
            self._answer(get, link, link.say, token)

    def _answer(self, get: Get, way: object, say: Callable[[Message], object], token: bytes) -> None:
        """Send a value some way; does not wait, but may have to encode it."""
        try:
            content = self._keeping.content(get.variable, get.path)
        except (LookupError, EchoicError) as error:
            say(encode_refusal(Refusal(get.request, str(error))))
            return
        linked = isinstance(way, Link)
        chunks = chunks_of(content.pieces, LINK_CHUNK_BYTES if linked else STREAM_CHUNK_BYTES)

        def end(complete: bool) -> None:
            self.exchange.drop_sending(way, get.request)
            if complete:
                self.count("served")
                self.count("served_bytes", content.size)

        sending = Sending(get.request, content.size, chunks, say, end)
        if not self.exchange.add_sending(way, get.request, sending):
            say(encode_refusal(Refusal(get.request, "too much is asked for")))
            return
        reference = Reference(self.number, get.variable, get.path, content.kind, content.size, epoch=self.epoch)
        put = replace(Put.of(reference, get.request, token=token), route=get.route, with_value=True)
        say(encode_put(put))
        if not token:  # else who asked gives credit when it knows us
            sending.more(LINK_WINDOW if linked else STREAM_WINDOW)


def _is_here(endpoint: str) -> bool:
    """Whether a place is on this machine; what is no address is none."""
    try:
        return is_loopback(parse_address(endpoint)[0])
    except AddressError:
        return False
