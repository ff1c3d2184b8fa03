"""Messages and greetings, as bytes and as steps."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import (
    EncodeError,
    LimitExceededError,
    MalformedFrameError,
    MalformedTermError,
    ProtocolVersionError,
    RefusedError,
    RemoteError,
)
from echoic.terms import UNDEFINED, Term, TermList
from echoic.toolbus.greeting import BusGreeting, ToolGreeting
from echoic.toolbus.protocol import (
    LAST,
    REFERRING,
    WITH_VALUE,
    Hello,
    Message,
    MessageKind,
    decode_hello,
    decode_message,
    encode_hello,
    encode_message,
    message_of,
)
from echoic.wire import FrameReader

SIGNATURE = Term("signature", TermList(), TermList(), TermList())
scalars = st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | st.booleans() | st.binary(max_size=20)
values = st.recursive(
    scalars,
    lambda inner: (
        st.builds(
            lambda name, parts: Term(name, *parts), st.from_regex(r"[a-z][a-z-]{0,5}", fullmatch=True), st.lists(inner)
        )
        | st.lists(inner).map(lambda parts: TermList(*parts))
    ),
    max_leaves=10,
)
transactions = st.integers(0, 2**32 - 1)
kinds = st.sampled_from([kind for kind in MessageKind if kind is not MessageKind.CHUNK])
said = st.builds(Message, kinds, transactions, st.lists(values, max_size=4).map(tuple))
chunks = st.builds(
    Message, st.just(MessageKind.CHUNK), transactions, st.just(()), st.sampled_from([0, LAST]), st.binary(max_size=40)
)
messages = said | chunks


@given(st.lists(messages, max_size=5), st.lists(st.integers(1, 50)), st.booleans())
def test_messages_survive_any_cutting_of_the_stream(sent: list[Message], sizes: list[int], checked: bool) -> None:
    stream = b"".join(b"".join(encode_message(message, checked=checked)) for message in sent)
    reader, received, at = FrameReader(), [], 0
    for size in [*sizes, len(stream)]:
        received += [message_of(frame) for frame in reader.receive(stream[at : at + size])]
        at += size
    assert received == sent


def test_the_bytes_of_a_message_are_those_of_the_documentation() -> None:
    told = Message(MessageKind.EVAL, 7, (Term("add", 2, 2),))
    expected = bytes.fromhex(
        "14000000 10 00 0000 00000000 00000000"  # 20 bytes, TOOL
        "20 00 0000 07000000"  # EVAL, transaction 7
        "04 01  01 02 03 616464  02 02  80 02"  # [add(2,2)]
        "00000000"
    )
    assert b"".join(encode_message(told)) == expected


def test_a_hello_has_the_documented_bytes() -> None:
    frame = b"".join(encode_message(encode_hello(Hello("sums", -1, "abc"))))
    payload = bytes.fromhex(
        "01 00 0000 00000000"
        "04 06  01 02 0b 6563686f69632d746f6f6c 02 01 80 02  21 00 04 73756d73  02 ffffffff0f  21 00 03 616263  04 00"
        "01 00 09 756e646566696e6564"
    )
    assert frame[16 : 16 + len(payload)] == payload
    assert frame[:4] == len(payload).to_bytes(4, "little")


@given(st.binary(max_size=60))
def test_no_payload_does_more_than_be_refused(payload: bytes) -> None:
    try:
        decode_message(payload)
    except RemoteError:
        pass


def test_kinds_of_a_later_version_are_skipped() -> None:
    assert decode_message(bytes([63, 0, 0, 0, 0, 0, 0, 0])) is None


@pytest.mark.parametrize(
    "payload", [b"", b"\x20\x00\x00", b"\x20\x01\x00\x00\x00\x00\x00\x00", b"\x20" + 7 * b"\0" + b"\x02\x01"]
)
def test_what_is_no_message_is_refused(payload: bytes) -> None:
    with pytest.raises((MalformedFrameError, MalformedTermError)):
        decode_message(payload)


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        (MessageKind.VALUE, REFERRING),
        (MessageKind.EVAL, REFERRING),
        (MessageKind.TERMINATE, REFERRING),
        (MessageKind.PUT, WITH_VALUE),
    ],
)
def test_a_message_has_the_flags_of_its_kind_and_no_others(kind: MessageKind, flags: int) -> None:
    for tried in range(8):
        payload = b"".join(encode_message(Message(kind, 7, (1,), tried)))[16:28]
        if tried in (0, flags):
            assert decode_message(payload) == Message(kind, 7, (1,), tried)
        else:
            with pytest.raises(MalformedFrameError, match=f"flags {tried}"):
                decode_message(payload)


def test_a_message_that_is_too_long_for_its_receiver_is_not_sent() -> None:
    with pytest.raises(EncodeError):
        encode_message(Message(MessageKind.VALUE, 1, ("x" * 1000,)), message_bytes_max=100)


def test_a_tool_and_a_bus_meet() -> None:
    told: list[Hello] = []

    def admit(hello: Hello) -> Term:
        told.append(hello)
        return SIGNATURE

    tool = ToolGreeting(Hello("calc", 3, "secret", ("later",), SIGNATURE))
    bus = BusGreeting(admit, 12345)
    (interface,) = bus.receive(tool.opening)
    (accept,) = tool.receive(interface)
    assert bus.receive(accept) == []
    assert bus.done
    assert tool.interface is SIGNATURE
    assert tool.message_bytes_max == 12345
    assert tool.receive(Message(MessageKind.WELCOME, 0, (3,))) == []
    assert (tool.done, tool.number) == (True, 3)
    assert told == [Hello("calc", 3, "secret", ("later",), SIGNATURE)]


def test_a_tool_may_refuse_its_interface_with_a_reason() -> None:
    tool = ToolGreeting(Hello("calc"), lambda interface: "no `expr` here")
    bus = BusGreeting(lambda hello: SIGNATURE)
    (interface,) = bus.receive(tool.opening)
    (refusal,) = tool.receive(interface)
    with pytest.raises(RefusedError, match="no `expr` here"):
        bus.receive(refusal)


def test_a_bus_may_refuse_a_tool_with_a_reason() -> None:
    tool = ToolGreeting(Hello("calc"))
    with pytest.raises(RefusedError, match="too many"):
        tool.receive(Message(MessageKind.REFUSE, 0, ("too many tools",)))


def test_versions_are_negotiated() -> None:
    later = Hello("calc", version_min=1, version_max=9)
    (interface,) = BusGreeting(lambda hello: SIGNATURE).receive(encode_hello(later))
    assert interface.values[0] == 1
    with pytest.raises(ProtocolVersionError, match="versions 2 to 9"):
        BusGreeting(lambda hello: SIGNATURE).receive(encode_hello(Hello("calc", version_min=2, version_max=9)))
    with pytest.raises(ProtocolVersionError, match="version 2"):
        ToolGreeting(Hello("calc")).receive(Message(MessageKind.INTERFACE, 0, (2, SIGNATURE, 100)))


@pytest.mark.parametrize(
    "message",
    [
        Message(MessageKind.VALUE, 0, (1,)),
        Message(MessageKind.HELLO),
        Message(MessageKind.HELLO, 0, ("calc",)),
        Message(MessageKind.HELLO, 0, (Term("echoic-tool", 1, 1), "", -1, "", TermList(), UNDEFINED)),
        Message(MessageKind.HELLO, 0, (Term("echoic-tool", 1, 1), "n" * 1000, -1, "", TermList(), UNDEFINED)),
        Message(MessageKind.HELLO, 0, (Term("echoic-tool", 1, 1), "n", -1, "t" * 10_000, TermList(), UNDEFINED)),
        Message(MessageKind.HELLO, 0, (Term("echoic-tool", 1, 1), "n", "1", "", TermList(), UNDEFINED)),
    ],
)
def test_a_hello_must_be_one(message: Message) -> None:
    with pytest.raises(MalformedFrameError):
        decode_hello(message)


@given(st.lists(messages | st.none(), max_size=4))
def test_whatever_is_said_a_greeting_ends_in_order(said: list[Message | None]) -> None:
    for greeting in (BusGreeting(lambda hello: SIGNATURE), ToolGreeting(Hello("calc"))):
        try:
            for message in said:
                greeting.receive(message)
        except (MalformedFrameError, RefusedError, ProtocolVersionError, LimitExceededError):
            pass


def test_the_bytes_in_the_documentation_are_right() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "tool-protocol.md").read_text("utf-8")
    block = text.partition("## 7.")[2].split("```")[1]
    shown = bytes.fromhex("".join(line[:58] for line in block.splitlines()))
    hello = encode_message(encode_hello(Hello("sums", -1, "abc")))
    told = encode_message(Message(MessageKind.EVAL, 7, (Term("add", 2, 2),)))
    assert shown == b"".join([*hello, *told])
