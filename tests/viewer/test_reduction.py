"""What generated E-Code leaves of events, against NumPy; and what bounds a tab's memory and a source's pace."""

import math
from typing import Any

import msgspec
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import echoic
from echoic.ecode import Signature, analyse, check, compile_kernel, parameter_format
from echoic.errors import FormatError
from echoic.formats import NATIVE, Format, format_of_text
from echoic.monitor.pacing import Pace
from echoic.monitor.reduction import COST_MAX, Reduction, chart, shapes, thinning, window
from echoic.testing.samples import Everything, WindField
from echoic.viewer.outbox import Outbox, Piece
from echoic.viewer.watching import Shelf
from echoic.wire import Batch

numbers = st.floats(allow_nan=True, allow_infinity=False, width=32)
PAIR = format_of_text("Pair{a: float64, b: int32}")
PLANE = format_of_text("Plane{cells: float64[7][11]}")
SECOND = 1_000_000_000


def derived(format: Format, reduction: Reduction, batch: Batch, **params: int) -> list[Any]:
    """Run a reduction as a source does, and return what comes out."""
    with echoic.Hub() as hub:
        parent = hub.create("parent", format)
        made = parent.derive(
            reduction.code, reduction.output, params={**reduction.params, **params}, capacities=reduction.capacities
        )
        got: list[Any] = []
        made.subscribe(got.append)
        source = parent.source()
        source.submit_batch(batch.array if not format.variable else list(batch))
        source.flush()
        return got


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(numbers, st.integers(-(2**31), 2**31 - 1)), min_size=1, max_size=40), st.integers(-3, 12))
def test_an_envelope_has_what_numpy_finds_in_each_run_of_events(values: list[tuple[float, int]], every: int) -> None:
    array = numpy.array(values, PAIR.dtype)
    got = derived(PAIR, chart(PAIR, ["a", "b"]), Batch.of(array), every=every)
    size = max(every, 1)
    runs = [array[at : at + size] for at in range(0, len(array) - size + 1, size)]
    assert [event.count for event in got] == [size] * len(runs)
    for event, run in zip(got, runs, strict=True):
        for place, name in (("f0", "a"), ("f1", "b")):
            expected = [numpy.fmin.reduce(run[name]), numpy.fmax.reduce(run[name]), run[name][-1]]
            found = [getattr(event, f"{place}_{part}") for part in ("min", "max", "last")]
            numpy.testing.assert_array_equal(found, numpy.array(expected, float))


@settings(max_examples=15, deadline=None)
@given(
    st.integers(-5, 20),
    st.integers(-5, 20),
    st.integers(-5, 20),
    st.integers(-5, 20),
    st.integers(1, 12),
    st.integers(1, 12),
)
def test_a_window_is_what_numpy_cuts_out_whatever_the_parameters_say(
    top: int, left: int, height: int, width: int, rows: int, columns: int
) -> None:
    array = numpy.zeros(1, PLANE.dtype)
    array["cells"] = numpy.arange(77.0).reshape(7, 11)
    reduction = window(PLANE, "cells", columns, rows)
    (got,) = derived(PLANE, reduction, Batch.of(array), top=top, left=left, height=height, width=width)
    rows, columns = min(rows, 7), min(columns, 11)
    row, column = min(max(top, 0), 6), min(max(left, 0), 10)
    high = height if 1 <= height <= 7 - row else 7 - row
    wide = width if 1 <= width <= 11 - column else 11 - column
    row_step, column_step = math.ceil(high / rows), math.ceil(wide / columns)
    expected = array["cells"][0][row : row + high : row_step, column : column + wide : column_step]
    assert (got.top, got.left, got.height, got.width) == (row, column, high, wide)
    assert (got.row_step, got.column_step) == (row_step, column_step)
    assert (got.rows, got.columns) == expected.shape
    numpy.testing.assert_array_equal(got.cells, expected.reshape(-1))
    assert (got.low, got.high) == (expected.min(), expected.max())


def test_a_dynamic_array_is_a_row_and_an_empty_one_is_no_cell() -> None:
    format = format_of_text("Row{n: int32, cells: float32[n]}")
    batch = Batch.of([{"n": n, "cells": numpy.arange(n, dtype="f4")} for n in (5, 0, 3)], format)
    got = derived(format, window(format, "cells", columns=2), batch)
    assert [list(event.cells) for event in got] == [[0, 3], [], [0, 2]]
    assert [event.low for event in got] == [0, 0, 0]


def test_cells_that_are_no_numbers_are_left_out_of_low_and_high() -> None:
    array = numpy.zeros(2, PLANE.dtype)
    array["cells"][0] = math.nan
    array["cells"][1] = math.nan
    array["cells"][1][3, 4] = 8.0
    got = derived(PLANE, window(PLANE, "cells"), Batch.of(array))
    assert [(event.low, event.high) for event in got] == [(0, 0), (8, 8)]


def test_thinning_lets_each_nth_event_pass_whatever_its_type() -> None:
    array = numpy.array([(n, n) for n in range(10)], PAIR.dtype)
    assert [event.b for event in derived(PAIR, thinning(), Batch.of(array), every=3)] == [2, 5, 8]


def test_an_element_that_is_not_there_is_passed_over_and_does_not_fault() -> None:
    format = format_of_text("Row{n: int32, cells: float32[n]}")
    batch = Batch.of([{"n": n, "cells": numpy.arange(n, dtype="f4")} for n in (1, 4, 2)], format)
    assert [event.f0_last for event in derived(format, chart(format, ["cells[2]"]), batch)] == [2]


@pytest.mark.parametrize("size", ["37][253", "1000][2000", "1][1000000", "1000000][1", "2000000", "", "][3"])
def test_no_window_costs_more_than_a_source_allows(size: str) -> None:
    format = format_of_text(f"Large{{cells: float64[{size}]}}")
    made = window(format, "cells", 4096, 4096)
    assert made.output is not None
    signature = Signature(
        format.on(NATIVE), made.output, parameter_format(made.params), 0, tuple(made.capacities.items())
    )
    program = check(made.code, signature)
    assert analyse(program).cost <= COST_MAX
    compile_kernel(program, analyse(program))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("station.name", "expected a number"),
        ("nope", "no field"),
        ("wind", "indexes"),
        ("wind[9][0]", "outside"),
        ("at.x", "has no fields"),
        ("at; return 1", "expected the path"),
        ("station", "expected a number"),
    ],
)
def test_what_cannot_be_a_line_is_refused_with_a_reason(path: str, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        chart(Format.of(WindField), [path])


@pytest.mark.parametrize("path", ["at", "station", "station.name", "nope", "wind[1]"])
def test_what_cannot_be_a_field_is_refused(path: str) -> None:
    with pytest.raises(FormatError):
        window(Format.of(WindField), path)


def test_names_that_clash_with_each_other_or_with_words_of_e_code_can_be_drawn() -> None:
    format = format_of_text("Odd{int: float64, int_min: float64, count: float64, every: float64}")
    batch = Batch.of(numpy.array([(1, 2, 3, 4)], format.dtype))
    (got,) = derived(format, chart(format, ["int", "int_min", "count", "every"]), batch)
    assert [getattr(got, f"f{n}_last") for n in range(4)] == [1, 2, 3, 4]


def test_shapes_tell_lines_and_planes() -> None:
    found = {shape.path: shape for shape in shapes(Format.of(Everything))}
    assert found["at"].series
    assert not found["at"].plane
    assert (found["cells"].shape, found["cells"].plane) == ([-1, 3], True)
    assert not found["stations.latitude"].series
    assert (found["tags"].kind, found["tags"].plane) == ("text", False)


def test_a_pace_follows_a_channel_that_becomes_fast_and_slow_again() -> None:
    pace, now = Pace(100, 0), 0
    for rate in (5000, 5000, 5000, 20, 20, 20, 20, 20):
        now += SECOND
        pace.note(rate // pace.every)
        every = pace.wanted(now)
        if every is not None:
            pace.begin(every, now)
        if rate == 5000:
            assert 40 <= pace.every <= 60
    assert pace.every == 1


@given(st.floats(0.5, 1e6), st.floats(1, 1000))
def test_a_pace_finds_the_rate_whatever_it_is(rate: float, wanted: float) -> None:
    pace, records = Pace(wanted, 0), 0
    for second in range(1, 60):
        records = int(rate / pace.every)
        pace.note(records)
        every = pace.wanted(second * SECOND)
        if every is not None:
            pace.begin(every, second * SECOND)
    assert records <= 2 * wanted + 1
    assert pace.every == 1 or records == 0 or records >= wanted / 3


def test_a_pace_said_by_a_person_stays() -> None:
    pace = Pace(10, 0)
    pace.automatic = False
    pace.note(100_000)
    assert pace.wanted(10 * SECOND) is None


def pieces(count: int, each: int = 10) -> list[Piece]:
    array = numpy.zeros(each, PAIR.dtype)
    size = array.nbytes
    return [Piece(Batch.of(array), 1, number * each, size) for number in range(count)]


def test_a_tab_that_does_not_read_holds_no_more_than_its_limit_and_is_told_what_it_lost() -> None:
    outbox = Outbox(bytes_max=1600)
    for piece in pieces(1000):
        outbox.put(7, [piece])
        assert outbox.events_bytes <= 1600
    lost = outbox.next()
    assert isinstance(lost, str)
    assert '"Lost"' in lost
    assert '"events":9900' in lost
    assert isinstance(outbox.next(), bytes)
    assert outbox.next() is None
    assert outbox.events_bytes == 0


def test_of_a_field_only_the_last_waits_and_nothing_counts_as_lost() -> None:
    outbox = Outbox()
    outbox.put(1, pieces(5), latest=True)
    assert isinstance(outbox.next(), bytes)
    assert outbox.next() is None


def test_a_shelf_forgets_what_nobody_has_put_there() -> None:
    with echoic.Hub() as hub:
        parent, shelf = hub.create("parent", PAIR), Shelf()
        for every in range(1, 20):
            reduction = msgspec.structs.replace(thinning(), code=thinning().code + " " * every)
            made = shelf.take(parent, reduction)
            shelf.put(parent, reduction, made)
            assert shelf.take(parent, reduction).id == made.id
        assert not shelf._kept  # noqa: SLF001 - nobody else can tell
