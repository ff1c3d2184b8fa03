"""Ordered groups beside others: the same messages through Corosync and through PySyncObj.

Corosync is measured as an engine of echoic: agreed order by its daemons, and what makes that safe by us. Its three
daemons are each in a network namespace of their own on this machine, with the replica beside them. PySyncObj's replicas
are processes on loopback, as ours are (`benchmarks.rivals.pysyncobj`). What counts is messages a second at the sender.

While the daemons run, they are there for everybody: embedded replicas share their processors with them too.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import cast

from benchmarks.events import Choice
from echoic.testing.bench import Claim, Effort, Spread, Table, Unit
from echoic.testing.bench.groups import degrees
from echoic.testing.bench.groups.cases import Case
from echoic.testing.bench.groups.replicas import Launch, launch_forked
from echoic.testing.bench.groups.rounds import GroupReport, Run, Runs, is_slight, run_of, take_turns
from echoic.testing.bench.results import Cell
from tests.engines.corosync_cluster import CorosyncCluster, cluster, why_not

__all__ = ["COROSYNC", "OURS", "TITLE", "WHERE", "measure_corosync", "measure_rivals"]

OURS, MAJORITY, COROSYNC, PYSYNCOBJ = "echoic, all", "echoic, majority", "Corosync and echoic", "PySyncObj"
TITLE = "messages of 1000 B, three replicas"
WHERE = ", on Corosync"
PACKINGS = ("static:1", "static:8", "static:28", "static:64", "static:256")
SECONDS, WARM_UP_SECONDS, AUTO_SECONDS = 2.0, 0.5, 4.0
COROSYNC_MIN, PYSYNCOBJ_MIN, SHARE_MIN = 3.0, 5.0, 0.9
DEGREES = (1, 8, 28, 64)


def launch_beside(nodes: CorosyncCluster) -> Launch:
    """Return what starts a replica beside the daemon of its node."""
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def launch(name: str, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        node = int(name.removeprefix("n"))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0, "env": variables}
        return nodes.popen(node, list(command), **pipes)

    return launch


def measure_corosync(effort: Effort, report: GroupReport, _: Choice) -> None:
    """Measure packing degrees on Corosync, by size."""
    if reason := why_not():
        report.remarks.append(f"not measured: Corosync: {reason}")
        return
    with cluster() as nodes:
        runs: dict[Cell, Run] = {}
        for size in degrees.SIZES:
            known = degrees.entries(effort, size, launch_beside(nodes), "corosync")
            wanted = {degrees.AUTO, *(f"static:{degree}" for degree in DEGREES)}
            runs |= {cell: run for cell, run in known.items() if cell[0] in wanted}
        found = take_turns(runs, effort)
    degrees.add_tables(report, found, WHERE)
    for size in degrees.SIZES:
        degrees.add_claims(report, found, degrees.column_of(size), None, SHARE_MIN, WHERE)


def measure_rivals(effort: Effort, report: GroupReport, choice: Choice) -> None:
    """Measure the embedded engine, Corosync and PySyncObj in one run."""
    if reason := why_not():
        report.remarks.append(f"not measured: Corosync: {reason}")
        _add(report, take_turns(_entries(effort, choice, None), effort))
        return
    with cluster() as nodes:
        _add(report, take_turns(_entries(effort, choice, launch_beside(nodes)), effort))


def _entries(effort: Effort, choice: Choice, beside: Launch | None) -> dict[Cell, Run]:
    runs: dict[Cell, Run] = {}
    for packing in (*(PACKINGS[:2] if is_slight(effort) else PACKINGS), "auto"):
        seconds, warm_up = (AUTO_SECONDS, 0.0) if packing == "auto" else (SECONDS, WARM_UP_SECONDS)
        case = Case(packing=packing, seconds=seconds, warm_up=warm_up)
        majority = Case(packing=packing, seconds=seconds, warm_up=warm_up, stability="majority")
        runs[OURS, packing] = run_of(case, effort, launch_forked)
        runs[MAJORITY, packing] = run_of(majority, effort, launch_forked)
        if beside is not None:
            by_daemon = Case(packing=packing, seconds=seconds, warm_up=warm_up, engine="corosync")
            runs[COROSYNC, packing] = run_of(by_daemon, effort, beside)
        for launch in choice.rivals if packing != "auto" else ():
            runs[PYSYNCOBJ, packing] = run_of(case, effort, cast("Launch", launch))
    return runs


def _add(report: GroupReport, runs: Runs) -> None:
    report.tables.append(Table(TITLE, Unit.THOUSANDS_PER_SECOND, OURS, runs.rates()))
    report.tables.append(Table(f"mean latency of {TITLE}", Unit.MILLISECONDS, OURS, runs.latencies()))
    best = {case: _best_of(runs, case) for case in dict.fromkeys(case for case, _ in runs.results)}
    for case, packing in best.items():
        report.remarks.append(f"{TITLE}: {case} is best with {packing}")
    for rival, limit in ((COROSYNC, COROSYNC_MIN), (PYSYNCOBJ, PYSYNCOBJ_MIN)):
        if rival in best:
            gain = runs.ratio((OURS, best[OURS]), (rival, best[rival]))
            report.claims.append(
                Claim(f"{OURS}, {best[OURS]}", gain, limit, f"x {rival}, {best[rival]}", at_least=True)
            )
    if COROSYNC in best:
        pairs = zip(
            runs.results[COROSYNC, "auto"], runs.results[COROSYNC, _best_of(runs, COROSYNC, "static")], strict=True
        )
        share = Spread.of([mine.throughput / other.throughput for mine, other in pairs])
        report.claims.append(Claim(f"{COROSYNC}, auto", share, SHARE_MIN, "x its best static degree", at_least=True))


def _best_of(runs: Runs, case: str, word: str = "") -> str:
    """Return the packing with which a case has the most throughput."""
    packings = [packing for each, packing in runs.results if each == case and word in packing]
    return max(packings, key=lambda packing: runs.median((case, packing), lambda result: result.throughput))
