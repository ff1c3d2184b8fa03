"""`echoic top`: what goes through all channels, live.

The name server knows the channels, their managers know the hubs that take part, and each hub counts what goes through
it. A channel's line adds up what its hubs report; rates are differences between two reports. Derivations have a table
of their own, below, and so have pipelines, which tell of themselves on channels.
"""

import sys
import time
from collections.abc import Iterable
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from echoic.channels import ChannelCounts, ChannelEntry, ChannelId
from echoic.cli.derivations import (
    DERIVATION_COLUMNS,
    DerivationLoad,
    DerivationSample,
    derivation_loads,
    derivation_row,
    derivation_sample,
)
from echoic.cli.finding import browse
from echoic.cli.meeting import attend
from echoic.cli.pipelines_shown import PIPELINE_COLUMNS, PipelineLoad, Pipelines, pipeline_row
from echoic.cli.quantities import bytes_text
from echoic.cli.screen import json_text, printable
from echoic.cli.survey import ask_all
from echoic.cli.tables import table_lines
from echoic.cli.where import NOWHERE, AsJson, Where
from echoic.errors import LocalError, UnreachableError
from echoic.hub import Hub

__all__ = ["ChannelLoad", "top"]

COLUMNS: Final = ("CHANNEL", "EVENTS/S", "BYTES/S", "SOURCES", "SINKS", "WAITING", "MISSED", "DROPPED")


class ChannelLoad(msgspec.Struct, frozen=True):
    """What goes through a channel, all hubs together."""

    name: str
    id: str
    type: str
    events_per_second: float
    bytes_per_second: float
    sources: int
    sinks: int
    waiting_bytes: int
    missed: int
    dropped: int


class Sample(msgspec.Struct, frozen=True):
    """What all hubs have counted at one moment, by hub and channel."""

    time: float
    known: list[ChannelEntry]
    counts: dict[tuple[str, str], ChannelCounts]
    derivations: DerivationSample
    pipelines: list[PipelineLoad]


class Load(msgspec.Struct, frozen=True):
    """What goes through all channels, what is derived, and how pipelines get on."""

    time: float
    channels: list[ChannelLoad]
    derivations: list[DerivationLoad]
    pipelines: list[PipelineLoad]


def top(
    *,
    interval: float = 1.0,
    once: Annotated[bool, Parameter(name=["--once", "-1"], negative=(), show_default=False)] = False,
    count: Annotated[int | None, Parameter(name=["--count", "-n"])] = None,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Show what goes through all channels, live.

    On a terminal the table is drawn anew; into a pipe, tables follow each other.

    Try:
        echoic top
        echoic top --once --json | jq .channels[].events_per_second

    Args:
        interval: Seconds between two tables.
        once: Print one table and end.
        count: Print so many tables and end.
        as_json: Print a line of JSON each time.
        where: Where the name server is.
    """
    if not 0 < interval < float("inf"):
        raise LocalError(f"expected an interval above 0, got {interval}")
    tables = 1 if once else count
    with attend(where, "top") as hub:
        if as_json or tables is not None or not sys.stdout.isatty():
            _print_tables(hub, interval, tables, as_json=as_json)
        else:
            _draw_tables(hub, interval)


def _print_tables(hub: Hub, interval: float, tables: int | None, *, as_json: bool) -> None:
    pipelines = Pipelines(hub)
    before, printed = _sample(hub, pipelines), 0
    while tables is None or printed < tables:
        time.sleep(interval)
        after = _sample(hub, pipelines)
        load = _load(before, after)
        if as_json:
            print(json_text(msgspec.to_builtins(load)))
        else:
            print("\n".join(["", *_tables(load)] if printed else _tables(load)))
        sys.stdout.flush()
        before, printed = after, printed + 1


def _draw_tables(hub: Hub, interval: float) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    pipelines = Pipelines(hub)
    before = _sample(hub, pipelines)
    with Live(Text("..."), console=Console(), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(interval)
            after = _sample(hub, pipelines)
            load = _load(before, after)
            clock, known = time.strftime("%H:%M:%S"), len(load.channels)
            head = f"names at {hub.names[0]}   {known} channels   {clock}   Ctrl-C ends"
            live.update(Text("\n".join([head, "", *_tables(load)]), no_wrap=True), refresh=True)
            before = after


def _sample(hub: Hub, pipelines: Pipelines) -> Sample:
    """Ask everybody who takes part in any channel."""
    try:
        known = browse(hub)
    except UnreachableError:
        known = []  # the name server is being replaced
    pipelines.follow(known)
    described = ask_all([entry.id for entry in known], hub.describe)
    addresses = {ChannelId.parse(entry.id).address for entry in known}
    for each in described.values():
        addresses.update(each.sources, (sink.address for sink in each.sinks))
    reports = ask_all(sorted(addresses - {hub.address}), hub.report)
    counts = {(address, each.id): each for address, report in reports.items() for each in report.channels}
    return Sample(time.monotonic(), known, counts, derivation_sample(reports), pipelines.loads())


def _load(before: Sample, after: Sample) -> Load:
    seconds = max(after.time - before.time, 1e-9)
    channels = [_channel_load(entry, before, after, seconds) for entry in after.known]
    derivations = derivation_loads(before.derivations, after.derivations, seconds)
    return Load(time.time(), channels, derivations, after.pipelines)


def _channel_load(entry: ChannelEntry, before: Sample, after: Sample, seconds: float) -> ChannelLoad:
    hubs = [address for address, id in after.counts if id == entry.id]
    current = [after.counts[address, entry.id] for address in hubs]
    former = [before.counts[address, entry.id] for address in hubs if (address, entry.id) in before.counts]
    return ChannelLoad(
        name=entry.name,
        id=entry.id,
        type=next((counts.type for counts in current), ""),
        events_per_second=max(0, _sum(current, "events_out") - _sum(former, "events_out")) / seconds,
        bytes_per_second=max(0, _sum(current, "bytes_out") - _sum(former, "bytes_out")) / seconds,
        sources=_sum(current, "sources"),
        sinks=_sum(current, "sinks"),
        waiting_bytes=_sum(current, "waiting_bytes"),
        missed=_sum(current, "missed"),
        dropped=_sum(current, "dropped"),
    )


def _sum(counts: Iterable[ChannelCounts], name: str) -> int:
    return sum(getattr(each, name) for each in counts)


def _tables(load: Load) -> list[str]:
    """Return the table of channels, and below it those of derivations and of pipelines, if there are any."""
    lines = _channel_table(load.channels)
    if load.derivations:
        lines += ["", *table_lines(DERIVATION_COLUMNS, [derivation_row(each) for each in load.derivations])]
        for each in load.derivations:
            lines += [printable(f"{each.name} is suspended at {hub}: {why}") for hub, why in each.suspended.items()]
    if load.pipelines:
        lines += ["", *table_lines(PIPELINE_COLUMNS, [pipeline_row(each) for each in load.pipelines])]
    return lines


def _channel_table(loads: list[ChannelLoad]) -> list[str]:
    rows = [
        [
            load.name,
            round(load.events_per_second, 1),
            bytes_text(load.bytes_per_second),
            load.sources,
            load.sinks,
            bytes_text(load.waiting_bytes),
            load.missed,
            load.dropped,
        ]
        for load in loads
    ]
    return table_lines(COLUMNS, rows)
