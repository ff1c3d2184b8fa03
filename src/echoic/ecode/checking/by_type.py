"""Nodes whose meaning is not in the text but in the types: what Python's spelling leaves to the checker.

C's operators mean the same for every type. Python's do not: `/` divides integers as floats, `//` is another operation
for floats than for integers. The spelling writes down all that could be meant, and here it is decided.
"""

from typing import TYPE_CHECKING, TypeAlias, assert_never

from echoic.ecode.checking.operations import convert, true_division
from echoic.ecode.numbers import FLOAT64, INT32, INT64, UINT64, Number
from echoic.ecode.syntax import tree
from echoic.ecode.syntax.text import mistake
from echoic.ecode.typed import Assign, Constant, Local, Sequence, Text, TextField, TextLiteral, Value, Variable

if TYPE_CHECKING:
    from echoic.ecode.checking.expressions import Expressions

__all__ = ["ByType", "by_type"]

ByType: TypeAlias = tree.TrueDivision | tree.Wide | tree.Let | tree.ByKind | tree.Fitting | tree.ZeroOf


def by_type(node: ByType, expressions: "Expressions") -> Value | Text:
    """Return what a node means for the types of its parts.

    Raises:
        ECodeError: Nothing, or a part of it is wrong.
    """
    match node:
        case tree.TrueDivision():
            return true_division(expressions.value(node.left), expressions.value(node.right), node.at)
        case tree.Wide():
            found = expressions.operand(node.value)
            return found if isinstance(found, TextLiteral | TextField) else convert(found, _widened(found.number))
        case tree.Let():
            return _let(node, expressions)
        case tree.ByKind():
            floating = expressions.value(node.of).number.floating
            return expressions.value(node.floating if floating else node.integer)
        case tree.Fitting():
            return _fitting(node, expressions)
        case tree.ZeroOf():
            number = _widened(expressions.value(node.value).number)
            return convert(Constant(0, INT32, node.at), number)
        case _:
            assert_never(node)


def _widened(number: Number) -> Number:
    if number.floating:
        return FLOAT64
    return number if number is UINT64 else INT64


def _let(node: tree.Let, expressions: "Expressions") -> Value:
    """Return the body with a variable for the value; a constant needs none."""
    value = expressions.value(node.value)
    scopes = expressions.places.scopes
    variable: Variable | None = None
    if not isinstance(value, Constant):
        name = node.name.replace("$", "hidden_")
        variable = scopes.variable(name, value.number, (), node.at, constant=False)
        expressions.hidden.append(variable)
    scopes.enter()
    try:
        scopes.define(node.name, value if isinstance(value, Constant) else variable, node.at)
        body = expressions.value(node.body)
    finally:  # a mistake ends the statement, not the block around it
        scopes.leave()
    if variable is None:
        return body
    assigned = Assign(Local(variable, 0, (), node.at), value, value.number, node.at)
    return Sequence(assigned, body, body.number, node.at)


def _fitting(node: tree.Fitting, expressions: "Expressions") -> Value | Text:
    found = expressions.operand(node.value)
    given = _number_of(found)
    if given is None or not given.floating:
        return found
    wanted = node.like if isinstance(node.like, Number) else _number_of(expressions.operand(node.like))
    if wanted is not None and not wanted.floating:
        raise mistake(node.at, node.message)
    return found


def _number_of(operand: Value | Text) -> Number | None:
    return None if isinstance(operand, TextLiteral | TextField) else operand.number
