"""Bringing a member up to date while the others go on.

    member that missed something                          chosen member of the view
      Want(have=17) ------------------------------------>   kept from 12 on:  Missed 18.. Missed 40.. Done(52)
      Want(have=3)  ------------------------------------>   kept from 12 on:  StateWanted to its group
                                                            give_state(50):   Beginning(50) Chunk.. Missed 51.. Done(52)
      Caught        (all holes are filled; takes part from here on)

Both sit in the same view of the engine below, so the member that catches up sees everything that is ordered meanwhile
(`live`); only what was before must be sent. If it takes so long that `live` grows beyond its bound, the oldest of it is
dropped and asked for once more at the end.

Until everything is there, the member keeps what it held before, untouched: if the view breaks now, that still is its
share in the group's history. Pieces are made one by one, a few on their way at a time, so a large state is never in the
queue as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from echoic.groups.agreement.messages import Beginning, Chunk, Done, Item, Missed, Piece, Place
from echoic.groups.agreement.order import Order, bytes_of

__all__ = ["PIECE_BYTES_MAX", "Gap", "Given", "missed_pieces", "state_pieces"]

PIECE_BYTES_MAX: Final = 256 * 1024


class Given(msgspec.Struct, frozen=True):
    """Whom pieces are for, and in which epoch."""

    epoch: int
    to: Place
    want: int


def missed_pieces(given: Given, first: int, items: Sequence[Item]) -> Iterator[Piece]:
    """Yield items, the first of which is at a position, in pieces of limited size, and that this was all."""
    epoch, to, want = given.epoch, given.to, given.want
    part: list[Item] = []
    size = 0
    for item in items:
        if part and size + bytes_of(item) > PIECE_BYTES_MAX:
            yield Missed(epoch, to, want, first, tuple(part))
            first += len(part)
            part, size = [], 0
        part.append(item)
        size += bytes_of(item)
    if part:
        yield Missed(epoch, to, want, first, tuple(part))
    yield Done(epoch, to, want, first + len(part) - 1)


def state_pieces(given: Given, beginning: Beginning, chunks: Iterable[bytes], items: Sequence[Item]) -> Iterator[Piece]:
    """Yield a state, and the items that came after it."""
    yield beginning
    for chunk in chunks:
        for start in range(0, max(1, len(chunk)), PIECE_BYTES_MAX):
            last = start + PIECE_BYTES_MAX >= len(chunk)
            yield Chunk(given.epoch, given.to, given.want, last, bytes(chunk[start : start + PIECE_BYTES_MAX]))
    yield from missed_pieces(given, beginning.position + 1, items)


class Gap:
    """What a member has missed, as far as it has come, and what is ordered meanwhile."""

    def __init__(self, have: int, live: Order, bytes_max: int) -> None:
        self.live: Final = live
        self.beginning: Beginning | None = None
        self.chunks: list[bytes] = []
        self.items: list[Item] = []
        self.want = 0
        self._have = have
        self.end = have
        """Up to where everything is there; below 0 if only a state can help."""
        self.bytes = 0
        self._bytes_max = bytes_max
        self._parts: list[bytes] = []

    @property
    def filled(self) -> bool:
        """Whether what is there reaches up to what was ordered meanwhile."""
        return self.end >= 0 and self.live.first <= self.end + 1

    @property
    def overflown(self) -> bool:
        """Whether it is more than may be kept."""
        return self.bytes > self._bytes_max

    def follow(self, item: Item) -> None:
        """Take what is ordered meanwhile."""
        self.live.append(item)
        self.live.trim(self.live.end, self._bytes_max)

    def take(self, piece: Piece) -> bool:
        """Take a piece; return whether it was the last one."""
        match piece:
            case Beginning():
                self.forget()
                self.beginning, self.end = piece, piece.position
            case Chunk():
                self._parts.append(piece.body)
                self.bytes += len(piece.body)
                if piece.last:
                    self.chunks.append(b"".join(self._parts))
                    self._parts = []
            case Missed():
                if self.end < 0:  # it has nothing, and is given everything from the first position on
                    self.end = piece.first - 1
                if piece.first <= self.end + 1:
                    new = piece.items[self.end + 1 - piece.first :]
                    self.items.extend(new)
                    self.end += len(new)
                    self.bytes += sum(map(bytes_of, new))
            case Done():
                return True
        return False

    def forget(self) -> None:
        """Let go of everything that was sent."""
        self.end = self._have
        self.beginning, self.chunks, self.items, self._parts, self.bytes = None, [], [], [], 0

    def fill(self, order: Order, delivered: int) -> tuple[Order, int]:
        """Return the whole order, and up to where it is settled and in the state, given what was held before."""
        if self.beginning is not None:
            order, delivered = Order(self.beginning.position, self.beginning.senders), self.beginning.position
        else:
            order.rewind(delivered)
        for item in self.items:
            order.append(item)
        for item in self.live.after(max(order.end, self.live.first - 1)):
            order.append(item)
        return order, delivered
