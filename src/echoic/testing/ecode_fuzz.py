"""Random programs through both back ends of E-Code, as a campaign of any length.

    python -m echoic.testing.ecode_fuzz --seed 1 --count 100000 --processes 2

Each program comes from a seed of its own, so `--seed N --count 1` shows one again. Programs run in processes of their
own: one that is ended by a signal, or does not come back, is a finding like any other, and the campaign goes on behind
it. What counts is what a program has had of the processor (`patience`), since a campaign may be held up.

Memory that these processes free or get is filled with rubbish (`MALLOC_PERTURB_`), so that reading what was never
written does not give zeros by luck.
"""

import argparse
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Final, TypeAlias

from echoic.testing.ecode_fuzz_programs import Case, draw_case
from echoic.testing.ecode_fuzz_runner import Rig, Tally, Verdict
from echoic.testing.ecode_fuzz_shrinking import shrink
from echoic.testing.patience import EXHAUSTED, Waiting, within

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

__all__ = ["CampaignReport", "Finding", "run_campaign", "show"]

FINDINGS_MAX: Final = 10
PATIENCE_SECONDS: Final = 60.0  # of the processor, for one program
WAITING_SECONDS_MAX: Final = 3600.0  # by the clock, for one program and for making it smaller
REPORT_EVERY: Final = 200
PERTURB: Final = "165"
REFUSALS_KEPT: Final = 20
INTERRUPTED: Final = 130

Progress = tuple[int, Tally, list["Finding"], list[str]]
Judge: TypeAlias = Callable[[Case], Verdict]


@dataclass(frozen=True, slots=True)
class Finding:
    """A program for which the back ends differ, or which ended its process."""

    seed: int
    problem: str
    source: str = ""
    """The program, made smaller."""


@dataclass(slots=True)
class CampaignReport:
    """What became of a campaign."""

    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """Some of the messages with which programs were refused."""

    def add(self, progress: Progress) -> None:
        """Count what a process has done since it reported last."""
        _, tally, findings, refusals = progress
        self.tally.add(tally)
        self.findings += findings
        self.refusals = (self.refusals + refusals)[:REFUSALS_KEPT]


def run_campaign(
    seed: int,
    count: int,
    processes: int = 1,
    *,
    talk: bool = False,
    rig: type[Rig] = Rig,
    patience_seconds: float = PATIENCE_SECONDS,
    waiting_seconds_max: float = WAITING_SECONDS_MAX,
) -> CampaignReport:
    """Run the programs of `count` seeds from `seed` on, and return what became of them.

    Args:
        seed: The first seed.
        count: How many programs.
        processes: How many at a time.
        talk: Whether to print findings and progress while it runs.
        rig: What runs the programs.
        patience_seconds: How much of the processor a program may take.
        waiting_seconds_max: How long to wait for one by the clock, without the time in which nothing here runs.
    """
    report = CampaignReport()
    shares = [count // processes + (number < count % processes) for number in range(processes)]
    workers, first = [], seed
    for share in shares:
        workers.append(_Worker(first, first + share, rig, patience_seconds, waiting_seconds_max))
        first += share
    began = told = time.monotonic()
    try:
        while any(worker.alive for worker in workers) and len(report.findings) < FINDINGS_MAX:
            wait([end for worker in workers if worker.alive for end in worker.ends()], timeout=1.0)
            for worker in workers:
                for progress in worker.receive():
                    report.add(progress)
                    if talk:
                        sys.stdout.writelines(show(finding) + "\n" for finding in progress[2])
            if talk and time.monotonic() - told > 10:
                told = time.monotonic()
                sys.stderr.write(f"{report.tally.programs} programs in {told - began:.0f} s\n")
    finally:
        for worker in workers:
            worker.stop()
    return report


class _Worker:
    """A process that runs the programs of some seeds, started anew behind one that ended it."""

    def __init__(
        self, first: int, end: int, rig: type[Rig], patience_seconds: float, waiting_seconds_max: float
    ) -> None:
        self._rig = rig
        self._patience_seconds = patience_seconds
        self._waiting_seconds_max = waiting_seconds_max
        self._end = end
        self._next = first
        self._process: SpawnProcess | None = None
        self._start()

    @property
    def alive(self) -> bool:
        """Whether it still works."""
        return self._process is not None

    def ends(self) -> list[Connection | int]:
        """Return what becomes ready when something happens."""
        return [self._pipe] if self._process is None else [self._pipe, self._process.sentinel]

    def receive(self) -> Iterator[Progress]:
        """Yield what the process has told; start it anew if a program has ended it."""
        if self._process is None:
            return
        over = not self._process.is_alive()
        yield from self._read()
        if over or self._stuck():
            seed = self._current.value
            problem = self._end_of_process()
            if problem:
                yield (seed + 1, Tally(seed + 1 - self._next), [Finding(seed, problem, draw_case(seed).source)], [])
                self._next = seed + 1
            self._start()

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _read(self) -> Iterator[Progress]:
        try:
            while self._pipe.poll():
                progress: Progress = self._pipe.recv()
                self._next = progress[0]
                yield progress
        except EOFError:
            pass

    def _start(self) -> None:
        self._process = None
        if self._next >= self._end:
            return
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe(duplex=False)
        self._current = context.Value("q", self._next)
        self._seen, self._waiting = self._next, Waiting(time.monotonic())
        os.environ["MALLOC_PERTURB_"] = PERTURB
        # Ctrl-C at a terminal reaches all processes; what becomes of these, this one decides. A mask is inherited.
        unmasked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self._process = context.Process(
                target=_work,
                args=(self._rig, self._patience_seconds, self._next, self._end, self._current, other),
                daemon=True,
            )
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, unmasked)
            del os.environ["MALLOC_PERTURB_"]
        other.close()

    def _stuck(self) -> bool:
        if self._current.value != self._seen:
            self._seen, self._waiting = self._current.value, Waiting(time.monotonic())
        return self._waiting.look(time.monotonic()) > self._waiting_seconds_max

    def _end_of_process(self) -> str:
        """Return how a program ended the process, "" if it ended because everything was done."""
        process = self._process
        if process is None:
            return ""
        if process.is_alive():
            process.kill()
            process.join()
            return f"did not come back for {self._waiting_seconds_max:g} s"
        process.join()
        code = process.exitcode or 0
        if code == -EXHAUSTED:
            return f"did not come back within {self._patience_seconds:g} s of the processor"
        if code < 0:
            return f"ended by {signal.Signals(-code).name}"
        return f"ended its process with code {code}" if code or self._next < self._end else ""


def _work(
    rig_class: type[Rig],
    patience_seconds: float,
    first: int,
    end: int,
    current: "multiprocessing.sharedctypes.Synchronized[int]",
    pipe: Connection,
) -> None:
    """Run the programs of some seeds and tell the parent now and then."""
    rig, tally, refusals = rig_class(), Tally(), []

    def judge(case: Case) -> Verdict:
        return within(patience_seconds, rig.judge, case)

    for seed in range(first, end):
        current.value = seed
        finding, refusal = _try(judge, seed, tally)
        refusals += [refusal] if refusal else []
        if finding or (seed + 1 - first) % REPORT_EVERY == 0 or seed + 1 == end:
            try:
                pipe.send((seed + 1, tally, [finding] if finding else [], refusals[:REFUSALS_KEPT]))
            except BrokenPipeError:
                return  # the campaign was ended
            tally, refusals = Tally(), []


def _try(judge: Judge, seed: int, tally: Tally) -> tuple[Finding | None, str]:
    """Return the finding, if the program of a seed is one, and why it was refused, if it was."""
    case = draw_case(seed)
    try:
        verdict = judge(case)
    except Exception:  # noqa: BLE001 - whatever a compiler raises but its declared error is a finding
        tally.add(Tally(1))
        return Finding(seed, traceback.format_exc(), shrink(case, lambda one: _raises(judge, one)).source), ""
    tally.add(verdict.tally)
    if not verdict.difference:
        return None, f"seed {seed}: {verdict.refusal}" if verdict.refusal else ""
    smaller = shrink(case, lambda one: _differs(judge, one))
    return Finding(seed, judge(smaller).difference or verdict.difference, smaller.source), ""


def _raises(judge: Judge, case: Case) -> bool:
    try:
        judge(case)
    except Exception:  # noqa: BLE001 - as above
        return True
    return False


def _differs(judge: Judge, case: Case) -> bool:
    try:
        return bool(judge(case).difference)
    except Exception:  # noqa: BLE001 - another finding than the one that is made smaller
        return False


def show(finding: Finding) -> str:
    """Return a finding with the types of its program, for people."""
    case = draw_case(finding.seed)
    signature = case.signature
    formats = [
        one.describe()
        for one in (signature.input, signature.output, signature.params, signature.context)
        if one is not None
    ]
    facts = (
        f"fuel {case.fuel}, faults_max {case.faults_max}, ports {signature.ports}, "
        f"capacities {dict(signature.capacities)}, {[batch.count for batch in case.batches]} events"
    )
    return "\n".join((f"seed {finding.seed}: {finding.problem}", facts, *formats, finding.source or case.source, ""))


def main() -> None:
    """Run the campaign that was asked for; the exit code is 1 if something was found."""
    parser = argparse.ArgumentParser(
        prog="python -m echoic.testing.ecode_fuzz",
        description="Run random E-Code programs through the native and the Python back end, and compare everything.",
        epilog="A finding is printed with its seed; `--seed N --count 1` shows it again.",
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first program (default: 0)")
    parser.add_argument("--count", type=int, default=1000, help="how many programs (default: 1000)")
    parser.add_argument("--processes", type=int, default=1, help="in how many processes at a time (default: 1)")
    parser.add_argument("--show", action="store_true", help="print the programs instead of running them")
    wish = parser.parse_args()
    if wish.show:
        for seed in range(wish.seed, wish.seed + wish.count):
            sys.stdout.write(show(Finding(seed, "as drawn")) + "\n")
        return
    if wish.count < 1:
        parser.error(f"expected a number of at least 1, got {wish.count} - at --count")
    began = time.monotonic()
    try:
        report = run_campaign(wish.seed, wish.count, max(1, wish.processes), talk=True)
    except KeyboardInterrupt:
        sys.stderr.write(f"interrupted after {time.monotonic() - began:.0f} s of {wish.count} from seed {wish.seed}\n")
        sys.exit(INTERRUPTED)
    tally = report.tally
    sys.stdout.write(
        f"{tally.programs} programs from seed {wish.seed} in {time.monotonic() - began:.0f} s, "
        f"{tally.refused} refused, {tally.events} events, {tally.passed} passed, "
        f"faults {dict(sorted(tally.faults.items()))}, {len(report.findings)} findings\n"
    )
    for refusal in report.refusals[:3]:
        sys.stdout.write(f"refused: {refusal}\n")
    sys.exit(1 if report.findings else 0)


if __name__ == "__main__":
    main()
