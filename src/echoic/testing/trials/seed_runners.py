"""Processes that run seeds. Each says of every seed how it went, so that one which dies has said which seed it was.

    trial   {"name", "seeds"}    -------->   runner        a process of its own, forked, which runs them in order
            what is wrong, or "" <--------                 once for each seed, when it is done
            end of file          -------->                 it ends

A process may be killed for its memory, or crash in native code, hours after the start. Then the first seed of which it
has not spoken is the finding, another process takes its place and goes on with the rest. One that is silent for
`SEED_SECONDS_MAX` is killed, which is a finding too. None lives longer than some thousand seeds, so that whatever grows
in a process does not grow for hours.
"""

import ctypes
import multiprocessing
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Final, TypeAlias

import msgspec

from echoic.testing.trials.trial import BY_THE_CLOCK

__all__ = ["Kind", "Portion", "Verdict", "judge", "run_portions"]

Kind: TypeAlias = Callable[[int], object]
"""Runs a seed; raises AssertionError with whatever is needed to see it again."""
Verdict: TypeAlias = tuple[str, str]
"""The kind of simulation, and what is wrong with a seed of it, or nothing."""

SEED_SECONDS_MAX: Final = 1800.0
SEEDS_MAX: Final = 2000
LOOK_SECONDS: Final = 5.0
PROBLEM_CHARACTERS: Final = 4000
END_SECONDS_MAX: Final = 10.0
MALLOC_TRIM_THRESHOLD: Final = -1
MALLOC_MMAP_THRESHOLD: Final = -3
MALLOC_MMAP_BYTES_MAX: Final = 32 * 1024 * 1024


class Portion(msgspec.Struct, frozen=True):
    """Some seeds of one kind."""

    name: str
    seeds: tuple[int, ...]


def judge(kind: Kind, name: str, seed: int) -> str:
    """Run a seed, and return what is wrong with it, or nothing."""
    try:
        kind(seed)
    except AssertionError as error:
        return f"{name}, seed {seed}: {error}"[:PROBLEM_CHARACTERS]
    except Exception as error:  # noqa: BLE001 - a simulation that breaks down is a finding, and must not end the others
        return f"{name}, seed {seed}: {type(error).__name__}: {error}"[:PROBLEM_CHARACTERS]
    return ""


def run_portions(
    kinds: Mapping[str, Kind], portions: Iterable[Portion], count: int, seconds_max: float = SEED_SECONDS_MAX
) -> Iterator[Verdict]:
    """Run portions of seeds in so many processes, and yield a verdict for every seed as it comes.

    Args:
        kinds: By name, what runs a seed.
        portions: What there is to run.
        count: How many processes there are.
        seconds_max: How long a process may be silent.
    """
    waiting = deque(portions)
    runners: list[_Runner] = []
    try:
        while waiting or any(runner.left for runner in runners):
            _employ(kinds, waiting, runners, count)
            busy = {runner.connection: runner for runner in runners if runner.left}
            for connection in wait(list(busy), min(LOOK_SECONDS, seconds_max)):
                runner = busy[connection]  # type: ignore[index] # only connections are waited for
                yield runner.hear()
                if runner.dead:
                    runners.remove(runner)
                    if runner.left:
                        waiting.appendleft(Portion(runner.name, tuple(runner.left)))
            for runner in runners:
                runner.watch(seconds_max)
    finally:
        for runner in runners:
            runner.end()


def _employ(kinds: Mapping[str, Kind], waiting: "deque[Portion]", runners: "list[_Runner]", count: int) -> None:
    """Give whoever has nothing to do a portion, while there are some; replace who has done enough."""
    for runner in [runner for runner in runners if not runner.left and runner.done >= SEEDS_MAX]:
        runner.end()
        runners.remove(runner)
    while len(runners) < min(count, len(waiting) + sum(bool(runner.left) for runner in runners)):
        runners.append(_Runner(kinds, [other.connection for other in runners]))
    for runner in runners:
        if not runner.left and waiting:
            runner.give(waiting.popleft())


class _Runner:
    """One process, as the trial sees it."""

    def __init__(self, kinds: Mapping[str, Kind], others: Sequence[Connection]) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, far = context.Pipe()
        self._process = context.Process(target=_work, args=(kinds, far, [self.connection, *others]), daemon=True)
        self._process.start()
        far.close()
        self.name = ""
        self.left: deque[int] = deque()
        self.done = 0
        self.dead = False
        self._late = False
        self._heard = time.monotonic()

    def give(self, portion: Portion) -> None:
        """Let it run some seeds."""
        self.name, self._heard = portion.name, time.monotonic()
        self.left.extend(portion.seeds)
        with suppress(BrokenPipeError, ConnectionResetError):  # it is dead, which `hear` finds out
            self.connection.send_bytes(msgspec.json.encode(portion))

    def hear(self) -> Verdict:
        """Take what it says of the next seed; or its death, which is then what is wrong with that."""
        seed = self.left.popleft()
        self.done += 1
        self._heard = time.monotonic()
        try:
            return self.name, self.connection.recv_bytes().decode()
        except (EOFError, ConnectionResetError):
            self.dead = True
            self.end()
            return self.name, f"{self.name}, seed {seed}: {self._fate()}"

    def watch(self, seconds_max: float) -> None:
        """Kill it if it has been silent for too long; that it is dead is heard then."""
        if self.left and time.monotonic() - self._heard > seconds_max:
            self._late = True
            self._process.kill()

    def end(self) -> None:
        """Let it end, or make it."""
        self.connection.close()
        if not self.dead:
            self._process.terminate()
        self._process.join(END_SECONDS_MAX)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _fate(self) -> str:
        if self._late:
            return f"it took too long{BY_THE_CLOCK}"
        code = self._process.exitcode or 0
        return f"its process was killed by {signal.Signals(-code).name}" if code < 0 else f"its process ended by {code}"


def _work(kinds: Mapping[str, Kind], connection: Connection, others: Sequence[Connection]) -> None:
    """Run what comes, until there is no more."""
    for other in others:  # or nobody would see the end of file when the trial dies
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which the trial gets too, and ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # by which it does; how the trial itself takes it was inherited
    _keep_freed_memory()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            portion = msgspec.json.decode(connection.recv_bytes(), type=Portion)
            for seed in portion.seeds:
                connection.send_bytes(judge(kinds[portion.name], portion.name, seed).encode())


def _keep_freed_memory() -> None:
    """Let the C library keep the memory of large events for the next ones: runs that have some take three quarters."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library has no such knobs
            library = ctypes.CDLL(None)
            library.mallopt(MALLOC_TRIM_THRESHOLD, 2**30)
            library.mallopt(MALLOC_MMAP_THRESHOLD, MALLOC_MMAP_BYTES_MAX)
