"""Whose a source is: who has brought its events first speaks for it, and nobody of another name.

Sinks know a source by its number, which all who listen can see. Without this, whoever may publish could claim that
another's source is far ahead, and what that really sends would be taken for old.
"""

from typing import TYPE_CHECKING, Final

from echoic.channels.effects import Audited
from echoic.rights import ANONYMOUS, Decision

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.member import Member
    from echoic.channels.neighbour import Neighbour

__all__ = ["may_speak"]

BEARERS_MAX: Final = 65_536


def may_speak(core: "Concentrator", neighbour: "Neighbour", member: "Member", source: int) -> bool:
    """Whether a hub may tell of a source: nobody does for one of another name, while hubs of that name are there.

    A source may go on in another hub of the same name, or of another one when the former is gone.
    """
    if core.admission.rights is None or member.bearers.get(source) == neighbour.who:
        return True
    bearer = member.bearers.get(source)
    if bearer is not None and core.neighbourhood.count_named(bearer):
        reason = f"source {source} is one of `{bearer or ANONYMOUS}`"
        decision = Decision(neighbour.who or ANONYMOUS, "publish", member.name, allowed=False, reason=reason)
        core.effects.append(Audited(decision, "Events", neighbour.address))
        return False
    if len(member.bearers) >= BEARERS_MAX:
        there = {one.who for one in core.neighbours.values()}
        member.bearers = {source: who for source, who in member.bearers.items() if who in there}
    if len(member.bearers) < BEARERS_MAX:
        member.bearers[source] = neighbour.who
    return True
