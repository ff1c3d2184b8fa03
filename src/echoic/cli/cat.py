"""`echoic journal cat`: recorded events as text, as `echo` prints those that flow."""

import csv
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from echoic.cli.echo import SHAPE, Shape
from echoic.cli.journals import EVERYTHING, Events, HoleTeller, open_journal
from echoic.cli.screen import json_text
from echoic.cli.where import Flag, Text
from echoic.errors import LocalError
from echoic.recorder import Journal, Recorded

__all__ = ["cat"]

STAMPS: Final = ("_sequence", "_source", "_number", "_time", "_partition")

Stamp = tuple[int, ...]


def cat(
    path: Path,
    /,
    *,
    channel: Text = "",
    count: Annotated[int | None, Parameter(name=["--count", "-n"])] = None,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative=(), show_default=False)] = False,
    metadata: Flag = False,
    events: Events = EVERYTHING,
    shape: Shape = SHAPE,
) -> None:
    """Print recorded events, also while they are being recorded.

    No hub is needed, only the files. Only what is safely on the recorder's disk is shown.

    Try:
        echoic journal cat journals -n 10
        echoic journal cat journals --json --where 'input.price < 75' | jq .symbol
        echoic journal cat journals --channel trades --follow --csv

    Args:
        path: The folder of the journal.
        channel: Which one, if the journal has several.
        count: End after so many events.
        follow: Wait for events that are still to be recorded, until Ctrl-C; begins with what is there.
        metadata: Show sequence, source, number, time (ns since 1970) and partition as well.
        events: Which events.
        shape: How events are shown.
    """
    if count is not None and count < 0:
        raise LocalError(f"expected --count to be a number of events, got {count}")
    journal = open_journal(path, channel)
    recorded = _recorded(journal, events, HoleTeller(skip=events.skip_holes), follow=follow)
    try:
        _print_all(recorded, _shown(shape, metadata=metadata), count)
    except KeyboardInterrupt:
        if not follow:
            raise


def _recorded(journal: Journal, events: Events, holes: HoleTeller, *, follow: bool) -> Iterator[Recorded]:
    chosen = events.selection
    if not follow:
        return journal.read(
            chosen.start,
            chosen.end,
            partition=chosen.partition,
            since=chosen.since,
            until=chosen.until,
            columns=chosen.columns,
            where=chosen.where,
            on_hole=holes,
        )
    if chosen.end is not None or chosen.since is not None or chosen.until is not None:
        raise LocalError("--follow goes on for ever, it has no --end, --since or --until")
    start = chosen.start if chosen.start is not None else _beginning(journal, chosen.partition)
    return journal.tail(start, partition=chosen.partition, columns=chosen.columns, where=chosen.where, on_hole=holes)


def _beginning(journal: Journal, partition: int | None) -> int | tuple[int, ...]:
    """Return the first events that are there; a tail would begin with the next to come."""
    firsts = journal.firsts
    return firsts if partition is None or not 0 <= partition < len(firsts) else firsts[partition]


def _print_all(recorded: Iterator[Recorded], render: Callable[[object, Stamp], str], count: int | None) -> None:
    left = count
    if left is not None and left <= 0:
        return
    for each in recorded:
        events = each.batch.events()[:left]
        sys.stdout.write("".join(map(render, events, _stamps(each))))
        sys.stdout.flush()
        if left is not None:
            left -= len(events)
            if left <= 0:
                return


def _stamps(recorded: Recorded) -> Iterator[Stamp]:
    for sequence, number in zip(recorded.sequences.tolist(), recorded.numbers.tolist(), strict=True):
        yield sequence, recorded.source, number, recorded.time_ns, recorded.partition


def _shown(shape: Shape, *, metadata: bool) -> Callable[[object, Stamp], str]:
    """Return how to show an event, and what the journal knows of it before it."""
    plain = shape.renderer()
    if not metadata:
        return lambda event, _: plain(event)
    if shape.csv and not shape.as_json:
        return lambda event, stamp: _with_cells(plain(event), stamp)
    if not shape.as_json:
        return lambda event, stamp: "".join(map("{}: {}\n".format, STAMPS, stamp)) + plain(event)
    if shape.field:
        raise LocalError("--metadata stands beside all fields of an event, not beside one --field in JSON")
    return lambda event, stamp: f"{json_text(dict(zip(STAMPS, stamp, strict=True)))[:-1]},{plain(event)[1:]}"


def _with_cells(text: str, stamp: Stamp) -> str:
    """Return lines of CSV with cells in front; the first of two is a header."""
    *heads, cells = csv.reader(io.StringIO(text))
    rows = [[*STAMPS, *head] for head in heads] + [[*map(str, stamp), *cells]]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
