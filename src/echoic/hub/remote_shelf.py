"""The journal of a channel as another hub has it: `Journal(shelf)` reads it like one on this machine's disk.

    Journal -> RemoteShelf -> Fetch -> the recorder's desk -> its files
                           <- Fetched: blocks as they lie there, checksums and all

Nothing is kept here: a chunk is asked for when a reader wants it. The blocks are checked by the reader as those of a
file are, so neither the link nor the recorder's memory is trusted more than a disk.

A recorder may be restarted meanwhile, at another address, by another process: what counts is the id of its journal. It
is looked for through the channel's manager, for `PATIENCE_SECONDS`, before a reader is told that nobody has it.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from echoic.channels import ChannelId, Describe, Described, Fetch, Fetched, Mark, Marked, SinkHub
from echoic.errors import (
    ChannelNotFoundError,
    EchoicError,
    JournalError,
    LocalError,
    RefusedError,
    UnreachableError,
)
from echoic.recorder import Chunk

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["Recorder", "RemoteShelf", "chunk_of", "find_recorder"]

PATIENCE_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 0.2
WAIT_NS_MAX: Final = 5_000_000_000
CHUNK_BYTES_MAX: Final = 4 * 1024 * 1024

Reply = TypeVar("Reply", bound=Fetched | Marked)


class Recorder(msgspec.Struct, frozen=True):
    """Where a journal is recorded, and what it had when that was found out."""

    address: str
    journal: str
    heads: tuple[int, ...]
    firsts: tuple[int, ...]


def find_recorder(switchboard: "Switchboard", id: ChannelId, journal: str = "") -> Recorder:
    """Return who records a channel, in a certain journal if its id is given.

    Raises:
        UnreachableError: Nobody does for the moment, or he does not answer.
        JournalError: It is recorded in other journals, or in several and none was named.
        EchoicError: The channel's manager does not know it.
    """
    described = switchboard.ask(id.address, Describe(id.name), Described)
    recorders = _choose(id, [sink for sink in described.sinks if sink.journal], journal)
    problem = ""
    for sink in recorders:
        try:
            found = switchboard.ask(sink.address, Fetch(str(id), 0, 0, 0), Fetched)
        except EchoicError as error:
            problem = f"the recorder of `{id.name}` at {sink.address} does not answer: {error}"
            continue
        if found.journal == sink.journal:
            return Recorder(sink.address, found.journal, found.heads, found.firsts)
        problem = f"the recorder of `{id.name}` at {sink.address} has another journal than it is known for"
    raise UnreachableError(problem)


def _choose(id: ChannelId, recorders: Sequence[SinkHub], journal: str) -> list[SinkHub]:
    """Return the recorders of one journal, the latest first."""
    if not recorders:
        raise UnreachableError(f"no recorder of `{id.name}` is there: record the channel first")
    journals = sorted({sink.journal for sink in recorders})
    if journal and journal not in journals:
        raise JournalError(f"`{id.name}` is not recorded in journal {journal}, but in {', '.join(journals)}")
    if not journal and len(journals) > 1:
        raise JournalError(f"`{id.name}` is recorded in several journals, name one of them: {', '.join(journals)}")
    return [sink for sink in reversed(recorders) if not journal or sink.journal == journal]


def chunk_of(fetched: Fetched) -> Chunk:
    """Return what a recorder has answered as a reader takes it."""
    return Chunk(
        seed=fetched.seed,
        formats=fetched.formats,
        blocks=fetched.blocks,
        sequence=fetched.sequence,
        end=fetched.end,
        file=fetched.file,
        offset=fetched.offset,
        reason=fetched.reason,
    )


class RemoteShelf:
    """Chunks of a journal that another hub records. Used by `Channel.journal`."""

    def __init__(self, switchboard: "Switchboard", id: ChannelId, journal: str = "") -> None:
        """Find the recorder of a channel.

        Raises:
            EchoicError: As `find_recorder` does.
        """
        self._switchboard = switchboard
        self._id = id
        self._recorder = find_recorder(switchboard, id, journal)
        self.channel: Final = id.name
        self.id: Final = self._recorder.journal
        self.partitions: Final = len(self._recorder.heads)

    def heads(self) -> tuple[int, ...]:
        """Return for each partition the sequence of the next event: all before it are on the recorder's disk.

        Raises:
            JournalError: The journal is not recorded any more, or the recorder does not answer.
        """
        return self._fetch(Fetch(str(self._id), 0, 0, 0)).heads

    def firsts(self) -> tuple[int, ...]:
        """Return for each partition the sequence of the first event that is still there.

        Raises:
            JournalError: The journal is not recorded any more, or the recorder does not answer.
        """
        return self._fetch(Fetch(str(self._id), 0, 0, 0)).firsts

    def chunk(self, partition: int, sequence: int, bytes_max: int) -> Chunk | None:
        """Return committed blocks from the one that holds an event on; None if it has not come yet.

        Raises:
            LocalError: There is no such partition.
            JournalError: The journal is damaged there, not recorded any more, or the recorder does not answer.
        """
        if not 0 <= partition < self.partitions:
            raise LocalError(f"there is no partition {partition}, the journal has {self.partitions}")
        size = min(max(bytes_max, 1), CHUNK_BYTES_MAX)
        fetched = self._fetch(Fetch(str(self._id), partition, sequence, size))
        return chunk_of(fetched) if fetched.end > sequence else None

    def skip(self, partition: int, sequence: int, since_ns: int, until_ns: int) -> int:  # noqa: ARG002 - of a Shelf
        """Return from where on events of a time may be: the index of the journal is not looked at from here."""
        return sequence

    def descriptors(self) -> tuple[bytes, ...]:
        """Return the types that were recorded, in the order in which they were first.

        Raises:
            JournalError: The journal is not recorded any more, or the recorder does not answer.
        """
        return self._fetch(Fetch(str(self._id), 0, 0, 0, types=True)).formats

    def marked(self, sink: str) -> tuple[int, ...] | None:
        """Return where a named sink goes on, for each partition; None if it was never marked.

        Raises:
            JournalError: The journal is not recorded any more, or the recorder does not answer.
        """
        return self._ask(Mark(str(self._id), sink), Marked).positions or None

    def wait(self, heads: Sequence[int], seconds: float) -> bool:
        """Wait until a partition has more than these; tell whether one has.

        Raises:
            JournalError: The journal is not recorded any more, or the recorder does not answer.
        """
        deadline = time.monotonic() + seconds
        while True:
            left_ns = int(max(deadline - time.monotonic(), 0) * 1e9)
            fetch = Fetch(str(self._id), 0, 0, 0, min(left_ns, WAIT_NS_MAX), tuple(heads))
            found = self._fetch(fetch).heads
            if any(there > known for there, known in zip(found, heads, strict=True)):
                return True
            if time.monotonic() >= deadline:
                return False

    def _fetch(self, fetch: Fetch) -> Fetched:
        return self._ask(fetch, Fetched)

    def _ask(self, message: Fetch | Mark, expected: type[Reply]) -> Reply:
        """Ask the recorder; look for it again if it is not where it was.

        Raises:
            JournalError: The journal is damaged there, not recorded any more, or the recorder does not answer.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                reply = self._switchboard.ask(self._recorder.address, message, expected)
                problem = self._problem_of(reply)
                if not problem:
                    return reply
            except (UnreachableError, RefusedError, ChannelNotFoundError) as error:
                problem = str(error)  # a hub that was started again may not have opened the channel yet
            time.sleep(RETRY_SECONDS)
            problem = self._look_again() or problem
            if time.monotonic() >= deadline:
                raise JournalError(f"the journal of `{self.channel}` cannot be read: {problem}")

    def _problem_of(self, reply: Fetched | Marked) -> str:
        """Return why a reply cannot be from the recorder of this journal, "" if it can."""
        if not isinstance(reply, Fetched):
            return ""
        where, told = self._recorder.address, (len(reply.heads), len(reply.firsts))
        if reply.journal != self.id:
            return f"the recorder at {where} has another journal"
        if told != (self.partitions, self.partitions):
            return f"the recorder tells of {told} partitions, expected {self.partitions} - at {where}"
        return ""

    def _look_again(self) -> str:
        """Find the recorder, perhaps at another address; return why that failed."""
        try:
            self._recorder = find_recorder(self._switchboard, self._id, self.id)
        except EchoicError as error:
            return str(error)
        return ""

    def __repr__(self) -> str:
        return f"<RemoteShelf of {self._id} in journal {self.id[:8]}>"
