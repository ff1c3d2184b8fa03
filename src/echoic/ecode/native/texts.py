"""Texts: a pointer and a length, wherever the bytes lie.

    a literal                  constant bytes of the routine
    a string or bytes field    what its slot points at
    a char array               its bytes up to the first NUL
    an output field            what was assigned to it: nothing is copied before the record is finished

The last is safe since input, parameters and literals do not change while an event runs. A char array of `output` does;
a text that was taken from one is copied at once, to scratch memory of the field that it was assigned to.
"""

import sys
from collections.abc import Callable

from echoic.ecode.analysis.cost import metered
from echoic.ecode.analysis.slots import is_slot
from echoic.ecode.analysis.traversal import walk
from echoic.ecode.kernel import TEXT_BYTES_PER_UNIT, FaultKind
from echoic.ecode.native.places import Places, Span
from echoic.ecode.native.routine import Routine
from echoic.ecode.typed import AssignText, Location, Position, Text, TextByte, TextEqual, TextField, TextLiteral
from echoic.formats import Kind

__all__ = ["Texts"]

CHUNKS = ((8, "i64"), (4, "i32"), (2, "i16"), (1, "i8"))
CHUNKED_BYTES_MAX = 64  # a longer literal is compared in a loop


class Texts(Places):
    """Writes everything that has to do with texts."""

    def __init__(self, routine: Routine) -> None:
        super().__init__(routine)
        self.texts: dict[int, Span] = {}
        """Output texts by the offsets of their slots: the stack variables with pointer and length."""
        self._copies, self._copy_bytes = _copied_texts(routine)
        self.own_bytes_max = self._copy_bytes
        """The longest text assigned to an output text that comes neither from the input nor from the parameters."""
        self._copy_places: dict[int, int] = {}

    def span(self, text: Text) -> Span:
        """Return where a text begins, and its length."""
        if isinstance(text, TextLiteral):
            return self.emit.constant(text.data or bytes(1)), str(len(text.data))
        location = text.location
        if location.field.kind is Kind.CHAR:
            return self._characters(location)
        if location.root != "output":
            return self.slot(location)
        pointer, length = self.output_text(location)
        return self.emit.value(f"load ptr, ptr {pointer}"), self.emit.value(f"load i64, ptr {length}")

    def output_text(self, location: Location) -> Span:
        """Return the stack variables of an output text; it is empty when an event begins."""
        known = self.texts.get(location.offset)
        if known is None:
            known = self.texts[location.offset] = self.emit.stack("ptr"), self.emit.stack("i64")
            with self.emit.inside(self.routine.opening):
                self.emit.line(f"store ptr %target, ptr {known[0]}")
                self.emit.line(f"store i64 0, ptr {known[1]}")
        return known

    def text_byte(self, value: TextByte) -> str:
        """Return one byte of a text."""
        pointer, length = self.span(value.text)
        index = self.value(value.index)
        inside = self.emit.value(f"icmp ult i64 {index}, {length}")
        self.emit.require(inside, self.routine.fault(FaultKind.INDEX, value.at))
        return self.emit.load("i8", self.emit.at(pointer, index))

    def text_equal(self, value: TextEqual) -> str:
        """Return, as one bit, whether two texts are equal, or are not."""
        equal = self._equal(value)
        return equal if value.operator == "==" else self.emit.value(f"xor i1 {equal}, true")

    def assign_text(self, statement: AssignText) -> None:
        """Write `output.name = text`."""
        target = statement.target
        if target.field.kind is Kind.CHAR:
            self._fill_characters(statement)
            return
        pointer, length = self.span(statement.text)
        if metered(statement):
            self._burn_bytes(length, statement.at)
        if isinstance(statement.text, TextLiteral):
            self.own_bytes_max = max(self.own_bytes_max, len(statement.text.data))
        elif statement.text.location.root == "output" and target.offset in self._copies:
            pointer = self._copied(statement.text.location, target, pointer, length)
        pointer_variable, length_variable = self.output_text(target)
        self.emit.line(f"store ptr {pointer}, ptr {pointer_variable}")
        self.emit.line(f"store i64 {length}, ptr {length_variable}")

    def _characters(self, location: Location) -> Span:
        """Return the text of a char array: what stands before its first NUL."""
        if is_slot(location):
            pointer, width = self.slot(location)
        else:
            pointer, width = self.address(location), str(location.field.fixed_dimensions[-1])
        emit = self.emit
        counter = emit.stack("i64")
        test, look, more, done = (emit.new_label(word) for word in ("test", "look", "more", "done"))
        emit.line(f"store i64 0, ptr {counter}")
        emit.label(test)
        index = emit.value(f"load i64, ptr {counter}")
        emit.branch(emit.value(f"icmp ult i64 {index}, {width}"), look, done)
        emit.block(look)
        byte = emit.load("i8", emit.at(pointer, index))
        emit.branch(emit.value(f"icmp ne i8 {byte}, 0"), more, done)
        emit.block(more)
        emit.line(f"store i64 {emit.value(f'add nuw nsw i64 {index}, 1')}, ptr {counter}")
        emit.jump(test)
        emit.block(done)
        return pointer, index

    def _equal(self, value: TextEqual) -> str:
        left, right = value.left, value.right
        if isinstance(left, TextLiteral) and isinstance(right, TextLiteral):
            return "true" if left.data == right.data else "false"
        if isinstance(left, TextLiteral):
            left, right = right, left
        if isinstance(left, TextField) and isinstance(right, TextLiteral):
            if _plain_characters(left):
                return self._characters_equal(left.location, right.data)
            pointer, length = self.span(left)
            same = self.emit.value(f"icmp eq i64 {length}, {len(right.data)}")
            return self._guarded(same, lambda: self._bytes_equal(pointer, right.data))
        (first, first_length), (second, second_length) = self.span(left), self.span(right)
        same = self.emit.value(f"icmp eq i64 {first_length}, {second_length}")
        return self._guarded(same, lambda: self._metered_equal(value, first, second, first_length))

    def _metered_equal(self, value: TextEqual, first: str, second: str, length: str) -> str:
        if metered(value):
            self._burn_bytes(length, value.at)
        return self._memory_equal(first, second, length)

    def _burn_bytes(self, length: str, at: Position) -> None:
        """Burn the fuel that so many bytes of a text cost."""
        emit = self.emit
        units = emit.value(f"udiv i64 {length}, {TEXT_BYTES_PER_UNIT}")
        left = emit.value(f"sub i64 {emit.value('load i64, ptr %remaining')}, {units}")
        emit.line(f"store i64 {left}, ptr %remaining")
        emit.require(emit.value(f"icmp sge i64 {left}, 0"), self.routine.fault(FaultKind.FUEL, at))

    def _characters_equal(self, location: Location, data: bytes) -> str:
        """Compare a char array with a literal: all its bytes, then NUL, unless the array is full."""
        width = location.field.fixed_dimensions[-1]
        pointer = self.address(location)
        if len(data) > width or 0 in data:
            return "false"
        return self._bytes_equal(pointer, data if len(data) == width else data + b"\0")

    def _guarded(self, condition: str, write: Callable[[], str]) -> str:
        """Return `condition && more`, where `more` must not be looked at unless the condition holds."""
        emit, before = self.emit, self.emit.here
        more, done = emit.new_label("more"), emit.new_label("done")
        emit.branch(condition, more, done)
        emit.block(more)
        result, after = write(), emit.here
        emit.label(done)
        return emit.join("i1", ("false", before), (result, after))

    def _bytes_equal(self, pointer: str, data: bytes) -> str:
        """Compare memory that is long enough with constant bytes, some at a time."""
        emit = self.emit
        if len(data) > CHUNKED_BYTES_MAX:
            return self._memory_equal(pointer, emit.constant(data), str(len(data)))
        difference, at = "0", 0
        for size, kind in CHUNKS:
            while len(data) - at >= size:
                expected = int.from_bytes(data[at : at + size], sys.byteorder, signed=True)
                differs = emit.value(f"xor {kind} {emit.load(kind, emit.at(pointer, at))}, {expected}")
                wide = differs if size == 8 else emit.value(f"zext {kind} {differs} to i64")
                difference = emit.value(f"or i64 {difference}, {wide}")
                at += size
        return emit.value(f"icmp eq i64 {difference}, 0")

    def _memory_equal(self, first: str, second: str, length: str) -> str:
        """Compare two memories of one length, eight bytes at a time and the rest one by one."""
        emit = self.emit
        counter, result = emit.stack("i64"), emit.stack("i1")
        done = emit.new_label("done")
        emit.line(f"store i64 0, ptr {counter}")
        emit.line(f"store i1 false, ptr {result}")
        for size, kind in ((8, "i64"), (1, "i8")):
            test, body, more, rest = (emit.new_label(word) for word in ("test", "body", "more", "rest"))
            emit.label(test)
            index = emit.value(f"load i64, ptr {counter}")
            behind = emit.value(f"add nuw nsw i64 {index}, {size}")
            emit.branch(emit.value(f"icmp ule i64 {behind}, {length}"), body, rest)
            emit.block(body)
            left, right = (emit.load(kind, emit.at(pointer, index)) for pointer in (first, second))
            emit.branch(emit.value(f"icmp eq {kind} {left}, {right}"), more, done)
            emit.block(more)
            emit.line(f"store i64 {behind}, ptr {counter}")
            emit.jump(test)
            emit.block(rest)
        emit.line(f"store i1 true, ptr {result}")
        emit.label(done)
        return emit.value(f"load i1, ptr {result}")

    def _fill_characters(self, statement: AssignText) -> None:
        """Write a text to a char array, and zeros behind it."""
        emit = self.emit
        pointer, length = self.span(statement.text)
        target = self.address(statement.target, writing=True)
        width = statement.target.field.fixed_dimensions[-1]
        fits = emit.value(f"icmp ule i64 {length}, {width}")
        emit.require(fits, self.routine.fault(FaultKind.TEXT, statement.at))
        own = isinstance(statement.text, TextField) and statement.text.location.root == "output"
        emit.copy(target, pointer, length, overlapping=own)
        emit.clear(emit.at(target, length), emit.value(f"sub nuw nsw i64 {width}, {length}"))

    def _copied(self, source: Location, target: Location, pointer: str, length: str) -> str:
        """Return where a text that may change later was copied to.

        Whatever is longer than the copy's place was not taken from a char array, so it does not change.
        """
        if source.offset == target.offset and source.field is target.field:
            return pointer
        emit = self.emit
        if target.offset not in self._copy_places:
            self._copy_places[target.offset] = self.routine.reserve(self._copy_bytes)
        place = self.scratch(self._copy_places[target.offset])
        short = emit.value(f"icmp ule i64 {length}, {self._copy_bytes}")
        size = emit.value(f"select i1 {short}, i64 {length}, i64 0")
        emit.copy(place, pointer, size)
        return emit.value(f"select i1 {short}, ptr {place}, ptr {pointer}")


def _plain_characters(text: TextField) -> bool:
    return text.location.field.kind is Kind.CHAR and not is_slot(text.location)


def _copied_texts(routine: Routine) -> tuple[set[int], int]:
    """Return which output texts may come from char arrays of `output`, and the size of the largest such array."""
    pairs, changing, size = [], set(), 0
    for node in walk(routine.program.body):
        if isinstance(node, AssignText) and isinstance(node.text, TextField) and node.text.location.root == "output":
            source = node.text.location
            if source.field.kind is Kind.CHAR:
                changing.add(node.target.offset)
                size = max(size, source.field.fixed_dimensions[-1])
            else:
                pairs.append((source.offset, node.target.offset))
    while any(source in changing and target not in changing for source, target in pairs):
        changing |= {target for source, target in pairs if source in changing}
    return changing, size
