"""Strongly connected components: states that can all reach each other (Tarjan 1972, without recursion)."""

from collections.abc import Callable, Sequence

__all__ = ["components_of"]


def components_of(states: int, targets_of: Callable[[int], Sequence[int]]) -> list[int]:
    """Return for each state the number of its component; a component can only reach those with smaller numbers."""
    component = [-1] * states
    index = [-1] * states
    low = [0] * states
    stack: list[int] = []
    count = found = 0
    for root in range(states):
        if index[root] >= 0:
            continue
        path: list[tuple[int, Sequence[int], int]] = [(root, targets_of(root), 0)]
        index[root] = low[root] = count
        count += 1
        stack.append(root)
        while path:
            state, targets, position = path.pop()
            if position < len(targets):
                path.append((state, targets, position + 1))
                target = targets[position]
                if index[target] < 0:
                    index[target] = low[target] = count
                    count += 1
                    stack.append(target)
                    path.append((target, targets_of(target), 0))
                elif component[target] < 0:
                    low[state] = min(low[state], index[target])
                continue
            if path:
                parent = path[-1][0]
                low[parent] = min(low[parent], low[state])
            if low[state] == index[state]:
                while True:
                    member = stack.pop()
                    component[member] = found
                    if member == state:
                        break
                found += 1
    return component
