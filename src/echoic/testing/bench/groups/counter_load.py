r"""Clients of the counter service, many at once: the load of section 5 of the paper.

"Each client executes an endless loop in which it sends a request and parses the matching response." All operations are
updates, each client has a counter of its own, and keeps its connection.

    client 0 ---\                 /--- replica n1       POST /counters/NAME-0     {"counter": ..., "value": 1, ...}
    client 1 ----+--- one thread -+--- replica n2       POST /counters/NAME-1
    client 2 ---/                 \--- replica n3

A client whose replica is gone or says 503 goes to the next one and repeats its request with the same Idempotency-Key,
until it is answered. Since nobody else uses its counter, the value that it gets must be one more than the last one: an
increment that was lost, or counted twice, is seen at once (`wrong`).

It is asyncio in one thread, and a protocol of a few lines instead of a client library, because the load shares its
machine with what it measures: a request costs some 60 us here.
"""

import asyncio
import contextlib
import http.client
import random
import time
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy

from echoic.errors import LocalError, UnreachableError
from echoic.links import parse_address

__all__ = ["Load", "LoadResult", "run_load"]

CLIENTS_MAX: Final = 10_000
SECONDS_MAX: Final = 3600.0
ATTEMPT_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 0.05
ANSWER_BYTES_MAX: Final = 64 * 1024
ASK_SECONDS: Final = 10.0
WRONG_MAX: Final = 100
END_OF_TIME: Final = 2**62


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What the clients do."""

    addresses: Sequence[str]
    """Of the replicas, HOST:PORT; clients are spread over them."""
    clients: int = 20
    seconds: float = 3.0
    """For how long they begin requests."""
    grace: float = 20.0
    """For how long afterwards they try to get answers to what they have begun."""
    pause: float = 0.0
    """How long a client thinks between two requests, in seconds, on average."""
    name: str = ""
    """What the names of their counters begin with; one that was never used, if nothing is said."""
    seed: int = 1

    def check(self) -> None:
        """Make sure that this can be run.

        Raises:
            AddressError: An address is none.
            LocalError: It cannot.
        """
        for address in self.addresses:
            parse_address(address)
        if not self.addresses or not 1 <= self.clients <= CLIENTS_MAX:
            raise LocalError(f"expected 1 to {CLIENTS_MAX} clients of at least one replica, got {self.clients}")
        if not 0 < self.seconds <= SECONDS_MAX or not 0 <= self.grace <= SECONDS_MAX or self.pause < 0:
            raise LocalError(f"expected up to {SECONDS_MAX:g} seconds, got {self.seconds}, {self.grace}, {self.pause}")


class LoadResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the clients saw. Times are in seconds."""

    requests: int
    """That were answered."""
    seconds: float
    throughput: float
    latency: float
    """Mean, with all repetitions of a request."""
    latency_p50: float
    latency_p90: float
    latency_p99: float
    latency_max: float
    retries: int
    unavailable: int
    """How often a replica said 503."""
    broken: int
    """How often a connection could not be made, or broke."""
    wrong: list[str]
    """Answers that cannot be: an increment was lost, or counted twice."""
    counted: dict[str, int]
    """How many increments of each counter were confirmed."""
    unresolved: list[str]
    """Counters whose last increment was not answered: they may be one higher."""
    instants_ns: dict[str, list[int]]
    """When each replica has multicast, by its clock."""


def run_load(load: Load) -> LoadResult:
    """Let clients do what they do, and return what came of it.

    Raises:
        AddressError: An address is none.
        LocalError: It cannot be run like this.
        UnreachableError: A replica does not answer at the beginning.
    """
    load.check()
    begun = {address: _ask(address, END_OF_TIME).now_ns for address in load.addresses}
    crowd = _Crowd(load)
    started = time.perf_counter()
    asyncio.run(crowd.run())
    elapsed = time.perf_counter() - started
    instants: dict[str, list[int]] = {}
    for address, begun_ns in begun.items():
        with contextlib.suppress(UnreachableError):  # it was killed meanwhile, and what it knew is gone
            told = _ask(address, begun_ns)
            instants[told.replica] = told.instants_ns
    return crowd.result(elapsed, instants)


class _Recorded(msgspec.Struct, frozen=True):
    """When a replica has multicast."""

    replica: str
    now_ns: int
    instants_ns: list[int]


def _ask(address: str, after_ns: int) -> _Recorded:
    """Return when a replica has multicast, after an instant.

    Raises:
        UnreachableError: It does not answer.
    """
    host, port = parse_address(address)
    connection = http.client.HTTPConnection(host, port, timeout=ASK_SECONDS)
    try:
        connection.request("GET", f"/multicasts?after={after_ns}")
        response = connection.getresponse()
        body = response.read()
        if response.status != http.HTTPStatus.OK:
            raise UnreachableError(f"{address} answered {response.status} - at /multicasts")
        return msgspec.json.decode(body, type=_Recorded)
    except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
        raise UnreachableError(f"no answer from {address}: {error}") from error
    finally:
        connection.close()


class _Counted(msgspec.Struct, frozen=True):
    """What is of interest in an answer."""

    value: int


_counted: Final = msgspec.json.Decoder(_Counted)


class _Crowd:
    """All clients, and what they have seen."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._name = load.name or f"load-{time.time_ns():x}"
        self._random = random.Random(load.seed)
        self._latencies: list[float] = []
        self._wrong: list[str] = []
        self._confirmed: dict[str, int] = {}
        self._unresolved: list[str] = []
        self._retries = self._unavailable = self._broken = 0

    async def run(self) -> None:
        """Let all clients run until they are done."""
        begun = time.perf_counter()
        self._end = begun + self._load.seconds
        self._deadline = self._end + self._load.grace
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._load.clients):
                tasks.create_task(self._be_client(number))

    async def _be_client(self, number: int) -> None:
        """Send a request and take its answer, in an endless loop that the end of the time ends."""
        load = self._load
        caller = _Caller(load.addresses, number)
        counter = f"{self._name}-{number}"
        confirmed = 0
        try:
            while time.perf_counter() < self._end:
                begun = time.perf_counter()
                value = await self._count(caller, counter, f"{counter}-{confirmed}")
                if value is None:
                    self._unresolved.append(counter)
                    break
                confirmed += 1
                self._latencies.append(time.perf_counter() - begun)
                if value != confirmed and len(self._wrong) < WRONG_MAX:
                    self._wrong.append(f"{counter} is {value} after {confirmed} increments")
                if load.pause:
                    thought = self._random.expovariate(1 / load.pause)
                    await asyncio.sleep(min(thought, max(self._end - time.perf_counter(), 0)))
        finally:
            self._confirmed[counter] = confirmed
            caller.close()

    async def _count(self, caller: "_Caller", counter: str, key: str) -> int | None:
        """Have one increment counted, whatever it takes; None if there was no time left."""
        while True:
            try:
                async with asyncio.timeout(ATTEMPT_SECONDS):
                    status, body = await caller.post(counter, key)
                if status == http.HTTPStatus.OK:
                    return _counted.decode(body).value
                if status != http.HTTPStatus.SERVICE_UNAVAILABLE:
                    self._wrong.append(f"{caller.address} answered {status}: {body[:200].decode('latin-1')}")
                    return None
                self._unavailable += 1
            except (OSError, TimeoutError):
                self._broken += 1
            if time.perf_counter() > self._deadline:
                return None
            self._retries += 1
            caller.turn()
            await asyncio.sleep(RETRY_SECONDS)

    def result(self, elapsed: float, instants: dict[str, list[int]]) -> LoadResult:
        """Return what all have seen."""
        latencies = numpy.array(self._latencies or [0.0])
        median, ninety, most = (float(each) for each in numpy.quantile(latencies, (0.5, 0.9, 0.99)))
        return LoadResult(
            requests=len(self._latencies),
            seconds=elapsed,
            throughput=len(self._latencies) / elapsed,
            latency=float(latencies.mean()),
            latency_p50=median,
            latency_p90=ninety,
            latency_p99=most,
            latency_max=float(latencies.max()),
            retries=self._retries,
            unavailable=self._unavailable,
            broken=self._broken,
            wrong=self._wrong,
            counted=self._confirmed,
            unresolved=self._unresolved,
            instants_ns=instants,
        )


class _Caller:
    """The connection of a client to whichever replica it uses."""

    def __init__(self, addresses: Sequence[str], at: int) -> None:
        self._addresses, self._at = addresses, at
        self._conversation: _Conversation | None = None

    @property
    def address(self) -> str:
        """The replica that it uses."""
        return self._addresses[self._at % len(self._addresses)]

    async def post(self, counter: str, key: str) -> tuple[int, bytes]:
        """Send an increment, and return the status and the body of the answer.

        Raises:
            OSError: There is no connection, or it broke.
        """
        conversation = self._conversation
        if conversation is None or conversation.closed:
            host, port = parse_address(self.address)
            _, conversation = await asyncio.get_running_loop().create_connection(_Conversation, host, port)
            self._conversation = conversation
        request = (
            f"POST /counters/{counter} HTTP/1.1\r\nHost: {self.address}\r\n"
            f"Idempotency-Key: {key}\r\nContent-Length: 0\r\n\r\n"
        )
        return await conversation.ask(request.encode("ascii"))

    def turn(self) -> None:
        """Use the next replica."""
        self.close()
        self._at += 1

    def close(self) -> None:
        """Hang up."""
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None


class _Conversation(asyncio.Protocol):
    """One connection: a request, its answer, the next request."""

    def __init__(self) -> None:
        self.closed = False
        self._received = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - which sockets have
        self._transport = transport

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request, and return the answer's status and body.

        Raises:
            OSError: The connection is closed, or breaks.
        """
        if self.closed:
            raise ConnectionResetError("the connection was closed")
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        """Take bytes; an answer is complete with its body."""
        received, answer = self._received, self._answer
        received += data
        head = received.find(b"\r\n\r\n")
        if head < 0 and len(received) <= ANSWER_BYTES_MAX:
            return
        length = _length(bytes(received[:head]))
        if head < 0 or length is None or length > ANSWER_BYTES_MAX or answer is None or answer.done():
            self._transport.abort()  # this is no answer to what was asked
            return
        if len(received) < head + 4 + length:
            return
        status, body = int(received[9:12]), bytes(received[head + 4 : head + 4 + length])
        received.clear()
        answer.set_result((status, body))

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        self.closed = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError(str(error or "the replica hung up")))

    def close(self) -> None:
        """Hang up."""
        self.closed = True
        self._transport.close()


def _length(head: bytes) -> int | None:
    """Return how long the body is that a head announces; None if it says nothing that we understand."""
    if not head.startswith(b"HTTP/1.1 ") or not head[9:12].isdigit():
        return None
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value) if value.strip().isdigit() else None
    return None
