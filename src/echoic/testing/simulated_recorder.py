"""A recorder in a simulation: the journal's real writer on a simulated disk, and the hub that it belongs to.

What `hub.Recording` promises the concentrator, this promises too: what has arrived is appended, committed with others a
little later, and only then counts as handled and is confirmed to the hubs of the sources.
"""

from typing import TYPE_CHECKING, Final

from echoic.channels import ChannelId, Concentrator, Delivery, Kept, SinkHub, ignore
from echoic.recorder import JournalOptions, JournalWriter, Retention
from echoic.testing.network import MILLISECOND
from echoic.testing.simulated_disk import SimulatedDisk
from echoic.testing.simulated_hub import SimulatedHub
from echoic.testing.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SimulatedRecorder"]

SEGMENT_BYTES_MAX: Final = 4096
COMMIT_NS: Final = (1 * MILLISECOND, 40 * MILLISECOND)


class SimulatedRecorder:
    """What `hub.Recording` is for a real hub: it appends what arrives, and confirms what is on the disk."""

    def __init__(
        self,
        around: Surroundings,
        disk: SimulatedDisk,
        hub: SimulatedHub,
        id: ChannelId,
        retention: Retention | None = None,
    ) -> None:
        self.hub: Final = hub
        self.committed: Callable[[], None] = lambda: None
        """Called when more is on the disk."""
        self._around = around
        options = JournalOptions(segment_bytes_max=SEGMENT_BYTES_MAX, retention=retention or Retention())
        self.writer: Final = JournalWriter.open(disk, id.name, options, id=bytes(16), now_ns=around.wall_ns())
        self._waiting: list[Delivery] = []
        self.member: Final = hub.core.open(id, None)
        self.member.recorded = (self.writer.id, self.writer.positions)
        self.member.sink = SinkHub(hub.address, "block", ("recorder",), journal=self.writer.id)
        hub.do(lambda core: core.join(self.member, "sink", ignore))

    def take(self, delivery: Delivery) -> None:
        """Take events, to be committed with others a little later."""
        self._waiting.append(delivery)
        if len(self._waiting) == 1:
            self._around.clock.after(self._around.random.randrange(*COMMIT_NS), self._commit)

    def _commit(self) -> None:
        if not self.hub.alive:
            return
        taken, self._waiting = self._waiting, []
        now_ns = self._around.wall_ns()
        for delivery in taken:
            self.writer.append(delivery.batch, delivery.source, delivery.first, now_ns)
        self.writer.commit(now_ns)
        positions = self.writer.positions

        def tell(core: Concentrator) -> None:
            for delivery in taken:
                if delivery.hub in core.neighbours:
                    kept = {delivery.source: positions[delivery.source]}
                    core.send(delivery.hub, Kept(self.member.id, self.writer.id, kept))
                (core.reply(delivery, {}) if delivery.call else core.handled(delivery))

        self.hub.do(tell)
        self.committed()
