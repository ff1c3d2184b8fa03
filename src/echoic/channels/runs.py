"""Sending runs of several channels in one frame; `arrivals` has the layout, and the reason."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from echoic.channels.arrivals import RUN, RUNS_HEAD
from echoic.channels.member import Member
from echoic.wire import Batch, FrameKind, encode_frame

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["SourceRun", "submit_runs"]


class SourceRun(msgspec.Struct, frozen=True, gc=False):
    """How many of a batch's records are the next events of a source."""

    member: Member
    source: int
    count: int


def submit_runs(core: "Concentrator", runs: Sequence[SourceRun], batch: Batch) -> bool:
    """Send a batch as the next events of several sources whose channels have the same targets.

    False, and nothing done, when one of them must wait, park or do without: each must then be submitted by itself.

    Raises:
        ClosedError: One of the sources is there no more; nothing was sent.
        EncodeError: They are too many for one frame; nothing was sent.
    """
    hubs = runs[0].member.fanout.targets.keys()
    for run in runs:
        fanout = run.member.fanout
        if run.member.derivations or run.member.keepings or not fanout.flows or fanout.targets.keys() != hubs:
            return False
    if not hubs or any(core.neighbours[hub].full or core.neighbours[hub].transfers.departing for hub in hubs):
        return False  # also while a large event of one of the channels may have to come before
    table = [RUNS_HEAD.pack(len(runs), 0)]
    table += [RUN.pack(run.member.number, run.count, run.member.position(run.source), run.source) for run in runs]
    frame = b"".join(encode_frame(FrameKind.RUNS, [*table, *batch.buffers()]))
    share = len(frame) // batch.count
    for run in runs:
        run.member.pass_over(run.source, run.count)
        run.member.bytes_out += share * run.count
        run.member.fanout.spend(share * run.count)
    core.announce(hubs, batch.format)
    for hub in hubs:
        core.neighbours[hub].session.post(frame)
    core.stirred.update(hubs)
    return True
