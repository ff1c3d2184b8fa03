"""Finishing an output record.

    fixed part, zeroed first and written in place | 0 | block | 0 | block | 0      all of it a multiple of 8 bytes

A record of a fixed type is finished as soon as its code is. One of a variable type gets its blocks, in the order of the
fields: arrays from the scratch memory, texts from wherever they were assigned from. What is empty has a null slot.

Before an event is looked at, the output must have room for the most that it can write, since no event may run twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from echoic.ecode.kernel import FaultKind
from echoic.ecode.native.numbers import converted
from echoic.ecode.native.places import OutputArray, integer_of
from echoic.ecode.native.routine import NOWHERE
from echoic.ecode.native.statements import Statements
from echoic.ecode.numbers import INT64
from echoic.formats import Field, Format, Kind, block_alignment, round_up

__all__ = ["Output"]

SLACK = 8  # zeros are written eight at a time


@dataclass(frozen=True, slots=True)
class _Block:
    """A field of `output` that has a block."""

    path: tuple[str, ...]
    field: Field
    holder: Format
    slot: int

    @property
    def step(self) -> int:
        return self.field.size * self.field.count


class Output:
    """Writes how output records are begun and finished."""

    def __init__(self, body: Statements) -> None:
        self._body = body
        self._emit = body.emit
        self._routine = body.routine
        self._format = body.routine.format("output")
        self._blocks = list(_blocks(self._format, (), 0))

    def write_room(self) -> None:
        """Leave unless the output has room for all that this event can write."""
        emit = self._emit
        fixed = round_up(self._format.size) + SLACK if self._format.variable else self._format.size
        arrays = sum(array.step * array.capacity + 2 * SLACK for array in self._body.arrays.values())
        self._routine.room_bytes = fixed + arrays
        needed = str(fixed + arrays)
        if self._body.texts:
            longest = emit.value(f"add i64 {self._input_bytes()}, {self._body.own_bytes_max + 2 * SLACK}")
            if self._routine.program.signature.params is not None:
                longest = emit.value(f"add i64 {longest}, %params_bytes")
            texts = emit.value(f"mul i64 {longest}, {len(self._body.texts)}")
            needed = emit.value(f"add i64 {texts}, {needed}")
        end = emit.value(f"add i64 {emit.value('load i64, ptr %end')}, {needed}")
        emit.line(f"store i64 {end}, ptr %needed")
        emit.require(emit.value(f"icmp ule i64 {end}, %output_bytes"), "leave")

    def write_opening(self) -> None:
        """Begin a record: zeros."""
        size = round_up(self._format.size) if self._format.variable else self._format.size
        self._emit.clear("%target", size)

    def write_finish(self) -> None:
        """Finish a record that passes, and count it."""
        emit = self._emit
        if not self._format.variable:
            following = emit.value(f"add i64 {emit.value('load i64, ptr %end')}, {self._format.size}")
            emit.line(f"store i64 {following}, ptr %end")
            return
        lengths = {block.slot: self._length(block) for block in self._blocks if block.field.dynamic}
        emit.line(f"store i64 {round_up(self._format.size)}, ptr %behind")
        for block in self._blocks:
            if block.field.dynamic:
                self._array(block, lengths[block.slot])
            elif block.slot in self._body.texts:
                self._text(block)
        size = emit.value(f"and i64 {emit.value(f'add i64 {self._behind()}, 7')}, -8")
        following = emit.value(f"add i64 {emit.value('load i64, ptr %end')}, {size}")
        emit.line(f"store i64 {following}, ptr %end")
        number = emit.value(f"add i64 {emit.value('load i64, ptr %selected')}, 1")
        place = emit.at("%output_bounds", emit.value(f"mul i64 {number}, 4"))
        emit.store("i32", emit.value(f"trunc i64 {following} to i32"), place)

    def write_settling(self) -> None:
        """Clear what was written to output arrays."""
        emit = self._emit
        for array in self._body.arrays.values():
            size = emit.value(f"mul i64 {emit.value(f'load i64, ptr {array.mark}')}, {array.step}")
            used, clean = emit.new_label("used"), emit.new_label("clean")
            emit.branch(emit.value(f"icmp ne i64 {size}, 0"), used, clean)
            emit.block(used)
            emit.clear(self._body.scratch(array.scratch), size)
            emit.line(f"store i64 0, ptr {array.mark}")
            emit.label(clean)

    def _input_bytes(self) -> str:
        """Return how long a text of the input can be at most."""
        columns = self._body.columns
        if columns is None:
            return "%size"
        total = "0"
        for _, length in columns.spans:
            total = self._emit.value(f"add i64 {total}, {length}")
        return self._emit.value(f"add i64 {total}, {self._routine.format('input').size}")

    def _behind(self) -> str:
        return self._emit.value("load i64, ptr %behind")

    def _length(self, block: _Block) -> str:
        """Return how long an array has become, once it is known that it may be so long."""
        emit, field = self._emit, block.field
        array = self._array_of(block)
        if array.length:
            return emit.value(f"load i64, ptr {array.length}")
        named = block.holder.by_name[field.sizing]
        number = integer_of(named)
        told = self._body.number_at(emit.at("%target", block.slot + named.offset - field.offset), number, "output")
        length = converted(emit, told, number, INT64)
        fits = emit.value(f"icmp ule i64 {length}, {array.capacity}")
        emit.require(fits, self._routine.fault(FaultKind.LENGTH, NOWHERE))
        return length

    def _array_of(self, block: _Block) -> OutputArray:
        known = self._body.arrays.get(block.slot)
        if known is None:
            capacity = self._routine.program.signature.capacity(block.path)
            known = self._body.new_array(block.slot, block.step, capacity, sized=bool(block.field.sizing))
        return known

    def _array(self, block: _Block, length: str) -> None:
        emit = self._emit
        size = emit.value(f"mul i64 {length}, {block.step}")
        source = self._body.scratch(self._array_of(block).scratch)
        self._append(block, source, length, size, block_alignment(block.field, self._format))

    def _text(self, block: _Block) -> None:
        pointer, length = (
            self._emit.value(f"load {kind}, ptr {variable}")
            for kind, variable in zip(("ptr", "i64"), self._body.texts[block.slot], strict=True)
        )
        self._append(block, pointer, length, length, 1, tail=1 if block.field.kind is Kind.STRING else 0)

    def _append(self, block: _Block, source: str, length: str, size: str, alignment: int, *, tail: int = 0) -> None:
        """Write a block that is not empty behind the others, eight zeros behind it, and its slot."""
        emit = self._emit
        write, done = emit.new_label("write"), emit.new_label("done")
        emit.branch(emit.value(f"icmp ne i64 {length}, 0"), write, done)
        emit.block(write)
        behind = self._behind()
        if alignment > 1:
            behind = emit.value(f"and i64 {emit.value(f'add i64 {behind}, {alignment - 1}')}, {-alignment}")
        emit.copy(emit.at("%target", behind), source, size)
        end = emit.value(f"add i64 {behind}, {size}")
        emit.store("i64", "0", emit.at("%target", end))
        emit.line(f"store i64 {emit.value(f'add i64 {end}, {tail}')}, ptr %behind")
        for part, value in ((0, behind), (4, length)):
            half = emit.value(f"trunc i64 {value} to i32")
            if self._routine.foreign("output"):
                half = self._routine.swapped("i32", half)
            emit.store("i32", half, emit.at("%target", block.slot + part))
        emit.label(done)


def _blocks(format: Format, path: tuple[str, ...], offset: int) -> Iterator[_Block]:
    """Yield the fields that can have blocks, those of nested records in their place."""
    for field in format.fields:
        inner = (*path, field.name)
        if field.dynamic or (field.text and not field.dimensions):
            yield _Block(inner, field, format, offset + field.offset)
        elif field.record is not None and not field.dimensions:
            yield from _blocks(field.record, inner, offset + field.offset)
