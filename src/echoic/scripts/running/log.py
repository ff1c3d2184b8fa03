"""What it takes to repeat a run: the script by its digest, the seed, and what was heard when.

Chance and time are the only other things that a machine depends on. Time is part of what is heard; an entry without an
input says that it went on. When something was heard is counted in turns, not in steps: a process that tries in vain
draws from chance too.

    log = RunLog(digest_of(script), seed, now_ns, epoch_ns, entries=[])
    machine = Machine(program, chance=Random(seed), now_ns=now_ns, log=log.entries)
    ...
    for effects in replay(log, program, Random(log.seed)): ...
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from echoic.errors import RefusedError
from echoic.scripts.graph import Program
from echoic.scripts.running.limits import MachineLimits
from echoic.scripts.running.machine import Machine
from echoic.scripts.running.messages import Effect
from echoic.scripts.running.records import LogEntry
from echoic.scripts.running.world import Chance
from echoic.scripts.syntax.tree import Script

__all__ = ["RunLog", "digest_of", "replay"]

DEFAULTS: Final = MachineLimits()
TURNS_AT_ONCE: Final = 10_000


@dataclass(frozen=True, slots=True)
class RunLog:
    """A run, as far as it was not decided by the script."""

    digest: str
    seed: int
    now_ns: int
    epoch_ns: int = 0
    int32: bool = False
    limits: MachineLimits = DEFAULTS
    entries: list[LogEntry] = field(default_factory=list)


def digest_of(script: Script) -> str:
    """Return what tells this script from others: a hash of all its files."""
    made = hashlib.sha256()
    for name, text in sorted(script.sources.items()):
        for part in (name, text):
            data = part.encode("utf-8", "surrogatepass")
            made.update(len(data).to_bytes(8, "little") + data)
    return made.hexdigest()


def replay(
    log: RunLog, program: Program, chance: Chance, *, traced: bool = True, turns_max: int | None = None
) -> Iterator[list[Effect]]:
    """Yield the effects of a run again, one list for each thing that was heard, and one for what came after the last.

    Args:
        log: The run.
        program: The script, compiled with the same options.
        chance: A new generator from the same seed.
        traced: Whether every step is told.
        turns_max: How many turns the whole run is to have; without it, it goes on until nothing is left to do.

    Raises:
        RefusedError: The log is of another script or other options.
    """
    if digest_of(program.script) != log.digest:
        raise RefusedError("the log is of another script")
    if program.options.int32 != log.int32:
        raise RefusedError("the log is of a run with integers of another size")
    machine = Machine(
        program, chance=chance, now_ns=log.now_ns, epoch_ns=log.epoch_ns, limits=log.limits, traced=traced
    )
    machine.start()
    now_ns = log.now_ns
    for entry in log.entries:
        machine.run(entry.turns - machine.turns, now_ns)
        now_ns = entry.now_ns
        if entry.heard is None:
            machine.run(0, now_ns)
        else:
            machine.receive(entry.heard, now_ns)
        yield machine.take_effects()
    while machine.run(TURNS_AT_ONCE if turns_max is None else turns_max - machine.turns, now_ns) and turns_max is None:
        yield machine.take_effects()
    yield machine.take_effects()
