"""What a hub does for its neighbours and channels merely because time passes.

All neighbours are looked after ten times a second. When a connection breaks, only the neighbour behind it is, at once:
it is dialled again or given up, while the others can wait for the next look. Thousands that hang up together would
otherwise make the hub look at thousands, thousands of times.

A manager that was given up, and may have begun anew, is told within a second what this hub takes part in. If it is
asked sooner for something that concerns all who take part in a channel, it is told of that channel first, and of the
other ports if it is one of a router. Where several hubs stand at its address, it is told what another of them may know.
"""

from typing import TYPE_CHECKING, TypeGuard

from echoic.channels.effects import Dial
from echoic.channels.identity import ChannelId
from echoic.channels.messages import Message, Steer, Tune
from echoic.channels.registering import register
from echoic.channels.requests import ignore
from echoic.ecode import PORTS_MAX

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

    It may have begun anew. Else it would confirm to this very hub what the sources here have yet to hear of. What else
    this hub lacks there it is told of in its time: who moves a slider would ask for all of that again with every pixel.
    """
    if not concerns_all(message):
        return
    several = len(core.neighbourhood.at(manager)) > 1  # one may have ended unnoticed, and what it knew ended with it
    for member in _concerned(core, manager, message.channel):
        if several:
            member.lose(*member.roles)
        _join_again(core, member)


def _concerned(core: "Concentrator", manager: str, name: str) -> "list[Member]":
    """Return this hub's parts in a channel, in the other ports if it is one of a router, and in what these derive from.

    All ports have the same parameters, and are computed together. So parameters may be in use here for another port
    than the one by which they are changed, which need not be open.
    """
    group, _, port = name.rpartition(".")
    ports = [f"{group}.{each}" for each in range(PORTS_MAX)] if port.isdecimal() else []
    found = [core.members.get(str(ChannelId(manager, each))) for each in dict.fromkeys((name, *ports))]
    parts = [one for one in found if one is not None]
    parts = [one for one in parts if one.name == name or (one.lineage and one.lineage[-1].group == group)]
    above = dict.fromkeys(step.recipe.parent for one in parts for step in one.lineage)
    parents = [core.members.get(str(ChannelId(manager, each))) for each in above]
    return [*(one for one in parents if one is not None), *parts]
