"""What a journal holds, event by event: for those who check that nothing is missing."""

from typing import Any

from echoic.recorder import Journal, LocalShelf, Storage

__all__ = ["events_of"]


def events_of(storage: Storage, channel: str) -> dict[int, list[Any]]:
    """Return all events of a journal, by source, in the order in which they were recorded.

    Raises:
        JournalError: It cannot be read.
    """
    found: dict[int, list[Any]] = {}
    journal = Journal(LocalShelf(storage, channel))
    for partition in range(journal.partitions):
        for recorded in journal.read(partition=partition):
            found.setdefault(recorded.source, []).extend(recorded.batch.events())
    return found
