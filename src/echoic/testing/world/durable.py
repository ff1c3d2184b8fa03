"""Durable sinks in a world: the hub's own feed and the journal's own reader, and a program that may lose its memory.

    careful     keeps its position with what it has handled: every event once, whatever crashes
    named       leaves word of its position at the recorder: after a crash some come again, none is left out

All of them must see the same events at the same places of the journal, and never one that the journal does not have
when its disk has lost power.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from echoic.channels import ChannelId, Concentrator, Describe, Described, Fetch, Fetched, Mark, Marked, Message, Refused
from echoic.hub.durable import OneChunk
from echoic.hub.feed import Feed
from echoic.hub.remote_shelf import Recorder, chunk_of
from echoic.recorder import PartitionReader, Recorded
from echoic.testing.ledger import check
from echoic.testing.network import MILLISECOND
from echoic.testing.simulated_hub import SimulatedHub
from echoic.testing.surroundings import Surroundings

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard
    from echoic.recorder import Shelf

__all__ = ["JournalOrder", "SimulatedDurable"]

LOOK_NS: Final = 100 * MILLISECOND
RETRY_NS: Final = 300 * MILLISECOND
MARK_SHARE: Final = 0.3


class JournalOrder:
    """Which event is at which place of the journal, as far as any reader has seen it."""

    def __init__(self) -> None:
        self.events: Final[list[tuple[int, int]]] = []

    def see(self, who: str, sequence: int, event: tuple[int, int]) -> None:
        """Let a reader see an event, given by its source and number.

        Raises:
            AssertionError: Others saw another one there, or nobody saw what was before.
        """
        check(
            sequence <= len(self.events),
            "{} sees place {} of the journal, seen are {}",
            who,
            sequence,
            len(self.events),
        )
        if sequence == len(self.events):
            self.events.append(event)
        known = self.events[sequence]
        check(known == event, "{} sees {} at place {} of the journal, others saw {}", who, event, sequence, known)


class Program:
    """What a durable sink has done; its hub may be started again, and goes on with it."""

    def __init__(self, name: str, *, careful: bool, look_ns: int = LOOK_NS) -> None:
        self.name: Final = name
        self.look_ns: Final = look_ns
        self.careful: Final = careful
        self.position = 0
        self.handled = 0


class SimulatedDurable:
    """A durable sink, from the start of its hub to the end of it."""

    def __init__(
        self, around: Surroundings, hub: SimulatedHub, id: ChannelId, order: JournalOrder, program: Program
    ) -> None:
        self.hub: Final = hub
        self.program: Final = program
        self._around = around
        self._id = id
        self._order = order
        self._feed: Feed | None = None
        self._reader: PartitionReader | None = None
        self._shelf = OneChunk(id.name)
        self._recorder = Recorder("", "", (), ())
        self._position = 0
        self._look_for_recorder()

    def do(self, action: Callable[[Concentrator], object]) -> None:
        """Let the hub do something, as a switchboard does."""
        if self.hub.alive:
            self.hub.do(action)

    @property
    def core(self) -> Concentrator:
        """The hub's concentrator."""
        return self.hub.core

    def _look_for_recorder(self) -> None:
        """Ask the manager who records the channel."""

        def described(reply: Message) -> None:
            sinks = reply.sinks if isinstance(reply, Described) else ()
            found = [sink.address for sink in sinks if sink.journal]
            if found:
                self._ask(found[-1], Fetch(str(self._id), 0, 0, 0), self._found(found[-1]))
            else:
                self._try_again()

        self._ask(self._id.address, Describe(self._id.name), described)

    def _found(self, address: str) -> Callable[[Message], None]:
        def found(reply: Message) -> None:
            if not isinstance(reply, Fetched):
                self._try_again()
                return
            self._recorder = Recorder(address, reply.journal, reply.heads, reply.firsts)
            if self.program.careful:
                self._follow(self.program.position)
            else:
                self._ask(address, Mark(str(self._id), self.program.name), marked)

        def marked(reply: Message) -> None:
            if isinstance(reply, Marked):
                self._follow(reply.positions[0] if reply.positions else 0)
            else:
                self._try_again()

        return found

    def _follow(self, position: int) -> None:
        """Read from a position on."""
        program = self.program
        check(
            position <= program.handled, "{} goes on at {}, it has handled {}", program.name, position, program.handled
        )
        self._position = position
        self._reader = PartitionReader(cast("Shelf", self._shelf), 0, position)
        feed = self._feed = Feed(cast("Switchboard", self), self._id, self._recorder, (position,))
        feed.start()
        self._look(feed)

    def _look(self, feed: Feed) -> None:
        """Handle what has come, and look again later."""
        if not self.hub.alive or feed is not self._feed:
            return
        if not self.hub.frozen:
            while (fetched := feed.take(0)) is not None:
                if isinstance(fetched, Refused):
                    self._try_again()
                    return
                self._shelf.next = chunk_of(fetched)
                self._handle(fetched.end)
        self._around.clock.after(self.program.look_ns, lambda: self._look(feed))

    def _handle(self, end: int) -> None:
        program = self.program
        if self._reader is None:
            return
        for item in self._reader.read(end):
            check(isinstance(item, Recorded), "{} cannot read {}", program.name, item)
            if isinstance(item, Recorded):
                for step in range(item.batch.count):
                    self._order.see(program.name, item.sequence + step, (item.source, item.first + step))
                check(
                    item.sequence == self._position,
                    "{} waits for {}, got {}",
                    program.name,
                    self._position,
                    item.sequence,
                )
                self._position = item.sequence + item.batch.count
                program.handled = max(program.handled, self._position)
                self._around.count(item.sequence, item.source)
        if program.careful:
            program.position = self._position
        elif self._around.random.random() < MARK_SHARE:
            mark = Mark(str(self._id), program.name, (self._position,))
            self._ask(self._recorder.address, mark, lambda _: None)

    def _try_again(self) -> None:
        self._feed = None
        if self.hub.alive:
            self._around.clock.after(RETRY_NS, self._look_for_recorder)

    def _ask(self, address: str, message: Message, answer: Callable[[Message], None]) -> None:
        self.do(lambda core: core.ask(address, message, answer))
