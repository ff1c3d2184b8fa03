"""Messages: they survive their way, and hostile bytes are refused with the one declared error."""

import typing
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.channels import Steering, messages
from echoic.channels.messages import Bind, Browse, Message, decode_message, encode_message
from echoic.errors import MalformedFrameError

TAGGED = messages.Describe.__base__

texts = st.text(max_size=20)
numbers = st.integers(-(2**63), 2**64 - 1)
sinks = st.builds(
    messages.SinkHub,
    texts,
    st.sampled_from(["block", "drop_oldest", "latest", "disconnect"]),
    st.lists(texts, max_size=3).map(tuple),
    texts,
    st.integers(0, 2**63),
)
blobs = st.binary(max_size=9)
steps = st.builds(
    messages.Step,
    texts,
    texts,
    st.builds(
        messages.Recipe,
        texts,
        texts,
        st.sampled_from(["ecode", "python"]),
        blobs,
        blobs,
        st.integers(0, 64),
        st.lists(st.tuples(texts, numbers), max_size=3).map(tuple),
        st.sampled_from(["source", "sink", "auto"]),
    ),
    blobs,
    numbers,
    numbers,
    blobs,
    blobs,
)
plain = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), texts)
lineages = st.lists(steps, max_size=3).map(tuple)
states = st.dictionaries(st.integers(0, 2**64 - 1), blobs, max_size=3)
some: list[st.SearchStrategy[Message]] = [
    st.builds(messages.Describe, texts),
    st.builds(
        messages.Described,
        texts,
        st.binary(max_size=9),
        st.lists(texts, max_size=3),
        st.lists(sinks, max_size=3),
        lineages,
        blobs,
    ),
    st.builds(messages.Steer, texts, texts, st.dictionaries(texts, plain, max_size=3)),
    st.builds(
        messages.Steered,
        st.lists(st.builds(Steering, texts, numbers, texts, st.dictionaries(texts, plain, max_size=3)), max_size=3).map(
            tuple
        ),
    ),
    st.builds(messages.Join, texts, st.sampled_from(["source", "sink"]), sinks, lineages),
    st.builds(messages.Joined, st.lists(sinks, max_size=3), lineages),
    st.builds(messages.Attach, texts, sinks, lineages),
    st.builds(messages.Derive, steps, st.booleans()),
    st.builds(messages.DerivedAs, lineages),
    st.builds(messages.Tune, texts, blobs, numbers, numbers),
    st.builds(messages.Saved, states, blobs),
    st.builds(messages.Restore, texts, states),
    st.builds(messages.Placed, numbers, numbers, numbers, st.booleans()),
    st.builds(messages.Trouble, texts, texts, texts, numbers, st.booleans()),
    st.builds(messages.Watch, texts, blobs),
    st.builds(messages.Unwatch, texts),
    st.builds(messages.Write, texts, numbers, st.integers(0, 2**64 - 1), st.lists(texts, max_size=3).map(tuple), blobs),
    st.builds(messages.Update, texts, numbers, blobs, numbers, st.booleans()),
    st.builds(messages.Detach, texts, texts, st.integers(0, 2**63)),
    st.builds(
        messages.Bind,
        st.integers(0, 2**32),
        texts,
        st.dictionaries(st.integers(0, 2**64 - 1), st.integers(0, 2**63), max_size=3),
        st.dictionaries(st.integers(0, 2**64 - 1), st.integers(0, 2**63), max_size=3),
        st.integers(0, 2**63),
    ),
    st.builds(messages.Gap, numbers, numbers, numbers, numbers, texts),
    st.builds(messages.Cut, numbers, texts, st.booleans()),
    st.just(messages.Farewell()),
    st.just(messages.Done()),
    st.builds(messages.Refused, texts, texts),
]


@given(numbers, st.booleans(), st.one_of(some))
def test_a_message_survives_its_way(number: int, reply: bool, message: Message) -> None:
    envelope = decode_message(memoryview(encode_message(number, message, reply=reply)))
    assert (envelope.number, envelope.reply, envelope.message) == (number, reply, message)


@given(st.binary(max_size=200))
def test_bytes_that_say_nothing_are_refused_as_declared(data: bytes) -> None:
    try:
        decode_message(data)
    except MalformedFrameError:
        pass


def test_mutated_messages_are_read_or_refused_as_declared() -> None:
    random, outcomes = Random(20261116), {"read": 0, "refused": 0}
    samples = [encode_message(1, Bind(3, "echoic://a:1/x", {1: 2}, {1: 0}, 7)), encode_message(0, Browse())]
    samples.append(encode_message(9, messages.Join("x", "sink", messages.SinkHub("a:1", "latest", ("s",), "h", 3))))
    for _ in range(20_000):
        data = bytearray(random.choice(samples))
        for _ in range(random.choice((1, 1, 2, 5))):
            data[random.randrange(len(data))] = random.randrange(256)
        try:
            decode_message(bytes(data[: random.choice((len(data), random.randrange(1, len(data) + 1)))]))
            outcomes["read"] += 1
        except MalformedFrameError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 500


def test_a_message_nested_beyond_measure_is_refused() -> None:
    with pytest.raises(MalformedFrameError):
        decode_message(b"\x93\x01\xc2" + b"\x91" * 100_000 + b"\x01")


def test_a_peer_that_does_not_know_of_subscriptions_is_understood() -> None:
    plain = msgspec.msgpack.encode([0, False, {"type": "Bind", "number": 1, "channel": "c", "positions": {5: 6}}])
    assert decode_message(plain).message == Bind(1, "c", {5: 6})


def test_every_kind_of_message_is_part_of_the_union() -> None:
    tagged = [kind for kind in vars(messages).values() if isinstance(kind, type) and kind.__base__ is TAGGED]
    assert set(tagged) == set(typing.get_args(Message))
