"""Pure. Who gets an event: channels, their members and managers, what hubs tell each other, sessions, credits."""

from echoic.channels.actions import Action, Plain, Steering
from echoic.channels.concentrator import Concentrator
from echoic.channels.context import SourceContext
from echoic.channels.derivation import Derivation, Share
from echoic.channels.directory import Directory, ManagedChannel, nearest
from echoic.channels.effects import Compile, Delivery, Dial, Dismiss, Drain, Effect, Ended, Forgotten, Missed, Troubled
from echoic.channels.express import RECORD_START, REPLY_BYTES, VARIABLE_START, ArrivalLane, CallLane, decode_reply
from echoic.channels.fanout import CREDIT_BYTES, Fanout, Run, Target
from echoic.channels.greeting import Greeting
from echoic.channels.identity import ChannelId, check_channel_name
from echoic.channels.installing import (
    build,
    compiled,
    congested,
    derive,
    forget_source,
    report_trouble,
    send_share,
)
from echoic.channels.member import Call, Member
from echoic.channels.messages import (
    Browse,
    ChannelCounts,
    ChannelEntry,
    DerivationCounts,
    Derive,
    DerivedAs,
    Describe,
    Described,
    Done,
    Gap,
    Joined,
    Listing,
    Message,
    Placement,
    Recipe,
    Refused,
    Report,
    Reported,
    Resolve,
    Resolved,
    Restore,
    Save,
    Saved,
    SinkHub,
    Slow,
    Steer,
    Steered,
    Step,
    Trouble,
    Tune,
)
from echoic.channels.modulation import Modulation, note_room, stir, stirring_ns
from echoic.channels.name_table import NameTable
from echoic.channels.neighbour import Neighbour
from echoic.channels.policy import Policy
from echoic.channels.portions import BATCH_BYTES_MAX, RECORD_BYTES_MAX, split
from echoic.channels.requests import ignore
from echoic.channels.runner import Runner, Worked
from echoic.channels.runs import SourceRun, submit_runs
from echoic.channels.session import Session, SessionStatistics
from echoic.channels.shared_state import VALUE_BYTES_MAX, Master, Secondary, SharedPolicy, SharedView
from echoic.channels.sharing import Shared, Sharing
from echoic.channels.steering import Helm, checked_values
from echoic.channels.workshop import Workshop

__all__ = [
    "BATCH_BYTES_MAX",
    "CREDIT_BYTES",
    "RECORD_BYTES_MAX",
    "RECORD_START",
    "REPLY_BYTES",
    "VALUE_BYTES_MAX",
    "VARIABLE_START",
    "Action",
    "ArrivalLane",
    "Browse",
    "Call",
    "CallLane",
    "ChannelCounts",
    "ChannelEntry",
    "ChannelId",
    "Compile",
    "Concentrator",
    "Delivery",
    "Derivation",
    "DerivationCounts",
    "Derive",
    "DerivedAs",
    "Describe",
    "Described",
    "Dial",
    "Directory",
    "Dismiss",
    "Done",
    "Drain",
    "Effect",
    "Ended",
    "Fanout",
    "Forgotten",
    "Gap",
    "Greeting",
    "Helm",
    "Joined",
    "Listing",
    "ManagedChannel",
    "Master",
    "Member",
    "Message",
    "Missed",
    "Modulation",
    "NameTable",
    "Neighbour",
    "Placement",
    "Plain",
    "Policy",
    "Recipe",
    "Refused",
    "Report",
    "Reported",
    "Resolve",
    "Resolved",
    "Restore",
    "Run",
    "Runner",
    "Save",
    "Saved",
    "Secondary",
    "Session",
    "SessionStatistics",
    "Share",
    "Shared",
    "SharedPolicy",
    "SharedView",
    "Sharing",
    "SinkHub",
    "Slow",
    "SourceContext",
    "SourceRun",
    "Steer",
    "Steered",
    "Steering",
    "Step",
    "Target",
    "Trouble",
    "Troubled",
    "Tune",
    "Worked",
    "Workshop",
    "build",
    "check_channel_name",
    "checked_values",
    "compiled",
    "congested",
    "decode_reply",
    "derive",
    "forget_source",
    "ignore",
    "nearest",
    "note_room",
    "report_trouble",
    "send_share",
    "split",
    "stir",
    "stirring_ns",
    "submit_runs",
]
