"""Dataclasses and msgspec Structs as event types, and classes of all families inside each other."""

import dataclasses
import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import msgspec
import pytest

from echoic.errors import FormatError
from echoic.formats import MISSING, Array, Binding, Format, bind, event, float32, int8, int16, uint8
from tests.formats.declarations import declare


class Side(enum.IntEnum):
    BUY = 1
    SELL = 2


@event
class Station:
    name: str
    height: float32 = 0


def test_dataclasses_are_event_types() -> None:
    @dataclass
    class Point:
        x: float32
        y: float32 = 1

    @dataclass(frozen=True, slots=True)
    class Path:
        name: str
        n: uint8
        points: Array[Point, "n"] = field(default_factory=list)
        extra: Array[str, ...] = field(default_factory=tuple)
        side: Side = Side.SELL

    format = Format.of(Path)
    assert [each.spelling for each in format.fields] == ["string", "uint8", "Point[n]", "string[]", "enum Side"]
    assert [each.default for each in format.fields] == [MISSING, MISSING, (), (), 2]
    assert bind(Path).make("a", 0, [], [], Side.BUY) == Path("a", 0, [], [], Side.BUY)
    assert bind(Path) is bind(Path)


def test_dataclasses_may_want_their_fields_by_name() -> None:
    @dataclass(kw_only=True)
    class Named:
        x: int
        y: float = 2.0
        z: str

    @dataclass
    class Mixed:
        late: int = field(kw_only=True)
        early: int

    assert [each.name for each in Format.of(Named).fields] == ["x", "y", "z"]
    assert bind(Named).make(1, 3.0, "a") == Named(x=1, y=3.0, z="a")
    values = {"late": 1, "early": 2}
    assert bind(Mixed).make(*(values[each.name] for each in Format.of(Mixed).fields)) == Mixed(2, late=1)


def test_dataclasses_inherit_their_fields() -> None:
    @dataclass
    class Base:
        a: int8
        kind: ClassVar[int] = 3

    @dataclass
    class Extended(Base):
        b: int8 = 2

    assert [each.name for each in Format.of(Extended).fields] == ["a", "b"]


@pytest.mark.parametrize("factory", [dict, set, lambda: [1], str, int, object])
def test_any_other_factory_is_refused(factory: Any) -> None:
    made = dataclasses.make_dataclass("T", [("x", Array[int, ...], field(default_factory=factory))])
    with pytest.raises(FormatError, match=r"the default .* does not fit `int64\[\]` - at `T.x`"):
        Format.of(made)


def test_a_factory_of_lists_does_not_fit_a_number() -> None:
    made = dataclasses.make_dataclass("T", [("x", int, field(default_factory=list))])
    with pytest.raises(FormatError, match=r"the default \(\) does not fit `int64` - at `T.x`"):
        Format.of(made)


def test_a_dataclass_that_cannot_be_made_from_its_fields_is_refused() -> None:
    @dataclass
    class Derived:
        x: int
        y: int = field(init=False, default=0)

    @dataclass
    class Seeded:
        x: int
        seed: dataclasses.InitVar[int]

    @dataclass(init=False)
    class Own:
        x: int

        def __init__(self, value: int) -> None:
            self.x = value

    for cls in (Derived, Seeded, Own):
        with pytest.raises(FormatError, match=rf"must be made from its fields and nothing else - at `{cls.__name__}`"):
            bind(cls)


def test_a_dataclass_may_take_more_than_its_fields_if_it_need_not() -> None:
    @dataclass
    class Seeded:
        x: int
        seed: dataclasses.InitVar[int] = 7

    @dataclass(init=False)
    class Own:
        x: int

        def __init__(self, x: int, *rest: int, **more: int) -> None:
            self.x = x + len(rest) + len(more)

    for cls in (Seeded, Own):
        assert [each.name for each in Format.of(cls).fields] == ["x"]
        made: Any = bind(cls).make(3)
        assert made.x == 3


def test_structs_are_event_types() -> None:
    class Point(msgspec.Struct):
        x: float32
        y: float32 = 1

    class Path(msgspec.Struct, frozen=True, rename="camel", tag=True):
        first_name: str
        n: uint8
        points: Array[Point, "n"] = []
        more: Array[str, ...] = msgspec.field(default_factory=tuple)

    format = Format.of(Path)
    assert [each.name for each in format.fields] == ["first_name", "n", "points", "more"]
    assert [each.default for each in format.fields] == [MISSING, MISSING, (), ()]
    assert bind(Path).make("a", 1, [Point(1, 2)], ()) == Path("a", 1, [Point(1, 2)], ())


def test_structs_may_want_their_fields_by_name() -> None:
    class Named(msgspec.Struct, kw_only=True):
        x: int = 1
        y: str

    assert Format.of(Named).field("x").default == 1
    assert bind(Named).make(3, "a") == Named(x=3, y="a")


def test_classes_of_all_families_contain_each_other() -> None:
    class Inner(msgspec.Struct):
        x: int8

    @dataclass
    class Middle:
        inner: Inner
        y: int16

    @event
    class Outer:
        middle: Array[Middle, 2]
        station: Station

    binding = bind(Outer)
    assert [path for path, _ in binding.format.walk()] == [
        "middle",
        "middle.inner",
        "middle.inner.x",
        "middle.y",
        "station",
        "station.name",
        "station.height",
    ]
    middle = binding.members["middle"]
    assert isinstance(middle, Binding)
    assert middle.make(Inner(1), 2) == Middle(Inner(1), 2)
    assert binding.members["station"] == bind(Station)


@dataclass
class Node:
    value: int
    next: "Node"


@dataclass
class Left:
    right: "Right"


@dataclass
class Right:
    left: Annotated[Any, Array[Left, ...]]


@pytest.mark.parametrize(
    ("cls", "chain"), [(Node, "Node > Node"), (Left, "Left > Right > Left"), (Right, "Right > Left > Right")]
)
def test_a_class_that_contains_itself_is_refused_with_the_way_round(cls: type, chain: str) -> None:
    with pytest.raises(FormatError, match=f"a record cannot contain itself: {chain}"):
        Format.of(cls)


def test_a_class_may_stand_in_two_places() -> None:
    pair = dataclasses.make_dataclass("Pair", [("one", Station), ("other", Station)])
    assert Format.of(pair).fields_total == 6


@pytest.mark.parametrize(
    ("make", "levels"), [(event, 64), (event, 100), (dataclass, 64), (dataclass, 100), (dataclass, 500)]
)
def test_classes_nested_too_deep_are_refused(make: Any, levels: int) -> None:
    def nest() -> Format:
        inner: Any = int
        for _ in range(levels + 1):
            inner = make(declare({"inner": inner}))
        return Format.of(inner)

    with pytest.raises(FormatError, match="nested 65 deep, limit is 64 - at `T`"):
        nest()
