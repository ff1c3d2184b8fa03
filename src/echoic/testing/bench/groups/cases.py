"""What is asked of a group, and what it answers: sections 2.2 and 2.3 of the paper.

    Source(sizes=(1000,))                               continuous: there are always new messages
    Source(sizes=(1000, 3000), each=30_000)             so many of one size, so many of the other, and again
    Source(sizes=(1000,), burst=15, pause=0.020)        a burst, a rest, and again

Everything is measured at the replica that sends: *throughput* is what its receiver was given between the first and the
last delivery; *latency* is from the time that was written into a message, just before it was submitted, to the time
when the receiver has it, so it has the time in the packing buffer; *cpu* is the processor time of the process.
"""

from typing import Final

import msgspec

from echoic.errors import LocalError

__all__ = ["HEAD_BYTES", "Case", "Moment", "Result", "Source"]

HEAD_BYTES: Final = 16
"""What a message has beside its body: when it was submitted, and of a variable one where the body is."""
SIZE_BYTES_MAX: Final = 1_000_000
SECONDS_MAX: Final = 600.0
REPLICAS_MAX: Final = 9


class Source(msgspec.Struct, frozen=True):
    """How messages come."""

    sizes: tuple[int, ...] = (1000,)
    """In bytes. Several of them take turns."""
    each: int = 300_000
    """How many messages of one size there are before the next size."""
    burst: int = 0
    """How many messages come at once; 0 for a source that never rests."""
    pause: float = 0.0
    """For how many seconds it rests after a burst."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a group."""

    size: int = 1000
    """Bytes of a message, unless `source` says otherwise."""
    packing: str = "auto"
    seconds: float = 2.0
    """For how long the source sends, warm-up included."""
    warm_up: float = 0.0
    """How much of that is not measured."""
    source: Source | None = None
    replicas: int = 3
    at: str = "leader"
    """Where the source is: at the `leader`, or at a `follower`."""
    engine: str = "embedded"
    stability: str = "all"
    """`all`, as the paper's safe delivery, or `majority`."""
    durability: str = "memory"
    packing_interval: float = 0.05
    election_timeout: float = 0.5
    kill_after: float = 0.0
    """After how many seconds the leader is killed, if it is; the source is a follower then."""

    @property
    def messages(self) -> Source:
        """How messages come."""
        return self.source or Source((self.size,))

    def check(self) -> None:
        """Make sure that this can be run.

        Raises:
            LocalError: It cannot.
        """
        sizes = self.messages.sizes
        if not sizes or not all(HEAD_BYTES < size <= SIZE_BYTES_MAX for size in sizes):
            raise LocalError(f"messages have {HEAD_BYTES + 1} to {SIZE_BYTES_MAX} bytes, got {sizes}")
        if not 0 <= self.warm_up < self.seconds <= SECONDS_MAX:
            raise LocalError(
                f"a run has up to {SECONDS_MAX:g} seconds, got {self.seconds:g}, {self.warm_up:g} to warm up"
            )
        if not 1 <= self.replicas <= REPLICAS_MAX:
            raise LocalError(f"a run has 1 to {REPLICAS_MAX} replicas, got {self.replicas}")
        if self.at not in ("leader", "follower") or (self.at == "follower" and self.replicas < 2):
            raise LocalError(f"the source is at the leader, or at a follower if there is one, got {self.at!r}")


class Moment(msgspec.Struct, frozen=True, array_like=True):
    """Where a run was."""

    seconds: float
    """Since the source began."""
    messages: int
    """That were back so far."""
    degree: float
    """Messages in a pack, of those that have come back since the last moment."""
    bytes_aim: int
    """How large the policy wants a pack to be."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica has seen. Of one that does not send, only what was delivered counts."""

    replica: str
    messages: int
    """Delivered, after the warm-up."""
    seconds: float
    """Between the first and the last delivery."""
    throughput: float
    """Messages a second."""
    gap: float
    """The longest time without a delivery, in seconds."""
    cpu: float = 0.0
    """Processor time of the process, in seconds for each second."""
    latency: float = 0.0
    """In seconds: the mean, and what half and 99 of 100 messages do not exceed."""
    latency_p50: float = 0.0
    latency_p99: float = 0.0
    degree: float = 0.0
    """Messages in a pack, mean of the whole run."""
    submitted: int = 0
    encoding: float = 0.0
    """Seconds that it takes to encode one message, which is part of the source's time."""
    source_cpu: float = 0.0
    """Processor time of the source's thread, in seconds for each second."""
    suspensions: int = 0
    """How often the source was made to wait."""
    course: list[Moment] = []
    reasons: list[str] = []
    """What the policy has decided, and why."""
