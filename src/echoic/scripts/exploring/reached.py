"""What was reached: the states and transitions of an exploration, in arrays of numbers.

States are numbered in the order in which they were found, breadth first, so the first way to a state is one with the
fewest steps. The transitions of a state stand together:

    starts     0      2         5            of state 0, 1, 2, ...
    steps      s  s | s  s  s | ...
    targets    1  2 | 0  3  4 | ...
"""

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from echoic.scripts.exploring.transition_systems import TransitionSystem

if TYPE_CHECKING:
    from echoic.scripts.exploring.steps import Step
    from echoic.scripts.exploring.successors import State

__all__ = ["Reached"]


class Reached:
    """States and transitions; those up to `expanded` have all their transitions here, the rest were not looked at."""

    def __init__(self, steps: "list[Step]") -> None:
        self.all_steps = steps
        self.states: list[State] = []
        self.starts = array("Q", [0])
        self.steps = array("L")
        self.targets = array("L")
        self.origins = array("q")  # by which transition a state was found, -1 for the first
        self.cut: set[int] = set()  # states of which transitions were left out
        self.reduced = 0  # states of which only enough transitions were looked at

    @property
    def expanded(self) -> int:
        """How many states were looked at."""
        return len(self.starts) - 1

    def targets_of(self, state: int) -> "array[int]":
        """Return the states behind a state."""
        if state >= self.expanded:
            return array("L")
        return self.targets[self.starts[state] : self.starts[state + 1]]

    def steps_of(self, state: int) -> "array[int]":
        """Return the steps from a state."""
        if state >= self.expanded:
            return array("L")
        return self.steps[self.starts[state] : self.starts[state + 1]]

    def trace(self, state: int) -> "tuple[Step, ...]":
        """Return the steps by which a state was first reached."""
        found = []
        while (transition := self.origins[state]) >= 0:
            found.append(self.all_steps[self.steps[transition]])
            state = bisect_right(self.starts, transition) - 1
        return tuple(reversed(found))

    def trace_with(self, transition: int) -> "tuple[Step, ...]":
        """Return the steps by which the state before a transition was first reached, and that of the transition."""
        state = bisect_right(self.starts, transition) - 1
        return (*self.trace(state), self.all_steps[self.steps[transition]])

    def system(self) -> TransitionSystem:
        """Return the same as a labelled transition system."""
        transitions = tuple(
            (state, self.all_steps[step].text, target)
            for state in range(self.expanded)
            for step, target in zip(self.steps_of(state), self.targets_of(state), strict=True)
        )
        return TransitionSystem(len(self.states), transitions)
