"""Between two batches: channels from which nothing is being derived at the moment.

Events are derived outside of the hub's lock, and sent under it. Whoever must act between what a source has submitted
and what it will submit next, for all channels derived from it at once, waits until nothing is under way
(`when_quiet`); meanwhile nothing further begins.
"""

import math
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from echoic.channels.member import Member

__all__ = ["Quiet", "ancestry"]


class _Hold(NamedTuple):
    members: "frozenset[Member]"
    until_ns: float


class Quiet:
    """Counts what is under way in each channel, and lets others wait for a moment in which nothing is."""

    def __init__(self) -> None:
        self._busy: dict[Member, int] = {}
        self._waiting: list[tuple[frozenset[Member], Callable[[], None]]] = []
        self._held: list[_Hold] = []
        self._late: list[tuple[int, Callable[[], None]]] = []

    def paused(self, member: "Member") -> bool:
        """Whether somebody waits for a channel to be quiet, so that nothing should begin."""
        if not self._waiting and not self._held:
            return False
        waited_for = any(member in members for members, _ in self._waiting)
        return waited_for or any(member in hold.members for hold in self._held)

    def begin(self, member: "Member") -> None:
        """Note that events of a channel are being derived."""
        self._busy[member] = self._busy.get(member, 0) + 1

    def end(self, member: "Member") -> None:
        """Note that they were sent, and let go on who waits for it."""
        count = self._busy.pop(member, 0) - 1
        if count > 0:
            self._busy[member] = count
        elif self._waiting:
            due = [one for one in self._waiting if self._is_quiet(one[0])]
            self._waiting = [one for one in self._waiting if one not in due]
            for _, act in due:
                act()

    def when_quiet(self, members: "Collection[Member]", act: Callable[[], None]) -> None:
        """Act when nothing is under way in certain channels: at once if that is so."""
        wanted = frozenset(members)
        if self._is_quiet(wanted):
            act()
        else:
            self._waiting.append((wanted, act))

    def hold(self, members: "Collection[Member]", until_ns: float = math.inf) -> Callable[[], None]:
        """Let nothing begin in certain channels until what is returned is called, or for some time."""
        held = _Hold(frozenset(members), until_ns)
        self._held.append(held)

        def release() -> None:
            self._held = [one for one in self._held if one is not held]

        return release

    def after(self, until_ns: int, act: Callable[[], None]) -> None:
        """Act when it is late."""
        self._late.append((until_ns, act))

    @property
    def idle(self) -> bool:
        """Whether nothing is held, and nobody waits for it to be late."""
        return not self._held and not self._late

    def expire(self, now_ns: int) -> None:
        """Let go on what was held for too long: whoever wanted that has not come."""
        if self._held:
            self._held = [one for one in self._held if now_ns < one.until_ns]
        if self._late:
            due = [act for until_ns, act in self._late if now_ns >= until_ns]
            self._late = [one for one in self._late if now_ns < one[0]]
            for act in due:
                act()

    def _is_quiet(self, members: "Iterable[Member]") -> bool:
        return not any(member in self._busy for member in members)


def ancestry(member: "Member") -> "list[Member]":
    """Return a channel and those that it is derived from, as far as they are known here."""
    found: list[Member] = []
    above: Member | None = member
    while above is not None and above not in found:
        found.append(above)
        above = above.origin.parent if above.origin is not None else None
    return found
