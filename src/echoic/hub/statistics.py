"""What a hub tells of itself: its links, and what goes through its channels."""

import msgspec

from echoic.channels import ChannelCounts, SessionStatistics
from echoic.hub.link import Link
from echoic.values import StoreStatistics

__all__ = ["HubStatistics", "LinkStatistics", "link_statistics"]


class LinkStatistics(msgspec.Struct, frozen=True):
    """A link to another hub."""

    hub: str
    address: str
    name: str
    who: str
    """The name in its certificate, "" if it has shown none."""
    connected: bool
    clogged: bool
    session: SessionStatistics


class HubStatistics(msgspec.Struct, frozen=True):
    """Who is connected, and what goes through the channels that are open here."""

    address: str
    links: list[LinkStatistics]
    channels: list[ChannelCounts]
    large: StoreStatistics
    """Events that are too large for a frame and on their way."""


def link_statistics(link: Link) -> LinkStatistics:
    """Return how a link stands."""
    neighbour = link.neighbour
    return LinkStatistics(
        link.hub,
        neighbour.address,
        neighbour.name,
        neighbour.who,
        neighbour.connected,
        link.is_clogged,
        neighbour.session.statistics(),
    )
