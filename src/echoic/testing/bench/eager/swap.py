"""How long does it take to put another pair in the place of one at work? JECho, section 5: 1.23 ms.

The paper says that this is "just slightly higher than the cost of synchronously sending an event of the same size".

The state of the modulator is 100 integers of 4 bytes. A swap is one `reset` that waits: the pair is packed, signed,
sent, checked, made there, and every source has turned from one to the other; the former is gone. What it is measured
beside is `submit_sync` of an event with 100 integers to another process, and what the kernel takes for as many bytes.

    code known             another state, of a class that the source has run before; as in the paper
    code unseen            a class that nobody has sent before: its text is compiled at the source, too
    source in this process a hub that is the sink's as well: nothing crosses to another process
    E-Code                 another parameter block for known code, or code that is compiled first
    sandbox                the source confines it: a process is started for every swap
"""

from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING, Final

from echoic.eager import EcodeModulator, Modulator, SigningKey
from echoic.errors import RefusedError
from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort, Setup
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.derive.tables import table_of
from echoic.testing.bench.eager.handlers import INTEGERS, Tick, begin_edition, ecode_table, is_thorough, table_class
from echoic.testing.bench.eager.turns import Case, calls, opened, take_turns
from echoic.testing.bench.hubs import ECHOIC
from echoic.testing.bench.peers import start_peers
from echoic.testing.bench.raw import RAW_TCP, RAW_UNIX
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Cell, Unit

if TYPE_CHECKING:
    from echoic import Channel

__all__ = [
    "COLUMN",
    "ECODE",
    "ECODE_UNSEEN",
    "HERE",
    "KNOWN",
    "ORDER",
    "SANDBOX",
    "SYNCHRONOUS",
    "TITLE",
    "UNSEEN",
    "measure",
]

TITLE = "a pair swapped, with a state of 100 integers"
SYNCHRONOUS, KNOWN, UNSEEN, HERE, ECODE, ECODE_UNSEEN, SANDBOX = (
    "submit_sync of 100 integers",
    "code known",
    "code unseen",
    "code known, source in this process",
    "E-Code known",
    "E-Code unseen",
    "sandbox, code known",
)
TCP, UNIX = "raw tcp", "raw unix"
ORDER: Final = (SYNCHRONOUS, TCP, UNIX, KNOWN, UNSEEN, HERE, ECODE, ECODE_UNSEEN, SANDBOX)
COLUMN = "latency"
SOURCE: Final = f"{__name__}:offer"
SETUP: Final = Setup("int100", synchronous=True)
SWAPS: Final = {True: 100, False: 4}
SLOW_SWAPS: Final = {True: 10, False: 1}
SWAP_MS_MAX: Final = 1.2
PAPER_MS: Final = 1.23

_numbers: Final = count(1)


def measure(effort: Effort, report: Report) -> None:
    """Measure how long swaps take, and add it to the report."""
    effort.told("starting the sources of swaps")
    with ExitStack() as stack:
        cases = _opened(stack, report, thorough=is_thorough(effort))
        samples = take_turns(cases, effort, [(case, COLUMN) for case in ORDER])
    table = table_of(TITLE, Unit.MICROSECONDS, samples, SYNCHRONOUS)
    report.tables.append(table)
    for case in (KNOWN, HERE):
        report.claims.append(Claim(f"swap, {case}", table.value(case, COLUMN).times(1e-3), SWAP_MS_MAX, "ms"))
    report.remarks.append(
        f"a swap of known code takes {table.ratio(KNOWN, COLUMN)} x submit_sync of an event of the same size; "
        f"in the paper it is {PAPER_MS} ms, slightly more than that"
    )


def _opened(stack: ExitStack, report: Report, *, thorough: bool) -> list[Case]:
    from echoic import Hub

    trusted, confined = SigningKey.generate(), SigningKey.generate()
    hub, stranger = stack.enter_context(Hub(key=trusted)), stack.enter_context(Hub(key=confined))
    (peer,) = stack.enter_context(
        start_peers(SOURCE, SETUP, [{"trusted": trusted.public, "confined": confined.public}])
    )
    ids = {name: str(id) for name, id in peer.address().items()}
    here = hub.create("here", Tick)
    stack.callback(here.source().close)
    swaps, slow = SWAPS[thorough], SLOW_SWAPS[thorough]
    table = table_class()
    made: dict[str, tuple[Channel, Callable[[], Modulator], int]] = {
        KNOWN: (hub.open(ids["known"], Tick), lambda: _filled(table), swaps),
        UNSEEN: (hub.open(ids["unseen"], Tick), lambda: _filled(table_class()), swaps),
        HERE: (here, lambda: _filled(table), swaps),
        ECODE: (hub.open(ids["ecode"], Tick), lambda: ecode_table(next(_numbers)), swaps),
        ECODE_UNSEEN: (hub.open(ids["ecode_unseen"], Tick), unseen_ecode, slow),
    }
    cases = [
        opened(contender, SETUP, (case, COLUMN), swaps, stack)
        for case, contender in ((SYNCHRONOUS, ECHOIC), (TCP, RAW_TCP), (UNIX, RAW_UNIX))
    ]
    cases += [swapping((case, COLUMN), *given) for case, given in made.items()]
    try:
        cases.append(
            swapping((SANDBOX, COLUMN), stranger.open(ids["sandbox"], Tick), lambda: _filled(table), slow),
        )
    except RefusedError as error:
        report.remarks.append(f"no swaps in a sandbox: {error}")
    return cases


def swapping(cell: Cell, channel: "Channel", make: Callable[[], Modulator], swaps: int) -> Case:
    """Return a case of swaps of a subscription; what is put in place is made before the clock starts.

    Raises:
        RefusedError: The source does not run it.
    """
    from echoic import Demodulator

    handle = channel.subscribe(lambda _: None, modulator=make(), demodulator=Demodulator())
    ready: list[Modulator] = []

    def swap() -> None:
        begin_edition()
        handle.reset(ready.pop(), Demodulator())

    def case() -> "dict[Cell, float]":
        ready.extend(make() for _ in range(swaps))
        return dict(calls(cell, swap, swaps)())

    return case


def _filled(table: type[Modulator]) -> Modulator:
    return table([next(_numbers)] * INTEGERS)


def unseen_ecode() -> EcodeModulator:
    """Return code that nobody has asked for before."""
    return EcodeModulator(f"input.level >= {next(_numbers)} + 0 * input.number")


def offer(control: Control, setup: Setup, argument: Argument) -> None:  # noqa: ARG001 - for other peers
    """Have channels with a source each, and wait; this runs in the peer."""
    from echoic import Hub, Policy

    policy = Policy(trusted_keys=(str(argument["trusted"]),), sandboxed_keys=(str(argument["confined"]),))
    with Hub(policy=policy) as hub:
        channels = {name: hub.create(name, Tick) for name in ("known", "unseen", "ecode", "ecode_unseen", "sandbox")}
        sources = [channel.source() for channel in channels.values()]
        control.ready(**{name: channel.id for name, channel in channels.items()})
        control.wait()
        for source in sources:
            source.close()
