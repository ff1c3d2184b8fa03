"""Modulators in this process, and the watchdog that stops those that take too long."""

import sys
import threading
import time

import pytest

from echoic.eager import Limits, Modulator
from echoic.eager.watchdog import Watchdog
from echoic.errors import ModulatorError
from tests.eager.installing import numbers, run_here, values

LIMIT_SECONDS = 0.05
ROUNDS = 400


class Loops(Modulator):
    def enqueue(self, event: object) -> None:
        while True:
            pass


class Swallows(Modulator):
    """Catches whatever stops it, some times."""

    def enqueue(self, event: object) -> None:
        caught = 0
        while caught < 5:
            try:
                while True:
                    pass
            except BaseException:  # noqa: BLE001 - on purpose
                caught += 1


class Passes(Modulator):
    pass


@pytest.mark.parametrize("modulator", [Loops(), Swallows()], ids=lambda each: type(each).__name__)
def test_a_call_that_takes_too_long_is_stopped_and_not_asked_again(modulator: Modulator) -> None:
    runner = run_here(modulator, limits=Limits(seconds=LIMIT_SECONDS, load_seconds=20))
    name = type(modulator).__name__
    with pytest.raises(
        ModulatorError, match=rf"`{name}` was stopped: it took longer than 0\.05 s, the limit of one call"
    ):
        runner.work(1, numbers(1))
    with pytest.raises(ModulatorError, match=f"`{name}` is not asked again"):
        runner.work(1, numbers(1))
    runner.close()


def test_others_go_on_when_one_is_stopped() -> None:
    bad, good = run_here(Loops(), limits=Limits(seconds=LIMIT_SECONDS, load_seconds=20)), run_here(Passes())
    with pytest.raises(ModulatorError):
        bad.work(1, numbers(1))
    assert values(good.work(1, numbers(1, 2)).batch) == [1, 2]


def test_events_are_the_modulators_own_and_not_those_of_others() -> None:
    batch = numbers(1, 2)
    (part,) = batch.parts([2])
    before = part.events()
    runner = run_here(Changes())
    assert values(runner.work(1, part).batch) == [101, 102]
    assert [event.value for event in before] == [1, 2]
    assert [event.value for event in part.events()] == [1, 2]


class Changes(Modulator):
    def enqueue(self, event: object) -> None:
        event.value += 100
        super().enqueue(event)


def test_a_guarded_call_returns_what_it_returns_and_raises_what_it_raises() -> None:
    watchdog = Watchdog()
    assert watchdog.guard(lambda: 7, 10, "it") == 7
    assert watchdog.guard(lambda: None, 10, "it") is None
    with pytest.raises(ZeroDivisionError):
        watchdog.guard(lambda: 1 // 0, 10, "it")


def spin(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


@pytest.mark.slow
def test_an_exception_never_strikes_outside_of_the_call_that_it_was_meant_for() -> None:
    """Calls that end just about when their time does, thousands of chances to strike too late."""
    watchdog = Watchdog()
    outcomes = {"ended": 0, "stopped": 0}

    def chase() -> None:
        for number in range(ROUNDS):
            limit = 0.011 + number % 7 * 0.0005
            try:
                watchdog.guard(lambda: spin(0.0115), limit, "it")
                outcomes["ended"] += 1
            except ModulatorError:
                outcomes["stopped"] += 1
            for _ in range(50):  # what comes next, and must not be struck
                len("harmless")

    failures: list[BaseException] = []

    def guarded_chase() -> None:
        try:
            chase()
        except BaseException as error:  # noqa: BLE001 - looked at below
            failures.append(error)

    threads = [threading.Thread(target=guarded_chase) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sum(outcomes.values()) == 2 * ROUNDS
    assert outcomes["stopped"] > 0


def test_short_calls_are_never_struck() -> None:
    watchdog = Watchdog()
    for number in range(20_000):
        assert watchdog.guard(lambda: number, 5, "it") == number  # noqa: B023 - called at once


def test_a_call_inside_a_call_is_stopped_by_whichever_limit_comes_first() -> None:
    watchdog = Watchdog()

    def inner() -> None:
        watchdog.guard(lambda: spin(20), 10, "the inner call")

    with pytest.raises(ModulatorError, match="the outer call was stopped"):
        watchdog.guard(inner, LIMIT_SECONDS, "the outer call")

    def outer() -> str:
        with pytest.raises(ModulatorError, match="the inner call was stopped"):
            watchdog.guard(lambda: spin(20), LIMIT_SECONDS, "the inner call")
        return "went on"

    assert watchdog.guard(outer, 10, "the outer call") == "went on"


def test_a_profile_function_works_after_a_call_was_stopped() -> None:
    """An interpreter that is told to look for an exception, and finds none, may look again for ever."""
    with pytest.raises(ModulatorError):
        Watchdog().guard(lambda: spin(20), LIMIT_SECONDS, "it")
    seen: list[str] = []
    sys.setprofile(lambda frame, what, _: seen.append(what) if frame.f_code.co_name == "spin" else None)
    try:
        for _ in range(100):
            spin(0)
    finally:
        sys.setprofile(None)
    assert (seen.count("call"), seen.count("return")) == (100, 100)


def test_the_watchdog_wakes_up_again_after_it_has_slept() -> None:
    watchdog = Watchdog()
    assert watchdog.guard(lambda: 1, 10, "it") == 1
    deadline = time.monotonic() + 60
    while watchdog.awake:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(ModulatorError):
        watchdog.guard(lambda: spin(20), LIMIT_SECONDS, "it")


def test_calls_of_several_threads_are_stopped_each_for_itself() -> None:
    watchdog, outcomes = Watchdog(), []

    def call(seconds: float) -> None:
        try:
            watchdog.guard(lambda: spin(seconds), 0.3, "it")
            outcomes.append((seconds, "ended"))
        except ModulatorError:
            outcomes.append((seconds, "stopped"))

    threads = [threading.Thread(target=call, args=(seconds,)) for seconds in (0.001, 20.0, 0.002, 30.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [(0.001, "ended"), (0.002, "ended"), (20.0, "stopped"), (30.0, "stopped")]
