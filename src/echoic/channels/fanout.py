"""Where the events of a channel go from here, and how much of them may be under way.

A *target* is a hub that has sinks of the channel; it gets one copy however many sinks it holds. All channels between
two hubs share a link, so a sink that does not keep up must not fill it: each target has a credit in bytes, spent by
sending and granted anew when the sinks there are done. Without credit, what happens is what the sinks have asked for:

    block         the source waits (`blocked`)
    drop_oldest   batches wait here, the oldest are dropped when there are too many
    latest        only the last batch waits here
    disconnect    the hub is sent no more

A drop is never silent: before the next batch of the same source the target gets a gap with the exact numbers.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels.messages import Cut, Gap, Message, SinkHub
from echoic.wire.frames import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from echoic.channels.large import Large

__all__ = ["CREDIT_BYTES", "CreditMeter", "Fanout", "Run", "Target", "cost_of"]

CREDIT_BYTES: Final = 16 * 1024 * 1024  # room for two events of 10 MB, so that handling one overlaps sending the next
PARKED_BYTES_MAX: Final = 1024 * 1024
LAGGING: Final = "the sinks here do not keep up"


def cost_of(payload_bytes: int) -> int:
    """Return the credit that a frame with a payload costs: exactly what it is worth when it has been handled."""
    return HEADER_BYTES + payload_bytes + (-payload_bytes & 7)


class Run(msgspec.Struct, frozen=True, gc=False):
    """Consecutive events of one source, as the frame that carries them."""

    source: int
    first: int
    last: int
    frame: "bytes | Large"


class Target:
    """A hub that has sinks, and what may be under way to it."""

    __slots__ = ("_gaps", "credit", "dropped", "hub", "parked", "parked_bytes", "since", "sink")

    def __init__(self, hub: str, sink: SinkHub, since: dict[int, int] | None = None) -> None:
        """Begin to send.

        Args:
            hub: Its id.
            sink: What it wants.
            since: Where each source was when the subscription began.
        """
        self.hub: Final = hub
        self.sink = sink
        self.since: Final = since or {}
        self.credit = CREDIT_BYTES
        self.parked: Final[deque[Run]] = deque()
        self.parked_bytes = self.dropped = 0
        self._gaps: dict[int, tuple[int, int]] = {}

    def park(self, run: Run) -> None:
        """Keep a run until there is credit, and drop what is too old."""
        self.parked.append(run)
        self.parked_bytes += len(run.frame)
        latest = self.sink.slow == "latest"
        while len(self.parked) > 1 and (latest or self.parked_bytes > PARKED_BYTES_MAX):
            oldest = self.parked.popleft()
            self.parked_bytes -= len(oldest.frame)
            self.dropped += oldest.last - oldest.first + 1
            first, _ = self._gaps.get(oldest.source, (oldest.first, 0))
            self._gaps[oldest.source] = (first, oldest.last)

    def release(self, number: int, *, all_of_it: bool = False) -> "Iterator[Gap | bytes | Large]":
        """Yield what may be sent from what is parked, with the gaps that must be told before it."""
        while self.parked and (self.credit > 0 or all_of_it):
            run = self.parked.popleft()
            self.parked_bytes -= len(run.frame)
            self.credit -= len(run.frame)
            missing = self._gaps.pop(run.source, None)
            if missing is not None:
                yield Gap(number, run.source, *missing, f"{LAGGING} ({self.sink.slow})")
            yield run.frame
        if not self.parked and self._gaps:  # of sources that may never send again
            for source, missing in self._gaps.items():
                yield Gap(number, source, *missing, f"{LAGGING} ({self.sink.slow})")
            self._gaps.clear()


class Fanout:
    """The targets of one channel."""

    __slots__ = ("_number", "dropped", "targets")

    def __init__(self, number: int) -> None:
        self._number = number
        self.targets: dict[str, Target] = {}
        self.dropped = 0

    def attach(self, hub: str, sink: SinkHub, since: dict[int, int] | None = None) -> bool:
        """Send to a hub from now on; return whether this is a further subscription."""
        known = self.targets.get(hub)
        if known is not None and known.sink.subscription == sink.subscription:
            known.sink = sink
            self.targets = dict(self.targets)  # not the same ones any more, for whoever relies on what they wish
            return False
        self.detach(hub)
        self.targets = {**self.targets, hub: Target(hub, sink, since)}
        return True

    def detach(self, hub: str) -> Target | None:
        """Send no more to a hub; return what it was, None if it was not sent to."""
        found = self.targets.get(hub)
        if found is not None:
            self.dropped += found.dropped
            self.targets = {key: target for key, target in self.targets.items() if key != hub}
        return found

    @property
    def blocked(self) -> bool:
        """Whether a source must wait for a target that wants every event."""
        return any(target.credit <= 0 and target.sink.slow == "block" for target in self.targets.values())

    @property
    def flows(self) -> bool:
        """Whether every target has credit and nothing parked, so that events can simply be sent."""
        for target in self.targets.values():  # noqa: SIM110 - a generator would take twice as long
            if target.credit <= 0 or target.parked:
                return False
        return True

    def flows_to(self, hubs: "Mapping[str, object]") -> bool:
        """Whether the targets are just these hubs, and events can simply be sent to them."""
        targets = self.targets
        if len(targets) != len(hubs):
            return False
        for hub, target in targets.items():
            if target.credit <= 0 or target.parked_bytes or hub not in hubs:
                return False
        return True

    def spend(self, size: int) -> None:
        """Note that `size` bytes are sent to every target."""
        for target in self.targets.values():
            target.credit -= size

    def submit(self, run: Run, full: frozenset[str] = frozenset()) -> "Iterator[tuple[str, bytes | Large | Message]]":
        """Yield what is sent where because events were submitted.

        Args:
            run: The events.
            full: Hubs whose link can take no more for the moment.
        """
        size = len(run.frame)
        for hub, target in self.targets.items():
            if (target.credit > 0 and not target.parked and hub not in full) or target.sink.slow == "block":
                for item in target.release(self._number, all_of_it=True) if target.parked else ():
                    yield hub, item  # parked when its sinks had asked for less
                target.credit -= size
                yield hub, run.frame
            elif target.sink.slow == "disconnect":
                self.detach(hub)
                yield hub, Gap(self._number, run.source, run.first, run.last, LAGGING)
                yield hub, Cut(self._number, f"{LAGGING} (disconnect)")
            else:
                target.park(run)

    def hurry(self) -> "Iterator[tuple[str, bytes | Large | Message]]":
        """Yield what is parked, credit or not, so that a synchronous event can follow in order."""
        for hub, target in self.targets.items():
            for item in target.release(self._number, all_of_it=True):
                yield hub, item

    def grant(self, hub: str, size: int) -> "Iterator[tuple[str, bytes | Large | Message]]":
        """Yield what may be sent because a hub has handled `size` bytes."""
        target = self.targets.get(hub)
        if target is None:
            return
        target.credit = min(target.credit + size, CREDIT_BYTES)  # events of an earlier attachment may be among it
        for item in target.release(self._number):
            yield hub, item

    def statistics(self) -> tuple[int, int]:
        """Return how many events were dropped, and how many bytes are parked."""
        found = self.targets.values()
        return self.dropped + sum(target.dropped for target in found), sum(target.parked_bytes for target in found)


class CreditMeter:
    """The receiver's side of a credit: gathers what was handled until it is worth a frame."""

    __slots__ = ("_handled",)

    def __init__(self) -> None:
        self._handled = 0

    def handled(self, size: int) -> int:
        """Note handled bytes; return how many to grant, 0 when it is not worth a frame yet."""
        self._handled += size
        if self._handled < CREDIT_BYTES // 4:
            return 0
        grant, self._handled = self._handled, 0
        return grant
