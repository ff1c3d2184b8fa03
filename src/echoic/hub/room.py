"""Waiting for others: when a source must, and when it must not, since only its own thread could let it go on.

A thread inside a handler is the one that reads the link; what it waits for would never arrive there.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.channels import congested

if TYPE_CHECKING:
    from echoic.channels import Concentrator, Member
    from echoic.hub.switchboard import Switchboard

__all__ = ["Room", "hindered", "hindered_plainly", "makes_room_itself", "waits_for_itself"]


ROOM_SECONDS: Final = 0.2


class Room:
    """Where threads wait until there is room for their events.

    They are woken when there is some for one of them. To ask whether there is costs a microsecond; to wake a thread
    that finds none, with every frame of every other channel, took a third of their rate. Everything is called with the
    lock held.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self._changed = threading.Condition(lock)
        self._waiting: list[Callable[[], bool]] = []

    def wait(self, full: Callable[[], bool]) -> None:
        """Wait until there may be room, as `full` tells, or a moment has passed."""
        self._waiting.append(full)
        try:
            self._changed.wait(ROOM_SECONDS)
        finally:
            self._waiting.remove(full)

    def look(self) -> None:
        """Wake those who wait, if one of them has room."""
        if any(not full() for full in self._waiting):
            self._changed.notify_all()

    def wake(self) -> None:
        """Wake all who wait."""
        self._changed.notify_all()


def hindered_plainly(core: "Concentrator", member: "Member") -> bool:
    """Whether a source from which nothing is derived must wait."""
    return core.quiet.paused(member) or core.blocked(member)


def hindered(core: "Concentrator", member: "Member") -> bool:
    """Whether a source must wait: for sinks, or because somebody goes over from one derived channel to another."""
    return core.quiet.paused(member) or congested(core, member)


def makes_room_itself(board: "Switchboard", member: "Member") -> bool:
    """Whether waiting for room would be for ever: this thread is in a handler of the link by which it is granted.

    Such events pass, as messages do; a peer that does not take them in the end is given up (`Session.stalled`).
    """
    for hub, target in member.fanout.targets.items():
        link = board.link_to(hub)
        if link is not None and link.reads_here and (target.credit <= 0 or link.neighbour.full or member.keepings):
            return True
    derived = (outlet for derivation in member.derivations for outlet in derivation.outlets.values())
    return any(makes_room_itself(board, outlet) for outlet in derived)


def waits_for_itself(board: "Switchboard", member: "Member") -> str:
    """Return the hub that could not answer, because this thread is in one of its handlers; "" if there is none."""
    for hub in list(member.fanout.targets):
        link = board.link_to(hub)
        if link is not None and link.reads_here:
            return link.neighbour.address
    derived = (outlet for derivation in member.derivations for outlet in list(derivation.outlets.values()))
    return next((hub for outlet in derived if (hub := waits_for_itself(board, outlet))), "")
