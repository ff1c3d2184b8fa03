"""Groups of simulated members: the ordering core lives through sixty worlds, and planted mistakes do not."""

from collections.abc import Callable
from functools import cache

import pytest

from echoic.errors import EchoicError
from echoic.testing.group_campaign import main
from echoic.testing.planted_bugs import BUGS, planted
from echoic.testing.simulated_group import Knobs, SimulatedGroup, SimulationCounts

WORLDS, PARTS = 60, 3  # the trial of safety has others
FOUND_WITHIN = 150


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_promise_is_broken_in_a_world_of_failures(part: int) -> None:
    per_part = WORLDS // PARTS
    for seed in range(part * per_part, (part + 1) * per_part):
        try:
            lived(seed)
        except (AssertionError, EchoicError) as error:
            pytest.fail(f"seed {seed}: {error}\n{SimulatedGroup(seed).knobs}")


@cache
def lived(seed: int) -> tuple[Knobs, SimulationCounts]:
    """Let a world live; what it was like is kept, since two tests ask for it."""
    world = SimulatedGroup(seed)
    return world.knobs, world.run()


def test_the_worlds_are_harsh_enough_to_mean_something() -> None:
    knobs, counts = zip(*(lived(seed) for seed in range(WORLDS)), strict=True)
    assert sum(count.crashes for count in counts) > 60
    assert sum(count.cuts for count in counts) > 60
    assert sum(count.leaders for count in counts) > 100
    assert sum(count.restored for count in counts) > 20
    assert sum(count.delivered for count in counts) > 2000
    assert {each.stability for each in knobs} == {"majority", "all"}
    assert {each.memory for each in knobs} == {False, True}


def test_a_member_whose_admission_is_lost_while_it_is_down_is_admitted_again() -> None:
    SimulatedGroup(28099).run()  # it and those who had given it a seat crash together, just before all is healed


def test_a_learner_whose_seat_was_lost_with_its_leader_knocks_again() -> None:
    SimulatedGroup(29062).run()  # the next leader has a former home under its name, and does not hear it


def test_a_seed_gives_the_same_world_each_time() -> None:
    first, second = SimulatedGroup(42), SimulatedGroup(42)
    assert first.run() == second.run()
    assert first.knobs == second.knobs


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_mistake_is_found(bug: str) -> None:
    with planted(bug) as prepare:
        assert any(breaks(seed, prepare) for seed in range(FOUND_WITHIN)), f"{bug} was not found"


def breaks(seed: int, prepare: Callable[[SimulatedGroup], None]) -> bool:
    world = SimulatedGroup(seed)
    prepare(world)
    try:
        world.run()
    except (AssertionError, EchoicError, LookupError):
        return True
    return False


def test_the_command_tells_of_the_worlds_it_has_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "0:5"]) == 0
    assert capsys.readouterr().out.startswith("5 worlds, 0 broke a promise")
    assert main(["--seeds", "0:20", "--bug", "keep-duplicates"]) == 1
    assert "seed 0 broke a promise" in capsys.readouterr().out
