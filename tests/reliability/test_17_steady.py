"""A steady load with faults leaves memory, descriptors, threads and round trips flat; and what does not is found."""

import os
import random
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from echoic.errors import LocalError
from echoic.testing.charter import Charter
from echoic.testing.trials.flatness import (
    SECURED_SETTLING_BYTES,
    SETTLING_BYTES,
    Life,
    growth_per_ten_minutes,
    judge_life,
    judge_round_trips,
    slope,
)
from echoic.testing.trials.steady import Part
from echoic.testing.trials.steady_parties import GRANTS
from echoic.testing.trials.vital_signs import MEGABYTE, VitalSigns, signs_of
from echoic.testing.trials.workers import Conversation, workers
from tests.reliability.trying import try_out

pytestmark = pytest.mark.system
LEAK_BYTES = 100_000
LOOKS = 30


def test_a_steady_load_with_faults_leaves_all_flat(request: pytest.FixtureRequest) -> None:
    try_out(request, "steady")


def life(
    seconds: int,
    megabytes_in_ten_minutes: float,
    *,
    descriptors: float = 0.0,
    threads: float = 0.0,
    settling: float = SETTLING_BYTES,
) -> Life:
    """A process with a noise of a quarter of a megabyte, and what it gains of descriptors and threads a minute."""
    chance, made = random.Random(1), Life("it", settling_bytes=settling)
    for second in range(seconds):
        grown = megabytes_in_ten_minutes * MEGABYTE * second / 600 + chance.gauss(0, 250_000)
        more = [int(each * second / 60) for each in (descriptors, threads)]
        made.note(second, VitalSigns(80_000_000 + int(grown), 20 + more[0], 12 + more[1]))
    return made


def test_noise_is_no_leak() -> None:
    for seconds in (135, 5400):
        assert judge_life(life(seconds, 0.0)) == []


@pytest.mark.parametrize(("seconds", "megabytes"), [(135, 9.0), (5400, 1.5)])
def test_a_leak_is_found(seconds: int, megabytes: float) -> None:
    (problem,) = judge_life(life(seconds, megabytes))
    assert "MB in ten minutes" in problem


@pytest.mark.parametrize(("seconds", "megabytes"), [(135, 13.0), (5400, 1.6)])
def test_a_leak_of_a_secured_process_is_found(seconds: int, megabytes: float) -> None:
    assert judge_life(life(seconds, 0.0, settling=SECURED_SETTLING_BYTES)) == []
    (problem,) = judge_life(life(seconds, megabytes, settling=SECURED_SETTLING_BYTES))
    assert "MB in ten minutes" in problem


def test_descriptors_and_threads_that_are_not_given_back_are_found() -> None:
    assert "descriptors in the last third" in judge_life(life(300, 0.0, descriptors=2.0))[0]
    assert "threads in the last third" in judge_life(life(300, 0.0, threads=2.0))[0]


def test_too_few_samples_are_no_proof() -> None:
    assert "expected 6 or more" in judge_life(life(3, 0.0))[0]
    assert "expected 18 or more" in judge_round_trips([0.001] * 5)[0]


def test_round_trips_that_become_slow_are_found() -> None:
    assert judge_round_trips([0.001] * 300) == []
    assert judge_round_trips([0.001] * 270 + [0.080] * 30) == []  # the machine did something else for a while
    assert "took 1.0 in the first" in judge_round_trips([0.001] * 210 + [0.040] * 90)[0]
    rarely = [0.040 if number > 200 and number % 5 == 0 else 0.001 for number in range(300)]
    assert "took 1.0 in the first" in judge_round_trips(rarely)[0]


def test_a_line_through_points_is_found() -> None:
    assert slope([0, 1, 2, 3], [5, 7, 9, 11]) == pytest.approx(2)
    assert slope([1, 1], [5, 7]) == 0


def hoard(conversation: Conversation) -> None:
    """A process that never forgets what it is told."""
    hoarded = []
    conversation.say(ready=True)
    for _ in conversation.questions():
        hoarded.append(bytes(LEAK_BYTES).replace(b"\0", b"x"))
        conversation.say(count=len(hoarded))


def test_a_process_that_really_leaks_is_found() -> None:
    with workers() as start:
        leaking, made = start(f"{__name__}:hoard"), Life("a hoarder")
        for look in range(LOOKS):
            leaking.ask()
            made.note(float(look), signs_of(leaking.pid))
            time.sleep(0.001)
        assert growth_per_ten_minutes(made) == pytest.approx(600 * LEAK_BYTES, rel=0.3)
        assert "a hoarder grows by" in judge_life(made)[0]


def test_processes_that_were_killed_leave_nothing_in_the_trial() -> None:
    with workers() as start:
        for _ in range(3):
            start(f"{__name__}:hoard").kill()
        open_before = signs_of(os.getpid()).descriptors
        for _ in range(3):
            killed = start(f"{__name__}:hoard")
            killed.kill()
        assert signs_of(os.getpid()).descriptors == open_before
        with pytest.raises(LocalError, match="worker hoard has ended with -9"):
            killed.ask()


def test_a_right_that_is_missing_is_found(tmp_path: Path) -> None:
    charter = Charter.draw_up(tmp_path / "charter", {**GRANTS, "sinks": ["subscribe load"]})
    with ExitStack() as stack, workers() as start, pytest.raises(LocalError, match="worker watch has ended with 1"):
        Part("secured ", charter, start, tmp_path / "journal", stack)
