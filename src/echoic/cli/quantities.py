"""How much and how long, as people write it: `500MB`, `1.5GiB`, `36h`, `7d`."""

import math
import re
from typing import Final

from echoic.errors import LocalError

__all__ = ["bytes_of", "nanoseconds_of"]

BYTES: Final = {"": 1, "b": 1} | {
    name: base**power
    for power, letter in enumerate("kmgt", 1)
    for name, base in ((letter, 1000), (f"{letter}b", 1000), (f"{letter}ib", 1024))
}
SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
NANOSECONDS: Final = 1_000_000_000
AMOUNT: Final = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-zA-Z]*)\s*")
AMOUNT_MAX: Final = 2**63 - 1


def bytes_of(text: str) -> int:
    """Return a number of bytes, from a text such as 4096, 500MB or 1GiB; 0 for nothing.

    Raises:
        LocalError: It is none.
    """
    return _amount(text, BYTES, "a number of bytes such as 500MB, 2GB or 1GiB")


def nanoseconds_of(text: str) -> int:
    """Return a time in nanoseconds, from a text such as 90, 15m, 36h or 7d; seconds without a unit, 0 for nothing.

    Raises:
        LocalError: It is none.
    """
    return _amount(text, {unit: each * NANOSECONDS for unit, each in SECONDS.items()}, "a time such as 15m, 36h or 7d")


def _amount(text: str, units: dict[str, int], expected: str) -> int:
    if not text:
        return 0
    found = AMOUNT.fullmatch(text)
    if found is None or found[2].lower() not in units:
        raise LocalError(f"expected {expected}, got `{text}`")
    amount = float(found[1]) * units[found[2].lower()]
    if not math.isfinite(amount) or amount > AMOUNT_MAX:
        raise LocalError(f"expected {expected}, got `{text}`, which is too much")
    return int(amount)
