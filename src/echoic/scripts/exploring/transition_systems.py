"""Labelled transition systems: states that are numbers, and steps between them that are texts.

This is what other programs understand. `minimise` returns the smallest system that does the same (strong bisimulation):
states are told apart only as far as what can be done in them differs, now or ever.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["TransitionSystem", "minimise"]


@dataclass(frozen=True, slots=True)
class TransitionSystem:
    """States from 0 on, as many as `states`, and transitions (source, label, target); it begins in `initial`."""

    states: int
    transitions: tuple[tuple[int, str, int], ...]
    initial: int = 0


def minimise(system: TransitionSystem) -> TransitionSystem:
    """Return the smallest system that is strongly bisimilar to one, its states in order of their first member.

    Partition refinement: states begin in one block, and are told apart by the labels they have into which blocks until
    nothing changes. Each round costs as much as there are transitions, and there are at most as many rounds as states.
    """
    outgoing: list[list[tuple[str, int]]] = [[] for _ in range(system.states)]
    for source, label, target in system.transitions:
        outgoing[source].append((label, target))
    blocks = [0] * system.states
    count = 1 if system.states else 0
    while True:
        refined, found = _refine(blocks, outgoing)
        if found == count:
            break
        blocks, count = refined, found
    kept = {(blocks[source], label, blocks[target]): None for source, label, target in system.transitions}
    return TransitionSystem(count, tuple(sorted(kept)), blocks[system.initial] if system.states else 0)


def _refine(blocks: Sequence[int], outgoing: Sequence[Sequence[tuple[str, int]]]) -> tuple[list[int], int]:
    """Return states told apart by where their transitions lead, and how many blocks there are."""
    numbers: dict[object, int] = {}
    refined = []
    for state, steps in enumerate(outgoing):
        key = (blocks[state], frozenset((label, blocks[target]) for label, target in steps))
        refined.append(numbers.setdefault(key, len(numbers)))
    return refined, len(numbers)
