"""What was ordered, from some position on: packs and views, each at its place.

                     first            delivered          end
    ... forgotten ... | kept for others | held, not yet   |
                      |                 | settled         |

What is before `first` was forgotten, oldest first, once it was more than may be kept; what is behind `delivered` is
never forgotten. With the order goes, for each sender, the number of its last pack: a pack fits only behind that one, so
none comes twice and none is left out.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from echoic.groups.agreement.messages import Item, Pack, Senders

__all__ = ["ITEM_BYTES", "Order", "bytes_of"]

ITEM_BYTES: Final = 200
"""What a place in the order costs beside its payload."""


def bytes_of(item: Item) -> int:
    """Return about how much memory an item takes."""
    return ITEM_BYTES + (item.payload.nbytes if isinstance(item, Pack) else 0)


class Order:
    """Places of the order, one after another. Positions count from 1."""

    def __init__(self, position: int = 0, senders: Senders | None = None) -> None:
        self.first = position + 1
        self.senders: Senders = dict(senders or {})
        self.bytes = 0
        self._items: deque[Item] = deque()

    @property
    def end(self) -> int:
        """The last position."""
        return self.first + len(self._items) - 1

    def fits(self, sender: str, life: int, number: int) -> bool:
        """Return whether a pack is its sender's next."""
        last_life, last = self.senders.get(sender, (life, 0))
        return number == (last + 1 if last_life == life else 1)

    def last_of(self, sender: str, life: int) -> int:
        """Return the number of the last pack of a life of a sender; 0 if there is none."""
        last_life, last = self.senders.get(sender, (life, 0))
        return last if last_life == life else 0

    def append(self, item: Item) -> None:
        """Put an item at the next position."""
        self._items.append(item)
        self.bytes += bytes_of(item)
        if isinstance(item, Pack):
            self.senders[item.sender] = (item.life, item.number)

    def item(self, position: int) -> Item:
        """Return what is at a position that is still kept."""
        return self._items[position - self.first]

    def after(self, position: int) -> Iterator[Item]:
        """Return what comes after a position, of which everything is still kept."""
        return islice(self._items, position + 1 - self.first, None)

    def rewind(self, position: int) -> None:
        """Forget what comes after a position."""
        while self.end > position:
            self.bytes -= bytes_of(self._items[-1])
            self._step_back(self.senders, self._items.pop())

    def senders_at(self, position: int) -> Senders:
        """Return the senders as of a position, behind which everything is still kept."""
        senders = dict(self.senders)
        for back in range(self.end, position, -1):
            self._step_back(senders, self.item(back))
        return senders

    @staticmethod
    def _step_back(senders: Senders, item: Item) -> None:
        if not isinstance(item, Pack):
            return
        if item.number > 1:
            senders[item.sender] = (item.life, item.number - 1)
        else:  # what an earlier life had sent does not matter any more: that life is over
            senders.pop(item.sender, None)

    def trim(self, position: int, bytes_max: int) -> None:
        """Forget the oldest items up to a position, as long as they take more than this many bytes."""
        while self.bytes > bytes_max and self.first <= position and self._items:
            self.bytes -= bytes_of(self._items.popleft())
            self.first += 1
