"""The words about references, as bytes and against strangers."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import MalformedFrameError
from echoic.terms import Reference, ReferenceKind, Term, TermList, Value
from echoic.toolbus.protocol import LAST, WITH_VALUE, Message, MessageKind, decode_message, encode_message
from echoic.toolbus.references.routes import Route
from echoic.toolbus.references.tokens import token_for
from echoic.toolbus.references.words import (
    CHUNK_BYTES_MAX,
    FINISHED_MAX,
    Chunk,
    Get,
    More,
    Put,
    Refusal,
    Registration,
    decode_acknowledgement,
    decode_chunk,
    decode_finished,
    decode_get,
    decode_more,
    decode_put,
    decode_refusal,
    decode_registration,
    decode_seen,
    encode_acknowledgement,
    encode_chunk,
    encode_end,
    encode_finished,
    encode_get,
    encode_more,
    encode_put,
    encode_refusal,
    encode_registration,
    encode_seen,
)

REGISTRATION = Registration(3, 9, 5000, math.inf, b"\1\2")
PUT = Put(7, 17, 3, ("tcp://h:1",), (0, 2), ReferenceKind.BLOB, "", 0, 5_000_000, b"\xaa", Route.RELAYED, 9)
VALUE = Put(7, 17, 3, (), (0,), ReferenceKind.APPLICATION, "f", 2, 300, with_value=True)
GET = Get(11, 17, 3, (0, 2), ("tcp://h:2",), b"\xaa", Route.DIRECT, 4, 9, b"\xbb")

GOLDEN = {
    "REG": (
        encode_registration(REGISTRATION),
        "30 00 0000 00000000  04 06  02 03  02 09  02 8827  02 ffffffff0f  06 02 0102  02 01",
    ),
    "PUT": (
        encode_put(PUT),
        (
            "31 00 0000 07000000  04 0c  02 07  02 11  02 03  04 01 21 00 09 7463703a2f2f683a31  04 02 02 00 02 02"
            "21 00 04 626c6f62  21 00 00  80 07  02 c096b102  06 01 aa  02 01  02 09"
        ),
    ),
    "PUT with value": (
        encode_put(VALUE),
        (
            "31 04 0000 07000000  04 0c  02 07  02 11  02 03  04 00  04 01 02 00  21 00 04 6170706c  21 00 01 66"
            "02 02  02 ac02  06 00  80 06  80 06"
        ),
    ),
    "GET": (
        encode_get(GET),
        (
            "32 00 0000 0b000000  04 0a  02 0b  02 11  02 03  04 02 02 00 02 02  04 01 21 00 09 7463703a2f2f683a32"
            "06 01 aa  80 05  02 04  02 09  06 01 bb"
        ),
    ),
    "ACK": (encode_acknowledgement(7), "33 00 0000 07000000  04 01  02 07"),
    "FIN": (encode_finished([17, 18])[0], "34 00 0000 00000000  04 02  02 11  02 12"),
    "END": (encode_end(), "35 00 0000 00000000"),
    "CHUNK": (encode_chunk(Chunk(11, b"abc", False)), "36 00 0000 0b000000 616263"),
    "CHUNK, the last": (encode_chunk(Chunk(11, b"", True)), "36 02 0000 0b000000"),
    "MORE": (encode_more(More(11, 4)), "37 00 0000 0b000000  04 02  02 0b  02 04"),
    "NAK": (encode_refusal(Refusal(11, "gone")), "38 00 0000 0b000000  04 02  02 0b  21 00 04 676f6e65"),
    "SEEN": (encode_seen(12), "39 00 0000 00000000  04 01  02 0c"),
}

Decode = Callable[[Message], Any]
DECODERS: dict[MessageKind, Decode] = {
    MessageKind.REG: decode_registration,
    MessageKind.PUT: decode_put,
    MessageKind.GET: decode_get,
    MessageKind.ACK: decode_acknowledgement,
    MessageKind.FIN: decode_finished,
    MessageKind.CHUNK: decode_chunk,
    MessageKind.MORE: decode_more,
    MessageKind.NAK: decode_refusal,
    MessageKind.SEEN: decode_seen,
}

longs = st.integers(0, 2**63 - 1)
shorts = st.integers(0, 2**32 - 1)
tokens = st.binary(max_size=64)
endpoints = st.lists(st.text(max_size=20), max_size=8).map(tuple)
paths = st.lists(shorts, max_size=64).map(tuple)
registrations = st.builds(
    Registration, longs, longs, longs, longs | st.just(math.inf) | st.none(), tokens, st.integers(1, 2**63 - 1)
)
puts = st.builds(
    Put,
    shorts,
    longs,
    longs,
    endpoints,
    paths,
    st.sampled_from(ReferenceKind),
    st.text(max_size=20),
    shorts,
    longs,
    tokens,
    st.sampled_from(Route),
    longs,
    st.booleans(),
)
gets = st.builds(
    Get, shorts, longs, longs, paths, endpoints, tokens, st.sampled_from(Route), longs, longs, st.binary(max_size=64)
)
scalars = st.integers() | st.booleans() | st.floats() | st.text(max_size=5) | st.binary(max_size=5)
values: st.SearchStrategy[Any] = scalars | st.lists(scalars, max_size=3).map(lambda parts: TermList(*parts))


def through_the_wire(message: Message) -> Message:
    frame = b"".join(encode_message(message))
    received = decode_message(frame[16 : 16 + int.from_bytes(frame[:4], "little")])
    assert received is not None
    return received


@pytest.mark.parametrize("name", GOLDEN)
def test_the_words_have_the_committed_bytes(name: str) -> None:
    message, text = GOLDEN[name]
    payload = bytes.fromhex(text)
    frame = b"".join(encode_message(message))
    assert frame[16 : 16 + int.from_bytes(frame[:4], "little")].hex(" ") == payload.hex(" ")
    assert decode_message(payload) == message


@given(registrations)
def test_a_registration_arrives_as_it_was_sent(sent: Registration) -> None:
    assert decode_registration(through_the_wire(encode_registration(sent))) == sent


@given(puts)
def test_a_put_arrives_as_it_was_sent(sent: Put) -> None:
    assert decode_put(through_the_wire(encode_put(sent))) == sent


@given(gets)
def test_a_get_arrives_as_it_was_sent(sent: Get) -> None:
    assert decode_get(through_the_wire(encode_get(sent))) == sent


@given(shorts, st.binary(max_size=30), st.booleans(), st.integers(1, 1024), st.text(max_size=40))
def test_the_short_words_arrive_as_they_were_sent(
    number: int, body: bytes, last: bool, chunks: int, reason: str
) -> None:
    assert decode_acknowledgement(through_the_wire(encode_acknowledgement(number))) == number
    assert decode_more(through_the_wire(encode_more(More(number, chunks)))) == More(number, chunks)
    assert decode_refusal(through_the_wire(encode_refusal(Refusal(number, reason)))) == Refusal(number, reason)
    assert decode_seen(through_the_wire(encode_seen(number))) == number
    if body or last:
        assert decode_chunk(through_the_wire(encode_chunk(Chunk(number, body, last)))) == Chunk(number, body, last)


@pytest.mark.parametrize("count", [0, 1, FINISHED_MAX, FINISHED_MAX + 1, 3 * FINISHED_MAX])
def test_any_number_of_variables_can_be_finished(count: int) -> None:
    messages = encode_finished(range(count))
    assert [number for message in messages for number in decode_finished(message)] == list(range(count))


def test_a_put_tells_a_reference() -> None:
    assert PUT.reference is Reference(3, 17, (0, 2), ReferenceKind.BLOB, 5_000_000, epoch=9)
    assert VALUE.reference is Reference(3, 17, (0,), ReferenceKind.APPLICATION, 300, name="f", count=2)


def test_values_of_a_later_version_are_ignored() -> None:
    for message in (encode_registration(REGISTRATION), encode_put(PUT), encode_get(GET), encode_acknowledgement(7)):
        longer = dataclasses.replace(message, values=(*message.values, "more", 1))
        assert DECODERS[message.kind](longer) == DECODERS[message.kind](message)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        (0, 8),  # not that of the head
        (1, -1),
        (1, 2**63),
        (1, True),
        (1, 1.0),
        (2, "3"),
        (3, "tcp://h:1"),
        (3, TermList(*["x"] * 9)),
        (3, TermList("x" * 257)),
        (3, TermList(1)),
        (4, TermList(*[0] * 65)),
        (4, TermList(-1)),
        (4, TermList(2**32)),
        (4, Term("path")),
        (5, "int"),
        (5, 1),
        (5, "x" * 1000),
        (6, b"f"),
        (6, "f" * 65_537),
        (6, "é" * 32_769),
        (7, 2**32),
        (8, -1),
        (9, "token"),
        (9, bytes(65)),
        (10, 3),
        (10, -1),
        (11, Term("epoch")),
    ],
)
def test_a_put_with_a_wrong_field_is_refused(field: int, wrong: Value) -> None:
    message = encode_put(PUT)
    spoilt = (*message.values[:field], wrong, *message.values[field + 1 :])
    with pytest.raises(MalformedFrameError):
        decode_put(dataclasses.replace(message, values=spoilt))


@pytest.mark.parametrize(
    "message",
    [
        Message(MessageKind.FIN, 0, (1,) * (FINISHED_MAX + 1)),
        Message(MessageKind.FIN, 0, (1, "2")),
        Message(MessageKind.MORE, 11, (11, 0)),
        Message(MessageKind.MORE, 11, (11, 1025)),
        Message(MessageKind.NAK, 11, (11, "x" * 1025)),
        Message(MessageKind.NAK, 11, (11,)),
        Message(MessageKind.ACK, 7, (8,)),
        Message(MessageKind.REG, 0, (3, 9, 5000, -3, b"", 1)),
        Message(MessageKind.CHUNK, 1, (), 0, b""),
        Message(MessageKind.CHUNK, 1, (), LAST, bytes(CHUNK_BYTES_MAX + 1)),
    ],
)
def test_a_word_beyond_its_limits_is_refused(message: Message) -> None:
    with pytest.raises(MalformedFrameError):
        DECODERS[message.kind](message)


def test_a_reason_that_is_too_long_is_shortened() -> None:
    assert decode_refusal(encode_refusal(Refusal(1, "x" * 5000))).reason == "x" * 1024
    assert decode_refusal(encode_refusal(Refusal(1, "x" + "ä" * 5000))).reason == "x" + "ä" * 511


@given(st.sampled_from(list(DECODERS)), st.sampled_from(list(DECODERS)), st.data())
def test_no_message_does_more_than_be_refused(kind: MessageKind, decoder: MessageKind, data: st.DataObject) -> None:
    transaction = data.draw(st.integers(0, 3))
    said = tuple(data.draw(st.lists(values, max_size=14)))
    message = Message(kind, transaction, said, data.draw(st.sampled_from([0, LAST, WITH_VALUE])), b"")
    try:
        DECODERS[decoder](message)
    except MalformedFrameError:
        pass


@given(puts, st.integers(0, 11), values)
def test_no_put_with_any_field_does_more_than_be_refused(put: Put, field: int, wrong: Any) -> None:
    message = encode_put(put)
    spoilt = (*message.values[:field], wrong, *message.values[field + 1 :])
    try:
        again = encode_put(decode_put(dataclasses.replace(message, values=spoilt)))
    except MalformedFrameError:
        return
    assert again.values == spoilt


def test_the_bytes_in_the_documentation_are_right() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "tool-protocol.md").read_text("utf-8")
    block = text.partition("### Bytes")[2].split("```")[1]
    shown = bytes.fromhex("".join(line[:58] for line in block.splitlines()))
    assert shown == bytes.fromhex(GOLDEN["PUT"][1] + GOLDEN["GET"][1])
    token = bytes.fromhex(text.partition("### Tokens")[2].split("```")[1])
    assert token == token_for(bytes(range(32)), owner=3, variable=17, path=(0, 2), asker=4, epoch=9)
