"""Sinks that stop reading: each rule keeps its promise, and whoever breaks one is found."""

import re

import msgspec
import pytest

from echoic.errors import LocalError
from echoic.testing.trials import slow_sinks
from echoic.testing.trials.accounts import Ledger, Spans, check_accounts
from echoic.testing.trials.slow_sinks import LIMIT_BYTES, Outcome, Rates, endure, judge
from tests.reliability.trying import try_out

pytestmark = pytest.mark.system
GOOD = Outcome(
    rule="drop_oldest",
    since=0,
    total=1000,
    rates=Rates([10.0, 11.0, 9.0], [10.0, 10.5, 9.5], [9.9, 10.0, 9.6]),
    growth_bytes=10_000_000,
    waited=True,
    closed=False,
    delivered=[(0, 399), (700, 999)],
    gaps=[(400, 699)],
    keen={"afflicted": [(0, 999)]},
    totals={"afflicted": 1000},
)


def test_a_sink_that_stops_reading_costs_others_nothing(request: pytest.FixtureRequest) -> None:
    try_out(request, "slow_sinks")


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert judge(GOOD) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"rates": Rates([10.0] * 3, [10.0] * 3, [8.0] * 3)}, "a sink beside one with drop_oldest keeps 80%"),
        ({"rates": Rates([10.0] * 3, [8.0] * 3, [8.0] * 3)}, "another channel .* keeps 80%"),
        ({"growth_bytes": int(1.2 * LIMIT_BYTES["drop_oldest"])}, "the source has grown"),
        ({"gaps": [(400, 698)]}, "has neither got 699 to 699"),
        ({"gaps": [(400, 700)]}, "700 to 700 twice"),
        ({"gaps": [(399, 699)]}, "399 to 399 twice"),
        ({"total": 1001}, "end with 1000 events, expected 1001"),
        ({"delivered": [(700, 999), (0, 399)]}, "delivered .* after"),
        ({"keen": {"afflicted": [(0, 998)]}}, "the keen sink of afflicted end with 999"),
        ({"secured": True, "growth_bytes": LIMIT_BYTES["drop_oldest"]}, "with drop_oldest, secured, limit is"),
        ({"rule": "disconnect", "delivered": [(0, 399)], "gaps": []}, "was not cut off"),
        ({"rule": "block"}, "a sink with block was told of gaps"),
        ({"rule": "block", "waited": False}, "did not wait"),
    ],
)
def test_what_is_wrong_is_found(change: dict[str, object], found: str) -> None:
    problems = judge(msgspec.structs.replace(GOOD, **change))
    assert problems
    assert any(re.search(found, problem) for problem in problems), problems


def test_a_sink_that_is_told_of_a_gap_which_is_too_long_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_sinks, "COUNT", "tests.reliability.planted_sinks:count")
    monkeypatch.setattr(slow_sinks, "ROUNDS_MIN", 1)
    monkeypatch.setattr(slow_sinks, "PAIRS", 1)
    problems = judge(endure("drop_oldest", 0))
    assert any(re.search(r"the sink with drop_oldest .* twice", problem) for problem in problems), problems


def test_a_right_that_is_missing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_sinks, "GRANTS", {**slow_sinks.GRANTS, "keen": ()})
    with pytest.raises(LocalError, match="worker count has ended with 1"):
        endure("block", 0, secured=True)


def test_a_ledger_settles_each_number_once() -> None:
    ledger = Ledger()
    for number in (0, 1, 5):
        ledger.got(number)
    ledger.missed(2, 3)
    assert (ledger.settled, ledger.missing, ledger.problems) == ([(0, 3), (5, 5)], 2, [])
    ledger.missed(4, 4)
    assert (ledger.settled, ledger.problems) == ([(0, 5)], [])
    ledger.missed(5, 6)
    ledger.got(3)
    assert ledger.problems == ["5 to 6 was settled twice", "3 came after 5", "3 to 3 was settled twice"]


def test_spans_join_what_follows() -> None:
    spans = Spans()
    for first, last in [(0, 4), (5, 5), (7, 9)]:
        spans.add(first, last)
    assert (spans.all, spans.count) == ([(0, 5), (7, 9)], 9)
    assert check_accounts("it", 10, spans.all, [(6, 6)]) == []
