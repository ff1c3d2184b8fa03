"""Limits of a machine: nothing in it grows without end."""

from dataclasses import dataclass

__all__ = ["MachineLimits"]


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """How much a machine keeps.

    Beyond a limit `create`, `execute` and connecting are not possible until something has ended; of a full queue of
    notes the oldest goes, and what a tool says beyond its queues is not taken. Each is told by `Warned`, once for
    each process or tool, and counted.
    """

    processes_max: int = 200_000
    tools_max: int = 10_000
    notes_per_process_max: int = 10_000
    subscriptions_per_process_max: int = 1_000
    messages_per_tool_max: int = 10_000
    lines_max: int = 1_000
    warnings_max: int = 10_000
