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

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from echoic.channels.attaching import attached
from echoic.channels.effects import Drain
from echoic.channels.identity import ChannelId
from echoic.channels.member import Member
from echoic.channels.messages import Attach, Message, Refused, SinkHub, Turn, Turned
from echoic.channels.modulation import Modulation
from echoic.channels.quiet import ancestry
from echoic.channels.requests import Answer
from echoic.channels.turns import HANDLES_MAX
from echoic.errors import EchoicError, UnreachableError

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.neighbour import Neighbour

__all__ = ["anticipate", "call_back", "turn", "when_turned"]

DEPARTED_MAX: Final = 4096
HOLD_NS: Final = 2_000_000_000
MEET_NS: Final = 6_000_000_000  # longer than a greeting may take


def anticipate(core: "Concentrator", order: Attach) -> Callable[[], None]:
    """Note that a turn is to be made, until what is returned is called.

    Sources of which the sink hears nothing yet wait for it: they have come while it was about to leave the channel by
    which it would have heard them.
    """
    names = [(order.sink.address, order.handle), (order.sink.address, order.successor)]
    core.turning.update(dict.fromkeys(names, order))
    former = core.members.get(order.instead)
    if former is not None:  # even if it is refused: what others have done does not count here
        former.tell_of(order.sink.address, order.handle)
    release = _held(core, order)

    def done() -> None:
        for name in names:
            if core.turning.get(name) is order:
                del core.turning[name]
        release()

    return done


def call_back(core: "Concentrator", manager: "Neighbour") -> None:
    """Make no turn any more that a manager has ordered who was given up: what it says when it is back is later."""
    for name, order in list(core.turning.items()):
        if manager.stands_at(ChannelId.parse(order.channel).address):
            del core.turning[name]


def _held(core: "Concentrator", order: Attach) -> Callable[[], None]:
    parent = core.members.get(_parent_of(order))
    former = core.members.get(order.instead)
    if parent is None or (former is not None and _is_heard(core, former, order)):
        return lambda: None
    return core.quiet.hold(ancestry(parent), core.now_ns + HOLD_NS)


def _is_heard(core: "Concentrator", former: Member, order: Attach) -> bool:
    """Whether a sink gets the events of sources here by the channel that it is to leave."""
    if order.sink.address == core.address:
        return former.turns.taking(order.handle, core.id)
    return any(target.sink.address == order.sink.address for target in former.fanout.targets.values())


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
        if core.turning.get((order.sink.address, order.successor)) is not order:  # it was called back meanwhile
            release()
            answer(Refused(UnreachableError.__name__, f"sink `{order.handle}` was called back meanwhile"))
            return
        told = former is not None and _tell(core, former, order.sink, order.handle, taken=False)

        def bound(reply: Message) -> None:
            if isinstance(reply, Refused):
                answer(reply)
                return
            _tell(core, member, order.sink, order.successor, taken=True)
            answer(Turned(core.id) if told else reply)

        try:
            if order.sink.address == core.address:
                member.withheld = False
            attached(core, member, order.sink, bound)
        except EchoicError as error:
            answer(Refused.of(error))
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


def when_turned(
    core: "Concentrator", id: ChannelId | None, handle: str, hubs: Collection[str], then: Callable[[], None]
) -> None:
    """Go on when all has arrived that a sink gets of the channel that it leaves, if it leaves one.

    A hub that has turned may be one that this hub has yet to meet, or has given up: it is waited for only so long.
    """
    former = core.members.get(str(id)) if id is not None else None
    if former is None:
        then()
        return
    turns = former.turns
    turns.when_turned(handle, hubs, then)

    def late() -> None:
        for hub in hubs:
            if hub not in core.neighbours:
                turns.turned(handle, hub)

    if turns.awaited(handle):
        core.quiet.after(core.now_ns + MEET_NS, late)


def _tell(core: "Concentrator", member: Member, sink: SinkHub, handle: str, *, taken: bool) -> bool:
    """Tell a hub that from here on a sink has no part in a channel, or has again; False if it is not sent to."""
    positions = dict(member.sources)
    member.tell_of(sink.address, handle, taken)
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
    if not taken and len(member.departed) < DEPARTED_MAX and len(known) < HANDLES_MAX:  # its hub may be on its way
        known |= {handle}
    if known:
        member.departed[sink.address] = known
    return False
