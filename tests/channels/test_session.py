"""Sessions: whatever breaks when, every frame is received once and in order."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.channels import Session
from echoic.channels.session import TELL_BYTES, TELL_FRAMES
from echoic.errors import MalformedFrameError

steps = st.lists(st.sampled_from(["post", "write", "read", "tell", "lose"]), max_size=120)


class Pair:
    """One direction between two hubs: a sender, a receiver, and a connection that can be lost with what is on it."""

    def __init__(self) -> None:
        self.sender, self.receiver = Session(1), Session(1)
        self.posted: list[bytes] = []
        self.received: list[bytes] = []
        self.wire: deque[bytes] = deque()
        self.told: deque[int] = deque()

    def step(self, name: str) -> None:
        if name == "post":
            frame = str(len(self.posted)).encode()
            self.posted.append(frame)
            self.sender.post(frame)
        elif name == "write" and self.sender.outbox:
            self.wire.append(self.sender.outbox.popleft())
        elif name == "read" and self.wire:
            frame = self.wire.popleft()
            self.received.append(frame)
            if self.receiver.receive(len(frame)):
                self.told.append(self.receiver.tell())
        elif name == "tell":
            self.told.append(self.receiver.tell())
            if len(self.told) > 1:
                self.sender.told(self.told.popleft())
        elif name == "lose":
            self.wire.clear()
            self.told.clear()
            self.sender.resume(self.receiver.tell())


@given(steps)
def test_every_frame_is_received_once_and_in_order_however_often_the_connection_is_lost(names: list[str]) -> None:
    pair = Pair()
    for name in names:
        pair.step(name)
        assert pair.received == pair.posted[: len(pair.received)]
        assert pair.sender.statistics().resent >= 0
    pair.step("lose")
    while pair.sender.outbox:
        pair.step("write")
        pair.step("read")
    assert pair.received == pair.posted
    pair.sender.told(pair.receiver.tell())
    assert pair.sender.untold_bytes == 0
    assert pair.sender.confirmed == pair.receiver.received == len(pair.posted)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(-5, 30))
def test_a_count_below_the_last_or_above_what_was_sent_is_refused(sent: int, told: int, count: int) -> None:
    session = Session(1)
    for _ in range(sent):
        session.post(b"frame")
    told = min(told, sent)
    session.told(told)
    if told <= count <= sent:
        session.told(count)
        assert session.untold_bytes == 5 * (sent - count)
    else:
        with pytest.raises(MalformedFrameError, match=f"got {count} frames"):
            session.told(count)


def test_it_is_full_while_too_much_is_untold() -> None:
    session = Session(1, untold_bytes_max=10)
    session.post(bytes(10))
    assert not session.full
    session.post(bytes(1))
    assert session.full
    session.told(1)
    assert not session.full


def test_a_peer_that_tells_nothing_for_a_while_is_best_given_up_when_far_too_much_is_untold() -> None:
    session, second = Session(1, untold_bytes_max=10), 1_000_000_000
    session.post(bytes(40))
    assert not any(session.stalled(now * second) for now in range(10))
    for _ in range(3):
        session.post(bytes(40))
    assert not session.stalled(10 * second)
    session.told(1)
    assert not any(session.stalled(now * second) for now in (12, 14)), "it has told something meanwhile"
    assert session.stalled(16 * second)
    session.told(4)
    assert not session.stalled(17 * second)


def test_it_is_time_to_tell_after_many_frames_or_many_bytes() -> None:
    session = Session(1)
    assert [session.receive(1) for _ in range(TELL_FRAMES)] == [False] * (TELL_FRAMES - 1) + [True]
    assert session.untold_arrivals
    assert session.tell() == TELL_FRAMES
    assert not session.untold_arrivals
    assert session.receive(TELL_BYTES)


def test_counts_that_wait_in_the_outbox_are_not_sent_again() -> None:
    session = Session(1)
    session.outbox.append(b"a count")
    session.post(b"a frame")
    session.resume(0)
    assert list(session.outbox) == [b"a frame"]
    session.told(1)
    session.outbox.append(b"a count")
    session.resume(1)
    assert session.statistics().resent >= 0
