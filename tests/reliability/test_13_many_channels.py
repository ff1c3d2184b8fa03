"""Many channels: an event takes no longer than it may; and if it does, that is found."""

import time
from collections import Counter
from collections.abc import Callable

import pytest

from echoic.hub import Source
from echoic.testing.trials import many_channels
from echoic.testing.trials.many_channels import EVENTS_EACH, SLOWER_MAX, judge, measure
from tests.reliability.trying import try_out

pytestmark = pytest.mark.system
CHANNELS = 16
LOOK_SECONDS = 10e-6


def test_an_event_among_many_channels_takes_about_as_long_as_with_one(request: pytest.FixtureRequest) -> None:
    try_out(request, "many_channels")


@pytest.mark.parametrize("way", SLOWER_MAX)
def test_what_takes_too_long_is_found(way: str) -> None:
    assert judge(way, 4096, SLOWER_MAX[way]) == []
    assert f"a {way} takes" in judge(way, 4096, SLOWER_MAX[way] + 0.1)[0]


def test_sources_that_look_at_every_channel_of_their_hub_for_each_event_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channels: Counter[object] = Counter()

    def look_first(submit: Callable[..., None]) -> Callable[..., None]:
        def slow(self: Source, event: object) -> None:
            until = time.perf_counter() + LOOK_SECONDS * channels[self._endpoints.switchboard]
            while time.perf_counter() < until:
                pass
            submit(self, event)

        return slow

    add = Source.__init__

    def count(self: Source, *arguments: object, **named: object) -> None:
        add(self, *arguments, **named)
        channels[self._endpoints.switchboard] += 1

    monkeypatch.setattr(many_channels, "ROUNDS", 1)
    monkeypatch.setattr(Source, "__init__", count)
    for way in ("submit", "submit_sync"):
        monkeypatch.setattr(Source, way, look_first(getattr(Source, way)))
    slower = {what: times for way in EVENTS_EACH for what, times in measure(way, CHANNELS).items()}
    assert set(slower) == set(SLOWER_MAX)
    assert all(judge(what, CHANNELS, times) for what, times in slower.items()), slower
