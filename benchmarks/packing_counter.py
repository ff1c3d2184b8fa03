"""Could the multicasts of a replicated service be packed? Figures 5 and 6 of the paper, and the service's own numbers.

Three replicas of the counter service (`echoic.replicas.service`) are processes on loopback; clients over HTTP each send
a request, take its answer, and send the next (`echoic.testing.bench.groups.counter_load`). Each replica has
written down when it multicast; the curves follow from that (`packing_curves`). The paper's service answers 80 to 250
requests a second, of 80 to 200 clients; here as many clients are answered far more often, so packs fill sooner.

    python -m benchmarks.packing_counter NAME PACKING      one replica; it is told the peers on stdin
"""

import json
import subprocess
import sys
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, cast

import echoic
from benchmarks.events import Choice
from echoic.replicas.service import CounterService
from echoic.testing.bench import Claim, Effort, Samples, Spread, Table, Unit
from echoic.testing.bench.groups.counter_load import Load, LoadResult, run_load
from echoic.testing.bench.groups.packing_curves import packing_curves
from echoic.testing.bench.groups.replicas import launch_program
from echoic.testing.bench.groups.rounds import GroupReport, is_slight

if TYPE_CHECKING:
    from echoic.testing.bench.results import Cell

__all__ = ["CLIENTS", "PAPER_FILL", "PAPER_INTERVAL", "RATE", "measure"]

NAMES = ("n1", "n2", "n3")
PACKINGS = ("static:1", "auto")
CLIENTS = (20, 100, 200)
DEGREES = (1, 2, 4, 6, 8, 10, 12, 16)
INTERVALS = (0.001, 0.002, 0.005, 0.010, 0.020, 0.050, 0.070, 0.100)
PAPER_FILL = (8, 83.0)
"""With 100 clients, 8 messages are collected in so many milliseconds."""
PAPER_INTERVAL = (70.0, 9.0)
"""With 100 clients, so many milliseconds have so many multicasts."""
RATE, LATENCY = "requests to the counter service, by clients", "mean latency of the same"
SECONDS, SLIGHT_SECONDS = 3.0, 0.3
STOP_SECONDS_MAX = 5.0


class Service:
    """Three replicas."""

    def __init__(self, packing: str, stack: ExitStack) -> None:
        command = [sys.executable, "-m", "benchmarks.packing_counter"]
        self._processes = {name: launch_program(name, [*command, name, packing]) for name in NAMES}
        for process in self._processes.values():
            stack.callback(_stop, process)
        peers = {name: self._told(name) for name in NAMES}
        for process in self._processes.values():
            cast("IO[bytes]", process.stdin).write(json.dumps(peers).encode() + b"\n")
        self.addresses = [self._told(name) for name in NAMES]

    def _told(self, name: str) -> str:
        line = cast("IO[bytes]", self._processes[name].stdout).readline()
        if not line:
            raise RuntimeError(f"replica {name} of the counter service has ended")
        return line.decode().strip()


def _stop(process: "subprocess.Popen[bytes]") -> None:
    cast("IO[bytes]", process.stdin).close()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    cast("IO[bytes]", process.stdout).close()


def measure(effort: Effort, report: GroupReport, _: Choice) -> None:
    """Measure both packings, and draw the paper's curves from the instants of unpacked multicasts."""
    rates: dict[Cell, list[float]] = {}
    latencies: dict[Cell, list[float]] = {}
    wrong = 0
    with ExitStack() as stack:
        services = {packing: Service(packing, stack) for packing in PACKINGS}
        for number in range(effort.rounds):
            for clients in CLIENTS[:1] if is_slight(effort) else CLIENTS:
                for packing, service in services.items():
                    effort.told(f"round {number + 1} of {effort.rounds}: counters, {packing}, {clients} clients")
                    seconds = SLIGHT_SECONDS if is_slight(effort) else SECONDS
                    load = Load(addresses=service.addresses, clients=clients, seconds=seconds, seed=number)
                    result = run_load(load)
                    rates.setdefault((packing, f"{clients} clients"), []).append(1 / result.throughput)
                    latencies.setdefault((packing, f"{clients} clients"), []).append(result.latency)
                    wrong += len(result.wrong)
                    if packing == PACKINGS[0]:
                        _keep(report, clients, result)
    report.tables.append(Table(RATE, Unit.THOUSANDS_PER_SECOND, PACKINGS[0], Samples(rates)))
    report.tables.append(Table(LATENCY, Unit.MILLISECONDS, PACKINGS[0], Samples(latencies)))
    report.claims.append(Claim("counter service, wrong answers", Spread.of([wrong]), 0, "of all"))
    report.remarks.append("counter service, the paper: 80 to 225 requests/s with 80 to 120 clients, 900 to 416 ms")


def _keep(report: GroupReport, clients: int, result: LoadResult) -> None:
    """Keep the curves of the last round."""
    curves = packing_curves(list(result.instants_ns.values()), DEGREES, INTERVALS)
    fill = [[point.degree, 1e3 * point.seconds] for point in curves.fill if point.seconds is not None]
    report.courses[f"fill, {clients} clients"] = fill
    report.courses[f"intervals, {clients} clients"] = [
        [1e3 * point.interval, point.mean, 100 * point.share, point.most] for point in curves.intervals
    ]


def _main() -> None:
    name, packing = sys.argv[1:]
    with echoic.Hub() as hub:
        _say(hub.address)
        peers = json.loads(sys.stdin.readline())
        with CounterService(hub, me=name, peers=peers, packing=packing) as service:
            service.group.wait_for(lambda view: len(view.members) == len(peers), 30.0)
            _say(service.address)
            sys.stdin.read()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _main()
