"""The name server's book: where each channel is managed.

A name server defines a name space (JECho, section 4): a channel's full name is <name server, name>. A system may have
several, which know nothing of each other.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from echoic.channels.directory import nearest
from echoic.channels.identity import ChannelId, check_channel_name
from echoic.channels.messages import ChannelEntry
from echoic.errors import AddressError, ChannelExistsError, ChannelNotFoundError, LimitExceededError

__all__ = ["NameTable"]

NAMES_MAX: Final = 1_000_000


class NameTable:
    """Names and the ids they stand for."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def register(self, name: str, id: str, living: AbstractSet[str]) -> None:
        """Enter a name. One that stands for a channel of a hub that does not live any more is taken over.

        Raises:
            AddressError: The name or the id is malformed, or they do not belong together.
            ChannelExistsError: The name stands for another channel.
            LimitExceededError: The table is full.
        """
        check_channel_name(name)
        if ChannelId.parse(id).name != name:
            raise AddressError(f"`{id}` is not the id of a channel named `{name}`")
        known = self._ids.get(name)
        if known is not None and known != id and ChannelId.parse(known).address in living:
            raise ChannelExistsError(f"`{name}` is registered already, as {known}")
        if known is None and len(self._ids) >= NAMES_MAX:
            raise LimitExceededError(f"{len(self._ids)} names are registered, which is the limit")
        self._ids[name] = id

    def unregister(self, name: str, id: str) -> None:
        """Strike a name, if it stands for this channel."""
        if self._ids.get(name) == id:
            del self._ids[name]

    def resolve(self, name: str) -> str:
        """Return the id a name stands for.

        Raises:
            ChannelNotFoundError: Nobody registered it; the message names the nearest ones.
        """
        known = self._ids.get(name)
        if known is None:
            raise ChannelNotFoundError(f"channel `{name}` not found{nearest(name, self._ids)}")
        return known

    def forget_hub(self, address: str) -> None:
        """Strike all names of a hub that has vanished."""
        for name in [name for name, id in self._ids.items() if ChannelId.parse(id).address == address]:
            del self._ids[name]

    def entries(self) -> list[ChannelEntry]:
        """Return the names as lines of a listing."""
        return [ChannelEntry(name, id) for name, id in sorted(self._ids.items())]
