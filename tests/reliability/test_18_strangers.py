"""Strangers who attack: honest peers hardly notice, nothing is left behind; and whatever is is found."""

import re
from pathlib import Path

import msgspec
import pytest

from echoic.errors import LocalError
from echoic.testing.charter import Charter
from echoic.testing.trials.strangers import GRANTS, GROWTH_BYTES_MAX, Siege, besiege, judge
from echoic.testing.trials.vital_signs import VitalSigns
from tests.reliability.trying import try_out

pytestmark = pytest.mark.system
GOOD = Siege(
    kind="plain",
    calm=[8000.0, 9000.0, 8500.0],
    attacked=[7500.0, 8500.0, 8000.0],
    newcomer_seconds=[0.01, 0.02],
    strangers=900,
    before=VitalSigns(80_000_000, 20, 10),
    peak_bytes=90_000_000,
    after=VitalSigns(88_000_000, 20, 10),
)


def test_strangers_keep_nobody_from_his_work(request: pytest.FixtureRequest) -> None:
    try_out(request, "strangers")


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert judge(GOOD) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"attacked": [6000.0, 6500.0, 6000.0]}, "keeps 72% of its rate"),
        ({"newcomer_seconds": [0.01, 10.0]}, "waited 10.0 s"),
        ({"peak_bytes": 80_000_001 + GROWTH_BYTES_MAX}, "grow by"),
        ({"after": VitalSigns(88_000_000, 84, 10)}, "left something"),
        ({"after": VitalSigns(88_000_000, 20, 74)}, "left something"),
    ],
)
def test_what_is_wrong_is_found(change: dict[str, object], found: str) -> None:
    (problem,) = judge(msgspec.structs.replace(GOOD, **change))
    assert re.search(found, problem)


def test_a_right_that_is_missing_is_found(tmp_path: Path) -> None:
    charter = Charter.draw_up(tmp_path / "charter", {**GRANTS, "honest": ()})
    with pytest.raises(LocalError, match="worker be_honest has ended with 1"):
        besiege(charter, 1, 0)
