"""The crew: threads in which requests of tabs wait for managers, shared out by name.

A manager that does not answer holds up a thread for seconds. Were they not shared out (`shares`), one name could have
all of them wait, and every tab with them. Whoever has no thread left waits in the loop, which costs nothing.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
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
        return None if self._shares.take(who) else self._submit(who, work)

    def insist(self, who: str, work: Callable[[], object]) -> None:
        """Have a thread do what must be done, as soon as one is free; the name has the fewer meanwhile.

        Raises:
            RuntimeError: The viewer has ended.
        """
        self._shares.charge(who)
        self._submit(who, work)

    def close(self) -> None:
        """Begin nothing more, and wait for nobody."""
        self._pool.shutdown(wait=False, cancel_futures=False)

    def _submit(self, who: str, work: Callable[[], Result]) -> "Future[Result]":
        try:
            future = self._pool.submit(work)
        except RuntimeError:
            self._shares.give_back(who)
            raise
        future.add_done_callback(lambda _: self._shares.give_back(who))
        return future
