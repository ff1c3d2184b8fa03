"""What derivations do, added up over hubs and compared with what they did before."""

from echoic.channels import DerivationCounts, Reported
from echoic.cli.loads_shown import DERIVATIONS, rows_of
from echoic.monitor import derivation_loads, derivation_sample, summary, troubles

HERE, THERE = "127.0.0.1:1", "127.0.0.1:2"


def counts(seen: int, passed: int, *, faults: int = 0, suspended: str = "", placement: str = "source") -> Reported:
    fault = "an integer is divided by zero" if faults else ""
    made = DerivationCounts(
        "cheap",
        "echoic://127.0.0.1:9/cheap",
        "trades",
        placement,
        1,
        seen,
        passed,
        seen * 32,
        passed * 32,
        (seen - passed) * 32,
        seen * 40,
        5,
        faults,
        suspended,
        fault,
    )
    return Reported("hub", [], [made])


def test_hubs_are_added_up_and_rates_are_differences() -> None:
    before = derivation_sample({HERE: counts(100, 10)})
    after = derivation_sample({HERE: counts(300, 20), THERE: counts(100, 20, placement="sink")})
    (load,) = derivation_loads(before, after, 2.0)
    assert (load.in_per_second, load.out_per_second, load.saved_per_second) == (150.0, 15.0, 270 * 32 / 2)
    assert (load.events_in, load.events_out, load.hubs, load.runs_at) == (400, 40, 2, "sink, source")
    assert (load.passed, load.ns_per_event) == (0.1, 40.0)
    (row,) = rows_of(DERIVATIONS, [load])
    assert row[:5] == ["cheap", "trades", 150.0, 15.0, "10.0 %"]


def test_a_silent_interval_shows_what_was_before() -> None:
    sample = derivation_sample({HERE: counts(100, 10)})
    (load,) = derivation_loads(sample, sample, 1.0)
    assert (load.in_per_second, load.out_per_second, load.passed) == (0.0, 0.0, 0.1)
    nothing = derivation_sample({HERE: counts(0, 0)})
    (load,) = derivation_loads({}, nothing, 1.0)
    assert (load.passed, load.ns_per_event) == (None, None)
    assert rows_of(DERIVATIONS, [load])[0][4] == ""


def test_faults_and_suspensions_are_told_once() -> None:
    well = derivation_sample({HERE: counts(10, 1)})
    ill = derivation_sample({HERE: counts(20, 1, faults=2)})
    stopped = derivation_sample({HERE: counts(30, 1, faults=16, suspended="16 events have faulted")})
    assert troubles(well, well) == []
    assert troubles(well, ill) == [
        f"2 events of `cheap` faulted at {HERE}, the last because an integer is divided by zero"
    ]
    assert troubles(ill, stopped) == [f"`cheap` is suspended at {HERE}: 16 events have faulted"]
    assert troubles(stopped, stopped) == []
    again = derivation_sample({HERE: counts(30, 1, faults=16)})
    assert troubles(stopped, again) == [f"`cheap` runs again at {HERE}"]


def test_one_hub_is_summed_up_in_a_line() -> None:
    (made,) = counts(200, 20, faults=1, suspended="too much").derivations
    assert summary(made) == (
        "200 in, 20 out (10.0 %), 5.76 KB saved, 40 ns per event, runs at the source, 1 fault, the last because "
        "an integer is divided by zero, suspended: too much"
    )
    (idle,) = counts(0, 0).derivations
    assert summary(idle) == "runs at the source, no events yet"
    (away,) = counts(0, 0, placement="sink").derivations
    assert summary(away) == "runs at the sinks, which are sent every event"
