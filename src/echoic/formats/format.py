"""An event type together with its layout: what a descriptor says and a token names.

A `Format` is complete: byte order, alignment, size, kind of slots, and for each field where it lies. It is never
"a type, to be laid out somehow", because the sender's layout *is* the wire format (ECho paper, section 2.2) and the
receiver has to know it to the byte. The same type on another machine is another format: `format.on(architecture)`.

    Trade            little-endian, 32 bytes, aligned to 8
    offset  size  field   type
         0     8  symbol  string      -> {u32 offset, u32 length}
         8     8  price   float64
        16     8  volume  int64
        24     2  venue   uint16      = 0
        26     6  (padding)

Formats are values: equal when their descriptors are, hashed by their token. Everything derived from one (token,
dtype, field table) is computed once and kept.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from echoic.errors import FormatError, MalformedFormatError
from echoic.formats import checks, descriptor, to_arrow, to_dtype
from echoic.formats.alignment import round_up
from echoic.formats.architecture import Architecture, ByteOrder
from echoic.formats.fields import MISSING, Field, Kind, Slots

if TYPE_CHECKING:
    import numpy
    import pyarrow

__all__ = ["Format", "reads_types"]

KNOWN_MAX: Final = 256
KNOWN_BYTES_MAX: Final = 4096  # a peer may describe many types, and none that takes long is kept for it

TypeReader = Callable[[object], "Format | None"]
_readers: Final[list[TypeReader]] = []


def reads_types(reader: TypeReader) -> TypeReader:
    """Register a function that turns one family of Python types into formats, for `Format.of` to ask.

    The reader returns None for what is not of its family. Edges register theirs in the same way, so that the
    foundation need not know every library in which people declare types.
    """
    _readers.append(reader)
    return reader


class Format:
    """An event type with its layout on one machine.

    Raises:
        FormatError: The fields overlap, leave the record, repeat a name or break another rule of `checks`.
    """

    def __init__(
        self,
        name: str,
        fields: tuple[Field, ...],
        *,
        byte_order: ByteOrder,
        alignment: int,
        size: int,
        slots: Slots = Slots.SPAN,
    ) -> None:
        self.name: Final = name
        self.fields: Final = fields
        self.byte_order: Final = byte_order
        self.alignment: Final = alignment
        self.size: Final = size
        self.slots: Final = slots
        checks.check(self)

    @classmethod
    def of(cls, declared: object) -> "Format":
        """Return the format of an event class, dataclass, msgspec Struct, NumPy dtype or Arrow schema.

        Raises:
            FormatError: `declared` is none of these, or cannot be an event type.
        """
        if isinstance(declared, Format):
            return declared
        for reader in _readers:
            found = reader(declared)
            if found is not None:
                return found
        raise FormatError(
            f"expected an event class, a dataclass, a msgspec Struct, a NumPy structured dtype or an Arrow schema, "
            f"got {declared!r}"
        )

    @classmethod
    def place(cls, name: str, fields: Iterable[Field], architecture: Architecture) -> "Format":
        """Lay `fields` out one after the other as the architecture's C compiler does.

        Offsets that the fields carry are ignored; nested records are laid out anew for the same architecture.

        Raises:
            FormatError: The fields cannot form a record.
        """
        placed: list[Field] = []
        end, record_alignment = 0, architecture.record_alignment_min
        for declared in fields:
            field, alignment = _resized(declared, architecture)
            field = replace(field, offset=round_up(end, alignment))
            placed.append(field)
            end = field.offset + (architecture.slots.size if field.dynamic else field.size * field.count)
            record_alignment = max(record_alignment, alignment)
        return cls(
            name,
            tuple(placed),
            byte_order=architecture.byte_order,
            alignment=record_alignment,
            size=round_up(end, record_alignment),
            slots=architecture.slots,
        )

    @classmethod
    def from_descriptor(cls, data: bytes) -> "Format":
        """Return the format that a descriptor describes.

        Raises:
            MalformedFormatError: The bytes are not a canonical descriptor of a record.
            LimitExceededError: They are longer than `DESCRIPTOR_BYTES_MAX`.
        """
        return _known(bytes(data)) if len(data) <= KNOWN_BYTES_MAX else _read(data)

    def on(self, architecture: Architecture) -> "Format":
        """Return the same type as another machine lays it out.

        Raises:
            FormatError: It cannot be laid out there, such as bytes where slots are C pointers.
        """
        known = self._placed.get(architecture)
        if known is None:
            known = self._placed[architecture] = Format.place(self.name, self.fields, architecture)
        return known

    @cached_property
    def _placed(self) -> dict[Architecture, "Format"]:
        """The same type on machines for which it was asked; there are few kinds of them."""
        return {}

    @cached_property
    def descriptor(self) -> bytes:
        """The canonical bytes that describe this format to a peer."""
        return descriptor.encode(self)

    @cached_property
    def token(self) -> int:
        """The 64-bit name of this format: it stands in every batch instead of the descriptor."""
        return descriptor.token(self.descriptor)

    @cached_property
    def fields_total(self) -> int:
        """How many fields there are with those of nested records."""
        return len(self.fields) + sum(field.record.fields_total for field in self.fields if field.record)

    @cached_property
    def nesting(self) -> int:
        """How deep records stand in records; 1 without any."""
        return 1 + max((field.record.nesting for field in self.fields if field.record), default=0)

    @cached_property
    def variable(self) -> bool:
        """Whether records have a variable part."""
        return any(field.variable for field in self.fields)

    @cached_property
    def dtype(self) -> "numpy.dtype[numpy.void]":
        """The fixed part as a NumPy dtype; slots appear as {offset, length} records or as integers."""
        return to_dtype.dtype_of(self)

    @cached_property
    def arrow_schema(self) -> "pyarrow.Schema":
        """The type as an Arrow schema, which carries the descriptor so that the way back is exact."""
        return to_arrow.schema_of(self)

    def __arrow_c_schema__(self) -> object:
        """Give the type to any library that speaks Arrow's C interface, as a schema."""
        schema: object = self.arrow_schema
        return schema.__arrow_c_schema__()  # type: ignore[attr-defined] # the stubs lack it

    @cached_property
    def layout(self) -> tuple[object, ...]:
        """What the bytes of a record depend on: equal layouts can share memory whatever else differs."""
        rows = sorted(
            (
                field.offset,
                field.name,
                field.kind,
                field.size,
                field.dimensions,
                field.enumeration and field.enumeration.signed,
                field.record and (field.record.layout, field.dynamic and field.record.alignment),
            )
            for field in self.fields
        )
        return (self.byte_order, self.size, self.slots if self.variable else None, tuple(rows))

    def field(self, path: str) -> Field:
        """Return the field called `path`; dots lead into nested records.

        Raises:
            FormatError: There is no such field; the message names the nearest ones.
        """
        inside: Format = self
        *outer, last = path.split(".")
        for name in outer:
            holder = inside.member(name, path)
            if holder.record is None:
                raise FormatError(
                    f"`{holder.name}` is `{holder.spelling}` and has no fields - at `{checks.shown(path)}`"
                )
            inside = holder.record
        return inside.member(last, path)

    def member(self, name: str, path: str = "") -> Field:
        """Return a field of the record itself; `path` is how the whole is called in a message.

        Raises:
            FormatError: There is no such field.
        """
        found = self.by_name.get(name)
        if found is None:
            raise FormatError(checks.no_such_field(self, name, path or name))
        return found

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """The fields by their names."""
        return {field.name: field for field in self.fields}

    def renamed(self, name: str) -> "Format":
        """Return the same type under another name, which arrays and schemas do not bring along.

        Raises:
            FormatError: The name is not an identifier.
        """
        return Format(
            name, self.fields, byte_order=self.byte_order, alignment=self.alignment, size=self.size, slots=self.slots
        )

    def walk(self, prefix: str = "") -> Iterator[tuple[str, Field]]:
        """Yield every field with its dotted path, nested records after the field that holds them."""
        for field in self.fields:
            yield prefix + field.name, field
            if field.record is not None:
                yield from field.record.walk(f"{prefix}{field.name}.")

    def describe(self) -> str:
        """Return the layout as a table for people."""
        head = f"{self.name}  {self.byte_order}-endian, {self.size} bytes, aligned to {self.alignment}"
        rows = [("offset", "size", "field", "type"), *_rows(self, 0, "")]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [f"{o:>{widths[0]}}  {s:>{widths[1]}}  {f:<{widths[2]}}  {t}".rstrip() for o, s, f, t in rows]
        return "\n".join([f"{head}, token {self.token:016x}", *lines])

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Format) and self.descriptor == other.descriptor)

    def __hash__(self) -> int:
        return self.token

    def __repr__(self) -> str:
        return f"<Format {self.name}: {self.size} bytes, {self.byte_order}-endian, token {self.token:016x}>"


def _read(data: bytes) -> Format:
    """Return the format that a descriptor describes."""
    description = descriptor.decode(data)
    try:
        found = _build(description)
    except FormatError as error:
        raise MalformedFormatError(f"{error}, in a descriptor of {len(data)} bytes") from error
    if found.descriptor != data:
        raise MalformedFormatError(f"a descriptor of {len(data)} bytes is not canonical - at `{found.name}`")
    return found


_known: Final = lru_cache(maxsize=KNOWN_MAX)(_read)


def _build(description: descriptor.Description) -> Format:
    """Build the records of a description in their order; each can contain only those before it."""
    built: list[Format] = []
    for index, row in enumerate(description.records):
        fields = []
        for field in row.fields:
            record = None
            if field.kind is Kind.RECORD:
                at = field.record_index
                if not 0 <= at < index:
                    raise FormatError(
                        f"record {index} contains record {at}, a record can contain only earlier ones (no cycles) "
                        f"- at `{checks.shown(row.name)}.{checks.shown(field.name)}`"
                    )
                record = built[at]
            fields.append(field.to_field(record))
        built.append(
            Format(
                row.name,
                tuple(fields),
                byte_order=description.byte_order,
                alignment=row.alignment,
                size=row.size,
                slots=description.slots,
            )
        )
    return built[-1]


def _resized(field: Field, architecture: Architecture) -> tuple[Field, int]:
    """Return the field with its element size on `architecture`, and the alignment of what the fixed part holds."""
    slot_alignment = min(architecture.slots.unit, architecture.alignment_max)
    if field.record is not None:
        nested = field.record.on(architecture)
        field, alignment = replace(field, record=nested, size=nested.size), nested.alignment
    elif field.text:
        field, alignment = replace(field, size=architecture.slots.size), slot_alignment
    else:
        alignment = min(field.size, architecture.alignment_max)
    return field, slot_alignment if field.dynamic else alignment


def _rows(inside: Format, base: int, indent: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the lines of `describe`, with nested records indented and padding shown."""
    end = 0
    for field in sorted(inside.fields, key=lambda field: field.offset):
        if field.offset > end:
            yield (str(base + end), str(field.offset - end), f"{indent}(padding)", "")
        extent = checks.extent(field, inside.slots)
        default = "" if field.default is MISSING else f"  = {field.default!r}"
        slot = "  -> variable part" if field.dynamic or field.text else ""
        yield (str(base + field.offset), str(extent), indent + field.name, field.spelling + default + slot)
        if field.record is not None:
            nested_base = 0 if field.dynamic else base + field.offset
            yield from _rows(field.record, nested_base, indent + "  ")
        end = field.offset + extent
    if end < inside.size:
        yield (str(base + end), str(inside.size - end), f"{indent}(padding)", "")
