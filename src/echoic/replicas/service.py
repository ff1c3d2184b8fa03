"""A replicated service: counters that every replica has, over HTTP (section 5 of the paper).

    hub = echoic.Hub("127.0.0.1:7401")
    peers = {"n1": "127.0.0.1:7401", "n2": "127.0.0.1:7402", "n3": "127.0.0.1:7403"}
    service = CounterService(hub, me="n1", peers=peers, listen="127.0.0.1:8081")

"The service implements a counter private of each client. Updates to the counter are multicast to each replica." The
paper's prototype did not pack its multicasts yet. Here those of concurrent clients share packs, as the group does it
for everybody.

    POST /counters/NAME         {"add": 1}, or nothing; returns {"counter", "value", "sequence", "replica"}
    GET  /counters/NAME         what this replica has, which may lag behind; POST {"add": 0} is a read in the order
    GET  /                      how the replica stands: view, leader, packing, counts
    GET  /multicasts?after=NS   when this replica has multicast, by its machine's monotonic clock (figures 5 and 6)

A POST is answered when its increment was delivered here, which it then is or will be everywhere. What cannot be done
at the moment is told by 503 with the reason and Retry-After: this replica is not in the primary view, or there was no
delivery in time. Then `counted` is false if it surely was not counted, and null if that is not known. The client
repeats the request, here or at another replica, with the same header `Idempotency-Key`, and is counted once
(`counters`).
"""

import itertools
import secrets
import time
from collections import deque
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final, Self, TypedDict, Unpack
from urllib.parse import unquote

import msgspec

from echoic.errors import ClosedError, DeliveryError, LocalError
from echoic.formats import Format
from echoic.groups.policies import Policy
from echoic.hub import Hub
from echoic.hub.group_status import GroupStatus, GroupStatusSource, status_of
from echoic.links import Identity
from echoic.replicas.counters import (
    KEY_CHARACTERS_MAX,
    NAME_CHARACTERS_MAX,
    VALUE_MAX,
    Counters,
    CountersStatistics,
    Increment,
    Outcome,
    Refusal,
)
from echoic.replicas.http_server import Answer, HttpServer, HttpStatistics, Request

__all__ = ["CounterService", "Joining", "ServiceStatistics"]

ANSWER_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 1
INSTANTS_MAX: Final = 262_144
PREFIX: Final = "/counters/"
REFUSALS: Final[Mapping[Refusal, tuple[int, str]]] = {
    "name": (HTTPStatus.BAD_REQUEST, "the name of the counter or the key is too long"),
    "key": (HTTPStatus.UNPROCESSABLE_ENTITY, "the Idempotency-Key was used for another request"),
    "range": (HTTPStatus.CONFLICT, f"the value would be beyond {VALUE_MAX}"),
    "full": (HTTPStatus.INSUFFICIENT_STORAGE, "there are as many counters as there may be"),
}
STATUS_FIELDS: Final = tuple(field.name for field in Format.of(GroupStatus).fields)


class Joining(TypedDict, total=False):
    """How the service takes part in its group, as `Hub.join` has it."""

    engine: str
    stability: str
    durability: str
    path: str | Path | None
    packing: str | Policy
    packing_interval: float
    election_timeout: float
    kept_bytes: int


class ServiceStatistics(msgspec.Struct, frozen=True):
    """What a replica of the service has done."""

    http: HttpStatistics
    counters: CountersStatistics
    multicasts: int
    late: int
    """Requests that were told that there was no delivery in time."""
    turned_away: int
    """Requests that were told that this replica is not in the primary view."""


class _Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a POST."""

    add: Annotated[int, msgspec.Meta(ge=-VALUE_MAX, le=VALUE_MAX)] = 1


_orders: Final = msgspec.json.Decoder(_Order)


class CounterService:
    """One replica of the counter service.

    Args:
        hub: Through which it joins its group.
        me: The name of this replica.
        peers: All replicas, by name, with the addresses of their hubs.
        name: The name of the group.
        listen: Where clients reach this replica over HTTP; port 0 takes a free one.
        identity: Certificate, key and authority for HTTPS; clients must have a certificate of that authority.
        insecure: Accept that strangers can read and write, on addresses that other machines reach.
        timeout: For how many seconds a request waits for its delivery.
        joining: How it takes part in the group.

    Raises:
        EchoicError: As `Hub.join` does.
        InsecureError: Clients would be listened to in the clear, from other machines.
        UnreachableError: It cannot be listened at `listen`.
    """

    def __init__(
        self,
        hub: Hub,
        *,
        me: str,
        peers: Mapping[str, str],
        name: str = "counters",
        listen: str = "127.0.0.1:0",
        identity: Identity | None = None,
        insecure: bool = False,
        timeout: float = ANSWER_SECONDS,
        **joining: Unpack[Joining],
    ) -> None:
        if not 0 < timeout < float("inf"):
            raise LocalError(f"requests wait for {timeout} s, expected a time above 0")
        self.counters: Final = Counters(me)
        self._timeout = timeout
        self._requests = itertools.count(secrets.randbits(62))  # which no former life of this replica has used
        self._instants: deque[int] = deque(maxlen=INSTANTS_MAX)
        self._multicasts = self._late = self._turned_away = 0
        self.group: Final = hub.join(name, Increment, me=me, peers=peers, state=self.counters, **joining)
        self._status: GroupStatusSource | None = None
        try:
            self.group.subscribe(self.counters.deliver, batch=True)
            self._status = GroupStatusSource(hub, self.group)
            self._server = HttpServer(listen, self.respond, identity=identity, insecure=insecure)
        except BaseException:
            self._leave()
            raise

    @property
    def address(self) -> str:
        """Where clients reach it."""
        return self._server.address

    def respond(self, request: Request) -> Answer:
        """Return the answer to a request; called by many threads at once."""
        if request.path in {"/", "/multicasts"}:
            if request.method != "GET":
                return Answer(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "expected GET"}, {"Allow": "GET"})
            if request.path == "/":
                return Answer(HTTPStatus.OK, self._standing())
            return self._recorded(request.query.get("after", "0"))
        counter = _counter_of(request.path)
        if counter is None:
            return _error(HTTPStatus.NOT_FOUND, f"expected / or {PREFIX}NAME")
        if not 0 < len(counter) <= NAME_CHARACTERS_MAX or not counter.isprintable():
            told = f"expected a name of 1 to {NAME_CHARACTERS_MAX} printable characters, got {len(counter)}"
            return _error(HTTPStatus.BAD_REQUEST, told)
        if request.method == "GET":
            return self._read(counter)
        if request.method == "POST":
            return self._count(counter, request)
        return Answer(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "expected GET or POST"}, {"Allow": "GET, POST"})

    def statistics(self) -> ServiceStatistics:
        """Return what this replica has done."""
        return ServiceStatistics(
            self._server.statistics(), self.counters.statistics(), self._multicasts, self._late, self._turned_away
        )

    def close(self) -> None:
        """Answer no more, and leave the group."""
        self._server.close()
        self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _leave(self) -> None:
        if self._status is not None:
            self._status.close()
        self.group.close()

    def _count(self, counter: str, request: Request) -> Answer:
        """Have an increment ordered, and tell what came of it."""
        key = request.headers.get("idempotency-key", "")
        if not key.isascii() or not key.isprintable() or len(key) > KEY_CHARACTERS_MAX:
            told = f"expected an Idempotency-Key of up to {KEY_CHARACTERS_MAX} visible ASCII characters, got {len(key)}"
            return _error(HTTPStatus.BAD_REQUEST, told)
        try:
            order = _orders.decode(request.body) if request.body.strip() else _Order()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return _error(HTTPStatus.BAD_REQUEST, f'expected {{"add": 1}}, got something else: {error}')
        if not self.group.view.primary:
            self._turned_away += 1
            return _unavailable(self._reason(), counted=False)
        return self._multicast(counter, order.add, key)

    def _multicast(self, counter: str, add: int, key: str) -> Answer:
        number = next(self._requests)
        self.counters.expect(number)
        self._multicasts += 1
        self._instants.append(time.monotonic_ns())
        try:
            self.group.submit_sync(Increment(counter, add, key, number), self._timeout)
            outcome = self.counters.take(number)
        except DeliveryError as error:
            self._late += 1
            return _unavailable(str(error), counted=None)
        except ClosedError as error:
            return _unavailable(str(error), counted=False)
        finally:
            self.counters.take(number)
        if outcome is None and key:  # it was delivered elsewhere while this replica was away, and is part of its state
            outcome = self.counters.outcome(key)
        if outcome is None:
            return _unavailable("it was counted while this replica was away, and its value is not known", counted=True)
        return self._told(counter, outcome)

    def _told(self, counter: str, outcome: Outcome) -> Answer:
        if outcome.refusal:
            return _error(*REFUSALS[outcome.refusal])
        return Answer(HTTPStatus.OK, self._counter(counter, outcome.value, outcome.sequence))

    def _read(self, counter: str) -> Answer:
        if not self.group.view.primary:
            self._turned_away += 1
            return _unavailable(self._reason(), counted=False)
        value, sequence = self.counters.value(counter)
        if value is None:
            return _error(HTTPStatus.NOT_FOUND, f"there is no counter {counter}")
        return Answer(HTTPStatus.OK, self._counter(counter, value, sequence))

    def _counter(self, counter: str, value: int, sequence: int) -> dict[str, object]:
        return {"counter": counter, "value": value, "sequence": sequence, "replica": self.group.me}

    def _standing(self) -> dict[str, object]:
        status = status_of(self.group)
        standing = {name: getattr(status, name) for name in STATUS_FIELDS}
        return standing | {"replica": self.group.me, "service": msgspec.to_builtins(self.statistics())}

    def _recorded(self, after: str) -> Answer:
        """Return when this replica has multicast, after an instant."""
        if not (after.isascii() and after.isdigit() and len(after) < 20):
            return _error(HTTPStatus.BAD_REQUEST, f"expected nanoseconds, got `{after[:30]}` - at `after`")
        since_ns = int(after)
        instants = [instant for instant in tuple(self._instants) if instant > since_ns]
        return Answer(HTTPStatus.OK, {"replica": self.group.me, "now_ns": time.monotonic_ns(), "instants_ns": instants})

    def _reason(self) -> str:
        reason = self.group.statistics().reason
        return f"replica {self.group.me} is not in the primary view: {reason or 'it has just left it'}"


def _counter_of(path: str) -> str | None:
    """Return the name of the counter in a path, None if it is not that of a counter."""
    if not path.startswith(PREFIX) or "/" in path[len(PREFIX) :]:
        return None
    try:
        return unquote(path[len(PREFIX) :], errors="strict")
    except UnicodeDecodeError:
        return ""


def _error(status: int, message: str) -> Answer:
    return Answer(status, {"error": message})


def _unavailable(reason: str, *, counted: bool | None) -> Answer:
    body = {"error": reason, "counted": counted}
    return Answer(HTTPStatus.SERVICE_UNAVAILABLE, body, {"Retry-After": str(RETRY_SECONDS)})
