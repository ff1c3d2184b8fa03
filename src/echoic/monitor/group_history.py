"""Ordered groups over time: how each member packs and how fast it is, its decisions and their reasons, and the views.

    ledger.group     once a second      ->  a sample of each member: degree, throughput, latency, what is delivered
                                        ->  a change of view, where members, leader or primary differ from before
    ledger.packing   with each change   ->  a decision: from what to what, what was measured, why

Packing adapts by itself, and a number that moves by itself is trusted by nobody. So what a decision was made from is
kept beside what came of it. Times are those of whoever listens, since members may stand on machines whose clocks
differ. Everything has a limit, and what members say is text of strangers.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec

from echoic.channels import ChannelEntry
from echoic.errors import EchoicError
from echoic.hub import GroupStatus, Hub, Sink
from echoic.hub.group_status import PACKING_SUFFIX, PackingChanged
from echoic.monitor.bounded import finite, short, whole
from echoic.monitor.groups import group_of

__all__ = [
    "Decision",
    "GroupHistory",
    "GroupLoad",
    "GroupsLoad",
    "GroupsOverview",
    "MemberLoad",
    "MemberSamples",
    "ViewChange",
]

MEMBERS_MAX: Final = 200
GROUPS_MAX: Final = 50
SAMPLES_KEPT: Final = 300
DELIVERED_KEPT: Final = 8
DECISIONS_KEPT: Final = 60
VIEWS_KEPT: Final = 40
NUMBERS_MAX: Final = 24_000
"""How many numbers of samples a look has at most, all members together."""
COLUMNS: Final = 5
CLOCKS_SECONDS: Final = 10.0
"""A member whose clock is not further from ours says itself when it decided."""
RETRY_EVERY: Final = 10
FOLLOW_SECONDS: Final = 1.0
"""How long a look may subscribe to members that do not answer; the others have to wait for the next look."""
FORGET_SECONDS: Final = 120.0
NAMES_MAX: Final = 64
T = TypeVar("T")


class MemberSamples(msgspec.Struct, frozen=True):
    """What a member told over time, a list for each quantity; `at` is in seconds since 1970."""

    at: list[float]
    degree: list[float]
    throughput: list[float]
    latency_ms: list[float]
    backlog_bytes: list[int]


class MemberLoad(msgspec.Struct, frozen=True):
    """How a member stands, and how it went."""

    member: str
    channel: str
    silent_seconds: float
    members: list[str]
    position: int
    primary: bool
    reason: str
    engine: str
    role: str
    leader: str
    term: int
    commit: int
    last: int
    submitted: int
    delivered: int
    lag: int
    """How many events it was behind the others, by what they had told before it told this: they tell once a second."""
    backlog_bytes: int
    handler_failures: int
    packing: str
    degree: float
    bytes_aim: int
    throughput: float
    latency_ms: float
    waiting: int
    under_way: int
    suspensions: int
    changes: int
    packing_reason: str
    samples: MemberSamples


class Decision(msgspec.Struct, frozen=True):
    """A change of packing, and why."""

    at: float
    member: str
    degree_before: float
    degree: float
    bytes_before: int
    bytes: int
    throughput: float
    latency_ms: float
    reason: str


class ViewChange(msgspec.Struct, frozen=True):
    """A member came to see its group otherwise."""

    at: float
    member: str
    members: list[str]
    position: int
    primary: bool
    leader: str
    reason: str


class GroupLoad(msgspec.Struct, frozen=True):
    """A group: its members, and what happened in it, the latest last."""

    group: str
    members: list[MemberLoad]
    decisions: list[Decision]
    views: list[ViewChange]


class GroupsLoad(msgspec.Struct, frozen=True):
    """All groups."""

    at: float
    groups: list[GroupLoad]


class Member:
    """What is kept of a member."""

    def __init__(self, status: GroupStatus) -> None:
        self.status = status
        self.heard = 0.0
        self.samples: deque[tuple[float, float, float, float, int]] = deque(maxlen=SAMPLES_KEPT)
        self.delivered: deque[tuple[float, int]] = deque(maxlen=DELIVERED_KEPT)

    def delivered_at(self, moment: float) -> int:
        """Return how far it was at a moment; 0 where that is too long ago."""
        return max((delivered for at, delivered in self.delivered if at <= moment), default=0)


class GroupHistory:
    """Keeps what members of groups have told. The times are given, in seconds since 1970."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._decisions: dict[str, deque[Decision]] = {}
        self._views: dict[str, deque[ViewChange]] = {}

    def tell(self, channel: str, status: GroupStatus, now: float) -> None:
        """Learn how a member stands, told on a channel."""
        member = self._members.get(channel)
        if member is None:
            if len(self._members) >= MEMBERS_MAX:
                return
            member = self._members[channel] = Member(status)
            self._note_view(status, now)
        elif _view(status) != _view(member.status):
            self._note_view(status, now)
        member.status, member.heard = status, now
        member.delivered.append((now, status.delivered))
        member.samples.append(
            (
                round(now, 3),
                finite(status.degree),
                finite(status.throughput),
                finite(status.latency_ns / 1e6),
                whole(status.backlog_bytes),
            )
        )

    def decide(self, change: PackingChanged, now: float) -> None:
        """Learn of a decision."""
        kept = self._kept(self._decisions, change.group, DECISIONS_KEPT)
        if kept is not None:
            kept.append(
                Decision(
                    finite(change.at if abs(now - change.at) < CLOCKS_SECONDS else now),
                    short(change.member),
                    finite(change.degree_before),
                    finite(change.degree),
                    whole(change.bytes_before),
                    whole(change.bytes),
                    finite(change.throughput),
                    finite(change.latency_ns / 1e6),
                    short(change.reason),
                )
            )

    def loads(self, now: float) -> list[GroupLoad]:
        """Return all groups, and forget whom nothing was heard of for long."""
        self._forget(now)
        groups: dict[str, list[tuple[str, Member]]] = {}
        for channel, member in self._members.items():
            groups.setdefault(member.status.group, []).append((channel, member))
        kept = NUMBERS_MAX // (COLUMNS * max(1, len(self._members)))
        return [
            GroupLoad(
                short(group),
                self._member_loads(members, now, kept),
                list(self._decisions.get(group, ())),
                list(self._views.get(group, ())),
            )
            for group, members in sorted(groups.items())[:GROUPS_MAX]
        ]

    def _member_loads(self, members: list[tuple[str, Member]], now: float, kept: int) -> list[MemberLoad]:
        found = [
            _member_load(channel, member, now, max(each.delivered_at(member.heard) for _, each in members), kept)
            for channel, member in members
        ]
        return sorted(found, key=lambda each: (each.member, each.channel))

    def _forget(self, now: float) -> None:
        for channel in [each for each, member in self._members.items() if now - member.heard > FORGET_SECONDS]:
            del self._members[channel]
        alive = {member.status.group for member in self._members.values()}
        for group in [each for each in self._views if each not in alive]:
            del self._views[group]
        for group, decisions in list(self._decisions.items()):
            if group not in alive and now - decisions[-1].at > FORGET_SECONDS:
                del self._decisions[group]

    def _note_view(self, status: GroupStatus, now: float) -> None:
        kept = self._kept(self._views, status.group, VIEWS_KEPT)
        if kept is not None:
            kept.append(
                ViewChange(
                    round(now, 3),
                    short(status.member),
                    _names(status.members),
                    whole(status.position),
                    bool(status.primary),
                    short(status.leader),
                    short(status.reason),
                )
            )

    @staticmethod
    def _kept(kept: dict[str, deque[T]], group: str, count: int) -> deque[T] | None:
        """Return where something about a group is kept; None where there are too many groups."""
        if group not in kept and len(kept) >= GROUPS_MAX:
            return None
        return kept.setdefault(group, deque(maxlen=count))


class GroupsOverview:
    """Follows all groups that are known to a name server.

    Args:
        hub: Who listens.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._history = GroupHistory()
        self._lock = threading.Lock()
        self._sinks: dict[str, Sink | None] = {}
        self._followed = 0

    def follow(self, known: Iterable[ChannelEntry]) -> None:
        """Subscribe to the channels of members among those that are known, and leave those that are gone."""
        wanted: dict[str, type] = {}
        for entry in known:
            if len(wanted) < MEMBERS_MAX * 2 and (group_of(entry.name) or _is_packing(entry.name)):
                wanted[entry.id] = GroupStatus if group_of(entry.name) else PackingChanged
        self._followed += 1
        deadline = time.monotonic() + FOLLOW_SECONDS
        for id, kind in sorted(wanted.items(), key=lambda each: each[0] in self._sinks):  # who was not asked yet first
            if time.monotonic() > deadline:
                break
            if id not in self._sinks or (self._sinks[id] is None and self._followed % RETRY_EVERY == 0):
                self._sinks[id] = self._subscribed(id, kind)
        for id in set(self._sinks) - set(wanted):
            sink = self._sinks.pop(id)
            if sink is not None:
                sink.close()

    def look(self) -> GroupsLoad:
        """Return all groups."""
        now = time.time()
        with self._lock:
            return GroupsLoad(now, self._history.loads(now))

    def close(self) -> None:
        """Listen no more."""
        for id in list(self._sinks):
            sink = self._sinks.pop(id)
            if sink is not None:
                sink.close()

    def _subscribed(self, id: str, kind: type) -> Sink | None:
        try:
            return self._hub.open(id, kind).subscribe(self._taker(id), slow="drop_oldest")
        except EchoicError:
            return None  # it has gone meanwhile, or something else has such a name

    def _taker(self, id: str) -> Callable[[object], None]:
        def take(told: object) -> None:
            with self._lock:
                if isinstance(told, GroupStatus):
                    self._history.tell(id, told, time.time())
                elif isinstance(told, PackingChanged):
                    self._history.decide(told, time.time())

        return take


def _is_packing(channel: str) -> bool:
    return bool(f"{channel}.".partition(f"{PACKING_SUFFIX}.")[1])


def _view(status: GroupStatus) -> tuple[object, ...]:
    return tuple(status.members), status.primary, status.leader, status.position if not status.primary else 0


def _member_load(channel: str, member: Member, now: float, most: int, kept: int) -> MemberLoad:
    status = member.status
    samples = list(member.samples)[-max(kept, 1) :]
    at, degree, throughput, latency, backlog = map(list, zip(*samples, strict=True)) if samples else ([],) * COLUMNS
    return MemberLoad(
        member=short(status.member),
        channel=short(channel),
        silent_seconds=round(max(0.0, now - member.heard), 1),
        members=_names(status.members),
        position=whole(status.position),
        primary=bool(status.primary),
        reason=short(status.reason),
        engine=short(status.engine),
        role=short(status.role),
        leader=short(status.leader),
        term=whole(status.term),
        commit=whole(status.commit),
        last=whole(status.last),
        submitted=whole(status.submitted),
        delivered=whole(status.delivered),
        lag=whole(max(0, most - status.delivered)),
        backlog_bytes=whole(status.backlog_bytes),
        handler_failures=whole(status.handler_failures),
        packing=short(status.packing),
        degree=finite(status.degree),
        bytes_aim=whole(status.bytes_aim),
        throughput=finite(status.throughput),
        latency_ms=finite(status.latency_ns / 1e6),
        waiting=whole(status.waiting),
        under_way=whole(status.under_way),
        suspensions=whole(status.suspensions),
        changes=whole(status.changes),
        packing_reason=short(status.packing_reason),
        samples=MemberSamples(at, degree, throughput, latency, backlog),
    )


def _names(names: Iterable[str]) -> list[str]:
    return [short(each) for _, each in zip(range(NAMES_MAX), names, strict=False)]
