"""Each question asked of raw sockets, or of those rivals that are installed: do reports have what was asked for?"""

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
)
from echoic.testing.bench.raw import RAW_TCP

pytestmark = pytest.mark.system

EFFORT = Effort(rounds=1, sample_seconds=0.002)
QUESTIONS = (round_trip, one_way, fan_out, pipeline, channels, bandwidth)


def test_a_question_may_be_asked_of_raw_sockets_alone() -> None:
    report = bandwidth.measure(EFFORT, [RAW_TCP])
    (table,) = report.tables
    assert (table.cases, tuple(table.columns)) == ([RAW_TCP.name], bandwidth.SIZES)
    assert report.claims == []


def test_every_question_has_echoic_and_a_physical_limit() -> None:
    for question in QUESTIONS:
        names = [contender.name for contender in question.CONTENDERS]
        assert "echoic" in names
        assert any(name.startswith("raw") for name in names)


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
