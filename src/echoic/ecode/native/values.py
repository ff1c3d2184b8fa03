"""Expressions.

Each is written as the instructions that compute it, in the order in which it is evaluated, and is then known by the
name of its value. Truth values stay single bits as long as only their truth is asked for.

`a && b` is a branch, unless `b` is so plain (fields at known places, comparisons, arithmetic that cannot fault) that
computing it in vain is cheaper than a branch that the machine predicts wrongly.
"""

from collections.abc import Callable
from typing import Any, Final

from echoic.ecode.analysis.traversal import children
from echoic.ecode.kernel import FaultKind
from echoic.ecode.native.numbers import calculated, called, compared, converted, kind_of, literal, truth
from echoic.ecode.native.texts import Texts
from echoic.ecode.numbers import Number
from echoic.ecode.typed import (
    Arithmetic,
    Assign,
    Choose,
    Compare,
    Constant,
    Convert,
    Invert,
    Length,
    Load,
    Local,
    Location,
    Logical,
    MathCall,
    Negate,
    Not,
    Position,
    Sequence,
    TextByte,
    TextEqual,
    Update,
    Value,
)

__all__ = ["Values"]

PLAIN_NODES_MAX: Final = 12


class Values(Texts):
    """Writes expressions."""

    def value(self, value: Value) -> str:
        """Write an expression and return its value."""
        return WRITERS[type(value)](self, value)

    def truth(self, value: Value) -> str:
        """Write an expression and return, as one bit, whether it is not zero."""
        match value:
            case Constant():
                return "true" if value.value else "false"
            case Compare():
                left, right = self.value(value.left), self.value(value.right)
                return compared(self.emit, value.operator, left, right, value.left.number)
            case Not():
                return self.emit.value(f"xor i1 {self.truth(value.value)}, true")
            case Logical():
                return self._logical(value)
            case TextEqual():
                return self.text_equal(value)
            case _:
                return truth(self.emit, self.value(value), value.number)

    def test(self, value: Value, yes: str, no: str) -> None:
        """End the block by going where an expression says."""
        emit = self.emit
        if isinstance(value, Not):
            self.test(value.value, no, yes)
        elif isinstance(value, Logical) and not _plain(value.right):
            more = emit.new_label("more")
            self.test(value.left, *((more, no) if value.operator == "&&" else (yes, more)))
            emit.block(more)
            self.test(value.right, yes, no)
        else:
            emit.branch(self.truth(value), yes, no)

    def _fact(self, value: Compare | Not | Logical | TextEqual) -> str:
        return self.emit.value(f"zext i1 {self.truth(value)} to i32")

    def _constant(self, value: Constant) -> str:
        return literal(value.value, value.number)

    def _load(self, value: Load) -> str:
        return self.load(value.place, self.address(value.place))

    def _convert(self, value: Convert) -> str:
        return converted(self.emit, self.value(value.value), value.value.number, value.number)

    def _negate(self, value: Negate) -> str:
        kind, operand = kind_of(value.number), self.value(value.value)
        return self.emit.value(f"fneg {kind} {operand}" if value.number.floating else f"sub {kind} 0, {operand}")

    def _invert(self, value: Invert) -> str:
        return self.emit.value(f"xor {kind_of(value.number)} {self.value(value.value)}, -1")

    def _arithmetic(self, value: Arithmetic) -> str:
        left, right = self.value(value.left), self.value(value.right)
        return self._calculate(value.operator, left, right, value.right.number, value.number, value.at)

    def _calculate(
        self, operator: str, left: str, right: str, right_number: Number, number: Number, at: Position
    ) -> str:
        if operator in ("<<", ">>"):
            right = converted(self.emit, right, right_number, number)

        def forbid(condition: str) -> None:
            fine = self.emit.value(f"xor i1 {condition}, true")
            self.emit.require(fine, self.routine.fault(FaultKind.DIVISION, at))

        return calculated(self.emit, operator, left, right, number, forbid)

    def _logical(self, value: Logical) -> str:
        emit = self.emit
        left, both = self.truth(value.left), value.operator == "&&"
        if _plain(value.right):
            return emit.value(f"{'and' if both else 'or'} i1 {left}, {self.truth(value.right)}")
        before, more, done = emit.here, emit.new_label("more"), emit.new_label("done")
        emit.branch(left, *((more, done) if both else (done, more)))
        emit.block(more)
        right = self.truth(value.right)
        after = emit.here
        emit.label(done)
        return emit.join("i1", ("false" if both else "true", before), (right, after))

    def _choose(self, value: Choose) -> str:
        emit = self.emit
        kind = kind_of(value.number)
        if _plain(value.yes) and _plain(value.no):
            test, yes, no = self.truth(value.test), self.value(value.yes), self.value(value.no)
            return emit.value(f"select i1 {test}, {kind} {yes}, {kind} {no}")
        sides = (emit.new_label("yes"), value.yes), (emit.new_label("no"), value.no)
        done = emit.new_label("done")
        self.test(value.test, sides[0][0], sides[1][0])
        incoming = []
        for label, side in sides:
            emit.block(label)
            incoming.append((self.value(side), emit.here))
            emit.jump(done)
        emit.block(done)
        return emit.join(kind, *incoming)

    def _sequence(self, value: Sequence) -> str:
        self.value(value.first)
        return self.value(value.second)

    def _assign(self, value: Assign) -> str:
        given = self.value(value.value)
        return self.store(value.place, self.address(value.place, writing=True), given)

    def _update(self, value: Update) -> str:
        emit, place = self.emit, value.place
        number = value.number
        pointer = self.address(place, writing=True)
        before = self.load(place, pointer)
        left = converted(emit, before, number, value.computed)
        right = self.value(value.value)
        result = self._calculate(value.operator, left, right, value.value.number, value.computed, value.at)
        stored = self.store(place, pointer, converted(emit, result, value.computed, number))
        return before if value.post else stored

    def _call(self, value: MathCall) -> str:
        return called(self.emit, value.function, [self.value(argument) for argument in value.arguments])

    def _length(self, value: Length) -> str:
        return self.array_length(value.of) if isinstance(value.of, Location) else self.span(value.of)[1]


WRITERS: Final[dict[type, Callable[[Values, Any], str]]] = {
    Arithmetic: Values._arithmetic,  # noqa: SLF001 - the table belongs to the class
    Assign: Values._assign,  # noqa: SLF001
    Choose: Values._choose,  # noqa: SLF001
    Compare: Values._fact,  # noqa: SLF001
    Constant: Values._constant,  # noqa: SLF001
    Convert: Values._convert,  # noqa: SLF001
    Invert: Values._invert,  # noqa: SLF001
    Length: Values._length,  # noqa: SLF001
    Load: Values._load,  # noqa: SLF001
    Logical: Values._fact,  # noqa: SLF001
    MathCall: Values._call,  # noqa: SLF001
    Negate: Values._negate,  # noqa: SLF001
    Not: Values._fact,  # noqa: SLF001
    Sequence: Values._sequence,  # noqa: SLF001
    TextByte: Values.text_byte,
    TextEqual: Values._fact,  # noqa: SLF001
    Update: Values._update,  # noqa: SLF001
}


def _plain(value: Value) -> bool:
    """Tell whether an expression may be computed in vain: it has no effect, cannot fault, and is short."""
    waiting: list[Any] = [value]
    for _ in range(PLAIN_NODES_MAX):
        if not waiting:
            return True
        node = waiting.pop()
        match node:
            case Constant() | Convert() | Negate() | Invert() | Not() | Compare() | Logical() | Load():
                pass
            case Location(element=None, indexes=()) | Local(indexes=()):
                pass
            case Arithmetic() if node.number.floating or node.operator not in ("/", "%"):
                pass
            case _:
                return False
        waiting.extend(children(node))
    return not waiting
