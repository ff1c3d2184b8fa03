"""Concentrators, two of them joined by hand: what they tell each other, and what hostile frames do to them."""

import struct
from collections.abc import Callable
from random import Random

import pytest

from echoic.channels import (
    CREDIT_BYTES,
    ChannelId,
    Concentrator,
    Delivery,
    Dial,
    Ended,
    Forgotten,
    Greeting,
    Joined,
    Member,
    Message,
    Missed,
    Refused,
    Resolve,
    SinkHub,
    Slow,
    register,
)
from echoic.channels.messages import (
    Attach,
    Bind,
    Browse,
    Cut,
    Detach,
    Done,
    Farewell,
    Gap,
    Join,
    Leave,
    Register,
    Report,
    encode_message,
)
from echoic.channels.runs import SourceRun, submit_runs
from echoic.errors import EchoicError, EncodeError, MalformedFrameError
from echoic.testing.samples import Trade, sample_events
from echoic.wire import Batch, Frame, FrameKind, FrameReader, Hello, encode_formats, encode_frame

SECOND = 1_000_000_000
BOUNDARIES = (0, 1, 2, 7, 0x7F, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63, 2**64 - 1)
ID = ChannelId("m:1", "trades")


def batch(count: int = 1) -> Batch:
    return Batch.of([Trade("IBM", 75.5, n) for n in range(count)], Trade)


class Pair:
    """A manager that publishes, and a hub that subscribes; frames are carried when a test says so."""

    def __init__(self, slow: Slow = "block") -> None:
        self.manager, self.other = Concentrator("m", "m:1", "manager"), Concentrator("o", "o:1", "other")
        self.deliveries: list[Delivery] = []
        self.meet()
        self.manager.manager.directory.create("trades", None)
        self.source = self.manager.open(ID, None)
        self.source.sources[1] = 0
        self.manager.join(self.source, "source", lambda reply: None)
        self.sink = self.other.open(ID, None)
        self.sink.sink = SinkHub("o:1", slow, ("s",))
        self.answers: list[Message] = []
        self.other.join(self.sink, "sink", self.answers.append)
        self.carry()

    def meet(self, *, dialler: str = "o") -> None:
        """Let the two greet over a fresh connection."""
        hubs = (self.other, self.manager) if dialler == "o" else (self.manager, self.other)
        sides = [
            Greeting(
                Hello(hub=hub.id, address=hub.address),
                hub.known,
                dialled=hub is hubs[0],
                fresh=Random(1).getrandbits(60),
            )
            for hub in hubs
        ]
        readers, wire = [FrameReader(), FrameReader()], [sides[0].opening]
        for turn in (1, 0, 1):
            frames = [frame for piece in wire for frame in readers[turn].receive(piece)]
            wire = [sides[turn].receive(frame) for frame in frames]
            if sides[turn].done:
                hubs[turn].meet(sides[turn])

    def carry(self) -> None:
        """Bring everything that waits to the other side, until nothing does."""
        while self.manager.stirred or self.other.stirred:
            for origin, target in ((self.manager, self.other), (self.other, self.manager)):
                outbox = origin.neighbours[target.id].session.outbox
                data, _ = b"".join(outbox), outbox.clear()
                origin.stirred.clear()
                for frame in FrameReader().receive(data):
                    self.deliveries += target.receive(origin.id, frame)

    def hostile(self, kind: FrameKind, payload: bytes, channel: int = 0) -> list[Delivery]:
        """Let the manager say something to the other that its code would not."""
        return [*self.other.receive("m", Frame(kind, channel, memoryview(payload)))]

    def say(self, message: Message, number: int = 0, *, reply: bool = False) -> None:
        self.hostile(FrameKind.CONTROL, encode_message(number, message, reply=reply))


def test_a_sink_hears_what_is_submitted_once_it_has_joined() -> None:
    pair = Pair()
    assert pair.answers == [Joined([])]
    pair.manager.submit(pair.source, 1, batch(3))
    pair.manager.submit(pair.source, 1, batch(2))
    pair.carry()
    assert [(delivery.first, delivery.batch.count) for delivery in pair.deliveries] == [(0, 3), (3, 2)]
    assert pair.deliveries[0].batch.to(Trade).events() == [Trade("IBM", 75.5, n) for n in range(3)]


def test_handled_events_give_back_exactly_the_credit_that_they_took() -> None:
    pair = Pair()
    target = pair.source.fanout.targets["o"]
    for size in range(10_000, 11_000):
        before = target.credit
        pair.manager.submit(pair.source, 1, Batch.of([Trade("x" * size, 1.0, 1)], Trade))
        pair.carry()
        pair.other.handled(pair.deliveries[-1])
        pair.carry()
        if target.credit > before:
            break
    assert target.credit == CREDIT_BYTES, "a little that leaks with each frame stops a source for ever"


def test_a_run_among_others_is_worth_what_it_took() -> None:
    pair = Pair()
    target = pair.source.fanout.targets["o"]
    pair.source.sources[2] = 0
    for count in range(1, 9):
        before = target.credit
        runs = [SourceRun(pair.source, 1, count), SourceRun(pair.source, 2, 3)]
        assert submit_runs(pair.manager, runs, batch(count + 3))
        pair.carry()
        one, two = pair.deliveries[-2:]
        assert (one.source, one.batch.count, two.source, two.batch.count) == (1, count, 2, 3)
        assert before - target.credit == one.size + two.size


def test_a_call_ends_when_the_sinks_have_replied() -> None:
    pair = Pair()
    number, call = pair.manager.call(pair.source, 1, batch())
    pair.carry()
    assert call.waiting
    pair.other.reply(pair.deliveries[0], {"s": "it broke"})
    pair.carry()
    assert not call.waiting
    assert call.failures == {"s at o:1": "it broke"}
    pair.manager.forget_call(number)


def test_a_batch_too_large_for_a_frame_is_refused_and_takes_no_numbers() -> None:
    pair = Pair()
    large = Batch.of([Trade("x" * 17_000_000, 1.0, 1)], Trade)
    for send in (pair.manager.submit, pair.manager.call):
        with pytest.raises(EncodeError):
            send(pair.source, 1, large)
    assert pair.source.sources[1] == 0


def test_a_hub_that_cannot_be_reached_is_dialled_once_however_much_is_asked_of_it() -> None:
    hub, answers = Concentrator("x", "x:1"), list[Message]()
    hub.ask("y:1", Browse(), answers.append)
    hub.ask("y:1", Browse(), answers.append)
    assert hub.effects == [Dial("y:1")]
    hub.unreachable("y:1", "nobody there", refused=True)
    assert answers == [Refused("UnreachableError", "nobody there")] * 2


def test_a_request_to_itself_is_answered_at_once() -> None:
    hub, answers = Concentrator("x", "x:1"), list[Message]()
    hub.ask("x:1", Resolve("nothing"), answers.append)
    assert isinstance(answers[0], Refused)
    assert answers[0].kind == "ChannelNotFoundError"


def test_a_name_of_the_name_servers_own_channel_is_not_taken_over() -> None:
    pair = Pair()
    register(pair.manager, "m:1", "trades", str(ID), pair.answers.append)
    register(pair.other, "m:1", "trades", "echoic://o:1/trades", pair.answers.append)
    pair.carry()
    assert pair.answers[1] == Done()
    assert isinstance(pair.answers[2], Refused)


def test_a_hub_is_not_its_own_peer() -> None:
    hub = Concentrator("x", "x:1")
    greeting = Greeting(Hello(hub="y"), hub.known, dialled=False, fresh=1)
    with pytest.raises(MalformedFrameError, match="own peer"):
        hub.meet(greeting)


def test_a_connection_after_which_more_came_by_the_one_before_is_declined() -> None:
    pair = Pair()
    dialler = Greeting(Hello(hub="o", address="o:1"), pair.other.known, dialled=True, fresh=9)
    acceptor = Greeting(Hello(hub="m", address="m:1"), pair.manager.known, dialled=False, fresh=9)
    hello, count = FrameReader().receive(acceptor.receive(FrameReader().receive(dialler.opening)[0]))
    pair.other.ask("m:1", Browse(), pair.answers.append)
    pair.carry()
    dialler.receive(hello)
    acceptor.receive(FrameReader().receive(dialler.receive(count))[0])
    assert pair.manager.meet(acceptor) is None
    assert pair.manager.neighbours["o"].connected


def test_a_reply_of_a_hub_that_was_not_asked_is_ignored() -> None:
    pair = Pair()
    pair.other.requests.add("elsewhere", 0, pair.answers.append)
    for number in range(5):
        pair.say(Done(), number, reply=True)
    assert pair.answers == [Joined([])]
    assert len(pair.other.requests) == 1


def test_events_of_a_number_that_was_never_bound_are_refused() -> None:
    with pytest.raises(MalformedFrameError, match="not bound"):
        Pair().hostile(FrameKind.EVENTS, bytes(64), channel=99)


def test_a_hub_that_is_bound_without_wishing_so_says_it_once() -> None:
    pair = Pair()
    pair.say(Bind(50, "echoic://m:1/unheard", {1: 0}))
    outbox = pair.other.neighbours["m"].session.outbox
    (frame,) = FrameReader().receive(outbox[-1])
    assert b"Detach" in bytes(frame.payload)
    said = len(outbox)
    for first in range(3):
        assert pair.hostile(FrameKind.EVENTS, struct.pack("<QQ", first, 1), channel=50) == []
    assert len(outbox) == said
    pair.hostile(FrameKind.CALLS, struct.pack("<QQQ", 3, 1, 8), channel=50)
    assert FrameReader().receive(outbox[-1])[0].kind is FrameKind.REPLIES


def test_cancelling_detaches_the_target_and_unbinds_the_number() -> None:
    pair = Pair()
    assert pair.other.neighbours["m"].bindings
    pair.other.leave(pair.sink, "sink")
    pair.carry()
    assert not pair.source.fanout.targets
    assert not pair.other.neighbours["m"].bindings
    assert not pair.other.effects


def test_events_under_way_when_a_sink_is_cancelled_leave_no_trace() -> None:
    pair = Pair()
    pair.manager.submit(pair.source, 1, batch(5))
    pair.other.leave(pair.sink, "sink")
    pair.carry()
    assert not pair.deliveries
    assert not pair.sink.positions
    pair.source.pass_over(1, 100)
    pair.sink.sink = SinkHub("o:1")
    pair.other.join(pair.sink, "sink", pair.answers.append)
    pair.carry()
    pair.manager.submit(pair.source, 1, batch())
    pair.carry()
    assert [delivery.first for delivery in pair.deliveries] == [105]
    assert not [effect for effect in pair.other.effects if isinstance(effect, Missed)]


def test_a_policy_cut_ends_the_sinks_and_a_cut_that_was_asked_for_joins_again() -> None:
    pair = Pair("disconnect")
    number = pair.source.number
    pair.say(Cut(number, "too slow"))
    assert pair.other.effects == [Ended(pair.sink, "too slow")]
    pair = Pair()
    pair.say(Cut(number, "as asked", asked=True))
    assert "sink" not in pair.sink.joined
    assert not pair.other.effects


def test_a_hub_that_took_leave_is_forgotten_when_its_connection_ends() -> None:
    pair = Pair()
    pair.say(Farewell())
    assert "m" in pair.other.neighbours
    pair.other.broken("m", SECOND)
    assert "m" not in pair.other.neighbours
    assert Forgotten("m", "it took leave") in pair.other.effects
    assert list(pair.sink.lacking()) == ["sink"]


def test_another_hub_at_the_same_address_takes_the_place_of_one_that_is_broken() -> None:
    pair = Pair()
    pair.manager.broken("o", SECOND)
    pair.other = Concentrator("o2", "o:1")
    pair.meet()
    assert list(pair.manager.neighbours) == ["o2"]
    assert not pair.source.fanout.targets
    assert not pair.manager.manager.directory.get("trades").sinks


def test_what_went_through_can_be_told_whatever_gaps_a_peer_claims() -> None:
    pair = Pair()
    for number in range(3):
        pair.say(Gap(pair.source.number, number, -(2**63), 2**64 - 1, "made up"))
    asked = len(pair.other.neighbours["m"].session.outbox)
    pair.say(Report(), 9)
    assert len(pair.other.neighbours["m"].session.outbox) == asked + 1


def samples() -> list[tuple[FrameKind, bytes, int]]:
    """Return a frame of every kind that hubs send each other, well formed."""
    hub = SinkHub("o:1", "latest", ("s",), "o", 1)
    messages: list[Message] = [
        Attach("echoic://m:1/trades", hub),
        Attach("echoic://m:1/trades", SinkHub("nowhere:9", "block", (), "z", 4)),
        Bind(1, "echoic://m:1/trades", {1: 0, 7: 3}, {1: 0}, 1),
        Bind(2, "echoic://m:1/other", {}),
        Browse(),
        Cut(1, "slow"),
        Detach("echoic://m:1/trades", "o:1", 1),
        Done(),
        Gap(1, 1, 0, 5, "slow"),
        Join("mine", "sink", hub),
        Join("mine", "source", SinkHub("q:1")),
        Joined([hub, SinkHub("w:1")]),
        Leave("mine", "sink", "o:1"),
        Refused("UnreachableError", "x"),
        Register("x", "echoic://m:1/x"),
        Report(),
        Resolve("x"),
    ]
    found = [
        (FrameKind.CONTROL, encode_message(n % 3, message, reply=n % 4 == 0), 0) for n, message in enumerate(messages)
    ]
    for events in sample_events():
        encoded = Batch.of(events)
        data = b"".join(encoded.buffers())
        found += [
            (FrameKind.FORMATS, encode_formats([encoded.format]), 0),
            (FrameKind.EVENTS, struct.pack("<QQ", 0, 1) + data, 1),
            (FrameKind.CALLS, struct.pack("<QQQ", 3, 1, 8) + data, 1),
        ]
    found += [
        (FrameKind.ACKS, struct.pack("<QQ", Random(1).getrandbits(60), 1), 0),
        (FrameKind.CREDITS, struct.pack("<II", 1, 1000), 0),
        (FrameKind.RUNS, struct.pack("<IIIIQQ", 1, 0, 1, 2, 0, 1) + b"".join(batch(2).buffers()), 0),
        (FrameKind.REPLIES, struct.pack("<Q", 1), 1),
        (FrameKind.REPLIES, struct.pack("<Q", 1) + b"\x81\xa1s\xa1x", 1),
    ]
    return found


def flip(random: Random, data: bytearray) -> None:
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def set_byte(random: Random, data: bytearray) -> None:
    data[random.randrange(len(data))] = random.randrange(256)


def set_number(random: Random, data: bytearray) -> None:
    width = random.choice((4, 8))
    if len(data) >= width:
        at = random.randrange(0, len(data) - width + 1)
        data[at : at + width] = random.choice(BOUNDARIES).to_bytes(9, "little")[:width]


def truncate(random: Random, data: bytearray) -> None:
    del data[random.randrange(len(data)) :]


MUTATIONS: tuple[Callable[[Random, bytearray], None], ...] = (flip, flip, set_byte, set_number, set_number, truncate)


def mutate(random: Random, sample: bytes) -> bytes:
    data = bytearray(sample)
    for _ in range(random.choice((0, 1, 1, 1, 2, 4))):
        if data:
            random.choice(MUTATIONS)(random, data)
    return bytes(data)


@pytest.mark.parametrize("seed", range(40))
def test_hostile_frames_of_every_kind_are_taken_or_refused_as_declared(seed: int) -> None:
    random, pair, frames = Random(seed), Pair(), samples()
    mine = pair.other.open(ChannelId("o:1", "mine"), None)
    mine.sources[5] = 0
    pair.other.manager.directory.create("mine", None)
    pair.other.join(mine, "source", pair.answers.append)
    now_ns, taken, refused = 0, 0, 0
    for number in range(500):
        kind, payload, channel = random.choice(frames)
        kind = random.choice(list(FrameKind)) if random.random() < 0.05 else kind
        channel = random.choice(BOUNDARIES[:8]) if random.random() < 0.1 else channel
        data = b"".join(encode_frame(kind, [mutate(random, payload)], channel=channel))
        try:
            for frame in FrameReader().receive(data):
                for delivery in pair.other.receive("m", frame):
                    pair.other.reply(delivery, {}) if delivery.call else pair.other.handled(delivery)
            taken += 1
        except EchoicError:
            refused += 1
        if number % 10 == 0:
            now_ns += SECOND // 10
            pair.other.submit(mine, 5, batch())
            if not pair.other.blocked(mine):
                pair.other.call(mine, 5, batch())
            pair.other.tick(now_ns)
        for effect in pair.other.effects:
            if isinstance(effect, Dial):
                pair.other.unreachable(effect.address, "no", refused=random.random() < 0.5)
        pair.other.effects.clear()
    assert taken > 50
    assert refused > 50
    pair.other.gone("m", "enough")
    assert "m" not in pair.other.neighbours


def test_frames_of_a_hub_that_is_unknown_are_ignored() -> None:
    hub = Concentrator("x", "x:1")
    assert not hub.receive("stranger", Frame(FrameKind.CONTROL, 0, memoryview(b"junk")))


def test_a_member_is_opened_once() -> None:
    hub = Concentrator("x", "x:1")
    member = hub.open(ID, None)
    assert isinstance(member, Member)
    assert hub.open(ID, None) is member
