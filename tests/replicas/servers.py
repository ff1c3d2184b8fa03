"""Real database servers for tests and benchmarks: PostgreSQL and MariaDB in temporary folders, on Unix sockets only.

    with postgresql_server() as server:
        server.url            "postgresql:///test?host=/tmp/echoic-postgresql-...&user=echoic"
        server.kill()         SIGKILL, as a power cut would be for the processes
        server.start()        the same data again

Neither server may run as root, so where this process does, they run as a user who has no rights here. A server ends
with the thread that started it, also when that is killed; the folder is removed at the end.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["Server", "ServerMissingError", "mariadb_server", "postgresql_server"]

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0
POSTGRESQL_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "40",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
}
MARIADB_OPTIONS = (
    "--no-defaults",
    "--skip-networking",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=48M",
    "--innodb-flush-log-at-trx-commit=1",
    "--max-connections=40",
    "--performance-schema=OFF",
)


class ServerMissingError(Exception):
    """A server cannot be started here; the text says why."""


class Server:
    """A database server of our own, which can be killed and started again."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        account: str,
        probe: Sequence[str],
        url: str,
        stopping: signal.Signals,
    ) -> None:
        self.folder = folder
        self.url = url
        self._command = as_account(account, command)
        self._probe = probe
        self._stopping = stopping
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it unless it runs, and return when it answers.

        Raises:
            ServerMissingError: It does not answer in time.
        """
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            # One that was killed may have left processes which take a moment to end, and are in the way until then.
            if self._process is None or self._process.poll() is not None:
                self._process = self._started()
            time.sleep(0.05)
            if not subprocess.run(self._probe, capture_output=True, check=False).returncode:
                return
            if time.monotonic() > deadline:
                log = (self.folder / "server.log").read_text("utf-8", "replace")
                raise ServerMissingError(f"{self._probe[0]} gets no answer: {log[-2000:]}")

    def _started(self) -> "subprocess.Popen[bytes]":
        with (self.folder / "server.log").open("ab") as log:
            return subprocess.Popen(self._command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill it at once, with the processes that serve its clients: PostgreSQL's outlive it for a moment."""
        serving = _children(self._process.pid) if self._process is not None else []
        self._end(signal.SIGKILL)
        for process in serving:
            with suppress(ProcessLookupError):  # it has noticed by itself
                os.kill(process, signal.SIGKILL)

    def stop(self) -> None:
        """End it as fast as it can be without leaving anything but its folder."""
        self._end(self._stopping)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _children(process: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = status.read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(fields[1]) == process:
                found.append(int(status.parent.name))
    return found


@contextmanager
def postgresql_server(*, synced: bool = False) -> Iterator[Server]:
    """Give a PostgreSQL server with an empty database `test`.

    Args:
        synced: Whether it waits for the disk. A kill loses nothing without it, and tests are faster; a measurement
            needs it.

    Raises:
        ServerMissingError: There is none on this machine.
    """
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not programs:
        raise ServerMissingError("PostgreSQL is not installed: there is no /usr/lib/postgresql/*/bin/postgres")
    binaries, account = programs[-1].parent, account_of("postgres")
    with own_folder("postgresql", account) as folder:
        data = folder / "data"
        make = [str(binaries / "initdb"), "--pgdata", str(data), "--username", "echoic", "--auth", "trust"]
        prepare(account, [*make, "--encoding", "UTF8", "--locale", "C", "--no-sync"], folder)
        settings = [word for name, value in POSTGRESQL_SETTINGS.items() for word in ("-c", f"{name}={value}")]
        settings += ["-c", f"fsync={'on' if synced else 'off'}"]
        command = [str(binaries / "postgres"), "-D", str(data), "-k", str(folder), *settings]
        probe = [str(binaries / "pg_isready"), "--host", str(folder), "--username", "echoic", "--quiet"]
        url = f"postgresql:///test?host={folder}&user=echoic"
        server = Server(folder, command, account, probe, url, signal.SIGQUIT)
        try:
            server.start()
            subprocess.run([str(binaries / "createdb"), "-h", str(folder), "-U", "echoic", "test"], check=True)
            yield server
        finally:
            server.stop()


@contextmanager
def mariadb_server(*, synced: bool = False) -> Iterator[Server]:
    """Give a MariaDB server with an empty database `test`.

    Args:
        synced: Whether it waits for the disk, see `postgresql_server`.

    Raises:
        ServerMissingError: There is none on this machine.
    """
    program, install = shutil.which("mariadbd", path="/usr/sbin:/usr/bin"), shutil.which("mariadb-install-db")
    asks = shutil.which("mariadb-admin")
    if program is None or install is None or asks is None:
        raise ServerMissingError("MariaDB is not installed: mariadbd, mariadb-install-db and mariadb-admin are needed")
    account = account_of("mysql")
    with own_folder("mariadb", account) as folder:
        data, socket = folder / "data", folder / "socket"
        make = [install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"]
        prepare(account, [*make, "--skip-name-resolve", "--innodb-flush-method=nosync"], folder)
        command = [program, MARIADB_OPTIONS[0], f"--datadir={data}", f"--socket={socket}", *MARIADB_OPTIONS[1:]]
        command += [f"--pid-file={folder / 'pid'}", f"--tmpdir={folder}"]
        command += [] if synced else ["--innodb-flush-method=nosync"]
        ask = [asks, "--no-defaults", f"--socket={socket}", "--user=root"]
        url = f"mariadb://root@localhost/test?unix_socket={socket}"
        server = Server(folder, command, account, [*ask, "ping"], url, signal.SIGKILL)
        try:
            server.start()
            subprocess.run([*ask, "create", "test"], capture_output=True, check=False)  # it may be there already
            yield server
        finally:
            server.stop()


def account_of(*preferred: str) -> str:
    """Return the user under whom to run a server: nobody in particular where this process is root."""
    if os.geteuid() != 0:
        return ""
    for name in (*preferred, "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise ServerMissingError("this process is root, and there is no other user to run a server")


def as_account(account: str, command: Sequence[str]) -> list[str]:
    """Return the command that runs another as a user, and ends it when the thread that started it ends."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise ServerMissingError("setpriv (util-linux) is not installed")
    if not account:
        return [setpriv, "--pdeathsig", "KILL", *command]
    entry = pwd.getpwnam(account)
    become = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
    return [setpriv, *become, "--pdeathsig", "KILL", *command]


@contextmanager
def own_folder(kind: str, account: str) -> Iterator[Path]:
    """Give a temporary folder that belongs to a user; its path is short, as those of sockets must be."""
    folder = Path(tempfile.mkdtemp(prefix=f"echoic-{kind}-"))
    try:
        if account:
            shutil.chown(folder, account)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def prepare(account: str, command: Sequence[str], folder: Path) -> None:
    """Run what makes the first files of a server.

    Raises:
        ServerMissingError: It fails.
    """
    done = subprocess.run(as_account(account, command), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerMissingError(f"{command[0]} failed: {(done.stderr or done.stdout)[-2000:]}")
