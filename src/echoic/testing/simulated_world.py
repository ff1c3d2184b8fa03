"""The whole of echoic in one simulation: hubs, name servers, a recorder, an ordered group and a bus, from one seed.

Everything is the product's own: concentrators, greetings, sessions, derivations, the journal's writer, reader and desk,
groups on the ordering core with their packing and their logs, the script machine with the protocol of its tools. Only
threads, sockets, disks and clocks are not. All parts share one virtual clock, one chance and one network, which loses
0 to 30 % of all packets, doubles and reorders, is cut one way and both ways, flaps, and resets connections; processes
crash, stand still and return; power is lost; the wall clock leaps.

    safety      at every step what the books say: `Ledger`, `DerivedBook`, `RecordedChannel`, `JournalOrder`,
                `GroupBook`, `BusBook`; in the end everything promised has come, and nothing is left over
    liveness    the same faults; then a healthy core is chosen and healed, while somebody outside of it stays half cut
                off. Ten seconds later every source of the core has reached every sink of it, names resolve, the
                recorder has confirmed, the group has ordered, the bus has gone on

`python -m echoic.testing.simulated_world --seed N --mode liveness` repeats a run.
"""

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.errors import EchoicError
from echoic.testing.ledger import check
from echoic.testing.network import SECOND
from echoic.testing.seed_loop import run_and_exit
from echoic.testing.simulation import Mode
from echoic.testing.surroundings import Surroundings
from echoic.testing.world.bus import WorldBus
from echoic.testing.world.fate import WorldFate
from echoic.testing.world.group import WorldGroup

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SimulatedWorld", "WorldReport", "run_world"]

LOSSES: Final = (0.0, 0.0, 0.01, 0.05, 0.1, 0.3)
COPIES: Final = (0.0, 0.02, 0.1)
BUS: Final = "bus:7500"
LONG_NS: Final = 3600 * SECOND
OUTSIDER_SHARE: Final = 0.5


class WorldReport(msgspec.Struct, frozen=True):
    """What happened in a world."""

    seed: int
    mode: str
    virtual_seconds: float
    submitted: int
    delivered: int
    missing: int
    recorded: int
    read: int
    """Events that durable sinks have handled."""
    ordered: int
    handshakes: int
    faults: dict[str, int]
    trace: int


class SimulatedWorld:
    """A world, made of a seed."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.random = around.random
        self.fate = WorldFate(around)
        places = self.fate.places
        self.group = WorldGroup(around, places[: self.random.randint(3, min(5, len(places)))])
        self.bus = WorldBus(around, BUS, ("sensor", *self.random.choices(("sensor", "worker"), k=2), "worker"))
        self.fate.others = [BUS, *self.bus.tools]
        self.fate.on_rest += [self.group.rest, self.bus.rest]
        self.fate.world.on_crash.append(lambda hub: self.group.end_process(hub.address))
        around.network.loss, around.network.copies = self.random.choice(LOSSES), self.random.choice(COPIES)

    def run(self, mode: Mode = "safety") -> WorldReport:
        """Let everything fail for a while, heal it, and check what has become of it.

        Raises:
            AssertionError: A promise was broken.
        """
        clock = self.around.clock
        for _ in range(self.random.randint(0, 6)):
            strike = self.random.choice((self.group.hunt, self.group.hunt, self.bus.crash_tool))
            clock.after(self.random.randrange(self.fate.faults_ns), strike)
        self.fate.let_it_fail()
        self.around.network.loss = self.around.network.copies = 0.0
        self.group.heal()
        if mode == "liveness":
            self._check_progress()
        return self._settle(mode)

    def close(self) -> None:
        """Let go of what the operating system has lent."""
        self.group.close()

    def _check_progress(self) -> None:
        """Choose a healthy core, and check that all of it makes progress."""
        world, recorded = self.fate.world, self.fate.recorded
        core = self._healthy_core()
        world.healthy = core
        heads = recorded.recorder.writer.heads[0] if recorded.hub.alive else 0
        checks: list[Callable[[], None]] = [self.group.begin_progress(core), self.bus.begin_progress()]
        world.check_progress()
        for each in checks:
            each()
        self.fate.check_names()
        sources = [one for one in world.sources if one.living and one.member.id == str(recorded.id)]
        heard = any(world.is_healthy(one.hub) for one in sources)
        check(not heard or recorded.recorder.writer.heads[0] > heads, "the recorder keeps nothing")
        world.healthy = None
        self.around.network.heal()

    def _healthy_core(self) -> set[str]:
        """Return who must make progress; of the others, one may stay cut off from some, one way."""
        around, fate = self.around, self.fate
        core = {*fate.addresses()}
        members = set(self.group.places.values())
        spare = [place for place in fate.places if place not in fate.essential]
        spare = [place for place in spare if place not in members or (self.group.tolerant and len(members) > 2)]
        if spare and self.random.random() < OUTSIDER_SHARE:
            outsider = self.random.choice(spare)
            core.discard(outsider)
            for other in sorted(core):
                if self.random.random() < 0.5:
                    pair = (outsider, other) if self.random.random() < 0.5 else (other, outsider)
                    around.network.part(*pair, LONG_NS)
            around.note(f"{outsider} is outside of the healthy core")
        return core

    def _settle(self, mode: Mode) -> WorldReport:
        fate, world = self.fate, self.fate.world
        fate.let_it_settle()
        world.run(10 * SECOND)
        self.group.check_settled()
        self.bus.check_bounds()
        recorded = fate.recorded.check_journal(whole=True)
        fate.recorded.check_read()
        lines = world.ledger.lines.values()
        return WorldReport(
            seed=self.around.seed,
            mode=mode,
            virtual_seconds=self.around.clock.now_ns / SECOND,
            submitted=sum(world.ledger.submitted.values()),
            delivered=sum(line.events for line in lines),
            missing=sum(line.missing for line in lines),
            recorded=recorded,
            read=sum({id(one.program): one.program.handled for one in fate.recorded.durables}.values()),
            ordered=len(self.group.book.events),
            handshakes=self.bus.book.handshakes,
            faults=dict(sorted(self.around.faults.items())),
            trace=self.around.trace,
        )


def run_world(seed: int, mode: Mode = "safety") -> WorldReport:
    """Run a world, and return what happened.

    Raises:
        AssertionError: A promise was broken; the message has the seed and the last things that happened.
    """
    around, world = Surroundings(seed), None
    try:
        world = SimulatedWorld(around)
        report = world.run(mode)
    except (AssertionError, EchoicError, LookupError, RuntimeError, OSError, ValueError, TypeError) as problem:
        failure = around.explain(f"{type(problem).__name__}: {problem} - world, {mode}")
        with suppress(AssertionError, EchoicError):  # in a world in which something is broken more may break
            if world is not None:
                world.close()
        raise AssertionError(failure) from problem
    world.close()
    return report


def main() -> None:
    """Run the seeds that were asked for, and print what happened."""
    parser = argparse.ArgumentParser(description="Simulate the whole of echoic, among faults, from seeds.")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds")
    parser.add_argument("--mode", choices=("safety", "liveness"), default="safety")
    wish = parser.parse_args()
    run_and_exit(lambda seed: run_world(seed, wish.mode), wish.seed, wish.count, "worlds")


if __name__ == "__main__":
    main()
