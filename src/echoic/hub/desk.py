r"""The desk of a recorder: where others ask for what is in the journal, and leave word how far they are.

    links -> consult -> ready ----> one thread reads blocks --+--> answers, under the hub's lock
                     |    ^   \                               |
                     |    |    +--> waiting for more (a long poll): no thread each, at most `WAITING_MAX` of them
                     |    +-- committed                       |
                     +-> marks ---> one thread keeps them ----+

Neither the threads that read links nor the one that writes the journal ever wait for a reader: they leave a request, or
word of a commit, and go on. Blocks are read from the files as any other reader does (`recorder.shelf`), so what is
answered is committed, and needs nothing of the writer but the numbers it shows. Marks are files of their own, each
written whole and synced, which takes as long as a commit: a second thread does that, so that no reader waits for it.
An event of nearly 16 MiB, the largest that a frame can carry, has no room for what is around it in an answer: it can be
read in the recorder's own hub only.

Whoever asks may be anybody who is let in: nothing in a request is believed. Answers are bounded in bytes, those who
wait in number and in time. One who takes no answers off his link is given up like anyone else (`Session.stalled`).
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels import Fetch, Fetched, Mark, Marked, Message, Refused
from echoic.errors import EchoicError, EncodeError, JournalError, LimitExceededError, RefusedError
from echoic.recorder import Chunk, LocalShelf

if TYPE_CHECKING:
    from echoic.hub.recording import Recording

__all__ = ["Desk", "DeskStatistics"]

ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
WAITING_MAX: Final = 256
SINKS_MAX: Final = 1024
WAIT_NS_MAX: Final = 5_000_000_000
CLOSE_SECONDS: Final = 5.0
log: Final = logging.getLogger("echoic.recorder")


class DeskStatistics(msgspec.Struct, frozen=True):
    """What has been asked at a desk."""

    answered: int
    refused: int
    waiting: int
    bytes_read: int


class Inquiry(msgspec.Struct, frozen=True, eq=False):
    """What somebody wants to know, and until when he waits for it."""

    message: Fetch | Mark
    answer: Callable[[Message], None]
    deadline_ns: int


class Desk:
    """Answers readers of a journal that is being recorded here, in a thread of its own."""

    def __init__(self, recording: "Recording") -> None:
        self._recording = recording
        self._ready: deque[Inquiry] = deque()
        self._marks: deque[Inquiry] = deque()
        self._waiting: list[Inquiry] = []
        self._in_hand = 0  # how many requests the thread that reads has taken, and has yet to answer or let wait
        self._changed = threading.Condition()
        self._stirred = False
        self._closed = False
        self._answered = self._refused = self._bytes_read = 0
        self._sinks: set[str] = set()
        self._shelf: LocalShelf | None = None
        self._opening = threading.Lock()
        self._threads: tuple[threading.Thread, ...] = ()

    def consult(self, message: Fetch | Mark, answer: Callable[[Message], None]) -> None:
        """Answer a request, perhaps later. Waits for nothing but the hub's lock, which must not be held."""
        wait_ns = min(max(message.wait_ns, 0), WAIT_NS_MAX) if isinstance(message, Fetch) else 0
        inquiry = Inquiry(message, answer, time.monotonic_ns() + wait_ns)
        with self._changed:
            problem = "the recording has ended" if self._closed else ""
            if self._asked() >= WAITING_MAX:
                problem = f"{WAITING_MAX} requests wait at the recorder already, which is the limit"
            if not problem:
                self._start()
                (self._ready if isinstance(message, Fetch) else self._marks).append(inquiry)
                self._changed.notify_all()
        if problem:
            self._reply(answer, Refused(RefusedError.__name__, problem))

    def committed(self) -> None:
        """Look again for those who wait: more is on the disk."""
        with self._changed:  # also when nobody waits: somebody may be about to, having seen less
            self._stirred = True
            if self._waiting:
                self._changed.notify_all()

    def statistics(self) -> DeskStatistics:
        """Return the counts so far."""
        with self._changed:
            return DeskStatistics(self._answered, self._refused, self._asked(), self._bytes_read)

    def close(self) -> None:
        """Refuse whoever waits, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(CLOSE_SECONDS)

    def _asked(self) -> int:
        """Return how many requests have yet to be answered. The lock is held."""
        return len(self._ready) + self._in_hand + len(self._waiting) + len(self._marks)

    def _start(self) -> None:
        """Begin to serve when the first request comes: most journals are only written. The lock is held."""
        if not self._threads:
            reading = threading.Thread(target=self._serve_readers, name="echoic-desk", daemon=True)
            marking = threading.Thread(target=self._serve_marks, name="echoic-marks", daemon=True)
            self._threads = (reading, marking)
            reading.start()
            marking.start()

    def _serve_readers(self) -> None:
        while (due := self._due()) is not None:
            for inquiry in due:
                answered = self._attend(inquiry)
                with self._changed:
                    self._in_hand -= 1
                    if not answered:
                        self._waiting.append(inquiry)
        with self._changed:
            left = [*self._ready, *self._waiting]
            self._ready.clear()
            self._waiting.clear()
        if self._shelf is not None:
            self._shelf.close()
        for inquiry in left:
            self._reply(inquiry.answer, Refused(RefusedError.__name__, "the recording has ended"))

    def _serve_marks(self) -> None:
        """Keep marks, also those that have come before the end."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._marks or self._closed)
                if not self._marks:
                    return
                inquiry = self._marks.popleft()
            self._attend(inquiry)

    def _due(self) -> list[Inquiry] | None:
        """Wait for requests that are to be looked at; None when the desk is closed."""
        with self._changed:
            while not self._closed:
                now_ns = time.monotonic_ns()
                earliest_ns = min((inquiry.deadline_ns for inquiry in self._waiting), default=now_ns + WAIT_NS_MAX)
                if self._ready or self._stirred or earliest_ns <= now_ns:
                    return self._take(now_ns)
                self._changed.wait((earliest_ns - now_ns) / 1e9)
        return None

    def _take(self, now_ns: int) -> list[Inquiry]:
        """Return the requests to look at: what has come, what is too late, after a commit what it concerns."""
        heads = self._recording.heads if self._stirred else ()
        self._stirred = False
        due = list(self._ready)
        self._ready.clear()
        waiting: list[Inquiry] = []
        for inquiry in self._waiting:
            ripe = isinstance(inquiry.message, Fetch) and _place(inquiry.message, heads) is not None
            (due if ripe or inquiry.deadline_ns <= now_ns else waiting).append(inquiry)
        self._waiting = waiting
        self._in_hand = len(due)
        return due

    def _attend(self, inquiry: Inquiry) -> bool:
        """Answer a request, unless it has to wait; tell whether it was answered."""
        message = inquiry.message
        reply: Message | None
        try:
            reply = self._mark(message) if isinstance(message, Mark) else self._fetch(message, inquiry.deadline_ns)
        except EchoicError as error:
            reply = Refused.of(error)
        except OSError as error:
            reply = Refused(
                JournalError.__name__, f"the journal of `{self._recording.channel}` cannot be read: {error}"
            )
        except Exception as error:  # whoever waits must hear of it, and the others be served
            log.exception("a request for the journal of %s could not be answered", self._recording.channel)
            reply = Refused(
                JournalError.__name__, f"the request could not be answered: {type(error).__name__}: {error}"
            )
        if reply is not None:
            self._reply(inquiry.answer, reply)
        return reply is not None

    def _mark(self, message: Mark) -> Marked:
        """Keep how far a sink is, or tell it.

        Raises:
            RefusedError: The positions cannot be.
            LimitExceededError: There are too many sinks.
            LocalError: The name cannot be that of a sink.
            JournalError: The disk does not take it.
        """
        writer, positions = self._recording.writer, message.positions
        if not positions:
            return Marked(writer.marked(message.sink) or ())
        _check(positions, self._heads(positions))
        self._check_room(message.sink)
        writer.mark(message.sink, positions)
        self._sinks.add(message.sink)
        return Marked(positions)

    def _check_room(self, sink: str) -> None:
        """Make sure that a sink is known, or may yet be, since each is a file.

        Raises:
            LimitExceededError: There are too many.
        """
        if sink not in self._sinks:
            self._sinks.update(self._recording.writer.sinks())
            if sink not in self._sinks and len(self._sinks) >= SINKS_MAX:
                raise LimitExceededError(f"the journal keeps the positions of {SINKS_MAX} sinks, which is the limit")

    def _fetch(self, message: Fetch, deadline_ns: int) -> Fetched | None:
        """Return blocks of the journal; None while there are none yet and there is time.

        Raises:
            RefusedError: There is no such partition.
            JournalError: There is no such place in the journal, or it is damaged there.
        """
        recording, partition = self._recording, message.partition
        journal, firsts = recording.journal, recording.writer.firsts
        if not 0 <= partition < len(firsts):
            raise RefusedError(f"there is no partition {partition}, the journal has {len(firsts)}")
        heads = self._heads(message.positions or (0,) * partition + (message.sequence,))
        if message.positions:
            _check(message.positions, heads)
        else:
            _check((message.sequence,), heads[partition : partition + 1])
        if message.bytes_max <= 0 and message.types:
            return Fetched(journal, heads, firsts, formats=self._opened().descriptors())
        place = _place(message, heads)
        chunk = self._read(*place, message.bytes_max) if place is not None and message.bytes_max > 0 else None
        if place is None or chunk is None:
            enough = message.bytes_max <= 0 and place is not None
            late = enough or time.monotonic_ns() >= deadline_ns
            # Who does not wait may be about to compare his position with this: it must not be behind the files.
            told = heads if message.wait_ns > 0 or not late else self._heads_on_disk()
            return Fetched(journal, told, firsts) if late else None
        return Fetched(
            journal,
            heads,
            firsts,
            seed=chunk.seed,
            sequence=chunk.sequence,
            end=chunk.end,
            formats=tuple(chunk.formats),
            blocks=bytes(chunk.blocks),
            partition=place[0],
            file=chunk.file,
            offset=chunk.offset,
            reason=chunk.reason,
        )

    def _heads(self, positions: Sequence[int]) -> tuple[int, ...]:
        """Return how far the journal is.

        A commit shows in the files, partition by partition, before the writer tells of it: who was given events of one
        partition while the others were still being written may be ahead of what the writer says.
        """
        heads = self._recording.heads
        if all(position <= head for position, head in zip(positions, heads, strict=False)):
            return heads
        return self._heads_on_disk()

    def _heads_on_disk(self) -> tuple[int, ...]:
        """Return how far the journal is, by what is in the files too: whoever has more has another journal."""
        return tuple(map(max, self._recording.heads, self._opened().heads()))

    def _read(self, partition: int, sequence: int, bytes_max: int) -> Chunk | None:
        """Return committed blocks as any reader has them.

        Raises:
            JournalError: The journal is damaged there.
        """
        chunk = self._opened().chunk(partition, sequence, min(bytes_max, ANSWER_BYTES_MAX))
        if chunk is not None:
            self._bytes_read += len(chunk.blocks)
        return chunk

    def _opened(self) -> LocalShelf:
        with self._opening:  # both threads look into the files
            if self._shelf is None:
                self._shelf = LocalShelf(self._recording.storage, self._recording.channel)
            return self._shelf

    def _reply(self, answer: Callable[[Message], None], reply: Message) -> None:
        with self._changed:
            self._refused += isinstance(reply, Refused)
            self._answered += not isinstance(reply, Refused)
        board = self._recording.switchboard
        try:
            board.do(lambda _: answer(reply))
        except EncodeError as error:  # one event may be as large as a frame, and this has more around it
            refused = Refused(JournalError.__name__, f"what is asked for does not fit into a message: {error}")
            board.do(lambda _: answer(refused))


def _place(message: Fetch, heads: Sequence[int]) -> tuple[int, int] | None:
    """Return the partition and sequence from which on something is there for a request, None if nothing is."""
    partitions = len(heads)
    for step in range(partitions if message.positions else min(partitions, 1)):
        partition = (message.partition + step) % partitions
        sequence = message.positions[partition] if message.positions else message.sequence
        if heads[partition] > sequence:
            return partition, sequence
    return None


def _check(positions: Sequence[int], heads: Sequence[int]) -> None:
    """Refuse positions that cannot be in a journal.

    Raises:
        RefusedError: They are too few, too many, or negative.
        JournalError: The journal does not reach so far.
    """
    if len(positions) != len(heads):
        raise RefusedError(f"got {len(positions)} positions, the journal has {len(heads)} partitions")
    for position, head in zip(positions, heads, strict=True):
        if position < 0:
            raise RefusedError(f"a position is {position}, expected at least 0")
        if position > head:
            raise JournalError(f"event {position} is not in the journal, which goes on with {head}")
