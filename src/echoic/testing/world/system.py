"""The hubs of a world: those of `SimulatedSystem`, of which one records and others read what was recorded."""

from typing import TYPE_CHECKING, Final

from echoic.channels import Consult, Delivery, Member, Missed
from echoic.testing.ledger import check
from echoic.testing.simulated_ends import Source
from echoic.testing.simulated_hub import TICK_NS, SimulatedHub, refuse
from echoic.testing.simulated_system import SimulatedSystem
from echoic.testing.surroundings import Surroundings
from echoic.testing.world.recorded import RecordedChannel

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WorldSystem"]


class WorldSystem(SimulatedSystem):
    """Hubs, what their programs do, and a journal."""

    recorded: RecordedChannel | None = None
    """The channel that is recorded."""

    def __init__(self, around: Surroundings, *, freezes: bool = False, tick_ns: int = TICK_NS) -> None:
        super().__init__(around.seed, freezes=freezes, around=around, tick_ns=tick_ns)
        self.healthy: set[str] | None = None
        """The addresses that must make progress, if not all must."""
        self.on_crash: Final[list[Callable[[SimulatedHub], None]]] = []
        """Called when the process of a hub ends, for whatever else lives in it."""
        self._forgetful: set[str] = set()

    def has_forgotten(self, address: str) -> bool:
        """Whether a hub that was at an address has ended, so that the next knows nothing of what it had been told."""
        return address in self._forgetful

    def is_healthy(self, hub: SimulatedHub) -> bool:
        """Whether a hub must make progress."""
        return hub.alive and (self.healthy is None or hub.address in self.healthy)

    def crash(self, hub: SimulatedHub) -> None:
        """Let a hub vanish, and all that lives in its process."""
        self._forgetful.add(hub.address)
        if self.recorded is not None:
            for source in self.sources:
                if source.hub is hub:
                    self.recorded.note_confirmed(source)
        super().crash(hub)
        for learn in self.on_crash:
            learn(hub)

    def wants(self, hub: str, channel: str, subscription: int) -> bool:
        """Whether a hub wants to be sent a channel's events."""
        recorded = self.recorded
        if recorded is not None and recorded.hub.id == hub and channel == str(recorded.id):
            return recorded.hub.alive
        return super().wants(hub, channel, subscription)

    def open_requests(self, hub: SimulatedHub) -> int:
        """Return how many requests of a hub have yet to be answered, without those that wait for what is recorded."""
        polls = sum(one.hub is hub for one in self.recorded.durables) if self.recorded is not None else 0
        return max(0, super().open_requests(hub) - polls)

    def delivered(self, hub: SimulatedHub, delivery: Delivery) -> None:
        """Record events, or let sinks have them."""
        if self.recorded is not None and self.recorded.is_recorder(hub, delivery.member):
            self.around.count(delivery.source, delivery.first)
            self.recorded.take(delivery)
        else:
            super().delivered(hub, delivery)

    def missed(self, hub: SimulatedHub, missed: Missed) -> None:
        """Enter events that were reported missing; a recorder must never miss any."""
        gap = missed.gap
        if self.recorded is not None and self.recorded.is_recorder(hub, missed.member):
            check(False, f"the recorder misses {gap.first} to {gap.last} of source {gap.source}: {gap.reason}")
        super().missed(hub, missed)

    def ended(self, hub: SimulatedHub, member: Member) -> None:
        """Cancel a subscription that is sent no more; a recorder must never be cut off."""
        cut_off = self.recorded is not None and self.recorded.is_recorder(hub, member)
        check(not cut_off, f"the recorder at {hub.id} is sent no more")
        super().ended(hub, member)

    def consulted(self, hub: SimulatedHub, consult: Consult) -> None:
        """Let somebody read the journal."""
        if self.recorded is not None and self.recorded.is_recorder(hub, consult.member):
            self.recorded.consult(consult)
        else:
            refuse(hub, consult)

    def _promise(self, source: Source) -> None:
        if self.recorded is not None:
            self.recorded.promise(source)
            self.recorded.note_confirmed(source)
        super()._promise(source)
