"""A derivation that was placed with its sinks: events arrive as they were submitted, and are derived here.

The code is compiled once. What a hub sends may fault, or be of a type that the code cannot take, and then suspends the
derivation; so each hub that sends has one of its own, and none can end what is derived from the events of others.
"""

import time
from typing import TYPE_CHECKING, Final

from echoic.channels import Delivery, Derivation, Member, Trouble, Workshop
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["DerivationHere"]

HUBS_MAX: Final = 1024


class DerivationHere:
    """The derivation of one channel, with a copy of its static variables for each source that is heard."""

    def __init__(self, member: Member, switchboard: "Switchboard") -> None:
        """Compile the code; its own hub trusts it with what it asks for.

        Raises:
            EchoicError: The code does not compile here.
        """
        self._member = member
        self._address = switchboard.address
        self._policy = switchboard.core.policy.for_own_sinks()
        self._workshop = Workshop(member.lineage[-1], self._policy)
        self._derivations: dict[str, Derivation] = {}

    def derived(self, delivery: Delivery) -> tuple[Batch, list[Trouble]]:
        """Return what becomes of events that have arrived, an empty batch for nothing, and what is wrong."""
        derivation, member = self._derivation_of(delivery.hub), self._member
        derivation.tune(member.lineage[-1])
        instance = derivation.instance(delivery.source)
        at_work = delivery.batch.count and not derivation.suspended  # a call without events has no type to speak of
        made = derivation.apply(instance, delivery.batch) if at_work else {}
        events = made.get(member.lineage[-1].port)
        if events is None:
            events = Batch(member.format or delivery.batch.format, 0, [b""])
        return events, [trouble for _, trouble in derivation.tell_trouble(time.monotonic_ns())]

    def _derivation_of(self, hub: str) -> Derivation:
        """Return the derivation for what a hub sends."""
        found = self._derivations.get(hub)
        if found is None:
            if len(self._derivations) >= HUBS_MAX:
                self._derivations.pop(next(iter(self._derivations)), None)
            step = self._member.lineage[-1]
            found = Derivation(self._address, step, None, self._policy)
            found.outlets[step.port] = self._member
            found.equip(self._workshop)
            self._derivations[hub] = found
        return found
