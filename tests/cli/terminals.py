"""Terminals to type commands into: real processes, whose output is read as it comes.

`type_here` runs a command that ends by itself in the process of the test. It is for verbs that touch nothing but files:
a process of its own, and with it half a second, buys nothing there.
"""

import io
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from echoic.cli import main
from tests.nursery import Fledgling

PATIENCE_SECONDS = 120.0
POLL_SECONDS = 0.02
PROGRAM = [sys.executable, "-c", "from echoic.cli import main; main()"]
TRADE = "Trade{symbol: str, price: float, volume: int = 0}"


def free_port() -> int:
    """Return a port that nobody listens at, below those that the system gives to whoever dials."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def poll(condition: Callable[[], object], what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS} s for {what}"
        time.sleep(POLL_SECONDS)


def type_here(*words: str) -> tuple[int, str, str]:
    """Run a command in this process, and return its exit code, stdout and stderr."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    code, arguments, terminating = 0, sys.argv, signal.getsignal(signal.SIGTERM)
    sys.argv = ["echoic", *words]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.argv = arguments
        signal.signal(signal.SIGTERM, terminating)
    return code, written(out), written(err)


def written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


class Terminal:
    """One running command."""

    def __init__(self, *words: str, names: str) -> None:
        environment = {**os.environ, "ECHOIC_NAMES": names, "COLUMNS": "100"}
        self.process = Fledgling(["echoic.cli:main", *words], environment=environment)
        self.out, self.err = "", ""
        self._readers = [threading.Thread(target=self._read, args=(stream,)) for stream in ("out", "err")]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: str) -> None:
        pipe = self.process.stdout if stream == "out" else self.process.stderr
        assert pipe is not None
        for line in pipe:
            setattr(self, stream, getattr(self, stream) + line)

    def shows(self, text: str) -> "Terminal":
        """Wait until a text stands on stdout."""
        poll(lambda: text in self.out or self._over(), f"{text!r} on stdout; stderr: {self.err}")
        assert text in self.out, f"ended without {text!r}: {self.out}{self.err}"
        return self

    def says(self, text: str) -> "Terminal":
        """Wait until a text stands on stderr."""
        poll(lambda: text in self.err or self._over(), f"{text!r} on stderr")
        assert text in self.err, f"ended without {text!r}: {self.out}{self.err}"
        return self

    def _over(self) -> bool:
        return self.process.poll() is not None and not any(reader.is_alive() for reader in self._readers)

    def type(self, *lines: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()

    def interrupt(self, with_signal: int = signal.SIGINT) -> int:
        """Press Ctrl-C, and return the exit code."""
        self.process.send_signal(with_signal)
        return self.ends()

    def ends(self) -> int:
        """Wait for the end, and return the exit code."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        poll(lambda: self.process.poll() is not None, f"the end; stdout: {self.out[-500:]}; stderr: {self.err[-500:]}")
        code = self.process.wait()
        for reader in self._readers:
            reader.join(PATIENCE_SECONDS)
        return code

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.ends()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class Desk:
    """A place with terminals that share a name server's address, where nothing runs at first."""

    def __init__(self) -> None:
        self.names = f"127.0.0.1:{free_port()}"
        self._open: list[Terminal] = []

    def start(self, *words: str) -> Terminal:
        terminal = Terminal(*words, names=self.names)
        self._open.append(terminal)
        return terminal

    def run(self, *words: str) -> Terminal:
        terminal = self.start(*words)
        terminal.ends()
        return terminal

    def clear(self) -> None:
        for terminal in self._open:
            terminal.kill()


@contextmanager
def desk() -> Iterator[Desk]:
    made = Desk()
    try:
        yield made
    finally:
        made.clear()
