"""Rules of the grammar to nodes of the tree: one method for every rule and alias of `grammar.py`, called by lark.

A method gets what the rule matched, tokens and nodes, in order. There is no state, so that one parser serves everybody.
"""

from collections.abc import Callable
from typing import Final, TypeAlias, cast

from echoic.scripts.syntax.tokens import Token, string_value
from echoic.scripts.syntax.tree import (
    Application,
    Assign,
    Atom,
    Call,
    ChannelNote,
    Choice,
    Conditional,
    Configuration,
    Constant,
    Create,
    Declaration,
    Disrupt,
    Expression,
    Formal,
    Iteration,
    LeftBiased,
    Let,
    ListOf,
    Merge,
    PlaceholderOf,
    Process,
    ProcessDefinition,
    RightBiased,
    Sequence,
    Span,
    Timing,
    ToolDefinition,
    Variable,
)
from echoic.terms import UNDEFINED, Placeholder, Term, TermList, Value

__all__ = ["CHAIN_MAX", "Builder", "Definition"]

CHAIN_MAX: Final = 64
CONSTANTS: Final[dict[str, Value]] = {"true": True, "false": False, "undefined": UNDEFINED}

Definition: TypeAlias = ProcessDefinition | ToolDefinition | Configuration | ChannelNote
Children: TypeAlias = list[object]
Located: TypeAlias = Token | Expression | Process | Timing
Combine: TypeAlias = Callable[[Process, Process, Span], Process]


class Builder:
    """What lark calls."""

    def start(self, children: Children) -> list[Definition]:
        """Return the definitions of a script."""
        return cast("list[Definition]", children)

    def process_definition(self, children: Children) -> ProcessDefinition:
        """Return `process NAME formals is body`."""
        name = _token(children[1])
        formals = cast("tuple[Formal, ...]", children[2]) if len(children) == 5 else ()
        return ProcessDefinition(name.text, formals, cast("Process", children[-1]), _span(name, name))

    def tool_definition(self, children: Children) -> ToolDefinition:
        """Return `tool word formals is { features }`."""
        name = _token(children[1])
        formals = cast("tuple[Formal, ...]", children[2]) if type(children[2]) is tuple else ()
        features = tuple(each.pair for each in children if isinstance(each, _Feature))
        return ToolDefinition(name.text, formals, features, _span(name, name))

    def configuration(self, children: Children) -> Configuration:
        """Return `toolbus(calls)`."""
        calls = tuple(each for each in children if isinstance(each, Call))
        return Configuration(calls, _span(_token(children[0]), _token(children[0])))

    def channel_note(self, children: Children) -> ChannelNote:
        """Return `note channel "name" as pattern`."""
        channel = _token(children[2])
        return ChannelNote(string_value(channel.text), cast("Value", children[4]), _span(channel, channel))

    def formals(self, children: Children) -> tuple[Formal, ...]:
        """Return what stands in parentheses."""
        return tuple(each for each in children if isinstance(each, Formal))

    def formal(self, children: Children) -> Formal:
        """Return `NAME : type ?`."""
        name = _token(children[0])
        return Formal(name.text, cast("Value", children[2]), len(children) == 4, _span(name, name))

    def feature(self, children: Children) -> "_Feature":
        """Return `name = "text"`."""
        return _Feature((_token(children[0]).text, string_value(_token(children[2]).text)))

    def merge(self, children: Children) -> Process:
        """Return `P || Q || ...`."""
        return _from_left(children, Merge, balanced=True)

    def right_biased(self, children: Children) -> Process:
        """Return `P +> Q +> ...`."""
        return _from_right(children, RightBiased)

    def left_biased(self, children: Children) -> Process:
        """Return `P <+ Q <+ ...`."""
        return _from_left(children, LeftBiased)

    def choice(self, children: Children) -> Process:
        """Return `P + Q + ...`."""
        return _from_left(children, Choice, balanced=True)

    def sequence(self, children: Children) -> Process:
        """Return `P . Q . ...`."""
        return _from_right(children, Sequence)

    def iteration(self, children: Children) -> Process:
        """Return `P * Q * ...`."""
        return _from_left(children, Iteration)

    def disrupt(self, children: Children) -> Process:
        """Return `P >> Q >> ...`."""
        return _from_left(children, Disrupt)

    def group(self, children: Children) -> Process:
        """Return `( P )`."""
        return cast("Process", children[1])

    def conditional(self, children: Children) -> Conditional:
        """Return `if T then P else Q fi`."""
        otherwise = cast("Process", children[5]) if len(children) == 7 else None
        return Conditional(cast("Expression", children[1]), cast("Process", children[3]), otherwise, _whole(children))

    def let(self, children: Children) -> Let:
        """Return `let declarations in P endlet`."""
        declarations = tuple(each for each in children if isinstance(each, Declaration))
        return Let(declarations, cast("Process", children[-2]), _whole(children))

    def declaration(self, children: Children) -> Declaration:
        """Return `NAME : type`."""
        name = _token(children[0])
        return Declaration(name.text, cast("Value", children[2]), _span(name, name))

    def call(self, children: Children) -> Call:
        """Return `NAME(terms)`."""
        return Call(_token(children[0]).text, _arguments(children), _whole(children))

    def plain(self, children: Children) -> Atom:
        """Return `delta` or `tau`."""
        return Atom(_token(children[0]).text, (), _timing(children), _span(_token(children[0]), _token(children[0])))

    def atom(self, children: Children) -> Atom:
        """Return an atom with arguments and its timing."""
        timing = _timing(children)
        last = _token(children[-1 - len(timing)])
        return Atom(_token(children[0]).text, _arguments(children), timing, _span(_token(children[0]), last))

    def assign(self, children: Children) -> Assign:
        """Return `NAME := term`."""
        name, expression = _token(children[0]), cast("Expression", children[2])
        variable = Variable(name.text, False, _span(name, name))
        return Assign(variable, expression, _timing(children), _span(name, expression))

    def create(self, children: Children) -> Create:
        """Return `create(call, result)`."""
        call, result = cast("Call", children[2]), cast("Expression", children[4])
        return Create(call, result, _timing(children), _span(_token(children[0]), _token(children[5])))

    def timing(self, children: Children) -> Timing:
        """Return `delay(term)` and the like."""
        return Timing(_token(children[0]).text, _arguments(children), _whole(children))

    def terms(self, children: Children) -> tuple[Expression, ...]:
        """Return terms between commas."""
        return tuple(cast("list[Expression]", children[::2]))

    def integer(self, children: Children) -> Constant:
        """Return a number."""
        return Constant(int(_token(children[0]).text), _whole(children))

    def real(self, children: Children) -> Constant:
        """Return a number with a fraction."""
        return Constant(float(_token(children[0]).text), _whole(children))

    def string(self, children: Children) -> Constant:
        """Return a string."""
        return Constant(string_value(_token(children[0]).text), _whole(children))

    def constant(self, children: Children) -> Constant:
        """Return `true`, `false` or `undefined`."""
        return Constant(CONSTANTS[_token(children[0]).text], _whole(children))

    def variable(self, children: Children) -> Variable:
        """Return `NAME` or `NAME?`."""
        return Variable(_token(children[0]).text, len(children) == 2, _whole(children))

    def application(self, children: Children) -> Application:
        """Return `word(terms)`."""
        return Application(_token(children[0]).text, _arguments(children), _whole(children))

    def list_of(self, children: Children) -> ListOf:
        """Return `[terms]`."""
        return ListOf(_arguments(children), _whole(children))

    def placeholder_of(self, children: Children) -> PlaceholderOf:
        """Return `<type>`."""
        return PlaceholderOf(cast("Value", children[1]), _whole(children))

    def types(self, children: Children) -> "_Types":
        """Return types between commas."""
        return _Types(cast("list[Value]", children[::2]))

    def integer_type(self, children: Children) -> Value:
        """Return a number."""
        return int(_token(children[0]).text)

    def real_type(self, children: Children) -> Value:
        """Return a number with a fraction."""
        return float(_token(children[0]).text)

    def string_type(self, children: Children) -> Value:
        """Return a string."""
        return string_value(_token(children[0]).text)

    def constant_type(self, children: Children) -> Value:
        """Return `true`, `false` or `undefined`."""
        return CONSTANTS[_token(children[0]).text]

    def application_type(self, children: Children) -> Value:
        """Return `word(types)`."""
        return Term(_token(children[0]).text, *_types(children))

    def list_type(self, children: Children) -> Value:
        """Return `[types]`."""
        return TermList(*_types(children))

    def placeholder_type(self, children: Children) -> Value:
        """Return `<type>`."""
        return Placeholder(cast("Value", children[1]))


class _Feature:
    """A feature of a tool, told apart from tokens and formals."""

    __slots__ = ("pair",)

    def __init__(self, pair: tuple[str, str]) -> None:
        self.pair = pair


class _Types(list[Value]):
    """Types in parentheses, told apart from tokens and from a type."""

    __slots__ = ()


def _types(children: Children) -> list[Value]:
    return next((each for each in children if isinstance(each, _Types)), _Types())


def _token(child: object) -> Token:
    return cast("Token", child)


def _arguments(children: Children) -> tuple[Expression, ...]:
    """Return the terms in parentheses, if there are any; tokens are tuples too, of another kind."""
    for child in children:
        if type(child) is tuple:
            return cast("tuple[Expression, ...]", child)
    return ()


def _timing(children: Children) -> tuple[Timing, ...]:
    return tuple(each for each in children if type(each) is Timing)


def _whole(children: Children) -> Span:
    return _span(cast("Located", children[0]), cast("Located", children[-1]))


def _span(first: Located, last: Located) -> Span:
    """Return where something stands that begins with one thing and ends with another."""
    start = first if isinstance(first, Token) else first.span
    end = last if isinstance(last, Token) else last.span
    if start.file != end.file or (end.end_line, end.end_column) < (start.end_line, start.end_column):
        end = start  # a macro or an include lies between them
    return Span(start.file, start.line, start.column, end.end_line, end.end_column)


def _operands(children: Children) -> list[Process]:
    return cast("list[Process]", children[::2])


def _from_left(children: Children, combine: Combine, *, balanced: bool = False) -> Process:
    """Return `(P op Q) op R`.

    `+` and `||` are associative: where they have very many operands these are halved and halved again, so that the tree
    does not become as deep as it is wide.
    """
    operands = _operands(children)
    if balanced and len(operands) > CHAIN_MAX:
        return _halved(operands, combine)
    made = operands[0]
    for operand in operands[1:]:
        made = combine(made, operand, _span(made, operand))
    return made


def _halved(operands: list[Process], combine: Combine) -> Process:
    if len(operands) == 1:
        return operands[0]
    middle = (len(operands) + 1) // 2
    left, right = _halved(operands[:middle], combine), _halved(operands[middle:], combine)
    return combine(left, right, _span(left, right))


def _from_right(children: Children, combine: Combine) -> Process:
    """Return `P op (Q op R)`."""
    operands = _operands(children)
    made = operands[-1]
    for operand in reversed(operands[:-1]):
        made = combine(operand, made, _span(operand, made))
    return made
