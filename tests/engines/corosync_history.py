"""What the members of a group wrote down, read and checked: order, gaps, uniformity, views."""

import json
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Stories", "Story", "violations_of"]

Pack = tuple[str, int, int]


@dataclass
class Story:
    """What one life of a member was given."""

    name: str
    life: int
    given: list[Pack] = field(default_factory=list)
    packs: dict[int, Pack] = field(default_factory=dict)
    views: dict[int, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    restored: int = 0
    suspended: int = 0
    ended: str = ""
    sent: int | None = None

    def tell(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        if kind == "D":
            position, sender, life, number = rest.split()
            pack = (sender, int(life), int(number))
            if self.packs and int(position) <= max(self._last, 0):
                self.problems.append(f"{self.name}/{self.life}: position {position} after {self._last}")
            self._last = int(position)
            self.packs[int(position)] = pack
            self.given.append(pack)
        elif kind == "V":
            position, names = rest.split()
            self.views[int(position)] = names
        elif kind == "R":
            self.restored += 1
            given = [(s, int(li), int(n)) for s, li, n in json.loads(rest.partition(" ")[2])]
            if given[: len(self.given)] != self.given:
                self.problems.append(f"{self.name}/{self.life}: a state that does not continue what was given")
            self.given = given
        elif kind == "S":
            self.suspended += 1
        elif kind == "E":
            self.ended = rest
        elif kind == "P":
            self.sent = int(rest)

    _last: int = 0


class Stories:
    """The stories in a folder, read on as they are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stories: dict[str, Story] = {}
        self._offsets: dict[str, int] = {}

    def read(self) -> list[Story]:
        for path in sorted(self.folder.glob("n*.log")):
            name, life, _ = path.name.split(".")
            story = self._stories.setdefault(path.name, Story(name, int(life)))
            with path.open("rb") as file:
                file.seek(self._offsets.get(path.name, 0))
                whole, newline, _ = file.read().rpartition(b"\n")  # the last line may be half written
            self._offsets[path.name] = self._offsets.get(path.name, 0) + len(whole) + len(newline)
            for line in whole.decode().split("\n") if whole else ():
                story.tell(line)
        return list(self._stories.values())


def violations_of(stories: list[Story]) -> list[str]:
    """Return what contradicts total order, FIFO, uniformity or equal views."""
    problems = [problem for story in stories for problem in story.problems]
    longest = max(stories, key=lambda story: len(story.given)).given
    places: dict[int, Pack] = {}
    views: dict[int, str] = {}
    for story in stories:
        who = f"{story.name}/{story.life}"
        if longest[: len(story.given)] != story.given:
            index = next(i for i, (a, b) in enumerate(zip(longest, story.given, strict=False)) if a != b)
            problems.append(f"{who} was given {story.given[index]} as {index}, others {longest[index]}")
        for position, pack in story.packs.items():
            if places.setdefault(position, pack) != pack:
                problems.append(f"{who} has {pack} at {position}, others {places[position]}")
        for position, names in story.views.items():
            if views.setdefault(position, names) != names or position in places:
                problems.append(f"{who} has view {names} at {position}, others {views[position]}")
    last: dict[tuple[str, int], int] = {}
    for sender, life, number in longest:
        if number != last.get((sender, life), 0) + 1:
            problems.append(f"pack {number} of {sender}/{life} comes after {last.get((sender, life), 0)}")
        last[sender, life] = number
    problems += [
        f"more than {story.sent} packs of {story.name}/{story.life}"
        for story in stories
        if story.sent is not None and last.get((story.name, story.life), 0) > story.sent
    ]
    return problems
