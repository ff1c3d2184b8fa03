"""Pure. Who gets an event: channels, their members and managers, what hubs tell each other, sessions, credits."""

from echoic.channels.concentrator import Concentrator
from echoic.channels.directory import Directory, ManagedChannel, nearest
from echoic.channels.effects import Delivery, Dial, Effect, Ended, Forgotten, Missed
from echoic.channels.express import RECORD_START, REPLY_BYTES, VARIABLE_START, ArrivalLane, CallLane, decode_reply
from echoic.channels.fanout import CREDIT_BYTES, Fanout, Run, Target
from echoic.channels.greeting import Greeting
from echoic.channels.identity import ChannelId, check_channel_name
from echoic.channels.member import Call, Member
from echoic.channels.messages import (
    Browse,
    ChannelCounts,
    ChannelEntry,
    Describe,
    Described,
    Done,
    Gap,
    Joined,
    Listing,
    Message,
    Refused,
    Report,
    Reported,
    Resolve,
    Resolved,
    SinkHub,
    Slow,
)
from echoic.channels.name_table import NameTable
from echoic.channels.neighbour import Neighbour
from echoic.channels.requests import ignore
from echoic.channels.runs import SourceRun, submit_runs
from echoic.channels.session import Session, SessionStatistics

__all__ = [
    "CREDIT_BYTES",
    "RECORD_START",
    "REPLY_BYTES",
    "VARIABLE_START",
    "ArrivalLane",
    "Browse",
    "Call",
    "CallLane",
    "ChannelCounts",
    "ChannelEntry",
    "ChannelId",
    "Concentrator",
    "Delivery",
    "Describe",
    "Described",
    "Dial",
    "Directory",
    "Done",
    "Effect",
    "Ended",
    "Fanout",
    "Forgotten",
    "Gap",
    "Greeting",
    "Joined",
    "Listing",
    "ManagedChannel",
    "Member",
    "Message",
    "Missed",
    "NameTable",
    "Neighbour",
    "Refused",
    "Report",
    "Reported",
    "Resolve",
    "Resolved",
    "Run",
    "Session",
    "SessionStatistics",
    "SinkHub",
    "Slow",
    "SourceRun",
    "Target",
    "check_channel_name",
    "decode_reply",
    "ignore",
    "nearest",
    "submit_runs",
]
