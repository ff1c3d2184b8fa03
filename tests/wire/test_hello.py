"""Hello: who speaks, and whether we understand each other."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import MalformedFrameError, ProtocolVersionError
from echoic.wire import Hello, decode_hello, encode_hello
from echoic.wire.hello import FEATURES_MAX, MAGIC, VERSION

hellos = st.builds(
    Hello,
    minor=st.integers(0, 1000),
    features=st.lists(st.text(max_size=10), max_size=5).map(tuple),
    payload_bytes_max=st.integers(1, 2**32 - 1),
    name=st.text(max_size=20).filter(str.isprintable),
)


def spoken(**said: object) -> bytes:
    """Return a hello that says what ours could not."""
    return MAGIC + msgspec.msgpack.encode({"version": VERSION} | said)


@given(hellos, st.sampled_from([bytes, bytearray, memoryview]))
def test_a_hello_arrives_as_it_was_said(hello: Hello, buffer: type) -> None:
    assert decode_hello(buffer(encode_hello(hello))) == hello


def test_a_hello_begins_with_the_magic_and_says_the_version() -> None:
    payload = encode_hello(Hello(name="a"))
    assert payload.startswith(b"ECHOIC\r\n")
    said = msgspec.msgpack.decode(payload[8:])
    assert (said["version"], said["minor"], said["features"], said["name"]) == (1, 0, [], "a")
    assert said["payload_bytes_max"] == 16 * 1024 * 1024


def test_only_features_of_both_peers_are_used() -> None:
    ours, theirs = Hello(features=("a", "b", "c")), Hello(features=("c", "b", "z"))
    assert ours.common(theirs) == theirs.common(ours) == {"b", "c"}
    assert Hello().common(ours) == frozenset()


@pytest.mark.parametrize("version", [0, 2, 1000])
def test_another_version_is_refused_naming_both(version: int) -> None:
    with pytest.raises(ProtocolVersionError, match=f"version {version} of the protocol, this program version 1"):
        decode_hello(spoken(version=version))


def test_a_later_minor_version_is_understood_and_what_it_adds_is_ignored() -> None:
    hello = decode_hello(spoken(minor=9, name="newer", mood="good", detail={"deep": [1]}))
    assert (hello.minor, hello.name) == (9, "newer")


@pytest.mark.parametrize("start", [b"", b"ECHOIC", b"ECHOIC\n\n", b"ECHOIC\n", b"echoic\r\n", b"GET / HT", b"\0" * 8])
def test_a_wrong_magic_is_refused_showing_it(start: bytes) -> None:
    with pytest.raises(MalformedFrameError) as caught:
        decode_hello(start + msgspec.msgpack.encode({"version": 1}))
    assert repr(MAGIC) in str(caught.value)
    assert "a hello begins with b" in str(caught.value)


@pytest.mark.parametrize(
    "payload",
    [
        MAGIC,
        MAGIC + b"\xc1",
        MAGIC + b"\x80" + b"\x80",
        MAGIC + msgspec.msgpack.encode([1, 2]),
        MAGIC + b"\x91" * 100_000,
        MAGIC + b"\xdf\xff\xff\xff\xff",
        MAGIC + b"\x81\xa4name\xa1\xff",
        spoken(version="1"),
        spoken(name=7),
        spoken(features="abc"),
        spoken(features=[1]),
        encode_hello(Hello(name="cut"))[:-1],
    ],
)
def test_what_is_no_hello_is_refused_with_its_length(payload: bytes) -> None:
    with pytest.raises(MalformedFrameError, match=f"a hello of {len(payload)} bytes cannot be read"):
        decode_hello(payload)


@pytest.mark.parametrize("features", [["f"] * (FEATURES_MAX + 1), ["f" * 65], ["fine", "f" * 1000]])
def test_too_many_or_too_long_features_are_refused(features: list[str]) -> None:
    with pytest.raises(MalformedFrameError, match=f"names {len(features)} features, limit is {FEATURES_MAX}"):
        decode_hello(spoken(features=features))


def test_as_many_features_as_allowed_are_accepted() -> None:
    features = tuple(f"feature {number}".ljust(64, "x") for number in range(FEATURES_MAX))
    assert decode_hello(encode_hello(Hello(features=features))).features == features


@pytest.mark.parametrize("payload_bytes_max", [-1, 0])
def test_a_frame_limit_that_no_frame_can_keep_is_refused(payload_bytes_max: int) -> None:
    with pytest.raises(MalformedFrameError):
        decode_hello(spoken(payload_bytes_max=payload_bytes_max))


@given(st.binary(max_size=60))
def test_garbage_gives_a_declared_error_or_a_hello(garbage: bytes) -> None:
    for payload in (garbage, MAGIC + garbage):
        try:
            assert decode_hello(payload).version == VERSION
        except (MalformedFrameError, ProtocolVersionError):
            pass


@given(hellos, st.data())
def test_a_damaged_hello_gives_a_declared_error_or_a_hello(hello: Hello, data: st.DataObject) -> None:
    payload = bytearray(encode_hello(hello))
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        assert decode_hello(payload).version == VERSION
    except (MalformedFrameError, ProtocolVersionError):
        pass
