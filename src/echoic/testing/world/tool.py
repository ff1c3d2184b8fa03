"""Tools of a world: processes that connect to the bus, say and answer something, crash, and come back as others.

sensor     has an event now and then, with a value that stays with it until the bus says that nobody needs it
worker     answers questions, after it has got the value that the question refers to
"""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from echoic.errors import EchoicError
from echoic.terms import ReferenceKind, Term, Value
from echoic.testing.network import MILLISECOND, SECOND, End
from echoic.testing.surroundings import Surroundings
from echoic.testing.world.bus_book import BusBook
from echoic.testing.world.tool_line import ToolLine, messages_in, send
from echoic.toolbus.errands import Errands, Pending
from echoic.toolbus.greeting import ToolGreeting
from echoic.toolbus.protocol import REFERRING, Hello, Message, MessageKind, Resumption
from echoic.toolbus.references.cutting import sign, unsign
from echoic.toolbus.references.words import (
    Put,
    decode_finished,
    decode_put,
    encode_acknowledgement,
    encode_put,
)
from echoic.wire import FrameReader

__all__ = ["SimulatedTool", "ToolName"]

ToolName: TypeAlias = Literal["sensor", "worker"]
REDIAL_NS: Final = (20 * MILLISECOND, 500 * MILLISECOND)
WORK_NS: Final = (1 * MILLISECOND, 300 * MILLISECOND)
TICK_NS: Final = (100 * MILLISECOND, 1500 * MILLISECOND)
AWAY_NS_MAX: Final = 6 * SECOND
GREETING_NS: Final = 5 * SECOND
VALUE_BYTES: Final = 1000


class SimulatedTool:
    """One life of a tool's process."""

    def __init__(
        self, around: Surroundings, address: str, bus: str, name: ToolName, book: BusBook, pace: int = 1
    ) -> None:
        self.address = address
        self.alive = True
        self.frozen_until_ns = 0
        self.name: Final = name
        self.number = 0
        self.ticks = 0
        self.quiet = False
        self.on_end: Callable[[], None] = lambda: None
        """Called when the bus does not want this process any more: another one is to be started."""
        self._around = around
        self._bus = bus
        self._book = book
        self._line = ToolLine()
        self._errands = Errands(self._say)
        self._puts: list[Put] = []
        self._variables = 0
        self._away_ns = around.clock.now_ns
        self.pending: Pending | None = None
        """Its last event, which the script may have yet to acknowledge."""
        self._greeting: ToolGreeting | None = None
        self._reader = FrameReader()
        around.network.place(self)
        self._dial()
        self._tick_ns = (TICK_NS[0] * pace, TICK_NS[1] * pace)
        if name == "sensor":
            self._after(self._tick_ns, self._tick)

    @property
    def connected(self) -> bool:
        """Whether the bus knows it, and can be spoken to."""
        return self._line.end is not None

    def end(self) -> None:
        """Let the process end."""
        if self.alive:
            self._around.note(f"{self.address}: {self.name} ({self.number}) ends")
            self._around.network.crash(self)
            self._errands.close("the process has ended")
            self._book.kept.pop(self.number, None)
            self.on_end()

    def accepted(self, end: End) -> None:
        """Send away whoever connects: nobody has a reason to."""
        end.close()

    def arrived(self, end: End, data: bytes) -> None:
        """Hear what the bus says."""
        try:
            for message in messages_in(self._reader, data):
                if self._greeting is None or not self.alive:
                    return
                if not self._greeting.done:
                    self._greet(end, message)
                else:
                    heard = self._line.hear(message)
                    if heard is not None:
                        self._hear(heard)
        except EchoicError as error:
            self._around.note(f"{self.address}: {self.name} is not wanted: {error}")
            self.end()

    def lost(self, end: End) -> None:
        """Learn that the connection broke; dial again, as long as the bus may wait."""
        if end in (self._line.end, self._line.returning):
            self._line.end = self._line.returning = None
            self._away_ns = self._around.clock.now_ns
        self._greeting = None
        self._again()

    def _after(self, between_ns: tuple[int, int], action: Callable[[], None]) -> None:
        def act() -> None:
            if self.alive:
                action()

        self._around.clock.after(self._around.random.randrange(*between_ns), act)

    def _again(self) -> None:
        if self.alive and self.number and self._around.clock.now_ns - self._away_ns > AWAY_NS_MAX:
            self.end()
        elif self.alive:
            self._after(REDIAL_NS, self._dial)

    def _dial(self) -> None:
        self._around.network.dial(self, self._bus, self._connected, lambda refused: self._again())  # noqa: ARG005

    def _connected(self, end: End) -> None:
        back = Resumption(self.number, 1, self._line.session.heard) if self.number else None
        greeting = self._greeting = ToolGreeting(Hello(self.name, resumption=back))
        self._reader = FrameReader()
        send(end, [greeting.opening])

        def expire() -> None:
            if self._greeting is greeting and not greeting.done and self.alive:
                end.close()
                self.lost(end)

        self._around.clock.after(GREETING_NS, expire)

    def _greet(self, end: End, message: Message) -> None:
        greeting = self._greeting
        if greeting is None:
            return
        send(end, greeting.receive(message))
        if greeting.done and not self.number:
            self.number = greeting.number
            self._line.end = end
        elif greeting.done:
            self._line.returning = end

    def _say(self, message: Message) -> None:
        """Say something, with word of the values before that it refers to."""
        values, references = sign(message.values)
        puts = [encode_put(Put.of(reference)) for reference in references]
        flags = REFERRING if references else 0
        self._line.say(*puts, Message(message.kind, message.transaction, values, flags))

    def _tick(self) -> None:
        if self.number and not self.quiet:
            self.ticks += 1
            self._variables += 1
            reference = Put(
                0, self._variables, self.number, (), (), ReferenceKind.STR, "", 0, VALUE_BYTES, epoch=1
            ).reference
            self._book.keep(self.number, self._variables)
            self.pending = self._errands.send(MessageKind.EVENT, "tick", (Term("tick", self.ticks, reference),))
        self._after(self._tick_ns, self._tick)

    def _hear(self, message: Message) -> None:
        match message.kind:
            case MessageKind.PUT:
                self._puts.append(decode_put(message))
            case MessageKind.FIN:
                for variable in decode_finished(message):
                    self._book.finish(self.number, variable)
            case MessageKind.EVAL:
                self._answer(message)
            case MessageKind.ACK_EVENT:
                self._book.acknowledge(self.number, _first_of(message.values))
                self._fetched(self._take_puts())
                self._errands.answered(message)
            case _:
                pass

    def _take_puts(self) -> list[Put]:
        """Return what the message that has come refers to."""
        puts, self._puts = self._puts, []
        return puts

    def _fetched(self, puts: list[Put]) -> None:
        """Have values that others keep, and say so."""
        for put in puts:
            if put.source in self._book.kept:
                self._book.fetch(put.source, put.variable)
        self._line.say(*(encode_acknowledgement(delivery) for delivery in sorted({put.transaction for put in puts})))

    def _answer(self, message: Message) -> None:
        """Answer a question, when the values that it refers to are here and some time has passed."""
        self._book.question(self.number, message.transaction)
        puts = self._take_puts()
        values = unsign(message.values, [put.reference for put in puts])

        def answer() -> None:
            self._fetched(puts)
            square = Term("square", _first_of(values) ** 2)
            self._say(Message(MessageKind.VALUE, message.transaction, (square,)))

        self._after(WORK_NS, answer)


def _first_of(values: tuple[Value, ...]) -> int:
    """Return the number that the first of some terms begins with."""
    match values:
        case (Term(args=(int(number), *_)), *_):
            return number
        case _:
            raise AssertionError(f"expected a term with a number, got {values}")
