"""Texts of E-Code in generated Python: they are bytes objects.

data[b16:b16 + n16]                   a text of the input whose slot was checked when the event began
x24                                   a text of the output
characters(data, at + 40, 8)          a char array, up to its first NUL
K2                                    a literal, which is part of the namespace and not of the text
"""

from echoic.ecode.analysis.cost import metered
from echoic.ecode.generated_python.places import Block, Evaluator, Places
from echoic.ecode.generated_python.source import Expression, Source, plain
from echoic.ecode.kernel import TEXT_BYTES_PER_UNIT, FaultKind
from echoic.ecode.numbers import INT64
from echoic.ecode.typed import (
    AssignText,
    Length,
    Location,
    Position,
    Resize,
    Text,
    TextByte,
    TextEqual,
    TextField,
    TextLiteral,
)
from echoic.formats import Kind

__all__ = ["Texts", "characters"]


def characters(buffer: bytes | bytearray, place: int, width: int) -> bytes:
    """Return the text of a char array."""
    return bytes(buffer[place : place + width]).partition(b"\0")[0]


class Texts:
    """Writes what is done with texts and with the lengths of arrays."""

    def __init__(self, source: Source, places: Places, values: Evaluator) -> None:
        self._source = source
        self._places = places
        self._values = values

    def text(self, text: Text) -> Expression:
        """Return the bytes of a text."""
        if isinstance(text, TextLiteral):
            return plain(self._source.constant(("text", text.data), text.data))
        location = text.location
        if location.field.kind is Kind.CHAR:
            buffer, address = self._places.address(location)
            width = location.field.fixed_dimensions[-1]
            return Expression(f"characters({buffer}, {address.text}, {width})", address.depth + 1)
        if location.root == "output":
            return Expression(self._output_text(location))
        block = self._places.block(location)
        return Expression(
            f"{block.buffer}[{block.begin.text}:{block.begin.text} + {block.length.text}]", 1, stable=True
        )

    def equal(self, value: TextEqual) -> Expression:
        """Return whether two texts are (or are not) the same."""
        if not metered(value):
            for one, other in ((value.left, value.right), (value.right, value.left)):
                if isinstance(one, TextField) and one.location.field.text and one.location.root != "output":
                    return self._slot_equal(value, one, other)
        left, right = self._source.together(lambda: self.text(value.left), lambda: self.text(value.right))
        if metered(value):
            left, right = self._source.settle(left), self._source.settle(right)
            self._burn(left, value.at, f" == len({right.text})")
        return Expression(f"({left.text} {value.operator} {right.text})", max(left.depth, right.depth) + 1)

    def _slot_equal(self, value: TextEqual, slot: TextField, other: Text) -> Expression:
        """Compare what a slot points at with a short text: its bytes are fetched only if it is as long."""
        blocks: list[Block] = []

        def length() -> Expression:
            blocks.append(self._places.block(slot.location))
            return blocks[0].length

        parts = (length, lambda: self.text(other))
        shorter = self._source.together(*(parts if slot is value.left else parts[::-1]))[slot is value.left]
        shorter = self._source.settle(shorter)
        block, joint = blocks[0], "and" if value.operator == "==" else "or"
        size = len(other.data) if isinstance(other, TextLiteral) else f"len({shorter.text})"
        fetched = f"{block.buffer}[{block.begin.text}:{block.begin.text} + {block.length.text}]"
        text = f"({block.length.text} {value.operator} {size} {joint} {fetched} {value.operator} {shorter.text})"
        return Expression(text, shorter.depth + 2)

    def _burn(self, text: Expression, at: Position, same: str = "") -> None:
        """Write what burns the fuel that the bytes of a text cost, if they cost any."""
        self._source.line(f"if {TEXT_BYTES_PER_UNIT} <= len({text.text}){same}:")
        self._source.indent += 1
        self._source.line(f"fuel -= len({text.text}) // {TEXT_BYTES_PER_UNIT}")
        self._source.line(f"if fuel < 0: raise Stop({self._source.fault(FaultKind.FUEL, at)})")
        self._source.indent -= 1

    def byte(self, value: TextByte) -> Expression:
        """Return one byte of a text as a signed number."""
        location = value.text.location
        if location.root == "output":
            data = self._source.settle(self.text(value.text))
            block = Block(data.text, plain(0), plain(f"len({data.text})"))
        else:
            block = self._places.block(location)
        index = self._places.checked(self._values.value(value.index), block.length, value.at)
        text = f"(({block.buffer}[{block.begin.text} + {index.text}] ^ 128) - 128)"
        return Expression(text, index.depth + 3)

    def length(self, value: Length) -> Expression:
        """Return how long a text or a dynamic array is."""
        match value.of:
            case TextLiteral(data=data):
                return plain(len(data))
            case TextField(location=location) as text:
                if location.root == "output" or location.field.kind is Kind.CHAR:
                    inner = self.text(text)
                    return Expression(f"len({inner.text})", inner.depth + 1)
                return self._places.block(location).length
            case Location(root="output") as array:
                return self._output_length(array)
            case Location() as array:
                return self._places.block(array).length

    def assign(self, statement: AssignText) -> None:
        """Write the assignment of a text to a field of the output."""
        text = self.text(statement.text)
        target = statement.target
        if metered(statement):
            text = self._source.settle(text)
            self._burn(text, statement.at)
        if target.field.kind is not Kind.CHAR:
            self._source.line(f"{self._output_text(target)} = {text.text}")
            return
        text = self._source.settle(text)
        buffer, address = self._places.address(target)
        address = self._source.settle(address)
        width = target.field.fixed_dimensions[-1]
        self._source.line(f"if len({text.text}) > {width}:")
        self._source.indent += 1
        self._source.stop(FaultKind.TEXT, statement.at)
        self._source.indent -= 1
        self._source.line(f"{buffer}[{address.text}:{address.text} + {width}] = {text.text}.ljust({width}, NUL)")

    def resize(self, statement: Resize, capacity: int) -> None:
        """Write what gives an output array without sizing field its length."""
        length = self._source.settle(self._values.value(statement.length))
        array = statement.array
        self._places.output.arrays[array.offset] = array
        self._source.line(f"if not 0 <= {length.text} <= {capacity}:")
        self._source.indent += 1
        self._source.stop(FaultKind.LENGTH, statement.at)
        self._source.indent -= 1
        self._source.line(f"z{array.offset} = {length.text}")

    def _output_text(self, location: Location) -> str:
        self._places.output.texts[location.offset] = location.field
        return f"x{location.offset}"

    def _output_length(self, array: Location) -> Expression:
        sizing = self._places.sizing(array)
        if sizing is None:
            self._places.output.arrays[array.offset] = array
            return Expression(f"z{array.offset}")
        name, number = sizing
        if number.largest <= INT64.largest:
            return Expression(name)
        return Expression(f"(({name} + {1 << 63} & {(1 << 64) - 1}) - {1 << 63})", 2)
