"""What a process takes of its machine, as the kernel tells: memory, file descriptors, threads."""

import os
from pathlib import Path
from typing import Final

import msgspec

__all__ = ["MEGABYTE", "VitalSigns", "signs_of"]

MEGABYTE: Final = 1_000_000


class VitalSigns(msgspec.Struct, frozen=True):
    """A moment of a process."""

    resident_bytes: int
    descriptors: int
    threads: int
    processor_seconds: float = 0.0


def signs_of(pid: int) -> VitalSigns:
    """Return what a process takes now.

    Raises:
        OSError: It has ended.
    """
    process = Path("/proc") / str(pid)
    pages = int((process / "statm").read_text("ascii").split()[1])
    fields = (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    ticks, threads = int(fields[11]) + int(fields[12]), int(fields[17])
    descriptors = sum(1 for _ in (process / "fd").iterdir())
    return VitalSigns(
        pages * os.sysconf("SC_PAGE_SIZE"), descriptors, threads, round(ticks / os.sysconf("SC_CLK_TCK"), 2)
    )
