"""`echoic ls`, `echoic info`, `echoic type`: which channels there are, and what they are made of.

They only look: a name server that does not run is not started, since it would know nothing.
"""

from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from echoic.channels import ChannelId, Described
from echoic.cli.finding import find
from echoic.cli.layout import layout_of
from echoic.cli.meeting import visit
from echoic.cli.screen import json_text, printable, say
from echoic.cli.survey import survey
from echoic.cli.tables import print_table
from echoic.cli.where import NOWHERE, AsJson, Where
from echoic.formats import Format

__all__ = ["info", "ls", "show_type"]

UNTYPED: Final = "(untyped)"
SILENT: Final = "unreachable"


def ls(
    *,
    types: Annotated[bool, Parameter(name=["--types", "-t"], negative=(), show_default=False)] = False,
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], negative=(), show_default=False)] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """List the channels that the name server knows.

    Each channel's manager is asked for its type, and for the hubs that hold sources and sinks.

    Try:
        echoic ls
        echoic ls --json | jq -r .[].name

    Args:
        types: Print only names and types, one channel a line.
        verbose: Show ids as well.
        as_json: Print a list of objects as JSON.
        where: Where the name server is.
    """
    with visit(where, "ls") as hub:
        found = survey(hub)
        names = hub.names[0]
    if as_json:
        print(
            json_text([{**msgspec.to_builtins(detail or entry), "reachable": bool(detail)} for entry, detail in found])
        )
        return
    if types:
        for entry, detail in found:
            print(f"{printable(entry.name)} [{printable(detail.type) or UNTYPED if detail else SILENT}]")
        return
    rows = [
        [
            entry.name,
            *([detail.type or UNTYPED, detail.sources, detail.sinks] if detail else [SILENT, "", ""]),
            entry.id,
        ]
        for entry, detail in found
    ]
    columns = ["CHANNEL", "TYPE", "SOURCES", "SINKS", "ID"]
    print_table(columns if verbose else columns[:-1], rows if verbose else [row[:-1] for row in rows])
    if not found:
        say(f"no channels at {names} (echoic pub --help)")


def info(channel: str, /, *, as_json: AsJson = False, where: Where = NOWHERE) -> None:
    """Show where a channel is managed, its type, and who takes part.

    Try:
        echoic info trades
        echoic info echoic://127.0.0.1:7401/trades --json

    Args:
        channel: Its name, or its id echoic://HOST:PORT/NAME.
        as_json: Print an object as JSON.
        where: Where the name server is.
    """
    with visit(where, "info") as hub:
        opened = find(hub, channel)
        described = hub.describe(opened.id)
    if as_json:
        print(json_text(_as_object(opened.id, opened.format, described)))
        return
    kind = opened.format
    print(f"id:       {printable(opened.id)}")
    print(f"manager:  {ChannelId.parse(opened.id).address}")
    print(f"type:     {printable(kind.name) if kind else UNTYPED}")
    if kind is not None:
        print(f"token:    {kind.token:016x}, {kind.size} bytes{' and a variable part' if kind.variable else ''}")
    print(f"sources:  {len(described.sources)}")
    for source in described.sources:
        print(f"  {printable(source)}")
    print(f"sinks:    {len(described.sinks)}")
    for sink in described.sinks:
        print(printable(f"  {sink.address}  {sink.slow}  {', '.join(sink.sinks)}"))


def show_type(channel: str, /, *, as_json: AsJson = False, where: Where = NOWHERE) -> None:
    """Show the type of a channel's events: where each field lies, on the machine that sends them.

    Try:
        echoic type trades

    Args:
        channel: Its name, or its id echoic://HOST:PORT/NAME.
        as_json: Print the layout as JSON.
        where: Where the name server is.
    """
    with visit(where, "type") as hub:
        format = find(hub, channel).format
    if as_json:
        print(json_text(layout_of(format) if format is not None else None))
    else:
        print(printable(format.describe(), keep="\n") if format is not None else UNTYPED)


def _as_object(id: str, format: Format | None, described: Described) -> dict[str, object]:
    return {
        "name": described.name,
        "id": id,
        "manager": ChannelId.parse(id).address,
        "type": format.name if format is not None else None,
        "token": f"{format.token:016x}" if format is not None else None,
        "sources": described.sources,
        "sinks": [msgspec.to_builtins(sink) for sink in described.sinks],
    }
