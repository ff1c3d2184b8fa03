"""Sessions: a conversation that outlives its connection. This module is pure.

Both sides count. What was said is kept until the other side says that it has heard it (SEEN, now and then); when a
connection breaks and the tool comes back within its lease, each says how much it has heard, and the other says the rest
again, in order. So nothing is lost and nothing is heard twice, wherever the connection broke.

    tool                                   bus
      | 5: VALUE  ------------ x            has heard 4
      |        (broken)        x ---------- 9: EVAL          the tool has heard 8
      HELLO [..., resume(number, epoch, 8)] --->
             <--- INTERFACE, (ACCEPT), WELCOME, SEEN [4]
      5: VALUE  --->             <--- 9: EVAL

A tool that was killed and started again has heard nothing and remembers nothing: its session begins anew, and the bus
asks again what was not answered.

What is kept has limits. Who has said more than that without being heard has no session any more: when its connection
breaks it is lost, as it would be without a lease. On a bus all that one name has kept counts together (`shares.py`).
"""

from collections import deque
from typing import Final, Protocol

from echoic.errors import MalformedFrameError
from echoic.toolbus.protocol import Message, MessageKind
from echoic.toolbus.references.words import encode_seen

__all__ = ["Purse", "Session"]

SEEN_EVERY: Final = 16
KEPT_MAX: Final = 65_536
KEPT_BYTES_MAX: Final = 256 * 1024 * 1024
UNCOUNTED: Final = frozenset(
    {
        MessageKind.HELLO,
        MessageKind.INTERFACE,
        MessageKind.ACCEPT,
        MessageKind.REFUSE,
        MessageKind.WELCOME,
        MessageKind.REG,
        MessageKind.SEEN,
        MessageKind.END,
    }
)
"""What belongs to a connection, and not to the conversation."""


def is_counted(message: Message) -> bool:
    """Whether a message belongs to a conversation, so that it must arrive once."""
    return message.kind not in UNCOUNTED


class Purse(Protocol):
    """Room that several conversations share."""

    def keep(self, size: int) -> bool:
        """Take so many bytes of it; False where there are none left."""

    def release(self, size: int) -> None:
        """Give so many bytes back."""


class Session:
    """One side of a conversation."""

    def __init__(
        self, kept_max: int = KEPT_MAX, kept_bytes_max: int = KEPT_BYTES_MAX, purse: Purse | None = None
    ) -> None:
        """Begin.

        Args:
            kept_max: How many messages are kept that the other side has not heard, as far as is known.
            kept_bytes_max: How many bytes of them.
            purse: What they are taken from besides.
        """
        self.heard = 0
        """How much was heard of the other side."""
        self._kept_max = kept_max
        self._kept_bytes_max = kept_bytes_max
        self._purse = purse
        self._kept: deque[tuple[Message, int]] = deque()
        self._kept_bytes = 0
        self._seen = 0  # how much of ours the other side has heard
        self._broken = False

    @property
    def resumable(self) -> bool:
        """Whether everything is kept that the other side may not have heard."""
        return not self._broken

    def say(self, message: Message, size: int) -> None:
        """Keep what is about to be said, which takes so many bytes."""
        if self._broken or not is_counted(message):
            return
        if self._purse is not None and not self._purse.keep(size):
            self.forget()
            return
        self._kept.append((message, size))
        self._kept_bytes += size
        if len(self._kept) > self._kept_max or self._kept_bytes > self._kept_bytes_max:
            self.forget()

    def forget(self) -> None:
        """Keep nothing any more: this conversation ends with its connection."""
        self._broken = True
        self._kept.clear()
        self._release(self._kept_bytes)

    def hear(self, message: Message) -> Message | None:
        """Count what was heard; return what is to be said about that, now and then."""
        if not is_counted(message):
            return None
        self.heard += 1
        return encode_seen(self.heard) if self.heard % SEEN_EVERY == 0 else None

    def seen(self, count: int) -> None:
        """Learn how much the other side has heard.

        Raises:
            MalformedFrameError: That is more than was said, or less than it has said before.
        """
        if self._broken:
            return
        if not self._seen <= count <= self._seen + len(self._kept):
            raise MalformedFrameError(
                f"the other side has heard {count} messages, expected {self._seen} to {self._seen + len(self._kept)}"
            )
        self._release(sum(self._kept.popleft()[1] for _ in range(count - self._seen)))
        self._seen = count

    def again(self, count: int) -> tuple[Message, ...]:
        """Return what is to be said again to somebody who comes back and has heard so much.

        Raises:
            MalformedFrameError: That cannot be.
        """
        self.seen(count)
        if self._broken:
            raise MalformedFrameError("what was not heard is not kept any more")
        return tuple(message for message, _ in self._kept)

    def _release(self, size: int) -> None:
        self._kept_bytes -= size
        if self._purse is not None and size:
            self._purse.release(size)
