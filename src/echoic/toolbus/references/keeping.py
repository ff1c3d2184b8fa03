"""Keeping: what a member has for others, and its content as it travels.

    keep     parts of what was said, as they are   each under its path, which begins with the number of a value
    adopt    the content of one leaf, as it came   its path is (); read only if somebody wants to know what is in it

Nothing is encoded before somebody asks, and then only the part that is asked for. So a handler that returns 50 MB costs
no copy of it. Content that arrived in chunks and is only passed on stays as it came. Where both are, in memory or in a
file, is the business of the store; each part is there for itself, so that one that went to a file comes back alone.
"""

import itertools
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from echoic.errors import EchoicError, MalformedTermError
from echoic.terms import ReferenceKind, TermList, Value, part_of
from echoic.terms.term import utf_8_size
from echoic.toolbus.protocol import Message
from echoic.toolbus.references.cutting import kind_of, pieces_of, value_from
from echoic.toolbus.references.transfer import STREAM_CHUNK_BYTES, chunks_of
from echoic.toolbus.references.words import Chunk, Put, encode_chunk, encode_put
from echoic.values import Stored, ValueStore
from echoic.wire.frames import Buffer, size_of

__all__ = ["Content", "Keeping", "content_of", "part_in", "with_content"]

Values: TypeAlias = tuple[Value, ...]
Path: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """A part of a value, as it travels."""

    kind: ReferenceKind
    size: int
    pieces: Iterable[Buffer]


@dataclass(frozen=True, slots=True)
class Kept:
    """Something that is kept for others."""

    handle: int
    kind: ReferenceKind | None
    """Of content that is kept as it came; None for values."""


class Keeping:
    """The variables of a member. Threads may share it."""

    def __init__(self, store: ValueStore[Values], number: int) -> None:
        """Keep nothing yet; `number` is that of the member."""
        self._store = store
        self._number = number
        self._variables: dict[int, dict[Path, Kept]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._variables)

    def fresh(self) -> int:
        """Return a number that no variable has had."""
        return next(self._numbers)

    def keep(self, variable: int, parts: Iterable[tuple[Path, Value, int]]) -> None:
        """Keep parts of what was said, each with its path and about how many bytes it has.

        Raises:
            EncodeError: There is no room in memory, and one cannot be written to a file.
            LimitExceededError: There is no room.
        """
        every: dict[Path, Kept] = {}
        try:
            for path, value, size in parts:
                every[path] = Kept(self._store.put((value,), size), None)
        except EchoicError:
            for kept in every.values():
                self._store.release(kept.handle)
            raise
        self._add(variable, every)

    def adopt(self, variable: int, handle: int, kind: ReferenceKind) -> None:
        """Keep content that is in the store already."""
        self._add(variable, {(): Kept(handle, kind)})

    def value(self, variable: int, path: tuple[int, ...]) -> Value:
        """Return a part of what is kept.

        Raises:
            LookupError: It is not there.
            MalformedTermError: Content that was kept as it came is not what it was said to be.
        """
        kept, rest = self._find(variable, path)
        found = self._store.get(kept.handle)
        value = value_from(kept.kind or ReferenceKind.LIST, found.pieces) if isinstance(found, Stored) else found[0]
        return part_of(value, rest)

    def content(self, variable: int, path: tuple[int, ...]) -> Content:
        """Return a part of what is kept as it travels.

        Raises:
            LookupError: It is not there.
            EncodeError: It cannot be written.
            MalformedTermError: It is not what it was said to be.
        """
        kept, rest = self._find(variable, path)
        if kept.kind is not None and not rest:
            return Content(kept.kind, self._store.size(kept.handle), self._store.pieces(kept.handle))
        return content_of(self.value(variable, path))

    def is_at_hand(self, variable: int, path: tuple[int, ...]) -> bool:
        """Whether the content of a part is there without having to be encoded first."""
        try:
            kept, rest = self._find(variable, path)
            return (kept.kind is not None and not rest) or isinstance(self.value(variable, path), str | bytes)
        except (LookupError, MalformedTermError):
            return True  # it is known at once that it cannot be had

    def release(self, variables: Iterable[int]) -> None:
        """Keep variables no longer; those that are not there are skipped."""
        with self._lock:
            every = [self._variables.pop(variable, {}) for variable in variables]
        for parts in every:
            for kept in parts.values():
                self._store.release(kept.handle)

    def clear(self) -> None:
        """Keep nothing any more."""
        self.release(list(self._variables))

    def _add(self, variable: int, parts: dict[Path, Kept]) -> None:
        with self._lock:
            self._variables[variable] = parts

    def _find(self, variable: int, path: Path) -> tuple[Kept, Path]:
        """Return what is kept on the way to a part, and the way from there."""
        parts = self._variables.get(variable)
        if parts is None:
            raise LookupError(f"tool {self._number} does not keep the variable {variable} any more")
        for length in range(len(path), -1, -1):
            kept = parts.get(path[:length])
            if kept is not None:
                return kept, path[length:]
        raise LookupError(f"tool {self._number} does not keep the part {list(path)} of the variable {variable}")


def part_in(values: Values, path: tuple[int, ...]) -> Value:
    """Return a part of values, all of them as a list for the path ().

    Raises:
        LookupError: There is no such part.
    """
    if not path:
        return TermList(*values)
    if path[0] >= len(values):
        raise LookupError(f"there are {len(values)} values, and no value {path[0]}")
    return part_of(values[path[0]], path[1:])


def content_of(value: Value) -> Content:
    """Return a value as it travels.

    Raises:
        EncodeError: It cannot be written.
        MalformedTermError: It never travels alone.
    """
    kind = kind_of(value)
    pieces = pieces_of(value)
    if isinstance(value, str):
        return Content(kind, utf_8_size(value), pieces)
    return Content(kind, sum(map(size_of, pieces)), pieces)


def with_content(put: Put, content: Content) -> Iterator[Message]:
    """Yield a PUT with its value behind it, in the order to say it."""
    yield encode_put(replace(put, size=content.size, with_value=True))
    left = content.size
    for body in chunks_of(content.pieces, STREAM_CHUNK_BYTES):
        left -= size_of(body)
        yield encode_chunk(Chunk(put.transaction, body, left <= 0))
    if not content.size:
        yield encode_chunk(Chunk(put.transaction, b"", True))
