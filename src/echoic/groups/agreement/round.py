"""One attempt of the members of a view to agree on how to go on, and what comes of it.

    States of all     Promises of all participants      Readies of all participants
    ------------- decided -------------------- settled ------------------- established ----- packs, acks, Caught
                  each promises the epoch      each accepts the epoch's    the epoch's packs
                  it has computed              order and says so           count from here on

All members of a view of the engine below get the same messages in the same order, so each of these steps happens for
all of them between the same two messages. If a step is not reached by all, the view has changed, and another round
begins.
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

    def admit(self, place: Place, position: int) -> None:
        """Let a member that has caught up take part; it holds everything up to a position."""
        self.participants[place] = (self.states[place].name, self.states[place].life)
        self.uniform.admit(place, position)

    def _note(self, place: Place, noted: set[Place]) -> bool:
        if place not in self.participants or place in noted:
            return False
        noted.add(place)
        return len(noted) == len(self.decision.participants)
