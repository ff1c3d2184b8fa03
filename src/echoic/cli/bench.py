"""`echoic bench`: the published benchmarks, on this machine, beside raw sockets."""

import sys
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Literal

from cyclopts import Parameter

from echoic.cli.screen import json_text, say
from echoic.cli.where import AsJson, Flag
from echoic.errors import LocalError
from echoic.testing.bench import Effort, Report

__all__ = ["bench"]

Question = Literal[
    "round_trip", "one_way", "fan_out", "pipeline", "channels", "bandwidth", "tls", "derive", "eager", "journal"
]


def bench(
    question: Annotated[Question, Parameter(show_choices=True)],
    /,
    *,
    quick: Flag = False,
    rounds: int | None = None,
    as_json: AsJson = False,
) -> None:
    """Measure how fast events are, beside raw sockets in the same run.

    round_trip: one synchronous event. one_way: a flood. fan_out: many sinks. pipeline: one hub after the other.
    channels: many channels. bandwidth: large events. tls: what secrecy costs. derive: code that runs at the source.
    eager: handlers of which a half runs at the source, and can be exchanged. journal: events kept on a disk, read
    and replayed.

    Try:
        echoic bench round_trip
        echoic bench one_way --quick --json

    Args:
        question: What to measure.
        quick: Short samples: shows that it works, not how fast it is.
        rounds: Samples of each case; 7, or 3 with --quick.
        as_json: Print all numbers as JSON.
    """
    if rounds is not None and rounds < 1:
        raise LocalError(f"expected at least 1 round, got {rounds}")
    try:
        report: Report = import_module(f"echoic.testing.bench.{question}").measure(_effort(rounds, quick=quick))
    finally:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
    if as_json:
        print(json_text(report.as_json()))
    else:
        _show(report)
    missed = [str(claim) for claim in report.claims if not claim.met]
    if missed and not as_json:
        say(f"{len(missed)} of {len(report.claims)} claims do not hold here")


def _effort(rounds: int | None, *, quick: bool) -> Effort:
    effort = Effort.slight() if quick else Effort()
    return replace(effort, rounds=rounds or effort.rounds, told=_progress if sys.stderr.isatty() else _silence)


def _silence(line: str) -> None:
    """Say nothing."""


def _progress(line: str) -> None:
    print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def _show(report: Report) -> None:
    from rich.console import Console

    report.show(Console(width=None if sys.stdout.isatty() else 150, highlight=False))
