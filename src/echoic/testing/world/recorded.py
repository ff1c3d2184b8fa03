"""The recorded channel of a world: its recorder, the disk under it, and what may never be missing from its journal.

At every moment: no sink of the journal misses anything, and of each source the recorder confirms only what its disk
keeps when power is lost. After every start of the recorder the journal is read: of each source it has the events from
the first on, each once, in order, and all that were confirmed to its hub.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.channels import ChannelId, Consult, Delivery, Member
from echoic.recorder import Retention
from echoic.testing.journal_contents import events_of
from echoic.testing.ledger import check
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.simulated_disk import SimulatedDisk
from echoic.testing.simulated_hub import SimulatedHub
from echoic.testing.simulated_recorder import SimulatedRecorder
from echoic.testing.world.desk import SimulatedDesk
from echoic.testing.world.durable import JournalOrder, Program, SimulatedDurable

if TYPE_CHECKING:
    from echoic.testing.simulated_ends import Source
    from echoic.testing.world.system import WorldSystem

__all__ = ["RecordedChannel"]

PAUSES_NS: Final = (50 * MILLISECOND, SECOND, 5 * SECOND)
ELSEWHERE_SHARE: Final = 0.3


class RecordedChannel:
    """A channel, who records it, and who reads what was recorded."""

    def __init__(self, system: "WorldSystem", id: ChannelId, retention: Retention | None = None) -> None:
        self.id: Final = id
        self.order: Final = JournalOrder()
        self.durables: Final[list[SimulatedDurable]] = []
        self.unannounced: Final[set[int]] = set()
        """Sources that began when the manager, started anew, had yet to hear of the recorder."""
        self.confirmed: Final[dict[int, int]] = {}
        self._system = system
        self._around = system.around
        self._retention = retention
        self._disk = SimulatedDisk(system.random)
        self._places = 1
        self._open("recorder:7401")

    @property
    def hub(self) -> SimulatedHub:
        """The recorder's."""
        return self.recorder.hub

    @property
    def used_bytes(self) -> int:
        """How many bytes the journal takes on the disk."""
        return self._disk.used_bytes

    def promise(self, source: "Source") -> None:
        """Look whether what a source submits from here on is kept for the recorder."""
        if source.member.id == str(self.id) and not source.member.keepings:
            check(self._system.has_forgotten(self.id.address), f"nothing is kept of source {source.number}")
            self.unannounced.add(source.number)

    def note_confirmed(self, source: "Source") -> None:
        """Note how far the recorder has confirmed a source's events to its hub."""
        number, submitted = source.number, self._system.ledger.submitted.get(source.number, 0)
        if source.member.id == str(self.id) and number not in self.unannounced:
            for keeping in source.member.keepings:
                self.confirmed[number] = max(self.confirmed.get(number, 0), keeping.starts().get(number, submitted))

    def is_recorder(self, hub: SimulatedHub, member: Member) -> bool:
        """Whether somebody is the one who records."""
        return hub is self.recorder.hub and member is self.recorder.member

    def take(self, delivery: Delivery) -> None:
        """Record events."""
        self.recorder.take(delivery)

    def consult(self, consult: Consult) -> None:
        """Let somebody look into the journal."""
        self._desk.ask(consult)

    def read_at(self, hub: SimulatedHub, program: Program) -> None:
        """Let a durable sink run at a hub."""
        self._around.note(f"{hub.id}: {program.name} reads the journal from {program.position} on")
        self.durables.append(SimulatedDurable(self._around, hub, self.id, self.order, program))

    def kill(self, pause_ns: int = 0) -> None:
        """End the recorder's process; another one is started after a while, or after some time that is given."""
        self._end(self._disk.kill, pause_ns)

    def cut_power(self) -> None:
        """Cut the power of the recorder's machine."""
        self._end(self._disk.crash)

    def check_journal(self, *, whole: bool = False) -> int:
        """Check what the journal has; with `whole`, that it is all that living sources have submitted.

        Raises:
            AssertionError: It is not what it should be.
        """
        found = events_of(self._disk, self.id.name)
        for source in self._system.sources:
            if source.member.id != str(self.id):
                continue
            numbers = [event.number for event in found.get(source.number, [])]
            who = f"source {source.number} of {source.hub.id}"
            first = numbers[0] if numbers else 0
            check(first == 0 or source.number in self.unannounced, f"of {who} the journal has nothing before {first}")
            check(numbers == list(range(first, first + len(numbers))), f"of {who} the journal has {numbers[:50]}")
            end, confirmed = first + len(numbers), self.confirmed.get(source.number, 0)
            check(end >= confirmed, f"{confirmed} were confirmed to {who}, the journal ends with {end}")
            if whole and source.hub.alive and (source.open or source.number not in self.unannounced):
                submitted = self._system.ledger.submitted.get(source.number, 0)
                check(end == submitted, f"{who} has submitted {submitted}, the journal ends with {end}")
                kept = source.member.unconfirmed_bytes
                check(kept == 0, f"for {who} {kept} bytes are still kept")
        recorded = sum(map(len, found.values()))
        check(recorded >= len(self.order.events), f"{len(self.order.events)} events were read, {recorded} are there")
        return recorded

    def check_read(self) -> None:
        """Check that every durable sink that runs has handled all that was recorded.

        Raises:
            AssertionError: One has not.
        """
        head = self.recorder.writer.heads[0]
        for one in self.durables:
            check(
                not one.hub.alive or one.program.handled == head,
                f"{one.program.name} has handled {one.program.handled} of {head} events of the journal",
            )

    def _open(self, address: str) -> None:
        hub = self._system.add_hub(address)
        self.recorder = SimulatedRecorder(self._around, self._disk, hub, self.id, self._retention)
        self._desk = SimulatedDesk(self._around, self.recorder, self._disk)
        self.recorder.committed = self._desk.committed
        if self._retention is None:
            self.check_journal()

    def _end(self, happen: Callable[[], None], pause_ns: int = 0) -> None:
        hub, random = self.recorder.hub, self._system.random
        if not hub.alive:
            return
        for source in self._system.sources:
            self.note_confirmed(source)
        self._system.crash(hub)
        happen()
        self._places += random.random() < ELSEWHERE_SHARE
        address = f"recorder:{7400 + self._places}"
        self._around.clock.after(pause_ns or random.choice(PAUSES_NS), lambda: self._open(address))
