"""Processes that share the work of a trial."""

import time
from contextlib import suppress

from echoic.testing.trials.pools import pool

TASKS = 1000


def test_what_was_handed_out_is_done() -> None:
    with pool(2) as workers:
        assert list(workers.map(abs, range(-TASKS, 0))) == list(range(TASKS, 0, -1))


def test_who_is_interrupted_does_not_wait_for_what_nobody_has_begun() -> None:
    with suppress(KeyboardInterrupt), pool(1) as workers:
        tasks = [workers.submit(time.sleep, 0.5) for _ in range(TASKS)]
        raise KeyboardInterrupt
    assert sum(task.cancelled() for task in tasks) > TASKS / 2
