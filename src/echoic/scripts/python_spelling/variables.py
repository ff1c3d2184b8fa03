"""Variables: `X = var("X", int)`; `X` is its value, `X.q` is T-script's `X?`, `X.set(X + 1)` is `X := add(X, 1)`."""

import re
from typing import TYPE_CHECKING, Final, Generic, TypeVar, overload

from echoic.scripts.python_spelling.behaviours import Assignment
from echoic.scripts.python_spelling.formulas import Formula, Operand, formula
from echoic.scripts.python_spelling.places import here, refusal
from echoic.scripts.python_spelling.tools import ToolDeclaration
from echoic.scripts.python_spelling.types import Hint, type_of
from echoic.scripts.syntax.tree import Declaration, Expression, Span, Variable
from echoic.terms import Value

if TYPE_CHECKING:
    from echoic.scripts.python_spelling.builder import Builder

__all__ = ["Bound", "Result", "Var", "var", "variables"]

NAME: Final = re.compile(r"[A-Z][A-Za-z0-9_-]*")
T_co = TypeVar("T_co", covariant=True)


class Var(Formula, Generic[T_co]):
    """A variable, where its value is meant. As a hint, `L: Var[int]` declares a parameter of a process."""

    __slots__ = ("_type", "name", "tool")

    def __init__(self, name: str, hint: object, span: Span) -> None:
        self.name = name
        self.tool = hint if isinstance(hint, ToolDeclaration) else None
        self._type = type_of(hint, span)
        self.span = span

    @property
    def type(self) -> Value:
        """What it was declared with."""
        return self._type

    @property
    def q(self) -> "Bound":
        """The variable itself, to be bound: `X?`."""
        return Bound(self, here())

    def set(self, value: Operand) -> Assignment:
        """Return the step `X := value`."""
        span = here()
        return Assignment(self, formula(value, span), span)

    @property
    def declaration(self) -> Declaration:
        """What a `let` has of it."""
        return Declaration(self.name, self.type, self.span)

    def build(self, builder: "Builder", span: Span, *, evaluated: bool) -> Expression:  # noqa: ARG002 - as all have it
        """Return the occurrence."""
        return self.occurrence(builder, span)

    def occurrence(self, builder: "Builder", span: Span, *, result: bool = False) -> Variable:
        """Return an occurrence of the variable at a place."""
        builder.use_variable(self, span)
        return Variable(self.name, result, span)


class Result(Var[T_co]):
    """As a hint, `N: Result[int]` declares a parameter that brings a result back, `N : int ?`."""

    __slots__ = ()


class Bound(Formula):
    """A variable where it is bound: `X?`."""

    __slots__ = ("variable",)

    def __init__(self, variable: Var[object], span: Span) -> None:
        self.variable = variable
        self.span = span

    @property
    def type(self) -> Value:
        """That of the variable."""
        return self.variable.type

    def build(self, builder: "Builder", span: Span, *, evaluated: bool) -> Expression:  # noqa: ARG002 - it has its own
        """Return the occurrence."""
        return self.variable.occurrence(builder, self.span, result=True)


@overload
def var(name: str, hint: type[T_co]) -> Var[T_co]: ...
@overload
def var(name: str, hint: Hint = object) -> Var[object]: ...
def var(name: str, hint: Hint = object) -> Var[T_co] | Var[object]:
    """Return a variable; two of one name are the same one in a process.

    Args:
        name: Its name, with a capital letter first.
        hint: Its type: `int`, `float`, `str`, `bool`, `list`, `list[int]`, a tool, or T-script's text for it.

    Raises:
        ScriptError: It cannot be called so, or the type is none.
    """
    span = here()
    if not NAME.fullmatch(name):
        raise refusal(
            span, f"`{name}` is not the name of a variable: expected a capital letter, then letters, digits, `-`, `_`"
        )
    return Var(name, hint, span)


def variables(names: str, hint: Hint = object) -> tuple[Var[object], ...]:
    """Return several variables of one type, `X, Y` for `"X Y"`.

    Raises:
        ScriptError: As `var` does.
    """
    return tuple(var(name, hint) for name in names.split())
