"""Pure. What an event is: fields, layouts, descriptors, matching by name, registry, reflection."""

from echoic.formats import from_arrow, from_classes, from_dtypes  # noqa: F401 - each registers the types it reads
from echoic.formats.architecture import ARCHITECTURES, NATIVE, Architecture, ByteOrder
from echoic.formats.compatibility import Compatibility, CompatibilityReport, compatibility
from echoic.formats.fields import MISSING, Enumeration, Field, Kind, Slots
from echoic.formats.format import Format, reads_types
from echoic.formats.from_classes import bind, event
from echoic.formats.matching import Matching, match, mismatches
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

__all__ = [
    "ARCHITECTURES",
    "MISSING",
    "NATIVE",
    "Architecture",
    "Array",
    "Binding",
    "ByteOrder",
    "Compatibility",
    "CompatibilityReport",
    "Enumeration",
    "Field",
    "Format",
    "Kind",
    "Matching",
    "Record",
    "Registry",
    "Slots",
    "bind",
    "bool_",
    "char",
    "compatibility",
    "event",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "match",
    "mismatches",
    "reads_types",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
