"""One attempt of the members of a view to agree on how to go on, and what comes of it.

    States of all     Promises of all participants      Readies of all participants
    ------------- decided -------------------- settled ------------------- established ----- packs, acks, Caught
                  each promises the epoch      each accepts the epoch's    the epoch's packs
                  it has computed              order and says so           count from here on

All members of a view of the engine below get the same messages in the same order, so each of these steps happens for
all of them between the same two messages. If a step is not reached by all, the view has changed, and another round
begins.

*Who lets a member in.* One that has caught up does not let itself in: by its Caught it asks, and where the Admitted of
the chosen member comes, it takes part. So whatever is put into the order of an epoch comes from one who takes part
already. That matters when the view breaks. A member may miss a message then, and be given later ones all the same, if
they were sent by those who stay with it:

                 c has caught up with a and b; a sends x, then c its Caught; the view breaks into a, b and c
    a and b      ... x          both have acknowledged it, so it is delivered, at 5
    c            ... Caught     x is missing; did this let c in, its view would be at 5, in an order of the same epoch
                                that is as long as theirs, and could be chosen when they meet

With this rule, an order of the epoch that reaches as far as something was delivered has it. For suppose that an order
has y behind a missing x. Who sent y stays with whoever misses x, and misses it too, since what one of them was given
they all are given; so it never acknowledges x. Was x delivered, then where the sender of y did not take part: it is not
one of the first participants, and was not admitted before x. So it was admitted behind the missing x, and the chosen
member stays with them and does not acknowledge x either. But that one takes part everywhere: x was not delivered.

Who is admitted counts as holding nothing until it acknowledges, since it may miss what comes before its Admitted. And
as one member admits them all, of two sides of an epoch one has all participants of the other.
"""

from collections.abc import Mapping
from typing import Final

from echoic.groups.agreement.messages import Membership, Place, State
from echoic.groups.agreement.primary import Decision
from echoic.groups.agreement.uniform import Uniform

__all__ = ["Round"]


class Round:
    """How far a round has come."""

    def __init__(self, decision: Decision, states: Mapping[Place, State]) -> None:
        self.decision: Final = decision
        self.states: Final = dict(states)
        self.epoch: Final = decision.epoch
        self.settled = self.established = False
        self.participants: Final[dict[Place, tuple[str, int]]] = {
            place: (states[place].name, states[place].life) for place in decision.participants
        }
        self.uniform = Uniform(decision.participants)
        self._promised: set[Place] = set()
        self._ready: set[Place] = set()

    @property
    def membership(self) -> Membership:
        """Who takes part."""
        return Membership(tuple(sorted(self.participants.values())))

    def promise(self, place: Place) -> bool:
        """Note a promise; return whether it was the last one that was missing."""
        return self._note(place, self._promised)

    def ready(self, place: Place) -> bool:
        """Note that a participant has accepted the order; return whether it was the last one."""
        self.uniform.acknowledge(place, self.decision.position + 1)  # the order, and the view behind it
        return self._note(place, self._ready)

    def lacks(self, place: Place) -> bool:
        """Return whether a member may be admitted: it does not take part yet, and the others do."""
        return self.established and place in self.decision.counted and place not in self.participants

    def admit(self, place: Place) -> None:
        """Let a member that has caught up take part; what it holds counts when it acknowledges it."""
        self.participants[place] = (self.states[place].name, self.states[place].life)
        self.uniform.admit(place)

    def _note(self, place: Place, noted: set[Place]) -> bool:
        if place not in self.participants or place in noted:
            return False
        noted.add(place)
        return len(noted) == len(self.decision.participants)
