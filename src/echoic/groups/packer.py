"""The packing buffer: messages wait in it for others, and leave together as one multicast (section 2.1).

    add(records) ---> [ r r r r r r r r r ] ---> packs() ---> one multicast each ---> engine ---+
                        waiting                               under way                         |
                                                      delivered() <--- safe delivery at the sender

What a pack is like is the policy's decision (`policies`); when one may leave is decided here, in this order:

    no room          too much is under way (`Window`): nothing leaves until something has come back
    full             the policy's degree or bytes are gathered
    nothing to gain  the policy lets a pack leave at once while few are under way (Nagle's rule)
    too long         a message has waited for the packing interval (pack_TIME of section 5)
    stuck            the source is suspended and nothing is under way, so nobody would ever fill the pack

A pack takes as many messages as the policy and the engine allow, in order, at least one. `full` says that the source
must be suspended (section 2.2); it stays so until a quarter of the window is free, for a source that is woken for every
message costs more than the message.

Lists are cut as a whole: the lengths of all records are summed up as they come, and the end of a pack is found by
bisection. With 64 messages of 1000 bytes in a pack the buffer takes some 0.15 us for a message, policy and all; what is
done for each pack takes some 3 us, which is all that there is to it without packing.

Latency counts from `add` to `delivered`, so it has the time in the buffer, as section 2.3 demands.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import msgspec

from echoic.errors import LocalError
from echoic.groups.policies import Pack, PackingChange, Policy
from echoic.groups.policies.window import Window

__all__ = ["PACKING_INTERVAL_NS", "WINDOW_BYTES_MAX", "Packer", "PackingStatistics"]

PACKING_INTERVAL_NS: Final = 50_000_000
WINDOW_BYTES_MAX: Final = 16 * 1024 * 1024
RECENT_NS: Final = 1_000_000_000
CHANGES_KEPT: Final = 256
OPEN_SHARE: Final = 0.75  # of the window, at which a suspended source goes on
SIZE_GUESS: Final = 1024.0


class PackingStatistics(msgspec.Struct, frozen=True):
    """What a packing buffer is doing. *Recent* is the last second or two."""

    policy: str
    degree: float
    """Messages in a recent pack, on average."""
    bytes_aim: int
    """How many bytes a pack should have, if the policy counts bytes; otherwise what the engine takes at most."""
    messages: int
    """That have come back, ever."""
    packs: int
    bytes: int
    throughput: float
    """Messages a second that came back, recently."""
    latency_ns: float
    """From the buffer until they were back, mean of recent messages."""
    waiting: int
    """Messages in the buffer."""
    waiting_bytes: int
    under_way: int
    """Packs that have left and are not back."""
    under_way_bytes: int
    window_bytes: int
    """How much may wait and be under way before the source is suspended."""
    full: bool
    suspensions: int
    """How often the source was suspended."""
    packing_interval_ns: int
    changes: int
    """How often the policy has changed its mind."""
    reason: str
    """Why it did so last."""


class Packer:
    """Gathers messages into packs. Driven by one thread; `full` may be read by any."""

    def __init__(
        self,
        policy: Policy,
        *,
        packing_interval_ns: int = PACKING_INTERVAL_NS,
        pack_bytes_max: int,
        window_bytes_max: int = WINDOW_BYTES_MAX,
        now_ns: int,
    ) -> None:
        if min(packing_interval_ns, pack_bytes_max, window_bytes_max) < 1:
            limits = f"{packing_interval_ns} ns, {pack_bytes_max} and {window_bytes_max} bytes"
            raise LocalError(f"packing interval, pack and window must be at least 1, got {limits}")
        self.full = False
        """Whether the source must wait."""
        self.suspensions = 0
        self._policy = policy
        self._interval_ns = packing_interval_ns
        self._pack_bytes_max = pack_bytes_max
        self._window_bytes_max = window_bytes_max
        self._window = Window(window_bytes_max)
        # Records before `_next` have left. `_ends` has for each record the bytes up to its end, counted from the
        # beginning of time; `_arrivals` for each call of `add` that still waits how many records, and when.
        self._records: list[bytes] = []
        self._ends: list[int] = []
        self._next = 0
        self._left_bytes = 0
        self._added_bytes = 0
        self._arrivals: deque[tuple[int, int]] = deque()
        self._under_way: deque[Pack] = deque()
        self._under_way_bytes = 0
        self._was_full = False
        self._size = 0.0
        self._recent = _Recent(now_ns)
        self._messages = self._packs = self._bytes = 0
        self._changes: deque[PackingChange] = deque(maxlen=CHANGES_KEPT)
        self._changes_count = 0
        self._reason = ""
        policy.start(pack_bytes_max, now_ns)
        self._aim = self._describe_aim()

    @property
    def waiting(self) -> int:
        """How many messages are in the buffer."""
        return len(self._records) - self._next

    @property
    def waiting_bytes(self) -> int:
        """How many bytes are in the buffer."""
        return self._added_bytes - self._left_bytes

    @property
    def under_way(self) -> int:
        """How many packs have left and are not back."""
        return len(self._under_way)

    @property
    def under_way_bytes(self) -> int:
        """How many bytes have left and are not back."""
        return self._under_way_bytes

    @property
    def room(self) -> int:
        """How many bytes the source may add before it must wait; 0 while it must."""
        return 0 if self.full else max(0, self._limit() - self.waiting_bytes - self._under_way_bytes)

    def add(self, records: Sequence[bytes], now_ns: int) -> None:
        """Put messages into the buffer, behind those that are there."""
        if not records:
            return
        self._records.extend(records)
        ends = accumulate(map(len, records), initial=self._added_bytes)
        next(ends)
        self._ends.extend(ends)
        self._added_bytes = self._ends[-1]
        self._arrivals.append((len(records), now_ns))
        self._watch()

    def packs(self, now_ns: int) -> list[list[bytes]]:
        """Return the packs that must leave, in order; each is to be one multicast."""
        self._recent.roll(now_ns)
        wake_ns = self._policy.wake_ns()
        if wake_ns is not None and wake_ns <= now_ns:
            reason = self._policy.wake(now_ns)
            if reason:
                self._note(reason, now_ns)
        packs: list[list[bytes]] = []
        while self._next < len(self._records):
            filled = self._filled()
            if not self._has_room() or not (filled or self._may_leave_early(now_ns)):
                break
            packs.append(self._cut(now_ns, filled=filled))
        if packs:
            self._let_go()
        return packs

    def delivered(self, now_ns: int) -> None:
        """Learn that the oldest pack under way has come back: it is delivered here, and will be everywhere.

        A pack that was forgotten may come back as well, and is not counted if nothing else is under way.
        """
        if not self._under_way:
            return
        pack = self._under_way.popleft()
        self._under_way_bytes -= pack.bytes
        self._messages += pack.messages
        self._packs += 1
        self._bytes += pack.bytes
        self._recent.count(pack, now_ns)
        reason = self._policy.come_back(pack, now_ns)
        if reason:
            self._note(reason, now_ns)
        self._window.come_back(pack, self._pack_bytes(), now_ns)
        if self.full:
            self._watch()

    def forget(self, now_ns: int) -> int:
        """Give up what is under way, since the engine begins anew; return how many packs that were.

        Messages that wait go on waiting. What is known of the engine's speed is kept, the round trip is measured anew.
        """
        packs = len(self._under_way)
        self._under_way.clear()
        self._under_way_bytes = 0
        self._policy.forget(now_ns)
        self._window.forget()
        self._watch()
        return packs

    def wake_ns(self) -> int | None:
        """Return when `packs` is due at the latest, though nothing is added or delivered; None if never."""
        wake_ns = self._policy.wake_ns()
        if not self._arrivals or not self._has_room():
            return wake_ns
        late_ns = self._arrivals[0][1] + self._interval_ns
        return late_ns if wake_ns is None else min(wake_ns, late_ns)

    def changes(self) -> list[PackingChange]:
        """Return the policy's decisions since the last call, the last 256 of them."""
        changes = list(self._changes)
        self._changes.clear()
        return changes

    def statistics(self) -> PackingStatistics:
        """Return what the buffer is doing."""
        degree, throughput, latency_ns = self._recent.measures()
        return PackingStatistics(
            policy=self._policy.name,
            degree=degree,
            bytes_aim=self._policy.bytes_aim,
            messages=self._messages,
            packs=self._packs,
            bytes=self._bytes,
            throughput=throughput,
            latency_ns=latency_ns,
            waiting=self.waiting,
            waiting_bytes=self.waiting_bytes,
            under_way=len(self._under_way),
            under_way_bytes=self._under_way_bytes,
            window_bytes=self._limit(),
            full=self.full,
            suspensions=self.suspensions,
            packing_interval_ns=self._interval_ns,
            changes=self._changes_count,
            reason=self._reason,
        )

    def _has_room(self) -> bool:
        return not self._under_way or self._under_way_bytes < self._window.bytes_max

    def _filled(self) -> bool:
        """Whether what waits fills a pack."""
        policy, waiting_bytes = self._policy, self._added_bytes - self._left_bytes
        return (
            waiting_bytes >= policy.bytes_max
            or len(self._records) - self._next >= policy.degree_max
            or waiting_bytes >= self._pack_bytes_max
        )

    def _may_leave_early(self, now_ns: int) -> bool:
        """Whether a pack may leave that could have more."""
        return (
            len(self._under_way) < self._policy.eager_packs_max
            or now_ns - self._arrivals[0][1] >= self._interval_ns
            or (self.full and not self._under_way)
        )

    def _cut(self, now_ns: int, *, filled: bool) -> list[bytes]:
        """Take the next pack out of the buffer."""
        policy, begin, ends = self._policy, self._next, self._ends
        bytes_max = min(policy.bytes_max, self._pack_bytes_max)
        most = min(len(ends), begin + policy.degree_max)
        end = max(begin + 1, bisect_right(ends, self._left_bytes + bytes_max, begin, most))
        size = ends[end - 1] - self._left_bytes
        alone = not self._under_way
        added_ns_sum = self._take_arrivals(end - begin)
        pack = Pack(end - begin, size, now_ns, added_ns_sum, alone, filled or self.full or self._was_full)
        self._was_full = self.full
        self._next = end
        self._left_bytes += size
        self._under_way.append(pack)
        self._under_way_bytes += size
        self._size += (size / pack.messages - self._size) * (0.1 if self._size else 1.0)
        self._window.leave(pack)
        reason = policy.leave(pack)
        if reason:
            self._note(reason, now_ns)
        return self._records[begin:end]

    def _take_arrivals(self, count: int) -> int:
        """Take so many messages from the arrivals; return when they came, added up."""
        arrivals = self._arrivals
        added_ns_sum = 0
        while count:
            there, at_ns = arrivals[0]
            if there > count:
                arrivals[0] = (there - count, at_ns)
                return added_ns_sum + count * at_ns
            added_ns_sum += there * at_ns
            count -= there
            arrivals.popleft()
        return added_ns_sum

    def _let_go(self) -> None:
        """Drop records that have left, at once if these are all, otherwise when they are the larger part."""
        spent = self._next
        if spent == len(self._records):
            self._records.clear()
            self._ends.clear()
        elif 2 * spent > len(self._records):
            del self._records[:spent], self._ends[:spent]
        else:
            return
        self._next = 0

    def _pack_bytes(self) -> float:
        """Return how many bytes a pack has by and large when it is full."""
        policy = self._policy
        return min(policy.bytes_aim, self._pack_bytes_max, policy.degree_max * (self._size or SIZE_GUESS))

    def _limit(self) -> int:
        return min(self._window_bytes_max, max(self._window.bytes_max, int(2 * self._pack_bytes()) + 1))

    def _watch(self) -> None:
        """Suspend the source, or let it go on."""
        outstanding, limit = self.waiting_bytes + self._under_way_bytes, self._limit()
        if self.full:
            self.full = outstanding > OPEN_SHARE * limit
        elif outstanding >= limit:
            self.full = self._was_full = True
            self.suspensions += 1

    def _describe_aim(self) -> tuple[float, int]:
        """Return the degree and the bytes that the policy aims at."""
        aim = self._policy.bytes_aim
        return min(float(self._policy.degree_max), max(1.0, aim / (self._size or SIZE_GUESS))), aim

    def _note(self, reason: str, now_ns: int) -> None:
        before, self._aim = self._aim, self._describe_aim()
        _, throughput, latency_ns = self._recent.measures()
        change = PackingChange(now_ns, before[0], self._aim[0], before[1], self._aim[1], throughput, latency_ns, reason)
        self._changes.append(change)
        self._changes_count += 1
        self._reason = reason


class _Recent:
    """Counts of the running second, and what came of the one before."""

    def __init__(self, now_ns: int) -> None:
        self._since_ns = now_ns
        self._now_ns = now_ns
        self._messages = self._packs = self._latency_ns = 0
        self._before: tuple[float, float, float] | None = None

    def count(self, pack: Pack, now_ns: int) -> None:
        """Count a pack that has come back."""
        self._messages += pack.messages
        self._packs += 1
        self._latency_ns += pack.messages * now_ns - pack.added_ns_sum
        self._now_ns = now_ns

    def roll(self, now_ns: int) -> None:
        """End the running second, if it is over."""
        if now_ns - self._since_ns >= RECENT_NS:
            self._now_ns = now_ns
            self._before = self._sum_up()
            self._since_ns = now_ns
            self._messages = self._packs = self._latency_ns = 0

    def measures(self) -> tuple[float, float, float]:
        """Return degree, throughput and latency of the last whole second; of the first one as long as it runs."""
        return self._before or self._sum_up()

    def _sum_up(self) -> tuple[float, float, float]:
        throughput = self._messages * 1e9 / max(1, self._now_ns - self._since_ns)
        if self._packs:
            return self._messages / self._packs, throughput, self._latency_ns / self._messages
        degree, _, latency_ns = self._before or (0.0, 0.0, 0.0)
        return degree, throughput, latency_ns
