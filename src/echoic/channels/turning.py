"""A sink goes over from one channel to another: nothing lost, repeated or reordered.

JECho, section 4, "Changing Modulators and/or Demodulators": a consumer provides another pair and its handler is reset.
The other pair is a derived channel too, so the sink leaves one channel for another. Every source's hub makes the turn
by itself, in one moment for all its sources:

    install what is wanted        nothing of it runs yet for this sink
    wait until nothing is being derived, and let nothing begin
    send what the former modulator holds back
    tell the sink's hub where its sources stand in the former channel (`Turn`), then bind it to the other one

What follows is the other channel's. The sink takes of each channel what the turn leaves to it (`turns`), so it does not
matter when the former one is really sent no more. A turn back is a turn as well.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.channels.attaching import attached
from echoic.channels.effects import Drain
from echoic.channels.identity import ChannelId
from echoic.channels.member import Member
from echoic.channels.messages import Attach, Message, Refused, Turn, Turned
from echoic.channels.modulation import Modulation
from echoic.channels.quiet import ancestry
from echoic.channels.requests import Answer
from echoic.errors import EchoicError

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["anticipate", "turn"]

DEPARTED_MAX: Final = 4096


def anticipate(core: "Concentrator", order: Attach) -> Callable[[], None]:
    """Let sources wait of which a sink that goes over hears nothing yet, until what is returned is called.

    They have come while it was about to leave the channel by which it would have heard them.
    """
    parent = core.members.get(_parent_of(order))
    former = core.members.get(order.instead)
    targets = former.fanout.targets.values() if former is not None else ()
    heard = any(target.sink.address == order.sink.address for target in targets)
    if parent is None or heard or order.sink.address == core.address:
        return lambda: None
    return core.quiet.hold(ancestry(parent), core.now_ns)


def _parent_of(order: Attach) -> str:
    """Return the id of the channel whose sources submit what a sink is to get."""
    if not order.lineage:
        return order.channel
    return str(ChannelId(ChannelId.parse(order.channel).address, order.lineage[-1].recipe.parent))


def turn(core: "Concentrator", member: Member, order: Attach, answer: Answer) -> None:
    """Let a sink go over to a channel, between two batches of every source here."""
    former = core.members.get(order.instead)
    involved = {*ancestry(member), *(ancestry(former) if former is not None else ())}
    release = core.quiet.hold(involved, core.now_ns)

    def at_last() -> None:
        told = former is not None and _tell(core, former, order, taken=False)

        def bound(reply: Message) -> None:
            _tell(core, member, order, taken=True)
            answer(Turned(core.id) if told else reply)

        try:
            if order.sink.address == core.address:
                member.withheld = False
            attached(core, member, order.sink, bound)
        except EchoicError as error:
            answer(Refused(type(error).__name__, str(error)))
        finally:
            release()

    def quiet() -> None:
        origin = former.origin if former is not None else None
        if isinstance(origin, Modulation) and origin.holds:
            core.effects.append(Drain(origin, lambda: core.quiet.when_quiet(involved, at_last)))
        else:
            at_last()

    core.quiet.when_quiet(involved, quiet)


def _tell(core: "Concentrator", member: Member, order: Attach, *, taken: bool) -> bool:
    """Tell a sink's hub that from here on the sink has no part in a channel, or has again; False if it never had."""
    positions = dict(member.sources)
    if order.sink.address == core.address:
        if member.turns or not taken:
            member.turns.note(order.handle, core.id, positions, taken=taken)
        return False
    for hub, target in member.fanout.targets.items():
        if target.sink.address == order.sink.address and order.sink.hub in ("", hub):
            for item in target.release(member.number, all_of_it=True):
                core.send(hub, item)
            core.send(hub, Turn(member.number, order.handle, positions, taken))
            return True
    known = member.departed.pop(order.sink.address, frozenset()) - {order.handle}
    if not taken and len(member.departed) < DEPARTED_MAX:  # its hub may be on its way here
        member.departed[order.sink.address] = known | {order.handle}
    elif known:
        member.departed[order.sink.address] = known
    return False
