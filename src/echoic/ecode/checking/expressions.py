"""Expressions of the syntax tree to values of the typed tree.

A text is no value: it can be compared, measured, indexed and assigned, and nothing else. `operand` gives either,
`value` insists on a number, and `effect` is for statements, where texts can be assigned and arrays resized too.
"""

from typing import Final, TypeAlias

from echoic.ecode.checking.by_type import ByType, by_type
from echoic.ecode.checking.operations import (
    COMPARISONS,
    SHIFTS,
    arithmetic,
    check_divisor,
    check_integers,
    choose,
    common,
    comparison,
    convert,
    logical,
    truth,
    unary,
)
from echoic.ecode.checking.places import NO_RECORD, Places, Reference
from echoic.ecode.context import ARGUMENTS_MAX
from echoic.ecode.mathematics import FUNCTIONS
from echoic.ecode.numbers import FLOAT64, INT32, INT64, UINT8, promote
from echoic.ecode.syntax import tree
from echoic.ecode.syntax.nearest import did_you_mean
from echoic.ecode.syntax.parser import NESTING_MAX
from echoic.ecode.syntax.text import cascade, counted, mistake, quoted
from echoic.ecode.typed import (
    NODES_MAX,
    Assign,
    AssignText,
    Constant,
    ContextCall,
    Evaluate,
    Length,
    Load,
    Location,
    MathCall,
    Position,
    Resize,
    Sequence,
    Text,
    TextByte,
    TextEqual,
    TextField,
    TextLiteral,
    Update,
    Value,
    Variable,
)
from echoic.formats import Kind

__all__ = ["Expressions"]

Operand: TypeAlias = Value | Text
Effect: TypeAlias = Evaluate | AssignText | Resize | ContextCall

Rarer: TypeAlias = tree.Conditional | tree.Comma | tree.Assignment | tree.Step | ByType

OWN_FUNCTIONS: Final = ("strlen", "length", "resize")
CONTEXT: Final = "context."
CLASSIFIERS: Final = frozenset({"isnan", "isinf", "isfinite"})
ADVICE: Final = {
    "abs": ": `fabs` is for floats, `x < 0 ? -x : x` for integers",
    "max": ": `fmax` is for floats, `a > b ? a : b` for integers",
    "min": ": `fmin` is for floats, `a < b ? a : b` for integers",
    "printf": ": a program cannot write anything but `output`",
    "strcmp": ": texts are compared by `==` and `!=`",
    "strncmp": ": texts are compared by `==` and `!=`",
    "strcpy": ": a text is assigned by `=`",
}


class Expressions:
    """Checks the expressions of one program."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.nodes = 0
        self.depth = 0
        """How deep the code is nested here; whoever catches an error puts back what it was."""
        self.hidden: list[Variable] = []
        """Variables that no declaration of the program declares."""
        self._effects = 0
        self._too_large = False

    def enter(self, at: Position) -> None:
        """Count a node and go one level deeper.

        Raises:
            ECodeError: The program is too large or too deep.
        """
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise mistake(at, f"the code is nested deeper than {NESTING_MAX} levels, operators of a chain included")
        self.nodes += 1
        if self.nodes > NODES_MAX:
            self.count(0, at)

    def count(self, nodes: int, at: Position) -> None:
        """Count some more nodes.

        Raises:
            ECodeError: The program is too large, which is reported once.
        """
        self.nodes += nodes
        if self.nodes > NODES_MAX:
            if self._too_large:
                raise cascade()
            self._too_large = True
            raise mistake(at, f"the code has more than {NODES_MAX} operations, values and statements")

    def value(self, node: tree.Expression) -> Value:
        """Return an expression that must be a number.

        Raises:
            ECodeError: It is a text, or wrong in itself.
        """
        found = self.operand(node)
        if isinstance(found, TextLiteral | TextField):
            raise mistake(found.at, f"a text is not a number{_advice(found)}")
        return found

    def operand(self, node: tree.Expression) -> Operand:
        """Return an expression that is a number or a text.

        Raises:
            ECodeError: It is neither, or wrong in itself.
        """
        self.enter(node.at)
        match node:
            case tree.Name() | tree.Member() | tree.Subscript():
                found = self._load(node)
            case tree.Constant():
                found = Constant(node.value, node.number, node.at)
            case tree.Binary():
                found = self._binary(node)
            case tree.String():
                found = TextLiteral(node.data, node.at)
            case tree.Call():
                found = self._call(node)
            case tree.Cast():
                found = convert(self.value(node.value), node.number)
            case tree.Unary():
                found = unary(node.operator, self.value(node.value), node.at)
            case _:
                found = self._rarer(node)
        self.depth -= 1
        return found

    def effect(self, node: tree.Expression, at: Position) -> Effect:
        """Return an expression that is a statement.

        Raises:
            ECodeError: It is wrong.
        """
        self.enter(node.at)
        match node:
            case tree.Assignment(""):
                reference = self._target(node.target, node.at)
                location = reference.location if reference.text is not None else None
                if location is not None:
                    found: Effect = self._assign_text(reference, location, node)
                else:
                    found = Evaluate(self._assign(reference, node), at)
            case tree.Call("resize"):
                found = self._resize(node)
            case tree.Call() if node.function.startswith(CONTEXT):
                found = self._context_call(node)
            case _:
                self.nodes -= 1  # it is counted as a value
                found = Evaluate(self.value(node), at)
        self.depth -= 1
        return found

    def _rarer(self, node: Rarer) -> Operand:
        match node:
            case tree.Conditional():
                return choose(self.test(node.test), self.value(node.yes), self.value(node.no), node.at)
            case tree.Comma():
                first, second = self.value(node.first), self.value(node.second)
                return Sequence(first, second, second.number, node.at)
            case tree.Assignment(""):
                return self._assign(self._target(node.target, node.at), node)
            case tree.Assignment():
                return self._compound(node)
            case tree.Step():
                return self._step(node)
            case _:
                return by_type(node, self)

    def test(self, node: tree.Expression) -> Value:
        """Return a condition: any number, of which 0 is false.

        Raises:
            ECodeError: It is a text, or wrong in itself.
        """
        found = self.operand(node)
        if isinstance(found, TextLiteral | TextField):
            raise mistake(found.at, "a text is neither true nor false: compare it, or its `strlen`")
        return found

    def _load(self, node: tree.Name | tree.Member | tree.Subscript) -> Operand:
        found = self.places.find(node, self.value)
        if not isinstance(found, Reference):
            return found
        if found.number is not None:
            return Load(found.place, found.number, found.at)
        if found.text is not None:
            return found.text
        raise mistake(found.at, found.describe())

    def _binary(self, node: tree.Binary) -> Value:
        if node.operator in ("==", "!="):
            return self._equality(node)
        if node.operator in ("&&", "||"):
            return logical(node.operator, self.test(node.left), self.test(node.right), node.at)
        left, right = self._number(node.left, node), self._number(node.right, node)
        if node.operator in COMPARISONS:
            return comparison(node.operator, left, right, node.at)
        return arithmetic(node.operator, left, right, node.at)

    def _number(self, node: tree.Expression, operation: tree.Binary) -> Value:
        """Return an operand of an operation that takes numbers only."""
        found = self.operand(node)
        if isinstance(found, TextLiteral | TextField):
            if operation.operator in COMPARISONS:
                raise mistake(operation.at, "texts can only be compared by `==` and `!=`")
            raise mistake(operation.at, f"`{operation.operator}` takes numbers, not texts")
        return found

    def _equality(self, node: tree.Binary) -> Value:
        left, right = self.operand(node.left), self.operand(node.right)
        if isinstance(left, TextLiteral | TextField):
            if not isinstance(right, TextLiteral | TextField):
                raise mistake(node.at, f"a text can only be compared with a text{_advice(left)}")
            if isinstance(left, TextLiteral) and isinstance(right, TextLiteral):
                return Constant(int((left.data == right.data) == (node.operator == "==")), INT32, node.at)
            return TextEqual(node.operator, left, right, node.at)
        if isinstance(right, TextLiteral | TextField):
            raise mistake(node.at, f"a text can only be compared with a text{_advice(right)}")
        return comparison(node.operator, left, right, node.at)

    def _target(self, node: tree.Expression, at: Position) -> Reference:
        """Return a place that can be assigned to."""
        if not isinstance(node, tree.Name | tree.Member | tree.Subscript):
            raise mistake(at, "only a variable or a field of `output` can be assigned to")
        found = self.places.find(node, self.value)
        if isinstance(found, TextByte):
            raise mistake(at, "single bytes of a text cannot be assigned to")
        if isinstance(found, Constant):
            raise mistake(at, f"{quoted(_name(node))} cannot be assigned to: it is `const`")
        if found.read_only:
            raise mistake(at, f"`{found.name}` cannot be assigned to: {found.read_only}")
        if found.location is not None and found.location.root == "context":
            self.places.written.add(found.location.path[0])
        return found

    def _check_number(self, reference: Reference, at: Position) -> None:
        if reference.text is not None:
            raise mistake(at, f"`{reference.name}` is a text, which is assigned by a statement of its own only")
        if reference.number is None:
            raise mistake(at, reference.describe())

    def _assign(self, reference: Reference, node: tree.Assignment) -> Value:
        self._check_number(reference, node.at)
        value = self.operand(node.value)
        if isinstance(value, TextLiteral | TextField):
            raise mistake(node.at, f"`{reference.name}` is `{reference.number}`, a text cannot be assigned to it")
        return self._store(reference, value, node.at)

    def _store(self, reference: Reference, value: Value, at: Position) -> Value:
        self._effects += 1
        number = reference.place.number or INT32
        if _is_bool(reference):
            value = truth(value)
        return Assign(reference.place, convert(value, number), number, at)

    def _compound(self, node: tree.Assignment) -> Value:
        effects = self._effects
        reference = self._target(node.target, node.at)
        self._check_number(reference, node.at)
        value = self.value(node.value)
        if not _is_bool(reference):
            return self._update(reference, node.operator, value, node.at)
        # The result becomes 0 or 1, which `Update` cannot say: the place is looked up twice instead, and nothing in
        # between may make it another one.
        if effects != self._effects:
            raise mistake(node.at, f"`{reference.name}` is `bool`: its index and the value must have no effects here")
        loaded = Load(reference.place, UINT8, reference.at)
        again = self._target(node.target, node.at)
        return self._store(again, arithmetic(node.operator, loaded, value, node.at), node.at)

    def _update(self, reference: Reference, operator: str, value: Value, at: Position, *, post: bool = False) -> Value:
        number = reference.place.number or INT32
        loaded = Load(reference.place, number, at)
        check_integers(operator, at, loaded, value)
        if operator in SHIFTS:
            computed, value = promote(number), convert(value, promote(value.number))
        else:
            _, value, computed = common(loaded, value)
            check_divisor(operator, value, at)
        self._effects += 1
        return Update(reference.place, operator, value, computed, post, number, at)

    def _step(self, node: tree.Step) -> Value:
        reference = self._target(node.target, node.at)
        if _is_bool(reference):
            symbol = node.operator * 2
            raise mistake(node.at, f"`{symbol}` cannot be applied to `{reference.name}`, which is `bool`")
        self._check_number(reference, node.at)
        one = Constant(1, INT32, node.at)
        return self._update(reference, node.operator, one, node.at, post=node.post)

    def _call(self, node: tree.Call) -> Value:
        match node.function:
            case "strlen":
                return self._strlen(node)
            case "length" | "len":
                return self._length(node)
            case "resize":
                raise mistake(node.at, "`resize` gives no value: it is a statement of its own")
            case name if name.startswith(CONTEXT):
                raise mistake(node.at, f"`{name}` gives no value: it is called when the event is done")
            case _:
                return self._mathematics(node)

    def _mathematics(self, node: tree.Call) -> Value:
        expected = FUNCTIONS.get(node.function)
        if expected is None:
            known = (*FUNCTIONS, *OWN_FUNCTIONS)
            advice = ADVICE.get(node.function) or did_you_mean(node.function, known)
            raise mistake(node.at, f"there is no function {quoted(node.function)}{advice}")
        _check_count(node, expected)
        arguments = tuple(convert(self.value(argument), FLOAT64) for argument in node.arguments)
        call = MathCall(node.function, arguments, node.at)
        return convert(call, INT32) if node.function in CLASSIFIERS else call

    def _strlen(self, node: tree.Call) -> Value:
        _check_count(node, 1)
        text = self.operand(node.arguments[0])
        if isinstance(text, TextLiteral):
            return Constant(len(text.data), INT64, node.at)
        if not isinstance(text, TextField):
            raise mistake(node.arguments[0].at, f"`strlen` takes a text, this is `{text.number}`")
        return Length(text, node.at)

    def _length(self, node: tree.Call) -> Value:
        _check_count(node, 1)
        reference = self._array(node)
        if node.function == "len" and reference.text is not None:
            return Length(reference.text, node.at)
        length = reference.dimensions[0] if reference.dimensions else None
        if isinstance(length, int):
            return Constant(length, INT64, node.at)
        if reference.location is None or length is None:
            advice = " (the length of a text is its `strlen`)" if reference.text is not None else ""
            raise mistake(reference.at, f"`length` takes an array, `{reference.name}` is none{advice}")
        return Length(reference.location, node.at)

    def _array(self, node: tree.Call) -> Reference:
        argument = node.arguments[0]
        if isinstance(argument, tree.Name | tree.Member | tree.Subscript):
            found = self.places.find(argument, self.value)
            if isinstance(found, Reference):
                return found
        raise mistake(argument.at, f"`{node.function}` takes an array")

    def _resize(self, node: tree.Call) -> Resize:
        _check_count(node, 2)
        reference = self._array(node)
        location = reference.location
        if location is None or not reference.dynamic or location.root != "output":
            raise mistake(node.arguments[0].at, f"`resize` takes a dynamic array of `output`, not `{reference.name}`")
        if location.field.sizing:
            sizing = ".".join((location.root, *location.path[:-1], location.field.sizing))
            raise mistake(node.at, f"`{reference.name}` is as long as `{sizing}` says: assign to that")
        length = self.value(node.arguments[1])
        if length.number.floating:
            raise mistake(node.arguments[1].at, f"a length must be an integer, this is `{length.number}`")
        length = convert(length, INT64)
        capacity = self.places.signature.capacity(location.path)
        if isinstance(length, Constant) and not 0 <= length.value <= capacity:
            raise mistake(length.at, f"length {length.value} is outside 0 to {capacity}, the capacity")
        return Resize(location, length, node.at)

    def _context_call(self, node: tree.Call) -> ContextCall:
        name, context = node.function.removeprefix(CONTEXT), self.places.signature.context
        if context is None:
            raise mistake(node.at, NO_RECORD["context"])
        if name in context.by_name:
            raise mistake(node.at, f"`{node.function}` is a value of the context, not a function")
        if len(node.arguments) > ARGUMENTS_MAX:
            raise mistake(node.at, f"`{node.function}` has {len(node.arguments)} arguments, limit is {ARGUMENTS_MAX}")
        arguments = tuple(convert(self.value(argument), FLOAT64) for argument in node.arguments)
        functions = self.places.functions
        place = functions.setdefault((name, len(arguments)), len(functions))
        return ContextCall(place, arguments, node.at)

    def _assign_text(self, reference: Reference, target: Location, node: tree.Assignment) -> AssignText:
        if reference.subscripted:
            raise mistake(node.at, f"`{reference.name}` is a text inside of an array and cannot be assigned to")
        text = self.operand(node.value)
        if not isinstance(text, TextLiteral | TextField):
            raise mistake(node.at, f"`{reference.name}` is a text, `{text.number}` cannot be assigned to it")
        if isinstance(text, TextLiteral) and target.field.kind is Kind.CHAR and len(text.data) > target.field.count:
            raise mistake(
                text.at, f"the text has {len(text.data)} bytes, `{reference.name}` has room for {target.field.count}"
            )
        return AssignText(target, text, node.at)


def _is_bool(reference: Reference) -> bool:
    return isinstance(reference.place, Location) and reference.place.field.kind is Kind.BOOL


def _name(node: tree.Expression) -> str:
    return node.name if isinstance(node, tree.Name) else "this"


def _check_count(node: tree.Call, expected: int) -> None:
    if len(node.arguments) != expected:
        given = len(node.arguments)
        raise mistake(node.at, f"`{node.function}` takes {counted(expected, 'argument')}, got {given}")


def _advice(text: Text) -> str:
    match text:
        case TextLiteral(data) if len(data) == 1 and data.isalnum():
            return f" (a character is written '{data.decode()}')"
        case _:
            return ""
