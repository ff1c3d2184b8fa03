"""The bus of a world: a real script machine, and what stands between it and its tools, without threads.

    tool --- frames, greeting, session ---> Transactions ---> Machine ---> Transactions --- session ---> tool
             PUT, ACK -------------------> Registry: what is referred to, FIN when nobody does any more

A tool whose connection breaks may come back for `LEASE_NS`; after that it is lost. The script lets the events of every
sensor be worked on by any worker, and gives up on workers that take too long.
"""

import itertools
from collections.abc import Callable
from random import Random
from typing import Final

from echoic.errors import EchoicError, RefusedError
from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine
from echoic.scripts.running.messages import (
    Connected,
    Delivered,
    Dismiss,
    Effect,
    Fetched,
    Halted,
    Lost,
    Said,
    Step,
    Tell,
)
from echoic.scripts.syntax import load
from echoic.terms import UNDEFINED, Value
from echoic.testing.ledger import check
from echoic.testing.network import MILLISECOND, SECOND, End
from echoic.testing.surroundings import Surroundings
from echoic.testing.world.bus_book import BusBook
from echoic.testing.world.tool import SimulatedTool, ToolName
from echoic.testing.world.tool_line import ToolLine, messages_in, send
from echoic.toolbus.greeting import BusGreeting, refusal
from echoic.toolbus.protocol import FROM_TOOL, REFERRING, TO_TOOL, Hello, Message, MessageKind
from echoic.toolbus.references.cutting import lost_value, sign, unsign
from echoic.toolbus.references.registry import Registry
from echoic.toolbus.references.words import (
    Put,
    decode_acknowledgement,
    decode_put,
    encode_finished,
    encode_put,
    encode_seen,
)
from echoic.toolbus.transactions import Transactions
from echoic.wire import FrameReader

__all__ = ["SCRIPT", "WorldBus"]

LEASE_NS: Final = 5 * SECOND
TURN_STEPS_MAX: Final = 512
RESTART_NS: Final = (50 * MILLISECOND, 2 * SECOND)
SCRIPT: Final = """
tool sensor is { command = "none" }
tool worker is { command = "none" }

process SENSOR(S : sensor) is
  let N : int, V : term in
    ( ( rec-event(S, tick(N?, V?)) . snd-msg(job(S, N, V)) .
        ( rec-msg(done(S, N)) + tau delay(sec(3)) ) . snd-ack-event(S, tick(N, V)) ) * delta )
    >> rec-disconnect(S)
  endlet

process WORKER(W : worker) is
  let S : sensor, N : int, V : term, Q : int in
    ( ( rec-msg(job(S?, N?, V?)) . snd-eval(W, square(N, V)) . rec-value(W, square(Q?)) .
        ( snd-msg(done(S, N)) + tau delay(sec(1)) ) ) * delta )
    >> rec-disconnect(W)
  endlet

process DOOR is
  let S : sensor, W : worker, P : int in
    ( rec-connect(S?) . create(SENSOR(S), P?) + rec-connect(W?) . create(WORKER(W), P?) ) * delta
  endlet

toolbus(DOOR)
"""


class BusEnd:
    """The bus's end of one conversation."""

    def __init__(self, name: str, number: int) -> None:
        self.name: Final = name
        self.number: Final = number
        self.line: Final = ToolLine()
        self.transactions: Final = Transactions()
        self.puts: list[Value] = []
        self.cut_off = 0
        """How often its connection broke."""


class WorldBus:
    """A bus and its tools."""

    def __init__(self, around: Surroundings, address: str, tools: tuple[ToolName, ...], pace: int = 1) -> None:
        """Begin with some tools; sensors have events `pace` times as seldom as usual."""
        self.address = address
        self.alive = True
        self.frozen_until_ns = 0
        self.book: Final = BusBook()
        self.tools: Final[dict[str, SimulatedTool]] = {}
        self._around = around
        self._pace = pace
        self._greetings: dict[End, tuple[BusGreeting, FrameReader]] = {}
        self._ends: dict[End, tuple[BusEnd, FrameReader]] = {}
        self._lines: dict[int, BusEnd] = {}
        self._registry = Registry()
        self._holds: dict[tuple[int, int], int] = {}
        self._deliveries = itertools.count(1)
        self._armed_ns = -1
        self._machine = Machine(
            compile(load(SCRIPT, "world")),
            chance=Random(around.random.getrandbits(32)),
            now_ns=around.clock.now_ns,
            traced=True,
        )
        around.network.place(self)
        self._machine.start()
        self._turn()
        for place, name in enumerate(tools):
            self._start_tool(f"tool{place}:7500", name)

    def accepted(self, end: End) -> None:
        """Greet somebody."""
        self._greetings[end] = (BusGreeting(self._admit), FrameReader())

    def arrived(self, end: End, data: bytes) -> None:
        """Hear a tool, or somebody who says that he is one."""
        try:
            _, reader = self._greetings.get(end) or self._ends.get(end) or (None, FrameReader())
            for message in messages_in(reader, data):
                if end in self._greetings:
                    self._greet(end, *self._greetings[end], message)
                elif end in self._ends:
                    self._hear(self._ends[end][0], message)
        except EchoicError as error:
            self._around.note(f"the bus sends somebody away: {error}")
            self._greetings.pop(end, None)
            send(end, [refusal(str(error))])
            end.close()
        self._turn()

    def lost(self, end: End) -> None:
        """Learn that a connection broke: its tool may come back for a while."""
        self._greetings.pop(end, None)
        found = self._ends.pop(end, None)
        if found is None or found[0].line.end is not end:
            return
        line = found[0]
        line.line.end = None
        line.cut_off += 1
        times = line.cut_off

        def expire() -> None:
            if line.cut_off == times and line.line.end is None and line.number in self._lines:
                self._lose(line, "it did not come back")
                self._turn()

        self._around.clock.after(LEASE_NS, expire)

    def crash_tool(self) -> None:
        """Let the process of a tool end; another one is started in its place."""
        self.tools[self._around.random.choice(sorted(self.tools))].end()

    def begin_progress(self) -> Callable[[], None]:
        """Return what checks that an event of every sensor was acknowledged since."""
        before = {address: self._acknowledged(address) for address in self.tools}

        def check_progress() -> None:
            sensors = [address for address, tool in self.tools.items() if tool.name == "sensor"]
            waiting = [address for address in sensors if self._acknowledged(address) == before[address]]
            check(not waiting, f"the bus does not go on for {waiting}: {self._machine.waits()}")

        return check_progress

    def rest(self) -> None:
        """Let sensors have no more events."""
        for tool in self.tools.values():
            tool.quiet = True

    def check_bounds(self) -> None:
        """Check that nothing is kept for tools that are gone, nor more values than are under way.

        Raises:
            AssertionError: Something is.
        """
        statistics = self._registry.statistics()
        check(statistics.variables <= 40 * max(1, len(self.tools)), f"the bus refers to {statistics.variables} values")
        check(len(self._lines) <= 3 * len(self.tools), f"the bus has {len(self._lines)} conversations")

    def _acknowledged(self, address: str) -> tuple[int, int]:
        number = self.tools[address].number
        return number, self.book.acknowledged[number] if number else 0

    def _start_tool(self, address: str, name: ToolName) -> None:
        tool = self.tools[address] = SimulatedTool(self._around, address, self.address, name, self.book, self._pace)

        def again() -> None:
            self._around.clock.after(
                self._around.random.randrange(*RESTART_NS), lambda: self._start_tool(address, name)
            )

        tool.on_end = again

    def _admit(self, hello: Hello) -> Value:
        back = hello.resumption
        if back is not None and back.number not in self._lines:
            raise RefusedError(f"tool `{hello.name}` comes back too late, or was never here")
        if back is not None:
            self._drop(self._lines[back.number])
        return UNDEFINED

    def _greet(self, end: End, greeting: BusGreeting, reader: FrameReader, message: Message) -> None:
        """Take a message of a greeting, and the tool when it is done."""
        send(end, greeting.receive(message))
        if greeting.done and greeting.hello is not None:
            del self._greetings[end]
            self._welcome(end, greeting.hello, reader)

    def _drop(self, line: BusEnd) -> None:
        """Let go of a connection whose tool has made another one."""
        if line.line.end is not None:
            end, line.line.end = line.line.end, None
            self._ends.pop(end, None)
            end.close()

    def _welcome(self, end: End, hello: Hello, reader: FrameReader) -> None:
        back = hello.resumption
        if back is None:
            number = self._machine.receive(Connected(hello.name), self._around.clock.now_ns)
            check(number is not None, f"the machine does not want tool `{hello.name}`")
            line = self._lines[number or 0] = BusEnd(hello.name, number or 0)
            send(end, [Message(MessageKind.WELCOME, 0, (line.number,))])
        else:
            known = self._lines.get(back.number)
            if known is None:
                raise RefusedError(f"tool `{hello.name}` comes back too late")
            line = known
            session = line.line.session
            missed = session.again(back.heard)
            send(end, [Message(MessageKind.WELCOME, 0, (line.number,)), encode_seen(session.heard), *missed])
        line.line.end = end
        self._ends[end] = (line, reader)
        self._around.note(f"the bus has {line.name} ({line.number}), {'back' if back is not None else 'anew'}")

    def _hear(self, line: BusEnd, message: Message) -> None:
        """Take one message of a tool."""
        heard = line.line.hear(message)
        if heard is None or line.number not in self._lines:
            return
        now_ns = self._around.clock.now_ns
        match heard.kind:
            case MessageKind.PUT:
                line.puts.append(self._registry.arrive(line.number, decode_put(heard), now_ns))
            case MessageKind.ACK:
                self._delivered(line.number, decode_acknowledgement(heard))
            case kind if kind in FROM_TOOL:
                puts, line.puts = line.puts, []
                values = unsign(heard.values, puts) if heard.flags & REFERRING else heard.values
                if line.transactions.said(FROM_TOOL[kind], heard.transaction, values):
                    self._machine.receive(Said(line.number, FROM_TOOL[kind], values), now_ns)
            case _:
                pass

    def _delivered(self, number: int, delivery: int) -> None:
        self._registry.acked(number, delivery)
        hold = self._holds.pop((number, delivery), None)
        if hold is not None:
            self._machine.receive(Delivered(hold), self._around.clock.now_ns)

    def _turn(self) -> None:
        """Let the machine do what it can, and do what it says."""
        now_ns = self._around.clock.now_ns
        more = self._machine.run(TURN_STEPS_MAX, now_ns)
        for effect in self._machine.take_effects():
            self._perform(effect)
        for released in self._registry.finished():
            owner = self._lines.get(released.owner)
            if owner is not None:
                owner.line.say(*encode_finished(released.variables))
        due_ns = now_ns if more else self._machine.deadline_ns()
        if due_ns is not None and not now_ns <= self._armed_ns <= due_ns:
            self._armed_ns = due_ns
            self._around.clock.after(max(0, due_ns - now_ns), self._ring)

    def _ring(self) -> None:
        self._armed_ns = -1
        self._turn()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Step():
                self.book.step(effect)
                self._around.count(effect.number, effect.process)
            case Tell():
                self._tell(effect)
            case Dismiss(number):
                self._part(number)
            case Halted():
                check(False, "the bus has ended")
            case _:
                pass

    def _tell(self, tell: Tell) -> None:
        line = self._lines.get(tell.tool)
        if line is None:
            if tell.hold is not None:
                self._machine.receive(Delivered(tell.hold), self._around.clock.now_ns)
            return
        transaction = line.transactions.told(tell.kind, tell.values)
        values, references = sign(tell.values)
        puts: list[Message] = []
        if references:
            delivery = next(self._deliveries)
            self._registry.sent(line.number, delivery, tell.values)
            puts = [encode_put(Put.of(reference, delivery)) for reference in references]
            if tell.hold is not None:
                self._holds[line.number, delivery] = tell.hold
        line.line.say(*puts, Message(TO_TOOL[tell.kind], transaction, values, REFERRING if references else 0))

    def _lose(self, line: BusEnd, reason: str) -> None:
        """Learn that a tool is gone, with all of its values."""
        self._around.note(f"the bus has lost {line.name} ({line.number}): {reason}")
        now_ns = self._around.clock.now_ns
        self._machine.receive(Lost(line.number, reason), now_ns)
        self._forget(line)

    def _part(self, number: int) -> None:
        line = self._lines.get(number)
        if line is not None:
            self._drop(line)
            self._forget(line)

    def _forget(self, line: BusEnd) -> None:
        self._lines.pop(line.number, None)
        now_ns = self._around.clock.now_ns
        for delivery in self._registry.cancel(line.number):
            self._delivered(line.number, delivery)
        gone = lost_value(f"tool {line.number}, which had it, is gone")
        for reference in self._registry.lost(line.number):
            line.transactions.fetched(reference, gone)
            for other in self._lines.values():
                other.transactions.fetched(reference, gone)
            self._machine.receive(Fetched(reference, gone), now_ns)
        line.puts.clear()
