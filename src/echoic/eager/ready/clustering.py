"""Clustering: several events as one event that holds an array of them.

The receiver that does not know about clusters sees an ordinary event type, `{count, events[count]}`, which every
language and Arrow can read; `Uncluster` makes single events of it again. The type depends on that of the events, so it
must be told here which that is.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

from echoic.eager.modulator import Demodulator
from echoic.eager.ready.gathering import Gathering
from echoic.formats import NATIVE, Field, Format, Kind, bind
from echoic.wire import Batch

__all__ = ["Cluster", "Uncluster", "cluster_format"]

COUNT: Final = 100


class Cluster(Gathering):
    """Send several events as one that holds an array of them.

    Args:
        declared: The type of the events.
        count: How many go together.
        period_ns: After which time fewer go together; 0 for never.

    Raises:
        LocalError: An argument is out of range, or `declared` is not an event type.
    """

    def __init__(self, declared: object, *, count: int = COUNT, period_ns: int = 0) -> None:
        self.gather(count, period_ns)
        self.output = cluster_format(declared)  # type: ignore[misc] # of this object: every event type has its own

    @classmethod
    def pair(cls, declared: object, *, count: int = COUNT, period_ns: int = 0) -> "tuple[Cluster, Uncluster]":
        """Return a modulator that clusters and the demodulator for it; the arguments are those of both.

        Raises:
            LocalError: An argument is out of range, or `declared` is not an event type.
        """
        return cls(declared, count=count, period_ns=period_ns), Uncluster(declared)

    def joined(self, events: Sequence[object]) -> object:
        """Return several events as one."""
        return {"count": len(events), "events": events}


class Uncluster(Demodulator):
    """Make single events of clusters.

    Args:
        declared: The event type in which to receive them; without one, as they come.
    """

    def __init__(self, declared: object | None = None) -> None:
        self._declared: Final = declared
        self._class: Final = declared if isinstance(declared, type) else None

    def enqueue(self, event: object) -> None:
        """Queue the events of a cluster.

        Raises:
            IncompatibleTypesError: They cannot be received as the sink's type.
        """
        events = list(cast("Any", event).events)
        if events and self._declared is not None and type(events[0]) is not self._class:
            events = Batch.of(events, bind(type(events[0])).format).to(self._declared).events()
        for each in events:
            super().enqueue(each)


def cluster_format(declared: object) -> Format:
    """Return the type of clusters of events.

    Raises:
        FormatError: `declared` is not an event type.
    """
    inside = Format.of(declared).on(NATIVE)
    fields = [
        Field("count", Kind.UINT, 4),
        Field("events", Kind.RECORD, inside.size, dimensions=("count",), record=inside),
    ]
    return Format.place(f"{inside.name}Cluster"[:128], fields, NATIVE)
