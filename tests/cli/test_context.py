"""`echoic context`: names for systems, kept in the file of settings."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.cli.terminals import type_here


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("ECHOIC_NAMES", raising=False)
    monkeypatch.delenv("ECHOIC_CONTEXT", raising=False)
    return tmp_path / "config" / "echoic.toml"


def test_contexts_are_added_used_shown_and_forgotten(home: Path) -> None:
    assert type_here("context", "add", "lab", "--names", "127.0.0.1:5", "--description", 'the "lab"')[0] == 0
    assert (
        type_here("context", "add", "plant", "--names", "127.0.0.1:6", "--listen", "127.0.0.1:0", "--insecure")[0] == 0
    )
    assert type_here("context", "use", "lab")[0] == 0
    listed = type_here("context", "ls")[1].splitlines()
    assert [line.split()[:2] for line in listed] == [["CONTEXT", "NAMES"], ["*", "lab"], ["plant", "127.0.0.1:6"]]
    told = json.loads(type_here("context", "show", "--json")[1])
    assert (told["name"], told["names"], told["description"], told["used"]) == ("lab", "127.0.0.1:5", 'the "lab"', True)
    assert "names:       127.0.0.1:6\n" in type_here("context", "show", "plant")[1]
    assert "127.0.0.1:5" in type_here("ls")[2], "the context in use says where names are asked for"
    assert "127.0.0.1:6" in type_here("ls", "--context", "plant")[2]
    assert type_here("context", "rm", "lab")[0] == 0
    assert [each["name"] for each in json.loads(type_here("context", "ls", "--json")[1])] == ["plant"]
    assert type_here("context", "show")[0] == 3
    assert tomllib.loads(home.read_text("utf-8")) == {
        "contexts": {"plant": {"names": "127.0.0.1:6", "listen": "127.0.0.1:0", "insecure": True}}
    }


def test_what_others_wrote_into_the_file_stays(home: Path) -> None:
    home.parent.mkdir()
    home.write_text(
        '# mine\nnames = "127.0.0.1:1"\ncolour = ["a b", "\\u001b"]\n[other."a.b"]\nx = 1.5\n', encoding="utf-8"
    )
    before = tomllib.loads(home.read_text("utf-8"))
    code, _, said = type_here("context", "add", "lab", "--names", "127.0.0.1:5")
    assert code == 0
    assert "comments" in said
    after = tomllib.loads(home.read_text("utf-8"))
    assert {key: after[key] for key in before} == before
    assert [path.name for path in home.parent.iterdir()] == ["echoic.toml"]


def test_a_file_that_is_kept_elsewhere_stays_there(home: Path, tmp_path: Path) -> None:
    home.parent.mkdir()
    elsewhere = tmp_path / "dotfiles.toml"
    elsewhere.write_text("", encoding="utf-8")
    home.symlink_to(elsewhere)
    assert type_here("context", "add", "lab", "--names", "127.0.0.1:5")[0] == 0
    assert home.is_symlink()
    assert "lab" in elsewhere.read_text("utf-8")


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (3, "context use lb", "there is no context 'lb'; did you mean 'lab'? (echoic context ls)"),
        (3, "context rm nothing", "there is no context 'nothing' (echoic context ls)"),
        (3, "ls --context labb", "did you mean 'lab'?"),
        (1, "context add lab --names 127.0.0.1:5", "there is a context 'lab' already"),
        (1, "context add other --names here", "expected an address like"),
        (1, "context add a.b --names 127.0.0.1:5", "expected the name of a context"),
        (1, "context use", "expected the name of a context, or --none"),
        (2, "context add other", "--names"),
    ],
)
def test_what_goes_wrong_is_said(code: int, words: str, said: str) -> None:
    type_here("context", "add", "lab", "--names", "127.0.0.1:5")
    ended, out, err = type_here(*words.split())
    assert (ended, out) == (code, "")
    assert said in err
    assert "Traceback" not in err
