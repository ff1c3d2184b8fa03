"""How much a WebSocket client sends in one message, measured on its way by. Holds one header at most.

    byte 0          1               2 ..                        (RFC 6455, 5.2)
    | fin opcode | mask length7 | length16 or length64 | mask | payload

A server may gather a message of any number of frames before it looks at it, and so be made to hold what it has room
for. Whoever stands before it counts.
"""

from typing import Final

from echoic.errors import LimitExceededError, MalformedFrameError
from echoic.wire import Buffer

__all__ = ["MESSAGE_BYTES_MAX", "ClientFrames"]

MESSAGE_BYTES_MAX: Final = 256 * 1024
"""A client that subscribes to a thousand topics at once says that in 50 KB."""
CONTROL_BYTES_MAX: Final = 125
CONTROL: Final = 8
"""Opcodes from here on are those of frames that may come between those of a message."""


class ClientFrames:
    """Follows the frames of one client."""

    def __init__(self, message_bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        self._message_bytes_max = message_bytes_max
        self._header = bytearray()
        self._left = 0
        self._message_bytes = 0

    def measure(self, data: Buffer) -> None:
        """Take the next bytes of the stream.

        Raises:
            LimitExceededError: They belong to a message that is too large.
            MalformedFrameError: They are no frames.
        """
        view = memoryview(data)
        while view:
            if self._left:
                passed = min(self._left, len(view))
                self._left -= passed
            else:
                passed = min(_header_bytes(self._header) - len(self._header), len(view))
                self._header += view[:passed]
                if len(self._header) == _header_bytes(self._header):
                    self._begin()
            view = view[passed:]

    def _begin(self) -> None:
        """Begin with the payload of the frame whose header is complete."""
        header, opcode = self._header, self._header[0] & 15
        width = {126: 2, 127: 8}.get(header[1] & 127, 0)
        length = int.from_bytes(header[2 : 2 + width], "big") if width else header[1] & 127
        if opcode >= CONTROL:
            if length > CONTROL_BYTES_MAX:
                raise MalformedFrameError(f"a control frame has {length} bytes, limit is {CONTROL_BYTES_MAX}")
        else:
            self._message_bytes = length if opcode else self._message_bytes + length
            if self._message_bytes > self._message_bytes_max:
                raise LimitExceededError(
                    f"a message has {self._message_bytes} bytes or more, limit is {self._message_bytes_max}"
                )
        self._left = length
        self._header.clear()


def _header_bytes(header: bytearray) -> int:
    """Return how many bytes a header has, as far as its first two tell."""
    if len(header) < 2:
        return 2
    return 2 + {126: 2, 127: 8}.get(header[1] & 127, 0) + (4 if header[1] & 128 else 0)
