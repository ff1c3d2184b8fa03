"""Which processes take part, and how much processor time they have taken.

Elapsed time says how long a user waits, and depends on how many processors there are: six processes on two of them
cannot work side by side. Processor time says how much work there was, wherever it was done. It is the sum of what
`time.process_time` tells in each of the processes: all threads, and what the kernel did on their behalf.

Nobody has to report it, so that it includes servers and whatever a rival starts: Linux lets a process read the clock of
another one, to the nanosecond. The number of that clock is made from the process's (`clock_getcpuclockid`). Who belongs
to a contender is seen by comparing this process's children before it is opened and after. Where the kernel tells
neither, reports have no processor time.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

__all__ = ["children", "processor_seconds"]

TASKS = Path("/proc/self/task")
CLOCK_SHIFT, CLOCK_SCHEDULED = 3, 2


def children() -> frozenset[int] | None:
    """Return the processes that this one has started, or None where the kernel does not tell."""
    if not (TASKS / str(os.getpid()) / "children").exists():
        return None
    found: set[int] = set()
    for task in TASKS.iterdir():
        try:
            found.update(map(int, (task / "children").read_text("ascii").split()))
        except OSError:  # a thread that has just ended
            continue
    return frozenset(found)


def processor_seconds(processes: Iterable[int]) -> float:
    """Return the processor time that this process and the given ones have taken since they began.

    Raises:
        OSError: If one of them has ended.
    """
    clocks = (~process << CLOCK_SHIFT | CLOCK_SCHEDULED for process in processes)
    return time.process_time() + sum(map(time.clock_gettime, clocks))
