"""Finds how many bytes a pack should have, by comparing a little less with a little more.

    goodput                 . - - .            less and more lie about the aim, with a ratio of square root of 2;
       |              . L -         - M .      here L and M are equal, so the aim between them is the best
       |         .  '                     ' .
       |     . '                              bytes in a pack, logarithmic

Blocks come as less, more, more, less. A load that comes slowly or goes slowly hits both alike, and cancels out of

    x = log(more more / less less) / 2

The mean of x says something when it is beyond 2.5 standard errors and 1.5 %: then the aim goes that way, and the two
are compared there. When the way back is better the best was leapt over, and steps become half as wide; after the least
step it is settled, and the aim goes to the better one of the two. It is also settled when there is no difference for
two seconds.

How far? If a pack of n messages takes a + b n + d n^2, then the best n is sqrt(a/d), and where the throughput grows
with the slope s on logarithmic scales, it is farther away than sqrt((1 + s)/(1 - s)), just as far if b = 0. So such a
step does not go beyond it. A ratio of square root of 2 is the least step, 4 the largest, and a step that goes the same
way as the one before has 2 at least.

With fewer than five messages in a pack there is nothing between n and n + 1, and n may be best though n - 1 and n + 1
differ. Then the aim itself is compared with one more, and with one less.
"""

from math import log, sqrt
from typing import Final

__all__ = ["SPREAD", "Search"]

SPREAD: Final = 2**0.25
STEP: Final = SPREAD**2
STEP_MAX: Final = 4.0
SLOPE_MAX: Final = 0.99
BYTES_LEAST: Final = 64
FEW: Final = 5
PAIRS_MIN: Final = 3
PAIRS_TIE: Final = 10
PAIRS_MAX: Final = 64
TIE_NS: Final = 2_000_000_000
ERRORS: Final = 2.5
LEAST_GAIN: Final = 0.015


class Search:
    """Climbs the curve of goodput over bytes in a pack."""

    def __init__(self, aim: float, bytes_max: int) -> None:
        self.aim = aim
        """What is the best, as far as is known."""
        self.pair = 0, 0
        """What is compared: less, and more."""
        self.settled = False
        """Whether there is nothing to gain nearby."""
        self.size = 0.0
        """Bytes of a message, by and large; 0 if not known."""
        self._bytes_max = bytes_max
        self._differences: list[float] = []
        self._ratio = 2 * log(SPREAD)
        self._few = False
        self._direction = 0
        self._step, self._step_max = STEP, STEP_MAX
        self._side = 1
        self._turned = False
        self._since_ns = 0
        self.begin(aim)

    def begin(self, aim: float) -> None:
        """Search from somewhere, with nothing known of what is nearby."""
        self._direction, self._side, self._turned, self.settled = 0, 1, False, False
        self._step, self._step_max = STEP, STEP_MAX
        self._go(aim)

    def compare(self, goodputs: list[float], now_ns: int) -> str:
        """Learn the goodput of less, more, more and less; return in words what that decided, if it did."""
        less, more, more_again, less_again = goodputs
        difference = log(more * more_again / (less * less_again)) / 2
        if not self._differences:
            self._since_ns = now_ns
        # Throughput cannot change by more than the packs do: a pair that says so was disturbed.
        self._differences.append(max(-self._ratio, min(self._ratio, difference)))
        return self._judge(now_ns)

    def _judge(self, now_ns: int) -> str:
        differences = self._differences
        count = len(differences)
        if count < PAIRS_MIN:
            return ""
        mean = sum(differences) / count
        error = sqrt(sum((each - mean) ** 2 for each in differences) / (count - 1) / count)
        if abs(mean) > ERRORS * error + LEAST_GAIN:
            self._follow(1 if mean > 0 else -1, abs(mean))
            return f"{'more' if mean > 0 else 'fewer'} per pack gave {abs(mean) * 100:.1f} % more"
        if count >= PAIRS_MAX or (count >= PAIRS_TIE and now_ns - self._since_ns > TIE_NS):
            if self._few:
                self._turn()
            else:
                self._settle(self.aim)
            return "no difference"
        return ""

    def _follow(self, direction: int, gain: float) -> None:
        """Go where the goodput is higher."""
        if self._few and direction != self._side:
            self._turn()
        elif not self._few and direction == -self._direction and self._step <= STEP:
            self._settle(self.pair[direction > 0])
        else:
            self._move(direction, gain)

    def _move(self, direction: int, gain: float) -> None:
        slope = min(SLOPE_MAX, gain / self._ratio)
        factor = sqrt((1 + slope) / (1 - slope))
        if self._few:
            aim = self.aim * factor**direction
            aim = max(aim, self.aim + self.size) if direction > 0 else min(aim, self.aim - self.size)
        else:
            if direction == -self._direction:
                # The best was leapt over: halve the way from here on.
                self._step_max = max(STEP, sqrt(self._step))
            self._step = min(self._step_max, max(factor, STEP if direction != self._direction else STEP * STEP))
            aim = self.aim * self._step**direction
        before, few = self.aim, self._few
        self._direction = self._side = direction
        self._go(aim)
        # What lies behind is known to be worse only if nothing was leapt over.
        self._turned = few and abs(self.aim - before) < 1.5 * self.size

    def _turn(self) -> None:
        """Look at the other side, since the aim is better than its neighbour on this one."""
        if self._turned or self.aim < 2 * self.size:
            self._settle(self.aim)
        else:
            self._side, self._turned = -self._side, True
            self._go(self.aim)

    def _settle(self, aim: float) -> None:
        self.begin(aim)
        self.settled = True

    def _go(self, aim: float) -> None:
        """Take another aim, and choose what is compared."""
        self._differences.clear()
        size = self.size
        # Invariant: the aim is one message at least, and something larger can be tried.
        aim = max(BYTES_LEAST, min(max(aim, size), self._bytes_max / SPREAD))
        self._few = aim < FEW * size
        if not self._few:
            self.aim = aim
            self.pair = max(BYTES_LEAST, int(aim / SPREAD)), int(aim * SPREAD)
            self._ratio = 2 * log(SPREAD)
            return
        # Halves, so that messages that differ a little do not matter.
        count = max(1, int(aim / size))
        self._side = self._side if count > 1 else 1
        less = count - (self._side < 0)
        self.aim = min((count + 0.5) * size, self._bytes_max)
        self.pair = min(self._bytes_max, int((less + 0.5) * size)), min(self._bytes_max, int((less + 1.5) * size))
        self._ratio = log((less + 1) / less)
