"""The process that fuzzes parsers by coverage: it loads them once, every branch watched, and forks for each.

    trial  --> host: a wish on stdin     imports atheris, then everything that is watched, instrumented
                 |-- fork: frames        libFuzzer for so many seconds, in this copy alone
                 |-- fork: hello
           <---- a line of JSON for each: its name, and how the copy ended

A copy that ends by a signal or an exception is a finding and ends nobody else. Everything a copy finds is in a folder
of its own: `units` (inputs that reach something), `log` (what libFuzzer says), `crash-*`, `timeout-*`, `oom-*`.

The seconds are those of a processor, so that a busy machine tries as much as an idle one. libFuzzer would count whole
seconds of the clock, and one more than it is told to. So the host ends each copy by the signal that libFuzzer takes for
a wish to end (SIGUSR1), and libFuzzer's own limit is left for a copy that is given no processor.

atheris instruments modules while they are imported. So nothing of echoic may be imported before, which is why the host
is started by `START`, and not by `python -m`.
"""

import contextlib
import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from echoic.errors import EchoicError
from echoic.testing.parsers.catalogue import parser_named
from echoic.testing.parsers.parser import Target
from echoic.testing.parsers.repairs import AS_IT_IS, BOMBS

__all__ = ["FOUND", "NOT_LOADED", "START", "Ended", "Wish", "serve"]

START: Final = """
import sys, atheris
with atheris.instrument_imports(include=sys.argv[1].split(",")):
    from echoic.testing.parsers.host import serve
    serve(atheris)
"""
TIMEOUT_SECONDS: Final = 25  # for one input; much, since the machine may be busy
MEMORY_MB_MAX: Final = 2048
LOOK_SECONDS: Final = 0.02
PATIENCE: Final = 2
PATIENCE_SECONDS: Final = 60
FOUND: Final = "an exception that is not declared:"
FOUND_CODE: Final = 77
FAILED: Final = 70
NOT_LOADED: Final = 69


class Wish(msgspec.Struct, frozen=True):
    """What is to be fuzzed."""

    parsers: list[str]
    seconds: int
    seed: int
    folder: str
    """Where a folder for each parser is made."""
    corpora: dict[str, list[str]]
    """Folders with inputs to begin with."""
    at_once: int = 1
    input_bytes_max: int = 2048


class Ended(msgspec.Struct, frozen=True):
    """How a copy ended: 0 if nothing was found, negative if by a signal."""

    parser: str
    code: int


def serve(atheris: Any) -> None:  # noqa: ANN401 - it has no types
    """Fuzz what is wished, while what is imported is watched."""
    wish = msgspec.json.decode(sys.stdin.buffer.read(), type=Wish)
    targets: dict[str, Target] = {}
    for name in wish.parsers:
        try:
            targets[name] = _loaded(name)
        except ModuleNotFoundError as error:  # such as Spark's, where there is no Spark
            if (error.name or "").startswith("echoic"):
                raise
    running = Running(wish.seconds)
    for name in wish.parsers:
        if name not in targets:
            _tell(Ended(name, NOT_LOADED))
            continue
        if len(running) >= wish.at_once:
            _tell(running.wait())
        process = os.fork()
        if process == 0:
            _fuzz(atheris, wish, name, targets[name])
        running.add(process, name)
    while len(running):
        _tell(running.wait())


class Running:
    """The copies that fuzz, each of which is asked to end when it has had so many seconds of a processor."""

    def __init__(self, seconds: float) -> None:
        self._seconds: Final = seconds
        self._copies: Final[dict[int, tuple[int, str]]] = {}
        """The process and the parser of each, by a descriptor that can be read when it has ended."""
        self._ends: Final = select.poll()
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # a copy has it so until its libFuzzer heeds it

    def __len__(self) -> int:
        return len(self._copies)

    def add(self, process: int, parser: str) -> None:
        """Count a copy's seconds."""
        descriptor = os.pidfd_open(process)
        self._copies[descriptor] = process, parser
        self._ends.register(descriptor, select.POLLIN)

    def wait(self) -> Ended:
        """Wait for a copy to end, and return how it did."""
        while not (ended := self._ends.poll(1000 * max(LOOK_SECONDS, self._left()))):
            for descriptor, (process, _) in self._copies.items():
                if _processor_seconds(process) >= self._seconds:
                    signal.pidfd_send_signal(descriptor, signal.SIGUSR1)
        descriptor, _ = ended[0]
        self._ends.unregister(descriptor)
        os.close(descriptor)
        process, parser = self._copies.pop(descriptor)
        return Ended(parser, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))

    def _left(self) -> float:
        return min(self._seconds - _processor_seconds(process) for process, _ in self._copies.values())


def _processor_seconds(process: int) -> float:
    return time.clock_gettime((~process << 3) | 2)  # the clock of another process: clock_getcpuclockid(3)


def _loaded(name: str) -> Target:
    """Return a target that has read its seeds, so that whatever it imports late is there, and watched."""
    target = parser_named(name).load()
    for seed in target.seeds():
        with contextlib.suppress(EchoicError):
            target.feed(seed)
    return target


def _tell(ended: Ended) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(ended) + b"\n")
    sys.stdout.buffer.flush()


def _fuzz(atheris: Any, wish: Wish, name: str, target: Target) -> None:  # noqa: ANN401 - as above
    """Be the copy that fuzzes one parser; never return."""
    try:
        folder = Path(wish.folder) / name
        units, seeds = folder / "units", folder / "seeds"
        for each in (units, seeds):
            each.mkdir(parents=True)
        log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY)
        os.dup2(log, 1)
        os.dup2(log, 2)
        for number, seed in enumerate([*target.seeds(), *BOMBS]):
            (seeds / f"{number:03}").write_bytes(seed)
        options = [
            f"-max_total_time={PATIENCE * wish.seconds + PATIENCE_SECONDS}",
            f"-seed={wish.seed % 2**31 + 1}",
            f"-artifact_prefix={folder}/",
            f"-timeout={TIMEOUT_SECONDS}",
            f"-rss_limit_mb={MEMORY_MB_MAX}",
            f"-max_len={wish.input_bytes_max}",
            "-print_final_stats=1",
            "-verbosity=1",
        ]
        folders = [str(units), str(seeds), *wish.corpora.get(name, [])]
        mutator = {} if target.repair is None else {"custom_mutator": _mutator(atheris, target)}
        atheris.Setup([name, *options, *folders], _taken(target, folder), **mutator)
        atheris.Fuzz()  # ends the process
    except BaseException:  # noqa: BLE001 - told in the log, and by the code
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(FAILED)
    os._exit(FAILED)  # a fuzzer that comes back has not fuzzed


def _taken(target: Target, folder: Path) -> Any:  # noqa: ANN401 - what atheris wants
    def take(data: bytes) -> None:
        try:
            target.feed(data)
        except EchoicError:
            pass
        except BaseException:  # noqa: BLE001 - a finding, whatever it is
            (folder / "crash-exception").write_bytes(data)
            os.write(2, f"{FOUND}\n{traceback.format_exc()}==\n".encode("utf-8", "replace"))
            os._exit(FOUND_CODE)

    return take


def _mutator(atheris: Any, target: Target) -> Any:  # noqa: ANN401 - as above
    def mutate(data: bytes, size_max: int, seed: int) -> bytes:
        draw, mutated = Random(seed), atheris.Mutate(data, size_max)
        if draw.random() < AS_IT_IS or target.repair is None:
            return bytes(mutated)
        return target.repair(bytes(mutated), draw)[:size_max]

    return mutate
