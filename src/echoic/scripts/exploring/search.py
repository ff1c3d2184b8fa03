"""The search: breadth first through everything that a program can do.

A reduced search takes the steps of one process only, where they are enough (`successors.py`). It must not put off what
others could do forever (the cycle proviso): one of the steps has to lead to a state that is looked at later than this
one, so that following such steps ends in a state of which all steps are taken. Then whatever can be done at all is
done somewhere, every state without a step is found, and so is every local state.
"""

from collections.abc import Callable

from echoic.scripts.exploring.limits import ExplorationLimits
from echoic.scripts.exploring.reached import Reached
from echoic.scripts.exploring.successors import HALTED, State, Successor, Successors

__all__ = ["search"]


def search(
    reached: Reached,
    successors: Successors,
    limits: ExplorationLimits,
    *,
    reduce: bool,
    wanted: Callable[[State], bool] | None = None,
) -> int | None:
    """Fill `reached`; return the first state that is `wanted`, with which the search ends, if there is one."""
    states = reached.states
    initial = successors.initial()
    states.append(initial)
    reached.origins.append(-1)
    seen: dict[State, int] = {initial: 0}
    number = 0
    while number < len(states):
        if len(states) > limits.states_max or len(reached.targets) > limits.transitions_max:
            what = "states" if len(states) > limits.states_max else "transitions"
            limit = limits.states_max if what == "states" else limits.transitions_max
            successors.left_out[f"what comes after {limit} {what}"] = None
            return None
        state = states[number]
        if wanted is not None and wanted(state):
            return number
        following = _enough(successors, state, seen, number) if reduce else []
        if following:
            reached.reduced += 1
        elif state != HALTED:
            following = successors.all(state)
            if successors.cut:
                successors.cut = False
                reached.cut.add(number)
        for step, target in following:
            found = seen.get(target)
            if found is None:
                found = seen[target] = len(states)
                states.append(target)
                reached.origins.append(len(reached.targets))
            reached.steps.append(step)
            reached.targets.append(found)
        reached.starts.append(len(reached.targets))
        number += 1
    return None


def _enough(successors: Successors, state: State, seen: dict[State, int], number: int) -> list[Successor]:
    """Return the steps of one process that are enough, none where there is no such process."""
    position = 0
    while True:
        position, following = successors.ample(state, position)
        if not position:
            return []
        if any(seen.get(target, number + 1) > number for _, target in following):
            return following
