r"""E-Code that leaves of a channel's events just what a picture of them needs. Pure: a type goes in, a text comes out.

A chart has some hundred columns and a person sees some ten pictures a second, so most of what a fast channel says would
be thrown away behind the wire. It is thrown away before it instead: whoever draws derives a channel by one of these.

    chart      of every `every` events one Envelope       count, and for each field min, max, last
    window     of every `every`-th event a Window         a rectangle of a field, at most so many cells of it
    thinning   every `every`-th event as it is

All of them have parameters, so that what is drawn changes without anything being derived anew: `every`, and for a
window also `top`, `left`, `height`, `width` (0 for "to the end"). A parameter may be set to anything by anybody, hence
the code itself keeps to the field's bounds, and every loop in it is one whose end a source can prove. An event may cost
a source 1,000,000 units, which is what limits a window: about 18,000 cells.

Fields of outputs are called by their position, f0_min and so on: the names of a stranger's type may clash with each
other once something is put behind them. An envelope's NaNs are left out of min and max unless there is nothing else,
as NumPy's `fmin` and `fmax` do it; so are those of a window, which has 0 and 0 then.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from echoic.ecode import Program, Signature, analyse, check, parameter_format
from echoic.errors import ECodeError, FormatError
from echoic.formats import NATIVE, Field, Format, Kind, format_of_text, shown

__all__ = ["FieldKind", "FieldShape", "Reduction", "chart", "shapes", "thinning", "window"]

FieldKind: TypeAlias = Literal["number", "integer", "text", "bytes", "boolean", "record"]

SERIES_MAX: Final = 32
COST_MAX: Final = 900_000  # a hub refuses more than 1,000,000 units unless it was told otherwise
CELLS_MAX: Final = 65_536  # more are too dear anyhow, and too many for an array of an output
SHRINK: Final = 0.8
PATH: Final = re.compile(r"[A-Za-z_]\w*(?:\[\d{1,9}\])*(?:\.[A-Za-z_]\w*(?:\[\d{1,9}\])*)*", re.ASCII)
STEP: Final = re.compile(r"([A-Za-z_]\w*)((?:\[\d+\])*)", re.ASCII)
NUMERIC: Final = frozenset({Kind.INT, Kind.UINT, Kind.FLOAT, Kind.BOOL, Kind.ENUM})
KINDS: Final[Mapping[Kind, FieldKind]] = {
    Kind.INT: "integer",
    Kind.UINT: "integer",
    Kind.FLOAT: "number",
    Kind.BOOL: "boolean",
    Kind.CHAR: "text",
    Kind.ENUM: "integer",
    Kind.STRING: "text",
    Kind.BYTES: "bytes",
    Kind.RECORD: "record",
}
THINNING: Final = """\
static long seen = 0;
seen = seen + 1;
if (seen < param.every) return 0;
seen = 0;
"""
WINDOW: Final = format_of_text(
    "Window{top: int32, left: int32, height: int32, width: int32, row_step: int32, column_step: int32, "
    "rows: int32, columns: int32, low: float64, high: float64, cells: float32[]}"
)


class FieldShape(msgspec.Struct, frozen=True):
    """A field of an event type, and how it can be drawn."""

    path: str
    kind: FieldKind
    shape: list[int]
    """The dimensions; -1 for one that each event tells."""
    series: bool
    """Whether its values can be a line of a chart."""
    plane: bool
    """Whether it can be drawn as a field of cells."""


class Reduction(msgspec.Struct, frozen=True):
    """What `Channel.derive` needs to leave less of a channel."""

    code: str
    output: Format | None
    params: dict[str, int]
    capacities: dict[str, int]
    fields: tuple[str, ...] = ()
    """The fields that f0, f1, ... of the output are made of."""


def shapes(format: Format) -> tuple[FieldShape, ...]:
    """Return all fields with those of nested records, in their order."""
    return tuple(_shapes(format, "", single=True))


def thinning() -> Reduction:
    """Return what lets every `every`-th event pass, of whatever type."""
    return Reduction(f"{THINNING}return 1;\n", None, {"every": 1}, {})


def chart(format: Format, fields: Sequence[str]) -> Reduction:
    """Return what makes an envelope of every `every` events.

    Args:
        format: The type of the events.
        fields: What to draw: single numbers, by dotted paths; of arrays one element, as `wind[3][4]`.

    Raises:
        FormatError: One of them is no number, or there are too many.
    """
    if not 1 <= len(fields) <= SERIES_MAX:
        raise FormatError(f"a chart has 1 to {SERIES_MAX} fields, got {len(fields)}")
    guards = [guard for path in fields for guard in _guards(format, path)]
    numbers = range(len(fields))
    lines = ["static long count = 0;"]
    lines += [f"static double low{n} = 0.0, high{n} = 0.0;" for n in numbers]
    lines += dict.fromkeys(f"if (length({array}) <= {index}) return 0;" for array, index in guards)
    lines += [f"double v{n} = input.{path};" for n, path in enumerate(fields)]
    lines += ["if (count == 0) {", *(f"    low{n} = v{n}; high{n} = v{n};" for n in numbers), "} else {"]
    for n in numbers:
        lines.append(f"    if (v{n} < low{n} || low{n} != low{n}) low{n} = v{n};")
        lines.append(f"    if (v{n} > high{n} || high{n} != high{n}) high{n} = v{n};")
    lines += ["}", "count = count + 1;", "if (count < param.every) return 0;", "output.count = count;"]
    lines += [f"output.f{n}_min = low{n}; output.f{n}_max = high{n}; output.f{n}_last = v{n};" for n in numbers]
    lines += ["count = 0;", "return 1;", ""]
    output = format_of_text(
        "Envelope{count: int64, "
        + ", ".join(f"f{n}_{part}: float64" for n in numbers for part in ("min", "max", "last"))
        + "}"
    )
    made = Reduction("\n".join(lines), output, {"every": 1}, {}, tuple(fields))
    _checked(format, made, "a chart")
    return made


def window(format: Format, field: str, columns: int = 400, rows: int = 200) -> Reduction:
    """Return what cuts a rectangle out of a field, and leaves cells out evenly until it has few enough.

    Args:
        format: The type of the events.
        field: An array of numbers with one or two dimensions, by its dotted path. One dimension is a single row.
        columns: How many cells a row may have.
        rows: How many rows there may be. Both are less if sources would refuse so much work for an event.

    Raises:
        FormatError: The field is no such array, or cannot be drawn.
    """
    if columns < 1 or rows < 1:
        raise FormatError(f"a window has at least one cell, got {rows} rows of {columns}")
    found = _resolved(format, field)[-1]
    if not _plane(found) or "[" in field:
        raise FormatError(f"`{field}` is `{found.spelling}`, expected an array of numbers with one or two dimensions")
    height, width = _extent(found, f"input.{field}")
    rows = min(rows, int(height) if height.isdecimal() else rows)
    columns = min(columns, int(width) if width.isdecimal() else columns)
    if rows * columns > CELLS_MAX:
        share = (CELLS_MAX / (rows * columns)) ** 0.5
        rows, columns = max(1, int(rows * share)), max(1, int(columns * share))
        rows, columns = min(rows, CELLS_MAX // columns or 1), min(columns, CELLS_MAX)
    while True:
        made = _window(found, field, (height, width), (rows, columns))
        cost = analyse(_checked(format, made, "a field")).cost
        if cost <= COST_MAX or rows * columns == 1:
            return made
        share = max(SHRINK**8, min(SHRINK, COST_MAX / cost))
        rows, columns = (max(1, int(size * share**0.5)) if size > 1 else 1 for size in (rows, columns))


def _window(found: Field, path: str, extent: tuple[str, str], most: tuple[int, int]) -> Reduction:
    height, width = extent
    cell = f"input.{path}[column]" if len(found.dimensions) == 1 else f"input.{path}[row][column]"
    code = f"""\
{THINNING}\
{_clamped("top", "height", height)}\
{_clamped("left", "width", width)}\
int row_step = (height + {most[0] - 1}) / {most[0]};
int column_step = (width + {most[1] - 1}) / {most[1]};
if (row_step < 1) row_step = 1;
if (column_step < 1) column_step = 1;
int rows = (height + row_step - 1) / row_step;
int columns = (width + column_step - 1) / column_step;
output.top = top; output.left = left; output.height = height; output.width = width;
output.row_step = row_step; output.column_step = column_step;
output.rows = rows; output.columns = columns;
resize(output.cells, rows * columns);
double low = 1.7e308, high = -1.7e308;
int n = 0;
for (int r = 0; r < {most[0]}; r++) {{
    if (r >= rows) break;
    int row = top + r * row_step, column = left;
    for (int c = 0; c < {most[1]}; c++) {{
        if (c >= columns) break;
        double cell = {cell};
        output.cells[n++] = cell;
        column += column_step;
        if (cell < low) low = cell;
        if (cell > high) high = cell;
    }}
}}
if (low > high) {{ low = 0.0; high = 0.0; }}
output.low = low; output.high = high;
return 1;
"""
    params = {"every": 1, "top": 0, "left": 0, "height": 0, "width": 0}
    return Reduction(code, WINDOW, params, {"cells": most[0] * most[1]}, (path,))


def _clamped(start: str, size: str, extent: str) -> str:
    """Return the code that takes one side of a window from the parameters, and keeps it inside of the field."""
    return f"""\
long {start}_end = {extent}, {start}_from = param.{start}, {size}_most = param.{size};
if ({start}_from > {start}_end - 1) {start}_from = {start}_end - 1;
if ({start}_from < 0) {start}_from = 0;
if ({size}_most < 1 || {size}_most > {start}_end - {start}_from) {size}_most = {start}_end - {start}_from;
int {start} = {start}_from, {size} = {size}_most;
"""


def _extent(field: Field, place: str) -> tuple[str, str]:
    """Return how many rows and columns an array has, as code."""
    spelled = [f"length({place})" if isinstance(size, str) else str(size) for size in field.dimensions]
    return ("1", spelled[0]) if len(spelled) == 1 else (spelled[0], spelled[1])


def _checked(format: Format, made: Reduction, what: str) -> Program:
    """Return the program that generated code is.

    Raises:
        FormatError: It is none, since a field cannot be named in E-Code or the type cannot be worked on.
    """
    output = made.output.on(NATIVE) if made.output is not None else None
    capacities = tuple(sorted(made.capacities.items()))
    signature = Signature(format.on(NATIVE), output, parameter_format(made.params), 0, capacities)
    try:
        return check(made.code, signature)
    except ECodeError as error:
        names = ", ".join(f"`{path}`" for path in made.fields)
        reason = error.problems[0][2] if error.problems else str(error)
        raise FormatError(f"{names} cannot be drawn as {what}, since E-Code refuses it: {reason}") from error


def _guards(format: Format, path: str) -> list[tuple[str, int]]:
    """Return the dynamic arrays on the way to a number, each with the index that must be there.

    Raises:
        FormatError: The path does not lead to a number.
    """
    steps = _resolved(format, path)
    found, guards, place = steps[-1], list[tuple[str, int]](), "input"
    for step, (name, brackets) in zip(steps, STEP.findall(path), strict=True):
        place += f".{name}"
        indexes = [int(index) for index in brackets[1:-1].split("][")] if brackets else []
        if len(indexes) != len(step.dimensions):
            raise FormatError(
                f"`{shown(path)}` names {len(indexes)} of the {len(step.dimensions)} indexes of `{step.spelling}`"
            )
        for size, index in zip(step.dimensions, indexes, strict=True):
            if isinstance(size, int) and index >= size:
                raise FormatError(f"`{shown(path)}` is outside of `{step.spelling}`")
        if step.dynamic:
            guards.append((place, indexes[0]))
        place += brackets
    if found.kind not in NUMERIC:
        raise FormatError(f"`{shown(path)}` is `{found.spelling}`, expected a number")
    return guards


def _resolved(format: Format, path: str) -> list[Field]:
    """Return the fields on the way along a path.

    Raises:
        FormatError: There is no such way.
    """
    if not PATH.fullmatch(path):
        raise FormatError(f"expected the path of a field like `price` or `wind[3][4]`, got `{shown(path)}`")
    fields: list[Field] = []
    inside: Format | None = format
    for name, _ in STEP.findall(path):
        if inside is None:
            raise FormatError(f"`{fields[-1].name}` is `{fields[-1].spelling}` and has no fields - at `{shown(path)}`")
        fields.append(inside.member(name, path))
        inside = fields[-1].record
    return fields


def _shapes(format: Format, prefix: str, *, single: bool) -> Iterator[FieldShape]:
    for field in format.fields:
        path = prefix + field.name
        shape = [-1 if isinstance(size, str) else size for size in field.dimensions]
        series = single and not shape and field.kind in NUMERIC
        yield FieldShape(path, KINDS[field.kind], shape, series, single and _plane(field))
        if field.record is not None:
            yield from _shapes(field.record, f"{path}.", single=single and not shape)


def _plane(field: Field) -> bool:
    return field.kind in NUMERIC and len(field.dimensions) in (1, 2)
