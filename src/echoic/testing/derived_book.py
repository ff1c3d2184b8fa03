"""What simulated sources derive: every event of a derived channel, under its own number, and who has got it.

A derived channel counts its events by itself: those that passed, or, while the sinks derive, all of them. So for each
source of each derived channel there is a `Stream`, the list of what was sent under its numbers, and the same book as
for other channels (`Ledger`) says that each of them arrives once, in order, or is reported missing. What is derived is
checked where it is made, against a `Formula` that says the same as the code:

    passing    exactly the events that pass with the parameters in force at that source, at that moment
    complete   nothing is left out for a subscription on which both ends and the manager agree
    raw        the sinks derive what they are sent as it is, and nothing else, and come to the same
"""

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels import ChannelId, Delivery, Derivation, Policy, Recipe, Refused, Share, Step, Workshop, build
from echoic.ecode import parameter_format
from echoic.testing.ledger import Ledger, check
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.channels import Concentrator
    from echoic.testing.simulated_ends import Source, Subscription
    from echoic.testing.simulated_hub import SimulatedHub

__all__ = ["PARAMETERS", "DerivedBook", "Formula", "Stream", "built", "numbers_in", "recipe_of"]

FILTER: Final = "(input.number / param.divisor) % param.modulus == param.remainder"
ROUTER: Final = "(input.number / param.divisor) % param.modulus - 1"
PARAMETERS: Final = parameter_format({"divisor": 1, "modulus": 1, "remainder": 0, "serial": 0})
BLOCK: Final = struct.Struct("<qqqq")
SAMPLE: Final = struct.Struct("<qq")
TRUSTING: Final = Policy(cost_max=2**62)


class Formula(msgspec.Struct, frozen=True):
    """A parameter block. No two that are asked for have the same serial number, which the code does not read."""

    divisor: int
    modulus: int
    remainder: int = 0
    serial: int = 0

    @classmethod
    def of(cls, block: bytes) -> "Formula":
        """Return what a block says."""
        return cls(*BLOCK.unpack(block))

    @property
    def block(self) -> bytes:
        """The block."""
        return BLOCK.pack(self.divisor, self.modulus, self.remainder, self.serial)

    def passing(self, recipe: Recipe, port: int, numbers: list[int]) -> list[int]:
        """Return which events pass; those that divide by zero do not."""
        if not self.modulus:
            return []
        wanted = port + 1 if recipe.ports else self.remainder
        return [number for number in numbers if number // self.divisor % self.modulus == wanted]


class Expected(msgspec.Struct, frozen=True):
    """What a derivation is given, and what passes."""

    given: list[int]
    passing: list[int]


class Stream:
    """The events of one source in one derived channel: which sample each number stands for, and whether it was raw."""

    def __init__(self, number: int, source: "Source", channel: str) -> None:
        self.number: Final = number
        self.source: Final = source
        self.channel: Final = channel
        self.samples: Final[list[int]] = []
        self.raw: Final[list[bool]] = []


class DerivedBook:
    """The streams of all derived channels, and the book of who has got what of them."""

    def __init__(self) -> None:
        self.ledger: Final = Ledger()
        self.streams: Final[list[Stream]] = []
        self.raw_events = self.passed = self.here = self.uncounted = 0
        self._lost: Final[dict[tuple[int, int], int]] = {}
        self._promised: Final[set[tuple[int, int]]] = set()
        self._streams: Final[dict[tuple[str, int], Stream]] = {}
        self._formulas: Final[dict[tuple[str, str], set[Formula]]] = {}
        self._last: Final[dict[tuple[int, int], int]] = {}
        self._deriving: Final[dict[tuple[str, str], Derivation]] = {}

    def know(self, manager: str, group: str, formula: Formula) -> None:
        """Note that somebody wants a derived channel to have parameters."""
        self._formulas.setdefault((manager, group), set()).add(formula)

    def formula(self, manager: str, step: Step) -> Formula:
        """Return the parameters of a step.

        Raises:
            AssertionError: Nobody has ever asked for them.
        """
        found = Formula.of(step.values)
        check(found in self._formulas[manager, step.group], "nobody has asked for {} - at {}", found, step.name)
        return found

    def expected(self, core: "Concentrator", one: "Subscription", numbers: list[int]) -> "Expected | None":
        """Return what a hub must derive for a subscription from events of a source there; None if it does not derive.

        A derivation that is suspended makes nothing.
        """
        member, given, idle = one.member, numbers, False
        for step in member.lineage:
            derivation = core.derivations.get(str(ChannelId(member.manager, step.group)))
            if derivation is None or not derivation.ready:
                return None
            known = self.formula(member.manager, derivation.step)
            given, numbers = numbers, known.passing(step.recipe, step.port, numbers)
            idle = idle or bool(derivation.suspended)
        return Expected([], []) if idle else Expected(given, numbers)

    def check_shares(self, source: "Source", one: "Subscription", shares: list[Share], expected: "Expected") -> None:
        """Check what was derived from events of a source for a subscription on which all agree.

        Raises:
            AssertionError: Something else should have been derived.
        """
        mine = [share for share in shares if share.member.id == one.member.id]
        derived = [numbers_in(share.batch) for share in mine if share.local]
        raw = [numbers_in(share.batch) for share in mine if share.remote and not share.local]
        sent = [numbers_in(share.batch) for share in mine if share.remote]
        passing = [expected.passing] if expected.passing else []
        what = (expected.given, one.member.name, expected.passing)
        check(derived in (passing, []), "of {} in {} {} pass, {} were derived", *what, derived)
        check(raw in ([expected.given], []), "of {} in {} {} pass, {} are sent as they are", *what, raw)
        if one.hub is source.hub:
            check(derived == passing, "of {} in {} {} pass, sinks here get {}", *what, derived)
        elif one.hub.id in _targets(source, one):
            check(sent == (raw or passing), "of {} in {} {} pass, {} are sent", *what, sent)
        elif expected.passing and not sent:
            self.lose(source, one, expected.passing[0])

    def promise(self, source: "Source", one: "Subscription") -> None:
        """Note that a subscription in another hub counts for what a source submits from here on."""
        number = _number_of(source, one)
        if number:
            stream = self.find([source], one, number)
            self.ledger.promise(stream.number, one.number)
            self._promised.add((source.number, one.number))

    def promised(self, source: "Source", one: "Subscription") -> bool:
        """Whether a subscription counts for what a source submits."""
        return (source.number, one.number) in self._promised

    def find(self, sources: "list[Source]", one: "Subscription", number: int) -> Stream:
        """Return the stream of a number, of which nothing may have been sent yet; what was counted is entered.

        Raises:
            AssertionError: It is no source's.
        """
        for source in sources:
            if (one.member.id, number) not in self._streams and _number_of(source, one) == number:
                self._stream(source, one.member.id, number)
        stream = self.stream(one.member.id, number)
        outlet = stream.source.hub.core.members[one.member.id]
        self.count(stream, outlet.sources.get(number, 0))
        return stream

    def sent(self, source: "Source", share: Share, first: int) -> Stream:
        """Enter what was sent to other hubs.

        Raises:
            AssertionError: It has not the numbers that are due, or goes back in the source's events.
        """
        stream = self._stream(source, share.member.id, share.source)
        if share.remote:
            self.count(stream, first)
            numbers, samples = numbers_in(share.batch), stream.samples
            check(first == len(samples), "{} goes on at {}, where {} is due", share.member.name, first, len(samples))
            check(not samples or samples[-1] < numbers[0], "{} goes back to {}", share.member.name, numbers[0])
            samples += numbers
            stream.raw.extend([not share.local] * len(numbers))
            self.ledger.submit(stream.number, len(numbers))
        return stream

    def count(self, stream: Stream, position: int) -> None:
        """Enter events that were counted and not derived, since nobody listened who could be reached."""
        skipped = position - len(stream.samples)
        if skipped > 0:
            stream.samples.extend([-1] * skipped)
            stream.raw.extend([False] * skipped)
            self.ledger.submit(stream.number, skipped)
            self.uncounted += skipped

    def lose(self, source: "Source", one: "Subscription", number: int) -> None:
        """Note that an event is not derived for a subscription whose hub cannot be reached; it must be told."""
        self._lost.setdefault((source.number, one.number), number)

    def lost(self, source: "Source", one: "Subscription") -> int:
        """Return the first event of a source that a subscription has lost in silence so far, -1 for none."""
        return self._lost.get((source.number, one.number), -1)

    def miss(self, stream: Stream, one: "Subscription", first: int, last: int) -> None:
        """Enter what was reported missing.

        Raises:
            AssertionError: It was delivered or reported before, or never submitted.
        """
        self.ledger.miss(stream.number, one.number, first, last)
        self._lost.pop((stream.source.number, one.number), None)

    def arrived(self, hub: "SimulatedHub", one: "Subscription", delivery: Delivery) -> Stream:
        """Enter what has arrived, and derive it if it comes as it was submitted.

        Raises:
            AssertionError: It is not what was sent, not due, or not derived as it must be.
        """
        stream = self.stream(delivery.member.id, delivery.source)
        numbers, end = numbers_in(delivery.batch), delivery.first + delivery.batch.count
        check(stream.samples[delivery.first : end] == numbers, "{} have arrived, which is not what was sent", numbers)
        self.ledger.deliver(stream.number, one.number, delivery.first, len(numbers))
        raw = stream.raw[delivery.first : end]
        check(raw == [delivery.raw] * len(raw), "events {} to {} are taken for raw wrongly", delivery.first, end - 1)
        if delivery.raw:
            self.raw_events += len(numbers)
            numbers = self._derived_there(hub, delivery, numbers)
        self.handled(stream.source, one, numbers)
        return stream

    def handled(self, source: "Source", one: "Subscription", numbers: list[int]) -> None:
        """Note what the sinks of a subscription have got.

        Raises:
            AssertionError: It goes back in the source's events.
        """
        self.passed += len(numbers)
        if numbers:
            key = (source.number, one.number)
            last = self._last.get(key, -1)
            check(
                last < numbers[0],
                "subscription {} gets {} of source {} after {}",
                one.number,
                numbers,
                source.number,
                last,
            )
            self._last[key] = numbers[-1]

    def heard(self, source: "Source", one: "Subscription") -> int:
        """Return the last event of a source that a subscription has got, -1 for none."""
        return self._last.get((source.number, one.number), -1)

    def stream(self, channel: str, source: int) -> Stream:
        """Return the stream of a source of a derived channel.

        Raises:
            AssertionError: Nothing was ever sent of it.
        """
        stream = self._streams.get((channel, source))
        if stream is None:
            raise AssertionError(f"nothing was ever sent of source {source} of {channel}")
        return stream

    def _stream(self, source: "Source", channel: str, number: int) -> Stream:
        stream = self._streams.get((channel, number))
        if stream is None:
            stream = self._streams[channel, number] = Stream(len(self.streams) + 1, source, channel)
            self.streams.append(stream)
        check(stream.source is source, "source {} of {} stands for two sources", number, channel)
        return stream

    def _derived_there(self, hub: "SimulatedHub", delivery: Delivery, numbers: list[int]) -> list[int]:
        """Derive what was placed with the sinks, as the hub of the sinks does."""
        member = delivery.member
        step = member.lineage[-1]
        derivation = self._deriving.get((hub.id, member.id))
        if derivation is None:
            derivation = Derivation(hub.address, step, None, TRUSTING)
            derivation.outlets[step.port] = member
            workshop = built(step, TRUSTING)
            check(isinstance(workshop, Workshop), "the code of {} does not compile at a sink", step.name)
            derivation.equip(workshop if isinstance(workshop, Workshop) else None)
            self._deriving[hub.id, member.id] = derivation
        derivation.tune(step)
        made = derivation.apply(derivation.instance(delivery.source), delivery.batch).get(step.port)
        passed = numbers_in(made) if made is not None else []
        expected = self.formula(member.manager, derivation.step).passing(step.recipe, step.port, numbers)
        check(passed == expected, "{} of {} pass, a sink of {} derives {}", expected, numbers, member.name, passed)
        return passed


def _number_of(source: "Source", one: "Subscription") -> int:
    """Return the number under which a source is known in the channel of a subscription, 0 if it has none yet."""
    core, number = source.hub.core, source.number
    for step in one.member.lineage:
        derivation = core.derivations.get(str(ChannelId(one.member.manager, step.group)))
        instance = derivation.instances.get(number) if derivation is not None else None
        if instance is None:
            return 0
        number = instance.source
    return number


def numbers_in(batch: Batch) -> list[int]:
    """Return the numbers of the samples in a batch, without a look at their loads."""
    records = batch.records
    return [SAMPLE.unpack_from(records, start)[1] for start in batch.bounds[:-1]]


def _targets(source: "Source", one: "Subscription") -> set[str]:
    """Return the hubs to which a source's hub sends the channel of a subscription."""
    outlet = source.hub.core.members.get(one.member.id)
    return set(outlet.fanout.targets) if outlet is not None else set()


@lru_cache(256)
def _built(step: Step, policy: Policy) -> Workshop | Refused | None:
    return build(Derivation("a simulated hub", step, None, policy))


def built(step: Step, policy: Policy) -> Workshop | Refused | None:
    """Compile a step's code; it is the same for all parameters, and is compiled once for all hubs of all runs."""
    return _built(msgspec.structs.replace(step, values=b"", version=0), policy)


def recipe_of(parent: str, *, router: bool, placement: str) -> Recipe:
    """Return a way to derive."""
    code, ports = (ROUTER, 2) if router else (FILTER, 0)
    return Recipe(parent, code, params=PARAMETERS.descriptor, ports=ports, placement=placement)  # type: ignore[arg-type] # one of three
