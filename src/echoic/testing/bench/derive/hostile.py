"""Does a source keep its rate for its other sinks when somebody derives from it to do it harm?

One sink counts trades; another process derives from the same channel in ten ways: loops that do not end, bad indexes,
divisions by zero, work that is allowed but takes too long, output beyond all bounds. Each is refused, or suspended as
soon as events have shown what it does. Beside it the same source has a channel with a good sink only.

    without                nobody means harm
    with                   all ten are suspended or refused
    while they arrive      from the moment in which the first is installed until the last is suspended
"""

import logging
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from echoic.errors import EchoicError
from echoic.formats import Array, event, float64, int32
from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort, Session, Setup
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.derive.figures import Trade, trade, trades
from echoic.testing.bench.derive.sinks import SETUP, TRADES
from echoic.testing.bench.derive.tables import table_of
from echoic.testing.bench.events import Records
from echoic.testing.bench.peers import Peer, join, start_peers, time_counted
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Cell, Samples, Unit
from echoic.testing.bench.spread import Spread

if TYPE_CHECKING:
    from echoic import Channel, Hub, Source

__all__ = ["ARRIVING", "COLUMN", "HOSTILE", "TITLE", "WITH", "WITHOUT", "attack", "measure"]

TITLE = "trades that reach a good sink, in arrays of 1000"
WITHOUT, WITH, ARRIVING = "without hostile code", "with ten hostile derivations", "while they arrive"
COLUMN = "rate"
BATCH: Final = 1000
KEPT_MIN: Final = 0.95
SIEGE_SECONDS_MAX: Final = 15.0
LOOK_SECONDS: Final = 0.02
ATTACKER: Final = f"{__name__}:attack"


@event
class Torrent:
    """What one event becomes if nobody stops it."""

    n: int32
    values: Array[float64, "n"]  # noqa: F821 - names a field


@dataclass(frozen=True, slots=True)
class Attack:
    """Code that somebody derives with, and how."""

    code: str
    output: type | None = None
    ports: int = 0


HOSTILE: Final[Mapping[str, Attack]] = {
    "a loop without end": Attack("while (1) { } return 1;"),
    "a loop that counts and never ends": Attack("int i = 0; do { i++; } while (i != -1); return i;"),
    "a loop over what the event says": Attack(
        "long i; long s = 0; for (i = 0; i < 10000 + input.volume; i++) { s = s * 31 + i; } return s != 0;"
    ),
    "loops that are counted and long": Attack(
        "int i; int j; double s = 0; for (i = 0; i < 300; i++) for (j = 0; j < 300; j++) s += i * j;"
        " return s + input.trade_price > 0;"
    ),
    "loops that are counted and far too long": Attack(
        "int i; int j; int k; double s = 0; for (i = 0; i < 1000; i++) for (j = 0; j < 1000; j++)"
        " for (k = 0; k < 1000; k++) s += i * j * k; return s + input.trade_price > 0;"
    ),
    "an index behind the end": Attack("int a[4]; return a[input.sequence + 4000] == 0;"),
    "an index before the beginning": Attack("static int a[4]; a[-1 - input.sequence] = 7; return 1;"),
    "a division by zero": Attack("return 7 / (input.sequence - input.sequence);"),
    "output without bounds": Attack("output.n = 2000000000; output.values[0] = 1; return 1;", Torrent),
    "a port that does not exist": Attack("return 99 + input.sequence;", ports=2),
}


def measure(effort: Effort, report: Report) -> None:
    """Measure the rate of a source with and without hostile code, and add it to the report."""
    from echoic import Hub

    effort.told("starting good and hostile sinks")
    seconds: dict[Cell, list[float]] = {(case, COLUMN): [] for case in (WITHOUT, WITH, ARRIVING)}
    chance, sieges = random.Random(effort.seed), list[Siege]()
    with ExitStack() as stack, Hub() as hub:
        left_alone, attacked = (_Good(hub, name, stack) for name in ("left-alone", "attacked"))
        events = left_alone.calibrated(effort.sample_seconds)
        for number in range(effort.rounds):
            effort.told(f"round {number + 1} of {effort.rounds}")
            with start_peers(ATTACKER, SETUP, [{"id": attacked.channel.id, "round": number}]) as (attacker,):
                attacker.address()
                sieges.append(_besiege(hub, attacked, attacker))
                seconds[ARRIVING, COLUMN].append(sieges[-1].seconds / sieges[-1].events)
                for case, good in chance.sample([(WITHOUT, left_alone), (WITH, attacked)], 2):
                    seconds[case, COLUMN].append(good.session(events))
    table = table_of(TITLE, Unit.THOUSANDS_PER_SECOND, Samples(seconds), WITHOUT)
    report.tables.append(table)
    report.claims.append(Claim(WITH, table.ratio(WITH, COLUMN), KEPT_MIN, "x without", at_least=True))
    report.remarks += _told(sieges)


@dataclass(frozen=True, slots=True)
class Siege:
    """The time in which hostile code arrives: how long, how many events meanwhile, what became of each derivation."""

    seconds: float
    events: int
    reasons: list[str]


def _told(sieges: list[Siege]) -> list[str]:
    reasons = sieges[-1].reasons
    lasted = Spread.quartiles_of([siege.seconds for siege in sieges])
    return [
        f"until all were suspended or refused: {lasted} s",
        (
            f"of {len(HOSTILE)} hostile derivations {len(HOSTILE) - len(reasons)} were refused, "
            f"{sum(map(bool, reasons))} suspended, {reasons.count('')} went on"
        ),
        *(f"suspended: {reason}" for reason in reasons if reason),
    ]


class _Good:
    """A channel of the source with a sink that means no harm."""

    def __init__(self, hub: "Hub", name: str, stack: ExitStack) -> None:
        self.channel = hub.create(name, Trade)
        self.source, welcome = self.channel.source(), trade(passes=True)
        argument: Argument = {"id": self.channel.id, "code": ""}
        peers = stack.enter_context(start_peers(TRADES, SETUP, [argument]))
        peers[0].address()
        join(peers, lambda _: self.source.submit(welcome))
        self.submit = partial(_submit_batches, self.source, trades(BATCH))
        self.session: Session = time_counted(peers, self.submit)

    def calibrated(self, sample_seconds: float) -> int:
        """Return how many events fill a sample, having sent some to grow warm."""
        count = 10 * BATCH
        self.session(count)
        return max(count, int(sample_seconds / self.session(count)) // BATCH * BATCH)


def _submit_batches(source: "Source", records: Records, count: int) -> None:
    for _ in range(count // BATCH):
        source.submit_batch(records)


def _besiege(hub: "Hub", attacked: _Good, attacker: Peer) -> Siege:
    """Submit from the moment in which the attacker begins until the last of its derivations is suspended."""
    before = {each.id for each in hub.report(hub.address).derivations}
    attacker.expect(1)
    begun, events, installed = time.perf_counter(), 0, False
    reasons: list[str] = [""]
    looked = begun
    while not (installed and all(reasons)) and time.perf_counter() - begun < SIEGE_SECONDS_MAX:
        attacked.submit(BATCH)
        events += BATCH
        if time.perf_counter() - looked > LOOK_SECONDS:
            looked = time.perf_counter()
            installed = installed or attacker.has_counted()
            reasons = [each.suspended for each in hub.report(hub.address).derivations if each.id not in before]
    attacked.source.drain()
    return Siege(time.perf_counter() - begun, events, reasons)


def attack(control: Control, setup: Setup, argument: Argument) -> None:  # noqa: ARG001 - for other peers
    """Derive in all hostile ways and, when told to, subscribe to all that comes of it; this runs in the peer."""
    from echoic import Hub

    logging.getLogger("echoic").setLevel(logging.CRITICAL)  # whoever means harm does not mind what becomes of it
    with Hub() as hub:
        channel = hub.open(str(argument["id"]), Trade)
        remark = f" /* {argument['round']} */"  # so that it is not what an earlier one has derived
        derived = [each for attack in HOSTILE.values() for each in _derived(channel, attack, remark)]
        control.ready()
        while not control.tally.left:
            time.sleep(0.001)
        for each in derived:
            try:
                each.subscribe(lambda _: None, batch=True, slow="latest")
            except EchoicError:  # it is refused, as it should be
                continue
        control.tally.event(None)
        control.wait()


def _derived(channel: "Channel", attack: Attack, remark: str) -> "Sequence[Channel]":
    try:
        if attack.ports:
            return channel.route(attack.code + remark, attack.ports, share=False)
        return [channel.derive(attack.code + remark, attack.output, share=False)]
    except EchoicError:  # it is refused, as it should be
        return []
