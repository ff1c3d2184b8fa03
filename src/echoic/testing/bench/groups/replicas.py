"""Replicas as processes, one of which is the source: a group is measured as the paper's section 2 has it.

    measure(Case(size=1000, packing="static:11"))  ->  Result(throughput=..., latency=..., cpu=..., course=[...])

Every run has processes of its own (`nursery`), which join on loopback, or wherever `launch` starts them: where an
engine needs a daemon beside it, a caller starts them there.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from typing import IO, Final, TypeVar, cast

import msgspec

from echoic.testing.bench.groups.cases import Case, Result
from echoic.testing.bench.groups.nursery import ForkedProcess, Nursery
from echoic.testing.readable import is_readable

__all__ = ["Launch", "launch_forked", "launch_program", "measure", "measure_all"]

PROGRAM: Final = (sys.executable, "-m", "echoic.testing.bench.groups.replica")
START_SECONDS_MAX: Final = 60.0
END_SECONDS_MAX: Final = 40.0
STOP_SECONDS_MAX: Final = 5.0

Launch = Callable[[str, Sequence[str]], "subprocess.Popen[bytes] | ForkedProcess"]
"""Starts a program for the replica of a name, with pipes as its stdin and stdout."""
Answer = TypeVar("Answer")


def launch_program(name: str, command: Sequence[str]) -> "subprocess.Popen[bytes]":  # noqa: ARG001 - a `Launch`
    """Start a program on this machine."""
    # Whatever can be imported here can be imported there.
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=variables)


@cache
def _nursery() -> Nursery:
    return Nursery()


def launch_forked(name: str, command: Sequence[str]) -> ForkedProcess:  # noqa: ARG001 - a `Launch`
    """Start a replica of this package on this machine, without its imports."""
    if _nursery().ended:
        _nursery.cache_clear()
    return _nursery().fork(command[len(PROGRAM) :])


def measure(case: Case, launch: Launch = launch_forked) -> Result:
    """Run a group once and return what its source saw.

    Raises:
        LocalError: The case cannot be run.
        RuntimeError: A replica has ended or does not answer.
    """
    results = measure_all(case, launch)
    return next(result for result in results.values() if result.submitted)


def measure_all(case: Case, launch: Launch = launch_forked) -> dict[str, Result]:
    """Run a group once and return what each replica saw that is there at the end.

    Raises:
        LocalError: The case cannot be run.
        RuntimeError: A replica has ended or does not answer.
    """
    case.check()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="echoic-bench-", ignore_cleanup_errors=True))
        replicas = {}
        for number in range(1, case.replicas + 1):
            name = f"n{number}"
            replicas[name] = replica = ReplicaProcess(name, case, folder, launch)
            stack.callback(replica.stop)
        results = _run(case, replicas)
        for replica in replicas.values():
            replica.release()
        return results


def _run(case: Case, replicas: Mapping[str, "ReplicaProcess"]) -> dict[str, Result]:
    peers = {name: replica.answer(dict[str, str], START_SECONDS_MAX)["address"] for name, replica in replicas.items()}
    for replica in replicas.values():
        replica.say(msgspec.json.encode(peers).decode())
    leaders = [replica.answer(dict[str, str], START_SECONDS_MAX)["leader"] for replica in replicas.values()]
    leader = max(set(leaders), key=leaders.count)
    follows = case.at == "follower" or case.kill_after > 0
    source = next(name for name in replicas if (name != leader) is follows)
    others = [name for name in replicas if name != source]
    for name in others:
        replicas[name].say("measure")
    replicas[source].say("send")
    if case.kill_after:
        time.sleep(case.kill_after)
        replicas[leader].kill()
        others.remove(leader)
    results = {source: replicas[source].answer(Result, case.seconds + END_SECONDS_MAX)}
    for name in others:
        replicas[name].say("tell")
        results[name] = replicas[name].answer(Result, END_SECONDS_MAX)
    return results


class ReplicaProcess:
    """A process of `replica`."""

    def __init__(self, name: str, case: Case, folder: str, launch: Launch) -> None:
        self.name: Final = name
        self._process = launch(name, [*PROGRAM, name, msgspec.json.encode(case).decode(), folder])
        self._in = cast("IO[bytes]", self._process.stdin)
        self._out = cast("IO[bytes]", self._process.stdout)
        self._received = bytearray()

    def say(self, line: str) -> None:
        """Tell it something."""
        self._in.write(f"{line}\n".encode())

    def answer(self, kind: type[Answer], seconds_max: float) -> Answer:
        """Return what it says next.

        Raises:
            RuntimeError: It has ended, or says nothing for long.
        """
        deadline = time.monotonic() + seconds_max
        while b"\n" not in self._received:
            left = deadline - time.monotonic()
            if left <= 0 or not is_readable(self._out, left):
                raise RuntimeError(f"replica {self.name} says nothing for {seconds_max:g} s")
            data = os.read(self._out.fileno(), 1 << 16)
            if not data:
                raise RuntimeError(f"replica {self.name} has ended")
            self._received += data
        line, _, rest = bytes(self._received).partition(b"\n")
        self._received = bytearray(rest)
        return msgspec.json.decode(line, type=kind)

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()

    def release(self) -> None:
        """Tell it to end."""
        self._in.close()

    def stop(self) -> None:
        """End it, with force if it must be."""
        self.release()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._out.close()
