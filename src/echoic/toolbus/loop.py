"""The loop of a bus: one thread in which its machine lives.

    lines, any thread --> inbox --> switchboard --> machine --> effects --> lines, processes, terminal

A turn takes all that is unheard, lets the machine do some hundred steps, and does what it says, after the lock on the
machine is released. A tool that floods the bus is not read from once it has so much unheard; the others do not notice.
"""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from echoic.scripts.running.machine import Machine
from echoic.scripts.running.messages import Effect, Fetched, FromTool, Input
from echoic.terms import Value
from echoic.toolbus.clock import Clock
from echoic.toolbus.custody import Custody
from echoic.toolbus.delivery import Delivery
from echoic.toolbus.line import Line
from echoic.toolbus.options import ValueOptions
from echoic.toolbus.switchboard import Conversation, Switchboard

__all__ = ["BusLoop"]

STEPS_MAX: Final = 512
IDLE_SECONDS: Final = 60.0
ROOM_SECONDS: Final = 0.2
FED_MAX: Final = 100_000
FED_SECONDS: Final = 0.005
NS: Final = 1_000_000_000
log: Final = logging.getLogger("echoic.toolbus")


@dataclass(frozen=True, slots=True)
class Arrived:
    """A tool has greeted."""

    line: Line
    instance: int | None


@dataclass(frozen=True, slots=True)
class Heard:
    """A tool has said something."""

    line: Line
    kind: FromTool
    transaction: int
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Gone:
    """A line is dead."""

    line: Line
    reason: str


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool that was cut off was started again."""

    line: Line


@dataclass(frozen=True, slots=True)
class Leaving:
    """A tool has said its last word."""

    line: Line
    act: Callable[[], None]


Item = Arrived | Heard | Gone | Returned | Leaving | Input
OnInput = Callable[[Input, int], None]


class BusLoop:
    """Drives a machine."""

    def __init__(
        self,
        machine: Machine,
        clock: Clock,
        heard_max: int,
        on_late: Callable[[Conversation, str], None],
        busy: Callable[[], bool],
        values: ValueOptions,
    ) -> None:
        """Begin; nothing runs before `turn` or `start`.

        Args:
            machine: What decides.
            clock: What time it is.
            heard_max: How much of one tool may be unheard.
            on_late: Called when a tool answers what nobody waits for.
            busy: Whether somebody is at work who will be heard: a virtual clock stands still meanwhile.
            values: How large values get to who needs them.
        """
        self.lock: Final = threading.RLock()
        """Held while the machine is used."""
        self.machine: Final = machine
        self.custody: Final = Custody(self.feed, self.wake, values)
        self.delivery: Final = Delivery(self.custody, self.feed, self.wake)
        self.switchboard: Final = Switchboard(machine, on_late, self.custody, self.delivery)
        self.switchboard.on_closed = self.forget
        self.perform: Callable[[Effect], None] = _ignore
        """Does what the machine says."""
        self.started = False
        self._clock = clock
        self._heard_max = heard_max
        self._busy = busy
        self._inbox: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._rooms: dict[Line, threading.Semaphore] = {}
        self._instances: dict[Line, int | None] = {}
        self._departed: deque[Gone] = deque()
        """Lines whose end the machine learns of after its turn, so that it can take what their tools said before."""
        self._closing = False
        self._thread: threading.Thread | None = None

    # What lines say, in any thread.

    def arrived(self, line: Line, instance: int | None) -> None:
        """Take in a tool that has greeted."""
        self._rooms[line] = threading.Semaphore(self._heard_max)
        self._instances[line] = instance
        self._inbox.put(Arrived(line, instance))

    def heard(self, line: Line, kind: FromTool, transaction: int, values: tuple[Value, ...]) -> None:
        """Learn what a tool says; waits while too much of it is unheard."""
        room = self._rooms.get(line)
        while room is not None and not self.is_here:
            if room.acquire(timeout=ROOM_SECONDS):
                break
            room = self._rooms.get(line) if not self._closing else None
        self._inbox.put(Heard(line, kind, transaction, values))

    def gone(self, line: Line, reason: str) -> None:
        """Learn that a line is dead."""
        self._rooms.pop(line, None)
        self._instances.pop(line, None)
        self._inbox.put(Gone(line, reason))

    def leaving(self, line: Line, act: Callable[[], None]) -> None:
        """Learn that a tool has said its last word, and how to let it go."""
        self._inbox.put(Leaving(line, act))

    def returned(self, line: Line) -> None:
        """Learn that a tool that was cut off was started again."""
        self._inbox.put(Returned(line))

    def feed(self, input: Input) -> None:  # noqa: A002 - it is one
        """Give the machine an input that is of no line; waits while very many wait already."""
        while self._inbox.qsize() > FED_MAX and not self.is_here and not self._closing:
            time.sleep(FED_SECONDS)
        self._inbox.put(input)

    def wake(self) -> None:
        """Let the loop take a turn; at any moment and in any thread, also that of the garbage collector."""
        self._inbox.put(None)

    def forget(self, line: Line) -> None:
        """Keep nothing about a line that is closed."""
        self._rooms.pop(line, None)
        self._instances.pop(line, None)

    def instance_of(self, line: Line) -> int | None:
        """Return what the launcher gave a tool, None where it was not started, or is gone."""
        return self._instances.get(line)

    @property
    def unheard(self) -> int:
        """How much waits for the machine."""
        return self._inbox.qsize()

    @property
    def is_here(self) -> bool:
        """Whether the caller's thread is that of the loop, which must not wait for itself."""
        return threading.current_thread() is self._thread

    # What drives the machine, in one thread.

    def begin(self) -> None:
        """Start the machine, once."""
        if not self.started:
            self.started = True
            with self.lock:
                self.machine.start()
                effects = self.machine.take_effects()
            self._do(effects)

    def turn(self, steps_max: int = STEPS_MAX) -> bool:
        """Hear what is unheard and let the machine do some steps; return whether it can do more at once."""
        now_ns = self._clock.now_ns()
        with self.lock:
            self._hear_all(now_ns)
            more = self.machine.run(steps_max, now_ns)
            while self._departed and not self.machine.halted:
                more = True
                gone = self._departed.popleft()
                self.switchboard.gone(gone.line, gone.reason, now_ns)
            effects = self.machine.take_effects()
        self._do(effects)
        self.delivery.turn()
        self.custody.turn()
        return more and not self.machine.halted

    def run(self, name: str, done: Callable[[BaseException | None], None]) -> None:
        """Drive the machine in a thread of its own until it halts; then call `done` in that thread."""
        self._thread = threading.Thread(target=self._run, args=(done,), name=name, daemon=True)
        self._thread.start()

    def hear_now(self) -> None:
        """Hear what is unheard, without a step; for a bus that does not run by itself."""
        with self.lock:
            self._hear_all(self._clock.now_ns())
            effects = self.machine.take_effects()
        self._do(effects)

    def wait_for_news(self, seconds: float) -> bool:
        """Wait until something is unheard, or for some time; a virtual clock skips what nobody needs.

        Returns:
            Whether there is something to do.
        """
        if self.machine.halted:
            return False
        if self._departed:
            return True
        due_ns = self.machine.deadline_ns()
        if due_ns is not None:
            left_ns = due_ns - self._clock.now_ns()
            if left_ns <= 0:
                return True
            if not self._busy() and self._inbox.empty() and self._clock.skip_to(due_ns):
                return True
            seconds = min(seconds, left_ns / NS)
        try:
            item = self._inbox.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return due_ns is not None and due_ns <= self._clock.now_ns()
        if item is not None:
            with self.lock:
                self._take(item, self._clock.now_ns())
        return True

    @property
    def busy(self) -> bool:
        """Whether a tool has something to answer, or values are on their way."""
        return self.switchboard.busy or self.custody.busy or self.delivery.busy

    def settle(self) -> None:
        """Wait until everybody has what is on its way to him, after the last turn; not for long."""
        self.custody.settle(self.delivery.turn)

    def stop(self) -> None:
        """End the thread."""
        self._closing = True
        self._inbox.put(None)

    def join(self, seconds: float) -> None:
        """Wait for the end of the thread."""
        if self._thread is not None and not self.is_here:
            self._thread.join(seconds)

    def _run(self, done: Callable[[BaseException | None], None]) -> None:
        failure: BaseException | None = None
        try:
            self.begin()
            while not self._closing and not self.machine.halted:
                if not self.turn():
                    self.wait_for_news(IDLE_SECONDS)
        except Exception as error:  # whatever it is, nobody else would notice
            log.exception("the bus has failed")
            failure = error
        self._closing = True  # nobody needs to wait for room any more
        done(failure)

    def _hear_all(self, now_ns: int) -> None:
        inbox = self._inbox
        for _ in range(inbox.qsize()):
            if self._closing:
                return
            item = inbox.get()
            if item is not None:
                self._take(item, now_ns)

    def _take(self, item: Item, now_ns: int) -> None:
        if self.machine.halted:
            return
        match item:
            case Arrived(line, instance):
                self.switchboard.arrived(line, instance, now_ns)
            case Heard(line, kind, transaction, values):
                self.switchboard.heard(line, kind, transaction, values, now_ns)
                room = self._rooms.get(line)
                if room is not None:
                    room.release()
            case Gone():
                self._departed.append(item)
            case Leaving(line, act):
                self.switchboard.leaving(line, act)
            case Returned(line):
                self.switchboard.returned(line, now_ns)
            case Fetched():
                self.switchboard.fetched(item, now_ns)
            case _:
                self.machine.receive(item, now_ns)

    def _do(self, effects: list[Effect]) -> None:
        """Do what the machine says; the list is empty then, so that nothing is referred to by what is done."""
        effects.reverse()
        while effects:
            self.perform(effects.pop())


def _ignore(effect: Effect) -> None:
    """Do nothing about an effect: nobody has said yet what to do."""
