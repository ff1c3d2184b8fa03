"""Corosync daemons on one machine: each in a network namespace of its own, joined by a bridge in a further one.

    namespace echoic-<id>-n1 .. -n3    a daemon, and the processes of its node       10.99.0.1 .. 3
    namespace echoic-<id>-sw           the bridge; a link is cut by taking its end of the cable down

A daemon's local socket is abstract, and so belongs to its network namespace; its files are under /run and /dev/shm,
where each daemon sees folders of its own, by a mount namespace. Processes of a node run in both namespaces of its
daemon. Names have the process id of the test in them, so that several runs do not meet.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["CorosyncCluster", "cluster", "why_not"]

CONFIGURATION = """\
totem {{
    version: 2
    cluster_name: {name}
    transport: udpu
    token: 400
    join: 50
    consensus: 500
    max_network_delay: 50
    allow_knet_handle_fallback: yes
    interface {{
        ringnumber: 0
        bindnetaddr: 10.99.0.{node}
    }}
}}
nodelist {{
{nodes}
}}
quorum {{
    provider: corosync_votequorum
}}
logging {{
    to_logfile: yes
    to_stderr: no
    to_syslog: no
    logfile: {folder}/corosync.log
}}
system {{
    sched_rr: no
    move_to_root_cgroup: no
    state_dir: {folder}/state
    allow_knet_handle_fallback: yes
}}
uidgid {{
    uid: 0
    gid: 0
}}
"""
START_SECONDS_MAX = 20.0


def why_not() -> str:
    """Return why there can be no cluster here; nothing if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [program for program in ("corosync", "ip", "unshare", "nsenter") if not shutil.which(program)]
    if missing:
        return f"not installed: {', '.join(missing)}"
    probe = subprocess.run(["ip", "netns", "list"], capture_output=True, check=False)
    return "" if probe.returncode == 0 else f"no network namespaces: {probe.stderr.decode()}"


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")


class CorosyncCluster:
    def __init__(self, folder: Path, count: int = 3) -> None:
        self.folder = folder
        self.nodes = range(1, count + 1)
        self.id = f"echoic-{os.getpid()}"
        self._daemons: dict[int, subprocess.Popen[bytes]] = {}
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        run("ip", "netns", "add", f"{self.id}-sw")
        run("ip", "-n", f"{self.id}-sw", "link", "add", "br0", "type", "bridge")
        run("ip", "-n", f"{self.id}-sw", "link", "set", "br0", "up")
        for node in self.nodes:
            inner, switch, outer = f"{self.id}-n{node}", f"{self.id}-sw", f"v{node}"
            run("ip", "netns", "add", inner)
            cable = ("ip", "-n", inner, "link", "add", "eth0", "type", "veth", "peer", "name", outer, "netns", switch)
            run(*cable)
            run("ip", "-n", inner, "addr", "add", f"10.99.0.{node}/24", "dev", "eth0")
            run("ip", "-n", inner, "link", "set", "lo", "up")
            run("ip", "-n", inner, "link", "set", "eth0", "up")
            run("ip", "-n", switch, "link", "set", outer, "master", "br0")
            run("ip", "-n", switch, "link", "set", outer, "up")
        for node in self.nodes:
            self.start_daemon(node)
        for node in self.nodes:
            self._wait_until_up(node)

    def start_daemon(self, node: int) -> None:
        """Start a node's daemon, with /run, /var/lib/corosync and /dev/shm of its own."""
        home = self.folder / f"n{node}"
        for name in ("run", "lib", "state"):
            (home / name).mkdir(parents=True, exist_ok=True)
        entries = [
            f"    node {{\n        ring0_addr: 10.99.0.{n}\n        nodeid: {n}\n        name: n{n}\n    }}"
            for n in self.nodes
        ]
        text = CONFIGURATION.format(name=self.id, node=node, nodes="\n".join(entries), folder=home)
        (home / "corosync.conf").write_text(text)
        script = (
            f"mount --make-rprivate / && mount --bind {home}/run /run && mount --bind {home}/lib /var/lib/corosync"
            f" && mount -t tmpfs tmpfs /dev/shm && exec corosync -f -c {home}/corosync.conf"
        )
        command = ["ip", "netns", "exec", f"{self.id}-n{node}", "unshare", "-m", "sh", "-c", script]
        with (home / "daemon.out").open("ab") as out:
            self._daemons[node] = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)

    def popen(self, node: int, command: list[str], **options: object) -> subprocess.Popen[bytes]:
        """Start a process on a node, beside its daemon."""
        daemon = self._daemons[node].pid
        entered = ["nsenter", "-t", str(daemon), "-m", "-n", "--", *command]
        process: subprocess.Popen[bytes] = subprocess.Popen(entered, **options)  # type: ignore[call-overload]
        self._processes.append(process)
        return process

    def python(self, node: int, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
        return self.popen(node, [sys.executable, *arguments], **options)

    def cut(self, node: int) -> None:
        run("ip", "-n", f"{self.id}-sw", "link", "set", f"v{node}", "down")

    def heal(self, node: int) -> None:
        run("ip", "-n", f"{self.id}-sw", "link", "set", f"v{node}", "up")

    def kill_daemon(self, node: int) -> None:
        """End a daemon as a crash would."""
        self._daemons[node].send_signal(signal.SIGKILL)
        self._daemons[node].wait(10)

    def restart_daemon(self, node: int) -> None:
        self.start_daemon(node)
        self._wait_until_up(node)

    def _wait_until_up(self, node: int) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if self._daemons[node].poll() is not None:
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                asked = self.popen(node, ["corosync-cfgtool", "-s"], stdout=-3, stderr=-3)
                self._processes.remove(asked)
                if asked.wait(5) == 0:
                    return
            time.sleep(0.05)
        home = self.folder / f"n{node}"
        told = [path.read_text()[-2000:] for path in (home / "daemon.out", home / "corosync.log") if path.exists()]
        raise RuntimeError(f"the daemon of node {node} does not start: {''.join(told)}")

    def stop(self) -> None:
        for process in [*self._processes, *self._daemons.values()]:
            if process.poll() is None:
                process.kill()
        for process in [*self._processes, *self._daemons.values()]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        for name in [f"{self.id}-n{node}" for node in self.nodes] + [f"{self.id}-sw"]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False, timeout=20)


@contextlib.contextmanager
def cluster(count: int = 3) -> Iterator[CorosyncCluster]:
    """Run a cluster, and leave nothing behind."""
    with tempfile.TemporaryDirectory(prefix="echoic-corosync-", ignore_cleanup_errors=True) as folder:
        made = CorosyncCluster(Path(folder), count)
        try:
            made.start()
            yield made
        finally:
            made.stop()
