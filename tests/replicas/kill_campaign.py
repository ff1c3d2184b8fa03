"""A campaign of kills: the process that writes a log is killed again and again, and each event is in the table once.

    python -m tests.replicas.kill_campaign --kills 25 --database postgresql [--seed 7] [--seconds 1.0]

A child opens the log and is delivered events as fast as it takes them, from some events before the end of the log on,
because a group delivers again what it is not sure of, and in other batches than before. After a while it is killed with
SIGKILL. Every event follows from its number, so in the end the table must have all of them up to the number that the
database knows, once, in order, with the very values, and anybody who asks in SQL must count the same.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from echoic.replicas import LogOptions, ReplicatedLog
from tests.replicas.servers import mariadb_server, postgresql_server
from tests.replicas.ticks import Tick, deliver, query, wrong_rows

__all__ = ["KINDS", "KillReport", "run_kills"]

KINDS = ("sqlite", "postgresql", "mariadb")
LOG = "ticks"
OVERLAP_MAX = 300
EVENTS_AT_ONCE = 200
OPTIONS = LogOptions(transaction_rows_max=500, pending_rows_max=2000)


class KillReport(msgspec.Struct, frozen=True):
    """What a campaign has found."""

    seed: int
    kills: int
    events: int
    transactions_cut: int
    """How many kills left events behind that were delivered and not committed."""
    problem: str


def run_kills(url: str, *, kills: int, seconds: float, seed: int, told: Callable[[str], object]) -> KillReport:
    """Kill the writer of a log so many times, each time after some part of so many seconds."""
    chance = random.Random(seed)
    cut = 0
    for number in range(kills):
        progress_read, progress_write = os.pipe()
        child = _forked(url, chance.getrandbits(32), progress_write)
        os.close(progress_write)
        delivered = _watched(progress_read, chance.uniform(0.02, 1.0) * seconds, child)
        (row,) = query(url, f"SELECT sequence FROM echoic_applied WHERE log = '{LOG}'")
        cut += row[0] < delivered
        told(f"kill {number + 1} of {kills}: {delivered} events delivered, {row[0]} in the table")
    return _judged(url, seed, kills, cut)


def _forked(url: str, seed: int, progress: int) -> int:
    """Fork the process that writes; it tells through a pipe how far it is."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    try:
        _write(url, seed, progress)
    except BaseException:
        traceback.print_exc()
        raise
    finally:  # whatever it is, this process must not go on as its parent
        os._exit(1)


def _write(url: str, seed: int, progress: int) -> None:
    chance = random.Random(seed)
    log = ReplicatedLog(LOG, Tick, url, OPTIONS)
    first = max(1, log.applied() + 1 - chance.randint(0, OVERLAP_MAX))
    os.write(progress, f"{first}\n".encode())
    while True:
        last = first + chance.randint(1, EVENTS_AT_ONCE) - 1
        deliver(log, first, last, batch=chance.randint(1, 10))
        os.write(progress, f"{last}\n".encode())
        first = max(1, last + 1 - chance.choice((0, 0, 0, 20)))


def _watched(progress: int, seconds: float, child: int) -> int:
    """Let a child write for so long, kill it, and return the last number that it was delivered.

    Raises:
        RuntimeError: It ended by itself.
    """
    with os.fdopen(progress, "rb") as lines:
        begun = lines.readline()
        deadline = time.monotonic() + seconds
        last = begun
        while begun and time.monotonic() < deadline and (line := lines.readline()):
            last = line
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            raise RuntimeError(f"the process that writes ended by itself, with status {status}")
        rest = lines.read().split()
    return int(rest[-1] if rest else last)


def _judged(url: str, seed: int, kills: int, cut: int) -> KillReport:
    with ReplicatedLog(LOG, Tick, url) as log:
        events = log.applied()
        problem = wrong_rows(log, events)
    (counted,) = query(url, f"SELECT count(*), count(DISTINCT sequence), min(sequence), max(sequence) FROM {LOG}")
    if not problem and tuple(counted) != (events, events, 1, events):
        problem = f"the table has {counted}, expected {events} events"
    return KillReport(seed, kills, events, cut, problem)


@contextmanager
def _database(kind: str) -> Iterator[str]:
    match kind:
        case "postgresql":
            with postgresql_server() as server:
                yield server.url
        case "mariadb":
            with mariadb_server() as server:
                yield server.url
        case _:
            with tempfile.TemporaryDirectory() as folder:
                yield f"sqlite:{Path(folder)}/ticks.db"


def main() -> int:
    """Run a campaign as the command line asks."""
    parser = argparse.ArgumentParser(description="Kill the writer of a replicated log, again and again.")
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--database", choices=KINDS, default="sqlite")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a writer lives at most")
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    with _database(given.database) as url:
        report = run_kills(url, kills=given.kills, seconds=given.seconds, seed=seed, told=print)
    print(msgspec.json.encode(report).decode())
    return 1 if report.problem else 0


if __name__ == "__main__":
    sys.exit(main())
