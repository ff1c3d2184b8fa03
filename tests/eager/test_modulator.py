"""Modulators as objects: their state, their queue, their equality."""

from typing import ClassVar

import numpy
import pytest

import echoic
from echoic.eager.modulator import QUEUE_EVENTS_MAX, Demodulator, EcodeModulator, Modulator
from echoic.eager.shared_object import SharedObject
from echoic.errors import EncodeError, LocalError, ModulatorError


@echoic.event
class Place:
    layer: int
    name: str = "here"


@echoic.event
class Other:
    layer: float


class Box(SharedObject):
    start: int = 0
    end: int = 0


class Window(Modulator):
    low: float
    high: float = 10.0
    counts: echoic.Array[echoic.int32, 3] = (1, 2, 3)
    label: str = "window"
    place: Place = Place(7)
    kinds: ClassVar[int] = 4
    _seen: int = 0

    @property
    def seen(self) -> int:
        return self._seen

    def enqueue(self, event: object) -> None:
        self._seen += 1
        super().enqueue(event)


class Boxed(Modulator):
    box: Box
    scale: echoic.int16 = 1


class Last(Modulator):
    def dequeue(self) -> object | None:
        last = None
        while (event := super().dequeue()) is not None:
            last = event
        return last


class Folded(Modulator):
    name: str

    def equality(self) -> tuple[object, ...]:
        return (self.name.lower(),)


def test_state_is_given_in_order_or_by_name_and_the_rest_has_defaults() -> None:
    window = Window(1, label="w")
    assert (window.low, window.high, window.label, window.place) == (1.0, 10.0, "w", Place(7))
    assert isinstance(window.low, float)
    assert window.counts.tolist() == [1, 2, 3]
    assert window == Window(low=1.0, label="w")


@pytest.mark.parametrize(
    ("positional", "named", "said"),
    [
        ((), {}, "missing a required argument: 'low'; its state is (low, high, counts, label, place) - at `Window"),
        ((1,), {"hihg": 2}, "unexpected keyword argument 'hihg'"),
        ((1, 2, (1, 2, 3), "w", Place(1), 6), {}, "too many positional arguments"),
        (("one",), {}, "expected `float64`, got str 'one' - at `Window.low`"),
        ((1,), {"counts": (1, 2)}, "at `Window.counts`"),
        ((1,), {"_seen": 2}, "unexpected keyword argument '_seen'"),
    ],
)
def test_wrong_state_is_refused_by_name(positional: tuple[object, ...], named: dict[str, object], said: str) -> None:
    with pytest.raises(LocalError) as refused:
        Window(*positional, **named)
    assert said in str(refused.value)


def test_a_shared_object_must_be_one_of_its_class() -> None:
    with pytest.raises(LocalError, match=r"expected a `Box`, got int 3 - at `Boxed\.box`"):
        Boxed(3)
    box = Box(1, 2)
    assert Boxed(box, 2).box is box


def test_state_belongs_to_each_modulator() -> None:
    first, second = Window(1), Window(1)
    first.counts[0] = 9
    assert second.counts.tolist() == [1, 2, 3]
    assert Window.counts == (1, 2, 3)


def test_annotations_that_cannot_be_state_are_refused() -> None:
    class Odd(Modulator):
        place: object

    class Reserved(Modulator):
        enqueue: int

    class Late(Modulator):
        first: int = 1
        second: int

    for cls, said in ((Odd, "Odd.place"), (Reserved, "`enqueue` is a part of every modulator"), (Late, "follows")):
        with pytest.raises(LocalError, match=said):
            cls()


def test_settings_may_be_annotated_and_are_not_state() -> None:
    class Ticking(Modulator):
        period_ns: int = 1_000_000
        requires: tuple[str, ...] = ("clock",)

    ticking = Ticking()
    assert (ticking.period_ns, ticking.requires) == (1_000_000, ("clock",))
    assert ticking.snapshot().state is None


def test_state_of_a_base_class_comes_first() -> None:
    class Narrow(Window):
        width: int = 3

    assert Narrow(1, 2).snapshot().state is not None
    assert repr(Narrow(1)).endswith("width=3)")
    assert Narrow(1) != Window(1)


@pytest.mark.parametrize("kind", [Modulator, Demodulator])
def test_the_queue_is_first_in_first_out_and_has_a_limit(kind: type[Modulator]) -> None:
    queue = kind()
    for number in range(QUEUE_EVENTS_MAX):
        queue.enqueue(number)
    with pytest.raises(ModulatorError, match="holds 65536 events, limit is 65536"):
        queue.enqueue(0)
    assert queue.waiting == QUEUE_EVENTS_MAX
    assert [queue.dequeue(), queue.dequeue()] == [0, 1]
    queue.start()
    queue.period()


def test_an_empty_queue_gives_nothing() -> None:
    assert Modulator().dequeue() is None


def test_intercepts_call_super_as_in_the_paper() -> None:
    window, last = Window(1), Last()
    for number in (1, 2, 3):
        window.enqueue(number)
        last.enqueue(number)
    assert (window.seen, window.dequeue()) == (3, 1)
    assert (last.dequeue(), last.dequeue()) == (3, None)
    assert last.buffered
    assert not window.buffered


def test_a_constructor_that_forgets_super_has_a_queue_all_the_same() -> None:
    class Forgetful(Demodulator):
        def __init__(self, size: int) -> None:
            self.size = size

    forgetful = Forgetful(3)
    forgetful.enqueue(1)
    assert forgetful.dequeue() == 1


def test_equality_is_class_and_state() -> None:
    assert Window(1) == Window(1.0)
    assert hash(Window(1)) == hash(Window(1.0))
    assert Window(1) != Window(2)
    assert Window(1, counts=(1, 2, 4)) != Window(1)
    assert Window(1) != "window"


def test_objects_that_are_not_shared_yet_are_told_apart() -> None:
    box = Box(1)
    assert Boxed(box) == Boxed(box)
    assert Boxed(box) != Boxed(Box(1))
    assert EcodeModulator("return 1;", params=box) != EcodeModulator("return 1;", params=Box(1))


def test_equality_is_the_users_to_define() -> None:
    assert Folded("Box") == Folded("bOX")
    assert len({Folded("a"), Folded("A"), Folded("b")}) == 2


def test_an_equality_of_things_that_are_no_values_is_refused() -> None:
    class Lost(Modulator):
        def equality(self) -> tuple[object, ...]:
            return (object(),)

    with pytest.raises(LocalError, match=r"expected plain values, arrays, events or shared objects, got object"):
        hash(Lost())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (1, 1.0),
        ("1", b"1"),
        ([1], [[1]]),
        ({"a": 1}, {"a": 2}),
        (numpy.zeros(2), numpy.zeros((2, 1))),
        (numpy.zeros(2), numpy.zeros(2, "f4")),
        (Place(1), Place(2)),
        (None, 0),
        (2**80, 2**80 + 1),
        (Place, Other),
    ],
)
def test_different_values_are_told_apart(left: object, right: object) -> None:
    class Told(Modulator):
        def __init__(self, value: object) -> None:
            self._value = value

        def equality(self) -> tuple[object, ...]:
            return (self._value,)

    assert Told(left) != Told(right)
    assert Told(left) == Told(left)


def test_services_are_there_only_where_it_runs() -> None:
    with pytest.raises(LocalError, match="services are there only where a modulator runs - at `Window`"):
        _ = Window(1).services


def test_state_that_was_spoiled_later_is_refused_when_it_is_to_travel() -> None:
    window = Window(1)
    window.low = "low"
    with pytest.raises(EncodeError, match=r"Window\.low"):
        window.snapshot()


def test_ecode_is_derived_and_not_shipped() -> None:
    cheap = EcodeModulator("return input.price < param.low;", params={"low": 3.0})
    assert cheap == EcodeModulator("return input.price < param.low;", params={"low": 3.0})
    assert cheap != EcodeModulator("return input.price < param.low;", params={"low": 4.0})
    assert cheap != EcodeModulator("return input.price < param.low;", Place, params={"low": 3.0})
    assert len({cheap, EcodeModulator("return 1;")}) == 2
    with pytest.raises(LocalError, match="is E-Code, which is derived"):
        cheap.snapshot()
