"""The fate of a world's hubs: what befalls channels of any kind, and a recorder, its disk and its readers beside.

Two or three of four to six hubs are name servers; channels are derived from channels; one is recorded, by a hub of its
own, and read by durable sinks. Faults are those of all simulations of channels, and: the recorder is killed, the power
of its machine is cut, readers crash and come back, links flap, the wall clock leaps.
"""

from collections.abc import Callable
from typing import Final

from echoic.channels import ChannelId, Message, Resolve, Resolved
from echoic.testing.derived_fate import DerivedFate
from echoic.testing.ledger import check
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.simulated_hub import SimulatedHub
from echoic.testing.surroundings import Surroundings
from echoic.testing.world.durable import Program
from echoic.testing.world.recorded import RecordedChannel
from echoic.testing.world.system import WorldSystem

__all__ = ["WorldFate"]

CAREFUL_SHARE: Final = 0.5
NAMES_TRIES: Final = 4


class WorldFate(DerivedFate):
    """The hubs of a world, and their fate."""

    hubs_drawn = (4, 6)
    heavy_share = 0.0
    faults_ns = 12 * SECOND
    healed_ns = 25 * SECOND
    deeds_ns = 12 * SECOND

    def __init__(self, around: Surroundings) -> None:
        self.others: list[str] = []
        """Where others than hubs are."""
        self.on_rest: list[Callable[[], None]] = []
        """Lets others than hubs begin nothing more."""
        self.world = WorldSystem(around, freezes=around.random.random() < 0.5)
        super().__init__(around.seed, self.world, around.random.randint(2, 3))
        hub = self._hub()
        if hub is not None:
            self.world.publish(hub, self.recorded.id, self.random.randrange(50, 300) * MILLISECOND)

    def prepare(self) -> None:
        """Let the recorder begin, and those who read what it has."""
        self.places = sorted(hub.address for hub in self.world.hubs)
        self.recorded = self.world.recorded = RecordedChannel(self.world, self.channels[0])
        self.world.run(2 * SECOND)
        check("sink" in self.recorded.recorder.member.joined, "nothing has failed yet, but the recorder has not joined")
        for number in range(self.random.randint(1, 2)):
            place = self.random.choice(self.places)
            self._read_at(place, Program(f"reader {number}", careful=self.random.random() < CAREFUL_SHARE))

    def addresses(self) -> list[str]:
        """Return the addresses that can be parted from each other, also those of others than hubs."""
        return [*super().addresses(), *self.others]

    def check_names(self) -> None:
        """Check that all names can be resolved, within some seconds.

        Raises:
            AssertionError: One cannot.
        """
        self._check_names()

    def rest(self) -> None:
        """Let nobody begin anything more, hub or not."""
        super().rest()
        for rest in self.on_rest:
            rest()

    def _read_at(self, place: str, program: Program) -> None:
        """Let a durable sink run at a place, whatever crashes there."""

        def look() -> None:
            hub = self.world.network.host(place)
            running = any(one.program is program and one.hub.alive for one in self.recorded.durables)
            if isinstance(hub, SimulatedHub) and hub.alive and not running:
                self.recorded.read_at(hub, program)
            self.world.run_soon(SECOND, look)

        look()

    def _kill_recorder(self) -> None:
        self.recorded.kill()

    def _cut_power(self) -> None:
        self.recorded.cut_power()

    def _flap(self) -> None:
        """Let a link come and go, one way or both ways."""
        one, other = self.random.sample(self.addresses(), 2)
        period_ns = self.random.choice((50 * MILLISECOND, 300 * MILLISECOND))
        times = self.random.randint(2, 6)
        self.world.note(f"the way from {one} to {other} flaps {times} times")
        self.world.network.flap(one, other, period_ns, times)
        if self.random.random() < 0.5:
            self.world.network.flap(other, one, period_ns, times)

    def _leap(self) -> None:
        self.world.around.leap()

    def _hub(self) -> SimulatedHub | None:
        """Return a hub that lives; the recorder's has faults of its own."""
        living = [hub for hub in self.world.hubs if hub.alive and not hub.address.startswith("recorder")]
        return self.random.choice(living) if living else None

    def _check_names(self) -> None:
        """Check that the name servers know every channel; whoever asks tries again, as programs do."""
        unknown = dict(enumerate(self.channels))
        for _ in range(NAMES_TRIES):
            askers = [hub for hub in self.world.hubs if self.world.is_healthy(hub)]
            for place, id in list(unknown.items()):
                self._resolve(self.random.choice(askers), place, id, unknown)
            self.world.run(SECOND)
        check(not unknown, f"the name servers do not know {list(map(str, unknown.values()))}")

    def _resolve(self, asker: SimulatedHub, place: int, id: ChannelId, unknown: dict[int, ChannelId]) -> None:
        def told(reply: Message) -> None:
            if reply == Resolved(str(id)):
                unknown.pop(place, None)

        server = self.servers[place % len(self.servers)]
        asker.do(lambda core: core.ask(server, Resolve(id.name), told))

    _faults: tuple[Callable[["WorldFate"], None], ...] = (  # type: ignore[assignment] # more of them than others have
        *DerivedFate._faults,  # noqa: SLF001 - of a class that this is one of
        _kill_recorder,
        _kill_recorder,
        _cut_power,
        _cut_power,
        _flap,
        _flap,
        _leap,
    )
