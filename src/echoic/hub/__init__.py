"""Edge: touches sockets and threads. Joins it all: the concentrator, its links, channels, sources and sinks."""

from echoic.groups.engine import View
from echoic.hub.audit import AuditRecord
from echoic.hub.channel import Channel
from echoic.hub.context import Context
from echoic.hub.derived import DerivationHandle, Parameters
from echoic.hub.durable import DurableSink, DurableStatistics, Stamp
from echoic.hub.eager_sink import EagerSink
from echoic.hub.group import Group, GroupEvents, GroupSink, GroupStatistics
from echoic.hub.group_delivery import GroupStamp, GroupState
from echoic.hub.group_joining import JoinKeywords
from echoic.hub.group_status import GroupStatus, GroupStatusSource, PackingChanged
from echoic.hub.hub import Hub
from echoic.hub.intake import Intake, IntakeLimits, IntakeStatistics
from echoic.hub.intake_client import IntakeClient
from echoic.hub.moving import SinkState, SourceState
from echoic.hub.notebook_faces import Live
from echoic.hub.outbound import Source, SourceStatistics
from echoic.hub.recording import Recording, RecordingStatistics
from echoic.hub.replay import Replay, ReplayStatistics
from echoic.hub.sink import Events, Sink, SinkStatistics
from echoic.hub.statistics import HubStatistics, LinkStatistics
from echoic.hub.steering import Controls

__all__ = [
    "AuditRecord",
    "Channel",
    "Context",
    "Controls",
    "DerivationHandle",
    "DurableSink",
    "DurableStatistics",
    "EagerSink",
    "Events",
    "Group",
    "GroupEvents",
    "GroupSink",
    "GroupStamp",
    "GroupState",
    "GroupStatistics",
    "GroupStatus",
    "GroupStatusSource",
    "Hub",
    "HubStatistics",
    "Intake",
    "IntakeClient",
    "IntakeLimits",
    "IntakeStatistics",
    "JoinKeywords",
    "LinkStatistics",
    "Live",
    "PackingChanged",
    "Parameters",
    "Recording",
    "RecordingStatistics",
    "Replay",
    "ReplayStatistics",
    "Sink",
    "SinkState",
    "SinkStatistics",
    "Source",
    "SourceState",
    "SourceStatistics",
    "Stamp",
    "View",
]
