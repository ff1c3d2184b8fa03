"""On which processors source and sinks run.

Where the kernel puts two processes decides more about a round trip than anything they do: 16 us for raw sockets on one
processor, around 50 when another one has to be woken for every event, changing from sample to sample when left alone
(2 cores of a virtual machine). So round trips are measured with both in fixed places, together and apart, the same for
all. With more processes than processors, and for rates, the kernel is left to it.

The source's thread is pinned here, and what it starts inherits that; a peer reads its own place from the environment.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

__all__ = ["Placement", "place", "released", "take_place"]

VARIABLE = "ECHOIC_BENCH_PROCESSOR"


class Placement(Enum):
    """Where the two sides of a round trip are."""

    FREE = "wherever the kernel puts them"
    TOGETHER = "source and sink on one processor"
    APART = "source and sink on a processor each"

    @property
    def possible(self) -> bool:
        """Whether this machine can do it."""
        if self is Placement.FREE:
            return True
        needed = 2 if self is Placement.APART else 1
        return hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) >= needed


@contextmanager
def place(placement: Placement) -> Iterator[None]:
    """Put this thread, and the peers that are started meanwhile, where `placement` wants them."""
    if placement is Placement.FREE or not placement.possible:
        yield
        return
    before = os.sched_getaffinity(0)
    here, *others = sorted(before)
    os.environ[VARIABLE] = str(others[0] if placement is Placement.APART else here)
    os.sched_setaffinity(0, {here})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
        del os.environ[VARIABLE]


@contextmanager
def released() -> Iterator[None]:
    """Let what is started meanwhile run anywhere: a server that belongs to neither side."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def take_place() -> None:
    """Go where the measuring process wants this peer to be."""
    if VARIABLE in os.environ:
        os.sched_setaffinity(0, {int(os.environ[VARIABLE])})
