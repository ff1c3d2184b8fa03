"""Sending a channel's events to hubs that want them, and no more to those that do not."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from echoic.channels.admission import denied, may_get
from echoic.channels.keeping import (
    keep_for,
    keeping_of,
    let_go,
    recorder_name,
    resend,
    resumed,
    retire,
    starts_of,
    supersede,
)
from echoic.channels.member import Member
from echoic.channels.messages import Cut, Detach, Done, Refused, SinkHub, Turn
from echoic.channels.requests import Answer
from echoic.errors import EchoicError

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.neighbour import Neighbour

__all__ = ["arrange", "attach_all", "attached", "detach"]


def attach_all(core: "Concentrator", member: Member, sinks: Iterable[SinkHub], then: Callable[[bool], None]) -> None:
    """Send a channel's events to hubs from now on, then go on, with whether all of them could be reached."""
    waiting = {sink.address: sink for sink in sinks}
    known, told = {keeping.journal for keeping in member.keepings}, member.told
    for sink in waiting.values():
        if sink.address != core.address:  # what is recorded here is gone with the sources when this process ends
            keep_for(member, sink)
    silent: list[SinkHub] = []
    here = waiting.pop(core.address, None)
    for handle, taken in _untold(core, member, here) if here is not None else ():
        member.turns.note(handle, core.id, dict(member.sources), taken=taken)
        member.withheld = member.withheld and not taken
    if not waiting:
        arrange(member)
        then(True)
        return

    def linked(neighbour: "Neighbour | None", address: str) -> None:
        sink = waiting.pop(address)
        outdated = bool(sink.turns) and member.told is not told  # another wish will say who has turned
        if neighbour is None or outdated:
            member.owe(sink)
            arrange(member)
            silent.append(sink)
        elif not may_get(core, neighbour, member, sink.journal):
            core.denied.add(member)
            if sink.journal not in known:  # which others may have a right to
                let_go(member, sink.journal)
        elif sink.hub in ("", neighbour.id) and not _superseded(member, neighbour.id, sink):
            _bind(core, member, neighbour, sink)
            arrange(member)
        if not waiting:
            then(not silent)

    for address, sink in list(waiting.items()):
        core.when_linked(address, lambda neighbour, _, address=address: linked(neighbour, address), sink.hub)  # type: ignore[misc] # mypy#12557


def _bind(core: "Concentrator", member: Member, neighbour: "Neighbour", sink: SinkHub) -> None:
    """Send to a hub from here on, and tell it which of its sinks take part from here on."""
    hub, kept = neighbour.id, keeping_of(member, sink.journal)
    if kept is not None:
        kept.who = neighbour.who
    if member.origin is not None:
        member.origin.catch_up()
    supersede(member, hub, sink)
    known = member.fanout.targets.get(hub)
    begins = known is not None and known.sink.journal != sink.journal  # beside sinks that were there before
    bind = member.attach(hub, sink)
    turns = _untold(core, member, sink)
    if bind is not None:
        core.send(hub, resumed(member, sink, bind))
        for placed in member.origin.placements(member) if member.origin is not None else ():
            core.send(hub, placed)
        turns = [*_turned(core, member, sink), *dict.fromkeys(member.departed.pop(sink.address, ()), False).items()]
    for handle, taken in turns:
        recorder = sink.journal and handle == recorder_name(sink.journal)
        positions = starts_of(member, sink.journal) if recorder else dict(member.sources)
        core.send(hub, Turn(member.number, handle, positions, taken))
    if bind is not None or begins:
        resend(core, member, hub, sink)


def _untold(core: "Concentrator", member: Member, sink: SinkHub) -> list[tuple[str, bool]]:
    """Return what has yet to be told of a hub's sinks; not of those that were turned here, perhaps since this is so."""
    known = member.told.get(sink.address, {})
    for handle in [handle for handle in known if handle not in sink.sinks]:
        del known[handle]
    found = [(handle, taken) for handle, taken in _turns_of(core, sink) if handle not in known]
    for handle, _ in found:
        member.tell_of(sink.address, handle)
    return found


def _turned(core: "Concentrator", member: Member, sink: SinkHub) -> list[tuple[str, bool]]:
    """Return which sinks of a hub take part: by what was done here, and else as the wish says.

    The wish may be of before a turn, though it comes after it.
    """
    done = {handle: taken for handle, taken in member.told.get(sink.address, {}).items() if taken is not None}
    return [(handle, done.get(handle, taken)) for handle, taken in _turns_of(core, sink)]


def _superseded(member: Member, hub: str, sink: SinkHub) -> bool:
    """Whether a hub is sent to for a later wish: this one was told by a manager that knew no better then."""
    known = member.fanout.targets.get(hub)
    return known is not None and known.sink.subscription > sink.subscription > 0


def _turns_of(core: "Concentrator", sink: SinkHub) -> list[tuple[str, bool]]:
    """Return which sinks have come from another channel, or have left this one, if no turn is made here for them."""
    return [(handle, taken) for handle, taken in sink.turns.items() if (sink.address, handle) not in core.turning]


def attached(core: "Concentrator", member: Member, sink: SinkHub, answer: Answer) -> None:
    """Send a channel's events to a hub, as the manager wants it, if the hub has a right to them.

    Raises:
        LimitExceededError: It is recorded in too many journals.
    """
    met = member.await_listener()

    def settled(complete: bool) -> None:
        met()
        if not complete:
            member.lose("source")  # try again, while the manager says that it is there
        answer(Done())

    def attach() -> None:
        try:
            attach_all(core, member, [sink], settled)
        except EchoicError:  # so nobody will come
            met()
            raise

    def linked(neighbour: "Neighbour | None", _: str) -> None:
        if neighbour is not None and not may_get(core, neighbour, member, sink.journal):
            core.denied.add(member)
            met()
            answer(denied(core, neighbour, member))
            return
        try:
            attach()
        except EchoicError as error:  # whoever was connected to is not to blame
            answer(Refused.of(error))

    if core.admission.rights is None or sink.address == core.address:
        attach()
    else:
        core.when_linked(sink.address, linked, sink.hub)


def detach(core: "Concentrator", member: Member, order: Detach) -> None:
    """Send no more of a channel's events to a hub that does not want them."""
    address = order.address
    hub = member.disown(address, order.subscription)
    let_go(member, order.journal)
    retire(core, member)
    member.told.pop(address, None)
    if hub:
        core.send(hub, Cut(member.number, "it is not wanted any more", asked=True))
    arrange(member)


def arrange(member: Member) -> None:
    """Let a derivation know that others listen to what it makes, or nobody does."""
    if member.origin is not None:
        member.origin.arrange()
