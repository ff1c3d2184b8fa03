"""Which indices a log has behind its snapshot, and of which terms: what must be known to check writes, and no more.

    snapshot     entries
    | ... 40 |   41 42 43 44 45 46 47          start 40, end 47
    term 3       3  3  3  5  5  5  6           runs (41, 3) (44, 5) (47, 6)

Terms change with leaders, not with entries, so a few runs stand for a million of entries.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter

from echoic.errors import LocalError
from echoic.groups.writes import Entry

__all__ = ["Extent"]


class Extent:
    """The indices from `start`, which is the snapshot's, to `end`, which is that of the last entry.

    Invariant: `start <= end`; runs lie in (start, end], sorted, and the first begins at start + 1 if there are entries.
    """

    def __init__(self, index: int = 0, term: int = 0) -> None:
        self.start = self.end = index
        self._start_term = term
        self._runs: list[tuple[int, int]] = []

    def term_of(self, index: int) -> int | None:
        """Return the term of the entry at an index, None if there is none; that of the snapshot at its own."""
        if index == self.start:
            return self._start_term
        if not self.start < index <= self.end:
            return None
        return self._runs[self._place(index)][1]

    def append(self, first: int, entries: Iterable[Entry]) -> None:
        """Put entries at an index, in place of all that was there from it on.

        Raises:
            LocalError: Entries would be missing before them, or they are in the snapshot already.
        """
        if not self.start < first <= self.end + 1:
            raise LocalError(f"entries were given from index {first} on, expected {self.start + 1} to {self.end + 1}")
        self._cut(first - 1)
        term = self._runs[-1][1] if self._runs else None
        for entry in entries:
            self.end += 1
            if entry.term != term:
                term = entry.term
                self._runs.append((self.end, term))

    def check_snapshot(self, index: int) -> None:
        """Do nothing if a snapshot is not behind the one that is there.

        Raises:
            LocalError: It is.
        """
        if index < self.start:
            raise LocalError(f"a snapshot was given of index {index}, there is one of {self.start}")

    def compact(self, index: int, term: int) -> None:
        """Forget what is up to a snapshot; everything, if the entry at its index is not there or of another term."""
        if self.term_of(index) != term:
            self.end, self._runs = index, []
        elif index > self.start:
            place = self._place(index)
            kept = [(index + 1, self._runs[place][1]), *self._runs[place + 1 :]]
            # The entry at the index may be the last of its run.
            self._runs = kept[1:] if len(kept) > 1 and kept[1][0] == index + 1 else kept
            self._cut(self.end)
        self.start, self._start_term = index, term

    def _place(self, index: int) -> int:
        return bisect_right(self._runs, index, key=itemgetter(0)) - 1

    def _cut(self, end: int) -> None:
        """Leave nothing behind an index."""
        while self._runs and self._runs[-1][0] > end:
            self._runs.pop()
        self.end = end
