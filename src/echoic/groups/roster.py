"""The roster: who may be in the group, and whose word counts.

A member has a *home*, a number that is drawn when the storage for its votes is made: a folder, or the memory of a
process. A member whose storage is gone has forgotten what it has voted for and acknowledged, so whoever comes back
under its name has another home, and is another member to all who count (diskless recovery that reuses votes is known to
be wrong: Michael, Ports, Sharma and Szekeres, DISC 2017). It is given the seat of its former self in two steps, each of
which changes the set of voters by one, so that any two majorities of neighbouring rosters have a member in common:

    a b c   ->   a b (c')   ->   a b c'              (c') learns: it is sent everything and has no vote yet
"""

import zlib
from typing import Final

import msgspec

from echoic.errors import MalformedFrameError

__all__ = ["SEATS_MAX", "Roster", "Seat", "decode_roster", "encode_roster", "group_of"]

SEATS_MAX: Final = 64


class Seat(msgspec.Struct, frozen=True, array_like=True):
    """A member's place in the roster."""

    name: str
    home: int
    """0 while nobody has taken it."""
    address: str
    voting: bool


class Roster(msgspec.Struct, frozen=True, array_like=True):
    """The seats of a group, sorted by name."""

    seats: tuple[Seat, ...] = ()

    def find(self, name: str) -> Seat | None:
        """Return the seat of a name."""
        for seat in self.seats:
            if seat.name == name:
                return seat
        return None

    def holds(self, name: str, home: int) -> bool:
        """Whether a member has a seat, with this home."""
        seat = self.find(name)
        return seat is not None and seat.home == home

    @property
    def voters(self) -> tuple[str, ...]:
        """The names of those whose word counts."""
        return tuple(seat.name for seat in self.seats if seat.voting)

    def placing(self, seat: Seat) -> "Roster":
        """Return the roster with a seat in the place of the one that its name had."""
        kept = [each for each in self.seats if each.name != seat.name]
        return Roster(tuple(sorted([*kept, seat], key=lambda each: each.name)))

    def without(self, name: str) -> "Roster":
        """Return the roster without a name."""
        return Roster(tuple(seat for seat in self.seats if seat.name != name))


_decoder: Final = msgspec.msgpack.Decoder(Roster)


def encode_roster(roster: Roster) -> bytes:
    """Return a roster as it stands in the log."""
    return msgspec.msgpack.encode(roster)


def decode_roster(data: bytes) -> Roster:
    """Return the roster of an entry of the log.

    Raises:
        MalformedFrameError: It is not one.
    """
    try:
        roster = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFrameError(f"a roster of {len(data)} bytes cannot be read: {error}") from error
    if not roster.voters:
        raise MalformedFrameError("a roster has no member that may vote")
    if len(roster.seats) > SEATS_MAX or len({seat.name for seat in roster.seats}) != len(roster.seats):
        raise MalformedFrameError(
            f"a roster has {len(roster.seats)} seats, limit is {SEATS_MAX}, each with a name of its own"
        )
    return roster


def group_of(founding: bytes) -> int:
    """Return the number of a group, which its founding roster decides: never 0, and another one for other homes."""
    return zlib.crc32(founding) << 32 | zlib.crc32(founding[::-1]) | 1
