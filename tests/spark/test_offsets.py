"""Positions: every event between two offsets is read once, whatever the limits and however it is cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import PipelineError
from echoic.spark.offsets import Range, between, checked, limited, offset_of, placed, split, within
from echoic.spark.options import Boundary

positions = st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 20)), min_size=1, max_size=20)
"""For each partition where it is, and how much waits."""


def pair(waiting: list[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(start for start, _ in waiting), tuple(start + count for start, count in waiting)


@given(positions)
def test_an_offset_comes_back_from_json_as_the_same_text(waiting: list[tuple[int, int]]) -> None:
    start, _ = pair(waiting)
    offset = offset_of(start)
    text = json.dumps(offset)
    assert json.dumps(json.loads(text)) == text == json.dumps(offset, sort_keys=True)
    assert checked(json.loads(text), len(start), "trades") == start


@given(positions, st.integers(1, 1 << 21))
def test_a_batch_respects_its_limit_and_goes_on(waiting: list[tuple[int, int]], rows_max: int) -> None:
    start, heads = pair(waiting)
    end = limited(start, heads, rows_max)
    taken = sum(end) - sum(start)
    assert taken == min(rows_max, sum(heads) - sum(start))
    assert all(first <= last <= head for first, last, head in zip(start, end, heads, strict=True))


@given(positions, st.integers(1, 1 << 16))
def test_no_partition_is_left_behind(waiting: list[tuple[int, int]], rows_max: int) -> None:
    start, heads = pair(waiting)
    end = limited(start, heads, rows_max)
    total = sum(heads) - sum(start)
    for (_, count), first, last in zip(waiting, start, end, strict=True):
        if total:
            assert last - first >= min(count, rows_max * count // total)


@given(positions, st.integers(1, 64), st.integers(1, 100_000))
def test_any_cutting_has_every_event_once(waiting: list[tuple[int, int]], parts: int, rows_min: int) -> None:
    start, heads = pair(waiting)
    ranges = between(start, heads)
    pieces = split(ranges, parts, rows_min)
    joined: dict[int, list[Range]] = {}
    for piece in pieces:
        joined.setdefault(piece.partition, []).append(piece)
    for partition, (first, last) in enumerate(zip(start, heads, strict=True)):
        own = joined.get(partition, [])
        borders = [border for piece in own for border in (piece.start, piece.end)]
        assert borders[1:-1:2] == borders[2::2]
        assert (borders[0], borders[-1]) == (first, last) if own else first == last
        assert all(piece.rows >= rows_min for piece in own) or len(own) == 1
    assert len(pieces) <= parts + len(ranges)


def test_the_parts_of_a_partition_are_about_as_large() -> None:
    assert [piece.rows for piece in split([Range(0, 0, 1_000_000)], 4, 1)] == [250_000] * 4
    assert split([Range(0, 5, 10)], 4) == [Range(0, 5, 10)]
    assert split([], 4) == []


def test_reading_begins_where_it_is_asked_to() -> None:
    firsts, heads = (3, 5), (10, 20)
    assert placed(Boundary("earliest"), firsts, heads, (), "trades") == firsts
    assert placed(Boundary("latest"), firsts, heads, (), "trades") == heads
    assert placed(Boundary("time", 1), firsts, heads, (4, 6), "trades") == (4, 6)
    assert placed(Boundary("positions", 0, ((1, 7),)), firsts, heads, (), "trades") == (3, 7)
    with pytest.raises(PipelineError, match="there is no partition 2, the journal of `trades` has 2"):
        placed(Boundary("positions", 0, ((2, 7),)), firsts, heads, (), "trades")


def test_what_was_removed_is_an_error_unless_it_may_be_left_out() -> None:
    with pytest.raises(PipelineError, match=r"events 1 to 2 of partition 0 were removed .* `onLoss` to `skip`"):
        within((1, 5), (3, 5), (10, 20), "trades", skip=False)
    assert within((1, 6), (3, 5), (10, 20), "trades", skip=True) == (3, 6)
    with pytest.raises(PipelineError, match="go on at event 11 of partition 0, the journal of `trades` ends at 10"):
        within((11, 5), (3, 5), (10, 20), "trades", skip=True)


@pytest.mark.parametrize("offset", [None, [], {}, {"0": 1}, {"0": 1, "2": 1}, {"0": 1, "1": -1}, {"0": 1, "1": "2"}])
def test_an_offset_of_another_journal_is_refused(offset: object) -> None:
    with pytest.raises(PipelineError):
        checked(offset, 2, "trades")
