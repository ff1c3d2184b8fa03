"""Channels under every fault we know of: many seeds, and the cases worth a name of their own.

`python -m echoic.testing.simulation --seed N --mode safety` repeats a seed that failed.
"""

import pytest

from echoic.channels import CREDIT_BYTES, ChannelId, Message, Resolve, Resolved, Slow
from echoic.channels.greeting import Greeting
from echoic.channels.manager import Manager
from echoic.channels.session import Session
from echoic.testing import SimulatedHub, SimulatedSystem
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.simulated_system import Source, Subscription
from echoic.testing.simulation import run_simulation
from tests.simulation.hash_seeds import printed_under_hash_seeds

LARGE_BYTES = CREDIT_BYTES // 16
SAFETY_SEEDS, LIVENESS_SEEDS, SEEDS_PER_TEST = 40, 20, 20


@pytest.mark.parametrize("start", range(0, SAFETY_SEEDS, SEEDS_PER_TEST))
def test_nothing_is_lost_repeated_or_reordered_in_silence_whatever_fails(start: int) -> None:
    reports = [run_simulation(seed) for seed in range(start, start + SEEDS_PER_TEST)]
    assert sum(report.delivered for report in reports) > 1000


@pytest.mark.parametrize("start", range(10_000, 10_000 + LIVENESS_SEEDS, SEEDS_PER_TEST))
def test_ten_seconds_after_healing_every_source_reaches_every_sink(start: int) -> None:
    for seed in range(start, start + SEEDS_PER_TEST):
        run_simulation(seed, "liveness")


def test_a_seed_gives_the_same_run_again() -> None:
    assert [run_simulation(seed) for seed in range(3)] == [run_simulation(seed) for seed in range(3)]
    assert run_simulation(1).trace != run_simulation(2).trace


def test_a_seed_gives_the_same_run_whatever_the_hash_seed() -> None:
    program = (
        "from echoic.testing.simulation import run_simulation; print([run_simulation(seed) for seed in (4, 5, 6)])"
    )
    assert len(printed_under_hash_seeds(program)) == 1


def run_until_one_fails() -> str:
    for seed in range(200):
        try:
            run_simulation(seed)
        except AssertionError as error:
            return str(error)
    return ""


def test_a_greeting_that_believes_an_outdated_count_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Greeting, "holds", lambda self, session: True)
    assert run_until_one_fails().startswith("seed ")


def test_a_session_that_does_not_send_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "resume", Session.told)
    assert "seed " in run_until_one_fails()


def test_a_name_that_is_not_registered_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Manager, "register_again", lambda self, forgetful: None)
    assert "the name server says" in run_until_one_fails()


class Scene:
    """A manager, a source's hub and a sink's hub, which have met; nothing is submitted unless a test does."""

    def __init__(self, slow: Slow = "block", *, seed: int = 1, load_bytes: int = 0) -> None:
        self.system = SimulatedSystem(seed)
        self.system.quiet = True
        self.manager, self.origin, self.target = (self.system.add_hub() for _ in range(3))
        self.id = self.system.create(self.manager, "trades")
        self.source = self.system.publish(self.origin, self.id, SECOND, load_bytes=load_bytes)
        self.sink = self.system.subscribe(self.target, self.id, slow)
        self.system.run(3 * SECOND)

    def submit(self, count: int, pause_ns: int = 10 * MILLISECOND) -> int:
        """Submit events one by one and return how many were taken."""
        taken = 0
        for _ in range(count):
            taken += self.system.submit(self.source)
            self.system.run(pause_ns)
        return taken

    def settle(self, seconds: int = 45) -> None:
        for _ in range(seconds):
            self.system.run(SECOND)
        self.system.check_settled()

    def outcome(self, source: Source | None = None, sink: Subscription | None = None) -> tuple[int, int, int]:
        """Return how many events arrived, how many were reported missing, and in how many gaps."""
        key = (source or self.source).number, (sink or self.sink).number
        line = self.system.ledger.lines[key]
        return line.events, line.missing, line.gaps

    def part(self, one: SimulatedHub, other: SimulatedHub, seconds: int) -> None:
        self.system.network.part(one.address, other.address, seconds * SECOND)
        self.system.network.part(other.address, one.address, seconds * SECOND)


def test_events_go_straight_from_the_source_to_the_sink() -> None:
    scene = Scene()
    scene.submit(20)
    scene.settle(2)
    assert scene.outcome() == (20, 0, 0)
    assert all(not member.fanout.targets for member in scene.manager.core.members.values())


def test_a_half_open_connection_loses_nothing() -> None:
    scene = Scene()
    scene.submit(5)
    link = scene.origin.link(scene.target.id)
    assert link is not None
    link.cut = link.peer.cut = True  # nothing passes any more, and nobody knows
    scene.submit(10)
    scene.system.network.clock.after(3 * SECOND, link.notice)
    scene.system.network.clock.after(4 * SECOND, link.peer.notice)
    scene.submit(5)
    scene.settle(10)
    assert scene.outcome() == (20, 0, 0)


def test_a_connection_that_breaks_again_and_again_loses_nothing() -> None:
    scene = Scene()
    for _ in range(30):
        scene.submit(3)
        for end in scene.system.network.connections():
            scene.system.network.cut(end)
    scene.settle(15)
    assert scene.outcome() == (90, 0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_hubs_that_dial_each_other_at_once_end_with_one_session(seed: int) -> None:
    system = SimulatedSystem(seed)
    one, other = system.add_hub(), system.add_hub()
    answers: list[Message] = []
    one.do(lambda core: core.ask(other.address, Resolve("x"), answers.append))
    other.do(lambda core: core.ask(one.address, Resolve("x"), answers.append))
    system.run(3 * SECOND)
    sessions = {hub.core.neighbours[peer.id].session.id for hub, peer in ((one, other), (other, one))}
    assert len(sessions) == 1
    assert len(answers) == 2
    assert len(system.network.connections()) == 2  # the two ends of one


def test_traffic_goes_on_while_the_manager_is_dead_and_new_members_wait_until_it_returns() -> None:
    scene = Scene()
    scene.system.crash(scene.manager)
    scene.submit(10)
    late = scene.system.add_hub()
    joining = scene.system.subscribe(late, scene.id)
    scene.submit(10, 500 * MILLISECOND)
    assert scene.outcome() == (20, 0, 0)
    assert "sink" not in joining.member.joined
    scene.system.restart(scene.manager.address)
    scene.system.run(10 * SECOND)
    scene.submit(5)
    scene.settle()
    assert scene.outcome() == (25, 0, 0)
    assert scene.outcome(sink=joining) == (5, 0, 0)


def test_a_partition_shorter_than_hubs_wait_loses_nothing() -> None:
    scene = Scene()
    scene.part(scene.origin, scene.target, 15)
    scene.submit(50, 200 * MILLISECOND)
    scene.settle()
    assert scene.outcome() == (50, 0, 0)


def test_hubs_that_gave_each_other_up_find_each_other_again_with_one_exact_gap() -> None:
    scene = Scene()
    scene.submit(7)
    scene.part(scene.origin, scene.target, 30)
    scene.submit(40, SECOND)
    scene.settle()
    events, missing, gaps = scene.outcome()
    assert events + missing == 47
    assert missing > 0
    assert gaps == 1


def test_a_gap_is_reported_even_if_the_source_never_sends_again() -> None:
    scene = Scene()
    scene.submit(7)
    scene.system.run(SECOND)
    scene.part(scene.origin, scene.target, 30)
    scene.submit(5, SECOND)
    scene.settle()
    assert scene.outcome() == (7, 5, 1)


def test_a_sink_that_never_heard_a_source_is_told_what_it_missed_of_it() -> None:
    scene = Scene()
    scene.part(scene.origin, scene.target, 30)
    scene.submit(5, SECOND)
    scene.settle()
    assert scene.outcome() == (0, 5, 1)


def test_a_sink_that_the_source_cannot_reach_is_told_what_it_missed_since_it_subscribed() -> None:
    scene = Scene()
    late = scene.system.add_hub()
    scene.part(scene.origin, late, 12)
    joining = scene.system.subscribe(late, scene.id)
    scene.system.run(8 * SECOND)
    assert "sink" in joining.member.joined
    scene.submit(4)
    scene.settle()
    assert scene.outcome(sink=joining) == (0, 4, 1)
    scene.submit(3)
    scene.settle(5)
    assert scene.outcome(sink=joining) == (3, 4, 1)


def test_when_only_one_side_gave_the_other_up_both_begin_afresh() -> None:
    scene = Scene()
    scene.submit(3)
    scene.origin.do(lambda core: core.gone(scene.target.id, "a test"))
    scene.submit(5, 500 * MILLISECOND)
    scene.settle(10)
    events, missing, _ = scene.outcome()
    assert events + missing == 8


def test_a_sink_hub_started_anew_at_the_same_address_is_found() -> None:
    scene = Scene()
    scene.system.crash(scene.target)
    again = scene.system.restart(scene.target.address)
    joining = scene.system.subscribe(again, scene.id)
    scene.system.run(8 * SECOND)
    scene.submit(5)
    scene.settle()
    assert scene.outcome(sink=joining) == (5, 0, 0)


def test_a_hub_that_took_leave_is_replaced_by_the_next_one_at_its_address() -> None:
    scene = Scene()
    scene.system.farewell(scene.target)
    scene.system.run(SECOND)
    again = scene.system.restart(scene.target.address)
    joining = scene.system.subscribe(again, scene.id)
    scene.system.run(5 * SECOND)
    scene.submit(5)
    scene.settle()
    assert scene.outcome(sink=joining) == (5, 0, 0)


def test_a_name_server_that_was_started_anew_learns_all_names_again() -> None:
    system = SimulatedSystem(3)
    server, manager, asker = (system.add_hub() for _ in range(3))
    id = system.create(manager, "trades", server.address)
    system.run(SECOND)
    system.crash(server)
    system.run(SECOND)
    system.restart(server.address)
    system.run(8 * SECOND)
    answers: list[Message] = []
    asker.do(lambda core: core.ask(server.address, Resolve("trades"), answers.append))
    system.run(SECOND)
    assert answers == [Resolved(str(id))]


def test_a_sink_that_was_cancelled_while_the_manager_was_dead_is_sent_no_more() -> None:
    scene = Scene()
    scene.system.crash(scene.manager)
    scene.system.unsubscribe(scene.sink)
    scene.submit(5, 200 * MILLISECOND)
    assert not scene.source.member.fanout.targets
    assert not scene.target.core.neighbours[scene.origin.id].bindings


def test_a_sink_that_cancels_and_subscribes_at_once_hears_everything_since() -> None:
    scene = Scene()
    for _ in range(10):
        scene.submit(3)
        scene.system.unsubscribe(scene.sink)
        scene.sink = scene.system.subscribe(scene.target, scene.id)
    scene.system.run(2 * SECOND)
    scene.submit(5)
    scene.settle(5)
    assert scene.outcome() == (5, 0, 0)


def test_a_source_waits_for_a_sink_that_wants_everything_and_does_not_keep_up() -> None:
    scene = Scene("block", load_bytes=LARGE_BYTES)
    scene.sink.stuck_until_ns = scene.system.clock.now_ns + 10 * SECOND
    taken = scene.submit(40)
    assert 16 <= taken <= 18
    scene.system.run(10 * SECOND)
    taken += scene.submit(10)
    scene.settle(5)
    assert scene.outcome() == (taken, 0, 0)


@pytest.mark.parametrize("slow", ["drop_oldest", "latest"])
def test_a_slow_sink_is_told_exactly_what_was_dropped(slow: Slow) -> None:
    scene = Scene(slow, load_bytes=LARGE_BYTES)
    scene.sink.stuck_until_ns = scene.system.clock.now_ns + 10 * SECOND
    assert scene.submit(40) == 40
    scene.system.run(10 * SECOND)
    scene.settle(5)
    events, missing, gaps = scene.outcome()
    assert (events + missing, gaps) == (40, 1)
    assert missing >= 20


def test_what_was_dropped_of_an_idle_source_is_told_when_another_one_sends() -> None:
    scene = Scene("latest", load_bytes=LARGE_BYTES)
    other = scene.system.publish(scene.origin, scene.id, SECOND)
    scene.system.run(SECOND)
    scene.sink.stuck_until_ns = scene.system.clock.now_ns + 10 * SECOND
    scene.submit(30)
    scene.system.submit(other)
    scene.system.run(10 * SECOND)
    scene.settle(5)
    events, missing, gaps = scene.outcome()
    assert (events + missing, gaps) == (30, 1)
    assert scene.outcome(other) == (1, 0, 0)


def test_a_sink_that_is_cut_off_for_being_slow_is_told_and_can_come_back() -> None:
    scene = Scene("disconnect", load_bytes=LARGE_BYTES)
    scene.sink.stuck_until_ns = scene.system.clock.now_ns + 5 * SECOND
    scene.submit(30)
    assert scene.system.faults["cut off"] == 1
    assert not scene.sink.open
    scene.system.run(10 * SECOND)
    scene.submit(3)
    scene.settle(5)
    assert scene.outcome(sink=scene.system.subscriptions[-1]) == (3, 0, 0)


def test_events_parked_because_the_link_was_full_are_sent_when_it_is_not() -> None:
    system = SimulatedSystem(1, untold_bytes_max=1_000_000)
    system.quiet = True
    manager, target = system.add_hub(), system.add_hub()
    id = system.create(manager, "trades")
    source = system.publish(manager, id, SECOND, load_bytes=300_000)
    sink = system.subscribe(target, id, "drop_oldest")
    system.run(2 * SECOND)
    system.network.part(manager.address, target.address, 5 * SECOND)
    for _ in range(10):
        assert system.submit(source)
    for _ in range(20):
        system.run(SECOND)
    system.check_settled()
    line = system.ledger.lines[source.number, sink.number]
    assert (line.events + line.missing, line.gaps) == (10, 1)


def test_a_call_is_answered_after_the_connection_broke_and_came_back() -> None:
    scene = Scene()
    call = scene.system.call(scene.source)
    for end in scene.system.network.connections():
        scene.system.network.cut(end)
    scene.settle(10)
    assert not call.waiting
    assert not call.failures


def test_a_call_fails_when_the_hub_of_a_sink_is_gone() -> None:
    scene = Scene()
    scene.sink.stuck_until_ns = 10**18
    call = scene.system.call(scene.source)
    scene.system.run(SECOND)
    assert call.waiting
    scene.system.crash(scene.target)
    scene.settle(30)
    assert not call.waiting
    assert "gone" in str(call.failures)


def test_a_hub_that_is_found_under_another_name_is_spoken_with() -> None:
    system = SimulatedSystem(1)
    one, other = system.add_hub(), system.add_hub()
    other.address = "localhost:9"  # where it is placed, while it calls itself by another name
    system.network.place(other)
    answers: list[Message] = []
    one.do(lambda core: core.ask("localhost:9", Resolve("x"), answers.append))
    system.run(SECOND)
    one.do(lambda core: core.ask("localhost:9", Resolve("y"), answers.append))
    system.run(SECOND)
    assert len(answers) == 2


def test_a_source_and_a_sink_in_the_managers_own_hub_take_part_like_others() -> None:
    system = SimulatedSystem(1)
    system.quiet = True
    manager, other = system.add_hub(), system.add_hub()
    id = system.create(manager, "trades")
    here, there = system.publish(manager, id, SECOND), system.publish(other, id, SECOND)
    near, far = system.subscribe(manager, id), system.subscribe(other, id)
    system.run(2 * SECOND)
    for _ in range(5):
        system.submit(here)
        system.submit(there)
    system.run(2 * SECOND)
    system.check_settled()
    assert system.ledger.lines[here.number, far.number].events == 5
    assert system.ledger.lines[there.number, near.number].events == 5


def test_an_id_names_the_hub_that_is_asked_for_a_channel() -> None:
    scene = Scene()
    assert ChannelId.parse(scene.source.member.id) == ChannelId(scene.manager.address, "trades")
