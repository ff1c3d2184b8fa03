"""`echoic acl`, and verbs that go by a file of rights."""

import json
from pathlib import Path

import pytest

from tests.cli.terminals import type_here

pytestmark = pytest.mark.system

RULES = "# ours\nallow desk-* subscribe,derive trades*\ndeny desk-7 * *\n"


@pytest.fixture
def rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "rights"
    path.write_text(RULES, "utf-8")
    path.chmod(0o600)
    return path


def test_an_answer_names_the_rule_and_the_exit_code_says_the_same(rights: Path) -> None:
    code, out, _ = type_here("acl", "check", "desk-1", "derive", "trades.eu")
    assert code == 0
    assert out == (
        "desk-1 may derive `trades.eu`: allowed by `allow desk-* subscribe,derive trades*` - at " + f"{rights}:2\n"
    )
    code, out, _ = type_here("acl", "check", "desk-7", "derive", "trades", "--file", str(rights))
    assert code == 4
    assert out.endswith(f"denied by `deny desk-7 * *` - at {rights}:3\n")
    code, out, _ = type_here("acl", "check", "eve", "*", "trades")
    assert (code, len(out.splitlines())) == (4, 6)


def test_a_derived_channel_is_asked_about_with_what_it_is_derived_from(rights: Path) -> None:
    rights.write_text("allow desk subscribe,derive trades\ndeny desk subscribe trades.secret\n", "utf-8")
    question = ("acl", "check", "desk", "subscribe", "trades.cheap")
    for words in (("--derived-from", "trades"), ("--derived-from", "prices", "--derived-from", "trades")):
        code, out, _ = type_here(*question, *words)
        assert (code, "it is derived from `trades`, and allowed by" in out) == (0, True)
    code, out, _ = type_here(*question, "--derived-from", "weather", "--json")
    assert code == 4
    hint = "no rule allows it; if it is derived from `trades`, he may: --derived-from trades"
    assert json.loads(out)[0]["reason"] == hint
    code, out, _ = type_here("acl", "check", "desk", "derive", "trades.cheap.eu")
    assert (code, out) == (4, f"desk may not derive `trades.cheap.eu`: {hint}\n")


@pytest.mark.parametrize(
    ("right", "channel"), [("subscribe", "trades.secret"), ("publish", "trades.cheap"), ("subscribe", "weather.daily")]
)
def test_no_hint_is_given_where_being_derived_would_not_help(rights: Path, right: str, channel: str) -> None:
    rights.write_text("allow desk subscribe,derive trades\ndeny desk subscribe trades.secret\n", "utf-8")
    code, out, _ = type_here("acl", "check", "desk", right, channel)
    assert code == 4
    assert "derived" not in out


def test_answers_and_rules_are_json_too(rights: Path) -> None:
    code, out, _ = type_here("acl", "check", "desk-1", "admin", "trades", "--json")
    assert code == 4
    assert json.loads(out)[0]["reason"] == "no rule allows it"
    code, out, _ = type_here("acl", "list", "--json")
    assert [rule["allow"] for rule in json.loads(out)] == [True, False]
    assert "desk-7" in type_here("acl", "list")[1]


@pytest.mark.parametrize(
    ("words", "expected", "told"),
    [
        (("check", "desk-1", "read", "trades"), 1, "expected a right, one of publish"),
        (("list", "--file", "nowhere"), 3, "there is no file of rights nowhere"),
        (("check", "desk-1", "publish", "trades", "--file", "nowhere"), 3, "there is no file of rights nowhere"),
    ],
)
def test_what_cannot_be_answered_is_said(rights: Path, words: tuple[str, ...], expected: int, told: str) -> None:
    code, out, said = type_here("acl", *words)
    assert (code, out) == (expected, "")
    assert told in said


def test_a_mistake_in_the_file_is_named_with_its_line(rights: Path) -> None:
    rights.write_text(RULES + "allow\n", "utf-8")
    code, _, said = type_here("acl", "list")
    assert code == 1
    assert f"{rights}:4" in said


def test_a_verb_goes_by_a_file_of_rights(rights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOIC_RIGHTS", str(rights.with_name("missing")))
    code, _, said = type_here("up", "--names", "127.0.0.1:17399")
    assert code == 3
    assert "there is no file of rights" in said
