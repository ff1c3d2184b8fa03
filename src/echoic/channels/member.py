"""A channel, as one hub takes part in it: its sources and sinks here, and how far each source has been heard.

    EVENTS  payload := sequence of the first event u64 | source u64 | batch
    CALLS   payload := sequence u64 | source u64 | call u64 | batch          answered by REPLIES
    REPLIES payload := call u64 | msgpack map of who failed and how, absent when nobody did

Every source has a number of its own in all the world and counts its events. So a sink knows exactly what it missed,
whatever the cause, and an event that comes twice is noticed.

A subscription counts from the moment a source's hub has heard of it. While its hub cannot be reached, or has been given
up, the source's hub *owes* it: it remembers where each source was, and when the hub is found again tells it, so that
events between are known to be missing even by a sink that never heard the source.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels.fanout import Fanout
from echoic.channels.identity import ChannelId
from echoic.channels.messages import Bind, ChannelCounts, Gap, Placed, Role, SinkHub, Step
from echoic.channels.turns import HANDLES_MAX, Turns
from echoic.errors import ClosedError, MalformedFrameError
from echoic.formats import Format

if TYPE_CHECKING:
    from echoic.channels.context import SourceContext
    from echoic.channels.derivation import Derivation
    from echoic.channels.keeping import Keeping
    from echoic.channels.steering import Helm

__all__ = ["CALL_HEADER", "EVENT_HEADER", "REPLY", "Call", "Member"]

EVENT_HEADER: Final = struct.Struct("<QQ")
CALL_HEADER: Final = struct.Struct("<QQQ")
REPLY: Final = struct.Struct("<Q")
POSITIONS_MAX: Final = 65_536
FORGOTTEN: Final = POSITIONS_MAX // 16
OWED_MAX: Final = 4096
TOLD_MAX: Final = 65_536  # hubs, as many as a manager lets take part
TURNS_MAX: Final = 64
LINK_LOST: Final = "the link to the source was lost for too long"

_failures: Final = msgspec.msgpack.Decoder(dict[str, str])


class Call:
    """A synchronous event: which hubs have not answered yet, and what those who have said."""

    __slots__ = ("failures", "waiting")

    def __init__(self, waiting: dict[str, SinkHub]) -> None:
        self.waiting: Final = waiting
        self.failures: Final[dict[str, str]] = {}

    def answered(self, hub: str, where: str, told: memoryview) -> None:
        """Note what a hub says, whose name for people is `where`.

        Raises:
            MalformedFrameError: It cannot be understood.
        """
        if hub not in self.waiting:
            return
        if told:
            try:
                failures = _failures.decode(told)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise MalformedFrameError(f"a reply of {len(told)} bytes cannot be read: {error}") from error
            self.failures.update({f"{sink} at {where}": problem for sink, problem in failures.items()})
        self.waiting.pop(hub, None)

    def gone(self, hub: str, reason: str) -> None:
        """Note that a hub will not answer."""
        sink = self.waiting.pop(hub, None)
        if sink is not None and not (sink.journal and len(sink.sinks) == 1):  # a recorder gets it when it comes back
            label = f"{', '.join(sink.sinks)} at {sink.address}" if sink.sinks else sink.address
            self.failures[label] = f"the hub is gone: {reason}"


class Member:
    """One hub's part in a channel."""

    __slots__ = (
        "_began",
        "_owed",
        "_placed",
        "asking",
        "bearers",
        "bytes_in",
        "bytes_out",
        "context",
        "contexts",
        "departed",
        "derivations",
        "derived_here",
        "events_in",
        "events_out",
        "expecting",
        "fanout",
        "format",
        "helms",
        "id",
        "joined",
        "keepings",
        "lineage",
        "losses",
        "manager",
        "missed",
        "name",
        "number",
        "origin",
        "positions",
        "recorded",
        "roles",
        "sink",
        "sources",
        "subscription",
        "told",
        "turns",
        "withheld",
    )

    def __init__(self, id: ChannelId, number: int, format: Format | None) -> None:
        self.id: Final = str(id)
        self.name: Final = id.name
        self.manager: Final = id.address
        self.number: Final = number
        self.format = format
        self.fanout: Final = Fanout(number)
        self.sources: dict[int, int] = {}
        self.sink: SinkHub | None = None
        self.positions: dict[int, int] = {}
        self.bearers: dict[int, str] = {}
        """Of sources in other hubs the names of those who have brought them, in a hub with rights (`may_speak`)."""
        self.subscription = self.losses = self.expecting = 0
        self.roles: frozenset[Role] = frozenset()  # frozen, since a set of its own would double what a channel takes
        self.joined: frozenset[Role] = frozenset()
        self._began: dict[int, int] = {}
        self._owed: dict[tuple[str, str, int], dict[int, int]] = {}
        self._placed: dict[int, tuple[tuple[int, bool], ...]] | None = None
        self.lineage: tuple[Step, ...] = ()
        self.origin: Derivation | None = None
        self.derivations: tuple[Derivation, ...] = ()
        self.derived_here = False
        self.context: Format | None = None
        self.contexts: dict[int, SourceContext] | None = None
        self.helms: dict[int, Helm] | None = None
        self.keepings: tuple[Keeping, ...] = ()
        """What recorders have yet to confirm of the events of sources here."""
        self.recorded: tuple[str, Mapping[int, int]] | None = None
        """The journal that records the channel here, and how far each source is on its disk."""
        self.withheld = False
        """Whether a sink is about to go over to this channel, but sources here have yet to turn."""
        self.turns: Final = Turns()
        self.asking: Final[dict[Role, int]] = {}
        """How many wishes to take part the manager has yet to answer."""
        self.told: dict[str, dict[str, bool | None]] = {}
        """By address, sinks of which it was told since they take part; and whether sources here have turned them to
        this channel, or away from it, or (None) neither."""
        self.departed: Final[dict[str, frozenset[str]]] = {}
        """By address, sinks that have left before their hub could be sent to: it must be told when it is."""
        self.events_out = self.bytes_out = self.events_in = self.bytes_in = self.missed = 0

    @property
    def heard_here(self) -> bool:
        """Whether there are sinks here for the events of sources here."""
        return self.sink is not None and not self.withheld

    @property
    def unconfirmed_bytes(self) -> int:
        """How much no recorder has confirmed of the events of sources here."""
        return sum(keeping.bytes_kept for keeping in self.keepings)

    def place(self, placed: Placed) -> None:
        """Note where the events of a source of another hub are derived, from a certain one on."""
        known = self._placed = self._placed or {}
        if placed.source not in known and len(known) >= POSITIONS_MAX:
            known.clear()
        turn = (placed.first, placed.here)
        turns = known.get(placed.source, ((0, True),)) if placed.first else ()
        position = self.positions.get(placed.source, 0)
        past = sum(since <= position for since, _ in turns) - 1  # events that were held back may come after the notice
        known[placed.source] = (*turns[max(past, 0) :], turn)[-TURNS_MAX:]

    def is_raw(self, source: int, first: int) -> bool:
        """Whether events of a source of another hub have yet to be derived."""
        if self._placed is None or source not in self._placed:
            return False
        turns = self._placed[source]
        return not [here for since, here in turns if since <= first or since == turns[0][0]][-1]

    def position(self, source: int) -> int:
        """Return the number of the next event of a source here.

        Raises:
            ClosedError: There is no such source any more.
        """
        position = self.sources.get(source)
        if position is None:
            raise ClosedError("the source was closed")
        return position

    def pass_over(self, source: int, count: int) -> int:
        """Count the next events of a source here; return the number of the first.

        Raises:
            ClosedError: There is no such source any more.
        """
        first = self.position(source)
        self._began.setdefault(source, first)
        self.sources[source] = first + count
        self.events_out += count
        return first

    def send_off(self, source: int, count: int, size: int) -> None:
        """Count the next events of a source that is here, and the bytes that are sent of them to every target."""
        sources = self.sources
        first = sources[source]
        self._began.setdefault(source, first)
        sources[source] = first + count
        self.events_out += count
        self.bytes_out += size
        for target in self.fanout.targets.values():
            target.credit -= size

    def began(self, source: int) -> int:
        """Return the number of the first event of a source here."""
        return self._began.get(source, self.sources.get(source, 0))

    def end(self, source: int) -> int:
        """Forget a source here; return its position."""
        self._began.pop(source, None)
        if self.contexts is not None:
            self.contexts.pop(source, None)
        if self.helms is not None:
            self.helms.pop(source, None)
        return self.sources.pop(source, 0)

    def context_of(self, source: int) -> "SourceContext | None":
        """Return what a source lets the code of others have; of a derived source, the one that it is derived from."""
        if self.contexts is not None and source in self.contexts:
            return self.contexts[source]
        instances = list(self.origin.instances.values()) if self.origin is not None else []
        return next((instance.context for instance in instances if instance.source == source), None)

    def owe(self, sink: SinkHub, since: dict[int, int] | None = None) -> None:
        """Note that a subscription counts from here on, even if its hub cannot be reached yet or was given up."""
        key = (sink.address, sink.hub, sink.subscription)
        if any(key == (to.sink.address, to.sink.hub, to.sink.subscription) for to in self.fanout.targets.values()):
            return
        while len(self._owed) >= OWED_MAX:
            del self._owed[next(iter(self._owed))]
        self._owed.setdefault(key, dict(self.sources) if since is None else since)

    def tell_of(self, address: str, handle: str, turned: bool | None = None) -> None:
        """Note that sources here have turned a sink, or (None) that it is not to be turned by what others say."""
        if address not in self.told and len(self.told) >= TOLD_MAX:
            return
        known = self.told.setdefault(address, {})
        if handle not in known:
            if len(known) < HANDLES_MAX:
                known[handle] = turned
        elif turned is not None:
            known[handle] = turned

    def await_listener(self) -> Callable[[], None]:
        """Note that somebody may listen soon, until what is returned is called, once or more often."""
        self.expecting += 1
        expected = [1]

        def met() -> None:
            while expected:
                self.expecting -= expected.pop()

        return met

    @property
    def awaited(self) -> bool:
        """Whether somebody may listen soon: the manager has yet to say who does, or his hub is being connected to."""
        return self.expecting > 0

    @property
    def owing(self) -> bool:
        """Whether any subscription counts whose hub is not sent to."""
        return bool(self._owed)

    def owes(self, hub: str) -> bool:
        """Whether a hub that is not sent to has a subscription that counts."""
        return any(key[1] == hub for key in self._owed)

    def attach(self, hub: str, sink: SinkHub) -> Bind | None:
        """Send to a hub from here on; return what to tell it first, None if it is sent to already."""
        since = self._owed.pop((sink.address, sink.hub, sink.subscription), None)
        if since is None:
            since = dict(self.sources)
        if not self.fanout.attach(hub, sink, since):
            return None
        self._began = {source: first for source, first in self._began.items() if source in self.sources}
        began = {source: since.get(source, self._began.get(source, at)) for source, at in self.sources.items()}
        return Bind(self.number, self.id, dict(self.sources), began, sink.subscription)

    def disown(self, address: str, subscription: int) -> str:
        """Send no more to the hub at an address, since it does not want it; return the hub, "" if there was none."""
        for key in [key for key in self._owed if key[0] == address and subscription in (0, key[2])]:
            del self._owed[key]
        for hub, target in self.fanout.targets.items():
            if target.sink.address == address and subscription in (0, target.sink.subscription):
                self.fanout.detach(hub)
                return hub
        return ""

    def expect(self, source: int, position: int) -> None:
        """Note that a source of another hub will go on at a position, if it was not heard before."""
        if source not in self.positions:
            if len(self.positions) >= POSITIONS_MAX:
                for oldest in list(islice(self.positions, FORGOTTEN)):  # many, since to find one takes as long
                    del self.positions[oldest]
            self.positions[source] = position

    def follow(self, source: int, first: int, count: int) -> bool:
        """Note that events have arrived, if they come right behind those before, and need no look; else False."""
        positions = self.positions
        if positions.get(source) != first or self._placed is not None:
            return False
        positions[source] = first + count
        return True

    def advance(self, source: int, first: int, count: int) -> tuple[int, Gap | None]:
        """Note that events have arrived; return how many of them were there before, and what is missing before them."""
        expected = self.positions.get(source)
        if expected is None:
            self.expect(source, first)
            expected = first
        if first + count <= expected:
            return min(expected - first, count), None
        self.positions[source] = first + count
        if first <= expected:
            return expected - first, None
        return 0, Gap(0, source, expected, first - 1, LINK_LOST)

    def skip(self, gap: Gap) -> Gap | None:
        """Note that events will not arrive; return what is missing and was not told before.

        Events of a source come in order, so whatever lies before the gap and has not come is missing too.
        """
        self.expect(gap.source, gap.first)
        expected = self.positions[gap.source]
        if gap.last < expected:
            return None
        self.positions[gap.source] = gap.last + 1
        return gap if gap.first == expected else Gap(gap.number, gap.source, expected, gap.last, gap.reason)

    def resume(self, bind: Bind) -> Iterator[Gap]:
        """Note where the sources of a hub go on, and yield what is missing before."""
        for source, position in bind.positions.items():
            self.expect(source, bind.since.get(source, position))
            missing = self.skip(Gap(bind.number, source, self.positions[source], position - 1, LINK_LOST))
            if missing is not None:
                yield missing

    def lose(self, *roles: Role) -> None:
        """Note that the manager must confirm roles again; what it is saying meanwhile is about an earlier time."""
        self.joined = self.joined.difference(roles)
        self.losses += 1

    def lacking(self) -> Iterator[Role]:
        """Yield the roles that the manager has yet to confirm."""
        return iter(sorted(self.roles - self.joined))

    def counts(self) -> ChannelCounts:
        """Return what went through so far."""
        dropped, waiting = self.fanout.statistics()
        return ChannelCounts(
            self.name,
            self.id,
            self.format.name if self.format else "",
            len(self.sources),
            len(self.sink.sinks) if self.sink else 0,
            len(self.fanout.targets),
            self.events_out,
            self.bytes_out,
            self.events_in,
            self.bytes_in,
            self.missed,
            dropped,
            waiting,
        )
