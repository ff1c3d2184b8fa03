"""The desk as somebody has it who may not do everything: what is not granted is not found, or refused.

A channel that is not to be seen is answered for as one that does not exist, in the same words, and without the names
that are like it.
"""

from typing import Final

import msgspec

from echoic.errors import ChannelNotFoundError, EchoicError
from echoic.formats import shown
from echoic.hub import Channel
from echoic.viewer.editing import Desk
from echoic.viewer.grants import Grant
from echoic.viewer.messages import Check, Checked, Derive, Description, Mistake, Steer

__all__ = ["GrantedDesk"]

SHOWN_RIGHTS: Final = ("derive", "steer")


class GrantedDesk:
    """Does with channels what a grant allows.

    Args:
        desk: That of the viewer.
        grant: What is allowed.
    """

    def __init__(self, desk: Desk, grant: Grant) -> None:
        self._desk = desk
        self._grant = grant

    def find(self, channel: str, right: str = "subscribe") -> Channel:
        """Open a channel by name or id.

        Raises:
            ChannelNotFoundError: It is not there, or not to be seen.
            RefusedError: It is to be seen, and the right is not granted.
        """
        if self._grant.whole:
            return self._desk.find(channel)
        try:
            found: Channel | None = self._desk.find(channel)
        except EchoicError:
            found = None
        if found is None or not self._grant.allows("subscribe", found.name):
            raise ChannelNotFoundError(f"channel '{shown(channel)}' not found")
        self._grant.require(right, found.name)
        return found

    def describe(self, channel: str, number: int) -> Description:
        """Return what a channel is, and what may be done with it.

        Raises:
            EchoicError: It is not there.
        """
        return self._described(self._desk.describe(self.find(channel).id, number))

    def check(self, request: Check) -> Checked:
        """Return what is wrong with code.

        Raises:
            EchoicError: The channel is not there, or it may not be derived from.
        """
        self.find(request.channel, "derive")
        return self._desk.check(request)

    def derive(self, request: Derive) -> Description | list[Mistake]:
        """Derive a channel, or return what is wrong with its code.

        Raises:
            EchoicError: The channel is not there, it may not be derived from, or what is derived could not be seen.
        """
        self.find(request.channel, "derive")
        self._grant.require("subscribe", request.name)
        made = self._desk.derive(request)
        return self._described(made) if isinstance(made, Description) else made

    def drop(self, channel: str) -> str:
        """Forget a channel that was derived here; return its id.

        Raises:
            EchoicError: It was not, or it is not for this one to drop.
        """
        self.find(channel, "derive")
        return self._desk.drop(channel)

    def steer(self, request: Steer) -> Description:
        """Change parameters of a derived channel; returns when every source knows.

        Raises:
            EchoicError: It is not there, may not be steered, has no such parameters, or a value does not fit.
        """
        self.find(request.channel, "steer")
        return self._described(self._desk.steer(request))

    def _described(self, description: Description) -> Description:
        """Return a description with what may be done, and without what is not to be seen."""
        grant = self._grant
        if grant.whole:
            return description
        may = tuple(right for right in SHOWN_RIGHTS if grant.allows(right, description.name))
        try:
            if description.parent:
                self.find(description.parent)
        except ChannelNotFoundError:
            return msgspec.structs.replace(description, may=may, parent="", code="", spelling="")
        return msgspec.structs.replace(description, may=may)
