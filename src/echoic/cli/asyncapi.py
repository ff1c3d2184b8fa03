"""`echoic asyncapi`: the channels of a name server or a hub as an AsyncAPI document."""

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from echoic.channels import Described
from echoic.cli.meeting import visit
from echoic.cli.screen import json_text, say
from echoic.cli.where import NOWHERE, Flag, Text, Where
from echoic.errors import LocalError
from echoic.formats import Format
from echoic.hub import Hub
from echoic.interop.asyncapi import CHANNELS_MAX, DescribedChannel, asyncapi_document
from echoic.monitor import ask_all, find, survey

__all__ = ["asyncapi"]


def asyncapi(
    *channels: str,
    hub: Text = "",
    title: str = "echoic",
    version: Annotated[str, Parameter(name="--document-version")] = "1.0.0",
    derived: Flag = False,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative=(), show_default=False)] = False,
    where: Where = NOWHERE,
) -> None:
    """Describe channels in an AsyncAPI 3.0 document: their types as JSON Schema, who sends, who receives.

    The document is JSON, which readers of YAML understand as well.

    Try:
        echoic asyncapi
        echoic asyncapi trades quotes --title "The exchange" -o exchange.json
        echoic asyncapi --hub 127.0.0.1:7401 --derived

    Args:
        channels: Names or ids; all that the name server knows if there are none.
        hub: Describe what the hub at HOST:PORT manages, instead of what the name server knows.
        title: What the document is called.
        version: The version that the document gives itself.
        derived: Describe also derived channels that have no name at the name server.
        output: Write into this file instead of stdout.
        as_json: Print it in one line, for programs.
        where: Where the name server is.
    """
    if channels and hub:
        raise LocalError("name channels, or a hub whose channels are wanted, not both")
    with visit(where, "asyncapi") as visitor:
        found = _described(visitor, channels, hub, derived=derived)
    document = asyncapi_document(found, title, version)
    text = json_text(document) if as_json else msgspec.json.format(json_text(document), indent=2)
    if output is None:
        print(text)
        return
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise LocalError(f"cannot write {output}: {error.strerror}") from error
    say(f"wrote {len(found)} channels to {output}")


def _described(visitor: Hub, channels: tuple[str, ...], hub: str, *, derived: bool) -> list[DescribedChannel]:
    """Ask the managers of channels; say which of them do not answer."""
    if channels:
        ids = [find(visitor, channel).id for channel in channels]
    elif hub:
        ids = [entry.id for entry in visitor.channels(hub) if derived or not entry.parent]
    else:
        ids = [entry.id for entry, _ in survey(visitor, unnamed=derived)]
    if len(ids) > CHANNELS_MAX:
        say(f"there are {len(ids)} channels, of which {CHANNELS_MAX} are described")
    answers = ask_all(ids[:CHANNELS_MAX], visitor.describe)
    silent = [id for id in ids[:CHANNELS_MAX] if id not in answers]
    if silent:
        say(f"left out, since their managers do not answer: {', '.join(silent[:10])}{' ...' * (len(silent) > 10)}")
    return [_channel(id, described) for id, described in answers.items()]


def _channel(id: str, described: Described) -> DescribedChannel:
    format = Format.from_descriptor(described.descriptor) if described.descriptor else None
    if not described.lineage:
        return DescribedChannel(id, format)
    recipe = described.lineage[-1].recipe
    return DescribedChannel(id, format, recipe.parent, recipe.code, recipe.spelling)
