"""The log: the entries of the order, as far as this member has them, from the last snapshot on.

    index   base     base+1 ...              last
            |snapshot| entry | entry | entry |
            <-- applied --><-- committed -->< may yet be replaced >

It notes every change as a write (`writes`) for whoever keeps the log on a disk.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from echoic.errors import MalformedFrameError
from echoic.groups.standing import Standing, decode_standing
from echoic.groups.writes import Append, Ballot, Entry, Image, Snapshot, Write

__all__ = ["ENTRY_BYTES", "Log"]

ENTRY_BYTES: Final = 64
"""What an entry costs beside its payload, roughly."""


class Log:
    """Entries in memory, and what stands for those before them."""

    def __init__(self, image: Image) -> None:
        """Go on from what was found on a disk.

        Raises:
            MalformedFrameError: The snapshot cannot be read.
        """
        snapshot = image.snapshot
        self.base: Standing = decode_standing(snapshot.body) if snapshot is not None else Standing()
        """How things stand at the snapshot, or at the very beginning."""
        self.base_term = snapshot.term if snapshot is not None else 0
        self.writes: list[Write] = []
        self._entries: list[Entry] = list(image.entries)
        self._ends: list[int] = list(_ends_of(self._entries, 0))
        """For each entry how many bytes there are up to its end, counted from the beginning of time."""
        self._gone_bytes = 0

    @property
    def base_index(self) -> int:
        """The index of the last entry that is no more."""
        return self.base.index

    @property
    def last(self) -> int:
        """The index of the last entry."""
        return self.base.index + len(self._entries)

    @property
    def last_term(self) -> int:
        """The term of the last entry."""
        return self._entries[-1].term if self._entries else self.base_term

    @property
    def entry_bytes(self) -> int:
        """How many bytes the entries have."""
        return self._ends[-1] - self._gone_bytes if self._ends else 0

    def bytes_after(self, index: int) -> int:
        """Return how many bytes the entries behind an index have; all that are there, if it lies before them."""
        place = index - self.base.index - 1
        if place >= 0:
            return self._ends[-1] - self._ends[place] if self._ends else 0
        return self.entry_bytes

    def term_at(self, index: int) -> int:
        """Return the term of an entry from `base_index` to `last`."""
        return self.base_term if index == self.base.index else self._entries[index - self.base.index - 1].term

    def __getitem__(self, index: int) -> Entry:
        return self._entries[index - self.base.index - 1]

    def between(self, first: int, end: int) -> list[Entry]:
        """Return the entries from one index to another, that excluded."""
        start = self.base.index + 1
        return self._entries[first - start : end - start]

    def portion(self, first: int, bytes_max: int) -> list[Entry]:
        """Return entries from an index on, as many as have so many bytes together, and at least one."""
        taken = 0
        for end in range(first, self.last + 1):
            taken += len(self[end].payload) + ENTRY_BYTES
            if taken >= bytes_max:
                return self.between(first, end + 1)
        return self.between(first, self.last + 1)

    def append(self, first: int, entries: Sequence[Entry]) -> None:
        """Put entries at an index, in the place of all that the log has from there on."""
        cut = first - self.base.index - 1
        if cut < len(self._entries):
            del self._entries[cut:]
            del self._ends[cut:]
        self._ends.extend(_ends_of(entries, self._ends[-1] if self._ends else self._gone_bytes))
        self._entries.extend(entries)
        self.writes.append(Append(first, tuple(entries)))

    def vote(self, term: int, vote: str) -> None:
        """Note in which term this member is, and whom it has voted for."""
        self.writes.append(Ballot(term, vote))

    def standing_at(self, index: int) -> Standing:
        """Return how things stand after an entry from `base_index` to `last`."""
        return self.base.copy().advance_all(self.between(self.base.index + 1, index + 1))

    def compact(self, index: int, summary: bytes, chunks: Sequence[bytes]) -> None:
        """Forget the entries up to an index, for which a snapshot stands."""
        standing, term = self.standing_at(index), self.term_at(index)
        gone = index - self.base.index
        if gone:
            self._gone_bytes = self._ends[gone - 1]
        del self._entries[:gone]
        del self._ends[:gone]
        self.base, self.base_term = standing, term
        self.writes.append(Snapshot(index, term, standing.encode(), summary, tuple(chunks)))

    def install(self, snapshot: Snapshot) -> None:
        """Begin behind another member's snapshot; what the log has after it stays, if it is the same log.

        Raises:
            MalformedFrameError: The snapshot cannot be read.
        """
        standing = decode_standing(snapshot.body)
        if standing.index != snapshot.index:
            raise MalformedFrameError(f"a snapshot of {snapshot.index} has a body of {standing.index}")
        kept: list[Entry] = []
        if self.base.index <= snapshot.index <= self.last and self.term_at(snapshot.index) == snapshot.term:
            kept = self.between(snapshot.index + 1, self.last + 1)
        self._entries = kept
        self._gone_bytes, self._ends = 0, list(_ends_of(kept, 0))
        self.base, self.base_term = standing, snapshot.term
        self.writes.append(snapshot)


def _ends_of(entries: Iterable[Entry], before: int) -> Iterator[int]:
    for entry in entries:
        before += len(entry.payload) + ENTRY_BYTES
        yield before
