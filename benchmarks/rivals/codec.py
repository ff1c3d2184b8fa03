"""Objects to bytes and back for all rivals: msgspec's msgpack of Structs packed as arrays, the fastest that we know."""

from itertools import cycle, islice

import msgspec

from echoic.testing.bench import PAYLOADS, Setup

__all__ = ["Codec"]


class Codec:
    """Encodes and decodes the events of one setup."""

    def __init__(self, setup: Setup) -> None:
        payload = PAYLOADS[setup.payload]
        self._events = payload.plain_events()
        self.encode = msgspec.msgpack.Encoder().encode
        self.decode = msgspec.msgpack.Decoder(payload.plain).decode

    def endless(self) -> cycle:
        """Return events that take turns for ever."""
        return cycle(self._events)

    def events(self, count: int) -> islice:
        """Return so many events."""
        return islice(cycle(self._events), count)
