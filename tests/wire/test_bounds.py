"""Bounds: where records begin and end, believed only when this program made them."""

import itertools

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import MalformedBatchError
from echoic.wire.bounds import checked_bounds


@pytest.mark.parametrize(
    ("bounds", "size", "message"),
    [
        ([8, 16], 16, "records begin at 8 and end at 16, expected 0 and 16"),
        ([0, 8], 16, "records begin at 0 and end at 8, expected 0 and 16"),
        ([0, 24], 16, "end at 24, expected 0 and 16"),
        ([0, 8, 4, 16], 16, "bytes 8 to 4, expected multiples of 8 at least 8 apart, record 1 of 3"),
        ([0, 12, 24], 24, "bytes 0 to 12, .*record 0 of 2"),
        ([0, 8, 8, 16], 16, "bytes 8 to 8, .*record 1 of 3"),
        ([0, 16, 2**32 - 8, 32], 32, "record 2 of 3"),
    ],
)
def test_bounds_that_do_not_cut_into_whole_records_are_refused(bounds: list[int], size: int, message: str) -> None:
    with pytest.raises(MalformedBatchError, match=message):
        checked_bounds(numpy.asarray(bounds, "<u4"), 8, size)


def test_bounds_that_cut_into_whole_records_become_a_sequence() -> None:
    assert list(checked_bounds(numpy.asarray([0, 8, 24], "<u4"), 8, 24)) == [0, 8, 24]


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=6), st.integers(0, 64), st.integers(1, 40))
def test_accepted_bounds_cut_all_bytes_into_whole_records(bounds: list[int], size: int, least: int) -> None:
    for places in (bounds, sorted(bound % (size + 1) for bound in bounds), [0, *(b % 9 * 8 for b in bounds), size]):
        try:
            found = checked_bounds(numpy.asarray(places, "<u4"), least, size)
        except MalformedBatchError:
            continue
        assert list(found) == places
        assert (found[0], found[-1]) == (0, size)
        assert all(end - start >= least and end % 8 == 0 for start, end in itertools.pairwise(places))


def test_bounds_of_this_program_are_not_checked_again() -> None:
    own = [0, 1, 2]
    assert checked_bounds(own, 8, 24) is own
    assert checked_bounds(range(0, 25, 12), 8, 24) == range(0, 25, 12)


def test_no_records_have_one_bound() -> None:
    assert list(checked_bounds(numpy.asarray([0], "<u4"), 8, 0)) == [0]
    with pytest.raises(MalformedBatchError, match="records begin at 0 and end at 0, expected 0 and 8"):
        checked_bounds(numpy.asarray([0], "<u4"), 8, 8)
