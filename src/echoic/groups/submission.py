"""Submitting: this member's own packs, from when they are given until they are delivered here.

A follower forwards its packs to the leader, which takes only the one that is next in a sender's life. What is not
delivered yet is forwarded again when the leader changes, or when nothing moves for a while: so nothing is lost, doubled
or reordered, whoever leads.
"""

from collections.abc import Sequence
from typing import Final

from echoic.groups.messages import Forward
from echoic.groups.situation import Situation

__all__ = ["Submission"]

FORWARD_BYTES_MAX: Final = 1024 * 1024


class Submission:
    """What this member has submitted and not seen delivered."""

    def __init__(self, situation: Situation, now_ns: int) -> None:
        self._s = situation
        self._packs: dict[int, bytes] = {}
        self._last = 0
        self._first = 1
        self._told: tuple[str | None, int] = (None, 0)
        """The leader and the term in which all of it was forwarded."""
        self._moved = 0
        self.check_ns = now_ns

    @property
    def waiting(self) -> int:
        """How many packs are under way."""
        return len(self._packs)

    def submit(self, payload: bytes) -> int:
        """Have a pack ordered, and return its number."""
        s = self._s
        self._last += 1
        self._packs[self._last] = payload
        if s.leadership is not None:
            s.leadership.order(s.name, s.life, self._last, (payload,))
        elif s.leader is not None and self._told == (s.leader, s.term):
            s.send(s.leader, Forward(s.group, s.life, self._last, [payload]))
        return self._last

    def tick(self, now_ns: int) -> None:
        """Forget what was delivered; forward what was not, if it may be lost."""
        s = self._s
        while self._first <= s.confirmed:
            self._packs.pop(self._first, None)
            self._first += 1
        if not self._packs or not s.group:
            return
        if s.leadership is not None:
            self._order_rest()
        elif s.leader is not None and (self._told != (s.leader, s.term) or self._is_stuck(now_ns)):
            self._told = (s.leader, s.term)
            self._forward_all(s.leader)
            self._moved, self.check_ns = s.confirmed, now_ns + s.options.election_ns

    def _is_stuck(self, now_ns: int) -> bool:
        """Whether nothing was delivered for a while."""
        if now_ns < self.check_ns:
            return False
        stuck = self._moved == self._s.confirmed
        self._moved, self.check_ns = self._s.confirmed, now_ns + self._s.options.election_ns
        return stuck

    def _order_rest(self) -> None:
        """Order what came while there was no leader, or another."""
        s = self._s
        if s.leadership is not None:
            first = max(s.leadership.latest.last(s.name, s.life) + 1, self._first)
            end = min(first + s.options.forward_packs_max, self._last + 1)
            if first < end:
                s.leadership.order(s.name, s.life, first, [self._packs[number] for number in range(first, end)])

    def _forward_all(self, leader: str) -> None:
        s, numbers = self._s, range(self._first, self._last + 1)
        for portion in _portions(numbers, s.options.forward_packs_max):
            payloads: list[bytes] = []
            first, size = portion[0], 0
            for number in portion:
                if payloads and size + len(self._packs[number]) > FORWARD_BYTES_MAX:
                    s.send(leader, Forward(s.group, s.life, first, payloads))
                    first, payloads, size = number, [], 0
                payloads.append(self._packs[number])
                size += len(self._packs[number])
            s.send(leader, Forward(s.group, s.life, first, payloads))


def _portions(numbers: range, count: int) -> Sequence[range]:
    return [numbers[start : start + count] for start in range(0, len(numbers), count)]
