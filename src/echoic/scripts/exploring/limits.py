"""Limits of an exploration: it ends, and says when it has not looked at everything."""

from dataclasses import dataclass

__all__ = ["ExplorationLimits"]


@dataclass(frozen=True, slots=True)
class ExplorationLimits:
    """How much is looked at.

    Beyond `states_max` or `transitions_max` the exploration stops. What would go beyond one of the others, a longer
    queue of notes, one more process or tool, is left out, and the exploration goes on with the rest.
    """

    states_max: int = 1_000_000
    transitions_max: int = 5_000_000
    notes_per_process_max: int = 4
    processes_max: int = 100
    tools_max: int = 20
    findings_per_kind_max: int = 20
