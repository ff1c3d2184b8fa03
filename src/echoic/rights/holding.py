"""The rules that are about one name, so that others cost nothing when that one asks.

A hub may have ten thousand rules and show a listing of as many channels to somebody: looking at every rule for each of
the six rights to each channel would take minutes. A name has few rules, most of them about a channel that they spell
out, which is found without looking at any other.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from echoic.rights.rule import Rule

if TYPE_CHECKING:
    from echoic.rights.right import Right

__all__ = ["NOTHING", "Holding", "Verdict"]


class Verdict:
    """What the rules about one name come to for one channel."""

    __slots__ = ("allowed", "denied", "rules")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules: Final = rules
        denied = {right for rule in rules if not rule.allow for right in rule.rights}
        self.denied: Final[frozenset[Right]] = frozenset(denied)
        self.allowed: Final[frozenset[Right]] = frozenset(right for rule in rules for right in rule.rights) - denied


NOTHING: Final = Verdict(())


class Holding:
    """The rules about one name, by the channels that they are about."""

    __slots__ = ("_exact", "_patterns", "_starts")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._exact: dict[str, list[tuple[int, Rule]]] = {}
        self._patterns: list[tuple[int, Rule]] = []
        for place, rule in enumerate(rules):
            text = rule.channels.text
            (self._patterns if "*" in text else self._exact.setdefault(text, [])).append((place, rule))
        self._starts = tuple({rule.channels.text.partition("*")[0] for _, rule in self._patterns})

    def verdict(self, channel: str) -> Verdict:
        """Return what the rules come to for a channel."""
        found = list(self._exact.get(channel, ()))
        if channel.startswith(self._starts):  # else none of the patterns can match it
            found += [each for each in self._patterns if each[1].channels.matches(channel)]
        return Verdict(tuple(rule for _, rule in sorted(found, key=_place))) if found else NOTHING


def _place(found: tuple[int, Rule]) -> int:
    return found[0]
