"""A program as SQL: the condition under which an event passes, and the columns that come out.

    translate(program, params)

        condition   (`price` < 71.5D)                     of rows that can be events
        usable      (`price` IS NOT NULL)                 for each field that the code names
        columns     mean  CAST((`sum` / 9.0D) AS DOUBLE)  for each field of the output; none for a filter

or a `Refusal` that says why it cannot be, and where. What the code means is decided by the kernels (`ecode.kernel`);
the SQL here gives the same rows with the same bits, whether Spark's ANSI mode is on or off, or it is not given at all.
NaN is the one exception: which of its many spellings comes out is nobody's promise.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from echoic.ecode.checking.places import number_of
from echoic.ecode.sql.columns import literal, spark_type, usable
from echoic.ecode.sql.execution import End, Execution
from echoic.ecode.sql.terms import DEPTH_MAX, TEXT_MAX, Chars, Integer, Term, condition, constant, refused, settled
from echoic.ecode.typed import Position
from echoic.errors import ECodeError
from echoic.formats import Field, Format, Kind

if TYPE_CHECKING:
    from echoic.ecode.program import Program

__all__ = ["Refusal", "Translation", "translate"]

NOWHERE: Position = (0, 0)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a program cannot be said in SQL, and where in its text: line and column, 0 if nowhere."""

    reason: str
    position: Position


@dataclass(frozen=True, slots=True)
class Translation:
    """A program as SQL."""

    condition: str
    usable: tuple[str, ...]
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def where(self) -> str:
        """The whole condition: the row can be an event, and the program passes it."""
        return " AND ".join((*self.usable, self.condition))


def translate(program: "Program", params: bytes = b"") -> Translation | Refusal:
    """Return a program as SQL over columns that have the names of the fields of its input.

    Args:
        program: A filter or a transform.
        params: The parameter block, a whole record of the type of the program's parameters; their values become part
            of the SQL.
    """
    signature = program.signature
    try:
        if signature.ports:
            raise refused("a router has several outputs", NOWHERE)
        end = Execution(program, params).run(program.body)
        passes = condition(end.result, program.body.at)
        columns = tuple(_output(signature.output, end)) if signature.output is not None else ()
        for text in (passes, *(text for _, text in columns)):
            _check(text)
    except ECodeError as error:
        ((line, column, reason),) = error.problems
        return Refusal(reason, (line, column))
    paths = sorted(path for root, path in program.used if root == "input" and path)
    return Translation(passes, tuple(dict.fromkeys(usable(signature.input, path) for path in paths)), columns)


def _check(text: str) -> None:
    """Refuse what Spark's parser has no stack for, or Java's compiler no patience."""
    if len(text) > TEXT_MAX:
        raise refused(f"the SQL of a column would have {len(text)} characters, limit is {TEXT_MAX}", NOWHERE)
    deepest = depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > DEPTH_MAX:
        raise refused(f"the SQL would be nested {deepest} deep, limit is {DEPTH_MAX}", NOWHERE)


def _output(format: Format, end: End) -> list[tuple[str, str]]:
    return [(field.name, _field(field, field.offset, end)) for field in format.fields]


def _field(field: Field, offset: int, end: End) -> str:
    """Return a field of the output record, which lies at an offset in it."""
    if field.dynamic:
        raise refused(f"`{field.name}` of the output is a dynamic array", NOWHERE)
    if field.kind is Kind.CHAR and field.dimensions:
        dimensions, size = field.fixed_dimensions[:-1], field.fixed_dimensions[-1]
    else:
        dimensions, size = field.fixed_dimensions, field.size
    return _array(field, offset, dimensions, size, end)


def _array(field: Field, offset: int, dimensions: tuple[int, ...], size: int, end: End) -> str:
    if not dimensions:
        return _element(field, offset, end)
    step = size
    for dimension in dimensions[1:]:
        step *= dimension
    if dimensions[0] * 4 > TEXT_MAX:
        raise refused(f"`{field.name}` of the output is a large array", NOWHERE)
    inner = (_array(field, offset + place * step, dimensions[1:], size, end) for place in range(dimensions[0]))
    return f"array({', '.join(inner)})"


def _element(field: Field, offset: int, end: End) -> str:
    if field.record is not None:
        parts = (
            f"{literal(inner.name.encode()).text}, {_field(inner, offset + inner.offset, end)}"
            for inner in field.record.fields
        )
        return f"named_struct({', '.join(parts)})"
    held = end.output.get(("output", 0, offset))
    if field.text or field.kind is Kind.CHAR:
        return _text(field, held if isinstance(held, Chars) else None)
    number = number_of(field)
    if number is None or isinstance(held, Chars):
        raise refused(f"`{field.name}` of the output is neither a number nor a text", NOWHERE)
    return _number(field, constant(0, number) if held is None else held)


def _number(field: Field, term: Term) -> str:
    if field.kind is Kind.BOOL:
        return condition(term, NOWHERE)
    if isinstance(term, Integer):
        term = settled(term, NOWHERE)
    return f"CAST({term.text} AS {spark_type(field)})"


def _text(field: Field, held: Chars | None) -> str:
    if field.kind is Kind.CHAR:
        width = field.fixed_dimensions[-1] if field.dimensions else 1
        return held.text if held is not None else f"X'{bytes(width).hex()}'"
    empty = "X''" if field.kind is Kind.BYTES else "''"
    text = (held or literal(b"")).text if field.kind is Kind.STRING else held.text if held is not None else empty
    # An empty text has no block in a record, and a slot without a block is what "nothing" looks like.
    return f"nullif({text}, {empty})" if field.optional else text
