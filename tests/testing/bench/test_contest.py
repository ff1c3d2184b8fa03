"""Who takes turns with whom: with sessions that write down what they are asked for."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from echoic.testing.bench import (
    PAYLOADS,
    Contender,
    Effort,
    Placement,
    Session,
    Setup,
    Tally,
    entered,
    entered_throughout,
    interleave,
    time_call,
)
from echoic.testing.bench.processes import children

SETUP = Setup("100 B")


class Journal:
    """Contenders that do nothing but take so many seconds, and tell."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.counts: list[int] = []

    def contender(self, name: str, seconds: float = 0.0001) -> Contender:
        @contextmanager
        def open(_: Setup) -> Iterator[Session]:  # noqa: A001 - what a contender calls it
            self.lines.append(f"open {name}")

            def session(count: int) -> float:
                self.lines.append(name)
                self.counts.append(count)
                time.sleep(count * seconds)
                return seconds

            yield session
            self.lines.append(f"close {name}")

        return Contender(name, open)


def test_all_are_open_before_anyone_is_measured_and_closed_after_the_last_sample() -> None:
    journal = Journal()
    several = [journal.contender(name) for name in "abc"]
    interleave(entered(several, "x", SETUP), Effort(rounds=5, sample_seconds=0.001))
    assert journal.lines[:3] == ["open a", "open b", "open c"]
    assert journal.lines[-3:] == ["close c", "close b", "close a"]


def test_every_round_has_one_sample_of_each_and_orders_differ() -> None:
    journal = Journal()
    several = [journal.contender(name) for name in "abcd"]
    samples = interleave(entered(several, "x", SETUP), Effort(rounds=6, sample_seconds=0.001))
    assert {len(seconds) for seconds in samples.seconds.values()} == {6}
    turns = journal.lines[-24 - 4 : -4]
    rounds = ["".join(turns[start : start + 4]) for start in range(0, 24, 4)]
    assert all(sorted(each) == list("abcd") for each in rounds)
    assert len(set(rounds)) > 1


def test_the_seed_decides_the_order() -> None:
    orders = []
    for _ in range(2):
        journal = Journal()
        several = [journal.contender(name) for name in "abcdef"]
        interleave(entered(several, "x", SETUP), Effort(rounds=3, sample_seconds=0.001, seed=5))
        orders.append(journal.lines[-18 - 6 :])
    assert orders[0] == orders[1]


def test_a_sample_has_as_many_operations_as_fill_it() -> None:
    journal = Journal()
    interleave(entered([journal.contender("a", 0.001)], "x", SETUP), Effort(rounds=1, sample_seconds=0.05))
    assert 20 <= journal.counts[-1] <= 60


def test_a_sample_has_at_least_as_many_operations_as_are_asked_for() -> None:
    journal = Journal()
    several = [journal.contender("slow", 0.001), journal.contender("fast", 0.00001)]
    interleave(entered(several, "x", SETUP), Effort(rounds=1, sample_seconds=0.01), operations_min=40)
    fewest, most = sorted(journal.counts[-2:])
    assert fewest == 40 < most


@pytest.mark.skipif(children() is None, reason="the kernel does not tell")
def test_processor_time_is_what_was_worked_and_not_what_was_slept() -> None:
    samples = interleave(entered([Journal().contender("a", 0.001)], "x", SETUP), Effort(rounds=3, sample_seconds=0.02))
    (slept,), (worked,) = samples.seconds.values(), samples.worked().seconds.values()
    assert len(worked) == len(slept) == 3
    assert all(0 <= each < 0.001 for each in worked)


def test_a_slight_effort_is_less_than_the_usual_one() -> None:
    slight, usual = Effort.slight(), Effort()
    assert slight.rounds < usual.rounds
    assert slight.sample_seconds < usual.sample_seconds
    assert (slight.turns_min, usual.turns_min) == (20, 100)


def test_an_error_in_one_session_closes_all() -> None:
    journal = Journal()

    @contextmanager
    def fail(_: Setup) -> Iterator[Session]:
        raise RuntimeError("no such server")
        yield time_call(list)

    several = [journal.contender("a"), Contender("b", fail)]
    with pytest.raises(RuntimeError, match="no such server"):
        interleave(entered(several, "x", SETUP), Effort(rounds=1, sample_seconds=0.001))


def test_those_who_cannot_do_it_do_not_take_part() -> None:
    one = Contender("one", Journal().contender("a").open, lambda setup: setup.sinks == 1)
    assert entered([one], "x", Setup("100 B", sinks=2)) == {}
    assert list(entered([one], "x", SETUP)) == [("one", "x")]


def test_those_who_cannot_do_all_of_it_do_not_take_part_in_any_column() -> None:
    one = Contender("one", Journal().contender("a").open, lambda setup: setup.sinks == 1)
    anyone = Contender("anyone", one.open)
    entries = entered_throughout([one, anyone], {"1": SETUP, "2": Setup("100 B", sinks=2)})
    assert list(entries) == [("anyone", "1"), ("anyone", "2")]


def test_the_time_of_a_call_is_that_of_the_median_call() -> None:
    pauses = iter([0.0, 0.03, 0.001, 0.001, 0.001])
    assert 0.001 <= time_call(lambda: time.sleep(next(pauses)))(5) < 0.02


@pytest.mark.parametrize(("rounds", "seconds"), [(0, 1.0), (1, 0.0)])
def test_no_effort_is_refused(rounds: int, seconds: float) -> None:
    with pytest.raises(ValueError, match="cannot measure"):
        Effort(rounds=rounds, sample_seconds=seconds)


@pytest.mark.skipif(not Placement.APART.possible, reason="needs two processors and Linux")
def test_a_placement_pins_the_source_and_ends() -> None:
    seen: list[set[int]] = []

    @contextmanager
    def look(_: Setup) -> Iterator[Session]:
        seen.append(os.sched_getaffinity(0))
        yield time_call(list)

    before = os.sched_getaffinity(0)
    effort = Effort(rounds=1, sample_seconds=0.001).placed(Placement.APART)
    interleave(entered([Contender("a", look)], "x", SETUP), effort)
    assert [len(each) for each in seen] == [1]
    assert os.sched_getaffinity(0) == before


def test_a_tally_reports_the_last_event_once() -> None:
    reports: list[int] = []
    tally = Tally(lambda: reports.append(1))
    for count in (3, 2):
        tally.left = count
        for _ in range(count + 2):
            tally.event(None)
    assert len(reports) == 2


def test_a_tally_reports_the_batch_that_has_the_last_event() -> None:
    reports: list[int] = []
    tally = Tally(lambda: reports.append(1))
    tally.left = 25
    for expected in (0, 0, 1, 1):
        tally.events(10)
        assert len(reports) == expected


@pytest.mark.parametrize("name", PAYLOADS)
def test_the_twins_of_an_event_have_the_same_fields(name: str) -> None:
    payload = PAYLOADS[name]
    event, plain = payload.make(3), payload.make_plain(3)
    for field in payload.plain.__struct_fields__:
        ours, theirs = getattr(event, field), getattr(plain, field)
        if isinstance(theirs, bytes):
            assert bytes(ours) == theirs
        elif not isinstance(theirs, list):
            assert ours == theirs


@pytest.mark.parametrize(("name", "size_bytes"), [("100 B", 100), ("1 KB", 1_000), ("100 KB", 100_000)])
def test_events_have_the_size_they_are_named_after(name: str, size_bytes: int) -> None:
    payload = PAYLOADS[name]
    assert payload.size_bytes == pytest.approx(size_bytes, rel=0.1)
    assert payload.records(3).nbytes == pytest.approx(3 * size_bytes, rel=0.05)
