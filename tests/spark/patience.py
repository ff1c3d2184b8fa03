"""Waiting for what Spark does: seconds where nothing else runs, minutes where much else does."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 240.0
LOOK_SECONDS = 0.1


def patiently(condition: Callable[[], object], what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS} s for {what}"
        time.sleep(LOOK_SECONDS)
