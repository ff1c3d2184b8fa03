"""A watch: what one panel of a tab wants of a channel, derived at its sources, and the sink that gets it.

    Open Chart   -> derive the envelope of the fields -> subscribe -> `take` what has come, every 40 ms

Each watch has a derived channel for itself, since its parameters are nobody else's: panning a field tells its sources
which part of it to send. What a watch leaves behind when it is closed is one line in the book of the channel's manager,
so `Shelf` keeps such channels and gives them to the next watch that wants the same.

The sink has no handler and no thread. Its queue is emptied by the loop that serves all tabs, long before it is full; it
never makes a source wait.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from echoic.channels import Gap
from echoic.channels import Trouble as SourceTrouble
from echoic.errors import ClosedError, EchoicError, EncodeError, FormatError
from echoic.formats import shown
from echoic.hub import Channel
from echoic.monitor.pacing import Pace
from echoic.monitor.reduction import Reduction, chart, thinning, window
from echoic.viewer.messages import Chart, Events, Field, View
from echoic.viewer.outbox import Piece

__all__ = ["Shelf", "Watch", "reduction_of"]

ARRIVALS_MAX: Final = 4096
KEPT_MAX: Final = 64
EVERY_MAX: Final = 1_000_000
PUSHES_PER_SECOND: Final = 25
INTEGER_MAX: Final = 2**31 - 1


def reduction_of(channel: Channel, view: View) -> Reduction | None:
    """Return what a view leaves of a channel; None if events must be taken as they are, since it has no type.

    Raises:
        FormatError: The view cannot show it.
    """
    format = channel.format
    if format is None:
        if isinstance(view, Events):
            return None
        raise FormatError(f"channel '{channel.name}' has no type, so that only its events can be shown, as a table")
    match view:
        case Chart(fields=fields):
            return chart(format, fields)
        case Field(field=field, columns=columns, rows=rows):
            return window(format, field, columns, rows)
        case Events():
            return thinning()


class Shelf:
    """Derived channels that no watch uses for the moment."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], list[Channel]] = {}
        self._count = 0
        self._lock = threading.Lock()

    def take(self, parent: Channel, reduction: Reduction) -> Channel:
        """Return a derived channel for one watch, with the parameters it begins with.

        Raises:
            EchoicError: It cannot be derived.
        """
        with self._lock:
            found = self._take(parent.id, reduction.code)
        if found is not None:
            try:
                found.params.update(**reduction.params)
                return found
            except EchoicError:
                pass  # the manager has forgotten it meanwhile
        return parent.derive(
            reduction.code,
            reduction.output,
            params=reduction.params,
            capacities=reduction.capacities,
            share=False,
        )

    def _take(self, parent: str, code: str) -> Channel | None:
        kept = self._kept.get((parent, code))
        if kept is None:
            return None
        found = kept.pop()
        self._count -= 1
        if not kept:
            del self._kept[parent, code]  # there is no end of what somebody may want to see
        return found

    def put(self, parent: Channel, reduction: Reduction, derived: Channel) -> None:
        """Keep a channel for the next watch."""
        with self._lock:
            if self._count < KEPT_MAX:
                self._kept.setdefault((parent.id, reduction.code), []).append(derived)
                self._count += 1


class Watch:
    """One panel of a tab, from `Open` to `Close`.

    Args:
        number: What the tab calls it.
        channel: What it shows.
        view: How.
        shelf: Where derived channels come from.
        on_ready: Called by any thread when something has come, or the sink has ended.

    Raises:
        FormatError: The view cannot show this channel.
        EchoicError: It cannot be derived, or a source refuses.
    """

    def __init__(self, number: int, channel: Channel, view: View, shelf: Shelf, on_ready: Callable[[], None]) -> None:
        self.number: Final = number
        self.channel: Final = channel
        self.view: Final = view
        self.latest: Final = isinstance(view, Field)
        self.reduction: Final = reduction_of(channel, view)
        self.misses = 0
        """How often in a row nobody has known the channel."""
        self.tuning = False
        """Whether sources are being told another pace."""
        self._shelf = shelf
        self._lock = threading.Lock()
        self._lost: dict[str, int] = {}
        self._trouble: SourceTrouble | None = None
        self._closed = False
        self._window: dict[str, int] = {}
        self.pace: Final = Pace(_per_second(view), time.monotonic_ns())
        self.derived: Final = channel if self.reduction is None else shelf.take(channel, self.reduction)
        self._deaf = self.derived.endpoints.listen(self._hear_trouble)
        self._on_ready = on_ready
        slow = "latest" if self.latest or self.reduction is None else "drop_oldest"
        try:
            self._sink = self.derived.events(batch=True, slow=slow, on_gap=self._hear_gap).sink
        except EchoicError:
            self._deaf()
            raise
        self._sink.on_ready = on_ready
        on_ready()

    @property
    def ended(self) -> bool:
        """Whether the sink was ended by somebody else."""
        return self._sink.closed and not self._closed

    @property
    def code(self) -> str:
        """What runs inside the sources."""
        return self.reduction.code if self.reduction is not None else ""

    def take(self) -> list[Piece]:
        """Return what has come since the last time."""
        sink, pieces = self._sink, list[Piece]()
        for _ in range(ARRIVALS_MAX):
            arrival = sink.take(0)
            if arrival is None:
                break
            sink.finish(arrival, "")
            pieces.append(Piece(arrival.batch, arrival.source, arrival.first, arrival.size))
        if self.reduction is None:
            pieces = [self._thinned(piece) for piece in pieces[-1:]]
        self.pace.note(sum(piece.batch.count for piece in pieces))
        return pieces

    def take_lost(self) -> dict[str, int]:
        """Return how many events were missed since the last time, by reason; not of fields, whose last is enough."""
        if not self._lost:
            return {}
        with self._lock:
            lost, self._lost = self._lost, {}
        return lost

    def take_trouble(self) -> SourceTrouble | None:
        """Return what has gone wrong at a source since the last time."""
        trouble, self._trouble = self._trouble, None
        return trouble

    def tune(self, values: Mapping[str, float], *, automatic: bool = False) -> None:
        """Change what the sources send; returns when all of them know.

        Args:
            values: Parameters by name; an `every` of 0 lets the viewer find it.
            automatic: Whether it is the viewer that has found it.

        Raises:
            EchoicError: There is no such parameter, or somebody does not answer.
        """
        if self._closed:
            raise ClosedError(f"watch {self.number} was closed")
        if self.reduction is None:
            raise FormatError(f"channel '{self.channel.name}' has no type, so that nothing of this view can be tuned")
        changes = {name: self._parameter(name, value) for name, value in values.items()}
        if "every" in changes and not automatic:
            self.pace.automatic = changes["every"] == 0
            changes["every"] = changes["every"] or self.pace.every
        self.derived.params.update(**changes)
        if "every" in changes:
            self.pace.begin(changes["every"], time.monotonic_ns())

    def close(self) -> None:
        """End it: sources send no more for it."""
        self._closed = True
        self._sink.close(timeout=0)
        self._deaf()
        if self.reduction is not None:
            self._shelf.put(self.channel, self.reduction, self.derived)

    def _parameter(self, name: str, value: float) -> int:
        if self.reduction is None or name not in self.reduction.params:
            known = ", ".join(self.reduction.params) if self.reduction is not None else ""
            raise FormatError(f"there is no parameter `{shown(name)}` of this view; there are {known}")
        most = EVERY_MAX if name == "every" else INTEGER_MAX
        if not 0 <= value <= most:
            raise EncodeError(f"`{name}` is {value}, expected 0 to {most}")
        return round(value)

    def _thinned(self, piece: Piece) -> Piece:
        """Return the last few events of what comes as it is."""
        most, count = max(1, round(_per_second(self.view) / PUSHES_PER_SECOND)), piece.batch.count
        if count <= most:
            return piece
        *_, last = piece.batch.parts([count - most, most])
        return Piece(last, piece.source, piece.first + count - most, last.record_bytes)

    def _hear_gap(self, gap: Gap) -> None:
        """Count what was missed; called by threads of the hub."""
        if not self.latest and self.reduction is not None:
            with self._lock:
                self._lost[gap.reason] = self._lost.get(gap.reason, 0) + gap.last - gap.first + 1
            self._on_ready()

    def _hear_trouble(self, trouble: SourceTrouble) -> None:
        self._trouble = trouble
        self._on_ready()


def _per_second(view: View) -> float:
    match view:
        case Chart(points_per_second=points):
            return points
        case Field(frames_per_second=frames):
            return min(frames, PUSHES_PER_SECOND)
        case Events(per_second=events):
            return events
