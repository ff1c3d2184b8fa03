"""Entering a channel at a name server, and again whenever that was started anew.

With rights only the hub that manages a channel enters its name. So the manager does that for derived channels which
others have named, wherever their parent is known.
"""

from typing import TYPE_CHECKING

from echoic.channels.identity import ChannelId
from echoic.channels.messages import Done, Message, Refused, Step
from echoic.channels.requests import Answer
from echoic.errors import UnreachableError

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["register", "register_derived"]


def register(core: "Concentrator", server: str, name: str, id: str, answer: Answer) -> None:
    """Enter a channel of this hub at a name server; one that forgets it is told again (`Concentrator.tick`)."""
    message = core.manager.registration(server, name, id)

    def registered(reply: Message) -> None:
        if isinstance(reply, Done):
            core.manager.registered(server, message)
        answer(reply)

    core.ask(server, message, registered)


def register_derived(core: "Concentrator", step: Step) -> None:
    """Enter a derived channel of this book at the name servers of its parent; one that refuses is not asked again."""

    def refused(reply: Message) -> None:
        if isinstance(reply, Refused) and reply.kind != UnreachableError.__name__:
            core.manager.unregister(step.name)

    for server in core.manager.servers_of(step.recipe.parent):
        register(core, server, step.name, str(ChannelId(core.address, step.name)), refused)
