"""What goes to a page has limits: texts of strangers are cut off, and numbers are such as a browser has.

JSON has no word for what is not a number, and JavaScript tells whole numbers apart up to 2**53 only.
"""

import math
from collections.abc import Iterable
from itertools import islice
from typing import Final

__all__ = ["finite", "short", "shorts", "whole"]

TEXT_CHARACTERS_MAX: Final = 300
WHOLE_MAX: Final = 1 << 53
PLACES: Final = 3


def short(text: str) -> str:
    """Return a text, or its beginning."""
    return text if len(text) <= TEXT_CHARACTERS_MAX else f"{text[: TEXT_CHARACTERS_MAX - 3]}..."


def shorts(texts: Iterable[str], count_max: int) -> list[str]:
    """Return the first of some texts, or their beginnings."""
    return [short(each) for each in islice(texts, count_max)]


def finite(number: float) -> float:
    """Return a number with as many places as a page shows; 0 for what is none."""
    return round(number, PLACES) if math.isfinite(number) else 0.0


def whole(number: int) -> int:
    """Return a whole number, or the nearest that a browser can tell from others."""
    return max(-WHOLE_MAX, min(WHOLE_MAX, number))
