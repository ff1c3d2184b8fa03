"""A trial: one fault, one rule that must hold through it, and how much of it is enough.

Every row of the campaign's table is a trial. Its `run` is given a size, a seed and somebody to tell how far it is, and
returns findings: figures for the record, and problems, of which there must be none. The size is a number in the
trial's own unit: kills, seeds, frames. A test run takes the small one, a release the large one, and anybody any other.
The same seed gives the same trial, as far as the operating system lets it.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, TypeAlias

import msgspec

from echoic.errors import LocalError

__all__ = ["BY_THE_CLOCK", "Figure", "Findings", "Run", "Tell", "Trial"]

PROBLEMS_MAX: Final = 20
BY_THE_CLOCK: Final = ", by the clock"
"""Ends every problem that is one of time or rate, for which others who use the machine may be to blame."""

Figure: TypeAlias = int | float | str
Tell: TypeAlias = Callable[[int], None]
"""Called with how much of the size is done."""


class Findings(msgspec.Struct, frozen=True):
    """What a trial has found."""

    problems: tuple[str, ...] = ()
    """What is wrong, one sentence each, with whatever is needed to see it again."""
    figures: Mapping[str, Figure] = {}
    """What was measured, by names that say the unit: `seconds`, `events`, `rss_growth_mb`."""

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def firm(self) -> tuple[str, ...]:
        """What is wrong whatever else the machine does: all problems but those of time."""
        return tuple(problem for problem in self.problems if not problem.endswith(BY_THE_CLOCK))


Run: TypeAlias = Callable[[int, int, Tell], Findings]
"""Takes size, seed and whom to tell."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the campaign."""

    number: int
    name: str
    fault: str
    """What is done to the system."""
    passes_when: str
    """What must hold."""
    unit: str
    """What the sizes count."""
    test_size: int
    release_size: int
    place: str
    """Where it is: `module:function`, or the file of a test if it needs what only tests have."""

    @property
    def runs_here(self) -> bool:
        """Whether `load` gives it; otherwise it is a test alone."""
        return ":" in self.place

    def load(self) -> Run:
        """Return what runs the trial.

        Raises:
            LocalError: It is a test alone, which pytest runs.
        """
        if not self.runs_here:
            raise LocalError(f"trial {self.name} needs what only tests have: ./run test {self.place} --release")
        module, _, function = self.place.partition(":")
        run: Run = getattr(import_module(module), function)
        return run
