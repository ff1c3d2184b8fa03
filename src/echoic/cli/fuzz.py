"""`echoic fuzz`: hostile input for the parsers, as a campaign of any length."""

import sys
import time
from collections.abc import Callable
from random import Random
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from echoic.testing import ChannelFuzzer, FrameFuzzer, Fuzzer, FuzzReport

__all__ = ["fuzz_channels", "fuzz_frames"]

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


def _campaign(fuzzer: Callable[[Random], Fuzzer], count: int, seed: int | None, *, as_json: bool) -> None:
    start = time.time_ns() % 2**32 if seed is None else seed
    began = time.perf_counter()
    report = _run(fuzzer(Random(start)), count)  # noqa: S311 - a test is repeated by its seed
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
