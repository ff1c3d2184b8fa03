"""The processes that `by_reference.py` measures: a bus, a tool that sends, and tools that receive; each is a real one.

    driver --- "SIZE COUNT" ---> sender                    bus                     receiver 1, 2
                                   |  value(blob)           |                          |
                                   | ---------------------> | -- take(blob) ---------> |   one process of the script
                                   | <--- value(bytes) ---- | <---- taken(bytes) ----- |   for each receiver
    driver <-- seconds for one --- |

A value counts as moved when every receiver has it as Python's own `bytes`, and the sender has been told so. Values are
made before the clock starts, and each is another one. What is compared is how they go:

    manner          the bus is told                 tools
    by value        never by reference              the bus stores and forwards
    by reference    always by reference             fetch from the sender
    streamed        always by reference             cannot be reached: chunks go through the bus
    automatic       nothing: the threshold is measured

`PlainFleet` has the same processes without a bus: the sender writes each value to a socket of each receiver. That is
what moving the bytes costs, whoever coordinates it.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from echoic.toolbus import Bus, Term, Tool, eval_

__all__ = [
    "AUTOMATIC",
    "BY_REFERENCE",
    "BY_VALUE",
    "PLAIN",
    "SHARED",
    "STREAMED",
    "TCP",
    "Fleet",
    "Manner",
    "PlainFleet",
]

BY_VALUE, BY_REFERENCE, STREAMED, AUTOMATIC = "by value", "by reference", "streamed", "automatic"
PLAIN = "plain socket"
TCP, SHARED = "TCP", "shared memory"
LINKS = {TCP: "tcp", SHARED: "unix"}
THRESHOLDS = {BY_VALUE: float("inf"), BY_REFERENCE: 0.0, STREAMED: 0.0, AUTOMATIC: None}
SMALL_BYTES = 16
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Manner:
    """How values go."""

    case: str
    links: str
    receivers: int = 1


def script(receivers: int) -> str:
    """Return a script in which every value of the sender goes to so many receivers at once."""
    numbers = range(1, receivers + 1)
    jobs = " . ".join(f"snd-msg(job({number}, V))" for number in numbers)
    done = " . ".join(f"rec-msg(done({number}, N?))" for number in numbers)
    return (
        "tool sender is {}\ntool receiver is {}\n"
        "process Deliver(I : int) is let R : receiver, V : blob, N : int in\n"
        "  rec-connect(R?) . (rec-msg(job(I, V?)) .\n"
        "  snd-eval(R, take(V)) . rec-value(R, taken(N?)) . snd-msg(done(I, N))) * delta endlet\n"
        "process Relay is let S : sender, V : blob, N : int in\n"
        "  rec-connect(S?) . (rec-request(S, value(V?)) .\n"
        f"  {jobs} . {done} . snd-response(S, value(N))) * delta endlet\n"
        f"toolbus(Relay, {', '.join(f'Deliver({number})' for number in numbers)})\n"
    )


class Sender(Tool, name="sender"):
    """Has values."""

    def move(self, value: bytes) -> None:
        """Send one and wait until all have it."""
        answer = self.request("value", value, wait=True, timeout=PATIENCE_SECONDS)
        if answer != Term("value", len(value)):
            raise SystemExit(f"expected that {len(value)} bytes arrive, got {str(answer)[:200]}")


class Receiver(Tool, name="receiver"):
    """Takes values."""

    @eval_
    def take(self, value: bytes) -> Annotated[Term, "taken(int)"]:
        return Term("taken", len(value))


class Process:
    """A process that is given a line and answers with one."""

    def __init__(self, role: str, *words: str, environment: dict[str, str]) -> None:
        self.role = role
        self._process = subprocess.Popen(
            [sys.executable, __file__, role, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the {self.role} ended, with exit code {self._process.wait()}")
        return line.strip()

    def ask(self, line: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self.read()

    def memory(self) -> int:
        """Return how much memory it has, in bytes."""
        return self._memory("VmRSS")

    def forget_peak(self) -> None:
        """Let the peak of its memory begin anew."""
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5", "ascii")

    def peak(self) -> int:
        """Return how much memory it has had at most since then, in bytes."""
        return self._memory("VmHWM")

    def _memory(self, name: str) -> int:
        for line in Path(f"/proc/{self._process.pid}/status").read_text("ascii").splitlines():
            if line.startswith(f"{name}:"):
                return 1024 * int(line.split()[1])
        raise SystemExit(f"the kernel does not tell {name}")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class Fleet:
    """A bus with a sender and its receivers, which stay until it is closed; `connect` comes first."""

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        self._idle_bytes: list[int] = []
        self._environment = {"ECHOIC_LINKS": LINKS[manner.links]}
        self.processes = [
            Process("bus", json.dumps([script(manner.receivers), manner.case]), environment=self._environment)
        ]

    def start_tools(self) -> None:
        """Start the tools, which takes them a while."""
        (bus,) = self.processes
        address = bus.read()
        passive = {"TB_DATA_LISTEN": ""} if self.manner.case == STREAMED else {}
        for role in ("sender", *["receiver"] * self.manner.receivers):
            self.processes.append(Process(role, address, environment={**self._environment, **passive}))

    def connect(self) -> None:
        """Wait until they are there."""
        for process in self.processes[1:]:
            process.read()
        self.transfer(SMALL_BYTES, 1)
        self._idle_bytes = [process.memory() for process in self.processes]

    @property
    def _sender(self) -> Process:
        return self.processes[1]

    def transfer(self, size: int, count: int) -> float:
        """Move so many values; return the seconds for one."""
        return float(self._sender.ask(f"{size} {count}"))

    def growth(self, size: int, count: int) -> dict[str, list[int]]:
        """Move so many values; return by role how far each process grew beyond what it had at first, in bytes."""
        for process in self.processes:
            process.forget_peak()
        self._sender.ask(f"{size} {-count}")
        grown: dict[str, list[int]] = {}
        for process, before in zip(self.processes, self._idle_bytes, strict=True):
            grown.setdefault(process.role, []).append(max(process.peak() - before, 4096))
        return grown

    def close(self) -> None:
        for process in self.processes:  # the bus first, which tells its tools to end
            process.close()


class PlainFleet:
    """A sender and receivers that have a socket each, and nothing else."""

    def __init__(self, receivers: int) -> None:
        self._receivers = [Process("plain-receiver", environment={}) for _ in range(receivers)]
        self._sender = Process("plain-sender", *(each.read() for each in self._receivers), environment={})
        self._sender.read()

    def transfer(self, size: int, count: int) -> float:
        """Move so many values; return the seconds for one."""
        return float(self._sender.ask(f"{size} {count}"))

    def close(self) -> None:
        for process in (self._sender, *self._receivers):
            process.close()


@contextmanager
def fleets(manners: Sequence[Manner], *, plain: bool = True) -> Iterator[dict[str, Fleet | PlainFleet]]:
    """Give fleets by the name of their case, with one of plain sockets before them, and end them.

    Python takes its time to start, so all are started before anybody is waited for.
    """
    with ExitStack() as stack:
        found: dict[str, Fleet | PlainFleet] = {}
        if plain:
            found[PLAIN] = PlainFleet(manners[0].receivers)
        buses = [Fleet(manner) for manner in manners]
        found |= {fleet.manner.case: fleet for fleet in buses}
        for each in found.values():
            stack.callback(each.close)
        for step in (Fleet.start_tools, Fleet.connect):
            for fleet in buses:
                step(fleet)
        yield found


# What the processes do


def be_bus(arguments: str) -> None:
    text, case = json.loads(arguments)
    with Bus.from_script(text, threshold_bytes=THRESHOLDS[case]) as bus:
        bus.start()
        print(bus.address, flush=True)
        sys.stdin.read()


def be_receiver(address: str) -> None:
    with Receiver() as tool:
        tool.connect(address)
        tool.start()
        print(flush=True)
        sys.stdin.read()


def be_sender(address: str) -> None:
    with Sender() as tool:
        tool.connect(address)
        tool.start()
        print(flush=True)
        for size, count in orders():
            if count < 0:  # one after the other, for measuring memory
                for number in range(-count):
                    tool.move(made(number, size))
                seconds = 0.0
            else:
                seconds = timed([made(number, size) for number in range(count)], tool)
            tool.move(bytes(SMALL_BYTES))  # what the script refers to from now on
            print(seconds, flush=True)


def timed(values: list[bytes], tool: Sender) -> float:
    begun = time.perf_counter()
    for value in values:
        tool.move(value)
    return (time.perf_counter() - begun) / len(values)


def be_plain_receiver() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        connection, _ = listening.accept()
        with connection:
            while head := connection.recv(8, socket.MSG_WAITALL):
                value = memoryview(bytearray(int.from_bytes(head, "little")))
                at = 0
                while at < len(value):
                    at += connection.recv_into(value[at:])
                connection.sendall(b"!")


def be_plain_sender(*ports: str) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection(("127.0.0.1", int(port)))) for port in ports]
        for connection in connections:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(flush=True)
        for size, count in orders():
            values = [made(number, size) for number in range(count)]
            begun = time.perf_counter()
            for value in values:
                for connection in connections:
                    connection.sendmsg([len(value).to_bytes(8, "little")])
                    connection.sendall(value)
                for connection in connections:
                    connection.recv(1)
            print((time.perf_counter() - begun) / count, flush=True)


def orders() -> Iterator[tuple[int, int]]:
    """Give size and count of what is asked for, until nothing more is."""
    for line in sys.stdin:
        size, count = map(int, line.split())
        yield size, count


def made(number: int, size: int) -> bytes:
    """Return a value of its own, in memory of its own."""
    return bytes([number % 251]) * size


ROLES = {
    "bus": be_bus,
    "receiver": be_receiver,
    "sender": be_sender,
    "plain-receiver": be_plain_receiver,
    "plain-sender": be_plain_sender,
}

if __name__ == "__main__":
    ROLES[sys.argv[1]](*sys.argv[2:])
