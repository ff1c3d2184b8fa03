"""The buses that run on this machine: processes and what they wait for, tools, references, and the last steps.

A bus that `echoic bus run` runs answers at its desk (`echoic.toolbus.desk`), so nothing is needed to look at it but to
be the user who started it. A look asks all of them side by side: `state`, then `refs` where there are any, and the
steps since the last look. What they answer is checked before it is passed on, and cut down to what a page can show: a
bus is a program of somebody, and its script has texts of anybody.
"""

import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from echoic.channels import ChannelEntry
from echoic.errors import UnreachableError
from echoic.monitor.bounded import finite, short, shorts
from echoic.toolbus.desk import ask, running_buses
from echoic.toolbus.history import TracedStep

__all__ = [
    "BusLoad",
    "BusesLoad",
    "BusesOverview",
    "PartyLoad",
    "ProcessLoad",
    "ReferenceLoad",
    "ToolLoad",
    "WaitLoad",
    "WaitingAtom",
    "bus_load",
]

BUSES_MAX: Final = 12
PROCESSES_MAX: Final = 100
TOOLS_MAX: Final = 100
ATOMS_MAX: Final = 8
WAITS_MAX: Final = 300
REFERENCES_MAX: Final = 30
QUEUED_MAX: Final = 5
TEXTS_MAX: Final = 20
STEPS_MAX: Final = 200
ALL_STEPS_MAX: Final = 600
ALIVE_SECONDS: Final = 0.3
ANSWER_SECONDS: Final = 1.0
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
T = TypeVar("T")


class PartyLoad(msgspec.Struct, frozen=True):
    """A process, or a tool; number 0 stands for any tool of a name."""

    number: int
    name: str
    is_tool: bool


class WaitLoad(msgspec.Struct, frozen=True):
    """Somebody who waits for somebody at an atom; for nobody there is where `awaited` is None."""

    waiter: PartyLoad
    awaited: PartyLoad | None
    atom: str
    arguments: list[str]
    at_once: bool
    hopeless: bool


class WaitingAtom(msgspec.Struct, frozen=True):
    """An atom that a process could do next: as it stands in the script, and with its values."""

    atom: str
    text: str
    arguments: list[str]
    file: str
    line: int


class ProcessLoad(msgspec.Struct, frozen=True):
    """A process, and what it waits for."""

    number: int
    name: str
    arguments: list[str]
    ready: bool
    timed: bool
    waiting: list[WaitingAtom]
    notes: list[str]
    notes_queued: int


class QueuedWord(msgspec.Struct, frozen=True):
    """Something that a tool has said and nobody has taken."""

    kind: str
    values: list[str]


class ToolLoad(msgspec.Struct, frozen=True):
    """A tool, and what it has said that nobody has taken."""

    number: int
    name: str
    state: str
    told: int
    said: int
    queued_count: int
    queued: list[QueuedWord]
    unacknowledged: list[list[str]]


class ReferenceLoad(msgspec.Struct, frozen=True):
    """A value that is with a tool, and that the script refers to."""

    owner: str
    variable: int
    signature: str
    bytes: int
    age_seconds: float
    holders: list[str]
    in_flight: list[str]


class Numbers(msgspec.Struct, frozen=True):
    """What a bus has counted."""

    steps: int
    handshakes: int
    created: int
    processes: int
    tools: int
    notes_dropped: int
    warned: int
    references: int


class BusLoad(msgspec.Struct, frozen=True):
    """A bus at one moment; `trouble` says why there is nothing else to say."""

    bus: str
    trouble: str = ""
    script: str = ""
    address: str = ""
    seed: str = ""
    """As text: a browser has no such numbers."""
    started: float = 0.0
    halted: bool = False
    statistics: Numbers | None = None
    steps_per_second: float = 0.0
    processes: list[ProcessLoad] = []
    tools: list[ToolLoad] = []
    waits: list[WaitLoad] = []
    reference_bytes: int = 0
    references: list[ReferenceLoad] = []
    warnings: list[str] = []
    checks: list[str] = []
    steps: list[TracedStep] = []
    missed: int = 0
    """How many steps before the last of `steps` were too many to be kept, since the last look."""


class BusesLoad(msgspec.Struct, frozen=True):
    """All buses that run here."""

    at: float
    buses: list[BusLoad]
    more: int
    """How many others there are, which are not shown."""


class Followed:
    """What is kept about a bus from one look to the next."""

    def __init__(self) -> None:
        self.steps: deque[TracedStep] = deque(maxlen=STEPS_MAX)
        self.before: tuple[float, int] | None = None
        self.missed = 0

    def rate(self, now: float, steps: int) -> float:
        """Return how many steps a second there were since the last time."""
        before, self.before = self.before, (now, steps)
        if before is None or now <= before[0]:
            return 0.0
        return max(0, steps - before[1]) / (now - before[0])

    def add(self, steps: Iterable[TracedStep]) -> None:
        """Add steps that are not there yet."""
        last = self.last
        for step in steps:
            if step.number > last:
                if last:
                    self.missed += step.number - last - 1
                self.steps.append(step)
                last = step.number

    @property
    def last(self) -> int:
        """The number of the last step that is known."""
        return self.steps[-1].number if self.steps else 0


class BusesOverview:
    """Looks at all buses that run on this machine."""

    def __init__(self) -> None:
        self._followed: dict[Path, Followed] = {}
        self._workers = ThreadPoolExecutor(BUSES_MAX, thread_name_prefix="echoic-buses")

    def follow(self, known: Iterable[ChannelEntry]) -> None:
        """Do nothing: a bus is found by its socket, and tells its steps only while somebody looks."""

    def look(self) -> BusesLoad:
        """Ask all buses. Takes a second or two where one does not answer."""
        running = running_buses(ALIVE_SECONDS)
        chosen = dict(sorted(running.items())[:BUSES_MAX])
        self._followed = {path: self._followed.get(path) or Followed() for path in chosen.values()}
        steps_max = min(STEPS_MAX, ALL_STEPS_MAX // max(1, len(chosen)))
        loads = self._workers.map(
            lambda bus, path: self._look_at(bus, path, self._followed[path], steps_max), chosen.keys(), chosen.values()
        )
        return BusesLoad(time.time(), list(loads), len(running) - len(chosen))

    def close(self) -> None:
        """Look no more."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    def _look_at(bus: str, path: Path, followed: Followed, steps_max: int) -> BusLoad:
        try:
            state = _asked(path, f"state {PROCESSES_MAX}")
            referring = state.get("statistics", {}).get("references")
            references = _asked(path, "refs") if referring else {}
            history = _asked(path, f"history {followed.last}")
            followed.add(_listed(history.get("steps"), TracedStep, STEPS_MAX * 3))
            load = bus_load(bus, state, references)
        except UnreachableError as error:
            return BusLoad(bus, trouble=short(str(error)))
        except (msgspec.ValidationError, AttributeError, TypeError) as error:
            return BusLoad(bus, trouble=short(f"it answers what is no answer: {error}"))
        numbers = load.statistics
        return msgspec.structs.replace(
            load,
            steps_per_second=followed.rate(time.monotonic(), numbers.steps if numbers is not None else 0),
            steps=[_short_step(each) for each in list(followed.steps)[-steps_max:]],
            missed=followed.missed,
        )


def bus_load(bus: str, state: dict[str, Any], references: dict[str, Any]) -> BusLoad:
    """Return what a bus has answered, checked and cut down.

    Args:
        bus: What it is called here.
        state: Its answer to `state`.
        references: Its answer to `refs`; empty where it was not asked.

    Raises:
        msgspec.ValidationError: It is not such an answer.
    """
    statistics = msgspec.convert(state.get("statistics"), Numbers)
    return BusLoad(
        bus,
        script=short(_text(state.get("script"))),
        address=short(_text(state.get("address"))),
        seed=str(msgspec.convert(state.get("seed"), int)),
        started=finite(msgspec.convert(state.get("started"), float)),
        halted=bool(state.get("halted")),
        statistics=statistics,
        processes=[_short_process(each) for each in _listed(state.get("processes"), ProcessLoad, PROCESSES_MAX)],
        tools=[_short_tool(each) for each in _listed(state.get("tools"), ToolLoad, TOOLS_MAX)],
        waits=[_short_wait(each) for each in _listed(state.get("waits") or [], WaitLoad, WAITS_MAX)],
        reference_bytes=msgspec.convert(references.get("bytes", 0), int),
        references=[
            _short_reference(each)
            for each in _listed(references.get("references") or [], ReferenceLoad, REFERENCES_MAX)
        ],
        warnings=_texts(state.get("warnings"), -TEXTS_MAX),
        checks=_texts(state.get("checks"), TEXTS_MAX),
    )


def _asked(path: Path, question: str) -> dict[str, Any]:
    return ask(path, question, seconds=ANSWER_SECONDS, bytes_max=ANSWER_BYTES_MAX)


def _listed(found: object, kind: type[T], count_max: int) -> list[T]:
    """Return the first of a list of objects, as records.

    Raises:
        msgspec.ValidationError: It is none.
    """
    return msgspec.convert(msgspec.convert(found, list[Any])[:count_max], list[kind])  # type: ignore[valid-type]


def _text(found: object) -> str:
    return msgspec.convert(found, str)


def _texts(found: object, count: int) -> list[str]:
    texts = msgspec.convert(found, list[str])
    return [short(each) for each in (texts[count:] if count < 0 else texts[:count])]


def _short_process(process: ProcessLoad) -> ProcessLoad:
    return msgspec.structs.replace(
        process,
        name=short(process.name),
        arguments=shorts(process.arguments, ATOMS_MAX),
        waiting=[
            WaitingAtom(
                short(each.atom), short(each.text), shorts(each.arguments, ATOMS_MAX), short(each.file), each.line
            )
            for each in process.waiting[:ATOMS_MAX]
        ],
        notes=shorts(process.notes, QUEUED_MAX),
    )


def _short_tool(tool: ToolLoad) -> ToolLoad:
    return msgspec.structs.replace(
        tool,
        name=short(tool.name),
        state=short(tool.state),
        queued=[QueuedWord(short(each.kind), shorts(each.values, ATOMS_MAX)) for each in tool.queued[:QUEUED_MAX]],
        unacknowledged=[shorts(each, ATOMS_MAX) for each in tool.unacknowledged[:QUEUED_MAX]],
    )


def _short_wait(wait: WaitLoad) -> WaitLoad:
    return msgspec.structs.replace(
        wait,
        waiter=_short_party(wait.waiter),
        awaited=None if wait.awaited is None else _short_party(wait.awaited),
        atom=short(wait.atom),
        arguments=shorts(wait.arguments, ATOMS_MAX),
    )


def _short_party(party: PartyLoad) -> PartyLoad:
    return PartyLoad(party.number, short(party.name), party.is_tool)


def _short_reference(reference: ReferenceLoad) -> ReferenceLoad:
    return msgspec.structs.replace(
        reference,
        owner=short(reference.owner),
        signature=short(reference.signature),
        age_seconds=finite(reference.age_seconds),
        holders=shorts(reference.holders, ATOMS_MAX),
        in_flight=shorts(reference.in_flight, ATOMS_MAX),
    )


def _short_step(step: TracedStep) -> TracedStep:
    return msgspec.structs.replace(
        step,
        at=finite(step.at),
        name=short(step.name),
        atom=short(step.atom),
        arguments=shorts(step.arguments, ATOMS_MAX),
        file=short(step.file),
        partner_name=short(step.partner_name),
    )
