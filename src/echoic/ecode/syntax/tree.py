"""The program as it was written: names not looked up, types not computed.

Two spellings of E-Code end here, C's (`parser`) and Python's (`python_spelling`); the checker makes the typed tree of
it without knowing which. Where the spellings differ in meaning they use different nodes: C's `/` is a `Binary`,
Python's a `TrueDivision`. What Python makes depend on types that are not known here (`Wide`, `Let`, `ByKind`,
`Fitting`, `ZeroOf`) is left to the checker in the same way.

Positions are those at which a reader would point: the operator of an operation, the name of a field, the first
character of anything else.

    output.mean = sum / n;      Evaluate(Assignment("", Member(Name("output"), "mean"), Binary("/", Name("sum"), ...)))
"""

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from echoic.ecode.numbers import Number
    from echoic.ecode.typed import Position

__all__ = [
    "Assignment",
    "Binary",
    "Block",
    "Braces",
    "Break",
    "ByKind",
    "Call",
    "Cast",
    "Comma",
    "Conditional",
    "Constant",
    "Continue",
    "Declaration",
    "Do",
    "Evaluate",
    "Expression",
    "Fitting",
    "For",
    "If",
    "Let",
    "Lone",
    "Member",
    "Name",
    "Return",
    "Statement",
    "Step",
    "String",
    "Subscript",
    "TrueDivision",
    "Unary",
    "While",
    "Wide",
    "ZeroOf",
]


class Constant(msgspec.Struct, frozen=True):
    """A number or character; its suffix and size have decided about its type already."""

    value: int | float
    number: "Number"
    at: "Position"


class String(msgspec.Struct, frozen=True):
    """A text in quotes, its escapes resolved."""

    data: bytes
    at: "Position"


class Name(msgspec.Struct, frozen=True):
    """A variable, or one of `input`, `output`, `param` and `context`."""

    name: str
    at: "Position"


class Member(msgspec.Struct, frozen=True):
    """`record.name`; `at` is where the name begins."""

    record: "Expression"
    name: str
    at: "Position"


class Subscript(msgspec.Struct, frozen=True):
    """`array[index]`; `at` is the bracket."""

    array: "Expression"
    index: "Expression"
    at: "Position"


class Call(msgspec.Struct, frozen=True):
    """`function(arguments)`; only names can be called, and functions of the context by `context.name`."""

    function: str
    arguments: tuple["Expression", ...]
    at: "Position"


class Cast(msgspec.Struct, frozen=True):
    """`(type) value`."""

    number: "Number"
    value: "Expression"
    at: "Position"


class Unary(msgspec.Struct, frozen=True):
    """`+ - ~ !` before a value."""

    operator: str
    value: "Expression"
    at: "Position"


class Binary(msgspec.Struct, frozen=True):
    """`+ - * / % & | ^ << >> == != < > <= >= && ||` with C's meaning."""

    operator: str
    left: "Expression"
    right: "Expression"
    at: "Position"


class TrueDivision(msgspec.Struct, frozen=True):
    """A quotient that keeps its fraction: two integers are divided as float64, anything else as C would."""

    left: "Expression"
    right: "Expression"
    at: "Position"


class Wide(msgspec.Struct, frozen=True):
    """A number as Python computes with it: any integer but uint64 becomes int64, a float float64. A text stays one."""

    value: "Expression"
    at: "Position"


class Let(msgspec.Struct, frozen=True):
    """A number that is evaluated once and has a name in `body`, whose value this is.

    No name in a program can be the same: these have a `$`.
    """

    name: str
    value: "Expression"
    body: "Expression"
    at: "Position"


class ByKind(msgspec.Struct, frozen=True):
    """`integer` or `floating`, whichever `of` is, which is not evaluated; nor is the other one even checked."""

    of: "Expression"
    integer: "Expression"
    floating: "Expression"
    at: "Position"


class Fitting(msgspec.Struct, frozen=True):
    """A value that is about to become what `like` is; refused with `message` if it would lose its fraction by that."""

    like: "Expression | Number"
    value: "Expression"
    message: str
    at: "Position"


class ZeroOf(msgspec.Struct, frozen=True):
    """Zero, as the type that `Wide` gives to `value`, which is not evaluated."""

    value: "Expression"
    at: "Position"


class Conditional(msgspec.Struct, frozen=True):
    """`test ? yes : no`."""

    test: "Expression"
    yes: "Expression"
    no: "Expression"
    at: "Position"


class Comma(msgspec.Struct, frozen=True):
    """`first, second`."""

    first: "Expression"
    second: "Expression"
    at: "Position"


class Assignment(msgspec.Struct, frozen=True):
    """`target = value`, or `target operator= value`; the operator of a plain assignment is ""."""

    operator: str
    target: "Expression"
    value: "Expression"
    at: "Position"


class Step(msgspec.Struct, frozen=True):
    """`++target`, `target--` and the like."""

    operator: Literal["+", "-"]
    target: "Expression"
    post: bool
    at: "Position"


Expression: TypeAlias = (
    Constant
    | String
    | Name
    | Member
    | Subscript
    | Call
    | Cast
    | Unary
    | Binary
    | TrueDivision
    | Wide
    | Let
    | ByKind
    | Fitting
    | ZeroOf
    | Conditional
    | Comma
    | Assignment
    | Step
)


class Braces(msgspec.Struct, frozen=True):
    """`{1, 2, {3}}`, the first values of an array."""

    items: tuple["Expression | Braces", ...]
    at: "Position"


class Block(msgspec.Struct, frozen=True):
    """`{ statements }`, a scope of its own; `end` is its closing brace. An empty statement is an empty block."""

    statements: tuple["Statement", ...]
    at: "Position"
    end: "Position"


class Declaration(msgspec.Struct, frozen=True):
    """One variable; `int i, j;` are two declarations. `at` is its name.

    Without a `number` it has the type of `initial`, which must be there then. A first dimension of None is as long as
    the braces are.
    """

    name: str
    number: "Number | None"
    dimensions: tuple["Expression | None", ...]
    initial: "Expression | Braces | None"
    static: bool
    constant: bool
    at: "Position"


class Evaluate(msgspec.Struct, frozen=True):
    """An expression for its effect."""

    value: "Expression"
    at: "Position"


class If(msgspec.Struct, frozen=True):
    """`if (test) yes else no`."""

    test: "Expression"
    yes: "Statement"
    no: "Statement | None"
    at: "Position"


class For(msgspec.Struct, frozen=True):
    """`for (initial; test; step) body`; `initial` are some declarations, one `Evaluate`, or nothing."""

    initial: tuple["Declaration | Evaluate", ...]
    test: "Expression | None"
    step: "Expression | None"
    body: "Statement"
    at: "Position"


class While(msgspec.Struct, frozen=True):
    """`while (test) body`."""

    test: "Expression"
    body: "Statement"
    at: "Position"


class Do(msgspec.Struct, frozen=True):
    """`do body while (test);`."""

    body: "Statement"
    test: "Expression"
    at: "Position"


class Return(msgspec.Struct, frozen=True):
    """`return value;`."""

    value: "Expression"
    at: "Position"


class Break(msgspec.Struct, frozen=True):
    """`break;`."""

    at: "Position"


class Continue(msgspec.Struct, frozen=True):
    """`continue;`."""

    at: "Position"


class Lone(msgspec.Struct, frozen=True):
    """A program that is one expression: what it is decides about the event, for a router it is the port."""

    value: "Expression"
    at: "Position"


Statement: TypeAlias = Block | Declaration | Evaluate | If | For | While | Do | Return | Break | Continue | Lone


def chain(operator: str, operands: list[Expression], at: "list[Position]") -> Expression:
    """Return `a && b && c ...`, or the same with `||`, as a tree that is as flat as possible.

    Both operators are associative, so a test of hundreds of alternatives need not be hundreds of nodes deep. `at` are
    the positions of the operators, one less than there are operands.
    """
    if len(operands) == 1:
        return operands[0]
    middle = (len(operands) + 1) // 2
    left = chain(operator, operands[:middle], at[: middle - 1])
    right = chain(operator, operands[middle:], at[middle:])
    return Binary(operator, left, right, at[middle - 1])
