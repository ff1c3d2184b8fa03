"""Trial 24: hubs, types and journals of other versions, in pairs, both ways.

Seven of ten pairs are hubs: one of today, and one that speaks a dialect (`dialect`), by turns as the dialler and as the
dialled, with types that were extended on one side. Both submit and hear; all events must arrive, and mean the same. Two
are journals, written with one type and read as the other. The last of every ten is a hub of the next version: both must
part, and say why. (The golden journals and vectors are read in `tests/golden`.)

Every other pair of hubs has certificates, and the rights that it needs and no other: what a hub of another version does
not say, or says beside, must not change who it is or what it may do.
"""

import contextlib
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from echoic.errors import EchoicError, IncompatibleTypesError
from echoic.hub import Channel, Hub
from echoic.recorder import Journal, JournalWriter, LocalShelf
from echoic.testing.charter import Charter, Grants, party_of
from echoic.testing.ledger import check
from echoic.testing.simulated_disk import SimulatedDisk
from echoic.testing.trials.dialect import DIALECTS, Dialect, NextVersion
from echoic.testing.trials.extended_types import Pair, draw_pair, events_of
from echoic.testing.trials.interpreter import HOST, Interpreter
from echoic.testing.trials.trial import Findings, Tell
from echoic.wire import Batch

__all__ = ["run"]

EVENTS: Final = 50
PATIENCE_SECONDS: Final = 20.0
ROUND: Final = 10
JOURNALS: Final = frozenset({2, 5})
PARTING: Final = 9
"""Which of ten pairs are journals, and hubs that part."""
CHANNEL: Final = "things"
GRANTS: Final[Grants] = {
    "dialled": [f"admin,publish,subscribe {CHANNEL}"],
    "dialler": [f"publish,subscribe {CHANNEL}"],
}

Meet: TypeAlias = Callable[[random.Random, Charter | None], None]


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Let so many pairs meet."""
    began = time.monotonic()
    problems: list[str] = []
    counts = {"secured": 0}
    with tempfile.TemporaryDirectory(prefix="echoic-upgrades-") as folder:
        charter = Charter.draw_up(Path(folder) / "charter", GRANTS)
        for number in range(size):
            chance = random.Random(seed + number)
            kind, meet = choose(number, chance)
            secured = kind != "journal" and (number + seed) % 2 == 1
            try:
                meet(chance, charter if secured else None)
            except (AssertionError, EchoicError) as problem:
                what = f"{kind}, secured" if secured else kind
                problems.append(f"pair {number} ({what}), seed {seed}: {type(problem).__name__}: {problem}")
            counts[kind] = counts.get(kind, 0) + 1
            counts["secured"] += secured
            tell(number + 1)
    return Findings(tuple(problems), {**counts, "seconds": round(time.monotonic() - began, 1)})


def choose(number: int, chance: random.Random) -> tuple[str, Meet]:
    """Return what a pair is, and how it meets."""
    place = number % ROUND
    if place == PARTING:
        return "other_version", part
    if place in JOURNALS:
        return "journal", lambda given, _: read_across(given)
    hubs = [each for each in range(ROUND) if each not in JOURNALS and each != PARTING]
    dialect = DIALECTS[hubs.index(place)] if number < ROUND else chance.choice(DIALECTS)
    return dialect.__name__.lower(), lambda given, charter: talk(given, dialect, charter)


def read_across(chance: random.Random) -> None:
    """Write a journal with each of two types, and read it as the other.

    Raises:
        AssertionError: Something means something else.
    """
    pair = draw_pair(chance)
    for written, read in ((pair.former, pair.latter), (pair.latter, pair.former)):
        disk = SimulatedDisk(random.Random(0))
        writer = JournalWriter.open(disk, "things", id=bytes(16), now_ns=0)
        events = events_of(written, EVENTS, chance)
        writer.append(Batch.of(events, written), 1, 0, 0)
        writer.close(0)
        found = [
            each
            for one in Journal(LocalShelf(disk, "things")).read()
            for each in one.batch.to(read, narrow=read is pair.former).events()
        ]
        pair.compare(events, found)
    if pair.widened:
        wide = Batch.of(events_of(pair.latter, 1, chance), pair.latter)
        check_refused(lambda: wide.to(pair.former))


def check_refused(act: Callable[[], object]) -> None:
    """Check that what is wider is not taken for what is narrower, unless somebody says so."""
    try:
        act()
    except IncompatibleTypesError:
        return
    raise AssertionError("what is wider is taken for what is narrower")


@contextlib.contextmanager
def met(charter: Charter | None, voices: tuple[Dialect, Dialect]) -> Iterator[tuple[Hub, Hub, str]]:
    """Start a hub that is dialled and one that dials; yield both, and the channel by way of who speaks for them."""
    there, here = party_of(charter, "dialled"), party_of(charter, "dialler")
    identities = (there["identity"], here["identity"])
    with (
        Hub(f"{HOST}:0", **there) as dialled,
        Hub(f"{HOST}:0", **here) as dialler,
        Interpreter(dialled.address, *voices, identities) as between,
    ):
        yield dialled, dialler, f"echoic://{between.address}/{CHANNEL}"


def talk(chance: random.Random, dialect: type[Dialect], charter: Charter | None = None) -> None:
    """Let a hub of today and one of another version exchange events of types that differ, both ways.

    Raises:
        AssertionError: Events do not arrive, or mean something else.
        EchoicError: They do not understand each other.
    """
    pair = draw_pair(chance)
    strange, plain = dialect(chance), Dialect(chance)
    voices = (strange, plain) if chance.random() < 0.5 else (plain, strange)
    with met(charter, voices) as (dialled, dialler, id):
        there = dialled.create(CHANNEL, pair.former)
        here = dialler.open(id, pair.latter)
        heard: list[object] = []
        here.subscribe(heard.append)
        events, source = events_of(pair.former, EVENTS, chance), there.source()
        source.submit_batch(events)
        source.drain(PATIENCE_SECONDS)
        pair.compare(events, heard)
        if pair.widened:
            check_refused(here.source)
        else:
            answer(pair, there, here, chance)
    check(strange.changed > 0, "the other hub said nothing that this one would not have said")


def answer(pair: Pair, there: Channel, here: Channel, chance: random.Random) -> None:
    """Let who has heard submit, and who has submitted hear.

    Raises:
        AssertionError: Events do not arrive, or mean something else.
    """
    heard: list[object] = []
    there.subscribe(heard.append)
    events, source = events_of(pair.latter, EVENTS, chance), here.source()
    source.submit_batch(events)
    source.drain(PATIENCE_SECONDS)
    pair.compare(events, heard)


def part(chance: random.Random, charter: Charter | None = None) -> None:
    """Let a hub of the next version be dialled, and dial: both sides must say why nothing comes of it.

    Raises:
        AssertionError: They do not.
    """
    later = NextVersion(chance)
    for voices in ((later, Dialect(chance)), (later, later)):
        with met(charter, voices) as (dialled, dialler, id):
            try:
                dialler.describe(id)
            except EchoicError as error:
                check("speaks version 2 of the protocol, this program version 1" in str(error), f"it says: {error}")
            else:
                raise AssertionError("a hub of another version was understood")
            check(not dialled.statistics().links, "a hub of another version was let in")
