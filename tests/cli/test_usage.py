"""What all verbs have in common: JSON, examples in their help, exit codes, and what is said to who mistypes."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cyclopts
import pytest

from echoic import Hub, event
from echoic.cli.app import app, load_all
from echoic.toolbus.desk import ConsoleDesk
from tests.cli.terminals import free_port, type_here

WITHOUT_JSON = {
    "demo": "tells a story, for people",
    "completion": "prints a script, for a shell",
    "keys trust": "prints nothing",
    "keys distrust": "prints nothing",
    "context add": "prints nothing",
    "context use": "prints nothing",
    "context rm": "prints nothing",
    "bus run": "prints what the script and its tools print",
    "bus record": "prints what the script and its tools print",
}


@event
class Trade:
    price: float


def verbs(above: cyclopts.App = app, path: tuple[str, ...] = ()) -> Iterator[tuple[str, cyclopts.App]]:
    """Every verb with what leads to it."""
    load_all()
    for name in above:
        if not name.startswith("-"):
            below = list(verbs(above[name], (*path, name)))
            yield from below or [(" ".join((*path, name)), above[name])]


def options(verb: cyclopts.App) -> set[str]:
    return {name for each in verb.assemble_argument_collection() for name in each.names}


def test_every_verb_that_prints_data_speaks_json() -> None:
    silent = {name for name, verb in verbs() if "--json" not in options(verb)}
    assert silent == set(WITHOUT_JSON)


def test_every_verb_shows_how_it_is_typed() -> None:
    assert [name for name, verb in verbs() if not re.search(r"^\s*Try\b", verb.help or "", re.MULTILINE)] == []


@pytest.mark.parametrize("group", ["acl", "bus", "context", "fuzz", "keys", "names"])
def test_a_group_without_a_verb_says_what_its_verbs_do(group: str) -> None:
    command = [sys.executable, "-c", "from echoic.cli import main; main()", group]  # where nothing is imported yet
    shown, helped = (
        subprocess.run([*command, *more], check=False, capture_output=True, text=True).stdout
        for more in ([], ["--help"])
    )
    listed = [line for line in shown.splitlines() if line.startswith("│ ")]
    assert listed
    assert [line for line in helped.splitlines() if line.startswith("│ ")][: len(listed)] == listed


def test_every_verb_that_asks_for_names_takes_a_context() -> None:
    asking = {name for name, verb in verbs() if "--names" in options(verb)} - {"context add"}
    assert {name for name, verb in verbs() if "--context" in options(verb)} == asking


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    with Hub("127.0.0.1:0") as server, Hub("127.0.0.1:0", names=server.address) as hub:
        trades = hub.create("trades", Trade)
        hub.create("ledger.group", Trade)
        trades.derive("input.price < param.low", params={"low": 1.0}, name="cheap")
        yield server.address


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (0, "ls --names {names}", ""),
        (0, "type trades --names {names}", ""),
        (0, "param cheap low=2 --names {names}", "changed"),
        (1, "ls --names 127.0.0.1:{free}", "nobody serves names at 127.0.0.1:{free}"),
        (1, "ls --names here", "expected an address like 127.0.0.1:7401"),
        (1, "param cheap lw=1 --names {names}", "did you mean `low`?"),
        (1, "param trades --names {names}", "parameters"),
        (2, "ehco", 'Did you mean "echo"?'),
        (2, "group viw", 'Did you mean "view"?'),
        (2, "ls --jsn", "Did you mean --json?"),
        (2, "info", "requires an argument"),
        (2, "top --interval soon", "Invalid value"),
        (2, "derive trades input.prize<1 --names {names}", "did you mean `price`?"),
        (3, "info trdes --names {names}", "did you mean 'trades'? (echoic ls)"),
        (3, "group view leger --names {names}", "did you mean 'ledger'?"),
        (3, "ls --context lb", "did you mean 'lab'? (echoic context ls)"),
        (3, "bus console ofice", "no bus ofice runs here (did you mean `office`?)"),
        (4, "up --listen 0.0.0.0:0", "can be reached from other machines"),
    ],
)
def test_exit_codes_and_what_is_said(
    names: str, code: int, words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "echoic.toml").write_text('[contexts.lab]\nnames = "127.0.0.1:1"\n', "utf-8")
    filled = {"names": names, "free": str(free_port())}
    with running_bus("office", tmp_path, monkeypatch):
        ended, out, err = type_here(*words.format(**filled).split())
    assert ended == code, err
    assert said.format(**filled) in " ".join((out + err).replace("│", " ").split())
    assert "Traceback" not in err
    if code:
        assert out == ""


def running_bus(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ConsoleDesk:
    """The desk at which a bus answers."""
    folder.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return ConsoleDesk(name, lambda question: {})


def test_version_imports_nothing_that_makes_it_slow() -> None:
    program = (
        "import sys; sys.argv = ['echoic', '--version']; from echoic.cli import main; main();"
        "print(sorted({'numpy', 'pyarrow', 'llvmlite', 'pyspark', 'cyclopts', 'msgspec'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "[]"


def test_the_screen_of_top_is_imported_by_no_other_verb() -> None:
    program = (
        "import sys; from echoic.cli.app import load_all; load_all();"
        "print(sorted({'textual', 'pyspark', 'echoic.cli.top_screen'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]"]
