"""Tools of a script, as Python declares them: `calc = tool("calc", command="python calc.py")`."""

from typing import TYPE_CHECKING, Final

from echoic.scripts.python_spelling.formulas import Data, Formula, Operand, formula
from echoic.scripts.python_spelling.places import here
from echoic.scripts.python_spelling.types import Hint, type_of
from echoic.scripts.syntax.tree import Expression, Formal, Span, ToolDefinition
from echoic.terms import Term

if TYPE_CHECKING:
    from echoic.scripts.python_spelling.builder import Builder

__all__ = ["Executed", "ToolDeclaration", "tool"]


class ToolDeclaration:
    """A tool of a script: the type of variables for it, and, called, what `execute` starts."""

    def __init__(
        self, name: str, formals: tuple[Formal, ...], features: tuple[tuple[str, str], ...], span: Span
    ) -> None:
        self.name: Final = name
        self.formals: Final = formals
        self.features: Final = features
        self.span: Final = span

    @property
    def type(self) -> Term:
        """The type of its instances."""
        return Term(self.name)

    @property
    def definition(self) -> ToolDefinition:
        """What the tree has of it."""
        return ToolDefinition(self.name, self.formals, self.features, self.span)

    def __call__(self, *arguments: Operand) -> "Executed":
        """Return the tool with its arguments, for `execute`."""
        span = here()
        return Executed(self, tuple(formula(each, span) for each in arguments), span)


class Executed(Data):
    """A tool with its arguments."""

    __slots__ = ("tool",)

    def __init__(self, tool: ToolDeclaration, arguments: tuple[Formula, ...], span: Span) -> None:
        super().__init__(tool.name, arguments, span)
        self.tool = tool

    def build(self, builder: "Builder", span: Span, *, evaluated: bool) -> Expression:
        """Return the application, and make the tool part of the script."""
        builder.found.use_tool(self.tool)
        return super().build(builder, span, evaluated=evaluated)


def tool(name: str, formals: dict[str, Hint] | None = None, **features: str) -> ToolDeclaration:
    """Return the declaration of a tool.

    Args:
        name: Its name in the script.
        formals: The types of its arguments by their names, which its command can have in it.
        features: `command="python calc.py"`, `host`, `details`, `kind`, `class_`, `channel`, `derive`.

    Raises:
        ScriptError: It cannot be called so, or has arguments of no type.
    """
    span = here()
    Data(name, (), span)
    declared = tuple(Formal(each, type_of(hint, span), False, span) for each, hint in (formals or {}).items())
    return ToolDeclaration(name, declared, tuple((each.rstrip("_"), text) for each, text in features.items()), span)
