"""A derivation that was placed with its sinks: events arrive as they were submitted, and are derived here."""

import time
from typing import TYPE_CHECKING

from echoic.channels import Delivery, Derivation, Member, Trouble, Workshop
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["DerivationHere"]


class DerivationHere:
    """The derivation of one channel, with a copy of its static variables for each source that is heard."""

    def __init__(self, member: Member, switchboard: "Switchboard") -> None:
        """Compile the code; its own hub trusts it with what it asks for.

        Raises:
            EchoicError: The code does not compile here.
        """
        step = member.lineage[-1]
        self._member = member
        self._derivation = Derivation(switchboard.address, step, None, switchboard.core.policy.for_own_sinks())
        self._derivation.outlets[step.port] = member
        self._derivation.equip(Workshop(step, self._derivation.policy))

    def derived(self, delivery: Delivery) -> Batch:
        """Return what becomes of events that have arrived; an empty batch for nothing."""
        derivation, member = self._derivation, self._member
        derivation.tune(member.lineage[-1])
        instance = derivation.instance(delivery.source)
        at_work = delivery.batch.count and not derivation.suspended  # a call without events has no type to speak of
        made = derivation.apply(instance, delivery.batch) if at_work else {}
        events = made.get(member.lineage[-1].port)
        return events if events is not None else Batch(member.format or delivery.batch.format, 0, [b""])

    def troubles(self) -> list[Trouble]:
        """Return what is wrong with it and has yet to be told."""
        return [trouble for _, trouble in self._derivation.tell_trouble(time.monotonic_ns())]
