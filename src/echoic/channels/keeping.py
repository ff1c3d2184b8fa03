"""Events that a recorder has yet to confirm: kept by the sources' hub, and sent again to a recorder that begins anew.

A session between two hubs loses nothing while both live (`session`), but what a recorder has received is not yet on
its disk: killed at the wrong moment it forgets what its peer believes delivered. So for a channel that is recorded the
hub of a source keeps every frame until the recorder says that it is safe:

    source's hub    EVENTS 0..9   EVENTS 10..19   EVENTS 20..29                     keeps 0..29
    recorder        writes 0..19, fdatasync         Kept: next is 20        ---->   keeps 20..29
                    (killed; started again)         Attach, as the same journal
    source's hub    Bind: the source goes on at 20, EVENTS 20..29 again             keeps 20..29

A journal has an id of its own, so it does not matter in which process, or at which address, the recorder begins again.
What it has already it drops by the number of the source and of the event, so frames are sent again without asking how
much of them is there.

What is kept is bounded. When it is too much, sources of the channel wait, as they do for a sink that wants every event,
also while no recorder is there; until the recorder comes back, or takes leave. Of that the manager knows: it tells
sources that come later to keep events for a recorder that is away, and those that missed its leave that it has left.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels.fanout import Run
from echoic.channels.journal_messages import Kept
from echoic.channels.member import EVENT_HEADER, Member
from echoic.channels.messages import Bind, SinkHub
from echoic.errors import LimitExceededError
from echoic.formats import Format, Registry
from echoic.wire import Batch, FrameKind, FrameReader, encode_frame, parse_batch

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = [
    "KEPT_BYTES_MAX",
    "Keeping",
    "confirm",
    "keep_call",
    "keep_for",
    "keeping_of",
    "let_go",
    "recorder_name",
    "resend",
    "resumed",
    "retire",
    "settle_journals",
    "starts_of",
    "supersede",
    "take_over",
]

KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
JOURNALS_MAX: Final = 16


class Keeping:
    """What one journal has yet to confirm of a channel's events."""

    __slots__ = ("_pending", "bytes_kept", "journal", "trouble", "who")

    def __init__(self, journal: str) -> None:
        self.journal: Final = journal
        self.bytes_kept = 0
        self.who = ""
        """The name of the recorder, once it was there: nobody else may take its journal."""
        self.trouble = ""
        """Why the recorder cannot go on, as it says itself."""
        self._pending: dict[int, deque[tuple[Run, Format]]] = {}

    @property
    def full(self) -> bool:
        """Whether sources must wait until more is confirmed."""
        return self.bytes_kept > KEPT_BYTES_MAX

    def note(self, run: Run, format: Format) -> None:
        """Keep events until they are confirmed."""
        self._pending.setdefault(run.source, deque()).append((run, format))
        self.bytes_kept += len(run.frame)

    def confirm(self, positions: Mapping[int, int]) -> None:
        """Forget events that are safe: for each source those before a number."""
        for source, position in positions.items():
            runs = self._pending.get(source)
            while runs and runs[0][0].last < position:
                self.bytes_kept -= len(runs.popleft()[0].frame)
            if runs is not None and not runs:
                del self._pending[source]

    @property
    def empty(self) -> bool:
        """Whether everything is confirmed."""
        return not self._pending

    def lacks(self, source: int, position: int) -> bool:
        """Whether events of a source before a number are not confirmed."""
        runs = self._pending.get(source)
        return runs is not None and runs[0][0].first < position

    def starts(self) -> dict[int, int]:
        """Return for each source the number of the first event that is not confirmed."""
        return {source: runs[0][0].first for source, runs in self._pending.items()}

    def pending(self) -> Iterator[tuple[Run, Format]]:
        """Yield what is not confirmed, in the order of each source."""
        for runs in self._pending.values():
            yield from runs


def keeping_of(member: Member, journal: str) -> Keeping | None:
    """Return what a journal has yet to confirm of a channel's events, None if nothing is kept for it."""
    return next((keeping for keeping in member.keepings if keeping.journal == journal), None)


def keep_for(member: Member, sink: SinkHub) -> None:
    """Keep a channel's events from here on for the journal of a sink, if it has one.

    Raises:
        LimitExceededError: They are kept for too many already.
    """
    if sink.journal and keeping_of(member, sink.journal) is None:
        if len(member.keepings) >= JOURNALS_MAX:
            raise LimitExceededError(f"events are kept for {JOURNALS_MAX} journals already, which is the limit")
        member.keepings = (*member.keepings, Keeping(sink.journal))


def keep_call(member: Member, source: int, batch: Batch) -> None:
    """Keep a synchronous event; should it be sent again, nobody waits for the answer any more."""
    if batch.count and member.keepings:
        first = member.position(source)
        payload = [EVENT_HEADER.pack(first, source), *batch.buffers()]
        frame = b"".join(encode_frame(FrameKind.EVENTS, payload, channel=member.number))
        for keeping in member.keepings:
            keeping.note(Run(source, first, first + batch.count - 1, frame), batch.format)


def let_go(member: Member, journal: str) -> None:
    """Keep no more for a journal."""
    member.keepings = tuple(keeping for keeping in member.keepings if keeping.journal != journal)


def supersede(member: Member, hub: str, sink: SinkHub) -> None:
    """Send no more to a hub that was the recorder before, nor keep for a journal that a hub has done with."""
    known = member.fanout.targets.get(hub)
    if known is not None and known.sink.journal not in ("", sink.journal) and not sink.held:
        let_go(member, known.sink.journal)
    if sink.journal:
        for other, target in member.fanout.targets.items():
            if target.sink.journal == sink.journal and other != hub:
                member.fanout.detach(other)


def take_over(member: Member, journal: str) -> list[tuple[Run, Batch]]:
    """Keep no more for a journal that is recorded here by now; return what it has yet to confirm."""
    registry, reader = Registry(), FrameReader()
    found: list[tuple[Run, Batch]] = []
    kept = keeping_of(member, journal)
    for run, format in kept.pending() if kept is not None else ():
        registry.add(format)
        frames = reader.receive(run.frame) if isinstance(run.frame, bytes) else []  # no other is recorded
        found.extend((run, parse_batch(frame.payload[EVENT_HEADER.size :], registry)) for frame in frames)
    let_go(member, journal)
    return found


def recorder_name(journal: str) -> str:
    """Return what the sink is called that records a journal."""
    return f"recorder#{journal[:8]}"


def starts_of(member: Member, journal: str) -> dict[int, int]:
    """Return where sources go on for a journal: with what is not confirmed, else with their next event."""
    kept = keeping_of(member, journal)
    return member.sources | (kept.starts() if kept is not None else {})


def resumed(member: Member, sink: SinkHub, bind: Bind) -> Bind:
    """Return what to tell a recorder that begins: sources go on with what is not confirmed."""
    kept = keeping_of(member, sink.journal)
    starts = kept.starts() if kept is not None else {}
    return msgspec.structs.replace(bind, positions=bind.positions | starts, since=bind.since | starts)


def resend(core: "Concentrator", member: Member, hub: str, sink: SinkHub) -> None:
    """Send a recorder that begins what is not confirmed."""
    target, kept = member.fanout.targets.get(hub), keeping_of(member, sink.journal)
    if target is None or kept is None:
        return
    for run, format in kept.pending():
        core.announce((hub,), format)
        core.send(hub, run.frame)
        target.credit -= len(run.frame)


def settle_journals(member: Member, journals: Mapping[str, bool]) -> None:
    """Learn from the manager which journals record a channel, even if they are away, and which have left."""
    for journal, recorded in journals.items():
        if not recorded:
            let_go(member, journal)
        elif member.recorded is None or member.recorded[0] != journal:  # what is recorded here need not be kept
            keep_for(member, SinkHub("", journal=journal))


def confirm(core: "Concentrator", message: Kept, hub: str) -> None:
    """Learn from a hub that events are on its disk, or that it cannot go on, if it is the recorder of this journal."""
    member = core.members.get(message.channel)
    target = member.fanout.targets.get(hub) if member is not None else None
    if member is None or target is None or target.sink.journal != message.journal:
        return  # nobody else may have events forgotten; a recorder that begins will say it again
    kept = keeping_of(member, message.journal)
    if kept is not None:
        kept.confirm(message.positions)
        kept.trouble = message.trouble
    retire(core, member)


def retire(core: "Concentrator", member: Member) -> None:
    """Take no more part as a source when the last one has ended and all of its events are confirmed, not before.

    Whoever takes no part is not told of a recorder that begins anew, which would never get what it lacks.
    """
    if member.sources or member.origin is not None or "source" not in member.roles:
        return
    if all(keeping.empty for keeping in member.keepings):
        core.leave(member, "source")
