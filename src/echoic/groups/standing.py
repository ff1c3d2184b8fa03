"""How things stand after so many entries: members, senders, the view.

It follows from the entries alone, so it is the same everywhere after the same entry. A member keeps it for where its
log begins (a snapshot is this and what the application adds), for what it has delivered, and as a leader for the end of
its log, where it decides which pack of a sender is the next one.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from echoic.errors import MalformedFrameError
from echoic.groups.roster import Roster, decode_roster, group_of
from echoic.groups.writes import Entry

__all__ = ["DATA", "LIVES_MAX", "ROSTER", "VIEW", "Standing", "check_entry", "decode_standing", "decode_view"]

VIEW: Final = 0
DATA: Final = 1
ROSTER: Final = 2
LIVES_MAX: Final = 16
"""Of how many lives of a member it is known which packs they have sent; what is under way is of the last few."""

_names: Final = msgspec.msgpack.Decoder(tuple[str, ...])


def decode_view(data: bytes) -> tuple[str, ...]:
    """Return the names of a view's entry.

    Raises:
        MalformedFrameError: It is none.
    """
    try:
        return _names.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFrameError(f"a view of {len(data)} bytes cannot be read: {error}") from error


def check_entry(entry: Entry, term: int) -> None:
    """See whether an entry that a leader has sent in a term can be one.

    Raises:
        MalformedFrameError: It cannot.
    """
    if not 0 <= entry.term <= term:
        raise MalformedFrameError(f"an entry is of term {entry.term}, its leader of term {term}")
    if entry.kind == VIEW:
        decode_view(entry.payload)
    elif entry.kind == ROSTER:
        decode_roster(entry.payload)
    elif entry.kind != DATA:
        raise MalformedFrameError(f"an entry is of kind {entry.kind}, expected {VIEW}, {DATA} or {ROSTER}")


class Standing(msgspec.Struct, array_like=True):
    """What follows from the entries up to `index`."""

    index: int = 0
    group: int = 0
    """The number of the group, 0 before it was founded."""
    roster: Roster = Roster()
    view: tuple[str, ...] = ()
    view_index: int = 0
    senders: dict[str, list[tuple[int, int]]] = msgspec.field(default_factory=dict)
    """For each member the number of the last pack of each of its lives, the latest life last."""

    def copy(self) -> "Standing":
        """Return one that can be advanced by itself."""
        senders = {name: lives.copy() for name, lives in self.senders.items()}
        return Standing(self.index, self.group, self.roster, self.view, self.view_index, senders)

    def last(self, sender: str, life: int) -> int:
        """Return the number of a sender's last pack, 0 if it has sent none in this life."""
        return next((number for each, number in self.senders.get(sender, ()) if each == life), 0)

    def advance(self, entry: Entry) -> None:
        """Let the next entry count."""
        self.index += 1
        if entry.kind == DATA:
            lives = self.senders.setdefault(entry.sender, [])
            if lives and lives[-1][0] == entry.life:
                lives[-1] = (entry.life, entry.number)
            else:
                others = [each for each in lives if each[0] != entry.life][1 - LIVES_MAX :]
                self.senders[entry.sender] = [*others, (entry.life, entry.number)]
        elif entry.kind == VIEW:
            self.view, self.view_index = decode_view(entry.payload), self.index
        else:
            self.roster = decode_roster(entry.payload)
            self.group = self.group or group_of(entry.payload)
            self.senders = {name: lives for name, lives in self.senders.items() if self.roster.find(name)}

    def advance_all(self, entries: Iterable[Entry]) -> "Standing":
        """Let entries count, one after the other."""
        for entry in entries:
            self.advance(entry)
        return self

    def encode(self) -> bytes:
        """Return it as the body of a snapshot."""
        return msgspec.msgpack.encode(self)


_decoder: Final = msgspec.msgpack.Decoder(Standing)


def decode_standing(body: bytes) -> Standing:
    """Return what the body of a snapshot says.

    Raises:
        MalformedFrameError: It is not one.
    """
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFrameError(f"a snapshot's body of {len(body)} bytes cannot be read: {error}") from error
