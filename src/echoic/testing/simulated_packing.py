"""Packing in virtual time: the real packing buffer and policies above an engine with the costs of the paper.

    source ---> Packer ---> SimulatedEngine: one server, a pack of n messages takes T(n) = a + b n + d n^2
       ^          |                |
       +-- full --+<-- delivered --+  after the pipeline's latency, or with the next round of a token

The paper's engine is bound by the processor, so it is a server that is busy with one pack at a time. For every size of
message the three numbers are those that go through the throughput without packing (table 1), the best one and the
degree that gives it (table 2); for 3000 bytes they are made from the 269 and 901 messages a second of section 4.1.

Sources are the paper's: continuous, of one size or of sizes that change every so many messages (4.1), and bursts
with a pause (4.2, 4.3). They are suspended while the buffer is full, and a burst's pause begins when it was accepted.
Disturbances are noise of every pack's time, transient loads that make everything take half as long again, latency of
the pipeline, and a token that delivers in bursts. A run is made from its seed alone.

    python -m echoic.testing.simulated_packing        prints every load with every policy, as shares of the best static
                                                      degree; --load, --seconds, --seed, --noise, --slow, --latency,
                                                      --token, --json
"""

import argparse
import math
import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

import msgspec

from echoic.groups.packer import PACKING_INTERVAL_NS, Packer
from echoic.groups.policies import PackingChange, Policy, policy_of

__all__ = ["LOADS", "Cost", "Disturbance", "Load", "PackingReport", "Sample", "best_static", "simulate"]

PACK_BYTES_MAX: Final = 1024 * 1024
SAMPLE_NS: Final = 500_000_000
SLOWER: Final = 1.5
STATIC_DEGREES: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24, 28, 32, 40)
POLICIES: Final = ("static:1", "paper", "paper:ta=0.5", "nagle:16384", "nagle:65536", "probe")


class Cost(msgspec.Struct, frozen=True):
    """How long the engine is busy with a pack of n messages: a + b n + d n^2, in milliseconds."""

    a: float
    b: float
    d: float

    @classmethod
    def through(cls, alone: float, degree: int, best: float) -> "Cost":
        """Return the cost that gives a throughput without packing, and the best one with a degree."""
        one, many = 1e3 / alone, degree * 1e3 / best
        d = (degree * one - many) / (degree * (degree * degree + 1) - 2 * degree * degree)
        a = d * degree * degree
        return cls(a, one - a - d, d)

    def mixed(self, other: "Cost", share: float) -> "Cost":
        """Return what lies between two costs."""
        rest = 1 - share
        return Cost(self.a * rest + other.a * share, self.b * rest + other.b * share, self.d * rest + other.d * share)

    def ns(self, messages: int) -> float:
        """Return how long a pack takes."""
        return 1e6 * (self.a + self.b * messages + self.d * messages * messages)


PAPER: Final[Mapping[int, Cost]] = {
    100: Cost.through(596, 28, 5666),
    1000: Cost.through(453, 11, 1577),
    # Half of the messages of section 4.1 have 1000 bytes; what is left of 269 and of 901 is due to those of 3000.
    3000: Cost.through(1 / (2 / 269 - 1 / 453), 6, 6e3 / 9.118),
    10000: Cost.through(114, 3, 201),
}


class Load(msgspec.Struct, frozen=True):
    """What a source does."""

    name: str
    sizes: tuple[int, ...]
    each: int = 1 << 62
    """After how many messages the next size comes."""
    burst: int = 0
    """Messages in a burst; 0 for a source that never pauses."""
    pause_ns: int = 0


LOADS: Final[Mapping[str, Load]] = {
    load.name: load
    for load in (
        Load("continuous 100", (100,)),
        Load("continuous 1000", (1000,)),
        Load("continuous 10000", (10000,)),
        Load("variable 1000/3000", (1000, 3000), 30_000),
        Load("burst 15/20ms", (1000,), burst=15, pause_ns=20_000_000),
        Load("burst 5/20ms", (1000,), burst=5, pause_ns=20_000_000),
        Load("burst 2/5ms", (1000,), burst=2, pause_ns=5_000_000),
    )
}


class Disturbance(msgspec.Struct, frozen=True):
    """What makes it hard."""

    noise: float = 0.08
    """Standard deviation of the logarithm of a pack's time."""
    slow_every_seconds: float = 0.0
    """How often on average a transient load of 1 to 5 seconds comes, which makes packs take half as long again."""
    latency_ns: int = 2_000_000
    """Of the pipeline, which the engine is not busy with."""
    token_ns: int = 0
    """If not 0, packs are delivered with the next round of a token."""


class Sample(msgspec.Struct, frozen=True):
    """Where a run was at some time."""

    at_ns: int
    messages: int
    """Delivered so far."""
    degree: float
    """Messages in a pack, recently."""


class PackingReport(msgspec.Struct, frozen=True):
    """What came of a run."""

    policy: str
    load: str
    throughput: float
    latency_ns: float
    """Mean over all messages, with the time in the buffer."""
    cpu: float
    """The share of the time in which the engine was busy."""
    degree: float
    """Messages in a pack, mean of the run."""
    messages: int
    packs: int
    samples: list[Sample]
    changes: list[PackingChange]

    def seconds_to(self, throughput: float) -> float | None:
        """Return when the throughput of the last two seconds was as high for the first time; None if never."""
        for before, after in zip(self.samples, self.samples[4:], strict=False):
            if (after.messages - before.messages) * 1e9 >= throughput * (after.at_ns - before.at_ns):
                return after.at_ns / 1e9
        return None


class SimulatedEngine:
    """Orders packs in virtual time, one after the other."""

    def __init__(self, costs: Mapping[int, Cost], disturbance: Disturbance, seed: int) -> None:
        self.busy_ns = 0.0
        self.deliveries: Final[deque[tuple[int, int]]] = deque()
        """When each pack comes back, and how many messages it has."""
        self._costs = costs
        self._known: dict[float, Cost] = {}
        self._disturbance = disturbance
        self._random = Random(seed)
        # Transient loads come at the same times whatever the policy is, so that runs can be compared.
        self._slow_random = Random(-seed - 1)
        self._free_ns = 0.0
        self._slow_from_ns = self._slow_until_ns = math.inf
        if disturbance.slow_every_seconds:
            self._slow_until_ns = 0.0
            self._draw_slow()

    def send(self, pack: Sequence[bytes], now_ns: int) -> None:
        """Take a pack."""
        disturbance = self._disturbance
        took_ns = self._cost(sum(map(len, pack)) / len(pack)).ns(len(pack))
        took_ns *= math.exp(self._random.gauss(0, disturbance.noise))
        while now_ns >= self._slow_until_ns:
            self._draw_slow()
        if self._slow_from_ns <= now_ns:
            took_ns *= SLOWER
        self._free_ns = max(self._free_ns, now_ns) + took_ns
        self.busy_ns += took_ns
        at_ns = int(self._free_ns) + disturbance.latency_ns
        if disturbance.token_ns:
            at_ns += -at_ns % disturbance.token_ns
        self.deliveries.append((at_ns, len(pack)))

    def _draw_slow(self) -> None:
        every = self._disturbance.slow_every_seconds
        self._slow_from_ns = self._slow_until_ns + 1e9 * self._slow_random.expovariate(1 / every)
        self._slow_until_ns = self._slow_from_ns + 1e9 * self._slow_random.uniform(1, 5)

    def _cost(self, size: float) -> Cost:
        """Return what packs of messages of a size cost, between those that are known."""
        if size not in self._known:
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[size] = _between(self._costs, size)
        return self._known[size]


def _between(costs: Mapping[int, Cost], size: float) -> Cost:
    sizes = sorted(costs)
    place = bisect_left(sizes, size)
    if place in {0, len(sizes)} or sizes[min(place, len(sizes) - 1)] == size:
        return costs[sizes[min(place, len(sizes) - 1)]]
    low, high = sizes[place - 1], sizes[place]
    return costs[low].mixed(costs[high], (size - low) / (high - low))


class SimulatedSource:
    """Adds messages to the buffer unless that is full."""

    def __init__(self, load: Load) -> None:
        self.wake_ns: int | None = 0
        """When the next burst begins; None while the source is suspended, or never pauses."""
        self.messages = 0
        self.added: Final[deque[tuple[int, int]]] = deque()
        """How many were added when, of those that are not delivered."""
        self._load = load
        self._records = [bytes(size) for size in load.sizes]
        self._left = 0

    def run(self, packer: Packer, now_ns: int) -> None:
        """Add what there is to add."""
        load = self._load
        if load.burst and self.wake_ns is not None:
            if now_ns < self.wake_ns:
                return
            self._left = load.burst
        self.wake_ns = None
        while not packer.full and (self._left or not load.burst):
            self._add(packer, now_ns)
        if load.burst and not self._left:
            self.wake_ns = now_ns + load.pause_ns

    def _add(self, packer: Packer, now_ns: int) -> None:
        load = self._load
        record = self._records[self.messages // load.each % len(self._records)]
        count = min(packer.room // len(record) + 1, load.each - self.messages % load.each)
        if load.burst:
            count = min(count, self._left)
            self._left -= count
        packer.add([record] * count, now_ns)
        self.messages += count
        self.added.append((count, now_ns))


def simulate(
    packing: str | Policy,
    load: Load,
    seconds: float,
    disturbance: Disturbance = Disturbance(),  # noqa: B008
    *,
    seed: int = 1,
    packing_interval_ns: int = PACKING_INTERVAL_NS,
    costs: Mapping[int, Cost] = PAPER,
) -> PackingReport:
    """Run a source, the packing buffer with a policy, and an engine, for so many seconds of virtual time."""
    policy = policy_of(packing)
    packer = Packer(policy, packing_interval_ns=packing_interval_ns, pack_bytes_max=PACK_BYTES_MAX, now_ns=0)
    return _Run(packer, SimulatedEngine(costs, disturbance, seed), SimulatedSource(load)).run(
        policy.name, load.name, int(seconds * 1e9)
    )


class _Run:
    """Virtual time, from one thing that happens to the next."""

    def __init__(self, packer: Packer, engine: SimulatedEngine, source: SimulatedSource) -> None:
        self._packer = packer
        self._engine = engine
        self._source = source
        self._messages = self._packs = self._latency_ns = 0
        self._samples: list[Sample] = []
        self._changes: list[PackingChange] = []

    def run(self, policy: str, load: str, end_ns: int) -> PackingReport:
        """Let time pass until the end."""
        now_ns = 0
        while now_ns <= end_ns:
            self._turn(now_ns)
            now_ns = max(now_ns + 1, self._next_ns(end_ns))
        self._sample(end_ns)
        messages, packs = self._messages, self._packs
        return PackingReport(
            policy=policy,
            load=load,
            throughput=messages * 1e9 / end_ns,
            latency_ns=self._latency_ns / max(1, messages),
            cpu=min(1.0, self._engine.busy_ns / end_ns),
            degree=messages / max(1, packs),
            messages=messages,
            packs=packs,
            samples=self._samples,
            changes=self._changes,
        )

    def _turn(self, now_ns: int) -> None:
        packer, engine = self._packer, self._engine
        self._sample(now_ns)
        while engine.deliveries and engine.deliveries[0][0] <= now_ns:
            _, messages = engine.deliveries.popleft()
            packer.delivered(now_ns)
            self._deliver(messages, now_ns)
        self._source.run(packer, now_ns)
        for pack in packer.packs(now_ns):
            engine.send(pack, now_ns)

    def _deliver(self, messages: int, now_ns: int) -> None:
        self._messages += messages
        self._packs += 1
        added = self._source.added
        while messages:
            count, at_ns = added[0]
            taken = min(count, messages)
            messages -= taken
            self._latency_ns += taken * (now_ns - at_ns)
            if taken == count:
                added.popleft()
            else:
                added[0] = (count - taken, at_ns)

    def _next_ns(self, end_ns: int) -> int:
        deliveries, source = self._engine.deliveries, self._source
        times = [deliveries[0][0] if deliveries else None, self._packer.wake_ns(), source.wake_ns]
        return min((each for each in times if each is not None), default=end_ns + 1)

    def _sample(self, now_ns: int) -> None:
        if now_ns >= len(self._samples) * SAMPLE_NS:
            self._samples.append(Sample(now_ns, self._messages, self._packer.statistics().degree))
            self._changes.extend(self._packer.changes())


def best_static(
    load: Load,
    seconds: float,
    disturbance: Disturbance = Disturbance(),  # noqa: B008
    *,
    seed: int = 1,
    degrees: Sequence[int] = STATIC_DEGREES,
) -> PackingReport:
    """Return the run of the static degree with the most throughput; of equals, the one with the least latency."""
    runs = [simulate(f"static:{degree}", load, seconds, disturbance, seed=seed) for degree in degrees]
    most = max(run.throughput for run in runs)
    return min((run for run in runs if run.throughput > 0.999 * most), key=lambda run: run.latency_ns)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m echoic.testing.simulated_packing", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--load", default="", help=f"only loads whose name has this: {', '.join(LOADS)}")
    parser.add_argument("--seconds", type=float, default=400.0, help="virtual time of each run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", type=float, default=0.08, help="of every pack's time")
    parser.add_argument("--slow", type=float, default=0.0, help="seconds between transient loads")
    parser.add_argument("--latency", type=float, default=2.0, help="of the pipeline, in milliseconds")
    parser.add_argument("--token", type=float, default=0.0, help="round of a token, in milliseconds")
    parser.add_argument("--json", action="store_true", help="one line for each run, instead of the table")
    return parser.parse_args()


def _line(run: PackingReport, best: PackingReport) -> str:
    seconds = run.seconds_to(0.9 * best.throughput)
    return (
        f"   {run.policy:28} {run.throughput:8.0f}/s {run.throughput / best.throughput:6.1%} of best "
        f"{run.latency_ns / 1e6:8.1f} ms  cpu {run.cpu:.2f}  degree {run.degree:5.1f}  "
        f"90 % after {'-' if seconds is None else f'{seconds:.1f} s'}"
    )


def _main() -> None:
    wish = _arguments()
    disturbance = Disturbance(wish.noise, wish.slow, int(wish.latency * 1e6), int(wish.token * 1e6))
    out = sys.stdout
    for load in LOADS.values():
        if wish.load not in load.name:
            continue
        seconds = wish.seconds if len(load.sizes) > 1 else min(60.0, wish.seconds)
        best = best_static(load, seconds, disturbance, seed=wish.seed)
        runs = [simulate(policy, load, wish.seconds, disturbance, seed=wish.seed) for policy in POLICIES]
        if wish.json:
            out.writelines(msgspec.json.encode(run).decode() + "\n" for run in (best, *runs))
            continue
        out.write(f"{load.name}\n{_line(best, best)}\n")
        out.writelines(_line(run, best) + "\n" for run in runs)
        out.flush()


if __name__ == "__main__":
    _main()
