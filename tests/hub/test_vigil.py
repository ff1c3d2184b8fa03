"""The vigil of a hub over its files."""

from pathlib import Path
from typing import Any

import pytest

from echoic import Hub
from echoic.hub import vigil
from echoic.hub.vigil import Trusted, Vigil
from echoic.trust import Watched, load_rights
from tests.system.processes import wait_until


def test_a_file_of_rights_that_is_empty_for_a_moment_takes_no_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vigil, "LOOK_SECONDS", 3600.0)  # the test looks itself
    file = tmp_path / "rights"
    file.touch(0o600)
    file.write_text("allow alice publish *\n")
    counted: list[bool] = []
    watch = Vigil({Watched(file): lambda: counted.append(bool(load_rights(file).decide("alice", "publish", "trades")))})

    file.write_text("")  # as it is while it is being written
    watch.look()
    file.write_text("allow alice publish,subscribe *\n")
    for _ in range(3):
        watch.look()
    assert counted == [True]

    file.write_text("")
    watch.look()
    watch.look()
    assert counted == [True, False]
    watch.close()


def test_a_file_that_was_refused_for_its_mode_counts_when_that_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(vigil, "LOOK_SECONDS", 0.02)
    file = tmp_path / "rights"
    file.touch(0o600)
    file.write_text("allow mallory * *\n")
    with Hub(rights=file) as hub:
        assert hub.decide("mallory", "publish", "trades")
        file.chmod(0o664)
        file.write_text("deny mallory * *\n")
        wait_until(lambda: "chmod 0644 mends it" in caplog.text, "somebody is told what to do")
        file.chmod(0o644)
        wait_until(lambda: not hub.decide("mallory", "publish", "trades"), "it counts")
    assert caplog.text.count("cannot be used") == 1


def test_a_file_that_changes_while_a_hub_opens_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vigil, "LOOK_SECONDS", 0.02)
    file = tmp_path / "rights"
    file.touch(0o600)
    file.write_text("allow mallory * *\n")
    keep_vigil = Trusted.keep_vigil

    def keep_vigil_late(trusted: Trusted, *arguments: Any) -> Vigil | None:
        file.write_text("deny mallory * *\n")
        return keep_vigil(trusted, *arguments)

    monkeypatch.setattr(Trusted, "keep_vigil", keep_vigil_late)
    with Hub(rights=file) as hub:
        wait_until(lambda: not hub.decide("mallory", "publish", "trades"), "it counts")
