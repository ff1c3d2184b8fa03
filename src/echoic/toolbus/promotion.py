"""Promotion: values of a tool that leaves become values of the bus, while somebody refers to them.

They are fetched a few at a time, and told to the machine together: putting a value into its place means looking at
everything that the machine has, which is better done once.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.scripts.running.messages import Fetched
from echoic.terms import Reference, Value

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Promotion"]

AT_ONCE: Final = 64


class Promotion:
    """The values of one tool on their way to the bus."""

    def __init__(
        self,
        references: tuple[Reference, ...],
        fetch: Callable[[Reference], "Future[Value]"],
        done: Callable[[list[Fetched]], None],
    ) -> None:
        """Begin with nothing.

        Args:
            references: What is wanted.
            fetch: Gets one value, and never fails.
            done: Called once, when all values are there.
        """
        self._waiting = list(reversed(references))
        self._count = len(references)
        self._fetch = fetch
        self._done = done
        self._found: list[Fetched] = []
        self._lock = threading.Lock()

    def start(self) -> None:
        """Fetch the first ones; the others follow."""
        for _ in range(min(AT_ONCE, self._count)):
            self._next()

    def _next(self) -> None:
        with self._lock:
            reference = self._waiting.pop() if self._waiting else None
        if reference is not None:
            self._fetch(reference).add_done_callback(lambda done: self._arrived(Fetched(reference, done.result())))

    def _arrived(self, fetched: Fetched) -> None:
        with self._lock:
            self._found.append(fetched)
            complete = len(self._found) == self._count
        if not complete:
            self._next()
            return
        found, self._found = self._found, []
        self._done(found)
