"""The places that a random program can name: fields of its records by their types, and variables by their scopes.

A place is spelled with holes for its indexes. Whoever fills a hole should know how long the array is, because a program
that faults at its first statement tests little else.

    input.cells[#].speed[#]    Place(("input.cells", Hole(dynamic), ".speed", Hole(3)), "floating")
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from echoic.ecode.program import Signature
from echoic.formats import Field, Format, Kind

__all__ = ["Hole", "Meaning", "Place", "Scopes", "Variable", "places_of"]

Meaning: TypeAlias = Literal["integer", "floating", "text", "array"]


@dataclass(frozen=True, slots=True)
class Hole:
    """Where an index goes; `length` is None if it is known at run time only."""

    length: int | None


@dataclass(frozen=True, slots=True)
class Place:
    """Something that can be named, as text with holes."""

    pieces: tuple[str | Hole, ...]
    meaning: Meaning
    written: bool = False
    """Whether it can be assigned to."""
    truth: bool = False
    """Whether it is a `bool`, which cannot be counted up or down."""
    room: int | None = None
    """How long a text or an array may be in it, None if that has no limit."""
    sizing: str = ""
    """For an array that can be written: the place that holds its length; "" if `resize` says it."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that was declared; `below` bounds what a loop's counter can be, None for any other."""

    name: str
    floating: bool
    dimensions: tuple[int, ...] = ()
    constant: bool = False
    below: int | None = None
    counts: str = ""
    """The array over which a loop's counter runs, "" for any other."""

    def place(self) -> Place:
        """Return it as a place."""
        holes = tuple(Hole(length) for length in self.dimensions)
        written = not self.constant and self.below is None and not self.counts
        return Place((self.name, *holes), "floating" if self.floating else "integer", written=written)


@dataclass(slots=True)
class Scopes:
    """The variables that can be seen, innermost block last."""

    blocks: list[list[Variable]] = field(default_factory=lambda: [[]])
    count: int = 0

    def open(self) -> None:
        """Begin a block."""
        self.blocks.append([])

    def close(self) -> None:
        """End the innermost block."""
        self.blocks.pop()

    def name(self) -> str:
        """Return a name that no variable has."""
        self.count += 1
        return f"v{self.count}"

    def visible(self) -> list[Variable]:
        """Return what can be named; a variable hides those of outer blocks with its name."""
        found = {variable.name: variable for block in self.blocks for variable in block}
        return list(found.values())


def places_of(signature: Signature) -> list[Place]:
    """Return every place of the records of a program."""
    places = list(_walk(signature, signature.input, ("input",)))
    if signature.output is not None:
        places += _walk(signature, signature.output, ("output",))
    if signature.params is not None:
        places += _walk(signature, signature.params, ("param",))
    if signature.context is not None:
        places += _walk(signature, signature.context, ("context",))
    return places


def _walk(signature: Signature, format: Format, prefix: tuple[str | Hole, ...]) -> Iterator[Place]:
    for one in format.fields:
        yield from _places_of_field(signature, one, (*prefix, f".{one.name}"))


def _places_of_field(signature: Signature, one: Field, pieces: tuple[str | Hole, ...]) -> Iterator[Place]:
    written = pieces[0] in ("output", "context")
    if one.dynamic:
        path = tuple(piece[1:] for piece in pieces[1:] if isinstance(piece, str))
        sizing = "".join((*(str(piece) for piece in pieces[:-1]), f".{one.sizing}")) if one.sizing and written else ""
        capacity = signature.capacity(path) if written else None
        yield Place(pieces, "array", written=written, room=capacity, sizing=sizing)
        pieces = (*pieces, Hole(capacity))
    holes = tuple(Hole(length) for length in one.fixed_dimensions)
    if one.record is not None:
        yield from _walk(signature, one.record, (*pieces, *holes))
    elif one.text:
        yield from _text_places((*pieces, *holes), written=written)
    elif one.kind is Kind.FLOAT:
        yield Place((*pieces, *holes), "floating", written=written)
    else:
        yield Place((*pieces, *holes), "integer", written=written, truth=one.kind is Kind.BOOL)
        if one.kind is Kind.CHAR and holes:
            yield _char_array((*pieces, *holes[:-1]), holes[-1], written=written)


def _char_array(pieces: tuple[str | Hole, ...], last: Hole, *, written: bool) -> Place:
    """Return a char array as a text; one that stands in an array cannot be assigned to."""
    alone = not any(isinstance(piece, Hole) for piece in pieces)
    return Place(pieces, "text", written=written and alone, room=last.length)


def _text_places(pieces: tuple[str | Hole, ...], *, written: bool) -> Iterator[Place]:
    if written and any(isinstance(piece, Hole) for piece in pieces):
        return
    yield Place(pieces, "text", written=written)
    yield Place((*pieces, Hole(None)), "integer")
