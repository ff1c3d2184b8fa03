"""A group over Corosync: closed process groups below, uniform and primary by `groups.agreement`.

    group --- send ---> Agreement --- outgoing ---> ClosedGroup.send ---> daemon      "try again" leaves it queued
    group <-- events -- Agreement <-- received ---- ClosedGroup.dispatch <--- daemon

Who does not run Corosync needs the embedded engine, which is faster, and simpler to set up. This one is for clusters
that run it already, and have its views, fences and monitoring.

One pack is one multicast: a header of 32 bytes and the pack, which is not copied before the daemon has it. The daemon
says which process sent a message by node and process id; which member that is, the process says itself by its State, so
no node ids need to be configured. What counts as a change of the view is more than the daemon says of processes: a ring
that has split and met again may have the same processes, though not all of them have got the same messages; so every
ring begins a round.
"""

import select
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from echoic.engines.corosync.cpg import MESSAGE_BYTES_MAX, ClosedGroup, Message, NodesChanged, ProcessesChanged
from echoic.errors import LocalError, UnreachableError
from echoic.groups.agreement import HEADER_BYTES, Agreement, Place
from echoic.groups.engine import Capabilities, Ended, EngineEvent

__all__ = ["CorosyncEngine", "CorosyncStatistics"]

KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
TRY_AGAIN_NS: Final = 1_000_000
TURN_MESSAGES_MAX: Final = 256


class CorosyncStatistics(msgspec.Struct, frozen=True):
    """What the daemon and this member have had to do with each other."""

    sent: int
    received: int
    tried_again: int
    rings: int
    waiting: int


class CorosyncEngine:
    """One member of a group, by the Corosync daemon of this machine.

    `members` are the names of all configured members; `life` is larger with every start of this one; `applied` is the
    number of messages that its application already has.

    Raises:
        UnreachableError: Corosync's library is not installed, or no daemon answers.
        LocalError: This member is none of the configured ones.
    """

    def __init__(
        self,
        group: str,
        me: str,
        members: Sequence[str],
        *,
        life: int,
        applied: int = 0,
        kept_bytes_max: int = KEPT_BYTES_MAX,
        now_ns: int,
    ) -> None:
        self.applied_sequence = applied
        self.hold = False
        self._agreement = Agreement(me, members, life=life, applied=applied, kept_bytes_max=kept_bytes_max)
        self._below = ClosedGroup(group)
        self._places: tuple[Place, ...] = ()
        self._again_ns = now_ns
        """When to try again what the daemon did not take."""
        self._blocked = False
        self._closed = False
        self._more = False
        self._sent = self._received = self._tried_again = self._rings = 0

    @property
    def capabilities(self) -> Capabilities:
        """What it promises; the daemon packs small messages into larger ones by itself."""
        return Capabilities(pack_bytes_max=MESSAGE_BYTES_MAX - HEADER_BYTES, packs_itself=True)

    def descriptors(self) -> Mapping[int, int]:
        """Return the daemon's descriptor."""
        return {} if self._closed else {self._below.descriptor: select.POLLIN}

    def wake_ns(self) -> int:
        """Return when `turn` is due at the latest."""
        if self._more or (self._agreement.outgoing and not self._blocked):
            return 0
        due_ns = self._agreement.wake_ns()
        return min(due_ns, self._again_ns) if self._blocked or not self._below.joined else due_ns

    def send(self, payload: bytes, now_ns: int) -> None:  # noqa: ARG002 - an engine's signature
        """Multicast a pack, this member's next.

        Raises:
            LocalError: It is larger than one message can be, or too much is waiting.
        """
        bytes_max = self.capabilities.pack_bytes_max
        if len(payload) > bytes_max:
            raise LocalError(f"a pack has {len(payload)} bytes, limit is {bytes_max}")
        self._agreement.send(payload)

    def turn(self, ready: Sequence[tuple[int, int]], now_ns: int) -> list[EngineEvent]:  # noqa: ARG002 - as above
        """Do what is due; return what happened, in order."""
        if self._closed:
            return []
        try:
            if not self._below.joined and now_ns >= self._again_ns and not self._below.join():
                self._again_ns = now_ns + TRY_AGAIN_NS
            self._agreement.note_applied(self.applied_sequence)
            if not self.hold:  # what is not received is not acknowledged, which slows the others
                self._receive(now_ns)
            events = self._agreement.flush(now_ns)
            self._write(now_ns)
        except UnreachableError as problem:
            events = [*self._agreement.flush(now_ns), Ended(str(problem))]
        if events and isinstance(events[-1], Ended):
            self.close()
        return events

    def give_state(self, ticket: int, position: int, summary: bytes, chunks: Iterable[bytes]) -> None:
        """Answer StateWanted.

        Raises:
            LocalError: There is no such position yet.
        """
        self._agreement.give_state(ticket, position, summary, chunks)
        self._more = True

    def compact(self, position: int, summary: bytes = b"", chunks: Sequence[bytes] = ()) -> None:  # noqa: ARG002
        """Forget what was delivered up to a position; what stands for it would not survive this process anyway."""
        self._agreement.compact(position)

    def statistics(self) -> Mapping[str, object]:
        """Return how this member stands, and what it had to do with the daemon."""
        waiting = len(self._agreement.outgoing)
        own = CorosyncStatistics(self._sent, self._received, self._tried_again, self._rings, waiting)
        found = {**msgspec.structs.asdict(self._agreement.statistics()), **msgspec.structs.asdict(own)}
        return {"engine": "corosync", **found}

    def close(self) -> None:
        """Leave the group, and let go of the daemon."""
        if not self._closed:
            self._closed = True
            self._more = self._blocked = False
            self._agreement.outgoing.clear()
            self._below.close()

    def _receive(self, now_ns: int) -> None:
        happened = self._below.dispatch(TURN_MESSAGES_MAX)
        self._more = len(happened) >= TURN_MESSAGES_MAX
        agreement = self._agreement
        for one in happened:
            match one:
                case Message():
                    self._received += 1
                    agreement.received(one.place, one.data)
                case ProcessesChanged():
                    self._places = one.places
                    self._change(now_ns)
                case NodesChanged():
                    self._rings += 1
                    self._change(now_ns)

    def _change(self, now_ns: int) -> None:
        own = self._below.place
        if own in self._places:  # a ring may be told of before this process is in the group
            self._agreement.changed(self._places, own, now_ns)

    def _write(self, now_ns: int) -> None:
        """Hand the daemon as much as it takes."""
        outgoing = self._agreement.outgoing
        self._blocked = False
        while outgoing:
            if not self._below.send(outgoing[0].header, outgoing[0].payload):
                self._tried_again += 1
                self._blocked = True
                self._again_ns = now_ns + TRY_AGAIN_NS
                return
            outgoing.popleft()
            self._sent += 1
