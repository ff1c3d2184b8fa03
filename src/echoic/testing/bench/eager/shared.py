"""How long does it take until a change of a shared object is where it is needed? JECho, section 5: 0.5 ms.

This process has the master copy, another one a secondary copy, as a modulator inside a source has it. Both note the
time when they are told of a change, and the copy writes back what it has noted; the monotonic clock is the same for all
processes of a machine.

    this process                        the other one
    number = 7, publish      ----->     told of it: arrived_ns
    told of it               <-----     left_ns, echo = 7, publish

    an update     from before `publish` at the master until a callback at the copy runs
    a write       from before `publish` at the copy until a callback at the master runs
    both          from before the first until the last: what compares with the round trip of an event
    pull          a copy here of an object whose master is there: one question, one answer

A callback has a thread of its own, so that one wake-up is in every number that a modulator, which just reads the copy,
does not wait for. For E-Code the object is the parameter block, and every source confirms that it has taken a change,
after which a further copy in this process is told. What a consumer waits for is more than all that: the first event
that the other view lets pass. For that a source submits an event about every 0.1 ms, and a modulator passes one
whenever the view has another number.
"""

import base64
import statistics
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.eager import SharedReference, SigningKey
from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort, Setup
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.derive.tables import table_of
from echoic.testing.bench.eager.handlers import Tick, View, followers, is_thorough, tick
from echoic.testing.bench.eager.turns import Case, calls, opened, take_turns, taking
from echoic.testing.bench.hubs import ECHOIC
from echoic.testing.bench.peers import Peer, start_peers
from echoic.testing.bench.raw import RAW_TCP, RAW_UNIX
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Cell, Unit

if TYPE_CHECKING:
    from echoic import Channel, Hub, Modulator

__all__ = ["COLUMN", "ORDER", "TITLE", "decoded", "encoded", "measure"]

TITLE = "a change of a shared object of 80 bytes"
UPDATE, BACK, BOTH, PULL, TAKEN, PYTHON, ECODE, SYNCHRONOUS = (
    "an update, until a copy is told",
    "a write at a copy, until the master is told",
    "both, there and back",
    "pull",
    "an update, until E-Code at the source has it",
    "an update, until the first event of Python",
    "an update, until the first event of E-Code",
    "submit_sync of 96 bytes",
)
TCP, UNIX = "raw tcp, there and back", "raw unix, there and back"
ORDER: Final = (UPDATE, BACK, BOTH, PULL, TAKEN, PYTHON, ECODE, SYNCHRONOUS, TCP, UNIX)
COLUMN = "latency"
ECHO, SOURCE = f"{__name__}:echo", f"{__name__}:supply"
SETUP: Final = Setup("100 B", synchronous=True)
PYTHON_NUMBER, ECODE_NUMBER = 1, 2
CHANNELS: Final = {PYTHON_NUMBER: "python", ECODE_NUMBER: "ecode"}
CHANGES: Final = {True: 300, False: 10}
FIRST_EVENTS: Final = {True: 100, False: 5}
ANSWER_SECONDS_MAX: Final = 10.0
INTERVAL_SECONDS: Final = 0.00005  # and about as much again until it has passed
IDLE_SECONDS: Final = 0.005
UPDATE_MS_MAX: Final = 0.5


def measure(effort: Effort, report: Report) -> None:
    """Measure how long changes take, and add it to the report."""
    effort.told("starting those who share objects")
    with ExitStack() as stack:
        cases = _opened(stack, thorough=is_thorough(effort))
        samples = take_turns(cases, effort, [(case, COLUMN) for case in ORDER])
    table = table_of(TITLE, Unit.MICROSECONDS, samples, SYNCHRONOUS)
    report.tables.append(table)
    for case in (UPDATE, TAKEN):
        report.claims.append(Claim(case, table.value(case, COLUMN).times(1e-3), UPDATE_MS_MAX, "ms"))
    report.remarks.append(
        f"there and back, a shared object takes {table.ratio(BOTH, COLUMN)} x submit_sync, "
        f"{table.ratio(BOTH, COLUMN, TCP)} x raw tcp, {table.ratio(BOTH, COLUMN, UNIX)} x raw unix"
    )


def _opened(stack: ExitStack, *, thorough: bool) -> list[Case]:
    from echoic import Hub

    key, view, changes = SigningKey.generate(), View(), CHANGES[thorough]
    hub = stack.enter_context(Hub(key=key))
    hub.share(view)
    (echo,) = stack.enter_context(start_peers(ECHO, SETUP, [{"view": encoded(view)}]))
    copy = hub.follow(decoded(str(echo.address()["view"])), View)
    (source,) = stack.enter_context(start_peers(SOURCE, SETUP, [{"key": key.public}]))
    channels = source.address()
    python, ecode = (First(hub, str(channels[name]), number) for number, name in CHANNELS.items())
    return [
        partial(Exchange(view).sample, changes),
        calls((PULL, COLUMN), copy.pull, changes),
        taking((TAKEN, COLUMN), ecode.take, FIRST_EVENTS[thorough]),
        partial(python.sample, PYTHON, source, FIRST_EVENTS[thorough]),
        partial(ecode.sample, ECODE, source, FIRST_EVENTS[thorough]),
        opened(ECHOIC, SETUP, (SYNCHRONOUS, COLUMN), changes, stack),
        opened(RAW_TCP, SETUP, (TCP, COLUMN), changes, stack),
        opened(RAW_UNIX, SETUP, (UNIX, COLUMN), changes, stack),
    ]


def encoded(view: View) -> str:
    """Return what another process needs to have a copy of a view."""
    return base64.b64encode(msgspec.msgpack.encode(view.reference("view"))).decode()


def decoded(text: str) -> SharedReference:
    """Return what `encoded` has told."""
    return msgspec.msgpack.decode(base64.b64decode(text), type=SharedReference)


class Exchange:
    """Changes of a view, each answered by whoever has a copy of it."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._answered = threading.Event()
        self._told_ns = 0
        view.on_change(self._told)

    def sample(self, count: int) -> Mapping[Cell, float]:
        """Return how long an update took, the write that answers it, and both."""
        there, back, both = zip(*(self._change() for _ in range(count)), strict=True)
        taken = {UPDATE: there, BACK: back, BOTH: both}
        return {(case, COLUMN): statistics.median(times) / 1e9 for case, times in taken.items()}

    def _change(self) -> tuple[int, int, int]:
        view = self._view
        self._answered.clear()
        view.number += 1
        begun_ns = time.monotonic_ns()
        view.publish()
        _await(self._answered)
        return view.arrived_ns - begun_ns, self._told_ns - view.left_ns, self._told_ns - begun_ns

    def _told(self, view: View) -> None:
        told_ns = time.monotonic_ns()
        if view.echo == view.number and not self._answered.is_set():
            self._told_ns = told_ns
            self._answered.set()


class First:
    """Changes of a view, each of which lets one event of a source pass."""

    def __init__(self, hub: "Hub", id: str, number: int) -> None:
        self._number = number
        self._view = View()
        self._arrived = threading.Event()
        self._arrived_at = 0.0
        self._taken = threading.Event()
        self._taken_at = 0.0
        modulator: Modulator = followers(self._view)[number - PYTHON_NUMBER]
        self._handle = hub.open(id, Tick).subscribe(self._handled, modulator=modulator)
        if number == ECODE_NUMBER:
            # The copy that changes the parameters was there first, and one thread tells all copies of a hub, in turn.
            hub.follow(self._view.reference("view"), View).on_change(self._told)

    def sample(self, case: str, source: Peer, count: int) -> Mapping[Cell, float]:
        """Return how long it took until the first event, while the source submits."""
        source.expect(self._number)
        sampled = taking((case, COLUMN), self._change, count)()
        source.expect(0)
        return sampled

    def take(self) -> float:
        """Return how long it took until E-Code at the source had a change."""
        self._taken.clear()
        self._view.number += 1
        begun = time.perf_counter()
        self._view.publish()
        _await(self._taken)
        return self._taken_at - begun

    def _change(self) -> float:
        self._arrived.clear()
        self._view.number += 1
        begun = time.perf_counter()
        self._view.publish()
        _await(self._arrived)
        return self._arrived_at - begun

    def _told(self, copy: View) -> None:
        told_at = time.perf_counter()
        if copy.number == self._view.number and self._handle.channel.params.values == copy.snapshot():
            self._taken_at = told_at
            self._taken.set()

    def _handled(self, event: object) -> None:  # noqa: ARG002 - it says nothing but that it came
        self._arrived_at = time.perf_counter()
        self._arrived.set()


def _await(answered: threading.Event) -> None:
    if not answered.wait(ANSWER_SECONDS_MAX):
        raise TimeoutError(f"a shared object was not answered in {ANSWER_SECONDS_MAX} seconds")


def echo(control: Control, setup: Setup, argument: Argument) -> None:  # noqa: ARG001 - for other peers
    """Answer every change of a view, and have one of its own to be pulled; this runs in the peer."""
    from echoic import Hub

    with Hub() as hub:
        copy, own = hub.follow(decoded(str(argument["view"])), View), View()
        hub.share(own)
        copy.on_change(_answer)
        control.ready(view=encoded(own))
        control.wait()


def _answer(copy: View) -> None:
    arrived_ns = time.monotonic_ns()
    if copy.echo != copy.number:
        copy.arrived_ns, copy.echo = arrived_ns, copy.number
        copy.left_ns = time.monotonic_ns()
        copy.publish()


def supply(control: Control, setup: Setup, argument: Argument) -> None:  # noqa: ARG001 - for other peers
    """Submit events to the channel whose number is expected; this runs in the peer."""
    from echoic import Hub, Policy

    with Hub(policy=Policy(trusted_keys=(str(argument["key"]),))) as hub, ExitStack() as stack:
        channels = {name: hub.create(name, Tick) for name in CHANNELS.values()}
        ended = threading.Event()
        stack.callback(ended.set)
        threading.Thread(target=_submit, args=(channels, control, ended), daemon=True).start()
        control.ready(**{name: channel.id for name, channel in channels.items()})
        control.wait()


def _submit(channels: "Mapping[str, Channel]", control: Control, ended: threading.Event) -> None:
    sources = {number: channels[name].source() for number, name in CHANNELS.items()}
    event = tick()
    while not ended.is_set():
        source = sources.get(control.tally.left)
        if source is not None:
            source.submit(event)
        time.sleep(INTERVAL_SECONDS if source is not None else IDLE_SECONDS)
