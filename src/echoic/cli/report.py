"""`echoic report`: what goes through all channels, for some seconds, as one file that can be sent to somebody."""

import math
import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

import echoic
from echoic.cli.meeting import visit
from echoic.cli.progress import clear_line, show_line
from echoic.cli.report_page import Observed, page
from echoic.cli.screen import json_text, say
from echoic.cli.where import NOWHERE, AsJson, Where
from echoic.errors import LocalError
from echoic.hub import Hub
from echoic.monitor import GroupMembers, Load, Pipelines, browse, load_between, take_sample

__all__ = ["observe", "report"]

SECONDS_DEFAULT: Final = 5.0
SECONDS_MAX: Final = 3600.0
SAMPLES_MAX: Final = 600
EVERY_SECONDS: Final = 0.5
MOMENT_SECONDS: Final = 0.01
PACKAGES: Final = ("numpy", "pyarrow", "llvmlite", "msgspec", "pyspark")


def report(
    *,
    output: Annotated[str, Parameter(name=["--output", "-o"], allow_leading_hyphen=True)] = "report.html",
    seconds: float = SECONDS_DEFAULT,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Watch all channels for some seconds, and write what was seen into one HTML file.

    The file has plots and tables of channels, derivations, groups and pipelines, and what this machine is. It needs no
    script and loads nothing, so that it can be kept, sent and read anywhere.

    Try:
        echoic report
        echoic report -o monday.html --seconds 60

    Args:
        output: The file; - for stdout.
        seconds: For how long to watch.
        as_json: Print what was seen, on the mean, as JSON.
        where: Where the name server is.
    """
    if not 0 < seconds <= SECONDS_MAX:
        raise LocalError(f"expected --seconds to be above 0 and at most {SECONDS_MAX:g}, got {seconds:g}")
    if as_json and output == "-":
        raise LocalError("--json and the report cannot both go to stdout: name a file")
    with visit(where, "report") as hub:
        browse(hub)  # says what to do when nobody serves names
        observed = observe(hub, seconds)
    text = page(observed)
    if output == "-":
        sys.stdout.write(text)
        return
    path = Path(output)
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise LocalError(f"cannot write {path}: {error.strerror}") from error
    if as_json:
        print(json_text({"file": str(path), "seconds": observed.seconds, **msgspec.to_builtins(observed.mean)}))
    say(f"{path} has {len(observed.mean.channels)} channels, watched for {observed.seconds:.1f} s")


def observe(hub: Hub, seconds: float) -> Observed:
    """Return what goes through all channels meanwhile; a line on a terminal tells how long it takes."""
    pipelines, members = Pipelines(hub), GroupMembers(hub)
    first = before = take_sample(hub, pipelines)
    members.follow(first.known)
    looks = min(max(1, round(seconds / EVERY_SECONDS)), SAMPLES_MAX)
    loads: list[Load] = []
    while (look := math.floor((time.monotonic() - first.time) / seconds * looks) + 1) <= looks or not loads:
        left = first.time + seconds - time.monotonic()
        show_line(f"watching {len(before.known)} channels, {max(left, 0):.0f} s left")
        time.sleep(max(first.time + seconds * look / looks - time.monotonic(), MOMENT_SECONDS))
        after = take_sample(hub, pipelines, before)
        members.follow(after.known)
        loads.append(load_between(before, after))
        before = after
    clear_line()
    told = [status for _, status in members.told()]
    return Observed(before.time - first.time, loads, load_between(first, before), told, _machine())


def _machine() -> dict[str, str]:
    versions = {"echoic": echoic.__version__}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue  # not everybody needs it
    return {
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "processors": str(os.cpu_count() or "unknown"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
