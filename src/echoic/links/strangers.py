"""Strangers: those who have connected and not yet said who they are.

There is room for so many. When one more comes, the address that has the most gives up its eldest. So one address may
have all the room while nobody else wants any, as when a machine starts a hundred programs at once; but it cannot push
out another address, however often it connects, since it only ever pushes out itself.

Whoever has a network of IPv6 has 2**64 addresses in it. They count as one.
"""

import ipaddress
import threading
from collections import Counter
from typing import Final, Generic, Protocol, TypeVar

__all__ = ["STRANGERS_MAX", "Stranger", "Strangers", "origin_of"]

STRANGERS_MAX: Final = 64
NETWORK_BITS: Final = 64


class Stranger(Protocol):
    """Whoever has connected."""

    @property
    def peer(self) -> str:
        """Where it comes from: host and port."""


S = TypeVar("S", bound=Stranger)


class Strangers(Generic[S]):
    """At most so many, by where they come from. Any thread may call."""

    def __init__(self, strangers_max: int = STRANGERS_MAX) -> None:
        self._strangers_max = strangers_max
        self._lock = threading.Lock()
        self._here: dict[S, str] = {}  # eldest first

    def __len__(self) -> int:
        return len(self._here)

    def admit(self, connection: S) -> S | None:
        """Take one more, and return who has to leave for it."""
        with self._lock:
            self._here[connection] = origin_of(connection.peer)
            if len(self._here) <= self._strangers_max:
                return None
            # Of addresses that have equally many, the eldest's.
            crowd = Counter(self._here.values()).most_common(1)[0][0]
            leaving = next(each for each, origin in self._here.items() if origin == crowd)
            del self._here[leaving]
            return leaving

    def empty(self) -> list[S]:
        """Forget all of them, and return who they were."""
        with self._lock:
            every = list(self._here)
            self._here.clear()
        return every

    def leave(self, connection: S) -> None:
        """Forget one that has said who it is, or is gone."""
        with self._lock:
            self._here.pop(connection, None)


def origin_of(peer: str) -> str:
    """Return what strangers are counted by: the host of an address, for IPv6 its network."""
    host = peer.rpartition(":")[0].strip("[]")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host or peer
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), NETWORK_BITS), strict=False))
