"""The fate of a system whose sinks go over between derived channels: who resets what when, and what fails meanwhile.

Resets come all the time, of several handles at once, to modulators that others share, that hold events back, or to
none. Connections break, hubs are parted for less and more time than they wait for each other, hubs with sources crash
and return, stand still, refuse modulators; sources and handles come and go. Then the network is healed.
"""

from collections.abc import Callable
from typing import Final

from echoic.channels import Policy
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.simulated_ends import SimulationReport
from echoic.testing.simulated_hub import SimulatedHub
from echoic.testing.simulated_turning import TurningSystem
from echoic.testing.turning_ends import Handle

__all__ = ["TurningFate"]

MODULATORS: Final = 6
FAULTS_NS: Final = 4 * SECOND
HEALED_NS: Final = 24 * SECOND
CLOSED_SHARE: Final = 0.15
PEACE_SHARE: Final = 0.4


class TurningFate:
    """A system that was drawn by chance, and its fate."""

    def __init__(self, seed: int) -> None:
        self.system = TurningSystem(seed, freezes=bool(seed % 2))
        self.random = self.system.random
        self._closed_share = CLOSED_SHARE if self.random.random() < 0.3 else 0.0
        self._peaceful = self.random.random() < PEACE_SHARE
        self.system.race_share = self.random.choice((0.0, 0.3, 0.8))
        self.system.add_hub()
        self._origins = [self.system.add_hub(policy=self._policy()) for _ in range(self.random.randint(1, 3))]
        self._listening = [self.system.add_hub() for _ in range(self.random.randint(1, 2))]
        for hub in self._listening:
            for _ in range(self.random.randint(1, 2)):
                self.system.subscribe(hub)
        self.system.run(2 * SECOND)
        for hub in [*self._origins, *self._drawn([self.system.manager, *self._listening])]:
            for _ in range(self.random.choice((1, 1, 2))):
                self.system.publish(hub, self.random.choice((20, 40, 100)) * MILLISECOND)

    def let_it_fail(self) -> None:
        """Let resets and faults come for a while, then heal what can be healed."""
        system = self.system
        for _ in range(self.random.randint(10, 40)):
            system.clock.after(self.random.randrange(FAULTS_NS), self._reset)
        faults = self._deeds if self._peaceful else (*self._deeds, *self._faults)
        for _ in range(self.random.randint(2, 8)):
            system.clock.after(self.random.randrange(FAULTS_NS), self._draw(faults))
        system.run(FAULTS_NS)
        system.slowness = 20
        if not self._peaceful:
            system.run(HEALED_NS)
        system.note("everything is healed")
        system.network.heal()

    def let_it_settle(self) -> None:
        """Let what is under way arrive, reset once more, and check that nothing is left."""
        system = self.system
        system.run((3 if self._peaceful else 15) * SECOND)
        for handle in self._handles():
            system.reset(handle, self.random.randrange(MODULATORS))
        system.run(5 * SECOND)
        system.quiet = True
        system.run(5 * SECOND)
        system.check_settled()

    def report(self, mode: str) -> SimulationReport:
        """Return what happened."""
        system = self.system
        return SimulationReport(
            system.seed,
            mode,
            len(system.hubs),
            system.clock.now_ns / SECOND,
            sum(system.submitted.values()),
            system.delivered_events,
            system.missed_events,
            0,
            0,
            dict(sorted(system.faults.items())),
            system.trace,
            turned=sum(handle.resets for handle in system.handles),
            refused=sum(handle.refusals for handle in system.handles),
        )

    def _policy(self) -> Policy | None:
        return Policy(derive=False) if self.random.random() < self._closed_share else None

    def _drawn(self, hubs: list[SimulatedHub]) -> list[SimulatedHub]:
        return [hub for hub in hubs if self.random.random() < 0.3]

    def _handles(self) -> list[Handle]:
        return [handle for handle in self.system.handles if handle.living and not handle.busy]

    def _draw(self, deeds: "tuple[Callable[[TurningFate], None], ...]") -> Callable[[], None]:
        deed = self.random.choice(deeds)

        def do() -> None:
            self.system.faults[deed.__name__.strip("_")] += 1
            deed(self)

        return do

    def _reset(self) -> None:
        handles = self._handles()
        if handles:
            self.system.reset(self.random.choice(handles), self.random.randrange(MODULATORS))

    def _reset_all(self) -> None:
        modulator = self.random.randrange(MODULATORS)
        for handle in self._handles():
            self.system.reset(handle, modulator)

    def _publish(self) -> None:
        living = [hub for hub in self.system.hubs if hub.alive]
        self.system.publish(self.random.choice(living))

    def _subscribe(self) -> None:
        self.system.subscribe(self.random.choice(self._listening), self.random.randrange(MODULATORS))

    def _close(self) -> None:
        handles = self._handles()
        if len(handles) > 1:
            self.system.close(self.random.choice(handles))

    def _unpublish(self) -> None:
        living = [source for source in self.system.sources if source.living]
        if len(living) > 1:
            self.system.unpublish(self.random.choice(living))

    def _cut_connection(self) -> None:
        self.system.network.cut_any()

    def _cut_all(self) -> None:
        self.system.network.cut_all()

    def _part(self) -> None:
        one, other = self.random.sample(sorted({hub.address for hub in self.system.hubs}), 2)
        duration_ns = self.random.choice((300 * MILLISECOND, 3 * SECOND, 22 * SECOND))
        self.system.note(f"{one} is parted from {other} for {duration_ns / SECOND} s")
        self.system.network.part(one, other, duration_ns)
        self.system.network.part(other, one, duration_ns)

    def _crash(self) -> None:
        living = [hub for hub in self._origins if hub.alive]
        if living:
            hub = self.random.choice(living)
            self.system.note(f"{hub.id}: crashes")
            self.system.network.crash(hub)
            self.system.clock.after(self.random.randrange(5 * SECOND), lambda: self._return(hub.address))

    def _return(self, address: str) -> None:
        hub = self.system.add_hub(address, self._policy())
        self._origins.append(hub)
        self.system.publish(hub)

    def _freeze(self) -> None:
        hub = self.random.choice([hub for hub in self.system.hubs if hub.alive])
        if not hub.frozen:
            self.system.note(f"{hub.id}: stands still")
            hub.stand_still(self.system.clock.now_ns + self.random.choice((SECOND, 4 * SECOND)))

    _deeds: "tuple[Callable[[TurningFate], None], ...]" = (
        _reset_all,
        _reset_all,
        _publish,
        _subscribe,
        _close,
        _unpublish,
    )
    _faults: "tuple[Callable[[TurningFate], None], ...]" = (_cut_connection, _cut_all, _part, _crash, _freeze)
