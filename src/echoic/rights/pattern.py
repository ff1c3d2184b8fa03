"""Patterns of names: `*` stands for any characters, also none, and everything else for itself.

    trades      just that
    trades*     trades, trades.eu, trades/eu
    lab/*/wind  lab/a/wind, lab/a/b/wind

One wildcard is enough for names that are paths of words, and can be read aloud. Regular expressions were the
alternative: some take exponential time, and an operator who forgets a `.` grants more than he has written.
"""

from functools import cached_property
from typing import Final

import msgspec

from echoic.errors import LocalError

__all__ = ["Pattern"]

PATTERN_CHARACTERS_MAX: Final = 200
LETTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@-/:*")


class Pattern(msgspec.Struct, frozen=True, dict=True):
    """A pattern of names. It compares and hashes by its text."""

    text: str

    def check(self) -> None:
        """Refuse a text that is no pattern.

        Raises:
            LocalError: Naming the rule.
        """
        if not 0 < len(self.text) <= PATTERN_CHARACTERS_MAX or not LETTERS.issuperset(self.text):
            raise LocalError(
                f"a pattern has 1 to {PATTERN_CHARACTERS_MAX} letters, digits, `_ - . @ / :`, and `*` for any of "
                f"them, got {self.text[:80]!r}"
            )

    @cached_property
    def _parts(self) -> list[str]:
        return self.text.split("*")

    def matches(self, name: str) -> bool:
        """Whether a name is one of those meant. Takes time in proportion to the name's length."""
        first, *rest = self._parts
        if not rest:
            return name == first
        last = rest.pop()
        if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
            return False
        place, end = len(first), len(name) - len(last)
        for part in rest:
            place = name.find(part, place, end)  # the first place leaves most room for the parts behind
            if place < 0:
                return False
            place += len(part)
        return True
