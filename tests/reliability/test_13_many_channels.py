"""Many channels: an event takes no longer than it may; and if it does, that is found."""

import pytest

from echoic.testing.trials.many_channels import SLOWER_MAX, judge
from tests.reliability.trying import try_out

pytestmark = pytest.mark.system


def test_an_event_among_many_channels_takes_about_as_long_as_with_one(request: pytest.FixtureRequest) -> None:
    try_out(request, "many_channels")


@pytest.mark.parametrize("way", SLOWER_MAX)
def test_what_takes_too_long_is_found(way: str) -> None:
    assert judge(way, 4096, SLOWER_MAX[way]) == []
    assert f"a {way} takes" in judge(way, 4096, SLOWER_MAX[way] + 0.1)[0]
