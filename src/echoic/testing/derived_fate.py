"""The fate of a system in which channels are derived from channels: the same faults, and more that programs may do.

Hubs derive at random times: filters and routers with parameters, of channels and of derived ones, with the code at the
sources, at the sinks or wherever it is moved. They subscribe, and change parameters, while everything else goes wrong.
Some hubs run no code of others; in some systems code takes so long that derivations are suspended or moved for it.
"""

from collections.abc import Callable
from typing import Final, get_args

from echoic.channels import ChannelId, Placement, Policy
from echoic.testing.derived_book import Formula
from echoic.testing.fate import POLICIES, Fate
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.simulated_deriving import DerivedChannel
from echoic.testing.simulated_ends import Sample
from echoic.testing.simulated_hub import SimulatedHub
from echoic.testing.simulated_system import SimulatedSystem

__all__ = ["DerivedFate"]

PLACEMENTS: Final[tuple[Placement, ...]] = get_args(Placement)
DEPTH_MAX: Final = 3
BUSY_SHARE: Final = 0.1
CLOSED_SHARE: Final = 0.1
RACE_SHARE: Final = 0.25
FAULTY_SHARE: Final = 0.1


class DerivedFate(Fate):
    """A system with derived channels that was drawn by chance, and its fate."""

    declared = Sample
    deeds_ns = 24 * SECOND
    """How long programs change something."""

    def __init__(self, seed: int, system: SimulatedSystem | None = None, servers: int = 1) -> None:
        """Draw who takes part, and what is derived when."""
        super().__init__(seed, system, servers)
        self.deriving = self.system.derived
        self.system.race_share = self.random.choice((0.0, RACE_SHARE))
        self._serial = 0
        if self.random.random() < BUSY_SHARE:
            self.deriving.work_ns = lambda: self.random.randrange(400 * MILLISECOND)
        for _ in range(self.random.randint(1, 4)):
            self.system.run_soon(self.random.randrange(SECOND), self._derive)
        for _ in range(self.random.randint(2, 8)):
            self.system.run_soon(self.random.randrange(SECOND, 8 * SECOND), self._subscribe_derived)
        for _ in range(self.random.randint(2, 14)):
            self.system.run_soon(self.random.randrange(SECOND, self.deeds_ns), self._draw_deed())

    def let_it_settle(self) -> None:
        """Let every derivation have parameters with which something passes, then let what is under way arrive.

        In half of the runs those that have are left alone, so that hubs must agree by themselves.
        """
        all_of_them = self.random.random() < 0.5
        for _ in range(3):
            for channel in list(self.deriving.channels.values()):
                if all_of_them or not self.deriving.is_sound(channel):
                    self._tune_well(channel)
            self.system.run(4 * SECOND)
        self.system.check_progress()
        super().let_it_settle()

    def policy(self) -> Policy | None:
        """Return what a hub lets others do."""
        return Policy(derive=False) if self.random.random() < CLOSED_SHARE else None

    def _return(self, address: str) -> None:
        super()._return(address)
        hub = next(hub for hub in reversed(self.system.hubs) if hub.address == address)
        if self.random.random() < 0.7:
            self._subscribe_there(hub)

    def _draw_deed(self) -> Callable[[], None]:
        deed = self.random.choice(self._deeds)

        def do() -> None:
            self.system.faults[deed.__name__.strip("_")] += 1
            deed(self)

        return do

    def _derive(self) -> None:
        hub = self._hub()
        known = [channel for channel in self.deriving.channels.values() if len(channel.lineage) < DEPTH_MAX]
        parents: list[ChannelId] = self.channels + [channel.id for channel in known]
        if hub is not None:
            parent = self.random.choice(parents)
            level = next((len(channel.lineage) for channel in known if channel.id == parent), 0)
            router, share = self.random.random() < 0.25, self.random.random() < 0.7
            formula = self._formula(level, router=router, serial=0)
            self.deriving.derive(hub, parent, formula, self.random.choice(PLACEMENTS), router=router, share=share)

    def _formula(self, level: int, *, router: bool, serial: int) -> Formula:
        """Return parameters of their own digit of an event's number for each level, so that something always passes."""
        modulus = 3 if router else self.random.randint(1, 3)
        return Formula(3**level, modulus, self.random.randrange(modulus), serial)

    def _subscribe_derived(self) -> None:
        hub = self._hub()
        if hub is not None:
            self._subscribe_there(hub)

    def _subscribe_there(self, hub: SimulatedHub) -> None:
        channels = list(self.deriving.channels.values())
        if channels:
            channel = self.random.choice(channels)
            if not self._subscribed(hub, channel.id):
                handle_ns = self.random.choice((0, MILLISECOND, 100 * MILLISECOND))
                self.deriving.subscribe(hub, channel, self.random.choice(POLICIES), handle_ns)

    def _tune(self) -> None:
        hub, channels = self._hub(), list(self.deriving.channels.values())
        if hub is not None and channels:
            channel = self.random.choice(channels)
            if self.random.random() < FAULTY_SHARE:
                self._serial += 1
                self.deriving.tune(hub, channel, Formula(1, 0, 0, self._serial))
            else:
                self._tune_well(channel, hub)

    def _tune_well(self, channel: DerivedChannel, hub: SimulatedHub | None = None) -> None:
        hub = hub if hub is not None else self._hub()
        if hub is not None:
            self._serial += 1
            router = bool(channel.lineage[-1].recipe.ports)
            formula = self._formula(len(channel.lineage) - 1, router=router, serial=self._serial)
            self.deriving.tune(hub, channel, formula)

    def _tune_twice(self) -> None:
        """Let two hubs change the same parameters at the same time."""
        self._tune()
        if self.deriving.tunings:
            self._tune_well(self.deriving.tunings[-1].channel)

    def _move(self) -> None:
        """Move a derivation between the source and the sinks, perhaps several times in a row."""
        found = [derivation for _, derivation in self.deriving.derivations() if derivation.movable]
        found = [derivation for derivation in found if derivation.step.recipe.placement != "source"]
        if found:
            derivation = self.random.choice(found)
            for _ in range(self.random.choice((1, 1, 2, 4))):
                here = self.random.random() < 0.5
                self.system.run_soon(self.random.randrange(3 * SECOND), lambda here=here: derivation.move(here=here))  # type: ignore[misc] # mypy#12557

    def _crash_manager(self) -> None:
        """Let a manager forget everything, while channels are derived from those it manages."""
        addresses = {id.address for id in self.channels}
        living = [hub for hub in self.system.hubs if hub.alive and hub.address in addresses]
        if living:
            self._end(self.random.choice(living), self.system.crash)

    _deeds: tuple[Callable[["DerivedFate"], None], ...] = (
        _derive,
        _subscribe_derived,
        _subscribe_derived,
        _tune,
        _tune,
        _tune,
        _tune_twice,
        _move,
        _move,
        _crash_manager,
    )
