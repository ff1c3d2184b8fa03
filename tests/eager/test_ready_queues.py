"""Ready-made modulators in Python that choose what is sent: rate, newest, priority, difference by key."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import echoic
from echoic.eager.ready import DifferenceByKey, Latest, Priority, RateLimit
from echoic.eager.ready import priority as priority_module
from echoic.errors import FormatError, LocalError, ModulatorError
from tests.eager.ready_runs import drained, sent
from tests.eager.test_ready_ecode import most_in_any_stretch


@echoic.event
class Quote:
    symbol: str
    price: float
    number: int = 0
    urgency: echoic.int8 = 0
    sizes: echoic.Array[int, ...] = ()


class Ticking(RateLimit):
    """A rate limit by a clock that a test sets."""

    _now = 0

    def clock(self) -> int:
        """Return the time that the test has set."""
        return self._now

    def at(self, now: int) -> "Ticking":
        """Set the time."""
        self._now = now
        return self


@given(st.lists(st.integers(0, 400_000_000), max_size=60), st.sampled_from([1, 3, 7.5, 1000]), st.integers(1, 5))
def test_no_stretch_of_time_has_more_events_than_the_rate(steps: list[int], rate: float, burst: int) -> None:
    limit = Ticking(rate, burst)
    limit.start()
    now, times, came = 0, [], []
    for step in steps:
        now += step
        came.append(now)
        times += [now] * len(sent(limit.at(now), [Quote("A", 1.0)]))
    assert most_in_any_stretch(times, math.ceil(1_000_000_000 / rate), burst)
    assert times[:burst] == came[: len(times[:burst])]


def test_a_pause_gives_the_burst_back_and_no_more() -> None:
    limit = Ticking(1, burst=3)
    limit.start()
    five = [Quote("A", 1.0, number) for number in range(5)]
    assert sent(limit, five) == five[:3]
    assert sent(limit.at(1_000_000_000), five) == five[:1]
    assert sent(limit.at(60_000_000_000), five) == five[:3]


def test_a_rate_limit_has_a_clock_of_its_own() -> None:
    limit = RateLimit(1e-6)
    limit.start()
    assert len(sent(limit, [Quote("A", 1.0)] * 3)) == 1


keyed = st.builds(Quote, st.sampled_from("ABC"), st.floats(-2, 2), st.integers(0, 1))
steps = st.lists(keyed | st.just("take"), max_size=40)


@given(steps, st.sampled_from([[], ["symbol"], ["symbol", "number"]]))
def test_of_what_waits_only_the_newest_of_each_key_is_kept_and_order_stays(given: list[Any], keys: list[str]) -> None:
    latest = Latest(keys, declared=Quote)
    latest.start()
    waiting: list[Any] = []
    for step in given:
        if step == "take":
            assert latest.dequeue() is (waiting.pop(0) if waiting else None)
            continue
        waiting = [event for event in waiting if any(event[key] != step[key] for key in keys)] + [step]
        latest.enqueue(step)
        assert latest.waiting == len(waiting)
    assert [id(event) for event in drained(latest)] == [id(event) for event in waiting]


def test_while_the_transport_is_ready_everything_passes() -> None:
    events = [Quote("A", 1.0, number) for number in range(5)]
    for modulator in (Latest(), Latest("symbol"), Priority("urgency")):
        modulator.start()
        assert sent(modulator, events) == events


@given(st.lists(st.integers(-3, 3), max_size=50))
def test_higher_priority_leaves_first_and_equals_in_their_order(urgencies: list[int]) -> None:
    queue = Priority("urgency", declared=Quote)
    queue.start()
    events = [Quote("A", 1.0, number, urgency) for number, urgency in enumerate(urgencies)]
    for event in events:
        queue.enqueue(event)
    assert drained(queue) == sorted(events, key=lambda event: -event.urgency)


@given(st.lists(st.integers(-3, 3) | st.just("take"), max_size=60), st.integers(1, 5))
def test_a_full_queue_drops_what_would_be_sent_last_and_tells_once_until_it_is_read(given: Any, capacity: int) -> None:
    queue = Priority("urgency", capacity)
    queue.start()
    waiting: list[Any] = []
    told = full = 0
    for number, step in enumerate(given):
        if step == "take":
            assert queue.dequeue() is (waiting.pop(0) if waiting else None)
            full = 0
            continue
        event = Quote("A", 1.0, number, step)
        waiting = sorted([*waiting, event], key=lambda each: -each.urgency)
        if len(waiting) > capacity and not full:
            full = 1
            with pytest.raises(ModulatorError, match=f"{capacity} events wait, which is the limit"):
                queue.enqueue(event)
        else:
            queue.enqueue(event)
        told += len(waiting) - len(waiting[:capacity])
        del waiting[capacity:]
        assert queue.waiting == len(waiting)
        assert queue.dropped == told
    assert drained(queue) == waiting


def test_what_is_not_a_number_has_the_lowest_priority() -> None:
    queue = Priority("price")
    queue.start()
    for price in (math.nan, -math.inf, 1.0, math.nan):
        queue.enqueue(Quote("A", price))
    assert [event.price for event in drained(queue)[:1]] == [1.0]
    assert queue.capacity == priority_module.CAPACITY


def by_key(events: list[Any], threshold: float, keys: list[str], keys_max: int) -> list[Any]:
    """Return what a difference by key passes, said in Python."""
    last: list[tuple[Any, float]] = []
    found = []
    for event in events:
        key = tuple(event[name] for name in keys)
        before = [value for known, value in last if known == key]
        if before and abs(event.price - before[0]) <= threshold:
            continue
        last = [(known, value) for known, value in last if known != key] + [(key, event.price)]
        last = last[-keys_max:]
        found.append(event)
    return found


@given(
    st.lists(keyed, max_size=40),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([["symbol"], ["symbol", "number"]]),
    st.integers(1, 4),
)
def test_a_difference_by_key_passes_what_has_changed(given: Any, limit: float, keys: list[str], keys_max: int) -> None:
    difference = DifferenceByKey("price", limit, keys, keys_max=keys_max, declared=Quote)
    difference.start()
    assert list(map(id, sent(difference, given))) == list(map(id, by_key(given, limit, keys, keys_max)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Latest("symbl", declared=Quote), "did you mean `symbol`"),
        (lambda: Latest("sizes", declared=Quote), "expected a number or a text, got `int64"),
        (lambda: Latest("a b"), "expected the name of a field"),
        (lambda: Priority("urgencey", declared=Quote), "did you mean `urgency`"),
        (lambda: Priority("symbol", declared=Quote), "expected a number, got `string`"),
        (lambda: Priority("urgency", 0), "expected a whole number from 1 to 65536, got 0 - at `capacity`"),
        (lambda: DifferenceByKey("price", 1.0, []), "at least one key"),
        (lambda: DifferenceByKey("price", 1.0, "symbol", keys_max=0), "at `keys_max`"),
        (lambda: RateLimit(-1), "expected a number above 0, got -1 - at `rate`"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_made(make: Any, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        make()


@pytest.mark.parametrize("modulator", [Latest("symbl"), Priority("symbl"), DifferenceByKey("price", 1.0, "symbl")])
def test_a_field_that_only_the_source_can_check_is_named_at_the_first_event(modulator: Any) -> None:
    modulator.start()
    with pytest.raises(FormatError, match="`Quote` has no field `symbl`; did you mean `symbol`"):
        modulator.enqueue(Quote("A", 1.0))
