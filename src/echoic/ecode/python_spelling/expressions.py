"""Python's expressions as E-Code's.

Most have a counterpart that means the same. Those that do not are in `arithmetic`; those that have none
are refused by name (`refusals`). Calls are resolved by name alone, from fixed tables: nothing of the
program around the function is ever looked at.
"""

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.ecode.mathematics import FUNCTIONS
from echoic.ecode.numbers import FLOAT64, INT64, NUMBERS, Number
from echoic.ecode.python_spelling.arithmetic import (
    absolute,
    binary,
    extreme,
    floor_division,
    fold,
    integer,
    once,
    remainder,
    wide,
)
from echoic.ecode.python_spelling.refusals import refusal, refused_call
from echoic.ecode.syntax import tree
from echoic.ecode.syntax.nearest import did_you_mean
from echoic.ecode.syntax.parser import NESTING_MAX
from echoic.ecode.syntax.text import mistake, quoted

if TYPE_CHECKING:
    from echoic.ecode.python_spelling.names import Names
    from echoic.ecode.python_spelling.places import Places
    from echoic.ecode.typed import Position

__all__ = ["TYPES", "Expressions", "number_named"]

OPERATORS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
TYPES: Final[dict[str, Number]] = {**NUMBERS, "int": INT64, "float": FLOAT64}
MODULES: Final = frozenset({"math", "echoic", "numpy", "np"})
CONSTANTS: Final = {"pi": math.pi, "e": math.e, "tau": math.tau}
ROUNDING: Final = frozenset({"ceil", "floor", "trunc"})
"""What gives a float in C and an integer in Python."""
SHIFT_MAX: Final = 63


class Expressions:
    """Turns expressions of one function into trees; the first mistake in one is raised."""

    def __init__(self, places: "Places", names: "Names") -> None:
        self._places = places
        self._names = names
        self.nesting = 0

    def enter(self, at: "Position") -> None:
        """Go one level deeper.

        Raises:
            ECodeError: That is too deep.
        """
        self.nesting += 1
        if self.nesting > NESTING_MAX:
            raise mistake(at, f"the code is nested deeper than {NESTING_MAX} levels")

    def value(self, node: ast.expr) -> tree.Expression:
        """Return an expression.

        Raises:
            ECodeError: It is not part of the subset.
        """
        at = self._places.start(node)
        nesting = self.nesting
        self.enter(at)
        try:
            return self._value(node, at)
        finally:
            self.nesting = nesting

    def constant(self, node: ast.expr, what: str) -> int:
        """Return an integer that must be known before the program runs; `what` is how a message calls it.

        Raises:
            ECodeError: It is something else.
        """
        found = self.value(node)
        if isinstance(found, tree.Constant) and isinstance(found.value, int):
            return found.value
        raise mistake(self._places.start(node), f"{what} must be a constant integer")

    def place(self, node: ast.expr) -> tree.Expression:
        """Return what an assignment can have on its left, or `resize` as its first argument.

        Raises:
            ECodeError: It is no place.
        """
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return self.value(node)
        if isinstance(node, ast.Tuple | ast.List | ast.Starred):
            raise mistake(self._places.start(node), "several targets are not part of the subset; assign one at a time")
        raise mistake(self._places.start(node), "this cannot be assigned to")

    def _value(self, node: ast.expr, at: "Position") -> tree.Expression:
        match node:
            case ast.Constant():
                return self._constant(node.value, at)
            case ast.Name(id=name):
                return self._name(name, at)
            case ast.Attribute():
                return self._attribute(node, at)
            case ast.Subscript():
                return self._subscript(node)
            case ast.BinOp():
                return self._operations(node)
            case ast.UnaryOp(op=symbol, operand=operand):
                return self._unary(symbol, self.value(operand), at)
            case ast.BoolOp():
                return self._logical(node)
            case ast.Compare():
                return self._comparison(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                yes, no = wide(self.value(body)), wide(self.value(orelse))
                return tree.Conditional(self.value(test), yes, no, at)
            case ast.Call():
                return self._call(node, at)
            case _:
                raise mistake(at, refusal(node))

    def _constant(self, value: object, at: "Position") -> tree.Expression:
        match value:
            case bool() | int():
                found = integer(int(value), at)
                if found is None:
                    raise mistake(at, "this integer does not fit 64 bits")
                return found
            case float():
                if math.isinf(value):
                    raise mistake(at, "this number does not fit `float64`")
                return tree.Constant(value, FLOAT64, at)
            case str():
                try:
                    return tree.String(value.encode(), at)
                except UnicodeEncodeError as error:
                    raise mistake(at, "this text cannot be written in UTF-8, it has a lone surrogate") from error
            case bytes():
                return tree.String(value, at)
            case None:
                raise mistake(at, '`None` is not part of the subset; an empty text is equal to ""')
            case _:
                raise mistake(at, f"{quoted(repr(value))} is not part of the subset; use integers, floats and texts")

    def _name(self, name: str, at: "Position") -> tree.Expression:
        if name not in self._names.records:
            self._names.expect(name, at)
        return tree.Name(name, at)

    def _attribute(self, node: ast.Attribute, at: "Position") -> tree.Expression:
        match node.value:
            case ast.Name(id="math") if node.attr in CONSTANTS:
                return tree.Constant(CONSTANTS[node.attr], FLOAT64, at)
            case ast.Name(id="math") if node.attr in FUNCTIONS:
                raise mistake(at, f"`math.{node.attr}` must be called")
            case ast.Name(id="math"):
                advice = did_you_mean(node.attr, (*FUNCTIONS, *CONSTANTS))
                raise mistake(at, f"{quoted(f'math.{node.attr}')} is not part of the subset{advice}")
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return tree.Member(self.value(node.value), node.attr, self._places.attribute(node))
            case _:
                raise mistake(at, "only `input`, `output`, `param`, `context` and records in them have fields")

    def _subscript(self, node: ast.Subscript) -> tree.Expression:
        found = self.value(node.value)
        at = self._places.after(node.value, "[")
        indexes = node.slice.elts if isinstance(node.slice, ast.Tuple) and node.slice.elts else [node.slice]
        for each in indexes:
            index = self.value(each)
            if isinstance(index, tree.Constant) and index.value < 0:
                raise mistake(index.at, "an index does not count from the end; write `a[len(a) - 1]` for the last one")
            found = tree.Subscript(found, index, at)
        return found

    def _operations(self, node: ast.BinOp) -> tree.Expression:
        """Return a chain of operations, in a loop as far as it goes to the left: `a + b + c` is not nested."""
        pending = [node]
        while isinstance(pending[-1].left, ast.BinOp):
            pending.append(pending[-1].left)
        found = self.value(pending[-1].left)
        for each in reversed(pending):
            symbol = OPERATORS.get(type(each.op))
            if symbol is None:
                raise mistake(self._places.start(each), refusal(each.op))
            at = self._places.operator(each.left, each.right, symbol)
            found = self.operation(symbol, found, self.value(each.right), at)
        return found

    def operation(self, symbol: str, left: tree.Expression, right: tree.Expression, at: "Position") -> tree.Expression:
        """Return `left symbol right` with Python's meaning.

        Raises:
            ECodeError: It has none in the subset.
        """
        if isinstance(left, tree.String) or isinstance(right, tree.String):
            raise mistake(at, f"texts cannot be computed with `{symbol}`; they can be compared and assigned")
        folded = fold(symbol, left, right, at)
        if folded is not None:
            return folded
        match symbol:
            case "/":
                return tree.TrueDivision(wide(left), wide(right), at)
            case "//":
                return self._twice(floor_division, left, right, at)
            case "%":
                return self._twice(remainder, left, right, at)
            case "**":
                return tree.Call("pow", (left, right), at)
            case "<<" | ">>" if isinstance(right, tree.Constant) and not 0 <= right.value <= SHIFT_MAX:
                raise mistake(at, f"integers have 64 bits, they can be shifted by 0 to {SHIFT_MAX}")
            case _:
                return binary(symbol, left, right, at)

    def _twice(
        self,
        make: Callable[[tree.Expression, tree.Expression, "Position"], tree.Expression],
        left: tree.Expression,
        right: tree.Expression,
        at: "Position",
    ) -> tree.Expression:
        """Return what `make` makes of two values of which it uses several copies."""
        hidden = self._names.hidden
        return once(left, hidden, lambda one: once(right, hidden, lambda other: make(one, other, at)))

    def _unary(self, symbol: ast.unaryop, value: tree.Expression, at: "Position") -> tree.Expression:
        match symbol:
            case ast.Not():
                return tree.Unary("!", value, at)
            case ast.USub() if isinstance(value, tree.Constant):
                negative = integer(-value.value, at) if isinstance(value.value, int) else None
                return negative or tree.Constant(-value.value, value.number, at)
            case ast.USub():
                return tree.Unary("-", wide(value), at)
            case ast.UAdd():
                return tree.Unary("+", wide(value), at)
            case _:
                return tree.Unary("~", wide(value), at)

    def _logical(self, node: ast.BoolOp) -> tree.Expression:
        word, symbol = ("and", "&&") if isinstance(node.op, ast.And) else ("or", "||")
        pairs = zip(node.values, node.values[1:], strict=False)
        at = [self._places.operator(left, right, word) for left, right in pairs]
        return tree.chain(symbol, [self.value(each) for each in node.values], at)

    def _comparison(self, node: ast.Compare) -> tree.Expression:
        """Return a comparison; of a chain, each but the first is made only if those before hold."""
        places = []
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            symbol = COMPARISONS.get(type(operator))
            if symbol is None:
                raise mistake(self._places.start(node), refusal(operator))
            places.append((symbol, self._places.operator(left, right, symbol)))
        values = [self.value(each) for each in node.comparators]
        return self._compared(self.value(node.left), values, places)

    def _compared(
        self, left: tree.Expression, rest: list[tree.Expression], places: list[tuple[str, "Position"]]
    ) -> tree.Expression:
        (symbol, at), right = places[0], rest[0]
        if len(rest) == 1:
            return _compare(symbol, left, right, at)
        self.enter(at)

        def both(middle: tree.Expression) -> tree.Expression:
            first = _compare(symbol, left, middle, at)
            return tree.Binary("&&", first, self._compared(middle, rest[1:], places[1:]), at)

        return both(right) if isinstance(right, tree.String) else once(right, self._names.hidden, both)

    def _call(self, node: ast.Call, at: "Position") -> tree.Expression:
        name = self._function(node.func, at)
        if node.keywords:
            raise mistake(self._places.start(node.keywords[0].value), f"`{name}` takes no named arguments")
        count = len(node.args)
        if name == "len":
            self._expect(name, count, 1, at)
            return self._length(node.args[0], at)
        if name in TYPES:
            self._expect(name, count, 1, at)
            return tree.Cast(TYPES[name], self.value(node.args[0]), at)
        arguments = [self.value(each) for each in node.args]
        match name:
            case "min" | "max":
                return self._extreme(name, arguments, at)
            case "abs":
                self._expect(name, count, 1, at)
                return once(arguments[0], self._names.hidden, lambda value: absolute(value, at))
            case "bool":
                self._expect(name, count, 1, at)
                return tree.Binary("!=", wide(arguments[0]), tree.Constant(0, INT64, at), at)
            case "resize":
                raise mistake(at, "`resize` has no value, it must be a statement of its own")
            case _:
                self._expect(name, count, FUNCTIONS[name], at)
                called = tree.Call(name, tuple(arguments), at)
                return tree.Cast(INT64, called, at) if name in ROUNDING else called

    def _function(self, node: ast.expr, at: "Position") -> str:
        """Return the name of a function that may be called."""
        match node:
            case ast.Name(id=name):
                module = ""
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in MODULES:
                pass
            case ast.Attribute(value=ast.Name(id="context"), attr=name):
                raise mistake(at, f"`context.{name}` has no value, it must be a statement of its own")
            case _:
                raise mistake(at, "only functions can be called here, methods are not part of the subset")
        own = {"math": (), "": ("len", "min", "max", "abs", "bool", "resize", *TYPES)}.get(module, tuple(TYPES))
        known = (*own, *(FUNCTIONS if module in ("", "math") else ()))
        if name in known and name != "round":
            return name
        whole = f"{module}.{name}" if module else name
        message = refused_call(name) if module in ("", "math") else None
        advice = did_you_mean(name, known) or "; what surrounds the function is not sent along"
        raise mistake(at, message or f"{quoted(whole)} cannot be called{advice}")

    def _expect(self, name: str, count: int, expected: int, at: "Position") -> None:
        if count != expected:
            raise mistake(at, f"`{name}` takes {expected} argument{'s' if expected > 1 else ''}, got {count}")

    def _length(self, node: ast.expr, at: "Position") -> tree.Expression:
        value = self.value(node)
        if isinstance(value, tree.String):
            return tree.Constant(len(value.data), INT64, at)
        return tree.Call("len", (value,), at)

    def _extreme(self, name: str, arguments: list[tree.Expression], at: "Position") -> tree.Expression:
        if len(arguments) < 2:
            raise mistake(at, f"`{name}` takes two arguments or more; for an array use a `for` loop")
        symbol = "<" if name == "min" else ">"
        found = arguments[0]
        for each in arguments[1:]:
            found = self._twice(lambda one, other, at: extreme(symbol, one, other, at), found, each, at)
        return found


def number_named(node: ast.expr) -> Number | None:
    """Return the type that an annotation such as `int32` or `echoic.int32` names, None if it names none."""
    match node:
        case ast.Name(id=name):
            return TYPES.get(name)
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module in MODULES and module != "math":
            return TYPES.get(name)
        case _:
            return None


def _compare(symbol: str, left: tree.Expression, right: tree.Expression, at: "Position") -> tree.Expression:
    if isinstance(left, tree.String) or isinstance(right, tree.String):
        return tree.Binary(symbol, left, right, at)
    return tree.Binary(symbol, wide(left), wide(right), at)
