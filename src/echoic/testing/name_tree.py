"""The names of a simulated disk: which directories have which, and which of them are certainly on the disk.

A change of names (made, renamed, removed) is seen by everybody at once and is on the disk when its directory was
synced; a rename from one directory to another when both were. Until then a loss of power may undo any of them, in any
choice, but a rename as a whole. The entry of a directory in the one above it is such a name too: if it was never
synced, everything in it may be gone, however often its files were.
"""

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Final, TypeAlias

from echoic.errors import LocalError
from echoic.testing.file_image import FileImage

__all__ = ["Directory", "NameTree", "Node"]

DEPTH_MAX: Final = 64


class Node:
    """A file: its bytes, where they cannot be read, and whether it is locked."""

    __slots__ = ("image", "locked", "unreadable")

    def __init__(self) -> None:
        self.image = FileImage()
        self.locked = False
        self.unreadable: list[tuple[int, int]] = []


class Directory:
    """The names in a directory, as they are seen, and as they are on the disk."""

    __slots__ = ("durable", "names")

    def __init__(self) -> None:
        self.names: dict[str, Entry] = {}
        self.durable: dict[str, Entry] = {}


Entry: TypeAlias = Node | Directory
Effect: TypeAlias = tuple[Directory, str, Entry | None]


class NameChange:
    """Names that change together, and the directories that were not synced since."""

    __slots__ = ("effects", "waiting")

    def __init__(self, effects: Sequence[Effect]) -> None:
        self.effects: Final = tuple(effects)
        self.waiting = [directory for directory, _, _ in effects]

    def carry_out(self) -> None:
        """Put the names on the disk."""
        for directory, name, entry in self.effects:
            if entry is None:
                directory.durable.pop(name, None)
            else:
                directory.durable[name] = entry


class NameTree:
    """The directories from the root on, with what was changed and not synced."""

    def __init__(self) -> None:
        self.root: Final = Directory()
        self._changes: list[NameChange] = []

    def find(self, path: str) -> Entry:
        """Return what has a path.

        Raises:
            FileNotFoundError: Nothing has it.
            NotADirectoryError: A file stands where the path has a directory.
        """
        entry: Entry = self.root
        for name in _names_of(path):
            if not isinstance(entry, Directory):
                raise NotADirectoryError(20, "Not a directory", path)
            below = entry.names.get(name)
            if below is None:
                raise FileNotFoundError(2, "No such file or directory", path)
            entry = below
        return entry

    def file(self, path: str) -> Node:
        """Return the file at a path.

        Raises:
            FileNotFoundError: There is none.
            IsADirectoryError: It is a directory.
        """
        entry = self.find(path)
        if isinstance(entry, Directory):
            raise IsADirectoryError(21, "Is a directory", path)
        return entry

    def directory(self, path: str) -> Directory:
        """Return the directory at a path.

        Raises:
            FileNotFoundError: There is none.
            NotADirectoryError: It is a file.
        """
        entry = self.find(path)
        if isinstance(entry, Node):
            raise NotADirectoryError(20, "Not a directory", path)
        return entry

    def place(self, path: str) -> tuple[Directory, str]:
        """Return the directory that has, or would have, the last name of a path, and this name.

        Raises:
            FileNotFoundError: There is no such directory.
            LocalError: It is the path of the root.
        """
        above, _, _ = "/".join(names := _names_of(path)).rpartition("/")
        if not names:
            raise LocalError(f"the root of a disk is no file - at `{path}`")
        return self.directory(above), names[-1]

    def change(self, *effects: Effect) -> None:
        """Change names together, for everybody who looks; None takes a name away."""
        for directory, name, entry in effects:
            if entry is None:
                directory.names.pop(name, None)
            else:
                directory.names[name] = entry
        self._changes.append(NameChange(effects))

    def make_directories(self, path: str) -> None:
        """Make a directory and those above it.

        Raises:
            NotADirectoryError: A file stands where the path has a directory.
        """
        directory = self.root
        for name in _names_of(path):
            below = directory.names.get(name)
            if isinstance(below, Node):
                raise NotADirectoryError(20, "Not a directory", path)
            if below is None:
                below = Directory()
                self.change((directory, name, below))
            directory = below

    def sync(self, directory: Directory) -> None:
        """Put the names of a directory on the disk."""
        for change in self._changes:
            change.waiting = [each for each in change.waiting if each is not directory]
        self._fold()

    def lose_power(self, random: Random) -> int:
        """Draw which names are there; return how many changes were undone."""
        share = random.choice((0.0, 0.5, 0.5, 1.0))
        ordered = random.random() < 0.5
        lost = 0
        for change in self._changes:
            if not change.waiting or (random.random() < share and not (ordered and lost)):
                change.carry_out()
            else:
                lost += 1
        self._changes.clear()
        for entry in _entries_of([self.root]):
            if isinstance(entry, Directory):
                entry.names = dict(entry.durable)
        return lost

    def nodes(self) -> list[Node]:
        """Return every file that has a name, or may have one again after a loss of power."""
        pending = [entry for change in self._changes for _, _, entry in change.effects]
        found = {id(node): node for _, node in self.files()}
        found |= {id(entry): entry for entry in _entries_of(pending) if isinstance(entry, Node)}
        found |= {id(entry): entry for entry in _entries_of([self.root]) if isinstance(entry, Node)}
        return list(found.values())

    def files(self) -> Iterator[tuple[str, Node]]:
        """Yield the path and file of every name, sorted."""
        yield from _files_below(self.root, "")

    def copy(self) -> "NameTree":
        """Return the same names and bytes, all of them on the disk, without locks."""
        other = NameTree()
        for path, node in self.files():
            above, _, name = path.rpartition("/")
            other.make_directories(above)
            twin = Node()
            twin.image, twin.unreadable = node.image.copy(), list(node.unreadable)
            other.change((other.directory(above), name, twin))
        for change in other._changes:
            change.carry_out()
        other._changes.clear()
        return other

    def _fold(self) -> None:
        """Carry out what is synced, unless an earlier change of the same name waits still."""
        kept: list[NameChange] = []
        touched: set[tuple[int, str]] = set()
        for change in self._changes:
            keys = {(id(directory), name) for directory, name, _ in change.effects}
            if change.waiting or keys & touched:
                kept.append(change)
                touched |= keys
            else:
                change.carry_out()
        self._changes = kept


def _entries_of(entries: Iterable[Entry | None], depth: int = 0) -> Iterator[Entry]:
    """Yield entries, and what is on the disk below them."""
    for entry in entries:
        if entry is not None:
            yield entry
        if isinstance(entry, Directory) and depth < DEPTH_MAX:
            yield from _entries_of(entry.durable.values(), depth + 1)


def _files_below(directory: Directory, path: str) -> Iterator[tuple[str, Node]]:
    for name, entry in sorted(directory.names.items()):
        if isinstance(entry, Node):
            yield path + name, entry
        else:
            yield from _files_below(entry, f"{path}{name}/")


def _names_of(path: str) -> list[str]:
    """Return the names of a path.

    Raises:
        LocalError: It leads upwards, or too deep.
    """
    names = [name for name in path.split("/") if name not in {"", "."}]
    if ".." in names or len(names) > DEPTH_MAX:
        raise LocalError(f"a path leads out of the disk, or has more than {DEPTH_MAX} names - at `{path}`")
    return names
