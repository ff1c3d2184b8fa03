"""A system of simulated hubs: what their programs do, what breaks, and the book in which everything is checked.

A test says what happens (`publish`, `subscribe`, `crash`, `network.part`), lets time pass (`run`) and asks whether all
is well (`check_settled`, `check_progress`). During a run the book (`Ledger`) is kept: whatever arrives or is reported
missing is checked at once.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from echoic.channels import (
    Call,
    ChannelId,
    Concentrator,
    Consult,
    Delivery,
    Member,
    Missed,
    Modulation,
    Policy,
    Refused,
    Runner,
    Share,
    SinkHub,
    Slow,
    Step,
    Troubled,
    congested,
    forget_source,
    ignore,
    register,
    report_trouble,
    retire,
    send_share,
)
from echoic.channels.fanout import CREDIT_BYTES, PARKED_BYTES_MAX
from echoic.channels.runs import SourceRun, submit_runs
from echoic.errors import ChannelNotFoundError
from echoic.formats import Format
from echoic.testing.ledger import Ledger, check
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.simulated_deriving import Deriving
from echoic.testing.simulated_ends import PendingCall, Sample, SimulationReport, Source, Subscription
from echoic.testing.simulated_hub import TICK_NS, SimulatedHub, refuse
from echoic.testing.surroundings import Surroundings
from echoic.wire import Batch

__all__ = ["Sample", "SimulatedSystem", "SimulationReport", "Source", "Subscription"]

PROGRESS_NS: Final = 10 * SECOND
CALL_SHARE: Final = 0.04
TOGETHER_SHARE: Final = 0.2
RACE_NS: Final = 30 * MILLISECOND
PROGRESS_EVENTS: Final = 14  # enough for one of them to pass whatever is derived


class SimulatedSystem:
    """Hubs, what their programs do, what breaks, and the book in which it is checked."""

    def __init__(
        self,
        seed: int,
        *,
        freezes: bool = False,
        untold_bytes_max: int = 32 * 1024 * 1024,
        around: Surroundings | None = None,
        tick_ns: int = TICK_NS,
    ) -> None:
        """Begin with no hubs.

        Args:
            seed: What everything is drawn from.
            freezes: Whether hubs stop reading a connection as soon as its peer greets again.
            untold_bytes_max: How much a hub keeps for a neighbour that does not say what it has.
            around: Where it takes place, if others are there too; the seed says nothing then.
            tick_ns: How often a hub looks at the time.
        """
        around = around if around is not None else Surroundings(seed)
        self.around: Final = around
        self.seed: Final = around.seed
        self.random: Final = around.random
        self.clock: Final = around.clock
        self.network: Final = around.network
        self.ledger: Final = Ledger()
        self.hubs: Final[list[SimulatedHub]] = []
        self.sources: Final[list[Source]] = []
        self.subscriptions: Final[list[Subscription]] = []
        self.faults: Final = around.faults
        self.calls = 0
        self.quiet = False
        self.derived: Final = Deriving(self)
        self.race_share = 0.0
        """How often something else happens between deriving and sending."""
        self._options = {"freezes": freezes, "untold_bytes_max": untold_bytes_max, "tick_ns": tick_ns}
        self._untold_bytes_max = untold_bytes_max
        self._managed: dict[str, list[tuple[str, str, Format | None]]] = {}
        self._given_up: dict[tuple[str, str], int] = {}
        self._waiting_calls: list[PendingCall] = []
        self._largest_bytes = 1000

    def add_hub(self, address: str = "", policy: Policy | None = None) -> SimulatedHub:
        """Start a hub, at an address at which another may have crashed."""
        number = len(self.hubs)
        id = f"{self.random.getrandbits(32):08x}-{number}"
        hub = SimulatedHub(id, address or f"hub{number}:7401", self.network, self, policy=policy, **self._options)  # type: ignore[arg-type] # by name
        self.hubs.append(hub)
        self.note(f"{id}: starts at {hub.address}")
        return hub

    def create(self, hub: SimulatedHub, name: str, server: str = "", declared: object | None = None) -> ChannelId:
        """Let a hub manage a channel, and register it at a name server."""
        format = Format.of(declared) if declared is not None else None
        hub.core.manager.directory.create(name, format)
        self._managed.setdefault(hub.address, []).append((name, server, format))
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
        """Close a source, when nothing is being derived of it."""
        source.open = False
        if source.busy:
            self.run_soon(MILLISECOND, lambda: self.unpublish(source))
            return
        member, number = source.member, source.number
        self.note(f"{source.hub.id}: closes source {number}")

        def close(core: Concentrator) -> None:
            member.end(number)
            forget_source(core, member, number)
            retire(core, member)

        source.hub.do(close)

    def subscribe(
        self, hub: SimulatedHub, id: ChannelId, slow: Slow = "block", handle_ns: int = 0, lineage: tuple[Step, ...] = ()
    ) -> Subscription:
        """Subscribe at a hub, which must not be subscribed; `lineage` is how a derived channel is opened there."""
        member = hub.core.open(id, None)
        member.lineage = lineage or member.lineage
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
        if source.busy or congested(core, member):
            return False
        self._promise(source)
        batch = self._batch(source, count)
        shares = self.derived.made_of(source, batch)
        if not shares or self.random.random() >= self.race_share:
            self._send(source, batch, shares)
        else:
            source.busy = True
            self.run_soon(self.random.randrange(RACE_NS), lambda: self._send(source, batch, shares))
        return True

    def _send(self, source: Source, batch: Batch, shares: Sequence[Share]) -> None:
        """Send events, and what was derived from them."""
        source.busy = False
        if not source.hub.alive:
            return
        self.ledger.submit(source.number, batch.count)

        def send(core: Concentrator) -> None:
            core.submit(source.member, source.number, batch)
            for share in shares:
                self.derived.sent(source, share, send_share(core, share))
            report_trouble(core, source.member)

        source.hub.do(send)

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
        batch = self._batch(source, 1)
        shares = self.derived.made_of(source, batch)
        self.ledger.submit(source.number, 1)
        made: list[tuple[int, Call]] = []
        source.hub.do(lambda _: made.append(core.call(member, source.number, batch)))
        self._await(source, made[0], member, (self.ledger, source.number, first))
        for share in shares:
            self._call_share(source, share)
        source.hub.do(lambda core: report_trouble(core, member))
        self.calls += 1
        return made[0][1]

    def _call_share(self, source: Source, share: Share) -> None:
        """Send what was derived from a synchronous event."""
        made: list[tuple[int, Call]] = []

        def call(core: Concentrator) -> None:
            first = send_share(core, msgspec.structs.replace(share, remote=False))
            if share.remote:
                made.append(core.call(share.member, share.source, share.batch))
            stream = self.derived.sent(source, share, first)
            for one in made:
                self._await(source, one, share.member, (self.derived.book.ledger, stream.number, first))

        source.hub.do(call)

    def _await(self, source: Source, made: tuple[int, Call], member: Member, event: tuple[Ledger, int, int]) -> None:
        number, call = made
        heard = [one for one in self.subscriptions if one.living and one.member.id == member.id]
        heard = [one for one in heard if one.hub.id in call.waiting]
        self._waiting_calls.append(PendingCall(source, number, *event, call, heard))

    def crash(self, hub: SimulatedHub) -> None:
        """Let a hub vanish."""
        self.note(f"{hub.id}: crashes")
        self.network.crash(hub)

    def restart(self, address: str, policy: Policy | None = None) -> SimulatedHub:
        """Start a hub where one has crashed; it creates its channels again."""
        hub = self.add_hub(address, policy)
        for name, server, format in self._managed.get(address, []):
            hub.core.manager.directory.create(name, format)
            self._register(hub, name, server)
        return hub

    def freeze(self, hub: SimulatedHub, duration_ns: int) -> None:
        """Let a hub's process stand still for a while, as a debugger or a full machine does; the network goes on."""
        self.note(f"{hub.id}: stands still for {duration_ns / SECOND:.1f} s")
        if not hub.frozen:  # what waits for the end of one must not be overtaken by what waits for the end of another
            hub.stand_still(self.clock.now_ns + duration_ns)

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
        self.derived.check_bounds()

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
        for made in self._waiting_calls:
            hub = made.source.hub
            check(not (hub.alive and made.call.waiting), f"call {made.number} of {hub.id} was never answered")
        for source in self.sources:
            for target in source.member.fanout.targets.values() if source.living else ():
                wanted = self.wants(target.hub, source.member.id, target.sink.subscription)
                check(wanted, f"{source.hub.id} sends source {source.number} to {target.hub}, which does not want it")
        for hub in self.hubs:
            refused = any(any(member.lacking()) for other in self.hubs for member in other.core.members.values())
            left = self.open_requests(hub) if hub.alive and not refused else 0  # who is refused asks again and again
            check(not left, f"{left} requests of {hub.id} were never answered")
            check(not (hub.alive and len(hub.core.search)), f"{hub.id} looks for a hub for ever")
        self.derived.check_settled()

    def open_requests(self, hub: SimulatedHub) -> int:
        """Return how many requests of a hub have yet to be answered."""
        return len(hub.core.requests)

    def wants(self, hub: str, channel: str, subscription: int) -> bool:
        """Whether a hub wants to be sent a channel's events."""
        return any(
            one.living and one.hub.id == hub and one.member.subscription == subscription
            for one in self.subscriptions
            if one.member.id == channel
        )

    def is_healthy(self, hub: SimulatedHub) -> bool:
        """Whether a hub must make progress; all that live, unless only some of them are healed."""
        return hub.alive

    def check_progress(self) -> None:
        """Check that the next event of every living source reaches every living sink in time.

        Raises:
            AssertionError: One does not.
        """
        pairs = [
            (source, subscription)
            for source in self.sources
            for subscription in self.subscriptions
            if source.living and subscription.living and self._progresses(source, subscription)
            if self.is_healthy(source.hub) and self.is_healthy(subscription.hub)
        ]
        before = {pair: self._heard(*pair) for pair in pairs}
        for _ in range(20):
            for source in self.sources:
                if source.living and self._has_begun(source):
                    self.submit(source, PROGRESS_EVENTS if self.derived.channels and not source.load else 1)
            self.run(PROGRESS_NS // 20)
        for source, subscription in pairs:
            check(
                not subscription.living
                or not self._progresses(source, subscription)
                or self._is_held_up(source)
                or self._heard(source, subscription) > before[source, subscription],
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
            self.around.trace,
            len(self.derived.channels),
            self.derived.book.passed,
            sum(line.missing for line in self.derived.book.ledger.lines.values()),
            self.derived.book.raw_events,
            sum(one.confirmed_ns >= 0 for one in self.derived.tunings),
        )

    def explain(self, problem: object) -> str:
        """Return a problem with the seed and the last things that happened."""
        return self.around.explain(problem)

    def delivered(self, hub: SimulatedHub, delivery: Delivery) -> None:
        """Enter events that have arrived, and let their sinks handle them in their time."""
        subscription = self.subscription(hub, delivery.member)
        if subscription is None:
            self.run_soon(0, lambda: hub.finish(delivery))
            return
        if subscription.derived:
            self.derived.arrived(hub, subscription, delivery)
        else:
            self._arrived(subscription, delivery)
        self.around.count(delivery.source, delivery.first)
        stuck_ns = max(0, subscription.stuck_until_ns - self.clock.now_ns)
        self.run_soon(stuck_ns + self.random.randrange(subscription.handle_ns + 1), lambda: hub.finish(delivery))

    def _arrived(self, subscription: Subscription, delivery: Delivery) -> None:
        samples = delivery.batch.to(Sample).events() if delivery.size < 2000 else []
        numbers = [(sample.source, sample.number) for sample in samples if isinstance(sample, Sample)]
        check(numbers == [(delivery.source, delivery.first + n) for n in range(len(numbers))], "an event was changed")
        self.ledger.deliver(delivery.source, subscription.number, delivery.first, delivery.batch.count)

    def missed(self, hub: SimulatedHub, missed: Missed) -> None:
        """Enter events that were reported missing."""
        subscription, gap = self.subscription(hub, missed.member), missed.gap
        if subscription is None:
            return
        self.note(f"{hub.id}: misses {gap.first} to {gap.last} of source {gap.source}: {gap.reason}")
        if subscription.derived:
            origin = self.derived.missed(subscription, gap).hub
        else:
            self.ledger.miss(gap.source, subscription.number, gap.first, gap.last)
            origin = self.sources[gap.source - 1].hub
        excuses = {(hub.id, origin.id), (origin.id, hub.id), (origin.id, hub.address)} & self._given_up.keys()
        excused = bool(excuses) or subscription.slow != "block"
        check(excused, "a sink that wants every event has lost some without need")

    def ended(self, hub: SimulatedHub, member: Member) -> None:
        """Cancel a subscription that is sent no more, as the hub does, and subscribe again."""
        subscription = self.subscription(hub, member)
        if subscription is None:
            return
        check(subscription.slow == "disconnect", "a sink that did not ask for it was cut off")
        self.faults["cut off"] += 1
        self.unsubscribe(subscription)
        id = ChannelId.parse(member.id)

        def again() -> None:
            if hub.alive and self.subscription(hub, member) is None:
                self.subscribe(hub, id, "disconnect", subscription.handle_ns)

        self.run_soon(self.random.randrange(3 * SECOND), again)

    def troubled(self, hub: SimulatedHub, troubled: Troubled) -> None:
        """Note that sinks have been told of trouble."""
        subscription, trouble = self.subscription(hub, troubled.member), troubled.trouble
        self.note(f"{hub.id}: hears of trouble at {trouble.hub} with {troubled.member.name}: {trouble.text}")
        if subscription is not None:
            self.derived.told.add((subscription.number, trouble.hub))

    def prepare(self, modulation: Modulation) -> Runner | Refused:
        """There are no modulators here."""
        return Refused("RefusedError", f"nobody can run {modulation.step.name}")

    def drained(self, hub: SimulatedHub, share: Share, first: int) -> None:
        """There are no modulators here."""

    def consulted(self, hub: SimulatedHub, consult: Consult) -> None:
        """Nobody reads a journal here."""
        refuse(hub, consult)

    def forgotten(self, hub: SimulatedHub, other: str) -> None:
        """Note that a hub has given another up, which excuses gaps between them."""
        self._given_up[hub.id, other] = self.clock.now_ns
        self.faults["given up"] += 1

    def unreached(self, hub: SimulatedHub, address: str) -> None:
        """Note that a hub could not connect to another, which excuses gaps between them."""
        self._given_up[hub.id, address] = self.clock.now_ns

    def strangers_since(self, one: SimulatedHub, other: SimulatedHub, since_ns: int) -> bool:
        """Whether one of two hubs has given the other up, or could not connect to it, since a certain moment."""
        pairs = {(one.id, other.id), (other.id, one.id), (one.id, other.address), (other.id, one.address)}
        return any(self._given_up.get(pair, -1) >= since_ns for pair in pairs)

    def note(self, text: str) -> None:
        """Write down what happened, and make it part of what two runs of a seed must have in common."""
        self.around.note(text)

    def finish_calls(self) -> None:
        """Check the calls that are answered: whoever did not fail has handled the event."""
        for made in self._waiting_calls[:]:
            hub = made.source.hub
            if made.call.waiting or not hub.alive:
                continue
            failed = " ".join(made.call.failures)
            for one in made.heard:
                if one.living and one.hub.address not in failed:
                    handled = made.ledger.has_handled(made.line, one.number, made.first)
                    check(handled, f"call {made.number} of {hub.id} was answered, but not handled by {one.number}")
            hub.core.forget_call(made.number)
            self._waiting_calls.remove(made)

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
        elif self._has_begun(source):
            waiting = any(made.source is source for made in self._waiting_calls)
            chance = self.random.random()
            if chance < CALL_SHARE and not waiting and not source.busy:
                self.call(source)
            elif chance > 1 - TOGETHER_SHARE and not source.busy and self.submit_together(self._companions(source)):
                pass
            else:
                self.submit(source, self.random.choice((1, 1, 2, 3)))
        self.finish_calls()
        self.run_soon(self.random.randrange(source.pause_ns // 2, source.pause_ns * 2), lambda: self._submit_on(source))

    def _has_begun(self, source: Source) -> bool:
        """Whether its program has it already: opening a source returns when the manager knows of it, and not before."""
        return "source" in source.member.joined or source.number in self.ledger.submitted

    def _is_held_up(self, source: Source) -> bool:
        """Whether a source has yet to begin because a hub wants to hear it that need not make progress itself."""
        outside = [hub for hub in self.hubs if hub.alive and not self.is_healthy(hub)]
        return not self._has_begun(source) and any(source.member.owes(hub.id) for hub in outside)

    def _companions(self, source: Source) -> list[Source]:
        """Return the sources of a hub that have begun to submit."""
        return [
            other
            for other in self.sources
            if other.living
            and not other.busy
            and other.hub is source.hub
            and (other is source or other.number in self.ledger.submitted)
        ]

    def _promise(self, source: Source) -> None:
        """Enter which subscriptions count for what a source submits from here on.

        Those count that both ends and the manager agree on. A source that the manager has given up is not part of the
        channel until it has joined again.
        """
        for one in self.subscriptions:
            elsewhere = one.living and one.member.id == source.member.id and one.hub is not source.hub
            if elsewhere and self.agreed(source, one):
                self.ledger.promise(source.number, one.number)

    def agreed(self, source: Source, one: Subscription) -> bool:
        """Whether both ends and the manager agree that a subscription is to hear a source."""
        if "source" not in source.member.joined or "sink" not in one.member.joined or one.root != source.member.id:
            return False
        for hub in self.hubs:
            if hub.alive and hub.address == source.member.manager:
                directory = hub.core.manager.directory
                try:
                    sink = directory.get(one.member.name).sinks.get(one.hub.address)
                except ChannelNotFoundError:
                    return False
                wish = (one.hub.id, one.member.subscription)
                entered = source.hub.address in directory.get(source.member.name).sources
                return entered and sink is not None and wish == (sink.hub, sink.subscription)
        return False

    def subscription(self, hub: SimulatedHub, member: Member) -> Subscription | None:
        """Return the subscription of a hub that is open."""
        for one in reversed(self.subscriptions):
            if one.hub is hub and one.member is member:
                return one if one.open else None
        return None

    def _progresses(self, source: Source, one: Subscription) -> bool:
        """Whether events of a source must reach a subscription in time."""
        if one.derived:
            return one.root == source.member.id and self.derived.progresses(source, one)
        return source.member.id == one.member.id and source.hub is not one.hub

    def _heard(self, source: Source, subscription: Subscription) -> int:
        if subscription.derived:
            return self.derived.book.heard(source, subscription)
        line = self.ledger.lines.get((source.number, subscription.number))
        return line.events if line is not None else 0

    def _register(self, hub: SimulatedHub, name: str, server: str) -> None:
        if server:
            id = str(ChannelId(hub.address, name))
            hub.do(lambda core: register(core, server, name, id, ignore))
