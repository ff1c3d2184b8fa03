"""Records as reflection sees them: by attribute, by name in brackets, as a mapping."""

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import FormatError
from echoic.formats import Array, Field, Format, Kind, Record, bind, event
from tests.strategies import formats, records_of, to_object


@event
class Point:
    x: int
    y: float = 0.0


@event
class Shape:
    name: str
    points: Array[Point, ...]
    weights: Array[float, ...]


def test_a_record_tells_its_format() -> None:
    assert Point(1).format is Format.of(Point)
    assert Point(1).format.field("y").spelling == "float64"


def test_a_field_is_an_attribute_and_an_item() -> None:
    point = Point(3, 4.5)
    assert (point.x, point.y) == (3, 4.5)
    assert (point["x"], point["y"]) == (3, 4.5)  # type: ignore[index]


@pytest.mark.parametrize("name", ["z", "", "format", "keys", "__class__", "__struct_fields__", 0, None])
def test_what_is_no_field_is_no_item(name: Any) -> None:
    with pytest.raises(KeyError):
        Point(1)[name]  # type: ignore[index]
    assert name not in Point(1)  # type: ignore[operator]


def test_a_record_is_a_mapping_of_its_fields() -> None:
    point: Any = Point(3, 4.5)
    assert dict(point) == {"x": 3, "y": 4.5}
    assert {**point} == {"x": 3, "y": 4.5}
    assert (list(point), list(point.keys()), list(point.items())) == (["x", "y"], ["x", "y"], [("x", 3), ("y", 4.5)])
    assert (len(point), "x" in point) == (2, True)


def test_records_are_equal_by_type_and_value() -> None:
    assert Point(1) == Point(1, 0.0)
    assert not Point(1) != Point(1, 0.0)  # noqa: SIM202 - another method
    assert Point(1) != Point(2)
    assert not Point(1) == Point(2)  # noqa: SIM201 - another method
    assert Point(1) != Point(1, 0.5)
    assert Point(1) != {"x": 1, "y": 0.0}
    assert Point(1) != (1, 0.0)

    @event
    class Twin:
        x: int
        y: float = 0.0

    assert Point(1) != Twin(1)


def test_records_with_arrays_are_equal_by_their_elements() -> None:
    def shape(*weights: float, make: Any = numpy.array) -> Shape:
        return Shape("a", [Point(1), Point(2)], make(weights))

    assert shape(1.0, 2.0) == shape(1.0, 2.0)
    assert shape(1.0, 2.0) == shape(1.0, 2.0, make=list)
    assert shape(1.0, 2.0, make=list) == shape(1.0, 2.0)
    assert shape(1.0, 2.0) != shape(1.0, 3.0)
    assert shape(1.0, 2.0) != shape(1.0)
    assert shape() == shape()
    assert shape() != shape(0.0)
    assert Shape("a", [Point(1)], []) != Shape("a", [Point(2)], [])
    assert Shape("a", [], []) == Shape("a", [], numpy.array([]))


def test_a_list_is_as_good_as_a_tuple_and_arrays_may_be_inside() -> None:
    assert Shape("a", (), ()) == Shape("a", [], [])
    assert Shape("a", [Point(1)], []) == Shape("a", (Point(1),), [])
    inside = [[Shape("b", [], numpy.array([1.0, 2.0]))] for _ in range(2)]
    assert Shape("a", [inside], []) == Shape("a", [inside], [])
    rows = [[numpy.array([1, 2])], [numpy.array([1, 2])], [numpy.array([1, 3])]]
    assert Shape("a", rows[0], []) == Shape("a", rows[1], [])
    assert Shape("a", rows[0], []) != Shape("a", rows[2], [])
    assert Shape("a", [], []) != Shape("a", "", [])
    assert Shape("a", "", []) != Shape("a", [], [])
    assert Shape("a", [Point(1)], []) != Shape("a", [Point(1), Point(2)], [])


def test_records_cannot_be_keys_because_they_change() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1))


def test_a_record_shows_its_fields() -> None:
    assert repr(Point(1, 2.5)) == "Point(x=1, y=2.5)"


def awkward(*names: str) -> Format:
    fields = tuple(Field(name, Kind.INT, 1, index) for index, name in enumerate(names))
    return Format("class", fields, byte_order="little", alignment=1, size=len(names))


NAMES = ("keys", "items", "format", "class", "def", "self", "cls", "None", "_", "values", "type", "return")


def test_fields_may_be_called_like_methods_and_like_words_of_python() -> None:
    record: Any = bind(awkward(*NAMES)).make(*range(len(NAMES)))
    assert [record[name] for name in NAMES] == list(range(len(NAMES)))
    assert [getattr(record, name) for name in NAMES] == list(range(len(NAMES)))
    assert list(record) == list(NAMES)
    assert len(record) == len(NAMES)
    assert all(name in record for name in NAMES)
    assert {name: record[name] for name in record} == dict(zip(NAMES, range(len(NAMES)), strict=True))
    assert record == bind(awkward(*NAMES)).make(*range(len(NAMES)))
    assert record != bind(awkward(*NAMES)).make(*range(1, len(NAMES) + 1))
    assert type(record).__name__ == "class"


def test_the_format_of_a_record_is_found_behind_a_field_of_that_name() -> None:
    record: Any = bind(awkward("format")).make(7)
    assert record.format == 7
    assert type(record).__echoic_binding__.format == awkward("format")


def test_an_event_class_may_have_such_fields_too() -> None:
    @event
    class Odd:
        keys: int
        format: str = "plain"

    odd = Odd(3)
    assert (odd.keys, odd.format, odd["keys"], list(odd)) == (3, "plain", 3, ["keys", "format"])  # type: ignore[index, call-overload]


def test_classes_are_generated_once_for_equal_formats() -> None:
    one, other = (awkward("a", "b") for _ in range(2))
    assert one is not other
    assert bind(one) is bind(other)


@given(st.data())
def test_a_generated_record_has_what_it_was_given(data: st.DataObject) -> None:
    format = data.draw(formats())
    event = data.draw(records_of(format))
    record = to_object(event, format)
    assert isinstance(record, Record)
    assert list(record) == [field.name for field in format.fields]
    assert type(record).__echoic_binding__.format == format
    for field in format.fields:
        if field.record is None:
            assert record[field.name] == getattr(record, field.name) == event[field.name]
        elif not field.dimensions:
            assert isinstance(record[field.name], Record)
            assert list(record[field.name]) == [nested.name for nested in field.record.fields]
    assert record == to_object(event, format)


def test_a_class_that_extends_an_event_and_was_not_decorated_says_so() -> None:
    @event
    class Base:
        a: int

    class Loose(Base):
        b: int = 0

    with pytest.raises(FormatError, match="decorate it with @echoic"):
        _ = Loose(1).format
    with pytest.raises(FormatError, match="decorate it with @echoic"):
        Format.of(Loose)
