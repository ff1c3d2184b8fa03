"""Whoever can reach the port of a bus: garbage, wrong order, wrong names, too many, too slow, too much; and TLS."""

import random
import socket
import struct
import threading
import time

import pytest

from echoic.errors import EchoicError, RefusedError, RemoteError, UnreachableError
from echoic.links import Identity, dial, parse_address
from echoic.terms import Term, TermList
from echoic.toolbus import Bus, BusLimits
from echoic.toolbus.dialling import dial_bus
from echoic.toolbus.protocol import Hello, Message, MessageKind, encode_hello, encode_message
from tests.toolbus.conftest import MakeBus
from tests.toolbus.workshop import Calc, Wrong, script

ONE_EVAL = script(
    'rec-connect(T?) . snd-eval(T, expr("1+2")) . rec-value(T, val(V?)) . snd-terminate(T, x) . shutdown(V)'
)


def raw(bus: Bus) -> socket.socket:
    return socket.create_connection(parse_address(bus.address), timeout=30)


def framed(*messages: Message) -> bytes:
    return b"".join(b"".join(encode_message(message)) for message in messages)


def greeted(bus: Bus) -> socket.socket:
    """Return the socket of a tool that is connected and says nothing more."""
    stranger = raw(bus)
    stranger.sendall(framed(encode_hello(Hello("calc")), Message(MessageKind.ACCEPT)))
    deadline = time.monotonic() + 60
    while not bus.statistics().tools and time.monotonic() < deadline:
        time.sleep(0.01)
    return stranger


def is_hung_up(stranger: socket.socket) -> bool:
    try:
        while stranger.recv(65536):
            pass
    except ConnectionResetError:
        return True
    return True


def still_works(bus: Bus) -> None:
    tool = Calc()
    tool.connect(bus.address, timeout=30)
    tool.start()
    assert bus.wait(30)
    assert bus.value == 3


GARBAGE = [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\0" * 64,
    b"\xff" * 64,
    framed(Message(MessageKind.VALUE, 0, (1,))),
    framed(Message(MessageKind.WELCOME, 0, (1,))),
    framed(Message(MessageKind.HELLO)),
    framed(encode_hello(Hello("calc")), Message(MessageKind.VALUE, 0, (1,))),
    framed(encode_hello(Hello("calc", version_min=7, version_max=9))),
    framed(encode_hello(Hello("nobody"))),
    framed(encode_hello(Hello("calc", 77, "token"))),
    framed(encode_hello(Hello("calc", offer=Term("signature", 1)))),
    (2**31).to_bytes(4, "little") + bytes([16, 0, 0, 0]) + b"\0" * 8,
    random.Random(7).randbytes(4096),
]


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
def test_a_stranger_who_does_not_greet_is_sent_away_and_the_bus_goes_on(data: bytes, make_bus: MakeBus) -> None:
    bus = make_bus(ONE_EVAL)
    bus.start()
    with raw(bus) as stranger:
        stranger.sendall(data)
        assert is_hung_up(stranger)
    still_works(bus)


def test_a_tool_that_hangs_up_during_its_greeting_is_none(make_bus: MakeBus) -> None:
    bus = make_bus(ONE_EVAL)
    bus.start()
    stranger = raw(bus)
    stranger.sendall(framed(encode_hello(Hello("calc"))))
    stranger.recv(16)
    stranger.close()
    still_works(bus)


@pytest.mark.parametrize("abrupt", [False, True])
def test_a_tool_that_hangs_up_later_fires_rec_disconnect(abrupt: bool, make_bus: MakeBus) -> None:
    bus = make_bus(script("rec-connect(T?) . rec-disconnect(T) . shutdown(lost)"))
    bus.start()
    stranger = greeted(bus)
    if abrupt:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stranger.close()
    assert bus.wait(60)
    assert bus.value is Term("lost")


def test_a_stranger_who_says_nothing_is_sent_away_after_a_time(make_bus: MakeBus) -> None:
    bus = make_bus(ONE_EVAL, limits=BusLimits(hello_seconds=2.0))  # which a busy machine keeps to as well
    bus.start()
    with raw(bus) as stranger:
        begun = time.monotonic()
        assert is_hung_up(stranger)
        assert time.monotonic() - begun < 30
    still_works(bus)


def test_of_too_many_strangers_the_last_may_go_on(make_bus: MakeBus) -> None:
    bus = make_bus(ONE_EVAL, limits=BusLimits(strangers_max=4))
    bus.start()
    strangers = [raw(bus) for _ in range(20)]
    assert is_hung_up(strangers[0])
    still_works(bus)
    for stranger in strangers:
        stranger.close()


def test_a_tool_that_says_nonsense_is_warned_about_and_lost_when_there_is_too_much(make_bus: MakeBus) -> None:
    bus = make_bus(script("rec-connect(T?) . rec-disconnect(T) . shutdown(lost)"))
    bus.start()
    with greeted(bus) as tool:
        tool.sendall(framed(*[Message(MessageKind.EVAL, 1, (Term("x"),))] * 200))
        assert bus.wait(60)
    assert any("it said EVAL" in text for text in bus.warnings())


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 64,
        bytes.fromhex("0a000000 10000000 00000000 00000000  10000000 00000000 ffff 000000000000"),
        framed(Message(MessageKind.EVENT, 0, (1,)))[:20],
    ],
)
def test_a_tool_that_breaks_the_rules_later_is_lost(data: bytes, make_bus: MakeBus) -> None:
    bus = make_bus(script("rec-connect(T?) . rec-disconnect(T) . shutdown(lost)"))
    bus.start()
    with greeted(bus) as tool:
        time.sleep(0.1)
        tool.sendall(data)
        tool.shutdown(socket.SHUT_WR)
        assert bus.wait(60)
    assert bus.value is Term("lost")


def test_answers_in_the_wrong_order_are_ignored_with_a_warning(make_bus: MakeBus) -> None:
    bus = make_bus(script("rec-connect(T?) . rec-event(T, go(V?)) . snd-ack-event(T, go(V)) . shutdown(V)"))
    bus.start()
    with greeted(bus) as tool:
        wrong = [Message(MessageKind.VALUE, 9, (1,)), Message(MessageKind.VALUE, 0, (1,)), Message(MessageKind.VOID)]
        tool.sendall(framed(*wrong, Message(MessageKind.EVENT, 1, (Term("go", 5),))))
        assert bus.wait(60)
    assert bus.value == 5
    assert len(bus.warnings()) == 3


def test_a_message_above_the_limit_is_not_read(make_bus: MakeBus) -> None:
    bus = make_bus(
        script("rec-connect(T?) . rec-disconnect(T) . shutdown(lost)"), limits=BusLimits(message_bytes_max=10_000)
    )
    bus.start()
    with greeted(bus) as tool:
        time.sleep(0.1)
        tool.sendall(framed(Message(MessageKind.EVENT, 1, ("x" * 20_000,))))
        assert bus.wait(60)
    assert any("limit is 10000" in text for text in bus.warnings())


def test_a_tool_that_does_not_read_is_lost_when_its_queue_is_full_and_delays_nobody(make_bus: MakeBus) -> None:
    bus = make_bus(
        """
        tool sleeper is { }
        process P is let T: sleeper in
            rec-connect(T?) . (snd-ack-event(T, e) * rec-disconnect(T)) . shutdown(lost)
        endlet
        process Q is let T: sleeper in delta endlet
        toolbus(P)
        """.replace("snd-ack-event(T, e)", 'snd-response(T, r("' + "x" * 10_000 + '"))'),
        limits=BusLimits(queue_bytes_max=1_000_000),
    )
    bus.start()
    stranger = raw(bus)
    stranger.sendall(framed(encode_hello(Hello("sleeper")), Message(MessageKind.ACCEPT)))
    assert bus.wait(60)
    assert bus.value is Term("lost")
    assert any("does not take what it is told" in text for text in bus.warnings())
    stranger.close()


def test_a_mismatch_is_told_to_the_tool_with_both_sides(make_bus: MakeBus) -> None:
    bus = make_bus(ONE_EVAL)
    bus.start()
    with pytest.raises(RefusedError) as refused:
        Wrong().connect(bus.address)
    for text in ("expr(<str>)", "expr(<int>)", "val(<str>)", "val(<int>)"):
        assert text in str(refused.value)
    still_works(bus)


def test_there_may_be_only_so_many_tools(make_bus: MakeBus) -> None:
    bus = make_bus(script("rec-connect(T?) . rec-event(T, never)"), limits=BusLimits(tools_max=1))
    bus.start()
    with greeted(bus), pytest.raises(RefusedError, match="too many tools"):
        Calc().connect(bus.address)


def test_an_offer_nested_very_deeply_is_refused(make_bus: MakeBus) -> None:
    deep: object = Term("x")
    for _ in range(50_000):
        deep = Term("f", deep)
    offer = Term("signature", TermList(Term("rec-eval", Term("calc"), deep)), TermList(), TermList())
    bus = make_bus(ONE_EVAL)
    bus.start()
    with pytest.raises(RemoteError):
        dial_bus(bus.address, Hello("calc", offer=offer), None, 5)
    still_works(bus)


@pytest.mark.system
def test_tools_and_bus_speak_tls(make_bus: MakeBus, identity: Identity) -> None:
    bus = make_bus(ONE_EVAL, identity=identity)
    bus.start()
    with pytest.raises(EchoicError):
        Calc().connect(bus.address, timeout=2)
    tool = Calc()
    tool.connect(bus.address, identity=identity)
    tool.start()
    assert bus.wait(60)
    assert bus.value == 3


@pytest.mark.system
def test_a_tool_that_is_started_speaks_tls_too(make_bus: MakeBus, identity: Identity) -> None:
    bus = make_bus(ONE_EVAL.replace("rec-connect(T?)", "execute(calc, T?)"), identity=identity)
    assert bus.run(20) == 3


def test_a_tool_finds_no_bus(make_bus: MakeBus) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UnreachableError, match="did not answer"):
            Calc().connect(address, timeout=0.3)
    with pytest.raises(UnreachableError):
        Calc().connect(address, timeout=0.3)


def test_a_thousand_connections_that_come_and_go_leave_nothing(make_bus: MakeBus) -> None:
    bus = make_bus(ONE_EVAL)
    bus.start()
    before = threading.active_count()
    for _ in range(200):
        connection = dial(bus.address)
        connection.close()
    deadline = time.monotonic() + 60
    while threading.active_count() > before + 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before + 5
    still_works(bus)
