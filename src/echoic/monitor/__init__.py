"""Edge: touches sockets and threads. Answers HOW it goes: what `top`, the viewer, reports and metrics share.

Nothing here measures: hubs count, members of groups and pipelines tell, and this asks them and adds up.
"""

from echoic.monitor.derivations import (
    DerivationLoad,
    DerivationSample,
    derivation_loads,
    derivation_sample,
    summary,
    troubles,
)
from echoic.monitor.finding import Followed, Following, browse, find, manager_of
from echoic.monitor.groups import GroupMembers, group_channels, group_of
from echoic.monitor.loads import ChannelLoad, Load, Sample, load_between, take_sample
from echoic.monitor.pipelines import PipelineLoad, Pipelines
from echoic.monitor.quantities import bytes_text, percentage
from echoic.monitor.survey import Detail, ask_all, survey

__all__ = [
    "ChannelLoad",
    "DerivationLoad",
    "DerivationSample",
    "Detail",
    "Followed",
    "Following",
    "GroupMembers",
    "Load",
    "PipelineLoad",
    "Pipelines",
    "Sample",
    "ask_all",
    "browse",
    "bytes_text",
    "derivation_loads",
    "derivation_sample",
    "find",
    "group_channels",
    "group_of",
    "load_between",
    "manager_of",
    "percentage",
    "summary",
    "survey",
    "take_sample",
    "troubles",
]
