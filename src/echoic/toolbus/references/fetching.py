"""Fetching: one value on its way here, by whichever route works.

    DIRECT     GET over a link to the owner                    fails: nobody answers there, or the link breaks
    RELAYED    GET by way of the bus, the owner dials us       fails: the owner says NAK, it cannot reach us either
    STREAMED   GET by way of the bus, chunks come that way     fails: the owner is gone

    choose a route --> GET --> PUT (size) --> CHUNK ... CHUNK(last) --> the value
          ^                     |               |  MORE for every half window
          |   fails, too late   |               |
          +---------------------+---------------+      no route is left, or the owner has not got it: lost

A NAK to a relayed GET is that the owner cannot reach us, so that the value is streamed; any other says that it is lost.

An owner that dials us has no credit before it has shown who it is by its PUT, since until then it may not say much.

A fetch always ends: each answer has to come within a time, and the whole within another that depends on the size. What
cannot be had is the term `lost-value(reason)` in its place, which a script or a handler can look at; an error would
have nowhere to go, since nobody waits for the value but a message.

What failed is remembered (`routes.py`), so that the next fetch from the same owner does not try it again.
"""

import hmac
import secrets
import threading
import time
from typing import TYPE_CHECKING, Final, Protocol

from echoic.errors import EchoicError, LimitExceededError, MalformedFrameError
from echoic.links import Identity
from echoic.terms import ReferenceKind
from echoic.toolbus.protocol import Message
from echoic.toolbus.references.exchange import Exchange
from echoic.toolbus.references.routes import Route
from echoic.toolbus.references.threshold import Threshold
from echoic.toolbus.references.transfer import LINK_WINDOW, STREAM_WINDOW, VALUE_BYTES_MAX, Assembly, Link
from echoic.toolbus.references.turnstile import Ticket
from echoic.toolbus.references.words import Chunk, Get, More, Put, Refusal, encode_get, encode_more

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Fetch", "Fetcher"]

ANSWER_NS: Final = 10 * 10**9
"""From one sign of life to the next."""
WHOLE_NS: Final = 60 * 10**9
BYTES_PER_SECOND_MIN: Final = 256 * 1024
NONCE_BYTES: Final = 16
EXACT: Final = frozenset({ReferenceKind.STR, ReferenceKind.BLOB})


class Fetcher(Protocol):
    """Who fetches: a member, as its fetches see it."""

    @property
    def number(self) -> int:
        """Its number at the bus."""

    @property
    def identity(self) -> Identity | None:
        """Who it is to others."""

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Where it can be reached."""

    def choose(self, owner: int, *, direct: bool, relayed: bool) -> Route:
        """Return the best way to an owner that is not known to fail."""

    def worked(self, owner: int, route: Route) -> None:
        """Learn that a way works."""

    def failed(self, owner: int, route: Route) -> None:
        """Learn that a way does not."""

    @property
    def measured(self) -> Threshold:
        """What it knows about how long things take."""

    def relay(self, number: int, message: Message) -> None:
        """Say something by way of the bus.

        Raises:
            ClosedError: There is no bus any more.
        """

    def count(self, name: str, amount: int = 1) -> None:
        """Count something that happened."""


class Fetch:
    """One value on its way here."""

    def __init__(
        self,
        exchange: Exchange,
        fetcher: Fetcher,
        put: Put,
        on_end: "Callable[[Fetch, Assembly | None, str], None]",
    ) -> None:
        """Prepare.

        Args:
            exchange: That of the process.
            fetcher: For whom.
            put: Which value, and where it is.
            on_end: Called once, by whichever thread, with the content or with why there is none.
        """
        self.put: Final = put
        self.fetcher: Final = fetcher
        self.ticket: Final = Ticket(put.endpoints or (put.epoch, put.source), self.begin)
        """With it, the fetch begins when it is its turn (`turnstile.py`)."""
        self._exchange = exchange
        self._on_end = on_end
        self._lock = threading.Lock()
        self._ended = False
        self._tried: set[Route] = set()
        self._route = Route.DIRECT
        self._request = 0
        self._nonce = b""
        self._link: Link | None = None
        self._landing: Assembly | None = None
        self._taken = 0
        self._asked_ns = self._answered_ns = self._sign_ns = self._deadline_ns = 0

    def begin(self) -> None:
        """Ask for the value by the best route that is left, or give up; does not wait."""
        put, now_ns = self.put, time.monotonic_ns()
        with self._lock:
            if self._ended:
                return
            route = self._choose()
            self._tried.add(route)
            self._route, self._link, self._landing, self._taken = route, None, None, 0
            self._asked_ns = self._sign_ns = now_ns
            size = min(put.size, VALUE_BYTES_MAX)  # as it was said, by whoever has said it
            self._deadline_ns = now_ns + WHOLE_NS + size * 10**9 // BYTES_PER_SECOND_MIN
            self._nonce = secrets.token_bytes(NONCE_BYTES) if route is Route.RELAYED else b""
            self._request = request = self._exchange.open_request(self)
        if not request:
            self.fail("too many values are being fetched")
        elif route is Route.DIRECT:
            identity = self.fetcher.identity
            self._exchange.with_link(put.endpoints, identity, lambda link, why: self._dialled(request, link, why))
        else:
            try:
                self.fetcher.relay(put.source, self._get(request))
            except EchoicError as error:
                self.fail(str(error))

    def answered(self, put: Put, link: Link | None) -> None:
        """Learn that the value comes.

        Raises:
            MalformedFrameError: It is not the one that was asked for, or comes from somebody else.
        """
        try:
            with self._lock:
                if self._ended or put.transaction != self._request:
                    return
                self._check_answer(put, link)
                self._link = link
                self._landing = Assembly(put.size)
                self._answered_ns = self._sign_ns = time.monotonic_ns()
                self.fetcher.measured.observe_latency(self._answered_ns - self._asked_ns)
        except LimitExceededError as error:
            self.fail(str(error))
            return
        if link is not None and self._route is Route.RELAYED:
            link.say(encode_more(More(put.transaction, LINK_WINDOW)))

    def arrived(self, chunk: Chunk, link: Link | None) -> None:
        """Take a chunk of the value.

        Raises:
            MalformedFrameError: It has more or fewer bytes than were announced, or comes from somebody else.
        """
        credit = 0
        try:
            with self._lock:
                if self._ended or chunk.transaction != self._request:
                    return
                landing = self._landing
                if landing is None or link is not self._link:
                    raise MalformedFrameError(f"a CHUNK came that was not announced, for request {chunk.transaction}")
                landing.write(chunk.body)
                self._sign_ns = time.monotonic_ns()
                if chunk.last:
                    if landing.received != landing.size:
                        raise MalformedFrameError(f"{landing.received} bytes came of a value of {landing.size}")
                    self._ended = True
                    self._landing = None
                    self._exchange.close_request(self._request)
                else:
                    self._taken += 1
                    if self._taken >= (STREAM_WINDOW if link is None else LINK_WINDOW) // 2:
                        credit, self._taken = self._taken, 0
            if chunk.last:
                self._arrived_whole(landing)
            elif credit:
                self._say(encode_more(More(chunk.transaction, credit)), link)
        except EchoicError as error:
            self.fail(str(error))
            if isinstance(error, MalformedFrameError):
                raise

    def refused(self, refusal: Refusal, link: Link | None) -> None:
        """Learn that the value does not come this way."""
        with self._lock:
            if self._ended or refusal.request != self._request or link is not self._link:
                return
            another = self._route is Route.RELAYED
        if another:
            self._fail_route(refusal.request, refusal.reason)
        else:
            self.fail(refusal.reason)

    def broke(self, link: Link, reason: str) -> None:
        """Learn that a link is gone."""
        with self._lock:
            request = self._request if link is self._link else 0
        if request:
            self._fail_route(request, reason)

    def check(self, now_ns: int) -> None:
        """Look whether it takes too long."""
        with self._lock:
            late = now_ns - self._sign_ns > ANSWER_NS or now_ns > self._deadline_ns
            request, received = self._request, 0 if self._landing is None else self._landing.received
        if late:
            self._fail_route(request, f"no answer for {ANSWER_NS // 10**9} seconds after {received} bytes")

    def fail(self, reason: str) -> None:
        """Give the value up."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._exchange.close_request(self._request)
            self._abandon()
        self._on_end(self, None, reason)

    def _choose(self) -> Route:
        """Return the best route that is left."""
        direct = bool(self.put.endpoints) and Route.DIRECT not in self._tried
        relayed = Route.RELAYED not in self._tried and bool(self.fetcher.endpoints)
        return self.fetcher.choose(self.put.source, direct=direct, relayed=relayed)

    def _get(self, request: int) -> Message:
        put = self.put
        endpoints = self.fetcher.endpoints if self._route is Route.RELAYED else ()
        asker = self.fetcher.number
        return encode_get(
            Get(
                request,
                put.variable,
                put.source,
                put.path,
                endpoints,
                put.token,
                self._route,
                asker,
                put.epoch,
                self._nonce,
            )
        )

    def _dialled(self, request: int, link: Link | None, reason: str) -> None:
        """Go on when the owner was dialled."""
        if link is None:
            self.fetcher.count("failed_dials")
            self._fail_route(request, reason)
            return
        with self._lock:
            if self._ended or request != self._request:
                return
            self._link = link
            self._asked_ns = self._sign_ns = time.monotonic_ns()
        if not link.say(self._get(request)):
            self._fail_route(request, f"the connection to {link.connection.peer} broke")

    def _check_answer(self, put: Put, link: Link | None) -> None:
        """Refuse an answer that is not for this question; the lock is held."""
        if self._route is Route.RELAYED and link is not None:
            if self._landing is not None or not hmac.compare_digest(put.token, self._nonce):
                raise MalformedFrameError("a PUT came with a nonce that is not that of its request")
            link.believe()
        elif link is not self._link or self._landing is not None or not put.with_value:
            raise MalformedFrameError(f"a PUT came that was not asked for, for request {put.transaction}")
        if put.kind is not self.put.kind or (put.kind in EXACT and put.size != self.put.size):
            raise MalformedFrameError(
                f"a `{put.kind}` of {put.size} bytes came, expected a `{self.put.kind}` of {self.put.size}"
            )

    def _say(self, message: Message, link: Link | None) -> None:
        if link is not None:
            link.say(message)
        else:
            self.fetcher.relay(self.put.source, message)

    def _arrived_whole(self, landing: Assembly) -> None:
        """Hand the content over."""
        fetcher, route = self.fetcher, self._route
        fetcher.measured.observe_transfer(landing.size, time.monotonic_ns() - self._answered_ns)
        fetcher.worked(self.put.source, route)
        fetcher.count(route.name.lower())
        fetcher.count("fetched_bytes", landing.size)
        self._on_end(self, landing, "")

    def _fail_route(self, request: int, reason: str) -> None:
        """Give a route up, and try the next if there is one."""
        with self._lock:
            if self._ended or request != self._request:
                return
            self._exchange.close_request(request)
            self._request = 0
            self._abandon()
            self.fetcher.failed(self.put.source, self._route)
            over = self._route is Route.STREAMED
        if over:
            self.fail(reason)
        else:
            self.begin()

    def _abandon(self) -> None:
        landing, self._landing = self._landing, None
        self._link = None
        if landing is not None:
            landing.abandon()
