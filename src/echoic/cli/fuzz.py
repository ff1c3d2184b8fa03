"""`echoic fuzz`: hostile input for the parsers, as a campaign of any length."""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from echoic.cli.screen import say
from echoic.errors import LocalError
from echoic.testing import ChannelFuzzer, FrameFuzzer, Fuzzer, FuzzReport
from echoic.testing.parsers import PARSERS, Parser, choose, kept_corpus, kept_inputs, parser_named
from echoic.testing.parsers import keep as keep_inputs
from echoic.testing.trials import Findings
from echoic.testing.trials.coverage import fuzz_parsers as run_fuzzer
from echoic.testing.trials.coverage import require_atheris

__all__ = ["fuzz_channels", "fuzz_frames", "fuzz_parsers"]

STEP_FRAMES = 1000


def fuzz_frames(
    *,
    count: int = 100_000,
    seed: int | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Mutate frames below their checksum and feed them to every parser.

    Each frame must be decoded, by both decoders alike, or refused with a declared error. Anything else is a finding:
    it is printed with the bytes that show it, and the exit code is 1. The same seed gives the same frames.

    Try:
        echoic fuzz frames --count 1000000

    Args:
        count: How many frames to try.
        seed: Where to start; printed, so that a run can be repeated.
        as_json: Print the report as JSON.
    """
    _campaign(FrameFuzzer, count, seed, as_json=as_json)


def fuzz_channels(
    *,
    count: int = 100_000,
    seed: int | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Mutate what hubs say to each other, of every kind, and feed it to a hub that is at work.

    Each frame must be taken or refused with a declared error, and the hub keep no more than it may. Anything else is a
    finding: it is printed with the bytes that show it, and the exit code is 1. The same seed gives the same frames.

    Try:
        echoic fuzz channels --count 1000000

    Args:
        count: How many frames to try.
        seed: Where to start; printed, so that a run can be repeated.
        as_json: Print the report as JSON.
    """
    _campaign(ChannelFuzzer, count, seed, as_json=as_json)


def fuzz_parsers(
    *parsers: str,
    seconds: int = 10,
    seed: int | None = None,
    keep: Annotated[bool, Parameter(negative="")] = False,
    findings: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Let a coverage-guided fuzzer look for input that a parser does not expect.

    Without a name, every parser is fuzzed, one after the other. Whatever is found is printed with the input that shows
    it, and the exit code is 1. It needs atheris, which exists for Linux on x86_64.

    Try:
        echoic fuzz parsers
        echoic fuzz parsers terms scripts --seconds 600
        echoic fuzz parsers ecode --seconds 60 --keep

    Args:
        parsers: Their names.
        seconds: How long for each, in seconds of a processor.
        seed: Where to start; printed.
        keep: Keep the few inputs that reach the most with the tests, in a checkout of echoic.
        findings: A folder for everything the fuzzer leaves; otherwise it is removed.
        as_json: Print the report as JSON.
    """
    rows = [parser_named(name) for name in parsers] or list(PARSERS)
    _check("--seconds", seconds, seed)
    require_atheris("`echoic fuzz parsers`")
    corpus = kept_corpus()
    if keep and corpus is None:
        raise LocalError("inputs are kept in a checkout of echoic, and this is none")
    start = time.time_ns() % 2**31 if seed is None else seed
    say(f"{len(rows)} parsers, {seconds} s each, seed {start}")
    with tempfile.TemporaryDirectory(prefix="echoic-fuzz-") as temporary:
        folder = findings or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found = run_fuzzer(rows, seconds, start, folder, _tell_nobody)
        kept = {row.name: _keep(row, folder, corpus) for row in rows} if keep and corpus is not None else {}
    if as_json:
        report = {"seed": start, "figures": found.figures, "kept": kept, "problems": found.problems}
        print(msgspec.json.encode(report).decode())
    else:
        _print_findings(found, start, kept)
    if found.problems:
        sys.exit(1)


def _keep(row: Parser, folder: Path, corpus: Path) -> int:
    """Keep the few inputs of a parser that reach the most; return how many."""
    inputs = [*folder.glob(f"{row.name}/units/*"), *kept_inputs(row.name)]
    chosen = choose(row.load(), [path.read_bytes() for path in inputs])
    keep_inputs(corpus / row.name, chosen)
    return len(chosen)


def _print_findings(found: Findings, seed: int, kept: Mapping[str, int]) -> None:
    for name, figure in found.figures.items():
        print(f"{name.replace('_', ' ')}: {figure}")
    for name, count in kept.items():
        print(f"{name}: {count} inputs are kept")
    print(f"seed {seed}, {len(found.problems)} findings")
    for problem in found.problems:
        print(f"\n{problem}")


def _tell_nobody(_: int) -> None:
    """Hear how far it is, and say nothing: libFuzzer has a log of its own."""


def _check(option: str, number: int, seed: int | None) -> None:
    """Refuse to look for nothing, and what is no seed.

    Raises:
        LocalError: Naming the limit.
    """
    if number < 1:
        raise LocalError(f"expected a number of at least 1, got {number} - at {option}")
    if seed is not None and seed < 0:
        raise LocalError(f"a seed is at least 0, got {seed}")


def _campaign(fuzzer: Callable[[Random], Fuzzer], count: int, seed: int | None, *, as_json: bool) -> None:
    _check("--count", count, seed)
    start = time.time_ns() % 2**32 if seed is None else seed
    say(f"{count:,} frames, seed {start}")
    began = time.perf_counter()
    try:
        report = _run(fuzzer(Random(start)), count)  # noqa: S311 - a test is repeated by its seed
    except KeyboardInterrupt:
        say(f"interrupted after {time.perf_counter() - began:.1f} s without a finding, seed {start}")
        raise
    seconds = time.perf_counter() - began
    if as_json:
        print(msgspec.json.encode({"seed": start, "seconds": seconds, **msgspec.to_builtins(report)}).decode())
    else:
        _print(report, start, seconds)
    if report.findings:
        sys.exit(1)


def _run(fuzzer: Fuzzer, count: int) -> FuzzReport:
    """Run in steps, with a bar for people who watch."""
    columns = (TextColumn("fuzzing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task("frames", total=count)
        report = fuzzer.run(0)
        while report.frames < count and not report.findings:
            report = fuzzer.run(min(STEP_FRAMES, count - report.frames))
            bar.update(task, completed=report.frames)
    return report


def _print(report: FuzzReport, seed: int, seconds: float) -> None:
    print(f"{report.frames} frames in {seconds:.1f} s, seed {seed}")
    print(f"{report.accepted:>10} decoded")
    for name, count in sorted(report.refused.items(), key=lambda item: -item[1]):
        print(f"{count:>10} refused: {name}")
    print(f"{len(report.findings):>10} findings")
    for finding in report.findings:
        print(f"\nframe {finding.number} ({finding.kind}): {finding.error}\n  {finding.data.hex()}")
