"""Grants: what somebody who looks at the page may see and do. This module is pure.

Whoever has the token that the viewer has drawn may do everything. A signed token (`echoic keys token`) says which
rights its owner has on which channels, and the page has no more than that:

    subscribe    the channel is listed, described and watched; what the page derives for a picture is a part of that
    derive       code of one's own is checked and derived from it; what was derived is dropped
    steer        its parameters are changed

What is not granted does not exist: it is neither listed nor counted, and asked for by name it is not found. Groups,
pipelines and buses are told of under the names of their channels: `NAME.group`, `pipeline.NAME`, `bus.NAME`.
"""

from typing import Final

import msgspec

from echoic.errors import RefusedError
from echoic.formats import shown
from echoic.rights import Pattern
from echoic.trust import ALL_RIGHTS, Claims

__all__ = ["EVERYTHING", "Grant"]


class Grant(msgspec.Struct, frozen=True):
    """What somebody may do."""

    who: str
    """By what name; "" for whoever has started the viewer."""
    rights: frozenset[str]
    channels: tuple[str, ...]

    @classmethod
    def of(cls, claims: Claims) -> "Grant":
        """Return what a token grants."""
        return cls(claims.who, frozenset(claims.rights), claims.channels)

    @property
    def whole(self) -> bool:
        """Whether it is everything."""
        return self == EVERYTHING

    def allows(self, right: str, channel: str) -> bool:
        """Tell whether a right on a channel is granted, by the channel's name."""
        return right in self.rights and any(Pattern(each).matches(channel) for each in self.channels)

    def require(self, right: str, channel: str) -> None:
        """See that a right on a channel is granted.

        Raises:
            RefusedError: It is not.
        """
        if not self.allows(right, channel):
            raise RefusedError(f"the token of `{self.who}` does not grant `{right}` on `{shown(channel)}`")


EVERYTHING: Final = Grant("", frozenset(ALL_RIGHTS), ("*",))
