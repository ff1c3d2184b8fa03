"""Each question asked of raw sockets, or of those rivals that are installed: do reports have what was asked for?"""

import os
import subprocess
from importlib.util import find_spec

import pytest

from benchmarks.rivals import installed_rivals, missing_rivals
from echoic.testing.bench import (
    Effort,
    Setup,
    bandwidth,
    channels,
    entered,
    fan_out,
    interleave,
    one_way,
    pipeline,
    round_trip,
    tls,
)
from echoic.testing.bench.hosts import can_have_hosts
from echoic.testing.bench.hubs import ECHOIC_IN_TURN, ECHOIC_TCP, ECHOIC_TCP_HOSTS, ECHOIC_TLS, ECHOIC_TLS_HOSTS
from echoic.testing.bench.processes import children
from echoic.testing.bench.raw import RAW_TCP, RAW_TCP_PACKED, RAW_TLS, RAW_UNIX, RAW_UNIX_PACKED

pytestmark = pytest.mark.system

EFFORT = Effort(rounds=1, sample_seconds=0.002)
QUESTIONS = (round_trip, one_way, fan_out, pipeline, channels, bandwidth, tls)


def test_a_question_may_be_asked_of_raw_sockets_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "SIZES", ("1 MB",))
    report = bandwidth.measure(EFFORT, [RAW_UNIX])
    (table,) = report.tables
    assert (table.cases, table.columns) == ([RAW_UNIX.name], ["1 MB"])
    assert report.claims == []


def test_every_question_has_echoic_and_a_physical_limit() -> None:
    for question in QUESTIONS:
        names = [contender.name for contender in question.CONTENDERS]
        assert "echoic" in names
        assert any(name.startswith("raw") for name in names)


def test_with_tls_the_same_events_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "LARGE_SIZES", ("1 MB",))
    report = tls.measure(EFFORT, [ECHOIC_TCP, ECHOIC_TLS])
    assert [table.cases for table in report.tables[:4]] == [["echoic tcp", "echoic tls"]] * 4
    assert [str(claim).partition(" >=")[0] for claim in report.claims] == [
        f"claim: events of 1 MB over TLS on one host, {tls.LARGE_TITLE}",
        f"claim: events of 100 B over TLS on one host, {tls.BATCHES_TITLE}",
        f"claim: events of 100 B over TLS on one host, {tls.EVENTS_TITLE}",
    ]
    assert "OpenSSL" in report.remarks[0]


@pytest.mark.skipif(not can_have_hosts(), reason="another host takes root, and Linux with iproute2")
def test_between_hosts_the_same_events_arrive_and_nothing_of_them_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    before = namespaces()
    monkeypatch.setattr(tls, "LARGE_SIZES", ("1 MB",))
    report = tls.measure(EFFORT, [ECHOIC_TCP_HOSTS, ECHOIC_TLS_HOSTS])
    assert [table.cases for table in report.tables[:4]] == [["echoic tcp, two hosts", "echoic tls, two hosts"]] * 4
    assert ["between hosts" in str(claim) for claim in report.claims] == [True] * 3
    assert namespaces() <= before


def namespaces() -> set[str]:
    """Return the network namespaces that benchmarks of this process have made."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {name for name in listed.split() if name.startswith(f"echoic-{os.getpid()}-")}


def test_raw_sockets_speak_tls_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "LARGE_SIZES", ("1 MB",))
    report = tls.measure(EFFORT, [RAW_TCP, RAW_TLS])
    assert [table.cases for table in report.tables[:4]] == [["raw tcp", "raw tls"]] * 4


def test_each_of_several_sinks_may_have_a_channel_of_its_own_and_be_called_in_turn() -> None:
    samples = interleave(entered([ECHOIC_IN_TURN], "2", Setup("100 B", synchronous=True, sinks=2)), EFFORT)
    assert [len(each) for each in samples.seconds.values()] == [EFFORT.rounds]
    assert entered([ECHOIC_IN_TURN], "2", Setup("100 B", sinks=2)) == {}


@pytest.mark.skipif(children() is None, reason="the kernel does not tell")
def test_a_pipeline_is_told_in_elapsed_time_and_in_processor_time_per_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "LENGTHS", (1, 2))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    report = pipeline.measure(EFFORT, [RAW_UNIX_PACKED])
    elapsed, worked, *batches = report.tables
    assert [elapsed.title, worked.title] == [
        pipeline.EVENTS_TITLE,
        f"{pipeline.EVENTS_TITLE}, processor time per stage",
    ]
    assert elapsed.columns == worked.columns == ["1", "2"]
    assert all(not table.cases for table in batches)
    assert "3 processes share 2 processors" in report.remarks[0]


@pytest.mark.skipif(children() is None, reason="the kernel does not tell")
def test_every_channel_gets_as_many_events_as_the_effort_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "CHANNELS", (1, 16))
    report = channels.measure(Effort(rounds=1, sample_seconds=0.002, turns_min=50), [RAW_TCP_PACKED])
    assert [table.title for table in report.tables] == [channels.TITLE, channels.WORK_TITLE]
    assert "at least 800 events, 50 for each of 16 channels" in report.remarks[0]


def test_names_of_contenders_are_their_own() -> None:
    names = [contender.name for contender in installed_rivals()]
    names += {contender.name for question in QUESTIONS for contender in question.CONTENDERS}
    assert len(names) == len(set(names))


def test_a_rival_is_installed_or_missing() -> None:
    assert all(find_spec(name) is None for name in missing_rivals())


@pytest.mark.skipif("zmq" in missing_rivals(), reason="pyzmq is not installed")
def test_a_rival_moves_objects_to_a_callback() -> None:
    several = [each for each in installed_rivals() if each.name in ("zeromq tcp, req/rep", "zeromq tcp, push/pull")]
    for setup in (Setup("100 B", synchronous=True), Setup("100 B")):
        (seconds,) = interleave(entered(several, "x", setup), EFFORT).seconds.values()
        assert all(each > 0 for each in seconds)
