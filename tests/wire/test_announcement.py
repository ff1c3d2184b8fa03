"""Announcements: descriptors go ahead of the batches that need them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import LimitExceededError, MalformedFormatError
from echoic.formats import Format, Registry
from echoic.formats.limits import DESCRIPTOR_BYTES_MAX
from echoic.wire import Batch, decode_formats, encode_formats, parse_batch
from echoic.wire.announcement import FORMATS_PER_FRAME_MAX
from tests.strategies import formats
from tests.wire.samples import BIG, Mesh, Point, Report, joined, reports, thorough

KNOWN = [Format.of(Point), Format.of(Mesh), Format.of(Report).on(BIG)]


@thorough(50)
@given(st.lists(formats(), max_size=4), st.sampled_from([bytes, bytearray, memoryview]))
def test_announced_formats_are_known_afterwards(sent: list[Format], buffer: type) -> None:
    registry = Registry()
    assert decode_formats(buffer(encode_formats(sent)), registry) == sent
    for format in sent:
        assert registry.get(format.token) == format


def test_a_batch_can_be_read_once_its_format_was_announced() -> None:
    batch, registry = Batch.of(reports(3)), Registry()
    decode_formats(encode_formats([batch.format]), registry)
    assert len(parse_batch(joined(batch.buffers()), registry).events()) == 3


def test_an_announcement_is_an_array_of_descriptors() -> None:
    assert msgspec.msgpack.decode(encode_formats(KNOWN)) == [format.descriptor for format in KNOWN]


def test_a_format_announced_twice_is_the_same_object() -> None:
    registry = Registry()
    first = decode_formats(encode_formats(KNOWN), registry)
    second = decode_formats(encode_formats(KNOWN), registry)
    assert all(one is other for one, other in zip(first, second, strict=True))
    assert len(registry) == len(KNOWN)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        b"ECHOIC",
        msgspec.msgpack.encode(7),
        msgspec.msgpack.encode(["text"]),
        msgspec.msgpack.encode([[1]]),
        encode_formats(KNOWN)[:-1],
        encode_formats(KNOWN) + b"\0",
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 100_000,
    ],
)
def test_what_is_no_announcement_is_refused_with_its_length(payload: bytes) -> None:
    with pytest.raises(MalformedFormatError, match=f"an announcement of {len(payload)} bytes cannot be read"):
        decode_formats(payload, Registry())


def test_a_descriptor_that_describes_nothing_is_refused() -> None:
    with pytest.raises(MalformedFormatError):
        decode_formats(msgspec.msgpack.encode([KNOWN[0].descriptor, b"\x90"]), Registry())


def test_too_many_formats_are_refused_before_one_is_read() -> None:
    registry = Registry()
    payload = msgspec.msgpack.encode([KNOWN[0].descriptor] * (FORMATS_PER_FRAME_MAX + 1))
    with pytest.raises(LimitExceededError, match=f"announces {FORMATS_PER_FRAME_MAX + 1} formats"):
        decode_formats(payload, registry)
    assert not len(registry)


def test_too_long_a_descriptor_is_refused() -> None:
    with pytest.raises(LimitExceededError, match=f"{DESCRIPTOR_BYTES_MAX + 1} bytes"):
        decode_formats(msgspec.msgpack.encode([bytes(DESCRIPTOR_BYTES_MAX + 1)]), Registry())


def test_a_full_registry_takes_no_more() -> None:
    registry = Registry(formats_max=2)
    with pytest.raises(LimitExceededError, match="limit is 2"):
        decode_formats(encode_formats(KNOWN), registry)
    assert len(registry) == 2


@thorough(200)
@given(st.integers(0, len(encode_formats(KNOWN)) - 1), st.integers(1, 255))
def test_a_damaged_announcement_gives_a_declared_error_or_other_formats(at: int, flip: int) -> None:
    payload = bytearray(encode_formats(KNOWN))
    payload[at] ^= flip
    try:
        found = decode_formats(payload, Registry())
    except (MalformedFormatError, LimitExceededError):
        return
    assert found != KNOWN
