"""Shares: how much of a bus one name may take. This module is pure.

Whoever has shown a certificate or a token has a name, and under one name there may be so many tools, for which so much
is kept until they come back (`sessions.py`). Without that, one name could take all the room that there is. Tools that
the bus has started, and those of a bus that asks for no names, share what the bus has altogether.
"""

import threading
from collections import Counter
from typing import Final

from echoic.errors import RefusedError
from echoic.toolbus.limits import BusLimits

__all__ = ["Seat", "Shares"]


class Shares:
    """What is taken at a bus, by name. Any thread may ask."""

    def __init__(self, limits: BusLimits) -> None:
        """Begin with nothing taken."""
        self._limits = limits
        self._lock = threading.Lock()
        self._tools: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        self._kept_bytes = 0

    def take(self, account: str) -> "Seat":
        """Return the seat of one more tool; `account` is empty for one without a name.

        Raises:
            RefusedError: There are too many of this name.
        """
        limit = self._limits.tools_per_name_max
        with self._lock:
            if account and self._tools[account] >= limit:
                raise RefusedError(f"`{account}` has {limit} tools at this bus, limit is {limit} for one name")
            self._tools[account] += 1
        return Seat(self, account)

    def keep(self, account: str, size: int) -> bool:
        """Take room for so many bytes; False, and nothing is taken, where there is not so much."""
        limits = self._limits
        with self._lock:
            if self._kept_bytes + size > limits.kept_bytes_max:
                return False
            if account and self._kept[account] + size > limits.kept_bytes_per_name_max:
                return False
            self._kept_bytes += size
            self._kept[account] += size
            return True

    def release(self, account: str, size: int, tools: int = 0) -> None:
        """Give room back, and seats."""
        with self._lock:
            self._kept_bytes -= size
            for counts, less in ((self._kept, size), (self._tools, tools)):
                counts[account] -= less
                if not counts[account]:
                    del counts[account]

    def tools_of(self, account: str) -> int:
        """Return how many tools of a name there are."""
        with self._lock:
            return self._tools.get(account, 0)

    def kept_of(self, account: str) -> int:
        """Return how many bytes are kept for the tools of a name."""
        with self._lock:
            return self._kept.get(account, 0)


class Seat:
    """The place of one tool, for as long as it is there or may come back; one thread at a time uses it."""

    def __init__(self, shares: Shares | None = None, account: str = "") -> None:
        """Begin; without shares nothing is counted."""
        self._shares = shares
        self._account: Final = account
        self._kept_bytes = 0

    def keep(self, size: int) -> bool:
        """Take room for what is kept for this tool; False where there is none."""
        if self._shares is None or not self._shares.keep(self._account, size):
            return self._shares is None
        self._kept_bytes += size
        return True

    def release(self, size: int) -> None:
        """Give room back."""
        if self._shares is not None:
            self._kept_bytes -= size
            self._shares.release(self._account, size)

    def leave(self) -> None:
        """Give back all that this tool has taken; nothing is counted from here on."""
        shares, self._shares = self._shares, None
        if shares is not None:
            shares.release(self._account, self._kept_bytes, tools=1)
