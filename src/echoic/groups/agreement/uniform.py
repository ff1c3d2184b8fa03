"""Up to where every member of a view holds the order: so much may be delivered, and is never lost.

A member of the primary view acknowledges, by a multicast, up to which position it holds the order of this *epoch* (the
life of one primary view). What all have acknowledged is *stable*. Whoever was given a message can therefore fail, and
every later primary view has a member that holds it (section 2.1 of the paper asks for this as safe delivery).

An acknowledgement counts in its own epoch only. After two sides of a partition have met again, the same position may
stand for another message on each side, so what was acknowledged before says nothing: the prototype of this layer forgot
that, and delivered what only one member had.
"""

from collections.abc import Iterable

from echoic.groups.agreement.messages import Place

__all__ = ["Uniform"]


class Uniform:
    """How far each participant of an epoch holds its order."""

    __slots__ = ("_held",)

    def __init__(self, participants: Iterable[Place] = ()) -> None:
        self._held: dict[Place, int] = dict.fromkeys(participants, 0)

    def admit(self, place: Place) -> None:
        """Count a further participant; what it holds is not known before it acknowledges."""
        self._held[place] = 0

    def acknowledge(self, place: Place, position: int) -> None:
        """Note that a participant holds everything up to a position."""
        if position > self._held.get(place, position):
            self._held[place] = position

    def stable(self) -> int:
        """Return up to where all hold it."""
        return min(self._held.values(), default=0)
