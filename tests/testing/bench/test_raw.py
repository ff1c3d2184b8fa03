"""Raw sockets and real peers: bytes do move, all of them are counted, and nothing is left behind."""

import threading

import pytest

from echoic.testing.bench import Contender, Effort, Peer, Setup, entered, interleave, join, start_peers
from echoic.testing.bench.raw import RAW_TCP, RAW_TCP_IN_TURN, RAW_TCP_PACKED, RAW_UNIX, RAW_UNIX_PACKED

pytestmark = pytest.mark.system

SINK = "echoic.testing.bench.raw:sink"
EFFORT = Effort(rounds=2, sample_seconds=0.005)


@pytest.mark.parametrize(
    ("contenders", "setup"),
    [
        ([RAW_TCP, RAW_UNIX], Setup("100 B", synchronous=True)),
        ([RAW_TCP_IN_TURN], Setup("1 KB", synchronous=True, sinks=2)),
        ([RAW_TCP, RAW_UNIX_PACKED], Setup("100 B")),
        ([RAW_TCP_PACKED], Setup("100 B", sinks=2)),
        ([RAW_TCP], Setup("100 B", batch=1000)),
    ],
    ids=["round-trip", "two-sinks", "one-way", "fan-out", "batches"],
)
def test_whatever_is_sent_is_counted_to_the_last_event(contenders: list[Contender], setup: Setup) -> None:
    threads = set(threading.enumerate())
    entries = entered(contenders, "x", setup)
    assert len(entries) == len(contenders)
    samples = interleave(entries, EFFORT)
    for seconds in samples.seconds.values():
        assert len(seconds) == EFFORT.rounds
        # Nobody moves an event in less time than a memory access takes.
        assert all(1e-9 < each < 1 for each in seconds)
    assert set(threading.enumerate()) <= threads


def test_a_peer_that_lacks_an_event_does_not_report() -> None:
    with start_peers(SINK, Setup("100 B"), [{"folder": ""}]) as (peer,):
        peer.address()
        peer.expect(2)
        with pytest.raises(TimeoutError):
            peer.wait_counted(0.2)


def test_those_who_receive_nothing_are_not_taken_for_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echoic.testing.bench.peers.JOIN_ATTEMPTS_MAX", 2)
    with start_peers(SINK, Setup("100 B"), [{"folder": ""}]) as peers:
        peers[0].address()
        with pytest.raises(TimeoutError, match="1 of 1 peers received nothing"):
            join(peers, lambda _: None)


def test_a_peer_that_fails_is_reported_and_not_waited_for(capfd: pytest.CaptureFixture[str]) -> None:
    peer = Peer("echoic.testing.bench.raw:no_such_function", Setup("100 B"), {})
    try:
        with pytest.raises(RuntimeError, match="ended with status 1"):
            peer.address()
    finally:
        peer.stop()
    assert "no_such_function" in capfd.readouterr().err
