"""Event classes in a module whose annotations are strings: `from __future__ import annotations`."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import ClassVar, Optional

import msgspec
import pytest

import echoic  # noqa: TC001 - the annotations are evaluated
from echoic.errors import FormatError
from echoic.formats import Array, Format, bind, event, float32, float64, int16


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1


@event
class Cell:
    x: float32
    y: echoic.float64 = 2.5


@event
class Grid:
    count: ClassVar[int] = 0
    n: int16
    cells: Array[Cell, "n", 3]  # noqa: UP037 - "n" is a name, not a type
    fixed: Array[float64, 2, 2]
    level: Level = Level.HIGH
    note: str | None = None
    raw: Optional[bytes] = None  # noqa: UP045 - the other spelling
    tags: echoic.Array[str, ...] = ()

    def total(self) -> int:
        return self.n * 3


@event
class Finer(Grid):
    depth: int16 = 1


@dataclass(kw_only=True)
class Plain:
    cell: Cell
    n: int
    values: Array[float32, "n"] = field(default_factory=list)  # noqa: UP037 - as above


class Struct(msgspec.Struct):
    plain: Plain
    level: Level


@dataclass
class Loop:
    loop: Loop


SPELLINGS = ["int16", "Cell[n][3]", "float64[2][2]", "enum Level", "string?", "bytes?", "string[]"]


def test_annotations_that_are_strings_mean_the_same() -> None:
    assert [each.spelling for each in Format.of(Grid).fields] == SPELLINGS
    assert [each.spelling for each in Format.of(Finer).fields] == [*SPELLINGS, "int16"]
    assert Format.of(Cell).field("y").default == 2.5
    assert Format.of(Grid).field("level").default == 1


def test_methods_and_classes_work_as_elsewhere() -> None:
    assert Finer(2, [], [], depth=4).total() == 6
    assert bind(Plain).make(Cell(1.0), 0, []) == Plain(cell=Cell(1.0), n=0, values=[])
    assert [path for path, _ in Format.of(Struct).walk()] == [
        "plain",
        "plain.cell",
        "plain.cell.x",
        "plain.cell.y",
        "plain.n",
        "plain.values",
        "level",
    ]


def test_a_class_that_contains_itself_is_refused() -> None:
    with pytest.raises(FormatError, match="a record cannot contain itself: Loop > Loop"):
        Format.of(Loop)


def test_a_name_that_only_a_function_knows_is_refused_by_name() -> None:
    Inner = Cell  # noqa: N806 - a class

    class Outer:
        inner: Inner

    with pytest.raises(FormatError, match="names `Inner`, which is not defined here - at `Outer`"):
        event(Outer)


def test_an_array_that_is_misspelled_is_refused() -> None:
    class Wrong:
        x: Array[float32]

    with pytest.raises(FormatError, match="an array needs an element type and dimensions"):
        event(Wrong)
