"""What a file holds, what of it is on the disk, and what may be there after a loss of power.

A file here is its bytes as every process sees them (the page cache), the bytes that are certainly on the disk, and the
changes made since: pieces written at its end, and cuts. When the power goes, a disk has carried out any of them:

    kept            0       512      1024     1536     2048
    on the disk     |AAAAAAAAAAAAAA..|        |        |            synced, 900 bytes
    written since   |              BBBBBBBBBBBBBBBBBBBBBBBBBB|      two appends, 1,200 bytes

    nothing         900 bytes                       in order     1,400 bytes: the first append and a part of the next
    everything      2,100 bytes                     scattered    2,000 bytes: sector 1 as before, 2 zeros, 3 written

A sector of 512 bytes is written wholly or not at all, which is why bytes that were synced survive beside a torn write
in their sector. Sectors reach the disk in any order, the length apart from them. A sector the file had not before may
hold zeros or garbage, and the worst garbage is what used to be in another file of the same program: so that is what is
drawn here, too.

The four outcomes are drawn with equal chance instead of a subset of sectors alone, because with many sectors a random
subset is hardly ever a beginning of them, or all.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, Literal, TypeAlias

import msgspec

__all__ = ["SECTOR_BYTES", "FileImage", "Outcome"]

SECTOR_BYTES: Final = 512
STATES_MAX: Final = 6
"""Of how many moments between two syncs the sectors of a scattered outcome are taken."""

Outcome: TypeAlias = Literal["nothing", "everything", "in order", "scattered"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("nothing", "everything", "in order", "scattered")


class Change(msgspec.Struct, frozen=True):
    """Bytes written at an offset, which is the end of the file afterwards if there are none."""

    offset: int
    data: bytes


class FileImage:
    """The bytes of one file."""

    __slots__ = ("_changes", "_data", "_durable", "_phantom", "_snapshot")

    def __init__(self) -> None:
        self._data = bytearray()
        self._durable = b""
        self._changes: list[Change] = []
        self._phantom = False
        self._snapshot: bytes | None = b""

    @property
    def dirty(self) -> bool:
        """Whether anybody sees what is not on the disk."""
        return bool(self._changes) or self._phantom

    def __len__(self) -> int:
        return len(self._data)

    def data(self) -> bytes:
        """Return the bytes as they are seen at this moment."""
        if self._snapshot is None:
            self._snapshot = bytes(self._data)
        return self._snapshot

    def append(self, data: bytes) -> None:
        """Write at the end."""
        if data:
            self._changes.append(Change(len(self._data), data))
            self._data += data
            self._snapshot = None

    def truncate(self, size: int) -> bytes:
        """Cut to a size, or fill with zeros up to it; return the bytes cut off."""
        gone = bytes(self._data[size:])
        self._data[size:] = bytes(max(0, size - len(self._data)))
        self._changes.append(Change(size, b""))
        self._snapshot = None
        return gone

    def sync(self) -> None:
        """Put everything on the disk."""
        if self._changes:
            self._durable = self._merged()
            self._changes.clear()

    def flip(self, bit: int) -> None:
        """Turn one bit round, on the disk and for everybody who reads."""
        place, mask = bit >> 3, 1 << (bit & 7)
        self._data[place] ^= mask
        self._snapshot = None
        if place < len(self._durable):
            durable = bytearray(self._durable)
            durable[place] ^= mask
            self._durable = bytes(durable)

    def copy(self) -> "FileImage":
        """Return an image that holds the same and goes its own way."""
        other = FileImage()
        other._data[:] = self._data
        other._durable, other._phantom, other._snapshot = self._durable, self._phantom, self._snapshot
        other._changes = list(self._changes)
        return other

    def lose_power(self, random: Random, garbage: Callable[[], bytes], *, cached: bool = False) -> Outcome:
        """Draw what is on the disk; whoever reads sees that too, unless what was written is still `cached`.

        With `cached` the changes are forgotten all the same: no later sync brings them to the disk. `garbage` gives
        what stands in a sector that was never written.
        """
        outcome: Outcome = random.choice(OUTCOMES) if self._changes else "everything"
        match outcome:
            case "nothing":
                pass
            case "everything":
                self.sync()
            case "in order":
                self._durable = self._in_order(random)
            case "scattered":
                self._durable = self._scattered(random, garbage)
        self._changes.clear()
        self._phantom = cached
        if not cached:
            self._data[:] = self._durable
            self._snapshot = None
        return outcome

    def _merged(self) -> bytes:
        """Return what is on the disk when all changes are: not `data`, if some were lost by a failed sync."""
        return bytes(_carry_out(bytearray(self._durable), self._changes))

    def _in_order(self, random: Random) -> bytes:
        """Some changes, and a part of the next: up to the end of a sector, or with the length of any byte."""
        whole = random.randrange(len(self._changes))
        image, torn = _carry_out(bytearray(self._durable), self._changes[:whole]), self._changes[whole]
        size = random.randrange(len(torn.data) + 1)
        if random.random() < 0.5:
            size = max(0, size - (torn.offset + size) % SECTOR_BYTES)
        return bytes(_carry_out(image, [Change(torn.offset, torn.data[:size])] if size else []))

    def _scattered(self, random: Random, garbage: Callable[[], bytes]) -> bytes:
        """Each sector from another moment, or never written at all; a length that the file had, or between them."""
        states = self._states(random)
        sizes = [len(state) for state in states]
        size = random.choice([*sizes, random.randint(min(sizes), max(sizes))])
        low = min(change.offset for change in self._changes) // SECTOR_BYTES * SECTOR_BYTES
        image = bytearray(states[0][: min(low, size)])
        for start in range(low, size, SECTOR_BYTES):
            image += self._sector(start, states, random, garbage)
        return bytes(image[:size])

    def _sector(self, start: int, states: Sequence[bytes], random: Random, garbage: Callable[[], bytes]) -> bytes:
        fresh = start >= len(self._durable)
        if fresh and random.random() < 0.2:
            return garbage()
        state = random.choice(states)
        return state[start : start + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0")

    def _states(self, random: Random) -> list[bytes]:
        """Return the bytes as they were on the disk, in the end, and at some moments between."""
        last = len(self._changes)
        moments = sorted(random.sample(range(1, last), min(last - 1, STATES_MAX)))
        image, done, states = bytearray(self._durable), 0, [self._durable]
        for moment in [*moments, last]:
            _carry_out(image, self._changes[done:moment])
            done = moment
            states.append(bytes(image))
        return states


def _carry_out(image: bytearray, changes: Sequence[Change]) -> bytearray:
    for change in changes:
        if len(image) < change.offset:
            image += bytes(change.offset - len(image))
        if change.data:
            image[change.offset : change.offset + len(change.data)] = change.data
        else:
            del image[change.offset :]
    return image
