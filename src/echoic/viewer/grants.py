"""Grants: what somebody who looks at the page may see and do. This module is pure.

Whoever has the token that the viewer has drawn may do everything. A signed token (`echoic keys token`) says which
rights its owner has on which channels, and the page has no more than that:

    subscribe    the channel is listed, described and watched; what the page derives for a picture is a part of that
    derive       code of one's own is checked and derived from it; what was derived is dropped
    steer        its parameters are changed

What is not granted does not exist: it is neither listed nor counted, and asked for by name it is not found. Groups,
pipelines and buses are told of under the names of their channels: `NAME.group`, `pipeline.NAME`, `bus.NAME`.

Where the viewer's hub goes by a file of rights, both must allow it: the token, and the file for the name in the token,
as it is at the moment. A token alone says nothing of what a channel is derived from; the file does, as everywhere.
"""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from echoic.errors import RefusedError
from echoic.formats import shown
from echoic.rights import Decision, Pattern, Right
from echoic.trust import ALL_RIGHTS, Claims

__all__ = ["EVERYTHING", "Grant", "Rules"]


class Rules(Protocol):
    """The rights of a hub (`Hub.decide`)."""

    def __call__(
        self, who: str, right: Right, name: str, request: str = "", peer: str = "", ancestors: Sequence[str] = ()
    ) -> Decision | None:
        """Return whether somebody may do something, None if there are no rules; a request is told in the audit."""


class Grant(msgspec.Struct, frozen=True):
    """What somebody may do."""

    who: str
    """By what name; "" for whoever has started the viewer."""
    rights: frozenset[str]
    channels: tuple[str, ...]
    rules: Rules | None = None
    """What else must allow it."""

    @classmethod
    def of(cls, claims: Claims, rules: Rules | None = None) -> "Grant":
        """Return what a token grants."""
        return cls(claims.who, frozenset(claims.rights), claims.channels, rules)

    @property
    def whole(self) -> bool:
        """Whether it is everything."""
        return self == EVERYTHING

    @property
    def ruled(self) -> bool:
        """Whether there are rules at the moment."""
        return self.rules is not None and self.rules(self.who, "subscribe", "") is not None

    def grants(self, right: Right, channel: str) -> bool:
        """Tell whether the token grants a right on a channel, whatever the rules say."""
        return right in self.rights and any(Pattern(each).matches(channel) for each in self.channels)

    def allows(self, right: Right, channel: str, ancestors: Sequence[str] = ()) -> bool:
        """Tell whether a right on a channel is granted, by the channel's name and those it is derived from."""
        if not self.grants(right, channel):
            return False
        decision = self.rules(self.who, right, channel, ancestors=ancestors) if self.rules is not None else None
        return decision is None or decision.allowed

    def require(
        self, right: Right, channel: str, ancestors: Sequence[str] = (), *, request: str = "", peer: str = ""
    ) -> None:
        """See that a right on a channel is granted; what rules decide is told in the audit.

        Args:
            right: The right.
            channel: The name of the channel.
            ancestors: Those it is derived from.
            request: In what it is wanted.
            peer: By whom.

        Raises:
            RefusedError: It is not.
        """
        if not self.grants(right, channel):
            raise RefusedError(f"the token of `{self.who}` does not grant `{right}` on `{shown(channel)}`")
        if self.rules is None:
            return
        decision = self.rules(self.who, right, channel, request, peer, ancestors)
        if decision is not None and not decision:
            raise RefusedError(f"`{self.who}` may not {right} `{shown(channel)}` by the rights of the viewer's hub")


EVERYTHING: Final = Grant("", frozenset(ALL_RIGHTS), ("*",))
