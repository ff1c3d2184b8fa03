"""Entering a channel at a name server, and again whenever that was started anew."""

from typing import TYPE_CHECKING

from echoic.channels.messages import Done, Message
from echoic.channels.requests import Answer

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator

__all__ = ["register"]


def register(core: "Concentrator", server: str, name: str, id: str, answer: Answer) -> None:
    """Enter a channel of this hub at a name server; one that forgets it is told again (`Concentrator.tick`)."""
    message = core.manager.registration(server, name, id)

    def registered(reply: Message) -> None:
        if isinstance(reply, Done):
            core.manager.registered(server, message)
        answer(reply)

    core.ask(server, message, registered)
