"""`echoic info`, `echoic type`: what a channel is made of, and who takes part.

They only look: a name server that does not run is not started, since it would know nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from echoic.channels import ChannelId, DerivationCounts, Described
from echoic.cli.layout import layout_of
from echoic.cli.meeting import visit
from echoic.cli.recipes import decoded_block
from echoic.cli.rendering import as_json as in_json
from echoic.cli.screen import json_text, printable
from echoic.cli.where import NOWHERE, AsJson, Where
from echoic.formats import Format
from echoic.hub import Hub
from echoic.monitor import ask_all, derivation_sample, find, summary

__all__ = ["info", "show_type"]

UNTYPED: Final = "(untyped)"


def info(channel: str, /, *, as_json: AsJson = False, where: Where = NOWHERE) -> None:
    """Show where a channel is managed, its type, and who takes part; of a derived one, its code and what that does.

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
        counts = _counts(hub, opened.id, described)
    if as_json:
        derived = _derivation_as_object(described, counts) if described.lineage else None
        print(json_text({**_as_object(opened.id, opened.format, described), "derivation": derived}))
        return
    kind = opened.format
    print(f"id:       {printable(opened.id)}")
    print(f"manager:  {ChannelId.parse(opened.id).address}")
    print(f"type:     {printable(kind.name) if kind else UNTYPED}")
    if kind is not None:
        print(f"token:    {kind.token:016x}, {kind.size} bytes{' and a variable part' if kind.variable else ''}")
    for line in _derivation_lines(described):
        print(printable(line))
    print(f"sources:  {len(described.sources)}")
    for source in described.sources:
        print(printable(f"  {source}" + (f"  {summary(counts[source])}" if source in counts else "")))
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


def _counts(hub: Hub, id: str, described: Described) -> dict[str, DerivationCounts]:
    """Return what a channel's derivation has done so far, by hub; nothing for one that is not derived."""
    if not described.lineage:
        return {}
    mine = (ChannelId.parse(id).address, described.lineage[-1].group)
    sample = derivation_sample(ask_all(described.sources, hub.report))
    return {key[0]: counts for key, counts in sample.items() if key[1:] == mine}


def _derivation_lines(described: Described) -> Iterator[str]:
    if not described.lineage:
        return
    step = described.lineage[-1]
    port = f", port {step.port} of {step.recipe.ports}" if step.recipe.ports else ""
    yield f"derived:  from {step.recipe.parent}{port}, to run at the {step.recipe.placement}"
    for number, line in enumerate(step.recipe.code.strip().split("\n")):
        yield f"{'code:     ' if not number else '          '}{line}"
    if step.recipe.params:
        yield f"params:   {in_json()(decoded_block(step)).strip()}"


def _derivation_as_object(described: Described, counts: Mapping[str, DerivationCounts]) -> dict[str, object]:
    step = described.lineage[-1]
    return {
        "parent": step.recipe.parent,
        "code": step.recipe.code,
        "spelling": step.recipe.spelling,
        "placement": step.recipe.placement,
        "port": step.port if step.recipe.ports else None,
        "ports": step.recipe.ports,
        "params": msgspec.json.decode(in_json()(decoded_block(step))) if step.recipe.params else None,
        "hubs": {address: msgspec.to_builtins(each) for address, each in counts.items()},
    }
