"""From which size on a reference pays."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.toolbus.references.threshold import (
    THRESHOLD_BYTES,
    THRESHOLD_BYTES_MAX,
    THRESHOLD_BYTES_MIN,
    Threshold,
)

MICROSECOND = 1_000
KIB = 1024


def test_a_threshold_that_was_not_measured_is_that_of_one_machine() -> None:
    threshold = Threshold()
    assert threshold.bytes == THRESHOLD_BYTES == 256 * KIB
    threshold.observe_latency(100 * MICROSECOND)
    assert threshold.bytes == THRESHOLD_BYTES


def test_a_threshold_is_latency_times_bandwidth() -> None:
    threshold = Threshold()
    threshold.observe_latency(200 * MICROSECOND)
    threshold.observe_transfer(5_000_000, 2_500 * MICROSECOND)  # 2 GB/s
    assert threshold.bytes == 400_000
    assert threshold.statistics().bytes_per_second == pytest.approx(2e9)


@pytest.mark.parametrize(
    ("latency_ns", "duration_ns", "expected"),
    [(1, 10**9, THRESHOLD_BYTES_MIN), (10**9, 10**6, THRESHOLD_BYTES_MAX)],
)
def test_a_threshold_has_limits(latency_ns: int, duration_ns: int, expected: int) -> None:
    threshold = Threshold()
    threshold.observe_latency(latency_ns)
    threshold.observe_transfer(10**6, duration_ns)
    assert threshold.bytes == expected


@pytest.mark.parametrize("fixed", [0, 1, 65_536, math.inf])
def test_what_is_set_is_not_measured(fixed: float) -> None:
    threshold = Threshold(fixed)
    threshold.observe_latency(200 * MICROSECOND)
    threshold.observe_transfer(5_000_000, 2_500 * MICROSECOND)
    assert threshold.bytes == fixed
    assert threshold.statistics().fixed
    threshold.fixed = None
    assert threshold.bytes == 400_000


def test_one_odd_measurement_does_not_decide() -> None:
    threshold = Threshold()
    for _ in range(20):
        threshold.observe_latency(200 * MICROSECOND)
        threshold.observe_transfer(5_000_000, 2_500 * MICROSECOND)
    threshold.observe_latency(1_000 * MICROSECOND)
    assert threshold.bytes == 600_000
    for _ in range(40):
        threshold.observe_latency(200 * MICROSECOND)
    assert 400_000 <= threshold.bytes < 404_000


@given(st.lists(st.tuples(st.integers(-10, 10**18), st.integers(-10, 10**18), st.integers(-10, 10**18))))
def test_whatever_is_measured_the_threshold_is_within_its_limits(measured: list[tuple[int, int, int]]) -> None:
    threshold = Threshold()
    for latency_ns, size, duration_ns in measured:
        threshold.observe_latency(latency_ns)
        threshold.observe_transfer(size, duration_ns)
        assert THRESHOLD_BYTES_MIN <= threshold.bytes <= THRESHOLD_BYTES_MAX
