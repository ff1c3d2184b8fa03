"""What others want to know of a journal: how far a source is recorded; and for whoever touches files, its blocks.

In a hub with rights a bookmark is of whoever has put it there: two sinks of the same name and of different people go on
each where it was. Whoever may subscribe could move that of another beyond what it has seen otherwise. And whoever has
waited for more is asked about again before he gets it.
"""

from typing import TYPE_CHECKING

import msgspec

from echoic.channels.admission import may_read
from echoic.channels.effects import Consult
from echoic.channels.journal_messages import Ask, Fetch, Fetched, Kept, Mark, Marked
from echoic.channels.messages import Message, Refused
from echoic.channels.requests import Answer
from echoic.errors import DeniedError, RefusedError
from echoic.rights import ANONYMOUS

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.member import Member
    from echoic.channels.neighbour import Neighbour

__all__ = ["consult"]


def consult(core: "Concentrator", message: Ask | Fetch | Mark, answer: Answer, sender: str = "") -> None:
    """Answer what is known here, and leave the rest to whoever reads the journal.

    Raises:
        ChannelNotFoundError: The channel is not open here.
        RefusedError: It is not recorded here.
    """
    member = core.opened(message.channel)
    if member.recorded is None:
        raise RefusedError(f"channel `{member.name}` is not recorded here")
    if isinstance(message, Ask):
        journal, positions = member.recorded
        answer(Kept(member.id, journal, {message.source: positions.get(message.source, 0)}))
        return
    neighbour = core.neighbours.get(sender)
    if core.admission.rights is None or neighbour is None:
        core.effects.append(Consult(member, message, answer))
    elif isinstance(message, Mark):
        _mark(core, neighbour, member, message, answer)
    else:
        _fetch(core, neighbour, member, message, answer)


def _mark(core: "Concentrator", neighbour: "Neighbour", member: "Member", mark: Mark, answer: Answer) -> None:
    """Leave a bookmark to its owner; one that was put before there were rights is found until it is moved."""
    own = msgspec.structs.replace(mark, sink=f"{mark.sink} of {neighbour.who or ANONYMOUS}")

    def marked(reply: Message) -> None:
        if reply == Marked(()) and not mark.positions:
            core.effects.append(Consult(member, mark, answer))
        else:
            answer(reply)

    core.effects.append(Consult(member, own, marked))


def _fetch(core: "Concentrator", neighbour: "Neighbour", member: "Member", fetch: Fetch, answer: Answer) -> None:
    """Give blocks to who may still have them when they are there."""

    def fetched(reply: Message) -> None:
        if isinstance(reply, Fetched) and not may_read(core, neighbour, member):
            answer(Refused(DeniedError.__name__, f"the right to subscribe `{member.name}` was withdrawn"))
        else:
            answer(reply)

    core.effects.append(Consult(member, fetch, fetched))
