r"""Aldebaran files (`.aut`), which mCRL2 and CADP read.

    des (0, 3, 2)                  the first state, how many transitions, how many states
    (0, "snd-msg(get(0))", 1)
    (1, "tau", 0)
    (1, "printf(\"a\")", 1)

Labels are quoted; a quote or backslash within is written with a backslash, a line end as `\n`.
"""

import re
from typing import Final

from echoic.errors import MalformedFormatError
from echoic.scripts.exploring.transition_systems import TransitionSystem

__all__ = ["read_aut", "write_aut"]

HEAD: Final = re.compile(r"\s*des\s*\(\s*(\d{1,18})\s*,\s*(\d{1,18})\s*,\s*(\d{1,18})\s*\)\s*")
LINE: Final = re.compile(r'\(\s*(\d{1,18})\s*,\s*(?:"((?:[^"\\]|\\.)*)"|([^",]+?))\s*,\s*(\d{1,18})\s*\)\s*')
ESCAPED: Final = re.compile(r"\\(.)")


def write_aut(system: TransitionSystem) -> str:
    """Return a transition system as the text of an `.aut` file."""
    lines = [f"des ({system.initial}, {len(system.transitions)}, {system.states})"]
    lines += [f'({source}, "{_quoted(label)}", {target})' for source, label, target in system.transitions]
    return "\n".join(lines) + "\n"


def read_aut(text: str) -> TransitionSystem:
    """Return the transition system of an `.aut` file.

    Raises:
        MalformedFormatError: The text is none, or contradicts its first line.
    """
    head = HEAD.match(text)
    if head is None:
        raise MalformedFormatError("an .aut file begins with `des (first, transitions, states)`")
    initial, count, states = map(int, head.groups())
    transitions = []
    for number, line in enumerate(text[head.end() :].split("\n"), 2):
        if not line.strip():
            continue
        found = LINE.fullmatch(line.strip())
        if found is None:
            raise MalformedFormatError(f"line {number} of an .aut file is no transition")
        source, quoted, bare, target = found.groups()
        label = bare if quoted is None else ESCAPED.sub(_unescaped, quoted)
        transitions.append((int(source), label, int(target)))
    if len(transitions) != count:
        raise MalformedFormatError(f"an .aut file announced {count} transitions, and has {len(transitions)}")
    if any(source >= states or target >= states for source, _, target in transitions):
        raise MalformedFormatError(f"an .aut file announced {states} states, and has others")
    return TransitionSystem(states, tuple(transitions), initial)


def _quoted(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")


def _unescaped(found: re.Match[str]) -> str:
    return {"n": "\n", "r": "\r"}.get(found[1], found[1])
