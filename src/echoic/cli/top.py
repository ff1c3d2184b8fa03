"""`echoic top`: what goes through all channels, live.

What is counted, and how it is added up, is in `echoic.monitor`. On a terminal there is a screen (`top_screen`); into a
pipe, and when a number of tables is asked for, they are printed one after the other.
"""

import sys
import time
from typing import Annotated

import msgspec
from cyclopts import Parameter

from echoic.cli.loads_shown import load_lines
from echoic.cli.meeting import attend, visit
from echoic.cli.screen import json_text
from echoic.cli.where import NOWHERE, AsJson, Where
from echoic.errors import LocalError, UnreachableError
from echoic.hub import Hub
from echoic.monitor import Pipelines, load_between, take_sample

__all__ = ["top"]


def top(
    *,
    interval: float = 1.0,
    once: Annotated[bool, Parameter(name=["--once", "-1"], negative=(), show_default=False)] = False,
    count: Annotated[int | None, Parameter(name=["--count", "-n"])] = None,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Show what goes through all channels, live.

    On a terminal there is a screen with tables of channels, derivations, pipelines and members of groups: `c d p g`
    choose one, `1` to `9` sort by a column, `/` filters, space pauses, `q` ends. Into a pipe, tables follow each other.

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
    with (visit if once else attend)(where, "top") as hub:  # who only looks does not serve names
        if as_json or tables is not None or not sys.stdout.isatty():
            _print_tables(hub, interval, tables, as_json=as_json)
        else:
            from echoic.cli.top_screen import Top

            Top(hub, interval).run()


def _print_tables(hub: Hub, interval: float, tables: int | None, *, as_json: bool) -> None:
    """Print tables until there are so many; while the name server is lost, its channels are shown as far as known.

    Raises:
        UnreachableError: The name server does not answer from the beginning, and some tables are all that is wanted.
    """
    pipelines = Pipelines(hub)
    before, printed = take_sample(hub, pipelines), 0
    if before.lost and tables is not None:
        raise UnreachableError(before.lost)
    while tables is None or printed < tables:
        time.sleep(interval)
        after = take_sample(hub, pipelines)
        load = load_between(before, after)
        if as_json:
            print(json_text(msgspec.to_builtins(load)))
        else:
            print("\n".join(["", *load_lines(load)] if printed else load_lines(load)))
        sys.stdout.flush()
        before, printed = after, printed + 1
