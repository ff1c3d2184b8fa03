"""The payload of a FORMATS frame: descriptors, sent ahead of the first batch that needs them.

    payload := msgpack array of binaries, each one descriptor

A descriptor crosses a link once; afterwards its token stands for it in every batch.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from echoic.errors import LimitExceededError, MalformedFormatError
from echoic.formats import Format, Registry
from echoic.wire.frames import Buffer

__all__ = ["decode_formats", "encode_formats"]

FORMATS_PER_FRAME_MAX: Final = 4096

_decoder: Final = msgspec.msgpack.Decoder(tuple[bytes, ...])


def encode_formats(formats: Iterable[Format]) -> bytes:
    """Return the payload that announces `formats`."""
    return msgspec.msgpack.encode([format.descriptor for format in formats])


def decode_formats(payload: Buffer, registry: Registry) -> list[Format]:
    """Enter the announced formats into `registry` and return them.

    Raises:
        MalformedFormatError: The payload or one of the descriptors is malformed.
        LimitExceededError: There are too many of them, or one is too long.
    """
    try:
        descriptors = _decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFormatError(f"an announcement of {len(payload)} bytes cannot be read: {error}") from error
    if len(descriptors) > FORMATS_PER_FRAME_MAX:
        raise LimitExceededError(f"a frame announces {len(descriptors)} formats, limit is {FORMATS_PER_FRAME_MAX}")
    return [registry.add_descriptor(descriptor) for descriptor in descriptors]
