"""The part of the golden vectors that is about hubs: greetings, what they tell each other, and how events travel.

The conversation is what two real concentrators say, from hello to farewell: one manages a channel and has its sources,
the other dials it and has a sink.
"""

import struct
from collections.abc import Callable, Iterable, Iterator

import msgspec

from echoic.channels import (
    Call,
    ChannelCounts,
    ChannelEntry,
    ChannelId,
    Concentrator,
    Greeting,
    Message,
    SinkHub,
    messages,
)
from echoic.channels.actions import Steering
from echoic.channels.arrivals import RUN, RUNS_HEAD
from echoic.channels.binding import CREDIT
from echoic.channels.express import encode_reply
from echoic.channels.fanout import cost_of
from echoic.channels.greeting import COUNT, count_frame
from echoic.channels.member import CALL_HEADER, EVENT_HEADER, REPLY
from echoic.channels.messages import decode_message, encode_message
from echoic.channels.runs import SourceRun, submit_runs
from echoic.formats import Format, Registry
from echoic.links.ring import PLACE
from echoic.wire import (
    Batch,
    Frame,
    FrameKind,
    FrameReader,
    Hello,
    decode_hello,
    encode_frame,
    encode_hello,
    parse_batch,
)

__all__ = [
    "Conversation",
    "content_of",
    "conversation",
    "every_message",
    "hello_vector",
    "hub_frames",
    "introduce",
    "malformed_hubs",
    "message_vectors",
    "vectors_of",
]

Vector = dict[str, object]
Events = Callable[[Batch], list[object]]

SESSION = 0x1122334455667788
SOURCE, OTHER_SOURCE = 0x7766554433221100, 9
ID = ChannelId("127.0.0.1:7401", "lab/ticks")
OTHER_ID = ChannelId("127.0.0.1:7401", "lab/more")
MANAGER = Hello(name="manager", hub="00000000000000aa", address="127.0.0.1:7401")
SINK = Hello(name="sink", hub="00000000000000bb", address="127.0.0.1:7402")
PLOTTER = SinkHub(
    "127.0.0.1:7402",
    "drop_oldest",
    ("printer#1", "plotter#2", "plotter#3"),
    SINK.hub,
    3,
    {"plotter#2": True, "plotter#3": False},
)
OBJECT = "127.0.0.1:7401/shared/1-00112233445566778899aabbccddeeff"
HELLO_KEYS = ("version", "minor", "features", "payload_bytes_max", "name", "hub", "address")


def plain(value: object) -> object:
    """Return a value as the vectors spell it: integers as strings, since keys and 64 bits would suffer otherwise."""
    match value:
        case bool() | str() | float() | None:
            return value
        case int():
            return str(value)
        case bytes():
            return value.hex()
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case _:
            return [plain(item) for item in value]  # type: ignore[attr-defined]


def keys_of(hello: Hello) -> Vector:
    keys = {key: getattr(hello, key) for key in HELLO_KEYS}
    return {**keys, "features": list(hello.features)}


def hello_vector(hello: Hello, payload: bytes) -> Vector:
    return {"payload": payload.hex(), **keys_of(hello)}


def content_of(frame: Frame, registry: Registry, events: Events) -> object:
    """Return what a frame between hubs says."""

    def batch(start: int) -> Vector:
        found = parse_batch(payload[start:], registry)
        return {"token": f"{found.format.token:016x}", "events": events(found)}

    def numbers(names: str, layout: struct.Struct, at: int = 0) -> Vector:
        found = zip(names.split(), layout.format.removeprefix("<"), layout.unpack_from(payload, at), strict=True)
        return {name: str(number) if letter == "Q" else number for name, letter, number in found}

    payload = frame.payload
    match frame.kind:
        case FrameKind.HELLO:
            return keys_of(decode_hello(payload))
        case FrameKind.FORMATS:
            formats = [Registry.add_descriptor(registry, data) for data in msgspec.msgpack.decode(payload)]
            return {"tokens": [f"{format.token:016x}" for format in formats]}
        case FrameKind.EVENTS:
            return {**numbers("sequence source", EVENT_HEADER), **batch(EVENT_HEADER.size)}
        case FrameKind.CALLS:
            return {**numbers("sequence source call", CALL_HEADER), **batch(CALL_HEADER.size)}
        case FrameKind.REPLIES:
            told = payload[REPLY.size :]
            return {**numbers("call", REPLY), "failures": msgspec.msgpack.decode(told) if told else {}}
        case FrameKind.RUNS:
            count, _ = RUNS_HEAD.unpack_from(payload)
            starts = [RUNS_HEAD.size + number * RUN.size for number in range(count)]
            runs = [numbers("channel events sequence source", RUN, at) for at in starts]
            return {"runs": runs, **batch(RUNS_HEAD.size + count * RUN.size)}
        case FrameKind.ACKS:
            return numbers("session received", COUNT)
        case FrameKind.CREDITS:
            return numbers("channel bytes", CREDIT)
        case FrameKind.SHARED:
            return numbers("position length", PLACE)
        case _:
            return message_of(bytes(payload))


def message_of(payload: bytes) -> Vector:
    """Return the envelope of a control message."""
    decode_message(payload)
    number, reply, message = msgspec.msgpack.decode(payload, type=tuple[int, bool, dict], strict=True)
    return {"number": str(number), "reply": reply, "message": plain(message)}


class Conversation:
    """Two hubs and what they said so far."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._said: list[tuple[str, str, bytes]] = []
        self._manager = Concentrator(MANAGER.hub, MANAGER.address, MANAGER.name)
        self._other = Concentrator(SINK.hub, SINK.address, SINK.name)
        self._deliveries = []

    def run(self) -> list[tuple[str, str, bytes]]:
        """Let them meet, join, send events in every way, and part; return who said what."""
        self._greet()
        manager, other = self._manager, self._other
        channels = []
        for id, source in ((ID, SOURCE), (OTHER_ID, OTHER_SOURCE)):
            manager.manager.directory.create(id.name, self._batch.format)
            channels.append(manager.open(id, self._batch.format))
            channels[-1].sources[source] = 0
            manager.join(channels[-1], "source", ignore)
        channels[0].pass_over(SOURCE, 5)
        other.ask(MANAGER.address, messages.Describe(ID.name), ignore)
        self._carry()
        for id in (ID, OTHER_ID):
            member = other.open(id, None)
            member.sink = SinkHub(SINK.address, "block", ("printer",))
            other.join(member, "sink", ignore)
            self._carry()
        manager.submit(channels[0], SOURCE, self._batch)
        self._carry()
        manager.call(channels[0], SOURCE, self._batch)
        self._carry()
        other.reply(self._deliveries[-1], {"printer": "no paper"})
        self._carry()
        runs = [SourceRun(channels[0], SOURCE, 1), SourceRun(channels[1], OTHER_SOURCE, 1)]
        assert submit_runs(manager, runs, self._batch)
        self._carry()
        other.tick(1)
        other.leave(other.open(ID, None), "sink")
        self._carry()
        manager.farewell()
        self._carry()
        return self._said

    def _say(self, by: str, data: bytes) -> list[Frame]:
        frames = FrameReader().receive(data)
        for frame in frames:
            encoded = b"".join(encode_frame(frame.kind, [frame.payload], channel=frame.channel))
            self._said.append((by, frame.kind.name, encoded))
        return frames

    def _greet(self) -> None:
        dialler = Greeting(SINK, self._other.known, dialled=True, fresh=SESSION, address=MANAGER.address)
        acceptor = Greeting(MANAGER, self._manager.known, dialled=False, fresh=1)
        hello = self._say("dialler", dialler.opening)
        for frame in self._say("acceptor", acceptor.receive(hello[0])):
            answer = dialler.receive(frame)
        acceptor.receive(self._say("dialler", answer)[0])
        self._other.meet(dialler)
        self._manager.meet(acceptor)
        self._carry()

    def _carry(self) -> None:
        sides = (("dialler", self._other, self._manager), ("acceptor", self._manager, self._other))
        while self._manager.stirred or self._other.stirred:
            for by, origin, target in sides:
                outbox = origin.neighbours[target.id].session.outbox
                data, _ = b"".join(outbox), outbox.clear()
                origin.stirred.clear()
                for frame in self._say(by, data):
                    self._deliveries += target.receive(origin.id, frame)


def introduce(hub: Concentrator, peer: Concentrator, format: Format) -> None:
    """Let a hub know a peer, which has bound its channel 1 and described a format, and a call that is not answered."""
    acceptor = Greeting(Hello(hub=hub.id), hub.known, dialled=False, fresh=1)
    hello = b"".join(encode_frame(FrameKind.HELLO, [encode_hello(Hello(hub=peer.id, address=peer.address))]))
    for data in (hello, count_frame(SESSION, 0)):
        acceptor.receive(FrameReader().receive(data)[0])
    hub.meet(acceptor)
    member = hub.open(ID, format)
    member.sink = SinkHub(hub.address)
    hub.neighbours[peer.id].registry.add(format)
    hub.calls[1] = Call({peer.id: SinkHub(peer.address)})
    bind = encode_message(0, messages.Bind(1, str(ID), {}))
    hub.receive(peer.id, Frame(FrameKind.CONTROL, 0, memoryview(bind)))


def ignore(reply: Message) -> None:
    """Take an answer that the vectors show anyway."""


def conversation(batch: Batch, events: Events) -> list[Vector]:
    """Return what two hubs say to each other, in order."""
    return vectors_of(Conversation(batch), events)


def vectors_of(conversation: Conversation, events: Events) -> list[Vector]:
    """Let two hubs talk, and return what they say."""
    registry = Registry()
    return [frame_vector(data, registry, events, by=by) for by, _, data in conversation.run()]


def frame_vector(data: bytes, registry: Registry, events: Events, **about: str) -> Vector:
    (frame,) = FrameReader().receive(data)
    content = content_of(frame, registry, events)
    return {**about, "kind": int(frame.kind), "channel": frame.channel, "bytes": data.hex(), "content": content}


def hub_frames(batch: Batch, events: Events) -> list[Vector]:
    """Return frames that the conversation does not have."""
    registry = Registry()
    registry.add(batch.format)
    event_bytes = EVENT_HEADER.size + sum(memoryview(piece).nbytes for piece in batch.buffers())
    granted = CREDIT.pack(1, cost_of(event_bytes))
    place = PLACE.pack(2**26, 100_000)
    found = {
        "a reply without failures": encode_reply(1, 2**40, {}),
        "the credit for one frame of events": b"".join(encode_frame(FrameKind.CREDITS, [granted])),
        "a frame at the second beginning of a ring": b"".join(encode_frame(FrameKind.SHARED, [place])),
        "a count with a checksum": b"".join(
            encode_frame(FrameKind.ACKS, [COUNT.pack(SESSION, 2**64 - 1)], checked=True)
        ),
    }
    return [frame_vector(data, registry, events, name=name) for name, data in found.items()]


def every_message() -> Iterator[tuple[int, bool, Message]]:
    """Yield a message of each type, but for those about derived channels, as a request, reply or notice."""
    sink, id = PLOTTER, str(ID)
    yield 1, False, messages.Describe("lab/ticks")
    yield 1, True, messages.Described("lab/ticks", b"\x94\x01", ["127.0.0.1:7401"], [sink], (), b"\x94\x01")
    yield 2, False, messages.Join("lab/ticks", "sink", sink)
    yield 2, True, messages.Joined([sink])
    yield 3, False, messages.Leave("lab/ticks", "source", "127.0.0.1:7402")
    yield 4, False, messages.Attach(id, sink)
    yield 5, False, messages.Detach(id, "127.0.0.1:7402", 3)
    yield 0, False, messages.Bind(7, id, {SOURCE: 2**40, OTHER_SOURCE: 0}, {SOURCE: 5}, 3)
    yield 0, False, messages.Gap(7, SOURCE, 5, 2**40 - 1, "the sinks here do not keep up (drop_oldest)")
    yield 0, False, messages.Cut(7, "the sinks here do not keep up (disconnect)", asked=False)
    yield 6, False, messages.Register("lab/ticks", id)
    yield 7, False, messages.Unregister("lab/ticks", id)
    yield 8, False, messages.Resolve("lab/ticks")
    yield 8, True, messages.Resolved(id)
    yield 9, False, messages.Browse()
    yield 9, True, messages.Listing([ChannelEntry("lab/ticks", id, "Tick", 1, 2, "lab/more")])
    yield 2**32, False, messages.Report()
    counts = ChannelCounts("lab/ticks", id, "Tick", 1, 2, 3, 4, 5, 6, 7, 8, 9, 2**33)
    yield 2**32, True, messages.Reported("manager", [counts])
    yield 10, False, messages.Watch(OBJECT, b"\x94\x01")
    yield 10, True, messages.Update(OBJECT, 4, b"\x05\0\0\0\0\0\0\0")
    yield 11, False, messages.Write(OBJECT, 12, 0x8877665544332211, ("layer", "scale"), b"\x06\0\0\0\0\0\0\0")
    yield 11, True, messages.Update(OBJECT, 5, b"\x06\0\0\0\0\0\0\0", 12)
    yield 0, False, messages.Update(OBJECT, 5, b"", 12, ended=True)
    yield 12, False, messages.Unwatch(OBJECT)
    yield 13, False, messages.Steer("lab/ticks", "tune", {"rate": 0.5, "count": -7, "mode": "fast", "loud": False})
    yield 14, False, messages.Steer(id, "stop")
    steered = Steering(MANAGER.address, SOURCE, "", {"rate": 0.25, "count": 2**40}), Steering("127.0.0.1:7403", 0, "no")
    yield 13, True, messages.Steered(steered)
    yield 0, False, messages.Farewell()
    yield 3, True, messages.Done()
    yield 8, True, messages.Refused("ChannelNotFoundError", "channel `lab/ticks` not found")


def message_vectors(said: Iterable[tuple[int, bool, Message]]) -> list[Vector]:
    payloads = [encode_message(number, message, reply=reply) for number, reply, message in said]
    return [{"payload": payload.hex(), **message_of(payload)} for payload in payloads]


def malformed_hubs(batch: Batch) -> list[Vector]:
    """Say in a frame between hubs what none may say."""
    data = b"".join(batch.buffers())
    run = RUN.pack(1, batch.count, 0, SOURCE)

    def message(*parts: object) -> bytes:
        return msgspec.msgpack.encode(parts)

    found = [
        (FrameKind.EVENTS, "the header of events is cut", bytes(15)),
        (FrameKind.EVENTS, "there is no batch behind the header", bytes(16)),
        (FrameKind.CALLS, "the header of a call is cut", bytes(23)),
        (FrameKind.REPLIES, "a reply is too short", bytes(7)),
        (FrameKind.REPLIES, "failures that are no map", REPLY.pack(1) + msgspec.msgpack.encode(["printer"])),
        (FrameKind.REPLIES, "a failure that is no text", REPLY.pack(1) + msgspec.msgpack.encode({"printer": 1})),
        (FrameKind.REPLIES, "bytes behind the failures", REPLY.pack(1) + msgspec.msgpack.encode({}) + b"\0"),
        (FrameKind.ACKS, "a count is too short", bytes(15)),
        (FrameKind.ACKS, "a count is too long", bytes(17)),
        (FrameKind.CREDITS, "a credit is too short", bytes(4)),
        (FrameKind.RUNS, "the head of runs is cut", bytes(7)),
        (FrameKind.RUNS, "the reserved bytes of runs are not 0", RUNS_HEAD.pack(1, 1) + run + data),
        (FrameKind.RUNS, "the table of runs is cut", RUNS_HEAD.pack(2**32 - 1, 0) + run + data),
        (FrameKind.RUNS, "runs that do not make up the batch", RUNS_HEAD.pack(2, 0) + run + run + data),
        (
            FrameKind.RUNS,
            "a run without events",
            RUNS_HEAD.pack(2, 0) + run + RUN.pack(2, 0, 0, OTHER_SOURCE) + data,
        ),
        (FrameKind.CONTROL, "an envelope that is too short", message(1, False)),
        (FrameKind.CONTROL, "a number that is none", message("1", False, {"type": "Browse"})),
        (FrameKind.CONTROL, "a flag that is none", message(1, 0, {"type": "Browse"})),
        (FrameKind.CONTROL, "a message without a type", message(1, False, {"name": "lab/ticks"})),
        (FrameKind.CONTROL, "an unknown type", message(1, False, {"type": "Dance"})),
        (FrameKind.CONTROL, "a field is missing", message(1, False, {"type": "Describe"})),
        (FrameKind.CONTROL, "a field of another type", message(1, False, {"type": "Describe", "name": 7})),
        (FrameKind.CONTROL, "an unknown role", message(1, False, join_of("spy", "block"))),
        (FrameKind.CONTROL, "an unknown rule for slow sinks", message(1, False, join_of("sink", "never"))),
        (
            FrameKind.CONTROL,
            "values of a shared object that are a text",
            message(0, False, {"type": "Update", "object": OBJECT, "version": 1, "values": "5"}),
        ),
        (
            FrameKind.CONTROL,
            "a change of a shared object that names a number as its field",
            message(
                1, False, {"type": "Write", "object": OBJECT, "number": 1, "token": 2, "fields": [7], "values": b""}
            ),
        ),
        (
            FrameKind.CONTROL,
            "a request to sources with a list among its values",
            message(1, False, {"type": "Steer", "channel": "c", "action": "tune", "values": {"rate": [1]}}),
        ),
        (
            FrameKind.CONTROL,
            "an answer of a source that names none",
            message(1, True, {"type": "Steered", "answers": [{"hub": "127.0.0.1:7401"}]}),
        ),
        (FrameKind.CONTROL, "bytes behind the envelope", message(1, False, {"type": "Browse"}) + b"\0"),
    ]
    return [{"why": why, "kind": int(kind), "payload": payload.hex()} for kind, why, payload in found]


def join_of(role: str, slow: str) -> dict[str, object]:
    return {"type": "Join", "name": "lab/ticks", "role": role, "hub": {"address": "127.0.0.1:7402", "slow": slow}}
