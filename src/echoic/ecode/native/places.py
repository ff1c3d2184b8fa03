"""Where things lie: addresses of variables and fields, slots, loads and stores.

Nothing is said to be aligned, numbers of foreign byte order are turned as they are loaded, and no address is formed
before what leads to it was checked: an index against its length (unless the analysis proved it), a slot against its
record. Slots at known places are followed once for each event, when it begins; `analysis.slots` has the rules.

An output array grows in scratch memory, which is zero when an event begins; a high-water mark of each array tells how
much must be cleared when the event is over, so that a generous capacity costs nothing.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from echoic.ecode.analysis.slots import SlotShape, entry_slots, is_entry_slot, shape_of
from echoic.ecode.kernel import FaultKind
from echoic.ecode.native.columns import Columns
from echoic.ecode.native.numbers import converted, kind_of
from echoic.ecode.native.routine import NOWHERE, Routine
from echoic.ecode.numbers import INT64, NUMBERS, Number
from echoic.ecode.typed import Element, Index, Local, Location, Place, Root, Value, Variable
from echoic.errors import CodegenError
from echoic.formats import Field, Kind

__all__ = ["OutputArray", "Places", "Span", "integer_of"]

Span = tuple[str, str]
"""A pointer and a length."""


@dataclass(frozen=True, slots=True)
class OutputArray:
    """An output array while its event runs."""

    scratch: int
    """Where its elements lie in the scratch memory."""
    step: int
    capacity: int
    mark: str
    """The stack variable with the number of steps that may be other than zero."""
    length: str
    """The stack variable with what `resize` said; "" if a sizing field tells the length."""


def integer_of(field: Field) -> Number:
    """Return the type of a field that holds a length."""
    signed = field.kind is Kind.INT or (field.enumeration is not None and field.enumeration.signed)
    return NUMBERS[f"{'int' if signed else 'uint'}{field.size * 8}"]


class Places(ABC):
    """Writes everything that has to do with memory."""

    def __init__(self, routine: Routine) -> None:
        self.routine = routine
        self.emit = routine.emit
        self.arrays: dict[int, OutputArray] = {}
        """Output arrays by the offsets of their slots."""
        self.columns = Columns(routine) if routine.layout == "columns" else None
        self._variables: dict[Variable, str] = {}
        self._slots: dict[tuple[Root, int], Span] = {}

    @abstractmethod
    def value(self, value: Value) -> str:
        """Write an expression and return its value."""

    def open_slots(self) -> None:
        """Follow the slots at known places, where an event begins."""
        for root, offset, location in entry_slots(self.routine.program):
            if root == "input" and self.columns is not None:
                self._slots[root, offset] = self.columns.span(location)
                continue
            with self.emit.inside(self.routine.opening):
                place = self.emit.at(self._base(root), offset)
                self._slots[root, offset] = self._followed(
                    location, place, self.routine.fault(FaultKind.RECORD, NOWHERE)
                )

    def address(self, place: Place, *, writing: bool = False) -> str:
        """Return a pointer to a place; it is checked that it is one."""
        if isinstance(place, Local):
            return self._indexed(self.emit.at(self.variable(place.variable), place.offset), place.indexes)
        if place.element is not None:
            pointer = self.emit.at(self._element(place.element, writing=writing), place.offset)
        elif place.root == "input" and self.columns is not None:
            pointer = self.columns.address(place)
        else:
            pointer = self.emit.at(self._base(place.root), place.offset)
        return self._indexed(pointer, place.indexes)

    def variable(self, variable: Variable) -> str:
        """Return where a variable begins."""
        if variable.static:
            return self.emit.at("%statics", variable.offset)
        if variable not in self._variables:
            self._variables[variable] = self.emit.stack(f"[{variable.count} x {kind_of(variable.number)}]")
        return self._variables[variable]

    def load(self, place: Place, pointer: str) -> str:
        """Return what lies at a place."""
        number = place.number
        if number is None:
            raise TypeError("a slot is no number")
        if isinstance(place, Local):
            return self.emit.value(f"load {kind_of(number)}, ptr {pointer}, align {number.size}")
        loaded = self.number_at(pointer, number, place.root)
        if place.field.kind is not Kind.BOOL:
            return loaded
        return self.emit.value(f"zext i1 {self.emit.value(f'icmp ne i8 {loaded}, 0')} to i8")

    def store(self, place: Place, pointer: str, value: str) -> str:
        """Write a value to a place, and return what was written."""
        number = place.number
        if number is None:
            raise TypeError("a slot is no number")
        kind = kind_of(number)
        if isinstance(place, Local):
            self.emit.line(f"store {kind} {value}, ptr {pointer}, align {number.size}")
            return value
        if place.field.kind is Kind.BOOL:
            value = self.emit.value(f"zext i1 {self.emit.value(f'icmp ne i8 {value}, 0')} to i8")
        written = value
        if self.routine.foreign(place.root) and number.size > 1:
            bits = f"i{number.bits}"
            written = self.emit.value(f"bitcast {kind} {value} to {bits}") if number.floating else value
            kind, written = bits, self.routine.swapped(bits, written)
        self.emit.store(kind, written, pointer)
        return value

    def number_at(self, pointer: str, number: Number, root: Root) -> str:
        """Return the number that a record has somewhere, whatever its byte order."""
        kind = kind_of(number)
        if not self.routine.foreign(root) or number.size == 1:
            return self.emit.load(kind, pointer)
        bits = f"i{number.bits}"
        turned = self.routine.swapped(bits, self.emit.load(bits, pointer))
        return self.emit.value(f"bitcast {bits} {turned} to {kind}") if number.floating else turned

    def slot(self, location: Location) -> Span:
        """Return the block of an input or parameter slot: where it begins and how many steps it has."""
        if is_entry_slot(location):
            return self._slots[location.root, location.offset]
        if location.root == "input" and self.columns is not None:
            raise CodegenError(f"`{'.'.join(location.path)}` lies in an array, and cannot be read from a column")
        fault = self.routine.fault(FaultKind.RECORD, location.at)
        return self._followed(location, self.address(location), fault)

    def output_array(self, location: Location) -> OutputArray:
        """Return the state of an output array."""
        known = self.arrays.get(location.offset)
        if known is None:
            shape = shape_of(location, self.routine.format("output"))
            capacity = self.routine.program.signature.capacity(location.path)
            known = self.new_array(location.offset, shape.step, capacity, sized=shape.sizing is not None)
        return known

    def new_array(self, slot: int, step: int, capacity: int, *, sized: bool) -> OutputArray:
        """Return the state of an output array that was not used before; it is empty when an event begins."""
        emit, routine = self.emit, self.routine
        mark, length = emit.stack("i64"), "" if sized else emit.stack("i64")
        array = OutputArray(routine.reserve(step * capacity), step, capacity, mark, length)
        with emit.inside(routine.entering):
            emit.line(f"store i64 0, ptr {mark}")
        if length:
            with emit.inside(routine.opening):
                emit.line(f"store i64 0, ptr {length}")
        self.arrays[slot] = array
        return array

    def scratch(self, offset: int) -> str:
        """Return a pointer into the scratch memory."""
        return self.emit.at("%scratch", offset)

    def array_length(self, location: Location) -> str:
        """Return how many steps a dynamic array has; of an output array, what was said so far."""
        if location.root != "output":
            return self.slot(location)[1]
        shape = shape_of(location, self.routine.format("output"))
        if shape.sizing is None:
            return self.emit.value(f"load i64, ptr {self.output_array(location).length}")
        return self.sizing_value(self.emit.at("%target", location.offset), shape, "output")

    def sizing_value(self, slot: str, shape: SlotShape, root: Root) -> str:
        """Return what the sizing field of an array says, as INT64."""
        if shape.sizing is None:
            raise TypeError("the array has no sizing field")
        number = integer_of(shape.sizing)
        told = self.number_at(self.emit.at(slot, shape.sizing_distance), number, root)
        return converted(self.emit, told, number, INT64)

    def _base(self, root: Root) -> str:
        if root == "context":
            return self.emit.at("%statics", self.routine.context.offset)
        return {"input": "%record", "output": "%target", "param": "%params"}[root]

    def _indexed(self, pointer: str, indexes: tuple[Index, ...]) -> str:
        emit = self.emit
        for index in indexes:
            number = self.value(index.value)
            if index not in self.routine.analysis.safe:
                inside = emit.value(f"icmp ult i64 {number}, {index.length}")
                emit.require(inside, self.routine.fault(FaultKind.INDEX, index.at))
            pointer = emit.at(pointer, emit.value(f"mul nuw nsw i64 {number}, {index.stride}"))
        return pointer

    def _element(self, element: Element, *, writing: bool) -> str:
        """Return where a step of a dynamic array begins."""
        emit, array = self.emit, element.array
        if array.root == "output":
            state = self.output_array(array)
            pointer, length = self.scratch(state.scratch), str(state.capacity)
        else:
            state = None
            pointer, length = self.slot(array)
        number = self.value(element.index)
        if element not in self.routine.analysis.safe:
            inside = emit.value(f"icmp ult i64 {number}, {length}")
            emit.require(inside, self.routine.fault(FaultKind.INDEX, element.at))
        if state is not None and writing:
            marked = emit.value(f"load i64, ptr {state.mark}")
            behind = emit.value(f"add nuw nsw i64 {number}, 1")
            higher = emit.call("i64", "llvm.umax.i64", [("i64", marked), ("i64", behind)])
            emit.line(f"store i64 {higher}, ptr {state.mark}")
        return emit.at(pointer, emit.value(f"mul nuw nsw i64 {number}, {element.step}"))

    def _followed(self, location: Location, slot: str, fault: str) -> Span:
        """Follow a slot, once it is known that this is safe."""
        emit, root = self.emit, location.root
        format = self.routine.format(root)
        shape = shape_of(location, format)
        offset, length = (self._half(slot, part, root) for part in (0, 4))
        size = emit.value(f"mul nuw nsw i64 {length}, {shape.step}")
        end = emit.value(f"add nuw nsw i64 {offset}, {size}")
        behind = emit.value(f"add nuw nsw i64 {end}, 1") if shape.terminated else end
        conditions = [
            emit.value(f"icmp uge i64 {offset}, {format.size}"),
            emit.value(f"icmp ule i64 {behind}, {'%size' if root == 'input' else '%params_bytes'}"),
        ]
        if shape.alignment > 1:
            odd = emit.value(f"and i64 {offset}, {shape.alignment - 1}")
            conditions.append(emit.value(f"icmp eq i64 {odd}, 0"))
        null, empty = (emit.value(f"icmp eq i64 {part}, 0") for part in (offset, length))
        inside = self._all(conditions)
        fine = [emit.value(f"select i1 {null}, i1 {empty}, i1 {inside}")]
        if shape.sizing is not None:
            told = self.sizing_value(slot, shape, root)
            fine.append(emit.value(f"icmp eq i64 {told}, {length}"))
        emit.require(self._all(fine), fault)
        base = self._base(root)
        if shape.terminated:
            last = emit.value(f"select i1 {null}, ptr {emit.constant(bytes(1))}, ptr {emit.at(base, end)}")
            emit.require(emit.value(f"icmp eq i8 {emit.load('i8', last)}, 0"), fault)
        return emit.at(base, offset), length

    def _half(self, slot: str, part: int, root: Root) -> str:
        """Return the offset or the length of a slot."""
        half = self.number_at(self.emit.at(slot, part), NUMBERS["uint32"], root)
        return self.emit.value(f"zext i32 {half} to i64")

    def _all(self, conditions: list[str]) -> str:
        both = conditions[0]
        for condition in conditions[1:]:
            both = self.emit.value(f"and i1 {both}, {condition}")
        return both
