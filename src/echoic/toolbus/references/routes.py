"""Routes: which way a value can be had from its owner, as far as experience tells. This module is pure.

    DIRECT     who needs the value connects to the owner                  the owner is *active* (can be reached)
    RELAYED    the bus passes the request on, and the owner connects      who needs it is active
    STREAMED   the value goes through the bus, chunk by chunk             both are *passive*

They are tried in this order, and STREAMED always works. A firewall is not announced: somebody who connects waits, and
then fails. So what failed is remembered for a while (the thesis' future work, "Firewall"): until then the way that
worked is taken at once, and afterwards *one* transfer tries the better way again, while others go on as before.
"""

import enum
from dataclasses import dataclass
from typing import Final

__all__ = ["Route", "Routes", "RoutesStatistics"]

TTL_NS: Final = 60_000_000_000
OWNERS_MAX: Final = 4096
"""Beyond that the owner whose trouble is longest ago is forgotten, which costs one failing try."""


class Route(enum.IntEnum):
    """A way of a value; the numbers are those on the wire."""

    DIRECT = 0
    RELAYED = 1
    STREAMED = 2


@dataclass(frozen=True, slots=True)
class RoutesStatistics:
    """What is known about ways."""

    failing: tuple[tuple[int, Route], ...]
    """The owners, and the ways to them that are believed not to work."""


class Routes:
    """What one tool knows about the ways to the others."""

    def __init__(self, ttl_ns: int = TTL_NS, owners_max: int = OWNERS_MAX) -> None:
        """Begin without experience.

        Args:
            ttl_ns: How long a failure is believed.
            owners_max: How many owners are remembered.
        """
        self._ttl_ns = ttl_ns
        self._owners_max = owners_max
        self._failed_ns: dict[int, dict[Route, int]] = {}

    def choose(self, owner: int, now_ns: int, *, direct: bool = True, relayed: bool = True) -> Route:
        """Return the best way that is not known to fail.

        Args:
            owner: Whose value it is.
            now_ns: The time.
            direct: Whether the owner has said where it can be reached.
            relayed: Whether who asks can be reached.
        """
        failed_ns = self._failed_ns.get(owner, {})
        for route, possible in ((Route.DIRECT, direct), (Route.RELAYED, relayed)):
            if not possible:
                continue
            if route not in failed_ns:
                return route
            if now_ns - failed_ns[route] >= self._ttl_ns:
                failed_ns[route] = now_ns  # whoever chooses until it is known how this try ends goes another way
                return route
        return Route.STREAMED

    def failed(self, owner: int, route: Route, now_ns: int) -> None:
        """Remember that a way did not work."""
        failed_ns = self._failed_ns.pop(owner, {})
        failed_ns[route] = now_ns
        self._failed_ns[owner] = failed_ns  # the last in order of trouble
        if len(self._failed_ns) > self._owners_max:
            del self._failed_ns[next(iter(self._failed_ns))]

    def worked(self, owner: int, route: Route) -> None:
        """Forget what was wrong with a way."""
        failed_ns = self._failed_ns.get(owner)
        if failed_ns is not None:
            failed_ns.pop(route, None)
            if not failed_ns:
                del self._failed_ns[owner]

    def forget(self, owner: int) -> None:
        """Forget an owner that is gone."""
        self._failed_ns.pop(owner, None)

    def statistics(self) -> RoutesStatistics:
        """Return what is believed not to work."""
        return RoutesStatistics(
            tuple((owner, route) for owner, failed_ns in self._failed_ns.items() for route in sorted(failed_ns))
        )
