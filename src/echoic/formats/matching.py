"""Type extension: how records of one type become records of another, or why they cannot.

The rules of the papers (ECho, section 2.2 "Type Extension", 3.4): fields match *by name*. A source may send more than
the sink declares, the sink ignores it. What the sink declares and the source does not send takes the sink's default;
without a default the pair is refused, before any event flows, naming the field. Widening is free, narrowing only when
the sink asks for it.

    source                    sink                 by name
    price  float64            price   float64      as it is
    volume int32              volume  int64        widened
    extra  string                                  ignored
                              venue   uint16 = 0   default
                              trader  string       refused: absent and without default

The result is a plan of `moves`; two twins carry it out (`wire.convert_numpy`, `wire.convert_native`).
"""

import struct
from dataclasses import dataclass
from functools import lru_cache

from msgspec.structs import replace

from echoic.errors import FormatError, IncompatibleTypesError
from echoic.formats.architecture import ByteOrder
from echoic.formats.checks import extent
from echoic.formats.fields import MISSING, Field, Kind
from echoic.formats.format import Format
from echoic.formats.moves import Cast, Copy, Each, Fill, FillText, Move, Number, Sizing, Text, Vector

__all__ = ["Matching", "block_alignment", "match", "mismatches", "number_letters", "number_of", "sizing_of"]

STRUCT_LETTERS = {
    (Kind.INT, 1): "b",
    (Kind.INT, 2): "h",
    (Kind.INT, 4): "i",
    (Kind.INT, 8): "q",
    (Kind.UINT, 1): "B",
    (Kind.UINT, 2): "H",
    (Kind.UINT, 4): "I",
    (Kind.UINT, 8): "Q",
    (Kind.FLOAT, 4): "f",
    (Kind.FLOAT, 8): "d",
    (Kind.BOOL, 1): "?",
}
FLOAT_DIGITS = {4: 24, 8: 53}  # bits of integers that a float of this size holds exactly


@dataclass(frozen=True, slots=True)
class Matching:
    """A pair of formats that match, and the way from one to the other."""

    source: Format
    target: Format
    moves: tuple[Move, ...]
    ignored: tuple[str, ...]
    defaulted: tuple[str, ...]

    @property
    def identical(self) -> bool:
        """Tell whether a source record is a target record as it lies."""
        return self.source.layout == self.target.layout


def match(source: Format, target: Format, *, narrow: bool = False) -> Matching:
    """Plan how records of `source` become records of `target`.

    Args:
        source: What is sent.
        target: What the receiver declares.
        narrow: Whether the receiver accepts narrower numbers than are sent; they saturate.

    Raises:
        IncompatibleTypesError: The types do not match; the message names every field and reason.
    """
    matching, problems = _plan(source, target, narrow)
    if problems:
        raise IncompatibleTypesError(f"`{source.name}` cannot be received as `{target.name}`: {'; '.join(problems)}")
    return matching


def mismatches(source: Format, target: Format, *, narrow: bool = False) -> tuple[str, ...]:
    """Return every reason why `source` cannot be received as `target`; none when it can."""
    return _plan(source, target, narrow)[1]


def number_of(field: Field, byte_order: ByteOrder) -> Number | None:
    """Return how the elements of a field are written as numbers, None for those that are not numbers."""
    if field.enumeration is not None:
        return Number(Kind.INT if field.enumeration.signed else Kind.UINT, field.size, byte_order)
    if field.kind in (Kind.INT, Kind.UINT, Kind.FLOAT, Kind.BOOL):
        return Number(field.kind, field.size, byte_order)
    return None


def number_letters(field: Field, byte_order: ByteOrder) -> str:
    """Return the letter by which the `struct` module knows the elements of a numeric field.

    Raises:
        FormatError: They are not numbers.
    """
    number = number_of(field, byte_order)
    if number is None:
        raise FormatError(f"`{field.spelling}` is not a number - at `{field.name}`")
    return STRUCT_LETTERS[number.kind, number.size]


@lru_cache(maxsize=1024)
def _plan(source: Format, target: Format, narrow: bool) -> tuple[Matching, tuple[str, ...]]:
    planner = _Planner(narrow)
    moves = planner.record(source, target, source.name)
    matching = Matching(source, target, moves, tuple(planner.ignored), tuple(planner.defaulted))
    return matching, tuple(planner.problems)


def _widens(read: Number, write: Number) -> bool:
    """Tell whether every value of one number has a place in the other."""
    if read.kind is write.kind:
        return write.size >= read.size
    if read.kind is Kind.BOOL:
        return True
    if write.kind is Kind.BOOL or read.kind is Kind.FLOAT:
        return False
    bits = 8 * read.size - (read.kind is Kind.INT)
    if write.kind is Kind.FLOAT:
        return bits <= FLOAT_DIGITS[write.size]
    return write.kind is Kind.INT and write.size > read.size


class _Planner:
    """Collects moves and problems while walking two formats side by side."""

    def __init__(self, narrow: bool) -> None:
        self.narrow = narrow
        self.problems: list[str] = []
        self.ignored: list[str] = []
        self.defaulted: list[str] = []

    def record(self, source: Format, target: Format, path: str) -> tuple[Move, ...]:
        if source.layout == target.layout and not source.variable:
            return (Copy(0, 0, target.size),)
        by_name = {field.name: field for field in source.fields}
        sized = self._sized_fields(by_name, target, path)
        moves: list[Move] = []
        for field in target.fields:
            here, sent = f"{path}.{field.name}", by_name.get(field.name)
            if field.name in sized:
                if sized[field.name] is None:
                    moves.append(Fill(field.offset, bytes(field.size)))
            elif sent is None:
                moves += self._absent(field, target, here)
            else:
                moves += self._field(sent, field, source, target, here)
        wanted = {field.name for field in target.fields}
        self.ignored += [f"{path}.{name}" for name in by_name if name not in wanted]
        return _merged(moves, target)

    def _sized_fields(self, by_name: dict[str, Field], target: Format, path: str) -> dict[str, str | None]:
        """Return the sizing fields that the target's arrays will set: by whose length, None when all are absent."""
        sized: dict[str, str | None] = {}
        arrays: dict[str, list[str]] = {}
        for field in target.fields:
            if field.sizing:
                arrays.setdefault(field.sizing, []).append(field.name)
        for name, sizes in arrays.items():
            here = f"{path}.{name}"
            lengths = {by_name[array].sizing or array for array in sizes if array in by_name}
            if lengths and (len(lengths) > 1 or any(array not in by_name for array in sizes)):
                self.problems.append(
                    f"`{name}` is the length of {' and '.join(f'`{array}`' for array in sizes)}, "
                    f"which are not all sent with one length - at `{here}`"
                )
            sized[name] = min(lengths, default=None)
            self._check_length(by_name.get(sized[name] or ""), target.field(name), here)
        return sized

    def _check_length(self, sent: Field | None, field: Field, path: str) -> None:
        """Refuse a sizing field that is narrower than the one that is sent, unless narrowing was asked for."""
        read = sent and number_of(sent, "little")
        write = number_of(field, "little")
        if sent is None or not read or not write or sent.dimensions or self.narrow:
            return
        if read.kind in (Kind.INT, Kind.UINT) and read.limits[1] > write.limits[1]:
            self.problems.append(
                f"a length of `{sent.spelling}` does not fit `{field.spelling}` (narrow=True accepts it) - at `{path}`"
            )

    def _absent(self, field: Field, target: Format, path: str) -> list[Move]:
        """Fill a field that the source does not send."""
        if field.record is not None and not field.dimensions:
            return _shifted(self._absent_record(field.record, path), 0, field.offset)
        if field.default is MISSING:
            self.problems.append(f"`{field.spelling}` is not sent and has no default - at `{path}`")
            return []
        self.defaulted.append(path)
        if field.text and not field.dimensions:
            data = field.default.encode() if isinstance(field.default, str) else field.default
            return [FillText(field.offset, data if isinstance(data, bytes) else None, field.kind is Kind.STRING)]
        if field.dimensions or field.kind is Kind.CHAR:
            data = field.default if isinstance(field.default, bytes) else bytes(extent(field, target.slots))
            return [Fill(field.offset, data)]
        order = ">" if target.byte_order == "big" else "<"
        return [Fill(field.offset, struct.pack(order + number_letters(field, target.byte_order), field.default))]

    def _absent_record(self, record: Format, path: str) -> list[Move]:
        """Fill a record that the source does not send with the defaults of its fields; its arrays are empty."""
        moves: list[Move] = []
        sized = {field.sizing for field in record.fields}
        for field in record.fields:
            if field.name in sized:
                moves.append(Fill(field.offset, bytes(field.size)))
            else:
                moves += self._absent(field, record, f"{path}.{field.name}")
        return list(_merged(moves, record))

    def _field(self, sent: Field, field: Field, source: Format, target: Format, path: str) -> list[Move]:
        """Move one field that both sides have."""
        if sent.dynamic != field.dynamic or sent.fixed_dimensions != field.fixed_dimensions:
            self.problems.append(f"expected `{field.spelling}`, got `{sent.spelling}` - at `{path}`")
            return []
        moves = self._elements(sent, field, source, target, path)
        if not field.dynamic:
            return _shifted(moves, sent.offset, field.offset)
        return [
            Vector(
                sent.offset,
                field.offset,
                sizing_of(sent, source),
                sizing_of(field, target),
                field.count,
                sent.size,
                field.size,
                block_alignment(sent, source),
                block_alignment(field, target),
                tuple(moves),
                path,
            )
        ]

    def _elements(self, sent: Field, field: Field, source: Format, target: Format, path: str) -> list[Move]:
        """Move all elements of a fixed field, or one element of a dynamic array."""
        count = 1 if field.dynamic else field.count
        if field.record is not None and sent.record is not None:
            moves = self.record(sent.record, field.record, path)
            if moves == (Copy(0, 0, field.size),) and sent.size == field.size:
                return [Copy(0, 0, field.size * count)]
            return list(moves) if count == 1 else [Each(0, 0, count, sent.size, field.size, moves)]
        if field.text and sent.text and (sent.kind is field.kind or field.kind is Kind.BYTES):
            return [Text(0, 0, count, sent.kind is Kind.STRING, field.kind is Kind.STRING, path)]
        if field.kind is Kind.CHAR and sent.kind is Kind.CHAR:
            return [Copy(0, 0, count)]
        read, write = number_of(sent, source.byte_order), number_of(field, target.byte_order)
        if read is None or write is None:
            self.problems.append(f"expected `{field.spelling}`, got `{sent.spelling}` - at `{path}`")
            return []
        if not _widens(read, write) and not (self.narrow and write.kind is not Kind.BOOL):
            advice = "" if write.kind is Kind.BOOL or self.narrow else " (narrow=True accepts saturation)"
            self.problems.append(f"`{sent.spelling}` does not fit `{field.spelling}`{advice} - at `{path}`")
        same = (read.kind, read.size) == (write.kind, write.size)
        if same and (read.byte_order == write.byte_order or read.size == 1):
            return [Copy(0, 0, field.size * count)]
        return [Cast(0, 0, count, read, write)]


def sizing_of(field: Field, format: Format) -> Sizing | None:
    """Return where the length of a dynamic array stands, None when only its slot tells it."""
    if not field.sizing:
        return None
    named = format.field(field.sizing)
    return Sizing(named.offset, Number(named.kind, named.size, format.byte_order))


def block_alignment(field: Field, format: Format) -> int:
    """Return what the block of a dynamic array is aligned to."""
    if field.record is not None:
        return min(8, field.record.alignment)
    return min(8, format.slots.unit if field.text else field.size)


def _shifted(moves: list[Move], source: int, target: int) -> list[Move]:
    """Return moves that start further on."""
    return [_shift(move, source, target) for move in moves]


def _shift(move: Move, source: int, target: int) -> Move:
    match move:
        case Fill() | FillText():
            return replace(move, target=move.target + target)
        case Vector():
            return replace(
                move,
                source=move.source + source,
                target=move.target + target,
                source_sizing=_later(move.source_sizing, source),
                target_sizing=_later(move.target_sizing, target),
            )
        case _:
            return replace(move, source=move.source + source, target=move.target + target)


def _later(sizing: Sizing | None, by: int) -> Sizing | None:
    return sizing and Sizing(sizing.offset + by, sizing.number)


def _merged(moves: list[Move], target: Format) -> tuple[Move, ...]:
    """Join neighbouring copies, and zero the padding of the target so that no stale memory ever leaves."""
    taken = sorted((field.offset, field.offset + extent(field, target.slots)) for field in target.fields)
    copies = sorted((m for m in moves if isinstance(m, Copy)), key=lambda copy: copy.target)
    joined: list[Copy] = []
    for copy in copies:
        last = joined[-1] if joined else copy
        if (last.source + last.size, last.target + last.size) == (copy.source, copy.target):
            joined[-1] = Copy(last.source, last.target, last.size + copy.size)
        else:
            joined.append(copy)
    padding: list[Move] = []
    end = 0
    for start, stop in [*taken, (target.size, target.size)]:
        if start > end:
            padding.append(Fill(end, bytes(start - end)))
        end = max(end, stop)
    return (*joined, *(move for move in moves if not isinstance(move, Copy)), *padding)
