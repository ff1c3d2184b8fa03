"""Events that are too large for a frame, between two concentrators: fetched piece by piece, in order, by the rules."""

import struct
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.channels import (
    LARGE_FEATURE,
    Call,
    ChannelId,
    Concentrator,
    Delivery,
    Greeting,
    HeapStorage,
    LargeRules,
    Member,
    Missed,
    SinkHub,
    Slow,
    transfers,
)
from echoic.channels.keeping import keep_for
from echoic.channels.large import LARGE_HEAD
from echoic.channels.messages import Bind, Gap, encode_message
from echoic.channels.runs import SourceRun, submit_runs
from echoic.channels.transfers import HANDLE, PART
from echoic.errors import EncodeError, LimitExceededError, MalformedFrameError, RemoteError
from echoic.formats import event, int64
from echoic.wire import Batch, Frame, FrameKind, FrameReader, Hello, encode_hello
from tests.golden.hubs import introduce

RULES = LargeRules(event_bytes_max=20_000, frame_bytes_max=1000, chunk_bytes=100, window_bytes=400)
NAMES = ("one", "two")
SOURCES = (1, 2)


@event
class Note:
    source: int64
    number: int64
    text: str


def note(source: int, number: int, size: int) -> Batch:
    return Batch.of([Note(source, number, f"{number % 10}" * size)], Note)


class Pair:
    """A hub with two channels of two sources each, and one with sinks of both; a test says what is carried when."""

    def __init__(
        self, slow: Slow = "block", *, peer: LargeRules | None = RULES, storage: HeapStorage | None = None
    ) -> None:
        self.stored, self.arriving = HeapStorage(), storage or HeapStorage()
        self.home = Concentrator("h", "h:1", "home", rules=RULES, storage=self.stored)
        self.away = Concentrator("a", "a:1", "away", rules=peer or LargeRules(), storage=self.arriving)
        self._peer = peer
        self.arrived: list[Delivery] = []
        self.said: list[FrameKind] = []
        self.replies = 0
        self.meet()
        self.channels = []
        for name in NAMES:
            id = ChannelId("h:1", name)
            self.home.manager.directory.create(name, None)
            member = self.home.open(id, None)
            member.sources.update(dict.fromkeys(SOURCES, 0))
            self.home.join(member, "source", lambda _: None)
            self.channels.append(member)
            sink = self.away.open(id, None)
            sink.sink = SinkHub("a:1", slow, ("s",))
            self.away.join(sink, "sink", lambda _: None)
            self.carry()
        self.said.clear()

    def hello(self, hub: Concentrator) -> Hello:
        if hub is self.away and self._peer is None:
            return Hello(hub=hub.id, address=hub.address)
        limit = hub.rules.event_bytes_max
        return Hello(hub=hub.id, address=hub.address, features=(LARGE_FEATURE,), event_bytes_max=max(limit, 2**25))

    def meet(self) -> None:
        """Let the two greet over a fresh connection."""
        hubs = (self.away, self.home)
        sides = [
            Greeting(self.hello(hub), hub.known, dialled=hub is hubs[0], fresh=Random(1).getrandbits(60))
            for hub in hubs
        ]
        readers, wire = [FrameReader(), FrameReader()], [sides[0].opening]
        for turn in (1, 0, 1):
            frames = [frame for piece in wire for frame in readers[turn].receive(piece)]
            wire = [sides[turn].receive(frame) for frame in frames]
            if sides[turn].done:
                hubs[turn].meet(sides[turn])

    def cut_off(self) -> None:
        """Let the connection break, and what was on it be lost."""
        for hub, other in ((self.home, "a"), (self.away, "h")):
            hub.neighbours[other].session.outbox.clear()
            hub.broken(other, 1)
        self.meet()

    def carry_one(self, *, back: bool) -> bool:
        """Bring the next frame to the other side; tell whether there was one."""
        origin, target = (self.away, self.home) if back else (self.home, self.away)
        outbox = origin.neighbours[target.id].session.outbox
        if not outbox:
            return False
        for frame in FrameReader().receive(outbox.popleft()):
            self.said.append(frame.kind)
            self.take(target, origin.id, frame)
        return True

    def take(self, target: Concentrator, origin: str, frame: Frame) -> None:
        neighbour = target.neighbours[origin]
        self.note(target.receive(origin, frame))
        while (ripened := neighbour.transfers.next_ripe()) is not None:
            self.note(target.take(origin, ripened()))

    def note(self, deliveries: object) -> None:
        for delivery in deliveries:
            self.arrived.append(delivery)
            if delivery.call:
                self.away.reply(delivery, {})
            else:
                self.away.handled(delivery)

    def carry(self) -> None:
        """Bring everything that waits to the other side, until nothing does."""
        while self.carry_one(back=False) or self.carry_one(back=True):
            pass

    def notes(self, channel: int = 0) -> list[Note]:
        found = [one for one in self.arrived if one.member.name == NAMES[channel]]
        return [item for one in found for item in one.batch.to(Note).events()]

    def hostile(self, kind: FrameKind, payload: bytes, channel: int = 0) -> None:
        """Let the one with sinks get what no hub would say."""
        self.take(self.away, "h", Frame(kind, channel, memoryview(payload)))

    def hostile_all(self, frames: list[tuple[FrameKind, bytes]]) -> None:
        for kind, payload in frames:
            self.hostile(kind, payload, self.number if kind is FrameKind.LARGE else 0)

    @property
    def number(self) -> int:
        return self.channels[0].number


def announce(handle: int, size: int, kind: FrameKind = FrameKind.EVENTS, first: int = 0, call: int = 1) -> bytes:
    head = struct.pack("<QQ", first, 1) if kind is FrameKind.EVENTS else struct.pack("<QQQ", first, 1, call)
    return LARGE_HEAD.pack(handle, size, kind, 1) + head


def test_a_large_event_is_fetched_in_pieces_and_arrives_as_any_other() -> None:
    pair = Pair()
    pair.home.submit(pair.channels[0], 1, note(1, 0, 5000))
    pair.carry()
    assert pair.notes() == [Note(1, 0, "0" * 5000)]
    assert pair.said.count(FrameKind.LARGE) == 1
    assert pair.said.count(FrameKind.CHUNK) >= 50
    assert FrameKind.EVENTS not in pair.said
    assert not pair.stored.kept()
    assert pair.arriving.arriving_bytes == 0


def test_small_events_of_another_channel_pass_a_large_one_and_those_of_its_own_do_not() -> None:
    pair = Pair()
    pair.home.submit(pair.channels[0], 1, note(1, 0, 5000))
    pair.carry_one(back=False)  # the format
    pair.carry_one(back=False)  # that there is one
    pair.home.call(pair.channels[0], 2, note(2, 0, 10))
    pair.home.submit(pair.channels[1], 1, note(1, 0, 10))
    for _ in range(3):
        pair.carry_one(back=False)
    assert (pair.notes(0), pair.notes(1)) == ([], [Note(1, 0, "0" * 10)])
    pair.carry()
    assert pair.notes(0) == [Note(1, 0, "0" * 5000), Note(2, 0, "0" * 10)]


def test_no_more_than_the_window_lies_before_a_small_event() -> None:
    pair = Pair()
    pair.home.submit(pair.channels[0], 1, note(1, 0, 15_000))
    outbox, most = pair.home.neighbours["a"].session.outbox, 0
    while pair.carry_one(back=True) or pair.carry_one(back=False):
        most = max(most, sum(len(frame) for frame in outbox))
    assert pair.notes() == [Note(1, 0, "0" * 15_000)]
    assert most <= 2 * RULES.window_bytes


def test_a_large_event_that_wants_an_answer_gets_it_when_it_was_handled() -> None:
    pair = Pair()
    _, call = pair.home.call(pair.channels[0], 1, note(1, 0, 5000))
    for _ in range(20):
        pair.carry_one(back=False)
        pair.carry_one(back=True)
    assert call.waiting
    pair.carry()
    assert not call.waiting
    assert not call.failures
    assert pair.notes() == [Note(1, 0, "0" * 5000)]


def test_the_credit_for_a_large_event_comes_back_to_the_byte() -> None:
    pair = Pair()
    target = pair.channels[0].fanout.targets["a"]
    whole = target.credit
    for number in range(600):  # 9 MB: grants are some megabytes each
        pair.home.submit(pair.channels[0], 1, note(1, number, 15_000))
        pair.carry()
        if target.credit == whole:
            break
    else:
        spent = whole - target.credit
        assert spent < 4 * 1024 * 1024, "what is not worth a grant yet"
    assert len(pair.notes()) >= 200


class Campaign:
    """Does at random what a program, its links and its network do, and remembers what was submitted."""

    def __init__(self, data: st.DataObject) -> None:
        self.pair = Pair()
        self.submitted: dict[tuple[int, int], list[Note]] = {
            (channel, source): [] for channel in (0, 1) for source in SOURCES
        }
        self.calls: list[Call] = []
        self._data = data

    def step(self) -> None:
        steps = (self.submit, self.call, self.submit_runs, self.carry, self.carry, self.pair.cut_off)
        self._data.draw(st.sampled_from(steps), "step")()

    def submit(self) -> None:
        member, source, batch = self._next()
        self.pair.home.submit(member, source, batch)

    def call(self) -> None:
        member, source, batch = self._next()
        self.calls.append(self.pair.home.call(member, source, batch)[1])

    def submit_runs(self) -> None:
        notes = [Note(1, len(self.submitted[channel, 1]), "r") for channel in (0, 1)]
        runs = [SourceRun(member, 1, 1) for member in self.pair.channels]
        if submit_runs(self.pair.home, runs, Batch.of(notes, Note)):
            for channel in (0, 1):
                self.submitted[channel, 1].append(notes[channel])

    def carry(self) -> None:
        back = self._data.draw(st.booleans(), "back")
        for _ in range(self._data.draw(st.integers(1, 30), "frames")):
            self.pair.carry_one(back=back)

    def _next(self) -> tuple[Member, int, Batch]:
        channel, source = self._data.draw(st.sampled_from(sorted(self.submitted)), "channel, source")
        size = self._data.draw(st.sampled_from((0, 10, 900, 1200, 4000)), "size")
        number = len(self.submitted[channel, source])
        self.submitted[channel, source].append(Note(source, number, f"{number % 10}" * size))
        return self.pair.channels[channel], source, note(source, number, size)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_whatever_is_interleaved_every_source_is_heard_in_order_once(data: st.DataObject) -> None:
    campaign = Campaign(data)
    for _ in range(data.draw(st.integers(5, 40), "steps")):
        campaign.step()
    pair = campaign.pair
    pair.carry()
    for (channel, source), notes in campaign.submitted.items():
        assert [one for one in pair.notes(channel) if one.source == source] == notes
    assert not any(call.waiting or call.failures for call in campaign.calls)
    assert not [effect for effect in pair.away.effects if isinstance(effect, Missed)]
    assert not pair.stored.kept()
    assert pair.arriving.arriving_bytes == 0
    for neighbour in (*pair.home.neighbours.values(), *pair.away.neighbours.values()):
        found = neighbour.transfers
        assert not any((found.held, found.ripe, found.departing, found.arriving, found.announced))


def test_one_copy_is_kept_for_all_and_goes_with_the_last_one_that_needs_it() -> None:
    pair = Pair()
    pair.home.submit(pair.channels[0], 1, note(1, 0, 5000))
    pair.home.submit(pair.channels[1], 1, note(1, 0, 5000))
    assert len(pair.stored.kept()) == 2
    for _ in range(10):
        pair.carry_one(back=False)
        pair.carry_one(back=True)
    assert len(pair.stored.kept()) == 2
    pair.home.gone("a", "it is killed")
    assert not pair.stored.kept()


def test_what_has_arrived_of_a_neighbour_that_is_gone_is_forgotten() -> None:
    pair = Pair()
    pair.home.submit(pair.channels[0], 1, note(1, 0, 5000))
    for _ in range(10):
        pair.carry_one(back=False)
        pair.carry_one(back=True)
    assert pair.arriving.arriving_bytes > 0
    pair.away.gone("h", "it is killed")
    assert pair.arriving.arriving_bytes == 0


@pytest.mark.parametrize("slow", ["drop_oldest", "latest"])
def test_a_large_event_that_is_dropped_leaves_nothing_behind(slow: Slow) -> None:
    pair = Pair(slow)
    target = pair.channels[0].fanout.targets["a"]
    target.credit = 0
    for number in range(300):  # 1.5 MB wait
        pair.home.submit(pair.channels[0], 1, note(1, number, 5000))
    kept = len(pair.stored.kept())
    assert kept < 300
    assert target.parked_bytes <= 1024 * 1024 + 5100
    pair.home.call(pair.channels[0], 2, note(2, 0, 1))  # which sends what waits
    pair.carry()
    numbers = [one.number for one in pair.notes() if one.source == 1]
    assert numbers == list(range(300 - kept, 300))
    missed = [effect.gap for effect in pair.away.effects if isinstance(effect, Missed)]
    assert [(gap.first, gap.last) for gap in missed] == [(0, 299 - kept)]
    assert not pair.stored.kept()


def test_a_peer_that_does_not_know_of_large_events_gets_frames_and_what_is_too_large_for_one_is_refused() -> None:
    pair = Pair(peer=None)
    pair.home.submit(pair.channels[0], 1, note(1, 0, 5000))
    pair.carry()
    assert FrameKind.LARGE not in pair.said
    assert pair.notes() == [Note(1, 0, "0" * 5000)]
    generous = Concentrator("h", "h:1", rules=LargeRules(), storage=HeapStorage())
    introduce(generous, pair.away, Batch.of([Note(1, 0, "")], Note).format)
    member = generous.open(ChannelId("h:1", "one"), None)
    member.sources[1] = 0
    member.fanout.attach("a", SinkHub("a:1"))
    for send in (generous.submit, generous.call):
        with pytest.raises(EncodeError, match="limit is 16777216 for the hub at a:1"):
            send(member, 1, note(1, 0, 2**24))
    assert member.sources[1] == 0
    assert not generous.calls.keys() - {1}


def test_an_event_above_the_limit_of_this_hub_or_of_the_peer_is_refused() -> None:
    pair = Pair()
    with pytest.raises(EncodeError, match=r"limit is 20000$"):
        pair.home.submit(pair.channels[0], 1, note(1, 0, 20_000))
    assert pair.channels[0].sources[1] == 0
    pair.home.submit(pair.channels[0], 1, note(1, 0, 10))
    pair.carry()
    assert len(pair.notes()) == 1


def test_an_event_for_which_there_is_no_room_is_missed_and_told_to_be() -> None:
    pair = Pair(storage=HeapStorage(3000))
    pair.home.submit(pair.channels[0], 1, note(1, 0, 2500))
    pair.home.submit(pair.channels[0], 1, note(1, 1, 5000))
    pair.home.submit(pair.channels[0], 1, note(1, 2, 10))
    _, call = pair.home.call(pair.channels[0], 1, note(1, 3, 5000))
    pair.home.submit(pair.channels[0], 1, note(1, 4, 2500))
    pair.carry()
    assert [one.number for one in pair.notes()] == [0, 2, 4]
    missed = [effect.gap for effect in pair.away.effects if isinstance(effect, Missed)]
    assert [(gap.first, gap.last) for gap in missed] == [(1, 1), (3, 3)]
    assert "there is no room for an event of" in missed[0].reason
    assert [problem for problem in call.failures.values() if "there is no room" in problem]
    assert not pair.stored.kept()


class Narrow(HeapStorage):
    """Has room for what is announced, but not when it comes."""

    def check(self, size: int) -> None:
        if self.arriving_bytes + size > 1000 and size < 1000:
            raise LimitExceededError("it is full meanwhile")


def test_an_event_for_which_room_runs_out_on_the_way_is_missed_and_the_next_one_arrives() -> None:
    pair = Pair(storage=Narrow())
    pair.home.submit(pair.channels[0], 1, note(1, 0, 5000))
    pair.home.submit(pair.channels[0], 1, note(1, 1, 10))
    pair.carry()
    assert [one.number for one in pair.notes()] == [1]
    assert pair.said.count(FrameKind.CHUNK) < 20, "nobody asks for the rest"
    assert pair.arriving.arriving_bytes == 0


@pytest.mark.parametrize("frames", [1, 2, 12])
def test_a_large_event_that_nobody_wants_any_more_is_not_fetched_to_the_end(frames: int) -> None:
    pair = Pair()
    _, call = pair.home.call(pair.channels[0], 1, note(1, 0, 15_000))
    for _ in range(frames):
        pair.carry_one(back=False)
        pair.carry_one(back=True)
    pair.away.leave(pair.away.open(ChannelId("h:1", "one"), None), "sink")
    pair.carry()
    assert not pair.notes()
    assert not call.waiting
    assert pair.said.count(FrameKind.CHUNK) < 100
    assert not pair.stored.kept()
    assert pair.arriving.arriving_bytes == 0


def test_who_leaves_and_joins_again_while_an_event_is_fetched_hears_what_is_submitted_from_then_on() -> None:
    pair = Pair()
    pair.home.submit(pair.channels[0], 1, note(1, 0, 15_000))
    for _ in range(12):
        pair.carry_one(back=False)
        pair.carry_one(back=True)
    member = pair.away.open(ChannelId("h:1", "one"), None)
    pair.away.leave(member, "sink")
    member.sink = SinkHub("a:1", "block", ("again",))
    pair.away.join(member, "sink", lambda _: None)
    pair.carry()
    pair.home.submit(pair.channels[0], 1, note(1, 1, 15_000))
    pair.carry()
    assert [one.number for one in pair.notes()] == [1]
    assert not pair.stored.kept()


def test_who_announces_and_does_not_send_costs_what_has_arrived_and_holds_up_nobody_else() -> None:
    pair = Pair()
    pair.hostile(FrameKind.LARGE, announce(1, 19_000), pair.number)
    assert pair.arriving.arriving_bytes == 16
    pair.hostile(FrameKind.CHUNK, PART.pack(1, 0) + bytes(100))
    assert pair.arriving.arriving_bytes == 116
    pair.home.submit(pair.channels[1], 1, note(1, 0, 10))
    while pair.carry_one(back=False):
        pass
    assert len(pair.notes(1)) == 1


UNBOUND = 77


@pytest.mark.parametrize(
    ("what", "frames"),
    {
        "twice the same": [(FrameKind.LARGE, announce(1, 5000)), (FrameKind.LARGE, announce(1, 5000))],
        "more than was asked for": [
            (FrameKind.LARGE, announce(1, 5000)),
            (FrameKind.CHUNK, PART.pack(1, 0) + bytes(401)),
        ],
        "beyond the end": [(FrameKind.LARGE, announce(1, 50)), (FrameKind.CHUNK, PART.pack(1, 0) + bytes(51))],
        "a hole": [(FrameKind.LARGE, announce(1, 5000)), (FrameKind.CHUNK, PART.pack(1, 100) + bytes(50))],
        "a part again": [
            (FrameKind.LARGE, announce(1, 5000)),
            (FrameKind.CHUNK, PART.pack(1, 0) + bytes(50)),
            (FrameKind.CHUNK, PART.pack(1, 0) + bytes(50)),
        ],
        "an unknown one": [(FrameKind.LARGE, announce(1, 5000)), (FrameKind.CHUNK, PART.pack(2, 0) + bytes(50))],
        "one that is not its turn": [
            (FrameKind.LARGE, announce(1, 5000)),
            (FrameKind.LARGE, announce(2, 5000)),
            (FrameKind.CHUNK, PART.pack(2, 0) + bytes(50)),
        ],
        "one that has arrived": [
            (FrameKind.LARGE, announce(1, 50)),
            (FrameKind.CHUNK, PART.pack(1, 0) + bytes(50)),
            (FrameKind.CHUNK, PART.pack(1, 0) + bytes(50)),
        ],
        "too large": [(FrameKind.LARGE, announce(1, 19_985))],
        "a call without a number": [
            (FrameKind.LARGE, announce(1, 50, FrameKind.CALLS, call=0)),
            (FrameKind.CHUNK, PART.pack(1, 0) + bytes(50)),
        ],
        "no batch": [(FrameKind.LARGE, announce(1, 50)), (FrameKind.CHUNK, PART.pack(1, 0) + bytes(50))],
        "many": [(FrameKind.LARGE, announce(number, 5000)) for number in range(1, 4200)],
        "runs in between": [
            (FrameKind.LARGE, announce(1, 5000)),
            (FrameKind.RUNS, struct.pack("<IIIIQQ", 1, 0, 1, 1, 0, 1) + b"".join(note(1, 0, 1).buffers())),
        ],
    }.items(),
    ids=lambda found: found if isinstance(found, str) else "",
)
def test_who_breaks_the_rules_for_large_events_is_refused(what: str, frames: list[tuple[FrameKind, bytes]]) -> None:
    pair = Pair()
    pair.home.submit(pair.channels[0], 1, note(1, 0, 1))  # so that the format is known
    pair.carry()
    with pytest.raises(RemoteError):
        pair.hostile_all(frames)
    pair.away.gone("h", f"it sent {what}")
    assert pair.arriving.arriving_bytes == 0


def test_a_large_event_of_a_channel_that_was_not_bound_is_refused() -> None:
    with pytest.raises(MalformedFrameError, match=f"its channel {UNBOUND}, which it has not bound"):
        Pair().hostile(FrameKind.LARGE, announce(1, 5000), UNBOUND)


def test_what_waits_behind_a_large_event_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "HELD_BYTES_MAX", 10_000)
    pair = Pair()
    pair.hostile(FrameKind.LARGE, announce(1, 5000), pair.number)
    gap = encode_message(0, Gap(pair.number, 1, 0, 1, "x" * 900))
    with pytest.raises(LimitExceededError, match=r"frames of \d+ bytes wait for large events of their channels"):
        pair.hostile_all([(FrameKind.CONTROL, gap)] * 12)


def test_what_is_said_of_a_channel_waits_for_its_large_event_and_what_is_said_of_others_does_not() -> None:
    pair = Pair()
    pair.home.submit(pair.channels[0], 1, note(1, 0, 5000))
    pair.carry_one(back=False)
    pair.carry_one(back=False)
    first, second = (member.number for member in pair.channels)
    pair.home.send("a", Gap(first, 1, 1, 3, "dropped"))
    pair.home.send("a", Gap(second, 1, 0, 7, "dropped"))
    pair.home.send("a", Bind(first, pair.channels[0].id, {1: 9}, {1: 9}, 1))
    for _ in range(3):
        pair.carry_one(back=False)
    told = [(effect.member.name, effect.gap.first) for effect in pair.away.effects if isinstance(effect, Missed)]
    assert told == [("two", 0)]
    pair.carry()
    told = [(effect.member.name, effect.gap.first) for effect in pair.away.effects if isinstance(effect, Missed)]
    assert told == [("two", 0), ("one", 1), ("one", 4)]
    assert len(pair.notes()) == 1


@pytest.mark.parametrize(
    "asked",
    [
        (FrameKind.MORE, PART.pack(99, 100)),
        (FrameKind.MORE, PART.pack(1, 0)),
        (FrameKind.MORE, PART.pack(1, 2**40)),
        (FrameKind.RELEASE, HANDLE.pack(99)),
    ],
)
def test_who_asks_for_what_it_was_not_told_of_is_refused(asked: tuple[FrameKind, bytes]) -> None:
    pair = Pair()
    pair.home.submit(pair.channels[0], 1, note(1, 0, 5000))
    with pytest.raises(MalformedFrameError, match="the peer"):
        pair.take(pair.home, "a", Frame(asked[0], 0, memoryview(asked[1])))
    pair.home.gone("a", "it broke a rule")
    assert not pair.stored.kept()


def test_nobody_is_sent_much_at_once_nor_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "MORE_BYTES_MAX", 1000)
    pair = Pair()
    pair.home.submit(pair.channels[0], 1, note(1, 0, 5000))
    (handle,) = pair.stored.kept()
    ask = Frame(FrameKind.MORE, 0, memoryview(PART.pack(handle, 1000)))
    pair.take(pair.home, "a", ask)
    for again in (ask, Frame(FrameKind.MORE, 0, memoryview(PART.pack(handle, 2001)))):
        with pytest.raises(MalformedFrameError, match="may ask for 1000 at once"):
            pair.take(pair.home, "a", again)


def test_who_releases_twice_is_refused() -> None:
    pair = Pair()
    pair.home.submit(pair.channels[0], 1, note(1, 0, 5000))
    (handle,) = pair.stored.kept()
    release = Frame(FrameKind.RELEASE, 0, memoryview(HANDLE.pack(handle)))
    pair.take(pair.home, "a", release)
    assert not pair.stored.kept()
    with pytest.raises(MalformedFrameError, match="or twice"):
        pair.take(pair.home, "a", release)


def test_a_large_event_is_refused_where_events_are_recorded() -> None:
    core = Concentrator("h", "h:1")
    member = core.open(ChannelId("h:1", "one"), None)
    member.sources[1] = 0
    keep_for(member, SinkHub("r:1", journal="j" * 16))
    with pytest.raises(EncodeError, match="limit is 16777216 for what is recorded, as `one` is"):
        core.submit(member, 1, note(1, 0, 2**24))
    core.submit(member, 1, note(1, 0, 2**20))
    assert member.sources[1] == 1


def test_a_hello_tells_how_large_events_may_be() -> None:
    pair = Pair()
    assert pair.home.neighbours["a"].event_bytes_max == 2**25
    assert Pair(peer=None).home.neighbours["a"].event_bytes_max == 2**24
    assert b"event_bytes_max" not in encode_hello(Hello()), "what others compare with the bytes of today"
