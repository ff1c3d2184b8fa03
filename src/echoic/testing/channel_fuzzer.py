"""Hostile hubs: a neighbour that greets as it should, and then says what no hub would.

The victim is a whole concentrator with a channel of another hub bound, a channel of its own that it sends to the
neighbour, open requests and calls. It is fed frames of every kind and messages of every type, damaged below the
checksum, while it goes on with its work: it submits, calls, answers, lets time pass. Messages are also twisted: whole,
but with a number, a name or an address in them that makes no sense. A frame is refused with an error of the declared
tree or it is taken; everything else is a finding.

The neighbour also derives: a derivation of the victim's channel is at work for it, and what it sends itself is derived
by the victim when it says so. Its recipes, parameters and static variables are as hostile as the rest.

So is memory that grows. The neighbour tells now and then what it has got, as any hub does that wants to be sent more;
with that, everything the victim keeps has a limit, and when it has given the neighbour up, nothing of it is left.
"""

import struct
from collections.abc import Iterator
from random import Random
from typing import Final

import msgspec

from echoic.channels import (
    ChannelCounts,
    ChannelEntry,
    ChannelId,
    Compile,
    Concentrator,
    Delivery,
    Derivation,
    Dial,
    Greeting,
    Member,
    Message,
    Policy,
    Recipe,
    Refused,
    Secondary,
    SinkHub,
    Steering,
    Step,
    Workshop,
    build,
    compiled,
    derive,
    ignore,
    messages,
    report_trouble,
    send_share,
)
from echoic.channels.greeting import count_frame
from echoic.channels.large import LARGE_HEAD
from echoic.errors import EchoicError
from echoic.formats import Format, event
from echoic.testing.fuzz import Fuzzer
from echoic.testing.mutation import BOUNDARIES, Mutator
from echoic.testing.samples import Trade, sample_events
from echoic.testing.twisting import twist
from echoic.wire import Batch, Frame, FrameKind, FrameReader, Hello, encode_formats, encode_frame, encode_hello

__all__ = ["ChannelFuzzer"]

HEARD: Final = ChannelId("attacker:1", "heard")
MINE: Final = ChannelId("victim:1", "mine")
ATTACKER: Final = Hello(name="attacker", hub="attacker", address="attacker:1")
SESSION: Final = 77
SOURCE: Final = 5
ANSWERED: Final = 1
LIFE_FRAMES: Final = 5000
WORK_EVERY: Final = 10
TICK_NS: Final = 100_000_000
LONG_NS: Final = 60_000_000_000
AS_IT_IS: Final = 0.2
TWISTED: Final = 0.5
OTHER_KIND: Final = 0.05
OTHER_CHANNEL: Final = 0.1
GIVEN_UP: Final = 0.02
COMPILED: Final = 0.1  # of recipes that are not the samples' own, since compiling takes as long as a hundred frames
KEPT_MAX: Final = 65_536  # of anything that a neighbour can make the victim remember
_decoder: Final = msgspec.msgpack.Decoder(tuple[int, bool, dict[str, object]], strict=False)


@event
class Limits:
    """The parameters of the derivation that is at work."""

    low: float


LOW: Final = bytes(Batch.of([Limits(75.0)], Limits).records)
CODE: Final = "{ static int n; n = n + 1; return input.price > param.low && n % 3 != 0; }"
DERIVED: Final = Step(
    "mine.low",
    "mine.low",
    Recipe(MINE.name, CODE, params=Format.of(Limits).descriptor),
    LOW,
    input=Format.of(Trade).descriptor,
)
HEARD_STEP: Final = Step(
    HEARD.name, HEARD.name, Recipe("all", "input.volume > 3", placement="auto"), input=Format.of(Trade).descriptor
)


MY_OBJECT: Final = f"victim:1/shared/1-{'0' * 16}"
THEIR_OBJECT: Final = f"attacker:1/shared/1-{'1' * 16}"


class ChannelFuzzer(Fuzzer):
    """Mutates what hubs say to each other with a seeded generator and feeds it to a concentrator."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._batch = Batch.of([Trade("IBM", 75.5, number) for number in range(3)], Trade)
        self._samples = list(_make_samples())
        self._mutator = Mutator(random, self.samples)
        self._now_ns = self._age = 0
        self._workshops = {(step.recipe, step.input): Workshop(step, Policy()) for step in (DERIVED, HEARD_STEP)}
        self._heard = Derivation("victim:1", HEARD_STEP, None, Policy())
        self._heard.equip(self._workshops[HEARD_STEP.recipe, HEARD_STEP.input])
        self.victim, self._mine = self._begin()

    @property
    def samples(self) -> list[bytes]:
        """The payloads that are mutated."""
        return [payload for _, payload, _ in self._samples]

    @property
    def control_samples(self) -> list[bytes]:
        """A message of every type."""
        return [payload for kind, payload, _ in self._samples if kind is FrameKind.CONTROL]

    def _begin(self) -> tuple[Concentrator, Member]:
        """Make a victim that takes part in three channels with the attacker, two of them derived."""
        victim, trade = Concentrator("victim", "victim:1", "victim"), Format.of(Trade)
        victim.tick(self._now_ns)
        victim.manager.directory.create(MINE.name, trade)
        victim.manager.directory.derive(DERIVED)
        mine = victim.open(MINE, trade)
        mine.sources[SOURCE] = 0
        victim.join(mine, "source", ignore)
        heard = victim.open(HEARD, None)
        heard.lineage = (HEARD_STEP,)
        heard.sink = SinkHub(victim.address, "block", ("printer",))
        self._meet(victim)
        victim.join(heard, "sink", ignore)
        victim.sharing.share(Format.of(Limits), LOW, "prompt", "0" * 16)
        victim.sharing.copy(THEIR_OBJECT, Format.of(Limits), LOW, 0)
        return victim, mine

    def _meet(self, victim: Concentrator) -> None:
        """Let the attacker greet, bind a channel and subscribe to another."""
        greeting = Greeting(Hello(hub=victim.id, address=victim.address), victim.known, dialled=False, fresh=1)
        hello = b"".join(encode_frame(FrameKind.HELLO, [encode_hello(ATTACKER)]))
        for data in (hello, count_frame(SESSION, 0)):
            for frame in FrameReader().receive(data):
                greeting.receive(frame)
        victim.meet(greeting)
        bind = messages.Bind(1, str(HEARD), {1: 0})
        sink = SinkHub(ATTACKER.address, "latest", ("s",), ATTACKER.hub, 1)
        joins = [messages.Join(name, "sink", sink) for name in (MINE.name, DERIVED.name)]
        said = [(FrameKind.CONTROL, messages.encode_message(0, bind))]
        said += [(FrameKind.CONTROL, messages.encode_message(0, join)) for join in joins]
        if self._random.random() < 0.5:
            said.append((FrameKind.CONTROL, messages.encode_message(0, messages.Placed(1, 1, 0, here=False))))
        said += [(kind, payload) for kind, payload, _ in self._samples if kind is FrameKind.FORMATS]
        for kind, payload in said:
            victim.receive(ATTACKER.hub, Frame(kind, 0, memoryview(payload)))

    def _next_frame(self) -> tuple[FrameKind, bytes]:
        draw = self._random
        kind, sample, channel = draw.choice(self._samples)
        payload = bytearray(sample)
        if kind is FrameKind.CONTROL and draw.random() < TWISTED:
            payload = bytearray(msgspec.msgpack.encode(twist(draw, _decoder.decode(sample), LOW)))
        elif draw.random() >= AS_IT_IS:
            self._mutator.damage_often(payload)
        made_of = kind
        if draw.random() < OTHER_KIND:
            kind = draw.choice(list(FrameKind))
        if draw.random() < OTHER_CHANNEL:
            channel = draw.choice(BOUNDARIES)
        return made_of, b"".join(encode_frame(kind, [payload], channel=channel, checked=True))

    def _received(self, frame: Frame) -> Iterator[Delivery]:
        neighbour = self.victim.neighbours.get(ATTACKER.hub)
        yield from self.victim.receive(ATTACKER.hub, frame)
        while neighbour is not None and (ripened := neighbour.transfers.next_ripe()) is not None:
            yield from self.victim.take(ATTACKER.hub, ripened())

    def _take(self, data: bytes) -> None:
        self._age += 1
        try:
            for frame in FrameReader(checked=True).receive(data):
                for delivery in self._received(frame):
                    self._deliver(delivery)
        except EchoicError:
            if self._random.random() < GIVEN_UP:
                self._give_up()
                self._meet(self.victim)
            raise
        finally:
            if self._age % WORK_EVERY == 0:
                self._work()
            if self._age >= LIFE_FRAMES:
                self._end()

    def _deliver(self, delivery: Delivery) -> None:
        """Do with arrived events what sinks do."""
        batch = delivery.batch
        if delivery.raw:
            self._heard.tune(delivery.member.lineage[-1])
            self._heard.suspended = ""
            made = self._heard.apply(self._heard.instance(delivery.source), batch)
            batch = made.get(0, Batch(batch.format, 0, [b""]))
        if batch.count:
            batch.events()
        self.victim.reply(delivery, {}) if delivery.call else self.victim.handled(delivery)

    def _work(self) -> None:
        """Let the victim do what hubs do, and make sure that it keeps no more than it may."""
        victim, mine = self.victim, self._mine
        if not victim.blocked(mine):
            shares = derive(mine, SOURCE, self._batch, self._clock)
            victim.submit(mine, SOURCE, self._batch)
            for share in shares:
                send_share(victim, share)
            report_trouble(victim, mine)
        number, call = victim.call(mine, SOURCE, self._batch)
        victim.calls[ANSWERED] = call  # the one that the samples answer
        if self._random.random() < 0.5:
            victim.forget_call(number)
        theirs = victim.sharing.get(THEIR_OBJECT)
        if isinstance(theirs, Secondary) and theirs.phase != "ended":
            victim.sharing.write(theirs, ("low",), LOW)
        self._now_ns += TICK_NS
        victim.tick(self._now_ns)
        self._act()
        for neighbour in victim.neighbours.values():
            neighbour.session.outbox.clear()
            neighbour.session.told(neighbour.session.statistics().sent)
        self._check()

    def _check(self) -> None:
        victim = self.victim
        kept = {
            "neighbours": len(victim.neighbours),
            "open requests": len(victim.requests),
            "searches": len(victim.search),
            "turns to be made": len(victim.turning),
            "channels": len(victim.members),
            "managed channels and names": len(victim.manager.entries()),
        }
        for entry in victim.manager.entries():
            kept[f"sources of {entry.name}"] = entry.sources
            kept[f"sinks of {entry.name}"] = entry.sinks
        for member in victim.members.values():
            kept[f"positions in {member.name}"] = len(member.positions)
            kept[f"targets of {member.name}"] = len(member.fanout.targets)
            kept[f"hubs told of in {member.name}"] = len(member.told)
            kept[f"sinks of a hub told of in {member.name}"] = max(map(len, member.told.values()), default=0)
        kept |= {f"ports of {key}": len(derivation.outlets) for key, derivation in victim.derivations.items()}
        kept |= {f"sources of {key}": len(derivation.instances) for key, derivation in victim.derivations.items()}
        kept["derived sources"] = len(self._heard.instances)
        if len(victim.derivations) > victim.policy.derivations_max:
            raise AssertionError(f"{len(victim.derivations)} derivations, limit is {victim.policy.derivations_max}")
        for neighbour in victim.neighbours.values():
            kept[f"bindings of {neighbour.id}"] = len(neighbour.bindings)
            kept[f"formats of {neighbour.id}"] = len(neighbour.registry)
            kept[f"large events of {neighbour.id}"] = len(neighbour.transfers.arriving)
            kept[f"frames of {neighbour.id} behind them"] = sum(map(len, neighbour.transfers.held.values()))
        for what, count in kept.items():
            if count > KEPT_MAX:
                raise AssertionError(f"a hub keeps {count} {what}, limit is {KEPT_MAX}")

    def _act(self) -> None:
        """Do what the victim wants done: nobody whom it dials is there."""
        victim, effects = self.victim, self.victim.effects
        while effects:
            match effects.pop(0):
                case Dial(address):
                    victim.unreachable(address, "nobody is there", refused=self._random.random() < 0.5)
                case Compile(derivation):
                    compiled(victim, derivation, self._build(derivation))
                case _:
                    pass  # it is told to sinks, of which there are none here
        victim.stirred.clear()

    def _build(self, derivation: Derivation) -> Workshop | Refused | None:
        """Compile a recipe, now and then."""
        known = self._workshops.get((derivation.step.recipe, derivation.step.input))
        if known is not None:
            return known
        return build(derivation) if self._random.random() < COMPILED else Refused("ECodeError", "it is not tried")

    def _clock(self) -> int:
        return self._now_ns

    def _give_up(self) -> None:
        self.victim.gone(ATTACKER.hub, "it broke a rule")
        self._act()

    def _end(self) -> None:
        """Give the attacker up for good, see that nothing of it is left, and begin anew."""
        victim = self.victim
        self._give_up()
        self._now_ns += LONG_NS
        victim.tick(self._now_ns)
        self._act()
        waiting = [hub for call in victim.calls.values() for hub in call.waiting]
        left = (list(victim.neighbours), len(victim.requests), len(victim.search), len(victim.turning), waiting)
        if any(left) or any(member.fanout.targets for member in victim.members.values()):
            raise AssertionError(f"a hub keeps neighbours, requests, searches, turns, calls of one it gave up: {left}")
        self._age = 0
        self.victim, self._mine = self._begin()


def _make_samples() -> Iterator[tuple[FrameKind, bytes, int]]:
    """Yield kind, payload and channel of well-formed frames of every kind."""
    for number, message in enumerate(_make_messages()):
        yield FrameKind.CONTROL, messages.encode_message(number % 3, message, reply=number % 4 == 0), 0
    for events in sample_events():
        batch = Batch.of(events)
        data, count = b"".join(batch.buffers()), batch.count
        yield FrameKind.FORMATS, encode_formats([batch.format]), 0
        yield FrameKind.EVENTS, struct.pack("<QQ", 0, 1) + data, 1
        yield FrameKind.CALLS, struct.pack("<QQQ", 3, 1, 8) + data, 1
        yield FrameKind.LARGE, LARGE_HEAD.pack(count, len(data), FrameKind.EVENTS, count) + struct.pack("<QQ", 0, 1), 1
        yield FrameKind.LARGE, LARGE_HEAD.pack(9, len(data), FrameKind.CALLS, count) + struct.pack("<QQQ", 3, 1, 8), 1
        yield FrameKind.CHUNK, struct.pack("<QQ", count, 0) + data, 0
        yield FrameKind.RUNS, struct.pack("<IIIIQQ", 1, 0, 1, count, 0, 1) + data, 0
        table = struct.pack("<IIQQIIQQ", 1, 1, 2**40, 1, 1, count - 1, 0, 2)
        yield FrameKind.RUNS, struct.pack("<II", 2, 0) + table + data, 0
    yield FrameKind.HELLO, encode_hello(ATTACKER), 0
    yield FrameKind.ACKS, struct.pack("<QQ", SESSION, 1), 0
    yield FrameKind.CREDITS, struct.pack("<II", 1, 1000), 0
    yield FrameKind.REPLIES, struct.pack("<Q", ANSWERED), 1
    yield FrameKind.REPLIES, struct.pack("<Q", ANSWERED) + b"\x81\xa1s\xa1x", 1
    yield FrameKind.SHARED, struct.pack("<QQ", 0, 65_536), 0
    yield FrameKind.MORE, struct.pack("<QQ", 1, 65_536), 0
    yield FrameKind.RELEASE, struct.pack("<Q", 1), 0
    for kind in (FrameKind.MEMBERSHIP, FrameKind.PARAMETERS, FrameKind.CODE, FrameKind.VALUES):
        yield kind, bytes(16), 1


def _make_messages() -> Iterator[Message]:
    """Yield messages of every type."""
    attacker = SinkHub(ATTACKER.address, "latest", ("s",), ATTACKER.hub, 1)
    nowhere = SinkHub("nowhere:9", "block", (), "z", 4)
    yield from (messages.Attach(str(MINE), attacker), messages.Attach(str(MINE), nowhere))
    yield from (messages.Bind(1, str(HEARD), {1: 0, 7: 3}, {1: 0}, 1), messages.Bind(2, str(MINE), {}))
    yield from (messages.Browse(), messages.Report(), messages.Done(), messages.Farewell())
    yield from (messages.Cut(1, "slow"), messages.Cut(1, "as you wish", asked=True))
    yield from (messages.Describe(MINE.name), messages.Described("heard", b"", [], [attacker]))
    yield messages.Detach(str(MINE), ATTACKER.address, 1)
    yield messages.Gap(1, 1, 0, 5, "slow")
    yield from (messages.Join(MINE.name, "sink", attacker), messages.Join(MINE.name, "source", SinkHub("q:1")))
    yield messages.Joined([attacker, nowhere])
    yield from (messages.Leave(MINE.name, "sink", "attacker:1"), messages.Leave(MINE.name, "source", "q:1"))
    yield messages.Listing([ChannelEntry("heard", str(HEARD), "Trade", 1, 2)])
    yield messages.Refused("UnreachableError", "nobody is there")
    yield from (messages.Register("heard", str(HEARD)), messages.Unregister("heard", str(HEARD)))
    yield from (messages.Resolve("heard"), messages.Resolved(str(HEARD)))
    yield messages.Reported("attacker", [ChannelCounts("heard", str(HEARD), "Trade", *range(10))])
    yield from _make_messages_about_turns(attacker)
    yield from _make_messages_about_derivations(attacker)
    yield from _make_messages_about_shared_objects()


def _make_messages_about_turns(attacker: SinkHub) -> Iterator[Message]:
    derived = str(ChannelId(MINE.address, DERIVED.name))
    yield messages.Attach(str(MINE), attacker, (), derived, "s", "t")
    yield messages.Attach(derived, attacker, (DERIVED,), str(MINE), "t", "s")
    yield messages.Join(MINE.name, "sink", attacker, (), DERIVED.name, "s", "t")
    yield messages.Joined([attacker], turned=(ATTACKER.hub, "z"), heard=(DERIVED,))
    yield from (messages.Turn(1, "s", {1: 0, 7: 3}, taken=False), messages.Turn(1, "s", {1: 5}, taken=True))
    yield messages.Turned(ATTACKER.hub)


def _make_messages_about_derivations(attacker: SinkHub) -> Iterator[Message]:
    derived = str(ChannelId(MINE.address, DERIVED.name))
    routed = msgspec.structs.replace(DERIVED, name="r.1", group="r", port=1, recipe=Recipe(MINE.name, "1", ports=2))
    second = msgspec.structs.replace(DERIVED, name="second", group="second", recipe=Recipe(DERIVED.name, "1"))
    placed_there = Recipe(MINE.name, "input.volume > 3", placement="auto")
    moving = msgspec.structs.replace(DERIVED, name="auto", group="auto", recipe=placed_there)
    for lineage in ((DERIVED,), (routed,), (DERIVED, second), (moving,)):
        id = str(ChannelId(MINE.address, lineage[-1].name))
        yield messages.Attach(id, attacker, lineage)
        yield messages.Join(lineage[-1].name, "sink", attacker, lineage)
        yield messages.Join(lineage[-1].name, "source", attacker, lineage)
        yield from (messages.Detach(id, ATTACKER.address), messages.Derive(lineage[-1], share=False))
        yield messages.Derive(msgspec.structs.replace(lineage[-1], name="", group=""))
    yield from (messages.DerivedAs((DERIVED,)), messages.Joined([attacker], (DERIVED, second)))
    yield messages.Described(HEARD.name, Format.of(Trade).descriptor, [], [attacker], (HEARD_STEP,))
    yield from (messages.Tune(DERIVED.name, LOW), messages.Tune(derived, LOW, 3), messages.Tune(str(HEARD), b"", 2))
    yield from (messages.Save(derived), messages.Saved({1: bytes(8)}, Format.of(Limits).descriptor))
    yield from (messages.Restore(derived, {0: bytes(8)}), messages.Restore(derived, {1: bytes(4)}))
    yield from (messages.Placed(1, 1, 0, here=False), messages.Placed(1, 1, 5, here=True))
    yield messages.Trouble(derived, ATTACKER.address, "it hurts", 3, suspended=True)
    yield from (messages.Steer(MINE.name, "stop"), messages.Steer(str(MINE), "tune", {"rate": 1.5, "mode": "fast"}))
    yield messages.Steered((Steering(ATTACKER.address, 1, "no", {"rate": True}),))


def _make_messages_about_shared_objects() -> Iterator[Message]:
    format = Format.of(Limits)
    yield from (messages.Watch(MY_OBJECT, format.descriptor), messages.Unwatch(MY_OBJECT))
    yield from (messages.Write(MY_OBJECT, number, format.token, ("low",), LOW) for number in (1, 2, 3))
    yield from (messages.Update(THEIR_OBJECT, 3, LOW, 2), messages.Update(THEIR_OBJECT, 4, b"", ended=True))
