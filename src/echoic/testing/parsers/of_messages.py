"""Parsers of messages: of hubs, groups, writers, replicas and pages, and of the parcels in which modulators travel."""

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Final

import msgspec

from echoic.channels import messages
from echoic.channels.express import decode_reply
from echoic.eager.modulator import Modulator
from echoic.eager.parcel import pack, unpack
from echoic.errors import DeliveryError, EchoicError
from echoic.formats import Format, event
from echoic.groups import messages as group_messages
from echoic.groups.agreement import messages as agreement
from echoic.groups.roster import Roster, Seat, decode_roster, encode_roster
from echoic.groups.standing import decode_standing, decode_view
from echoic.groups.stream import Stream, encode_description, encode_pack
from echoic.hub.intake_messages import Answer, CarriedPart, answer_in, batch_of_body, bodies_of, encode_parts, parts_of
from echoic.testing.channel_fuzzer import ChannelFuzzer
from echoic.testing.parsers.parser import Target, load_place
from echoic.testing.parsers.repairs import twist_json, twist_msgpack
from echoic.testing.samples import sample_events
from echoic.trust.keys import SigningKey
from echoic.wire import Batch, encoder_of

__all__ = ["AGREEMENT", "CONTROL", "GROUPS", "INTAKE", "PACKS", "PARCELS", "PORTIONS", "VIEWER"]

Parse = Callable[[bytes], object]


def _every(parses: tuple[Parse, ...], data: bytes) -> None:
    """Let each parser look at the same bytes; those that refuse them do so in a declared way."""
    for parse in parses:
        try:
            parse(data)
        except EchoicError:
            continue


def _feed_control(data: bytes) -> None:
    decode_reply(data)
    envelope = messages.decode_message(data)
    messages.encode_message(envelope.number, envelope.message, reply=envelope.reply)


def _control_seeds() -> Iterator[bytes]:
    return iter(ChannelFuzzer(Random(1)).control_samples)


GROUP_PARSES: Final[tuple[Parse, ...]] = (
    group_messages.decode_message,
    group_messages.decode_introduction,
    decode_roster,
    decode_view,
    decode_standing,
)


def _feed_groups(data: bytes) -> None:
    _every(GROUP_PARSES, data)


def _group_seeds() -> Iterator[bytes]:
    yield encode_roster(Roster((Seat("a", 1, "a:1", voting=True), Seat("b", 0, "b:1", voting=False))))
    yield msgspec.msgpack.encode(("a", "b"))
    yield group_messages.encode_message(group_messages.Resign(1, 2))
    yield group_messages.encode_message(group_messages.Ask(1, "c", "c:1", admit=True))
    yield group_messages.encode_message(group_messages.Bye(1))


def _feed_packs(data: bytes) -> None:
    """Deliver packs one after the other; what is known then is enough to go on elsewhere."""
    try:
        packs = msgspec.msgpack.decode(data, type=list[bytes])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        packs = [data]
    stream = Stream()
    for each in packs:
        try:
            batch = stream.deliver(each)
            if batch is not None:
                batch.events()
        except EchoicError:
            continue
    Stream().restore(stream.summary())
    Stream().restore(packs[-1] if packs else b"")


def _pack_seeds() -> Iterator[bytes]:
    for events in sample_events():
        format, stream = Batch.of(events).format, Stream()
        records = [b"".join(encoder_of(format).encode((each,))[0]) for each in events]
        packs = [encode_description(format), encode_pack(format, records)]
        stream.deliver(packs[0])
        yield msgspec.msgpack.encode([*packs, stream.summary()])


AGREEMENT_PARSES: Final[tuple[Parse, ...]] = (
    agreement.decode_pack,
    agreement.decode_ack,
    agreement.decode_control,
)


def _feed_agreement(data: bytes) -> None:
    _every(AGREEMENT_PARSES, data)


def _agreement_seeds() -> Iterator[bytes]:
    yield agreement.encode_pack(1, 2, 3) + b"payload"
    yield agreement.encode_ack(1, 2)
    yield agreement.encode_control(agreement.Done(1, (1, 2), 3, 4))


def _twist_behind_first(data: bytes, draw: Random) -> bytes:
    return data[:1] + twist_msgpack(data[1:], draw)


def _feed_intake(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    answer_in(DeliveryError({"sink": f"intake:{text}"}))
    _every((parts_of, _events_of_body), data)


def _events_of_body(data: bytes) -> None:
    batch_of_body(data).events()


def _intake_seeds() -> Iterator[bytes]:
    for events in sample_events():
        yield from bodies_of(Batch.of(events))
    yield encode_parts([CarriedPart(1, 2, 1, (b"body",)), CarriedPart(2, 0, 3)])
    yield Answer("busy", "it is published", 3).text().removeprefix("intake:").encode()


def _feed_portions(data: bytes) -> None:
    middle = len(data) // 2
    decode = load_place("echoic.replicas.portions:decode_portions")
    for portion in decode([data[:middle], data[middle:]]):
        portion.batch.events()


def _portion_seeds() -> Iterator[bytes]:
    portion, encode = (
        load_place("echoic.replicas.portions:Portion"),
        load_place("echoic.replicas.portions:encode_portions"),
    )
    for events in sample_events():
        batch = Batch.of(events)
        yield from encode([portion(1, (("a", batch.count),), batch)])


@event
class Reading:
    """What the sample modulator is about."""

    at: float
    value: float


class Halving(Modulator):
    """A small modulator."""

    limit: float = 0.5

    def enqueue(self, event: object) -> None:
        """Let pass what is large."""
        if getattr(event, "value", 0.0) > self.limit:
            super().enqueue(event)


@cache
def _key() -> SigningKey:
    return SigningKey.generate()


def _parcel_seeds() -> Iterator[bytes]:
    signed, _ = pack(Halving(), "readings", Format.of(Reading), _key())
    yield signed


def _resign(data: bytes, draw: Random) -> bytes:
    """Return a parcel that was changed inside, signed again."""
    try:
        parcel, *_ = msgspec.msgpack.decode(data, type=list)
        parcel = twist_msgpack(msgspec.convert(parcel, bytes), draw)  # mutated, it may be anything
        domain = load_place("echoic.eager.parcel:DOMAIN")
        return msgspec.msgpack.encode([parcel, _key().public, _key().sign(domain + parcel)])
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return data


def _feed_viewer(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    load_place("echoic.viewer.messages:number_of")(text)
    load_place("echoic.viewer.messages:decode_request")(text)


def _viewer_seeds() -> Iterator[bytes]:
    yield b'{"type":"Look","number":1,"page":"channels"}'
    yield b'{"type":"Open","number":2,"watch":1,"channel":"trades","view":{"type":"Chart","fields":["price"]}}'
    yield b'{"type":"Tune","number":3,"watch":1,"values":{"low":1.5,"n":2}}'
    yield b'{"type":"Steer","number":4,"channel":"trades","values":{"low":1}}'
    yield b'{"type":"Check","number":5,"channel":"trades","code":"{ return 1; }","params":{"low":1}}'


CONTROL: Final = Target(_feed_control, _control_seeds, twist_msgpack)
GROUPS: Final = Target(_feed_groups, _group_seeds, twist_msgpack)
PACKS: Final = Target(_feed_packs, _pack_seeds, twist_msgpack)
AGREEMENT: Final = Target(_feed_agreement, _agreement_seeds, _twist_behind_first)
INTAKE: Final = Target(_feed_intake, _intake_seeds, twist_msgpack)
PORTIONS: Final = Target(_feed_portions, _portion_seeds)
PARCELS: Final = Target(unpack, _parcel_seeds, _resign)
VIEWER: Final = Target(_feed_viewer, _viewer_seeds, twist_json)
