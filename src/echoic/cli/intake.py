"""`echoic intake`: let a data pipeline write to a channel, for as long as it runs.

Rows that Spark commits become events of the channel, each once, and are recorded in a folder. Killed and started again
it goes on where it was; the pipeline waits for it meanwhile.
"""

import time
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from echoic.cli.declaring import declared_type
from echoic.cli.meeting import attend
from echoic.cli.screen import json_text, printable, say
from echoic.cli.where import NOWHERE, AsJson, Where
from echoic.errors import LocalError
from echoic.hub import Intake

__all__ = ["intake"]

WAKE_SECONDS: Final = 0.1


class Told(msgspec.Struct, frozen=True):
    """What an intake has done."""

    channel: str
    epochs: int
    rows: int
    repeated: int
    under_way: int


def intake(
    name: str,
    declared: Annotated[str, Parameter(name="TYPE", show_default=False)] = "",
    *,
    folder: Path,
    partitions: int = 1,
    seconds: Annotated[float | None, Parameter(name="--for")] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=(), show_default=False)] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Let a data pipeline write to a channel exactly once, until Ctrl-C.

    The channel is created, and recorded in a folder together with what the intake has to remember. In Spark:
    frame.writeStream.format("echoic").option("channel", NAME).option("names", "127.0.0.1:7400").

    Try:
        echoic intake alerts --folder journals
        echoic intake alerts 'Alert{symbol: str, mean: float}' --folder journals
        echoic intake alerts --folder journals --partitions 4

    Args:
        name: The name of the channel.
        declared: The type of its events: MODULE:CLASS, or a declaration; that of the first rows if nothing is said.
        folder: The folder of the journal.
        partitions: Into how many files at a time rows are spread; only for a journal that is not there yet.
        seconds: End after so many seconds.
        quiet: Say nothing but what went wrong.
        as_json: Print what was taken as a line of JSON at the end.
        where: Where to enter the channel.
    """
    if seconds is not None and not 0 < seconds < float("inf"):
        raise LocalError(f"expected --for to be a number of seconds above 0, got {seconds}")
    if partitions < 1:
        raise LocalError(f"expected at least 1 partition, got {partitions}")
    kind = declared_type(declared) if declared else None
    with attend(where, "intake") as hub, hub.intake(name, folder, kind, partitions) as opened:
        if not quiet:
            known = f", which has {sum(opened.recording.heads)} events" if sum(opened.recording.heads) else ""
            say(f"taking rows for {opened.channel.id}, kept in {folder}{known}; Ctrl-C ends")
        try:
            _watch(opened, seconds)
        except KeyboardInterrupt:
            pass  # it ends as it would by itself
        counts = opened.statistics()
    told = Told(name, counts.epochs, counts.rows, counts.repeated, counts.under_way)
    if as_json:
        print(json_text(msgspec.to_builtins(told)), flush=True)
    if not quiet:
        say(f"took {told.rows:,} rows in {told.epochs:,} epochs for '{name}'{_left(told)}")


def _watch(opened: Intake, seconds: float | None) -> None:
    """Wait for the end, and say once for each reason why it does not go on."""
    begun, said = time.monotonic(), ""
    while seconds is None or time.monotonic() < begun + seconds:
        left = WAKE_SECONDS if seconds is None else begun + seconds - time.monotonic()
        time.sleep(max(0.0, min(WAKE_SECONDS, left)))
        trouble = opened.trouble
        if trouble and trouble != said:
            say(printable(f"the intake waits: {trouble}"))
        said = trouble


def _left(told: Told) -> str:
    return f"; {told.under_way:,} will be published when it is started again" if told.under_way else ""
