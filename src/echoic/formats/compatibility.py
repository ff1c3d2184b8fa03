"""Compatibility of two versions of a type, in the words of schema registries.

BACKWARD   a reader with the new type reads events of the old one    (upgrade the sinks first)
FORWARD    a reader with the old type reads events of the new one    (upgrade the sources first)
FULL       both: upgrade in any order
NONE       neither
"""

import enum
from dataclasses import dataclass

from echoic.formats.format import Format
from echoic.formats.matching import mismatches

__all__ = ["Compatibility", "CompatibilityReport", "compatibility"]


class Compatibility(enum.Enum):
    """Who can read whom."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"


@dataclass(frozen=True, slots=True)
class CompatibilityReport:
    """The verdict, and what stands in the way of a better one."""

    level: Compatibility
    backward_problems: tuple[str, ...]
    forward_problems: tuple[str, ...]


def compatibility(old: object, new: object, *, narrow: bool = False) -> CompatibilityReport:
    """Compare two versions of an event type.

    Raises:
        FormatError: One of them is not an event type.
    """
    before, after = Format.of(old), Format.of(new)
    backward = mismatches(before, after, narrow=narrow)
    forward = mismatches(after, before, narrow=narrow)
    levels = {
        (True, True): Compatibility.FULL,
        (True, False): Compatibility.BACKWARD,
        (False, True): Compatibility.FORWARD,
        (False, False): Compatibility.NONE,
    }
    return CompatibilityReport(levels[not backward, not forward], backward, forward)
