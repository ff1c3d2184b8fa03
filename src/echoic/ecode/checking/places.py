"""Paths like `input.cells[i].speed` reduced to a place: offsets, strides and indexes.

A path is walked from its left end. Constant indexes are checked here and become part of an offset; a dynamic array
starts a place of its own, as its elements lie where a slot says (`typed.Element`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from echoic.ecode.checking.operations import convert
from echoic.ecode.checking.scopes import RECORDS, Scopes
from echoic.ecode.numbers import FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, Number
from echoic.ecode.syntax import tree
from echoic.ecode.syntax.nearest import did_you_mean
from echoic.ecode.syntax.text import counted, mistake, quoted
from echoic.ecode.typed import (
    Constant,
    Element,
    Index,
    Local,
    Location,
    Position,
    Root,
    TextByte,
    TextField,
    Value,
    Variable,
)
from echoic.formats import Field, Format, Kind

if TYPE_CHECKING:
    from echoic.ecode.program import Signature
    from echoic.formats.fields import Dimension

__all__ = ["NO_RECORD", "Places", "Reference"]

SIGNED = {1: INT8, 2: INT16, 4: INT32, 8: INT64}
UNSIGNED = {1: UINT8, 2: UINT16, 4: UINT32, 8: UINT64}
FLOATS = {4: FLOAT32, 8: FLOAT64}

Checked: TypeAlias = Callable[[tree.Expression], Value]


@dataclass(frozen=True, slots=True)
class Reference:
    """What a path names. `dimensions` are those that were not indexed."""

    place: Local | Location
    dimensions: "tuple[Dimension, ...]"
    subscripted: bool
    name: str
    """How messages call it."""
    at: Position

    @property
    def location(self) -> Location | None:
        """The place if it is one in a record."""
        return self.place if isinstance(self.place, Location) else None

    @property
    def number(self) -> Number | None:
        """The type, if it is a number."""
        return None if self.dimensions else self.place.number

    @property
    def text(self) -> TextField | None:
        """The text, if it is one."""
        location = self.location
        if location is None:
            return None
        char_array = location.field.kind is Kind.CHAR and len(self.dimensions) == 1 and not self.dynamic
        single = location.field.text and not self.dimensions
        return TextField(location, self.at) if char_array or single else None

    @property
    def dynamic(self) -> bool:
        """Whether it is a whole dynamic array."""
        return bool(self.dimensions) and isinstance(self.dimensions[0], str)

    @property
    def read_only(self) -> str:
        """Why it cannot be assigned to; empty if it can."""
        match self.place:
            case Local(variable) if variable.constant:
                return "it is `const`"
            case Location(root="input"):
                return "the input event is read-only"
            case Location(root="param"):
                return "parameters are read-only"
            case _:
                return ""

    def describe(self) -> str:
        """Return what it is if it is neither a number nor a text, and what to do about it."""
        location = self.location
        if self.dimensions:
            shape = "".join(f"[{dimension}]" for dimension in self.dimensions)
            base = self.place.number if location is None else location.field.spelling.partition("[")[0]
            return f"`{self.name}` is an array (`{base}{shape}`), name one of its elements"
        record = location.field.record if location is not None else None
        return f"`{self.name}` is a record (`{record.name if record else '?'}`), name one of its fields"


@dataclass(slots=True)
class _Walk:
    """How far a path into a record was followed."""

    root: Root
    signature: "Signature"
    record: Format | None
    at: Position
    path: tuple[str, ...] = ()
    field: Field | None = None
    dimensions: "tuple[Dimension, ...]" = ()
    offset: int = 0
    indexes: tuple[Index, ...] = ()
    element: Element | None = None
    subscripted: bool = False

    @property
    def name(self) -> str:
        """How messages call what was reached."""
        return ".".join((self.root, *self.path))

    def member(self, name: str, at: Position) -> None:
        """Follow `.name`."""
        if self.dimensions:
            raise mistake(at, f"`{self.name}` is an array, index it before `.{name}`")
        if self.record is None:
            raise mistake(at, f"`{self.name}` is `{self._spelling}` and has no fields")
        found = self.record.by_name.get(name)
        if found is None:
            advice = did_you_mean(name, self.record.by_name)
            raise mistake(at, f"record `{self.record.name}` has no field {quoted(name)}{advice}")
        self.path = (*self.path, name)
        self.field, self.record, self.dimensions = found, found.record, found.dimensions
        self.offset += found.offset
        self.at = at
        if self.root == "output":
            self._check_output(found)

    def subscript(self, index: Value, at: Position) -> None:
        """Follow `[index]`."""
        if self.field is None or not self.dimensions:
            raise mistake(at, self._too_many_indexes())
        self.subscripted = True
        dimension, self.dimensions = self.dimensions[0], self.dimensions[1:]
        stride = self.field.size * math.prod(inner for inner in self.dimensions if isinstance(inner, int))
        if isinstance(dimension, str):
            limit = self.signature.capacity(self.path) if self.root == "output" else None
            check_index(index, limit, f"`{self.name}`", what="capacity")
            self.element = Element(self.location(), index, stride, index.at)
            self.offset, self.indexes = 0, ()
        elif isinstance(index, Constant):
            check_index(index, dimension, f"`{self.name}`")
            self.offset += int(index.value) * stride
        else:
            self.indexes = (*self.indexes, Index(index, dimension, stride, index.at))

    def location(self) -> Location:
        """Return the place that was reached."""
        if self.field is None:
            raise mistake(self.at, f"`{self.root}` is a record, name one of its fields")
        number = None if self.dimensions else number_of(self.field)
        return Location(self.root, self.path, self.field, self.offset, self.indexes, self.element, number, self.at)

    @property
    def _spelling(self) -> str:
        return self.field.spelling.partition("[")[0] if self.field else ""

    def _too_many_indexes(self) -> str:
        if self.field is None:
            return f"`{self.root}` is a record, not an array"
        if self.field.dimensions:
            count = counted(len(self.field.dimensions), "dimension")
            return f"`{self.name}` has {count} (`{self.field.spelling}`), not more"
        return f"`{self.name}` is `{self.field.spelling}`, not an array"

    def _check_output(self, found: Field) -> None:
        """Refuse what an output event cannot have, as it is built in one pass of fixed size."""
        if found.text and found.dimensions:
            raise mistake(self.at, f"`{self.name}` is an array of texts, which a program cannot write or read")
        if (found.text or found.dynamic) and self.subscripted:
            what = "a text" if found.text else "a dynamic array"
            raise mistake(self.at, f"`{self.name}` is {what} inside of an array, which a program cannot write or read")
        if found.dynamic and found.record is not None and found.record.variable:
            raise mistake(
                self.at,
                f"elements of `{self.name}` have texts or dynamic arrays of their own, which a program cannot write",
            )


@dataclass(slots=True)
class Places:
    """Looks paths up for one program, and remembers which fields occur."""

    signature: "Signature"
    scopes: Scopes
    used: set[tuple[Root, tuple[str, ...]]] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    """The fields of the context that are assigned to."""
    functions: dict[tuple[str, int], int] = field(default_factory=dict)
    """The functions of the context that are called, by name and number of arguments, and their places."""

    def find(self, node: tree.Name | tree.Member | tree.Subscript, value: Checked) -> Reference | Constant | TextByte:
        """Return what a path names: a place, a constant by its name, or one byte of a text.

        Args:
            node: The path.
            value: Checks an index.

        Raises:
            ECodeError: It names nothing.
        """
        steps: list[tree.Member | tree.Subscript] = []
        base: tree.Expression = node
        while isinstance(base, tree.Member | tree.Subscript):
            steps.append(base)
            base = base.record if isinstance(base, tree.Member) else base.array
        steps.reverse()
        if not isinstance(base, tree.Name):
            what = f"`.{steps[0].name}`" if isinstance(steps[0], tree.Member) else "an index"
            raise mistake(steps[0].at, f"{what} goes with a variable or a field only")
        if base.name in RECORDS:
            return self._in_record(base, steps, value)
        return self._in_variable(base, steps, value)

    def _in_record(
        self, base: tree.Name, steps: list[tree.Member | tree.Subscript], value: Checked
    ) -> Reference | TextByte:
        root = ROOTS[base.name]
        format = self.signature.root(root)
        if format is None:
            raise mistake(base.at, NO_RECORD[root])
        walk = _Walk(root, self.signature, format, base.at)
        for number, step in enumerate(steps):
            if isinstance(step, tree.Member):
                walk.member(step.name, step.at)
                continue
            index = self.index(step.index, value)
            if walk.field is not None and walk.field.text and not walk.dimensions:
                if steps[number + 1 :]:
                    raise mistake(steps[number + 1].at, f"a byte of `{walk.name}` is a number, nothing can follow it")
                return self._byte(walk, index, step.at)
            walk.subscript(index, step.at)
            if walk.element is not None:
                self.used.add((root, walk.element.array.path))
        place = walk.location()
        self.used.add((root, walk.path))
        return Reference(place, walk.dimensions, walk.subscripted, walk.name, walk.at)

    def _byte(self, walk: _Walk, index: Value, at: Position) -> TextByte:
        check_index(index, None, f"`{walk.name}`")
        self.used.add((walk.root, walk.path))
        return TextByte(TextField(walk.location(), walk.at), index, at)

    def _in_variable(
        self, base: tree.Name, steps: list[tree.Member | tree.Subscript], value: Checked
    ) -> Reference | Constant:
        variable = self.scopes.meaning(base.name, base.at)
        dimensions: tuple[int, ...] = () if isinstance(variable, Constant) else variable.dimensions
        offset = 0
        indexes: list[Index] = []
        for step in steps:
            if isinstance(step, tree.Member):
                raise mistake(step.at, f"`{base.name}` is a variable and has no fields")
            if not dimensions:
                raise mistake(step.at, _too_many(base.name, variable))
            index = self.index(step.index, value)
            length, dimensions = dimensions[0], dimensions[1:]
            stride = variable.number.size * math.prod(dimensions)
            if isinstance(index, Constant):
                check_index(index, length, f"`{base.name}`")
                offset += int(index.value) * stride
            else:
                indexes.append(Index(index, length, stride, index.at))
        if isinstance(variable, Constant):
            return Constant(variable.value, variable.number, base.at)
        place = Local(variable, offset, tuple(indexes), base.at)
        return Reference(place, dimensions, bool(steps), base.name, base.at)

    def index(self, node: tree.Expression, value: Checked) -> Value:
        """Return an index as INT64.

        Raises:
            ECodeError: It is not an integer.
        """
        found = value(node)
        if found.number.floating:
            raise mistake(node.at, f"an index must be an integer, this is `{found.number}`")
        return convert(found, INT64)


ROOTS: dict[str, Root] = {"input": "input", "output": "output", "param": "param", "context": "context"}
NO_RECORD: dict[Root, str] = {
    "input": "there is no `input`",
    "output": "there is no `output`: this program selects events, it does not make others",
    "param": "there is no `param`: this program was given no parameters",
    "context": "there is no `context`: the channel was created without one",
}


def _too_many(name: str, variable: Variable | Constant) -> str:
    count = 0 if isinstance(variable, Constant) else len(variable.dimensions)
    return f"`{name}` has {counted(count, 'dimension')}, not more" if count else f"`{name}` is not an array"


def check_index(index: Value, length: int | None, name: str, *, what: str = "length") -> None:
    """Refuse a constant index that is always outside; a `length` of None is not known.

    Raises:
        ECodeError: It is negative, or not less than the length.
    """
    if not isinstance(index, Constant):
        return
    if index.value < 0:
        raise mistake(index.at, f"index {index.value} of {name} is negative")
    if length is not None and index.value >= length:
        raise mistake(index.at, f"index {index.value} is outside of {name}, {what} is {length}")


def number_of(field: Field) -> Number | None:
    """Return the type that an element of a field has in the code; None for texts and records."""
    match field.kind:
        case Kind.INT:
            return SIGNED[field.size]
        case Kind.UINT:
            return UNSIGNED[field.size]
        case Kind.FLOAT:
            return FLOATS[field.size]
        case Kind.BOOL:
            return UINT8
        case Kind.CHAR:
            return INT8
        case Kind.ENUM:
            signed = field.enumeration is not None and field.enumeration.signed
            return (SIGNED if signed else UNSIGNED)[field.size]
        case _:
            return None
