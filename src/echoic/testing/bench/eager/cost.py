"""What does a modulator cost a source for each event, and what does it cost to let nothing pass?

This process is the source; for each case another one has subscribed, and counts. The modulator compares one field of
the event with its state, in Python or in E-Code. Where it runs is decided by who signed it.

    plain         no modulator
    E-Code        machine code in the source's process
    Python        the source trusts the key: in its process, watched for the time it takes
    sandbox       the source confines the key: another process, batches over a pipe

    one by one    `submit`, event after event, which gather to batches by themselves; until every sink has handled all
    synchronous   `submit_sync`: until the sink has handled one
    batches       `submit_batch` of 1000; until every sink has handled all

Elapsed time for one event, so that what other processes do at the same time is not counted twice.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from echoic.eager import EcodeModulator, Modulator, SigningKey
from echoic.errors import RefusedError
from echoic.testing.bench.contest import Effort, Setup
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.derive.tables import table_of
from echoic.testing.bench.eager.handlers import Tick, is_thorough, key_file, passing, tick, ticks
from echoic.testing.bench.eager.turns import Case, take_turns
from echoic.testing.bench.peers import Peer, start_peers
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Cell, Unit

if TYPE_CHECKING:
    from echoic import Hub, Source

__all__ = ["COLUMNS", "ORDER", "PLAIN", "TITLE", "measure"]

TITLE = "an event through a modulator, until it is handled"
PLAIN, ECODE, PYTHON, SANDBOX = "plain", "E-Code", "Python", "Python, sandbox"
REJECTING: Final = ", nothing passes"
ORDER: Final = (PLAIN, *(case + more for more in ("", REJECTING) for case in (ECODE, PYTHON, SANDBOX)))
LONE, SYNCHRONOUS, BATCHES = "one by one", "synchronous", "batches of 1000"
COLUMNS: Final = (LONE, SYNCHRONOUS, BATCHES)
BATCH: Final = 1000
SINK: Final = f"{__name__}:listen"
SETUP: Final = Setup("100 B")
EVENTS: Final[Mapping[str, Mapping[bool, int]]] = {
    LONE: {True: 2000, False: 20},
    SYNCHRONOUS: {True: 500, False: 5},
    BATCHES: {True: 50 * BATCH, False: BATCH},
}
DRAIN_SECONDS_MAX: Final = 60.0
SILENCE_SECONDS: Final = 0.02


def measure(effort: Effort, report: Report) -> None:
    """Measure what an event costs, and add it to the report."""
    from echoic import Hub, Policy

    effort.told("starting those who send modulators")
    keys = {PYTHON: SigningKey.generate(), SANDBOX: SigningKey.generate()}
    policy = Policy(trusted_keys=(keys[PYTHON].public,), sandboxed_keys=(keys[SANDBOX].public,))
    with ExitStack() as stack:
        hub = stack.enter_context(Hub(policy=policy))
        paths = {name: stack.enter_context(key_file(key)) for name, key in keys.items()}
        cases: list[Case] = []
        for case in ORDER:
            cases += _opened(hub, case, paths, stack, report, thorough=is_thorough(effort))
        order = [(case, column) for case in ORDER for column in COLUMNS]
        samples = take_turns(cases, effort, order)
    report.tables.append(table_of(TITLE, Unit.MICROSECONDS, samples, PLAIN))


def _opened(
    hub: "Hub", case: str, paths: Mapping[str, str], stack: ExitStack, report: Report, *, thorough: bool
) -> list[Case]:
    """Return the cases of one way to run a modulator, or none where nothing can be confined."""
    channel = hub.create(case.replace(" ", "-").replace(",", ""), Tick)
    source = channel.source()
    kind, passes = case.removesuffix(REJECTING), not case.endswith(REJECTING)
    argument: Argument = {"id": channel.id, "kind": kind, "passes": int(passes), "key": paths.get(kind, "")}
    (peer,) = stack.enter_context(start_peers(SINK, SETUP, [argument]))
    if refused := str(peer.address()["refused"]):
        report.remarks.append(f"not measured: {case}: {refused}")
        return []
    _verify(source, peer, passes=passes)
    event, records = tick(), ticks(BATCH)
    submits: dict[str, tuple[Callable[[], object], int]] = {
        LONE: (partial(source.submit, event), 1),
        SYNCHRONOUS: (partial(source.submit_sync, event), 1),
        BATCHES: (partial(source.submit_batch, records), BATCH),
    }
    return [
        partial(_timed, (case, column), source, submit, events, EVENTS[column][thorough] // events)
        for column, (submit, events) in submits.items()
    ]


def _verify(source: "Source", peer: Peer, *, passes: bool) -> None:
    """See to it that what is measured is what is said.

    Raises:
        RuntimeError: If events pass that should not.
        TimeoutError: If events do not pass that should.
    """
    peer.expect(BATCH if passes else 1)
    source.submit_batch(ticks(BATCH))
    source.drain(DRAIN_SECONDS_MAX)
    if passes:
        peer.wait_counted()
    elif peer.has_counted(SILENCE_SECONDS):
        raise RuntimeError("a modulator that passes nothing has passed an event")


def _timed(cell: Cell, source: "Source", submit: Callable[[], object], events: int, count: int) -> Mapping[Cell, float]:
    begun = time.perf_counter()
    for _ in range(count):
        submit()
    source.drain(DRAIN_SECONDS_MAX)
    return {cell: (time.perf_counter() - begun) / count / events}


def listen(control: Control, setup: Setup, argument: Argument) -> None:  # noqa: ARG001 - for other peers
    """Send a modulator, and count what it lets pass; this runs in the peer."""
    from echoic import Hub

    path = str(argument["key"])
    with Hub(key=SigningKey.load(path) if path else None) as hub:
        channel = hub.open(str(argument["id"]), Tick)
        modulator = _modulator(str(argument["kind"]), passes=bool(argument["passes"]))
        try:
            channel.subscribe(control.tally.event, thread=True, modulator=modulator)
        except RefusedError as error:
            control.ready(refused=str(error))
        else:
            control.ready(refused="")
        control.wait()


def _modulator(kind: str, *, passes: bool) -> Modulator | None:
    if kind == PLAIN:
        return None
    if kind == ECODE:
        return EcodeModulator("input.level >= param.limit", params={"limit": 0 if passes else 1})
    return passing(everything=passes)
