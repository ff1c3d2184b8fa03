"""When a concentrator rests: looks at the time then change nothing until the next time it joins and registers again.

    looked at ten times a second    |.|.|.|.|.|.|.|.|.|.|        `tick`, as the edge does it
    while it rests                  |..................|         one look for all that were left out, and one in time

A simulation that knows of it need not wake idle hubs. Nothing is left out that could be seen: whatever could have come
of a look (something to tell, a request that is late, a neighbour to be dialled or given up, code whose time is counted)
keeps a concentrator from resting, and whoever lets one rest must have it look at the last of the times that were left
out (`look_again`) before anything else happens to it.
"""

from typing import TYPE_CHECKING

from echoic.channels.installing import REVIEW_NS

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["idle_looks", "look_again"]


def idle_looks(core: "Concentrator", now_ns: int, tick_ns: int) -> int:
    """Return how many looks after this one, which come every `tick_ns`, change nothing if nothing happens before."""
    if core.effects or core.stirred or core.derivations or core.crowded:
        return 0
    if len(core.requests) or not core.quiet.idle or not core.sharing.idle:
        return 0
    for neighbour in core.neighbours.values():
        if not neighbour.connected or not neighbour.session.calm:
            return 0
    if (now_ns - core.reviewed_ns) % tick_ns:  # the last review was not one of these looks
        return 0
    return max(0, (core.retry_ns - now_ns - 1) // tick_ns)


def look_again(core: "Concentrator", now_ns: int, tick_ns: int) -> None:
    """Look at the time, where looks that come every `tick_ns` were left out since the last one.

    Whatever a look sets is set by this one, but for the time of the last review: that one may have been left out.
    """
    reviews_ns = -(-REVIEW_NS // tick_ns) * tick_ns
    if now_ns - core.reviewed_ns > reviews_ns:
        core.reviewed_ns += (now_ns - core.reviewed_ns - 1) // reviews_ns * reviews_ns
    core.tick(now_ns)
