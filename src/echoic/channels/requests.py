"""Requests that other hubs have yet to answer: who was asked, until when, and what to do with the answer.

A hub looks at the time about ten times a second. One that stood still (its process was stopped, its machine slept) does
not know the time when it goes on, and may ask something before it looks. Nobody is given up for that: the time before
the first look after such a pause does not count.
"""

import itertools
from collections.abc import Callable
from typing import Final, TypeAlias

from echoic.channels.messages import Message, Refused

__all__ = ["Answer", "Gone", "Requests", "ignore"]

Answer: TypeAlias = Callable[[Message], None]

REQUEST_NS: Final = 10_000_000_000
PAUSE_NS: Final = 1_000_000_000
"""Who has not looked at the time for so long stood still."""


def ignore(reply: Message) -> None:
    """Take an answer that changes nothing."""


class Gone(Refused, frozen=True):
    """The hub that was asked was given up before it answered: it may have done it or not, and may still be there.

    Links begin afresh where the end of a greeting was lost with its connection.
    """


class Requests:
    """Each request is answered exactly once: by the hub that was asked, or by Refused."""

    def __init__(self) -> None:
        self._asked: dict[int, tuple[int, str, Answer]] = {}
        self._numbers = itertools.count(1)
        self._looked_ns = -1

    def __len__(self) -> int:
        return len(self._asked)

    def add(self, hub: str, now_ns: int, answer: Answer) -> int:
        """Return the number of a further request to a hub."""
        number = next(self._numbers)
        self._asked[number] = (now_ns + REQUEST_NS, hub, answer)
        return number

    def answered(self, hub: str, number: int, reply: Message) -> None:
        """Pass an answer on, if it comes from the hub that was asked."""
        asked = self._asked.get(number)
        if asked is not None and asked[1] == hub:
            del self._asked[number]
            asked[2](reply)

    def overdue(self, now_ns: int) -> None:
        """Refuse what took too long; call it about ten times a second."""
        paused_ns = now_ns - self._looked_ns
        if self._looked_ns >= 0 and paused_ns > PAUSE_NS:
            self._asked = {
                number: (deadline_ns + paused_ns, hub, answer)
                for number, (deadline_ns, hub, answer) in self._asked.items()
            }
        self._looked_ns = now_ns
        if not self._asked:
            return
        for number, (deadline_ns, _, answer) in list(self._asked.items()):
            if now_ns >= deadline_ns and self._asked.pop(number, None) is not None:
                answer(Refused("UnreachableError", f"there was no answer within {REQUEST_NS // 10**9} s"))

    def gone(self, hub: str, reason: str) -> None:
        """Refuse what was asked of a hub that is gone."""
        for number, (_, asked, answer) in list(self._asked.items()):
            if asked == hub and self._asked.pop(number, None) is not None:
                answer(Gone("UnreachableError", reason))
