"""The part of the golden vectors that is about modulators: parcels, and a sink that goes over to another channel.

In the conversation the acceptor manages a channel and has its source; the dialler hears all of it, then ships a
modulator and goes over to what that makes of the events, and back again. Then it does the same with a channel that has
no source yet; when one comes, it learns from the manager's book that the sink has gone over. The keys are drawn from
nothing, so that the signatures are the same every time.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, cast

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from echoic.channels import ChannelId, Compile, Member, Message, SinkHub, compiled, derive, messages
from echoic.channels.installing import send_share
from echoic.channels.messages import Recipe, Step
from echoic.eager import Limits, Services, SharedHost, SharedReference, SigningKey, unpack
from echoic.eager.environment import Environment
from echoic.eager.parcel import DOMAIN, Parcel, Signed, identity, sign
from echoic.formats import NATIVE, Format
from echoic.wire import Batch, FrameKind
from tests.golden import hubs

__all__ = ["malformed_messages", "malformed_parcels", "modulator_messages", "parcel_vectors", "turning_conversation"]

HANDLE: Final = "printer#1"
SUCCESSOR: Final = "printer#2"
TEXT: Final = """from __future__ import annotations
from echoic import Modulator


class Below(Modulator):
    limit: int = 0

    def enqueue(self, event):
        if event.size < self.limit:
            super().enqueue(event)
"""


@cache
def key() -> SigningKey:
    """Return a key that everybody knows."""
    return SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


@cache
def limit() -> Format:
    """Return the type of the state of the modulator in these vectors, which happens to be one of C's."""
    return Format.of(msgspec.defstruct("Below", [("limit", int, 0)], module=__name__)).on(NATIVE)


def below(parent: str = "lab/ticks") -> Parcel:
    """Return a small parcel."""
    return Parcel(parent, "Below", TEXT, limit().descriptor, (5).to_bytes(8, "little"))


def full() -> Parcel:
    """Return a parcel with all fields set."""
    record = (7).to_bytes(8, "little")
    shared = SharedReference("box", hubs.OBJECT, "Box", limit().descriptor, record, 2**40)
    return msgspec.structs.replace(
        below("lab/wind"),
        output=limit().descriptor,
        requires=("clock", "grid"),
        period_ns=10**9,
        buffered=True,
        shared=(shared,),
    )


def parcel_vectors() -> list[hubs.Vector]:
    """Return parcels as they travel, and what is in them."""
    found = {"the one of the conversation": below(), "all fields": full()}
    return [{"name": name, **parcel_vector(sign(parcel, key()))} for name, parcel in found.items()]


def parcel_vector(data: bytes) -> hubs.Vector:
    """Return a parcel, and what is in it."""
    parcel, signer = unpack(data)
    inside = {field: hubs.plain(value) for field, value in msgspec.structs.asdict(parcel).items() if field != "shared"}
    shared = [hubs.plain(msgspec.structs.astuple(each)) for each in parcel.shared]
    signed = msgspec.msgpack.decode(data, type=Signed)
    told = {"key": signer, "signature": signed.signature.hex()}
    return {"bytes": data.hex(), **told, "parcel": {**inside, "shared": shared}}


def malformed_parcels() -> list[hubs.Vector]:
    """Say in a parcel what none may say; all but the first are signed."""
    whole = sign(below(), key())

    def signed(why: str, **changes: object) -> hubs.Vector:
        return {"why": why, "bytes": sign(msgspec.structs.replace(below(), **changes), key()).hex()}

    def made(why: str, inside: bytes, public: str = key().public) -> hubs.Vector:
        return {"why": why, "bytes": msgspec.msgpack.encode([inside, public, key().sign(DOMAIN + inside)]).hex()}

    inside = msgspec.msgpack.encode(below())
    bare = msgspec.msgpack.encode([inside, key().public, key().sign(inside)])
    return [
        {"why": "the text was changed", "bytes": whole.replace(b"<", b">", 1).hex()},
        {"why": "the signature is not one for parcels", "bytes": bare.hex()},
        {"why": "bytes behind the array", "bytes": (whole + b"\0").hex()},
        made("another spelling of the key", inside, key().public + "="),
        made("an element is missing", msgspec.msgpack.encode(msgspec.structs.astuple(below())[:2])),
        made("an element too many", msgspec.msgpack.encode([*msgspec.structs.astuple(below()), 1])),
        signed("a class that is no name", class_name="a b"),
        signed("a service that is no name", requires=("os.path",)),
        signed("a state without a type", state_format=b""),
        signed("a state that is cut", state=bytes(7)),
        signed("a type that is none", output=b"\x94\x01"),
        signed("a period before time", period_ns=-1),
        signed("one attribute twice", shared=full().shared * 2),
        signed("a shared object without an id", shared=(msgspec.structs.replace(full().shared[0], id=""),)),
    ]


def recipe(parent: str = "lab/ticks") -> Recipe:
    """Return what the conversation derives."""
    parcel = below(parent)
    told = identity(parcel, msgspec.msgpack.encode([5]))
    return Recipe(parcel.parent, "", "modulator", parcel=sign(parcel, key()), identity=told)


class TurningConversation(hubs.Conversation):
    """Two hubs, one of which ships modulators, and lets its sinks go over to them and back."""

    def run(self) -> list[tuple[str, str, bytes]]:
        """Let one hear everything, then what a modulator passes, then everything again; return who said what.

        Of another channel it hears what a modulator passes before there is a source.
        """
        self._greet()
        for id in (hubs.ID, hubs.OTHER_ID):
            self._manager.manager.directory.create(id.name, self._batch.format)
        parent = self._source(hubs.ID, hubs.SOURCE)
        heard = self._hear(hubs.ID, (), HANDLE)
        self._submit(parent, hubs.SOURCE)
        passed = self._ship(heard, SUCCESSOR)
        self._submit(parent, hubs.SOURCE)
        self._hear(hubs.ID, (), "printer#3", passed)
        self._submit(parent, hubs.SOURCE)
        self._ship(self._hear(hubs.OTHER_ID, (), "printer#4"), "printer#5")
        self._submit(self._source(hubs.OTHER_ID, hubs.OTHER_SOURCE), hubs.OTHER_SOURCE)
        return self._said

    def _source(self, id: ChannelId, source: int) -> Member:
        """Take part in a channel with a source."""
        parent = self._manager.open(id, self._batch.format)
        parent.sources[source] = 0
        self._manager.join(parent, "source", hubs.ignore)
        self._carry()
        return parent

    def _ship(self, heard: Member, name: str) -> Member:
        """Leave a channel for what a modulator makes of it."""
        replies: list[Message] = []
        order = messages.Derive(Step("", "", recipe(heard.name)))
        self._other.ask(hubs.MANAGER.address, order, replies.append)
        self._carry()
        (reply,) = replies
        assert isinstance(reply, messages.DerivedAs)
        return self._hear(ChannelId(hubs.MANAGER.address, reply.steps[0].name), reply.steps, name, heard)

    def _hear(self, id: ChannelId, lineage: tuple[Step, ...], name: str, former: Member | None = None) -> Member:
        """Subscribe to a channel, and leave another one for it."""
        other = self._other
        member = other.open(id, self._batch.format)
        member.lineage, member.sink = lineage, SinkHub(hubs.SINK.address, "block", (name,))
        if former is None or former.sink is None:
            other.join(member, "sink", hubs.ignore)
            self._carry()
            return member
        (handle,) = former.sink.sinks
        member.turns.expect(name)
        other.join(member, "sink", hubs.ignore, instead=former.name, handle=handle, successor=name)
        self._carry()
        other.leave(former, "sink")
        former.turns.forget(handle)
        self._carry()
        return member

    def _submit(self, parent: Member, source: int) -> None:
        shares = derive(parent, source, self._batch, lambda: 0)
        self._manager.submit(parent, source, self._batch)
        for share in shares:
            send_share(self._manager, share)
        self._carry()

    def _carry(self) -> None:
        super()._carry()
        while self._manager.effects:
            effect = self._manager.effects.pop()
            if isinstance(effect, Compile):
                compiled(self._manager, effect.derivation, self._employed(effect.derivation.step.recipe.parcel))
        super()._carry()

    def _employed(self, data: bytes) -> Environment:
        parcel, signer = unpack(data)
        return Environment(
            parcel,
            key=signer,
            events=self._batch.format,
            services=lambda _: Services({}),
            shared=cast("SharedHost", None),
            limits=Limits(),
        )


def turning_conversation(batch: Batch, events: hubs.Events) -> list[hubs.Vector]:
    """Return what two hubs say to each other about a modulator and a sink that goes over to it, in order."""
    return hubs.vectors_of(TurningConversation(batch), events)


def modulator_messages() -> Iterator[tuple[int, bool, Message]]:
    """Yield the messages of sinks that go over, with all fields set."""
    id, sink = "echoic://127.0.0.1:7401/lab/few", hubs.PLOTTER
    step = Step("lab/few", "lab/few", recipe(), input=b"\x94\x01", context=b"\x94\x01")
    yield 19, False, messages.Join("lab/few", "sink", sink, (step,), "lab/ticks", HANDLE, SUCCESSOR)
    yield 19, True, messages.Joined([], (), (hubs.MANAGER.hub,))
    yield 20, False, messages.Attach(id, sink, (step,), str(hubs.ID), HANDLE, SUCCESSOR)
    yield 20, True, messages.Turned(hubs.MANAGER.hub)
    yield 0, False, messages.Turn(7, HANDLE, {hubs.SOURCE: 2**40, hubs.OTHER_SOURCE: 0}, taken=True)


def malformed_messages() -> list[hubs.Vector]:
    """Say about modulators what none may say."""

    def said(why: str, kind: str, **fields: object) -> hubs.Vector:
        payload = msgspec.msgpack.encode([1, False, {"type": kind, **fields}])
        return {"why": why, "kind": int(FrameKind.CONTROL), "payload": payload.hex()}

    derived = {"parent": "lab/ticks", "code": "", "spelling": "modulator", "parcel": "signed"}
    sink = {"address": "127.0.0.1:7402", "turns": {HANDLE: 1}}
    return [
        said("a parcel that is a text", "Derive", step={"name": "", "group": "", "recipe": derived}),
        said("a turn without a handle", "Turn", number=1, positions={}),
        said("a turn of a source that is a text", "Turn", number=1, handle=HANDLE, positions={"7": 1}),
        said("a turn that is neither taken nor not", "Turn", number=1, handle=HANDLE, positions={}, taken=0),
        said("a hub that is a number", "Turned", hub=7),
        said("a sink that has neither come nor left", "Attach", channel=str(hubs.ID), sink=sink),
        said(
            "a successor that is a number", "Join", name="lab/ticks", role="sink", hub={"address": "a:1"}, successor=2
        ),
    ]
