"""Sinks that go over between derived channels of a simulated system, and what they must have seen in the end.

A *handle* is what `EagerSink` is at the edge: a sink with a modulator, which is reset to other modulators while sources
publish. All modulators let everything pass, or hold the last events back for a while, so what a handle has seen of a
source is 0, 1, 2, ... whatever it was reset to and however often:

    order    nothing comes twice and nothing overtakes, whatever fails
    whole    nothing is passed over between hubs that have not given each other up, nor the manager one of them, since
             the last event that was seen was submitted; where they did, it may be passed over in silence by a handle
             that leaves the channel before its hub is sent to again, and so may what a source submits before the
             manager, which had given its hub up, knows of it again
    alive    when all is healed, everything that sources submit is seen again
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from echoic.channels import (
    ChannelId,
    Concentrator,
    Consult,
    Delivery,
    Derive,
    DerivedAs,
    Joined,
    Member,
    Message,
    Missed,
    Modulation,
    Policy,
    Refused,
    Runner,
    Share,
    Step,
    Troubled,
    congested,
    derive,
    forget_source,
    note_room,
    report_trouble,
    send_share,
    stir,
)
from echoic.errors import RefusedError
from echoic.formats import Format
from echoic.testing.derived_book import Formula, numbers_in, recipe_of
from echoic.testing.holding import HoldingRunner, holding_recipe
from echoic.testing.ledger import check
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.simulated_ends import Sample, Source
from echoic.testing.simulated_hub import SimulatedHub, refuse
from echoic.testing.surroundings import Surroundings
from echoic.testing.turning_ends import Ends, Handle, Stage
from echoic.wire import Batch

__all__ = ["TurningSystem"]


RACE_NS: Final = 10 * MILLISECOND
STIR_NS: Final = 20 * MILLISECOND
WAKE_NS: Final = 2 * MILLISECOND
HELD_MAX: Final = 3  # so many modulators hold events back
CHANNEL: Final = "samples"
CALL_SHARE: Final = 0.05


class Arrival(NamedTuple):
    """Events of a source for sinks of the same hub."""

    member: Member
    source: int
    first: int
    batch: Batch


class TurningSystem:
    """Hubs with sources and handles of one channel."""

    def __init__(self, seed: int, *, freezes: bool = False) -> None:
        around = self.around = Surroundings(seed)
        self.seed: Final = seed
        self.random: Final = around.random
        self.clock: Final = around.clock
        self.network: Final = around.network
        self.hubs: Final[list[SimulatedHub]] = []
        self.sources: Final[list[Source]] = []
        self.handles: Final[list[Handle]] = []
        self.ends: Final[dict[tuple[str, str], Ends]] = {}
        self._waiting: Final[dict[int, deque[Arrival]]] = {}
        self.submitted: Final[Counter[int]] = Counter()
        self._submitted_ns: Final[dict[int, list[int]]] = {}
        self.faults: Final = around.faults
        self.quiet = False
        self.race_share = 0.3
        self.slowness = 1
        self.delivered_events = 0
        self.missed_events = 0
        self._freezes = freezes
        self._missed_ns: Final[dict[str, int]] = {}
        self._given_up: Final[dict[tuple[str, str], int]] = {}
        self._adrift_ns: Final[dict[int, int]] = {}
        """By source, when it last submitted while the manager, which had given its hub up, did not know of it."""

    def add_hub(self, address: str = "", policy: Policy | None = None) -> SimulatedHub:
        """Start a hub; the first one manages the channel."""
        number = len(self.hubs)
        id = f"{self.random.getrandbits(32):08x}-{number}"
        hub = SimulatedHub(id, address or f"hub{number}:7401", self.network, self, freezes=self._freezes, policy=policy)
        self.hubs.append(hub)
        if number == 0:
            hub.core.manager.directory.create(CHANNEL, Format.of(Sample))
        self.note(f"{id}: starts at {hub.address}")
        return hub

    @property
    def manager(self) -> SimulatedHub:
        """The hub that manages the channel."""
        return self.hubs[0]

    @property
    def id(self) -> ChannelId:
        """The channel."""
        return ChannelId(self.manager.address, CHANNEL)

    def publish(self, hub: SimulatedHub, pause_ns: int = 5 * MILLISECOND) -> Source:
        """Open a source, which submits from when the manager knows of it."""
        member = hub.core.open(self.id, Format.of(Sample))
        source = Source(len(self.sources) + 1, hub, member, pause_ns, b"")
        self.sources.append(source)
        member.sources[source.number] = 0
        self.note(f"{hub.id}: opens source {source.number}")

        def joined(reply: Message) -> None:
            if isinstance(reply, Joined) and hub.alive:
                self.note(f"{hub.id}: source {source.number} has joined")
                for handle in self.handles:
                    if self._is_due(handle, hub):
                        handle.next.setdefault(source.number, 0)
                self._submit_on(source)
            elif hub.alive and source.open:
                self.clock.after(SECOND, ask)

        def ask() -> None:
            if hub.alive and source.open:
                hub.do(lambda core: core.join(member, "source", self._soon(hub, joined)))

        ask()
        self.clock.after(self.random.randrange(STIR_NS), lambda: self._stir_on(source))
        return source

    @staticmethod
    def _is_due(handle: Handle, hub: SimulatedHub) -> bool:
        """Whether a handle must hear a source of a hub from its first event on; not if that refuses its modulator."""
        plain = handle.stage is not None and not handle.stage.modulator and not handle.busy
        return handle.living and (hub.core.policy.derive or plain)

    def unpublish(self, source: Source) -> None:
        """Close a source when nothing is being derived of it, once modulators have sent what they hold back of it."""
        source.open = False
        member, number, hub = source.member, source.number, source.hub
        if source.busy or hub.frozen or hub.core.quiet.paused(member) or congested(hub.core, member):
            if hub.alive:
                self.clock.after(MILLISECOND, lambda: self.unpublish(source))
            return
        self.note(f"{hub.id}: closes source {number}")

        def close(core: Concentrator) -> None:
            if len(member.sources) == 1:
                core.leave(member, "source")
            member.end(number)
            forget_source(core, member, number)

        if hub.alive:
            self._hand_over_waiting(source)
            self._stir(source, last=True)
            hub.do(close)

    def subscribe(self, hub: SimulatedHub, modulator: int = 0) -> Handle:
        """Subscribe with a modulator; the handle is living when all sources send to it."""
        handle = Handle(len(self.handles) + 1, hub)
        self.handles.append(handle)
        handle.busy = True

        def opened(member: Member | None) -> None:
            if member is None:
                handle.busy = False
                return
            stage = Stage(handle, modulator, member)
            self._ends(hub, member).add(stage, None, self._soon(hub, lambda reply: joined(stage, reply)))

        def joined(stage: Stage, reply: Message) -> None:
            handle.busy = False
            if isinstance(reply, Joined):
                handle.stage = stage
                self.note(f"{hub.id}: {handle.name} is subscribed with {modulator}")
            else:
                self._ends_of(stage).remove(stage)

        self._open(hub, modulator, opened)
        return handle

    def close(self, handle: Handle) -> None:
        """Cancel a subscription that is not being reset."""
        handle.open = False
        self.note(f"{handle.hub.id}: {handle.name} is closed")
        if handle.stage is not None:
            self._ends_of(handle.stage).remove(handle.stage)

    def reset(self, handle: Handle, modulator: int) -> None:
        """Put another modulator in the place of the one at work, as `EagerSink.reset` does."""
        hub, former = handle.hub, handle.stage
        if handle.busy or former is None or not handle.living:
            return
        handle.busy = True
        self.note(f"{hub.id}: resets {handle.name} from {former.modulator} to {modulator}")

        def opened(member: Member | None) -> None:
            if member is None:
                handle.busy = False
                return
            stage = Stage(handle, modulator, member)
            if member is former.member:
                self._ends(hub, member).replace(former, stage)
                handle.busy, handle.stage = False, stage
            else:
                self._go_over(former, stage)

        self._open(hub, modulator, opened)

    def _go_over(self, former: Stage, stage: Stage) -> None:
        handle, hub = stage.handle, stage.handle.hub

        def joined(reply: Message) -> None:
            if isinstance(reply, Joined):
                self.note(f"{hub.id}: {stage.name} is there instead of {former.name}")
                self._ends_of(stage).settle(stage, arrived=True)
                handle.resets += 1
                handle.busy, handle.stage = False, stage
                self._when_handed_over(hub, lambda: self._ends_of(former).remove(former))
            else:
                self.note(f"{hub.id}: {stage.name} cannot take the place of {former.name}: {reply}")
                handle.refusals += 1
                self._take_back(former, stage)

        self._ends_of(former).settle(former, arrived=False)
        self._ends_of(stage).add(stage, former, self._soon(hub, joined))

    def _take_back(self, former: Stage, stage: Stage) -> None:
        """Return to the former channel where sources have turned already; if that fails, try again."""
        handle, hub = stage.handle, stage.handle.hub

        def taken_back(reply: Message) -> None:
            handle.stranded = isinstance(reply, Refused) and reply.kind == RefusedError.__name__
            if isinstance(reply, Joined):
                self.note(f"{hub.id}: {former.name} is back instead of {stage.name}")
                self._ends_of(former).settle(former, arrived=True)
                self._when_handed_over(hub, lambda: self._ends_of(stage).remove(stage))
                handle.busy = False
            else:
                self.note(f"{hub.id}: {former.name} is not back yet: {reply}")
                self.clock.after(SECOND, lambda: self._take_back(former, stage))

        if hub.alive:
            self._ends_of(former).join(former, stage, self._soon(hub, taken_back))

    def _open(self, hub: SimulatedHub, modulator: int, then: Callable[[Member | None], None]) -> None:
        """Open the channel of a modulator in a hub."""
        if not modulator:
            then(hub.core.open(self.id, None))
            return
        if modulator <= HELD_MAX:
            recipe, values = holding_recipe(CHANNEL, modulator), b""
        else:
            recipe = recipe_of(CHANNEL, router=False, placement="source")
            values = Formula(1, 1, 0, modulator).block

        def answered(reply: Message) -> None:
            if isinstance(reply, DerivedAs) and hub.alive:
                member = hub.core.open(ChannelId(self.manager.address, reply.steps[0].name), None)
                member.lineage = member.lineage or reply.steps
                then(member)
            else:
                self.note(f"{hub.id}: {modulator} cannot be derived: {reply}")
                then(None)

        hub.do(
            lambda core: core.ask(self.manager.address, Derive(Step("", "", recipe, values)), self._soon(hub, answered))
        )

    def _soon(self, hub: SimulatedHub, then: Callable[[Message], None]) -> Callable[[Message], None]:
        """Return what takes an answer and lets the thread that waits for it go on, a moment later."""

        def go_on(reply: Message) -> None:
            if hub.frozen:
                self.clock.after(hub.frozen_until_ns - self.clock.now_ns, lambda: go_on(reply))
            elif hub.alive:
                then(reply)

        return lambda reply: self.clock.after(self.random.randrange(WAKE_NS), lambda: go_on(reply))

    def _ends(self, hub: SimulatedHub, member: Member) -> Ends:
        key = (hub.id, member.id)
        if key not in self.ends:
            self.ends[key] = Ends(hub, member)
        return self.ends[key]

    def _ends_of(self, stage: Stage) -> Ends:
        return self._ends(stage.handle.hub, stage.member)

    def _when_handed_over(self, hub: SimulatedHub, act: Callable[[], None]) -> None:
        """Act when sources of a hub have handed over what they have submitted so far."""
        sources = [source for source in self.sources if source.hub is hub and source.living]

        def wait() -> None:
            while sources and not sources[-1].busy:
                self._hand_over_waiting(sources.pop())
            if sources:
                self.clock.after(MILLISECOND, wait)
            else:
                act()

        if sources:
            self.clock.after(self.random.randrange(WAKE_NS), wait)
        else:
            act()

    def _stir_on(self, source: Source) -> None:
        """Let modulators send what they hold back, again and again."""
        if not source.living:
            return
        if not (source.busy or source.hub.frozen or source.hub.core.quiet.paused(source.member)):
            self._stir(source)
        self.clock.after(STIR_NS * self.slowness, lambda: self._stir_on(source))

    def _stir(self, source: Source, *, last: bool = False) -> None:
        core, member, now = source.hub.core, source.member, self.clock.now_ns
        core.quiet.begin(member)
        note_room(core, member)

        def further(share: Share) -> list[Share]:
            return derive(share.member, share.source, share.batch, lambda: now)

        self._send(source, None, stir(member, source.number, now, further, last=last))

    def _submit_on(self, source: Source) -> None:
        """Submit, wait, submit again, for as long as the source is open."""
        if not source.living:
            return
        if not self.quiet and not source.hub.frozen:
            self.submit(source, self.random.choice((1, 1, 1, 2, 5)))
        pause_ns = self.random.randrange(source.pause_ns // 2, source.pause_ns * 2) * self.slowness
        self.clock.after(pause_ns, lambda: self._submit_on(source))

    def submit(self, source: Source, count: int = 1) -> bool:
        """Submit events as the edge does, if nobody is in the way: begin, derive, send, end."""
        core, member = source.hub.core, source.member
        if source.busy or core.quiet.paused(member) or congested(core, member):
            return False
        self._hand_over_waiting(source)
        core.quiet.begin(member)
        note_room(core, member)
        first, now = self.submitted[source.number], self.clock.now_ns
        if "source" not in member.joined and self._parted_since(source.hub, self.manager, 0):
            self._adrift_ns[source.number] = now
        self.submitted[source.number] += count
        self._submitted_ns.setdefault(source.number, []).extend([now] * count)
        batch = Batch.of([Sample(source.number, first + n, b"") for n in range(count)], Sample)
        shares = derive(member, source.number, batch, lambda: now)
        if count == 1 and self.random.random() < CALL_SHARE:
            self._call(source, batch, shares)
        elif self.random.random() < self.race_share:
            source.busy = True
            self.clock.after(self.random.randrange(RACE_NS), lambda: self._send(source, batch, shares))
        else:
            self._send(source, batch, shares)
        return True

    def _call(self, source: Source, batch: Batch, shares: list[Share]) -> None:
        def call(core: Concentrator) -> None:
            first = source.member.position(source.number)
            core.forget_call(core.call(source.member, source.number, batch)[0])
            self._hand_over(source, Arrival(source.member, source.number, first, batch))
            for share in shares:
                at = send_share(core, msgspec.structs.replace(share, remote=False))
                if share.remote:
                    core.forget_call(core.call(share.member, share.source, share.batch)[0])
                self._hand_over_share(source, share, at)
            core.quiet.end(source.member)

        source.hub.do(call)

    def _send(self, source: Source, batch: Batch | None, shares: list[Share]) -> None:
        source.busy = False
        if not source.hub.alive:
            return
        if source.hub.frozen:
            source.busy = True
            delay_ns = source.hub.frozen_until_ns - self.clock.now_ns
            self.clock.after(delay_ns, lambda: self._send(source, batch, shares))
            return

        def send(core: Concentrator) -> None:
            if batch is not None:
                first = source.member.position(source.number)
                core.submit(source.member, source.number, batch)
                self._hand_over(source, Arrival(source.member, source.number, first, batch))
            for share in shares:
                self._hand_over_share(source, share, send_share(core, share))
            report_trouble(core, source.member)
            core.quiet.end(source.member)

        source.hub.do(send)

    def _hand_over_share(self, source: Source, share: Share, first: int) -> None:
        if share.local and share.member.heard_here:
            self._hand_over(source, Arrival(share.member, share.source, first, share.batch))

    def _hand_over(self, source: Source, arrival: Arrival) -> None:
        """Let handles in the same hub have events, at once or after a moment in which much may happen."""
        if not self._ends(source.hub, arrival.member).stages:
            return
        self._waiting.setdefault(source.number, deque()).append(arrival)
        if self.random.random() < self.race_share:
            self.clock.after(self.random.randrange(RACE_NS), lambda: self._hand_over_waiting(source))
        else:
            self._hand_over_waiting(source)

    def _hand_over_waiting(self, source: Source) -> None:
        waiting = self._waiting.get(source.number)
        while waiting and source.hub.alive:
            arrival = waiting.popleft()
            self._arrive(source.hub, source.hub.id, arrival)

    def _arrive(self, hub: SimulatedHub, origin: str, arrival: Arrival) -> None:
        numbers, number = numbers_in(arrival.batch), _source_in(arrival.batch)
        sender = next((one for one in self.hubs if one.id == origin), None)
        for stage in self._ends(hub, arrival.member).taking(origin, arrival.source, arrival.first):
            self._see(stage.handle, sender, number, numbers)

    def _see(self, handle: Handle, sender: SimulatedHub | None, source: int, numbers: list[int]) -> None:
        """Check that events come where they are due.

        Raises:
            AssertionError: They come twice, overtake others, or were passed over in silence.
        """
        what = (handle.name, numbers, source)
        for number in numbers:
            due = handle.next.get(source, number)
            check(number >= due, "{} sees {} of source {}, where {} is due: twice or in disorder", *what, due)
            if number > due:
                check(
                    sender is not None and self._excused(handle, sender, source, due),
                    "{} sees {} of source {}, where {} is due, and nobody has told of a gap",
                    *what,
                    due,
                )
            handle.next[source] = number + 1
        self.delivered_events += len(numbers)

    def _excused(self, handle: Handle, sender: SimulatedHub, source: int, due: int) -> bool:
        """Whether events may be missing after the last that a handle has seen.

        Since that was submitted, hubs must have given each other up, or have told of a gap because they did before.
        """
        since_ns = self._submitted_ns[source][due - 1] if due else 0
        told = self._missed_ns.get(handle.hub.id, -1) >= since_ns and self.strangers_since(handle.hub, sender, 0)
        adrift = self._adrift_ns.get(source, -1) >= since_ns
        return told or adrift or self.strangers_since(handle.hub, sender, since_ns)

    def strangers_since(self, one: SimulatedHub, other: SimulatedHub, since_ns: int) -> bool:
        """Whether one of two hubs, or the manager, has given another up or could not connect to it, since a moment."""
        return self._parted_since(one, other, since_ns) or any(
            self._parted_since(hub, self.manager, since_ns) for hub in (one, other)
        )

    def _parted_since(self, one: SimulatedHub, other: SimulatedHub, since_ns: int) -> bool:
        """Whether one of two hubs has given the other up or could not connect to it, since a moment."""
        names = sorted({name for hub in (one, other) for name in (hub.id, hub.address)})
        return any(self._given_up.get((here, there), -1) >= since_ns for here in names for there in names)

    def run(self, duration_ns: int) -> None:
        """Let time pass."""
        self.clock.run_until(self.clock.now_ns + duration_ns)

    def check_settled(self) -> None:
        """Check that every living handle has seen everything of every living source, and that nothing is left behind.

        Raises:
            AssertionError: One has not, or something is.
        """
        for handle in self.handles:
            if not handle.living:
                continue
            check(not handle.busy or handle.stranded, "{} waits for its reset for ever", handle.name)
            for source in self.sources:
                if source.living and source.number in handle.next:
                    due, count = handle.next[source.number], self.submitted[source.number]
                    held = handle.stage.modulator if handle.stage is not None else 0
                    held = held if held <= HELD_MAX else 0
                    missing = count - due
                    check(
                        0 <= missing <= held,
                        "source {} at {} has submitted {} events, {} at {} waits for {} with modulator {}",
                        source.number,
                        source.hub.id,
                        count,
                        handle.name,
                        handle.hub.id,
                        due,
                        held,
                    )
        for hub in self.hubs:
            if hub.alive:
                self._check_left(hub)

    def _check_left(self, hub: SimulatedHub) -> None:
        for member in hub.core.members.values():
            asked, expecting = sum(member.asking.values()), member.expecting
            check(expecting == asked, "{} expects {} in {}, of {}", hub.id, expecting, member.name, asked)
            for target in member.fanout.targets.values() if member.sources else ():
                wanted = any(one.id == target.hub and self._ends(one, member).stages for one in self.hubs if one.alive)
                check(wanted, "{} sends {} to {}, which does not want it", hub.id, member.name, target.hub)

    def explain(self, problem: object) -> str:
        """Return a problem with the seed and the last things that happened."""
        return self.around.explain(problem)

    def delivered(self, hub: SimulatedHub, delivery: Delivery) -> None:
        """Let handles have events of another hub."""
        self._arrive(hub, delivery.hub, Arrival(delivery.member, delivery.source, delivery.first, delivery.batch))
        self.around.count(delivery.first)
        self.clock.after(self.random.randrange(MILLISECOND), lambda: hub.finish(delivery))

    def prepare(self, modulation: Modulation) -> Runner | Refused:
        """Return what runs a modulator: all of them hold events back."""
        return HoldingRunner.of(modulation.step)

    def drained(self, hub: SimulatedHub, share: Share, first: int) -> None:
        """Let handles in the same hub have what a modulator had held back."""
        source = self.sources[_source_in(share.batch) - 1]
        check(source.hub is hub, "{} drains a source of {}", hub.id, source.hub.id)
        self._hand_over_share(source, share, first)

    def consulted(self, hub: SimulatedHub, consult: Consult) -> None:
        """Nobody reads a journal here."""
        refuse(hub, consult)

    def missed(self, hub: SimulatedHub, missed: Missed) -> None:
        """Note that handles were told of a gap, which only hubs that have given each other up may have."""
        gap = missed.gap
        self.note(f"{hub.id}: misses {gap.first} to {gap.last} in {missed.member.name}: {gap.reason}")
        self.missed_events += gap.last - gap.first + 1
        self._missed_ns[hub.id] = self.clock.now_ns

    def ended(self, hub: SimulatedHub, member: Member) -> None:
        """No handle asks to be cut off."""
        check(False, "{} was cut off from {}", hub.id, member.name)

    def troubled(self, hub: SimulatedHub, troubled: Troubled) -> None:
        """Note that handles have been told of trouble, after which they may miss events of a hub."""
        self.note(f"{hub.id}: hears of trouble at {troubled.trouble.hub}: {troubled.trouble.text}")

    def forgotten(self, hub: SimulatedHub, other: str) -> None:
        """Note that a hub has given another up, which excuses gaps between them."""
        self._given_up[hub.id, other] = self.clock.now_ns
        self.faults["given up"] += 1

    def unreached(self, hub: SimulatedHub, address: str) -> None:
        """Note that a hub could not connect to another, which excuses gaps between them."""
        self._given_up[hub.id, address] = self.clock.now_ns

    def note(self, text: str) -> None:
        """Write down what happened, and make it part of what two runs of a seed must have in common."""
        self.around.note(text)

    @property
    def trace(self) -> int:
        """What two runs of a seed have in common."""
        return self.around.trace


def _source_in(batch: Batch) -> int:
    """Return whose samples are in a batch."""
    return int.from_bytes(bytes(batch.records[:8]), "little")
