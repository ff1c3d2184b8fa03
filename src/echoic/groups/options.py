"""What can be set about the ordering core, with what was found to work."""

from typing import Final, Protocol

import msgspec

__all__ = ["Chance", "Options"]

MILLISECOND: Final = 1_000_000


class Options(msgspec.Struct, frozen=True):
    """Times and limits of the ordering core."""

    stability: str = "majority"
    """`majority`, or `all`: also every member of the view must hold a pack before anybody is given it."""
    election_ns: int = 500 * MILLISECOND
    """How long a leader may be silent; each member draws between once and twice that."""
    heartbeat_ns: int = 100 * MILLISECOND
    append_bytes_max: int = 1024 * 1024
    """How much is sent in one message to a member that catches up."""
    flights_max: int = 256
    """How many messages may be under way to a member, unanswered."""
    flight_bytes_max: int = 8 * 1024 * 1024
    lag_bytes_max: int = 32 * 1024 * 1024
    """How far a member of the view may be behind before the leader orders no more, and so slows those who submit."""
    forward_packs_max: int = 256
    """How many packs a member sends again at once after the leader changed."""
    state_bytes_max: int = 1024 * 1024 * 1024
    """How large a snapshot may be that another member sends."""

    @property
    def silence_ns(self) -> int:
        """After what time a leader takes a member for gone."""
        return 2 * self.election_ns


class Chance(Protocol):
    """Where random numbers come from: a seeded generator in simulation."""

    def random(self) -> float:
        """Return a number from 0 to 1."""
