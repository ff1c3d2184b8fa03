"""Trial 8: input that a coverage-guided fuzzer finds, for every parser.

atheris (libFuzzer for Python) watches which branches of a parser an input takes, and mutates further what takes others.
Every parser of echoic is a row of `echoic.testing.parsers`. Each is fuzzed in a process of its own for so many seconds,
from its seeds and from the corpus that is kept with the tests; input with checksums or signatures is sealed again after
it was mutated. Nothing may come of it but the declared errors: an exception, a crash, an endless loop or memory without
end is a finding, and the input that shows it is saved.

A test gives each parser a second, so that all of them take about a minute, half of which is for watching what is
imported; a release two minutes, which is less than an hour and a half of processor time for all. From
`ALONE_SECONDS_MAX` on as many are fuzzed at a time as there are processors.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from echoic.errors import LocalError
from echoic.testing.parsers import PARSERS, Parser, kept_corpus
from echoic.testing.parsers.host import FOUND, NOT_LOADED, START, Ended, Wish
from echoic.testing.trials.trial import PROBLEMS_MAX, Findings, Tell

__all__ = ["fuzz_parsers", "require_atheris", "run"]

ALONE_SECONDS_MAX: Final = 30
ARTIFACTS: Final = ("crash-*", "timeout-*", "oom-*", "leak-*")
SHOWN_BYTES_MAX: Final = 4096
TOLD_LINES: Final = 12
RUNS: Final = "stat::number_of_executed_units:"
ADDED: Final = "stat::new_units_added:"


def require_atheris(who: str = "trial coverage") -> None:
    """Do nothing if there is a fuzzer.

    Raises:
        LocalError: There is none; it says who needs it, and what to install.
    """
    if importlib.util.find_spec("atheris") is None:
        raise LocalError(
            f"{who} needs atheris, which is there for Linux on x86_64: pip install 'atheris>=3.0', or `./run test "
            "--version` in a checkout of echoic"
        )


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Fuzz every parser for so many seconds.

    Raises:
        LocalError: There is no fuzzer.
    """
    with tempfile.TemporaryDirectory(prefix="echoic-coverage-") as folder:
        return fuzz_parsers(PARSERS, size, seed, Path(folder), tell)


def fuzz_parsers(parsers: Sequence[Parser], seconds: int, seed: int, folder: Path, tell: Tell) -> Findings:
    """Fuzz some parsers, each for so many seconds; what is found stays in the folder.

    Raises:
        LocalError: There is no fuzzer.
    """
    require_atheris()
    began = time.perf_counter()
    wish = Wish(
        [parser.name for parser in parsers],
        seconds,
        seed,
        str(folder),
        _corpora(parsers),
        (os.cpu_count() or 1) if seconds > ALONE_SECONDS_MAX else 1,
    )
    packages = {"echoic", *(parser.place.partition(":")[0].partition(".")[0] for parser in parsers)}
    command = [sys.executable, "-c", START, ",".join(sorted(packages))]
    problems: list[str] = []
    missing: list[str] = []
    told = 0
    with (
        (folder / "host.log").open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as host,
    ):
        assert host.stdin is not None  # noqa: S101 - both are pipes
        assert host.stdout is not None  # noqa: S101
        host.stdin.write(msgspec.json.encode(wish))
        host.stdin.close()
        for line in host.stdout:
            ended = msgspec.json.decode(line, type=Ended)
            told += 1
            tell(seconds * told // len(parsers))
            if ended.code == NOT_LOADED:
                missing.append(ended.parser)
            elif ended.code:
                problems.append(_problem(folder / ended.parser, ended))
    if told != len(parsers):
        problems.append(f"only {told} of {len(parsers)} parsers were fuzzed: {_tail(folder / 'host.log')}")
    figures = _figures(folder, wish.parsers, time.perf_counter() - began)
    if missing:
        figures["not_there"] = ", ".join(missing)
    return Findings(tuple(problems[:PROBLEMS_MAX]), figures)


def _corpora(parsers: Sequence[Parser]) -> dict[str, list[str]]:
    corpus = kept_corpus()
    if corpus is None:
        return {}
    return {parser.name: [str(corpus / parser.name)] for parser in parsers if (corpus / parser.name).is_dir()}


def _problem(folder: Path, ended: Ended) -> str:
    """Return what was found, with the input that shows it."""
    inputs = [found for pattern in ARTIFACTS for found in sorted(folder.glob(pattern))]
    shown = ", ".join(f"{found.name}: {found.read_bytes()[:SHOWN_BYTES_MAX].hex()}" for found in inputs) or "no input"
    return f"the parser of {ended.parser} ended with {ended.code}; {shown}; {_tail(folder / 'log')}"


def _tail(log: Path) -> str:
    """Return what was said about an exception, or else the end of what was said."""
    lines = log.read_text("utf-8", "replace").splitlines()
    begin = next((at for at, line in enumerate(lines) if FOUND in line), len(lines) - TOLD_LINES)
    end = next((at for at, line in enumerate(lines) if at > begin and line.startswith("==")), len(lines))
    return "\n".join(lines[max(0, begin) : end])


def _figures(folder: Path, names: Sequence[str], seconds: float) -> dict[str, int | float | str]:
    runs, added = {}, 0
    for name in names:
        log = folder / name / "log"
        if log.exists():
            lines = log.read_text("utf-8", "replace").splitlines()
            runs[name] = sum(int(line.removeprefix(RUNS)) for line in lines if line.startswith(RUNS))
            added += sum(int(line.removeprefix(ADDED)) for line in lines if line.startswith(ADDED))
    fewest = min(runs, key=lambda name: runs[name], default="")
    return {
        "parsers": len(runs),
        "inputs": sum(runs.values()),
        "fewest": f"{runs.get(fewest, 0)} of {fewest}",
        "inputs_that_reached_more": added,
        "seconds": round(seconds, 1),
    }
