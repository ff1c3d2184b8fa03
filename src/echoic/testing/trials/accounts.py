"""Accounts of a sink: every event that was submitted was delivered or told as missing, none both, none twice.

Events of one source are numbered from 0; what a sink has got, and what it was told that it will not get, are *spans*,
pairs of the first and the last number.
"""

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

__all__ = ["Ledger", "Span", "Spans", "check_accounts"]

Span: TypeAlias = tuple[int, int]
SHOWN_MAX: Final = 3


class Spans:
    """Numbers in the order in which they came, those that follow each other as one span."""

    def __init__(self) -> None:
        self.all: Final[list[Span]] = []
        self.count = 0

    def add(self, first: int, last: int) -> None:
        """Add consecutive numbers."""
        self.count += last - first + 1
        if self.all and self.all[-1][1] + 1 == first:
            self.all[-1] = (self.all[-1][0], last)
        else:
            self.all.append((first, last))


class Ledger:
    """The same accounts kept at once, for sinks that live long: whatever was settled is one span, however many gaps."""

    def __init__(self) -> None:
        self.settled: Final[list[Span]] = []
        """What was delivered or told as missing, in order, without those that touch each other."""
        self.missing = 0
        self.problems: Final[list[str]] = []
        self._last = -1

    def got(self, number: int) -> None:
        """Note an event that was delivered."""
        if number <= self._last:
            self._complain(f"{number} came after {self._last}")
        self._last = number
        self._settle(number, number)

    def missed(self, first: int, last: int) -> None:
        """Note events that were told as missing."""
        self.missing += last - first + 1
        self._settle(first, last)

    def _settle(self, first: int, last: int) -> None:
        settled = self.settled
        place = bisect_left(settled, (first, last))
        before = settled[place - 1] if place else None
        after = settled[place] if place < len(settled) else None
        if (before is not None and before[1] >= first) or (after is not None and after[0] <= last):
            self._complain(f"{first} to {last} was settled twice")
            return
        if before is not None and before[1] + 1 == first:
            first = before[0]
            place -= 1
            del settled[place]
        if after is not None and after[0] == last + 1:
            last = after[1]
            del settled[place]
        settled.insert(place, (first, last))

    def _complain(self, problem: str) -> None:
        if len(self.problems) < SHOWN_MAX:
            self.problems.append(problem)


def check_accounts(
    who: str, total: int, delivered: Sequence[Span], missing: Sequence[Span] = (), *, since: int = 0
) -> list[str]:
    """Return what is wrong with the accounts of a sink that was there since an event, when there were `total`."""
    problems = [f"{who} was delivered {later} after {former}" for former, later in _disorder(delivered)][:SHOWN_MAX]
    following = since
    for first, last in sorted([*map(tuple, delivered), *map(tuple, missing)]):
        if first > following:
            problems.append(f"{who} has neither got {following} to {first - 1}, nor was it told of a gap")
        if first < following:
            problems.append(f"{who} has got, or was told as missing, {first} to {min(last, following - 1)} twice")
        following = max(following, last + 1)
    if following != total:
        problems.append(f"the accounts of {who} end with {following} events, expected {total}")
    return problems[:SHOWN_MAX]


def _disorder(delivered: Iterable[Span]) -> list[tuple[Span, Span]]:
    spans = list(delivered)
    return [(former, later) for former, later in itertools.pairwise(spans) if later[0] <= former[1]]
