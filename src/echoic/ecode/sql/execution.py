"""Running a program on SQL terms instead of numbers.

Variables and fields of `output` hold terms; an assignment replaces one. Where the ways part, both are gone: if they
meet again, every place that differs becomes a choice, `if(test, one, other)`; if one of them ends with `return`, what
follows belongs to the other only, so that what is rejected early needs no choice at all. That makes

    if (input.price > param.high) return 0;             (NOT (price > 78.5D ...)) AND (volume > 100L)
    return input.volume > 100;

Loops, statics, the context and whatever may fault are refused. Texts may grow with every choice, and do so quickly
where variables are used several times; a program is given up when a text gets larger than Spark takes well.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from echoic.ecode.analysis.traversal import walk
from echoic.ecode.numbers import FLOAT64
from echoic.ecode.sql.columns import column_of, element_of, literal, load_column, load_parameter, parameter_text
from echoic.ecode.sql.facts import nonzero_if
from echoic.ecode.sql.operations import arithmetic, called, compared, converted, inverted, negated
from echoic.ecode.sql.terms import (
    FALSE,
    TEXT_MAX,
    TRUE,
    Chars,
    Integer,
    Term,
    Truth,
    as_real,
    condition,
    constant,
    either,
    negation,
    refused,
    settled,
    truth,
)
from echoic.ecode.typed import (
    Arithmetic,
    Assign,
    AssignText,
    Block,
    Break,
    Choose,
    Compare,
    Constant,
    ContextCall,
    Continue,
    Convert,
    Declare,
    Evaluate,
    If,
    Invert,
    Length,
    Load,
    Local,
    Location,
    Logical,
    Loop,
    MathCall,
    Negate,
    Not,
    Place,
    Position,
    Resize,
    Return,
    Sequence,
    Statement,
    Text,
    TextByte,
    TextEqual,
    TextLiteral,
    Update,
    Value,
)
from echoic.formats import Kind

if TYPE_CHECKING:
    from echoic.ecode.program import Program

__all__ = ["End", "Execution", "Key"]

STEPS_MAX: Final = 5000  # statements, each counted once for every way that leads to it
LENGTH_MAX: Final = 0xFFFF_FFFF

Key: TypeAlias = tuple[str, int, int]
"""A variable's serial number and an offset in it, or "output" and an offset in the record."""
State: TypeAlias = dict[Key, Term | Chars]


@dataclass(frozen=True, slots=True)
class End:
    """What is returned, and what `output` holds then."""

    result: Term
    output: State


class Execution:
    """Runs one program."""

    def __init__(self, program: "Program", params: bytes) -> None:
        self._signature = program.signature
        self._params = params
        self._state: State = {}
        self._nonzero: frozenset[str] = frozenset()
        self._steps = 0

    def run(self, body: Block) -> End:
        """Return how the program ends.

        Raises:
            ECodeError: It does what cannot be said.
        """
        return self._run(body.statements, body.at)

    def _run(self, statements: tuple[Statement, ...], at: Position) -> End:
        for place, statement in enumerate(statements):
            self._count(statement.at)
            rest = statements[place + 1 :]
            match statement:
                case Block(statements=inner):
                    return self._run((*inner, *rest), statement.at)
                case Return(value=value):
                    result = self.value(value)
                    return End(result, {key: term for key, term in self._state.items() if key[0] == "output"})
                case If():
                    ended = self._if(statement, rest)
                    if ended is not None:
                        return ended
                case _:
                    self._plain(statement)
        raise refused("control reaches the end", at)

    def _plain(self, statement: Statement) -> None:
        """Run a statement behind which it goes on."""
        match statement:
            case Block(statements=inner):
                for each in inner:
                    self._count(each.at)
                    self._plain(each)
            case Evaluate(value=value):
                self.value(value)
            case Declare():
                self._declare(statement)
            case AssignText():
                self._assign_text(statement)
            case If():
                self._branch(statement)
            case Loop() | Break() | Continue():
                raise refused("there is a loop", statement.at)
            case ContextCall():
                raise refused("the context of the source is not there", statement.at)
            case Resize():
                raise refused("a dynamic array is written", statement.at)
            case Return():
                raise refused("there is a `return` where none was expected", statement.at)

    def _count(self, at: Position) -> None:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise refused(f"there are too many ways through the code, limit is {STEPS_MAX} statements on all", at)

    def _if(self, statement: If, rest: tuple[Statement, ...]) -> End | None:
        """Run an `if`; return how the program ends if it, or what follows, was run to the end."""
        if not _returns(statement):
            self._branch(statement)
            return None
        test = condition(self.value(statement.test), statement.at)
        yes = (statement.yes, *rest)
        no = rest if statement.no is None else (statement.no, *rest)
        if test in (TRUE, FALSE):
            return self._run(yes if test == TRUE else no, statement.at)
        before = self._state
        self._state = dict(before)
        with self._knowing(statement.test, holds=True):
            ended = self._run(yes, statement.at)
        self._state = dict(before)
        with self._knowing(statement.test, holds=False):
            otherwise = self._run(no, statement.at)
        return self._joined(test, ended, otherwise, statement.at)

    def _joined(self, test: str, yes: End, no: End, at: Position) -> End:
        """Return two ends as one; what `output` holds where an event is rejected does not matter."""
        result = either(test, yes.result, no.result, at)
        if _is_zero(yes.result):
            return End(self._checked(result, at), no.output)
        if _is_zero(no.result):
            return End(self._checked(result, at), yes.output)
        return End(self._checked(result, at), self._merged(test, yes.output, no.output, at))

    def _branch(self, statement: If) -> None:
        """Run an `if` behind both ways of which it goes on."""
        test = condition(self.value(statement.test), statement.at)
        before = self._state
        self._state = dict(before)
        if test != FALSE:
            with self._knowing(statement.test, holds=True):
                self._plain(statement.yes)
        after_yes, self._state = self._state, dict(before)
        if test != TRUE and statement.no is not None:
            with self._knowing(statement.test, holds=False):
                self._plain(statement.no)
        self._state = self._merged(test, after_yes, self._state, statement.at)

    def _merged(self, test: str, yes: State, no: State, at: Position) -> State:
        """Return what places hold after one of two ways. A place of only one of them is zero, or not used again."""
        merged: State = {}
        for key in yes.keys() | no.keys():
            one = yes[key] if key in yes else _zero_like(no[key])
            other = no[key] if key in no else _zero_like(yes[key])
            merged[key] = one if one == other else self._choice(test, one, other, at)
        return merged

    def _choice(self, test: str, one: Term | Chars, other: Term | Chars, at: Position) -> Term | Chars:
        if test in (TRUE, FALSE):
            return one if test == TRUE else other
        if isinstance(one, Chars) and isinstance(other, Chars):
            binary = one.binary or other.binary
            texts = [as_binary(each) if binary else each.text for each in (one, other)]
            return Chars(f"if({test}, {texts[0]}, {texts[1]})", binary, width=one.width)
        if isinstance(one, Chars) or isinstance(other, Chars):
            raise refused("a place holds a text or a number", at)
        return self._checked(either(test, one, other, at), at)

    def _checked(self, term: Term, at: Position) -> Term:
        """Return a term that is not too large.

        Raises:
            ECodeError: It is.
        """
        size = len(term.text) + (len(term.wide) if isinstance(term, Integer) else 0)
        if size > TEXT_MAX:
            raise refused(f"the SQL would have {size} characters here, limit is {TEXT_MAX}", at)
        return term

    def value(self, value: Value) -> Term:
        """Return what a value is at this place of the program.

        Raises:
            ECodeError: It cannot be said.
        """
        match value:
            case Constant():
                return constant(value.value, value.number)
            case Load(place=place):
                return self._load(place, value.at)
            case Logical():
                return self._logical(value)
            case Choose():
                return self._choose(value)
            case Sequence():
                self.value(value.first)
                return self.value(value.second)
            case Assign():
                return self._store(value.place, self.value(value.value))
            case Update():
                return self._update(value)
            case _:
                return self._checked(self._computed(value), value.at)

    def _computed(self, value: Value) -> Term:
        """Return a value without effects of its own."""
        match value:
            case Convert():
                return converted(self.value(value.value), value.number, value.at)
            case Arithmetic():
                left, right = self.value(value.left), self.value(value.right)
                return arithmetic(value.operator, left, right, value.number, value.at, self._nonzero)
            case Compare():
                return compared(value.operator, self.value(value.left), self.value(value.right), value.at)
            case Not():
                return truth(negation(condition(self.value(value.value), value.at)))
            case Negate():
                return negated(self.value(value.value), value.at)
            case Invert():
                return inverted(self.value(value.value), value.at)
            case MathCall():
                arguments = [as_real(self.value(argument), FLOAT64, value.at) for argument in value.arguments]
                return called(value.function, arguments, value.at)
            case TextEqual():
                return self._equal(value)
            case Length():
                return self._length(value)
            case TextByte():
                raise refused("an index may be outside of its text, which faults", value.at)
            case _:
                raise refused("this cannot be said in SQL", value.at)

    def _logical(self, value: Logical) -> Term:
        left = condition(self.value(value.left), value.at)
        decided = FALSE if value.operator == "&&" else TRUE
        if left == decided:
            return truth(left)
        before = self._state
        self._state = dict(before)
        with self._knowing(value.left, holds=value.operator == "&&"):
            right = condition(self.value(value.right), value.at)
        goes_on = left if value.operator == "&&" else negation(left)
        self._state = self._merged(goes_on, self._state, before, value.at)
        if left in (TRUE, FALSE) or right == decided:
            return truth(right)
        if right in (TRUE, FALSE):
            return truth(left)
        word = "AND" if value.operator == "&&" else "OR"
        return self._checked(Truth(f"({left} {word} {right})"), value.at)

    def _choose(self, value: Choose) -> Term:
        test = condition(self.value(value.test), value.at)
        before = self._state
        if test in (TRUE, FALSE):
            return self.value(value.yes if test == TRUE else value.no)
        self._state = dict(before)
        with self._knowing(value.test, holds=True):
            yes = self.value(value.yes)
        after_yes, self._state = self._state, dict(before)
        with self._knowing(value.test, holds=False):
            no = self.value(value.no)
        self._state = self._merged(test, after_yes, self._state, value.at)
        return self._checked(either(test, yes, no, value.at), value.at)

    @contextmanager
    def _knowing(self, test: Value, *, holds: bool) -> Iterator[None]:
        """Follow a way on which a test, which was just evaluated, holds or does not."""
        before = self._nonzero
        self._nonzero = before | {text for value in nonzero_if(test, holds=holds) for text in self._spellings(value)}
        try:
            yield
        finally:
            self._nonzero = before

    def _spellings(self, value: Value) -> Iterator[str]:
        """Yield the text of an integer, and that of what it was converted from: a wider one is zero as that is."""
        while True:
            term = self.value(value)
            if isinstance(term, Integer):
                yield settled(term, value.at).text
            if not isinstance(value, Convert) or value.number.size < value.value.number.size:
                return
            value = value.value

    def _key(self, place: Place) -> Key:
        """Return by what a place that can be written to is known."""
        if place.indexes:
            raise refused("an index is computed", place.indexes[0].at)
        if isinstance(place, Local):
            if place.variable.static:
                raise refused(f"`{place.variable.name}` is static", place.at)
            return "local", place.variable.serial, place.offset
        if place.element is not None:
            raise refused("a dynamic array is written", place.at)
        return "output", 0, place.offset

    def _load(self, place: Place, at: Position) -> Term:
        if isinstance(place, Location) and place.root == "context":
            raise refused("the context of the source is not there", at)
        number = place.number
        if number is None:
            raise refused("this is no number", at)
        if isinstance(place, Location) and place.root == "input":
            text, field = element_of(self._signature.input, place)
            return load_column(text, field, number, at)
        if isinstance(place, Location) and place.root == "param":
            return load_parameter(self._params, place, number)
        found = self._state.get(self._key(place))
        if isinstance(place, Location) and place.field.kind is Kind.CHAR:
            raise refused("a single character is one of several bytes to SQL", at)
        if isinstance(found, Chars):
            raise refused("a text is read as a number", at)
        return constant(0, number) if found is None else found

    def _store(self, place: Place, term: Term) -> Term:
        if isinstance(place, Location) and place.root == "context":
            raise refused("the context of the source is not there", place.at)
        if isinstance(place, Location) and place.field.kind is Kind.CHAR:
            raise refused("a single character is one of several bytes to SQL", place.at)
        self._state[self._key(place)] = term
        return term

    def _update(self, value: Update) -> Term:
        before = self._load(value.place, value.at)
        left = converted(before, value.computed, value.at)
        after = arithmetic(value.operator, left, self.value(value.value), value.computed, value.at, self._nonzero)
        stored = self._store(value.place, self._checked(converted(after, value.number, value.at), value.at))
        return before if value.post else stored

    def _declare(self, statement: Declare) -> None:
        variable = statement.variable
        if variable.static:
            return
        for number in range(variable.count):
            key = ("local", variable.serial, number * variable.number.size)
            self._state[key] = constant(0, variable.number)
        for number, value in enumerate(statement.values):
            self._state["local", variable.serial, number * variable.number.size] = self.value(value)

    def text(self, text: Text) -> Chars:
        """Return a text.

        Raises:
            ECodeError: It is one that SQL does not know.
        """
        if isinstance(text, TextLiteral):
            return literal(text.data)
        location = text.location
        if location.root == "param":
            return literal(parameter_text(self._params, location))
        if location.root == "input":
            return column_of(*element_of(self._signature.input, location), text.at)
        if location.field.kind is Kind.CHAR:
            raise refused("a char array ends at its first NUL, which SQL does not know", text.at)
        found = self._state.get(self._key(location), literal(b""))
        if not isinstance(found, Chars):
            raise refused("a number is read as a text", text.at)
        return found

    def _equal(self, value: TextEqual) -> Term:
        left, right = self.text(value.left), self.text(value.right)
        symbol = "=" if value.operator == "==" else "<>"
        if left.binary or right.binary:
            return truth(f"({as_binary(left)} {symbol} {as_binary(right)})")
        return truth(f"({left.text} {symbol} {right.text})")

    def _length(self, value: Length) -> Term:
        if not isinstance(value.of, Location):
            return Integer(f"CAST(octet_length({self.text(value.of).text}) AS BIGINT)", 0, LENGTH_MAX, value.number)
        if value.of.root != "input":
            raise refused("the length of an array outside of `input` is asked for", value.at)
        text, _ = element_of(self._signature.input, value.of)
        return Integer(f"CAST(size({text}) AS BIGINT)", 0, LENGTH_MAX, value.number)

    def _assign_text(self, statement: AssignText) -> None:
        text, field = self.text(statement.text), statement.target.field
        if field.kind is Kind.CHAR:
            if text.known is None:
                raise refused("a text may be longer than the char array it is assigned to, which faults", statement.at)
            text = filled(text.known, field.fixed_dimensions[-1])
        elif field.kind is Kind.STRING and text.binary:
            raise refused("bytes that may not be UTF-8 are assigned to a string", statement.at)
        elif field.kind is Kind.BYTES:
            text = Chars(as_binary(text), binary=True, known=text.known)
        self._state[self._key(statement.target)] = text


def _zero_like(term: Term | Chars) -> Term | Chars:
    """Return what a place holds before anything is assigned to it."""
    if not isinstance(term, Chars):
        return constant(0, term.number)
    return filled(b"", term.width) if term.width else literal(b"")


def filled(data: bytes, width: int) -> Chars:
    """Return a text as a char array holds it."""
    data = data.ljust(width, b"\0")
    return Chars(f"X'{data.hex()}'", binary=True, known=data, width=width)


def as_binary(chars: Chars) -> str:
    """Return the bytes of a text."""
    if chars.known is not None:
        return f"X'{chars.known.hex()}'"
    return chars.text if chars.binary else f"CAST({chars.text} AS BINARY)"


def _returns(statement: Statement) -> bool:
    return any(isinstance(node, Return) for node in walk(statement))


def _is_zero(term: Term) -> bool:
    return isinstance(term, Integer) and term.low == term.high == 0
