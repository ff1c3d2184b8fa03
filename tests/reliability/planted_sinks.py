"""A sink of a hub that does not tell gaps exactly, for the trial that must find it: the target of a worker."""

from collections.abc import Callable
from typing import Any

import msgspec

from echoic.channels import Gap
from echoic.hub import Channel
from echoic.testing.trials import slow_parties
from echoic.testing.trials.workers import Conversation


def tell_too_much() -> None:
    """Let a hub tell of one event too many that a sink will not get."""
    subscribe = Channel.subscribe

    def careless(self: Channel, *arguments: Any, on_gap: Callable[[Gap], None], **named: Any) -> Any:
        def tell(gap: Gap) -> None:
            on_gap(msgspec.structs.replace(gap, last=gap.last + 1))

        return subscribe(self, *arguments, on_gap=tell, **named)

    Channel.subscribe = careless  # type: ignore[assignment, method-assign] - the mistake


def count(conversation: Conversation) -> None:
    """Be a sink that writes down what it gets, and what a careless hub tells it; this runs in a worker."""
    tell_too_much()
    slow_parties.count(conversation)
