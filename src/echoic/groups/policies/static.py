"""Packing with a fixed degree (section 2.1); the packing interval is the only other reason to leave (section 5).

    leave when      `degree` messages are gathered, or one of them has waited for the packing interval

Degree 1 is no packing. It is what the paper compares everything with, and what whoever knows the load exactly may use;
`nagle` and `probe` do not make a message wait while nothing else is under way.
"""

from echoic.errors import LocalError
from echoic.groups.policies.policy import Pack

__all__ = ["Static"]


class Static:
    """So many messages in every pack. Measures nothing, and never changes its mind."""

    def __init__(self, degree: int) -> None:
        if degree < 1:
            raise LocalError(f"a pack has at least 1 message, got {degree}")
        self.degree_max = degree
        self.bytes_max = 1
        self.bytes_aim = 1
        self.eager_packs_max = 0

    @property
    def name(self) -> str:
        """Its text."""
        return f"static:{self.degree_max}"

    def start(self, pack_bytes_max: int, now_ns: int) -> None:  # noqa: ARG002
        """Take packs as large as the engine does: the degree alone counts."""
        self.bytes_max = self.bytes_aim = pack_bytes_max

    def leave(self, pack: Pack) -> str:  # noqa: ARG002
        """Do nothing."""
        return ""

    def come_back(self, pack: Pack, now_ns: int) -> str:  # noqa: ARG002
        """Do nothing."""
        return ""

    def forget(self, now_ns: int) -> None:
        """Do nothing."""

    def wake_ns(self) -> int | None:
        """Return None: there is nothing to measure."""
        return None

    def wake(self, now_ns: int) -> str:  # noqa: ARG002
        """Do nothing."""
        return ""
