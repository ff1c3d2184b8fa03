"""One replica of the counter service, in a process of its own, and how tests start and kill such processes.

python -m tests.replicas.counter_replica NAME PEERS [OPTIONS]         both JSON; says where it listens; ends with stdin
"""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from echoic import Hub
from echoic.replicas.service import CounterService

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60.0
END_SECONDS = 10.0


def free_address() -> str:
    """Return an address that nobody listens at, below the ports that the system gives to whoever dials."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return f"127.0.0.1:{port}"


def ask(address: str, method: str, path: str, body: str = "", **headers: str) -> tuple[int, Any]:
    """Ask a replica something, and return status and answer."""
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_SECONDS)
    try:
        connection.request(method, path, body or None, {name.replace("_", "-"): text for name, text in headers.items()})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null")
    finally:
        connection.close()


class Cluster:
    """Three processes; each is always reached at the same addresses."""

    def __init__(self, **options: object) -> None:
        self.hubs = {name: free_address() for name in ("n1", "n2", "n3")}
        self.services = {name: free_address() for name in self.hubs}
        self._options = options
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def start(self, *names: str) -> None:
        for name in names:
            words = [name, json.dumps(self.hubs), json.dumps({**self._options, "listen": self.services[name]})]
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.replicas.counter_replica", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        for name in names:
            assert self._processes[name].stdout.readline() == f"{self.services[name]}\n"

    def kill(self, *names: str) -> None:
        for name in names:
            process = self._processes.pop(name)
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdin.close()
            process.stdout.close()

    @contextmanager
    def stopped(self, *names: str) -> Iterator[None]:
        """Let some do nothing, as if they were cut off."""
        for name in names:
            self._processes[name].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for name in names:
                self._processes[name].send_signal(signal.SIGCONT)

    def standing(self, name: str) -> dict[str, Any]:
        return ask(self.services[name], "GET", "/")[1]

    def leader(self) -> str:
        return str(self.standing(next(iter(self._processes)))["leader"])

    def await_members(self, *names: str) -> None:
        """Wait until those and no others are in the view of each of them."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(self.standing(name)["members"] != sorted(names) for name in names):
            assert time.monotonic() < deadline, {name: self.standing(name) for name in names}
            time.sleep(0.05)

    def await_sequence(self, *names: str) -> None:
        """Wait until all have what one of them has."""
        wanted = max(self.standing(name)["delivered"] for name in names)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(self.standing(name)["delivered"] < wanted for name in names):
            assert time.monotonic() < deadline, {name: self.standing(name) for name in names}
            time.sleep(0.05)

    def values(self, name: str, counters: Iterator[str] | list[str]) -> dict[str, int]:
        found = {}
        for counter in counters:
            status, answer = ask(self.services[name], "GET", f"/counters/{counter}")
            assert status == 200, answer
            found[counter] = answer["value"]
        return found

    def close(self) -> None:
        for process in self._processes.values():
            process.stdin.close()
        for process in self._processes.values():
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


@contextmanager
def cluster(**options: object) -> Iterator[Cluster]:
    made = Cluster(**options)
    try:
        made.start(*made.hubs)
        made.await_members(*made.hubs)
        yield made
    finally:
        made.close()


def main() -> None:
    name, peers, options = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    with Hub(peers[name]) as hub, CounterService(hub, me=name, peers=peers, **options) as service:
        print(service.address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
