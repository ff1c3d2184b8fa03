"""Many channels: an event takes no longer than it may; and if it does, that is found."""

import pytest

from echoic.testing.trials.many_channels import SLOWER_MAX, judge
from tests.reliability.trying import try_out

pytestmark = pytest.mark.system


def test_an_event_among_many_channels_takes_about_as_long_as_with_one(request: pytest.FixtureRequest) -> None:
    try_out(request, "many_channels")


def test_what_takes_too_long_is_found() -> None:
    assert judge(4096, SLOWER_MAX) == []
    assert "2.10 times as long" in judge(4096, 2.1)[0]
