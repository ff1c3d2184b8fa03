"""A campaign of kills: everybody a channel has is killed under load, and nothing is lost or doubled.

    python -m echoic.testing.kill_campaign --events 10000000 --kills 200 --seed 7 --secured

The seed decides whom, when, and how long it stays away: a source, the recorder, a durable sink, the manager, the name
server. Manager and name server come back at their address, the recorder there or elsewhere. Between two kills each
source may submit an equal share of its events, spread evenly over the time: so there is load at every kill, however
fast the machine is, and a campaign takes as long as its kills do.

This process has no threads and no hub: it forks the others (`kill_crew`), watches the scoreboard (`kill_roles`), and
sends SIGKILL. In the end the journal must have every event of every source exactly once, in order, with the very bytes
that were submitted, and every sink must have seen just that (`kill_audit`).

`--secured` gives every process the certificate of its role and a file of rights (`charter`), so that all links are TLS
and everybody has the rights that it needs and no other.
"""

import argparse
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from echoic.recorder import Journal
from echoic.testing.charter import Charter
from echoic.testing.kill_audit import Audit
from echoic.testing.kill_crew import END_SECONDS, POLL_SECONDS, Crew
from echoic.testing.kill_roles import (
    CHANNEL,
    GRANTS,
    Scoreboard,
    Setting,
    consume,
    manage,
    publish,
    record,
    serve_names,
)

__all__ = ["Campaign", "CampaignReport", "run_campaign"]

Kind: TypeAlias = Literal["source", "recorder", "sink", "manager", "names"]
Tell: TypeAlias = Callable[[Callable[[], str]], None]

SOURCES: Final = 3
SINKS: Final = 2
DECK: Final[tuple[Kind, ...]] = (*("source",) * 3, *("recorder",) * 3, *("sink",) * 2, "manager", "names")
"""Whom to kill, as often as here in every so many kills."""
AWAY_SECONDS_MAX: Final = 1.0
AFTER_SECONDS: Final = ((0.0, 0.2), (0.2, 2.0))
PORTS: Final = range(20_000, 30_000)  # below those that the system gives to whoever dials
SHOW_SECONDS: Final = 2.0
PROBLEMS_MAX: Final = 20
ENDING: Final = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED: Final = 130


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


class Campaign:
    """A recorder, sources and sinks, and who is killed when."""

    def __init__(
        self,
        folder: Path,
        events: int,
        kills: int,
        seed: int,
        *,
        sinks: int = SINKS,
        secured: bool = False,
        count: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Plan it.

        Args:
            folder: Where everything is.
            events: How many events, of all sources together.
            kills: How many kills.
            seed: What decides.
            sinks: How many durable sinks there are.
            secured: Whether all have certificates, and the rights of their roles.
            count: Called with the number of each kill that was done.
        """
        self.seed: Final = seed
        self._count: Final = count
        self._chance = random.Random(seed)
        addresses = [f"127.0.0.1:{port}" for port in _free_ports(self._chance, 3)]
        self._recorder_at, names, manager = addresses
        charter = str(Charter.draw_up(folder / "charter", GRANTS).folder) if secured else ""
        self.setting: Final = Setting(
            str(folder), max(events // SOURCES, 1), SOURCES, sinks, names, manager, charter=charter
        )
        self.plan: Final = [self._draw(kind) for kind in self._shuffled(kills)]
        self._board: Final = Scoreboard(self.setting)
        self._crew: Final = Crew()
        self.killed: Final[dict[str, int]] = {}
        self.problems: Final[list[str]] = []

    @property
    def events(self) -> int:
        """How many events all sources submit."""
        return self.setting.events_each * self.setting.sources

    def _shuffled(self, kills: int) -> list[Kind]:
        """Return so many kinds, all of them among each hand of cards."""
        deck = [kind for kind in DECK if kind != "sink" or self.setting.sinks]
        drawn = [self._chance.sample(deck, len(deck)) for _ in range(-(-kills // len(deck)))]
        return [kind for hand in drawn for kind in hand][:kills]

    def _draw(self, kind: Kind) -> Kill:
        chance = self._chance
        count = {"source": self.setting.sources, "sink": self.setting.sinks}.get(kind, 1)
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
        setting = self.setting
        for kind in ("names", "manager", "recorder"):
            self._start(kind, 0)
        for index in range(setting.sources):
            self._start("source", index)
        for index in range(setting.sinks):
            self._start("sink", index)

    def _start(self, kind: Kind, index: int, away_seconds: float = 0.0, *, moves: bool = False) -> None:
        setting, seed = self.setting, self._chance.randrange(2**32)
        listen = "127.0.0.1:0" if moves else self._recorder_at
        roles: dict[Kind, Callable[[], None]] = {
            "names": lambda: serve_names(setting),
            "manager": lambda: manage(setting),
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
        living += [(kind, index) for kind in dict.fromkeys(DECK) for index in crew.of(kind)]
        if not living:
            return
        kind, index = living[0]
        crew.kill(kind, index)
        self.killed[kind] = self.killed.get(kind, 0) + 1
        self._count(sum(self.killed.values()))
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
        for kind in ("sink", "recorder", "manager", "names"):
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
        killed = ", ".join(f"{kind} {count}" for kind, count in self.killed.items())
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


def _free_ports(chance: random.Random, count: int) -> list[int]:
    """Return ports at which nobody listens."""
    found: list[int] = []
    for port in chance.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            break
    return found


def run_campaign(
    events: int,
    kills: int,
    seed: int,
    tell: Tell,
    *,
    folder: Path | None = None,
    sinks: int = SINKS,
    secured: bool = False,
    count: Callable[[int], None] = lambda _: None,
) -> CampaignReport:
    """Run a campaign in a folder that is removed afterwards, unless it is given or something is wrong."""
    place = folder or Path(tempfile.mkdtemp(prefix="echoic-kills-"))
    try:
        report = Campaign(place, events, kills, seed, sinks=sinks, secured=secured, count=count).run(tell)
    except KeyboardInterrupt:
        if folder is None:
            shutil.rmtree(place)
        raise
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
    parser.add_argument("--secured", action="store_true", help="give all certificates, and the rights of their roles")
    parser.add_argument("--folder", type=Path, help="where to work; it is left as it is")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--count", action="store_true", help="print the number of each kill")
    chosen = parser.parse_args()
    for each in ENDING:
        signal.signal(each, _end)
    try:
        report = run_campaign(
            chosen.events,
            chosen.kills,
            chosen.seed,
            Teller(chosen.quiet),
            folder=chosen.folder,
            sinks=chosen.sinks,
            secured=chosen.secured,
            count=_print_count if chosen.count else lambda _: None,
        )
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.stdout.write(f"{msgspec.json.encode(report).decode()}\n")
    sys.exit(0 if report.clean else 1)


def _end(*_: object) -> None:
    """End in order, by the first of the signals that say so; another one must not disturb that."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _print_count(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
