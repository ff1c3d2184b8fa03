"""The slots of a record that a program follows, and when each is checked.

A slot comes from a stranger (see `echoic.wire.slots`). One that lies at a known place, `input.symbol` or
`input.leg.samples`, is checked when an event begins, whether or not the code then gets there; one behind a run-time
index, or in a block, each time the code follows it. Both back ends take the rules from here, so that they find the same
events wrong. A slot is right if

    it is null, {0, 0}: an empty text or array
    or  offset >= size of the record's fixed part
        offset + length * step (+ 1 for a string) <= size of the record
        offset is a multiple of the elements' alignment
        the byte behind a string is NUL
    and the sizing field, if there is one, says the same length

A wrong one is a fault RECORD: at line 0, column 0 when an event begins, else where the name of the field stands
(`Location.at`). Blocks may overlap: nothing is unfolded here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from echoic.ecode.analysis.traversal import walk
from echoic.ecode.typed import Location, Root
from echoic.formats import Kind, block_alignment

if TYPE_CHECKING:
    from echoic.ecode.program import Program
    from echoic.formats import Field, Format

__all__ = ["SlotShape", "entry_slots", "is_entry_slot", "is_slot", "shape_of"]


@dataclass(frozen=True, slots=True)
class SlotShape:
    """What must be known about a slot to follow it."""

    step: int
    """Bytes of one step: 1 for a text."""
    alignment: int
    terminated: bool
    """Whether a NUL stands behind the block."""
    sizing: "Field | None"
    """The field that tells the same length."""
    sizing_distance: int
    """How far behind the slot the sizing field stands; mostly negative."""


def is_slot(location: Location) -> bool:
    """Tell whether a location is where a slot lies."""
    return location.field.text or (location.field.dynamic and not _in_own_block(location))


def is_entry_slot(location: Location) -> bool:
    """Tell whether a slot is checked when an event begins."""
    return location.root != "output" and location.element is None and not location.indexes and is_slot(location)


def entry_slots(program: "Program") -> list[tuple[Root, int, Location]]:
    """Return the slots that are checked when an event begins, each once, with root and offset."""
    found: dict[tuple[Root, int], Location] = {}
    for node in walk(program.body):
        if isinstance(node, Location) and is_entry_slot(node):
            found.setdefault((node.root, node.offset), node)
    return [(root, offset, location) for (root, offset), location in found.items()]


def shape_of(location: Location, format: "Format") -> SlotShape:
    """Return what is needed to follow the slot at a location in a record of type `format`."""
    field = location.field
    if not field.dynamic or _in_own_block(location):
        return SlotShape(1, 1, field.kind is Kind.STRING, None, 0)
    alignment = block_alignment(field, format)
    for name in location.path[:-1]:
        format = format.by_name[name].record or format
    sizing = format.by_name[field.sizing] if field.sizing else None
    distance = sizing.offset - field.offset if sizing is not None else 0
    return SlotShape(field.size * field.count, alignment, False, sizing, distance)


def _in_own_block(location: Location) -> bool:
    """Tell whether a location of a dynamic array is one of its elements."""
    return location.element is not None and location.element.array.path == location.path
