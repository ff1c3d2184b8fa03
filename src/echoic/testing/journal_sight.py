"""What a reader sees of a journal on a simulated disk, as sets that can be compared."""

import msgspec

from echoic.recorder.reader import ALWAYS, Hole, Missing, PartitionReader, Span
from echoic.recorder.shelf import LocalShelf
from echoic.recorder.storage import Storage
from echoic.testing.journal_events import record_of, records_of
from echoic.testing.ledger import check

__all__ = ["Seen", "Sight", "see"]


class Seen(msgspec.Struct, frozen=True, order=True):
    """One event that was delivered, with the bytes it must have."""

    sequence: int
    source: int
    number: int


class Sight(msgspec.Struct, frozen=True):
    """For each partition what was delivered, what could not be, and what is said to be missing."""

    events: list[set[Seen]]
    holes: list[set[int]]
    missing: list[list[tuple[int, int, int]]]
    heads: tuple[int, ...]


def see(storage: Storage, channel: str, span: Span = ALWAYS) -> Sight:
    """Read a whole journal, or what was recorded in some time.

    Raises:
        AssertionError: An event has other bytes than its own, or came out of order or twice.
        JournalError: The journal cannot be read at all.
    """
    shelf = LocalShelf(storage, channel)
    try:
        sight = Sight([], [], [], shelf.heads())
        for partition, (first, head) in enumerate(zip(shelf.firsts(), sight.heads, strict=True)):
            _see_partition(PartitionReader(shelf, partition, first, span), head, sight, whole=span is ALWAYS)
    finally:
        shelf.close()
    return sight


def _see_partition(reader: PartitionReader, head: int, sight: Sight, *, whole: bool) -> None:
    events: set[Seen] = set()
    holes: set[int] = set()
    missing: list[tuple[int, int, int]] = []
    due = reader.position
    for found in reader.read(head):
        match found:
            case Hole(first=first, last=last):
                check(first == due or not whole, f"a hole begins with {first}, expected {due}")
                holes.update(range(first, last + 1))
                due = last + 1
            case Missing(source=source, first=first, last=last):
                missing.append((source, first, last))
            case recorded:
                due = recorded.sequence if not whole else due
                check(recorded.sequence == due, f"an event has {recorded.sequence}, expected {due}")
                for place, record in enumerate(records_of(recorded.batch)):
                    number = recorded.first + place
                    same = (recorded.batch.format.token, record) == record_of(recorded.source, number)
                    check(same, f"event {number} of source {recorded.source} is delivered with other bytes")
                    events.add(Seen(recorded.sequence + place, recorded.source, number))
                due += recorded.count
    check(due == head or not whole, f"the reader ended at {due}, expected {head}")
    sight.events.append(events)
    sight.holes.append(holes)
    sight.missing.append(missing)
