"""Sending runs of several channels in one frame; `arrivals` has the layout, and the reason."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels.arrivals import RUN, RUNS_HEAD
from echoic.channels.member import Member
from echoic.wire import Batch, FrameKind, encode_frame

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["SourceRun", "submit_runs"]

TABLES_MAX: Final = 8  # nearly all frames have as many runs as the sender puts into one


class SourceRun(msgspec.Struct, frozen=True, gc=False):
    """How many of a batch's records are the next events of a source."""

    member: Member
    source: int
    count: int


_parts: Final[Callable[[SourceRun], tuple[Member, int, int]]] = msgspec.structs.astuple


def submit_runs(core: "Concentrator", runs: Sequence[SourceRun], batch: Batch) -> bool:
    """Send a batch as the next events of several sources whose channels have the same targets.

    False, and nothing done, when one of them must wait, park or do without: each must then be submitted by itself.

    Raises:
        ClosedError: One of the sources is there no more; nothing was sent.
        EncodeError: They are too many for one frame; nothing was sent.
    """
    hubs = runs[0].member.fanout.targets
    table: list[int] = [len(runs), 0]
    for member, source, count in map(_parts, runs):
        if member.derivations or member.keepings or not member.fanout.flows_to(hubs):
            return False
        position = member.sources.get(source)
        table += (member.number, count, member.position(source) if position is None else position, source)
    if not hubs or any(core.neighbours[hub].full or core.neighbours[hub].transfers.departing for hub in hubs):
        return False  # also while a large event of one of the channels may have to come before
    frame = b"".join(encode_frame(FrameKind.RUNS, [_table(len(runs)).pack(*table), *batch.buffers()]))
    share = len(frame) // batch.count
    for member, source, count in map(_parts, runs):
        member.send_off(source, count, share * count)
    core.announce(hubs, batch.format)
    for hub in hubs:
        core.neighbours[hub].session.post(frame)
    core.stirred.update(hubs)
    return True


@lru_cache(maxsize=TABLES_MAX)
def _table(runs: int) -> Struct:
    """Return the layout of the head and of so many runs, to be packed by one call."""
    return Struct(RUNS_HEAD.format + RUN.format.removeprefix("<") * runs)
