"""A steady load with faults: memory, file descriptors, threads and round trips stay what they were.

    source      100 events a second, and a round trip with each beat           lives
    sinks       of all rules, by way of a proxy that resets every connection   lives
    group       three members, 60 events a second                             lives
    deriver     derives channels that come and go                             is killed now and then
    recorder    records, and reads its journal as a durable sink              is killed now and then
    bus         a bus and its two tools                                       lives

All but the bus are there twice: plain, and secured by certificates and just the rights of each role. Those who live are
looked at every second, once they have grown warm; `flatness` says what they may take. In the end the accounts of every
sink must be exact, everything must be recorded, and the members of a group must have had one order. The rate is a
modest one, so that a core is left for others.
"""

import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from echoic.errors import LocalError
from echoic.testing.charter import Charter, environment_of
from echoic.testing.trials.accounts import check_accounts
from echoic.testing.trials.flatness import (
    SECURED_SETTLING_BYTES,
    Life,
    growth_per_ten_minutes,
    judge_life,
    judge_round_trips,
    percentile,
)
from echoic.testing.trials.proxy import Proxy
from echoic.testing.trials.steady_bus import run_bus
from echoic.testing.trials.steady_parties import DERIVE, GRANTS, GROUP, RECORD, SINKS, SOURCE
from echoic.testing.trials.trial import Figure, Findings, Tell
from echoic.testing.trials.vital_signs import MEGABYTE, signs_of
from echoic.testing.trials.workers import Answer, Start, Worker, wait_until, workers

__all__ = ["run"]

LOOK_SECONDS: Final = 1.0
WARM_SHARE: Final = 0.25
RESET_SECONDS: Final = (2.0, 6.0)
KILL_SECONDS: Final = (8.0, 16.0)
SETTLE_SECONDS: Final = 60.0
SECURED: Final = "secured "
BEHIND_THE_PROXY, PROXY = "127.0.0.2", "127.0.0.3"


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Let it go on for `size` seconds."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="echoic-steady-") as temporary, workers() as start, ExitStack() as stack:
        folder = Path(temporary)
        charter = Charter.draw_up(folder / "charter", GRANTS)
        parts = [
            Part("", None, start, folder / "plain", stack),
            Part("secured ", charter, start, folder / "own", stack),
        ]
        bus = stack.enter_context(run_bus(folder / "bus"))
        steady = Steady(parts, {"bus": bus.pid}, chance)
        steady.go_on(size, tell)
        problems = steady.finish()
        if bus.poll() is not None:
            problems.append(f"the bus has ended with {bus.returncode}")
    return Findings(tuple(problems), steady.figures())


class Part:
    """The processes that have to do with each other: all plain, or all secured."""

    def __init__(self, title: str, charter: Charter | None, start: Start, journal: Path, stack: ExitStack) -> None:
        self.title = title

        def starting(target: str, role: str, **options: object) -> Worker:
            return start(target, environment_of(charter, role), **options)

        self._source = starting(SOURCE, "source", listen=f"{BEHIND_THE_PROXY}:0", advertise=PROXY)
        told = self._source.started
        port = told["address"].rpartition(":")[2]
        self._proxy = stack.enter_context(Proxy(f"{BEHIND_THE_PROXY}:{port}", PROXY))
        self._makers: Mapping[str, Callable[[], Worker]] = {
            "deriver": lambda: starting(DERIVE, "deriver", load=told["load"]),
            "recorder": lambda: starting(RECORD, "recorder", load=told["load"], folder=str(journal)),
        }
        self._sinks = starting(SINKS, "sinks", load=told["load"], pings=told["pings"])
        self._group = starting(GROUP, "group")
        for each in (self._sinks, self._group):
            each.ask()
        self._mortals = {name: make() for name, make in self._makers.items()}
        for each in self._mortals.values():
            each.ask()
        self._kills = self._submitted = self._group_events = 0
        self._round_trips: list[float] = []

    @property
    def lasting(self) -> dict[str, int]:
        """Who lives, by name."""
        living = {"source": self._source, "sinks": self._sinks, "group": self._group}
        return {f"{self.title}{name}": each.pid for name, each in living.items()}

    def begin(self) -> None:
        """Let the source submit."""
        self._source.ask("begin")

    def reset(self) -> None:
        """Reset every connection of the source."""
        self._proxy.reset()

    def kill(self, chance: random.Random) -> None:
        """Kill somebody, and start him anew."""
        name = chance.choice(sorted(self._makers))
        self._kills += 1
        self._mortals[name].kill()
        self._mortals[name] = self._makers[name]()

    def finish(self) -> list[str]:
        """Let all come to rest, and return what is wrong."""
        told = self._source.ask("halt")
        self._submitted, self._round_trips = told["submitted"], told["round_trips"]
        problems = judge_round_trips(self._round_trips)
        try:
            wait_until(self._is_settled, "all sinks and the journal have everything", SETTLE_SECONDS)
        except LocalError as error:
            problems.append(str(error))
        watched = self._sinks.ask()
        problems += watched["problems"]
        for rule, spans in watched["settled"].items():
            problems += check_accounts(f"the sink with {rule}", self._submitted, spans)
        if watched["missing"]["block"]:
            lacks = f"a sink with block was told that {watched['missing']['block']} events are missing"
            problems.append(f"{lacks}; its hub says: {'; '.join(watched['partings']) or 'no link was given up'}")
        return [f"{self.title}{problem}" for problem in problems + self._one_order()]

    def figures(self) -> dict[str, Figure]:
        """Return what was measured."""
        trips = self._round_trips or [0.0]
        figures: dict[str, Figure] = {
            "events": self._submitted,
            "group_events": self._group_events,
            "resets": self._proxy.resets,
            "kills": self._kills,
            "round_trip_p99_ms": round(percentile(trips, 0.99) * 1000, 2),
        }
        return {f"{self.title}{name}".replace(" ", "_"): value for name, value in figures.items()}

    def _is_settled(self) -> bool:
        watched, recorder = self._sinks.ask(), self._mortals["recorder"].ask()
        ends = [spans[-1][1] + 1 if spans else 0 for spans in watched["settled"].values()]
        done = min(recorder["recorded"], recorder["last"] + 1, *ends)
        return bool(done >= self._submitted)

    def _one_order(self) -> list[str]:
        orders: Answer = self._group.ask("halt")["orders"]
        self._group_events = min(order[0] for order in orders.values())
        if len({tuple(order) for order in orders.values()}) == 1 and self._group_events:
            return []
        return [f"the members of the group were not given one order: {orders}"]


class Steady:
    """What is done to both parts, and what their processes take meanwhile."""

    def __init__(self, parts: Sequence[Part], further: Mapping[str, int], chance: random.Random) -> None:
        self._parts, self._chance = parts, chance
        self._lasting = {**further, **{name: pid for part in parts for name, pid in part.lasting.items()}}
        self._lives: dict[str, Life] = {}

    def go_on(self, seconds: float, tell: Tell) -> None:
        """Let faults happen, and look at those who live."""
        for part in self._parts:
            part.begin()
        began, kills = time.monotonic(), 0
        reset_due, kill_due = self._chance.uniform(*RESET_SECONDS), self._chance.uniform(*KILL_SECONDS)
        while (passed := time.monotonic() - began) < seconds:
            if passed > reset_due:
                for part in self._parts:
                    part.reset()
                reset_due = passed + self._chance.uniform(*RESET_SECONDS)
            if passed > kill_due:
                self._parts[kills % len(self._parts)].kill(self._chance)
                kills += 1
                kill_due = passed + self._chance.uniform(*KILL_SECONDS) / len(self._parts)
            if passed > WARM_SHARE * seconds:
                for name, pid in self._lasting.items():
                    with suppress(OSError):  # it has ended, which is found in the end
                        self._life(name).note(passed, signs_of(pid))
            tell(int(passed))
            time.sleep(LOOK_SECONDS)

    def _life(self, name: str) -> Life:
        if name not in self._lives:
            secured = name.startswith(SECURED)
            self._lives[name] = Life(name, settling_bytes=SECURED_SETTLING_BYTES) if secured else Life(name)
        return self._lives[name]

    def finish(self) -> list[str]:
        """Let all come to rest, and return what is wrong."""
        problems = [problem for life in self._lives.values() for problem in judge_life(life)]
        return problems + [problem for part in self._parts for problem in part.finish()]

    def figures(self) -> dict[str, Figure]:
        """Return what was measured."""
        figures = {name: value for part in self._parts for name, value in part.figures().items()}
        for name, life in self._lives.items():
            grown = growth_per_ten_minutes(life) / MEGABYTE
            figures[f"{name}_mb_in_ten_minutes".replace(" ", "_")] = round(grown, 2)
        return figures
