r"""What a bus has done: its steps as plain values, for files, consoles and viewers.

    {"number":1,"at":0.000012,"process":1,"name":"Hello","atom":"printf","arguments":["\"hello\\n\""],
     "file":"hello.tb","line":2,"column":18}
    {"number":2,"at":0.000020,"process":1,"name":"A","atom":"snd-msg",...,"partner":2,"partner_name":"B","partner_line":9}

Times are in seconds since the start. Arguments are texts of terms, of which what is very long is cut off: a value is
kept by nobody for having been told of. A step does not know the name of its partner, so `StepTeller` keeps the names
of processes: those that are started are numbered in their order, and the others are created by a step.

A `StepHistory` keeps the last steps of a bus that runs, from the first time that somebody asks and as long as somebody
does: a step of philosophers who only eat takes 7 us, and 16.5 us when it is told and kept. So nobody has to say in
advance that somebody will want to look, and a bus at which nobody looks pays nothing.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import msgspec

from echoic.terms import Term
from echoic.terms.text import show

if TYPE_CHECKING:
    from echoic.scripts.running.messages import Step
    from echoic.scripts.syntax.tree import Script
    from echoic.toolbus.bus import Bus

__all__ = ["StepHistory", "StepTeller", "TracedStep"]

STEPS_KEPT: Final = 500
ASKED_SECONDS: Final = 15.0
SHORT_CHARACTERS_MAX: Final = 160
NAMES_MAX: Final = 100_000
NAMES_LEARNT: Final = 1000
NS: Final = 1_000_000_000


class TracedStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An atom that was done, or two that met: then the process is the one that sent."""

    number: int
    at: float
    process: int
    name: str
    atom: str
    arguments: list[str]
    file: str
    line: int
    column: int
    partner: int = 0
    partner_name: str = ""
    partner_line: int = 0

    @property
    def text(self) -> str:
        """The atom as it was done."""
        if self.atom == ":=":
            return f":= {', '.join(self.arguments)}"
        return f"{self.atom}({','.join(self.arguments)})" if self.arguments else self.atom


class StepTeller:
    """Makes plain values of steps.

    Args:
        script: What is run.
        began_ns: The time of the bus at the start.
        characters_max: How long the text of an argument may be.
    """

    def __init__(self, script: "Script", began_ns: int, characters_max: int) -> None:
        calls = chain.from_iterable(configuration.calls for configuration in script.configurations)
        self._names = {number: call.name for number, call in enumerate(calls, 1)}
        self._began_ns = began_ns
        self._characters_max = characters_max

    def learn(self, names: dict[int, str]) -> None:
        """Learn the names of processes that were created before the first step that is told."""
        self._names.update(names)

    def told(self, step: "Step") -> TracedStep:
        """Return a step as a plain value."""
        names, longest = self._names, self._characters_max
        match step.atom, step.arguments:
            case "create", (Term(name=name), int() as number):
                if len(names) >= NAMES_MAX:
                    del names[next(iter(names))]
                names[number] = name
            case _:
                pass
        return TracedStep(
            number=step.number,
            at=round((step.at_ns - self._began_ns) / NS, 6),
            process=step.process,
            name=step.name,
            atom=step.atom,
            arguments=[show(value, longest)[:longest] for value in step.arguments],
            file=step.span.file,
            line=step.span.line,
            column=step.span.column,
            partner=step.partner or 0,
            partner_name=names.get(step.partner or 0, ""),
            partner_line=step.partner_span.line if step.partner_span is not None else 0,
        )


class StepHistory:
    """Keeps the last steps of a bus while somebody asks for them.

    Args:
        bus: The bus, which may be running.
        began_ns: Its time at the start.
        traced: Whether its steps are told to others all the time.
        kept: How many steps.
        now: Returns the time, in seconds.
    """

    def __init__(
        self,
        bus: "Bus",
        began_ns: int,
        *,
        traced: bool,
        kept: int = STEPS_KEPT,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bus = bus
        self._teller = StepTeller(bus.script, began_ns, SHORT_CHARACTERS_MAX)
        self._traced = traced
        self._steps: deque[TracedStep] = deque(maxlen=kept)
        self._lock = threading.Lock()
        self._now = now
        self._asked = 0.0
        self.keeping = False
        """Whether steps are kept at the moment."""
        bus.on_step(self._add)

    def since(self, number: int) -> dict[str, Any]:
        """Return the steps after the one of a number that are still there, and keep those that follow."""
        with self._lock:
            self._asked = self._now()
            begins, self.keeping = not self.keeping, True
            steps = [each for each in self._steps if each.number > number]
        if begins:
            self._bus.trace(on=True)
            names = {each.number: each.name for each in self._bus.state(NAMES_LEARNT).processes}
            with self._lock:
                self._teller.learn(names)
        return {"name": self._bus.name, "steps": msgspec.to_builtins(steps)}

    def _add(self, step: "Step") -> None:
        """Keep a step; in the thread of the bus."""
        if not self.keeping:
            return
        with self._lock:
            if self._now() - self._asked <= ASKED_SECONDS:
                self._steps.append(self._teller.told(step))
                return
            self.keeping = False
            self._steps.clear()
        if not self._traced:
            self._bus.trace(on=False)
