"""Processes that share the work of a trial, and end with it.

All that there is to do is handed out at once, hours of it. Whoever ends the trial by a signal or an error must not have
to wait until it is done, so what was not handed to a process by then is called off, and the rest, a task or two for
each, is a matter of seconds.
"""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

__all__ = ["pool"]


@contextmanager
def pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Have so many processes, each a Python of its own, until the block is left."""
    executor = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)
