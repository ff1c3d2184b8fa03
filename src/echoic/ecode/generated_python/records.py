"""Where an event begins and ends in generated Python: taking the input apart, putting the output together.

All numbers and slots at known places of the input are unpacked by one call, used or not in the end; slots are checked.
The output is put together when the event passes:

    | fixed part | zeros to 8 | text NUL | zeros to alignment | array | ... | zeros to 8 |

Blocks stand in the order of their fields, those of nested records where the record stands. An empty text or array has
no block, and {0, 0} as its slot.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from echoic.ecode.generated_python.places import Known, Places
from echoic.ecode.generated_python.slots import ORDERS, SPAN, integer_letter
from echoic.ecode.generated_python.source import Source
from echoic.ecode.kernel import FaultKind
from echoic.formats import Field, Format, Kind, block_alignment, extent, round_up

if TYPE_CHECKING:
    from echoic.ecode.program import Signature

__all__ = ["Ending", "opening"]

NOWHERE: Final = (0, 0)


@dataclass(frozen=True, slots=True, order=True)
class _Part:
    """Some numbers of the fixed part, and their names."""

    offset: int
    letters: str
    names: str

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.offset + struct.calcsize("=" + self.letters)


def opening(format: Format, known: Known, source: Source, *, record: str) -> list[str]:
    """Return the lines that take a record apart.

    Args:
        format: Its type.
        known: What the code refers to.
        source: Gets the functions and faults.
        record: "input" or "param".
    """
    letter = record[0]
    prefix = "" if record == "input" else "p"
    buffer, start, end = ("data", "at", "end") if record == "input" else ("params", "0", "len(params)")
    for offset, shape in known.slots.items():
        if shape.sizing is not None:
            known.numbers.setdefault(offset + shape.sizing_distance, integer_letter(shape.sizing))
    parts = [_Part(offset, letters, f"{letter}{offset}") for offset, letters in known.numbers.items()]
    parts += [_Part(offset, SPAN, f"{prefix}q{offset}, {prefix}n{offset}") for offset in known.slots]
    if not parts:
        return []
    parts.sort()
    unpack = source.unpacker(_letters(parts, ORDERS[format.byte_order], 0))
    lines = [f"{', '.join(part.names for part in parts)}, = {unpack}({buffer}, {start})"]
    lines += [f"{part.names} = +{part.names}" for part in parts if part.letters == "?"]
    fault = source.fault(FaultKind.RECORD, NOWHERE)
    for offset, shape in known.slots.items():
        slot, length = f"{prefix}q{offset}", f"{prefix}n{offset}"
        close = f"{slot} + {length}" if shape.step == 1 else f"{slot} + {length} * {shape.step}"
        wrong = f"{slot} < {format.size} or {close} {'>=' if shape.terminated else '>'} {end} - {start}"
        if shape.terminated:
            wrong += f" or {buffer}[{start} + {close}]"
        if shape.alignment > 1:
            wrong += f" or {slot} % {shape.alignment}"
        sizing = f" or {letter}{offset + shape.sizing_distance} != {length}" if shape.sizing is not None else ""
        lines += [
            f"if (({wrong}) if {slot} else {length}){sizing}: raise Stop({fault})",
            f"{prefix}b{offset} = {start} + {slot}",
        ]
    return lines


class Ending:
    """Writes how output records begin and how they are finished."""

    def __init__(self, signature: "Signature", format: Format, places: Places, source: Source) -> None:
        self._signature = signature
        self._format = format
        self._known = places.output
        self._source = source
        self._order = ORDERS[format.byte_order]
        self._arrays = sorted(self._known.arrays)
        self._resized = sorted(offset for offset, array in self._known.arrays.items() if places.sizing(array) is None)
        self._numbers = sorted(self._known.numbers.items())

    @property
    def names(self) -> str:
        """What the function that finishes a record is given."""
        names = [f"o{offset}" for offset, _ in self._numbers]
        names += [f"x{offset}" for offset in sorted(self._known.texts)]
        names += [f"a{offset}" for offset in self._arrays] + [f"z{offset}" for offset in self._resized]
        return ", ".join([*names, "out"] if self._known.memory else names)

    def beginning(self) -> list[str]:
        """Return the lines that give the output its first values, which are zeros."""
        lines = [f"o{offset} = {'0.0' if letters in 'fd' else '0'}" for offset, letters in self._numbers]
        lines += [f"x{offset} = EMPTY" for offset in sorted(self._known.texts)]
        lines += [f"z{offset} = 0" for offset in self._resized]
        for offset in self._arrays:
            array = self._known.arrays[offset]
            lines.append(f"a{offset} = bytearray({self._signature.capacity(array.path) * _step(array.field)})")
        if self._known.memory:
            lines.append(f"out = bytearray({self._format.size})")
        return lines

    def finish(self) -> list[str]:
        """Return the lines of the function that makes a record, or none if `struct` has it already."""
        parts = [_Part(offset, letters, f"o{offset}") for offset, letters in self._numbers]
        if not self._format.variable and not self._known.memory:
            letters = _letters(parts, self._order, 0, self._format.size)
            self._source.namespace["finish"] = struct.Struct(letters).pack
            return []
        lines = [f"def finish({self.names}):"]
        if self._format.variable:
            lines += [f" end = {round_up(self._format.size)}", " blocks = []"]
            for offset, field, path, base in _variable_fields(self._format, 0, ()):
                written = self._text(offset, field) if field.text else self._array(offset, field, path, base)
                if written:
                    parts.append(_Part(offset, SPAN, f"q{offset}, n{offset}"))
                    lines += [f" {line}" for line in written]
        lines += [f" {line}" for line in self._fixed(sorted(parts))]
        if not self._format.variable:
            return [*lines, " return out"]
        gap = round_up(self._format.size) - self._format.size
        head = f"[out, bytes({gap})]" if gap else "[out]"
        return [*lines, f" return JOIN({head} + blocks + [bytes(-end % 8)])"]

    def _text(self, offset: int, field: Field) -> list[str]:
        if offset not in self._known.texts:
            return []
        terminated = field.kind is Kind.STRING
        added = f"blocks += (x{offset}, NUL)" if terminated else f"blocks.append(x{offset})"
        return [
            f"q{offset} = n{offset} = len(x{offset})",
            f"if n{offset}:",
            f" {added}",
            f" q{offset} = end",
            f" end += n{offset}{' + 1' if terminated else ''}",
        ]

    def _array(self, offset: int, field: Field, path: tuple[str, ...], holder: tuple[Format, int]) -> list[str]:
        record, base = holder
        if field.sizing:
            sizing = base + record.by_name[field.sizing].offset
            if sizing not in self._known.numbers:
                return []
            length = f"o{sizing}"
        elif offset in self._known.arrays:
            length = f"z{offset}"
        else:
            return []
        step, alignment = _step(field), block_alignment(field, self._format)
        size = f"n{offset} * {step}"
        block = f"a{offset}[:{size}]" if offset in self._known.arrays else f"bytes({size})"
        fault = self._source.fault(FaultKind.LENGTH, NOWHERE)
        return [
            f"q{offset} = n{offset} = {length}",
            f"if not 0 <= n{offset} <= {self._signature.capacity(path)}: raise Stop({fault})",
            f"if n{offset}:",
            f" q{offset} = end + -end % {alignment}",
            f" blocks += (bytes(q{offset} - end), {block})",
            f" end = q{offset} + {size}",
        ]

    def _fixed(self, parts: list[_Part]) -> list[str]:
        """Return the lines that put numbers and slots into the fixed part, leaving out what is there already."""
        if not self._known.memory:
            letters = _letters(parts, self._order, 0, self._format.size)
            pack = self._source.constant(("whole", letters), struct.Struct(letters).pack)
            return [f"out = {pack}({', '.join(part.names for part in parts)})"]
        lines = []
        for run in _runs(parts, _areas(self._format, 0)):
            pack = self._source.packer(_letters(run, self._order, run[0].offset))
            lines.append(f"{pack}(out, {run[0].offset}, {', '.join(part.names for part in run)})")
        return lines


def _step(field: Field) -> int:
    return field.size * field.count


def _variable_fields(
    format: Format, base: int, path: tuple[str, ...]
) -> Iterator[tuple[int, Field, tuple[str, ...], tuple[Format, int]]]:
    """Yield the texts and dynamic arrays that are not inside of arrays: offset, field, path, and the record around."""
    for field in format.fields:
        offset, inner = base + field.offset, (*path, field.name)
        if field.dynamic or (field.text and not field.dimensions):
            yield offset, field, inner, (format, base)
        elif field.record is not None and not field.dimensions:
            yield from _variable_fields(field.record, offset, inner)


def _areas(format: Format, base: int) -> Iterator[tuple[int, int]]:
    """Yield from where to where fixed arrays lie, whose elements are written into the record at once."""
    for field in format.fields:
        offset = base + field.offset
        if field.dimensions and not field.dynamic:
            yield offset, offset + extent(field, format.slots)
        elif field.record is not None and not field.dynamic:
            yield from _areas(field.record, offset)


def _runs(parts: list[_Part], areas: Iterator[tuple[int, int]]) -> list[list[_Part]]:
    """Cut parts, which are in order, into runs between which fixed arrays lie."""
    starts = sorted(start for start, _ in areas)
    runs: list[list[_Part]] = []
    for part in parts:
        if not runs or any(runs[-1][-1].end <= start < part.offset for start in starts):
            runs.append([])
        runs[-1].append(part)
    return runs


def _letters(parts: list[_Part], order: str, start: int, size: int | None = None) -> str:
    """Return how `struct` knows parts, which are in order, with padding between them, and up to `size`."""
    made, end = [order], start
    for part in parts:
        made.append(f"{part.offset - end}x{part.letters}" if part.offset > end else part.letters)
        end = part.end
    if size is not None and size > end:
        made.append(f"{size - end}x")
    return "".join(made)
