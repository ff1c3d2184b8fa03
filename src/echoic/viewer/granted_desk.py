"""The desk as somebody has it who may not do everything: what is not granted is not found, or refused.

A channel that is not to be seen is answered for as one that does not exist, in the same words, and without the names
that are like it.

The viewer's hub connects to where a channel is managed, with the certificate of the viewer. So a token is asked by the
name alone, before anybody is; and where an id leads is believed only if the viewer's hub or its name server knows that
there is a hub which manages channels, as it does of all that the page lists. Else whoever has any token could have the
viewer knock at any door of its network.
"""

import contextlib
from collections.abc import Iterator
from typing import Final

import msgspec

from echoic.channels import ChannelId
from echoic.errors import ChannelNotFoundError, EchoicError
from echoic.formats import shown
from echoic.hub import Channel
from echoic.rights import Right
from echoic.viewer.editing import Desk
from echoic.viewer.grants import Grant
from echoic.viewer.messages import Check, Checked, Derive, Description, Mistake, Steer

__all__ = ["GrantedDesk"]

SHOWN_RIGHTS: Final[tuple[Right, ...]] = ("derive", "steer")


class GrantedDesk:
    """Does with channels what a grant allows.

    Args:
        desk: That of the viewer.
        grant: What is allowed.
        peer: Whose grant it is, for the audit: host and port.
    """

    def __init__(self, desk: Desk, grant: Grant, peer: str = "") -> None:
        self._desk = desk
        self._grant = grant
        self._peer = peer

    def find(self, channel: str, right: Right = "subscribe", request: str = "Open") -> Channel:
        """Open a channel by name or id.

        Raises:
            ChannelNotFoundError: It is not there, or not to be seen.
            RefusedError: It is to be seen, and the right is not granted.
        """
        if self._grant.whole:
            return self._desk.find(channel)
        found = self._seen(channel, request)
        if found is None:
            raise _not_found(channel)
        if right != "subscribe":
            self._require(right, found.name, found.ancestors, request)
        return found

    def _seen(self, channel: str, request: str) -> Channel | None:
        """Return a channel that somebody may see; None if he may not, or there is none."""
        try:
            id = ChannelId.parse(channel) if "://" in channel else None
            if not self._grant.grants("subscribe", id.name if id is not None else channel):
                return None
            if id is not None and not self._desk.is_known(id.address):
                return None
            found = self._desk.find(channel)
            self._require("subscribe", found.name, found.ancestors, request)
        except EchoicError:
            return None
        return found

    def may_see(self, channel: Channel) -> bool:
        """Tell whether a channel that was opened may still be seen."""
        return self._grant.allows("subscribe", channel.name, channel.ancestors)

    def describe(self, channel: str, number: int) -> Description:
        """Return what a channel is, and what may be done with it.

        Raises:
            EchoicError: It is not there.
        """
        found = self.find(channel, request="Describe")
        with self._unnamed(channel):
            return self._described(self._desk.describe(found.id, number), found)

    def check(self, request: Check) -> Checked:
        """Return what is wrong with code.

        Raises:
            EchoicError: The channel is not there, or it may not be derived from.
        """
        found = self.find(request.channel, "derive", "Check")
        with self._unnamed(request.channel):
            return self._desk.check(msgspec.structs.replace(request, channel=found.id))

    def derive(self, request: Derive) -> Description | list[Mistake]:
        """Derive a channel, or return what is wrong with its code.

        Raises:
            EchoicError: The channel is not there, it may not be derived from, or what is derived could not be seen.
        """
        parent = self.find(request.channel, "derive", "Derive")
        if not self._grant.whole:
            self._check_name(request.name, [parent.name, *parent.ancestors])
        with self._unnamed(request.channel):
            made = self._desk.derive(msgspec.structs.replace(request, channel=parent.id), self._grant.who)
            return self._described(made, self._desk.kept(made.id)) if isinstance(made, Description) else made

    def drop(self, channel: str) -> str:
        """Forget a channel that was derived here; return its id.

        It is judged by what is kept of it, since whoever manages it may be gone.

        Raises:
            EchoicError: It was not, or it is not for this one to drop.
        """
        kept = self._desk.kept(channel)
        if kept is None:
            self.find(channel, "derive", "Drop")
            return self._desk.drop(channel)
        if not self._grant.whole:
            if not self.may_see(kept):
                raise _not_found(channel)
            self._require("derive", kept.name, kept.ancestors, "Drop")
        return self._desk.drop(kept.id)

    def steer(self, request: Steer) -> Description:
        """Change parameters of a derived channel; returns when every source knows.

        Raises:
            EchoicError: It is not there, may not be steered, has no such parameters, or a value does not fit.
        """
        found = self.find(request.channel, "steer", "Steer")
        with self._unnamed(request.channel):
            return self._described(self._desk.steer(msgspec.structs.replace(request, channel=found.id)), found)

    @contextlib.contextmanager
    def _unnamed(self, channel: str) -> Iterator[None]:
        """Have a channel that is gone by now be as one that never was, without the names that are like its own."""
        try:
            yield
        except ChannelNotFoundError as error:
            if self._grant.whole:
                raise
            raise _not_found(channel) from error

    def _require(self, right: Right, name: str, ancestors: list[str], request: str) -> None:
        self._grant.require(right, name, ancestors, request=request, peer=self._peer)

    def _check_name(self, name: str, ancestors: list[str]) -> None:
        """Demand that what is derived can be seen, and with rights that it is called after what it is derived from.

        By another name its events would go to whoever has a right to that (`channels.admission`).

        Raises:
            RefusedError: It is not.
        """
        self._require("subscribe", name, ancestors, "Derive")
        if self._grant.ruled and name and not any(name.startswith(f"{each}.") for each in ancestors):
            self._require("admin", name, [], "Derive")

    def _described(self, description: Description, channel: Channel | None) -> Description:
        """Return a description with what may be done, and without what is not to be seen."""
        grant = self._grant
        if grant.whole:
            return description
        ancestors = (channel or self._desk.find(description.id)).ancestors
        may = tuple(right for right in SHOWN_RIGHTS if grant.allows(right, description.name, ancestors))
        parent = description.parent
        if parent and not grant.allows("subscribe", parent, [each for each in ancestors if each != parent]):
            return msgspec.structs.replace(description, may=may, parent="", code="", spelling="")
        return msgspec.structs.replace(description, may=may)


def _not_found(channel: str) -> ChannelNotFoundError:
    """Return what is said of a channel that is not there, and of one that is not to be seen."""
    return ChannelNotFoundError(f"channel '{shown(channel)}' not found")
