"""Terms and expressions: patterns that are filled in, and formulas that are evaluated.

    term.bid("ann", X.q)     bid("ann", X?)       data: a symbol and its arguments
    X + 1, X < Y, fn.size(L) add(X, 1), ...       functions: evaluated, in `set`, tests, times and `create`

T-script writes both alike, and so `snd-msg(f(add(X,1)))` sends the term `add(5,1)`, and `X := f(1)` is refused. Python
knows which is which: a function where nothing is evaluated is an error, and data where something is gets its `quote`.

Operators go by the types of their operands: `+` is `add`, `radd`, `concat` or `join`. `//` and `%` are `div` and `mod`,
which round towards zero, as C does and Python does not. `==` and `!=` make formulas too, so that a formula has no truth
value in Python: `and`, `or`, `not` are `&`, `|`, `~`, and comparisons beside them stand in parentheses.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, Union

from echoic.scripts.checking import SIGNATURES
from echoic.scripts.python_spelling.places import here, refusal
from echoic.scripts.python_spelling.types import ANY, Hint, kind_of, type_of
from echoic.scripts.syntax.problems import counted, did_you_mean
from echoic.scripts.syntax.tokens import KINDS, NESTING_MAX
from echoic.scripts.syntax.tree import Application, Constant, Expression, ListOf, PlaceholderOf, Span
from echoic.terms import UNDEFINED, Annotated, Placeholder, Term, TermList, Value

if TYPE_CHECKING:
    from echoic.scripts.python_spelling.builder import Builder

__all__ = ["Data", "Formula", "Function", "Functions", "Operand", "Terms", "fn", "formula", "hole", "term"]

IDENTIFIER: Final = re.compile(r"[a-z][A-Za-z0-9_-]*")
WORDS: Final = frozenset({"IDENT", "FEATURE", "CHANNEL", "NOTE", "AS"})
UNEVALUATED: Final = frozenset({"quote", "is-var", "is-result-var"})
OPERATORS: Final[dict[str, dict[str, str]]] = {
    "+": {"int": "add", "real": "radd", "str": "concat", "list": "join"},
    "-": {"int": "sub", "real": "rsub"},
    "*": {"int": "mul", "real": "rmul"},
    "/": {"real": "rdiv"},
    "//": {"int": "div"},
    "%": {"int": "mod"},
    "<": {"int": "less", "real": "rless"},
    "<=": {"int": "less-equal", "real": "rless-equal"},
    ">": {"int": "greater", "real": "rgreater"},
    ">=": {"int": "greater-equal", "real": "rgreater-equal"},
}


class Formula:
    """Something that stands for a term; its operators make further ones."""

    __slots__ = ("span",)
    __hash__ = object.__hash__
    __iter__ = None
    span: Span

    @property
    def type(self) -> Value:
        """The type of what it stands for, `term` where that is not known."""
        return ANY

    def build(self, builder: "Builder", span: Span, *, evaluated: bool) -> Expression:
        """Return the tree of it.

        Args:
            builder: Learns of its variables.
            span: Where it is used, for what has no place of its own.
            evaluated: Whether it is evaluated there, or only filled in.

        Raises:
            ScriptError: It makes no sense there.
        """
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise refusal(
            here(), "a formula is true or false when the script runs: use `&`, `|`, `~` and parentheses, or `when`"
        )

    def __eq__(self, other: "Operand") -> "Function":  # type: ignore[override] # as in a script, not now
        return _call("equal", self, other)

    def __ne__(self, other: "Operand") -> "Function":  # type: ignore[override] # as in a script, not now
        return _call("not-equal", self, other)

    def __add__(self, other: "Operand") -> "Function":
        return _operate("+", self, other)

    def __radd__(self, other: "Operand") -> "Function":
        return _operate("+", other, self)

    def __sub__(self, other: "Operand") -> "Function":
        return _operate("-", self, other)

    def __rsub__(self, other: "Operand") -> "Function":
        return _operate("-", other, self)

    def __mul__(self, other: "Operand") -> "Function":
        return _operate("*", self, other)

    def __rmul__(self, other: "Operand") -> "Function":
        return _operate("*", other, self)

    def __truediv__(self, other: "Operand") -> "Function":
        return _operate("/", self, other)

    def __rtruediv__(self, other: "Operand") -> "Function":
        return _operate("/", other, self)

    def __floordiv__(self, other: "Operand") -> "Function":
        return _operate("//", self, other)

    def __rfloordiv__(self, other: "Operand") -> "Function":
        return _operate("//", other, self)

    def __mod__(self, other: "Operand") -> "Function":
        return _operate("%", self, other)

    def __rmod__(self, other: "Operand") -> "Function":
        return _operate("%", other, self)

    def __lt__(self, other: "Operand") -> "Function":
        return _operate("<", self, other)

    def __le__(self, other: "Operand") -> "Function":
        return _operate("<=", self, other)

    def __gt__(self, other: "Operand") -> "Function":
        return _operate(">", self, other)

    def __ge__(self, other: "Operand") -> "Function":
        return _operate(">=", self, other)

    def __neg__(self) -> "Function":
        return _operate("-", 0, self)

    def __abs__(self) -> "Function":
        return _call("rabs" if kind_of(self.type) == "real" else "abs", self)

    def __and__(self, other: "Operand") -> "Function":
        return _call("and", self, other)

    def __rand__(self, other: "Operand") -> "Function":
        return _call("and", other, self)

    def __or__(self, other: "Operand") -> "Function":
        return _call("or", self, other)

    def __ror__(self, other: "Operand") -> "Function":
        return _call("or", other, self)

    def __invert__(self) -> "Function":
        return _call("not", self)


Operand: TypeAlias = Union[Formula, Value, Sequence["Operand"]]  # noqa: UP007 - it is used in further unions
"""What can stand where a term does: a formula, or a Python value."""


class Literal(Formula):
    """A number, string, truth value, or `undefined`."""

    __slots__ = ("value",)

    def __init__(self, value: Value, span: Span) -> None:
        self.value = value
        self.span = span

    @property
    def type(self) -> Value:
        """That of the value."""
        return ANY if self.value is UNDEFINED else type_of(type(self.value), self.span)

    def build(self, builder: "Builder", span: Span, *, evaluated: bool) -> Expression:  # noqa: ARG002 - as all have it
        """Return the constant."""
        return Constant(self.value, span)


class Listed(Formula):
    """A list of formulas."""

    __slots__ = ("elements",)

    def __init__(self, elements: tuple[Formula, ...], span: Span) -> None:
        self.elements = elements
        self.span = span

    @property
    def type(self) -> Value:
        """Any list."""
        return Term("list")

    def build(self, builder: "Builder", span: Span, *, evaluated: bool) -> Expression:
        """Return the list."""
        return ListOf(tuple(each.build(builder, span, evaluated=evaluated) for each in self.elements), span)


class Hole(Formula):
    """A place for values of a type: `<int>`."""

    __slots__ = ("held",)

    def __init__(self, held: Value, span: Span) -> None:
        self.held = held
        self.span = span

    def build(self, builder: "Builder", span: Span, *, evaluated: bool) -> Expression:  # noqa: ARG002 - as all have it
        """Return the placeholder."""
        return PlaceholderOf(self.held, self.span)


class Data(Formula):
    """A symbol with arguments; called, the same symbol with others: `term.bid` is `bid`, `term.bid(1)` is `bid(1)`."""

    __slots__ = ("arguments", "name")

    def __init__(self, name: str, arguments: tuple[Formula, ...], span: Span) -> None:
        if not IDENTIFIER.fullmatch(name):
            raise refusal(
                span, f"`{name}` is not the name of a term: expected a small letter, then letters, digits, `-`, `_`"
            )
        if KINDS.get(name, "IDENT") not in WORDS:
            raise refusal(span, f"`{name}` is a word of the language, and cannot be the name of a term")
        self.name = name
        self.arguments = arguments
        self.span = span

    def __call__(self, *arguments: Operand) -> "Data":
        """Return the symbol with these arguments."""
        span = here()
        return Data(self.name, tuple(formula(each, span) for each in arguments), span)

    def build(self, builder: "Builder", span: Span, *, evaluated: bool) -> Expression:  # noqa: ARG002 - it has its own
        """Return the application, in a `quote` where it would be evaluated."""
        arguments = tuple(each.build(builder, self.span, evaluated=False) for each in self.arguments)
        made = Application(self.name, arguments, self.span)
        if evaluated and (arguments or self.name in SIGNATURES):
            return Application("quote", (made,), self.span)
        return made


class Function(Formula):
    """A function of the language, applied."""

    __slots__ = ("arguments", "name")

    def __init__(self, name: str, arguments: tuple[Formula, ...], span: Span) -> None:
        self.name = name
        self.arguments = arguments
        self.span = span

    @property
    def type(self) -> Value:
        """What the function returns."""
        return SIGNATURES[self.name].result

    def build(self, builder: "Builder", span: Span, *, evaluated: bool) -> Expression:  # noqa: ARG002 - it has its own
        """Return the application, where it is evaluated."""
        if not evaluated:
            problem = f"nothing is evaluated here, and `{self.name}` would stay as it is"
            raise refusal(self.span, f"{problem}: `set` a variable to it and use that")
        inner = self.name not in UNEVALUATED
        arguments = tuple(each.build(builder, self.span, evaluated=inner) for each in self.arguments)
        return Application(self.name, arguments, self.span)


class Terms:
    """Makes data: `term.get_text(X)` is `get-text(X)`; `term("get_text", X)` takes the name as it is."""

    def __getattr__(self, name: str) -> Data:
        """Return a symbol.

        Raises:
            AttributeError: No symbol is called so.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        return Data(name.rstrip("_").replace("_", "-"), (), here())

    def __call__(self, name: str, *arguments: Operand) -> Data:
        """Return a symbol with arguments.

        Raises:
            ScriptError: No symbol can be called so.
        """
        span = here()
        return Data(name, tuple(formula(each, span) for each in arguments), span)


class Functions:
    """The functions of the language: `fn.is_empty(L)` is `is-empty(L)`; those with Python's names end with `_`."""

    def __getattr__(self, name: str) -> "Applicable":
        """Return a function.

        Raises:
            AttributeError: There is none of this name.
        """
        called = name.rstrip("_").replace("_", "-")
        if called in SIGNATURES:
            return Applicable(called)
        advice = "" if name.startswith("__") else did_you_mean(called, SIGNATURES)
        raise AttributeError(f"there is no function `{called}`{advice}", name=name, obj=self)


class Applicable:
    """A function, to be called."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Operand) -> Function:
        """Return the function applied.

        Raises:
            ScriptError: It has another number of arguments.
        """
        return _call(self.name, *arguments)


term: Final = Terms()
fn: Final = Functions()


def hole(hint: Hint) -> Formula:
    """Return a place for values of a type, `<int>`; for `subscribe`, and for what a pattern does not look at.

    Raises:
        ScriptError: It is not a type.
    """
    span = here()
    return Hole(type_of(hint, span), span)


def formula(value: object, span: Span, depth: int = 0) -> Formula:
    """Return a Python value as a formula.

    Raises:
        ScriptError: No script can have it, or it is nested too deeply.
    """
    if depth > NESTING_MAX:
        raise refusal(span, f"this is nested deeper than {NESTING_MAX}")
    match value:
        case Formula():
            return value
        case bool() | int() | float() | str():
            return Literal(value, span)
        case Term() if value is UNDEFINED:
            return Literal(UNDEFINED, span)
        case Term(name=name, args=arguments, quoted=False):
            return Data(name, tuple(formula(each, span, depth + 1) for each in arguments), span)
        case Placeholder():
            return Hole(value.type, span)
        case list() | tuple() | TermList():
            return Listed(tuple(formula(each, span, depth + 1) for each in value), span)
        case bytes() | Annotated() | Term():
            raise refusal(span, f"a script cannot have this written into it, got `{str(value)[:60]}`")
        case _:
            raise refusal(span, f"expected a formula or a value, got `{type(value).__name__}`")


def _call(name: str, *arguments: Operand) -> Function:
    span = here()
    wanted = len(SIGNATURES[name].arguments)
    if len(arguments) != wanted:
        raise refusal(span, f"function `{name}` has {counted(wanted, 'argument')}, got {len(arguments)}")
    return Function(name, tuple(formula(each, span) for each in arguments), span)


def _operate(sign: str, left: Operand, right: Operand) -> Function:
    """Return the function that an operator is for operands of these types."""
    span = here()
    one, other = formula(left, span), formula(right, span)
    kinds = {kind_of(one.type), kind_of(other.type)} - {"term"}
    if kinds == {"int", "real"}:
        one, other = _as_real(one), _as_real(other)
        kinds = {kind_of(one.type), kind_of(other.type)}
    names = OPERATORS[sign]
    if sign == "+" and "list" in kinds:
        return Function("join", (one, other), span)
    name = names.get(*kinds) if len(kinds) == 1 else None
    if name is not None:
        return Function(name, (one, other), span)
    if not kinds:
        choices = " or ".join(f"`fn.{each.replace('-', '_')}`" for each in names.values())
        raise refusal(span, f"`{sign}` does not know the types of its operands: write {choices}")
    advice = ": write `//`, which rounds towards zero" if (sign, kinds) == ("/", {"int"}) else ""
    if kinds == {"int", "real"}:
        advice = ": write `fn.int_to_real`"
    raise refusal(span, f"`{sign}` is not for `{one.type!s}` and `{other.type!s}`{advice}")


def _as_real(operand: Formula) -> Formula:
    """Return a number that is written down as a real one."""
    if isinstance(operand, Literal) and type(operand.value) is int:
        return Literal(float(operand.value), operand.span)
    return operand
