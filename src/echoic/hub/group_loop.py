"""The loop of a group: one thread in which its engine and its packing live.

    submit, any thread  ->  inbox  ->  Packer  ->  Engine  ->  events  ->  delivery, a thread of its own
                                          ^------- delivered here -------+

Nothing in here runs code of users, so a handler that computes for a minute does not cost the group its leader. All that
was submitted since the last turn is packed together: a burst is one pack, and a lone message leaves at once.
"""

import contextlib
import logging
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from echoic.formats import Format
from echoic.groups.engine import Delivered, Ended, Engine, EngineEvent, Restored
from echoic.groups.packer import Packer
from echoic.groups.stream import encode_description, encode_pack

__all__ = ["INBOX_MAX", "Audience", "GroupLoop"]

IDLE_MILLISECONDS: Final = 200
INBOX_MAX: Final = 4096
TURNS_MAX: Final = 8
BACKLOG_BYTES_MAX: Final = 64 * 1024 * 1024
log: Final = logging.getLogger("echoic.groups")


class Audience(Protocol):
    """Who learns what the engine tells."""

    @property
    def backlog_bytes(self) -> int:
        """How much it has not handled yet."""

    def hand_over(self, events: Sequence[EngineEvent | int]) -> None:
        """Take what happened, in order; a number tells how many own messages are part of the state that follows."""


class GroupLoop:
    """Runs an engine and packs what is submitted."""

    def __init__(self, name: str, life: int, me: str, format: Format) -> None:
        self.inbox: Final[list[bytes]] = []
        """Records that were submitted; appended by any thread."""
        self.awake = True
        self.full = False
        """Whether submitters must wait."""
        self.failure = ""
        """Why nothing more is ordered, once that is so."""
        self._me, self._life = me, life
        self._format = format
        self._under_way: deque[int] = deque()
        """How many messages each pack has that is not back, from the first; 0 for the one that describes the type."""
        self._returned = 0
        self._errands: deque[Callable[[], None]] = deque()
        self._wakener = -1
        self._waking = threading.Lock()
        self._poller = select.poll()
        self._descriptors: dict[int, int] | None = None
        self._room = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"echoic-group-{name}", daemon=True)

    def start(self, engine: Engine, packer: Packer, audience: Audience) -> None:
        """Begin."""
        self._engine, self._packer, self._audience = engine, packer, audience
        self._wakener = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread.start()

    def wake(self) -> None:
        """Make the loop take a turn; called by any thread."""
        if not self.awake:
            self.awake = True
            self._ring()

    def do(self, errand: Callable[[], None]) -> None:
        """Have something done by the thread of the loop."""
        self._errands.append(errand)
        self.wake()

    def wait_for_room(self, deadline: float) -> bool:
        """Wait until a submitter may go on; False if that takes too long."""
        with self._room:
            while (self.full or len(self.inbox) >= INBOX_MAX) and not self.failure and not self._closing:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self.wake()
                self._room.wait(min(left, 0.05))
        return True

    def close(self, seconds: float) -> None:
        """End the loop, and with it the engine."""
        self._closing = True
        self._ring()
        with self._room:
            self._room.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(seconds)

    def _run(self) -> None:
        try:
            while not self._closing and not self.failure:
                self._turn(self._wait())
        except Exception as error:  # whatever it is, nobody else would notice
            log.exception("the group's engine has failed")
            self.fail(f"the group's engine has failed: {error}")
        finally:
            self.awake = True
            self._engine.close()
            with self._waking:
                descriptor, self._wakener = self._wakener, -1
            os.close(descriptor)
            self._let_go()

    def _ring(self) -> None:
        """Wake whoever polls; the descriptor may be closed by now, and belong to another."""
        with self._waking:
            if self._wakener >= 0:
                os.eventfd_write(self._wakener, 1)

    def _wait(self) -> list[tuple[int, int]]:
        """Wait until something is to be done; return which descriptors are ready."""
        descriptors = self._engine.descriptors()
        if descriptors != self._descriptors:
            self._descriptors = dict(descriptors)
            self._poller = select.poll()
            for descriptor, interest in {**descriptors, self._wakener: select.POLLIN}.items():
                if descriptor >= 0:
                    self._poller.register(descriptor, interest)
        self.awake = False
        if self.inbox or self._errands:
            self.awake = True
        ready = self._poller.poll(0 if self.awake else self._patience())
        self.awake = True
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wakener)
        return [(descriptor, events) for descriptor, events in ready if descriptor != self._wakener]

    def _patience(self) -> int:
        """Return for how many milliseconds nothing is due."""
        now_ns = time.monotonic_ns()
        due_ns = self._engine.wake_ns()
        packing_ns = self._packer.wake_ns()
        if packing_ns is not None:
            due_ns = min(due_ns, packing_ns)
        return max(0, min(IDLE_MILLISECONDS, -((now_ns - due_ns) // 1_000_000)))

    def _turn(self, ready: Sequence[tuple[int, int]]) -> None:
        while self._errands:
            self._errands.popleft()()
        packer = self._packer
        now_ns = time.monotonic_ns()
        if self.inbox:
            taken = self.inbox[:]
            del self.inbox[: len(taken)]
            packer.add(taken, now_ns)
        for _ in range(TURNS_MAX):
            sent = self._send(now_ns)
            events = self._engine.turn(ready, now_ns)
            if events:
                now_ns = time.monotonic_ns()
                self._take(events, now_ns)
            elif not sent:
                break
            ready = ()
        self._engine.hold = self._audience.backlog_bytes > BACKLOG_BYTES_MAX
        self._mind_the_room()

    def _send(self, now_ns: int) -> bool:
        """Give the engine the packs that must leave, and ahead of the first one what their type is."""
        packs, under_way = self._packer.packs(now_ns), self._under_way
        if packs and not under_way and not self._returned:
            under_way.append(0)
            self._engine.send(encode_description(self._format), now_ns)
        for records in packs:
            under_way.append(len(records))
            self._engine.send(encode_pack(self._format, records), now_ns)
        return bool(packs)

    def _take(self, events: Sequence[EngineEvent], now_ns: int) -> None:
        """Let the packer know what has come back, and hand everything over."""
        me, life = self._me, self._life
        told: list[EngineEvent | int] = []
        for event in events:
            if isinstance(event, Delivered):
                if event.life == life and event.sender == me:
                    self._come_back(event.number, now_ns)
            elif isinstance(event, Restored):
                told.append(self._come_back(event.own, now_ns))
            elif isinstance(event, Ended):
                self.fail(event.reason)
            told.append(event)
        self._audience.hand_over(told)

    def _come_back(self, number: int, now_ns: int) -> int:
        """Learn that this member's packs up to a number are back; return how many messages that were."""
        messages = 0
        while self._returned < number and self._under_way:
            self._returned += 1
            count = self._under_way.popleft()
            messages += count
            if count:
                self._packer.delivered(now_ns)
        return messages

    def _mind_the_room(self) -> None:
        full = self._packer.full or self._audience.backlog_bytes > BACKLOG_BYTES_MAX
        if full != self.full or (not full and len(self.inbox) < INBOX_MAX):
            self.full = full
            if not full:
                self._let_go()

    def _let_go(self) -> None:
        if self._room.acquire(False):
            try:
                self._room.notify_all()
            finally:
                self._room.release()

    def fail(self, reason: str) -> None:
        """Order nothing more; tell everybody why."""
        if not self.failure:
            self.failure = reason
            self._audience.hand_over([Ended(reason)])
