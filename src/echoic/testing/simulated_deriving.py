"""Derived channels in a simulated system: what programs do with them, and what must come true of it.

Hubs derive, subscribe, change parameters and move derivations; sources derive what they submit as the edge does: first
the code runs, while other things may happen, then the events and all that was derived are sent. Beside what is said of
events by `DerivedBook`:

    parameters   when a change was confirmed, no source's hub that the manager knew and could reach uses what it
                 replaced, and never the hub that has asked for it, unless it has taken leave, which ends its sources
                 first; in the end all of them, and all sinks that derive, use the same, which is the last that was
                 confirmed
    bounds       a hub keeps no derivation, no copy of one and no number of a source that nobody needs any more
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels import (
    ChannelId,
    Delivery,
    Derivation,
    Derive,
    DerivedAs,
    Describe,
    Described,
    Done,
    Gap,
    Message,
    Placement,
    Share,
    Slow,
    Step,
    Tune,
    derive,
)
from echoic.errors import ChannelNotFoundError
from echoic.testing.derived_book import DerivedBook, Formula, Stream, numbers_in, recipe_of
from echoic.testing.ledger import check
from echoic.testing.network import SECOND
from echoic.wire import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from echoic.testing.simulated_ends import Source, Subscription
    from echoic.testing.simulated_hub import SimulatedHub
    from echoic.testing.simulated_system import SimulatedSystem

__all__ = ["DerivedChannel", "Deriving", "Tuning"]

IN_TIME_NS: Final = 9 * SECOND


class DerivedChannel(msgspec.Struct, frozen=True):
    """A derived channel, as whoever made it knows it."""

    id: ChannelId
    lineage: tuple[Step, ...]

    @property
    def root(self) -> ChannelId:
        """The channel from which it is derived in the end."""
        return ChannelId(self.id.address, self.lineage[0].recipe.parent)


class Tuning:
    """A change of parameters that somebody has asked for."""

    def __init__(self, asker: "SimulatedHub", channel: DerivedChannel, formula: Formula, asked_ns: int) -> None:
        self.asker: Final = asker
        self.channel: Final = channel
        self.formula: Final = formula
        self.asked_ns: Final = asked_ns
        self.confirmed_ns = -1
        self.manager: SimulatedHub | None = None
        """Who managed the channel when it was asked for; one begun anew knows only those who have joined since."""
        self.origins: set[str] = set()
        """The hubs with sources that this one knew then."""
        self.holders: list[tuple[SimulatedHub, Derivation]] = []

    def outdates(self, other: "Tuning | None") -> bool:
        """Whether it was asked for when another one, or the first parameters, had long been in force."""
        return other is None or (other is not self and 0 <= other.confirmed_ns <= self.asked_ns)


class Deriving:
    """The derived channels of a system."""

    def __init__(self, system: "SimulatedSystem") -> None:
        self.book: Final = DerivedBook()
        self.channels: Final[dict[str, DerivedChannel]] = {}
        self.tunings: Final[list[Tuning]] = []
        self.told: Final[set[tuple[int, str]]] = set()
        """Which subscriptions were told of trouble, and where."""
        self.work_ns: Callable[[], int] = lambda: 0
        """How long a kernel takes."""
        self._system = system
        self._worked_ns = 0

    def derive(
        self, hub: "SimulatedHub", parent: ChannelId, formula: Formula, placement: Placement, **how: bool
    ) -> None:
        """Let a hub derive from a channel.

        Args:
            hub: Who derives.
            parent: From what.
            formula: The first parameters.
            placement: Where the code is to run.
            how: Whether it is a `router`, with two ports, and whether it may be shared (`share`).
        """
        recipe = recipe_of(parent.name, router=how.get("router", False), placement=placement)
        known = self.channels.get(str(parent))
        lineage = known.lineage if known is not None else ()

        def answered(reply: Message) -> None:
            for step in reply.steps if isinstance(reply, DerivedAs) else ():
                check(step.values == formula.block, "{} has other parameters than were asked for", step.name)
                self.book.know(parent.address, step.group, formula)
                channel = DerivedChannel(ChannelId(parent.address, step.name), (*lineage, step))
                self._system.note(f"{hub.id}: derives {step.name}, {placement}, {formula}")
                self.channels.setdefault(str(channel.id), channel)

        request = Derive(Step("", "", recipe, formula.block), how.get("share", True))
        hub.do(lambda core: core.ask(parent.address, request, answered))

    def subscribe(self, hub: "SimulatedHub", channel: DerivedChannel, slow: Slow = "block", handle_ns: int = 0) -> None:
        """Subscribe to a derived channel: as its manager describes it, or it is derived once more."""
        id, step = channel.id, channel.lineage[-1]

        def begin(lineage: tuple[Step, ...]) -> None:
            member = hub.core.members.get(str(id))
            if hub.alive and (member is None or member.sink is None):
                self._system.subscribe(hub, id, slow, handle_ns, lineage)

        def described(reply: Message) -> None:
            if isinstance(reply, Described):
                begin(reply.lineage)
            elif hub.alive:
                again = msgspec.structs.replace(step, name="")
                hub.do(lambda core: core.ask(id.address, Derive(again), derived))

        def derived(reply: Message) -> None:
            for one in reply.steps if isinstance(reply, DerivedAs) else ():
                if one.name == step.name:
                    begin((*channel.lineage[:-1], one))

        hub.do(lambda core: core.ask(id.address, Describe(id.name), described))

    def tune(self, hub: "SimulatedHub", channel: DerivedChannel, formula: Formula) -> Tuning:
        """Let a hub change the parameters of a derived channel."""
        system, manager, group = self._system, channel.id.address, channel.lineage[-1].group
        tuning = Tuning(hub, channel, formula, system.clock.now_ns)
        tuning.manager, tuning.origins = self._manager(channel), self._origins(channel)
        self.tunings.append(tuning)
        self.book.know(manager, group, formula)
        system.note(f"{hub.id}: tunes {channel.id.name} to {formula}")

        def answered(reply: Message) -> None:
            if isinstance(reply, Done):
                tuning.confirmed_ns = system.clock.now_ns
                system.note(f"{hub.id}: {channel.id.name} is tuned to {formula}")
                self._check_in_force(tuning)
            else:
                system.note(f"{hub.id}: {channel.id.name} is not tuned to {formula}: {reply}")

        hub.do(lambda core: core.ask(manager, Tune(channel.id.name, formula.block), answered))
        return tuning

    def derivations(self) -> list[tuple["SimulatedHub", Derivation]]:
        """Return what is at work anywhere."""
        hubs = [hub for hub in self._system.hubs if hub.alive]
        return [(hub, found) for hub in hubs for found in hub.core.derivations.values() if found.ready]

    def made_of(self, source: "Source", batch: Batch) -> list[Share]:
        """Derive from the next events of a source, and check that it is done rightly."""
        system, core, member = self._system, source.hub.core, source.member
        numbers = numbers_in(batch)
        agreed = [
            one
            for one in system.subscriptions
            if one.living and one.derived and system.agreed(source, one)
            if self.permitted(source, one)
        ]
        expected = {one: self.book.expected(core, one, numbers) for one in agreed}
        shares = derive(member, source.number, batch, self._clock) if member.derivations else []
        for one, found in expected.items():
            excused = (one.number, source.hub.address) in self.told
            check(
                found is not None or excused, "{} does not derive {} for {}", source.hub.id, one.member.name, one.number
            )
            if found is not None:
                self.book.check_shares(source, one, shares, found)
                if one.hub is not source.hub:
                    self.book.promise(source, one)
        self._note_lost(source, numbers, shares, agreed)
        return shares

    def _note_lost(
        self, source: "Source", numbers: list[int], shares: list[Share], agreed: list["Subscription"]
    ) -> None:
        """Note what is not derived for subscriptions that have heard the source, and were given up since."""
        made = {share.member.id for share in shares}
        for one in self._system.subscriptions:
            known = one.living and one.derived and one not in agreed and one.hub is not source.hub
            if known and one.member.id not in made and self.book.promised(source, one):
                found = self.book.expected(source.hub.core, one, numbers)
                if found is not None and found.passing:
                    self.book.lose(source, one, found.passing[0])

    def sent(self, source: "Source", share: Share, first: int) -> Stream:
        """Enter what was derived and is sent, and hand it to the sinks in the same hub."""
        stream = self.book.sent(source, share, first)
        if share.local and share.member.sink is not None:
            one = self._system.subscription(source.hub, share.member)
            if one is not None:
                self.book.handled(source, one, numbers_in(share.batch))
                self.book.here += share.batch.count
        return stream

    def arrived(self, hub: "SimulatedHub", one: "Subscription", delivery: Delivery) -> None:
        """Enter what has arrived."""
        self.book.arrived(hub, one, delivery)

    def missed(self, one: "Subscription", gap: Gap) -> "Source":
        """Enter what was reported missing; return of which source."""
        stream = self.book.find(self._system.sources, one, gap.source)
        self.book.miss(stream, one, gap.first, gap.last)
        return stream.source

    def permitted(self, source: "Source", one: "Subscription") -> bool:
        """Whether a source's hub runs what a subscription needs, or need not."""
        lineage = one.member.lineage
        core, told = source.hub.core, (one.number, source.hub.address) in self.told
        outlet = core.members.get(one.member.id)
        if (outlet is None or outlet.origin is None) and (told or core.load > core.policy.load_limit):
            return False  # it was refused there, and those who listen know, or will
        return source.hub.core.policy.derive or (len(lineage) == 1 and lineage[0].recipe.placement != "source")

    def is_sound(self, channel: DerivedChannel) -> bool:
        """Whether nobody who derives a channel is suspended, or divides by zero."""
        key = str(ChannelId(channel.id.address, channel.lineage[-1].group))
        found = [hub.core.derivations[key] for hub in self._system.hubs if hub.alive and key in hub.core.derivations]
        return all(not one.suspended and Formula.of(one.step.values).modulus for one in found)

    def progresses(self, source: "Source", one: "Subscription") -> bool:
        """Whether some events of a source must pass for a subscription, unless its hub fails to derive at all."""
        manager = one.member.manager
        for step in one.member.lineage:
            derivation = source.hub.core.derivations.get(str(ChannelId(manager, step.group)))
            if derivation is not None and (derivation.suspended or not Formula.of(derivation.step.values).modulus):
                return False
        return self.permitted(source, one) and (not source.load or len(one.member.lineage) == 1)

    def check_bounds(self) -> None:
        """Check that no hub has more derivations, channels or copies than there can be use for.

        Raises:
            AssertionError: One has.
        """
        groups = {(channel.id.address, channel.lineage[-1].group) for channel in self.channels.values()}
        busy = {source.hub for source in self._system.sources if source.busy}
        for hub in self._system.hubs:
            core = hub.core
            if not hub.alive or hub in busy:
                continue
            check(len(core.derivations) <= len(groups), "{} derivations at {}", len(core.derivations), hub.id)
            for derivation in core.derivations.values():
                parent = derivation.parent
                sources = parent.sources if parent is not None else {}
                name = derivation.step.name
                check(bool(sources) or parent is None or parent.origin is not None, "{} keeps {} in vain", hub.id, name)
                idle = derivation.instances.keys() - sources.keys()
                check(not idle, "{} keeps copies of {} for {}, which have ended", hub.id, derivation.step.name, idle)

    def check_settled(self) -> None:
        """Check that everything promised to the living has come, and that all use the same parameters.

        Raises:
            AssertionError: Something has not, or somebody does not.
        """
        for (number, subscription), line in self.book.ledger.lines.items():
            stream, one = self.book.streams[number - 1], self._system.subscriptions[subscription - 1]
            if stream.source.living and one.living:
                check(
                    self.book.ledger.is_settled(number, subscription),
                    f"source {stream.source.number} has sent {len(stream.samples)} events of {stream.channel}, "
                    f"subscription {subscription} is promised those from {line.promised} on and waits for {line.next}",
                )
                lost = self.book.lost(stream.source, one)
                check(
                    lost < 0 or not self._system.agreed(stream.source, one),
                    "event {} of source {} was lost in silence for subscription {}",
                    lost,
                    stream.source.number,
                    one.number,
                )
        self.check_bounds()
        for hub, derivation in self.derivations():
            check(not derivation.waiting, "somebody waits for {} at {}", derivation.step.name, hub.id)
            for outlet in derivation.outlets.values():
                self._check_targets(hub, outlet.id)
        for channel in self.channels.values():
            self._check_agreement(channel)

    def _check_targets(self, hub: "SimulatedHub", channel: str) -> None:
        for target in hub.core.members[channel].fanout.targets.values():
            wanted = self._system.wants(target.hub, channel, target.sink.subscription)
            check(wanted, "{} sends {} to {}, which does not want it", hub.id, channel, target.hub)

    def _check_agreement(self, channel: DerivedChannel) -> None:
        """Check that all who derive a channel use the last parameters that were confirmed."""
        step = self._booked(channel)
        if step is None:
            return
        key = str(ChannelId(channel.id.address, step.group))
        for hub in self._system.hubs:
            derivation = hub.core.derivations.get(key) if hub.alive else None
            if derivation is not None:
                used = (derivation.step.version, Formula.of(derivation.step.values))
                booked = (step.version, Formula.of(step.values))
                check(
                    used == booked, "{} derives {} with {}, the manager has {}", hub.id, channel.id.name, used, booked
                )
        for one in self._system.subscriptions:
            if one.living and one.member.id == str(channel.id) and step.recipe.placement != "source":
                used = (one.member.lineage[-1].version, Formula.of(one.member.lineage[-1].values))
                check(
                    used == (step.version, Formula.of(step.values)), "{} hears {} with {}", one.hub.id, step.name, used
                )
        confirmed = [one for one in self._tunings(step.group) if one.confirmed_ns >= 0]
        held = (
            [hub.core.derivations.get(key) is one for hub, one in confirmed[-1].holders if hub.alive]
            if confirmed
            else []
        )
        if any(held):
            current = self._tuning(Formula.of(step.values))
            check(
                not confirmed[-1].outdates(current),
                "{} was confirmed for {}, the manager has {}",
                confirmed[-1].formula,
                channel.id.name,
                step,
            )

    def _check_in_force(self, tuning: Tuning) -> None:
        """Check that who has asked, and all whom the manager could reach, use what was confirmed or something later."""
        system, channel = self._system, tuning.channel
        manager, step, origins = self._manager(channel), self._booked(channel), self._origins(channel)
        if manager is None or step is None:
            return
        known = tuning.origins & origins if manager is tuning.manager else set[str]()
        in_time = system.clock.now_ns - tuning.asked_ns < IN_TIME_NS
        for hub in system.hubs:
            derivation = hub.core.derivations.get(str(ChannelId(channel.id.address, step.group)))
            if not hub.alive or derivation is None or not derivation.ready:
                continue
            current = self._tuning(Formula.of(derivation.step.values))
            if not tuning.outdates(current):
                tuning.holders.append((hub, derivation))
                continue
            told = in_time and hub.address in known and not system.strangers_since(manager, hub, tuning.asked_ns)
            asker = hub is tuning.asker and not hub.core.leaving
            if told or asker:
                used = Formula.of(derivation.step.values)
                check(False, "{} was confirmed, {} derives {} with {}", tuning.formula, hub.id, channel.id.name, used)

    def _manager(self, channel: DerivedChannel) -> "SimulatedHub | None":
        found = (hub for hub in self._system.hubs if hub.alive and hub.address == channel.id.address)
        return next(found, None)

    def _booked(self, channel: DerivedChannel) -> Step | None:
        """Return a derived channel as its manager has it in its book."""
        manager = self._manager(channel)
        if manager is not None:
            with suppress(ChannelNotFoundError):
                return manager.core.manager.directory.get(channel.id.name).step
        return None

    def _origins(self, channel: DerivedChannel) -> set[str]:
        manager = self._manager(channel)
        if manager is None or self._booked(channel) is None:
            return set()
        return manager.core.manager.directory.origins(channel.id.name)

    def _tunings(self, group: str) -> list[Tuning]:
        found = [one for one in self.tunings if one.channel.lineage[-1].group == group]
        return sorted(found, key=lambda one: one.asked_ns)

    def _tuning(self, formula: Formula) -> Tuning | None:
        return next((one for one in self.tunings if one.formula == formula), None)

    def _clock(self) -> int:
        self._worked_ns += self.work_ns()
        return self._worked_ns
