"""Edge: touches sockets and threads. Joins it all: the concentrator, its links, channels, sources and sinks."""

from echoic.hub.channel import Channel
from echoic.hub.context import Context
from echoic.hub.derived import DerivationHandle, Parameters
from echoic.hub.eager_sink import EagerSink
from echoic.hub.hub import Hub, HubStatistics, LinkStatistics
from echoic.hub.moving import SinkState
from echoic.hub.outbound import Source, SourceState, SourceStatistics
from echoic.hub.sink import Events, Sink, SinkStatistics
from echoic.hub.steering import Controls

__all__ = [
    "Channel",
    "Context",
    "Controls",
    "DerivationHandle",
    "EagerSink",
    "Events",
    "Hub",
    "HubStatistics",
    "LinkStatistics",
    "Parameters",
    "Sink",
    "SinkState",
    "SinkStatistics",
    "Source",
    "SourceState",
    "SourceStatistics",
]
