"""What tests of several packages share: hubs that are closed when a test ends, and property tests without a clock."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Protocol

import hypothesis
import pytest

from echoic import Hub

hypothesis.settings.register_profile("echoic", deadline=None)  # no timing decides a test
hypothesis.settings.load_profile("echoic")


class StartHub(Protocol):
    def __call__(self, listen: str = "127.0.0.1:0", **options: object) -> Hub: ...


@pytest.fixture
def start_hub() -> Iterator[StartHub]:
    with ExitStack() as stack:

        def start(listen: str = "127.0.0.1:0", **options: object) -> Hub:
            hub = Hub(listen, **options)
            stack.callback(hub.close)
            return hub

        yield start


@pytest.fixture(params=["memory", "unix", "tcp"])
def any_link(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let hubs of one process talk over each kind of link."""
    monkeypatch.setenv("ECHOIC_LINKS", request.param)
    return request.param
