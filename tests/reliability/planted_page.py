"""A page with a mistake in it, for trial 18: it has room for everybody who says nothing."""

from functools import partial

from echoic.links import gate
from echoic.links.strangers import Strangers
from echoic.testing.trials.strangers_page import be_the_page
from echoic.testing.trials.workers import Conversation

__all__ = ["be_open_to_all"]

ROOM = 100_000


def be_open_to_all(conversation: Conversation) -> None:
    gate.Strangers = partial(Strangers, ROOM)  # type: ignore[misc, assignment] # the mistake
    be_the_page(conversation)
