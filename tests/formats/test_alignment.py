"""Rounding up."""

from hypothesis import given
from hypothesis import strategies as st

from echoic.formats.alignment import round_up


@given(st.integers(0, 2**40), st.sampled_from([1, 2, 4, 8, 16]))
def test_rounding_up_gives_the_nearest_multiple_that_is_not_below(value: int, alignment: int) -> None:
    rounded = round_up(value, alignment)
    assert rounded % alignment == 0
    assert 0 <= rounded - value < alignment
    assert round_up(rounded, alignment) == rounded


def test_blocks_are_multiples_of_eight() -> None:
    assert [round_up(value) for value in (0, 1, 8, 9)] == [0, 8, 8, 16]
