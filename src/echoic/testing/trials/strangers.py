"""Strangers who attack before anybody has said who he is, and honest peers who hardly notice.

An honest hub exchanges synchronous events with the one that is attacked, by turns while it is left alone and while it
is not; in each turn a newcomer must be let in too. First a hub without TLS, then one with, which goes by rights too:
the honest hub may publish what it does, and a newcomer is shown that channel. At last the page by TLS is attacked too
(`strangers_page`). What the strangers do is in `onslaught`;
they come `RATE` times a second, beside those who greet slowly. A hub has room for 64 of them at a time,
and believes each of a megabyte at most: that is the budget of its memory.
"""

import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from echoic.errors import LocalError
from echoic.formats import event, int64
from echoic.hub import Hub
from echoic.links import Identity
from echoic.testing.charter import Charter, Grants, environment_of, party_of_environment
from echoic.testing.trials.callers import Caller
from echoic.testing.trials.connections import returned
from echoic.testing.trials.onslaught import ASSAIL
from echoic.testing.trials.rates import kept_share, kept_up
from echoic.testing.trials.strangers_page import ROLE, besiege_page, judge_page, page_figures
from echoic.testing.trials.trial import BY_THE_CLOCK, Figure, Findings, Tell
from echoic.testing.trials.vital_signs import MEGABYTE, VitalSigns, signs_of
from echoic.testing.trials.workers import Conversation, Worker, wait_until, workers

__all__ = ["GROWTH_BYTES_MAX", "KEPT_MIN", "Siege", "judge", "run"]

TARGET: Final = f"{__name__}:be_attacked"
HONEST: Final = f"{__name__}:be_honest"
CHANNEL: Final = "pings"
GRANTS: Final[Grants] = {"target": [f"admin,subscribe {CHANNEL}"], "honest": [f"publish {CHANNEL}"], ROLE: ()}
PAGE_ROUNDS_MIN: Final = 3
RATE: Final = 60.0
KEPT_MIN: Final = 0.8
TURN_SECONDS: Final = 1.5
GROWTH_BYTES_MAX: Final = 80 * MEGABYTE
NEWCOMER_SECONDS_MAX: Final = 5.0
RETURN_SECONDS_MAX: Final = 20.0


@event
class Ping:
    """What an honest hub says."""

    number: int64


class Siege(msgspec.Struct, frozen=True):
    """What came of the strangers at one hub."""

    kind: str
    calm: list[float]
    """Round trips a second of the honest hub, turn by turn, while nobody attacks."""
    attacked: list[float]
    newcomer_seconds: list[float]
    """How long newcomers took to be answered during the attack; infinite if they were not."""
    strangers: int
    before: VitalSigns
    peak_bytes: int
    after: VitalSigns


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Attack for about `size` seconds, half of them a hub with TLS."""
    turns = max(1, round(size / 4 / TURN_SECONDS))
    problems: list[str] = []
    figures: dict[str, Figure] = {}
    with tempfile.TemporaryDirectory(prefix="echoic-strangers-") as folder:
        for number, charter in enumerate((None, Charter.draw_up(Path(folder) / "charter", GRANTS)), 1):
            siege = besiege(charter, turns, seed)
            found = judge(siege)
            if found:  # the machine may have done something else for a moment
                siege = besiege(charter, turns, seed + 1)
                found = judge(siege)
            problems += found
            figures |= figures_of(siege)
            tell(size * number // 2)
        page = besiege_page(Charter(Path(folder) / "charter"), max(PAGE_ROUNDS_MIN, turns), seed)
        problems += judge_page(page)
        figures |= page_figures(page)
    return Findings(tuple(problems), figures)


def besiege(charter: Charter | None, turns: int, seed: int) -> Siege:
    """Attack a hub by turns."""
    tcp = {"ECHOIC_LINKS": "tcp"}
    with workers() as start:
        target = start(TARGET, tcp | environment_of(charter, "target"))
        address, channel = target.started["address"], target.started["channel"]
        honest = start(HONEST, tcp | environment_of(charter, "honest"), channel=channel, address=address)
        strangers = start(ASSAIL, address=address, seed=seed, rate=RATE)
        for _ in range(2):
            exchange(honest)
        before, peak, made = signs_of(target.pid), 0, 0
        calm, attacked, newcomers = list[float](), list[float](), list[float]()
        for _ in range(turns):
            calm.append(exchange(honest))
            strangers.ask("begin")
            time.sleep(TURN_SECONDS / 10)
            attacked.append(exchange(honest))
            newcomers.append(honest.ask("arrive")["seconds"])
            peak = max(peak, signs_of(target.pid).resident_bytes)
            made = strangers.ask("rest")["made"]
        with suppress(LocalError):  # what has not returned is seen below
            wait_until(lambda: returned(before, signs_of(target.pid)), "all is as before", RETURN_SECONDS_MAX)
        kind = "plain" if charter is None else "tls"
        return Siege(kind, calm, attacked, newcomers, made, before, peak, signs_of(target.pid))


def exchange(honest: Worker) -> float:
    """Return how many round trips a second the honest hub manages."""
    return float(honest.ask("exchange", seconds=TURN_SECONDS)["rate"])


def be_attacked(conversation: Conversation) -> None:
    """Be the hub that is attacked; this runs in a worker."""
    with Hub("127.0.0.1:0", **party_of_environment()) as hub:
        channel = hub.create(CHANNEL, Ping)
        channel.subscribe(lambda _: None)
        conversation.say(address=hub.address, channel=channel.id)
        for _ in conversation.questions():
            conversation.say(ok=True)


def be_honest(conversation: Conversation) -> None:
    """Be an honest hub; this runs in a worker."""
    options, party = conversation.options, party_of_environment()
    with Hub("127.0.0.1:0", **party) as hub, hub.open(options["channel"], Ping).source() as source:
        conversation.say(ready=True)
        for question in conversation.questions():
            began, count = time.perf_counter(), 0
            if question["do"] == "arrive":
                conversation.say(seconds=arrive(options["address"], party["identity"]))
                continue
            while time.perf_counter() - began < question["seconds"]:
                source.submit_sync(Ping(count))
                count += 1
            conversation.say(rate=count / (time.perf_counter() - began))


def arrive(address: str, identity: Identity | None) -> float:
    """Return how long a newcomer takes to be answered, trying again if he is sent away; much if he is not."""
    began = time.perf_counter()
    while (passed := time.perf_counter() - began) < 2 * NEWCOMER_SECONDS_MAX:
        try:
            caller = Caller(address, identity)
            answered = caller.ask()
            caller.leave()
        except (OSError, LocalError, ConnectionError):
            continue
        if answered:
            return time.perf_counter() - began
    return passed


def judge(siege: Siege) -> list[str]:
    """Return what is wrong."""
    kind = siege.kind
    problems = kept_up(f"an honest peer of a {kind} hub", kept_share(siege.attacked, siege.calm), KEPT_MIN)
    slowest = max(siege.newcomer_seconds)
    if slowest > NEWCOMER_SECONDS_MAX:
        problems.append(
            f"a newcomer to a {kind} hub waited {slowest:.1f} s for an answer, limit is {NEWCOMER_SECONDS_MAX:g}"
            f"{BY_THE_CLOCK}"
        )
    growth = siege.peak_bytes - siege.before.resident_bytes
    if growth > GROWTH_BYTES_MAX:
        problems.append(f"strangers made a {kind} hub grow by {growth} bytes, limit is {GROWTH_BYTES_MAX}")
    if not returned(siege.before, siege.after):
        problems.append(f"strangers left something at a {kind} hub: {siege.before} before, {siege.after} after")
    return problems


def figures_of(siege: Siege) -> dict[str, Figure]:
    """Return what was measured."""
    return {
        f"{siege.kind}_kept": round(kept_share(siege.attacked, siege.calm), 2),
        f"{siege.kind}_strangers": siege.strangers,
        f"{siege.kind}_newcomer_seconds_max": round(max(siege.newcomer_seconds), 2),
        f"{siege.kind}_growth_mb": round((siege.peak_bytes - siege.before.resident_bytes) / MEGABYTE, 1),
    }
