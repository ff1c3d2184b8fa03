"""Several events as one text of bytes, in the encoding of the wire.

    0        4        8
    | length | zero   | descriptor, padded to 8 | batch: token, count, flags, offsets, records

What is compressed or encrypted is a batch exactly as it would have been sent, so events come back as they were, to the
bit: strings, dynamic arrays, enumerations and layouts of other machines included. The descriptor says how the source
lays them out. Where the source's type is the one that the sink has, which the modulator is told by the token, it is
left out; an event of a hundred bytes would otherwise carry two hundred of description.
"""

import struct
from collections.abc import Sequence
from typing import Final

from echoic.errors import LimitExceededError, MalformedBatchError
from echoic.formats import Format, Registry, bind
from echoic.wire import Batch, parse_batch

__all__ = ["BUNDLE_EVENTS_MAX", "Unpacking", "pack", "token_of"]

BUNDLE_EVENTS_MAX: Final = 65_536
HEADER: Final = struct.Struct("<II")
FORMATS_MAX: Final = 64


def token_of(declared: object | None) -> int:
    """Return the name of an event type's layout here; 0 if there is none.

    Raises:
        FormatError: It is not an event type.
    """
    return 0 if declared is None else Format.of(declared).token


def pack(events: Sequence[object], known: int) -> bytes:
    """Return events as bytes; the type is described unless it is the `known` one.

    Raises:
        EncodeError: A value does not fit its field.
    """
    format = bind(type(events[0])).format
    batch = Batch.of(events, format)
    descriptor = b"" if format.token == known else format.descriptor
    padding = bytes(-len(descriptor) % 8)
    return b"".join([HEADER.pack(len(descriptor), 0), descriptor, padding, *batch.buffers()])


class Unpacking:
    """Makes events of bundles, for one sink.

    Args:
        declared: The event type of the sink; without one events come as the source has them.
    """

    def __init__(self, declared: object | None) -> None:
        self._declared: Final = declared
        self._registry: Final = Registry(formats_max=FORMATS_MAX)
        if declared is not None:
            self._registry.add(Format.of(declared))

    def unpack(self, data: bytes, count: int) -> list[object]:
        """Return the `count` events of a bundle.

        Raises:
            MalformedBatchError: It is not a bundle of so many events.
            LimitExceededError: It has too many events or describes too many types.
            RemoteError: Its type is malformed or unknown.
            IncompatibleTypesError: The events cannot be received as the sink's type.
        """
        if len(data) < HEADER.size:
            raise MalformedBatchError(f"a bundle has {len(data)} bytes, its header needs {HEADER.size}")
        length, _ = HEADER.unpack_from(data)
        start = HEADER.size + length + -length % 8
        if start > len(data):
            raise MalformedBatchError(f"a bundle of {len(data)} bytes describes its type in {length}")
        if length:
            self._registry.add_descriptor(data[HEADER.size : HEADER.size + length])
        batch = parse_batch(memoryview(data)[start:], self._registry)
        if batch.count > BUNDLE_EVENTS_MAX:
            raise LimitExceededError(f"a bundle has {batch.count} events, limit is {BUNDLE_EVENTS_MAX}")
        if batch.count != count:
            raise MalformedBatchError(f"a bundle has {batch.count} events, {count} were announced")
        return (batch if self._declared is None else batch.to(self._declared)).events()
