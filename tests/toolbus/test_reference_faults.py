"""Values by reference and tools that are hostile, leave, or come back: faults that were found once, and stay mended.

Whoever says what it should not is the only one who suffers: neither the bus nor another tool ends because of it, and
nobody waits for ever.
"""

import contextlib
import dataclasses
import math
import socket
import threading
from collections.abc import Iterator

import pytest

from echoic.links import parse_address
from echoic.terms import ReferenceKind, Term, TermList, parse_text
from echoic.toolbus import Bus, BusLimits, Tool, eval_
from echoic.toolbus.dialling import Exchanging
from echoic.toolbus.protocol import REFERENCES, REFERRING, Hello, Message, MessageKind, Resumption, encode_hello
from echoic.toolbus.references.exchange import Exchange
from echoic.toolbus.references.tokens import resumption_token
from echoic.toolbus.references.turnstile import AT_ONCE
from echoic.toolbus.references.words import (
    Chunk,
    Put,
    Registration,
    decode_get,
    decode_put,
    encode_chunk,
    encode_put,
)
from tests.papers.reference_puppets import (
    SECONDS,
    Conversation,
    Puppet,
    PuppetBus,
    eventually,
    hang_up,
    listen,
    place,
    quiet,
)
from tests.papers.reference_scripts import GET_X, NEXT, go_on, started, with_tools
from tests.papers.reference_workshop import Sink, Source, blob_of, digest, text_of, until
from tests.toolbus.conftest import MakeBus

pytestmark = pytest.mark.system
THRESHOLDS = [0, None, math.inf]
PING = "snd-eval(T, ping) . rec-value(T, pong) . shutdown(1)"
USE_X = f"{GET_X} . snd-do(T, use(X)) . {PING}"


@contextlib.contextmanager
def joined(tool: Tool, bus: Bus, *, data_listen: str | None = None) -> Iterator[None]:
    """Connect a tool that shares no values with others of this process."""
    tool.connect(bus.address, exchanging=Exchanging(None, data_listen, Exchange()))
    tool.start()
    try:
        yield
    finally:
        tool.close()


# Hostile tools


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_what_looks_like_a_place_for_a_value_is_told_together_with_large_values(
    threshold: float | None, make_bus: MakeBus
) -> None:
    large = text_of(70_000)
    body = f'snd-eval(S, get) . rec-value(S, val(Z?)) . snd-do(T, use-both(Z, "{large}")) . {PING}'
    bus, sink = make_bus(with_tools(body), threshold_bytes=threshold), Sink()
    with Puppet(started(bus), "source") as source, joined(sink, bus):
        source.answer("val(<reference(0)>)")
        assert bus.wait(SECONDS), bus.warnings()
    assert sink.digests == ["<reference(0)>", digest(large)]


@pytest.mark.parametrize("kind", [ReferenceKind.STR, ReferenceKind.LIST])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_content_that_is_not_what_was_said_does_not_end_who_is_told_it(
    threshold: float | None, kind: ReferenceKind, make_bus: MakeBus
) -> None:
    bus, sink = make_bus(with_tools(USE_X, "X: term"), threshold_bytes=threshold), Sink()
    with Puppet(started(bus), "source") as source, joined(sink, bus):
        asked = source.hear(MessageKind.EVAL)
        put = dataclasses.replace(decode_put(source.put(1, 70_000, kind=kind)), transaction=1, with_value=True)
        answer = Message(MessageKind.VALUE, asked.transaction, (parse_text("val(<reference(0)>)"),), REFERRING)
        source.say(encode_put(put), encode_chunk(Chunk(1, b"\xff" * 70_000, last=True)), answer)
        assert bus.wait(SECONDS), bus.warnings()
    assert sink.digests[0].startswith("lost-value(")


def wrong_answers(put: Put) -> dict[str, list[Message]]:
    """Return what an owner could say instead of a PUT and its chunks."""
    return {
        "another size": [encode_put(dataclasses.replace(put, size=999))],
        "another kind": [encode_put(dataclasses.replace(put, kind=ReferenceKind.BLOB))],
        "no PUT": [encode_chunk(Chunk(put.transaction, b"x", last=True))],
        "two PUTs": [encode_put(put), encode_put(put)],
        "more bytes": [encode_put(put), encode_chunk(Chunk(put.transaction, bytes(1001), last=True))],
        "no sense": [Message(MessageKind.PUT, put.transaction, (Term("x"),))],
    }


WRONG = [*wrong_answers(Put(1, 1, 1, (), (), ReferenceKind.STR, "", 0, 1000, b""))]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_owner_that_answers_wrongly_through_the_bus_loses_its_value_and_not_who_asks(
    wrong: str, make_bus: MakeBus
) -> None:
    bus, sink = make_bus(with_tools(USE_X), threshold_bytes=0), Sink()
    with Puppet(started(bus), "source") as source, joined(sink, bus, data_listen=""):
        told = source.put(1, 1000)
        source.answer("val(<reference(0)>)", told)
        get = decode_get(source.hear(MessageKind.GET))
        put = dataclasses.replace(decode_put(told), transaction=get.request, route=get.route, with_value=True)
        source.say(*wrong_answers(put)[wrong])
        assert bus.wait(SECONDS), bus.warnings()
    assert sink.digests[0].startswith("lost-value(")


# Leases


def test_a_tool_that_comes_back_and_has_heard_what_was_never_said_is_lost_at_once(make_bus: MakeBus) -> None:
    bus = make_bus(with_tools("rec-disconnect(S) . shutdown(gone)"), lease_seconds=600)
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink"):
        source.close()
        epoch = source.registration.epoch
        token = resumption_token(source.registration.key, number=source.number, epoch=epoch)
        resumption = Resumption(source.number, epoch, 999)
        hello = Hello("source", token=token, features=(REFERENCES,), resumption=resumption)

        def comes_back() -> bool:  # refused until the bus has noticed that it is away
            with Conversation(socket.create_connection(parse_address(bus.address), timeout=SECONDS)) as again:
                again.say(encode_hello(hello), Message(MessageKind.ACCEPT))
                again.closed.wait(SECONDS)
            return bus.wait(0.1)

        assert until(comes_back, SECONDS), bus.warnings()
    assert bus.value is Term("gone")


def test_a_tool_to_which_more_was_said_than_is_kept_until_it_comes_back_is_lost_at_once(make_bus: MakeBus) -> None:
    """A quarter of a gigabyte is kept, of one string that grows to 8 megabytes and is said again and again."""
    doubled = "X := concat(X, X) . " * 7
    body = f'X := "{text_of(65_536)}" . {doubled} {NEXT} . (snd-response(T, r(X)) * rec-disconnect(T)) . shutdown(gone)'
    bus = make_bus(
        with_tools(body), threshold_bytes=math.inf, lease_seconds=600, limits=BusLimits(queue_bytes_max=10**10)
    )
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink") as sink:
        sink.close()
        go_on(source)
        assert bus.wait(SECONDS), bus.warnings()
    assert bus.value is Term("gone")


class Canceller(Tool, name="source"):
    """Can be kept busy in the thread that reads its connection."""

    def __init__(self) -> None:
        self.busy, self.free = threading.Event(), threading.Event()

    def on_cancel(self) -> None:
        self.busy.set()
        self.free.wait()


LEASED = Registration(1, 77, 600_000, math.inf, b"k" * 32)


@contextlib.contextmanager
def cut_off() -> Iterator[tuple[Canceller, socket.socket]]:
    """Break the connection of a tool, so that the thread that reads it has still much to hear and is not who notices.

    Yields:
        The tool, which goes on when it is `free`, and the socket where it comes back.
    """
    listening, address = listen()
    tool, exchanging = Canceller(), Exchanging(exchange=Exchange())
    connecting = threading.Thread(target=tool.connect, args=(address,), kwargs={"exchanging": exchanging})
    connecting.start()
    with PuppetBus(listening, LEASED) as bus:
        connecting.join()
        tool.start()
        unread = [Message(MessageKind.ACK_EVENT, 9, (Term("x"),))] * 40  # so many that the tool has to say SEEN
        bus.say(Message(MessageKind.CANCEL, 1), *unread)
        assert tool.busy.wait(SECONDS)
    speaker = tool._service._speaker  # noqa: SLF001 - there is no other sign of what it has noticed
    for number in range(1000):
        if speaker._away:  # noqa: SLF001
            break
        tool.event(f"e{number}")
    assert speaker._away  # noqa: SLF001
    try:
        yield tool, listening
    finally:
        tool.free.set()
        tool.close()
        hang_up(listening)


def test_a_tool_comes_back_although_the_thread_that_reads_has_something_to_say_when_the_connection_breaks() -> None:
    with cut_off() as (tool, listening):
        tool.free.set()
        with PuppetBus(listening, LEASED) as bus:
            assert bus.hello.resumption is not None
            assert bus.hello.resumption.number == LEASED.tool


def test_a_tool_that_is_closed_while_it_comes_back_hangs_up() -> None:
    with cut_off() as (tool, listening):
        tool.free.set()
        assert not quiet([listening], SECONDS), "it dials"
        tool.close()
        with PuppetBus(listening, LEASED) as bus:
            assert bus.closed.wait(SECONDS)


# Tools that leave, and messages with many values


class Counter(Source, name="source"):
    """Has long lists of numbers, which are never cut off one by one."""

    @eval_
    def numbers(self, count: int) -> Term:
        return Term("val", list(range(count)))


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_long_list_may_have_values_of_tools_in_it(threshold: float | None, make_bus: MakeBus) -> None:
    """As a whole it cannot be a value of the bus: that one has not got its parts."""
    body = """snd-eval(S, make(100000)) . rec-value(S, val(X?)) . snd-eval(S, numbers(20000)) . rec-value(S, val(L?)) .
        L := join(L, [X]) . snd-do(T, use(L)) . """
    bus, sink = make_bus(with_tools(body + PING, "X: str, L: list"), threshold_bytes=threshold), Sink()
    started(bus)
    with joined(Counter(), bus), joined(sink, bus):
        assert bus.wait(SECONDS), bus.warnings()
    assert sink.digests == [digest([*range(20_000), text_of(100_000)])]


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_what_a_tool_says_before_it_closes_is_not_lost(threshold: float | None, make_bus: MakeBus) -> None:
    body = f"rec-event(S, e(X?)) . {NEXT.replace('S', 'T')} . snd-do(T, use(X)) . {PING}"
    bus, source, sink = make_bus(with_tools(body), threshold_bytes=threshold), Source(), Sink()
    started(bus)
    with joined(source, bus), joined(sink, bus):
        source.say("e", "str 100000")
        source.close()
        sink.event("next")
        assert bus.wait(SECONDS), bus.warnings()
    assert sink.digests == [digest(text_of(100_000))]


def test_of_many_values_of_one_owner_a_few_are_fetched_at_a_time(make_bus: MakeBus) -> None:
    """All at once they would be more than any queue takes, and each would wait longer than a fetch may take."""
    bus, sink = make_bus(with_tools(USE_X, "X: term"), threshold_bytes=0), Sink()
    with (
        Puppet(started(bus), "source") as source,
        source.offer(*[blob_of(1000, seed) for seed in range(20)]) as port,
        joined(sink, bus),
    ):
        port.serving.clear()
        places = TermList(*map(place, range(20)))
        source.answer(f"val({places})", *[source.put(number, 1000) for number in range(1, 21)])
        assert eventually(lambda: port.asking and port.asking[0].count(MessageKind.GET) == AT_ONCE)
        assert not until(lambda: port.asking[0].count(MessageKind.GET) > AT_ONCE, 0.2)
        port.serving.set()
        assert bus.wait(SECONDS), bus.warnings()
    assert sink.digests == [digest([text_of(1000, seed) for seed in range(20)])]
