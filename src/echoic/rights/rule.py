"""One rule: a line of an operator's file."""

import msgspec

from echoic.rights.pattern import Pattern
from echoic.rights.right import RIGHTS, Right

__all__ = ["Rule"]


class Rule(msgspec.Struct, frozen=True):
    """A line of an operator's file."""

    allow: bool
    who: Pattern
    rights: tuple[Right, ...]
    channels: Pattern
    place: str = ""
    """Where it stands, for people."""

    def __str__(self) -> str:
        word = "allow" if self.allow else "deny"
        rights = "*" if len(self.rights) == len(RIGHTS) else ",".join(self.rights)
        place = f" - at {self.place}" if self.place else ""
        return f"`{word} {self.who.text} {rights} {self.channels.text}`{place}"
