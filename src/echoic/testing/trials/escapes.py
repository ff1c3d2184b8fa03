"""Trial 21: shipped Python that reaches for files, network, processes, signals, memory and time. All is refused.

Every class of `attacks` tries one thing, in a confined process of its own, at one of the moments at which shipped code
runs. What the kernel refuses becomes a fault, told like any error in a modulator; what is stopped becomes a
ModulatorError. Either way an honest modulator beside it goes on, nobody has come to the sockets of the surroundings,
the secret there is as it was, and no process is left.

The start is measured as it is in earnest: a spare process waits for the next modulator while one is in use.
"""

import contextlib
import inspect
import itertools
import os
import random
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from echoic.channels import Runner
from echoic.eager import Limits, Modulator, SharedObject, SharedReference, pack
from echoic.eager.install import install
from echoic.eager.parcel import sign, unpack
from echoic.eager.sandbox import Sandbox
from echoic.errors import EchoicError, ModulatorError, RefusedError
from echoic.formats import Format, event
from echoic.testing.trials.attacks import ATTACKS, MOMENTS, Hostile
from echoic.testing.trials.honest import Honest
from echoic.testing.trials.trial import BY_THE_CLOCK, Figure, Findings, Tell
from echoic.trust import SigningKey
from echoic.wire import Batch

__all__ = ["Surroundings", "attempt", "run", "start_ms"]

Shared = TypeVar("Shared", bound=SharedObject)
PARENT: Final = "127.0.0.1:1/numbers"
LIMITS: Final = Limits(seconds=0.25, memory_bytes=128 * 1024 * 1024, load_seconds=20, start_seconds=60)
GONE_SECONDS: Final = 30.0
START_MS_MAX: Final = 50.0
STARTS: Final = 15
SPARE_SECONDS: Final = 0.4  # for the next spare process to be ready, as it is between two modulators in earnest


@event
class Number:
    """What the modulators are given."""

    value: int
    text: str = ""


class Surroundings:
    """A file that nobody else should read, and sockets at which nobody should appear."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="echoic-secret-")))
        self._secret = self._folder / "secret"
        self._secret.write_text("the secret")
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        unix, abstract = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        address, name = str(self._folder / "socket"), f"echoic-escapes-{os.getpid()}-{id(self)}"
        unix.bind(address)
        abstract.bind("\0" + name)
        self._listening = (tcp, unix, abstract)
        for each in self._listening:
            each.listen()
            each.setblocking(False)
        self.known: Final[dict[str, object]] = {
            "secret": str(self._secret),
            "port": tcp.getsockname()[1],
            "address": address,
            "abstract": name,
        }
        """What an attacker is told."""

    def harm(self) -> list[str]:
        """Return what was done to them."""
        found = []
        for listening in self._listening:
            with contextlib.suppress(BlockingIOError):
                listening.accept()[0].close()
                found.append(f"somebody has connected to {listening.getsockname()}")
        if self._secret.read_text() != "the secret":
            found.append("the secret is another")
        if sorted(path.name for path in self._folder.iterdir()) != ["secret", "socket"]:
            found.append("there are files that nobody has written")
        return found


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Try so many attacks, each of them before any a second time."""
    chance, begun = random.Random(seed), time.monotonic()
    problems: list[str] = []
    tried: set[str] = set()
    with contextlib.ExitStack() as stack:
        try:
            honest = _confined(Honest(2), SigningKey.generate())
        except RefusedError as error:
            return Findings((f"no process can be confined on this machine: {error}",))
        stack.callback(honest.close)
        surroundings = Surroundings(stack)
        for done, (attack, moment) in enumerate(itertools.islice(_variants(chance), size)):
            wrong = attempt(attack, moment, surroundings, honest)
            problems += [f"{attack.__name__} at {moment}: {each} [seed {seed}]" for each in wrong]
            tried.add(f"{attack.__name__} at {moment}")
            tell(done + 1)
        starts = start_ms()
        if starts > START_MS_MAX:
            starts = min(starts, start_ms())  # others may have had the machine
        if starts > START_MS_MAX:
            problems.append(f"a cell starts in {starts:.1f} ms, limit is {START_MS_MAX:g}{BY_THE_CLOCK}")
    figures: dict[str, Figure] = {
        "attempts": size,
        "variants": len(tried),
        "start_ms_median": round(starts, 1),
        "seconds": round(time.monotonic() - begun, 1),
    }
    return Findings(tuple(problems), figures)


def attempt(attack: type[Hostile], moment: str, surroundings: Surroundings, honest: Runner) -> list[str]:
    """Let one attack happen; return what is wrong then."""
    wrong = []
    runner = _confined(attack(**surroundings.known, moment=moment), SigningKey.generate())
    try:
        worked = runner.work(1, _numbers(1), period=True)
        if worked.batch is not None:
            wrong.append("it has succeeded")
        elif not worked.faults or attack.__name__ not in worked.faults[0]:
            wrong.append("nobody was told")
    except ModulatorError as error:
        if attack.__name__ not in str(error):
            wrong.append(f"what is told does not name it: {error}")
    finally:
        runner.close()
    if not _is_gone(runner.pid):
        wrong.append("its process is left")
    try:
        passed = honest.work(1, _numbers(1, 2, 3)).batch
        if passed is None or [getattr(each, "value", 0) for each in passed] != [2, 3]:
            wrong.append("somebody else's modulator has noticed it")
    except EchoicError as error:
        wrong.append(f"somebody else's modulator was stopped: {error}")
    return wrong + surroundings.harm()


def start_ms() -> float:
    """Return how long it takes until a modulator is confined and loaded, the median of some, in milliseconds."""
    key, taken = SigningKey.generate(), []
    for _ in range(STARTS):
        time.sleep(SPARE_SECONDS)
        begun = time.monotonic()
        runner = _confined(Honest(1), key)
        taken.append((time.monotonic() - begun) * 1000)
        runner.close()
    return statistics.median(taken)


def _variants(chance: random.Random) -> Iterator[tuple[type[Hostile], str]]:
    """Yield attacks without end: all as events come, then all at the other moments, each round in another order."""
    for turn in itertools.count():
        attacks = chance.sample(ATTACKS, len(ATTACKS))
        yield from ((attack, MOMENTS[turn % len(MOMENTS)]) for attack in attacks)


class _NoSharedObjects:
    """A host that has none."""

    def copy(self, reference: SharedReference, cls: type[Shared]) -> Shared:  # noqa: ARG002 - as hosts have it
        """Give nothing."""
        raise RefusedError(f"there is no shared object {reference}")


def _confined(modulator: Modulator, key: SigningKey) -> Sandbox:
    """Return a modulator that runs in a confined process, as somebody's whom nobody trusts."""
    type_, kind = Format.of(Number), type(modulator)
    data, _ = pack(modulator, PARENT, type_, key)
    if kind.__module__.startswith("echoic."):  # of which only a name would be shipped, and not the text
        text = inspect.getsource(sys.modules[kind.__module__])
        data = sign(msgspec.structs.replace(unpack(data)[0], text=text), key)
    made = install(
        data,
        trusted=(),
        sandboxed=("*",),
        parent=PARENT,
        input=type_,
        sources=(1,),
        shared=_NoSharedObjects(),
        grant=lambda _, __: None,
        limits=LIMITS,
        hub="127.0.0.1:1",
    )
    if not isinstance(made, Sandbox):
        raise RefusedError("it runs, and is not confined")
    return made


def _numbers(*values: int) -> Batch:
    return Batch.of([Number(value, str(value)) for value in values], Number)


def _is_gone(pid: int) -> bool:
    """Wait until a process has ended; False if it does not."""
    deadline = time.monotonic() + GONE_SECONDS
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
