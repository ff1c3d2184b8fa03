"""Durable sinks: they go on where they stopped, however that came about.

    sources -> recorder: on the disk -> feed: fetched ahead -> handler(event, stamp) -> position
                 ^                                                                       |
                 +---- Mark, gathered: where the sink of this name goes on <-------------+

A subscription begins when it is made and forgets what its program did not live to see. A durable sink reads the journal
instead: everything that was recorded, from its position on, and then what is recorded further, one commit after it was
submitted. It does not matter to the sources whether it is there, slow, or away for a week.

*Each event is handled once* if the position is kept together with what the handler does. There are two ways:

- The program keeps it: `stamp.positions` goes into the same transaction as the handler's own data, and the next start
  says `positions=`. Then every event takes effect exactly once, whatever crashes.
- The journal keeps it, under a name. Word of it is sent after the handler has returned, about every 0.2 seconds or
  1,000 events, and by `close`. After `close` the next sink of this name begins with the very next event; after a crash
  some events come again: at least once. One sink of a name should run at a time; of two, each gets every event.

A handler that raises stops the sink *at* that event: the position stays before it, and `trouble` tells. Going on would
lose the event, and trying again is for whoever knows why it failed. A recorder that is away is waited for. Events that
the journal does not have any more are told to `on_gap`, and nobody goes on without having said that he wants to know.

Chunks come by the recorder's desk also when the recorder is in this very hub: that costs a copy of the bytes, and gives
the same wake-up after a commit, the same thread that reads ahead, and one way for both.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast
from urllib.parse import quote

import msgspec

from echoic.channels import ChannelId, Mark, Marked, Refused
from echoic.errors import (
    ChannelNotFoundError,
    ClosedError,
    EchoicError,
    JournalError,
    LocalError,
    RefusedError,
    UnreachableError,
)
from echoic.formats import Format, match
from echoic.hub.bookmark import Bookmark
from echoic.hub.feed import Feed
from echoic.hub.remote_shelf import Recorder, chunk_of, find_recorder
from echoic.hub.sink import RAISED, problem_of
from echoic.recorder import Chunk, Hole, Missing, PartitionReader, Recorded, fill_hole

if TYPE_CHECKING:
    from echoic.hub.endpoints import Endpoints
    from echoic.recorder import Shelf

__all__ = ["DurableHandler", "DurableSink", "DurableStatistics", "DurableWishes", "Stamp"]

DurableHandler: TypeAlias = Callable[[Any, "Stamp"], object]

NAME_BYTES_MAX: Final = 200  # of a quoted name, which is that of a file
RETRY_SECONDS: Final = 0.3
IDLE_SECONDS: Final = 1.0
UNMARKED_SECONDS: Final = 0.1
FLUSH_SECONDS: Final = 5.0
log: Final = logging.getLogger("echoic.hub")


class Stamp(msgspec.Struct, frozen=True, gc=False):
    """Where an event stands in the journal; of a batch, its first."""

    partition: int
    sequence: int
    source: int
    number: int
    """The number that it has among the events of its source."""
    time_ns: int
    """When it was recorded, by the recorder's wall clock."""
    positions: tuple[int, ...]
    """Where to go on after it, for `resume`: what a program keeps with its own data."""


class DurableStatistics(msgspec.Struct, frozen=True):
    """What a durable sink has done."""

    events: int
    missed: int
    positions: tuple[int, ...]
    """Where it goes on; empty while that is not known."""
    kept: tuple[int, ...]
    """Where one of the same name would, if this process ended without a word."""
    behind: int
    """How many events the journal had more, when it was last heard of."""


class DurableWishes(msgspec.Struct, frozen=True):
    """What a durable sink is to be, see `Channel.resume`."""

    name: str = ""
    positions: tuple[int, ...] | None = None
    declared: object | None = None
    batch: bool = False
    journal: str = ""
    on_gap: Callable[[Hole | Missing], object] | None = None


class OneChunk:
    """A shelf with the one chunk that has come; what else a shelf can do is never asked of it."""

    def __init__(self, channel: str) -> None:
        self.channel: Final = channel
        self.next: Chunk | None = None

    def chunk(self, partition: int, sequence: int, bytes_max: int) -> Chunk | None:  # noqa: ARG002 - of a Shelf
        """Return the chunk, once."""
        chunk, self.next = self.next, None
        return chunk


class DurableSink:
    """A handler that is called for every recorded event. Made by `Channel.resume`."""

    def __init__(self, endpoints: "Endpoints", handler: DurableHandler, wishes: DurableWishes) -> None:
        """Prepare a durable sink.

        Raises:
            IncompatibleTypesError: The channel's events cannot be received as `declared`.
            LocalError: The name cannot be that of a sink, or a position is negative.
        """
        member = endpoints.member
        if wishes.declared is not None and member.format is not None:
            match(member.format, Format.of(wishes.declared))
        _check(wishes)
        self.name: Final = wishes.name
        self.error: BaseException | None = None
        """What the handler has raised, or why the journal cannot be read, if that has ended it."""
        self._endpoints = endpoints
        self._switchboard = endpoints.switchboard
        self._id = ChannelId.parse(member.id)
        self._handler = handler
        self._wishes = wishes
        self._journal = wishes.journal
        self._positions = wishes.positions
        self._heads: tuple[int, ...] = ()
        self._bookmark = Bookmark(self._switchboard, self._id, wishes.name) if wishes.name else None
        self._events = self._missed = 0
        self._trouble = ""
        self._feed: Feed | None = None
        self._recorder: Recorder | None = None
        self._running = threading.RLock()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=f"echoic-durable-{member.name}", daemon=True)

    def start(self) -> None:
        """Begin; a recorder that is not there is waited for in the background.

        Raises:
            LocalError: The positions are not as many as the journal has partitions.
            JournalError: The journal does not reach to a position, or it must be said which journal is meant.
        """
        try:
            self._recorder = self._locate()
        except (JournalError, LocalError):
            raise
        except EchoicError as error:
            self._say(str(error))
        self._endpoints.durables = (*self._endpoints.durables, self)
        self._thread.start()

    @property
    def positions(self) -> tuple[int, ...]:
        """Where it goes on, for each partition; empty while no recorder was found."""
        return self._positions or ()

    @property
    def trouble(self) -> str:
        """Why no events come: what has ended it, or what it waits for; "" if all is well."""
        return self._trouble

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._ended.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended: by `close`, because the handler failed, or the journal; tell whether it has."""
        return self._ended.wait(timeout)

    def statistics(self) -> DurableStatistics:
        """Return the counts so far."""
        positions = self.positions
        behind = sum(max(head - here, 0) for head, here in zip(self._heads, positions, strict=False))
        kept = self._bookmark.kept if self._bookmark is not None else ()
        return DurableStatistics(self._events, self._missed, positions, kept, behind)

    def close(self, timeout: float = -1) -> None:
        """End: the handler is not called again once this returns, and its position is kept, if it has a name.

        Args:
            timeout: How many seconds to wait for a call of the handler that is under way; forever when negative.
        """
        self._stopping.set()
        feed = self._feed
        if feed is not None:
            feed.wake()
        if threading.current_thread() is self._thread:
            return  # the handler itself: it ends after this event
        if self._running.acquire(timeout=timeout):  # whoever is inside the handler leaves it first
            self._running.release()
            if self._thread.is_alive():
                self._thread.join(FLUSH_SECONDS + 1 if timeout < 0 else timeout)

    def _serve(self) -> None:
        try:
            while not self._stopping.is_set() and not self._switchboard.closed:
                self._attempt()
        except ClosedError as error:
            self._trouble = str(error)
        except Exception as error:  # noqa: BLE001 - it is told by `trouble` and `error`, and the end is orderly
            reason = str(error) if isinstance(error, EchoicError) else problem_of(error)
            self._fail(f"the journal of `{self._id.name}` cannot be followed: {reason}", error)
        finally:
            self._finish()

    def _attempt(self) -> None:
        """Find the recorder and follow it until it is lost, or the sink ends.

        Raises:
            EchoicError: The journal cannot be followed.
        """
        try:
            recorder, self._recorder = self._recorder or self._locate(), None
            self._follow(recorder)
        except (UnreachableError, RefusedError, ChannelNotFoundError) as error:
            self._say(str(error))
            self._stopping.wait(RETRY_SECONDS)

    def _locate(self) -> Recorder:
        """Return the recorder, and know from where on to read.

        Raises:
            LocalError: The positions are not as many as the journal has partitions.
            JournalError: The journal does not reach so far, or it must be said which one is meant.
            EchoicError: There is no recorder for the moment.
        """
        recorder = self._found()
        positions, kept = self._positions, None
        if self._bookmark is not None:
            mark = Mark(str(self._id), self._bookmark.sink)
            kept = self._switchboard.ask(recorder.address, mark, Marked).positions
            self._bookmark.move(recorder.address, kept)
        self._positions = _checked(positions or kept or recorder.firsts, recorder)
        self._journal = recorder.journal
        return recorder

    def _found(self) -> Recorder:
        try:
            return find_recorder(self._switchboard, self._id, self._journal)
        except JournalError as error:
            if not self._journal:
                raise  # it must be said which one
            raise UnreachableError(str(error)) from error  # it may come back

    def _follow(self, recorder: Recorder) -> None:
        """Handle what a recorder has, until the sink ends.

        Raises:
            UnreachableError: The recorder is lost.
            JournalError: The journal cannot be followed.
        """
        positions = self.positions
        shelf = OneChunk(self._id.name)
        whole = cast("Shelf", shelf)  # the rest is for readers that look for a time
        readers = [PartitionReader(whole, partition, position) for partition, position in enumerate(positions)]
        self._heads = recorder.heads
        feed = self._feed = Feed(self._switchboard, self._id, recorder, positions)
        feed.start()
        self._say("")
        try:
            while not self._stopping.is_set():
                bookmark = self._bookmark
                fetched = feed.take(UNMARKED_SECONDS if bookmark is not None and bookmark.due else IDLE_SECONDS)
                if isinstance(fetched, Refused):
                    raise (JournalError if fetched.kind == JournalError.__name__ else UnreachableError)(fetched.reason)
                if fetched is not None:
                    self._heads, shelf.next = fetched.heads, chunk_of(fetched)
                    self._handle(readers[fetched.partition].read(fetched.end))
                elif bookmark is not None:
                    bookmark.offer()
        finally:
            feed.wake()

    def _handle(self, found: Iterator[Recorded | Hole | Missing]) -> None:
        """Call the handler for what was found, in order, until the sink ends.

        Raises:
            JournalError: The journal is damaged, or does not have everything any more and nobody wants to be told.
        """
        for item in found:
            if isinstance(item, Recorded):
                self._deliver(item)
            elif not isinstance(item, Hole):
                self._tell_gap(item)
            else:
                fill_hole(item, self._id.name, self._tell_gap if self._wishes.on_gap is not None else None)
                if not self._stopping.is_set():
                    self._advance(self._after(item.partition, item.last + 1), 0)
            if self._stopping.is_set():
                return

    def _deliver(self, recorded: Recorded) -> None:
        """Call the handler for a batch, or for each of its events."""
        batch, wishes = recorded.batch, self._wishes
        partition, sequence, source = recorded.partition, recorded.sequence, recorded.source
        try:
            typed = batch if wishes.declared is None else batch.to(wishes.declared)
            items: Sequence[object] = [typed] if wishes.batch else typed.events()
        except RAISED as error:  # a class may refuse the values of its fields
            self._fail(f"events from {sequence} on cannot be received: {problem_of(error)}", error)
            return
        step, number, time_ns, handler = (
            batch.count if wishes.batch else 1,
            recorded.first,
            recorded.time_ns,
            self._handler,
        )
        for item in items:
            stamp = Stamp(partition, sequence, source, number, time_ns, self._after(partition, sequence + step))
            with self._running:
                if self._stopping.is_set():
                    return
                try:
                    handler(item, stamp)
                except RAISED as error:  # a handler may raise anything
                    self._fail(
                        f"the handler failed at event {sequence} of partition {partition}: {problem_of(error)}", error
                    )
                    return
                self._advance(stamp.positions, step)
            sequence += step
            number += step

    def _after(self, partition: int, sequence: int) -> tuple[int, ...]:
        """Return the positions when a partition goes on with a sequence."""
        positions = self.positions
        if len(positions) == 1:
            return (sequence,)
        return (*positions[:partition], sequence, *positions[partition + 1 :])

    def _advance(self, positions: tuple[int, ...], events: int) -> None:
        """Go on behind what was handled."""
        self._positions = positions
        self._events += events
        if self._bookmark is not None:
            self._bookmark.note(positions, events)

    def _tell_gap(self, gap: Hole | Missing) -> None:
        """Tell the program of events that will not come."""
        self._missed += gap.last - gap.first + 1
        if self._wishes.on_gap is None:
            return
        with self._running:
            if self._stopping.is_set():
                return
            try:
                self._wishes.on_gap(gap)
            except RAISED as error:
                self._fail(f"`on_gap` failed at {gap}: {problem_of(error)}", error)

    def _say(self, trouble: str) -> None:
        """Tell why nothing comes, once for each reason."""
        if trouble and trouble != self._trouble:
            log.warning("a durable sink of %s waits: %s", self._id.name, trouble)
        self._trouble = trouble

    def _fail(self, trouble: str, error: BaseException) -> None:
        """End because it cannot go on."""
        self._trouble, self.error = trouble, error
        log.error("a durable sink of %s has ended: %s", self._id.name, trouble, exc_info=error)
        self._stopping.set()

    def _finish(self) -> None:
        """Keep how far it is."""
        bookmark = self._bookmark
        if bookmark is not None and not bookmark.flush(FLUSH_SECONDS):
            problem = bookmark.problem or "the recorder does not answer"
            log.warning("the position of %s in %s is not kept: %s", self.name, self._id.name, problem)
            self._trouble = self._trouble or f"its position was not kept: {problem}"
        ends = self._endpoints
        ends.durables = tuple(sink for sink in ends.durables if sink is not self)
        self._ended.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<DurableSink {self.name or 'without a name'} of {self._id}>"


def _check(wishes: DurableWishes) -> None:
    """Refuse what cannot be wished for.

    Raises:
        LocalError: The name cannot be that of a sink, or a position is negative.
    """
    try:
        size = len(quote(wishes.name, safe=""))
    except UnicodeEncodeError as error:
        raise LocalError(f"the name of a durable sink is not text: {wishes.name[:40]!r}") from error
    if size > NAME_BYTES_MAX:
        raise LocalError(f"the name of a durable sink has {size} bytes when quoted, limit is {NAME_BYTES_MAX}")
    if wishes.positions is not None and (not wishes.positions or min(wishes.positions) < 0):
        raise LocalError(f"expected a position for each partition, 0 or more, got {wishes.positions}")


def _checked(positions: tuple[int, ...], recorder: Recorder) -> tuple[int, ...]:
    """Return positions, if they are in a journal.

    Raises:
        LocalError: They are not as many as it has partitions.
        JournalError: It does not reach so far.
    """
    if len(positions) != len(recorder.heads):
        raise LocalError(f"got {len(positions)} positions, the journal has {len(recorder.heads)} partitions")
    for partition, (position, head) in enumerate(zip(positions, recorder.heads, strict=True)):
        if position > head:
            raise JournalError(
                f"the position in partition {partition} is {position}, but journal {recorder.journal} goes on with "
                f"{head}: it is another one, or has lost events"
            )
    return positions
