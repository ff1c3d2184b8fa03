"""What a simulation takes place in: one chance, one clock, one network, and a trace of all that happens.

Parts of a system can each have their own, or share them: then everything that fails does so for all of them, and one
seed gives one run of the whole. Whatever is noted goes into a hash, so that two runs of a seed can be compared, and the
last lines are kept for whoever has to find out what went wrong.

There is also a wall clock, which leaps by up to an hour either way. Nothing may depend on it but what people read.

With half of all seeds, those with an odd number of ones, hubs go by rules (`RULES`): everybody has a name and the
rights that he needs, and nobody more. What holds without rights must hold with them.
"""

from collections import Counter, deque
from hashlib import blake2b
from random import Random
from typing import Final

from echoic.rights import parse_rights
from echoic.testing.network import SECOND, Network, VirtualClock

__all__ = ["Surroundings"]

TRACE_LINES: Final = 80
BEGINNING_NS: Final = 10**18
LEAP_NS: Final = 3600 * SECOND
LEAP_SHARE: Final = 0.01
RULES: Final = """
allow hub*      *          *
allow manager   *          *
allow source*   publish    *
allow recorder  subscribe  *
"""


class Surroundings:
    """Chance, time, a network and a trace, made from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed: Final = seed
        self.random: Final = Random(seed)
        self.clock: Final = VirtualClock()
        self.network: Final = Network(self.random, self.clock, parse_rights(RULES) if seed.bit_count() % 2 else None)
        self.faults: Final[Counter[str]] = Counter()
        """What has gone wrong, and how often."""
        self._lines: deque[str] = deque(maxlen=TRACE_LINES)
        self._hash = blake2b(digest_size=8)
        self._wall_ns = BEGINNING_NS

    @property
    def trace(self) -> int:
        """A number that two runs of a seed have in common, the same in every process."""
        return int.from_bytes(self._hash.digest(), "little")

    def note(self, text: str) -> None:
        """Write down what happened."""
        line = f"{self.clock.now_ns / SECOND:10.4f} {text}"
        self._lines.append(line)
        self._hash.update(line.encode())

    def count(self, *numbers: int) -> None:
        """Let something that is not worth a line be part of what two runs have in common."""
        self._hash.update(f"{self.clock.now_ns} {numbers}".encode())

    def explain(self, problem: object) -> str:
        """Return a problem with the seed and the last things that happened."""
        return "\n".join([f"seed {self.seed}: {problem}", *self._lines])

    def wall_ns(self) -> int:
        """Return what a clock on the wall shows, which leaps now and then when it is looked at."""
        if self.random.random() < LEAP_SHARE:
            self.leap()
        return self._wall_ns + self.clock.now_ns

    def leap(self) -> None:
        """Let the wall clock show another time."""
        self._wall_ns += self.random.randrange(-LEAP_NS, LEAP_NS)
