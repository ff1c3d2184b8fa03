"""Trial 10: shipped code that loops, hoards, nests, divides by zero and reads out of bounds.

    source's hub --- honest sink, in a hub of its own: gets everything, and must not notice
            `------- hostile hub: derives one program after the other (`hostile_programs`), and ships Python

A program is *refused* by the compiler, or *stopped*: its events fault, or take too long, until the hub suspends it; or
it is *harmless* and goes on within its limit. What counts is processor time of the source: a refusal is what checking
takes there, a stop what the thread that submits has spent on the code until it was suspended. Each is measured again
before it counts as too long, so that noise alone fails nothing. The hub limits derivations to `LOAD_MAX` of one
processor, which is also how long a batch may take.

The source's other sink must not notice. Its rate is what the source sends it in a second of processor time of the
source's thread; that is what bounds it and what code could take from it, and a busy machine changes nothing about it.
It is measured in turns, for the same time without a program and with one arriving; of programs that are stopped the
median must keep `RATE_MIN`. What is harmless stays, within the hub's limit, which the hub looks at once a second.
Crowds of small derivations try that limit, and one whose parameters change without end: `SETTLING_SECONDS` later the
source's thread may work for them 1 - `RATE_MIN` of the time, in the median. A median that is not good enough is that of
too few: everything is then measured again, `AGAIN_MAX` times at most, and all of it counts.

Python runs in the sandbox, where bubblewrap is there; where it is not, the figures say so.

The second half of the programs come to hubs with certificates and rights, and whoever means harm may do all that such
code needs: subscribe, derive, modulate. Each half is judged by its own rates.
"""

import shutil
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Final, TypeAlias, TypeVar

import msgspec

from echoic.channels import Policy, Recipe, Step, Workshop
from echoic.eager import Modulator
from echoic.errors import DeniedError, EchoicError, ECodeError, RefusedError
from echoic.formats import Format
from echoic.hub import Channel, EagerSink, Hub, Sink
from echoic.testing.charter import Charter, Grants, party_of
from echoic.testing.trials.hostile_modulators import MODULATORS
from echoic.testing.trials.hostile_programs import (
    ENDLESS,
    FLOOD_VALUES,
    Flood,
    HostileProgram,
    Numbers,
    Sample,
    draw_programs,
    samples,
)
from echoic.testing.trials.trial import BY_THE_CLOCK, PROBLEMS_MAX, Figure, Findings, Tell
from echoic.trust.keys import SigningKey

__all__ = ["run"]

T = TypeVar("T")

SECONDS_MAX: Final = 0.05
RATE_MIN: Final = 0.95
LOAD_MAX: Final = 0.04
BATCH_EVENTS: Final = 500
WINDOW_SECONDS: Final = 0.4
MODULATORS_EVERY: Final = 8
ATTEMPTS: Final = 3
AGAIN_MAX: Final = 3
WAIT_SECONDS_MAX: Final = 10.0
LOADING_SECONDS_MAX: Final = 60.0
DERIVATIONS_MAX: Final = 16
CROWD: Final = 8
SETTLING_SECONDS: Final = 3.0
TUNINGS: Final = 50
CROWD_EVERY: Final = 20
CAPACITIES: Final = {"values": FLOOD_VALUES}
CHANNEL: Final = "samples"
GRANTS: Final[Grants] = {
    "source": [f"publish,admin {CHANNEL}"],
    "honest": [f"subscribe {CHANNEL}"],
    "hostile": [f"subscribe,derive,modulate {CHANNEL}"],
}


class Stage:
    """The source with its honest sink, and the hub of those who mean harm."""

    def __init__(self, charter: Charter | None = None) -> None:
        policy = Policy(
            load_max=LOAD_MAX, derivations_max=DERIVATIONS_MAX, sandboxed_keys=("*",), modulator_seconds_max=SECONDS_MAX
        )
        self._here = Hub(policy=policy, **party_of(charter, "source"))
        self._honest = Hub(**party_of(charter, "honest"))
        self._hostile = Hub(key=SigningKey.generate(), **party_of(charter, "hostile"))
        self.policy = policy
        self._channel = self._here.create(CHANNEL, Sample)
        self._source = self._channel.source()
        self._events = 0
        self._batch: Numbers = samples(BATCH_EVENTS)
        self._honest.open(self._channel.id, Sample).subscribe(self._count, batch=True)

    def close(self) -> None:
        """End all hubs."""
        for hub in (self._hostile, self._honest, self._here):
            hub.close()

    def _count(self, batch: object) -> None:
        self._events += len(batch)  # type: ignore[arg-type] # a batch has a length

    def hostile_channel(self) -> Channel:
        """Return the channel as those have it who mean harm."""
        return self._hostile.open(self._channel.id, Sample)

    def submit(self) -> float:
        """Submit a batch; return the processor seconds that this took the source's thread."""
        began = time.thread_time()
        self._source.submit_batch(self._batch)
        return time.thread_time() - began

    def loss(self, attack: "Attack", settling_seconds: float = 0.0) -> "Loss":
        """Return what the honest sink loses while somebody attacks, or some time later."""
        before, _ = self._batch_seconds(WINDOW_SECONDS)
        sinks: list[Sink] = []
        attacker = threading.Thread(target=attack, args=(self, sinks))
        attacker.start()
        if settling_seconds:
            self._batch_seconds(settling_seconds)
        during, busy = self._batch_seconds(WINDOW_SECONDS)
        attacker.join()
        for sink in sinks:
            sink.close()
        after, _ = self._batch_seconds(WINDOW_SECONDS)
        without = (before + after) / 2
        return Loss(without / during, max(0.0, 1 - without / during) * busy)

    def _batch_seconds(self, seconds: float) -> tuple[float, float]:
        """Return the processor seconds of the source's thread for a batch, and the share of the time it is busy."""
        began, before, spent = time.perf_counter(), self._events, 0.0
        while time.perf_counter() - began < seconds:
            spent += self.submit()
        self._source.drain()
        return spent * BATCH_EVENTS / (self._events - before), spent / (time.perf_counter() - began)


class Loss(msgspec.Struct, frozen=True):
    """What an attack takes."""

    kept: float
    """Of the rate, the share that is left."""
    taken: float
    """Of the time that passes, the share that the source's thread works for the attacker."""


Attack: TypeAlias = Callable[[Stage, list[Sink]], None]
"""Does harm; adds the sinks that are to be closed when it is over."""


class Verdicts:
    """What became of the programs."""

    def __init__(self) -> None:
        self.fates: Counter[str] = Counter()
        self.problems: list[str] = []
        self.stopped: list[HostileProgram] = []
        self.kept: list[float] = []
        self.taken: list[float] = []
        self.worst: dict[str, float] = {"refused": 0.0, "stopped": 0.0}

    def add(self, fate: str, seconds: float, what: str) -> None:
        """Count a program."""
        self.fates[fate] += 1
        if fate in self.worst:
            self.worst[fate] = max(self.worst[fate], seconds)
            if seconds > SECONDS_MAX:
                self.problems.append(
                    f"{what} was {fate} after {seconds * 1000:.0f} ms, limit is {SECONDS_MAX * 1000:.0f}{BY_THE_CLOCK}"
                )


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Ship so many programs, the second half of them to hubs with certificates and rights."""
    began, problems = time.perf_counter(), list[str]()
    confining = shutil.which("bwrap") is not None
    figures: dict[str, Figure] = {"sandbox": "bubblewrap" if confining else "none: install bubblewrap"}
    programs = list(enumerate(draw_programs(Random(seed), size)))
    halves = {"": programs[: size - size // 2], "secured_": programs[size - size // 2 :]}
    for kind, half in halves.items():
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="echoic-hostile-")))
            stage = Stage(Charter.draw_up(folder / "charter", GRANTS) if kind else None)
            stack.callback(stage.close)
            verdicts = _ship(half, stage, tell, confining=confining)
        problems += [f"{kind.replace('_', ': ')}{problem}" for problem in _judged(verdicts)]
        figures |= {f"{kind}{name}": value for name, value in _figures_of(verdicts).items()}
    figures["seconds"] = round(time.perf_counter() - began, 1)
    return Findings(tuple(problems[:PROBLEMS_MAX]), figures)


def _ship(programs: Sequence[tuple[int, HostileProgram]], stage: Stage, tell: Tell, *, confining: bool) -> Verdicts:
    """Ship programs, each with its number, and return what became of them."""
    verdicts = Verdicts()
    for number, program in programs:
        _try_program(stage, program, verdicts)
        if confining and number % MODULATORS_EVERY == 0:
            _try_modulator(stage, MODULATORS[number // MODULATORS_EVERY % len(MODULATORS)], verdicts)
        if number % CROWD_EVERY == 0:
            _try_crowd(stage, verdicts)
            _try_pestering(stage, verdicts)
        tell(number + 1)
        if len(verdicts.problems) >= PROBLEMS_MAX:
            break
    _measure_again(stage, verdicts)
    return verdicts


def _judged(verdicts: Verdicts) -> list[str]:
    """Return what is wrong with single programs, and with what all of them took."""
    kept, taken = _median(verdicts.kept, 1.0), _median(verdicts.taken, 0.0)
    problems = list(verdicts.problems)
    if kept < RATE_MIN:
        problems.append(f"the other sink kept {kept:.1%} of its rate, {RATE_MIN:.0%} is the least{BY_THE_CLOCK}")
    if taken > 1 - RATE_MIN:
        problems.append(f"attacks took {taken:.1%} of the time, {1 - RATE_MIN:.0%} is the most{BY_THE_CLOCK}")
    return problems


def _figures_of(verdicts: Verdicts) -> dict[str, Figure]:
    figures: dict[str, Figure] = {fate.replace(" ", "_"): count for fate, count in verdicts.fates.items()}
    figures |= {f"worst_{fate}_ms": round(1000 * seconds, 1) for fate, seconds in verdicts.worst.items()}
    return figures | {
        "rate_kept_percent": round(100 * _median(verdicts.kept, 1.0), 1),
        "time_taken_percent": round(100 * _median(verdicts.taken, 0.0), 2),
    }


def _median(values: list[float], default: float) -> float:
    return statistics.median(values) if values else default


def _measure_again(stage: Stage, verdicts: Verdicts) -> None:
    for _ in range(AGAIN_MAX):
        if _median(verdicts.kept, 1.0) < RATE_MIN:
            verdicts.kept += [stage.loss(partial(_attack_by, program)).kept for program in verdicts.stopped]
        if _median(verdicts.taken, 0.0) > 1 - RATE_MIN:
            _try_crowd(stage, verdicts)
            _try_pestering(stage, verdicts)


def _try_program(stage: Stage, program: HostileProgram, verdicts: Verdicts) -> None:
    what = f"{program.name}: {program.code[:200]!r}"
    seconds = min(_refusal_seconds(stage, program) or 0.0 for _ in range(2))
    if _refusal_seconds(stage, program) is not None:
        if seconds > SECONDS_MAX:
            seconds = min(_refusal_seconds(stage, program) or 0.0 for _ in range(ATTEMPTS))
        verdicts.add("refused", seconds, what)
        return
    fate, seconds = _stop(stage, program)
    for _ in range(ATTEMPTS):
        if fate == "harmless" or seconds <= SECONDS_MAX:
            break
        fate, seconds = min((fate, seconds), _stop(stage, program), key=lambda pair: pair[1])
    verdicts.add(fate, seconds, what)
    if fate == "harmless" and program.name in ENDLESS:
        verdicts.problems.append(f"{what} was never stopped")
    if fate == "stopped":
        verdicts.stopped.append(program)
        verdicts.kept.append(stage.loss(partial(_attack_by, program)).kept)


def _refusal_seconds(stage: Stage, program: HostileProgram) -> float | None:
    """Return what refusing a program takes the source's hub; None if it takes it."""
    output = Format.of(Flood).descriptor if program.floods else b""
    # A space more is another text, so that nothing which was remembered of it helps.
    code = f"{program.code} " if program.floods else program.code
    recipe = Recipe(CHANNEL, code, output=output, capacities=tuple(CAPACITIES.items()) if program.floods else ())
    step = Step("hostile", "hostile", recipe, input=Format.of(Sample).descriptor)
    began = time.thread_time()
    try:
        Workshop(step, stage.policy)
    except (ECodeError, RefusedError):
        return time.thread_time() - began
    return None


def _derive(stage: Stage, program: HostileProgram) -> Channel:
    channel = stage.hostile_channel()
    if program.floods:
        return channel.derive(program.code, output=Flood, capacities=CAPACITIES, share=False)
    return channel.derive(program.code, share=False)


def _stop(stage: Stage, program: HostileProgram) -> tuple[str, float]:
    """Return whether a program was stopped, and how long the source's thread ran it until then."""
    usual = statistics.median(stage.submit() for _ in range(9))
    derived, sink = _installed(stage, program)
    spent, until = 0.0, time.monotonic() + WAIT_SECONDS_MAX
    try:
        for _ in range(20):
            spent += max(0.0, stage.submit() - usual)
            if derived.derivation is not None and any(
                counts.suspended for counts in derived.derivation.counts().values()
            ):
                return "stopped", spent
            if time.monotonic() > until:
                break
    finally:
        sink.close()
    return "harmless", spent


def _installed(stage: Stage, program: HostileProgram) -> tuple[Channel, Sink]:
    """Have a program installed.

    Raises:
        RefusedError: The hub takes none for long.
    """

    def install() -> tuple[Channel, Sink]:
        derived = _derive(stage, program)
        return derived, derived.subscribe(lambda _: None, slow="latest")

    return _patiently(stage, install)


def _patiently(stage: Stage, install: Callable[[], T], seconds: float = WAIT_SECONDS_MAX) -> T:
    """Have something installed; wait while the hub takes none: those before have used up their share, or it is busy.

    Raises:
        DeniedError: Whoever wants it has no right to.
        RefusedError: It takes none for long.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return install()
        except DeniedError:
            raise  # which no patience changes
        except RefusedError:
            if time.monotonic() > until:
                raise
            stage.submit()
            time.sleep(0.1)


def _attack_by(program: HostileProgram, stage: Stage, sinks: list[Sink]) -> None:
    try:
        sinks.append(_derive(stage, program).subscribe(lambda _: None, slow="latest"))
    except RefusedError:
        pass  # those before it have used up their share


def _try_crowd(stage: Stage, verdicts: Verdicts) -> None:
    """Derive in more ways than the hub has room for, each a small one."""
    refused = 0

    def attack(stage: Stage, sinks: list[Sink]) -> None:
        nonlocal refused
        for number in range(DERIVATIONS_MAX + CROWD):
            try:
                derived = stage.hostile_channel().derive(f"input.number == {number - 10_000}", share=False)
                sinks.append(derived.subscribe(lambda _: None, slow="latest"))
            except EchoicError:
                refused += 1

    verdicts.taken.append(stage.loss(attack, SETTLING_SECONDS).taken)
    verdicts.fates["crowds"] += 1
    if refused < CROWD:
        verdicts.problems.append(f"{DERIVATIONS_MAX + CROWD} derivations were tried, and {refused} refused")


def _try_pestering(stage: Stage, verdicts: Verdicts) -> None:
    """Change the parameters of a derivation again and again."""
    derived = stage.hostile_channel().derive("input.number < param.limit", params={"limit": 0}, share=False)

    def attack(stage: Stage, sinks: list[Sink]) -> None:  # noqa: ARG001 - as any attack
        sinks.append(derived.subscribe(lambda _: None, slow="latest"))
        for number in range(TUNINGS):
            derived.params.update(limit=-number)

    verdicts.taken.append(stage.loss(attack, SETTLING_SECONDS).taken)
    verdicts.fates["floods_of_parameters"] += 1


def _try_modulator(stage: Stage, modulator: type[Modulator], verdicts: Verdicts) -> None:
    """Ship Python; it must be stopped, and the source's own thread have nothing to do with it."""
    what, troubles = f"the modulator {modulator.__name__}", list[object]()
    usual = statistics.median(stage.submit() for _ in range(9))

    def install() -> EagerSink:
        channel = stage.hostile_channel()
        return channel.subscribe(lambda _: None, modulator=modulator(), on_trouble=troubles.append, slow="latest")

    sink = _patiently(stage, install, LOADING_SECONDS_MAX)  # on a busy machine loading alone takes longer than it may
    spent, until = 0.0, time.monotonic() + WAIT_SECONDS_MAX
    try:
        while not troubles and time.monotonic() < until:
            spent += max(0.0, stage.submit() - usual)
            time.sleep(0.01)
    finally:
        sink.close()
    if troubles:
        verdicts.add("stopped", spent, what)
    else:
        verdicts.problems.append(f"{what} was not stopped within {WAIT_SECONDS_MAX:.0f} s")
