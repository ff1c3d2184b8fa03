"""The crew: threads in which requests of tabs wait for managers, shared out by name.

A manager that does not answer holds up a thread for seconds. Were they not shared out (`shares`), one name could have
all of them wait, and every tab with them. Whoever has no thread left waits in the loop, which costs nothing.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from echoic.viewer.shares import Shares

__all__ = ["Crew"]

Result = TypeVar("Result")


class Crew:
    """So many threads.

    Args:
        threads: How many.
    """

    def __init__(self, threads: int) -> None:
        self._pool: Final = ThreadPoolExecutor(threads, "echoic-viewer")
        self._shares: Final = Shares(threads, "threads are at work")

    def begin(self, who: str, work: Callable[[], Result]) -> "Future[Result] | None":
        """Have a thread work for a name; None if it has none left.

        Raises:
            RuntimeError: The viewer has ended.
        """
        return None if self._shares.take(who) else self._submit(work, partial(self._shares.give_back, who))

    def insist(self, who: str, work: Callable[[], Result]) -> "Future[Result]":
        """Have a thread do what must be done, as soon as one is free; the name has the fewer meanwhile.

        Raises:
            RuntimeError: The viewer has ended.
        """
        self._shares.charge(who)
        return self._submit(work, partial(self._shares.discharge, who))

    def close(self) -> None:
        """Begin nothing more, and wait for nobody."""
        self._pool.shutdown(wait=False, cancel_futures=False)

    def _submit(self, work: Callable[[], Result], end: Callable[[], None]) -> "Future[Result]":
        try:
            future = self._pool.submit(work)
        except RuntimeError:
            end()
            raise
        future.add_done_callback(lambda _: end())
        return future
