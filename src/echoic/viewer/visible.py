"""What of an overview somebody may see. This module is pure."""

import msgspec

from echoic.monitor import Load
from echoic.monitor.buses import BusesLoad
from echoic.monitor.group_history import GroupsLoad
from echoic.monitor.pipeline_history import PipelinesLoad
from echoic.viewer.grants import Grant

__all__ = ["visible_load", "visible_overview"]


def visible_load(load: Load, grant: Grant) -> Load:
    """Return what goes through the channels that somebody may see."""
    if grant.whole:
        return load
    ancestors = load.ancestors
    channels = [each for each in load.channels if grant.allows("subscribe", each.name, ancestors.get(each.id, []))]
    seen = {place for each in channels for place in (each.id, each.name)}
    hidden = {each.id for each in load.channels} - seen
    channels = [each if each.parent in seen else msgspec.structs.replace(each, parent="") for each in channels]
    derivations = [each for each in load.derivations if each.parent in seen and each.id not in hidden]
    return msgspec.structs.replace(
        load,
        channels=channels,
        derivations=derivations,
        pipelines=[each for each in load.pipelines if grant.allows("subscribe", f"pipeline.{each.pipeline}")],
        names="",
        lost="the name server is not to be reached" if load.lost else "",
        ancestors={},
        saved_bytes=sum(each.bytes_saved for each in derivations),
        saved_per_second=sum(each.saved_per_second for each in derivations),
    )


def visible_overview(overview: object, grant: Grant) -> object:
    """Return what somebody may see of all groups, buses or pipelines; nothing of what is not known here."""
    if grant.whole:
        return overview

    def may(channel: str) -> bool:
        return grant.allows("subscribe", channel)

    match overview:
        case GroupsLoad(groups=groups):
            return msgspec.structs.replace(overview, groups=[g for g in groups if may(f"{g.group}.group")])
        case BusesLoad(buses=buses):
            return msgspec.structs.replace(overview, buses=[b for b in buses if may(f"bus.{b.bus}")], more=0)
        case PipelinesLoad(pipelines=outputs):
            return msgspec.structs.replace(overview, pipelines=[o for o in outputs if may(f"pipeline.{o.pipeline}")])
        case _:
            return {}
