"""What derivations do: counts of every hub that runs one, added up and compared with what they were.

A derivation runs in each hub that has sources of its parent, and each counts for itself. People want one line: how many
events went in and came out, what was not sent because of it, what it takes, and whether anything is wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from echoic.channels import DerivationCounts, Reported
from echoic.monitor.finding import manager_of
from echoic.monitor.quantities import bytes_text, percentage

__all__ = [
    "DerivationLoad",
    "DerivationSample",
    "derivation_loads",
    "derivation_sample",
    "summary",
    "troubles",
]

Key: TypeAlias = tuple[str, str, str]
"""Which hub, which manager, which derivation."""

DerivationSample: TypeAlias = Mapping[Key, DerivationCounts]


class DerivationLoad(msgspec.Struct, frozen=True):
    """What a derivation does, all hubs together: since it began, and in the last interval."""

    name: str
    id: str
    parent: str
    runs_at: str
    hubs: int
    sources: int
    events_in: int
    events_out: int
    bytes_saved: int
    in_per_second: float
    out_per_second: float
    saved_per_second: float
    passed: float | None
    """The share of events that passed, in the last interval if there were any."""
    ns_per_event: float | None
    cost: int
    faults: int
    fault: str
    suspended: dict[str, str]
    """Why it does not run, by hub."""


def derivation_sample(reports: Mapping[str, Reported]) -> DerivationSample:
    """Return what hubs have reported on derivations, by hub, manager and name; not what has no id."""
    return {
        (address, manager, counts.name): counts
        for address, report in reports.items()
        for counts in report.derivations
        if (manager := manager_of(counts.id))
    }


def derivation_loads(before: DerivationSample, after: DerivationSample, seconds: float) -> list[DerivationLoad]:
    """Return what every derivation does, by parent and name."""
    hubs: dict[tuple[str, str], list[Key]] = {}
    for key in after:
        hubs.setdefault(key[1:], []).append(key)
    loads = [_load(keys, before, after, seconds) for keys in hubs.values()]
    return sorted(loads, key=lambda load: (load.parent, load.name))


def summary(counts: DerivationCounts) -> str:
    """Return what a derivation has done in one hub, in a line."""
    if counts.suspended and not counts.events_in:
        return _stopped(counts)
    if counts.placement == "sink":
        return "runs at the sinks, which are sent every event"
    if not counts.events_in:
        return "runs at the source, no events yet"
    parts = [
        f"{counts.events_in} in",
        f"{counts.events_out} out ({percentage(counts.events_out / counts.events_in)})",
        f"{bytes_text(counts.bytes_saved)} saved",
        f"{counts.busy_ns / counts.events_in:.0f} ns per event",
        "runs at the source",
    ]
    if counts.faults:
        parts.append(f"{counts.faults} fault{'s' * (counts.faults != 1)}, the last because {counts.fault}")
    if counts.suspended:
        parts.append(_stopped(counts))
    return ", ".join(parts)


def troubles(before: DerivationSample, after: DerivationSample) -> list[str]:
    """Return what went wrong between two samples."""
    found: list[str] = []
    for key, counts in after.items():
        former = before.get(key)
        faults = counts.faults - (former.faults if former is not None else 0)
        if counts.suspended and (former is None or former.suspended != counts.suspended):
            found.append(f"`{counts.name}` is suspended at {key[0]}: {counts.suspended}")
        elif faults > 0:
            found.append(
                f"{faults} event{'s' * (faults > 1)} of `{counts.name}` faulted at {key[0]}, the last because "
                f"{counts.fault}"
            )
        if former is not None and former.suspended and not counts.suspended:
            found.append(f"`{counts.name}` runs again at {key[0]}")
    return found


def _stopped(counts: DerivationCounts) -> str:
    return f"suspended: {counts.suspended}"


def _load(keys: Sequence[Key], before: DerivationSample, after: DerivationSample, seconds: float) -> DerivationLoad:
    current = [after[key] for key in keys]
    former = [before[key] for key in keys if key in before]
    seen, passed, saved, busy = (
        max(0, _sum(current, name) - _sum(former, name))
        for name in ("events_in", "events_out", "bytes_saved", "busy_ns")
    )
    if not seen:
        seen, passed, busy = (_sum(current, name) for name in ("events_in", "events_out", "busy_ns"))
        rates = (0.0, 0.0, saved / seconds)
    else:
        rates = (seen / seconds, passed / seconds, saved / seconds)
    return DerivationLoad(
        name=current[0].name,
        id=current[0].id,
        parent=current[0].parent,
        runs_at=", ".join(sorted({counts.placement for counts in current})),
        hubs=len(current),
        sources=_sum(current, "sources"),
        events_in=_sum(current, "events_in"),
        events_out=_sum(current, "events_out"),
        bytes_saved=_sum(current, "bytes_saved"),
        in_per_second=rates[0],
        out_per_second=rates[1],
        saved_per_second=rates[2],
        passed=passed / seen if seen else None,
        ns_per_event=busy / seen if seen else None,
        cost=max(counts.cost for counts in current),
        faults=_sum(current, "faults"),
        fault=next((counts.fault for counts in current if counts.fault), ""),
        suspended={key[0]: after[key].suspended for key in keys if after[key].suspended},
    )


def _sum(counts: Iterable[DerivationCounts], name: str) -> int:
    return sum(getattr(each, name) for each in counts)
