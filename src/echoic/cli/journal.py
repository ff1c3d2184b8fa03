"""`echoic journal info`, `verify` and `recover`: what was recorded, whether it is sound, and what can be saved."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISDIR
from typing import Final, TypeAlias

import msgspec

from echoic.cli.journals import channel_of, channels_in, is_journal, mode_of
from echoic.cli.progress import progress
from echoic.cli.screen import json_text, printable, say
from echoic.cli.tables import print_table
from echoic.cli.where import AsJson, Text
from echoic.monitor import bytes_text
from echoic.recorder import Disk, Hole, Journal, JournalSummary, Recorded, RecoveryReport, recover, verify
from echoic.recorder.catalog import Catalog

__all__ = ["info", "recover_journal", "verify_journal"]

Times: TypeAlias = tuple[int, int] | None
Sinks: TypeAlias = dict[str, tuple[int, ...]]

FAILED: Final = 1


def info(path: Path, /, *, channel: Text = "", as_json: AsJson = False) -> None:
    """Show what a journal has: channels, types, how many events, from when to when.

    No hub is needed, only the files; a recorder may be writing them.

    Try:
        echoic journal info journals
        echoic journal info journals --channel trades --json

    Args:
        path: The folder of the journal.
        channel: Show only this one.
        as_json: Print a list of objects as JSON.
    """
    known = [(place, Journal(place, name)) for place, name in _chosen(path, channel)]
    told = [(journal, journal.info(), _times(journal), _sinks(place, journal)) for place, journal in known]
    if as_json:
        print(json_text([_as_object(summary, times, sinks) for _, summary, times, sinks in told]))
        return
    for number, (journal, summary, times, sinks) in enumerate(told):
        if number:
            print()
        for line in _lines(journal, summary, times, sinks):
            print(printable(line))


def verify_journal(path: Path, /, *, channel: Text = "", as_json: AsJson = False) -> None:
    """Look at every byte of a journal, and show what is not as it was written.

    Damage is what was lost though it had been safe; the exit code is then 1. A torn end is what a crash or a loss of
    power left of events that were never acknowledged: the next recorder puts it aside, and it is no damage.

    Try:
        echoic journal verify journals
        echoic journal verify journals --channel trades --json

    Args:
        path: The folder of the journal.
        channel: Look only at this one.
        as_json: Print a list of flaws as JSON.
    """
    flaws, channels = [], _chosen(path, channel)
    for place, name in channels:
        with progress(f"verifying {name}", "segments") as advance:
            flaws += verify(Disk(place, mapped=False), name, advance)
    damaged = sum(flaw.kind == "damage" for flaw in flaws)
    if as_json:
        print(json_text(msgspec.to_builtins(flaws)))
    elif flaws:
        rows = [(flaw.kind, flaw.path, flaw.offset, flaw.end_offset, flaw.what) for flaw in flaws]
        print_table(["KIND", "FILE", "FROM", "TO", "WHAT"], rows)
    named = ", ".join(name for _, name in channels)
    if damaged:
        say(f"{named}: {damaged} damaged place{'s' * (damaged != 1)}; `echoic journal recover {path}` keeps the rest")
        sys.exit(FAILED)
    torn = any(flaw.kind == "torn" for flaw in flaws)
    say(f"{named}: sound" + (", but for a torn end that was never acknowledged" if torn else ""))


def recover_journal(path: Path, /, *, channel: Text = "", as_json: AsJson = False) -> None:
    """Make a damaged journal one that can be read and written, with all of it that is sound.

    Damaged files are put aside under another name, never removed; lost sequence numbers stay lost, and readers are told
    of them. Nobody may record meanwhile. A journal without damage is left as it is.

    Try:
        echoic journal recover journals
        echoic journal recover journals --channel trades --json

    Args:
        path: The folder of the journal.
        channel: Only this one.
        as_json: Print what was done as a list of objects in JSON.
    """
    reports = []
    for place, name in _chosen(path, channel):
        with progress(f"recovering {name}", "segments") as advance:
            reports.append((name, recover(Disk(place, mapped=False), name, advance)))
    if as_json:
        print(json_text([{"channel": name, **msgspec.to_builtins(report)} for name, report in reports]))
        return
    for name, report in reports:
        for line in _report_lines(name, report):
            print(printable(line))


def _chosen(path: Path, channel: str) -> list[tuple[Path, str]]:
    """Return where the journals are that are meant: one if it is named, or else all.

    Raises:
        ChannelNotFoundError: There is none, or not this one.
    """
    if channel and S_ISDIR(mode_of(path / Catalog(Disk(path), channel).directory)):
        return [(path, channel)]  # also when what says that it is a journal is lost
    if channel or is_journal(path):
        return [channel_of(path, channel)]
    return [(path, name) for name in channels_in(path)]


def _times(journal: Journal) -> Times:
    """Return when the first and the last event were recorded that can be read."""
    found: list[Recorded] = []
    for partition, (first, head) in enumerate(zip(journal.firsts, journal.heads, strict=True)):
        for start in (first, max(first, head - 1)):
            found += _one(journal.read(start, partition=partition, on_hole=_pass))
    return (min(each.time_ns for each in found), max(each.time_ns for each in found)) if found else None


def _one(recorded: Iterator[Recorded]) -> list[Recorded]:
    first = next(recorded, None)
    return [first] if first is not None else []


def _pass(hole: Hole) -> None:
    """Look for others; `verify` is there to tell of holes."""


def _sinks(path: Path, journal: Journal) -> Sinks:
    """Return where named sinks go on."""
    found = {sink: journal.positions(sink) for sink in Catalog(Disk(path), journal.name).sinks()}
    return {sink: positions for sink, positions in found.items() if positions is not None}


def _as_object(summary: JournalSummary, times: Times, sinks: Sinks) -> dict[str, object]:
    return {
        **msgspec.to_builtins(summary),
        "partitions": len(summary.heads),
        "events": summary.events,
        "first_ns": times[0] if times else None,
        "last_ns": times[1] if times else None,
        "sinks": sinks,
    }


def _lines(journal: Journal, summary: JournalSummary, times: Times, sinks: Sinks) -> Iterator[str]:
    yield f"channel:     {summary.channel}"
    yield f"journal:     {summary.id}, made {_moment(summary.created_ns)}"
    yield f"events:      {summary.events:,}"
    if times is not None:
        yield f"recorded:    {_moment(times[0])} to {_moment(times[1])}"
    yield f"size:        {bytes_text(summary.bytes)} in {summary.segments:,} segment{'s' * (summary.segments != 1)}"
    yield f"partitions:  {journal.partitions}"
    for partition, (first, head) in enumerate(zip(summary.firsts, summary.heads, strict=True)):
        yield f"  {partition}: " + (f"sequence {first} to {head - 1}" if head > first else "empty")
    yield f"types:       {len(summary.types)}"
    for format in journal.formats:
        yield f"  {format.name}  {format.token:016x}, {format.size} bytes{' and more' if format.variable else ''}"
    yield f"sinks:       {len(sinks)}"
    for sink, positions in sinks.items():
        yield f"  {sink}: goes on at {', '.join(map(str, positions))}"


def _moment(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns // 1_000_000_000, UTC).isoformat().replace("+00:00", "Z")


def _report_lines(channel: str, report: RecoveryReport) -> Iterator[str]:
    for each in report.rebuilt:
        yield f"{channel}: made again {each}"
    for each in report.aside:
        yield f"{channel}: kept aside {each}"
    for lost in report.lost:
        yield f"{channel}: lost events {lost.first} to {lost.last} of partition {lost.partition}"
    for each in report.notes:
        yield f"{channel}: {each}"
    if not (report.rebuilt or report.aside or report.lost or report.notes):
        yield f"{channel}: sound, nothing was done"
