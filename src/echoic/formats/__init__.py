"""Pure. What an event is: fields, layouts, descriptors, matching by name, registry, reflection."""

from echoic.formats import from_arrow, from_classes, from_dtypes  # noqa: F401 - each registers the types it reads
from echoic.formats.alignment import round_up
from echoic.formats.architecture import ARCHITECTURES, NATIVE, Architecture, ByteOrder
from echoic.formats.checks import extent, shown
from echoic.formats.compatibility import Compatibility, CompatibilityReport, compatibility
from echoic.formats.fields import MISSING, Enumeration, Field, Kind, Slots
from echoic.formats.format import Format, reads_types
from echoic.formats.from_arrow import format_of_schema
from echoic.formats.from_classes import bind, event
from echoic.formats.from_text import format_of_text, is_text_of_type
from echoic.formats.html_table import html_table
from echoic.formats.matching import (
    Matching,
    block_alignment,
    match,
    mismatches,
    number_letters,
    number_of,
    sizing_of,
)
from echoic.formats.moves import Cast, Copy, Each, Fill, FillText, Move, Number, Sizing, Text, Vector
from echoic.formats.records import Binding, Record
from echoic.formats.registry import Registry
from echoic.formats.scalars import (
    Array,
    bool_,
    char,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from echoic.formats.to_arrow import type_of
from echoic.formats.to_dtype import char_width, element_dtype, slot_dtype

__all__ = [
    "ARCHITECTURES",
    "MISSING",
    "NATIVE",
    "Architecture",
    "Array",
    "Binding",
    "ByteOrder",
    "Cast",
    "Compatibility",
    "CompatibilityReport",
    "Copy",
    "Each",
    "Enumeration",
    "Field",
    "Fill",
    "FillText",
    "Format",
    "Kind",
    "Matching",
    "Move",
    "Number",
    "Record",
    "Registry",
    "Sizing",
    "Slots",
    "Text",
    "Vector",
    "bind",
    "block_alignment",
    "bool_",
    "char",
    "char_width",
    "compatibility",
    "element_dtype",
    "event",
    "extent",
    "float32",
    "float64",
    "format_of_schema",
    "format_of_text",
    "html_table",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_text_of_type",
    "match",
    "mismatches",
    "number_letters",
    "number_of",
    "reads_types",
    "round_up",
    "shown",
    "sizing_of",
    "slot_dtype",
    "type_of",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
