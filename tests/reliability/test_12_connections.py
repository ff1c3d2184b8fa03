"""Many connections: all are answered, cost what they may, and leave nothing; and whatever does not is found."""

import re
from pathlib import Path

import msgspec
import pytest

from echoic.testing.charter import Charter
from echoic.testing.trials import connections
from echoic.testing.trials.callers import GRANTS
from echoic.testing.trials.connections import Visit, judge, visit
from echoic.testing.trials.vital_signs import VitalSigns
from tests.reliability.trying import try_out

pytestmark = pytest.mark.system
GOOD = Visit(
    kind="plain",
    wished=1000,
    answered=1000,
    answered_again=1000,
    before=VitalSigns(80_000_000, 20, 10),
    meanwhile=VitalSigns(110_000_000, 1020, 1010),
    after=VitalSigns(90_000_000, 20, 10),
    after_again=VitalSigns(92_000_000, 20, 10),
    idle_share=0.03,
    opened_per_second=500.0,
)


def test_many_connections_open_idle_and_close(request: pytest.FixtureRequest) -> None:
    try_out(request, "connections")


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert judge(GOOD) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"answered": 999}, "999 of 1000 plain connections were answered when they came"),
        ({"answered_again": 0}, "0 of 1000 .* after idling"),
        ({"meanwhile": VitalSigns(180_000_000, 1020, 1010)}, "a plain connection takes 100000 bytes"),
        ({"after": VitalSigns(90_000_000, 21, 10)}, "leave something behind"),
        ({"after": VitalSigns(90_000_000, 20, 11)}, "leave something behind"),
        ({"after_again": VitalSigns(92_000_000, 21, 10)}, "leave something behind"),
        ({"after_again": VitalSigns(94_000_000, 20, 10)}, "have gone leave 4000000 bytes behind, limit is 3145728"),
        ({"idle_share": 0.34}, "34% of a processor"),  # what a tenth of a second's patience took
    ],
)
def test_what_is_wrong_is_found(change: dict[str, object], found: str) -> None:
    (problem,) = judge(msgspec.structs.replace(GOOD, **change))
    assert re.search(found, problem)


def test_a_hub_that_hangs_up_on_some_and_keeps_what_others_leave_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HOST", "tests.reliability.planted_doors:be_called")
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr(connections, "RETURN_SECONDS_MAX", 0.5)
    problems = "\n".join(judge(visit("plain", 10, None)))
    assert re.search(r"\d of 10 plain connections were answered when they came", problems)
    assert "plain connections leave something behind" in problems


def test_a_right_that_is_missing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.1)
    found = visit("tls", 3, Charter.draw_up(tmp_path / "charter", {**GRANTS, "caller": ()}))
    assert "0 of 3 tls connections were answered when they came" in judge(found)[0]
