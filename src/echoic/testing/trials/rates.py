"""Two rates that were measured by turns in one run, and whether one of them has kept up with the other.

What disturbs the machine disturbs both, so only their ratio counts, and of several the median. A machine that did
something else for a moment gets a second chance: whoever fails is measured once more, and must then pass.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Final, TypeVar

from echoic.testing.trials.trial import BY_THE_CLOCK

__all__ = ["RATE", "kept_share", "kept_up", "tried_twice"]

M = TypeVar("M")

RATE: Final = "of its rate"
"""What every problem with a rate says."""


def kept_share(disturbed: Sequence[float], undisturbed: Sequence[float]) -> float:
    """Return the median of what is left of a rate: each is divided by the one that was measured beside it."""
    return median(one / other for one, other in zip(disturbed, undisturbed, strict=True))


def kept_up(what: str, share: float, share_min: float) -> list[str]:
    """Return what is wrong, if too little of a rate is left."""
    if share >= share_min:
        return []
    return [f"{what} keeps {share:.0%} {RATE}, expected {share_min:.0%} or more{BY_THE_CLOCK}"]


def tried_twice(measure: Callable[[], M], enough: Callable[[M], bool]) -> M:
    """Return what was measured, or what was measured the second time, if the first was not enough."""
    found = measure()
    return found if enough(found) else measure()
