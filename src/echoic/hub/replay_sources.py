"""The sources of a replay: one for each that was recorded.

So who receives a replay can tell the sources apart as before, and has the events of each in the order in which it
submitted them. They have ids of their own: the recorded ones may still be at work, and a recording can be replayed
twice at a time. A recorded source that went on with another type, as one with a name can after its program was
changed, goes on here too: closed and opened again with the same id and the next number, it is one source to all sinks.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from echoic.errors import ClosedError
from echoic.formats import Format, mismatches
from echoic.hub.moving import SourceState
from echoic.hub.outbound import Source

if TYPE_CHECKING:
    from echoic.hub.channel import Channel

__all__ = ["ReplaySources", "common_type"]

SOURCES_MAX: Final = 4096


class ReplaySources:
    """A source for each recorded one. Of very many, those that are silent longest are closed and opened anew."""

    def __init__(self, channel: "Channel") -> None:
        self._channel = channel
        self._open: OrderedDict[int, Source] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    def ids(self) -> dict[int, int]:
        """Return the ids here, by recorded source."""
        with self._lock:
            return {recorded: source.id for recorded, source in self._open.items()}

    def of(self, recorded: int, format: Format) -> Source:
        """Return the source that stands for a recorded one, ready for events of a type.

        Raises:
            IncompatibleTypesError: The channel cannot have events of this type.
            ClosedError: The replay was closed.
        """
        with self._lock:
            source = self._open.get(recorded)
            if source is not None and source.format.token == format.token:
                self._open.move_to_end(recorded)
                return source
            if self._closed:
                raise ClosedError("the replay was closed")
            if source is not None:
                source = self._turn(source, format)
            else:
                source = self._channel.source(format)
                if len(self._open) >= SOURCES_MAX:
                    self._open.popitem(last=False)[1].close()
            self._open[recorded] = source
            return source

    def drain(self, timeout: float) -> None:
        """Wait until every sink has handled all events.

        Raises:
            DeliveryError: Naming those that did not answer in time.
            ClosedError: The hub was closed.
        """
        deadline = time.monotonic() + timeout
        with self._lock:
            sources = list(self._open.values())
        for source in sources:
            source.drain(max(0.0, deadline - time.monotonic()))

    def close(self) -> None:
        """End all sources."""
        with self._lock:
            self._closed = True
            for source in self._open.values():
                source.close()

    def _turn(self, source: Source, format: Format) -> Source:
        """Go on with another type: the same source to all sinks, with the next number."""
        state = SourceState(self._channel.id, source.id, source.position)
        source.close()
        return self._channel.source(format, resume=state)


def common_type(formats: Sequence[Format]) -> Format | None:
    """Return the latest of some types as which events of all of them can be received, None if there is none."""
    for target in reversed(formats):
        if not any(mismatches(format, target) for format in formats):
            return target
    return None
