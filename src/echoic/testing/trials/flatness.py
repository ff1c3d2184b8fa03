"""Whether something stays flat while time passes: what a steady load must leave of memory, descriptors and threads.

Memory is a straight line through all samples, by least squares. A process settles for a while, by caches that fill and
an allocator that takes a page now and then, which over three minutes is far more than the leak that two hours would
show. So a line may rise by `SLOPE_BYTES` in ten minutes, and beside that by `SETTLING_BYTES` in all: at three minutes
a leak of 8 MB in ten minutes is found, at two hours one of 1.1 MB. With TLS there is more to settle, since every
connection that is made anew takes what OpenSSL wants: 1.8 MB were seen in three minutes, and 1.4 MB in ten minutes of
nine. So `SECURED_SETTLING_BYTES` is what such a process may rise by: 12 MB in ten minutes are found then, and 1.2 MB.
"""

from collections.abc import Sequence
from statistics import median
from typing import Final

import msgspec

from echoic.testing.trials.trial import BY_THE_CLOCK
from echoic.testing.trials.vital_signs import MEGABYTE, VitalSigns

__all__ = ["SECURED_SETTLING_BYTES", "Life", "judge_life", "judge_round_trips", "percentile", "slope"]

TEN_MINUTES: Final = 600.0
SLOPE_BYTES: Final = 1.0 * MEGABYTE
SETTLING_BYTES: Final = 1.5 * MEGABYTE
SECURED_SETTLING_BYTES: Final = 2.5 * MEGABYTE
MORE_MAX: Final = 3
SLOWER_MAX: Final = 3.0
QUICK_SECONDS: Final = 0.01
SAMPLES_MIN: Final = 6
PARTS: Final = 10


class Life(msgspec.Struct):
    """A process, and what it took at which second."""

    name: str
    seconds: list[float] = []
    signs: list[VitalSigns] = []
    settling_bytes: float = SETTLING_BYTES

    def note(self, second: float, signs: VitalSigns) -> None:
        """Add a sample."""
        self.seconds.append(second)
        self.signs.append(signs)


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return how much y rises with x, by least squares."""
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread if spread else 0.0


def growth_per_ten_minutes(life: Life) -> float:
    """Return how many bytes a process would grow by in ten minutes."""
    return slope(life.seconds, [each.resident_bytes for each in life.signs]) * TEN_MINUTES


def judge_life(life: Life) -> list[str]:
    """Return what does not stay flat in a process, of which there are samples from after it has grown warm."""
    if len(life.signs) < SAMPLES_MIN:
        return [f"there are {len(life.signs)} samples of {life.name}, expected {SAMPLES_MIN} or more"]
    problems: list[str] = []
    ten_minutes = (life.seconds[-1] - life.seconds[0]) / TEN_MINUTES
    rise = growth_per_ten_minutes(life) * ten_minutes
    rise_max = SLOPE_BYTES * ten_minutes + life.settling_bytes
    if rise > rise_max:
        problems.append(
            f"{life.name} grows by {growth_per_ten_minutes(life) / MEGABYTE:.1f} MB in ten minutes: {rise:.0f} bytes "
            f"in {ten_minutes * TEN_MINUTES:.0f} s, limit is {rise_max:.0f}"
        )
    third = len(life.signs) // 3
    for what in ("descriptors", "threads"):
        counts = [int(getattr(each, what)) for each in life.signs]
        first, last = median(counts[:third]), median(counts[-third:])
        if last > first + MORE_MAX:
            problems.append(f"{life.name} has {last:g} {what} in the last third, and had {first:g} in the first")
    return problems


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that a share of all does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def calm_percentile(seconds: Sequence[float]) -> float:
    """Return the 99th percentile of the calmer times: of ten parts, the one that a quarter of them do not exceed.

    Whatever else the machine does disturbs some parts; a system that has become slow is slow in all.
    """
    size = max(1, len(seconds) // PARTS)
    parts = [seconds[start : start + size] for start in range(0, len(seconds), size)]
    return percentile([percentile(part, 0.99) for part in parts], 0.25)


def judge_round_trips(seconds: Sequence[float]) -> list[str]:
    """Return what is wrong with the 99th percentile: that of the last third is not that of the first."""
    third = len(seconds) // 3
    if third < SAMPLES_MIN:
        return [f"there are {len(seconds)} round trips, expected {3 * SAMPLES_MIN} or more"]
    first, last = calm_percentile(seconds[:third]), calm_percentile(seconds[-third:])
    if last <= SLOWER_MAX * max(first, QUICK_SECONDS):
        return []
    taken = f"take {last * 1000:.1f} ms in the last third, and took {first * 1000:.1f} in the first"
    return [f"99 % of round trips {taken}{BY_THE_CLOCK}"]
