"""Leases: tools whose connection broke, and that may come back for a while.

    RemoteLine breaks --> cut_off --> nobody comes --> expired: the tool is lost
                              |
                              +-- HELLO with resume(...)          the same process: it goes on where it was
                              +-- HELLO of the same instance      the launcher has started it again: it begins anew

Who comes back shows what only it and the bus know (`references/tokens.py`), and the certificate that it had before if
it had one, or a renewed one of the same name (`guest.py`); or, started again, the launcher's token.
"""

import hmac
import threading
from typing import Protocol

from echoic.errors import RefusedError
from echoic.toolbus.protocol import Hello

__all__ = ["Leases", "Suspended"]


class Suspended(Protocol):
    """A line whose connection broke."""

    @property
    def resumption_token(self) -> str:
        """What the tool shows when it comes back."""

    @property
    def epoch(self) -> int:
        """Of the bus, as the tool was told."""

    def expire(self, reason: str) -> None:
        """Learn that nobody came."""


class Leases:
    """The tools that may come back."""

    def __init__(self, seconds: float) -> None:
        """Begin with none; `seconds` is how long each may stay away."""
        self.seconds = seconds
        self._lock = threading.Lock()
        self._suspended: dict[int, tuple[Suspended, threading.Timer]] = {}

    def cut_off(self, number: int, line: Suspended, reason: str) -> None:
        """Wait for a tool."""
        timer = threading.Timer(self.seconds, self._expire, (number, line, reason))
        timer.daemon = True
        with self._lock:
            self._suspended[number] = (line, timer)
        timer.start()

    def check(self, hello: Hello) -> Suspended:
        """Return the line of a tool that says that it comes back, if it is one that may; it still waits.

        Raises:
            RefusedError: It is not.
        """
        back = hello.resumption
        with self._lock:
            found = self._suspended.get(back.number) if back is not None else None
        if back is None or found is None or back.epoch != found[0].epoch:
            raise RefusedError(f"tool `{hello.name}` comes back too late, or was never here")
        if not hmac.compare_digest(found[0].resumption_token.encode(), hello.token.encode()):
            raise RefusedError(f"tool `{hello.name}` comes back with a token that is not its own")
        return found[0]

    def waits_for(self, line: object) -> bool:
        """Whether a line is that of a tool that may come back."""
        with self._lock:
            return any(suspended is line for suspended, _ in self._suspended.values())

    def take(self, number: int) -> Suspended | None:
        """Return the line of a tool that is back, None where nobody waits for it."""
        with self._lock:
            found = self._suspended.pop(number, None)
        if found is None:
            return None
        found[1].cancel()
        return found[0]

    def close(self) -> None:
        """Wait for nobody any more."""
        with self._lock:
            every = list(self._suspended.values())
            self._suspended.clear()
        for _, timer in every:
            timer.cancel()

    def _expire(self, number: int, line: Suspended, reason: str) -> None:
        with self._lock:
            found = self._suspended.get(number)
            if found is None or found[0] is not line:
                return
            del self._suspended[number]
        line.expire(f"{reason}, and did not come back within {self.seconds:g} seconds")
