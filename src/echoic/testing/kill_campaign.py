"""A campaign of kills: sources, a recorder and durable sinks are killed under load, and nothing is lost or doubled.

    python -m echoic.testing.kill_campaign --events 10000000 --kills 200 --seed 7

The seed decides whom, when, and how long it stays away. Between two kills each source may submit an equal share of its
events, spread evenly over the time: so there is load at every kill, however fast the machine is, and a campaign takes
as long as its kills do.

This process has no threads and no hub: it forks the others, which costs milliseconds where a fresh interpreter would
cost a second, watches the scoreboard (`kill_roles`), and sends SIGKILL. In the end the journal must have every event of
every source exactly once, in order, with the very bytes that were submitted, and every sink must have seen just that.
"""

import argparse
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from echoic.recorder import Disk, Journal, verify
from echoic.testing.kill_roles import (
    CHANNEL,
    Memory,
    Scoreboard,
    Setting,
    consume,
    manage,
    publish,
    record,
    ticks,
    wrong_ticks,
)

__all__ = ["Campaign", "CampaignReport", "run_campaign"]

Kind: TypeAlias = Literal["source", "recorder", "sink"]
Tell: TypeAlias = Callable[[Callable[[], str]], None]

SOURCES: Final = 3
SINKS: Final = 2
AWAY_SECONDS_MAX: Final = 1.0
AFTER_SECONDS: Final = ((0.0, 0.2), (0.2, 2.0))
PORTS: Final = range(20_000, 30_000)  # below those that the system gives to whoever dials
END_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.001
SHOW_SECONDS: Final = 2.0
PROBLEMS_MAX: Final = 20


class Kill(msgspec.Struct, frozen=True):
    """Whom to kill, how long after the kill before, how long he stays away, and whether at another address then."""

    kind: Kind
    index: int
    after_seconds: float
    away_seconds: float
    moves: bool


class CampaignReport(msgspec.Struct, frozen=True):
    """What a campaign has found."""

    seed: int
    events: int
    kills: dict[str, int]
    seconds: float
    events_per_second: float
    recorded: int
    lost: int
    doubled: int
    disordered: int
    problems: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.doubled or self.disordered or self.problems)


class Crew:
    """The processes, by what they are."""

    def __init__(self) -> None:
        self._living: dict[tuple[str, int], int] = {}
        self._due: list[tuple[float, tuple[str, int], Callable[[], None]]] = []

    def start(self, kind: str, index: int, role: Callable[[], None]) -> None:
        """Fork a process."""
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process:
            self._living[kind, index] = process
            return
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            role()
            code = 0
        finally:  # whatever it is, this process must not go on as its parent
            if code:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)

    def start_later(self, seconds: float, kind: str, index: int, role: Callable[[], None]) -> None:
        """Fork a process after a while."""
        self._due.append((time.monotonic() + seconds, (kind, index), role))

    def beat(self) -> list[str]:
        """Start who is due, and return who has ended by himself and with an error."""
        due = [one for one in self._due if one[0] <= time.monotonic()]
        self._due = [one for one in self._due if one not in due]
        for _, (kind, index), role in due:
            self.start(kind, index, role)
        failed: list[str] = []
        for key, process in list(self._living.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                del self._living[key]
                if status:
                    failed.append(f"{key[0]} {key[1]} ended with status {status}")
        return failed

    def lives(self, kind: str, index: int) -> bool:
        """Whether a process is there."""
        return (kind, index) in self._living

    def of(self, kind: str) -> list[int]:
        """Return the living of a kind."""
        return sorted(index for known, index in self._living if known == kind)

    def away(self) -> bool:
        """Whether anybody has yet to be started."""
        return bool(self._due)

    def kill(self, kind: str, index: int) -> None:
        """Kill a process, at once."""
        process = self._living.pop((kind, index))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)

    def stop(self, kind: str) -> list[str]:
        """Tell all of a kind to end, wait until they have, and return who could not."""
        failed: list[str] = []
        for index in self.of(kind):
            os.kill(self._living[kind, index], signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        while self.of(kind) and time.monotonic() < deadline:
            failed += self.beat()
            time.sleep(POLL_SECONDS)
        return failed + [f"{kind} {index} does not end" for index in self.of(kind)]

    def end(self) -> None:
        """Leave nobody behind."""
        self._due.clear()
        for kind, index in list(self._living):
            self.kill(kind, index)


class Campaign:
    """A recorder, sources and sinks, and who is killed when."""

    def __init__(self, folder: Path, events: int, kills: int, seed: int, *, sinks: int = SINKS) -> None:
        self.seed: Final = seed
        self._chance = random.Random(seed)
        self.setting: Final = Setting(str(folder), max(events // SOURCES, 1), SOURCES, sinks)
        self.plan: Final = [self._draw() for _ in range(kills)]
        self._board: Final = Scoreboard(self.setting)
        self._crew: Final = Crew()
        self._recorder_at = f"127.0.0.1:{_free_port(self._chance)}"
        self.killed: Final[dict[str, int]] = {}
        self.problems: Final[list[str]] = []

    @property
    def events(self) -> int:
        """How many events all sources submit."""
        return self.setting.events_each * self.setting.sources

    def _draw(self) -> Kill:
        chance = self._chance
        kinds: list[Kind] = ["source", "recorder", "sink"] if self.setting.sinks else ["source", "recorder"]
        kind = chance.choices(kinds, [4, 4, 2][: len(kinds)])[0]
        count = {"source": self.setting.sources, "sink": self.setting.sinks, "recorder": 1}[kind]
        away = 0.0 if chance.random() < 0.6 else chance.uniform(0, AWAY_SECONDS_MAX)
        after = chance.uniform(*chance.choice(AFTER_SECONDS))
        return Kill(kind, chance.randrange(count), after, away, chance.random() < 0.5)

    def run(self, tell: Tell) -> CampaignReport:
        """Carry it out, and look at what has come of it."""
        began = time.monotonic()
        try:
            self._begin()
            for number, kill in enumerate(self.plan, 1):
                self._flow(number, kill.after_seconds, tell)
                self._carry_out(kill)
            self._finish(tell)
            seconds = time.monotonic() - began
        finally:
            self._crew.end()
        tell(lambda: "looking at every event")
        return self._report(seconds)

    def _begin(self) -> None:
        crew, setting = self._crew, self.setting
        crew.start("manager", 0, lambda: manage(setting))
        self._start("recorder", 0)
        for index in range(setting.sources):
            self._start("source", index)
        for index in range(setting.sinks):
            self._start("sink", index)

    def _start(self, kind: Kind, index: int, away_seconds: float = 0.0, *, moves: bool = False) -> None:
        setting, seed = self.setting, self._chance.randrange(2**32)
        listen = "127.0.0.1:0" if moves else self._recorder_at
        roles: dict[Kind, Callable[[], None]] = {
            "recorder": lambda: record(setting, listen),
            "source": lambda: publish(setting, index, seed),
            "sink": lambda: consume(setting, index),
        }
        self._crew.start_later(away_seconds, kind, index, roles[kind])

    def _flow(self, number: int, seconds: float, tell: Tell) -> None:
        """Let sources submit what comes before the kill of a number, little by little."""
        share = self.setting.events_each / (len(self.plan) + 1)
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            self._board.allowed[:] = int(share * (number - 1 + passed / seconds))
            self._beat(tell)

    def _carry_out(self, kill: Kill) -> None:
        crew = self._crew
        living: list[tuple[Kind, int]] = [(kill.kind, kill.index)] if crew.lives(kill.kind, kill.index) else []
        others: tuple[Kind, ...] = ("recorder", "source", "sink")
        living += [(kind, index) for kind in others for index in crew.of(kind)]
        if not living:
            return
        kind, index = living[0]
        crew.kill(kind, index)
        self.killed[kind] = self.killed.get(kind, 0) + 1
        self._start(kind, index, kill.away_seconds, moves=kill.moves)

    def _finish(self, tell: Tell) -> None:
        """Let all events be submitted and seen, and all processes end."""
        self._board.allowed[:] = self.setting.events_each
        for what, done in self._goals():
            deadline = time.monotonic() + END_SECONDS
            while not done() and not self.problems:
                self._beat(tell)
                if time.monotonic() > deadline:
                    self.problems.append(f"not within {END_SECONDS:.0f} s: {what}")
        for kind in ("sink", "recorder", "manager"):
            self.problems.extend(self._crew.stop(kind))

    def _goals(self) -> Iterator[tuple[str, Callable[[], bool]]]:
        crew, board = self._crew, self._board
        yield "every source has ended", lambda: not crew.of("source") and not crew.away()
        yield "every sink has seen everything", lambda: bool((board.seen >= self.events).all())

    def _beat(self, tell: Tell) -> None:
        self.problems.extend(self._crew.beat())
        tell(self._standing)
        time.sleep(POLL_SECONDS)

    def _standing(self) -> str:
        board, journal = self._board, self.setting.journal
        recorded = sum(Journal(journal, CHANNEL).heads) if CHANNEL in Journal.channels(journal) else 0
        seen = ", ".join(f"{int(each):,}" for each in board.seen)
        killed = ", ".join(f"{count} {kind}s" for kind, count in self.killed.items())
        return (
            f"{int(board.submitted.sum()):,} events submitted, {recorded:,} recorded, seen {seen}; "
            f"{sum(self.killed.values())} of {len(self.plan)} kills: {killed}"
        )

    def _report(self, seconds: float) -> CampaignReport:
        for path in sorted(Path(self.setting.folder).glob("problem-*")):
            self.problems.extend(path.read_text("utf-8").splitlines())
        audit = Audit(self.setting)
        audit.read_journal()
        audit.ask_sinks()
        problems = (*self.problems, *audit.problems)[:PROBLEMS_MAX]
        return CampaignReport(
            self.seed,
            self.events,
            self.killed,
            round(seconds, 2),
            round(self.events / seconds),
            audit.events,
            audit.lost,
            audit.doubled,
            audit.disordered,
            problems,
        )


def _free_port(chance: random.Random) -> int:
    """Return a port at which nobody listens."""
    while True:
        port = chance.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class Audit:
    """Looks at every event in a journal, and at what sinks have seen."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.events = self.lost = self.doubled = self.disordered = 0
        self.problems: Final[list[str]] = []

    def read_journal(self) -> None:
        """Count what is not there once, in order, as it was submitted."""
        setting = self._setting
        self.problems.extend(f"the journal has a flaw: {flaw}" for flaw in verify(Disk(setting.journal), CHANNEL))
        following = dict.fromkeys(range(setting.sources), 0)
        for found in Journal(setting.journal, CHANNEL).read():
            batch = found.batch
            producer, first = int(batch.array["producer"][0]), int(batch.array["number"][0])
            expected = following.get(producer, 0)
            self.doubled += min(max(expected - first, 0), batch.count)
            self.disordered += first > expected
            following[producer] = max(expected, first + batch.count)
            self.events += batch.count
            if first != found.first:
                self.problems.append(f"event {first} of {producer} is recorded under the number {found.first}")
            wrong = wrong_ticks(batch, first)
            if wrong:
                self.problems.append(f"{found.sequence} of partition {found.partition}: {wrong}")
        distinct = self.events - self.doubled
        self.lost = setting.events_each * setting.sources - distinct

    def ask_sinks(self) -> None:
        """Compare what each sink has seen with what was submitted."""
        setting = self._setting
        expected = sum(
            int(ticks(index, 0, setting.events_each)["check"].sum(dtype="u8")) for index in range(setting.sources)
        )
        for index in range(setting.sinks):
            seen = Memory(setting.database(index)).seen
            numbers = dict.fromkeys(range(setting.sources), setting.events_each)
            if (seen.numbers, seen.checksum) != (numbers, expected % 2**53):
                self.problems.append(f"sink {index} has seen {seen}, expected {numbers}")


def run_campaign(
    events: int, kills: int, seed: int, tell: Tell, *, folder: Path | None = None, sinks: int = SINKS
) -> CampaignReport:
    """Run a campaign in a folder that is removed afterwards, unless it is given or something is wrong."""
    place = folder or Path(tempfile.mkdtemp(prefix="echoic-kills-"))
    report = Campaign(place, events, kills, seed, sinks=sinks).run(tell)
    if folder is None and report.clean:
        shutil.rmtree(place)
    return report


class Teller:
    """Tells on stderr how it goes, not too often."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._told = time.monotonic()

    def __call__(self, text: Callable[[], str]) -> None:
        """Tell something, if it is time."""
        now = time.monotonic()
        if not self._quiet and now - self._told > SHOW_SECONDS:
            self._told = now
            sys.stderr.write(f"{text()}\n")


def main() -> None:
    """Run a campaign from the command line; the exit code is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m echoic.testing.kill_campaign", description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=2_000_000, help="how many events, of all sources together")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32), help="printed at the end")
    parser.add_argument("--sinks", type=int, default=SINKS)
    parser.add_argument("--folder", type=Path, help="where to work; it is left as it is")
    parser.add_argument("--quiet", action="store_true")
    chosen = parser.parse_args()
    report = run_campaign(
        chosen.events, chosen.kills, chosen.seed, Teller(chosen.quiet), folder=chosen.folder, sinks=chosen.sinks
    )
    sys.stdout.write(f"{msgspec.json.encode(report).decode()}\n")
    sys.exit(0 if report.clean else 1)


if __name__ == "__main__":
    main()
