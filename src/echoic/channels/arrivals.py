"""Events that arrive: whose they are, whether any are missing before them, whether anybody here wants them.

    EVENTS, CALLS   one run of one channel
    RUNS payload := count of runs u32 | 0 u32 | runs | batch
    run          := channel u32 | events u32 | sequence of the first event u64 | source u64

With thousands of busy channels each has but a few events when the flusher comes round, and a frame for each would cost
more than the events. So runs of one format that go to the same hubs travel as one batch, with a table that says whose
they are. The receiver parses, converts and decodes the batch once.
"""

import struct
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels.bearing import may_speak
from echoic.channels.effects import Delivery
from echoic.channels.express import encode_reply
from echoic.channels.fanout import cost_of
from echoic.channels.member import CALL_HEADER, EVENT_HEADER
from echoic.channels.messages import Detach
from echoic.errors import LimitExceededError, MalformedFrameError
from echoic.wire import Batch, Frame, parse_batch

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.neighbour import Binding, Neighbour

__all__ = ["RUN", "RUNS_HEAD", "decline", "receive_events", "receive_runs"]

RUNS_HEAD: Final = struct.Struct("<II")
RUN: Final = struct.Struct("<IIQQ")
RUNS_MAX: Final = 4096  # each takes far longer than its few bytes suggest, and nobody else is served meanwhile


def receive_events(core: "Concentrator", neighbour: "Neighbour", frame: Frame, *, call: bool) -> list[Delivery]:
    """Take the events of a frame; return them if they are for sinks here.

    Raises:
        RemoteError: The neighbour broke a rule.
    """
    header, payload = CALL_HEADER if call else EVENT_HEADER, frame.payload
    if len(payload) < header.size:
        raise MalformedFrameError(f"a frame of events has {len(payload)} bytes, its header needs {header.size}")
    first, source, *number = header.unpack_from(payload)
    if call and not number[0]:
        raise MalformedFrameError("a synchronous event has the number 0, which is none")
    binding = _binding(neighbour, frame.channel)
    batch = parse_batch(payload[header.size :], neighbour.registry) if binding.wanted else None
    deliveries = _arrive(core, neighbour, binding, frame.channel, (first, source), batch, cost_of(len(payload)))
    if deliveries and call:
        deliveries[-1] = msgspec.structs.replace(deliveries[-1], call=number[0])
    if deliveries:
        return deliveries
    if call:
        core.send(neighbour.id, encode_reply(frame.channel, number[0], {}))
    return []


def receive_runs(core: "Concentrator", neighbour: "Neighbour", frame: Frame) -> list[Delivery]:
    """Take the runs of a frame; return those that are for sinks here.

    Raises:
        RemoteError: The neighbour broke a rule.
    """
    payload = frame.payload
    if len(payload) < RUNS_HEAD.size:
        raise MalformedFrameError(f"a frame of runs has {len(payload)} bytes, its header needs {RUNS_HEAD.size}")
    count, reserved = RUNS_HEAD.unpack_from(payload)
    end = RUNS_HEAD.size + count * RUN.size
    if count > RUNS_MAX:
        raise LimitExceededError(f"a frame announces {count} runs, limit is {RUNS_MAX}")
    if reserved or end > len(payload):
        raise MalformedFrameError(f"a frame of {len(payload)} bytes announces {count} runs, and {reserved} for 0")
    runs = list(RUN.iter_unpack(payload[RUNS_HEAD.size : end]))
    batch = parse_batch(payload[end:], neighbour.registry)
    counts = [events for _, events, _, _ in runs]
    if sum(counts) != batch.count or not all(counts):
        raise MalformedFrameError(f"{count} runs of {sum(counts)} events do not make up a batch of {batch.count}")
    share = cost_of(len(payload)) // max(batch.count, 1)
    deliveries: list[Delivery] = []
    held, bindings, trusted = neighbour.transfers.held, neighbour.bindings, core.admission.rights is None
    for (channel, events, first, source), part in zip(runs, batch.parts(counts), strict=True):
        if channel in held:
            raise MalformedFrameError(f"runs hold events of channel {channel}, a large event of which is being fetched")
        binding = bindings.get(channel) or _binding(neighbour, channel)
        member = binding.member
        if trusted and member is not None and binding.wanted and member.follow(source, first, events):
            size = share * events  # as nearly all do; the others go the long way
            member.events_in += events
            member.bytes_in += size
            deliveries.append(Delivery(member, part, source, first, neighbour.id, channel, size, 0))
        else:
            deliveries += _arrive(core, neighbour, binding, channel, (first, source), part, share * events)
    return deliveries


def decline(core: "Concentrator", neighbour: "Neighbour", binding: "Binding") -> None:
    """Tell a hub, once, that its events are not wanted: the manager may not have been able to."""
    if not binding.refused:
        binding.refused = True
        core.send(neighbour.id, Detach(binding.channel, core.address, binding.subscription))


def _binding(neighbour: "Neighbour", channel: int) -> "Binding":
    binding = neighbour.bindings.get(channel)
    if binding is None:
        raise MalformedFrameError(f"the peer sends events of its channel {channel}, which it has not bound")
    return binding


def _arrive(
    core: "Concentrator",
    neighbour: "Neighbour",
    binding: "Binding",
    channel: int,
    place: tuple[int, int],
    batch: Batch | None,
    size: int,
) -> list[Delivery]:
    """Note events as arrived; return those that are wanted, and of what was here before what a recorder may lack."""
    member = binding.member
    if member is None or batch is None or not binding.wanted:
        decline(core, neighbour, binding)
        return []
    first, source = place
    if not may_speak(core, neighbour, member, source):
        return []
    stale, gap = member.advance(source, first, batch.count)
    if gap is not None:
        core.miss(member, gap)
    raw = member.is_raw(source, first)
    delivery = Delivery(member, batch, source, first, neighbour.id, channel, size, 0, raw)
    if stale:
        return _arrive_again(core, delivery, stale)
    member.events_in += batch.count
    member.bytes_in += size
    return [delivery]


def _arrive_again(core: "Concentrator", delivery: Delivery, stale: int) -> list[Delivery]:
    """Return what is left of events of which some were here before.

    A source that was started anew may cut its events into other batches, and a recorder that begins beside sinks that
    were here before it gets what they have got already; it knows itself what it has.
    """
    member, batch, recorded = delivery.member, delivery.batch, delivery.member.recorded is not None
    if stale == batch.count:
        if recorded:
            return [msgspec.structs.replace(delivery, again=True)]
        core.handled(delivery)
        return []
    known, fresh = batch.parts([stale, batch.count - stale])
    member.events_in += fresh.count
    member.bytes_in += delivery.size
    rest = msgspec.structs.replace(delivery, batch=fresh, first=delivery.first + stale)
    return [msgspec.structs.replace(delivery, batch=known, size=0, again=True), rest] if recorded else [rest]
