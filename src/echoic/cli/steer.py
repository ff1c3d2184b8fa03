"""`echoic steer`: ask the sources of a channel to start, stop or tune the generation of events."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from echoic.channels import Plain, Steering
from echoic.cli.meeting import visit
from echoic.cli.screen import json_text, printable, say
from echoic.cli.where import NOWHERE, AsJson, Where
from echoic.errors import EncodeError
from echoic.formats.text_values import TRUTHS, Bare, parse_words
from echoic.monitor import find

__all__ = ["steer"]


def steer(
    channel: str,
    action: Literal["start", "stop", "tune"],
    /,
    *words: str,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Ask every source of a channel to start, stop or tune the generation of events.

    A source takes what its program has offered as controls, and answers for itself. Of a derived channel, the sources
    of what it is derived from are asked. A value is a number, true or false, or else a text.

    Try:
        echoic steer reactor stop
        echoic steer reactor tune rate=10
        echoic steer reactor tune mode=fast rate=2.5 --json

    Args:
        channel: Its name, or its id echoic://HOST:PORT/NAME.
        action: What they are to do.
        words: NAME=VALUE for each value that goes with it.
        as_json: Print the answers as lines of JSON.
        where: Where the name server is.
    """
    values = _values(words)
    with visit(where, "steer") as hub:
        answers = find(hub, channel).steer(action, **values)
    for answer in answers:
        print(json_text(msgspec.to_builtins(answer)) if as_json else printable(_line(answer)))
    refused = sum(not answer.taken for answer in answers)
    if refused:
        say(f"{refused} of {len(answers)} sources have not done as asked")


def _line(answer: Steering) -> str:
    said = " ".join(f"{name}={value}" for name, value in answer.values.items())
    return f"{answer.hub}  {f'refused: {answer.refusal}' if answer.refusal else f'done  {said}'.rstrip()}"


def _values(words: Sequence[str]) -> dict[str, Plain]:
    """Return the values that words give.

    Raises:
        EncodeError: A word is not NAME=VALUE.
    """
    given = parse_words(words) if words else {}
    if not isinstance(given, dict):
        raise EncodeError(f"expected NAME=VALUE, got {json_text(given)}")
    return {name: _plain(name, value) for name, value in given.items()}


def _plain(name: str, value: object) -> Plain:
    """Return a value as it looks: a number, a truth, or else a text.

    Raises:
        EncodeError: It is a list, or something in braces.
    """
    if isinstance(value, Bare):
        for kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                continue
        return TRUTHS.get(value, str(value))
    if isinstance(value, bool | int | float | str):
        return value
    raise EncodeError(f"expected a number, text or truth, got {type(value).__name__} - at `{name}`")
