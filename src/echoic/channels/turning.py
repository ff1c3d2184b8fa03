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
from echoic.channels.messages import Attach, Message, Refused, SinkHub, Turn, Turned
from echoic.channels.modulation import Modulation
from echoic.channels.quiet import ancestry
from echoic.channels.requests import Answer
from echoic.errors import EchoicError

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["anticipate", "turn"]

DEPARTED_MAX: Final = 4096
HOLD_NS: Final = 2_000_000_000


def anticipate(core: "Concentrator", order: Attach) -> Callable[[], None]:
    """Note that a turn is to be made, until what is returned is called.

    Sources of which the sink hears nothing yet wait for it: they have come while it was about to leave the channel by
    which it would have heard them.
    """
    core.turning.update((order.handle, order.successor))
    release = _held(core, order)

    def done() -> None:
        core.turning.difference_update((order.handle, order.successor))
        release()

    return done


def _held(core: "Concentrator", order: Attach) -> Callable[[], None]:
    parent = core.members.get(_parent_of(order))
    former = core.members.get(order.instead)
    targets = former.fanout.targets.values() if former is not None else ()
    heard = any(target.sink.address == order.sink.address for target in targets)
    if parent is None or heard or order.sink.address == core.address:
        return lambda: None
    return core.quiet.hold(ancestry(parent), core.now_ns + HOLD_NS)


def _parent_of(order: Attach) -> str:
    """Return the id of the channel whose sources submit what a sink is to get."""
    if not order.lineage:
        return order.channel
    return str(ChannelId(ChannelId.parse(order.channel).address, order.lineage[-1].recipe.parent))


def turn(core: "Concentrator", member: Member, order: Attach, answer: Answer) -> None:
    """Let a sink go over to a channel, between two batches of every source here."""
    former = core.members.get(order.instead)
    involved = {*ancestry(member), *(ancestry(former) if former is not None else ())}
    release = core.quiet.hold(involved)
    origins = [one.origin for one in (former, member) if one is not None]
    undrained = [origin for origin in origins if isinstance(origin, Modulation)]

    def at_last() -> None:
        told = former is not None and _tell(core, former, order.sink, order.handle, taken=False)

        def bound(reply: Message) -> None:
            _tell(core, member, order.sink, order.successor, taken=True)
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
        while undrained:  # what the other one holds back for others, this sink has seen of the former one
            origin = undrained.pop(0)
            if origin.holds:
                core.effects.append(Drain(origin, lambda: core.quiet.when_quiet(involved, quiet)))
                return
        at_last()

    core.quiet.when_quiet(involved, quiet)


def _tell(core: "Concentrator", member: Member, sink: SinkHub, handle: str, *, taken: bool) -> bool:
    """Tell a hub that from here on a sink has no part in a channel, or has again; False if it is not sent to."""
    positions = dict(member.sources)
    if sink.address == core.address:
        member.turns.note(handle, core.id, positions, taken=taken)
        return False
    for hub, target in member.fanout.targets.items():
        if target.sink.address == sink.address and sink.hub in ("", hub):
            for item in target.release(member.number, all_of_it=True):
                core.send(hub, item)
            core.send(hub, Turn(member.number, handle, positions, taken))
            return True
    known = member.departed.pop(sink.address, frozenset()) - {handle}
    if not taken and len(member.departed) < DEPARTED_MAX:  # its hub may be on its way here
        known |= {handle}
    if known:
        member.departed[sink.address] = known
    return False
