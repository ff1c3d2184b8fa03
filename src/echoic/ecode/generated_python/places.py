"""Places of E-Code in generated Python: how something is read, and how it is written.

    v3            a variable                         a name of Python
    v4[i]         a local array                      a list
    s2[i]         a static, single or array          a view of the block of statics
    i16, p8       a number at a known place of input or params: read when the event, or the run, begins
    o24           a number at a known place of output: written into the record when the event ends
    K3(data, at + 16 + i * 8)[0]                     anything else, read by a function of `struct`
    K4(statics, 40)[0]                               the context, which stands behind the statics

Slots that are checked when an event begins are the names b16 and n16: where the block begins, and its length.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from echoic.ecode.analysis.slots import SlotShape, is_entry_slot, shape_of
from echoic.ecode.generated_python.slots import ORDERS, follower, integer_letter, letter_of
from echoic.ecode.generated_python.source import Expression, Source, plain
from echoic.ecode.kernel import FaultKind
from echoic.ecode.numbers import NUMBERS, Number
from echoic.ecode.typed import Element, Index, Local, Location, Place, Position, Value
from echoic.formats import Kind, Slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from echoic.ecode.analysis import Analysis
    from echoic.ecode.program import Program
    from echoic.formats import Field, Format

__all__ = ["Block", "Known", "Places", "Spot"]


class Evaluator(Protocol):
    """What writes the values of indexes."""

    def value(self, value: Value) -> Expression:
        """Return the expression of a value."""
        ...


@dataclass(frozen=True, slots=True)
class Spot:
    """Where something lies: a name, an item of a container, or bytes of a buffer at an address."""

    container: str
    index: Expression | None
    letters: str
    """How `struct` knows it; empty for names and items."""
    number: Number
    boolean: bool


@dataclass(frozen=True, slots=True)
class Block:
    """What a slot points at, once it is checked."""

    buffer: str
    begin: Expression
    length: Expression


@dataclass(slots=True)
class Known:
    """What generated code refers to at known places, by offset; prologue and epilogue are written from it."""

    numbers: dict[int, str] = field(default_factory=dict)
    """How `struct` knows them."""
    slots: dict[int, SlotShape] = field(default_factory=dict)
    texts: dict[int, "Field"] = field(default_factory=dict)
    arrays: dict[int, Location] = field(default_factory=dict)
    memory: bool = False
    """Whether something is reached by an address."""


class Places:
    """Writes the places of one program, and notes what they need."""

    def __init__(self, program: "Program", analysis: "Analysis", source: Source, values: Evaluator) -> None:
        self._signature = program.signature
        self._safe = analysis.safe
        self._source = source
        self._values = values
        self.input, self.output, self.params, self.context = Known(), Known(), Known(), Known()
        self._context_offset = program.context.offset if program.context is not None else 0

    def spot(self, place: Place) -> Spot:
        """Return where a place is, having written what finding it takes."""
        return self._local(place) if isinstance(place, Local) else self._in_record(place)

    def load(self, spot: Spot) -> Expression:
        """Return the value that lies at a spot."""
        if spot.index is None:
            return Expression(spot.container, stable=spot.container[0] in "ip")
        if not spot.letters:
            return Expression(f"{spot.container}[{spot.index.text}]", spot.index.depth + 1)
        text = f"{self._source.unpacker(spot.letters)}({spot.container}, {spot.index.text})[0]"
        return Expression(f"+{text}" if spot.boolean else text, spot.index.depth + 1)

    def store(self, spot: Spot, value: Expression) -> None:
        """Write the line that puts a value, already of the right type, at a spot."""
        if spot.index is None:
            self._source.line(f"{spot.container} = {value.text}")
        elif not spot.letters:
            self._source.line(f"{spot.container}[{spot.index.text}] = {value.text}")
        else:
            packer = self._source.packer(spot.letters)
            self._source.line(f"{packer}({spot.container}, {spot.index.text}, {value.text})")

    def settled(self, spot: Spot) -> Spot:
        """Return a spot that is the same whatever is evaluated meanwhile."""
        if spot.index is None or spot.index.stable:
            return spot
        return replace(spot, index=self._source.settle(spot.index))

    def known(self, location: Location) -> Known:
        """Return what is noted about a record."""
        return {"input": self.input, "output": self.output, "param": self.params, "context": self.context}[
            location.root
        ]

    def format(self, location: Location) -> "Format":
        """Return the type of the record that a location lies in."""
        format = self._signature.root(location.root)
        if format is None or (format.variable and format.slots is not Slots.SPAN):
            raise TypeError(f"`{location.root}` is not a record with spans")
        return format

    def address(self, location: Location) -> tuple[str, Expression]:
        """Return the buffer that something lies in, and where."""
        if location.element is None:
            self.known(location).memory = True
            return self._buffer(location), self._sum(self._base(location), location.offset, location.indexes)
        element = location.element
        if location.root == "output":
            self.known(location).arrays[element.array.offset] = element.array
            capacity = plain(self._signature.capacity(element.array.path))
            block = Block(f"a{element.array.offset}", plain(0), capacity)
        else:
            block = self.block(element.array)
        return block.buffer, self._sum(block.begin, location.offset, location.indexes, (element, block.length))

    def block(self, slot: Location) -> Block:
        """Return what a slot of input or params points at."""
        shape = shape_of(slot, self.format(slot))
        buffer = self._buffer(slot)
        if is_entry_slot(slot):
            self.known(slot).slots[slot.offset] = shape
            prefix = "" if slot.root == "input" else "p"
            return Block(buffer, plain(f"{prefix}b{slot.offset}"), plain(f"{prefix}n{slot.offset}"))
        _, address = self.address(slot)
        bounds = "at, end" if slot.root == "input" else "0, len(params)"
        follow = self._source.constant(("follow", slot.root, shape), follower(self.format(slot), shape))
        fault = self._source.fault(FaultKind.RECORD, slot.at)
        begin, length = self._source.temporary(), self._source.temporary()
        self._source.line(f"{begin}, {length} = {follow}({buffer}, {address.text}, {bounds}, {fault})")
        return Block(buffer, plain(begin), plain(length))

    def sizing(self, array: Location) -> tuple[str, Number] | None:
        """Return the name and type of the field that tells the length of an output array, None if there is none."""
        shape = shape_of(array, self.format(array))
        if shape.sizing is None:
            return None
        offset = array.offset + shape.sizing_distance
        self.output.numbers[offset] = integer_letter(shape.sizing)
        sign = "" if shape.sizing.kind is Kind.INT else "u"
        return f"o{offset}", NUMBERS[f"{sign}int{shape.sizing.size * 8}"]

    def checked(self, value: Expression, length: Expression, at: Position) -> Expression:
        """Return an index that stops the event if it is outside of an array."""
        fault = self._source.fault(FaultKind.INDEX, at)
        name = first = value.text
        if not value.simple:
            name = self._source.temporary()
            first = f"({name} := {value.text})"
        return Expression(f"({name} if 0 <= {first} < {length.text} else stop({fault}))", value.depth + 2)

    def _local(self, place: Local) -> Spot:
        variable = place.variable
        name = f"{'s' if variable.static else 'v'}{variable.serial}"
        if not variable.static and not variable.dimensions:
            return Spot(name, None, "", place.number, boolean=False)
        size = variable.number.size
        index = self._sum(plain(0), place.offset, place.indexes, size=size)
        return Spot(name, index, "", place.number, boolean=False)

    def _in_record(self, location: Location) -> Spot:
        number, boolean = location.number, location.field.kind is Kind.BOOL
        if number is None:
            raise TypeError(f"`{'.'.join(location.path)}` is not a number")
        letter = letter_of(number, boolean=boolean)
        if self._at_known_place(location):
            self.known(location).numbers[location.offset] = letter
            return Spot(f"{location.root[0]}{location.offset}", None, "", number, boolean)
        buffer, address = self.address(location)
        return Spot(buffer, address, ORDERS[self.format(location).byte_order] + letter, number, boolean)

    def _at_known_place(self, location: Location) -> bool:
        """Tell whether a number has a name; in output, elements of arrays have none, being reached by indexes too."""
        if location.element is not None or location.indexes or location.root == "context":
            return False
        if location.root != "output":
            return True
        format, single = self.format(location), True
        for name in location.path:
            step = format.by_name[name]
            single, format = single and not step.dimensions, step.record or format
        return single

    def _buffer(self, location: Location) -> str:
        return {"input": "data", "output": "out", "param": "params", "context": "statics"}[location.root]

    def _base(self, location: Location) -> Expression:
        if location.root == "context":
            return plain(self._context_offset)
        return plain("at") if location.root == "input" else plain(0)

    def _sum(
        self,
        base: Expression,
        offset: int,
        indexes: tuple[Index, ...],
        element: tuple[Element, Expression] | None = None,
        size: int = 1,
    ) -> Expression:
        """Return base + offset + indexes in units of `size` bytes; an index is checked before the next is evaluated."""
        parts: list[Callable[[], Expression]] = [partial(self._element, *element)] if element is not None else []
        parts += [partial(self._index, index) for index in indexes]
        strides = [element[0].step] if element is not None else []
        strides = [stride // size for stride in (*strides, *(index.stride for index in indexes))]
        found = self._source.together(*parts)
        terms = [] if base.text == "0" else [base.text]
        if offset:
            terms.append(str(offset // size))
        terms += [
            part.text if stride == 1 else f"{part.text} * {stride}" for part, stride in zip(found, strides, strict=True)
        ]
        depth = max((part.depth for part in found), default=0)
        stable = all(part.stable for part in found) and base.stable
        return Expression(" + ".join(terms) or "0", depth, stable)

    def _index(self, index: Index) -> Expression:
        value = self._values.value(index.value)
        return value if index in self._safe else self.checked(value, plain(index.length), index.at)

    def _element(self, element: Element, length: Expression) -> Expression:
        value = self._values.value(element.index)
        return value if element in self._safe else self.checked(value, length, element.at)
