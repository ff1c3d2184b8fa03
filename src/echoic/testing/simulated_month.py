"""A month of a quiet world, in virtual time: few events, and everything that only time brings.

Timers, leases, redials, retention, segments that are begun and removed, wall clocks that leap, a crash now and then. A
month has 2.6 million seconds, so hubs look at the time about once a second, and members and tools have all the time
in the world. What must hold is what must hold in any world; and nothing may grow: what hubs know of each other, what is
asked and not answered, what is planned, what the journal takes.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from echoic.errors import EchoicError
from echoic.recorder import Retention
from echoic.testing.ledger import check
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.surroundings import Surroundings
from echoic.testing.trials.trial import Findings
from echoic.testing.world.bus import WorldBus
from echoic.testing.world.durable import Program
from echoic.testing.world.group import WorldGroup
from echoic.testing.world.recorded import RecordedChannel
from echoic.testing.world.system import WorldSystem

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["simulated_month"]

TICK_NS: Final = 900 * MILLISECOND
HOUR_NS: Final = 3600 * SECOND
DAY_NS: Final = 24 * HOUR_NS
PACE: Final = 200
PLACES: Final = ("hub0:7401", "hub1:7401", "hub2:7401")
RETAINED_BYTES: Final = 20_000
USED_BYTES_MAX: Final = 200_000
PLANNED_MAX: Final = 2000
BUS: Final = "bus:7500"


class Month:
    """A quiet world, for as many days as are wanted."""

    def __init__(self, seed: int) -> None:
        around = self.around = Surroundings(seed)
        self.random = around.random
        self.world = WorldSystem(around, tick_ns=TICK_NS)
        hubs = [self.world.add_hub(place) for place in PLACES]
        self.id = self.world.create(hubs[0], "quiet", hubs[1].address)
        self.recorded = self.world.recorded = RecordedChannel(
            self.world, self.id, Retention(bytes_max=RETAINED_BYTES, age_ns_max=7 * DAY_NS)
        )
        self.world.run(20 * SECOND)
        self.recorded.read_at(hubs[2], Program("reader", careful=True, look_ns=10 * SECOND))
        for hub in hubs:
            self.world.publish(hub, self.id, self.random.randrange(300, 900) * SECOND)
        self.world.subscribe(hubs[0], self.id)
        self.world.subscribe(hubs[2], self.id, "drop_oldest")
        self.group = WorldGroup(around, PLACES, PACE)
        self.bus = WorldBus(around, BUS, ("sensor", "worker"), PACE)
        self._fail_on()

    def live(self, days: float) -> None:
        """Let days pass, and look every hour whether anything grows.

        Raises:
            AssertionError: Something does, or a promise was broken.
        """
        clock = self.around.clock
        end_ns = clock.now_ns + int(days * DAY_NS)
        while clock.now_ns < end_ns:
            self.world.run(HOUR_NS)
            self._check_bounds()
        self.around.network.heal()
        self.group.heal()
        self.world.run(HOUR_NS)
        before = {source.number: self._heard(source.number) for source in self.world.sources}
        self.world.run(HOUR_NS)
        silent = [number for number, heard in before.items() if self._heard(number) == heard]
        check(not silent, f"after {days} days nothing is heard of sources {silent}")

    def _heard(self, source: int) -> int:
        return sum(line.events for (one, _), line in self.world.ledger.lines.items() if one == source)

    def _fail_on(self) -> None:
        """Let something go wrong every few hours."""
        network = self.around.network
        faults: tuple[Callable[[], None], ...] = (
            network.cut_any,
            network.cut_all,
            self.around.leap,
            self.recorded.kill,
            self.recorded.cut_power,
            self.group.hunt,
            self.bus.crash_tool,
            self._part,
        )
        self.random.choice(faults)()
        self.around.clock.after(self.random.randrange(HOUR_NS, 6 * HOUR_NS), self._fail_on)

    def _part(self) -> None:
        one, other = self.random.sample(PLACES, 2)
        self.around.network.part(one, other, self.random.choice((2 * SECOND, 600 * SECOND)))

    def _check_bounds(self) -> None:
        for hub in self.world.hubs:
            if hub.alive:
                core = hub.core
                sizes = (len(core.neighbours), len(core.requests), len(core.members), len(core.calls))
                check(max(sizes) <= 20, f"{hub.id} has {sizes} neighbours, requests, channels and calls")
        planned = self.around.clock.planned
        check(planned <= PLANNED_MAX, f"{planned} things are planned")
        used = self.recorded.used_bytes
        check(used <= USED_BYTES_MAX, f"the journal takes {used} bytes, {RETAINED_BYTES} are to be kept")
        self.bus.check_bounds()


def simulated_month(seed: int, days: float = 30) -> Findings:
    """Let a quiet world live for a month, or for some other time, and return what was found."""
    month = Month(seed)
    problems: tuple[str, ...] = ()
    try:
        month.live(days)
    except (AssertionError, EchoicError, LookupError, RuntimeError, OSError, ValueError) as problem:
        problems = (month.around.explain(f"{type(problem).__name__}: {problem} - {days} days"),)
    finally:
        month.group.close()
    figures = {
        "virtual_days": month.around.clock.now_ns / DAY_NS,
        "events": sum(month.world.ledger.submitted.values()),
        "read": month.recorded.durables[0].program.handled,
        "ordered": len(month.group.book.events),
        "handshakes": month.bus.book.handshakes,
        "faults": sum(month.around.faults.values()),
    }
    return Findings(problems, msgspec.convert(figures, dict[str, int | float | str]))
