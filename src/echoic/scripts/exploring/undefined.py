"""Which variables an atom uses that have no value."""

from echoic.scripts.graph import Edge, Kind, Pattern, Slot, Slots, Template, read
from echoic.scripts.syntax.tree import Application, Assign, Atom, Create, Expression, ListOf, Variable
from echoic.terms import UNDEFINED, Term, TermList, Value

__all__ = ["undefined_values", "undefined_variables"]


def undefined_variables(action: object, edge: Edge, slots: Slots) -> tuple[str, ...]:
    """Return the names of the variables without a value that stand in the arguments of an atom."""
    if not isinstance(action, Atom) or edge.kind is Kind.AWAIT:
        return ()
    found: dict[str, None] = {}
    for expression, pattern in zip(action.arguments, edge.arguments, strict=False):
        _search(expression, pattern, slots, found)
    return tuple(found)


def undefined_values(action: object, values: tuple[Value, ...]) -> tuple[str, ...]:
    """Return the names of the variables that are all there is of an evaluated argument, and have no value.

    A function may give `undefined` (`first([])`), and scripts test for that; a variable as it stands is another matter.
    """
    match action:
        case Assign(_, expression):
            expressions: tuple[Expression, ...] = (expression,)
        case Create(call):
            expressions = call.arguments
        case _:
            return ()
    found: dict[str, None] = {}
    for expression, value in zip(expressions, values, strict=False):
        match expression:
            case Application("quote", (quoted,)):
                _search(quoted, value, (), found)
            case _:
                _search(expression, value, (), found)
    return tuple(found)


def _search(expression: Expression, pattern: Pattern, slots: Slots, found: dict[str, None]) -> None:
    match expression, pattern:
        case Variable(name, False), Slot():
            if read(pattern, slots) is UNDEFINED:
                found[name] = None
        case Variable(name, False), Term():
            if pattern is UNDEFINED:
                found[name] = None
        case Application(name, parts), Template(name=symbol, arguments=others) | Term(name=symbol, args=others):
            _search_all(parts, others if symbol == name else (), slots, found)
        case ListOf(parts), Template(arguments=others) | TermList(elements=others):
            _search_all(parts, others, slots, found)
        case _:
            pass


def _search_all(
    expressions: tuple[Expression, ...], patterns: tuple[Pattern, ...], slots: Slots, found: dict[str, None]
) -> None:
    if len(expressions) == len(patterns):
        for expression, pattern in zip(expressions, patterns, strict=True):
            _search(expression, pattern, slots, found)
