"""What a packing policy decides, and what it is told.

The packing buffer (`Packer`) does, the policy decides. Before every pack the buffer reads four numbers:

    degree_max, bytes_max    a pack is full with so many messages, or with so many bytes, whichever comes first
    eager_packs_max          one that is not full leaves at once while fewer packs than this are under way (0: it waits)
    bytes_aim                what a pack is meant to be by and large; flow control and people are told this one

and it tells of every pack that leaves and of every one that comes back. A policy that measures for a time of its own
says when it wants to be woken. Whatever it is told may change its mind; then it answers with the reason, in words, and
the buffer notes a `PackingChange`. An empty string says that nothing is to be told.

A policy has state, so each group needs one of its own.
"""

from typing import Protocol

import msgspec

__all__ = ["Pack", "PackingChange", "Policy"]


class Pack(msgspec.Struct, frozen=True, gc=False):
    """One multicast: what a policy may know of it."""

    messages: int
    bytes: int
    left_ns: int
    added_ns_sum: int
    """When its messages came into the buffer, added up: their mean latency can be had from it."""
    alone: bool
    """Whether nothing else was under way when it left: then the time until it is back is the round trip's alone."""
    saturated: bool
    """Whether the source wanted more than the engine took: the pack was full, or the source had to wait."""


class PackingChange(msgspec.Struct, frozen=True):
    """A decision of a policy: what a pack was meant to be, what it is meant to be from there on, and why."""

    at_ns: int
    degree_before: float
    degree: float
    """Messages in a pack. If the policy counts bytes, how many messages of the recent size that is."""
    bytes_before: int
    bytes: int
    throughput: float
    """Messages a second that came back, lately."""
    latency_ns: float
    """Mean of the same messages, with the time in the buffer."""
    reason: str


class Policy(Protocol):
    """Decides what packs are like. Called by one thread, that of the packing buffer."""

    @property
    def name(self) -> str:
        """Its text, as `policy_of` reads it."""

    @property
    def degree_max(self) -> int:
        """With how many messages the next pack is full."""

    @property
    def bytes_max(self) -> int:
        """With how many bytes the next pack is full."""

    @property
    def bytes_aim(self) -> int:
        """How many bytes a pack has by and large, at most: `bytes_max` without what is being tried."""

    @property
    def eager_packs_max(self) -> int:
        """A pack that is not full leaves at once while fewer than this are under way."""

    def start(self, pack_bytes_max: int, now_ns: int) -> None:
        """Begin, with the largest pack that the engine takes."""

    def leave(self, pack: Pack) -> str:
        """Learn that a pack leaves; return why the mind was changed, if it was."""

    def come_back(self, pack: Pack, now_ns: int) -> str:
        """Learn that the oldest pack under way has come back; return why the mind was changed, if it was."""

    def forget(self, now_ns: int) -> None:
        """Learn that what is under way will not be heard of."""

    def wake_ns(self) -> int | None:
        """Return when a measurement of its own ends."""

    def wake(self, now_ns: int) -> str:
        """End the measurements that are due; return why the mind was changed, if it was."""
