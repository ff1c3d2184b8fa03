"""Shared objects as a program sees them: fields, drafts, callbacks, threads; a replica stands in for a hub."""

import logging
import threading
from typing import ClassVar

import numpy
import pytest

import echoic
from echoic.channels import SharedView
from echoic.eager import SharedObject, attach, copy_of, encode_values, notify, record_class, refresh
from echoic.errors import ClosedError, EncodeError, FormatError, IncompatibleTypesError, LocalError


@echoic.event
class Point:
    x: float = 0.0
    y: float = 0.0


class Box(SharedObject):
    LAYERS: ClassVar[int] = 37
    start: int = 0
    end: int = 4
    name: str = "all"
    weights: echoic.Array[echoic.float64, ...] = ()
    _seen: int = 0

    def see(self) -> int:
        self._seen += 1
        return self._seen

    def height(self) -> int:
        return self.end - self.start


class Replica:
    """One object in a place without links: what is written is applied at once."""

    def __init__(self, shared: SharedObject) -> None:
        self.id = "m:1/shared/1-00"
        self.format = record_class(type(shared)).__echoic_binding__.format
        self.view = SharedView(encode_values(shared.snapshot(), self.format), 0)
        self.written: list[tuple[str, ...]] = []
        self.released: list[SharedObject] = []
        self.pulls = 0

    def write(self, fields: tuple[str, ...], values: bytes) -> None:
        self.written.append(fields)
        self.view = SharedView(values, self.view.version + 1)

    def pull(self) -> None:
        self.pulls += 1

    def release(self, copy: SharedObject) -> None:
        self.released.append(copy)


def shared(*arguments: object, **named: object) -> tuple[Box, Replica]:
    box = Box(*arguments, **named)
    replica = Replica(box)
    attach(box, replica)
    return box, replica


def test_fields_are_given_in_order_or_by_name_and_have_defaults() -> None:
    box = Box(1, name="some", weights=[1, 2])
    assert (box.start, box.end, box.name, box.height()) == (1, 4, "some", 3)
    assert list(box.weights) == [1.0, 2.0]
    assert (box.id, box.version, box.stale) == ("", 0, False)


def test_a_class_can_extend_another() -> None:
    class Deep(Box):
        depth: float = 1

    deep = Deep(5, depth=2)
    assert (deep.start, deep.depth) == (5, 2.0)
    assert record_class(Deep).__struct_fields__ == ("start", "end", "name", "weights", "depth")


def test_a_field_can_be_an_event() -> None:
    class Placed(SharedObject):
        corner: Point
        size: int = 1

    placed = Placed(Point(1.0, 2.0))
    replica = Replica(placed)
    attach(placed, replica)
    placed.corner = Point(3.0, 4.0)
    placed.publish()
    assert copy_of(Placed, replica).corner == Point(3.0, 4.0)
    with pytest.raises(TypeError, match="corner"):
        Placed()


@pytest.mark.parametrize("name", ["id", "version", "publish", "snapshot"])
def test_a_field_cannot_have_the_name_of_what_every_object_has(name: str) -> None:
    with pytest.raises(FormatError, match=f"`{name}` is a part of every shared object"):
        type("Bad", (SharedObject,), {"__annotations__": {name: int}, name: 0})


def test_an_annotation_that_is_no_field_is_refused() -> None:
    with pytest.raises(FormatError, match="cannot be the type of a field"):
        type("Bad", (SharedObject,), {"__annotations__": {"anything": dict}})


def test_a_class_without_fields_has_no_objects() -> None:
    class Empty(SharedObject):
        pass

    with pytest.raises(FormatError, match="at least one field"):
        Empty()


def test_a_value_that_does_not_fit_is_refused_when_the_object_is_made_or_published() -> None:
    with pytest.raises(EncodeError):
        Box("first")
    box, replica = shared()
    box.start = "first"
    with pytest.raises(EncodeError):
        box.publish()
    assert replica.written == []
    box.start = 3
    box.publish()
    assert replica.written == [("start",)]


def test_values_of_too_many_bytes_are_refused() -> None:
    with pytest.raises(EncodeError, match="limit is 65536"):
        Box(name="x" * 70_000)


def test_an_attribute_that_is_no_field_cannot_be_assigned_unless_it_is_private() -> None:
    box = Box()
    box.see()
    assert box.see() == 2
    with pytest.raises(AttributeError, match="has no field `strat`, only start, end"):
        box.strat = 1
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del box.start


def test_what_is_assigned_is_local_until_it_is_published_and_goes_as_one_change() -> None:
    box, replica = shared()
    other = copy_of(Box, replica)
    box.end = 9
    box.start = 2
    refresh(other)
    assert (other.start, other.end, replica.written) == (0, 4, [])
    box.publish()
    assert replica.written == [("start", "end")]
    refresh(other)
    assert (other.start, other.end, other.version, box.version) == (2, 9, 1, 1)
    box.publish()
    assert len(replica.written) == 1


def test_a_change_from_elsewhere_leaves_what_was_assigned_here() -> None:
    box, replica = shared()
    other = copy_of(Box, replica)
    box.start = 2
    other.start, other.end = 5, 6
    other.publish()
    refresh(box)
    assert (box.start, box.end, box.version) == (2, 6, 1)
    box.publish()
    refresh(other)
    assert other.start == 2


def test_arrays_of_a_published_object_cannot_be_changed_in_place() -> None:
    box, _ = shared(weights=[1.0])
    box.weights = numpy.array([2.0, 3.0])
    box.publish()
    with pytest.raises(ValueError, match="read-only"):
        box.weights[0] = 7.0


def test_nothing_happens_when_what_nobody_shares_is_published_or_pulled() -> None:
    box = Box()
    box.start = 3
    box.publish()
    assert (box.pull(), box.start) == (0, 3)
    with pytest.raises(LocalError, match="not shared yet"):
        box.reference("box")


def test_a_reference_has_the_values_and_the_version() -> None:
    box, replica = shared(1)
    box.end = 9
    box.publish()
    reference = box.reference("window")
    assert (reference.attribute, reference.id, reference.class_name, reference.version) == ("window", box.id, "Box", 1)
    assert (reference.values, reference.format) == (replica.view.values, replica.format.descriptor)


def test_a_copy_is_made_without_the_constructor_of_its_class() -> None:
    class Careful(SharedObject):
        count: int = 0

        def __init__(self) -> None:
            super().__init__(5)

    first = Careful()
    replica = Replica(first)
    attach(first, replica)
    assert copy_of(Careful, replica).count == 5
    with pytest.raises(IncompatibleTypesError):
        copy_of(Box, replica)


def test_an_object_is_shared_once() -> None:
    box, replica = shared()
    with pytest.raises(LocalError, match="shared already"):
        attach(box, replica)


def test_those_who_want_to_hear_are_told_of_what_others_changed() -> None:
    box, replica = shared()
    other = copy_of(Box, replica)
    heard: list[Box] = []
    stop = box.on_change(heard.append)
    box.start = 3
    box.publish()
    assert not refresh(box)
    other.name = "other"
    other.publish()
    assert refresh(box)
    assert not refresh(box)
    notify(box)
    assert heard == [box]
    stop()
    notify(box)
    assert heard == [box]


def test_a_callback_that_fails_is_logged_and_no_matter_of_the_others(caplog: pytest.LogCaptureFixture) -> None:
    box, _ = shared()
    heard: list[Box] = []

    def fail(_: Box) -> None:
        raise ValueError("this one fails")

    box.on_change(fail)
    box.on_change(heard.append)
    with caplog.at_level(logging.ERROR):
        notify(box)
    assert heard == [box]
    assert "this one fails" in caplog.text


def test_the_number_of_callbacks_is_limited() -> None:
    box, _ = shared()
    for _ in range(256):
        box.on_change(print)
    with pytest.raises(LocalError, match="limit is 256"):
        box.on_change(print)


def test_a_copy_that_is_closed_keeps_its_values_and_takes_no_part() -> None:
    box, replica = shared(7)
    box.close()
    box.close()
    assert (box.start, box.stale, replica.released) == (7, True, [box])
    for action in (box.publish, box.pull, lambda: box.on_change(print)):
        with pytest.raises(ClosedError):
            action()


def test_it_can_be_written_and_published_by_several_threads() -> None:
    box, replica = shared()
    done: list[str] = []

    def work(field: str) -> None:
        for number in range(300):
            setattr(box, field, number)
            box.publish()
            assert getattr(box, field) == number
        done.append(field)

    threads = [threading.Thread(target=work, args=(field,)) for field in ("start", "end")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == ["end", "start"]
    last = copy_of(Box, replica)
    assert (last.start, last.end) == (299, 299)
