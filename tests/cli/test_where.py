"""Option before environment before file before default."""

from pathlib import Path

import pytest

from echoic.cli.main import _complete
from echoic.cli.where import Where, names_address
from echoic.errors import AddressError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("ECHOIC_NAMES", raising=False)
    return tmp_path / "echoic.toml"


def test_the_nearest_setting_wins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_address(Where()) == "127.0.0.1:7400"
    home.write_text('names = "127.0.0.1:1"\n', encoding="utf-8")
    assert names_address(Where()) == "127.0.0.1:1"
    monkeypatch.setenv("ECHOIC_NAMES", "127.0.0.1:2")
    assert names_address(Where()) == "127.0.0.1:2"
    assert names_address(Where(names="127.0.0.1:3")) == "127.0.0.1:3"


def test_the_file_may_lie_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "echoic.toml").write_text('names = "127.0.0.1:4"\n', encoding="utf-8")
    assert names_address(Where()) == "127.0.0.1:4"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("names = 7", "expected `names` to be text"),
        ("names =", "cannot read"),
        ('names = "here"', "expected an address like"),
    ],
)
def test_a_wrong_file_is_named(home: Path, text: str, said: str) -> None:
    home.write_text(text, encoding="utf-8")
    with pytest.raises(AddressError) as complaint:
        names_address(Where())
    assert said in str(complaint.value)
    assert str(home) in str(complaint.value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["pub", "a", "-w"], ["pub", "a", "-w", "1"]),
        (["pub", "-w", "a"], ["pub", "-w", "1", "a"]),
        (["pub", "-w", "2", "a"], ["pub", "-w", "2", "a"]),
        (["pub", "--wait", "--once"], ["pub", "--wait", "1", "--once"]),
        (["hz", "a", "-w", "--json"], ["hz", "a", "-w", "--json"]),
    ],
)
def test_the_number_of_subscribers_may_be_left_out(typed: list[str], meant: list[str]) -> None:
    assert _complete(typed) == meant
