"""Event classes, dataclasses and msgspec Structs as event types."""

import datetime
import enum
import typing
from typing import Any, ClassVar, Literal, NewType, Optional

import numpy
import pytest

from echoic.errors import FormatError
from echoic.formats import (
    MISSING,
    NATIVE,
    Array,
    Binding,
    Enumeration,
    Field,
    Format,
    Kind,
    Record,
    bind,
    event,
    float32,
    float64,
    int8,
    int16,
    int32,
    uint8,
    uint16,
)
from tests.formats.declarations import declare


class Side(enum.IntEnum):
    BUY = 1
    SELL = 2


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2
    BOTH = 3


@event
class Station:
    """Where something was measured."""

    name: str
    height: float32 = 0


@event
class Wind:
    at: float
    n: int32
    samples: Array[float32, "n"]
    station: Station
    masts: Array[Station, 2]
    side: Side = Side.BUY
    note: str | None = None
    raw: bytes = b""
    venue: uint16 = 7
    tags: Array[str, ...] = ()


def test_the_annotated_attributes_are_the_fields_in_their_order() -> None:
    assert [(field.name, field.spelling) for field in Format.of(Wind).fields] == [
        ("at", "float64"),
        ("n", "int32"),
        ("samples", "float32[n]"),
        ("station", "Station"),
        ("masts", "Station[2]"),
        ("side", "enum Side"),
        ("note", "string?"),
        ("raw", "bytes"),
        ("venue", "uint16"),
        ("tags", "string[]"),
    ]
    assert Format.of(Wind).name == "Wind"


def test_a_class_is_laid_out_for_this_machine() -> None:
    format = Format.of(Wind)
    assert format == format.on(NATIVE)
    assert format.byte_order == NATIVE.byte_order


def test_defaults_take_the_one_form_that_descriptors_have() -> None:
    defaults = {field.name: field.default for field in Format.of(Wind).fields}
    assert defaults["at"] is defaults["station"] is defaults["n"] is MISSING
    assert {name: value for name, value in defaults.items() if value is not MISSING} == {
        "side": 1,
        "note": None,
        "raw": b"",
        "venue": 7,
        "tags": (),
    }
    assert type(defaults["side"]) is int
    height = Format.of(Station).field("height").default
    assert (height, type(height)) == (0.0, float)


def test_events_are_made_by_position_by_name_and_with_defaults() -> None:
    station = Station("north")
    wind = Wind(1.5, 2, samples=[1.0, 2.0], station=station, masts=[station, station])
    assert (wind.at, wind.n, wind.side, wind.note, wind.venue, wind.tags) == (1.5, 2, Side.BUY, None, 7, ())
    assert isinstance(wind, Record)
    with pytest.raises(TypeError):
        Station()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Station("north", 1.0, 2)  # type: ignore[call-arg]


def test_the_class_keeps_its_name_its_docstring_and_its_home() -> None:
    assert (Station.__name__, Station.__qualname__) == ("Station", "Station")
    assert (Station.__module__, Station.__doc__) == (__name__, "Where something was measured.")


def test_methods_properties_and_class_variables_are_kept() -> None:
    @event
    class Circle:
        kind: ClassVar[str] = "round"
        radius: float

        @property
        def area(self) -> float:
            return 3 * self.radius**2

        @classmethod
        def unit(cls) -> "Circle":
            return cls(1.0)

        @staticmethod
        def sides() -> int:
            return 0

        def grown(self, by: float) -> "Circle":
            return type(self)(self.radius + by)

        def __str__(self) -> str:
            return f"circle of {self.radius}"

    assert [field.name for field in Format.of(Circle).fields] == ["radius"]
    assert Circle.unit().grown(1.0).area == 12.0
    assert (Circle.kind, Circle.sides(), str(Circle(2.0))) == ("round", 0, "circle of 2.0")


def test_a_method_may_call_the_method_it_replaces() -> None:
    @event
    class Loud:
        x: int

        def __len__(self) -> int:
            return super().__len__() + 100

        @property
        def names(self) -> list[str]:
            return [*super().keys()]

        @classmethod
        def kind(cls) -> type:
            return __class__

    assert len(Loud(1)) == 101
    assert Loud(1).names == ["x"]
    assert Loud.kind() is Loud


def test_a_method_may_name_what_is_assigned_only_later() -> None:
    @event
    class Tree:
        height: float

        def taller(self) -> "Tree":
            return Tree(self.height + growth)

    growth = 2.0
    assert Tree(1.0).taller() == Tree(3.0)


def test_a_plain_base_class_is_kept_or_refused_but_not_lost() -> None:
    class Greeting:
        def greet(self) -> str:
            return "hello"

    class Polite(Greeting):
        x: int

    try:
        made = event(Polite)
    except FormatError:
        return
    assert made(1).greet() == "hello"


def test_frozen_events_refuse_assignment() -> None:
    @event(frozen=True)
    class Fixed:
        x: int

    @event
    class Loose:
        x: int

    fixed, loose = Fixed(1), Loose(1)
    loose.x = 2
    assert loose.x == 2
    with pytest.raises(AttributeError):
        fixed.x = 2
    assert fixed == Fixed(1)


def test_an_event_class_extends_another() -> None:
    @event
    class Base:
        a: int8
        b: int16 = 3

        def double(self) -> int:
            return 2 * self.a

    @event
    class Extended(Base):
        c: float64 = 0.5

    @event
    class Twice(Extended):
        b: int16 = 9
        d: str = ""

    assert [field.name for field in Format.of(Extended).fields] == ["a", "b", "c"]
    assert {field.name for field in Format.of(Twice).fields} == {"a", "b", "c", "d"}
    assert Format.of(Twice).field("b").default == 9
    assert Format.of(Base).field("b").default == 3
    assert (Extended(4).double(), Twice(4).b) == (8, 9)
    assert isinstance(Extended(1), Base)
    assert Extended(1) == Extended(1, 3, 0.5)
    assert Extended(1) != Base(1)
    assert bind(Extended).make(1, 2, 3.0) == Extended(1, 2, 3.0)


def test_a_class_that_extends_a_loose_one_is_frozen_when_it_says_so_or_is_refused() -> None:
    @event
    class Base:
        a: int

    class Fixed(Base):
        b: int

    try:
        made = event(frozen=True)(Fixed)
    except FormatError:
        return
    fixed = made(1, 2)
    with pytest.raises(AttributeError):
        fixed.b = 3


def test_a_class_that_extends_a_frozen_one_is_frozen() -> None:
    @event(frozen=True)
    class Base:
        a: int

    @event
    class Fixed(Base):
        b: int

    @event(frozen=True)
    class Firm(Base):
        b: int

    for fixed in (Fixed(1, 2), Firm(1, 2)):
        with pytest.raises(AttributeError):
            fixed.b = 3


def test_a_subclass_that_is_not_decorated_is_no_event_type() -> None:
    class More(Station):  # type: ignore[misc]
        depth: int8 = 0

    more: Any = More("north")
    for ask in (lambda: Format.of(More), lambda: bind(More), lambda: more.format):
        with pytest.raises(FormatError, match=r"`More` extends an event class; decorate it with @echoic.event too"):
            ask()
    assert [field.name for field in Format.of(event(More)).fields] == ["name", "height", "depth"]
    assert more.format is Format.of(More)
    assert Format.of(Station).fields_total == 2


@pytest.mark.parametrize(
    ("annotation", "spelling"),
    [
        (str | None, "string?"),
        (None | str, "string?"),
        (Optional[str], "string?"),  # noqa: UP045 - the other spelling
        (bytes | None, "bytes?"),
    ],
)
def test_text_can_be_optional(annotation: object, spelling: str) -> None:
    assert Format.of(event(declare({"x": annotation}))).field("x").spelling == spelling


class Colour(enum.Enum):
    RED = 1


class Word(enum.StrEnum):
    YES = "yes"


@pytest.mark.parametrize(
    "annotation",
    [
        int | None,
        int16 | None,
        Optional[float],  # noqa: UP045 - the other spelling
        Station | None,
        str | int,
        str | bytes | None,
        list[int],
        dict[str, int],
        tuple,
        set,
        object,
        Any,
        complex,
        None,
        datetime.datetime,
        Literal[1],
        NewType("Metres", int),
        Colour,
        Word,
        typing.Callable,
        typing.TypeVar("T"),
        7,
        (),
        ...,
        numpy.float16,
        numpy.longdouble,
        numpy.datetime64,
        numpy.str_,
        numpy.object_,
    ],
    ids=str,
)
def test_what_has_no_place_in_a_record_is_refused_with_its_place(annotation: object) -> None:
    with pytest.raises(FormatError, match=r"cannot be .* - at `T.x`"):
        event(declare({"x": annotation}))


def test_an_annotation_that_is_no_type_at_all_is_refused() -> None:
    for annotation in ([int], {"a": int}):
        with pytest.raises(FormatError, match=r"T\.x"):
            event(declare({"x": annotation}))


def test_a_family_of_numpy_numbers_is_no_type_of_a_field() -> None:
    for annotation in (numpy.floating, numpy.integer, numpy.number, numpy.generic):
        with pytest.raises(FormatError, match=r"T\.x"):
            event(declare({"x": annotation}))


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("Nowhere", "names `Nowhere`, which is not defined here - at `T`"),
        ("list[Nowhere]", "names `Nowhere`, which is not defined here - at `T`"),
        ("enum.Nowhere", "T"),
        ("1 +", "T"),
        ("int[3]", "T"),
    ],
)
def test_an_annotation_that_cannot_be_evaluated_is_refused(annotation: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        event(declare({"x": annotation}, __module__=__name__))


def test_a_class_without_fields_is_refused() -> None:
    for empty in (declare({}), declare({"kind": ClassVar[int]}, kind=3)):
        with pytest.raises(FormatError, match="at least one field - at `T`"):
            event(empty)


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (uint8, 256),
        (uint8, -1),
        (int8, 1.0),
        (int, "1"),
        (int, None),
        (int, True),
        (int, numpy.int64(3)),
        (float, "x"),
        (float, True),
        (bool, 1),
        (str, None),
        (str, b""),
        (str | None, 3),
        (bytes, ""),
        (Side, "BUY"),
        (Side, 2**31),
        (Array[int, 3], 0),
        (Array[int, 3], (1, 2, 3)),
        (Array[int, 3], None),
        (Array[int, 3], numpy.zeros(3)),
        (Station, None),
        (int, {}),
    ],
)
def test_a_default_that_does_not_fit_is_refused_with_its_place(annotation: object, default: object) -> None:
    with pytest.raises(FormatError, match=r"the default .* does not fit `.*` - at `T.x`"):
        event(declare({"x": annotation}, x=default))


def test_a_default_that_could_be_changed_is_refused_like_any_other() -> None:
    for annotation, default in ((Array[int, 3], [1, 2, 3]), (int, {1}), (Station, Station("x"))):
        with pytest.raises(FormatError, match="default"):
            event(declare({"x": annotation}, x=default))


def test_a_field_without_default_behind_one_with_is_refused() -> None:
    with pytest.raises(FormatError, match=r"order of the fields .* - at `T`"):
        event(declare({"x": int, "y": int}, x=1))


@pytest.mark.parametrize(
    ("annotation", "default"),
    [(float, 10**400), (float32, 1e300), (str, "\ud800")],
    ids=["float64", "float32", "string"],
)
def test_a_default_that_nothing_could_write_is_refused(annotation: object, default: object) -> None:
    with pytest.raises(FormatError, match="default"):
        event(declare({"x": annotation}, x=default))


class Name(str):
    __slots__ = ()


class Blob(bytes):
    __slots__ = ()


@pytest.mark.parametrize(
    ("annotation", "default", "plain"),
    [
        (float, numpy.float64(1.5), 1.5),
        (str, Name("a"), "a"),
        (bytes, Blob(b"a"), b"a"),
        (int, Side.SELL, 2),
        (str, Word.YES, "yes"),
    ],
)
def test_a_default_of_a_derived_type_is_refused_or_becomes_plain(
    annotation: object, default: object, plain: object
) -> None:
    try:
        format = Format.of(event(declare({"x": annotation}, x=default)))
    except FormatError:
        return
    assert Format.from_descriptor(format.descriptor).fields[0].default == plain


def test_an_empty_list_as_default_is_a_new_one_for_every_event() -> None:
    made = event(declare({"n": int, "x": Array[float, "n"]}, n=0, x=[]))
    assert Format.of(made).field("x").default == ()
    assert made().x is not made().x


def enumeration(cls: type[enum.Enum]) -> tuple[int, Enumeration | None]:
    made = Format.of(event(declare({"x": cls}))).field("x")
    return made.size, made.enumeration


def test_an_enumeration_is_an_int_of_c_with_its_members() -> None:
    assert enumeration(Side) == (4, Enumeration("Side", True, (("BUY", 1), ("SELL", 2))))
    assert enumeration(Access) == (4, Enumeration("Access", True, (("READ", 1), ("WRITE", 2), ("BOTH", 3))))


@pytest.mark.parametrize(
    ("values", "size", "signed"),
    [
        ([], 4, True),
        ([-(2**31), 2**31 - 1], 4, True),
        ([2**31], 8, False),
        ([2**64 - 1, 0], 8, False),
        ([-1, 2**31], 8, True),
        ([-(2**63), 2**63 - 1], 8, True),
    ],
    ids=str,
)
def test_an_enumeration_is_as_wide_as_its_values_need(values: list[int], size: int, signed: bool) -> None:
    cls = enum.IntEnum("Wide", [(f"M{index}", value) for index, value in enumerate(values)])
    expected = Enumeration("Wide", signed, tuple((f"M{index}", value) for index, value in enumerate(values)))
    assert enumeration(cls) == (size, expected)


@pytest.mark.parametrize("values", [[2**64], [-1, 2**63], [-(2**63) - 1]], ids=str)
def test_an_enumeration_too_wide_for_any_integer_is_refused(values: list[int]) -> None:
    cls = enum.IntEnum("Wide", [(f"M{index}", value) for index, value in enumerate(values)])
    with pytest.raises(FormatError, match=r"member `M\d` is .*, outside .* to .* - at `T.x`"):
        enumeration(cls)


def test_two_names_of_one_value_are_both_described() -> None:
    cls = enum.IntEnum("Alias", [("A", 1), ("B", 1)])
    assert enumeration(cls)[1] == Enumeration("Alias", True, (("A", 1), ("B", 1)))


def test_known_values_become_members_and_unknown_ones_stay_integers() -> None:
    find: Any = bind(Wind).members["side"]
    assert find(2) is Side.SELL
    assert (find(3), type(find(3))) == (3, int)
    assert (find(-1), type(find(-1))) == (-1, int)


class Strict(enum.IntFlag, boundary=enum.STRICT):
    READ = 1
    WRITE = 2


@pytest.mark.parametrize("value", [0, 1, 3, 4, 5, 2**31 - 1])
def test_flags_with_bits_that_nobody_named_keep_them(value: int) -> None:
    find: Any = bind(event(declare({"x": Access}))).members["x"]
    assert int(find(value)) == value
    assert find(3) is Access.BOTH


def test_flags_never_change_a_value_that_a_stranger_sent_nor_fail() -> None:
    """An IntFlag may refuse unknown bits (boundary=STRICT), and makes -1 the union of all members."""
    for cls in (Access, Strict):
        find: Any = bind(event(declare({"x": cls}))).members["x"]
        assert [int(find(value)) for value in (4, 5, -1, -8)] == [4, 5, -1, -8]


def test_names_outside_ascii_are_refused() -> None:
    for bad in (declare({"x": int}, name="Über"), declare({"größe": int})):
        with pytest.raises(FormatError, match="is not an identifier"):
            event(bad)


def test_what_an_event_type_of_any_family_stands_for_can_be_asked() -> None:
    for declared in (Wind, Format.of(Wind), numpy.dtype([("x", "i4")]), Format.of(numpy.dtype([("x", "i4")]))):
        assert bind(declared).format == Format.of(declared)
    with pytest.raises(FormatError, match="expected an event class"):
        bind(int)


def test_a_format_nobody_declared_gets_generated_classes() -> None:
    binding = bind(Format.of(Wind))
    inner = binding.members["station"]
    assert isinstance(inner, Binding)
    assert "side" not in binding.members
    made: Any = binding.make(1.0, 0, [], inner.make("north", 2.0), [], 7, None, b"", 0, [])
    assert (type(made).__name__, made.station.height, made.side) == ("Wind", 2.0, 7)
    assert not isinstance(made, Wind)


def test_fields_of_a_class_are_placed_fields() -> None:
    assert Format.of(Station).fields == (
        Field("name", Kind.STRING, 8, 0),
        Field("height", Kind.FLOAT, 4, 8, default=0.0),
    )
