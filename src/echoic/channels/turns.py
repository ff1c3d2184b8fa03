"""Which events a sink takes that goes over from one channel to another while both flow.

A sink that is given another modulator leaves one derived channel for another (JECho, section 4: "Changing Modulators
and/or Demodulators"). Each source's hub makes the turn between two events, and tells from which number on the sink has
no part in the channel that it leaves. Until the last hub has turned, its hub is sent both; this tells what is whose.
"""

from collections.abc import Callable, Iterable
from typing import Final

__all__ = ["HANDLES_MAX", "Turns"]

TURNS_MAX: Final = 64
HANDLES_MAX: Final = 4096


class Turns:
    """For each sink that has turned, where: by the hub that sends, since every hub turns all its sources at once."""

    __slots__ = ("_coming", "_turns", "_waiting", "any")

    def __init__(self) -> None:
        self.any = False
        """Whether there are any; an attribute, since it is looked at for every run of events."""
        self._waiting: dict[str, tuple[set[str], list[Callable[[], None]]]] = {}
        self._coming: set[str] = set()
        self._turns: dict[str, dict[str, tuple[tuple[dict[int, int], bool], ...]]] = {}

    def __bool__(self) -> bool:
        return self.any

    def note(self, handle: str, hub: str, positions: dict[int, int], *, taken: bool) -> None:
        """Note that a sink takes the events of a hub's sources from certain ones on, or no more.

        A hub that takes back a turn that it never made tells what was so from the beginning: events of before, which
        may be handed over only after this, are whose they were.
        """
        if handle not in self._turns and len(self._turns) >= HANDLES_MAX:
            return  # nobody has so many sinks: a peer makes names up
        by_hub = self._turns.setdefault(handle, {})
        self.any = True
        known = by_hub.get(hub, ())
        if not known and taken == (handle not in self._coming):
            positions = {}
        if not known or known[-1][1] != taken:
            by_hub[hub] = (*known, (positions, taken))[-TURNS_MAX:]
        if not taken:
            self.turned(handle, hub)

    def when_turned(self, handle: str, hubs: Iterable[str], then: Callable[[], None]) -> None:
        """Go on when hubs have told that they have turned a sink away, or are gone: what they sent before has come."""
        known = self._turns.get(handle, {})
        missing = {hub for hub in hubs if hub not in known or known[hub][-1][1]}
        if missing:
            awaited, others = self._waiting.get(handle, (set[str](), []))  # of a reset that nobody waits for any more
            self._waiting[handle] = (missing | awaited, [*others, then])
        else:
            then()

    def gone(self, hub: str) -> None:
        """Wait no longer for a hub."""
        for handle in list(self._waiting):
            self.turned(handle, hub)

    def awaited(self, handle: str) -> bool:
        """Whether somebody waits until hubs have turned a sink away."""
        return handle in self._waiting

    def turned(self, handle: str, hub: str) -> None:
        """Wait no longer for a hub to turn a sink away."""
        if handle in self._waiting:
            missing, _ = self._waiting[handle]
            missing.discard(hub)
            if not missing:
                self._go_on(handle)

    def expect(self, handle: str) -> None:
        """Note that a sink comes over to this channel: it takes what a hub sends only once that has turned."""
        self._coming.add(handle)
        self.any = True

    def forget(self, handle: str) -> None:
        """Forget a sink that was closed; who waits for it to turn goes on."""
        self._coming.discard(handle)
        self._turns.pop(handle, None)
        self.any = bool(self._turns or self._coming)
        self._go_on(handle)

    def _go_on(self, handle: str) -> None:
        _, waiting = self._waiting.pop(handle, (None, ()))
        for then in waiting:
            then()

    def taking(self, handle: str, hub: str) -> bool:
        """Tell whether a sink takes what a hub sends next."""
        turns = self._turns.get(handle, {}).get(hub, ())
        return turns[-1][1] if turns else handle not in self._coming

    def takes(self, handle: str, hub: str, source: int, first: int) -> bool:
        """Tell whether a sink takes the event `first`, and those that were submitted with it."""
        turns = self._turns.get(handle, {}).get(hub, ())
        taken = not turns[0][1] if turns else handle not in self._coming
        for positions, flag in turns:
            if first >= positions.get(source, 0):
                taken = flag
        return taken
