"""Hubs that run the modulators of one key."""

import pytest

from echoic import Hub, Policy
from tests.conftest import StartHub
from tests.hub.eager_modulators import KEY, PLACES, MakeHub, confining

PATIENT: dict[str, object] = {"modulator_seconds_max": 10.0}
"""On a busy machine a call may take longer than it may otherwise, which is no matter of most tests."""


@pytest.fixture(params=["in process", pytest.param("confined", marks=confining)])
def running(request: pytest.FixtureRequest, start_hub: StartHub) -> MakeHub:
    """Start hubs that run the modulators of one key, in one place or the other."""

    def start(services: dict[str, object] | None = None, **limits: object) -> Hub:
        policy = Policy(**PLACES[request.param], **{**PATIENT, **limits})
        return start_hub(policy=policy, services=services or {})

    return start


@pytest.fixture
def trusting(start_hub: StartHub) -> MakeHub:
    """Start hubs that run the modulators of one key in their own process."""
    return lambda **limits: start_hub(policy=Policy(trusted_keys=(KEY.public,), **{**PATIENT, **limits}))


@pytest.fixture
def viewing(start_hub: StartHub) -> MakeHub:
    return lambda: start_hub(key=KEY)
