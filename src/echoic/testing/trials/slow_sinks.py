"""Sinks that stop reading, under each rule: the source's memory, the other sinks' rate, and exact gaps.

    source   hub with two channels: `afflicted` and `free`
    keen     a sink of both, which keeps up
    slow     a sink of `afflicted`, whose process is stopped (SIGSTOP) and let go on, again and again

In each round rates are taken by turns, each from the first event submitted until the keen sink has the last one: of
`free` while nobody is stopped, then, while the slow sink is, of `afflicted` and of `free`. So two things are compared,
each with what was measured next to it: a sink of the same channel with one of another, and a channel with itself while
nobody is stopped. Under `block` the source of the channel waits, as it should, and only `free` has a rate.

Half of the rounds of each rule are among plain hubs, half among secured ones, with certificates and just the rights of
their roles; rates are compared with those of the same half.

The rule `spill` is a recorder and a durable sink: what waits for the sink is on the recorder's disk.
"""

import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from echoic.channels.fanout import CREDIT_BYTES, PARKED_BYTES_MAX
from echoic.channels.keeping import KEPT_BYTES_MAX
from echoic.errors import LocalError
from echoic.links.tls import SEND_BYTES_MAX
from echoic.testing.charter import Charter, environment_of
from echoic.testing.trials.accounts import Span, check_accounts
from echoic.testing.trials.rates import RATE, kept_share, kept_up
from echoic.testing.trials.slow_parties import AFFLICTED, BATCH, COUNT, FEED, FREE, GRANTS, KEEP
from echoic.testing.trials.trial import Figure, Findings, Tell
from echoic.testing.trials.vital_signs import MEGABYTE, signs_of
from echoic.testing.trials.workers import Worker, wait_until, workers

__all__ = ["RULES", "Outcome", "judge", "run"]

RULES: Final = ("block", "drop_oldest", "latest", "disconnect", "spill")
FILL_EVENTS: Final = 200_000  # 20 MB, more than may be under way to a hub
SLICE_EVENTS: Final = 100_000
PAIRS: Final = 4
ROUNDS_MIN: Final = 2  # of each half
ATTEMPTS_MAX: Final = 3
SETTLE_SECONDS: Final = 20.0
ROUND_EVENTS: Final = FILL_EVENTS + PAIRS * SLICE_EVENTS
KEPT_MIN: Final = 0.9
UNDER_WAY_BYTES: Final = 2 * CREDIT_BYTES + PARKED_BYTES_MAX
"""What is under way to a hub of this machine is there twice, in the session and in the shared memory."""
LIMIT_BYTES: Final = dict.fromkeys(RULES, UNDER_WAY_BYTES) | {"spill": UNDER_WAY_BYTES + KEPT_BYTES_MAX}
SECURED_SAVE_BYTES: Final = CREDIT_BYTES - 2 * SEND_BYTES_MAX
"""By TLS it is there once, and beside it what is being encrypted, and what was."""
EXCESS_MAX: Final = 1.1


class Rates(msgspec.Struct):
    """Events a second, round by round."""

    before: list[float] = []
    """Of the channel that is free, while nobody is stopped."""
    free: list[float] = []
    """Of the same, while the slow sink is stopped."""
    afflicted: list[float] = []
    """Of the channel that has the slow sink, meanwhile."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of one rule."""

    rule: str
    since: int
    """Which event is the first that the slow sink should know of."""
    total: int
    rates: Rates
    growth_bytes: int
    """How much larger the source became while a sink was stopped."""
    waited: bool
    closed: bool
    delivered: Sequence[Span]
    gaps: Sequence[Span]
    keen: Mapping[str, Sequence[Span]]
    totals: Mapping[str, int]
    secured: bool = False

    @property
    def limit_bytes(self) -> int:
        """How much larger the source may become."""
        return LIMIT_BYTES[self.rule] - (SECURED_SAVE_BYTES if self.secured else 0)


def run(size: int, seed: int, tell: Tell) -> Findings:  # noqa: ARG001 - nothing is left to chance
    """Submit `size` events under each rule, half of them among hubs with certificates and rights."""
    problems: list[str] = []
    figures: dict[str, Figure] = {"events_for_each_rule": size, "secured_events_for_each_rule": size // 2}
    for number, rule in enumerate(RULES, 1):
        for secured, part in ((False, size - size // 2), (True, size // 2)):
            outcome = endure(rule, part, secured=secured)
            for _ in range(ATTEMPTS_MAX - 1):
                if any(RATE in problem for problem in judge(outcome)):  # the machine may have done something else
                    outcome = endure(rule, part, secured=secured)
            problems += judge(outcome)
            figures |= figures_of(outcome)
        tell(size * number // len(RULES))
    return Findings(tuple(problems), figures)


def endure(rule: str, size: int, *, secured: bool = False) -> Outcome:
    """Stop a sink with a rule in every round, and return what came of it."""
    with tempfile.TemporaryDirectory(prefix="echoic-slow-") as folder, workers() as start:
        charter = Charter.draw_up(Path(folder) / "charter", GRANTS) if secured else None
        keen_file, slow_file = f"{folder}/keen", f"{folder}/slow"
        source = start(FEED, environment_of(charter, "source"), tallies=keen_file)
        ids = {AFFLICTED: source.started[AFFLICTED], FREE: source.started[FREE]}
        keen = start(COUNT, environment_of(charter, "keen"), tallies=keen_file, channels=ids, slow="block")
        keen.ask()
        warm_up(source, keen)
        afflicted = ids[AFFLICTED]
        if rule == "spill":
            journal = str(Path(folder) / "journal")
            start(KEEP, environment_of(charter, "recorder"), channel=afflicted, folder=journal).ask()
        channels = {AFFLICTED: afflicted}
        slow = start(COUNT, environment_of(charter, "slow"), tallies=slow_file, channels=channels, slow=rule)
        slow.ask()
        siege = Siege(rule, source, slow, secured=secured)
        for _ in range(max(ROUNDS_MIN, size // ROUND_EVENTS)):
            siege.go_round()
        return siege.end(keen)


def warm_up(source: Worker, keen: Worker) -> None:
    """Let the source have under way to the keen sink what it may ever have, so that this is not seen as growth."""
    with stopped(keen):
        for channel in (AFFLICTED, FREE):
            source.ask("pour_aside", channel=channel, count=FILL_EVENTS)
    for channel in (AFFLICTED, FREE):
        source.ask("join", channel=channel)
        source.ask("measure", channel=channel, count=FILL_EVENTS)


@contextmanager
def stopped(worker: Worker) -> Iterator[None]:
    """Let a process stand still meanwhile."""
    worker.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        worker.signal(signal.SIGCONT)


class Siege:
    """Rounds in which a sink is stopped and goes on."""

    def __init__(self, rule: str, source: Worker, slow: Worker, *, secured: bool) -> None:
        self._rule, self._source, self._slow, self._secured = rule, source, slow, secured
        self._rates = Rates()
        self._waited = True
        self._since = int(source.ask(channel=AFFLICTED)["submitted"])
        self._before = signs_of(source.pid).resident_bytes
        self._growth = 0

    def go_round(self) -> None:
        """Stop the sink, see what others have of it, and let it go on."""
        rates = self._rates
        for _ in range(PAIRS):
            rates.before.append(self._measure(FREE))
            if self._rule == "spill":  # the recorder works, whoever is stopped
                self._measure(AFFLICTED)
        with stopped(self._slow):
            if self._rule == "block":
                self._waited &= self._source.ask("pour_aside", channel=AFFLICTED, count=ROUND_EVENTS)["waits"]
            else:
                self._measure(AFFLICTED, FILL_EVENTS)
            for _ in range(PAIRS):
                rates.free.append(self._measure(FREE))
                if self._rule != "block":
                    rates.afflicted.append(self._measure(AFFLICTED))
            self._growth = max(self._growth, signs_of(self._source.pid).resident_bytes - self._before)
        self._source.ask("join", channel=AFFLICTED)
        self._catch_up()

    def end(self, keen: Worker) -> Outcome:
        """Return what has come of it."""
        totals = {channel: self._source.ask(channel=channel)["submitted"] for channel in (AFFLICTED, FREE)}
        with suppress(LocalError):  # what it lacks is seen in its accounts
            wait_until(lambda: keen.ask()["counts"] == totals, "the keen sink has everything", SETTLE_SECONDS)
        told, others = self._slow.ask(), keen.ask()
        return Outcome(
            self._rule, self._since, totals[AFFLICTED], self._rates, self._growth, self._waited, told["closed"],
            told["spans"][AFFLICTED], told["gaps"], others["spans"], totals, self._secured,
        )  # fmt: skip

    def _measure(self, channel: str, count: int = SLICE_EVENTS) -> float:
        return float(self._source.ask("measure", channel=channel, count=count // BATCH * BATCH)["rate"])

    def _catch_up(self) -> None:
        """Wait until the slow sink has got everything, or was told that it will not."""
        total = self._source.ask(channel=AFFLICTED)["submitted"]

        def settled() -> bool:
            told = self._slow.ask()
            missing = sum(last - first + 1 for first, last in told["gaps"])
            return bool(told["closed"]) or self._since + told["counts"][AFFLICTED] + missing >= total

        wait_until(settled, f"a sink with the rule {self._rule} knows what became of {total} events")


def judge(outcome: Outcome) -> list[str]:
    """Return what is wrong."""
    rule, rates = outcome.rule, outcome.rates
    with_rule = f"with {rule}, secured" if outcome.secured else f"with {rule}"
    problems = kept_up(f"another channel beside a sink {with_rule}", kept_share(rates.free, rates.before), KEPT_MIN)
    if rates.afflicted and rule != "spill":  # where the recorder is what costs
        share = kept_share(rates.afflicted, rates.free)
        problems += kept_up(f"a sink beside one {with_rule}", share, KEPT_MIN)
    if outcome.growth_bytes > EXCESS_MAX * outcome.limit_bytes:
        problems.append(
            f"the source has grown by {outcome.growth_bytes} bytes for a sink {with_rule}, "
            f"limit is {outcome.limit_bytes} and {EXCESS_MAX - 1:.0%}"
        )
    if rule == "block" and not outcome.waited:
        problems.append("a source did not wait for a sink that wants every event")
    for channel, spans in outcome.keen.items():
        problems += check_accounts(f"the keen sink of {channel}", outcome.totals[channel], spans)
    if rule == "disconnect":
        problems += [] if outcome.closed else ["a sink with disconnect was not cut off"]
        end = outcome.delivered[-1][1] + 1 if outcome.delivered else outcome.since
        return problems + check_accounts(f"the sink {with_rule}", end, outcome.delivered, since=outcome.since)
    if rule in ("block", "spill") and outcome.gaps:
        problems.append(f"a sink {with_rule} was told of gaps: {outcome.gaps[:3]}")
    accounts = check_accounts(
        f"the sink {with_rule}", outcome.total, outcome.delivered, outcome.gaps, since=outcome.since
    )
    return problems + accounts


def figures_of(outcome: Outcome) -> dict[str, Figure]:
    """Return what was measured."""
    rates, name = outcome.rates, f"secured_{outcome.rule}" if outcome.secured else outcome.rule
    missing = sum(last - first + 1 for first, last in outcome.gaps)
    found: dict[str, Figure] = {
        f"{name}_growth_mb": round(outcome.growth_bytes / MEGABYTE, 1),
        f"{name}_other_channel_kept": round(kept_share(rates.free, rates.before), 2),
        f"{name}_told_as_missing": missing,
    }
    if rates.afflicted and outcome.rule != "spill":
        found[f"{name}_same_channel_kept"] = round(kept_share(rates.afflicted, rates.free), 2)
    return found
