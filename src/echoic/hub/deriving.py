"""Derivations where events are submitted: run outside of every lock but the source's own, then sent with the rest.

A kernel may take long, so the hub must not be held up while it runs. The order of a source's events is kept by the
lock that the source holds meanwhile; the switchboard's is taken once, for what was submitted and all that was derived.
"""

import time
from typing import TYPE_CHECKING

from echoic.channels import Call, Member, Share, derive, keep_large, stir
from echoic.ecode import Buffer
from echoic.formats import Format
from echoic.wire import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from echoic.hub.endpoints import Endpoints, Pending
    from echoic.hub.switchboard import Switchboard

__all__ = ["call_derived", "deliver_share", "stir_derived", "submit_derived", "turn_away"]


def submit_derived(
    switchboard: "Switchboard", member: Member, source: int, batch: Batch, *, wait: bool
) -> list[tuple[Share, int]] | None:
    """Send events and what is derived from them; return what sinks here want, with the number of its first event.

    None, and nothing done, when there is no room for the events and that is not to be waited for. A lone event is
    expected to be one that was not turned away.

    Raises:
        ClosedError: The hub was closed while waiting.
        EncodeError, LimitExceededError: They are too large for somebody, or there is no room for them.
    """
    if batch.count > 1 and turn_away(switchboard, member, source, batch.format, batch.records, batch.count):
        return []
    large = keep_large(switchboard.core, member, batch)
    if not switchboard.begin_deriving(member, wait=wait):
        return None
    shares: list[Share] = []
    try:
        shares = derive(member, source, batch, time.perf_counter_ns)
    finally:
        firsts = switchboard.submit_shares(member, source, batch, shares, pump=wait, large=large)
    return [(share, first) for share, first in zip(shares, firsts, strict=True) if _heard_here(share)]


def stir_derived(
    switchboard: "Switchboard", member: Member, source: int, *, last: bool = False
) -> list[tuple[Share, int]]:
    """Send what modulators hold back or have made meanwhile; return what sinks here want, as `submit_derived` does.

    If it is the `last` time for a source, everything is sent, and that is waited for.
    """
    if not switchboard.begin_deriving(member, wait=last):
        return []
    clock, shares = time.perf_counter_ns, list[Share]()
    try:
        shares = stir(
            member,
            source,
            clock(),
            lambda share: derive(share.member, share.source, share.batch, clock),
            last=last,
        )
    finally:
        firsts = switchboard.submit_shares(member, source, None, shares, pump=True)
    return [(share, first) for share, first in zip(shares, firsts, strict=True) if _heard_here(share)]


def turn_away(
    switchboard: "Switchboard", member: Member, source: int, format: Format, records: Buffer, count: int
) -> bool:
    """Be done with events that every derivation rejects and nobody else wants; tell whether they are such."""
    derivations, began_ns = member.derivations, time.perf_counter_ns() if count > 1 else 0
    if member.fanout.targets or member.keepings:
        return False
    for derivation in derivations:
        if not derivation.rejects(format, records, count):
            return False
    if not switchboard.pass_over(member, source, count, derivations):
        return False
    elapsed_ns = (time.perf_counter_ns() - began_ns) // max(len(derivations), 1) if began_ns else 0
    for derivation in derivations:
        instance = derivation.instances.get(source) or derivation.instance(source)
        instance.turned_events += count
        instance.turned_bytes += len(records)
        instance.turned_batches += 1
        instance.busy_ns += elapsed_ns
    return True


def call_derived(
    switchboard: "Switchboard", member: Member, source: int, batch: Batch, calls: list[tuple[int, Call]]
) -> list[tuple[Share, int]]:
    """Send what is derived from a synchronous event, and add what will hold the answers to `calls`.

    Return what sinks here want, as `submit_derived` does. An empty batch is derived to empty ones.
    """
    if not member.derivations:
        return []
    shares = derive(member, source, batch, time.perf_counter_ns) if batch.count else _nothing(member, source)
    firsts: list[int] = []
    for share in shares:
        first, call = switchboard.call_share(share)
        firsts.append(first)
        if call is not None:
            calls.append(call)
    switchboard.report_trouble(member)
    return [(share, first) for share, first in zip(shares, firsts, strict=True) if _heard_here(share)]


def deliver_share(switchboard: "Switchboard", share: Share, first: int) -> "list[tuple[Endpoints, Pending]]":
    """Hand derived events to the sinks here; return these and what counts those that are done."""
    ends = switchboard.ends_of(share.member.id)
    if ends is None or not ends.sinks:
        return []
    return [(ends, ends.deliver_here(share.source, first, share.batch))]


def _heard_here(share: Share) -> bool:
    return share.local and share.member.heard_here


def _nothing(member: Member, source: int) -> list[Share]:
    """Return an empty batch for every channel that is derived from a source's, to be confirmed like an event."""
    return list(_nothing_of(member, source))


def _nothing_of(member: Member, source: int) -> "Iterator[Share]":
    for derivation in member.derivations:
        instance = derivation.instances.get(source)
        for outlet in list(derivation.outlets.values()) if instance is not None else ():
            if instance is not None and outlet.format is not None:
                yield Share(outlet, instance.source, Batch(outlet.format, 0, [b""], None))
                yield from _nothing_of(outlet, instance.source)
