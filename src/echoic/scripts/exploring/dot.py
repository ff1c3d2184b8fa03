"""Graphviz files (`.dot`), for people to look at."""

from collections.abc import Collection

from echoic.scripts.exploring.transition_systems import TransitionSystem

__all__ = ["write_dot"]


def write_dot(system: TransitionSystem, *, stuck: Collection[int] = (), name: str = "script") -> str:
    """Return a transition system as the text of a `.dot` file; `stuck` states are red, final ones have two rings."""
    lines = [f'digraph "{_quoted(name)}" {{', "  rankdir=LR;", "  node [shape=circle];"]
    lines.append(f'  start [shape=point]; start -> "{system.initial}";')
    ending = set(range(system.states)) - {source for source, _, _ in system.transitions}
    lines += [f'  "{state}" [shape=doublecircle];' for state in sorted(ending - set(stuck))]
    lines += [f'  "{state}" [color=red, style=bold];' for state in sorted(stuck)]
    lines += [f'  "{source}" -> "{target}" [label="{_quoted(label)}"];' for source, label, target in system.transitions]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
