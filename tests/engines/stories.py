"""What the members of a group wrote down of what they were given, read and checked.

    E sequence view sender number digest    an event, and the position of the view in which it came; 0 for none
    V position primary name,name            a view
    R upto [[sequence, sender, number, digest], ...]    another's state was taken over, with all events in it
    G first last                            events that nobody keeps any more

One file for each life of a member, written before the next event is handled, so it survives a kill. A member's events
are numbered by itself: `life * LIFE + 1, + 2, ...`, so that order, loss and copies show in the numbers.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["LIFE", "Event", "Stories", "Story", "problems_of"]

LIFE = 10_000_000
Event = tuple[str, int, str]
"""Sender, number, digest of the text."""


class Story:
    """What one life of a member was given."""

    def __init__(self, name: str, life: int) -> None:
        self.name, self.life = name, life
        self.events: dict[int, Event] = {}
        self.last = 0
        self.view_of: dict[int, int] = {}
        self.views: list[tuple[int, bool, tuple[str, ...], int]] = []
        """Position, primary, members, and the event after which it was told."""
        self.restored: list[int] = []
        self.gaps: list[tuple[int, int]] = []
        self.problems: list[str] = []

    def __repr__(self) -> str:
        return f"{self.name}/{self.life}"

    @property
    def history(self) -> list[tuple[int, str, int]]:
        """Sequence, sender and number of each event, in order."""
        return [(sequence, sender, number) for sequence, (sender, number, _) in self.events.items()]

    @property
    def members(self) -> tuple[str, ...]:
        """Who is in the view, as far as this member was told."""
        return self.views[-1][2] if self.views else ()

    def tell(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        if kind == "E":
            sequence, view, sender, number, digest = rest.split()
            self._take(int(sequence), (sender, int(number), digest))
            if int(view):  # else this member catches up with what happened while it was in no view
                self.view_of[int(sequence)] = int(view)
        elif kind == "V":
            position, primary, members = (*rest.split(), "")[:3]
            names = tuple(members.split(",")) if members else ()
            self.views.append((int(position), primary == "1", names, self.last))
        elif kind == "R":
            upto, _, content = rest.partition(" ")
            self.restored.append(int(upto))
            for sequence, sender, number, digest in json.loads(content):
                if sequence > self.last:
                    self._take(sequence, (sender, number, digest))
                elif self.events.get(sequence, (sender, number, digest)) != (sender, number, digest):
                    self.problems.append(f"{self}: a state has another event at {sequence}")
            self.last = int(upto)
        elif kind == "G":
            first, last = map(int, rest.split())
            self.gaps.append((first, last))
            self.last = last

    def _take(self, sequence: int, event: Event) -> None:
        if self.events and sequence != self.last + 1:
            self.problems.append(f"{self}: event {sequence} after {self.last}")
        self.last = sequence
        self.events[sequence] = event


class Stories:
    """The stories in a folder, read on as they are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stories: dict[str, Story] = {}
        self._offsets: dict[str, int] = {}

    def read(self) -> list[Story]:
        for path in sorted(self.folder.glob("*.story")):
            name, life, _ = path.name.split(".")
            story = self._stories.setdefault(path.name, Story(name, int(life)))
            with path.open("rb") as file:
                file.seek(self._offsets.get(path.name, 0))
                whole, newline, _ = file.read().rpartition(b"\n")  # the last line may be half written
            self._offsets[path.name] = self._offsets.get(path.name, 0) + len(whole) + len(newline)
            for line in whole.decode().split("\n") if whole else ():
                story.tell(line)
        return sorted(self._stories.values(), key=lambda story: story.life)

    def latest(self) -> dict[str, Story]:
        """Return the story of each member's last life."""
        return {story.name: story for story in self.read()}


def problems_of(stories: Sequence[Story]) -> list[str]:
    """Return what contradicts total order, FIFO, uniformity or equal views between equal events."""
    problems = [problem for story in stories for problem in story.problems]
    order: dict[int, Event] = {}
    views: dict[int, tuple[str, ...]] = {}
    view_of: dict[int, int] = {}
    for story in stories:
        for sequence, event in story.events.items():
            if order.setdefault(sequence, event) != event:
                problems.append(f"{story} was given {event} as {sequence}, others {order[sequence]}")
        for sequence, position in story.view_of.items():
            if view_of.setdefault(sequence, position) != position:
                problems.append(f"{story} got {sequence} in view {position}, others in {view_of[sequence]}")
        for position, _, members, _ in story.views:
            if members and views.setdefault(position, members) != members:
                problems.append(f"{story} has the view {members} at {position}, others {views[position]}")
    return problems + list(_fifo_problems(order))


def _fifo_problems(order: dict[int, Event]) -> Iterable[str]:
    last: dict[tuple[str, int], int] = {}
    for sequence in sorted(order):
        sender, number, _ = order[sequence]
        life, place = divmod(number, LIFE)
        if last.setdefault((sender, life), 0) + 1 != place:
            yield f"event {sequence}: number {place} of {sender}/{life} comes after {last[sender, life]}"
        last[sender, life] = place
