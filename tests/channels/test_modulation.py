"""Modulators at work in the core, run by a runner that holds events back, fails or refuses when a test says so."""

import pytest

from echoic.channels import (
    Compile,
    Dismiss,
    Joined,
    Modulation,
    Refused,
    compiled,
    derive,
    forget_source,
    note_room,
    stirring_ns,
)
from echoic.wire import Batch
from tests.channels.modulators import PERIOD_NS, Holding, Scene
from tests.hub.parties import Tick


def test_events_pass_through_a_modulator() -> None:
    scene = Scene(Holding())
    assert isinstance(scene.replies[0], Joined)
    assert scene.submit(0, 1, 2) == [0, 1, 2]
    assert not scene.modulation.holding
    assert stirring_ns(scene.core) == 0


def test_what_is_held_back_is_sent_when_more_comes_or_it_is_drained() -> None:
    scene = Scene(Holding(2))
    assert scene.submit(0, 1, 2) == [0]
    assert scene.modulation.holding
    assert stirring_ns(scene.core) > 0
    assert scene.submit(3) == [1]
    assert scene.send(list(scene.modulation.drained())) == [2, 3]
    assert not scene.modulation.holding
    assert scene.send(list(scene.modulation.drained())) == []


def test_time_passes_for_each_source_by_itself() -> None:
    runner = Holding(1, period_ns=PERIOD_NS)
    scene = Scene(runner, sources=2)
    scene.submit(0, source=1)
    scene.submit(0, source=2)
    assert stirring_ns(scene.core) == PERIOD_NS
    assert scene.stir(10, 1) == []
    assert scene.stir(10 + PERIOD_NS - 1, 1) == []
    assert scene.stir(10 + PERIOD_NS, 1) == [0]
    assert scene.stir(10 + PERIOD_NS + 1, 1) == []
    assert runner.periods == [1]
    scene.stir(10, 2)
    assert scene.stir(10 + 3 * PERIOD_NS, 2) == [0]
    assert runner.periods == [1, 2], "periods that were slept through are not made up for"


@pytest.mark.parametrize("period_ns", [0, PERIOD_NS])
def test_time_passes_for_a_source_that_never_submitted_if_the_modulator_wants_it(period_ns: int) -> None:
    runner = Holding(period_ns=period_ns)
    scene = Scene(runner)
    scene.stir(0)
    assert scene.stir(10 * PERIOD_NS) == []
    assert runner.periods == ([1] if period_ns else [])


def test_a_modulator_keeps_events_while_the_transport_takes_none() -> None:
    scene = Scene(Holding())
    scene.submit(0)
    scene.modulation.clear = False
    shares = derive(scene.parent, 1, Batch.of([Tick(1, 1)], Tick), lambda: 0)
    assert scene.send(shares) == []
    assert scene.modulation.holding
    assert scene.stir(1) == []
    note_room(scene.core, scene.parent)
    assert scene.modulation.clear
    assert scene.stir(2) == [1]


def test_an_event_that_raises_counts_as_a_fault_and_the_others_pass() -> None:
    runner = Holding()
    runner.fails_at = {1}
    scene = Scene(runner)
    assert scene.submit(0, 1, 2) == [0, 2]
    assert scene.modulation.faults == 1
    assert not scene.modulation.suspended


def test_too_many_faults_suspend_a_modulator_but_not_the_source() -> None:
    runner = Holding()
    runner.fails_at = set(range(1, 10_000))
    scene = Scene(runner)
    scene.submit(*range(1000))
    assert "have faulted, the last because KeyError" in scene.modulation.suspended
    assert scene.submit(1000) == []
    assert scene.parent.sources[1] == 1001


def test_a_modulator_that_is_stopped_is_not_asked_again() -> None:
    runner = Holding()
    runner.stops_at = 1
    scene = Scene(runner, sources=2)
    assert scene.submit(0, source=2) == [0]
    assert scene.submit(0, 1, 2) == []
    assert "the limit" in scene.modulation.suspended
    runner.stops_at = -1
    assert scene.submit(3) == []
    assert scene.submit(1, source=2) == []
    assert list(scene.modulation.drained()) == []


def test_who_derives_anew_what_was_stopped_gets_another_runner() -> None:
    runner = Holding()
    runner.stops_at = 0
    scene = Scene(runner)
    scene.submit(0)
    assert scene.modulation.suspended
    scene.core.leave(scene.member, "sink")
    scene.listen(scene.member, "again")
    scene.compile(Holding())
    assert [effect.runner for effect in scene.take(Dismiss)] == [runner]
    assert scene.submit(1) == [1]


def test_a_source_without_a_service_is_left_out_and_others_go_on() -> None:
    runner = Holding()
    runner.refused = {1}
    scene = Scene(runner, sources=2)
    assert scene.submit(0, source=1) == []
    assert scene.submit(0, source=2) == [0]
    runner.refused.clear()
    assert scene.submit(1, source=1) == [], "it was refused for as long as the source lives"
    assert not scene.modulation.suspended


def test_what_is_held_back_of_other_sources_is_drained_though_one_was_refused() -> None:
    runner = Holding(2)
    runner.refused = {1}
    scene = Scene(runner, sources=2)
    scene.submit(0, source=1)
    scene.submit(0, source=2)
    assert scene.send(list(scene.modulation.drained())) == [0]
    assert not scene.modulation.holding


def test_a_source_that_ends_takes_what_was_held_back_with_it() -> None:
    runner = Holding(2)
    scene = Scene(runner, sources=2)
    scene.submit(0, source=1)
    scene.parent.end(1)
    forget_source(scene.core, scene.parent, 1)
    assert 1 not in runner.queues
    assert not scene.modulation.holding


def test_a_modulator_that_cannot_be_had_is_refused_to_whoever_wants_it() -> None:
    scene = Scene(Refused("RefusedError", "the hub runs no modulators signed by ed25519:xyz"))
    assert isinstance(scene.replies[0], Refused)
    assert "ed25519:xyz" in scene.replies[0].reason
    assert not scene.core.derivations
    assert scene.submit(0) == []


def test_a_modulator_that_is_removed_while_it_is_prepared_is_dismissed() -> None:
    scene = Scene(Holding())
    other = scene.derive(b"2")
    scene.listen(other, "other")
    waiting = scene.take(Compile)
    scene.parent.end(1)
    forget_source(scene.core, scene.parent, 1)
    late = Holding()
    for effect in waiting:
        compiled(scene.core, effect.derivation, late)
    assert late in [effect.runner for effect in scene.take(Dismiss)]


@pytest.mark.parametrize("held_max", [0, 2])
def test_a_turn_sends_what_the_former_modulator_holds_back_before_the_other_begins(held_max: int) -> None:
    scene = Scene(Holding(held_max))
    sent = scene.submit(0, 1, 2)
    former, other = scene.member, scene.derive(b"2")
    scene.listen(other, "successor", instead=former.name, former="sink")
    scene.compile(Holding())
    sent += scene.drain()
    assert sent == [0, 1, 2]
    assert not scene.core.quiet.paused(scene.parent)
    instance = scene.modulation.instances[1].source
    assert [former.turns.takes("sink", "h", instance, first) for first in (0, 2, 3)] == [True, True, False]
    assert len(scene.replies) == 2
    assert isinstance(scene.replies[1], Joined)


def test_a_turn_to_a_modulator_that_others_share_brings_nothing_that_it_held_back_before() -> None:
    scene = Scene(Holding(0))
    other = scene.derive(b"2")
    scene.listen(other, "neighbour")
    runner = Holding(2)
    scene.compile(runner)
    assert scene.submit(0, 1, 2) == [0, 1, 2, 0]
    scene.listen(other, "successor", instead=scene.member.name, former="sink")
    scene.drain()
    origin = other.origin
    assert isinstance(origin, Modulation)
    instance = origin.instances[1].source
    position = other.sources[instance]
    assert other.turns.takes("successor", "h", instance, position)
    assert not runner.queues[1], "what was seen of the former channel would come again"
