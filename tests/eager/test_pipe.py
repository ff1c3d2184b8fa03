"""Messages over pipes: limits, deadlines, and ends that break rules."""

import os
import struct
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.eager.dialogue import Begun, Changed, Done, decode_from_hub, decode_to_hub
from echoic.eager.pipe import BODY_BYTES_MAX, HEAD_BYTES_MAX, Deadline, Pipe
from echoic.errors import ModulatorError

SOON = 0.05
PATIENCE = 60.0


@pytest.fixture
def ends() -> Iterator[tuple[Pipe, Pipe, list[int]]]:
    """The hub's end, the other end, and the descriptors of the latter."""
    replies, telling = os.pipe()
    requests, asking = os.pipe()
    descriptors = [replies, telling, requests, asking]
    os.set_blocking(replies, False)
    os.set_blocking(asking, False)
    yield Pipe(replies, asking, alone=True), Pipe(requests, telling, alone=False), [requests, telling]
    for each in descriptors:
        try:
            os.close(each)
        except OSError:
            continue


@given(head=st.integers(0, 2**63 - 1), body=st.binary(max_size=300_000))
def test_a_message_arrives_as_it_was_sent(head: int, body: bytes) -> None:
    reading, writing = os.pipe()
    pipe = Pipe(reading, writing, alone=True)
    sender = threading.Thread(target=pipe.send, args=(Changed("box", head, stale=False), [body[:7], body[7:]]))
    sender.start()
    received, rest = pipe.receive()
    sender.join()
    os.close(reading)
    os.close(writing)
    assert decode_from_hub(received) == Changed("box", head, stale=False)
    assert rest == body


def test_messages_go_both_ways_in_turn(ends: tuple[Pipe, Pipe, list[int]]) -> None:
    hub, other, _ = ends
    for number in range(3):
        hub.send(Begun(filtered=True), [b"question"], Deadline(PATIENCE, "a test"))
        assert bytes(other.receive()[1]) == b"question"
        other.send(Done(number, batch=False, faults=(), waiting=False), [])
        head, _ = hub.receive(Deadline(PATIENCE, "a test"))
        assert decode_to_hub(head) == Done(number, batch=False, faults=(), waiting=False)
        assert hub.silent()


def test_the_hub_may_send_several_messages_before_an_answer(ends: tuple[Pipe, Pipe, list[int]]) -> None:
    hub, other, _ = ends
    for version in range(5):
        hub.send(Changed("box", version, stale=False), [bytes(version)], Deadline(PATIENCE, "a test"))
    for version in range(5):
        head, body = other.receive()
        assert (decode_from_hub(head), len(body)) == (Changed("box", version, stale=False), version)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", r"it took longer than 0\.05 s, the limit of one call"),
        (b"\1\0\0", r"it took longer than 0\.05 s, the limit of one call"),
        (struct.pack("<II", 10, 0) + b"half", r"it took longer than 0\.05 s, the limit of one call"),
        (struct.pack("<II", HEAD_BYTES_MAX + 1, 0), f"{HEAD_BYTES_MAX + 1} bytes of values, limit is {HEAD_BYTES_MAX}"),
        (struct.pack("<II", 0, BODY_BYTES_MAX + 1), f"{BODY_BYTES_MAX + 1} bytes of events, limit is {BODY_BYTES_MAX}"),
        (struct.pack("<II", 1, 0) + b"ab", "sent 1 bytes behind an answer"),
    ],
)
def test_what_is_no_message_in_time_is_refused(ends: tuple[Pipe, Pipe, list[int]], sent: bytes, why: str) -> None:
    hub, _, (_, telling) = ends
    os.write(telling, sent)
    with pytest.raises(ModulatorError, match=why):
        hub.receive(Deadline(SOON, "one call"))


def test_an_end_that_is_closed_is_noticed_at_once(ends: tuple[Pipe, Pipe, list[int]]) -> None:
    hub, _, descriptors = ends
    for each in descriptors:
        os.close(each)
    with pytest.raises(ModulatorError, match="its process has ended"):
        hub.receive(Deadline(PATIENCE, "one call"))
    with pytest.raises(ModulatorError, match="its process does not read"):
        hub.send(Begun(filtered=True), [], Deadline(PATIENCE, "one call"))


def test_an_end_that_does_not_read_comes_to_the_deadline(ends: tuple[Pipe, Pipe, list[int]]) -> None:
    hub, _, _ = ends
    with pytest.raises(ModulatorError, match="the limit of one call"):
        hub.send(Begun(filtered=True), [bytes(1024 * 1024)], Deadline(SOON, "one call"))


def test_a_message_that_is_too_large_is_not_sent(ends: tuple[Pipe, Pipe, list[int]]) -> None:
    hub, _, _ = ends
    with pytest.raises(ModulatorError, match="bytes of events, limit is"):
        hub.send(Begun(filtered=True), [bytes(BODY_BYTES_MAX), b"x"], Deadline(PATIENCE, "one call"))
