"""Strangers at the page by TLS: a page that lets too many of them in is found, and whatever else is wrong with one."""

import re
from pathlib import Path

import msgspec
import pytest

from echoic.testing.charter import Charter
from echoic.testing.trials.strangers_page import (
    DESCRIPTORS_MAX,
    GROWTH_BYTES_MAX,
    ROLE,
    PageSiege,
    besiege_page,
    judge_page,
)
from echoic.testing.trials.vital_signs import VitalSigns

pytestmark = pytest.mark.system
BEFORE = VitalSigns(120_000_000, 13, 8)
GOOD = PageSiege(
    request_seconds=[0.01, 0.02],
    strangers=500,
    before=BEFORE,
    peak=VitalSigns(145_000_000, 13 + DESCRIPTORS_MAX, 8),
    after=BEFORE,
)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert judge_page(GOOD) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"request_seconds": [0.01, 10.0]}, "waited 10.0 s"),
        ({"peak": VitalSigns(BEFORE.resident_bytes + GROWTH_BYTES_MAX + 1, 13, 8)}, "grow by"),
        ({"peak": VitalSigns(145_000_000, 14 + DESCRIPTORS_MAX, 8)}, "held 81 connections"),
        ({"after": VitalSigns(120_000_000, 14, 8)}, "left something"),
    ],
)
def test_what_is_wrong_is_found(change: dict[str, object], found: str) -> None:
    (problem,) = judge_page(msgspec.structs.replace(GOOD, **change))
    assert re.search(found, problem)


def test_a_page_with_room_for_everybody_who_says_nothing_is_found(tmp_path: Path) -> None:
    charter = Charter.draw_up(tmp_path / "charter", {ROLE: ()})
    siege = besiege_page(charter, 1, 0, "tests.reliability.planted_page:be_open_to_all")
    found = judge_page(siege)
    assert any("connections of strangers" in problem for problem in found)
    assert any("grow by" in problem for problem in found)
