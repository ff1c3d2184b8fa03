"""Values of E-Code as Python expressions.

Integers are wrapped after each operation that may leave its type; `analysis.exact` knows those that cannot. Floats of
single precision are rounded after each operation, which gives the same bits as computing in single precision does
(doubles have more than twice its digits). Truth values are Python's while they decide something, 0 and 1 otherwise.
"""

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from echoic.ecode.generated_python.places import Places
from echoic.ecode.generated_python.source import Expression, Source, plain
from echoic.ecode.generated_python.texts import Texts
from echoic.ecode.kernel import FaultKind
from echoic.ecode.numbers import FLOAT32, FLOAT64, Number, convert
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
    Logical,
    MathCall,
    Negate,
    Not,
    Sequence,
    TextByte,
    TextEqual,
    Update,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from echoic.ecode.analysis import Analysis
    from echoic.ecode.program import Program

__all__ = ["Values"]

SPINE_MAX: Final = 24  # how many values may begin with each other before their text is cut
FIRST_PARTS: Final[dict[type, str]] = {
    Arithmetic: "left",
    Assign: "value",
    Choose: "test",
    Compare: "left",
    Convert: "value",
    Invert: "value",
    Logical: "left",
    Negate: "value",
    Not: "value",
}


class Values:
    """Writes the values of one program."""

    def __init__(self, program: "Program", analysis: "Analysis", source: Source) -> None:
        self._source = source
        self._exact = analysis.exact
        self.places: Final = Places(program, analysis, source, self)
        self.texts: Final = Texts(source, self.places, self)
        self._ready: dict[Value, Expression] = {}
        self._writers: Final[dict[type, Callable[[Any], Expression]]] = {
            Arithmetic: self._arithmetic,
            Assign: self._assign,
            Choose: self._choose,
            Compare: self._truth,
            Constant: self._constant,
            Convert: self._convert,
            Invert: self._invert,
            Length: self.texts.length,
            Load: self._load,
            Logical: self._truth,
            MathCall: self._call,
            Negate: self._negate,
            Not: self._truth,
            Sequence: self._sequence,
            TextByte: self.texts.byte,
            TextEqual: self._truth,
            Update: self._update,
        }

    def value(self, value: Value) -> Expression:
        """Return the expression of a value, having written the lines it needs."""
        self._cut_spine(value)
        ready = self._ready.pop(value, None)
        return ready if ready is not None else self._source.flattened(self._writers[type(value)](value))

    def condition(self, value: Value) -> Expression:
        """Return an expression that is true if a value is not zero."""
        self._cut_spine(value)
        ready = self._ready.pop(value, None)
        if ready is not None:
            return ready
        match value:
            case Compare():
                left, right = self._both(value.left, value.right)
                return self._nested(f"({left.text} {value.operator} {right.text})", left, right)
            case TextEqual():
                return self.texts.equal(value)
            case Not():
                inner = self.condition(value.value)
                return self._nested(f"(not {inner.text})", inner)
            case Logical():
                return self._logical(value)
            case _:
                return self.value(value)

    def effect(self, value: Value) -> None:
        """Write the lines of a value of which nothing but its effect is wanted."""
        match value:
            case Sequence():
                parts = [value.second]
                first = value.first
                while isinstance(first, Sequence):
                    parts.append(first.second)
                    first = first.first
                for part in (first, *reversed(parts)):
                    self.effect(part)
            case Assign():
                self._assign(value, wanted=False)
            case Update():
                self._update(value, wanted=False)
            case _:
                expression = self.value(value)
                if not expression.stable:
                    self._source.line(expression.text)

    def _cut_spine(self, value: Value) -> None:
        """Write the beginning of a value first if many values begin with each other, as in a long sum.

        What a value begins with is evaluated before all else of it, so this changes no order; and it bounds how deep
        this writer calls itself, and how deep the text gets.
        """
        spine = [value]
        while spine[-1] not in self._ready and (part := FIRST_PARTS.get(type(spine[-1]))) is not None:
            spine.append(getattr(spine[-1], part))
        for place in range(len(spine) - len(spine) % SPINE_MAX, 0, -SPINE_MAX):
            if place < len(spine):
                early = spine[place]
                self._ready[early] = self._source.settle(self._writers[type(early)](early))

    def _nested(self, text: str, *parts: Expression, levels: int = 1) -> Expression:
        return self._source.flattened(Expression(text, max((part.depth for part in parts), default=0) + levels))

    def _both(self, left: Value, right: Value) -> list[Expression]:
        return self._source.together(lambda: self.value(left), lambda: self.value(right))

    def _constant(self, value: Constant) -> Expression:
        exact = convert(value.value, value.number)
        if not isinstance(exact, float):
            return plain(exact)
        if math.isfinite(exact):
            return Expression(f"({exact!r})", 1, stable=True)
        return plain(self._source.constant(("float", repr(exact)), exact))

    def _load(self, value: Load) -> Expression:
        return self.places.load(self.places.spot(value.place))

    def _convert(self, value: Convert) -> Expression:
        if isinstance(value.value, Constant):
            return self._constant(Constant(convert(value.value.value, value.number), value.number, value.at))
        return self.converted(self.value(value.value), value.value.number, value.number)

    def converted(self, inner: Expression, given: Number, wanted: Number) -> Expression:
        """Return a value of one type as another has it."""
        if given is wanted or (given is FLOAT32 and wanted is FLOAT64):
            return inner
        if wanted.floating and given.floating:
            return self._nested(f"single({inner.text})", inner)
        if wanted.floating:
            exact = wanted is FLOAT64 or given.size < FLOAT32.size
            function = "float" if exact else "single" if given.size <= FLOAT32.size else "nearest_single"
            return self._nested(f"{function}({inner.text})", inner)
        if given.floating:
            return self._nested(f"saturated({inner.text}, {wanted.smallest}, {wanted.largest})", inner)
        if wanted.smallest <= given.smallest and given.largest <= wanted.largest:
            return inner
        return self._wrapped(inner.text, wanted, inner)

    def _wrapped(self, text: str, number: Number, *parts: Expression) -> Expression:
        mask = (1 << number.bits) - 1
        if not number.signed:
            return self._nested(f"({text} & {mask})", *parts)
        half = 1 << (number.bits - 1)
        return self._nested(f"(({text} + {half} & {mask}) - {half})", *parts, levels=2)

    def _negate(self, value: Negate) -> Expression:
        inner = self.value(value.value)
        if value.number.floating:
            return self._nested(f"(-{inner.text})", inner)
        return self._wrapped(f"-{inner.text}", value.number, inner)

    def _invert(self, value: Invert) -> Expression:
        inner = self.value(value.value)
        if value.number.signed:
            return self._nested(f"(~{inner.text})", inner)
        return self._wrapped(f"~{inner.text}", value.number, inner)

    def _arithmetic(self, value: Arithmetic) -> Expression:
        left, right = self._both(value.left, value.right)
        return self._operation(value, left, right, exact=value in self._exact)

    def _operation(self, value: Arithmetic, left: Expression, right: Expression, *, exact: bool) -> Expression:
        """Return the result of an operator whose operands are written."""
        operator, number = value.operator, value.number
        if number.floating:
            return self._float_operation(operator, left, right, value)
        if operator in ("/", "%"):
            return self._division(value, left, right)
        if operator in ("&", "|", "^"):
            return self._nested(f"({left.text} {operator} {right.text})", left, right)
        if operator in ("<<", ">>"):
            right = Expression(f"({right.text} & {number.bits - 1})", right.depth + 1)
        text = f"{left.text} {operator} {right.text}"
        if exact or operator == ">>":
            return self._nested(f"({text})", left, right)
        return self._wrapped(f"({text})" if operator == "<<" else text, number, left, right)

    def _float_operation(self, operator: str, left: Expression, right: Expression, value: Arithmetic) -> Expression:
        if operator == "/" and not (isinstance(value.right, Constant) and value.right.value):
            text = f"divided({left.text}, {right.text})"
        else:
            text = f"({left.text} {operator} {right.text})"
        found = self._nested(text, left, right)
        return found if value.number is FLOAT64 else self._nested(f"single({found.text})", found)

    def _division(self, value: Arithmetic, left: Expression, right: Expression) -> Expression:
        function = "quotient" if value.operator == "/" else "remainder"
        if not (isinstance(value.right, Constant) and value.right.value):
            left = self._source.settle(left)
            right = self._source.settle(right)
            self._source.line(f"if not {right.text}:")
            self._source.indent += 1
            self._source.stop(FaultKind.DIVISION, value.at)
            self._source.indent -= 1
        if not value.number.signed:
            operator = "//" if value.operator == "/" else "%"
            return self._nested(f"({left.text} {operator} {right.text})", left, right)
        found = self._nested(f"{function}({left.text}, {right.text})", left, right)
        may_wrap = value.operator == "/" and not (isinstance(value.right, Constant) and value.right.value != -1)
        return self._wrapped(found.text, value.number, found) if may_wrap else found

    def _truth(self, value: Value) -> Expression:
        """Return 1 or 0."""
        inner = self.condition(value)
        if isinstance(value, Logical):
            return self._nested(f"(1 if {inner.text} else 0)", inner)
        return Expression(f"+{inner.text}", inner.depth)

    def _logical(self, value: Logical) -> Expression:
        word = "and" if value.operator == "&&" else "or"
        left = self.condition(value.left)
        with self._source.aside() as lines:
            right = self.condition(value.right)
            if not lines:
                return self._nested(f"({left.text} {word} {right.text})", left, right)
        name = self._source.temporary()
        lines.append(" " * (self._source.indent + 1) + f"{name} = {right.text}")
        self._source.line(f"{name} = {left.text}")
        self._source.line(f"if {name}:" if word == "and" else f"if not {name}:")
        self._source.lines.extend(lines)
        return plain(name)

    def _choose(self, value: Choose) -> Expression:
        test = self.condition(value.test)
        with self._source.aside() as yes_lines:
            yes = self.value(value.yes)
        with self._source.aside() as no_lines:
            no = self.value(value.no)
        if not yes_lines and not no_lines:
            return self._nested(f"({yes.text} if {test.text} else {no.text})", yes, test, no)
        name = self._source.temporary()
        for head, lines, found in ((f"if {test.text}:", yes_lines, yes), ("else:", no_lines, no)):
            self._source.line(head)
            self._source.lines.extend(lines)
            self._source.line(f" {name} = {found.text}")
        return plain(name)

    def _sequence(self, value: Sequence) -> Expression:
        self.effect(value.first)
        return self.value(value.second)

    def _call(self, value: MathCall) -> Expression:
        arguments = self._source.together(*(partial(self.value, argument) for argument in value.arguments))
        return self._nested(f"{value.function}({', '.join(part.text for part in arguments)})", *arguments)

    def _assign(self, value: Assign, *, wanted: bool = True) -> Expression:
        stored = self.value(value.value)
        mark = len(self._source.lines)
        spot = self.places.spot(value.place)
        if spot.boolean:
            stored = Expression(f"+({stored.text} != 0)", stored.depth + 1)
        late = len(self._source.lines) != mark or (spot.letters and not (spot.index and spot.index.stable))
        if not stored.stable and (late or (wanted and spot.index is not None)):
            following = self._source.lines[mark:]
            del self._source.lines[mark:]
            stored = self._source.settle(stored)
            self._source.lines.extend(following)
        self.places.store(spot, stored)
        return stored if stored.stable or spot.index is not None else Expression(spot.container)

    def _update(self, value: Update, *, wanted: bool = True) -> Expression:
        spot = self.places.settled(self.places.spot(value.place))
        before = self.places.load(spot)
        if wanted and value.post:
            before = self._source.settle(before)
        left, right = self._source.together(
            lambda: self.converted(before, spot.number, value.computed), lambda: self.value(value.value)
        )
        operation = Arithmetic(value.operator, value.value, value.value, value.computed, value.at)
        after = self.converted(self._operation(operation, left, right, exact=False), value.computed, spot.number)
        if spot.boolean:
            after = Expression(f"+({after.text} != 0)", after.depth + 1)
        if wanted and not value.post and spot.index is not None:
            after = self._source.settle(after)
        self.places.store(spot, after)
        if value.post:
            return before
        return after if after.stable else Expression(spot.container)
