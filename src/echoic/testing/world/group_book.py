"""What the members of a world's group were given, and whether they may have been.

order       the same pack or view at the same place, for all; nobody misses a place that others were given
senders     the packs of each life of a member once, in order, none left out
majority    what anybody is given for the first time is on the disks of a majority by then
leaders     one in a term
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from echoic.groups.engine import Delivered, EngineEvent, Restored, Viewed
from echoic.testing.ledger import check

__all__ = ["GroupBook"]

Life: TypeAlias = tuple[str, int]
Given: TypeAlias = tuple[object, ...]


class GroupBook:
    """The order of a group, and how far each member is in it."""

    def __init__(self) -> None:
        self.order: Final[dict[int, Given]] = {}
        self.reached: Final[dict[Life, int]] = {}
        """By name and number of start, the last place that a member was given."""
        self.events: Final[list[object]] = []
        """What applications were given, in order."""
        self._senders: dict[Life, int] = {}
        self._leaders: dict[int, str] = {}

    def lead(self, name: str, term: int) -> None:
        """Note who leads.

        Raises:
            AssertionError: Somebody else did, in the same term.
        """
        known = self._leaders.setdefault(term, name)
        check(known == name, "{} leads in term {}, and so does {}", name, term, known)

    def learn(self, member: Life, event: EngineEvent, kept: Mapping[str, int]) -> None:
        """Note what a member is told.

        Args:
            member: Its name, and the number of its start.
            event: What it is told.
            kept: How far the log on each member's disk reaches.

        Raises:
            AssertionError: It may not be told this.
        """
        match event:
            case Delivered():
                value = (event.sender, event.life, event.number, bytes(event.payload))
                self._give(member, event.position, value, kept)
            case Viewed(view) if view.position > self.reached.get(member, 0):
                self._give(member, view.position, ("view", view.members), kept)
            case Restored(position):
                self.reached[member] = position
            case _:
                pass

    def hand_over(self, name: str, sequence: int, event: object) -> None:
        """Note that an application is given an event, by its number from 1.

        Raises:
            AssertionError: Others were given another one, or not the one before.
        """
        check(sequence <= len(self.events) + 1, "{} is given event {}, known are {}", name, sequence, len(self.events))
        if sequence == len(self.events) + 1:
            self.events.append(event)
        known = self.events[sequence - 1]
        check(known == event, "{} is given {} as event {}, others were given {}", name, event, sequence, known)

    def _give(self, member: Life, position: int, value: Given, kept: Mapping[str, int]) -> None:
        last = self.reached.get(member, 0)
        check(position > last, "{} is given place {} after {}", member[0], position, last)
        missed = [place for place in range(last + 1, position) if place in self.order]
        check(not missed, "{} goes from place {} to {}, others were given {}", member[0], last, position, missed)
        if position not in self.order:
            self._begin(member, position, value, kept)
        known = self.order[position]
        check(known == value, "at place {} {} is given {}, others were given {}", position, member[0], value, known)
        self.reached[member] = position

    def _begin(self, member: Life, position: int, value: Given, kept: Mapping[str, int]) -> None:
        """Let a place be given for the first time."""
        self.order[position] = value
        ahead = [other for other, reached in self.reached.items() if reached > position]
        check(not ahead, "{} is given place {}, which {} were not", member[0], position, ahead)
        holding = sum(end >= position for end in kept.values())
        check(
            2 * holding > len(kept),
            "{} is given place {}, which {} of {} keep",
            member[0],
            position,
            holding,
            len(kept),
        )
        if value[0] != "view":
            sender, life, number, _ = value
            before = self._senders.get((str(sender), int(str(life))), 0)
            check(number == before + 1, "pack {} of {} comes after {}", number, sender, before)
            self._senders[str(sender), int(str(life))] = before + 1
