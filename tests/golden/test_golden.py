"""The committed vectors against the program, in both directions."""

import json
import math
import shutil
import subprocess
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from echoic.channels import Concentrator, Message
from echoic.channels.messages import Derive, Recipe, Step, decode_message, encode_message
from echoic.eager import unpack
from echoic.errors import (
    EchoicError,
    LimitExceededError,
    MalformedBatchError,
    MalformedFormatError,
    MalformedFrameError,
    ProtocolVersionError,
    RemoteError,
)
from echoic.formats import Format, Registry
from echoic.groups import messages as group_messages
from echoic.groups.stream import Stream
from echoic.wire import Frame, FrameKind, FrameReader, decode_hello, parse_batch
from tests.golden import groups, hubs, large, make, modulators

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(make.GOLDEN.read_text(encoding="utf-8"))


@pytest.fixture
def registry() -> Registry:
    known = Registry()
    for vector in VECTORS["formats"]:
        known.add_descriptor(bytes.fromhex(vector["descriptor"]))
    return known


def named(kind: str) -> list[Any]:
    return [pytest.param(vector, id=vector.get("name") or vector.get("why") or "") for vector in VECTORS[kind]]


def test_the_program_still_writes_the_committed_vectors() -> None:
    assert make.text() == make.GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("vector", named("frames"))
def test_a_golden_frame_is_read_as_described(vector: dict[str, Any]) -> None:
    (frame,) = FrameReader(checked=vector["checked"]).receive(bytes.fromhex(vector["bytes"]))
    assert (frame.kind, frame.channel, frame.payload.hex()) == (vector["kind"], vector["channel"], vector["payload"])


def test_the_golden_frames_are_read_as_one_stream_in_pieces_of_one_byte() -> None:
    reader = FrameReader()
    stream = bytes.fromhex("".join(vector["bytes"] for vector in VECTORS["frames"]))
    frames = [frame for at in range(len(stream)) for frame in reader.receive(stream[at : at + 1])]
    assert [frame.payload.hex() for frame in frames] == [vector["payload"] for vector in VECTORS["frames"]]


@pytest.mark.parametrize("vector", VECTORS["hellos"])
def test_a_golden_hello_is_read_as_described(vector: dict[str, Any]) -> None:
    hello = decode_hello(bytes.fromhex(vector["payload"]))
    assert hubs.hello_vector(hello, bytes.fromhex(vector["payload"])) == vector


@pytest.mark.parametrize("vector", named("malformed_hellos"))
def test_a_malformed_golden_hello_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises((MalformedFrameError, ProtocolVersionError)):
        decode_hello(bytes.fromhex(vector["payload"]))


@pytest.mark.parametrize(
    "vector",
    [
        *VECTORS["conversation"],
        *VECTORS["hub_frames"],
        *VECTORS["derived_conversation"],
        *VECTORS["turning_conversation"],
    ],
)
def test_a_golden_frame_between_hubs_is_read_as_described(vector: dict[str, Any], registry: Registry) -> None:
    (frame,) = FrameReader().receive(bytes.fromhex(vector["bytes"]))
    assert (frame.kind, frame.channel) == (vector["kind"], vector["channel"])
    assert hubs.content_of(frame, registry, make.events_of) == vector["content"]


def test_the_golden_frames_between_hubs_are_of_every_kind_in_use() -> None:
    found = (*VECTORS["conversation"], *VECTORS["hub_frames"], *VECTORS["large_frames"])
    kinds = {vector["kind"] for vector in found}
    unused = {FrameKind.MEMBERSHIP, FrameKind.PARAMETERS, FrameKind.CODE, FrameKind.VALUES}
    assert kinds == set(FrameKind) - unused - {FrameKind.GROUP, FrameKind.TOOL}  # on connections of their own


@pytest.mark.parametrize("vector", named("large_frames"))
def test_a_golden_frame_about_a_large_event_is_read_as_described(vector: dict[str, Any]) -> None:
    (frame,) = FrameReader().receive(bytes.fromhex(vector["bytes"]))
    assert (frame.kind, frame.channel) == (vector["kind"], vector["channel"])
    assert large.content_of(frame) == vector["content"]


@pytest.mark.parametrize("number", range(len(VECTORS["group_messages"])))
def test_a_golden_message_between_members_of_a_group_is_read_and_written_as_described(number: int) -> None:
    vector, message = VECTORS["group_messages"][number], groups.every_message()[number]
    assert type(message).__name__ == vector["type"]
    assert group_messages.decode_message(bytes.fromhex(vector["payload"])) == message
    assert group_messages.encode_message(message).hex() == vector["payload"]


def test_the_golden_messages_between_members_are_of_every_type() -> None:
    types = {vector["type"] for vector in VECTORS["group_messages"]}
    assert types == {kind.__name__ for kind in typing.get_args(group_messages.Message)}


@pytest.mark.parametrize("vector", VECTORS["malformed_group_messages"], ids=lambda vector: vector["why"])
def test_a_malformed_golden_message_between_members_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(MalformedFrameError):
        group_messages.decode_message(bytes.fromhex(vector["payload"]))
    with pytest.raises(MalformedFrameError):
        group_messages.decode_introduction(bytes.fromhex(vector["payload"]))


def test_golden_packs_are_read_as_the_events_they_were_made_of() -> None:
    stream = Stream()
    description, batch = (bytes.fromhex(vector["payload"]) for vector in VECTORS["packs"])
    assert stream.deliver(description) is None
    read = stream.deliver(batch)
    assert read is not None
    assert stream.sequence == read.count
    assert make.events_of(read) == make.events_of(make.samples()["ticks"])


@pytest.mark.parametrize("vector", VECTORS["messages"], ids=lambda vector: vector["message"]["type"])
def test_a_golden_message_is_read_and_written_as_described(vector: dict[str, Any]) -> None:
    payload = bytes.fromhex(vector["payload"])
    envelope = decode_message(payload)
    assert {"payload": vector["payload"], **hubs.message_of(payload)} == vector
    assert encode_message(envelope.number, envelope.message, reply=envelope.reply) == payload


def test_the_golden_messages_are_of_every_type() -> None:
    types = {vector["message"]["type"] for vector in VECTORS["messages"]}
    assert types == {kind.__name__ for kind in typing.get_args(Message)}


@pytest.mark.parametrize("vector", VECTORS["messages"], ids=lambda vector: vector["message"]["type"])
def test_a_golden_message_without_its_optional_fields_is_understood(vector: dict[str, Any]) -> None:
    number, reply, fields = msgspec.msgpack.decode(bytes.fromhex(vector["payload"]), strict=False)
    full = decode_message(bytes.fromhex(vector["payload"])).message
    needed = [field.name for field in msgspec.structs.fields(full) if field.required]
    short = {"type": fields["type"], **{name: fields[name] for name in needed}}
    understood = decode_message(msgspec.msgpack.encode([number, reply, short])).message
    assert understood == type(full)(**{name: getattr(full, name) for name in needed})


def test_a_recipe_needs_only_a_parent_and_code() -> None:
    step = {"name": "", "group": "", "recipe": {"parent": "lab/ticks", "code": "1"}}
    message = decode_message(msgspec.msgpack.encode([1, False, {"type": "Derive", "step": step}])).message
    recipe = Recipe("lab/ticks", "1", "ecode", b"", b"", 0, (), "source")
    assert message == Derive(Step("", "", recipe, b"", 0, 0, b""), share=True)


def test_peers_that_know_nothing_of_derived_channels_are_understood() -> None:
    def without(frame: Frame) -> Frame:
        """Return a message as such a peer writes it."""
        if frame.kind is not FrameKind.CONTROL:
            return frame
        number, reply, fields = msgspec.msgpack.decode(frame.payload, strict=False)
        spoken = elder(fields)
        return Frame(frame.kind, frame.channel, memoryview(msgspec.msgpack.encode([number, reply, spoken])))

    def elder(part: object) -> object:
        if isinstance(part, list):
            return [elder(one) for one in part]
        return {key: elder(one) for key, one in part.items() if key not in later} if isinstance(part, dict) else part

    later = {"lineage", "heard", "derivations", "parent", "context"}
    later |= {"instead", "handle", "successor", "turned", "turns"}
    later |= {"journal", "journals", "held"}

    class Elders(hubs.Conversation):
        def _say(self, by: str, data: bytes) -> list[Frame]:
            return [without(frame) for frame in super()._say(by, data)]

    said = hubs.vectors_of(Elders(make.samples()["ticks"]), make.events_of)
    assert said == VECTORS["conversation"]


@pytest.mark.parametrize("vector", named("parcels"))
def test_a_golden_parcel_is_read_as_described(vector: dict[str, Any]) -> None:
    assert {"name": vector["name"], **modulators.parcel_vector(bytes.fromhex(vector["bytes"]))} == vector


@pytest.mark.parametrize("vector", named("malformed_parcels"))
def test_a_malformed_golden_parcel_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(RemoteError):
        unpack(bytes.fromhex(vector["bytes"]))


@pytest.mark.parametrize("vector", [*named("malformed_hub_frames"), *named("malformed_large_frames")])
def test_a_malformed_golden_frame_between_hubs_is_refused(vector: dict[str, Any]) -> None:
    hub, peer = Concentrator("a", "a:1"), Concentrator("b", "b:1")
    batch = make.samples()["ticks"]
    hubs.introduce(hub, peer, batch.format)
    frame = Frame(FrameKind(vector["kind"]), 1, memoryview(bytes.fromhex(vector["payload"])))
    with pytest.raises(RemoteError):
        hub.receive("b", frame)


@pytest.mark.parametrize("vector", named("formats"))
def test_a_golden_descriptor_has_the_described_layout_and_token(vector: dict[str, Any]) -> None:
    format = Format.from_descriptor(bytes.fromhex(vector["descriptor"]))
    assert f"{format.token:016x}" == vector["token"]
    assert [[path, field.spelling, field.offset] for path, field in format.walk()] == vector["layout"]


@pytest.mark.parametrize("vector", named("batches"))
def test_a_golden_batch_has_the_described_events(vector: dict[str, Any], registry: Registry) -> None:
    batch = parse_batch(bytes.fromhex(vector["payload"]), registry)
    events = [
        {field.name: make.value(getattr(record, field.name), field) for field in batch.format.fields}
        for record in batch.events()
    ]
    assert f"{batch.format.token:016x}" == vector["token"]
    assert events == vector["events"]


@pytest.mark.parametrize("vector", named("malformed"))
def test_a_malformed_golden_batch_is_refused(vector: dict[str, Any], registry: Registry) -> None:
    with pytest.raises(MalformedBatchError):
        parse_batch(bytes.fromhex(vector["payload"]), registry).events()


@pytest.mark.parametrize("vector", named("malformed_frames"))
def test_a_malformed_golden_frame_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises((MalformedFrameError, LimitExceededError)):
        FrameReader().receive(bytes.fromhex(vector["bytes"]))


@pytest.mark.parametrize("vector", named("malformed_formats"))
def test_a_malformed_golden_descriptor_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(MalformedFormatError):
        Format.from_descriptor(bytes.fromhex(vector["descriptor"]))


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_a_decoder_in_another_language_that_was_written_from_the_specification_agrees() -> None:
    checker = Path(__file__).with_name("check_decoder.mjs")
    done = subprocess.run(["node", str(checker)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout


def test_a_batch_of_an_unknown_format_is_refused() -> None:
    with pytest.raises(EchoicError, match=VECTORS["batches"][0]["token"]):
        parse_batch(bytes.fromhex(VECTORS["batches"][0]["payload"]), Registry())


def test_the_vectors_contain_what_is_easily_read_wrongly() -> None:
    events = json.dumps(VECTORS["batches"], ensure_ascii=False)
    for hard in ("nan", "-inf", str(2**64 - 1), str(-(2**63)), str(2**53 + 1), "Zürich", "null"):
        assert hard in events
    assert math.copysign(1, VECTORS["batches"][0]["events"][1]["price"]) < 0
