"""What others want to know of a journal: how far a source is recorded; and for whoever touches files, its blocks."""

from typing import TYPE_CHECKING

from echoic.channels.effects import Consult
from echoic.channels.journal_messages import Ask, Fetch, Kept, Mark
from echoic.channels.requests import Answer
from echoic.errors import RefusedError

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["consult"]


def consult(core: "Concentrator", message: Ask | Fetch | Mark, answer: Answer) -> None:
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
    else:
        core.effects.append(Consult(member, message, answer))
