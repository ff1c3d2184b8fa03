"""The pace of a replay, whatever is done to it and whatever the recording's clock did."""

import math
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echoic.errors import LocalError
from echoic.recorder.replaying import Pacing

SECOND = 1_000_000_000
GAP_SECONDS = 60.0

differences = st.one_of(
    st.integers(0, 5 * SECOND), st.integers(-(10**18), 10**18), st.sampled_from([0, 1, 60 * SECOND, 60 * SECOND + 1])
)
recordings = st.lists(st.tuples(differences, st.integers(1, 5)), min_size=1, max_size=20)
rates = st.one_of(st.floats(0.01, 1000), st.sampled_from([0.0, 1.0, math.inf, 2.0, 1 / 3, 5e-324, 1e300]))
orders = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(0, 100 * SECOND)),
        st.tuples(st.just("wait"), st.just(0)),
        st.tuples(st.just("pause"), st.just(0)),
        st.tuples(st.just("resume"), st.just(0)),
        st.tuples(st.just("step"), st.integers(0, 7)),
        st.tuples(st.just("rate"), rates),
    ),
    max_size=40,
)


class Player:
    """Does what the thread of a replay does, with a clock of its own, and checks every batch against exact fractions.

    `exact` is where the schedule's clock stands, without rounding. `changes` bounds what rounding may have cost.
    """

    def __init__(self, recording: list[tuple[int, int]], rate: float, *, paused: bool = False) -> None:
        self.pacing = Pacing(rate, gap_seconds_max=GAP_SECONDS, paused=paused)
        self.now = 10**18
        self.rate = rate
        self.paused = paused
        self.exact = Fraction(0)
        self.changes = 0
        self.taken: list[tuple[int, int]] = []
        self._batches = self._read(recording)
        self._batch = (0, 0, 0)
        self._load()

    def _read(self, recording: list[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
        time_ns = place = 1_700_000_000 * SECOND
        first = place
        for number, (difference, count) in enumerate(recording):
            if number:
                time_ns += difference
                place += min(max(difference, 0), int(GAP_SECONDS * SECOND))
            yield number, time_ns, count, place - first

    @property
    def full_speed(self) -> bool:
        return self.rate in (0, math.inf)

    def _load(self) -> None:
        loaded = next(self._batches, None)
        if loaded is not None:
            number, time_ns, count, place = loaded
            self._batch = (number, 0, place)
            self.pacing.load(time_ns, count, self.now)

    def play(self) -> None:
        """Take whatever may go."""
        while allowed := self.pacing.allowed(self.now):
            number, offset, place = self._batch
            if self.paused:
                self.exact = max(self.exact, Fraction(place))
            elif self.full_speed:
                self.exact = Fraction(place)
            else:
                assert self.exact >= place, f"batch {number} is early"
            self.pacing.take(allowed, self.now)
            self.taken += [(number, offset + each) for each in range(allowed)]
            self._batch = (number, offset + allowed, place)
            if not self.pacing.left:
                self._load()

    def advance(self, passed: int) -> None:
        self.now += passed
        if not self.paused and not self.full_speed:
            self.exact += passed * Fraction(self.rate)

    def obey(self, order: str, value: float) -> None:
        match order:
            case "pass":
                self.advance(int(value))
            case "wait":
                self.wait()
            case "pause":
                self.pacing.pause(self.now)
                self.paused = True
            case "resume":
                self.pacing.resume(self.now)
                self.paused = False
            case "step":
                self.pacing.step(int(value), self.now)
                self.paused = True
            case "rate":
                self.pacing.set_rate(value, self.now)
                self.rate = value
        self.changes += order not in ("pass", "wait")
        self.play()

    def wait(self) -> None:
        """Wait for just as long as the pacing says; one nanosecond less must not do."""
        wait = self.pacing.wait_ns(self.now)
        if wait:
            assert not self.pacing.allowed(self.now + wait - 1)
            self.advance(wait)
            assert self.pacing.allowed(self.now)
            late = self.exact - self._batch[2]
            assert late <= Fraction(self.rate) + self.changes + 1, "later than need be"

    def finish(self) -> None:
        """Go on to the end at an ordinary rate, waiting as told."""
        self.obey("rate", 1.0)
        self.obey("resume", 0)
        while self.pacing.left:
            self.obey("wait", 0)


def events_of(recording: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(number, each) for number, (_, count) in enumerate(recording) for each in range(count)]


@given(recordings, rates, orders, st.booleans())
@example([(0, 1), (-(10**18), 1), (10**18, 1), (5, 1)], 1.0, [("wait", 0), ("wait", 0)], False)
@example([(0, 3), (SECOND, 3)], math.inf, [("step", 2), ("rate", 1.0), ("resume", 0)], True)
def test_every_event_goes_once_in_order_and_never_early_whatever_is_done_meanwhile(
    recording: list[tuple[int, int]], rate: float, given_orders: list[tuple[str, float]], paused: bool
) -> None:
    player = Player(recording, rate, paused=paused)
    player.play()
    for order, value in given_orders:
        player.obey(order, value)
        assert player.taken == events_of(recording)[: len(player.taken)]
    player.finish()
    assert player.taken == events_of(recording)


@given(recordings, st.floats(0.01, 1000))
def test_a_whole_replay_takes_as_long_as_the_schedule_says(recording: list[tuple[int, int]], rate: float) -> None:
    player = Player(recording, rate)
    begun = player.now
    player.play()
    while player.pacing.left:
        player.obey("wait", 0)
    scheduled = sum(min(max(difference, 0), int(GAP_SECONDS * SECOND)) for difference, _ in recording[1:])
    assert player.now - begun == math.ceil(scheduled / Fraction(rate))


@given(recordings, st.lists(st.floats(0.01, 1000), min_size=1, max_size=10), st.data())
def test_another_rate_never_makes_the_clock_jump(
    recording: list[tuple[int, int]], wanted: list[float], data: st.DataObject
) -> None:
    player = Player(recording, 1.0)
    player.play()
    for rate in wanted:
        player.obey("pass", data.draw(st.integers(0, SECOND)))
        before = player.pacing.recorded_ns(player.now)
        player.pacing.set_rate(rate, player.now)
        player.rate = rate
        assert player.pacing.recorded_ns(player.now) == before


@given(recordings, st.lists(st.integers(1, 4), max_size=30))
def test_steps_give_just_as_many_events_as_were_asked_for(recording: list[tuple[int, int]], steps: list[int]) -> None:
    player = Player(recording, 1.0, paused=True)
    player.play()
    assert player.taken == []
    total = sum(count for _, count in recording)
    for number, step in enumerate(steps):
        player.obey("step", step)
        assert len(player.taken) == min(total, sum(steps[: number + 1]))
        player.advance(10**12)
        player.play()
        assert len(player.taken) == min(total, sum(steps[: number + 1]))


@given(recordings)
def test_steps_of_a_batch_give_one_batch_each(recording: list[tuple[int, int]]) -> None:
    player = Player(recording, 1.0, paused=True)
    for number in range(len(recording)):
        player.obey("step", 0)
        assert len(player.taken) == sum(count for _, count in recording[: number + 1])


def test_a_step_of_a_batch_gives_the_rest_of_one_that_was_begun() -> None:
    player = Player([(0, 5), (1, 5)], 1.0, paused=True)
    player.obey("step", 2)
    player.obey("step", 0)
    assert player.taken == [(0, each) for each in range(5)]


def test_after_a_step_the_next_batch_comes_after_the_time_it_had_in_the_recording() -> None:
    player = Player([(0, 1), (40 * SECOND, 1), (3 * SECOND, 1)], 1.0)
    player.play()
    player.obey("step", 0)
    assert len(player.taken) == 2
    player.obey("resume", 0)
    assert player.pacing.wait_ns(player.now) == 3 * SECOND


def test_a_pause_takes_no_time_of_the_schedule() -> None:
    player = Player([(0, 1), (10 * SECOND, 1)], 2.0)
    player.play()
    player.obey("pass", SECOND)
    player.obey("pause", 0)
    assert player.pacing.wait_ns(player.now) is None
    player.obey("pass", 10**15)
    player.obey("resume", 0)
    assert player.pacing.wait_ns(player.now) == 4 * SECOND


def test_full_speed_never_waits_and_any_rate_can_follow_it() -> None:
    player = Player([(0, 1), (10 * SECOND, 1), (10 * SECOND, 1)], 0)
    while player.pacing.left:
        assert player.pacing.wait_ns(player.now) == 0
        player.play()
    pacing = Pacing(math.inf)
    for time_ns in (0, 30 * SECOND):
        pacing.load(time_ns, 1, 0)
        pacing.take(1, 0)
    pacing.load(40 * SECOND, 1, 5)
    pacing.set_rate(2.0, 5)
    assert pacing.wait_ns(5) == 5 * SECOND


def test_what_follows_a_restart_is_due_at_once_and_keeps_its_pace_from_there() -> None:
    pacing = Pacing(1.0)
    pacing.load(1000 * SECOND, 1, 0)
    pacing.take(1, 0)
    pacing.load(1010 * SECOND, 1, 0)
    pacing.restart(7)
    assert pacing.left == 0
    pacing.load(5 * SECOND, 1, 9)
    assert pacing.allowed(9) == 1
    pacing.take(1, 9)
    pacing.load(6 * SECOND, 1, 10)
    assert pacing.wait_ns(10) == SECOND - 1


def test_the_time_in_the_recording_runs_between_two_batches_and_not_beyond() -> None:
    pacing = Pacing(2.0)
    assert pacing.recorded_ns(0) is None
    pacing.load(100 * SECOND, 1, 0)
    pacing.take(1, 0)
    pacing.load(110 * SECOND, 1, 0)
    assert pacing.recorded_ns(SECOND) == 102 * SECOND
    assert pacing.recorded_ns(50 * SECOND) == 110 * SECOND


def test_statistics_tell_the_rate_the_lag_and_what_the_clock_of_the_recording_did() -> None:
    pacing = Pacing(2.0)
    pacing.load(0, 1, 0)
    pacing.take(1, 0)
    pacing.load(10 * SECOND, 1, 0)
    assert pacing.statistics(SECOND).rate_achieved == 2.0
    pacing.take(1, 8 * SECOND)
    told = pacing.statistics(8 * SECOND)
    assert (told.lag_ns, told.rate_achieved, told.rate) == (3 * SECOND, 10 / 8, 2.0)
    pacing.load(9 * SECOND, 1, 8 * SECOND)
    pacing.take(1, 8 * SECOND)
    pacing.load(100 * SECOND, 1, 8 * SECOND)
    told = pacing.statistics(8 * SECOND)
    assert (told.steps_back, told.leaps, told.left_out_ns) == (1, 1, 31 * SECOND)


@pytest.mark.parametrize("rate", [-1.0, math.nan, -math.inf])
def test_what_is_not_a_rate_is_refused(rate: float) -> None:
    with pytest.raises(LocalError, match="expected a rate of at least 0, got"):
        Pacing(rate)
    pacing = Pacing(3.0)
    with pytest.raises(LocalError, match="expected a rate of at least 0, got"):
        pacing.set_rate(rate, 0)
    assert pacing.rate == 3.0


def test_wrong_limits_steps_and_takings_are_refused() -> None:
    with pytest.raises(LocalError, match="gap_seconds_max of at least 0, got -1"):
        Pacing(gap_seconds_max=-1)
    pacing = Pacing()
    with pytest.raises(LocalError, match="step of at least 1 event, or 0 for a batch, got -2"):
        pacing.step(-2, 0)
    pacing.load(0, 2, 0)
    with pytest.raises(LocalError, match="2 events are still in hand"):
        pacing.load(0, 1, 0)
    with pytest.raises(LocalError, match="3 events cannot be taken, 2 may go"):
        pacing.take(3, 0)


def test_without_a_limit_any_gap_is_waited_for() -> None:
    pacing = Pacing(gap_seconds_max=math.inf)
    pacing.load(0, 1, 0)
    pacing.take(1, 0)
    pacing.load(10**17, 1, 0)
    assert pacing.wait_ns(0) == 10**17
