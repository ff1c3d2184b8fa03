"""`echoic soak`: the campaign of faults, on your machine."""

import platform
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from echoic.cli.screen import json_text, say
from echoic.cli.tables import print_table
from echoic.cli.where import AsJson, Flag
from echoic.errors import LocalError
from echoic.testing.trials import TRIALS, Findings, Trial, commit_name, trial_named

__all__ = ["soak"]

LOG_SECONDS: Final = 60.0


class Outcome(msgspec.Struct, frozen=True):
    """A trial that was run, for the record."""

    trial: str
    size: int
    unit: str
    seed: int
    seconds: float
    clean: bool
    problems: tuple[str, ...]
    figures: Mapping[str, int | float | str]
    date: str
    commit: str
    machine: str


def soak(
    *trials: str,
    release: Flag = False,
    size: int | None = None,
    seed: int | None = None,
    record: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Run trials: let a fault happen again and again, and see that what echoic promises holds through it.

    Without a name, all trials are listed. The exit code is 1 if anything was found; what it was is printed, with the
    seed that shows it again. Ctrl-C ends the trial that runs; the outcomes before it are printed.

    Try:
        echoic soak
        echoic soak kills frames
        echoic soak steady --size 600
        echoic soak power_loss --release --record runs.jsonl

    Args:
        trials: Their names or numbers, or `all`.
        release: Run them as large as before a release, which may take hours.
        size: Run them in another size, in the unit that the list shows.
        seed: Where to start; printed, so that a run can be repeated.
        record: Append the outcome to a file, a line of JSON each.
        as_json: Print the outcome as JSON.
    """
    if not (trials or release) and all(wish is None for wish in (size, seed, record)):
        _list(as_json=as_json)
        return
    _check(trials, size, seed, release=release)
    every = [each for each in TRIALS if each.runs_here]
    chosen = every if trials == ("all",) else [trial_named(name) for name in trials]
    for trial in chosen:
        trial.load()  # before an hour of others has passed
    book = _Book(record)
    outcomes: list[Outcome] = []
    try:
        for trial in chosen:
            outcome = _try_out(trial, _size_of(trial, size, release=release), seed, book)
            outcomes.append(outcome)
    finally:  # those before Ctrl-C have taken their hours too
        if as_json and outcomes:
            print(json_text(outcomes))
        elif not as_json:
            for outcome in outcomes:
                _print(outcome)
    if book.incomplete or not all(outcome.clean for outcome in outcomes):
        sys.exit(1)


def _check(trials: tuple[str, ...], size: int | None, seed: int | None, *, release: bool) -> None:
    """Refuse what makes no sense.

    Raises:
        LocalError: Naming what.
    """
    if not trials:
        raise LocalError("which trial? `echoic soak` lists them, `echoic soak all` runs all of them")
    if release and size is not None:
        raise LocalError(f"--release is a size of its own, so it does not go with --size {size}")
    if size is not None and size < 1:
        raise LocalError(f"a size is at least 1, got {size}")
    if seed is not None and seed < 0:
        raise LocalError(f"a seed is at least 0, got {seed}")


class _Book:
    """The file of `--record`, which is seen to be one that can be written before any trial begins."""

    def __init__(self, path: Path | None) -> None:
        """Open it, if there is to be any.

        Raises:
            LocalError: It cannot be written.
        """
        self._path = path
        self.incomplete = False
        try:
            self._append(b"")
        except OSError as error:
            raise LocalError(f"cannot write {path}: {error.strerror} - at --record") from error

    def add(self, outcome: Outcome) -> None:
        """Write an outcome; one that cannot be written is told, and ends neither its trial nor those behind it."""
        try:
            self._append(msgspec.json.encode(outcome) + b"\n")
        except OSError as error:
            self.incomplete = True
            say(f"the outcome of {outcome.trial} is not in {self._path}: {error.strerror}")

    def _append(self, line: bytes) -> None:
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(line)


def _list(*, as_json: bool) -> None:
    if as_json:
        print(json_text(TRIALS))
        return
    rows = [
        (str(each.number), each.name, f"{each.test_size:,}", f"{each.release_size:,}", each.unit, each.fault)
        for each in TRIALS
    ]
    print_table(["", "TRIAL", "TEST", "RELEASE", "OF", "FAULT"], rows)
    alone = [each.name for each in TRIALS if not each.runs_here]
    if alone:
        say(f"only among the tests, since they need more than echoic: {', '.join(alone)}")


def _size_of(trial: Trial, size: int | None, *, release: bool) -> int:
    if size is not None:
        return size
    return trial.release_size if release else trial.test_size


def _try_out(trial: Trial, size: int, seed: int | None, book: _Book) -> Outcome:
    start = time.time_ns() % 2**32 if seed is None else seed
    began = time.perf_counter()
    say(f"{trial.name}: {trial.fault}; {size:,} {trial.unit}, seed {start}")

    def recorded(findings: Findings) -> Outcome:
        outcome = Outcome(
            trial.name,
            size,
            trial.unit,
            start,
            round(time.perf_counter() - began, 1),
            findings.clean,
            findings.problems,
            findings.figures,
            datetime.now(UTC).isoformat(timespec="seconds"),
            commit_name(),
            f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        )
        book.add(outcome)
        return outcome

    try:
        findings = _run(trial, size, start)
    except KeyboardInterrupt:
        say(f"{trial.name}: interrupted after {time.perf_counter() - began:.1f} s; {size:,} {trial.unit}, seed {start}")
        raise
    except Exception as error:
        recorded(Findings((f"the trial itself has failed: {error!r}",)))
        raise
    return recorded(findings)


class _Log:
    """Says every minute how far a trial is, so that a log of hours shows whether it goes on."""

    def __init__(self, trial: Trial, size: int) -> None:
        self._trial, self._size = trial, size
        self._began = self._said = time.monotonic()

    def tell(self, done: int) -> None:
        """Learn how much is done."""
        now = time.monotonic()
        if now - self._said >= LOG_SECONDS and 0 < done < self._size:
            self._said = now
            minutes = (now - self._began) / done * (self._size - done) / 60
            say(f"{self._trial.name}: {done:,} of {self._size:,} {self._trial.unit}, about {minutes:,.0f} min left")


def _run(trial: Trial, size: int, seed: int) -> Findings:
    """Run a trial, with a bar for people who watch, and a line now and then in a log."""
    if not sys.stderr.isatty():
        return trial.load()(size, seed, _Log(trial, size).tell)
    columns = (TextColumn(trial.name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(trial.unit, total=size)
        return trial.load()(size, seed, lambda done: bar.update(task, completed=done))


def _print(outcome: Outcome) -> None:
    verdict = "held" if outcome.clean else "FAILED"
    print(f"{outcome.trial}: {verdict}; {outcome.size:,} {outcome.unit} in {outcome.seconds} s, seed {outcome.seed}")
    for name, figure in outcome.figures.items():
        print(f"  {name.replace('_', ' ')}: {f'{figure:,}' if isinstance(figure, int) else figure}")
    for problem in outcome.problems:
        print(f"  problem: {problem}")
