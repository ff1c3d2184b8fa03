"""The question of eager handlers: does each part find what it looks for? No timing decides anything here."""

import pytest

from echoic.eager import Modulator, SigningKey, pack, unpack
from echoic.formats import Format
from echoic.testing.bench import Effort, Report, Table, eager
from echoic.testing.bench.eager import cost, shared, steering, swap, traffic
from echoic.testing.bench.eager.handlers import (
    INTEGERS,
    Tick,
    View,
    begin_edition,
    followers,
    is_thorough,
    passing,
    table_class,
    tick,
    ticks,
)
from echoic.testing.bench.eager.turns import calls, take_turns, taking

EFFORT = Effort(rounds=1, sample_seconds=0.002)


def text_of(modulator: Modulator) -> str:
    data, _ = pack(modulator, "ticks", Format.of(Tick), SigningKey.generate())
    parcel, _ = unpack(data)
    return parcel.text


def table_of(report: Report) -> Table:
    (table,) = report.tables
    assert all(seconds and min(seconds) > 0 for seconds in table.samples.seconds.values())
    return table


def test_what_is_measured_is_shipped_as_the_text_of_a_user_is() -> None:
    for modulator in (table_class()([1] * INTEGERS), passing(everything=True)):
        text = text_of(modulator)
        assert "def enqueue(self, event" in text
        assert "echoic.testing" not in text


def test_a_class_of_another_edition_is_another_text() -> None:
    first = table_class()
    before = text_of(first([1] * INTEGERS))
    begin_edition()
    assert text_of(first([2] * INTEGERS)) == before  # what was sent once stays as it was
    assert text_of(table_class()([2] * INTEGERS)) != before


def test_a_modulator_passes_everything_or_nothing() -> None:
    for everything in (True, False):
        modulator = passing(everything=everything)
        modulator.enqueue(tick())
        assert (modulator.dequeue() is not None) is everything


def test_one_event_follows_each_change_of_a_view() -> None:
    view = View()
    modulator, _ = followers(view)
    passed = []
    for number in (0, 1, 1, 2):
        view.number = number
        modulator.enqueue(tick())
        passed.append(modulator.dequeue() is not None)
    assert passed == [False, True, False, True]


def test_no_two_codes_that_nobody_has_seen_are_alike() -> None:
    assert len({swap.unseen_ecode().code for _ in range(100)}) == 100


def test_events_come_as_an_array_of_ticks() -> None:
    assert ticks(3)["number"].tolist() == [0, 1, 2]
    assert ticks(1).nbytes == 96


def test_cases_take_turns_and_stand_in_the_order_that_is_asked_for() -> None:
    seen: list[str] = []
    cases = [calls(("one", "x"), lambda: seen.append("one"), 3), taking(("other", "x"), lambda: 0.5, 3)]
    samples = take_turns(cases, Effort(rounds=4), [("absent", "x"), ("other", "x"), ("one", "x")])
    assert list(samples.seconds) == [("other", "x"), ("one", "x")]
    assert samples.seconds["other", "x"] == [0.5] * 4
    assert len(seen) == 3 * (1 + 4)  # once before anything counts


def test_an_effort_is_thorough_or_shows_that_it_works() -> None:
    assert is_thorough(Effort())
    assert not is_thorough(Effort.slight())


def test_the_atmosphere_is_the_same_for_all_and_never_still() -> None:
    first, again = (list(traffic.atmosphere(3)) for _ in range(2))
    assert all((one == other).all() for one, other in zip(first, again, strict=True))
    assert (first[0]["temperature"] != first[1]["temperature"]).any()
    assert len(first[0]) == traffic.LAYERS * traffic.LATITUDES * traffic.LONGITUDES


def test_a_reference_survives_being_told_to_another_process() -> None:
    from echoic import Hub

    view = View(7)
    with Hub() as hub, Hub() as other:
        hub.share(view)
        reference = shared.decoded(shared.encoded(view))
        assert reference == view.reference("view")
        assert other.follow(reference, View).number == 7


@pytest.mark.system
def test_changes_of_shared_objects_are_told_both_ways_and_pulled() -> None:
    report = Report("eager")
    shared.measure(EFFORT, report)
    assert table_of(report).cases == list(shared.ORDER)
    assert [claim.limit for claim in report.claims] == [0.5, 0.5]
    assert "x submit_sync" in report.remarks[0]


@pytest.mark.system
def test_pairs_are_swapped_in_every_place_that_runs_them() -> None:
    report = Report("eager")
    swap.measure(EFFORT, report)
    cases = table_of(report).cases
    assert cases in (list(swap.ORDER), [case for case in swap.ORDER if case != swap.SANDBOX])
    assert (swap.SANDBOX in cases) is not any("no swaps in a sandbox" in remark for remark in report.remarks)
    assert [claim.limit for claim in report.claims] == [1.2, 1.2]


@pytest.mark.system
def test_what_a_modulator_costs_is_told_for_every_place_and_every_way_to_submit() -> None:
    report = Report("eager")
    cost.measure(EFFORT, report)
    table = table_of(report)
    assert table.columns == list(cost.COLUMNS)
    left_out = sum(remark.startswith("not measured") for remark in report.remarks)
    assert len(table.cases) + left_out == len(cost.ORDER)
    assert left_out in (0, 2)
    assert table.cases[0] == cost.PLAIN


@pytest.mark.system
def test_what_viewers_are_spared_is_what_lies_outside_of_their_views() -> None:
    report = Report("eager")
    traffic.measure(EFFORT, report)
    assert table_of(report).cases == list(traffic.ORDER)
    everything, window, other, _ = report.remarks
    assert everything.count("spared 0.0%") == 2
    assert "the teacher gets 1296 of 2592 events" in window
    assert "the student gets 108 of 2592 events" in window
    assert "spared 75.0%" in other
    assert "spared 97.2%" in other
    (claim,) = report.claims
    assert claim.met


@pytest.mark.system
def test_a_reactor_is_steered_both_ways() -> None:
    report = Report("eager")
    steering.measure(EFFORT, report)
    assert table_of(report).cases == list(steering.ORDER)
    assert report.remarks[0].startswith("over the network")


def test_only_the_parts_that_are_asked_for_are_measured() -> None:
    assert eager.measure(EFFORT, parts=[]).tables == []
    assert eager.PARTS == ("shared", "swap", "cost", "traffic", "steering")
