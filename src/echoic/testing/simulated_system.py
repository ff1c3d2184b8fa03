"""A system of simulated hubs: what their programs do, what breaks, and the book in which everything is checked.

A test says what happens (`publish`, `subscribe`, `crash`, `network.part`), lets time pass (`run`) and asks whether all
is well (`check_settled`, `check_progress`). During a run the book (`Ledger`) is kept: whatever arrives or is reported
missing is checked at once.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import msgspec

from echoic.channels import Call, ChannelId, Concentrator, Delivery, Member, Missed, SinkHub, Slow, ignore
from echoic.channels.fanout import CREDIT_BYTES, PARKED_BYTES_MAX
from echoic.channels.runs import SourceRun, submit_runs
from echoic.formats import event
from echoic.testing.ledger import Ledger, check
from echoic.testing.network import MILLISECOND, SECOND, Network, VirtualClock
from echoic.testing.simulated_hub import SimulatedHub
from echoic.wire import Batch

__all__ = ["Sample", "SimulatedSystem", "SimulationReport", "Source", "Subscription"]

TRACE_LINES: Final = 60
PROGRESS_NS: Final = 10 * SECOND
CALL_SHARE: Final = 0.04
TOGETHER_SHARE: Final = 0.2


@event
class Sample:
    """What the simulated sources publish."""

    source: int
    number: int
    load: bytes


class SimulationReport(msgspec.Struct, frozen=True):
    """What happened in a run."""

    seed: int
    mode: str
    hubs: int
    virtual_seconds: float
    submitted: int
    delivered: int
    missing: int
    gaps: int
    calls: int
    faults: dict[str, int]
    trace: int


class Source:
    """A source, and how it goes about submitting."""

    def __init__(self, number: int, hub: SimulatedHub, member: Member, pause_ns: int, load: bytes) -> None:
        self.number: Final = number
        self.hub: Final = hub
        self.member: Final = member
        self.pause_ns: Final = pause_ns
        self.load: Final = load
        self.open = True

    @property
    def living(self) -> bool:
        """Whether events can still be expected of it."""
        return self.open and self.hub.alive


class Subscription:
    """The sinks of one hub, from subscribing to cancelling."""

    def __init__(self, number: int, hub: SimulatedHub, member: Member, slow: Slow, handle_ns: int) -> None:
        self.number: Final = number
        self.hub: Final = hub
        self.member: Final = member
        self.slow: Final = slow
        self.handle_ns = handle_ns
        self.stuck_until_ns = 0
        self.open = True

    @property
    def living(self) -> bool:
        """Whether events can still be expected to arrive there."""
        return self.open and self.hub.alive


class SimulatedSystem:
    """Hubs, what their programs do, what breaks, and the book in which it is checked."""

    def __init__(self, seed: int, *, freezes: bool = False, untold_bytes_max: int = 32 * 1024 * 1024) -> None:
        self.seed: Final = seed
        self.random: Final = Random(seed)
        self.clock: Final = VirtualClock()
        self.network: Final = Network(self.random, self.clock)
        self.ledger: Final = Ledger()
        self.hubs: Final[list[SimulatedHub]] = []
        self.sources: Final[list[Source]] = []
        self.subscriptions: Final[list[Subscription]] = []
        self.faults: Final[Counter[str]] = Counter()
        self.calls = 0
        self.quiet = False
        self._options = {"freezes": freezes, "untold_bytes_max": untold_bytes_max}
        self._untold_bytes_max = untold_bytes_max
        self._managed: dict[str, list[tuple[str, str]]] = {}
        self._given_up: set[tuple[str, str]] = set()
        self._waiting_calls: list[tuple[SimulatedHub, int, int, int, Call, list[Subscription]]] = []
        self._trace: deque[str] = deque(maxlen=TRACE_LINES)
        self._digest = 0
        self._largest_bytes = 1000

    def add_hub(self, address: str = "") -> SimulatedHub:
        """Start a hub, at an address at which another may have crashed."""
        number = len(self.hubs)
        id = f"{self.random.getrandbits(32):08x}-{number}"
        hub = SimulatedHub(id, address or f"hub{number}:7401", self.network, self, **self._options)  # type: ignore[arg-type] # by name
        self.hubs.append(hub)
        self.note(f"{id}: starts at {hub.address}")
        return hub

    def create(self, hub: SimulatedHub, name: str, server: str = "") -> ChannelId:
        """Let a hub manage a channel, and register it at a name server."""
        hub.core.manager.directory.create(name, None)
        self._managed.setdefault(hub.address, []).append((name, server))
        self._register(hub, name, server)
        return ChannelId(hub.address, name)

    def publish(self, hub: SimulatedHub, id: ChannelId, pause_ns: int, *, load_bytes: int = 0) -> Source:
        """Open a source, which submits from when the manager knows of it."""
        member = hub.core.open(id, None)
        source = Source(len(self.sources) + 1, hub, member, pause_ns, bytes(load_bytes))
        self._largest_bytes = max(self._largest_bytes, 3 * load_bytes + 1000)
        self.sources.append(source)
        member.sources[source.number] = 0
        self.note(f"{hub.id}: opens source {source.number} of {id}")
        hub.do(lambda core: core.join(member, "source", ignore))
        self.run_soon(pause_ns, lambda: self._submit_on(source))
        return source

    def unpublish(self, source: Source) -> None:
        """Close a source."""
        source.open = False
        member, core = source.member, source.hub.core
        self.note(f"{source.hub.id}: closes source {source.number}")
        del member.sources[source.number]
        if not member.sources:
            source.hub.do(lambda _: core.leave(member, "source"))

    def subscribe(self, hub: SimulatedHub, id: ChannelId, slow: Slow = "block", handle_ns: int = 0) -> Subscription:
        """Subscribe at a hub, which must not be subscribed."""
        member = hub.core.open(id, None)
        subscription = Subscription(len(self.subscriptions) + 1, hub, member, slow, handle_ns)
        self.subscriptions.append(subscription)
        member.sink = SinkHub(hub.address, slow, (f"sink {subscription.number}",))
        self.note(f"{hub.id}: subscribes to {id} as {subscription.number}, {slow}")
        hub.do(lambda core: core.join(member, "sink", ignore))
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Cancel a subscription."""
        subscription.open = False
        self.note(f"{subscription.hub.id}: cancels subscription {subscription.number}")
        subscription.hub.do(lambda core: core.leave(subscription.member, "sink"))

    def submit(self, source: Source, count: int = 1) -> bool:
        """Submit events, if no sink that wants all of them is in the way; return whether that was so."""
        core, member = source.hub.core, source.member
        if core.blocked(member):
            return False
        self._promise(source)
        batch = self._batch(source, count)
        self.ledger.submit(source.number, count)
        source.hub.do(lambda _: core.submit(member, source.number, batch))
        return True

    def submit_together(self, sources: Sequence[Source], count: int = 1) -> bool:
        """Submit events of several sources of one hub in one frame, if that can be; return whether it could."""
        core = sources[0].hub.core
        for source in sources:
            self._promise(source)
        samples = [sample for source in sources for sample in self._samples(source, count)]
        runs = [SourceRun(source.member, source.number, count) for source in sources]
        if not submit_runs(core, runs, Batch.of(samples, Sample)):
            return False
        for source in sources:
            self.ledger.submit(source.number, count)
        sources[0].hub.do(lambda _: None)
        return True

    def call(self, source: Source) -> Call:
        """Submit a synchronous event."""
        self._promise(source)
        core, member, first = source.hub.core, source.member, source.member.sources[source.number]
        heard = [one for one in self.subscriptions if one.living and one.member.id == member.id]
        batch = self._batch(source, 1)
        self.ledger.submit(source.number, 1)
        made: list[tuple[int, Call]] = []
        source.hub.do(lambda _: made.append(core.call(member, source.number, batch)))
        number, call = made[0]
        heard = [one for one in heard if one.hub.id in call.waiting]
        self._waiting_calls.append((source.hub, number, source.number, first, call, heard))
        self.calls += 1
        return call

    def crash(self, hub: SimulatedHub) -> None:
        """Let a hub vanish."""
        self.note(f"{hub.id}: crashes")
        self.network.crash(hub)

    def restart(self, address: str) -> SimulatedHub:
        """Start a hub where one has crashed; it creates its channels again."""
        hub = self.add_hub(address)
        for name, server in self._managed.get(address, []):
            hub.core.manager.directory.create(name, None)
            self._register(hub, name, server)
        return hub

    def freeze(self, hub: SimulatedHub, duration_ns: int) -> None:
        """Let a hub's process stand still for a while, as a debugger or a full machine does; the network goes on."""
        self.note(f"{hub.id}: stands still for {duration_ns / SECOND:.1f} s")
        if not hub.frozen:  # what waits for the end of one must not be overtaken by what waits for the end of another
            hub.frozen_until_ns = self.clock.now_ns + duration_ns

    def farewell(self, hub: SimulatedHub) -> None:
        """Let a hub end in good order."""
        self.note(f"{hub.id}: takes leave")
        hub.do(Concentrator.farewell)
        self.run_soon(500 * MILLISECOND, lambda: self.crash(hub))

    def run(self, duration_ns: int) -> None:
        """Let time pass."""
        self.clock.run_until(self.clock.now_ns + duration_ns)
        self.check_memory()

    def run_soon(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Do something later in the run."""
        self.clock.after(delay_ns, action)

    def check_memory(self) -> None:
        """Check that nothing grows without bounds.

        Raises:
            AssertionError: Something does.
        """
        for hub in self.hubs:
            if not hub.alive:
                continue
            channels = len(hub.core.members)
            slack = channels * (PARKED_BYTES_MAX + self._largest_bytes) + 200_000
            slack += self._largest_bytes * sum(source.hub is hub for source in self.sources)
            for neighbour in hub.core.neighbours.values():
                untold = neighbour.session.untold_bytes
                check(untold <= self._untold_bytes_max + slack, f"{untold} bytes are untold at {hub.id}")
                check(len(neighbour.bindings) <= 100, f"{len(neighbour.bindings)} numbers are bound at {hub.id}")
            for member in hub.core.members.values():
                for target in member.fanout.targets.values():
                    check(target.parked_bytes <= PARKED_BYTES_MAX + self._largest_bytes, "too much is parked")
                    check(target.credit <= CREDIT_BYTES, "credit was granted that was never spent")

    def check_settled(self) -> None:
        """Check that everything promised to the living has come, and nothing is waited for.

        Raises:
            AssertionError: Something has not.
        """
        for (number, subscription), line in self.ledger.lines.items():
            if self.sources[number - 1].living and self.subscriptions[subscription - 1].living:
                check(
                    self.ledger.is_settled(number, subscription),
                    f"source {number} has submitted {self.ledger.submitted[number]} events, subscription "
                    f"{subscription} is promised those from {line.promised} on and waits for {line.next}",
                )
        for hub, number, _, _, call, _ in self._waiting_calls:
            check(not (hub.alive and call.waiting), f"call {number} of {hub.id} was never answered")
        for source in self.sources:
            for target in source.member.fanout.targets.values() if source.living else ():
                wanted = any(
                    one.living and one.hub.id == target.hub and one.member.subscription == target.sink.subscription
                    for one in self.subscriptions
                    if one.member.id == source.member.id
                )
                check(wanted, f"{source.hub.id} sends source {source.number} to {target.hub}, which does not want it")
        for hub in self.hubs:
            left = len(hub.core.requests) if hub.alive else 0
            check(not left, f"{left} requests of {hub.id} were never answered")
            check(not (hub.alive and len(hub.core.search)), f"{hub.id} looks for a hub for ever")

    def check_progress(self) -> None:
        """Check that the next event of every living source reaches every living sink in time.

        Raises:
            AssertionError: One does not.
        """
        pairs = [
            (source, subscription)
            for source in self.sources
            for subscription in self.subscriptions
            if source.living and subscription.living
            if source.member.id == subscription.member.id and source.hub is not subscription.hub
        ]
        before = {pair: self._heard(*pair) for pair in pairs}
        for _ in range(20):
            for source in self.sources:
                if source.living:
                    self.submit(source)
            self.run(PROGRESS_NS // 20)
        for source, subscription in pairs:
            check(
                not subscription.living or self._heard(source, subscription) > before[source, subscription],
                f"nothing of source {source.number} at {source.hub.id} has reached subscription {subscription.number} "
                f"at {subscription.hub.id} within {PROGRESS_NS // SECOND} s after healing",
            )

    def report(self, mode: str) -> SimulationReport:
        """Return what happened."""
        lines = self.ledger.lines.values()
        return SimulationReport(
            self.seed,
            mode,
            len(self.hubs),
            self.clock.now_ns / SECOND,
            sum(self.ledger.submitted.values()),
            sum(line.events for line in lines),
            sum(line.missing for line in lines),
            sum(line.gaps for line in lines),
            self.calls,
            dict(sorted(self.faults.items())),
            self._digest,
        )

    def explain(self, problem: object) -> str:
        """Return a problem with the seed and the last things that happened."""
        return "\n".join([f"seed {self.seed}: {problem}", *self._trace])

    def delivered(self, hub: SimulatedHub, delivery: Delivery) -> None:
        """Enter events that have arrived, and let their sinks handle them in their time."""
        subscription = self._subscription(hub, delivery.member)
        if subscription is None:
            self.run_soon(0, lambda: hub.finish(delivery))
            return
        samples = delivery.batch.to(Sample).events() if delivery.size < 2000 else []
        numbers = [(sample.source, sample.number) for sample in samples if isinstance(sample, Sample)]
        check(numbers == [(delivery.source, delivery.first + n) for n in range(len(numbers))], "an event was changed")
        self.ledger.deliver(delivery.source, subscription.number, delivery.first, delivery.batch.count)
        self._count(delivery.source, delivery.first)
        stuck_ns = max(0, subscription.stuck_until_ns - self.clock.now_ns)
        self.run_soon(stuck_ns + self.random.randrange(subscription.handle_ns + 1), lambda: hub.finish(delivery))

    def missed(self, hub: SimulatedHub, missed: Missed) -> None:
        """Enter events that were reported missing."""
        subscription, gap = self._subscription(hub, missed.member), missed.gap
        if subscription is None:
            return
        self.note(f"{hub.id}: misses {gap.first} to {gap.last} of source {gap.source}: {gap.reason}")
        self.ledger.miss(gap.source, subscription.number, gap.first, gap.last)
        origin = self.sources[gap.source - 1].hub
        excuses = {(hub.id, origin.id), (origin.id, hub.id), (origin.id, hub.address)} & self._given_up
        excused = bool(excuses) or subscription.slow != "block"
        check(excused, "a sink that wants every event has lost some without need")

    def ended(self, hub: SimulatedHub, member: Member) -> None:
        """Cancel a subscription that is sent no more, as the hub does, and subscribe again."""
        subscription = self._subscription(hub, member)
        if subscription is None:
            return
        check(subscription.slow == "disconnect", "a sink that did not ask for it was cut off")
        self.faults["cut off"] += 1
        self.unsubscribe(subscription)
        id = ChannelId.parse(member.id)

        def again() -> None:
            if hub.alive and self._subscription(hub, member) is None:
                self.subscribe(hub, id, "disconnect", subscription.handle_ns)

        self.run_soon(self.random.randrange(3 * SECOND), again)

    def forgotten(self, hub: SimulatedHub, other: str) -> None:
        """Note that a hub has given another up, which excuses gaps between them."""
        self._given_up.add((hub.id, other))
        self.faults["given up"] += 1

    def unreached(self, hub: SimulatedHub, address: str) -> None:
        """Note that a hub could not connect to another, which excuses gaps between them."""
        self._given_up.add((hub.id, address))

    def note(self, text: str) -> None:
        """Write down what happened, and make it part of what two runs of a seed must have in common."""
        line = f"{self.clock.now_ns / SECOND:10.4f} {text}"
        self._trace.append(line)
        for byte in line.encode():
            self._digest = (self._digest * 1_000_003 ^ byte) & 0xFFFFFFFFFFFFFFFF

    def finish_calls(self) -> None:
        """Check the calls that are answered: whoever did not fail has handled the event."""
        for hub, number, source, first, call, heard in self._waiting_calls[:]:
            if call.waiting or not hub.alive:
                continue
            failed = " ".join(call.failures)
            for one in heard:
                if one.living and one.hub.address not in failed:
                    handled = self.ledger.has_handled(source, one.number, first)
                    check(handled, f"call {number} of {hub.id} was answered, but not handled by {one.number}")
            hub.core.forget_call(number)
            self._waiting_calls.remove((hub, number, source, first, call, heard))

    def _count(self, source: int, first: int) -> None:
        self._digest = (self._digest * 1_000_003 ^ source ^ first ^ self.clock.now_ns) & 0xFFFFFFFFFFFFFFFF

    def _samples(self, source: Source, count: int) -> list[Sample]:
        first = source.member.sources[source.number]
        return [Sample(source.number, first + n, source.load) for n in range(count)]

    def _batch(self, source: Source, count: int) -> Batch:
        return Batch.of(self._samples(source, count), Sample)

    def _submit_on(self, source: Source) -> None:
        """Submit, wait, submit again, for as long as the source is open."""
        if not source.living:
            return
        if self.quiet or source.hub.frozen:
            pass
        elif "source" in source.member.joined or source.number in self.ledger.submitted:
            waiting = any(other == source.number for _, _, other, _, _, _ in self._waiting_calls)
            chance = self.random.random()
            if chance < CALL_SHARE and not waiting:
                self.call(source)
            elif chance > 1 - TOGETHER_SHARE and self.submit_together(self._companions(source)):
                pass
            else:
                self.submit(source, self.random.choice((1, 1, 2, 3)))
        self.finish_calls()
        self.run_soon(self.random.randrange(source.pause_ns // 2, source.pause_ns * 2), lambda: self._submit_on(source))

    def _companions(self, source: Source) -> list[Source]:
        """Return the sources of a hub that have begun to submit."""
        return [
            other
            for other in self.sources
            if other.living and other.hub is source.hub and (other is source or other.number in self.ledger.submitted)
        ]

    def _promise(self, source: Source) -> None:
        """Enter which subscriptions count for what a source submits from here on.

        Those count that both ends and the manager agree on. A source that the manager has given up is not part of the
        channel until it has joined again.
        """
        for one in self.subscriptions:
            elsewhere = one.living and one.member.id == source.member.id and one.hub is not source.hub
            if elsewhere and self._agreed(source, one):
                self.ledger.promise(source.number, one.number)

    def _agreed(self, source: Source, one: Subscription) -> bool:
        if "source" not in source.member.joined or "sink" not in one.member.joined:
            return False
        for hub in self.hubs:
            if hub.alive and hub.address == source.member.manager:
                channel = hub.core.manager.directory.get(source.member.name)
                sink = channel.sinks.get(one.hub.address)
                wish = (one.hub.id, one.member.subscription)
                return (
                    source.hub.address in channel.sources and sink is not None and wish == (sink.hub, sink.subscription)
                )
        return False

    def _subscription(self, hub: SimulatedHub, member: Member) -> Subscription | None:
        """Return the subscription of a hub that is open."""
        for one in reversed(self.subscriptions):
            if one.hub is hub and one.member is member:
                return one if one.open else None
        return None

    def _heard(self, source: Source, subscription: Subscription) -> int:
        line = self.ledger.lines.get((source.number, subscription.number))
        return line.events if line is not None else 0

    def _register(self, hub: SimulatedHub, name: str, server: str) -> None:
        if server:
            id = str(ChannelId(hub.address, name))
            hub.do(lambda core: core.register(server, name, id, ignore))
