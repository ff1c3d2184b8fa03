"""What a hub does for its neighbours and channels merely because time passes.

All neighbours are looked after ten times a second. When a connection breaks, only the neighbour behind it is, at once:
it is dialled again or given up, while the others can wait for the next look. Thousands that hang up together would
otherwise make the hub look at thousands, thousands of times.
"""

from typing import TYPE_CHECKING

from echoic.channels.effects import Dial
from echoic.channels.registering import register
from echoic.channels.requests import ignore

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.neighbour import Neighbour

__all__ = ["look_after", "make_up"]


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
        for role in member.lacking():
            if not member.asking.get(role):  # whoever goes over must not be overtaken by a plain wish
                core.join(member, role, ignore)
    for server, message in core.manager.unregistered():
        register(core, server, message.name, message.id, ignore)
