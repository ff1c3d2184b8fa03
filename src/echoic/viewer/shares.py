"""Shares: how much of a page one name may have. This module is pure.

A page has so many tabs, threads that wait for managers, and derivations that it keeps. Whoever has a signed token could
take all of it, and others would find the page full; so each name has a quarter, however many tokens it has. Whoever has
started the viewer is not counted: it is his.

What must be done is done, also beyond a share: it is *charged* to the name, which may take the less meanwhile, and
nobody else has less for it.

What a name has taken counts until it is given back, also if the tab is gone that it was for: else whoever hangs up and
comes again would have another share each time.
"""

import threading
from collections import Counter
from typing import Final

__all__ = ["SHARE", "Shares"]

SHARE: Final = 4
"""One part in so many is for one name."""


class Shares:
    """So much of something, of which no name may have more than its share. Any thread may call.

    Args:
        total: How much there is.
        things: What it is, as in "32 tabs are open".
    """

    def __init__(self, total: int, things: str) -> None:
        self._total, self._things = total, things
        self.each: Final = max(1, total // SHARE)
        """How much one name may have."""
        self._taken: Counter[str] = Counter()
        self._charged: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, who: str) -> str:
        """Take one more for a name, "" if it has started the viewer; return why there is none, "" if there was one."""
        with self._lock:
            if self._taken.total() >= self._total:
                return f"{self._total} {self._things}, which is the limit"
            if who and self._taken[who] + self._charged[who] >= self.each:
                return f"{self.each} {self._things} for `{who}`, which is the limit of one name"
            self._taken[who] += 1
            return ""

    def charge(self, who: str) -> None:
        """Charge one to a name, whatever it has: for what must be done."""
        with self._lock:
            self._charged[who] += 1

    def discharge(self, who: str) -> None:
        """Give back one that was charged to a name."""
        with self._lock:
            self._charged[who] -= 1
            self._charged += Counter()  # forget who has none

    def give_back(self, who: str) -> None:
        """Give back one that a name has taken."""
        with self._lock:
            self._taken[who] -= 1
            self._taken += Counter()
