"""The processes of the steady trial: a source, sinks of all rules, who derives, who records, and groups of three.

Each process does all of it twice, in a plain hub and in a secured one, which has the certificate and the rights of the
process's role: so what either kind takes shows in the same process, and all together are as many events as they were.
"""

import contextlib
import logging
import threading
import time
from collections import deque
from functools import partial
from typing import Final

from echoic.channels import Gap
from echoic.errors import DeniedError, EchoicError
from echoic.formats import event, int64
from echoic.hub import Channel, Hub, Stamp
from echoic.hub.group import Group
from echoic.hub.recording import Recording
from echoic.testing.charter import PLAIN, Grants, Party, party_of_environment
from echoic.testing.trials.accounts import Ledger
from echoic.testing.trials.workers import Answer, Conversation

__all__ = ["DERIVE", "GRANTS", "GROUP", "PARTS", "RECORD", "SINKS", "SOURCE"]

SOURCE, SINKS, DERIVE, RECORD, GROUP = (
    f"{__name__}:{name}" for name in ("publish", "watch", "derive_by_turns", "record", "agree")
)
PARTS: Final = ("plain", "secured")
GRANTS: Final[Grants] = {
    "source": ["publish,admin load", "publish,admin pings"],
    "sinks": ["subscribe load", "subscribe pings"],
    "deriver": ["subscribe,derive load"],
    "recorder": ["subscribe load"],
    "group": ["publish,subscribe steady"],
}
BEAT_SECONDS: Final = 0.05
BEAT_EVENTS: Final = 5  # of each part
GROUP_BEAT_SECONDS: Final = 0.1
PING_TIMEOUT: Final = 30.0
RETRY_SECONDS: Final = 0.1
KEPT_ROUND_TRIPS: Final = 100_000
RULES: Final = ("block", "drop_oldest", "latest")
KEPT_BYTES: Final = 64 * 1024  # so that what is kept for members that were away is soon as much as it will be
MEMBERS: Final = ("a", "b", "c")
FILLER: Final = "agreed " * 300


@event
class Load:
    """What the source says."""

    number: int64
    text: str


@event
class Ping:
    """What is answered."""

    number: int64


def parties() -> dict[str, Party]:
    """Return what the hubs of a process are started with."""
    return {"plain": PLAIN, "secured": party_of_environment()}


class Feeding:
    """A source with a modest rate, which measures round trips."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.load, self.pings = hub.create("load", Load), hub.create("pings", Ping)
        self._stopped = threading.Event()
        self._counts = {"submitted": 0, "failed": 0}
        self._round_trips: deque[float] = deque(maxlen=KEPT_ROUND_TRIPS)
        self._thread = threading.Thread(target=self._run)

    def begin(self) -> None:
        """Begin to submit."""
        self._thread.start()

    def halt(self) -> Answer:
        """Submit no more, and return what came of it."""
        self._stopped.set()
        self._thread.join()
        return {**self._counts, "round_trips": list(self._round_trips)}

    def _run(self) -> None:
        counts = self._counts
        with self.load.source(name="steady") as source, self.pings.source() as asking:
            while not self._stopped.wait(BEAT_SECONDS):
                for _ in range(BEAT_EVENTS):
                    source.submit(Load(counts["submitted"], "steady " * 12))
                    counts["submitted"] += 1
                began = time.perf_counter()
                try:
                    asking.submit_sync(Ping(counts["submitted"]), timeout=PING_TIMEOUT)
                    self._round_trips.append(time.perf_counter() - began)
                except EchoicError:  # the link was reset meanwhile
                    counts["failed"] += 1


def publish(conversation: Conversation) -> None:
    """Be the source of both parts; this runs in a worker."""
    listen, advertise = conversation.options["listen"], conversation.options["advertise"]
    with contextlib.ExitStack() as stack:
        feedings = {
            part: Feeding(stack.enter_context(Hub(listen, advertise=advertise, **party)))
            for part, party in parties().items()
        }
        conversation.say(
            **{
                part: {"address": each.hub.address, "load": each.load.id, "pings": each.pings.id}
                for part, each in feedings.items()
            }
        )
        for question in conversation.questions():
            told: Answer = {}
            for part, each in feedings.items():
                if question["do"] == "begin":
                    each.begin()
                elif question["do"] == "halt":
                    told[part] = each.halt()
            conversation.say(**told)


def watch(conversation: Conversation) -> None:
    """Be sinks of all rules, each of which keeps its accounts; this runs in a worker."""
    ledgers: dict[str, dict[str, Ledger]] = {part: {rule: Ledger() for rule in RULES} for part in PARTS}
    with contextlib.ExitStack() as stack:
        for part, party in parties().items():
            hub, channels = stack.enter_context(Hub(**party)), conversation.options[part]
            pings = hub.open(channels["pings"], Ping)
            pings.subscribe(lambda _: None)
            for rule in RULES:
                load = hub.open(channels["load"], Load)

                def handle(each: Load, ledger: Ledger = ledgers[part][rule]) -> None:
                    ledger.got(each.number)

                def note(gap: Gap, ledger: Ledger = ledgers[part][rule]) -> None:
                    ledger.missed(gap.first, gap.last)

                load.subscribe(handle, slow=rule, on_gap=note, thread=True)
        conversation.say(ready=True)
        for _ in conversation.questions():
            conversation.say(**{part: _accounts(each) for part, each in ledgers.items()})


def _accounts(ledgers: dict[str, Ledger]) -> Answer:
    return {
        "settled": {rule: ledger.settled for rule, ledger in ledgers.items()},
        "missing": {rule: ledger.missing for rule, ledger in ledgers.items()},
        "problems": [f"{rule}: {each}" for rule, ledger in ledgers.items() for each in ledger.problems],
    }


def derive_by_turns(conversation: Conversation) -> None:
    """Derive, listen for a while, and leave, again and again; this runs in a worker and may be killed at any time."""
    logging.disable(logging.CRITICAL)
    turns = 0
    stopped = threading.Event()

    def run(loads: list[Channel]) -> None:
        nonlocal turns
        while not stopped.wait(RETRY_SECONDS):
            heard = threading.Event()
            with contextlib.suppress(EchoicError):  # the link was reset meanwhile
                code = f"return input.number % {2 + turns % 7} == 0;"
                derived = loads[turns % len(loads)].derive(code, share=bool(turns // len(loads) % 2))
                sink = derived.subscribe(partial(_note, heard))
                heard.wait(1.0)
                sink.close()
                turns += 1

    with contextlib.ExitStack() as stack:
        hubs = {part: stack.enter_context(Hub(**party)) for part, party in parties().items()}
        loads = [hub.open(conversation.options[part]["load"], Load) for part, hub in hubs.items()]
        turning = threading.Thread(target=run, args=(loads,))
        turning.start()
        conversation.say(ready=True)
        for _ in conversation.questions():
            conversation.say(turns=turns)
        stopped.set()
        turning.join()


def _note(heard: threading.Event, _: object) -> None:
    heard.set()


def _record(hub: Hub, load: Channel, folder: str) -> Recording:
    """Record a channel, as soon as it is missed that whoever did so before was killed."""
    while True:
        try:
            return hub.record(load, folder)
        except DeniedError:
            raise  # which no patience changes
        except EchoicError:
            time.sleep(RETRY_SECONDS)


def record(conversation: Conversation) -> None:
    """Record the load and be a durable sink of it; this runs in a worker and may be killed at any time."""
    logging.disable(logging.CRITICAL)
    options, seen = conversation.options, dict.fromkeys(PARTS, -1)
    recordings: dict[str, Recording] = {}
    with contextlib.ExitStack() as stack:
        for part, party in parties().items():
            hub = stack.enter_context(Hub(**party))
            load = hub.open(options[part]["load"], Load)
            recordings[part] = _record(hub, load, f"{options['folder']}-{part}")

            def handle(each: Load, _: Stamp, part: str = part) -> None:
                seen[part] = each.number

            stack.enter_context(load.resume(handle, name="reader"))
        conversation.say(ready=True)
        for _ in conversation.questions():
            conversation.say(
                **{part: {"recorded": sum(each.heads), "last": seen[part]} for part, each in recordings.items()}
            )


def _count(order: list[int], each: object, _: object) -> None:
    """Note one more event, and which one it was."""
    if isinstance(each, Load):
        order[0] += 1
        order[1] = (order[1] * 31 + each.number) % 2**61


def agree(conversation: Conversation) -> None:
    """Be a group of three members for each part, each with a hub of its own; this runs in a worker."""
    stopped = threading.Event()
    orders: dict[str, dict[str, list[int]]] = {part: {me: [0, 0] for me in MEMBERS} for part in PARTS}
    with contextlib.ExitStack() as stack:
        groups = [
            group for part, party in parties().items() for group in _join_all(stack, party, orders[part])
        ]

        def run() -> None:
            number = 0
            while not stopped.wait(GROUP_BEAT_SECONDS):
                for group in groups:
                    number += 1
                    group.submit(Load(number, FILLER))

        submitting = threading.Thread(target=run)
        submitting.start()
        conversation.say(ready=True)
        for question in conversation.questions():
            if question["do"] == "halt":
                stopped.set()
                submitting.join()
                for group in groups:
                    group.drain()
            conversation.say(orders=orders)
        stopped.set()


def _join_all(stack: contextlib.ExitStack, party: Party, orders: dict[str, list[int]]) -> list[Group]:
    """Let all members of a group join it."""
    hubs = {me: stack.enter_context(Hub(**party)) for me in MEMBERS}
    peers = {me: hub.address for me, hub in hubs.items()}
    groups = {
        me: stack.enter_context(hub.join("steady", Load, me=me, peers=peers, kept_bytes=KEPT_BYTES))
        for me, hub in hubs.items()
    }
    for me, group in groups.items():
        group.subscribe(partial(_count, orders[me]))
    return list(groups.values())
