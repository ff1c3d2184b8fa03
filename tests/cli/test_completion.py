"""Tab: verbs and options from a script, and what lives from whoever knows it."""

import os
import pty
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic import Hub, Identity, event
from echoic.cli.app import app, load_all
from echoic.cli.completing import POSITIONALS, VALUES, candidates, takes_value
from echoic.trust.authority import Authority
from tests.cli.terminals import PATIENCE_SECONDS, free_port, type_here


@event
class Trade:
    price: float


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("ECHOIC_CONTEXT", raising=False)
    monkeypatch.setenv("ECHOIC_COMPLETE_SECONDS", "60")  # a machine that has much to do is no reason to fail
    (tmp_path / "echoic-bus-office-7.sock").touch()
    with Hub("127.0.0.1:0") as server, Hub("127.0.0.1:0", names=server.address) as hub:
        trades = hub.create("trades", Trade)
        for name in ("tracks", "lab/wind", "ledger.group", "ledger.group.n2"):
            hub.create(name, Trade)
        trades.derive("input.price < param.low + param.lot", params={"low": 1.0, "lot": 2}, name="cheap")
        monkeypatch.setenv("ECHOIC_NAMES", server.address)
        yield server.address


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("echo tr", ["tracks", "trades"]),
        ("echo --json --field x tr", ["tracks", "trades"]),
        ("echo trades tr", []),
        ("record tracks tr", ["trades"]),
        ("pub lab", ["lab/wind"]),
        ("param cheap lo", ["lot=", "low="]),
        ("param trades lo", []),
        ("param nothing lo", []),
        ("group view l", ["ledger"]),
        ("bus console o", ["office"]),
        ("context use l", ["lab"]),
        ("ls --context l", ["lab"]),
        ("ls --context = l", ["lab"]),
        ("ecode check x.ec --channel ch", ["cheap"]),
        ("top tr", []),
        ("echo -", []),
        ("ec", []),
        ("", []),
    ],
)
def test_what_lives_is_offered_where_it_belongs(names: str, typed: str, offered: list[str]) -> None:
    type_here("context", "add", "lab", "--names", names)
    words = typed.split(" ")
    assert candidates(words) == sorted(offered)


def test_where_to_ask_is_said_by_the_words_as_well(names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOIC_NAMES", f"127.0.0.1:{free_port()}")
    host, port = names.split(":")
    assert candidates(["echo", "--names", names, "trad"]) == ["trades"]
    assert candidates(["echo", "--names", host, ":", port, "trad"]) == ["trades"], "as bash takes it apart"
    code, out, said = type_here("--complete-live", "echo", "trad")
    assert (code, out, said) == (0, "", ""), "nobody serves names there, and nobody is told"


@pytest.mark.parametrize("said", ["soon", "-1", "nan", "1e9"])
def test_a_time_that_is_none_does_not_count(names: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOIC_COMPLETE_SECONDS", said)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("ECHOIC_NAMES", f"127.0.0.1:{mute.getsockname()[1]}")
        assert type_here("--complete-live", "echo", "trad") == (0, "", "")


def test_only_names_are_offered(names: str, tmp_path: Path) -> None:
    (tmp_path / "echoic-bus-$(reboot)-1.sock").touch()
    (tmp_path / "echoic-bus-a b;c-1.sock").touch()
    assert candidates(["bus", "console", ""]) == ["office"]


def test_the_table_of_verbs_is_that_of_the_application() -> None:
    load_all()
    for path in POSITIONALS:
        verb = app
        for word in path:
            verb = verb[word]
        arguments = verb.assemble_argument_collection()
        options = {name: each.hint is bool for each in arguments for name in each.names if name.startswith("-")}
        wrong = [
            name for name, flag in options.items() if takes_value(path, name) is flag and not name.startswith("--no-")
        ]
        assert not wrong, f"{path} has other options: {wrong}"
    assert all(option.startswith("--") for option in VALUES)


def test_it_asks_without_the_application(names: str) -> None:
    program = (
        "import sys; from echoic.cli import main; main();"
        "print(sorted({'numpy', 'cyclopts', 'rich', 'echoic.hub', 'echoic.cli.app'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, "--complete-live", "echo", "trad"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "trades\n[]\n"


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A name server that speaks TLS alone, and hubs with rights."""
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("ECHOIC_COMPLETE_SECONDS", "60")
    for name in ("ECHOIC_CONTEXT", "ECHOIC_IDENTITY"):
        monkeypatch.delenv(name, raising=False)
    authority = Authority.create()
    for name in ("office", "desk", "press", "mallory"):
        authority.issue(name, ("127.0.0.1", "localhost"))
    rights = tmp_path / "rights"
    rights.touch(0o600)
    rights.write_text("allow office * *\nallow desk subscribe,derive *\nallow press subscribe trades.cheap\n", "utf-8")
    office = Identity.named("office")
    with (
        Hub("127.0.0.1:0", identity=office, rights=rights) as server,
        Hub("127.0.0.1:0", names=server.address, identity=office, rights=rights) as hub,
    ):
        trades = hub.create("trades", Trade)
        trades.derive("input.price < param.low", params={"low": 1.0}, name="trades.cheap")
        monkeypatch.setenv("ECHOIC_NAMES", server.address)
        yield server.address


def test_under_tls_everybody_is_offered_what_he_may_see(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert candidates(["echo", "--identity", "desk", "tr"]) == ["trades", "trades.cheap"]
    assert candidates(["echo", "--identity=press", "tr"]) == ["trades.cheap"]
    assert candidates(["echo", "--identity", "mallory", "tr"]) == []
    assert candidates(["param", "--identity", "desk", "trades.cheap", "l"]) == ["low="]
    monkeypatch.setenv("ECHOIC_IDENTITY", "desk")
    assert candidates(["echo", "tr"]) == ["trades", "trades.cheap"]
    type_here("context", "add", "lab", "--names", guarded, "--identity", "press")
    assert candidates(["echo", "--context", "lab", "tr"]) == ["trades.cheap"]


def test_under_tls_nothing_is_offered_to_nobody_and_by_nobody(guarded: str, tmp_path: Path) -> None:
    for words in (["echo", "tr"], ["echo", "--identity", "nobody", "tr"], ["echo", "--identity", "../desk", "tr"]):
        assert type_here("--complete-live", *words) == (0, "", ""), words
    Authority.load().revoke("desk")
    assert type_here("--complete-live", "echo", "--identity", "desk", "tr")[1] == ""
    os.environ["ECHOIC_HOME"] = str(tmp_path / "elsewhere")  # as the fixture has set it, which puts it back
    Authority.create().issue("desk", ("127.0.0.1",))
    assert type_here("--complete-live", "echo", "--identity", "desk", "tr")[1] == "", "it is another's authority"


def test_it_asks_by_tls_without_the_application(guarded: str) -> None:
    program = (
        "import sys; from echoic.cli import main; main();"
        "print(sorted({'numpy', 'cyclopts', 'rich', 'echoic.links', 'echoic.cli.app'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, "--complete-live", "echo", "--identity", "press", "tr"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "trades.cheap\n[]\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The command `echoic`, in a folder for the PATH."""
    made = tmp_path / "bin" / "echoic"
    made.parent.mkdir()
    made.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c 'from echoic.cli import main; main()' \"$@\"\n", "utf-8")
    made.chmod(0o755)
    return made


@pytest.mark.system
def test_tab_completes_in_a_real_bash(names: str, program: Path, tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(type_here("completion", "bash")[1], "utf-8")
    start = tmp_path / "bashrc"
    start.write_text(f"PS1='ready> '\nPATH='{program.parent}':$PATH\nsource '{script}'\n", "utf-8")
    master, slave = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--rcfile", str(start), "-i"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "dumb", "INPUTRC": "/dev/null"},
        start_new_session=True,
    )
    os.close(slave)
    try:
        read_until(master, "ready> ")
        for typed, completed in (
            ("echoic echo trad\t", "echoic echo trades "),
            ("echoic param che\t", "echoic param cheap "),
            ("echoic param cheap low\t", "echoic param cheap low="),
            ("echoic journal ver\t", "echoic journal verify "),
            ("echoic echo trades --trunc\t", "echoic echo trades --truncate-length "),
            ("echoic ech\t", "echoic echo "),
        ):
            os.write(master, typed.encode())
            read_until(master, completed)
            os.write(master, b"\x15")  # takes the line back
            os.write(master, b"\n")
            read_until(master, "ready> ")
    finally:
        shell.kill()
        shell.wait()
        os.close(master)


def read_until(master: int, wanted: str) -> str:
    seen, deadline = "", time.monotonic() + PATIENCE_SECONDS
    while wanted not in seen.replace("\x07", ""):
        assert time.monotonic() < deadline, seen
        if select.select([master], [], [], 0.1)[0]:
            seen += os.read(master, 65_536).decode(errors="replace")
    return seen


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_installed_where_the_shell_looks(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    code, out, said = type_here("--install-completion")
    assert (code, out) == (0, "")
    (written,) = [path for path in tmp_path.rglob("*echoic*") if path.is_file()]
    assert str(written) in said
    assert "--complete-live" in written.read_text("utf-8")


def test_an_unknown_shell_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    code, _, said = type_here("completion")
    assert code == 1
    assert "one of bash, zsh, fish; $SHELL is `tcsh`" in said
