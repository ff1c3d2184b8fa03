"""What goes through all channels: two samples of what every hub has counted, and the load between them.

The name server knows the channels, their managers know the hubs that take part, and each hub counts what goes through
it. A channel's load adds up what its hubs report; rates are differences between two samples.

    pipelines = Pipelines(hub)
    before = take_sample(hub, pipelines)
    ...
    after = take_sample(hub, pipelines, before)
    load = load_between(before, after)
"""

import time
from collections.abc import Iterable, Sequence

import msgspec

from echoic.channels import ChannelCounts, ChannelEntry
from echoic.errors import UnreachableError
from echoic.hub import Hub
from echoic.monitor.derivations import DerivationLoad, DerivationSample, derivation_loads, derivation_sample
from echoic.monitor.finding import browse, manager_of, names_of
from echoic.monitor.pipelines import PipelineLoad, Pipelines
from echoic.monitor.survey import ask_all

__all__ = ["ChannelLoad", "Load", "Sample", "load_between", "take_sample"]


class ChannelLoad(msgspec.Struct, frozen=True):
    """What goes through a channel, all hubs together."""

    name: str
    id: str
    type: str
    events_per_second: float
    bytes_per_second: float
    sources: int
    sinks: int
    waiting_bytes: int
    missed: int
    dropped: int
    lag_seconds: float | None = 0.0
    """How long sending what waits takes, as fast as the channel goes; None while something waits and nothing goes."""
    parent: str = ""
    """The name of the channel that it is derived from, whether anybody listens or not."""


class Sample(msgspec.Struct, frozen=True):
    """What all hubs have counted at one moment, by hub and channel."""

    time: float
    names: str
    lost: str
    known: list[ChannelEntry]
    counts: dict[tuple[str, str], ChannelCounts]
    derivations: DerivationSample
    pipelines: list[PipelineLoad]
    ancestors: dict[str, list[str]] = {}
    """What a channel is derived from, by id, also what nobody has named; what it is derived from itself comes last."""


class Load(msgspec.Struct, frozen=True):
    """What goes through all channels, what is derived, and how pipelines get on."""

    time: float
    channels: list[ChannelLoad]
    derivations: list[DerivationLoad]
    pipelines: list[PipelineLoad]
    names: str
    """The address of the name server."""
    lost: str
    """Why it is not to be reached; "" while it is."""
    saved_bytes: int
    """What was not sent because derivations run at the source: all that run, since they began."""
    saved_per_second: float
    ancestors: dict[str, list[str]] = {}
    """As `Sample.ancestors`."""


def take_sample(hub: Hub, pipelines: Pipelines, before: Sample | None = None) -> Sample:
    """Ask everybody who takes part in any channel.

    Args:
        hub: Who asks.
        pipelines: Follows the pipelines among the channels.
        before: The sample before this one: while the name server is lost, its channels are asked again.
    """
    lost = ""
    try:
        known = browse(hub)
    except UnreachableError as error:
        lost = str(error)
        known = before.known if before is not None else []
    pipelines.follow(known)
    described = ask_all([entry.id for entry in known], hub.describe)
    addresses = {manager_of(entry.id) for entry in known}
    for each in described.values():
        # What this hub listens to for a sample is no part of it.
        addresses.update(each.sources, {sink.address for sink in each.sinks} - {hub.address})
    ancestors = dict(before.ancestors) if before is not None else {}  # for managers that are too late to say it again
    ancestors |= {id: [step.recipe.parent for step in each.lineage] for id, each in described.items()}
    reports = ask_all(sorted(addresses), hub.report)
    counts = {(address, each.id): each for address, report in reports.items() for each in report.channels}
    return Sample(
        time=time.monotonic(),
        names=names_of(hub),
        lost=lost,
        known=known,
        counts=counts,
        derivations=derivation_sample(reports),
        pipelines=pipelines.loads(),
        ancestors={entry.id: ancestors.get(entry.id, []) for entry in known},
    )


def load_between(before: Sample, after: Sample) -> Load:
    """Return what went through between two samples."""
    seconds = max(after.time - before.time, 1e-9)
    derivations = derivation_loads(before.derivations, after.derivations, seconds)
    hubs: dict[str, list[str]] = {}
    for address, id in after.counts:
        hubs.setdefault(id, []).append(address)
    return Load(
        time=time.time(),
        channels=[_channel_load(entry, hubs.get(entry.id, []), before, after, seconds) for entry in after.known],
        derivations=derivations,
        pipelines=after.pipelines,
        names=after.names,
        lost=after.lost,
        saved_bytes=sum(each.bytes_saved for each in derivations),
        saved_per_second=sum(each.saved_per_second for each in derivations),
        ancestors=after.ancestors,
    )


def _channel_load(
    entry: ChannelEntry, hubs: Sequence[str], before: Sample, after: Sample, seconds: float
) -> ChannelLoad:
    current = [after.counts[address, entry.id] for address in hubs]
    former = [before.counts[address, entry.id] for address in hubs if (address, entry.id) in before.counts]
    bytes_per_second = max(0, _sum(current, "bytes_out") - _sum(former, "bytes_out")) / seconds
    waiting_bytes = _sum(current, "waiting_bytes")
    return ChannelLoad(
        name=entry.name,
        id=entry.id,
        type=next((counts.type for counts in current), ""),
        events_per_second=max(0, _sum(current, "events_out") - _sum(former, "events_out")) / seconds,
        bytes_per_second=bytes_per_second,
        sources=_sum(current, "sources"),
        sinks=_sum(current, "sinks"),
        waiting_bytes=waiting_bytes,
        missed=_sum(current, "missed"),
        dropped=_sum(current, "dropped"),
        lag_seconds=_lag_seconds(waiting_bytes, bytes_per_second),
        parent=next(reversed(after.ancestors.get(entry.id, [])), ""),
    )


def _lag_seconds(waiting_bytes: int, bytes_per_second: float) -> float | None:
    if not waiting_bytes:
        return 0.0
    return waiting_bytes / bytes_per_second if bytes_per_second else None


def _sum(counts: Iterable[ChannelCounts], name: str) -> int:
    return sum(getattr(each, name) for each in counts)
