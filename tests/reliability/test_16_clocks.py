"""Trial 16: wall clocks that leap, under hubs, groups and the leases of tools; and who believes them, which shows."""

import time
from random import Random
from types import SimpleNamespace

import pytest

from echoic.engines.embedded import engine
from echoic.recorder import JournalWriter
from echoic.testing.trials import clocks
from echoic.testing.trials.leaping_clock import HOUR_NS, LeapingClock
from echoic.toolbus import Bus
from tests.reliability.trying import try_out
from tests.toolbus.test_leases import COUNTING, Counter

ROUNDS = 200
BREAKS = 10


def test_order_is_by_number_alone_and_no_lease_is_lost(request: pytest.FixtureRequest) -> None:
    try_out(request, "clocks")


def test_the_lease_of_a_tool_is_not_lost_and_a_delay_is_kept_when_the_clock_leaps() -> None:
    printed: list[str] = []
    script = COUNTING.replace("ROUNDS", str(ROUNDS)).replace("tau else", "tau delay(msec(1)) else")
    with LeapingClock(Random(5)) as clock, Bus.from_script(script, lease_seconds=60, output=printed.append) as bus:
        bus.start()
        counter = Counter()
        counter.connect(bus.address)
        counter.start()
        for _ in range(BREAKS):
            assert counter.halfway.wait(30)
            counter.halfway.clear()
            clock.leap()
            counter._service._speaker._connection.close()  # noqa: SLF001 - a network that breaks
            clock.leap()
        assert bus.wait(60)
        assert not bus.warnings()
    assert printed == [f"{ROUNDS}\n"]
    assert counter.asked == ROUNDS


def test_a_clock_leaps_and_is_put_right_afterwards() -> None:
    before = time.time_ns()
    with LeapingClock(Random(1)) as clock:
        leaps = [clock.leap() for _ in range(50)]
        assert abs(time.time_ns() - before - sum(leaps)) < HOUR_NS / 60
        assert abs(time.time() - time.time_ns() / 1e9) < 60
    assert {leap > 0 for leap in leaps} == {True, False}
    assert max(map(abs, leaps)) >= HOUR_NS
    assert 0 <= time.time_ns() - before < HOUR_NS / 60


def wall_ns() -> int:
    return time.time_ns()


def test_a_leader_who_measures_his_lease_by_the_wall_clock_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic_ns=wall_ns))
    monkeypatch.setattr(clocks, "PATIENCE_SECONDS", 3.0)
    assert clocks.run(60, 1, lambda done: None).problems


def test_a_recorder_who_orders_by_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    append = JournalWriter.append
    latest = [0]

    def ordering(self: JournalWriter, batch: object, source: int, first: int, now_ns: int) -> int:
        late, latest[0] = now_ns < latest[0], max(latest[0], now_ns)
        return 0 if late else append(self, batch, source, first, now_ns)  # type: ignore[arg-type] - as it was given

    monkeypatch.setattr(JournalWriter, "append", ordering)
    (problem,) = clocks.run(20, 1, lambda done: None).problems
    assert "seed 1" in problem
