"""Numbers: spreads, ratios, units, claims, and what a reader or a program gets to see of them."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from echoic.testing.bench import Claim, Report, Samples, Spread, Table, Unit, fan_out

SAMPLES = Samples(
    {
        ("raw tcp", "100 B"): [10e-6, 20e-6, 40e-6],
        ("echoic", "100 B"): [15e-6, 40e-6, 60e-6],
        ("echoic", "1 KB"): [1e-3, 2e-3, 4e-3],
        ("raw tcp", "1 KB"): [1e-3, 1e-3, 1e-3],
    }
)


@given(st.lists(st.floats(1e-9, 1e9), min_size=1))
def test_a_spread_goes_from_the_least_to_the_greatest_with_the_median_between(values: list[float]) -> None:
    spread = Spread.of(values)
    assert spread.low == min(values) <= spread.median <= max(values) == spread.high


def test_a_spread_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        Spread.of([])


def test_a_ratio_is_taken_between_samples_of_the_same_round() -> None:
    table = Table("round trip", Unit.MICROSECONDS, "raw tcp", SAMPLES)
    assert table.ratio("echoic", "100 B") == Spread.of([1.5, 2.0, 1.5])
    assert table.value("echoic", "100 B").median == pytest.approx(40)


def test_twice_the_rate_is_a_ratio_of_two() -> None:
    table = Table("one way", Unit.THOUSANDS_PER_SECOND, "echoic", SAMPLES)
    assert table.value("raw tcp", "1 KB") == Spread(1.0, 1.0, 1.0)
    assert table.ratio("raw tcp", "1 KB").median == pytest.approx(2)


def test_bandwidth_counts_the_bytes_of_an_event() -> None:
    table = Table("blocks", Unit.GIGABYTES_PER_SECOND, "raw tcp", SAMPLES, {"1 KB": 2_000_000})
    assert table.value("raw tcp", "1 KB").median == pytest.approx(2)


def test_cases_and_columns_keep_the_order_in_which_they_were_entered() -> None:
    table = Table("round trip", Unit.MICROSECONDS, "raw tcp", SAMPLES)
    assert (table.cases, table.columns) == (["raw tcp", "echoic"], ["100 B", "1 KB"])


def test_a_number_may_be_computed_from_several_cells_of_each_round() -> None:
    found = SAMPLES.rounds(lambda one, many: many - one, ("raw tcp", "100 B"), ("echoic", "100 B"))
    assert found.median == pytest.approx(20e-6)


def test_processor_time_may_be_shared_out_among_stages() -> None:
    cells = {("echoic", "1"): [2e-6, 4e-6], ("echoic", "5"): [10e-6, 25e-6]}
    worked = Samples({}, cells).worked({"1": 1, "5": 5})
    assert worked.seconds["echoic", "1"] == [2e-6, 4e-6]
    assert worked.seconds["echoic", "5"] == pytest.approx([2e-6, 5e-6])


def test_joined_samples_have_the_processor_time_of_both() -> None:
    one, other = Samples({("a", "x"): [1.0]}, {("a", "x"): [0.5]}), Samples({("a", "y"): [2.0]}, {("a", "y"): [1.5]})
    joined = one.joined(other)
    assert joined.seconds == {("a", "x"): [1.0], ("a", "y"): [2.0]}
    assert joined.worked().seconds == {("a", "x"): [0.5], ("a", "y"): [1.5]}


def test_a_further_sink_is_held_to_one_of_as_many_calls_in_turn() -> None:
    seconds = {("echoic", "1"): [10e-6], ("echoic", "8"): [45e-6], ("echoic, one after the other", "8"): [80e-6]}
    assert fan_out.further_sink(Samples(seconds)).median == pytest.approx(0.5)
    assert fan_out.further_sink_beside_lone(Samples(seconds)).median == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("measured", "at_least", "met"), [(0.41, False, True), (0.51, False, False), (0.51, True, True), (0.4, True, False)]
)
def test_a_claim_is_held_to_its_limit_from_the_right_side(measured: float, at_least: bool, met: bool) -> None:
    claim = Claim("each further sink", Spread.of([measured]), 0.5, "round trips", at_least)
    assert claim.met is met
    assert str(claim).endswith("ok" if met else "NOT MET")
    assert claim.as_json()["met"] is met


def test_a_report_shows_values_ratios_remarks_and_claims() -> None:
    claim = Claim("each further sink", Spread.of([0.41]), 0.5, "round trips")
    table = Table("round trip", Unit.MICROSECONDS, "raw tcp", SAMPLES)
    output = io.StringIO()
    Report("sample", [table], [claim], ["few processors"], {"machine": "this"}).show(Console(file=output, width=140))
    shown = output.getvalue()
    for words in (
        "machine: this",
        "round trip, us",
        "in ratios to raw tcp",
        "1.50 (1.50..2.00)",
        "few processors",
        "claim: each further sink <= 0.50 round trips: measured 0.41 (0.41..0.41) ok",
    ):
        assert words in shown


def test_a_report_for_programs_has_everything_too() -> None:
    claim = Claim("each further sink", Spread.of([0.41]), 0.5, "round trips")
    report = Report("sample", [Table("round trip", Unit.MICROSECONDS, "raw tcp", SAMPLES)], [claim])
    read = json.loads(json.dumps(report.as_json()))
    assert read["claims"][0]["measured"]["median"] == 0.41
    row = next(row for row in read["tables"][0]["rows"] if (row["case"], row["column"]) == ("echoic", "100 B"))
    assert row["ratio"] == {"median": 1.5, "low": 1.5, "high": 2.0}
    assert row["seconds"] == [15e-6, 40e-6, 60e-6]


def test_a_case_that_is_alone_gets_no_ratios() -> None:
    output = io.StringIO()
    alone = Table("round trip", Unit.MICROSECONDS, "raw tcp", Samples({("echoic", "100 B"): [1e-6]}))
    Report("sample", [alone]).show(Console(file=output, width=140))
    assert "ratios" not in output.getvalue()
    assert "ratio" not in json.dumps(alone.as_json()["rows"])
