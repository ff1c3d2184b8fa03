"""What waits to be sent to a tab, and never more than so many bytes of it. Pure.

    answers    in their order, before anything else; a tab that does not read them is not read either (`crowded`)
    pushes     of each kind the last one: an overview of two seconds ago is of no use
    events     as they came, the oldest of all watches dropped when there are too many; the tab is told how many

Nothing is decoded on the way from a source to a browser. Batches of one source that follow each other are put into one,
and all that has gathered for a watch goes in one message:

    | u32 watch | u32 0 | frame FORMATS, for types that this socket has not seen | frame EVENTS | frame EVENTS | ...

Types are announced when a message is made and not before, for what waits may yet be dropped.
"""

import struct
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from echoic.formats import Format
from echoic.viewer.messages import Lost, Push, Reply, encode
from echoic.wire import Batch, Buffer, FrameKind, encode_formats, encode_frame

__all__ = ["Outbox", "Piece"]

HEAD: Final = struct.Struct("<II")
EVENTS: Final = struct.Struct("<QQ")
BYTES_MAX: Final = 4 * 1024 * 1024
PIECES_MAX: Final = 65_536
ANSWERS_MAX: Final = 64
KNOWN_MAX: Final = 4096
TOO_SLOW: Final = "the page does not keep up"
TOO_LARGE: Final = "an event is too large for the page"

PushKey: TypeAlias = tuple[str, int]


class Piece(msgspec.Struct, frozen=True, gc=False):
    """Events of one source on their way to a tab."""

    batch: Batch
    source: int
    first: int
    size: int


class Outbox:
    """What one tab has yet to be sent."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max: Final = bytes_max
        self.events_bytes = 0
        self._answers: deque[str] = deque()
        self._pushes: dict[PushKey, str] = {}
        self._events: dict[int, deque[Piece]] = {}
        self._order: deque[int] = deque()  # whose piece is the oldest, the second oldest, ...
        self._lost: dict[tuple[int, str], int] = {}
        self._known: set[int] = set()

    @property
    def crowded(self) -> bool:
        """Whether the tab should read answers before it asks for more."""
        return len(self._answers) >= ANSWERS_MAX

    def answer(self, reply: Reply) -> None:
        """Put an answer."""
        self._answers.append(encode(reply))

    def push(self, message: Push, watch: int = -1) -> None:
        """Put what nobody has asked for, in place of what was last said of the kind (of a watch)."""
        self.push_text(type(message).__name__, encode(message), watch)

    def push_text(self, kind: str, text: str, watch: int = -1) -> None:
        """Put a message that was made for several tabs."""
        self._pushes[kind, watch] = text

    def lose(self, watch: int, events: int, reason: str) -> None:
        """Note that events will not come."""
        if events > 0:
            self._lost[watch, reason] = self._lost.get((watch, reason), 0) + events

    def put(self, watch: int, pieces: Iterable[Piece], *, latest: bool = False) -> None:
        """Put events; `latest` if only the last of them are of use, whatever else waits."""
        waiting = self._events.setdefault(watch, deque())
        for piece in pieces:
            if piece.size > self.bytes_max:
                self.lose(watch, piece.batch.count, TOO_LARGE)
                continue
            if latest:
                self._drop_all(watch)
            waiting.append(piece)
            self._order.append(watch)
            self.events_bytes += piece.size
        while self.events_bytes > self.bytes_max or len(self._order) > PIECES_MAX:
            oldest = self._order.popleft()
            dropped = self._events[oldest].popleft()
            self.events_bytes -= dropped.size
            self.lose(oldest, dropped.batch.count, TOO_SLOW)

    def forget(self, watch: int) -> None:
        """Drop what waits for a watch that was closed."""
        self._drop_all(watch)
        self._events.pop(watch, None)
        self._pushes = {key: text for key, text in self._pushes.items() if key[1] != watch}
        self._lost = {key: events for key, events in self._lost.items() if key[0] != watch}

    def next(self) -> str | bytes | None:
        """Return the next message, None if nothing waits."""
        if self._answers:
            return self._answers.popleft()
        if self._lost:
            (watch, reason), events = next(iter(self._lost.items()))
            del self._lost[watch, reason]
            return encode(Lost(watch, reason, events))
        if self._pushes:
            return self._pushes.pop(next(iter(self._pushes)))
        if self._order:
            watch = self._order[0]
            pieces = list(self._events[watch])
            self._drop_all(watch)
            return self._message(watch, pieces)
        return None

    def _drop_all(self, watch: int) -> None:
        waiting = self._events.get(watch)
        if waiting:
            self.events_bytes -= sum(piece.size for piece in waiting)
            waiting.clear()
            self._order = deque(other for other in self._order if other != watch)

    def _message(self, watch: int, pieces: Sequence[Piece]) -> bytes:
        buffers: list[Buffer] = [HEAD.pack(watch, 0)]
        fresh = {piece.batch.format.token: piece.batch.format for piece in pieces}
        unknown = [format for token, format in fresh.items() if token not in self._known]
        if unknown:
            self._announce(unknown)
            buffers += encode_frame(FrameKind.FORMATS, [encode_formats(unknown)])
        for piece in _joined(pieces):
            payload = [EVENTS.pack(piece.first, piece.source), *piece.batch.buffers()]
            buffers += encode_frame(FrameKind.EVENTS, payload)
        return b"".join(buffers)

    def _announce(self, formats: Iterable[Format]) -> None:
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()  # describing a type again is harmless
        self._known.update(format.token for format in formats)


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces with those in one that follow each other at their source."""
    runs: list[list[Piece]] = []
    for piece in pieces:
        if runs and _follows(runs[-1][-1], piece):
            runs[-1].append(piece)
        else:
            runs.append([piece])
    return [run[0] if len(run) == 1 else _join(run) for run in runs]


def _follows(one: Piece, other: Piece) -> bool:
    same = one.source == other.source and one.batch.format.token == other.batch.format.token
    return same and not one.batch.format.variable and one.first + one.batch.count == other.first


def _join(run: Sequence[Piece]) -> Piece:
    first = run[0]
    records: list[Buffer] = [piece.batch.records for piece in run]
    batch = Batch(first.batch.format, sum(piece.batch.count for piece in run), records)
    return Piece(batch, first.source, first.first, sum(piece.size for piece in run))
