"""Packs and the numbered messages that become of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import echoic
from echoic.errors import EchoicError, MalformedBatchError, MalformedFrameError
from echoic.formats import Format
from echoic.groups.stream import Stream, encode_description, encode_pack
from echoic.wire import encoder_of


@echoic.event
class Note:
    number: int
    text: str


@echoic.event
class Point:
    x: float
    y: float


NOTE, POINT = Format.of(Note), Format.of(Point)


def records_of(events: list[object]) -> list[bytes]:
    encode = encoder_of(Format.of(type(events[0]))).single(type(events[0]))
    return [encode(event) for event in events]


@given(st.lists(st.lists(st.builds(Note, st.integers(-(2**63), 2**63 - 1), st.text()), min_size=1), max_size=5))
def test_messages_come_out_as_they_went_in_numbered_without_a_gap(packs: list[list[Note]]) -> None:
    stream = Stream()
    assert stream.deliver(encode_description(NOTE)) is None
    received: list[object] = []
    for notes in packs:
        batch = stream.deliver(encode_pack(NOTE, records_of(list(notes))))
        assert batch is not None
        received += batch.to(Note).events()
        assert stream.sequence == len(received)
    assert received == [note for notes in packs for note in notes]


def test_types_of_fixed_and_of_variable_size_may_follow_each_other() -> None:
    stream = Stream()
    for format, event in ((NOTE, Note(1, "a")), (POINT, Point(1.0, 2.0)), (NOTE, Note(2, "b"))):
        stream.deliver(encode_description(format))
        batch = stream.deliver(encode_pack(format, records_of([event])))
        assert batch is not None
        assert list(batch.to(type(event))) == [event]
    assert stream.sequence == 3


def test_another_goes_on_from_a_summary() -> None:
    first, second = Stream(), Stream(99)
    first.deliver(encode_description(POINT))
    first.deliver(encode_pack(POINT, records_of([Point(1.0, 2.0)])))
    assert second.restore(first.summary()) == 1
    pack = encode_pack(POINT, records_of([Point(3.0, 4.0)]))
    assert second.deliver(pack) is not None
    assert second.sequence == 2


@pytest.mark.parametrize(
    "payload",
    [b"", b"\2", b"\7" + bytes(7), bytes(8), b"\1" + bytes(7) + b"no descriptor", b"\2" + bytes(7) + bytes(16)],
)
def test_a_pack_that_is_none_counts_as_none(payload: bytes) -> None:
    stream = Stream()
    with pytest.raises(EchoicError):
        stream.deliver(payload)
    assert stream.sequence == 0


def test_a_count_that_is_not_that_of_the_batch_is_refused() -> None:
    stream = Stream()
    stream.deliver(encode_description(POINT))
    pack = bytearray(encode_pack(POINT, records_of([Point(1.0, 2.0)])))
    pack[4] = 2
    with pytest.raises(MalformedBatchError, match="its header says 2"):
        stream.deliver(bytes(pack))
    assert stream.sequence == 0


@given(st.binary(max_size=200))
def test_whatever_comes_is_a_pack_or_refused(payload: bytes) -> None:
    stream = Stream()
    stream.deliver(encode_description(NOTE))
    try:
        stream.deliver(payload)
    except EchoicError:
        assert stream.sequence == 0


@pytest.mark.parametrize("summary", [b"", b"\xc1", b"\x92\x01\x91\xc4\x01x"])
def test_a_summary_that_is_none_is_refused(summary: bytes) -> None:
    with pytest.raises(MalformedFrameError):
        Stream().restore(summary)
