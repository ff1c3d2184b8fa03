"""The ends of channels in a simulation: sources, subscriptions, what they exchange, and what a run reports of it."""

from typing import Final

import msgspec

from echoic.channels import Call, ChannelId, Member, Slow
from echoic.formats import event
from echoic.testing.ledger import Ledger
from echoic.testing.simulated_hub import SimulatedHub

__all__ = ["PendingCall", "Sample", "SimulationReport", "Source", "Subscription"]


@event
class Sample:
    """What the simulated sources publish."""

    source: int
    number: int
    load: bytes


class SimulationReport(msgspec.Struct, frozen=True):
    """What happened in a run."""

    seed: int
    mode: str
    hubs: int
    virtual_seconds: float
    submitted: int
    delivered: int
    missing: int
    gaps: int
    calls: int
    faults: dict[str, int]
    trace: int
    derived: int = 0
    """How many channels were derived."""
    derived_delivered: int = 0
    """Events of derived channels that sinks got, here derived by themselves or in the source's hub."""
    derived_missing: int = 0
    raw: int = 0
    """Events that were sent to sinks as they are, to be derived there."""
    tuned: int = 0
    """Changes of parameters that were confirmed."""
    turned: int = 0
    """How often sinks have gone over to another channel."""
    refused: int = 0
    """How often one could not, and went on with what it had."""


class Source:
    """A source, and how it goes about submitting."""

    def __init__(self, number: int, hub: SimulatedHub, member: Member, pause_ns: int, load: bytes) -> None:
        self.number: Final = number
        self.hub: Final = hub
        self.member: Final = member
        self.pause_ns: Final = pause_ns
        self.load: Final = load
        self.open = True
        self.busy = False
        """Whether something is being derived of it, which nothing of it may overtake."""

    @property
    def living(self) -> bool:
        """Whether events can still be expected of it."""
        return self.open and self.hub.alive


class Subscription:
    """The sinks of one hub, from subscribing to cancelling."""

    def __init__(self, number: int, hub: SimulatedHub, member: Member, slow: Slow, handle_ns: int) -> None:
        self.number: Final = number
        self.hub: Final = hub
        self.member: Final = member
        self.slow: Final = slow
        self.handle_ns = handle_ns
        self.stuck_until_ns = 0
        self.open = True

    @property
    def living(self) -> bool:
        """Whether events can still be expected to arrive there."""
        return self.open and self.hub.alive

    @property
    def derived(self) -> bool:
        """Whether it is to a derived channel."""
        return bool(self.member.lineage)

    @property
    def root(self) -> str:
        """The id of the channel whose sources it hears."""
        lineage = self.member.lineage
        return str(ChannelId(self.member.manager, lineage[0].recipe.parent)) if lineage else self.member.id


class PendingCall(msgspec.Struct, frozen=True, eq=False):
    """A synchronous event, and who must have handled it when all have answered."""

    source: Source
    number: int
    ledger: Ledger
    line: int
    first: int
    call: Call
    heard: list[Subscription]
