"""Closing a hub: what was submitted leaves, what arrived is kept, the others are told. It takes less than two seconds.

sources   send what has gathered, or are abandoned          sinks    handle what has arrived, or are ended
recorders put on the disk what they have                    links    written out, finished, and closed
"""

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from echoic.channels import Concentrator, ignore
from echoic.errors import ClosedError
from echoic.hub.flusher import send_held

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from echoic.hub.endpoints import Endpoints
    from echoic.hub.group import Group
    from echoic.hub.outbound import Source
    from echoic.hub.switchboard import Switchboard

__all__ = ["close_groups", "wind_up"]

DRAIN_SECONDS: Final = 1.5
HEARD_SECONDS: Final = 0.3
log: Final = logging.getLogger("echoic.hub")


def close_groups(groups: "Collection[Group]") -> None:
    """Close groups, all at once: each may wait for its last events a moment."""
    closing = [threading.Thread(target=group.close, name="echoic-leave", daemon=True) for group in list(groups)]
    for thread in closing:
        thread.start()
    deadline = time.monotonic() + DRAIN_SECONDS
    for thread in closing:
        thread.join(max(0.0, deadline - time.monotonic()))


def wind_up(board: "Switchboard", sources: "Collection[Source]", endpoints: "Mapping[str, Endpoints]") -> None:
    """Send what has gathered, end all sources and sinks, and take leave, whatever the others do."""
    deadline = time.monotonic() + DRAIN_SECONDS
    draining = threading.Thread(target=_flush, args=(board, sources), name="echoic-drain", daemon=True)
    draining.start()
    draining.join(DRAIN_SECONDS)
    for source in list(sources):
        source.abandon()
    for ends in list(endpoints.values()):
        ends.close_durable(deadline)
    for recording in [ends.recording for ends in endpoints.values() if ends.recording is not None]:
        recording.close()
    for ends in list(endpoints.values()):
        ends.close(deadline - DRAIN_SECONDS / 2)
    while _unconfirmed_bytes(endpoints) and time.monotonic() < deadline - DRAIN_SECONDS / 2:
        time.sleep(0.001)
    if _unconfirmed_bytes(endpoints):
        log.warning("%d bytes of events were not confirmed by their recorder", _unconfirmed_bytes(endpoints))
    _leave(board, deadline)


def _flush(board: "Switchboard", sources: "Collection[Source]") -> None:
    """Close the sources; one that must wait for room lets the others send first."""
    closing = list(sources)
    send_held([source for source in closing if source.hold(spare=False)])
    board.pump_all()
    for source in closing:
        with contextlib.suppress(ClosedError):  # the hub ended before there was room
            source.close()


def _unconfirmed_bytes(endpoints: "Mapping[str, Endpoints]") -> int:
    """Return how much no recorder has confirmed of what was submitted here."""
    return sum(ends.member.unconfirmed_bytes for ends in endpoints.values())


def _leave(board: "Switchboard", deadline: float) -> None:
    """Take leave of all neighbours, and give them a moment to hear it."""
    board.do(_take_leave)
    while not board.written() and time.monotonic() < deadline:
        board.pump_all()
        time.sleep(0.001)
    for link in board.links():
        link.finish()
    heard = min(deadline, time.monotonic() + HEARD_SECONDS)
    while any(link.connection for link in board.links()) and time.monotonic() < heard:
        time.sleep(0.001)


def _take_leave(core: Concentrator) -> None:
    for entry in core.manager.directory.entries(core.address):
        for server, message in core.manager.unregister(entry.name):
            core.ask(server, message, ignore)
    core.farewell()
