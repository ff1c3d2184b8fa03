"""What code costs at most, in simple instructions.

The numbers are rough on purpose: they bound the work of an event for a budget and for fuel, they do not predict a time.
One is an addition, a load or a jump. Both sides of `?:` count, of `if` only the dearer one. A loop without a proved
count is counted as one turn; the others it pays with fuel. Texts are taken to have a usual length; what a long one
costs more is paid with fuel too (`metered`), because a record may hold megabytes.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from echoic.ecode.analysis.slots import entry_slots
from echoic.ecode.analysis.traversal import Node, walk
from echoic.ecode.typed import (
    Arithmetic,
    AssignText,
    Block,
    Break,
    Constant,
    ContextCall,
    Continue,
    Declare,
    Element,
    Evaluate,
    If,
    Index,
    Length,
    Local,
    Location,
    Loop,
    MathCall,
    Resize,
    Return,
    Sequence,
    Statement,
    Text,
    TextByte,
    TextEqual,
    TextField,
    TextLiteral,
)
from echoic.formats import Kind

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from echoic.ecode.program import Program
    from echoic.formats import Format

__all__ = ["COST_MAX", "Costs", "metered"]

COST_MAX: Final = 1 << 62
"""Anything dearer costs this much."""

CHECK: Final = 2
DIVISION: Final = 10
CALL: Final = 20
SLOW_CALLS: Final = {"fmod": 100}  # it subtracts bit by bit: numbers that lie far apart take microseconds
SLOT: Final = 8
TEXT_BYTES: Final = 256  # what a text is taken to have whose length is not known
BYTES_PER_UNIT: Final = 8  # how much an instruction clears or copies


def metered(node: Node) -> bool:
    """Tell whether a node burns fuel by the length of a text: one of two fields with slots that meet in it."""
    match node:
        case TextEqual(left=TextField(location=left), right=TextField(location=right)):
            return left.field.text and right.field.text
        case AssignText(target=target, text=TextField(location=source)):
            return target.field.text and source.field.text
        case _:
            return False


class Costs:
    """Adds up what the statements of one program cost, given what is known about its loops and indexes."""

    def __init__(self, program: "Program", trips: Mapping[Loop, int], safe: "AbstractSet[Index | Element]") -> None:
        self._program = program
        self._trips = trips
        self._safe = safe

    def event(self) -> int:
        """Return what an event costs: what is done before and after the code, and the code."""
        slots = sum(SLOT for _ in entry_slots(self._program))
        finish = _moved(self.output_bytes()) if self._program.signature.output is not None else 0
        return min(1 + slots + 2 * finish + self.statement(self._program.body), COST_MAX)

    def output_bytes(self) -> int:
        """Return how many bytes an output record has at most, texts taken as usual ones; 0 without output."""
        output = self._program.signature.output
        return self._output_bytes(output, ()) if output is not None else 0

    def turn(self, loop: Loop) -> int:
        """Return what one turn of a loop costs, its test and step included; at least 1."""
        parts = self.value(loop.test) + self.value(loop.step) + self.statement(loop.body)
        return min(1 + parts, COST_MAX)

    def statement(self, statement: Statement) -> int:
        """Return what a statement costs."""
        match statement:
            case Block(statements=statements):
                return sum(map(self.statement, statements))
            case If():
                no = self.statement(statement.no) if statement.no is not None else 0
                return 1 + self.value(statement.test) + max(self.statement(statement.yes), no)
            case Loop():
                turns = self._trips.get(statement, 1)
                return min(turns * self.turn(statement) + self.value(statement.test) + 1, COST_MAX)
            case Declare(variable=variable, values=values):
                return _moved(variable.count * variable.number.size) + sum(1 + self.value(value) for value in values)
            case AssignText(target=target, text=text):
                cleared = _moved(target.field.fixed_dimensions[-1]) if target.field.kind is Kind.CHAR else 0
                return CALL + self._text(text) + cleared + self.value(text) + self.value(target)
            case ContextCall(arguments=arguments):
                return CALL + sum(1 + self.value(argument) for argument in arguments)
            case Evaluate() | Return() | Resize() | Break() | Continue():
                return 1 + self.value(statement)

    def value(self, node: Node | None) -> int:
        """Return what a value, with everything it is made of, costs."""
        return 0 if node is None else sum(map(self._own, walk(node)))

    def _own(self, node: Node) -> int:
        """Return what one node adds."""
        match node:
            case Constant() | Sequence() | TextLiteral() | Local() | Evaluate() | Return():
                return 0
            case Index() | Element():
                return 1 + (0 if node in self._safe else CHECK)
            case Arithmetic(operator="/" | "%") if not node.number.floating:
                return DIVISION + CHECK
            case MathCall(function=function):
                return SLOW_CALLS.get(function, CALL)
            case TextEqual():
                return 2 + min(self._text(node.left), self._text(node.right))
            case TextByte():
                return 1 + CHECK
            case Location():
                return SLOT if _followed_late(node) else 0
            case TextField() | Length():
                return self._measured(node)
            case _:
                return 1

    def _measured(self, node: TextField | Length) -> int:
        """Return what it takes to know the length of a text: of a char array, a look at each byte."""
        if isinstance(node, TextField) and node.location.field.kind is Kind.CHAR:
            return node.location.field.fixed_dimensions[-1]
        return 1

    def _text(self, text: Text) -> int:
        """Return what it takes to look at each byte of a text."""
        if isinstance(text, TextLiteral):
            return _moved(len(text.data))
        if text.location.field.kind is Kind.CHAR:
            return _moved(text.location.field.fixed_dimensions[-1])
        return _moved(TEXT_BYTES)

    def _output_bytes(self, format: "Format", path: tuple[str, ...]) -> int:
        """Return how many bytes a record, or the blocks of a nested one, have at most."""
        total = 0 if path else format.size
        for field in format.fields:
            inner = (*path, field.name)
            if field.dynamic:
                total += self._program.signature.capacity(inner) * field.size * field.count
            elif field.text:
                total += TEXT_BYTES * field.count
            elif field.record is not None:
                total += self._output_bytes(field.record, inner) * field.count
        return total


def _followed_late(location: Location) -> bool:
    """Tell whether a slot is checked each time the code follows it."""
    return location.number is None and bool(location.element is not None or location.indexes)


def _moved(size: int) -> int:
    """Return what it costs to clear or copy so many bytes."""
    return 1 + size // BYTES_PER_UNIT
