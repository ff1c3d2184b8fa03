"""Trial 22: pickles at every port; and that a port which unpickles would be found."""

import pickle  # noqa: TID251 - to see that the bombs are some
import socket
import threading
from pathlib import Path

import pytest

from echoic.testing.trials.forbidden_code import forbidden_in
from echoic.testing.trials.knocking import Door
from echoic.testing.trials.no_pickle import bombard
from echoic.testing.trials.pickle_bombs import PROTOCOLS, pickle_of
from tests.reliability.trying import try_out


@pytest.mark.system
def test_pickles_are_bad_frames_at_every_port(request: pytest.FixtureRequest) -> None:
    findings = try_out(request, "no_pickle")
    assert findings.figures["ports"] >= 10


@pytest.mark.parametrize("protocol", range(PROTOCOLS))
def test_the_bombs_go_off_where_somebody_unpickles_them(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "mark"
    pickle.loads(pickle_of(mark, protocol)).close()
    assert mark.exists()


def test_a_port_that_unpickles_what_comes_is_found(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()  # the first pickle is a bare one
            with connection:
                pickle.loads(connection.recv(65536)).close()

        threading.Thread(target=serve, daemon=True).start()
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        (problem,) = bombard(Door("careless", address, lambda: None), tmp_path / "mark", 3, 1)
    assert "careless has unpickled" in problem


def test_a_port_at_which_nobody_is_left_is_found(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    (problem,) = bombard(Door("gone", address, lambda: None), tmp_path / "mark", 3, 1)
    assert "did not let a connection in" in problem


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "import dill as harmless",
        "from marshal import loads",
        "from yaml import unsafe_load",
        "__import__('cloudpickle')",
        "import_module('shelve')",
        "yaml.load(text)",
        "eval(text)",
        "builtins.exec(text)",
        "numpy.load(file, allow_pickle=True)",
    ],
)
def test_the_scan_finds_what_could_unpickle(tmp_path: Path, line: str) -> None:
    (tmp_path / "module.py").write_text(f'"""Mentions pickle and eval()."""\n{line}\n')
    assert [found.partition(" ")[0] for found in forbidden_in(tmp_path)] == ["module.py:2"]


def test_the_scan_lets_be_what_is_harmless(tmp_path: Path) -> None:
    harmless = "import json\nnumpy.load(file, allow_pickle=False)\nself.eval(x)\nyaml.safe_load(text)\n"
    (tmp_path / "module.py").write_text(harmless)
    assert forbidden_in(tmp_path) == []
