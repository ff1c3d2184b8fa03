"""What `echoic doctor` says of the Python that it runs in."""

import sys
import sysconfig

import pytest

from echoic.cli.examinations import EXAMINATIONS
from echoic.cli.where import Where


@pytest.mark.parametrize(
    ("prefix", "built_with", "status"),
    [
        ("/usr", "'--enable-shared'", "ok"),
        ("/opt/python", "'--enable-optimizations' '--with-lto'", "ok"),
        ("/opt/python", "'--enable-shared'", "info"),
        ("/opt/python", None, "info"),
    ],
)
def test_a_python_that_was_compiled_without_optimizations_is_told_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, prefix: str, built_with: str | None, status: str
) -> None:
    monkeypatch.setattr(sys, "base_prefix", prefix)
    monkeypatch.setitem(sysconfig.get_config_vars(), "CONFIG_ARGS", built_with)
    finding = EXAMINATIONS["python"](Where())
    assert finding.status == status
    assert ("--enable-optimizations" in finding.advice) == (status == "info")
