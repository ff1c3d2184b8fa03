"""The processes of the steady trial: a source, sinks of all rules, who derives, who records, and a group of three.

Each has the certificate and the rights of its role, if the environment says so.
"""

import contextlib
import logging
import threading
import time
from collections import deque
from functools import partial
from typing import Final

from echoic.channels import Gap
from echoic.errors import DeniedError, EchoicError, LocalError
from echoic.formats import event, int64
from echoic.hub import Channel, Hub, Stamp
from echoic.hub.recording import Recording
from echoic.hub.switchboard import GIVEN_UP
from echoic.testing.charter import Grants, party_of_environment
from echoic.testing.trials.accounts import Ledger
from echoic.testing.trials.workers import Conversation, wait_until

__all__ = ["DERIVE", "GRANTS", "GROUP", "RECORD", "SINKS", "SOURCE"]

SOURCE, SINKS, DERIVE, RECORD, GROUP = (
    f"{__name__}:{name}" for name in ("publish", "watch", "derive_by_turns", "record", "agree")
)
GRANTS: Final[Grants] = {
    "source": ["publish,admin load", "publish,admin pings"],
    "sinks": ["subscribe load", "subscribe pings"],
    "deriver": ["subscribe,derive load"],
    "recorder": ["subscribe load"],
    "group": ["publish,subscribe steady"],
}
BEAT_SECONDS: Final = 0.1
BEAT_EVENTS: Final = 10
GROUP_BEAT_SECONDS: Final = 0.05
PING_TIMEOUT: Final = 30.0
RETRY_SECONDS: Final = 0.1
KEPT_ROUND_TRIPS: Final = 100_000
KEPT_PARTINGS: Final = 20
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


class Partings(logging.Handler):
    """What a hub warns of, and the links that it has given up: that may be why a sink lacks something."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.told: Final[deque[str]] = deque(maxlen=KEPT_PARTINGS)
        self._began = time.monotonic()
        hub = logging.getLogger("echoic.hub")
        hub.setLevel(logging.INFO)
        hub.addHandler(self)
        aloud = logging.StreamHandler()  # as there would be one if nobody handled anything
        aloud.setLevel(logging.WARNING)
        hub.addHandler(aloud)

    def emit(self, record: logging.LogRecord) -> None:
        """Note it, with the second."""
        if record.levelno >= logging.WARNING or record.msg == GIVEN_UP:
            self.told.append(f"{time.monotonic() - self._began:.0f} s: {record.getMessage()}")


def publish(conversation: Conversation) -> None:
    """Be a source with a modest rate, and measure round trips; this runs in a worker."""
    options = conversation.options
    stopped = threading.Event()
    counts = {"submitted": 0, "failed": 0}
    round_trips: deque[float] = deque(maxlen=KEPT_ROUND_TRIPS)
    with Hub(options["listen"], advertise=options["advertise"], **party_of_environment()) as hub:
        load, pings = hub.create("load", Load), hub.create("pings", Ping)

        def run() -> None:
            with load.source(name="steady") as source, pings.source() as asking:
                while not stopped.wait(BEAT_SECONDS):
                    for _ in range(BEAT_EVENTS):
                        source.submit(Load(counts["submitted"], "steady " * 12))
                        counts["submitted"] += 1
                    began = time.perf_counter()
                    try:
                        asking.submit_sync(Ping(counts["submitted"]), timeout=PING_TIMEOUT)
                        round_trips.append(time.perf_counter() - began)
                    except EchoicError:  # the link was reset meanwhile
                        counts["failed"] += 1

        publishing = threading.Thread(target=run)
        conversation.say(address=hub.address, load=load.id, pings=pings.id)
        for question in conversation.questions():
            if question["do"] == "begin":
                publishing.start()
            elif question["do"] == "halt":
                stopped.set()
                publishing.join()
            conversation.say(**counts, round_trips=list(round_trips) if question["do"] == "halt" else [])


def watch(conversation: Conversation) -> None:
    """Be sinks of all rules, each of which keeps its accounts; this runs in a worker."""
    ledgers, partings = {rule: Ledger() for rule in RULES}, Partings()
    with Hub(**party_of_environment()) as hub:
        pings = hub.open(conversation.options["pings"], Ping)
        pings.subscribe(lambda _: None)
        for rule in RULES:
            load = hub.open(conversation.options["load"], Load)

            def handle(each: Load, rule: str = rule) -> None:
                ledgers[rule].got(each.number)

            def note(gap: Gap, rule: str = rule) -> None:
                ledgers[rule].missed(gap.first, gap.last)

            load.subscribe(handle, slow=rule, on_gap=note, thread=True)
        conversation.say(ready=True)
        for _ in conversation.questions():
            conversation.say(
                settled={rule: ledger.settled for rule, ledger in ledgers.items()},
                missing={rule: ledger.missing for rule, ledger in ledgers.items()},
                problems=[f"{rule}: {each}" for rule, ledger in ledgers.items() for each in ledger.problems],
                partings=list(partings.told),
            )


def derive_by_turns(conversation: Conversation) -> None:
    """Derive, listen for a while, and leave, again and again; this runs in a worker and may be killed at any time."""
    logging.disable(logging.CRITICAL)
    turns = 0
    stopped = threading.Event()

    def run(load: Channel) -> None:
        nonlocal turns
        while not stopped.wait(RETRY_SECONDS):
            heard = threading.Event()
            with contextlib.suppress(EchoicError):  # the link was reset meanwhile
                derived = load.derive(f"return input.number % {2 + turns % 7} == 0;", share=bool(turns % 2))
                sink = derived.subscribe(partial(_note, heard))
                heard.wait(1.0)
                sink.close()
                turns += 1

    with Hub(**party_of_environment()) as hub:
        turning = threading.Thread(target=run, args=(hub.open(conversation.options["load"], Load),))
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
    options, seen = conversation.options, [-1]
    with Hub(**party_of_environment()) as hub:
        load = hub.open(options["load"], Load)
        recording = _record(hub, load, options["folder"])

        def handle(each: Load, _: Stamp) -> None:
            seen[0] = each.number

        with load.resume(handle, name="reader"):
            conversation.say(ready=True)
            for _ in conversation.questions():
                conversation.say(recorded=sum(recording.heads), last=seen[0])


def _count(order: list[int], each: object, _: object) -> None:
    """Note one more event, and which one it was."""
    if isinstance(each, Load):
        order[0] += 1
        order[1] = (order[1] * 31 + each.number) % 2**61


def agree(conversation: Conversation) -> None:
    """Be three members of a group, each with a hub of its own; this runs in a worker."""
    stopped = threading.Event()
    orders: dict[str, list[int]] = {me: [0, 0] for me in MEMBERS}
    with contextlib.ExitStack() as stack:
        hubs = {me: stack.enter_context(Hub(**party_of_environment())) for me in MEMBERS}
        peers = {me: hub.address for me, hub in hubs.items()}
        groups = {
            me: stack.enter_context(hub.join("steady", Load, me=me, peers=peers, kept_bytes=KEPT_BYTES))
            for me, hub in hubs.items()
        }
        for me, group in groups.items():
            group.subscribe(partial(_count, orders[me]))

        def run() -> None:
            number = 0
            while not stopped.wait(GROUP_BEAT_SECONDS):
                for group in groups.values():
                    number += 1
                    group.submit(Load(number, FILLER))

        submitting = threading.Thread(target=run)
        submitting.start()
        conversation.say(ready=True)
        for question in conversation.questions():
            if question["do"] == "halt":
                stopped.set()
                submitting.join()
                for group in groups.values():
                    group.drain()  # which is about what each has submitted: others may be given the last a moment later
                with contextlib.suppress(LocalError):  # the trial sees who was not given all
                    wait_until(lambda: len({count for count, _ in orders.values()}) == 1, "all are given all", 60)
            conversation.say(orders=orders)
        stopped.set()
