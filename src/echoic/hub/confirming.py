"""Waiting until recorders have events on their disks.

A recorder that is there answers a synchronous event when it is on the disk, so there is nothing left to wait for. One
that is away is not asked, and would be taken for one that has nothing to say: whoever drains would be told that all is
well. So whatever a journal has yet to confirm is waited for as well, in the hope that its recorder comes back in time.
"""

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from echoic.channels import Member
    from echoic.hub.switchboard import Switchboard

__all__ = ["late_recorders"]

POLL_SECONDS: Final = 0.001


def late_recorders(switchboard: "Switchboard", member: "Member", source: int, deadline_ns: int) -> dict[str, str]:
    """Wait until all events of a source so far are on the disks of recorders; return those that are late, and why.

    What is derived from them counts as well.
    """
    with switchboard.lock:
        awaited = list(_awaited(member, source))
    while True:
        with switchboard.lock:
            late = [one for place, each, position in awaited for one in place.keepings if one.lacks(each, position)]
        if not late or switchboard.closed or time.monotonic_ns() >= deadline_ns:
            break
        time.sleep(POLL_SECONDS)
    return {f"the recorder of journal {one.journal[:8]}": one.trouble or "not on the disk in time" for one in late}


def _awaited(member: "Member", source: int) -> "Iterator[tuple[Member, int, int]]":
    """Yield how far a source is that is recorded, and those that are derived from it."""
    if member.keepings:
        yield member, source, member.sources.get(source, 0)
    for derivation in member.derivations:
        if source in derivation.instances:
            derived = derivation.instances[source].source
            for outlet in derivation.outlets.values():
                yield from _awaited(outlet, derived)
