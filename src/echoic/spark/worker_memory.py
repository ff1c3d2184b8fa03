"""What a Python worker of Spark has loaded is not searched for garbage after every task.

Spark's daemon calls `gc.collect()` whenever one of its workers has done a task, because the next one may be another
program's. A collection looks at every object there is: with NumPy, Arrow and LLVM loaded that takes 50 ms, and a small
batch of a stream has four such tasks. It was most of what a query at a thousand events a second cost, and held up its
next batch. So what is there once a worker has done some work is set aside (`gc.freeze`); it is still freed when nobody
refers to it, only cycles among it are not.
"""

import gc
import sys
from typing import Final

__all__ = ["is_worker", "task_done"]

DAEMON: Final = "pyspark.daemon"
SET_ASIDE_AFTER: Final = (1, 16)  # tasks: what is imported and compiled at once, and what is made on the way

_tasks = 0


def task_done() -> None:
    """Take note that this process has done a task of ours, if it is a worker of Spark's daemon."""
    global _tasks  # noqa: PLW0603 - it is about the process
    if _tasks >= SET_ASIDE_AFTER[-1] or not is_worker():
        return
    _tasks += 1
    if _tasks in SET_ASIDE_AFTER:
        gc.collect()
        gc.freeze()


def is_worker() -> bool:
    """Tell whether this process was started by Spark's daemon."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name == DAEMON
