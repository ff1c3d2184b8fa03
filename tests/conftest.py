"""What tests of several packages share: hubs that are closed when a test ends, and property tests without a clock.

Workers of pytest-xdist send reports as UTF-8, and end in the middle of all tests at a text that is none. Hostile texts
are what some tests here are about, so what a report shows of them is spelled out.
"""

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import Protocol

import hypothesis
import pytest

from echoic import Hub

hypothesis.settings.register_profile("echoic", deadline=None)  # no timing decides a test
hypothesis.settings.load_profile("echoic")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.sections = [(heading, spelled_out(text)) for heading, text in report.sections]
    shown = report.longreprtext
    if spelled_out(shown) != shown:
        report.longrepr = spelled_out(shown)
    return report


def spelled_out(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


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
