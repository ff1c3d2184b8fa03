"""A worker of Spark's daemon sets aside what it has loaded, and other processes do not."""

import subprocess
import sys

from echoic.spark.worker_memory import is_worker

AS_DAEMON = """
import gc, sys
from importlib.machinery import ModuleSpec
sys.modules["__main__"].__spec__ = ModuleSpec({name!r}, None)
from echoic.spark.worker_memory import SET_ASIDE_AFTER, task_done
told, made = [], []
for _ in range(SET_ASIDE_AFTER[-1] + 1):
    made.append([])
    task_done()
    told.append(gc.get_freeze_count())
print(told[0], told[SET_ASIDE_AFTER[-1] - 2], told[-2], told[-1])
"""


def frozen(name: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", AS_DAEMON.format(name=name)], capture_output=True, text=True, check=True, timeout=60
    )
    return [int(word) for word in done.stdout.split()]


def test_a_worker_sets_aside_what_it_has_after_its_first_task_and_once_more() -> None:
    first, before, after, last = frozen("pyspark.daemon")
    assert first > 1000
    assert first == before < after == last


def test_another_process_keeps_what_it_has_in_sight() -> None:
    assert frozen("somebody.else") == [0, 0, 0, 0]


def test_this_process_is_no_worker() -> None:
    assert not is_worker()
