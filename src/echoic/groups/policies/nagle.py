"""Packing by Nagle's rule (RFC 896) with a fixed number of bytes.

    leave at once   if nothing else of this member is under way, or if the pack is full
    otherwise       collect, until what is under way has come back

An idle group sends each message as it comes. A busy one packs by itself: whatever was submitted during one round trip
goes together. Nobody waits longer than a round trip, so the packing interval is only a safety bound. What the rule does
not find is how much a full pack should have; for an engine whose cost is so much per pack and so much per byte, any
large number does, for others see `probe`.
"""

from typing import Final

from echoic.errors import LocalError
from echoic.groups.policies.static import Static

__all__ = ["ANY_NUMBER", "BYTES_DEFAULT", "Nagle"]

BYTES_DEFAULT: Final = 64 * 1024
ANY_NUMBER: Final = 1 << 62


class Nagle(Static):
    """So many bytes in a full pack, and at once if nothing is under way."""

    def __init__(self, bytes_max: int = BYTES_DEFAULT) -> None:
        if bytes_max < 1:
            raise LocalError(f"a full pack has at least 1 byte, got {bytes_max}")
        super().__init__(ANY_NUMBER)
        self._wanted = bytes_max
        self.eager_packs_max = 1

    @property
    def name(self) -> str:
        """Its text."""
        return f"nagle:{self._wanted}"

    def start(self, pack_bytes_max: int, now_ns: int) -> None:  # noqa: ARG002
        """Take what was asked for, but no more than the engine takes."""
        self.bytes_max = self.bytes_aim = min(self._wanted, pack_bytes_max)
