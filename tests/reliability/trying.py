"""How a test runs a trial: small, or large with `--release`; a failure names the seed and the commit."""

import time

import pytest

from echoic.testing.trials import Findings, commit_name, trial_named

__all__ = ["sized", "try_out"]


def sized(request: pytest.FixtureRequest, name: str) -> int:
    """Return how large a trial is to be."""
    trial = trial_named(name)
    return trial.release_size if request.config.getoption("--release") else trial.test_size


def try_out(request: pytest.FixtureRequest, name: str, usual_seed: int | None = None) -> Findings:
    """Run a trial that the package has, and fail if it finds anything; what is a matter of time is printed.

    Args:
        request: Of the test.
        name: The trial's.
        usual_seed: Where a test run starts; anywhere if nothing is said, as with `--release`.
    """
    given = request.config.getoption("--seed")
    if given is None and not request.config.getoption("--release"):
        given = usual_seed
    size, seed = sized(request, name), time.time_ns() % 2**32 if given is None else given
    findings = trial_named(name).load()(size, seed, lambda done: None)
    again = f"to see it again: echoic soak {name} --size {size} --seed {seed}, at commit {commit_name()}"
    print(name, size, findings.figures, *findings.problems, sep="\n")
    strict = request.config.getoption("--release")
    assert not (findings.problems if strict else findings.firm), "\n".join([*findings.problems, again])
    return findings
