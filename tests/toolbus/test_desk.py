"""The desk of a bus: questions, answers, and those who answer anything."""

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from echoic.errors import LocalError, UnreachableError
from echoic.toolbus.desk import ConsoleDesk, ask, check_name, running_buses


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as runtime:  # the address of a socket must be short
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        yield Path(runtime)


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """Let somebody at a socket answer whatever he is asked, and then say nothing."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen(8)
        over = threading.Event()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)
                over.wait()

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        over.set()
        thread.join()


def test_a_question_is_answered() -> None:
    with ConsoleDesk("calc", lambda question: {"asked": question}) as desk:
        assert running_buses() == {"calc": desk.path}
        assert desk.path is not None
        assert ask(desk.path, "state") == {"asked": "state"}
    assert running_buses() == {}


def test_what_is_no_question_is_told_so() -> None:
    with ConsoleDesk("calc", lambda question: {"asked": question}) as desk:
        assert desk.path is not None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(desk.path))
            connection.sendall(b"<html>\n")
            assert connection.recv(1000).startswith(b'{"error":"this is not a question')
        assert ask(desk.path, "more") == {"asked": "more"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"[]\n", "Expected `object`"),
        (b"\xff\xfe\n", "does not answer"),
        (b'{"error": "no"}\n', "says: no"),
        (b"x" * 3000, "more than 2000 bytes"),
        (b'{"half": ', "time"),
    ],
)
def test_what_is_no_answer_is_an_error_in_time(folder: Path, answer: bytes, reason: str) -> None:
    path = folder / f"echoic-bus-odd-{os.getpid()}.sock"
    with answering(path, answer), pytest.raises(UnreachableError, match=reason):
        ask(path, "state", seconds=0.5, bytes_max=2000)


def test_the_socket_of_a_bus_that_was_killed_is_removed(folder: Path) -> None:
    (left,) = [folder / "echoic-bus-dead-1.sock"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(left))
    assert left.exists()
    assert running_buses() == {}
    assert not left.exists()


def test_names_are_fit_for_files() -> None:
    assert check_name("calc-2.1") == "calc-2.1"
    for name in ("", "../calc", "a b", "x" * 41):
        with pytest.raises(LocalError):
            check_name(name)
