r"""The first frame on every connection: who speaks, which protocol, what can be relied on.

    payload := magic "ECHOIC\r\n" | msgpack map {version, minor, features, payload_bytes_max, name, hub, address,
                                                 event_bytes_max, which may be missing}

The magic is the first thing a stranger sends, so a wrong port is told apart from a broken peer at once, and the line
end in it shows a transfer in text mode (the trick of PNG). Peers with the same `version` understand each other; `minor`
and the feature list say what more both can do: only what both name is used. `hub` is a number that a program draws
when it starts, so that a peer which was started anew is told apart from one whose connection broke; `address` is where
it can be reached.
"""

from typing import Final

import msgspec

from echoic.errors import MalformedFrameError, ProtocolVersionError
from echoic.wire.frames import PAYLOAD_BYTES_MAX, Buffer

__all__ = ["MAGIC", "VERSION", "Hello", "decode_hello", "encode_hello"]

MAGIC: Final = b"ECHOIC\r\n"
VERSION: Final = 1
MINOR: Final = 0
FEATURES_MAX: Final = 256
TEXT_CHARACTERS_MAX: Final = 64


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """What a peer says of itself."""

    version: int = VERSION
    minor: int = MINOR
    features: tuple[str, ...] = ()
    payload_bytes_max: int = PAYLOAD_BYTES_MAX
    name: str = ""
    hub: str = ""
    address: str = ""
    event_bytes_max: int | msgspec.UnsetType = msgspec.UNSET
    """How large an event may be that is not sent in one frame; missing if there is no such feature."""

    def common(self, other: "Hello") -> frozenset[str]:
        """Return the features that both peers have."""
        return frozenset(self.features) & frozenset(other.features)


class _Version(msgspec.Struct):
    """The one key that every version has in common."""

    version: int = VERSION


_version_decoder: Final = msgspec.msgpack.Decoder(_Version)
_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")
_decoder: Final = msgspec.msgpack.Decoder(Hello)


def encode_hello(hello: Hello) -> bytes:
    """Return the payload of a hello frame."""
    return MAGIC + _encoder.encode(hello)


def decode_hello(payload: Buffer) -> Hello:
    """Return what a peer says of itself.

    Raises:
        MalformedFrameError: This is not a hello.
        ProtocolVersionError: The peer speaks a version with which we share nothing.
    """
    start = bytes(payload[: len(MAGIC)])
    if start != MAGIC:
        raise MalformedFrameError(f"a hello begins with {start!r}, expected {MAGIC!r}")
    try:
        version = _version_decoder.decode(payload[len(MAGIC) :]).version
        if version != VERSION:
            raise ProtocolVersionError(
                f"the peer speaks version {version} of the protocol, this program version {VERSION}"
            )
        hello = _decoder.decode(payload[len(MAGIC) :])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFrameError(f"a hello of {len(payload)} bytes cannot be read: {error}") from error
    if len(hello.features) > FEATURES_MAX or any(len(name) > TEXT_CHARACTERS_MAX for name in hello.features):
        raise MalformedFrameError(
            f"a hello names {len(hello.features)} features, limit is {FEATURES_MAX} of {TEXT_CHARACTERS_MAX} characters"
        )
    if hello.minor < 0 or hello.payload_bytes_max < 1:
        raise MalformedFrameError(
            f"a hello has minor {hello.minor} and {hello.payload_bytes_max} payload bytes at most"
        )
    if hello.event_bytes_max is not msgspec.UNSET and hello.event_bytes_max < 1:
        raise MalformedFrameError(f"a hello has {hello.event_bytes_max} bytes of an event at most")
    for text in (hello.name, hello.hub, hello.address):
        if len(text) > TEXT_CHARACTERS_MAX or not text.isprintable():
            raise MalformedFrameError(f"a hello's texts are not {TEXT_CHARACTERS_MAX} printable characters or fewer")
    return hello
