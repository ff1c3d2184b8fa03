"""Behaviours: what a process does, put together by operators.

    Python                            T-script               binds in Python
    P * Q, loop(P).until(Q), loop(P)  P * Q, P * delta       tightest
    P >> Q                            P . Q
    P & Q                             P || Q
    P | Q                             P + Q                  loosest
    P.or_else(Q)                      P <+ Q                 P whenever it can
    right_biased(P, Q)                P +> Q                 Q whenever it can
    P.disrupted_by(Q)                 P >> Q
    when(test).then(P).otherwise(Q)   if test then P else Q fi
    let(X, Y)(P)                      let X : int, Y : int in P endlet
    X.set(X + 1).delay(2)             X := add(X, 1) delay(2)

Python's `&` binds tighter than its `|`, T-script's `||` less than its `+`: write parentheses where both stand together.
T-script's `>>`, disrupt, is a method here, as Python's `>>` is the only arrow there is for a sequence.

A behaviour is a small tree of its own until the script is made, so that variables without a `let` are found. Operators
that are associative are laid out then as the parser does it: a sequence to the right, choices and merges to the left.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from echoic.scripts.python_spelling.formulas import Formula, Operand, formula
from echoic.scripts.python_spelling.places import between, here, refusal
from echoic.scripts.syntax.building import CHAIN_MAX
from echoic.scripts.syntax.tree import (
    Assign,
    Atom,
    Choice,
    Conditional,
    Disrupt,
    Iteration,
    LeftBiased,
    Let,
    Merge,
    Process,
    RightBiased,
    Sequence,
    Span,
    Timing,
)

if TYPE_CHECKING:
    from echoic.scripts.python_spelling.builder import Builder
    from echoic.scripts.python_spelling.variables import Var

__all__ = [
    "Assignment",
    "Behaviour",
    "Expansion",
    "Step",
    "after",
    "atom",
    "left_biased",
    "let",
    "loop",
    "merge",
    "right_biased",
    "sequence",
    "when",
]

Combine: TypeAlias = type[Sequence | Choice | Merge | Iteration | Disrupt | LeftBiased | RightBiased]
FLATTENED: Final = frozenset({Sequence, Choice, Merge})


class Behaviour:
    """What a process does."""

    __slots__ = ("span",)
    span: Span

    def build(self, builder: "Builder") -> Process:
        """Return the tree of it; call `Builder.process`, which counts how deep it goes.

        Raises:
            ScriptError: It is not in order.
        """
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise refusal(here(), "what a process does is neither true nor false: use `|` and `&`, or `when`")

    def __rshift__(self, other: "Behaviour") -> "Behaviour":
        return _combine(Sequence, self, other)

    def __or__(self, other: "Behaviour") -> "Behaviour":
        return _combine(Choice, self, other)

    def __and__(self, other: "Behaviour") -> "Behaviour":
        return _combine(Merge, self, other)

    def __mul__(self, other: "Behaviour") -> "Behaviour":
        return _combine(Iteration, self, other)

    def or_else(self, other: "Behaviour") -> "Behaviour":
        """Return this where it can do something, else the other: `P <+ Q`."""
        return _combine(LeftBiased, self, other)

    def disrupted_by(self, other: "Behaviour") -> "Behaviour":
        """Return this, but until it has ended the other may take its place: T-script's `P >> Q`."""
        return _combine(Disrupt, self, other)

    def on_disconnect(self, tool: "Var[object]", otherwise: "Behaviour") -> "Behaviour":
        """Return this, but where a tool leaves or is lost before it has ended, what to do instead.

        It is `P >> (rec-disconnect(T) . Q)`.

        Args:
            tool: The variable that has the tool.
            otherwise: What to do without it.
        """
        span = here()
        return _combine(Disrupt, self, _combine(Sequence, Step("rec-disconnect", (tool,), span), otherwise))


class Operation(Behaviour):
    """Two behaviours and what stands between them."""

    __slots__ = ("combine", "left", "right")

    def __init__(self, combine: Combine, left: Behaviour, right: Behaviour) -> None:
        self.combine = combine
        self.left = left
        self.right = right
        self.span = between(left.span, right.span)

    def build(self, builder: "Builder") -> Process:
        """Return both in the tree."""
        if self.combine not in FLATTENED:
            return self.combine(builder.process(self.left), builder.process(self.right), self.span)
        operands = [builder.process(each) for each in self._operands(builder)]
        if self.combine is Sequence:
            made = operands[-1]
            for each in reversed(operands[:-1]):
                made = Sequence(each, made, between(each.span, made.span))
            return made
        return _joined(operands, self.combine)

    def _operands(self, builder: "Builder") -> list[Behaviour]:
        """Return what this operator and its equals inside stand between, from left to right."""
        found: list[Behaviour] = []
        waiting: list[Behaviour] = [self]
        while waiting:
            each = waiting.pop()
            if isinstance(each, Expansion):
                waiting.append(each.make(builder))
            elif isinstance(each, Operation) and each.combine is self.combine:
                waiting += (each.right, each.left)
            else:
                found.append(each)
        return found


class Step(Behaviour):
    """An atom: one step."""

    __slots__ = ("arguments", "name", "timing")

    def __init__(self, name: str, arguments: tuple[Formula, ...], span: Span) -> None:
        self.name = name
        self.arguments = arguments
        self.timing: tuple[tuple[str, tuple[Formula, ...], Span], ...] = ()
        self.span = span

    def delay(self, seconds: Operand) -> Self:
        """Return the step, but not before so many seconds have passed."""
        return self._timed("delay", seconds)

    def timeout(self, seconds: Operand) -> Self:
        """Return the step, but only until so many seconds have passed."""
        return self._timed("timeout", seconds)

    def abs_delay(self, *moment: Operand) -> Self:
        """Return the step, but not before a moment: year, month, day, hour, minute, second, from any of them on."""
        return self._timed("abs-delay", *moment)

    def abs_timeout(self, *moment: Operand) -> Self:
        """Return the step, but only until a moment."""
        return self._timed("abs-timeout", *moment)

    def build(self, builder: "Builder") -> Process:
        """Return the atom."""
        arguments = tuple(each.build(builder, self.span, evaluated=False) for each in self.arguments)
        return Atom(self.name, arguments, self.built_timing(builder), self.span)

    def built_timing(self, builder: "Builder") -> tuple[Timing, ...]:
        """Return what the tree has of its times."""
        return tuple(
            Timing(kind, tuple(each.build(builder, span, evaluated=True) for each in arguments), span)
            for kind, arguments, span in self.timing
        )

    def _copied(self) -> Self:
        """Return another one like it: a step that was delayed is not the one that was not."""
        made = object.__new__(type(self))
        for kind in type(self).__mro__:
            for slot in getattr(kind, "__slots__", ()):
                setattr(made, slot, getattr(self, slot))
        return made

    def _timed(self, kind: str, *arguments: Operand) -> Self:
        span = here()
        made = self._copied()
        made.timing = (*self.timing, (kind, tuple(formula(each, span) for each in arguments), span))
        return made


class Assignment(Step):
    """`X := E`."""

    __slots__ = ("value", "variable")

    def __init__(self, variable: "Var[object]", value: Formula, span: Span) -> None:
        super().__init__("", (), span)
        self.variable = variable
        self.value = value

    def build(self, builder: "Builder") -> Process:
        """Return the assignment."""
        variable = self.variable.occurrence(builder, self.span)
        value = self.value.build(builder, self.span, evaluated=True)
        return Assign(variable, value, self.built_timing(builder), self.span)


class Expansion(Behaviour):
    """Something that is made of other behaviours once it is known which names of variables are free."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[["Builder"], Behaviour], span: Span) -> None:
        self.make = make
        self.span = span

    def build(self, builder: "Builder") -> Process:
        """Return what it is made of."""
        return builder.process(self.make(builder))


class Loop(Behaviour):
    """`P * delta`, or, with `until`, `P * Q`."""

    __slots__ = ("body",)

    def __init__(self, body: Behaviour, span: Span) -> None:
        self.body = body
        self.span = span

    def until(self, last: Behaviour) -> Behaviour:
        """Return the loop that ends with a behaviour, once that is chosen."""
        return _combine(Iteration, self.body, last)

    def build(self, builder: "Builder") -> Process:
        """Return the iteration that does not end."""
        return Iteration(builder.process(self.body), Atom("delta", (), (), self.span), self.span)


class Guarded(Behaviour):
    """`if T then P fi`, or, with `otherwise`, `if T then P else Q fi`."""

    __slots__ = ("negative", "positive", "test")

    def __init__(self, test: Formula, positive: Behaviour, negative: Behaviour | None, span: Span) -> None:
        self.test = test
        self.positive = positive
        self.negative = negative
        self.span = span

    def otherwise(self, behaviour: Behaviour) -> "Guarded":
        """Return the same, with what is done where the test fails."""
        return Guarded(self.test, self.positive, _behaviour(behaviour, here()), self.span)

    def build(self, builder: "Builder") -> Process:
        """Return the conditional."""
        test = self.test.build(builder, self.test.span, evaluated=True)
        positive = builder.process(self.positive)
        negative = None if self.negative is None else builder.process(self.negative)
        return Conditional(test, positive, negative, self.span)


class Test:
    """A test, to be followed by `then`."""

    def __init__(self, test: Formula, span: Span) -> None:
        self._test = test
        self._span = span

    def then(self, behaviour: Behaviour) -> Guarded:
        """Return what is done where the test holds; it waits while the test fails, unless `otherwise` follows."""
        return Guarded(self._test, _behaviour(behaviour, here()), None, self._span)


class Declared(Behaviour):
    """`let X : int in P endlet`."""

    __slots__ = ("body", "variables")

    def __init__(self, variables: tuple["Var[object]", ...], body: Behaviour, span: Span) -> None:
        self.variables = variables
        self.body = body
        self.span = span

    def build(self, builder: "Builder") -> Process:
        """Return the `let`."""
        for each in self.variables:
            if each.tool is not None:
                builder.found.use_tool(each.tool)
        with builder.scope(self.variables):
            body = builder.process(self.body)
        return Let(tuple(each.declaration for each in self.variables), body, self.span)


def let(*variables: "Var[object]") -> Callable[[Behaviour], Behaviour]:
    """Return what declares variables for a behaviour: `let(X, Y)(P)`; they are undefined whenever it begins."""
    span = here()
    return lambda body: Declared(variables, _behaviour(body, span), span)


def loop(body: Behaviour) -> Loop:
    """Return a behaviour again and again, forever, or `.until` another is chosen."""
    return Loop(_behaviour(body, here()), here())


def when(test: Operand) -> Test:
    """Return a test of what follows: `when(X < 3).then(P).otherwise(Q)`."""
    span = here()
    return Test(formula(test, span), span)


def merge(first: Behaviour, *others: Behaviour) -> Behaviour:
    """Return all of them at the same time: `P || Q || ...`."""
    for each in others:
        first = _combine(Merge, first, each)
    return first


def sequence(first: Behaviour, *others: Behaviour) -> Behaviour:
    """Return all of them one after the other: `P . Q . ...`."""
    for each in others:
        first = _combine(Sequence, first, each)
    return first


def left_biased(left: Behaviour, right: Behaviour) -> Behaviour:
    """Return the left one whenever it can do something, else the right one: `P <+ Q`."""
    return _combine(LeftBiased, left, right)


def right_biased(left: Behaviour, right: Behaviour) -> Behaviour:
    """Return the right one whenever it can do something, else the left one: `P +> Q`."""
    return _combine(RightBiased, left, right)


def after(seconds: Operand) -> Step:
    """Return a step that does nothing, after so many seconds: `tau delay(seconds)`."""
    return Step("tau", (), here()).delay(seconds)


def atom(name: str, *arguments: Operand) -> Step:
    """Return an atom by its name in T-script."""
    span = here()
    return Step(name, tuple(formula(each, span) for each in arguments), span)


def _behaviour(value: object, span: Span) -> Behaviour:
    if not isinstance(value, Behaviour):
        advice = ": call it" if callable(value) else ""
        raise refusal(span, f"expected what a process does, got `{type(value).__name__}`{advice}")
    return value


def _combine(kind: Combine, left: object, right: object) -> Behaviour:
    span = here()
    return Operation(kind, _behaviour(left, span), _behaviour(right, span))


def _joined(operands: list[Process], combine: Combine) -> Process:
    """Return `(P op Q) op R`, or, where they are very many, halves of halves, as the parser does."""
    if len(operands) > CHAIN_MAX:
        return _halved(operands, combine)
    made = operands[0]
    for each in operands[1:]:
        made = combine(made, each, between(made.span, each.span))
    return made


def _halved(operands: list[Process], combine: Combine) -> Process:
    if len(operands) == 1:
        return operands[0]
    middle = (len(operands) + 1) // 2
    left, right = _halved(operands[:middle], combine), _halved(operands[middle:], combine)
    return combine(left, right, between(left.span, right.span))
