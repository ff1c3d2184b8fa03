"""The whole in one simulation: a few worlds, mistakes that they must find, and what they have found in the product.

`tests/reliability/test_03_safety.py` and `test_04_liveness.py` run more of them.
`python -m echoic.testing.simulated_world --seed N --mode liveness` repeats a seed that failed.
"""

import pytest

from echoic.channels import ChannelId
from echoic.testing import SimulatedSystem
from echoic.testing.derived_book import Formula
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.planted_world import BUGS, planted
from echoic.testing.simulated_ends import Sample
from echoic.testing.simulated_month import simulated_month
from echoic.testing.simulated_world import run_world
from echoic.testing.surroundings import Surroundings
from echoic.testing.world.recorded import RecordedChannel
from echoic.testing.world.system import WorldSystem
from tests.simulation.hash_seeds import printed_under_hash_seeds

FOUND_WITHIN = 24


def test_a_world_has_all_parts_and_none_of_them_stands_still() -> None:
    reports = [run_world(seed) for seed in range(3)]
    assert all(min(each.delivered, each.recorded, each.read, each.ordered, each.handshakes) > 0 for each in reports)
    assert len({each.trace for each in reports}) == len(reports)


def test_a_healthy_core_goes_on() -> None:
    assert run_world(11, "liveness").ordered > 0


def test_a_seed_gives_the_same_world_whatever_the_hash_seed() -> None:
    program = "from echoic.testing.simulated_world import run_world; print(run_world(5), run_world(6, 'liveness'))"
    assert len(printed_under_hash_seeds(program)) == 1


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_mistake_is_found(bug: str) -> None:
    with planted(bug):
        assert any(breaks(seed) for seed in range(FOUND_WITHIN)), f"{bug} was not found"


def breaks(seed: int) -> bool:
    try:
        run_world(seed, "liveness")
    except AssertionError as error:
        return str(error).startswith(f"seed {seed}: ")
    return False


def test_some_hours_of_a_quiet_world_leave_nothing_behind() -> None:
    findings = simulated_month(3, days=0.1)
    assert findings.clean, findings.problems
    assert float(findings.figures["virtual_days"]) > 0.1


def test_what_a_source_has_left_is_recorded_though_others_derive_from_its_channel_meanwhile() -> None:
    """Found by a world: a hub whose sources had ended was struck from the manager's book by who asked for a derived
    channel, so that the recorder, back again, was never given what it lacked."""
    world = WorldSystem(Surroundings(1))
    manager, origin, other = (world.add_hub() for _ in range(3))
    id = world.create(manager, "trades", declared=Sample)
    recorded = world.recorded = RecordedChannel(world, id)
    world.run(2 * SECOND)
    world.quiet = True
    source = world.publish(origin, id, SECOND)
    world.run(2 * SECOND)
    recorded.kill(pause_ns=10 * SECOND)
    for _ in range(5):
        assert world.submit(source)
    world.unpublish(source)
    world.derived.derive(other, id, Formula(1, 2, 0), "source")
    world.run(5 * SECOND)  # the source's hub has given the recorder up, and has told the manager of itself again
    for channel in list(world.derived.channels.values()):
        world.derived.subscribe(other, channel)
    for _ in range(20):
        world.run(SECOND)
    assert recorded.check_journal(whole=True) == 5


def test_a_late_word_of_a_process_that_has_ended_does_not_take_the_place_of_who_stands_there() -> None:
    """Found by a world: a recorder was killed and started again at once, and the first one's wish arrived last."""
    system = SimulatedSystem(1)
    system.quiet = True
    manager, living = system.add_hub(), system.add_hub()
    id = system.create(manager, "trades")
    source = system.publish(manager, id, SECOND)
    sink = system.subscribe(living, id)
    system.run(3 * SECOND)
    dead = system.add_hub(living.address)
    system.subscribe(dead, id)
    system.run(SECOND)
    system.crash(dead)
    system.network.place(living)
    for _ in range(30):
        system.run(SECOND)
    assert manager.core.manager.directory.get("trades").sinks[living.address].hub == living.id
    heard = system.ledger.lines[source.number, sink.number].events if system.ledger.lines else 0
    assert system.submit(source)
    system.run(2 * SECOND)
    assert system.ledger.lines[source.number, sink.number].events == heard + 1


@pytest.mark.parametrize("seed", range(12))
def test_parameters_that_change_while_what_leads_to_them_is_compiled_are_in_force(seed: int) -> None:
    """Found by a world: whoever was told them before the last of three derivations was installed forgot them."""
    system = SimulatedSystem(seed)
    system.quiet = True
    manager, origin, target = (system.add_hub() for _ in range(3))
    id = system.create(manager, "trades", declared=Sample)
    system.publish(origin, id, SECOND)
    system.run(SECOND)
    for level in range(3):
        parent = list(system.derived.channels.values())[-1].id if level else id
        system.derived.derive(manager, parent, Formula(3**level, 2, 0), "source")
        system.run(SECOND)
    last = list(system.derived.channels.values())[-1]
    system.derived.subscribe(target, last)
    system.run((6 + 2 * seed) * MILLISECOND)
    tuning = system.derived.tune(manager, last, Formula(9, 2, 1, 1))
    system.run(2 * SECOND)
    assert tuning.confirmed_ns > 0
    key = str(ChannelId(manager.address, last.lineage[-1].group))
    assert Formula.of(origin.core.derivations[key].step.values) == tuning.formula


def test_what_a_source_s_own_hub_has_changed_is_in_force_there_though_the_manager_begins_anew_meanwhile() -> None:
    """Found by this world: the change overtook the word that there are sources, so the manager confirmed it at once."""
    assert run_world(68132).faults["tune"] > 0


def test_seeds_that_have_failed_once_hold() -> None:
    assert run_world(94632).delivered > 0  # a sink was not told of the first event of a source that had been silent


def test_a_sink_that_is_being_connected_to_when_the_manager_is_given_up_misses_nothing() -> None:
    assert run_world(5948, "liveness").delivered > 0


def test_a_source_that_a_hub_outside_holds_up_need_not_be_heard_by_the_core_yet() -> None:
    assert run_world(18918, "liveness").delivered > 0
