"""Workers: a few threads for what may take long, such as dialling or encoding a large term.

Threads are started when there is something to do and end when there has been nothing for a while. They never keep a
program from ending, which is why they are not those of `concurrent.futures`: these are waited for when a program ends,
however long a peer takes to answer.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

__all__ = ["Workers"]

IDLE_SECONDS: Final = 5.0
log: Final = logging.getLogger("echoic.toolbus")


class Workers:
    """Runs jobs, so many at a time."""

    def __init__(self, name: str, threads_max: int, jobs_max: int) -> None:
        """Begin without a thread.

        Args:
            name: Of the threads.
            threads_max: How many jobs run at a time.
            jobs_max: How many may wait.
        """
        self.failed = 0
        """How many jobs have ended with an error."""
        self._name = name
        self._threads_max = threads_max
        self._jobs_max = jobs_max
        self._jobs: deque[Callable[[], None]] = deque()
        self._threads = self._idle = 0
        self._changed = threading.Condition()

    def run(self, job: Callable[[], None]) -> bool:
        """Have a job done; False, and nothing done, when too many wait."""
        with self._changed:
            if len(self._jobs) >= self._jobs_max:
                return False
            self._jobs.append(job)
            if self._idle >= len(self._jobs):
                self._changed.notify()
                return True
            starts = self._threads < self._threads_max
            self._threads += starts
        if starts:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return True

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                job()
            except Exception:  # whatever it is, others still have jobs
                self.failed += 1
                log.exception("a job of %s has failed", self._name)
            del job  # what it was about may be large

    def _next(self) -> Callable[[], None] | None:
        """Return the next job, None when this thread has to end."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: bool(self._jobs), IDLE_SECONDS)
            self._idle -= 1
            if self._jobs:
                return self._jobs.popleft()
            self._threads -= 1
            return None
