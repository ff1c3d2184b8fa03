"""What a single frame of a peer may cost: bounded by its bytes, however it is made."""

import time

import numpy
import pytest

from echoic.channels import ChannelId, Concentrator
from echoic.channels.arrivals import RUN, RUNS_HEAD, RUNS_MAX
from echoic.channels.member import POSITIONS_MAX, Member
from echoic.channels.messages import SinkHub
from echoic.channels.neighbour import Binding, Neighbour
from echoic.channels.session import Session
from echoic.errors import LimitExceededError
from echoic.formats import Format
from echoic.wire import Frame, FrameKind
from echoic.wire.batch import HEADER

FORMAT = Format.of(numpy.dtype([("a", "u1")]))


def runs_frame(count: int) -> Frame:
    """Return a frame of many runs, each of one event of a source that nobody has heard of."""
    table = b"".join(RUN.pack(1, 1, 0, source) for source in range(count))
    payload = RUNS_HEAD.pack(count, 0) + table + HEADER.pack(FORMAT.token, count, 0) + bytes(count)
    return Frame(FrameKind.RUNS, 0, memoryview(payload))


def a_listening_core() -> Concentrator:
    core = Concentrator("me", "127.0.0.1:1")
    member = core.open(ChannelId("127.0.0.1:1", "x"), None)
    member.sink = SinkHub("127.0.0.1:1")
    neighbour = core.neighbours["peer"] = Neighbour("peer", "127.0.0.1:2", "", Session(1))
    neighbour.registry.add(FORMAT)
    neighbour.bindings[1] = Binding("x", member, 0)
    return core


def test_a_frame_has_so_many_runs_at_most() -> None:
    assert len(a_listening_core().receive("peer", runs_frame(RUNS_MAX))) == RUNS_MAX
    with pytest.raises(LimitExceededError, match=f"{RUNS_MAX + 1} runs, limit is {RUNS_MAX}"):
        a_listening_core().receive("peer", runs_frame(RUNS_MAX + 1))


def test_sources_that_are_heard_once_are_forgotten_in_time_and_quickly() -> None:
    member = Member(ChannelId("127.0.0.1:1", "x"), 1, None)

    def seconds_for(sources: range) -> float:
        began = time.thread_time()
        for source in sources:
            member.advance(source, 0, 1)
            assert len(member.positions) <= POSITIONS_MAX
        return time.thread_time() - began

    filling = seconds_for(range(POSITIONS_MAX))
    forgetting = seconds_for(range(POSITIONS_MAX, 2 * POSITIONS_MAX))
    assert member.positions[2 * POSITIONS_MAX - 1] == 1
    assert forgetting < 10 * filling + 0.1, "to forget one source takes as long as there are sources"
