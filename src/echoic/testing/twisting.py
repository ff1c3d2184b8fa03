"""Twisted messages: whole, but with a number, a name or an address in them that makes no sense.

Bytes that were damaged at random are seldom a message any more, and then they test the decoder of messages and not who
takes them. A twisted message is one still.
"""

from random import Random
from typing import Final

__all__ = ["twist"]

NUMBERS: Final = (-(2**63), -1, 0, 1, 2, 5, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
TEXTS: Final = (
    "",
    "mine",
    "heard",
    "other",
    "block",
    "sink",
    "victim",
    "attacker",
    "victim:1",
    "attacker:1",
    "nowhere:9",
    "[::1]:1",
    "echoic://victim:1/mine",
    "echoic://attacker:1/heard",
    "echoic://attacker:1/other",
    "echoic://x",
    "mine.low",
    "low",
    "victim:1/shared/1-0000000000000000",
    "echoic://victim:1/mine.low",
    "input.volume % 2 == 0",
    "{ while (1) { } }",
    "\x00" * 300,
)
KEPT: Final = frozenset({"type", "role", "slow", "spelling", "placement"})  # another value would only be refused


def twist(draw: Random, value: object, other: bytes = b"") -> object:
    """Return a message in which a few values are others of the same type; `other` may stand where bytes do."""
    match value:
        case bool():
            return draw.random() < 0.5
        case int():
            return draw.choice(NUMBERS) if draw.random() < 0.3 else value
        case str():
            return draw.choice(TEXTS) if draw.random() < 0.3 else value
        case bytes():
            return draw.choice((value[: draw.randrange(len(value) + 1)], value * 2, other, value, value))
        case dict():
            return {
                _twist_key(draw, key): item if key in KEPT else twist(draw, item, other) for key, item in value.items()
            }
        case tuple():
            return [twist(draw, item, other) for item in value]
        case list():
            return [twist(draw, item, other) for item in value] * draw.choice((1, 1, 1, 0, 2))
        case _:
            return value


def _twist_key(draw: Random, key: object) -> object:
    """Return a key, another one if it is the number of a source."""
    return key if isinstance(key, str) else twist(draw, key)
