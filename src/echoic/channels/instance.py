"""A derivation's copy for one source: its static variables, where its events are derived, and what was done so far."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from echoic.channels.context import SourceContext

__all__ = ["Instance"]


class Instance:
    """A derivation's copy for one source. Only whoever submits that source's events touches it, one at a time."""

    __slots__ = (
        "busy_ns",
        "bytes_in",
        "bytes_out",
        "bytes_saved",
        "context",
        "events_in",
        "events_out",
        "here",
        "idle_since",
        "moved",
        "objection",
        "placed",
        "restored",
        "settled",
        "source",
        "spared_ns",
        "statics",
        "turned_batches",
        "turned_bytes",
        "turned_events",
    )

    def __init__(self, source: int, statics: bytes, *, here: bool) -> None:
        self.source: Final = source
        """The number under which the derived channel knows this source."""
        self.statics: bytes | bytearray = statics
        self.context: SourceContext | None = None
        self.objection = ""
        """Why the source does not let the code run, "" if it does."""
        self.restored: bytes | None = None
        self.here = here
        self.placed = True
        """Whether those who listen have been told where the events are derived."""
        self.idle_since = -1
        """How far the source was when nobody listened any more, and what it did since was counted; -1 if somebody does.
        """
        self.moved = not here
        """Whether they have ever had to be told."""
        self.events_in = self.events_out = self.bytes_in = self.bytes_out = self.bytes_saved = self.busy_ns = 0
        self.spared_ns = 0.0
        """What sending the events as they are would have cost beyond sending what was made of them, by and large."""
        self.turned_events = self.turned_bytes = self.turned_batches = 0
        """What was rejected without deriving it, counted apart because that must cost next to nothing."""
        self.settled = (0, 0)
        """How many of these batches, and of their bytes, are part of what was spared."""

    @property
    def all_events_in(self) -> int:
        """How many events the code has looked at."""
        return self.events_in + self.turned_events
