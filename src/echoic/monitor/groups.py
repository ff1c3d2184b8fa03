"""How ordered groups stand, as their members tell it.

A member tells how it stands on the channel `NAME.group` of its hub, once a second (`echoic.hub.group_status`). Members
are found by the addresses of their hubs, or by the channels of such names at the name server.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from echoic.channels import ChannelEntry
from echoic.errors import ChannelNotFoundError, EchoicError, UnreachableError
from echoic.hub import GroupStatus, Hub, Sink
from echoic.hub.group_status import STATUS_SUFFIX
from echoic.monitor.finding import browse, names_of, nearest

__all__ = ["GroupMembers", "group_channels", "group_of"]

WAKE_SECONDS: Final = 0.05
GROUPS_SHOWN_MAX: Final = 8


class GroupMembers:
    """Keeps what each member has told last.

    Args:
        hub: Who listens.
        channels: The channels on which members tell how they stand; `follow` finds more.

    Raises:
        EchoicError: One of them cannot be subscribed to.
    """

    def __init__(self, hub: Hub, channels: Iterable[ChannelEntry] = ()) -> None:
        self._hub = hub
        self._lock = threading.Lock()
        self._told: Final[dict[str, tuple[float, GroupStatus]]] = {}
        self._sinks: Final[dict[str, Sink | None]] = {}
        for each in channels:
            self._sinks[each.id] = self._subscribed(each.id)

    def follow(self, known: Iterable[ChannelEntry]) -> None:
        """Subscribe to the channels of members among those that are known, and leave those that are gone."""
        wanted = {entry.id for entry in known if group_of(entry.name)}
        for id in wanted - set(self._sinks):
            try:
                self._sinks[id] = self._subscribed(id)
            except EchoicError:
                self._sinks[id] = None  # it has gone meanwhile, or something else has such a name
        for id in set(self._sinks) - wanted:
            sink = self._sinks.pop(id)
            if sink is not None:
                sink.close()
            with self._lock:
                self._told.pop(id, None)

    def wait(self, timeout: float) -> None:
        """Wait until everybody has told something.

        Raises:
            UnreachableError: Nobody did.
        """
        deadline = time.monotonic() + timeout
        while len(self._told) < len(self._sinks) and time.monotonic() < deadline:
            time.sleep(WAKE_SECONDS)
        if not self._told:
            raise UnreachableError(f"no member has said anything for {timeout:g} s")

    def told(self) -> list[tuple[float, GroupStatus]]:
        """Return what they have told, and how many seconds ago."""
        with self._lock:
            told = sorted(self._told.values(), key=lambda each: (each[1].group, each[1].member))
        return [(time.monotonic() - at, status) for at, status in told]

    def _subscribed(self, id: str) -> Sink:
        return self._hub.open(id, GroupStatus).subscribe(self._taker(id), slow="latest")

    def _taker(self, id: str) -> Callable[[object], None]:
        def take(status: object) -> None:
            if isinstance(status, GroupStatus):
                with self._lock:
                    self._told[id] = time.monotonic(), status

        return take


def group_of(channel: str) -> str:
    """Return the name of the group whose member tells on a channel of such a name how it stands; "" for others."""
    group, suffix, _ = f"{channel}.".partition(f"{STATUS_SUFFIX}.")
    return group if suffix else ""


def group_channels(hub: Hub, name: str, addresses: Sequence[str] = ()) -> list[ChannelEntry]:
    """Return the channels on which members of a group tell how they stand.

    Raises:
        ChannelNotFoundError: There are none.
        UnreachableError: Nobody answers at an address.
    """
    found: list[ChannelEntry] = []
    for known in [hub.channels(address) for address in addresses] or [browse(hub)]:
        mine = [each for each in known if group_of(each.name) == name]
        if not mine:
            groups = sorted({group_of(each.name) for each in known} - {""})
            others = f"; there is {', '.join(groups[:GROUPS_SHOWN_MAX])}" if groups else ""
            others = nearest(name, groups) or others
            place = ", ".join(addresses) or names_of(hub) or hub.address
            raise ChannelNotFoundError(f"no member of group '{name}' at {place}{others}")
        found += mine
    return found
