"""Trial 9: random E-Code, by native code, by generated Python and by a C compiler.

Half of the programs use everything there is (`ecode_fuzz_programs`), faults and limits too, which no C compiler knows:
both back ends must agree about every byte, in memory between guard pages. The other half means the same in C
(`ecode_c_programs`), and the C compiler of the machine is asked as well. Where there is none, all programs are of the
first kind, and the figures say so.

Each half runs in processes of its own: a program that ends one is a finding, and one that takes too much of the
processor is ended with its process. Processes that compare with C share their work and end together, so the programs
that they had are tried once more by themselves, which shows whose fault it was.
"""

import os
import time
from collections.abc import Generator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from typing import Final

from echoic.testing.ecode_c_twin import c_compiler, compare_with_c
from echoic.testing.ecode_fuzz import run_campaign, show
from echoic.testing.patience import within
from echoic.testing.trials.pools import pool
from echoic.testing.trials.trial import PROBLEMS_MAX, Findings, Tell

__all__ = ["run"]

BATCH: Final = 100
STEP: Final = 5000  # with 1000, a twentieth of the processor goes into starting processes
PATIENCE_SECONDS: Final = 300.0  # of the processor, for a batch
ALONE_MAX: Final = 5000  # programs; campaigns of more use every processor
SEEDS: Final = 2**40


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Try so many programs."""
    began = time.perf_counter()
    processes = 1 if size <= ALONE_MAX else os.cpu_count() or 1
    compiler = c_compiler()
    by_c = size // 2 if compiler else 0
    problems: list[str] = []
    compared = refused = events = passed = done = 0
    faults: dict[str, int] = {}
    if compiler:
        with closing(_by_c(compiler, seed, by_c, processes)) as batches:
            for count, found in batches:
                compared += count
                problems += found
                tell(compared)
                if len(problems) >= PROBLEMS_MAX:
                    break
    for start in range(0, size - by_c, STEP):
        count = min(STEP, size - by_c - start)
        report = run_campaign(seed * SEEDS + start, count, processes)
        problems += [show(finding) for finding in report.findings]
        done, refused = done + report.tally.programs, refused + report.tally.refused
        events, passed = events + report.tally.events, passed + report.tally.passed
        for kind, number in report.tally.faults.items():
            faults[kind] = faults.get(kind, 0) + number
        tell(compared + done)
        if len(problems) >= PROBLEMS_MAX:
            break
    return Findings(
        tuple(problems[:PROBLEMS_MAX]),
        {
            "programs_by_both_back_ends": done + compared,
            "programs_by_a_c_compiler_too": compared,
            "c_compiler": compiler or "none: install gcc",
            "refused": refused,
            "events": events,
            "passed": passed,
            "faults": ", ".join(f"{kind} {number}" for kind, number in sorted(faults.items())),
            "seconds": round(time.perf_counter() - began, 1),
        },
    )


def _by_c(compiler: str, seed: int, size: int, processes: int) -> Generator[tuple[int, list[str]]]:
    """Yield how many programs were compared with C, and what differed."""
    left = {start: min(BATCH, size - start) for start in range(0, size, BATCH)}
    while left:
        with pool(processes) as workers:
            waiting: dict[int, Future[list[str]]] = {}
            with suppress(BrokenProcessPool):
                for start, count in left.items():
                    waiting[start] = _submit(workers, compiler, seed, start, count)
            for start, future in waiting.items():
                with suppress(BrokenProcessPool):
                    found = future.result()
                    yield left.pop(start), found
        # Batches are begun in their order, so these are the ones that processes had when one of them ended.
        suspects = {start: left.pop(start) for start in list(left)[:processes]}
        if suspects:
            yield sum(suspects.values()), _alone(compiler, seed, suspects)


def _alone(compiler: str, seed: int, suspects: Mapping[int, int]) -> list[str]:
    """Return what differs in some batches, each in a process of its own, and which of them ends it."""
    problems: list[str] = []
    ended = []
    for start, count in suspects.items():
        with pool(1) as workers:
            try:
                problems += _submit(workers, compiler, seed, start, count).result()
            except BrokenProcessPool:
                ended.append(f"a program of seed {seed * SEEDS + start}")
    limit = f"took more than {PATIENCE_SECONDS:g} s of the processor"
    if not ended:
        seeds = " or ".join(str(seed * SEEDS + start) for start in suspects)
        return [*problems, f"a program of seed {seeds} ended its process, or {limit}, and did not do so alone"]
    return [*problems, *(f"{which} ended its process, or {limit}" for which in ended)]


def _submit(workers: ProcessPoolExecutor, compiler: str, seed: int, start: int, count: int) -> Future[list[str]]:
    return workers.submit(within, PATIENCE_SECONDS, compare_with_c, compiler, seed * SEEDS + start, count)
