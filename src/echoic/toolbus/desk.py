"""Where a running bus answers consoles and viewers: a Unix socket in a folder that belongs to this user alone.

    echoic bus run calc.tb    listens at  FOLDER/echoic-bus-calc-4711.sock
    echoic bus console        looks for such sockets, asks `{"ask": "state"}`, and prints what comes back

A question is one line of JSON and so is its answer; then the connection ends. There is no password: who can open the
socket is the user who started the bus. So it works without a name server and without a port, on this machine only; a
bus on another one is looked at where it runs.

Who asks does not trust what answers: an answer has a size and a time in which it must be there, whole.
"""

import contextlib
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from echoic.errors import LocalError, UnreachableError
from echoic.links import unix_path

__all__ = ["ConsoleDesk", "ask", "check_name", "running_buses"]

NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,39}")
SOCKET: Final = re.compile(r"echoic-bus-(?P<name>.+)-(?P<pid>\d+)\.sock")
QUESTION_BYTES_MAX: Final = 4096
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
ANSWER_SECONDS: Final = 5.0
WAITING_MAX: Final = 8
log: Final = logging.getLogger("echoic.toolbus")

Answer = Callable[[str], dict[str, Any]]


def check_name(name: str) -> str:
    """Return the name of a bus.

    Raises:
        LocalError: It is not fit to be one.
    """
    if not NAME.fullmatch(name):
        raise LocalError(f"expected the name of a bus, at most 40 letters, digits and any of _.-, got `{name}`")
    return name


class ConsoleDesk:
    """Answers consoles while a bus runs. Where there is no folder for it, nobody is answered, and the bus runs on."""

    def __init__(self, name: str, answer: Answer) -> None:
        """Begin with nothing open.

        Args:
            name: Of the bus.
            answer: Returns the answer to a question, which is one word; it is called in the thread of the desk.
        """
        folder = _folder()
        self.path: Final = None if folder is None else folder / f"echoic-bus-{name}-{os.getpid()}.sock"
        self._answer = answer
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        if self.path is None:
            log.warning("no console can reach this bus: there is no folder that belongs to this user alone")
            return self
        try:
            self.path.unlink(missing_ok=True)
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.bind(str(self.path))
            self._socket.listen(WAITING_MAX)
        except OSError as error:
            log.warning("no console can reach this bus: %s", error)
            return self
        threading.Thread(target=self._serve, args=(self._socket,), name="echoic-bus-console", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        listening, self._socket = self._socket, None
        if listening is not None and self.path is not None:
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)  # whoever waits in `accept` goes on
            listening.close()
            self.path.unlink(missing_ok=True)

    def _serve(self, listening: socket.socket) -> None:
        while self._socket is listening:
            try:
                connection, _ = listening.accept()
            except OSError:
                return  # closed
            with connection, contextlib.suppress(OSError):  # who asks may leave
                question = _read_line(connection, QUESTION_BYTES_MAX, ANSWER_SECONDS)
                connection.settimeout(ANSWER_SECONDS)
                connection.sendall(self._answered(question) + b"\n")

    def _answered(self, question: bytes) -> bytes:
        try:
            asked = msgspec.json.decode(question, type=dict[str, str]).get("ask", "")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return msgspec.json.encode({"error": f"this is not a question: {error}"})
        return msgspec.json.encode(self._answer(asked))


def running_buses(seconds: float = ANSWER_SECONDS) -> dict[str, Path]:
    """Return the sockets of the buses that run here, as `name` where it is the only one, else `name-pid`.

    Args:
        seconds: How long one may take to let us in.
    """
    folder = _folder()
    found: list[tuple[str, str, Path]] = []
    for path in sorted(folder.glob("echoic-bus-*.sock")) if folder is not None else ():
        named = SOCKET.fullmatch(path.name)
        if named is not None and _is_alive(path, seconds):
            found.append((named["name"], named["pid"], path))
    names = [name for name, _, _ in found]
    return {name if names.count(name) == 1 else f"{name}-{pid}": path for name, pid, path in found}


def ask(
    path: Path, question: str, *, seconds: float = ANSWER_SECONDS, bytes_max: int = ANSWER_BYTES_MAX
) -> dict[str, Any]:
    """Return the answer of a bus.

    Args:
        path: Its socket.
        question: What is asked.
        seconds: How long the answer may take.
        bytes_max: How large it may be.

    Raises:
        UnreachableError: It does not answer.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            connection.connect(str(path))
            connection.sendall(msgspec.json.encode({"ask": question}) + b"\n")
            answer = msgspec.json.decode(_read_line(connection, bytes_max, seconds), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UnreachableError(f"the bus at {path.name} does not answer: {error}") from error
    if "error" in answer:
        raise UnreachableError(f"the bus at {path.name} says: {answer['error']}")
    return answer


def _is_alive(path: Path, seconds: float) -> bool:
    """Whether somebody listens; what a bus that was killed has left is removed."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            connection.connect(str(path))
    except ConnectionRefusedError:
        path.unlink(missing_ok=True)
        return False
    except OSError:
        return False
    return True


def _read_line(connection: socket.socket, bytes_max: int, seconds: float) -> bytes:
    """Return what comes before the end of a line.

    Raises:
        OSError: It is too long, or takes too long.
    """
    parts: list[bytes] = []
    size, deadline = 0, time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"it takes more than {seconds:g} s")
        connection.settimeout(left)
        part = connection.recv(65_536)
        parts.append(part)
        size += len(part)
        if not part or part.endswith(b"\n"):
            return b"".join(parts)
        if size > bytes_max:
            raise OSError(f"more than {bytes_max} bytes")


def _folder() -> Path | None:
    """Return the folder for sockets of this user, None where it is not the user's alone."""
    path = unix_path(0)
    return None if path is None else path.parent
