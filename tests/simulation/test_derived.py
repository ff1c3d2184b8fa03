"""Derived channels under every fault we know of: many seeds, and the cases worth a name of their own.

`python -m echoic.testing.simulation --derived --seed N --mode liveness` repeats a seed that failed.
"""

from collections.abc import Callable

import pytest

from echoic.channels import CREDIT_BYTES, ChannelId, Derivation, Placement, Policy, Slow
from echoic.channels.directory import Directory
from echoic.testing import SimulatedHub, SimulatedSystem
from echoic.testing.derived_book import Formula
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.simulated_deriving import DerivedChannel, Tuning
from echoic.testing.simulated_ends import Sample, Source, Subscription
from echoic.testing.simulation import run_simulation
from tests.simulation.hash_seeds import printed_under_hash_seeds

LARGE_BYTES = CREDIT_BYTES // 16
SEEDS, SEEDS_PER_TEST = 20, 10
EVEN = Formula(1, 2, 0)


@pytest.mark.parametrize("start", range(20_000, 20_000 + SEEDS, SEEDS_PER_TEST))
def test_what_is_derived_is_right_complete_and_arrives_whatever_fails(start: int) -> None:
    reports = [run_simulation(seed, "liveness", derived=True) for seed in range(start, start + SEEDS_PER_TEST)]
    assert sum(report.derived_delivered for report in reports) > 1000
    assert sum(report.raw for report in reports) > 100
    assert sum(report.tuned for report in reports) > 10


def test_a_channel_that_nobody_hears_counts_while_others_of_its_group_are_derived() -> None:
    assert run_simulation(6461, "liveness", derived=True).derived_delivered


@pytest.mark.parametrize("seed", [40328, 96896, 97872, 98063])
def test_seeds_that_have_failed_once_hold(seed: int) -> None:
    assert run_simulation(seed, derived=True).derived_delivered > 0


def test_a_seed_gives_the_same_run_again() -> None:
    first, second = (run_simulation(2, "liveness", derived=True) for _ in range(2))
    assert first == second
    assert first.trace != run_simulation(3, "liveness", derived=True).trace


def test_a_seed_gives_the_same_run_whatever_the_hash_seed() -> None:
    program = (
        "from echoic.testing.simulation import run_simulation;"
        "print([run_simulation(seed, 'liveness', derived=True).trace for seed in (4, 5, 6)])"
    )
    assert len(printed_under_hash_seeds(program)) == 1


def run_until_one_fails(seeds: range) -> str:
    for seed in seeds:
        try:
            run_simulation(seed, "liveness", derived=True)
        except AssertionError as error:
            return str(error)
    return ""


def test_a_book_that_takes_no_later_parameters_from_others_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Directory, "_merge", lambda self, known, told: ())
    assert "the manager has" in run_until_one_fails(range(40, 60))


class Scene:
    """A manager, a source's hub and a sink's hub with one derived channel; nothing is submitted unless a test does."""

    def __init__(
        self,
        placement: Placement = "source",
        slow: Slow = "block",
        *,
        load_bytes: int = 0,
        seed: int = 1,
        freezes: bool = False,
    ) -> None:
        self.system = SimulatedSystem(seed, freezes=freezes)
        self.system.quiet = True
        self.deriving = self.system.derived
        self.manager, self.origin, self.target = (self.system.add_hub() for _ in range(3))
        self.id = self.system.create(self.manager, "trades", declared=Sample)
        self.source = self.system.publish(self.origin, self.id, SECOND, load_bytes=load_bytes)
        self.system.run(SECOND)
        self.deriving.derive(self.target, self.id, EVEN, placement)
        self.system.run(SECOND)
        self.sink = self.subscribe(self.target, slow)

    @property
    def channel(self) -> DerivedChannel:
        return next(iter(self.deriving.channels.values()))

    @property
    def derivation(self) -> Derivation:
        return next(iter(self.origin.core.derivations.values()))

    def subscribe(self, hub: SimulatedHub, slow: Slow = "block") -> Subscription:
        self.deriving.subscribe(hub, self.channel, slow)
        self.system.run(SECOND)
        return self.system.subscriptions[-1]

    def submit(self, count: int, pause_ns: int = 10 * MILLISECOND, source: Source | None = None) -> None:
        for _ in range(count):
            self.system.submit(source or self.source)
            self.system.run(pause_ns)

    def settle(self, seconds: int = 30) -> None:
        for _ in range(seconds):
            self.system.run(SECOND)
        self.system.check_settled()

    def missing(self) -> tuple[int, int]:
        """Return how many events were reported missing, and in how many gaps."""
        lines = [line for (_, one), line in self.deriving.book.ledger.lines.items() if one == self.sink.number]
        return sum(line.missing for line in lines), sum(line.gaps for line in lines)

    def derive_further(self, hub: SimulatedHub) -> Subscription:
        """Derive from the derived channel, where everything passes, and let a hub listen to that."""
        self.deriving.derive(self.target, self.channel.id, Formula(3, 1, 0), "source")
        self.system.run(SECOND)
        self.deriving.subscribe(hub, list(self.deriving.channels.values())[-1])
        self.system.run(SECOND)
        return self.system.subscriptions[-1]

    def give_up(self, hub: SimulatedHub) -> None:
        """Let the source's hub give another up, which cannot be reached for a while."""
        self.part(self.origin, hub, 10)
        self.origin.do(lambda core: core.gone(hub.id, "it began afresh"))

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Let time pass in small steps until something is so."""
        for _ in range(20_000):
            if condition():
                return
            self.system.run(MILLISECOND // 4)
        raise AssertionError("it has not come true within five seconds")

    def replace_manager(self) -> SimulatedHub:
        """Let another process begin where the manager was, whose program derives as before."""
        self.system.run(MILLISECOND)
        self.system.crash(self.manager)
        heir = self.system.restart(self.manager.address)
        heir.core.manager.directory.adopt(self.channel.lineage)
        return heir

    def part(self, one: SimulatedHub, other: SimulatedHub, seconds: int) -> None:
        self.system.network.part(one.address, other.address, seconds * SECOND)
        self.system.network.part(other.address, one.address, seconds * SECOND)


@pytest.mark.parametrize("placement", ["source", "sink", "auto"])
def test_every_other_event_passes_wherever_the_code_runs(placement: Placement) -> None:
    scene = Scene(placement)
    scene.submit(20)
    scene.settle(2)
    assert scene.deriving.book.passed == 10
    assert scene.deriving.book.raw_events == (20 if placement == "sink" else 0)


def test_the_only_sink_is_told_that_it_has_missed_something_though_nothing_was_derived_meanwhile() -> None:
    scene = Scene()
    scene.submit(4)
    scene.part(scene.origin, scene.target, 30)
    scene.system.run(25 * SECOND)
    assert not scene.derivation.active
    scene.submit(8)
    late = scene.system.publish(scene.origin, scene.id, SECOND)
    scene.system.run(SECOND)
    scene.submit(6, source=late)
    scene.settle()
    assert scene.missing() == (14, 2)  # counted as they are, since nobody knows how many would have passed
    scene.submit(4)
    scene.settle(2)
    assert scene.deriving.book.passed == 4


def test_a_sink_that_was_given_up_before_a_source_said_anything_is_told_of_its_first_event() -> None:
    scene = Scene()
    scene.give_up(scene.target)
    scene.submit(4)
    scene.settle()
    assert scene.missing() == (4, 1)


def test_a_sink_that_was_given_up_before_a_source_began_is_told_of_its_first_event() -> None:
    scene = Scene()
    scene.submit(2)
    scene.give_up(scene.target)
    late = scene.system.publish(scene.origin, scene.id, SECOND)
    scene.submit(4, source=late)
    scene.settle()
    assert scene.missing() == (4, 1)


def test_a_sink_of_what_is_derived_further_is_told_what_it_has_missed_since_it_was_given_up() -> None:
    scene = Scene()
    scene.system.unsubscribe(scene.sink)
    other = scene.system.add_hub()
    scene.sink = scene.derive_further(other)
    scene.give_up(other)
    scene.submit(4)
    scene.settle()
    assert scene.missing() == (4, 1)


def test_a_sink_of_what_is_derived_further_is_told_what_it_has_missed_since_others_left_what_lies_between() -> None:
    scene = Scene()
    between, other = scene.sink, scene.system.add_hub()
    scene.sink = scene.derive_further(other)
    scene.give_up(other)
    scene.system.run(20 * MILLISECOND)
    scene.system.unsubscribe(between)
    scene.system.run(30 * MILLISECOND)
    assert not scene.derivation.active
    scene.submit(4)
    scene.settle()
    assert scene.missing() == (4, 1)


def test_a_sink_of_what_is_derived_from_a_port_that_others_do_not_hear_is_told_what_it_has_missed() -> None:
    scene = Scene()
    scene.system.unsubscribe(scene.sink)
    other = scene.system.add_hub()
    scene.deriving.derive(scene.target, scene.id, Formula(1, 3, 0), "sink", router=True)
    scene.system.run(SECOND)
    heard, unheard = list(scene.deriving.channels.values())[-2:]
    scene.deriving.subscribe(scene.target, heard)
    scene.deriving.derive(scene.target, unheard.id, Formula(3, 1, 0), "source")
    scene.system.run(SECOND)
    scene.deriving.subscribe(other, list(scene.deriving.channels.values())[-1])
    scene.system.run(SECOND)
    scene.sink = scene.system.subscriptions[-1]
    scene.give_up(other)
    scene.submit(6)
    scene.settle()
    assert scene.missing() == (6, 1)  # as they are, since nobody derives here what would have passed


def test_nothing_is_kept_of_a_source_that_has_ended_where_nobody_listens_to_what_was_derived_of_it_further() -> None:
    scene = Scene()
    scene.derive_further(scene.system.add_hub())
    third = list(scene.deriving.channels.values())[-1]
    scene.deriving.derive(scene.target, third.id, Formula(3, 1, 0), "source")
    scene.system.run(SECOND)
    scene.deriving.subscribe(scene.manager, list(scene.deriving.channels.values())[-1])
    scene.system.run(SECOND)
    scene.system.publish(scene.origin, scene.id, SECOND)
    scene.submit(4)
    scene.system.unsubscribe(scene.system.subscriptions[-1])
    scene.system.run(SECOND)
    assert sum(len(each.instances) for each in scene.origin.core.derivations.values()) == 3
    scene.system.unpublish(scene.source)
    scene.settle(2)
    assert not any(each.instances for each in scene.origin.core.derivations.values())


def test_a_sink_that_was_given_up_while_nothing_was_derived_for_faults_is_told_what_it_has_missed() -> None:
    scene = Scene()
    scene.deriving.tune(scene.target, scene.channel, Formula(1, 0, 0, 1))
    scene.system.run(SECOND)
    scene.submit(250)
    assert scene.derivation.suspended
    scene.give_up(scene.target)
    scene.deriving.tune(scene.manager, scene.channel, Formula(1, 2, 0, 2))
    scene.system.run(SECOND)
    assert not scene.derivation.suspended
    scene.submit(4)
    scene.settle()
    assert scene.missing() == (4, 1)


def test_a_sink_that_was_away_while_a_derivation_moved_back_does_not_derive_again() -> None:
    scene = Scene("sink")
    scene.submit(4)
    scene.part(scene.origin, scene.target, 30)
    scene.system.run(25 * SECOND)
    other = scene.subscribe(scene.manager)
    scene.derivation.move(here=True)
    scene.submit(4)
    scene.settle()
    scene.submit(4)
    scene.settle(2)
    assert scene.deriving.book.heard(scene.source, scene.sink) == scene.deriving.book.heard(scene.source, other) == 10


def test_events_that_were_held_back_while_a_derivation_moved_often_are_taken_for_what_they_are() -> None:
    scene = Scene("sink", "drop_oldest", load_bytes=LARGE_BYTES)
    scene.sink.stuck_until_ns = scene.system.clock.now_ns + 10 * SECOND
    scene.submit(18)
    scene.source = scene.system.publish(scene.origin, scene.id, SECOND)
    scene.system.run(SECOND)
    for turn in range(6):
        scene.submit(4)
        scene.derivation.move(here=turn % 2 == 0)
    scene.settle()
    assert scene.deriving.book.heard(scene.source, scene.sink) == 22


def test_a_source_that_ends_and_returns_under_its_number_is_heard() -> None:
    scene = Scene()
    scene.submit(6)
    member, number = scene.source.member, scene.source.number
    streams = len(scene.deriving.book.streams)
    scene.system.unpublish(scene.source)
    scene.system.run(SECOND)
    member.sources[number] = 6  # as a source does that comes back from another hub
    scene.source.open = True
    scene.origin.do(lambda core: core.join(member, "source", lambda _: None))
    scene.system.run(SECOND)
    scene.submit(6)
    scene.settle(5)
    assert len(scene.deriving.book.streams) == streams + 1
    assert scene.deriving.book.heard(scene.source, scene.sink) == 10


def test_a_manager_begun_anew_takes_over_the_parameters_that_are_in_force() -> None:
    scene = Scene()
    odd = scene.deriving.tune(scene.target, scene.channel, Formula(1, 2, 1, 1))
    scene.system.run(SECOND)
    assert odd.confirmed_ns > 0
    scene.system.crash(scene.manager)
    scene.system.restart(scene.manager.address)
    scene.system.run(10 * SECOND)
    other = scene.system.publish(scene.target, scene.id, SECOND)
    scene.system.run(2 * SECOND)
    scene.submit(4, source=other)
    scene.settle(5)
    assert scene.deriving.book.heard(other, scene.sink) == 3
    again = scene.deriving.tune(scene.target, scene.channel, Formula(1, 2, 0, 2))
    scene.system.run(SECOND)
    assert again.confirmed_ns > 0
    assert Formula.of(scene.derivation.step.values) == again.formula


def test_a_change_that_a_manager_makes_is_later_than_what_it_had_forgotten() -> None:
    scene = Scene()
    for serial in range(1, 4):
        scene.deriving.tune(scene.target, scene.channel, Formula(1, 2, 1, serial))
        scene.system.run(SECOND)
    directory = scene.manager.core.manager.directory
    directory.get(scene.channel.id.name).step = scene.channel.lineage[-1]  # as a book begun anew has it
    last = scene.deriving.tune(scene.target, scene.channel, Formula(1, 2, 0, 9))
    scene.system.run(SECOND)
    assert last.confirmed_ns > 0
    assert Formula.of(scene.derivation.step.values) == last.formula
    scene.settle(2)


@pytest.mark.parametrize("pause_ms", [5, 20, 90, 110])
def test_a_change_that_waits_for_the_next_manager_is_in_force_in_the_hub_that_asked_for_it(pause_ms: int) -> None:
    scene = Scene()
    scene.system.farewell(scene.manager)
    scene.system.run(pause_ms * MILLISECOND)
    tuning = scene.deriving.tune(scene.origin, scene.channel, Formula(1, 2, 1, 1))
    scene.replace_manager()
    scene.run_until(lambda: tuning.confirmed_ns > 0)
    assert Formula.of(scene.derivation.step.values) == tuning.formula
    scene.settle(5)


def change_by_way_of_another_port() -> tuple[Scene, Tuning]:
    """Let a hub with a source change parameters by a port that it has not opened, while another manager begins."""
    scene = Scene()
    scene.deriving.derive(scene.target, scene.id, Formula(1, 3, 0), "source", router=True)
    scene.system.run(SECOND)
    other, heard = list(scene.deriving.channels.values())[-2:]
    scene.deriving.subscribe(scene.origin, heard)
    scene.system.run(SECOND)
    assert str(other.id) not in scene.origin.core.members
    scene.system.farewell(scene.manager)
    scene.run_until(lambda: scene.origin.core.neighbours[scene.manager.id].leaving)
    tuning = scene.deriving.tune(scene.origin, other, Formula(1, 3, 1, 1))
    scene.replace_manager().core.manager.directory.adopt(other.lineage)
    scene.run_until(lambda: tuning.confirmed_ns > 0)
    return scene, tuning


def test_a_change_by_way_of_another_port_is_in_force_in_the_hub_that_asked_for_it() -> None:
    scene, tuning = change_by_way_of_another_port()
    group = str(ChannelId(tuning.channel.id.address, tuning.channel.lineage[-1].group))
    assert Formula.of(scene.origin.core.derivations[group].step.values) == tuning.formula
    scene.settle(5)


def test_a_change_that_overtakes_the_word_that_a_hub_has_sources_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echoic.channels.concentrator.make_known", lambda *_: None)
    with pytest.raises(AssertionError, match="was confirmed"):
        change_by_way_of_another_port()


@pytest.mark.parametrize("pause_ms", [0, 2, 20])
def test_a_change_that_a_manager_confirms_while_it_takes_leave_is_in_force_in_the_hub_that_asked_for_it(
    pause_ms: int,
) -> None:
    scene = Scene(seed=2, freezes=True)
    scene.system.farewell(scene.manager)
    scene.system.run(pause_ms * MILLISECOND)
    tuning = scene.deriving.tune(scene.origin, scene.channel, Formula(1, 2, 1, 1))
    scene.run_until(lambda: tuning.confirmed_ns > 0)
    assert Formula.of(scene.derivation.step.values) == tuning.formula


def test_a_hub_that_has_taken_leave_is_told_of_no_change_though_it_asks_for_one() -> None:
    scene = Scene(seed=2, freezes=True)
    scene.system.farewell(scene.origin)
    scene.system.run(20 * MILLISECOND)
    tuning = scene.deriving.tune(scene.origin, scene.channel, Formula(1, 2, 1, 1))
    scene.run_until(lambda: tuning.confirmed_ns > 0)
    assert Formula.of(scene.derivation.step.values) == EVEN


def test_a_manager_begun_anew_confirms_a_change_for_those_who_have_joined_it_and_tells_others_when_they_do() -> None:
    scene = Scene()
    scene.system.farewell(scene.manager)
    scene.system.run(20 * MILLISECOND)
    tuning = scene.deriving.tune(scene.target, scene.channel, Formula(1, 2, 1, 1))
    book, name = scene.replace_manager().core.manager.directory, scene.channel.id.name
    scene.run_until(lambda: book.lineage(name)[-1].version > 0)
    assert scene.origin.address not in book.origins(name)
    scene.system.freeze(scene.target, 2 * SECOND)
    scene.run_until(lambda: scene.origin.address in book.origins(name))
    scene.system.network.part(scene.manager.address, scene.origin.address, 5 * SECOND)
    scene.system.run(4 * SECOND)
    assert tuning.confirmed_ns > 0
    assert Formula.of(scene.derivation.step.values) == EVEN
    scene.settle()
    assert Formula.of(scene.derivation.step.values) == tuning.formula


def test_what_is_derived_from_a_derived_channel_goes_with_it() -> None:
    scene = Scene()
    scene.deriving.derive(scene.target, scene.channel.id, Formula(3, 3, 0), "source")
    scene.system.run(SECOND)
    further = list(scene.deriving.channels.values())[-1]
    scene.deriving.subscribe(scene.target, further)
    scene.system.run(SECOND)
    scene.submit(4)
    assert len(scene.origin.core.derivations) == 2
    scene.system.unpublish(scene.source)
    scene.settle(5)
    assert not scene.origin.core.derivations


def test_sinks_are_told_of_a_move_though_nothing_passes_at_that_moment() -> None:
    scene = Scene("sink")
    scene.submit(1)
    scene.derivation.move(here=True)
    scene.submit(4)
    scene.settle(2)
    assert scene.deriving.book.heard(scene.source, scene.sink) == 4


def test_a_hub_that_runs_no_code_for_others_runs_it_for_its_own_sinks() -> None:
    scene = Scene("sink")
    closed = scene.system.add_hub(policy=Policy(derive=False))
    source = scene.system.publish(closed, scene.id, SECOND)
    scene.system.run(SECOND)
    here = scene.subscribe(closed)
    scene.submit(4, source=source)
    scene.settle(2)
    assert scene.deriving.book.heard(source, here) == scene.deriving.book.heard(source, scene.sink) == 2
