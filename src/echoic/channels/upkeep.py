"""What a hub does for its neighbours and channels merely because time passes.

All neighbours are looked after ten times a second. When a connection breaks, only the neighbour behind it is, at once:
it is dialled again or given up, while the others can wait for the next look. Thousands that hang up together would
otherwise make the hub look at thousands, thousands of times.

A manager that was given up, and may have begun anew, is told within a second what this hub takes part in. If it is
asked sooner for something that concerns all who take part in a channel, it is told of that channel first.
"""

from typing import TYPE_CHECKING, TypeGuard

from echoic.channels.effects import Dial
from echoic.channels.identity import ChannelId
from echoic.channels.messages import Message, Steer, Tune
from echoic.channels.registering import register
from echoic.channels.requests import ignore

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.member import Member
    from echoic.channels.neighbour import Neighbour

__all__ = ["concerns_all", "look_after", "make_known", "make_up"]


def look_after(core: "Concentrator", neighbour: "Neighbour") -> None:
    """Give a neighbour up, dial it again, or tell it what has arrived: whatever is due."""
    if neighbour.lost(core.now_ns):
        core.gone(neighbour.id, "it took leave" if neighbour.leaving else "it cannot be reached")
    elif neighbour.session.stalled(core.now_ns):
        core.gone(neighbour.id, "it does not tell what it has got")
    elif not neighbour.connected:
        if neighbour.dial_due(core.now_ns):
            core.effects.append(Dial(neighbour.address))
    elif neighbour.session.untold_arrivals:
        core.tell(neighbour)


def make_up(core: "Concentrator") -> None:
    """Ask again for what was lost or never granted: parts in channels, and names."""
    for member in list(core.members.values()):  # to join may install what is derived, which opens channels
        _join_again(core, member)
    for server, message in core.manager.unregistered():
        register(core, server, message.name, message.id, ignore)


def _join_again(core: "Concentrator", member: "Member") -> None:
    for role in member.lacking():
        if not member.asking.get(role):  # whoever goes over must not be overtaken by a plain wish
            core.join(member, role, ignore)


def concerns_all(message: Message) -> TypeGuard[Tune | Steer]:
    """Whether a request is for everybody who takes part in a channel, as far as its manager knows them."""
    return isinstance(message, Tune | Steer) and "://" not in message.channel


def make_known(core: "Concentrator", manager: str, message: Message) -> None:
    """Tell a manager of this hub's part in a channel before it is asked for something that concerns all who have one.

    It may have begun anew. Else it would confirm to this very hub what the sources here have yet to hear of.
    """
    known = core.members.get(str(ChannelId(manager, message.channel))) if concerns_all(message) else None
    if known is not None:
        parents = [core.members.get(str(ChannelId(manager, step.recipe.parent))) for step in known.lineage]
        for member in (*parents, known):
            if member is not None:
                _join_again(core, member)
