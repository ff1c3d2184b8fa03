"""The launcher: starts the commands of tools, relays what they print, and ends them.

    tool calc is { command = "python calc.py --fast" }

    execute(calc, C?)   ->   python calc.py --fast -TB_TOOL_NAME calc -TB_TOOL_ID 3 -TB_HOST 127.0.0.1 -TB_PORT 40123

No shell looks at the command: it is split as one would, and nothing else. It is run in the folder of the file that
declares the tool, and `python` is the one that runs the bus, so a script and its tools can be started from anywhere.
What the tool writes is relayed line by line with `calc(3) >> ` before it, its standard output to that of the bus, its
errors to the bus's errors.

Everybody on this machine can connect to the port, and everybody can see what is on a command line. So each tool that is
started is given a token that nobody can guess, in its environment (TB_TOKEN), and must show it to be taken for the
instance that was started. The other four are in the environment too.

A tool runs in a session of its own, so that a signal reaches whatever it has started as well, and a Ctrl-C at the
terminal reaches the bus alone, which then ends its tools in order.
"""

import contextlib
import logging
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from echoic.errors import RefusedError
from echoic.links import Identity, is_loopback, parse_address
from echoic.scripts.running.messages import Start
from echoic.toolbus.limits import BusLimits

__all__ = ["Launcher", "TextSink"]

TOKEN_BYTES: Final = 24
LINE_CHARACTERS_MAX: Final = 65_536
LAST_LINES: Final = 5
EXIT_SECONDS: Final = 0.5
POLL_SECONDS: Final = 0.02
RESTARTS_MAX: Final = 3
TLS_KEYS: Final = ("TB_CERTIFICATE", "TB_KEY", "TB_AUTHORITY", "TB_REVOKED", "TB_INSECURE")
EVERY_INTERFACE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not listened at
log: Final = logging.getLogger("echoic.toolbus")

TextSink = Callable[[str], None]


class Launched:
    """One tool that was started."""

    def __init__(self, start: Start, token: str, address: str) -> None:
        self.name: Final = start.name
        self.number: Final = start.tool
        self.address: Final = address
        """Of the entrance at which it is expected."""
        self.token = token
        self.again: Callable[[], None] | None = None
        """Runs the command once more."""
        self.restarts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.connected = False
        self.forgotten = False
        self.last_lines: Final[deque[str]] = deque(maxlen=LAST_LINES)
        self.relays: Final[list[threading.Thread]] = []

    def is_awaited(self, attempt: int) -> bool:
        """Whether it has not connected, and was not started again since an attempt."""
        return not self.connected and self.restarts == attempt

    def end(self, sign: signal.Signals) -> None:
        """Send a signal to the tool and what it has started."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, sign)

    @property
    def done(self) -> bool:
        """Whether nothing more comes of it."""
        ended = self.process is None or bool(self.fate())
        return ended and not any(relay.is_alive() for relay in self.relays)

    def fate(self) -> str:
        """Return how the process has ended, empty while it has not."""
        code = None if self.process is None else self.process.poll()
        if code is None:
            return ""
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"its process was killed by {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"


class Launcher:
    """Starts and ends the processes of tools."""

    def __init__(
        self,
        limits: BusLimits,
        on_lost: Callable[[int, str], None],
        *,
        identity: Identity | None = None,
        output: TextSink | None = None,
    ) -> None:
        """Begin with nothing.

        Args:
            limits: How long tools may take to connect, and to end.
            on_lost: Called with the number of a tool that will not connect, and why.
            identity: The files a tool needs where the bus speaks TLS; it is told where they are.
            output: Takes what tools print; standard output by default.
        """
        self._limits = limits
        self._on_lost = on_lost
        self._identity = identity
        self._output = output or _write_output
        self._launched: dict[int, Launched] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(self, start: Start, address: str, folder: Path | None = None) -> None:
        """Start a tool, which will connect to an address; `on_lost` learns if it does not. Does not wait."""
        launched = Launched(start, secrets.token_urlsafe(TOKEN_BYTES), address)
        with self._lock:
            if self._closed:
                return
            self._launched[start.tool] = launched
        launched.again = lambda: threading.Thread(
            target=self._launch,
            args=(start, launched, address, folder),
            name=f"echoic-bus-launch-{start.name}",
            daemon=True,
        ).start()
        launched.again()

    def restart(self, tool: int) -> bool:
        """Run the command of a tool again whose process has failed; return whether it was. Waits a little for that.

        Only so often: a tool that fails whenever it is asked something would be started for ever.
        """
        fate = self.fate(tool)
        with self._lock:
            launched = self._launched.get(tool)
            process = None if launched is None else launched.process
            if launched is None or process is None or not fate or process.returncode == 0 or self._closed:
                return False
            if launched.restarts >= RESTARTS_MAX or launched.again is None:
                return False
            launched.restarts += 1
            launched.connected = False
            launched.token = secrets.token_urlsafe(TOKEN_BYTES)
            launched.process = None
        log.warning("tool `%s(%s)` is started again: %s", launched.name, tool, fate)
        launched.again()
        return True

    def check(self, name: str, instance: int, token: str) -> None:
        """Learn that a tool has come that says it was started.

        Raises:
            RefusedError: It was not, or it is another, or it came already.
        """
        with self._lock:
            launched = self._launched.get(instance)
            if (
                launched is None
                or launched.name != name
                or not secrets.compare_digest(launched.token.encode(), token.encode())
            ):
                raise RefusedError(f"`{name}({instance})` was not started by this bus, or the token is not that of it")
            if launched.connected:
                raise RefusedError(f"`{name}({instance})` is connected already")
            launched.connected = True

    def expects(self, name: str, instance: int, address: str) -> bool:
        """Learn that a tool has come to an entrance where none can show a token; return whether this one is due there.

        One that was started for another entrance never is: there it shows its token, and here anybody could be it.
        """
        with self._lock:
            launched = self._launched.get(instance)
            if launched is None or (launched.name, launched.address) != (name, address) or launched.connected:
                return False
            launched.connected = True
            return True

    def kill(self, tool: int) -> None:
        """End a tool at once."""
        with self._lock:
            launched = self._launched.get(tool)
        if launched is not None:
            launched.end(signal.SIGKILL)

    def forget(self, tool: int) -> None:
        """Keep nothing about a tool, and others before it, once its process has ended and all it printed is out."""
        with self._lock:
            launched = self._launched.get(tool)
            if launched is not None:
                launched.forgotten = True
            for each in list(self._launched.values()):
                if each.forgotten and each.done:
                    del self._launched[each.number]

    def fate(self, tool: int) -> str:
        """Return how the process of a tool has ended, waiting a little for it; empty where it has not, or is none."""
        with self._lock:
            launched = self._launched.get(tool)
        if launched is None or launched.process is None:
            return ""
        deadline = time.monotonic() + EXIT_SECONDS
        while not launched.fate() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return launched.fate()

    def running(self) -> list[str]:
        """Return the tools whose processes run, as `name(number)`."""
        with self._lock:
            every = list(self._launched.values())
        return [f"{each.name}({each.number})" for each in every if each.process is not None and not each.fate()]

    def close(self) -> None:
        """Let the tools end, which were told to, and kill those that do not; then wait for what they printed."""
        with self._lock:
            self._closed = True
            every = list(self._launched.values())
        deadline = time.monotonic() + self._limits.grace_seconds
        for sign, until in ((None, deadline), (signal.SIGTERM, deadline + 1), (signal.SIGKILL, deadline + 3)):
            left = [each for each in every if each.process is not None and not each.fate()]
            if left and sign is not None:
                log.warning(
                    "%s of tools that did not end: %s", sign.name, ", ".join(f"{e.name}({e.number})" for e in left)
                )
                for each in left:
                    each.end(sign)
            while time.monotonic() < until and any(each.process is not None and not each.fate() for each in left):
                time.sleep(POLL_SECONDS)
        for each in every:
            for relay in each.relays:
                relay.join(EXIT_SECONDS)

    def _launch(self, start: Start, launched: Launched, address: str, folder: Path | None) -> None:
        """Start a process, and see that it connects or is given up."""
        attempt = launched.restarts
        reason = self._run(start, launched, address, folder)
        process = launched.process
        if process is None:
            self._on_lost(start.tool, reason)
            return
        deadline = time.monotonic() + self._limits.start_seconds
        while launched.is_awaited(attempt) and not self._closed:
            if process.poll() is not None:
                for relay in launched.relays:
                    relay.join(EXIT_SECONDS)
                said = f": {launched.last_lines[-1]}" if launched.last_lines else ""
                if launched.is_awaited(attempt):
                    self._on_lost(start.tool, f"{launched.fate()} before it connected{said}")
                return
            if time.monotonic() > deadline:
                launched.end(signal.SIGKILL)
                self._on_lost(start.tool, f"it did not connect within {self._limits.start_seconds:g} seconds")
                return
            time.sleep(POLL_SECONDS)

    def _environment(self, named: dict[str, str]) -> dict[str, str]:
        """Return the environment of a tool: ours, what it is told, and where the files for TLS are."""
        environment = {key: value for key, value in os.environ.items() if key not in TLS_KEYS}  # of who runs the bus
        environment |= {**named, "PYTHONUNBUFFERED": "1"}
        environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        if self._identity is not None:
            environment["TB_CERTIFICATE"] = str(self._identity.certificate)
            environment["TB_KEY"] = str(self._identity.key)
            environment["TB_AUTHORITY"] = str(self._identity.authority)
            if self._identity.revoked is not None:
                environment["TB_REVOKED"] = str(self._identity.revoked)
        elif not is_loopback(named["TB_HOST"]):
            environment["TB_INSECURE"] = "1"  # whoever runs the bus has accepted that
        return environment

    def _run(self, start: Start, launched: Launched, address: str, folder: Path | None) -> str:
        """Run the command of a tool; return why that could not be."""
        if not _is_here(start.host):
            return f"tools are started on this machine only, not on host `{start.host}`"
        host, port = parse_address(address)
        if host in EVERY_INTERFACE:
            host = "127.0.0.1" if host == "0.0.0.0" else "::1"  # noqa: S104 - the tool dials it
        named = {"TB_TOOL_NAME": start.name, "TB_TOOL_ID": str(start.tool), "TB_HOST": host, "TB_PORT": str(port)}
        environment = self._environment(named | {"TB_TOKEN": launched.token})
        try:
            words = shlex.split(start.command)
            if not words:
                return "it has no command"
            words += [word for key, value in named.items() for word in (f"-{key}", value)]
            if start.details:
                words += ["-details", start.details]
            process = subprocess.Popen(
                words,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            return f"its command `{start.command}` cannot be run: {reason}"
        for stream, sink in ((process.stdout, self._output), (process.stderr, _write_error)):
            if stream is not None:
                relay = threading.Thread(
                    target=_relay, args=(stream, launched, sink), name=f"echoic-bus-relay-{start.name}", daemon=True
                )
                relay.start()
                launched.relays.append(relay)
        launched.process = process
        if self._closed:
            launched.end(signal.SIGKILL)
        return ""


def _relay(stream: IO[bytes], launched: Launched, sink: TextSink) -> None:
    """Write the lines of a tool with its name before them."""
    with stream:
        while line := stream.readline(LINE_CHARACTERS_MAX):
            text = line.decode(errors="replace").rstrip("\r\n")
            launched.last_lines.append(text)
            try:
                sink(f"{launched.name}({launched.number}) >> {text}\n")
            except (OSError, ValueError):
                continue  # nobody reads: the tool must not be stopped by that


def _is_here(host: str) -> bool:
    return not host or host == socket.gethostname() or is_loopback(host)


def _write_output(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _write_error(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
