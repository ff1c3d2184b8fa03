"""Sending a channel's events to hubs that want them, and no more to those that do not."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from echoic.channels.member import Member
from echoic.channels.messages import Cut, Done, SinkHub, Turn
from echoic.channels.requests import Answer

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.neighbour import Neighbour

__all__ = ["arrange", "attach_all", "attached", "detach"]


def attach_all(core: "Concentrator", member: Member, sinks: Iterable[SinkHub], then: Callable[[bool], None]) -> None:
    """Send a channel's events to hubs from now on, then go on, with whether all of them could be reached."""
    waiting = {sink.address: sink for sink in sinks}
    silent: list[SinkHub] = []
    here = waiting.pop(core.address, None)
    for handle, taken in _turns_of(core, here) if here is not None else ():
        member.turns.note(handle, core.id, dict(member.sources), taken=taken)
    if not waiting:
        arrange(member)
        then(True)
        return

    def linked(neighbour: "Neighbour | None", address: str) -> None:
        sink = waiting.pop(address)
        if neighbour is None:
            member.owe(sink)
            arrange(member)
            silent.append(sink)
        elif sink.hub in ("", neighbour.id):
            if member.origin is not None:
                member.origin.catch_up()
            bind = member.attach(neighbour.id, sink)
            if bind is not None:
                core.send(neighbour.id, bind)
                for placed in member.origin.placements(member) if member.origin is not None else ():
                    core.send(neighbour.id, placed)
                departed = dict.fromkeys(member.departed.pop(address, frozenset()), False)
                for handle, taken in (*_turns_of(core, sink), *departed.items()):
                    core.send(neighbour.id, Turn(member.number, handle, dict(member.sources), taken))
            arrange(member)
        if not waiting:
            then(not silent)

    for address, sink in list(waiting.items()):
        core.when_linked(address, lambda neighbour, _, address=address: linked(neighbour, address), sink.hub)  # type: ignore[misc] # mypy#12557


def _turns_of(core: "Concentrator", sink: SinkHub) -> list[tuple[str, bool]]:
    """Return which sinks have come from another channel, or have left this one, if no turn is made here for them."""
    return [(handle, taken) for handle, taken in sink.turns.items() if handle not in core.turning]


def attached(core: "Concentrator", member: Member, sink: SinkHub, answer: Answer) -> None:
    """Send a channel's events to a hub, as the manager wants it."""

    def settled(complete: bool) -> None:
        if not complete:
            member.lose("source")  # try again, while the manager says that it is there
        answer(Done())

    attach_all(core, member, [sink], settled)


def detach(core: "Concentrator", member: Member, address: str, subscription: int) -> None:
    """Send no more of a channel's events to a hub that does not want them."""
    hub = member.disown(address, subscription)
    if hub:
        core.send(hub, Cut(member.number, "it is not wanted any more", asked=True))
    arrange(member)


def arrange(member: Member) -> None:
    """Let a derivation know that others listen to what it makes, or nobody does."""
    if member.origin is not None:
        member.origin.arrange()
