"""What is no record, said of a declaration and said of a descriptor: one list of faults, two kinds of blame.

Every fault is planted twice. Declared here it is a FormatError; in the descriptor of a stranger the very same sentence
is a MalformedFormatError. Each message must have the words that name the fault, the value, the limit and the place.
"""

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from echoic.errors import FormatError, MalformedFormatError
from echoic.formats import NATIVE, Enumeration, Field, Format, Kind, Slots
from echoic.formats.checks import extent
from echoic.formats.descriptor import Description, FieldRow, RecordRow
from echoic.formats.limits import DEFAULT_BYTES_MAX, FIELDS_MAX, MEMBERS_MAX, NESTING_MAX, RECORD_BYTES_MAX
from tests.strategies import formats

A = Field("a", Kind.INT, 4)
LEAF = Format("Leaf", (Field("x", Kind.INT, 2),), byte_order="little", alignment=2, size=2)


@dataclass(frozen=True)
class Fault:
    """A record that is none: its parts, and the words that the refusal must have."""

    name: str
    words: tuple[str, ...]
    fields: tuple[Field, ...]
    record: str = "T"
    alignment: int = 4
    size: int = 64
    slots: Slots = Slots.SPAN

    def build(self) -> Format:
        return Format(
            self.record, self.fields, byte_order="little", alignment=self.alignment, size=self.size, slots=self.slots
        )

    def descriptor(self) -> bytes:
        """Return the descriptor that would say this, written without asking `checks`."""
        nested = list(dict.fromkeys(field.record for field in self.fields if field.record is not None))
        rows = [msgspec.msgpack.decode(record.descriptor)[3] for record in nested]
        records: list[Any] = []
        for own in rows:
            records += own
        places = {record: sum(map(len, rows[: index + 1])) - 1 for index, record in enumerate(nested)}
        fields = tuple(row(field, places) for field in self.fields)
        own_row = RecordRow(self.record, self.alignment, self.size, fields)
        return msgspec.msgpack.encode([1, 0, self.slots, [*records, own_row]])


def row(field: Field, places: dict[Format, int]) -> FieldRow:
    flags = field.optional + 2 * (field.enumeration is not None and not field.enumeration.signed)
    detail: Any = places[field.record] if field.record is not None else None
    if field.enumeration is not None:
        detail = (field.enumeration.name, field.enumeration.members)
    default = () if isinstance(field.default, type(A.default)) else (field.default,)
    return FieldRow(field.name, field.kind, field.size, field.offset, field.dimensions, flags, detail, default)


def enumerated(*members: tuple[str, int], name: str = "E", signed: bool = True, size: int = 1) -> Field:
    return Field("a", Kind.ENUM, size, enumeration=Enumeration(name, signed, members))


def deep(levels: int) -> Format:
    """Return a record with so many levels of records."""
    format = LEAF
    for _ in range(levels - 1):
        format = Format.place("Deep", [Field("in", Kind.RECORD, format.size, record=format)], NATIVE)
    return format


def broad(count: int) -> Format:
    fields = tuple(Field(f"f{index}", Kind.INT, 1, index) for index in range(count))
    return Format("Broad", fields, byte_order="little", alignment=1, size=count)


def text(**changes: Any) -> Field:
    return replace(Field("a", Kind.STRING, 8), **changes)


def named(name: str) -> list[Fault]:
    """Return faults with a bad name in every place where a name can stand."""
    return [
        Fault(f"record {name[:20]!r}", ("record name",), (A,), record=name),
        Fault(f"field {name[:20]!r}", ("field name", "T"), (replace(A, name=name),)),
        Fault(f"enumeration {name[:20]!r}", ("enumeration name", "T.a"), (enumerated(("ONE", 1), name=name),)),
        Fault(f"member {name[:20]!r}", ("member name", "T.a"), (enumerated((name, 1)),)),
    ]


NUMBER_SIZES = [
    (Kind.INT, (0, 3, 16, -1), "1 or 2 or 4 or 8"),
    (Kind.UINT, (0, 5), "1 or 2 or 4 or 8"),
    (Kind.FLOAT, (0, 1, 2, 16), "4 or 8"),
    (Kind.BOOL, (0, 2, 4), "1"),
    (Kind.CHAR, (0, 2, 4), "1"),
]
N = Field("n", Kind.INT, 4, 40)

FAULTS = [
    Fault("no fields", ("at least one field", "`T`"), ()),
    *(
        Fault(f"alignment {n}", (f"alignment is {n}", "1, 2, 4, 8 or 16", "`T`"), (A,), alignment=n)
        for n in (0, -1, 3, 32)
    ),
    *(
        Fault(f"size {n}", (f"{n} bytes", str(RECORD_BYTES_MAX), "`T`"), (A,), size=n)
        for n in (0, -8, RECORD_BYTES_MAX + 1)
    ),
    Fault(
        "too many fields",
        (f"{FIELDS_MAX + 1} fields", f"limit is {FIELDS_MAX}", "`T`"),
        tuple(Field(f"f{index}", Kind.INT, 1, index) for index in range(FIELDS_MAX + 1)),
        size=FIELDS_MAX + 1,
    ),
    Fault(
        "too many fields in nested records",
        ("4200 fields", f"limit is {FIELDS_MAX}", "`T`"),
        tuple(Field(f"f{index}", Kind.RECORD, 41, 41 * index, record=broad(41)) for index in range(100)),
        size=4100,
    ),
    *(fault for name in ("", "1a", "a b", "a-b", "a.b", "é", "a\n", "__a", "__class__", "`") for fault in named(name)),
    *(fault for name in ("n" * 129, "é" * 65) for fault in named(name)),
    Fault("two of a name", ("`a`", "twice", "`T.a`"), (A, replace(A, offset=4))),
    Fault("two members of a name", ("`ONE`", "twice", "`T.a`"), (enumerated(("ONE", 1), ("ONE", 2)),)),
    Fault(
        "too many members",
        (f"{MEMBERS_MAX + 1} members", f"limit is {MEMBERS_MAX}", "`T.a`"),
        (enumerated(*((f"M{index}", 0) for index in range(MEMBERS_MAX + 1))),),
    ),
    Fault("member too large", ("`ONE` is 128", "-128 to 127", "`T.a`"), (enumerated(("ONE", 128)),)),
    Fault("member too small", ("`ONE` is -1", "0 to 255", "`T.a`"), (enumerated(("ONE", -1), signed=False),)),
    Fault("enumeration without members", ("enumeration", "`T.a`"), (Field("a", Kind.ENUM, 4),)),
    Fault("number with members", ("enumeration", "`T.a`"), (replace(enumerated(("ONE", 1)), kind=Kind.INT),)),
    *(
        Fault(f"{kind.name} of {n}", (f"has {n} bytes", f"expected {expected}", "`T.a`"), (Field("a", kind, n),))
        for kind, sizes, expected in NUMBER_SIZES
        for n in sizes
    ),
    Fault("enumeration of 3", ("enum has 3 bytes", "1 or 2 or 4 or 8", "`T.a`"), (enumerated(("ONE", 1), size=3),)),
    Fault("record of another size", ("3 bytes", "`Leaf` 2", "`T.a`"), (Field("a", Kind.RECORD, 3, record=LEAF),)),
    Fault("slot of another size", ("4 bytes", "expected 8", "`T.a`"), (text(size=4),)),
    Fault("pointer of another size", ("8 bytes", "expected 4", "`T.a`"), (text(),), slots=Slots.POINTER32),
    Fault(
        "bytes behind a pointer", ("pointer", "bytes", "`T.a`"), (text(kind=Kind.BYTES, size=4),), slots=Slots.POINTER32
    ),
    Fault("optional number", ("optional", "`int32?`", "`T.a`"), (replace(A, optional=True),)),
    Fault(
        "optional record", ("optional", "`Leaf?`", "`T.a`"), (Field("a", Kind.RECORD, 2, record=LEAF, optional=True),)
    ),
    Fault("optional elements", ("optional", "`string?[3]`", "`T.a`"), (text(optional=True, dimensions=(3,)),)),
    Fault("nine dimensions", ("9 dimensions", "limit is 8", "`T.a`"), (replace(A, dimensions=(1,) * 9),)),
    *(
        Fault(
            f"dimension {n}",
            (f"dimension 1 is {n}", f"1 to {RECORD_BYTES_MAX}", "`T.a`"),
            (replace(A, dimensions=(1, n)),),
        )
        for n in (0, -1, 10**9)
    ),
    Fault(
        "a billion elements",
        ("4000000000 bytes", f"limit is {RECORD_BYTES_MAX}", "`T.a`"),
        (replace(A, dimensions=(1000, 1000, 1000)),),
    ),
    Fault(
        "a billion elements per step",
        (f"limit is {RECORD_BYTES_MAX}", "`T.a`"),
        (replace(A, dimensions=("", 1000, 1000, 1000)),),
    ),
    Fault(
        "second dimension dynamic",
        ("first dimension", "dimension 1 is `n`", "`T.a`"),
        (replace(A, dimensions=("n", "n")), N),
    ),
    Fault(
        "third dimension self-sized", ("first dimension", "dimension 2", "`T.a`"), (replace(A, dimensions=(2, 3, "")),)
    ),
    Fault(
        "self-sized behind a pointer", ("sizing field", "`T.a`"), (replace(A, dimensions=("",)),), slots=Slots.POINTER32
    ),
    Fault("no sizing field", ("no field `m`", "length", "`T.a`"), (replace(A, dimensions=("m",)), N)),
    Fault(
        "sizing field misspelled",
        ("`cuont`", "did you mean `count`?", "`T.a`"),
        (replace(A, dimensions=("cuont",)), replace(N, name="count")),
    ),
    Fault(
        "sized by a float",
        ("single integer", "`n` is `float32`", "`T.a`"),
        (replace(A, dimensions=("n",)), replace(N, kind=Kind.FLOAT)),
    ),
    Fault(
        "sized by a bool",
        ("single integer", "`bool`", "`T.a`"),
        (replace(A, dimensions=("n",)), replace(N, kind=Kind.BOOL, size=1)),
    ),
    Fault(
        "sized by an array",
        ("single integer", "`int32[2]`", "`T.a`"),
        (replace(A, dimensions=("n",)), replace(N, dimensions=(2,))),
    ),
    Fault(
        "sized by an enumeration",
        ("single integer", "`enum E`", "`T.a`"),
        (replace(A, dimensions=("n",)), replace(enumerated(("ONE", 1)), name="n", offset=40)),
    ),
    Fault("sized by itself", ("single integer", "`int32[a]`", "`T.a`"), (replace(A, dimensions=("a",)),)),
    Fault("negative offset", ("-1 to 3", "64", "`T.a`"), (replace(A, offset=-1),)),
    Fault("past the end", ("61 to 65", "64", "`T.a`"), (replace(A, offset=61),)),
    Fault("far past the end", (str(2**63), "64", "`T.a`"), (replace(A, offset=2**63),)),
    Fault("array past the end", ("0 to 68", "64", "`T.a`"), (replace(A, dimensions=(17,)),)),
    Fault("overlap", ("starts at byte 3", "inside `a`", "ends at 4", "`T.b`"), (A, Field("b", Kind.INT, 1, 3))),
    Fault("same place", ("starts at byte 0", "inside", "ends at 4"), (A, replace(A, name="b"))),
    Fault("slot overlap", ("inside `a`", "ends at 8", "`T.b`"), (text(), Field("b", Kind.INT, 1, 7))),
    *(
        Fault(
            f"default {field.default!r:.20} of {field.spelling}", ("default", f"`{field.spelling}`", "`T.a`"), (field,)
        )
        for field in (
            replace(A, default=True),
            replace(A, default=1.0),
            replace(A, default="1"),
            replace(A, default=2**31),
            replace(A, default=None),
            replace(A, default=()),
            replace(A, kind=Kind.UINT, default=-1),
            replace(A, kind=Kind.FLOAT, default=1),
            replace(A, kind=Kind.FLOAT, default=b""),
            Field("a", Kind.BOOL, 1, default=1),
            Field("a", Kind.BOOL, 1, default=None),
            Field("a", Kind.CHAR, 1, default=b""),
            Field("a", Kind.CHAR, 1, default=b"ab"),
            Field("a", Kind.CHAR, 1, default="a"),
            replace(enumerated(("ONE", 1)), default=128),
            replace(enumerated(("ONE", 1)), default=True),
            replace(enumerated(("ONE", 1), signed=False), default=-1),
            text(default=None),
            text(default=b"x"),
            text(default=7),
            text(default="x" * (DEFAULT_BYTES_MAX + 1)),
            text(default="é" * (DEFAULT_BYTES_MAX // 2 + 1)),
            text(kind=Kind.BYTES, default="x"),
            text(kind=Kind.BYTES, default=b"x" * (DEFAULT_BYTES_MAX + 1)),
            replace(A, dimensions=(2,), default=0),
            replace(A, dimensions=(2,), default=(1, 2)),  # type: ignore[arg-type]
            replace(A, dimensions=(2,), default=None),
            replace(A, dimensions=("",), default=b""),
            Field("a", Kind.RECORD, 2, record=LEAF, default=()),
            Field("a", Kind.RECORD, 2, record=LEAF, default=0),
        )
    ),
]
each_fault = pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])


def assert_words(error: Exception, words: tuple[str, ...]) -> None:
    message = str(error)
    assert all(word in message for word in words), message
    assert message[0] != message[0].upper() or not message[0].isalpha()


@each_fault
def test_a_faulty_declaration_is_refused_with_the_fault_the_value_the_limit_and_the_place(fault: Fault) -> None:
    with pytest.raises(FormatError) as caught:
        fault.build()
    assert type(caught.value) is FormatError
    assert_words(caught.value, fault.words)


@each_fault
def test_the_same_fault_in_a_descriptor_is_the_strangers(fault: Fault) -> None:
    with pytest.raises(MalformedFormatError) as caught:
        Format.from_descriptor(fault.descriptor())
    assert type(caught.value) is MalformedFormatError
    assert_words(caught.value, (*fault.words, "descriptor"))


@pytest.mark.parametrize("name", ["a", "_", "_a", "A1", "class", "None", "keys", "format", "n" * 128])
def test_any_short_identifier_is_a_name(name: str) -> None:
    assert Format.from_descriptor(Fault("", (), (replace(A, name=name),), record=name).descriptor()).name == name


def test_a_record_needs_to_be_named_and_nothing_but_a_record_field_has_one() -> None:
    for field in (Field("a", Kind.RECORD, 2), Field("a", Kind.INT, 2, record=LEAF)):
        with pytest.raises(FormatError, match=r"record field .* `T.a`"):
            Fault("", (), (field,)).build()


@pytest.mark.parametrize(
    "changes", [{"byte_order": "big"}, {"slots": Slots.POINTER32}], ids=["byte order", "slots"]
)  # a descriptor has one of each for all its records, so only a declaration can make this mistake
def test_a_nested_record_has_the_byte_order_and_the_slots_of_the_outer_one(changes: dict[str, Any]) -> None:
    other = Format("Other", LEAF.fields, **({"byte_order": "little", "alignment": 2, "size": 2} | changes))
    with pytest.raises(FormatError, match=r"`Other` has another byte order or slot kind - at `T\.a`"):
        Fault("", (), (Field("a", Kind.RECORD, 2, record=other),)).build()


def test_limits_are_inclusive() -> None:
    assert [Fault("", (), (A,), alignment=each).build().alignment for each in (1, 2, 4, 8, 16)] == [1, 2, 4, 8, 16]
    assert broad(FIELDS_MAX).fields_total == FIELDS_MAX
    assert deep(NESTING_MAX).nesting == NESTING_MAX
    assert Fault("", (), (replace(A, dimensions=(RECORD_BYTES_MAX // 4,)),), size=RECORD_BYTES_MAX).build().size
    assert Fault("", (), (replace(A, dimensions=(1,) * 8),)).build().fields[0].count == 1
    assert Fault("", (), (text(default="é" * (DEFAULT_BYTES_MAX // 2)),)).build().variable
    assert enumerated(*((f"M{index}", 0) for index in range(MEMBERS_MAX))) in (
        Fault("", (), (enumerated(*((f"M{index}", 0) for index in range(MEMBERS_MAX))),)).build().fields
    )


def test_one_level_more_than_the_limit_is_too_deep() -> None:
    with pytest.raises(FormatError, match=f"nested {NESTING_MAX + 1} deep, limit is {NESTING_MAX} - at `Deep`"):
        deep(NESTING_MAX + 1)


@pytest.mark.parametrize(
    "field", [replace(A, kind=Kind.FLOAT, default=1e300), replace(A, kind=Kind.FLOAT, default=-1e39)]
)
def test_a_default_too_large_for_its_float_is_refused(field: Field) -> None:
    with pytest.raises(FormatError, match=r"default .* does not fit `float32` - at `T.a`"):
        Fault("", (), (field,)).build()


@pytest.mark.parametrize("default", [float("inf"), float("-inf"), float("nan"), 3.4028234663852886e38, 0.1])
def test_every_other_float_may_be_a_default_of_a_narrow_one(default: float) -> None:
    assert Fault("", (), (replace(A, kind=Kind.FLOAT, default=default),)).build().fields[0].default is default


def test_a_default_that_no_descriptor_can_say_is_refused() -> None:
    with pytest.raises(FormatError, match=r"default .* `string` - at `T.a`"):
        Fault("", (), (text(default="\ud800"),)).build()


def test_a_name_that_is_too_long_is_measured_in_the_unit_of_its_limit() -> None:
    with pytest.raises(FormatError, match="has 130 bytes, limit is 128"):
        Fault("", (), (replace(A, name="é" * 65),)).build()


@pytest.mark.parametrize("name", ["a\nb", "a\r", "a\x1b[2J", "a\u2028b"])
def test_the_message_about_a_bad_name_has_no_control_characters(name: str) -> None:
    for fault in named(name):
        with pytest.raises(MalformedFormatError) as caught:
            Format.from_descriptor(fault.descriptor())
        assert str(caught.value).isprintable()


@settings(max_examples=40)
@given(formats())
def test_a_field_takes_a_slot_or_all_its_elements(format: Format) -> None:
    for field in format.fields:
        alone = field.dynamic or (field.text and not field.dimensions)
        assert extent(field, format.slots) == (format.slots.size if alone else field.size * field.count)


def test_the_rows_this_module_writes_are_those_of_the_program() -> None:
    fields = (
        replace(A, default=1),
        Field("b", Kind.RECORD, 2, 4, record=LEAF),
        replace(enumerated(("X", 1)), name="c", offset=8),
    )
    sound = Fault("", (), fields)
    assert sound.descriptor() == sound.build().descriptor
    assert msgspec.msgpack.decode(sound.descriptor(), type=Description).records[-1].name == "T"
