"""Chunks, and what becomes of them; messages through shared memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import LimitExceededError, MalformedFrameError
from echoic.links import Connection, Listener, dial
from echoic.toolbus.protocol import Message, MessageKind
from echoic.toolbus.references.transfer import VALUE_BYTES_MAX, Assembly, Link, chunks_of, frame_of
from echoic.toolbus.references.words import Chunk, encode_chunk
from echoic.wire import FrameKind, FrameReader


@given(st.lists(st.binary(max_size=50)), st.integers(1, 20))
def test_chunks_are_the_content_and_all_but_the_last_are_full(pieces: list[bytes], size: int) -> None:
    chunks = [bytes(chunk) for chunk in chunks_of(pieces, size)]
    assert b"".join(chunks) == b"".join(pieces)
    assert all(len(chunk) == size for chunk in chunks[:-1])
    assert all(0 < len(chunk) <= size for chunk in chunks)


def test_chunks_of_a_large_piece_are_views_of_it() -> None:
    content = bytes(1000)
    assert all(isinstance(chunk, memoryview) and chunk.obj is content for chunk in chunks_of([content], 300))


@given(st.lists(st.binary(max_size=50)))
def test_what_is_assembled_is_what_was_written(chunks: list[bytes]) -> None:
    assembly = Assembly(sum(map(len, chunks)))
    for chunk in chunks:
        assembly.write(memoryview(chunk))
    assert assembly.done() == b"".join(chunks)


def test_a_value_in_large_pages_is_the_same() -> None:
    content = bytes(range(251)) * 40_000
    assembly = Assembly(len(content))
    for chunk in chunks_of([content], 500_000):
        assembly.write(chunk)
    assert assembly.done() == content


def test_more_and_fewer_bytes_than_announced_are_refused() -> None:
    assembly = Assembly(10)
    assembly.write(b"12345")
    with pytest.raises(MalformedFrameError, match="5 bytes came of a value of 10"):
        assembly.done()
    with pytest.raises(MalformedFrameError, match="11 bytes came of a value of 10"):
        assembly.write(b"123456")


def test_nothing_is_set_aside_for_what_no_machine_has() -> None:
    with pytest.raises(LimitExceededError, match="limit is"):
        Assembly(VALUE_BYTES_MAX + 1)


def connected() -> tuple[Listener, Connection, Connection]:
    listener = Listener("127.0.0.1:0")
    dialled = dial(listener.address, polled=True)
    accepted = listener.accept(5000)
    assert accepted is not None
    return listener, dialled, accepted


class Heard:
    """Notes what comes over a link."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.reasons: list[str] = []

    def heard(self, _: Link, message: Message) -> None:
        self.messages.append(message)

    def gone(self, _: Link, reason: str) -> None:
        self.reasons.append(reason)


@pytest.mark.parametrize("known", [True, False])
def test_a_large_message_goes_through_shared_memory_and_a_small_one_does_not(known: bool) -> None:
    listener, dialled, accepted = connected()
    heard, kinds = Heard(), []
    said = [encode_chunk(Chunk(1, bytes([number]) * 500_000, False)) for number in range(5)]
    said.append(Message(MessageKind.VALUE, 7, ("small",)))
    try:
        for message in said:
            frame = frame_of(dialled, message)
            kinds += [each.kind for each in FrameReader().receive(b"".join(frame))]
            assert dialled.send(frame) == sum(map(len, frame))
        dialled.finish()
        Link(accepted, heard, known=known).serve()
    finally:
        for each in (listener, dialled, accepted):
            each.close()
    assert kinds == [FrameKind.SHARED] * 5 + [FrameKind.TOOL]
    content = [(each.values, bytes(each.body)) for each in heard.messages]
    assert content == ([(each.values, bytes(each.body)) for each in said] if known else [])
    assert heard.reasons == ["it closed the connection" if known else "expected a TOOL frame, got SHARED"]
