"""A recorder, sources and a manager on a network that fails and a disk that loses power, from a seed.

The cores are the real ones: concentrators that keep what is not confirmed (`channels.keeping`), and the journal's
writer, on a simulated disk. Connections are cut, hubs parted, shorter and longer than they wait for each other; the
recorder is killed, or its machine loses power, and comes back at the same address or at another one; sources and the
manager crash. When all is healed:

    safety     of every source the journal has its events from the first on, each once, in order, none left out; of
               those that were confirmed to its hub, all
    liveness   of every source that lives, all that it submitted; and nothing is kept any more

`python -m echoic.testing.simulation --recording --seed N` repeats a run.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from echoic.channels import (
    ChannelId,
    Consult,
    Delivery,
    Member,
    Missed,
    Modulation,
    Refused,
    Runner,
    Share,
    Troubled,
    ignore,
)
from echoic.channels.runs import SourceRun, submit_runs
from echoic.errors import JournalError
from echoic.testing.journal_contents import events_of
from echoic.testing.ledger import check
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.simulated_disk import SimulatedDisk
from echoic.testing.simulated_ends import Sample
from echoic.testing.simulated_hub import SimulatedHub, refuse
from echoic.testing.simulated_recorder import SimulatedRecorder
from echoic.testing.surroundings import Surroundings
from echoic.wire import Batch

__all__ = ["RecordingReport", "RecordingSystem", "run_recording"]

CHANNEL: Final = "samples"
SETTLED_NS: Final = 2 * SECOND
FAULTS_NS: Final = 22 * SECOND
HEALED_NS: Final = 40 * SECOND
QUIET_NS: Final = 45 * SECOND
TOGETHER_SHARE: Final = 0.2
CALL_SHARE: Final = 0.1


class RecordingReport(msgspec.Struct, frozen=True):
    """What happened in a run."""

    seed: int
    sources: int
    submitted: int
    recorded: int
    confirmed: int
    resent: int
    faults: dict[str, int]
    trace: int


class RecordedSource:
    """A source, and how far it has come."""

    def __init__(self, number: int, hub: SimulatedHub, member: Member, pause_ns: int) -> None:
        self.number: Final = number
        self.hub: Final = hub
        self.member: Final = member
        self.pause_ns: Final = pause_ns
        self.submitted = self.confirmed = 0
        self.unannounced = False
        """Whether it began when the manager, started anew, had yet to hear of the recorder."""


class RecordingSystem:
    """Hubs, what their programs do, and what breaks."""

    def __init__(self, seed: int) -> None:
        around = self.around = Surroundings(seed)
        self.random: Final = around.random
        self.clock: Final = around.clock
        self.network: Final = around.network
        self.disk: Final = SimulatedDisk(self.random)
        self.faults: Final = around.faults
        self.sources: Final[list[RecordedSource]] = []
        self._hubs: list[SimulatedHub] = []
        self._quiet = False
        self._freezes = self.random.random() < 0.5
        self._manager = self._start("manager:1")
        self._manager.core.manager.directory.create(CHANNEL, None)
        self._id: Final = ChannelId("manager:1", CHANNEL)
        self._recorder = SimulatedRecorder(around, self.disk, self._start("recorder:1"), self._id)
        self.clock.run_until(SETTLED_NS)
        check("sink" in self._recorder.member.joined, "nothing has failed yet, but the recorder has not joined")
        for number in range(self.random.randint(1, 3)):
            hub = self._start(f"source{number}:1")
            for _ in range(self.random.randint(1, 2)):
                self._publish(hub)

    def _start(self, address: str) -> SimulatedHub:
        id = f"{self.random.getrandbits(32):08x}-{len(self._hubs)}"
        hub = SimulatedHub(id, address, self.network, self, freezes=self._freezes)
        self._hubs.append(hub)
        self.note(f"{id}: starts at {address}")
        return hub

    def _publish(self, hub: SimulatedHub) -> None:
        member = hub.core.open(self._id, None)
        pause_ns = self.random.randrange(20, 400) * MILLISECOND
        source = RecordedSource(len(self.sources) + 1, hub, member, pause_ns)
        self.sources.append(source)
        member.sources[source.number] = 0
        hub.do(lambda core: core.join(member, "source", ignore))
        self.clock.after(pause_ns, lambda: self._submit_on(source))

    def _submit_on(self, source: RecordedSource) -> None:
        hub, member = source.hub, source.member
        if not hub.alive:
            return
        known = "source" in member.joined or source.submitted
        if not self._quiet and not hub.frozen and known and not hub.core.blocked(member):
            self._submit(source, self.random.choice((1, 1, 2, 5)))
        self._note_confirmed(source)
        self.clock.after(self.random.randrange(source.pause_ns, 2 * source.pause_ns), lambda: self._submit_on(source))

    def _submit(self, source: RecordedSource, count: int) -> None:
        number, first, member = source.number, source.submitted, source.member
        if not member.keepings:
            check(self.faults["kill_manager"] > 0, f"nothing is kept of source {number}")
            source.unannounced = True
        batch = Batch.of([Sample(number, first + step, bytes(self.random.randrange(40))) for step in range(count)])
        chance = self.random.random()
        source.submitted += count
        if chance < CALL_SHARE:
            source.hub.do(lambda core: core.forget_call(core.call(member, number, batch)[0]))
        elif chance < CALL_SHARE + TOGETHER_SHARE and submit_runs(
            source.hub.core, [SourceRun(member, number, count)], batch
        ):
            source.hub.do(lambda _: None)
        else:
            source.hub.do(lambda core: core.submit(member, number, batch))

    def _note_confirmed(self, source: RecordedSource) -> None:
        for keeping in source.member.keepings if not source.unannounced else ():
            source.confirmed = max(source.confirmed, keeping.starts().get(source.number, source.submitted))

    def run(self) -> RecordingReport:
        """Let faults come, heal, and check what the journal has.

        Raises:
            AssertionError: A promise was broken.
        """
        for _ in range(self.random.randint(2, 14)):
            self.clock.after(self.random.randrange(FAULTS_NS), self._draw_fault())
        self.clock.run_until(HEALED_NS)
        self.note("everything is healed")
        self.network.heal()
        self.clock.run_until(HEALED_NS + 5 * SECOND)
        self._quiet = True
        self.clock.run_until(HEALED_NS + QUIET_NS)
        return self._check()

    def _draw_fault(self) -> Callable[[], None]:
        fault = self.random.choice(self._faults)

        def strike() -> None:
            self.faults[fault.__name__.strip("_")] += 1
            self.note(f"fault: {fault.__name__.strip('_')}")
            fault(self)

        return strike

    def _cut_one(self) -> None:
        self.network.cut_any()

    def _part(self) -> None:
        one, other = self.random.sample(sorted({hub.address for hub in self._hubs}), 2)
        duration_ns = self.random.choice((300 * MILLISECOND, 3 * SECOND, 12 * SECOND, 25 * SECOND))
        self.network.part(one, other, duration_ns)
        if self.random.random() < 0.5:
            self.network.part(other, one, duration_ns)

    def _kill_recorder(self) -> None:
        self._end_recorder(self.disk.kill)

    def _cut_power(self) -> None:
        self._end_recorder(self.disk.crash)

    def _end_recorder(self, happen: Callable[[], None]) -> None:
        hub = self._recorder.hub
        if hub.alive:
            self.network.crash(hub)
            happen()
            elsewhere = self.random.random() < 0.3
            address = f"recorder:{len(self._hubs)}" if elsewhere else hub.address
            self.clock.after(
                self.random.choice((50 * MILLISECOND, SECOND, 8 * SECOND)), lambda: self._record_again(address)
            )

    def _record_again(self, address: str) -> None:
        self._recorder = SimulatedRecorder(self.around, self.disk, self._start(address), self._id)

    def _kill_source(self) -> None:
        living = [hub for hub in self._hubs if hub.alive and hub.address.startswith("source")]
        if living:
            hub = self.random.choice(living)
            for source in self.sources:
                if source.hub is hub:
                    self._note_confirmed(source)
            self.network.crash(hub)
            self.clock.after(self.random.choice((SECOND, 6 * SECOND)), lambda: self._publish(self._start(hub.address)))

    def _kill_manager(self) -> None:
        if self._manager.alive:
            self.network.crash(self._manager)
            self.clock.after(self.random.choice((SECOND, 6 * SECOND)), self._manage_again)

    def _manage_again(self) -> None:
        self._manager = self._start("manager:1")
        self._manager.core.manager.directory.create(CHANNEL, None)

    def _freeze(self) -> None:
        standing = [hub for hub in self._hubs if hub.alive and not hub.frozen]
        if standing:
            hub = self.random.choice(standing)
            hub.stand_still(self.clock.now_ns + self.random.choice((SECOND, 6 * SECOND)))

    _faults: tuple[Callable[["RecordingSystem"], None], ...] = (
        _cut_one,
        _cut_one,
        _cut_one,
        _part,
        _part,
        _kill_recorder,
        _kill_recorder,
        _cut_power,
        _cut_power,
        _kill_source,
        _kill_manager,
        _freeze,
    )

    def _check(self) -> RecordingReport:
        found = events_of(self.disk, CHANNEL)
        recorded = 0
        for source in self.sources:
            self._note_confirmed(source)
            numbers = [event.number for event in found.get(source.number, [])]
            who = f"source {source.number} of {source.hub.id}"
            first = numbers[0] if numbers else 0
            check(first == 0 or source.unannounced, f"of {who} the journal has no event before {first}")
            check(numbers == list(range(first, first + len(numbers))), f"of {who} the journal has {_shown(numbers)}")
            end = first + len(numbers)
            check(end >= source.confirmed, f"{source.confirmed} were confirmed to {who}, the journal ends with {end}")
            if source.hub.alive:
                check(end == source.submitted, f"{who} has submitted {source.submitted}, the journal ends with {end}")
                kept = source.member.unconfirmed_bytes
                check(kept == 0, f"for {who} {kept} bytes are still kept")
            recorded += len(numbers)
        submitted = sum(source.submitted for source in self.sources)
        confirmed = sum(source.confirmed for source in self.sources)
        resent = self._recorder.writer.statistics().duplicates
        return RecordingReport(
            self.around.seed,
            len(self.sources),
            submitted,
            recorded,
            confirmed,
            resent,
            dict(self.faults),
            self.around.trace,
        )

    def delivered(self, hub: SimulatedHub, delivery: Delivery) -> None:
        """Hand events to the recorder."""
        if self._recorder.hub is hub:
            self._recorder.take(delivery)

    def missed(self, hub: SimulatedHub, missed: Missed) -> None:
        """Note that events will not arrive: of a recorded channel that must never be."""
        gap = missed.gap
        self.note(f"{hub.id}: misses {gap.first} to {gap.last} of {gap.source}: {gap.reason}")
        check(False, f"{hub.id} misses {gap.first} to {gap.last} of source {gap.source}: {gap.reason}")

    def ended(self, hub: SimulatedHub, member: Member) -> None:
        """Note that the recorder is sent no more."""
        check(False, f"{hub.id} is sent no more of {member.id}")

    def troubled(self, hub: SimulatedHub, troubled: Troubled) -> None:
        """Nothing is derived here."""

    def forgotten(self, hub: SimulatedHub, other: str) -> None:
        """It is in the trace already."""

    def unreached(self, hub: SimulatedHub, address: str) -> None:
        """It is in the trace already."""

    def prepare(self, modulation: Modulation) -> Runner | Refused:
        """Nothing is modulated here."""
        return Refused("RefusedError", f"`{modulation.step.name}` is not run here")

    def drained(self, hub: SimulatedHub, share: Share, first: int) -> None:
        """Nothing is derived here."""

    def consulted(self, hub: SimulatedHub, consult: Consult) -> None:
        """Nobody reads a journal here."""
        refuse(hub, consult)

    def note(self, text: str) -> None:
        """Write down what happened."""
        self.around.note(text)


def run_recording(seed: int) -> RecordingReport:
    """Run a simulation in which a channel is recorded, and return what happened.

    Raises:
        AssertionError: A promise was broken; the message has the seed and the last things that happened.
    """
    system = RecordingSystem(seed)
    try:
        return system.run()
    except (AssertionError, JournalError, KeyError, IndexError, RuntimeError) as problem:
        raise AssertionError(system.around.explain(f"{type(problem).__name__}: {problem} - recording")) from problem


def _shown(numbers: list[int]) -> str:
    wrong = next((place for place, number in enumerate(numbers) if number != numbers[0] + place), len(numbers))
    return f"{len(numbers)} events, from the {wrong}th on {numbers[wrong : wrong + 5]}"
