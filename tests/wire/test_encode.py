"""From objects to records: the fast functions and the walking writer are twins, and complain exactly."""

import array
import dataclasses
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import EncodeError
from echoic.formats import (
    Array,
    Field,
    Format,
    Kind,
    bool_,
    char,
    event,
    float32,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint64,
)
from echoic.wire import Batch, Encoder, encoder_of
from echoic.wire.writer import PIECE_BYTES_MIN
from tests.strategies import batches, formats, to_object
from tests.wire.samples import (
    BIG,
    Color,
    Grid,
    Point,
    Report,
    Trade,
    format_of,
    joined,
    plain,
    received,
    reports,
    thorough,
)


@event
class Part:
    x: float
    label: str


@event
class Order:
    """One field of every sort a value can fail to fit."""

    small: int8
    wide: uint64
    price: float32
    up: bool_
    letter: char
    code: Array[char, 4]
    name: str
    note: str | None
    data: bytes
    grid: Array[int16, 2, 3]
    k: int32
    series: Array[float32, "k"]
    whole: Array[uint8, ...]
    tags: Array[str, ...]
    pair: Array[str, 2]
    color: Color
    part: Part
    parts: Array[Part, ...]
    names: Array[char, 2, 4]


def fitting() -> dict[str, Any]:
    return {
        "small": -1,
        "wide": 2**64 - 1,
        "price": 1.5,
        "up": True,
        "letter": b"x",
        "code": b"ab",
        "name": "né",
        "note": None,
        "data": b"\0\1",
        "grid": [[1, 2, 3], [4, 5, 6]],
        "k": 2,
        "series": [0.5, 1.5],
        "whole": [1, 2, 255],
        "tags": ["a", ""],
        "pair": ["l", "r"],
        "color": 2,
        "part": {"x": 1.0, "label": "p"},
        "parts": [{"x": 2.0, "label": "q"}],
        "names": [b"one", b"two"],
    }


def as_namespace(value: Any) -> Any:
    """Return mappings as objects with attributes."""
    if isinstance(value, Mapping):
        return SimpleNamespace(**{name: as_namespace(item) for name, item in value.items()})
    return [as_namespace(item) for item in value] if isinstance(value, list) else value


def same_bytes(format: Format, events: list[Any]) -> None:
    """Check that the fast function and the writer make the same records."""
    encoder = Encoder(format)
    (fast, fast_bounds), (walked, bounds) = encoder.encode(events), encoder.walk(events)
    assert joined(fast) == joined(walked)
    assert (fast_bounds is None) == (bounds is None) == (not format.variable)
    assert joined([joined(encoder.encode([event])[0]) for event in events]) == joined(walked)
    if bounds is not None and fast_bounds is not None:
        assert list(fast_bounds) == list(bounds)
        assert bounds[-1] == len(joined(walked))


@thorough(150)
@given(st.data())
def test_the_fast_function_and_the_writer_make_the_same_bytes(data: st.DataObject) -> None:
    format = data.draw(formats())
    events = data.draw(batches(format, special=True))
    same_bytes(format, [to_object(event, format) for event in events])
    same_bytes(format, [as_namespace(event) for event in events])
    same_bytes(format, events)


@pytest.mark.parametrize("places", [(0, 8, 9), (9, 8, 0), (1, 0, 9), (9, 0, 1)])
def test_blocks_stand_in_the_order_of_the_fields_wherever_these_lie(places: tuple[int, int, int]) -> None:
    kinds = ((Kind.STRING, 8), (Kind.BOOL, 1), (Kind.STRING, 8))
    fields = [Field(name, kind, size, at) for name, (kind, size), at in zip("abc", kinds, places, strict=True)]
    format = Format("a", tuple(fields), byte_order="little", alignment=1, size=17)
    event = {"a": "first", "b": True, "c": "second"}
    made = {
        joined(Batch.of([each], format).buffers()) for each in (event, as_namespace(event), to_object(event, format))
    }
    assert len(made) == 1
    record = made.pop()
    assert record.index(b"first\0") < record.index(b"second\0")


@thorough(100)
@given(st.data())
def test_objects_namespaces_and_mappings_make_the_same_bytes(data: st.DataObject) -> None:
    format = data.draw(formats())
    events = data.draw(batches(format, special=True))
    made = [
        joined(Batch.of(each, format).buffers())
        for each in (events, [as_namespace(event) for event in events], [to_object(event, format) for event in events])
    ]
    assert made[0] == made[1] == made[2]


@thorough(60)
@given(st.lists(st.tuples(*[st.text(max_size=9) | st.none()] * 2, *[st.binary(max_size=9)] * 2), max_size=5))
def test_texts_are_placed_alike_whatever_their_lengths(rows: list[tuple[Any, ...]]) -> None:
    """Where a block starts depends on the lengths of all before it, and on which of them are null."""
    kinds = (Kind.STRING, Kind.STRING, Kind.BYTES, Kind.BYTES)
    format = format_of(
        *(Field(name, kind, 8, optional=kind is Kind.STRING) for name, kind in zip("abcd", kinds, strict=True))
    )
    events = [to_object(dict(zip("abcd", row, strict=True)), format) for row in rows]
    same_bytes(format, events)
    assert plain(received(Batch.of(events, format)).events()) == plain(events)


def test_all_who_encode_events_of_one_class_share_the_function() -> None:
    """With one for each of thousands of sources, none is in the processor's caches when its turn comes."""
    encoder = encoder_of(Format.of(Point))
    assert encoder.single(Point) is encoder.single(Point)
    assert encoder.single(Point) is not encoder.single(object)


def test_a_record_may_have_a_single_field_of_any_sort() -> None:
    for field, value in [
        (Field("a", Kind.INT, 2), -3),
        (Field("a", Kind.STRING, 8), "text"),
        (Field("a", Kind.BYTES, 8), b"12345678"),
        (Field("a", Kind.STRING, 8, optional=True), None),
        (Field("a", Kind.CHAR, 1, dimensions=(3,)), b"ab"),
        (Field("a", Kind.CHAR, 1), b"x"),
        (Field("a", Kind.BOOL, 1), True),
    ]:
        format = format_of(field)
        for sent in ({"a": value}, SimpleNamespace(a=value), to_object({"a": value}, format)):
            same_bytes(format, [sent] * 3)
            assert [made.a for made in received(Batch.of([sent] * 3, format)).events()] == [value] * 3


def test_all_fits_that_should() -> None:
    same_bytes(Format.of(Order), [fitting(), as_namespace(fitting())])
    (made,) = received(Batch.of([fitting()], Order)).to(Order).events()
    assert plain(made) == plain(fitting())


def refusal(events: Any, declared: Any) -> str:
    """Return the message with which events are refused, the same by the fast function and by the writer."""
    encoder = encoder_of(Format.of(declared))
    messages = []
    for encode in (encoder.encode, encoder.walk):
        with pytest.raises(EncodeError) as caught:
            encode(events)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    return messages[0]


MISFITS: list[tuple[str, Any, str]] = [
    ("small", 128, "expected `int8`, got int 128"),
    ("small", -129, "expected `int8`, got int -129"),
    ("small", 1.0, "expected `int8`, got float 1.0"),
    ("small", "1", "expected `int8`, got str '1'"),
    ("small", None, "expected `int8`, got NoneType None"),
    ("small", 10**100, "expected `int8`, got int 1000"),
    ("wide", -1, "expected `uint64`, got int -1"),
    ("wide", 2**64, "expected `uint64`, got int 18446744073709551616"),
    ("price", "1.5", "expected `float32`, got str '1.5'"),
    ("price", 1e300, "expected `float32`, got float 1e+300"),
    ("price", None, "expected `float32`, got NoneType None"),
    ("price", 10**400, "expected `float32`, got int"),
    ("price", 1j, "expected `float32`, got complex 1j"),
    ("up", "no", "got str 'no'"),
    ("up", None, "got NoneType None"),
    ("letter", b"xy", "got bytes b'xy'"),
    ("letter", b"", "got bytes b''"),
    ("letter", "x", "got str 'x'"),
    ("letter", 120, "got int 120"),
    ("code", b"abcde", "expected at most 4 bytes, got bytes b'abcde'"),
    ("code", "ab", "expected at most 4 bytes, got str 'ab'"),
    ("code", None, "expected at most 4 bytes, got NoneType None"),
    ("name", b"bytes", "expected str, got bytes b'bytes'"),
    ("name", None, "expected str, got NoneType None"),
    ("name", 7, "expected str, got int 7"),
    ("name", "a\ud800b", "character 1 of the text cannot be written as UTF-8"),
    ("note", b"x", "expected str, got bytes b'x'"),
    ("note", "\udfff", "character 0"),
    ("data", "text", "expected bytes, got str 'text'"),
    ("data", None, "expected bytes, got NoneType None"),
    ("data", 5, "expected bytes, got int 5"),
    ("data", [1, 2], "expected bytes, got list [1, 2]"),
    ("data", array.array("B", [1]), "expected bytes, got array"),
    ("grid", [[1, 2, 3]], "expected an array of shape [2][3], got [1][3]"),
    ("grid", [1, 2, 3, 4, 5, 6], "expected an array of shape [2][3], got [6]"),
    ("grid", 5, "expected an array of shape [2][3], got a single value"),
    ("grid", None, "expected an array of shape [2][3], got a single value"),
    ("grid", [[1, 2], [3]], "expected an array of shape [2][3]"),
    ("grid", numpy.zeros((3, 2), numpy.int16), "expected an array of shape [2][3], got [3][2]"),
    ("grid", numpy.zeros((2, 3)), "expected elements of type int16, got float64"),
    ("grid", [[1, 2, 3], [4, 5, 32768]], "element 32768 does not fit int16 (-32768 to 32767)"),
    ("grid", [[1, 2, 3], [4, 5, -32769]], "element -32769 does not fit int16"),
    ("grid", [["a", "b", "c"]] * 2, "expected elements of type int16, got str"),
    ("k", 3, "`k` says 3 elements"),
    ("k", -2, "`k` says -2 elements"),
    ("series", [0.5], "`k` says 2 elements"),
    ("series", [], "`k` says 2 elements"),
    ("series", numpy.zeros((2, 0)), "series"),
    ("series", [[0.5], [1.5]], "expected an array of shape [n], got [2][1]"),
    ("series", 7, "expected an array of shape [n], got a single value"),
    ("series", None, "expected an array of shape [n], got a single value"),
    ("series", "ab", "expected an array of shape [n], got a single value"),
    ("series", [0.5, None], "expected elements of type float32, got object"),
    ("series", [0.5, "x"], "expected elements of type float32, got str"),
    ("series", [0.5, 1j], "expected elements of type float32, got complex128"),
    ("series", [0.5, 1e300], "1e+300"),
    ("series", [0.5, [1.5]], "series"),
    ("whole", [1, 256], "element 256 does not fit uint8 (0 to 255)"),
    ("whole", [-1], "element -1 does not fit uint8"),
    ("whole", [2**70], "element 1180591620717411303424 does not fit uint8"),
    ("whole", [1.0], "expected elements of type uint8, got float64"),
    ("whole", numpy.array([300, 5], ">i4"), "element 300 does not fit uint8"),
    ("tags", "text", "expected a sequence, got str 'text'"),
    ("tags", None, "expected a sequence, got NoneType None"),
    ("tags", ["a", None], "expected str, got NoneType None"),
    ("tags", ["a", b"b"], "expected str, got bytes b'b'"),
    ("pair", ["l"], "expected 2 elements, got list ['l']"),
    ("pair", ["l", "r", "x"], "expected 2 elements, got list"),
    ("pair", "lr", "expected 2 elements, got str 'lr'"),
    ("pair", ["l", 7], "expected str, got int 7"),
    ("color", 2**31, "expected `enum Color`, got int 2147483648"),
    ("color", "RED", "expected `enum Color`, got str 'RED'"),
    ("names", [b"one"], "expected an array of shape [2], got [1]"),
    ("names", [b"one", b"three"], "expected elements of type bytes"),
    ("names", ["one", "two"], "expected elements of type bytes"),
    ("parts", [7], "int 7 has no field `x`"),
    ("parts", {"x": 1.0}, "expected a sequence, got"),
    ("part", None, "NoneType None has no field `x`"),
]


@pytest.mark.parametrize(("name", "value", "message"), MISFITS, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(MISFITS)])
@pytest.mark.parametrize("wrapped", [dict, as_namespace], ids=["mapping", "object"])
def test_a_value_that_does_not_fit_is_refused_naming_field_value_and_event(
    name: str, value: Any, message: str, wrapped: Callable[[Any], Any]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = refusal([fitting(), wrapped(fitting() | {name: value}), fitting()], Order)
    assert message in said
    place = "series" if name == "k" else name
    assert f"Order.{place}" in said
    assert "event 1 of 3" in said


FAST_MISFITS: list[tuple[dict[str, Any], str, str]] = [
    ({"symbol": b"abc"}, "expected str, got bytes b'abc'", "Trade.symbol"),
    ({"symbol": None}, "expected str, got NoneType None", "Trade.symbol"),
    ({"symbol": "\ud800"}, "character 0 of the text", "Trade.symbol"),
    ({"price": "1"}, "expected `float64`, got str '1'", "Trade.price"),
    ({"price": 10**400}, "expected `float64`, got int 1000", "Trade.price"),
    ({"volume": 2**63}, "expected `int64`, got int 9223372036854775808", "Trade.volume"),
    ({"volume": 1.0}, "expected `int64`, got float 1.0", "Trade.volume"),
    ({"venue": -1}, "expected `uint16`, got int -1", "Trade.venue"),
    ({"venue": 65536}, "expected `uint16`, got int 65536", "Trade.venue"),
]


@pytest.mark.parametrize(("change", "message", "place"), FAST_MISFITS)
@pytest.mark.parametrize("make", [Trade, SimpleNamespace, dict], ids=["position", "attribute", "mapping"])
def test_the_fast_function_leaves_complaints_to_the_writer(
    change: dict[str, Any], message: str, place: str, make: Callable[..., Any]
) -> None:
    good = {"symbol": "abc", "price": 1.0, "volume": 2, "venue": 3}
    said = refusal([make(**good), make(**good), make(**(good | change))], Trade)
    assert message in said
    assert f"`{place}`, event 2 of 3" in said


@pytest.mark.parametrize("value", [b"abcde", "abc", None, 7])
def test_the_fast_function_cuts_no_chars(value: Any) -> None:
    format = format_of(Field("c", Kind.CHAR, 1, dimensions=(4,)), Field("x", Kind.INT, 4))
    for fine in (b"", b"abc", b"abcd"):
        same_bytes(format, [SimpleNamespace(c=fine, x=1), to_object({"c": fine, "x": 1}, format)])
    for sent in (SimpleNamespace(c=value, x=1), to_object({"c": value, "x": 1}, format)):
        assert "`Sample.c`, event 0 of 1" in refusal([sent], format)


@pytest.mark.parametrize("make", [SimpleNamespace, dict])
def test_a_missing_field_is_named(make: Callable[..., Any]) -> None:
    said = refusal([make(symbol="abc", price=1.0, volume=2)], Trade)
    assert "has no field `venue` - at `Trade.venue`, event 0 of 1" in said
    nested = fitting() | {"part": make(x=1.0)}
    assert "has no field `label` - at `Order.part.label`, event 0 of 1" in refusal([nested], Order)


def test_a_place_inside_nested_records_is_named_in_full() -> None:
    broken = fitting() | {"parts": [{"x": 1.0, "label": "fine"}, {"x": "1", "label": ""}]}
    assert "`Order.parts.x`" in refusal([broken], Order)
    assert "`Order.part.label`" in refusal([fitting() | {"part": {"x": 1.0, "label": 7}}], Order)


def test_a_long_value_is_shortened_in_the_message() -> None:
    said = refusal([Trade("abc", "x" * 1000, 1)], Trade)
    assert len(said) < 200
    assert "xxx..." in said


def test_numpy_numbers_fit_where_python_numbers_do() -> None:
    trade = Trade("abc", numpy.float32(1.5), numpy.int8(-2), numpy.uint16(65535))
    same_bytes(Format.of(Trade), [trade])
    assert plain(received(Batch.of([trade])).events()) == [
        {"symbol": "abc", "price": "1.5", "volume": -2, "venue": 65535}
    ]


def test_whatever_is_bytes_or_like_them_fits_bytes() -> None:
    format = format_of(Field("b", Kind.BYTES, 8))
    for value in (b"abc", bytearray(b"abc"), memoryview(b"abc")):
        for sent in ({"b": value}, SimpleNamespace(b=value)):
            same_bytes(format, [sent])
            assert Batch.of([sent], format).events()[0].b == b"abc"
    for value in (array.array("B", [1]), array.array("d", [1.0]), numpy.zeros(3, numpy.uint8)):
        assert "`Sample.b`, event 0 of 1" in refusal([SimpleNamespace(b=value)], format)


def test_a_dataclass_a_mapping_and_a_numpy_record_are_events_alike() -> None:
    @dataclasses.dataclass
    class Spot:
        n: int32
        x: float
        y: float

    row = numpy.array([(3, 1.5, -2.5)], [("n", "i4"), ("x", "f8"), ("y", "f8")])[0]
    expected = {"n": 3, "x": "1.5", "y": "-2.5"}
    for sent in (
        Spot(3, 1.5, -2.5),
        {"n": 3, "x": 1.5, "y": -2.5},
        MappingProxyType({"n": 3, "x": 1.5, "y": -2.5}),
        row,
    ):
        assert plain(received(Batch.of([sent, sent], Spot)).events()) == [expected] * 2


@pytest.mark.parametrize("name", ["items", "keys", "values", "get", "pop", "copy", "update", "clear"])
def test_a_mapping_may_have_a_field_that_is_called_like_a_method(name: str) -> None:
    for other in (Field("s", Kind.STRING, 8), Field("s", Kind.INT, 4, dimensions=("",))):
        format = format_of(Field(name, Kind.INT, 8), other)
        made = Batch.of([{name: 77, "s": "" if other.text else []}], format).events()
        assert [getattr(event, name) for event in made] == [77]


@pytest.mark.parametrize("name", ["size", "itemsize", "ndim", "nbytes", "data", "real", "item", "T", "shape", "max"])
def test_a_numpy_record_may_have_a_field_that_is_called_like_an_attribute(name: str) -> None:
    array = numpy.array([(77, 1.0), (78, 2.0)], [(name, "i8"), ("x", "f8")])
    format = format_of(Field(name, Kind.INT, 8), Field("x", Kind.FLOAT, 8))
    assert [getattr(event, name) for event in Batch.of(list(array), format).events()] == [77, 78]


def test_python_integers_fit_arrays_of_the_widest_integers() -> None:
    """NumPy makes floats of a list with numbers on both sides of 2**63."""
    format = format_of(Field("u", Kind.UINT, 8, dimensions=("",)), Field("f", Kind.UINT, 8, dimensions=(3,)))
    values = [0, 2**63, 2**64 - 1]
    (made,) = Batch.of([{"u": values, "f": values}], format).events()
    assert made.u.tolist() == made.f.tolist() == values


def test_a_list_of_integers_and_a_list_of_bools_fit_floats_and_integers() -> None:
    format = format_of(Field("f", Kind.FLOAT, 4, dimensions=("",)), Field("u", Kind.UINT, 2, dimensions=("",)))
    (made,) = Batch.of([{"f": [1, 2], "u": [True, False]}], format).events()
    assert (made.f.tolist(), made.u.tolist()) == ([1.0, 2.0], [1, 0])


def test_an_empty_sequence_stands_for_zeros_in_a_fixed_array() -> None:
    format = format_of(Field("x", Kind.INT, 4, dimensions=(2, 2)), Field("y", Kind.FLOAT, 8, dimensions=(200,)))
    (made,) = Batch.of([{"x": [], "y": ()}], format).events()
    assert made.x.tolist() == [[0, 0], [0, 0]]
    assert not made.y.any()


@pytest.mark.parametrize("architecture", [None, BIG], ids=["native", "foreign"])
def test_arrays_of_either_byte_order_are_written_in_the_right_one(architecture: Any) -> None:
    format = format_of(
        Field("x", Kind.INT, 4, dimensions=("",)),
        Field("y", Kind.FLOAT, 8, dimensions=(200,)),
        architecture=architecture,
    )
    for order in "<>":
        event = {"x": numpy.arange(300, dtype=f"{order}i4"), "y": numpy.arange(200, dtype=f"{order}f8")}
        (made,) = received(Batch.of([event], format)).events()
        assert made.x.tolist() == list(range(300))
        assert made.y.tolist() == list(range(200))


def test_arrays_that_are_not_contiguous_are_written_in_order() -> None:
    whole = numpy.arange(48, dtype=numpy.float64).reshape(6, 8)
    format = format_of(Field("x", Kind.FLOAT, 8, dimensions=(8, 3)), Field("y", Kind.FLOAT, 8, dimensions=("",)))
    (made,) = received(Batch.of([{"x": whole.T[:, ::2], "y": whole[0, ::-1]}], format)).events()
    assert made.x.tolist() == whole.T[:, ::2].tolist()
    assert made.y.tolist() == whole[0, ::-1].tolist()


def shares(pieces: list[Any], array: Any) -> bool:
    return any(len(piece) and numpy.shares_memory(numpy.frombuffer(piece, numpy.uint8), array) for piece in pieces)


def test_large_fixed_arrays_are_not_copied() -> None:
    wind = numpy.random.default_rng(1).random((4, 64))
    grid = Grid(1.0, wind, [1, 2, 3], b"n", b"x", Color.RED, Point(1.0, 2.0, 3))
    pieces, bounds = encoder_of(Format.of(Grid)).encode([grid, grid])
    assert bounds is None
    assert sum(shares([piece], wind) for piece in pieces) == 2
    assert len(joined(pieces)) == 2 * Format.of(Grid).size


def test_large_dynamic_arrays_are_not_copied() -> None:
    samples = numpy.random.default_rng(2).random(1000).astype(numpy.float32)
    (report,) = reports(1)
    report.n, report.samples = 1000, samples
    pieces, bounds = encoder_of(Format.of(Report)).encode([report])
    assert shares(pieces, samples)
    assert list(bounds or ()) == [0, len(joined(pieces))]
    (made,) = received(Batch.of([report])).events()
    assert made.samples.tolist() == samples.tolist()


def test_small_arrays_are_gathered_into_one_piece() -> None:
    assert len(encoder_of(Format.of(Report)).walk(reports(1))[0]) == 1
    small = numpy.zeros(PIECE_BYTES_MIN // 4 - 1, numpy.float32)
    (report,) = reports(1)
    report.n, report.samples = len(small), small
    assert not shares(encoder_of(Format.of(Report)).encode([report])[0], small)


def test_several_large_arrays_keep_their_places() -> None:
    fields = [
        Field("a", Kind.UINT, 1),
        Field("first", Kind.INT, 4, dimensions=(300,)),
        Field("b", Kind.UINT, 1),
        Field("second", Kind.INT, 8, dimensions=(20, 10)),
        Field("third", Kind.INT, 2, dimensions=(600,)),
        Field("c", Kind.STRING, 8),
    ]
    format = format_of(*fields)
    event = {
        "a": 1,
        "first": numpy.arange(300, dtype=numpy.int32),
        "b": 2,
        "second": numpy.arange(200).reshape(20, 10),
        "third": numpy.arange(600, dtype=numpy.int16),
        "c": "text",
    }
    for kept in (fields, fields[:-1]):
        format = format_of(*kept)
        batch = received(Batch.of([event, event], format))
        for made in batch.events():
            assert plain(made) == {field.name: plain(event[field.name]) for field in kept}


def test_one_encoder_serves_a_format() -> None:
    assert encoder_of(Format.of(Trade)) is encoder_of(Format.of(Trade))


def test_events_of_several_classes_may_stand_in_one_batch() -> None:
    mixed = [
        Trade("a", 1.0, 1),
        {"symbol": "b", "price": 2.0, "volume": 2, "venue": 3},
        SimpleNamespace(symbol="c", price=3, volume=3, venue=0),
    ]
    assert [event.symbol for event in Batch.of(mixed, Trade).events()] == ["a", "b", "c"]


def test_a_class_with_the_fields_in_another_order_is_read_by_name() -> None:
    @event
    class Turned:
        venue: uint16
        volume: int
        price: float
        symbol: str

    (made,) = Batch.of([Turned(1, 2, 3.0, "abc")], Trade).events()
    assert made == Trade("abc", 3.0, 2, 1)


def test_padding_is_zero() -> None:
    format = format_of(
        Field("a", Kind.UINT, 1), Field("b", Kind.UINT, 8), Field("s", Kind.STRING, 8), Field("c", Kind.UINT, 1)
    )
    for sent in ({"a": 255, "b": 0, "s": "", "c": 255}, SimpleNamespace(a=255, b=0, s="", c=255)):
        records = bytes(Batch.of([sent], format).records)
        assert records[1:16] == bytes(15)
        assert not any(records[25:])
