"""Ready-made modulators that are E-Code, compared with what they should do, on both back ends."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import echoic
from echoic.eager.ready import Difference, Every, RateLimitByTime, Window
from echoic.eager.shared_object import SharedObject
from echoic.errors import ECodeError, FormatError, LocalError
from tests.eager.ready_runs import Program, passed

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
FEW = settings(max_examples=25, deadline=None)


@echoic.event
class Place:
    layer: echoic.int32
    latitude: echoic.int16


@echoic.event
class Grid:
    place: Place
    value: float
    name: str = ""


@echoic.event
class Numbers:
    signed: echoic.int64
    unsigned: echoic.uint64
    narrow: echoic.float32
    wide: echoic.float64


class Box(SharedObject):
    start_layer: int = 0
    end_layer: int = 0
    threshold: float = 0.0


class View(SharedObject):
    layer_min: int = 0
    layer_max: int = 0
    start_latitude: int = 0
    end_latitude: int = 0


numbers = st.builds(
    Numbers,
    INT64 | st.integers(-3, 3),
    st.integers(0, (1 << 64) - 1) | st.integers(0, 3),
    st.floats(width=32) | st.integers(-3, 3).map(float),
    st.floats() | st.integers(-3, 3).map(float),
)
bounds = st.none() | INT64 | st.integers(-3, 3)
reals = st.none() | st.floats(allow_nan=False) | st.integers(-3, 3).map(float)


def inside(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


@FEW
@given(st.lists(numbers, max_size=8), *[st.tuples(bounds, bounds)] * 2, *[st.tuples(reals, reals)] * 2, st.booleans())
def test_a_window_passes_what_lies_within_all_bounds(
    events: list[Any], signed: Any, unsigned: Any, narrow: Any, wide: Any, known: bool
) -> None:
    limits = {"signed": signed, "unsigned": unsigned, "narrow": narrow, "wide": wide}
    if all(bound is None for pair in limits.values() for bound in pair):
        return
    window = Window(limits, declared=Numbers if known else None)
    expected = [event for event in events if all(inside(event[name], *pair) for name, pair in limits.items())]
    found = passed(window, events, Numbers)
    assert [id(event) for event in found] == [id(event) for event in expected]


def test_publishing_a_shared_object_moves_a_window() -> None:
    box = Box(0, 1)
    window = Window({"place.layer": ("start_layer", "end_layer"), "value": (None, 9.5)}, box, declared=Grid)
    events = [Grid(Place(layer, 0), value) for layer in range(4) for value in (1.0, 10.0)]
    program = Program(window, Grid, "native")
    assert [event.place.layer for event in program.run(events)] == [0, 1]
    box.start_layer, box.end_layer = 2, 3
    assert [event.place.layer for event in program.run(events)] == [2, 3]
    assert window.params is box


def test_a_shared_object_alone_bounds_the_fields_that_its_own_are_called_after() -> None:
    window = Window(View(1, 2, -5, 5), declared=Place)
    events = [Place(layer, latitude) for layer in range(4) for latitude in (-6, 0, 5)]
    assert passed(window, events, Place) == [
        event for event in events if 1 <= event.layer <= 2 and event.latitude >= -5
    ]


def test_windows_over_the_same_fields_are_one_program() -> None:
    assert Window({"layer": (0, 1)}).code == Window({"layer": (5, 6)}).code
    assert Window({"layer": (0, 1)}) == Window({"layer": (0, 1)})
    assert Window({"layer": (0, 1)}) != Window({"layer": (0, 2)})


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"place.leyer": (0, 1)}, "did you mean `layer`"),
        ({"name": (0, 1)}, "expected a number, got `string` - at `Grid.name`"),
        ({"place": (0, 1)}, "expected a number, got `Place` - at `Grid.place`"),
        ({"value": ("low", 1)}, "none was given as `box`"),
        ({"value": (math.nan, 1)}, "expected a number, got nan"),
        ({"value": (True, 1)}, "expected a number, got True"),
        ({"value": (1 << 64, None)}, "expected a whole number from -9223372036854775808"),
        ({"value || 1": (0, 1)}, "expected the name of a field"),
        ({"value": (None, None)}, "would pass everything"),
        ({}, "at least one field"),
    ],
)
def test_a_window_that_cannot_be_is_refused_where_it_is_made(limits: Any, message: str) -> None:
    with pytest.raises(LocalError, match=message.replace("(", r"\(").replace("|", r"\|")):
        Window(limits, declared=Grid)


def test_a_window_names_the_field_that_its_box_does_not_have() -> None:
    with pytest.raises(FormatError, match="did you mean `start_layer`"):
        Window({"layer": ("start_layr", "end_layer")}, Box())
    with pytest.raises(LocalError, match="`threshold` does not say what it bounds"):
        Window(Box())


def test_a_field_that_only_the_source_can_check_is_refused_when_it_is_compiled() -> None:
    with pytest.raises(ECodeError, match="did you mean `layer`"):
        Program(Window({"leyer": (0, 1)}), Place, "native")


@FEW
@given(st.integers(1, 7), st.integers(0, 40))
def test_every_nth_event_passes_beginning_with_the_first(n: int, count: int) -> None:
    events = [Place(number, 0) for number in range(count)]
    assert passed(Every(n), events, Place) == events[::n]


@pytest.mark.parametrize("n", [0, -1, True, 1.5, 1 << 63])
def test_only_a_positive_whole_number_can_be_every_nth(n: Any) -> None:
    with pytest.raises(LocalError, match="expected a whole number from 1"):
        Every(n)


def changed(events: list[Any], threshold: float, cell: Any) -> list[Any]:
    """Return what a difference passes, said in Python."""
    last: dict[Any, float] = {}
    found = []
    for event in events:
        key = cell(event)
        before = last.get(key)
        if key is None or before is None or not (event.value == before or abs(event.value - before) <= threshold):
            found.append(event)
            if key is not None:
                last[key] = event.value
    return found


values = st.floats() | st.sampled_from([0.0, 0.5, 1.0, 1.5, math.inf, math.nan])
grids = st.builds(Grid, st.builds(Place, st.integers(-2, 3), st.integers(-2, 3)), values)


@FEW
@given(st.lists(grids, max_size=30), st.sampled_from([0.0, 0.5, 1.0, math.inf]))
def test_a_difference_passes_what_has_changed_since_it_last_passed_something(events: list[Any], limit: float) -> None:
    found = passed(Difference("value", limit, declared=Grid), events, Grid)
    assert list(map(id, found)) == list(map(id, changed(events, limit, lambda _event: 0)))


@FEW
@given(st.lists(grids, max_size=40), st.sampled_from([0.0, 0.5, 1.0]))
def test_a_difference_watches_each_cell_for_itself_and_passes_what_lies_outside(
    events: list[Any], limit: float
) -> None:
    cells = {"place.layer": (-1, 2), "place.latitude": (0, 2)}

    def cell(event: Any) -> Any:
        place = event.place
        within = -1 <= place.layer <= 2 and 0 <= place.latitude <= 2
        return (place.layer, place.latitude) if within else None

    found = passed(Difference("value", limit, cells=cells, declared=Grid), events, Grid)
    assert list(map(id, found)) == list(map(id, changed(events, limit, cell)))


def test_the_threshold_of_a_difference_can_be_shared() -> None:
    box = Box(threshold=10.0)
    program = Program(Difference("value", "threshold", box=box), Grid, "native")
    events = [Grid(Place(0, 0), value) for value in (0.0, 5.0, 9.0)]
    assert program.run(events) == events[:1]
    box.threshold = 1.0
    assert program.run(events) == events[1:]


def test_a_grid_as_large_as_is_allowed_compiles() -> None:
    cells = {"place.layer": (1, 7280)}
    events = [Grid(Place(layer, 0), 1.0) for layer in (1, 7280, 1, 7280, 7281, 7281)]
    assert passed(Difference("value", 0.5, cells=cells), events, Grid) == [events[0], events[1], *events[4:]]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("valu", 1.0), {}, "did you mean `value`"),
        (("name", 1.0), {}, "expected a number, got `string`"),
        (("value", -1.0), {}, "expected a number from 0, got -1.0"),
        (("value", math.nan), {}, "expected a number from 0, got nan"),
        (("value", "threshold"), {}, "none was given as `box`"),
        (("value", 1.0), {"cells": {"place.layer": (0, 9999)}}, "10000 cells needs 90000 bytes"),
        (("value", 1.0), {"cells": {"place.layer": (3, 2)}}, "expected a whole number from 3"),
        (("value", 1.0), {"cells": {"place.leyer": (0, 2)}}, "did you mean `layer`"),
    ],
)
def test_a_difference_that_cannot_be_is_refused_where_it_is_made(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        Difference(*arguments, **options, declared=Grid)


@echoic.event
class Stamped:
    at: echoic.int64
    seconds: float = 0.0


def most_in_any_stretch(times: list[int], interval_ns: int, burst: int) -> bool:
    """Tell whether no stretch of time has more events than it may have."""
    return all(
        last - first + 1 <= burst + (times[last] - times[first]) // interval_ns
        for first in range(len(times))
        for last in range(first, len(times))
    )


@FEW
@given(st.lists(st.integers(0, 400_000_000), max_size=40), st.sampled_from([1, 3, 7.5, 100]), st.integers(1, 4))
def test_no_stretch_of_the_events_time_has_more_than_the_rate(steps: list[int], rate: float, burst: int) -> None:
    times = [sum(steps[: number + 1]) for number in range(len(steps))]
    found = passed(RateLimitByTime("at", rate, burst, unit_ns=1), [Stamped(time) for time in times], Stamped)
    kept = [event.at for event in found]
    assert most_in_any_stretch(kept, math.ceil(1_000_000_000 / rate), burst)
    assert kept[:1] == times[:1]
    if all(step * rate >= 1_000_000_000 for step in steps):
        assert kept == times


def test_a_rate_is_used_up_where_more_events_come() -> None:
    events = [Stamped(milliseconds) for milliseconds in range(0, 3000, 10)]
    found = passed(RateLimitByTime("at", 10, burst=5, unit_ns=1_000_000, declared=Stamped), events, Stamped)
    assert [event.at for event in found] == [0, 10, 20, 30, 40, *range(100, 3000, 100)]


def test_times_may_be_seconds_with_a_fraction() -> None:
    events = [Stamped(0, number / 8) for number in range(33)]
    found = passed(RateLimitByTime("seconds", 2), events, Stamped)
    assert [event.seconds for event in found] == [number / 2 for number in range(9)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("at", 0), "expected a number above 0, got 0 - at `rate`"),
        (("at", math.nan), "expected a number above 0, got nan"),
        (("at", 1, 0), "expected a whole number from 1"),
        (("at", 1e-12, 1000), "take .* ns, limit is"),
        (("second", 1), "did you mean `seconds`"),
    ],
)
def test_a_rate_that_cannot_be_is_refused_where_it_is_made(arguments: Any, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        RateLimitByTime(*arguments, declared=Stamped)
