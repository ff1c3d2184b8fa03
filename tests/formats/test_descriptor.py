"""Descriptors: the bytes that name a type, and everything a stranger may send instead of them."""

import hashlib
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis.strategies import DrawFn

from echoic.errors import LimitExceededError, MalformedFormatError
from echoic.formats import ARCHITECTURES, Array, Enumeration, Field, Format, Kind, event, int16, int32, uint8, uint16
from echoic.formats.limits import DESCRIPTOR_BYTES_MAX, FIELDS_MAX, NESTING_MAX
from tests.strategies import formats

pack = msgspec.msgpack.encode
unpack = msgspec.msgpack.decode


@event
class Point:
    x: int32
    y: int32


@event
class Trade:
    symbol: str
    price: float
    volume: int
    venue: uint16 = 0


@event
class Track:
    id: uint8
    n: int16
    points: Array[Point, "n"]
    first: Point
    label: str | None = None


GOLDEN = [
    (
        Format.of(Point).on(ARCHITECTURES["x86_64"]),
        0xE28B1DCFE2ECDC65,
        "940100009194a5506f696e7404089298a1780104009000c09098a1790104049000c090",
    ),
    (
        Format.of(Point).on(ARCHITECTURES["sparc64"]),
        0x2165299AC2F626AD,
        "940101009194a5506f696e7404089298a1780104009000c09098a1790104049000c090",
    ),
    (
        Format.of(Trade).on(ARCHITECTURES["x86_64"]),
        0x00506F281489A620,
        (
            "940100009194a5547261646508209498a673796d626f6c0708009000c09098a570726963650308089000c090"
            "98a6766f6c756d650108109000c09098a576656e75650202189000c09100"
        ),
    ),
    (
        Format.of(Trade).on(ARCHITECTURES["i386"].with_pointers()),
        0x19B519F6C6087BFA,
        (
            "940100019194a5547261646504189498a673796d626f6c0704009000c09098a570726963650308049000c090"
            "98a6766f6c756d6501080c9000c09098a576656e75650202149000c09100"
        ),
    ),
]


@pytest.mark.parametrize(("format", "token", "descriptor"), GOLDEN, ids=lambda value: str(value)[:24])
def test_descriptors_and_tokens_never_change(format: Format, token: int, descriptor: str) -> None:
    assert format.descriptor.hex() == descriptor
    assert format.token == token
    assert Format.from_descriptor(bytes.fromhex(descriptor)) == format


def test_a_descriptor_is_plain_msgpack_as_its_grammar_says() -> None:
    format = Format.of(Track).on(ARCHITECTURES["ppc64"])
    point = ["Point", 4, 8, [["x", 1, 4, 0, [], 0, None, []], ["y", 1, 4, 4, [], 0, None, []]]]
    fields = [
        ["id", 2, 1, 0, [], 0, None, []],
        ["n", 1, 2, 2, [], 0, None, []],
        ["points", 9, 8, 4, ["n"], 0, 0, []],
        ["first", 9, 8, 12, [], 0, 0, []],
        ["label", 7, 8, 20, [], 1, None, [None]],
    ]
    assert unpack(format.descriptor) == [1, 1, 0, [point, ["Track", 4, 28, fields]]]


def test_an_enumeration_is_described_with_its_members_and_its_sign() -> None:
    members = (("LOW", 0), ("HIGH", 2**64 - 1))
    field = Field("level", Kind.ENUM, 8, enumeration=Enumeration("Level", signed=False, members=members), default=7)
    format = Format.place("T", [field], ARCHITECTURES["x86_64"])
    (row,) = unpack(format.descriptor)[3][0][3]
    assert row == ["level", 6, 8, 0, [], 2, ["Level", [["LOW", 0], ["HIGH", 2**64 - 1]]], [7]]


@settings(max_examples=40)
@given(formats())
def test_the_token_is_the_head_of_the_sha_256_of_the_descriptor(format: Format) -> None:
    assert format.token.to_bytes(8, "little") == hashlib.sha256(format.descriptor).digest()[:8]


@given(formats(max_depth=3))
def test_every_format_comes_back_from_its_descriptor(format: Format) -> None:
    found = Format.from_descriptor(format.descriptor)
    assert found == format
    assert found.describe() == format.describe()
    assert found.layout == format.layout
    assert found.dtype == format.dtype
    assert [repr(field) for _, field in found.walk()] == [repr(field) for _, field in format.walk()]


@settings(max_examples=40)
@given(formats(), formats())
def test_different_formats_have_different_descriptors(one: Format, other: Format) -> None:
    assert (one == other) == (one.descriptor == other.descriptor) == (one.describe() == other.describe())


def test_a_record_used_twice_is_described_once_and_in_the_order_of_first_use() -> None:
    names = [record[0] for record in unpack(deep_pair().descriptor)[3]]
    assert names == ["Leaf", "Pair", "Other", "Outer"]


def deep_pair() -> Format:
    machine = ARCHITECTURES["x86_64"]
    leaf = Format.place("Leaf", [Field("x", Kind.INT, 1)], machine)
    pair = Format.place("Pair", [Field(name, Kind.RECORD, 1, record=leaf) for name in "ab"], machine)
    other = Format.place("Other", [Field("y", Kind.INT, 1)], machine)
    inner = [("one", pair), ("two", other), ("three", pair), ("four", leaf)]
    return Format.place("Outer", [Field(n, Kind.RECORD, r.size, record=r) for n, r in inner], machine)


def refused(data: bytes) -> str:
    """Return the message with which a descriptor is refused, which must be of exactly the declared class."""
    with pytest.raises(MalformedFormatError) as caught:
        Format.from_descriptor(data)
    assert type(caught.value) is MalformedFormatError
    return str(caught.value)


def field_row(*, name: Any = "a", kind: Any = 1, size: Any = 4, offset: Any = 0, **rest: Any) -> list[Any]:
    tail = {"dimensions": [], "flags": 0, "detail": None, "default": []} | rest
    return [name, kind, size, offset, tail["dimensions"], tail["flags"], tail["detail"], tail["default"]]


def record_row(*fields: Any, name: Any = "T", alignment: Any = 4, size: Any = 4) -> list[Any]:
    return [name, alignment, size, list(fields)]


def described(*records: Any, version: Any = 1, order: Any = 0, slots: Any = 0) -> bytes:
    return pack([version, order, slots, list(records)])


def test_the_rows_of_this_module_describe_a_type() -> None:
    assert Format.from_descriptor(described(record_row(field_row()))).fields == (Field("a", Kind.INT, 4),)


SOUND = record_row(field_row())
INSIDE = field_row(kind=9, detail=0)
UNREADABLE = {
    "nothing": b"",
    "no msgpack": b"\xc1",
    "a number": pack(7),
    "a map": pack({"version": 1}),
    "an empty array": pack([]),
    "too few parts": pack([1, 0, 0]),
    "a part more": pack([1, 0, 0, [SOUND], 0]),
    "bytes behind it": described(SOUND) + b"\0",
    "two of them": described(SOUND) * 2,
    "a map for a record": described({"name": "T"}),
    "a record with a part more": described([*SOUND, 0]),
    "a field with a part more": described(record_row([*field_row(), 0])),
    "a field with a part less": described(record_row(field_row()[:-1])),
    "nil as name": described(record_row(field_row(name=None))),
    "a number as name": described(record_row(field_row(name=3))),
    "bytes as name": described(record_row(field_row(name=b"a"))),
    "a name that is not UTF-8": described(record_row(field_row(name="ab"))).replace(b"\xa2ab", b"\xa2\xff\xfe"),
    "a name with a surrogate": described(record_row(field_row(name="abc"))).replace(b"abc", b"\xed\xa0\x80"),
    "a member that is not UTF-8": described(
        record_row(field_row(kind=6, detail=["E", [["ab", 1]]])),
    ).replace(b"\xa2ab", b"\xa2\xff\xfe"),
    "kind 0": described(record_row(field_row(kind=0))),
    "kind 10": described(record_row(field_row(kind=10))),
    "a float as size": described(record_row(field_row(size=4.0))),
    "a bool as size": described(record_row(field_row(size=True))),
    "a float as dimension": described(record_row(field_row(dimensions=[1.0]))),
    "nil as dimension": described(record_row(field_row(dimensions=[None]))),
    "slots 3": described(SOUND, slots=3),
    "an extension as default": described(record_row(field_row(default=[msgspec.msgpack.Ext(5, b"x")])))[:-1],
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_what_does_not_follow_the_grammar_cannot_be_read(data: bytes) -> None:
    message = refused(data)
    assert f"a descriptor of {len(data)} bytes cannot be read" in message


REFUSED = {
    "version 2": (described(SOUND, version=2), ("version 2", "expected version 1")),
    "byte order 2": (described(SOUND, order=2), ("byte order 2", "expected", "0 or 1")),
    "no records": (described(), ("0 records", "at least one")),
    "two defaults": (described(record_row(field_row(default=[1, 2]))), ("2 defaults", "`T.a`")),
    "itself inside": (described(record_row(INSIDE)), ("record 0 contains record 0", "no cycles", "`T.a`")),
    "a later record inside": (
        described(record_row(field_row(kind=9, detail=1)), SOUND),
        ("record 0 contains record 1", "no cycles", "`T.a`"),
    ),
    "a record before the first inside": (
        described(SOUND, record_row(field_row(kind=9, detail=-1))),
        ("record 1 contains record -1", "`T.a`"),
    ),
    "a record far away inside": (
        described(SOUND, record_row(field_row(kind=9, detail=2**63))),
        (f"record {2**63}", "`T.a`"),
    ),
    "a record field that names none": (described(record_row(field_row(kind=9))), ("contains record -1", "`T.a`")),
    "an extension as default": (
        described(record_row(field_row(default=[msgspec.msgpack.Ext(5, b"x")]))),
        ("default", "`int32`", "`T.a`"),
    ),
    "a map as default": (described(record_row(field_row(default=[{}]))), ("default {}", "`int32`", "`T.a`")),
    "a nested array as default": (
        described(record_row(field_row(size=1, dimensions=[4], default=[[0]]))),
        ("default [0]", "`int8[4]`", "`T.a`"),
    ),
}


@pytest.mark.parametrize(("data", "words"), REFUSED.values(), ids=REFUSED)
def test_what_follows_the_grammar_and_describes_no_type_is_refused(data: bytes, words: tuple[str, ...]) -> None:
    message = refused(data)
    assert all(word in message for word in words), message


TWO = [record_row(field_row(name="x"), name="X"), record_row(field_row(name="y"), name="Y")]
BOTH = record_row(field_row(name="p", kind=9, detail=0), field_row(name="q", kind=9, offset=4, detail=1), size=8)
SWAPPED = record_row(field_row(name="p", kind=9, detail=1), field_row(name="q", kind=9, offset=4, detail=0), size=8)
TWICE = record_row(field_row(name="p", kind=9, detail=0), field_row(name="q", kind=9, offset=4, detail=1), size=8)
UNSIGNED = field_row(kind=6, flags=2, detail=["E", [["ONE", 1]]])

NOT_CANONICAL = {
    "a long zero": described(SOUND).replace(b"\x94\x01\x00\x00", b"\x94\x01\x00\xcc\x00", 1),
    "a long version": described(SOUND).replace(b"\x94\x01", b"\x94\xcd\x00\x01", 1),
    "a signed number": described(SOUND).replace(b"\x01\x04\x00\x90", b"\x01\xd0\x04\x00\x90", 1),
    "a long array": described(SOUND).replace(b"\x91\x94", b"\xdc\x00\x01\x94", 1),
    "a long name": described(SOUND).replace(b"\xa1T", b"\xd9\x01T", 1),
    "a narrow float": described(record_row(field_row(kind=3, default=[0.5]))).replace(
        b"\xcb" + b"\x3f\xe0" + bytes(6), b"\xca\x3f\x00\x00\x00"
    ),
    "an unused record before it": described(TWO[0], SOUND),
    "a record twice": described(TWO[0], TWO[0], TWICE),
    "records in another order": described(TWO[1], TWO[0], SWAPPED),
    "a flag without meaning": described(record_row(field_row(flags=4))),
    "every flag": described(record_row(field_row(kind=7, size=8, flags=-1), size=8)),
    "a sign without an enumeration": described(record_row(field_row(flags=2))),
    "a detail without a record": described(record_row(field_row(detail=0))),
}


def test_the_same_in_the_right_order_is_canonical() -> None:
    assert Format.from_descriptor(described(*TWO, BOTH)).fields_total == 4
    assert Format.from_descriptor(described(record_row(UNSIGNED))).fields[0].enumeration is not None


@pytest.mark.parametrize("data", NOT_CANONICAL.values(), ids=NOT_CANONICAL)
def test_only_the_canonical_bytes_are_a_descriptor(data: bytes) -> None:
    assert data != described(SOUND)
    message = refused(data)
    assert f"a descriptor of {len(data)} bytes is not canonical - at `T`" in message


@pytest.mark.parametrize("end", range(len(Format.of(Track).descriptor)))
def test_a_descriptor_cut_short_is_refused(end: int) -> None:
    assert "cannot be read" in refused(Format.of(Track).descriptor[:end])


def judge(data: bytes) -> Format | None:
    """Read a descriptor that may be anything: it is refused properly, or it is a canonical format."""
    try:
        format = Format.from_descriptor(data)
    except (MalformedFormatError, LimitExceededError):
        return None
    assert format.descriptor == data
    assert Format.from_descriptor(format.descriptor) == format
    return format


@st.composite
def mutations(draw: DrawFn, data: bytes) -> bytes:
    """Flip a bit, set, drop, double or insert some bytes, a few times over."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(changed) - 1)) if changed else 0
        match draw(st.sampled_from(["flip", "set", "drop", "double", "insert"])):
            case "flip" if changed:
                changed[at] ^= 1 << draw(st.integers(0, 7))
            case "set" if changed:
                changed[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0x90, 0xC0, 0xDC, 0xDD, 0xDF, 0xFF]))
            case "drop":
                del changed[at : at + draw(st.integers(1, 8))]
            case "double":
                changed[at:at] = changed[at : at + draw(st.integers(1, 16))]
            case _:
                changed[at:at] = draw(st.binary(min_size=1, max_size=8))
    return bytes(changed)


@given(st.data())
def test_a_damaged_descriptor_is_refused_or_describes_another_type(data: st.DataObject) -> None:
    format = data.draw(formats())
    damaged = data.draw(mutations(format.descriptor))
    assume(damaged != format.descriptor)
    found = judge(damaged)
    assert found is None or (found != format and found.token != format.token)


@pytest.mark.parametrize("bit", range(8))
def test_every_single_bit_of_a_descriptor_matters(bit: int) -> None:
    format = Format.of(Track)
    for at in range(len(format.descriptor)):
        damaged = bytearray(format.descriptor)
        damaged[at] ^= 1 << bit
        found = judge(bytes(damaged))
        assert found is None or found != format


@given(st.binary(max_size=64))
def test_any_bytes_are_refused_or_describe_a_type(data: bytes) -> None:
    judge(data)


@given(st.lists(st.integers(-1, 10) | st.text(max_size=2) | st.none(), max_size=12))
def test_any_rows_are_refused_or_describe_a_type(values: list[Any]) -> None:
    judge(described(record_row(values)))
    judge(described(record_row(field_row(dimensions=values))))
    judge(described(record_row(field_row(default=values[:1]))))


@contextmanager
def within(megabytes: float, seconds: float = 5) -> Iterator[None]:
    """Check that a refusal costs little: the memory that Python allocates, and the processor's time."""
    tracemalloc.start()
    started = time.process_time()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < megabytes * 1e6
    assert time.process_time() - started < seconds


def chain(levels: int, width: int = 1) -> bytes:
    """Describe records in records, `width` times at every level: width ** levels fields if anybody unfolded them."""
    records = [record_row(field_row(size=1), size=1, alignment=1)]
    for level in range(1, levels):
        size = width**level
        inner = size // width
        fields = [field_row(name=f"f{i}", kind=9, size=inner, offset=i * inner, detail=level - 1) for i in range(width)]
        records.append(record_row(*fields, size=size, alignment=1))
    return described(*records)


def test_records_nested_beyond_the_limit_are_refused() -> None:
    assert Format.from_descriptor(chain(NESTING_MAX)).nesting == NESTING_MAX
    with within(1):
        assert "nested 65 deep, limit is 64" in refused(chain(100))
    with within(20):
        assert "nested 65 deep, limit is 64" in refused(chain(10_000))


def test_exponential_nesting_is_refused_before_it_unfolds() -> None:
    assert Format.from_descriptor(chain(11, 2)).fields_total == 3070
    with within(1):
        assert f"limit is {FIELDS_MAX}" in refused(chain(24, 2))
    with within(1):
        assert f"limit is {FIELDS_MAX}" in refused(chain(6, 64))


def test_five_thousand_fields_are_refused() -> None:
    fields = [field_row(name=f"f{index}", size=1, offset=index) for index in range(5000)]
    with within(10):
        assert "5000 fields" in refused(described(record_row(*fields, size=5000, alignment=1)))


@pytest.mark.parametrize("dimensions", [[10**9], [1000, 1000, 1000], ["", 10**9], [2**63], [10**9] * 8])
def test_a_billion_elements_are_refused_before_anything_is_allocated(dimensions: list[Any]) -> None:
    with within(0.1):
        assert "16777216 - at `T.a`" in refused(described(record_row(field_row(dimensions=dimensions))))


@pytest.mark.parametrize(
    "start",
    [b"", b"\x94\x01\x00\x00", b"\x94\x01\x00\x00\x91\x94\xa1T\x01\x01", described(SOUND)[:-4], described(SOUND)[:-1]],
    ids=["descriptor", "records", "fields", "dimensions", "defaults"],
)
@pytest.mark.parametrize(
    "header", [b"\xdd\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xdb\x7f\xff\xff\xff"]
)
def test_an_announced_length_is_not_believed(start: bytes, header: bytes) -> None:
    with within(1):
        assert "cannot be read" in refused(start + header)


@pytest.mark.parametrize("count", [10, 1000, 100_000, 500_000])
@pytest.mark.parametrize("byte", [b"\x91", b"\x81\xa0"], ids=["arrays", "maps"])
def test_a_default_of_any_depth_is_refused(byte: bytes, count: int) -> None:
    with within(30):
        refused((described(SOUND)[:-1] + b"\x91" + byte * count + b"\xc0")[:DESCRIPTOR_BYTES_MAX])


def test_a_default_of_half_a_million_parts_is_refused() -> None:
    with within(60):
        refused(described(SOUND)[:-1] + b"\xdd\x00\x07\xa1\x20" + b"\x90" * 500_000)


def test_a_descriptor_that_is_too_long_is_not_even_read() -> None:
    with within(0.1), pytest.raises(LimitExceededError, match=r"has 524289 bytes, limit is 524288"):
        Format.from_descriptor(LONG)
    assert "cannot be read" in refused(LONG[:-1])


LONG = bytes(DESCRIPTOR_BYTES_MAX + 1)


@pytest.mark.parametrize(
    "row",
    [
        field_row(default=[b"\xff" * 500_000]),
        field_row(default=["\x01" * 500_000]),
        field_row(name="n" * 500_000, default=[1, 2]),
        field_row(name="n" * 500_000, kind=9, detail=7),
        field_row(name="n" * 500_000),
        field_row(kind=6, detail=["n" * 500_000, []]),
        field_row(dimensions=["n" * 500_000]),
    ],
    ids=["bytes", "text", "defaults", "cycle", "name", "enumeration", "dimension"],
)
def test_the_message_about_a_long_value_is_short(row: list[Any]) -> None:
    assert len(refused(described(record_row(row)))) < 1000


def test_a_type_with_many_arrays_of_one_length_is_read_in_time() -> None:
    fields = [field_row(name=f"f{i}", size=1, offset=8 * i, dimensions=["n"]) for i in range(FIELDS_MAX - 1)]
    fields.append(field_row(name="n", size=8, offset=8 * FIELDS_MAX - 8))
    row = record_row(*fields, size=8 * FIELDS_MAX, alignment=1)
    started = time.process_time()
    assert Format.from_descriptor(described(row)).fields_total == FIELDS_MAX
    assert time.process_time() - started < 2


def test_looking_for_the_nearest_name_is_not_worth_a_second() -> None:
    """A misspelled sizing field gets a hint, but a stranger must not choose how much work that is."""
    fields = [field_row(name=f"{'ab' * 62}{i:04}", size=1, offset=i) for i in range(3600)]
    fields.append(field_row(name="z", size=1, offset=4000, dimensions=["ab" * 64]))
    started = time.process_time()
    assert "has no field" in refused(described(record_row(*fields, size=5000, alignment=1)))
    assert time.process_time() - started < 1


def test_a_large_record_used_many_times_is_described_in_time() -> None:
    members = [[f"m{index}{'x' * 100}", index] for index in range(4096)]
    leaf = record_row(field_row(kind=6, detail=["E", members]), name="Leaf")
    fields = [field_row(name=f"f{i}", kind=9, offset=4 * i, detail=0) for i in range(2048)]
    started = time.process_time()
    assert Format.from_descriptor(described(leaf, record_row(*fields, size=8192))).fields_total == 4096
    assert time.process_time() - started < 2
