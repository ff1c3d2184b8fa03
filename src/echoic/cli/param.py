"""`echoic param`: the parameters of a derived channel, shown and changed while it runs."""

from collections.abc import Sequence

from echoic.cli.meeting import visit
from echoic.cli.rendering import as_json as rendered_json
from echoic.cli.rendering import as_lines
from echoic.cli.screen import json_text, say
from echoic.cli.where import NOWHERE, AsJson, Where
from echoic.errors import EncodeError
from echoic.formats import Format
from echoic.formats.text_values import fit, parse_words
from echoic.monitor import find
from echoic.wire import Batch

__all__ = ["param"]


def param(channel: str, /, *words: str, as_json: AsJson = False, where: Where = NOWHERE) -> None:
    """Show the parameters of a derived channel, or change some of them.

    The code of a derived channel reads its parameters as `param.NAME`. A change is told to every source before the
    command ends, and each takes it between two batches, all of it at once. Everybody who shares the channel shares its
    parameters, and their types never change.

    Try:
        echoic derive trades 'input.price < param.low' --param low=75.5 --name cheap
        echoic param cheap
        echoic param cheap low=70
        echoic param cheap '{low: 70, high: 80}' --json

    Args:
        channel: Its name, or its id echoic://HOST:PORT/NAME.
        words: NAME=VALUE for each parameter that changes, or all of them in braces; nothing to show them.
        as_json: Print the parameters as JSON.
        where: Where the name server is.
    """
    with visit(where, "param") as hub:
        opened = find(hub, channel)
        params = opened.params
        if words:
            params.update(**_changes(words, params.format))
        sources = len(hub.describe(opened.id).sources)
        block = Batch.of([params.values], params.format).events()[0]
    print((rendered_json() if as_json else as_lines())(block), end="")
    if words:
        say(f"changed at {sources} hub{'s' * (sources != 1)} with sources" if sources else "changed; no sources yet")


def _changes(words: Sequence[str], format: Format) -> dict[str, object]:
    """Return the values that words give parameters, each as its type wants it.

    Raises:
        EncodeError: A value does not fit.
        FormatError: There is no such parameter.
    """
    given = parse_words(words)
    if not isinstance(given, dict):
        raise EncodeError(f"expected NAME=VALUE, got {json_text(given)}")
    return {name: fit(value, format.member(name, name), f"param.{name}") for name, value in given.items()}
