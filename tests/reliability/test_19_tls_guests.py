"""Trial 19 at a bus with issuers, which hears who shows no certificate: the trial finds one that is careless."""

import contextlib
from pathlib import Path

import pytest

from echoic.testing.trials.tls_guest_doors import guest_problems
from echoic.testing.trials.tls_papers import Papers
from echoic.toolbus.guest import Guest
from echoic.toolbus.house_rules import HouseRules
from echoic.toolbus.reception import Reception

pytestmark = pytest.mark.system


def found(folder: Path) -> dict[str, str]:
    cells = guest_problems(Papers(folder))
    return {cell.removesuffix(" at a bus with issuers"): problem for cell, problem in cells if problem}


def test_a_bus_is_careful_with_its_guests(tmp_path: Path) -> None:
    assert not found(tmp_path)


def test_a_bus_that_lets_back_in_whoever_knows_the_secret_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guest, "is_proved_by", lambda *_: True)
    problems = found(tmp_path)
    for cell in ("no certificate, back by the secret of another", "certificate of another than was cut off"):
        assert problems[cell] == "it was let in"


def test_a_bus_that_says_what_is_wrong_with_a_secret_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reception, "_like_to_strangers", lambda *_: contextlib.nullcontext())
    assert list(found(tmp_path)) == ["what strangers are told"]


def test_a_bus_that_does_not_ask_for_rights_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HouseRules, "check", lambda *_, **__: None)
    problems = found(tmp_path)
    assert problems["token of a name that is denied"] == "it was let in"
    assert problems["certificate of a name that is denied"] == "it was let in"
    assert set(problems) == {"token of a name that is denied", "certificate of a name that is denied"}
