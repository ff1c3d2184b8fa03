"""Option before environment before file before default."""

from pathlib import Path

import pytest

from echoic.cli.main import _complete
from echoic.cli.where import Where, names_address, surroundings
from echoic.errors import AddressError, ChannelNotFoundError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("ECHOIC_NAMES", raising=False)
    monkeypatch.delenv("ECHOIC_CONTEXT", raising=False)
    return tmp_path / "echoic.toml"


def test_the_nearest_setting_wins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_address(Where()) == "127.0.0.1:7400"
    home.write_text('names = "127.0.0.1:1"\n', encoding="utf-8")
    assert names_address(Where()) == "127.0.0.1:1"
    monkeypatch.setenv("ECHOIC_NAMES", "127.0.0.1:2")
    assert names_address(Where()) == "127.0.0.1:2"
    assert names_address(Where(names="127.0.0.1:3")) == "127.0.0.1:3"


CONTEXTS = """
names = "127.0.0.1:1"
[contexts.lab]
names = "127.0.0.1:5"
listen = "127.0.0.1:9"
insecure = true
[contexts.plant]
names = "127.0.0.1:6"
"""


def test_contexts_take_their_place_among_flags_environment_and_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write_text(CONTEXTS, encoding="utf-8")
    assert names_address(Where()) == "127.0.0.1:1"
    home.write_text(f'context = "lab"\n{CONTEXTS}', encoding="utf-8")
    assert names_address(Where()) == "127.0.0.1:5"
    monkeypatch.setenv("ECHOIC_CONTEXT", "plant")
    assert names_address(Where()) == "127.0.0.1:6"
    monkeypatch.setenv("ECHOIC_NAMES", "127.0.0.1:7")
    assert names_address(Where()) == "127.0.0.1:7"
    assert names_address(Where(context="lab")) == "127.0.0.1:5"
    assert names_address(Where(names="127.0.0.1:8", context="lab")) == "127.0.0.1:8"


def test_a_context_says_where_to_listen_unless_a_flag_does(home: Path) -> None:
    home.write_text(CONTEXTS, encoding="utf-8")
    lab, plant = surroundings(Where(context="lab")), surroundings(Where(context="plant"))
    assert (lab.listen, lab.insecure) == ("127.0.0.1:9", True)
    assert (plant.listen, plant.insecure) == ("127.0.0.1:0", False)
    assert surroundings(Where(context="lab", listen="127.0.0.1:3")).listen == "127.0.0.1:3"
    assert surroundings(Where(names="127.0.0.1:8")).insecure is False


def test_a_context_that_is_not_there_is_told_with_the_nearest(home: Path) -> None:
    home.write_text(CONTEXTS, encoding="utf-8")
    with pytest.raises(ChannelNotFoundError, match="there is no context 'plnt' - from --context; did you mean 'plant'"):
        names_address(Where(context="plnt"))


def test_the_file_may_lie_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "echoic.toml").write_text('names = "127.0.0.1:4"\n', encoding="utf-8")
    assert names_address(Where()) == "127.0.0.1:4"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("names = 7", "expected `str`, got `int` - at `names`"),
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
