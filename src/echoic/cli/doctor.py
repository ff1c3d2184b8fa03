"""`echoic doctor`: what this machine has of what echoic needs, and what to do about what it has not."""

import sys
from collections.abc import Callable
from typing import Final

import msgspec

from echoic.cli.examinations import EXAMINATIONS, Finding
from echoic.cli.screen import json_text, printable
from echoic.cli.where import NOWHERE, AsJson, Where

__all__ = ["doctor"]

COLOURS: Final = {"ok": "32", "info": "36", "warn": "33", "fail": "31"}


def doctor(*, as_json: AsJson = False, where: Where = NOWHERE) -> None:
    """Examine this machine: Python, native code, sockets, shared memory, limits, clock, the name server, Java, Spark.

    The exit code is 1 if anything fails. A warning says what is slower or missing, and what to do.

    Try:
        echoic doctor
        echoic doctor --json | jq '.[] | select(.status != "ok")'

    Args:
        as_json: Print a list of findings as JSON.
        where: Where the name server is.
    """
    findings = [_examine(name, examine, where) for name, examine in EXAMINATIONS.items()]
    if as_json:
        print(json_text([msgspec.to_builtins(finding) for finding in findings]))
    else:
        for finding in findings:
            _print(finding)
    if any(finding.status == "fail" for finding in findings):
        sys.exit(1)


def _examine(name: str, examine: Callable[[Where], Finding], where: Where) -> Finding:
    try:
        found = examine(where)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here is the finding
        found = Finding("fail", f"{type(error).__name__}: {error}")
    return msgspec.structs.replace(found, name=name)


def _print(finding: Finding) -> None:
    status = f"{finding.status:<4}"
    if sys.stdout.isatty():
        status = f"\033[{COLOURS[finding.status]}m{status}\033[0m"
    print(f"{status}  {finding.name:<14}  {printable(finding.detail)}")
    if finding.advice:
        print(f"{'':20}  -> {printable(finding.advice)}")
