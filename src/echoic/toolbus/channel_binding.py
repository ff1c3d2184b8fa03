"""What joins a bus with event channels: notes, tools, and the steps of the script.

    note channel "prices" as price(<str>,<real>)     such notes go to the channel, and its events come as such notes
    tool feed is { kind = "channel" ... }            the channel's events are the tool's (`channel_line.py`)
    bus.NAME                                         a channel with an event for every atom that is executed

A channel that nobody has created is created here, with a type made of the pattern.
"""

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from echoic.errors import ChannelExistsError, ChannelNotFoundError, EchoicError, RefusedError
from echoic.formats import event
from echoic.hub import Channel, Hub, Source
from echoic.scripts.running.messages import Input, Note, Start, Step
from echoic.scripts.syntax.tree import Script, ToolDefinition
from echoic.terms import Term, Value, accepts
from echoic.terms.text import show
from echoic.toolbus.channel_line import ChannelLine
from echoic.toolbus.channel_terms import EventMaker, format_of_pattern, term_of_event
from echoic.toolbus.line import Audience, Line
from echoic.toolbus.publisher import Publisher

if TYPE_CHECKING:
    from echoic.hub import Sink
    from echoic.hub.eager_sink import EagerSink

__all__ = ["CHANNEL_KIND", "ChannelBinding", "StepTaken"]

CHANNEL_KIND: Final = "channel"
STEPS_PREFIX: Final = "bus."
ARGUMENT_CHARACTERS_MAX: Final = 1000
log: Final = logging.getLogger("echoic.toolbus")


@event
class StepTaken:
    """An atom that was executed."""

    number: int
    """How many were before it."""
    process: int
    name: str
    """Of the process."""
    atom: str
    arguments: str
    """As text, what is very long cut off."""
    file: str
    line: int
    partner: int
    """The process at the other side of a handshake, 0 where there is none."""
    partner_line: int
    at: float
    """When, in seconds since 1970; with a virtual clock since the start."""


class Bound(Audience, Protocol):
    """A bus, as this module sees it."""

    def feed(self, input: Input) -> None:  # noqa: A002 - it is one
        """Give the machine an input."""


@dataclass(slots=True)
class NoteChannel:
    """A channel that notes are bound to."""

    pattern: Value
    channel: Channel
    source: Source
    maker: EventMaker
    sink: "Sink | EagerSink | None" = None


class ChannelBinding:
    """Joins a bus with the channels of a hub."""

    def __init__(self, hub: Hub, name: str, script: Script, bus: Bound, *, virtual: bool = False) -> None:
        """Begin with nothing.

        Args:
            hub: Where the channels are.
            name: Of the bus.
            script: Says which channels.
            bus: What is joined with them.
            virtual: Whether the time of steps is none of this world.
        """
        self._hub = hub
        self._name = name
        self._script = script
        self._bus = bus
        self._tools = {tool.name: tool for tool in script.tools if tool.feature("kind") == CHANNEL_KIND}
        self._epoch_ns = 0 if virtual else time.time_ns() - time.monotonic_ns()
        self._publisher = Publisher(f"echoic-bus-publish-{name}", self._tell_overflow)
        self._notes: list[NoteChannel] = []
        self._steps: Source | None = None
        self._created: list[str] = []

    def start(self, executed: frozenset[str]) -> None:
        """Open what the script names; tools that it does not execute are there at once.

        Raises:
            EchoicError: A channel cannot be opened or created.
        """
        self._steps = self._create_steps().source()
        for each in self._script.channel_notes:
            channel = self._open(each.channel, each.pattern)
            format = channel.format or format_of_pattern(each.pattern)
            note = NoteChannel(each.pattern, channel, channel.source(), EventMaker(format))
            note.sink = channel.subscribe(self._taker(note))
            self._notes.append(note)
        for tool in self._tools.values():
            if tool.name not in executed:
                self._bus.arrived(self._line(tool), None)

    def make_line(self, start: Start) -> Line | None:
        """Return the line of a tool that is a channel, None for others.

        Raises:
            EchoicError: There is no such channel, or the code of its derivation is wrong.
        """
        tool = self._tools.get(start.name)
        return None if tool is None else self._line(tool)

    def announce(self, value: Value) -> None:
        """Publish a note on the channels that it is bound to."""
        for note in self._notes:
            if accepts(note.pattern, value):
                self._publisher.do(lambda note=note: note.source.submit(note.maker.event(value)))  # type: ignore[misc] # mypy#12557

    def tell_step(self, step: Step) -> None:
        """Publish a step, if anybody listens."""
        steps = self._steps
        if steps is not None and steps.heard:
            self._publisher.do(lambda: steps.submit(self._step_taken(step)))

    def close(self) -> None:
        """Publish what is waiting, and leave the channels."""
        self._publisher.close()
        with contextlib.suppress(EchoicError):  # the hub may be closed by now, and all of it with it
            for note in self._notes:
                if note.sink is not None:
                    note.sink.close()
                note.source.close()
            if self._steps is not None:
                self._steps.flush()
                self._steps.close()
            for name in self._created:
                self._hub.remove(name)

    def _create_steps(self) -> Channel:
        for number in range(1, 1000):
            name = f"{STEPS_PREFIX}{self._name}" if number == 1 else f"{STEPS_PREFIX}{self._name}.{number}"
            try:
                channel = self._hub.create(name, StepTaken)
            except ChannelExistsError:
                continue
            self._created.append(name)
            return channel
        raise ChannelExistsError(f"there are too many buses called `{self._name}`")

    def _open(self, name: str, pattern: Value) -> Channel:
        try:
            return self._hub.open(name)
        except ChannelNotFoundError:
            channel = self._hub.create(name, format_of_pattern(pattern))
            self._created.append(name)
            return channel

    def _line(self, tool: ToolDefinition) -> Line:
        name = tool.feature("channel")
        if not name:
            raise RefusedError(f"tool `{tool.name}` is of the kind channel, and names none")
        return ChannelLine(tool.name, self._hub.open(name), tool.feature("derive"), self._bus, self._publisher)

    def _taker(self, note: NoteChannel) -> Callable[[object], None]:
        symbol = note.pattern.name if isinstance(note.pattern, Term) else ""

        def take(submitted: object) -> None:
            if self._publisher.is_here:
                return  # a note of this very script
            try:
                value = term_of_event(submitted, symbol, note.pattern)
            except EchoicError as error:
                log.warning("an event of `%s` cannot be a note: %s", note.channel.name, error)
                return
            if accepts(note.pattern, value):
                self._bus.feed(Note(value))

        return take

    def _step_taken(self, step: Step) -> StepTaken:
        arguments = ",".join(show(each)[:ARGUMENT_CHARACTERS_MAX] for each in step.arguments)
        return StepTaken(
            number=step.number,
            process=step.process,
            name=step.name,
            atom=step.atom,
            arguments=arguments,
            file=step.span.file,
            line=step.span.line,
            partner=step.partner or 0,
            partner_line=step.partner_span.line if step.partner_span is not None else 0,
            at=(step.at_ns + self._epoch_ns) / 1e9,
        )

    def _tell_overflow(self) -> None:
        log.warning("channels take less than bus `%s` does: events of steps or notes are dropped", self._name)
