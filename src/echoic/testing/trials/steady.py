"""A steady load with faults: memory, file descriptors, threads and round trips stay what they were.

    source      200 events a second, and a round trip with each beat           lives
    sinks       of all rules, by way of a proxy that resets every connection   lives
    groups      three members each, 60 events a second                         live
    bus         a bus and its two tools                                       live
    deriver     derives channels that come and go                             is killed now and then
    recorder    records, and reads its journal as a durable sink              is killed now and then

Each process does its work twice, half of it in a plain hub, half in a secured one, with certificates and just the
rights of its role; the bus has none of its own. Those who live are looked at every second, once they have grown warm; `flatness` says what they may take. In the end
the accounts of every sink must be exact, everything must be recorded, and the members of the group must have had one
order. The rate is a modest one, so that a core is left for others.
"""

import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from echoic.errors import LocalError
from echoic.testing.charter import Charter
from echoic.testing.trials.accounts import check_accounts
from echoic.testing.trials.flatness import (
    Life,
    growth_per_ten_minutes,
    judge_life,
    judge_round_trips,
    percentile,
)
from echoic.testing.trials.proxy import Proxy
from echoic.testing.trials.steady_bus import run_bus
from echoic.testing.trials.steady_parties import DERIVE, GRANTS, GROUP, PARTS, RECORD, SINKS, SOURCE
from echoic.testing.trials.trial import Figure, Findings, Tell
from echoic.testing.trials.vital_signs import MEGABYTE, signs_of
from echoic.testing.trials.workers import Answer, Start, Worker, wait_until, workers

__all__ = ["run"]

LOOK_SECONDS: Final = 1.0
WARM_SHARE: Final = 0.25
RESET_SECONDS: Final = (2.0, 6.0)
KILL_SECONDS: Final = (8.0, 16.0)
SETTLE_SECONDS: Final = 60.0
BEHIND_THE_PROXY, PROXY = "127.0.0.2", "127.0.0.3"


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Let it go on for `size` seconds."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="echoic-steady-") as folder, workers() as start, ExitStack() as stack:
        charter = Charter.draw_up(Path(folder) / "charter", GRANTS)
        source = start(SOURCE, charter.environment("source"), listen=f"{BEHIND_THE_PROXY}:0", advertise=PROXY)
        ports = [source.started[part]["address"].rpartition(":")[2] for part in PARTS]
        proxies = [stack.enter_context(Proxy(f"{BEHIND_THE_PROXY}:{port}", PROXY)) for port in ports]
        steady = Steady(start, source, proxies, charter, chance)
        bus = stack.enter_context(run_bus(Path(folder) / "bus"))
        steady.go_on(size, tell, {"bus": bus.pid})
        problems = steady.finish()
        if bus.poll() is not None:
            problems.append(f"the bus has ended with {bus.returncode}")
    return Findings(tuple(problems), steady.figures())


class Steady:
    """The processes, what is done to them, and what they take meanwhile."""

    def __init__(
        self, start: Start, source: Worker, proxies: Sequence[Proxy], charter: Charter, chance: random.Random
    ) -> None:
        self._source, self._proxies, self._chance = source, proxies, chance
        told, journal = source.started, str(charter.folder.parent / "journal")
        self._makers: Mapping[str, Callable[[], Worker]] = {
            "deriver": lambda: start(DERIVE, charter.environment("deriver"), **told),
            "recorder": lambda: start(RECORD, charter.environment("recorder"), folder=journal, **told),
        }
        self._sinks = start(SINKS, charter.environment("sinks"), **told)
        self._group = start(GROUP, charter.environment("group"))
        for each in (self._sinks, self._group):
            each.ask()
        self._mortals = {name: make() for name, make in self._makers.items()}
        for each in self._mortals.values():
            each.ask()
        self._lives: dict[str, Life] = {}
        self._kills = 0
        self._round_trips: dict[str, list[float]] = {}
        self._submitted = dict.fromkeys(PARTS, 0)
        self._group_events = dict.fromkeys(PARTS, 0)

    def go_on(self, seconds: float, tell: Tell, further: Mapping[str, int]) -> None:
        """Let faults happen, and look at those who live."""
        lasting = {"source": self._source.pid, "sinks": self._sinks.pid, "group": self._group.pid, **further}
        self._source.ask("begin")
        began = time.monotonic()
        reset_due, kill_due = self._chance.uniform(*RESET_SECONDS), self._chance.uniform(*KILL_SECONDS)
        while (passed := time.monotonic() - began) < seconds:
            if passed > reset_due:
                for proxy in self._proxies:
                    proxy.reset()
                reset_due = passed + self._chance.uniform(*RESET_SECONDS)
            if passed > kill_due:
                self._replace(self._chance.choice(sorted(self._makers)))
                kill_due = passed + self._chance.uniform(*KILL_SECONDS)
            if passed > WARM_SHARE * seconds:
                for name, pid in lasting.items():
                    with suppress(OSError):  # it has ended, which is found in the end
                        self._lives.setdefault(name, Life(name)).note(passed, signs_of(pid))
            tell(int(passed))
            time.sleep(LOOK_SECONDS)

    def finish(self) -> list[str]:
        """Let all come to rest, and return what is wrong."""
        told = self._source.ask("halt")
        problems = [problem for life in self._lives.values() for problem in judge_life(life)]
        for part in PARTS:
            self._submitted[part], self._round_trips[part] = told[part]["submitted"], told[part]["round_trips"]
            problems += [f"{part}: {problem}" for problem in judge_round_trips(self._round_trips[part])]
        try:
            wait_until(self._is_settled, "all sinks and the journals have everything", SETTLE_SECONDS)
        except LocalError as error:
            problems.append(str(error))
        watched, orders = self._sinks.ask(), self._group.ask("halt")["orders"]
        for part in PARTS:
            found = self._wrong_accounts(part, watched[part]) + self._one_order(part, orders[part])
            problems += [f"{part}: {problem}" for problem in found]
        return problems

    def figures(self) -> dict[str, Figure]:
        """Return what was measured."""
        grown = {f"{name}_mb_in_ten_minutes": round(growth_per_ten_minutes(life) / MEGABYTE, 2)
                 for name, life in self._lives.items()}  # fmt: skip
        figures: dict[str, Figure] = {
            "resets": max(proxy.resets for proxy in self._proxies),
            "kills": self._kills,
        }
        for prefix, part in (("", "plain"), ("secured_", "secured")):
            trips = self._round_trips.get(part) or [0.0]
            figures |= {
                f"{prefix}events": self._submitted[part],
                f"{prefix}group_events": self._group_events[part],
                f"{prefix}round_trip_p99_ms": round(percentile(trips, 0.99) * 1000, 2),
            }
        return figures | grown

    def _replace(self, name: str) -> None:
        self._kills += 1
        self._mortals[name].kill()
        self._mortals[name] = self._makers[name]()

    def _is_settled(self) -> bool:
        watched, recorder = self._sinks.ask(), self._mortals["recorder"].ask()
        for part in PARTS:
            ends = [spans[-1][1] + 1 if spans else 0 for spans in watched[part]["settled"].values()]
            if min(recorder[part]["recorded"], recorder[part]["last"] + 1, *ends) < self._submitted[part]:
                return False
        return True

    def _wrong_accounts(self, part: str, watched: Answer) -> list[str]:
        problems = list(watched["problems"])
        for rule, spans in watched["settled"].items():
            problems += check_accounts(f"the sink with {rule}", self._submitted[part], spans)
        if watched["missing"]["block"]:
            problems.append(f"a sink with block was told that {watched['missing']['block']} events are missing")
        return problems

    def _one_order(self, part: str, orders: Answer) -> list[str]:
        self._group_events[part] = min(order[0] for order in orders.values())
        if len({tuple(order) for order in orders.values()}) == 1 and self._group_events[part]:
            return []
        return [f"the members of the group were not given one order: {orders}"]
