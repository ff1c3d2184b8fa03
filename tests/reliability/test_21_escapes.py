"""Trial 21: attempts to escape from the sandbox; and that one which succeeds would be found."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.channels import Runner
from echoic.testing.trials.attacks import ATTACKS, MOMENTS, Hostile
from echoic.testing.trials.escapes import Surroundings, attempt
from tests.eager.installing import CONFINING, run_confined
from tests.reliability.trying import try_out
from tests.system.test_sandbox_escapes import Honest

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not CONFINING, reason="needs bubblewrap, which `./run test` installs"),
]


class Succeeds(Hostile):
    """Does what anybody may."""

    def attack(self) -> None:
        pass


@pytest.fixture
def honest() -> Iterator[Runner]:
    runner = run_confined(Honest(2))
    yield runner
    runner.close()


def test_nothing_escapes_from_the_sandbox(request: pytest.FixtureRequest) -> None:
    findings = try_out(request, "escapes")
    assert int(findings.figures["variants"]) >= min(20, len(ATTACKS))


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_attack_that_succeeds_is_found(moment: str, honest: Runner) -> None:
    with contextlib.ExitStack() as stack:
        assert "it has succeeded" in attempt(Succeeds, moment, Surroundings(stack), honest)


def test_harm_to_the_surroundings_is_found() -> None:
    with contextlib.ExitStack() as stack:
        surroundings = Surroundings(stack)
        assert surroundings.harm() == []
        secret = Path(str(surroundings.known["secret"]))
        secret.write_text("changed")
        (secret.parent / "more").touch()
        assert len(surroundings.harm()) == 2


def test_there_are_a_hundred_variants() -> None:
    assert len(ATTACKS) * len(MOMENTS) > 100
