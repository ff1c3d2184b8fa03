"""What a member of a group tells of itself to whoever asks, over the network: two ordinary channels of its hub.

    ledger.group      a GroupStatus once a second: view, leader, how far it is, how it packs
    ledger.packing    a PackingChanged for each change of packing: from what to what, what was measured, and why

There is no protocol of its own for it. Whoever can subscribe to a channel can look at a group: `echoic group view`, a
viewer, `echoic echo ledger.packing`, a recorder. Each member tells for itself, on channels of its own hub. Where
several members are entered at one name server, the first has the plain names there, and the others add their own
(`ledger.group.n2`).

    with GroupStatusSource(hub, group):
        ...

The changes of packing are taken from the group as they are told (`GroupPacking.changes`), so one source is enough for
a member, and a second one would take some of them away.
"""

import contextlib
import threading
import time
from types import TracebackType
from typing import Annotated, Final, Self

from echoic.errors import ChannelExistsError, EchoicError, LocalError
from echoic.formats import Array, event
from echoic.groups.policies import PackingChange
from echoic.hub.channel import Channel
from echoic.hub.group import Group
from echoic.hub.hub import Hub

__all__ = ["PACKING_SUFFIX", "STATUS_SUFFIX", "GroupStatus", "GroupStatusSource", "PackingChanged", "status_of"]

STATUS_SUFFIX: Final = ".group"
PACKING_SUFFIX: Final = ".packing"
TELL_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 2.0


@event
class GroupStatus:
    """How a member of a group stands. What its engine has not is empty, or 0."""

    group: str
    member: str
    at: float
    """When this was so, in seconds since 1970."""
    members: Annotated[list[str], Array[str, ...]]
    """Who is in the view; nobody when this member is in no primary one."""
    position: int
    """The place of the view in the order."""
    primary: bool
    reason: str
    """Why this member is not in a primary view, while it is not."""
    engine: str
    role: str
    leader: str
    term: int
    commit: int
    """Up to which entry of the engine's log everything is decided."""
    last: int
    """The last entry of the engine's log here."""
    submitted: int
    delivered: int
    """The number of the last event that was delivered here."""
    backlog_bytes: int
    """Delivered by the group and not yet handled by the program."""
    handler_failures: int
    packing: str
    """The policy, as text."""
    degree: float
    """Messages in a recent pack, on average."""
    bytes_aim: int
    throughput: float
    """Messages a second of this member that came back, recently."""
    latency_ns: float
    waiting: int
    waiting_bytes: int
    under_way: int
    """Packs that have left and are not back."""
    under_way_bytes: int
    suspensions: int
    changes: int
    packing_reason: str
    """Why packing was changed last."""


@event
class PackingChanged:
    """A decision of a member's packing policy, what it had measured, and why it was made."""

    group: str
    member: str
    at: float
    """When, in seconds since 1970."""
    degree_before: float
    degree: float
    bytes_before: int
    bytes: int
    throughput: float
    latency_ns: float
    reason: str


def status_of(group: Group) -> GroupStatus:
    """Return how a member of a group stands, as an event."""
    statistics = group.statistics()
    view, packing, engine = statistics.view, statistics.packing, statistics.engine
    return GroupStatus(
        group=statistics.name,
        member=statistics.me,
        at=time.time(),
        members=list(view.members),
        position=view.position,
        primary=view.primary,
        reason=statistics.reason,
        engine=str(engine.get("engine", "")),
        role=str(engine.get("role", "")),
        leader=str(engine.get("leader", "")),
        term=_whole(engine.get("term", engine.get("epoch"))),
        commit=_whole(engine.get("commit", engine.get("position"))),
        last=_whole(engine.get("last", engine.get("position"))),
        submitted=statistics.submitted,
        delivered=statistics.delivered,
        backlog_bytes=statistics.backlog_bytes,
        handler_failures=statistics.handler_failures,
        packing=packing.policy,
        degree=packing.degree,
        bytes_aim=packing.bytes_aim,
        throughput=packing.throughput,
        latency_ns=packing.latency_ns,
        waiting=packing.waiting,
        waiting_bytes=packing.waiting_bytes,
        under_way=packing.under_way,
        under_way_bytes=packing.under_way_bytes,
        suspensions=packing.suspensions,
        changes=packing.changes,
        packing_reason=packing.reason,
    )


class GroupStatusSource:
    """Tells how a member of a group stands, until it is closed.

    Args:
        hub: The hub through which the member has joined.
        group: The member.
        seconds: How often.

    Raises:
        AddressError: The name of the group cannot be that of a channel.
        LocalError: `seconds` is not a time.
        UnreachableError: The hub has name servers, and none answers.
    """

    def __init__(self, hub: Hub, group: Group, *, seconds: float = TELL_SECONDS) -> None:
        if not 0 < seconds < float("inf"):
            raise LocalError(f"a group's status is told every {seconds} s, expected a time above 0")
        self._hub, self._group, self._seconds = hub, group, seconds
        self.channel: Final = _create(hub, group, STATUS_SUFFIX, GroupStatus)
        try:
            self.packing_channel: Final = _create(hub, group, PACKING_SUFFIX, PackingChanged)
        except EchoicError:
            hub.remove(self.channel.name)
            raise
        self._status = self.channel.source()
        self._packing = self.packing_channel.source()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"echoic-status-{group.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Tell no more, and take the channels away."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._thread.join(CLOSE_SECONDS)
        with contextlib.suppress(EchoicError):  # the hub was closed first, and the channels with it
            self._hub.remove(self.channel.name)
            self._hub.remove(self.packing_channel.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        while not self._closing.wait(self._seconds):
            try:
                self._tell()
            except RuntimeError:
                continue  # the engine's tables changed while they were read: the next second will do
            except EchoicError:
                return  # the hub was closed

    def _tell(self) -> None:
        self._status.submit(status_of(self._group))
        changes = self._group.packing.changes()
        if changes:
            # What is measured has the monotonic clock, which means nothing elsewhere.
            since_ns = time.time_ns() - time.monotonic_ns()
            self._packing.submit_batch([self._change(each, since_ns) for each in changes])
            self._packing.flush()
        self._status.flush()

    def _change(self, change: PackingChange, since_ns: int) -> PackingChanged:
        return PackingChanged(
            group=self._group.name,
            member=self._group.me,
            at=(change.at_ns + since_ns) / 1e9,
            degree_before=change.degree_before,
            degree=change.degree,
            bytes_before=change.bytes_before,
            bytes=change.bytes,
            throughput=change.throughput,
            latency_ns=change.latency_ns,
            reason=change.reason,
        )


def _create(hub: Hub, group: Group, suffix: str, declared: type) -> Channel:
    """Create a channel for a member, with its name behind that of the group if another member has that one."""
    try:
        return hub.create(f"{group.name}{suffix}", declared)
    except ChannelExistsError:
        return hub.create(f"{group.name}{suffix}.{group.me}", declared)


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
