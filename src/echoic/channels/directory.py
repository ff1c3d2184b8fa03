"""The channel manager's book: who takes part in which channel.

The hub that creates a channel manages it (JECho, section 4: channel managers). The book is all a manager has; events do
not pass through it, so its hub may come and go without stopping traffic. Each method says who must be told.
"""

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from echoic.channels.identity import check_channel_name
from echoic.channels.messages import ChannelEntry, SinkHub
from echoic.errors import ChannelExistsError, ChannelNotFoundError, LimitExceededError
from echoic.formats import Format

__all__ = ["Directory", "ManagedChannel", "nearest"]

MEMBERS_MAX: Final = 65_536  # hubs with sources of one channel, and as many with sinks


@dataclass(slots=True)
class ManagedChannel:
    """One channel: its type and the hubs that hold its ends."""

    name: str
    format: Format | None
    sources: set[str] = field(default_factory=set)
    sinks: dict[str, SinkHub] = field(default_factory=dict)


class Directory:
    """The channels that one hub manages."""

    def __init__(self) -> None:
        self._channels: dict[str, ManagedChannel] = {}

    def create(self, name: str, format: Format | None) -> ManagedChannel:
        """Enter a channel.

        Raises:
            AddressError: The name cannot be one.
            ChannelExistsError: There is a channel of this name already.
        """
        check_channel_name(name)
        if name in self._channels:
            raise ChannelExistsError(f"a channel named `{name}` exists here already")
        self._channels[name] = ManagedChannel(name, format)
        return self._channels[name]

    def get(self, name: str) -> ManagedChannel:
        """Return a channel.

        Raises:
            ChannelNotFoundError: There is none of this name; the message names the nearest ones.
        """
        channel = self._channels.get(name)
        if channel is None:
            raise ChannelNotFoundError(f"channel `{name}` not found{nearest(name, self._channels)}")
        return channel

    def remove(self, name: str) -> ManagedChannel:
        """Forget a channel.

        Raises:
            ChannelNotFoundError: There is none of this name.
        """
        channel = self.get(name)
        del self._channels[name]
        return channel

    def join_source(self, name: str, address: str) -> list[SinkHub]:
        """Enter a hub with sources; return the hubs it must send to.

        Raises:
            ChannelNotFoundError: There is no such channel.
            LimitExceededError: It has too many already.
        """
        channel = self.get(name)
        _check_room(name, address, channel.sources)
        channel.sources.add(address)
        return list(channel.sinks.values())

    def join_sink(self, name: str, sink: SinkHub) -> list[str]:
        """Enter a hub with sinks; return the hubs that must send to it.

        Raises:
            ChannelNotFoundError: There is no such channel.
            LimitExceededError: It has too many already.
        """
        channel = self.get(name)
        _check_room(name, sink.address, channel.sinks)
        channel.sinks[sink.address] = sink
        return sorted(channel.sources)

    def leave_source(self, name: str, address: str) -> None:
        """Strike a hub with sources."""
        self.get(name).sources.discard(address)

    def leave_sink(self, name: str, address: str) -> list[str]:
        """Strike a hub with sinks; return the hubs that must stop sending to it."""
        channel = self.get(name)
        channel.sinks.pop(address, None)
        return sorted(channel.sources)

    def forget_hub(self, address: str) -> None:
        """Strike a hub that has vanished, everywhere."""
        for channel in self._channels.values():
            channel.sources.discard(address)
            channel.sinks.pop(address, None)

    def entries(self, address: str) -> list[ChannelEntry]:
        """Return the channels as lines of a listing."""
        return [
            ChannelEntry(
                channel.name,
                f"echoic://{address}/{channel.name}",
                channel.format.name if channel.format else "",
                len(channel.sources),
                len(channel.sinks),
            )
            for channel in sorted(self._channels.values(), key=lambda channel: channel.name)
        ]


def _check_room(name: str, address: str, known: Collection[str]) -> None:
    if len(known) >= MEMBERS_MAX and address not in known:
        raise LimitExceededError(f"{len(known)} hubs take part in `{name}` already, which is the limit")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at names like the one that was not found."""
    near = difflib.get_close_matches(name, list(known), n=2)
    return f"; did you mean {' or '.join(f'`{other}`' for other in near)}?" if near else ""
