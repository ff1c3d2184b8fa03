"""`echoic keys`, as authors and operators type it."""

import json
from pathlib import Path

import pytest

from tests.cli.terminals import type_here

pytestmark = pytest.mark.system

STRANGER = "ed25519:lTYLqvq3pDNEFnoFwVyxTFE0XUkVJF8pKYJ0Hk1Su3Q"


class Keys:
    """The command line of somebody with a folder of keys."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *words: str) -> tuple[int, str, str]:
        return type_here("keys", *words)


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keys:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    return Keys(tmp_path / "home")


def test_an_author_makes_a_key_once_and_shows_it_often(keys: Keys) -> None:
    code, public, said = keys("new")
    assert code == 0
    assert public.startswith("ed25519:")
    assert f"echoic keys trust {public.strip()}" in said
    assert keys("show")[:2] == (0, public)
    code, out, said = keys("new")
    assert (code, out) == (1, "")
    assert "is there already and would be lost; --force replaces it" in said
    code, other, _ = keys("new", "--force")
    assert code == 0
    assert other != public
    assert json.loads(keys("show", "--json")[1]) == {
        "name": "default",
        "key": other.strip(),
        "file": str(keys.home / "default.key"),
    }


def test_an_operator_lists_keys_and_takes_them_back(keys: Keys) -> None:
    assert keys("trust", STRANGER, "--name", "alice")[0] == 0
    assert keys("trust", "*", "--name", "everybody", "--sandbox")[0] == 0
    own = json.loads(keys("new", "--name", "lab", "--json")[1])["key"]
    code, out, _ = keys("list", "--json")
    assert code == 0
    assert json.loads(out) == [
        {"name": "lab", "use": "own", "key": own},
        {"name": "alice", "use": "process", "key": STRANGER},
        {"name": "everybody", "use": "sandbox", "key": "*"},
    ]
    assert keys("trust", STRANGER, "--name", "alice", "--sandbox")[0] == 0
    assert keys("distrust", "everybody")[0] == 0
    code, out, _ = keys("list")
    assert [line.split() for line in out.splitlines()] == [
        ["NAME", "USE", "KEY"],
        ["lab", "own", own],
        ["alice", "sandbox", STRANGER],
    ]
    assert keys("distrust", STRANGER)[0] == 0
    code, _, said = keys("distrust", STRANGER)
    assert code == 1
    assert "`echoic keys list` shows them" in said


def test_wrong_words_are_answered_in_one_sentence(keys: Keys) -> None:
    wrong = {
        ("trust", "ed25519:short"): (1, "expected a public key like ed25519:BASE64"),
        ("trust", "*"): (1, "for the sandbox only"),
        ("trust", STRANGER, "--name", "a b"): (1, "a key's name has at most 64"),
        ("show", "--name", "../../etc"): (1, "a key's name has at most 64"),
        ("show",): (1, "`echoic keys new` makes one"),
        ("trust",): (2, "PUBLIC"),
    }
    for words, (code, said) in wrong.items():
        done = keys(*words)
        assert (done[0], said in done[2] + done[1]) == (code, True), done


def test_one_name_is_not_two_keys(keys: Keys) -> None:
    assert keys("trust", STRANGER, "--name", "alice")[0] == 0
    other = keys("new")[1].strip()
    code, _, said = keys("trust", other, "--name", "alice")
    assert code == 1
    assert f"`alice` is the name of {STRANGER} already" in said


def test_a_key_that_others_can_read_is_denied(keys: Keys) -> None:
    keys("new")
    (keys.home / "default.key").chmod(0o644)
    code, out, said = keys("show")
    assert (code, out) == (4, "")
    assert "chmod 0600" in said
    assert "not listed: others may read" in keys("list")[2]


def test_every_verb_teaches_with_an_example(keys: Keys) -> None:
    assert all(verb in keys("--help")[1] for verb in ("new", "list", "show", "trust", "distrust"))
    for verb in ("new", "list", "show", "trust", "distrust"):
        code, shown, _ = keys(verb, "--help")
        assert code == 0
        assert f"echoic keys {verb}" in shown
