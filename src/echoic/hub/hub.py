"""The hub: a process's concentrator (JECho, section 4), and the first thing a program makes.

It owns one link to each other hub it talks to and multiplexes all channels over it. It manages the channels that were
created here, and can serve as a name server for others. `outbound` and `inbound` are the way of the events.
"""

import atexit
import logging
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self, TypeVar

from echoic.channels import (
    AUDIT_CHANNEL,
    EVENT_BYTES_MAX,
    Browse,
    ChannelEntry,
    ChannelId,
    Concentrator,
    Describe,
    Described,
    Listing,
    Policy,
    Report,
    Reported,
    SharedPolicy,
    Step,
    ignore,
    renew,
)
from echoic.eager import Modulator, SharedObject, SharedReference, SigningKey
from echoic.errors import ClosedError, EchoicError
from echoic.formats import NATIVE, Format, match
from echoic.groups.packer import PACKING_INTERVAL_NS
from echoic.hub.audit import AuditRecord, AuditTrail
from echoic.hub.channel import Channel
from echoic.hub.closing import close_groups, wind_up
from echoic.hub.context import context_descriptor
from echoic.hub.derived import Terms, modulate_step
from echoic.hub.doorkeeping import admission_by, checked_addresses, decide_here
from echoic.hub.endpoints import Endpoints
from echoic.hub.flusher import Flusher
from echoic.hub.group import Group
from echoic.hub.group_delivery import KEPT_BYTES, GroupState
from echoic.hub.group_joining import JoinOptions, Surroundings, join_group
from echoic.hub.inbound import Inbound
from echoic.hub.intake import Intake
from echoic.hub.large_storage import LargeStorage
from echoic.hub.lookup import find_channel, register_derived_name, register_name
from echoic.hub.notebook_faces import hub_as_html
from echoic.hub.operating import Operating
from echoic.hub.recording import Recording
from echoic.hub.replay import Replay, start_replay
from echoic.hub.replay_window import OnBatch, OnHole, ReplayOptions, Window
from echoic.hub.statistics import HubStatistics, link_statistics
from echoic.hub.switchboard import Switchboard
from echoic.hub.vigil import Trusted
from echoic.links import Identity, check_exposure
from echoic.recorder import SEGMENT_BYTES_MAX, Disk, JournalOptions, Retention
from echoic.recorder.journal import Moment
from echoic.recorder.replaying import GAP_SECONDS_MAX
from echoic.rights import Decision, Right, Rights
from echoic.wire.allocator import settle_allocator

if TYPE_CHECKING:
    from echoic.groups.policies import Policy as PackingPolicy
    from echoic.hub.outbound import Source
    from echoic.values import ValueStore

__all__ = ["Hub"]

log: Final = logging.getLogger("echoic.hub")
FOREVER: Final = Retention()

S = TypeVar("S", bound=SharedObject)


class Hub:
    """The process's place in a system of channels.

    It closes by itself when the program ends. A child that is forked does not have it: there the hub is closed, and
    everything made of it.
    """

    def __init__(  # noqa: PLR0913 - every one has a default, and is named by the caller
        self,
        listen: str = "127.0.0.1:0",
        *,
        names: str | Sequence[str] = (),
        name: str = "",
        advertise: str = "",
        identity: Identity | None = None,
        insecure: bool = False,
        switch_interval: float | None = None,
        policy: Policy | None = None,
        rights: Rights | str | Path | None = None,
        key: SigningKey | None = None,
        services: Mapping[str, object] | None = None,
        event_bytes_max: int = EVENT_BYTES_MAX,
        store: "ValueStore[bytes] | None" = None,
    ) -> None:
        """Start listening.

        Args:
            listen: Where other hubs reach this one; port 0 takes a free one.
            names: The address of a name server, or of several; without any, channels are found by their id.
            name: What people call this hub.
            advertise: The host under which others reach this hub, if it is not the one in `listen`: behind 0.0.0.0, or
                behind a router.
            identity: Certificate, key and authority for TLS, which addresses that other machines can reach need.
            insecure: Accept that strangers can read and write, instead.
            switch_interval: Let Python switch threads after so many seconds. A round trip beside a thread that computes
                takes 5 ms at Python's default, 0.24 ms at 0.0001, which costs the computing thread some percent.
            policy: What others may run inside the sources here; derivations within limits if nothing is said.
            rights: Who may do what with which channels; a file of rules is read again whenever it changes. Without, all
                who are let in may do everything. What was decided is told on the channel `echoic/audit`.
            key: Signs the modulators that this hub sends to others, who run them if they trust it. One is made up for
                the life of this hub otherwise, which is enough for sources of its own.
            services: What modulators inside the sources here may ask for, by name: objects whose public methods they
                may call.
            event_bytes_max: How many bytes an event may have between hubs; beyond 16 MiB it is fetched piece by piece.
            store: Where such events lie meanwhile; one with 256 MiB of memory, and files beyond, if nothing is said.

        Raises:
            LocalError: `event_bytes_max` is not from 16 MiB to 2 GiB, or `rights` no file of rules.
            AddressError: `listen` is not an address.
            InsecureError: It can be reached from other machines, without TLS.
            UnreachableError: It cannot be listened at.
        """
        check_exposure(listen, secure=identity is not None, insecure=insecure)
        storage = LargeStorage(store, event_bytes_max)
        settle_allocator()
        if switch_interval is not None:
            sys.setswitchinterval(switch_interval)
        self.names: Final = checked_addresses((names,) if isinstance(names, str) else names)
        self._flusher = Flusher()
        self._endpoints: dict[str, Endpoints] = {}
        self._sources: set[Source] = set()
        self._intakes: list[Intake] = []
        self._groups: set[Group] = set()
        self._joining = threading.Lock()
        self._identity = identity
        self._operating = Operating(key, services or {}, self._sources)
        self._inbound = Inbound(self._endpoints, self._flusher, self._operating)
        trusted = Trusted(rights, identity)  # before anything of it is read: what changes meanwhile is seen
        self._admission = admission = admission_by(rights, identity)
        self._switchboard = Switchboard(listen, advertise, identity, name, self._inbound, policy, storage, admission)
        self._operating.start(self._switchboard, self._switchboard.shared_objects)
        self.address: Final = self._switchboard.address
        self._lock, self._closed = threading.Lock(), False
        self._flusher.start(self._switchboard)
        _open_hubs.add(self)
        self._audit()
        self._vigil = trusted.keep_vigil(self.set_rights, self._switchboard)

    def create(self, name: str, declared: object | None = None, *, context: object | None = None) -> Channel:
        """Create a channel, which this hub then manages.

        Args:
            name: Its name, unique in this hub and at the name servers.
            declared: The type of its events; None for a channel whose sources declare theirs.
            context: The type of the values that its sources let others see of themselves (`echoic.Context`).

        Raises:
            AddressError: This cannot be a name.
            ChannelExistsError: The name is taken.
            FormatError: `declared` is not an event type, or `context` has more than numbers.
            UnreachableError: No name server answers.
        """
        self._check_open()
        format = None if declared is None else Format.of(declared)
        visible = context_descriptor(context)
        id = ChannelId(self.address, name)
        board = self._switchboard
        board.do(lambda core: core.manager.directory.create(name, format, visible))
        try:
            register_name(self._switchboard, self.names, id)
        except EchoicError:
            self.remove(name)
            raise
        return self._channel(id, declared, format, context=visible)

    def open(self, channel: str, declared: object | None = None) -> Channel:
        """Open a channel by its id, or by its name in this hub or at a name server.

        Args:
            channel: `echoic://host:port/name`, or a name.
            declared: The type in which events are received and submitted here; None to take them as they come.

        Raises:
            ChannelNotFoundError: Nobody knows it.
            IncompatibleTypesError: Its events cannot be received as `declared`.
            UnreachableError: The name server or the manager does not answer.
        """
        self._check_open()
        id = find_channel(self._switchboard, self.names, channel)
        described = self._switchboard.ask(id.address, Describe(id.name), Described)
        id = ChannelId(self._switchboard.announced(id.address), id.name)
        format = Format.from_descriptor(described.descriptor) if described.descriptor else None
        if declared is not None and format is not None:
            match(format, Format.of(declared))
        opened = self._channel(id, declared, format, described.lineage, described.context)
        opened.tend()
        return opened

    def derived(self, parent: Channel, step: Step, terms: Terms) -> Channel:
        """Return a channel that is derived from another; the parent's manager has entered it."""
        id = ChannelId(ChannelId.parse(parent.id).address, step.name)
        format = Format.from_descriptor(step.recipe.output or step.input)
        declared = terms.output if terms.output is not None else parent.own_type
        channel = self._channel(id, declared, format, (*parent.endpoints.member.lineage, step), step.context)
        if terms.name:
            register_derived_name(self._switchboard, self.names, id)
        return channel

    def share(self, shared: SharedObject, policy: SharedPolicy = "prompt") -> None:
        """Make this hub the place of an object's master copy; done by itself when a modulator that has it is sent.

        Args:
            shared: The object; it is changed by assignment and `publish`, here and at every copy.
            policy: Tell the copies of each change at once ("prompt"), or of many together some times a second ("lazy").

        Raises:
            ClosedError: The hub was closed.
            EncodeError: A value does not fit its field, or all together have too many bytes.
            LimitExceededError: There are too many objects.
            LocalError: It is shared by another hub, or there is no such policy.
        """
        self._switchboard.shared_objects.share(shared, policy)

    def follow(self, reference: SharedReference, cls: type[S]) -> S:
        """Return a copy of a shared object, as modulators get them by themselves; `close` it when it is not needed.

        Args:
            reference: What `SharedObject.reference` has returned, in whatever process; it can be sent as msgpack.
            cls: The class of the object.

        Raises:
            ClosedError: The hub was closed.
            RefusedError: The object is not one of this class, or there are too many.
        """
        return self._switchboard.shared_objects.copy(reference, cls)

    def modulated(self, parent: Channel, modulator: Modulator, *, share: bool) -> tuple[Step, bool]:
        """Have the derived channel of a modulator entered, or find that of an equal one; tell whether it is such.

        Its shared objects have their master copies here.
        """
        for shared in modulator.shared_objects():
            if not shared.id:
                self.share(shared)
        board, id, key = self._switchboard, ChannelId.parse(parent.id), self._operating.key
        return modulate_step(board, id, parent.format, modulator, key, share=share)

    def describe(self, channel: str) -> Described:
        """Return a channel's type and members, as its manager knows them.

        Raises:
            ChannelNotFoundError: Nobody knows it.
            UnreachableError: The name server or the manager does not answer.
        """
        id = find_channel(self._switchboard, self.names, channel)
        return self._switchboard.ask(id.address, Describe(id.name), Described)

    def channels(self, address: str | None = None) -> list[ChannelEntry]:
        """Return the channels that a hub manages or a name server knows; this hub's own without an address.

        Raises:
            UnreachableError: Nobody answers there.
        """
        return self._switchboard.ask(address or self.address, Browse(), Listing).channels

    def report(self, address: str) -> Reported:
        """Return what goes through the channels of another hub.

        Raises:
            UnreachableError: Nobody answers there.
        """
        return self._switchboard.ask(address, Report(), Reported)

    def remove(self, name: str) -> None:
        """Remove a channel that this hub manages; those who hold it open keep what they have.

        Raises:
            ChannelNotFoundError: This hub manages none of this name.
        """

        def forget(core: Concentrator) -> None:
            core.manager.directory.remove(name)
            for server, message in core.manager.unregister(name):
                core.ask(server, message, ignore)

        self._switchboard.do(forget)

    def record(
        self,
        channel: str | Channel,
        path: str | Path,
        *,
        partitions: int = 1,
        retention: Retention = FOREVER,
        segment_bytes_max: int = SEGMENT_BYTES_MAX,
        durability: Literal["disk", "os"] = "disk",
    ) -> Recording:
        """Record a channel in a journal, from here on; one that is there already goes on.

        An event counts as handled when it is on the disk. Sources in other hubs keep what is not, and send it again
        should this process end and the journal be recorded anew.

        Args:
            channel: Its name, id, or itself.
            path: The folder of the journal, which may hold several channels.
            partitions: Into how many files at a time the events of different sources go; only for a journal that is
                not there yet.
            retention: When the oldest segments are removed; never, if nothing is said.
            segment_bytes_max: When a further segment is begun.
            durability: `disk` waits for the disk; `os` leaves it to the operating system, so that events survive the
                end of this process but not a loss of power.

        Raises:
            LocalError: This hub records it already.
            JournalError: The journal is damaged, in use, or cannot be written.
            EchoicError: The channel cannot be opened.
        """
        opened = channel if isinstance(channel, Channel) else self.open(channel)
        options = JournalOptions(partitions, segment_bytes_max, retention, durability)
        return Recording(opened, Disk(path), options)

    def intake(self, name: str, path: str | Path, declared: object | None = None, partitions: int = 1) -> Intake:
        """Let others write to a channel exactly once: rows of a data pipeline, in epochs that they commit.

        The channel is created, or opened if it is there, and recorded. `echoic.spark` writes to it by
        `frame.write.format("echoic").option("channel", ...)`.

        Args:
            name: The name of the channel.
            path: The folder of its journal, in which the intake also keeps what is committed.
            declared: The type of its events; that of the first rows, or of the journal, if nothing is said.
            partitions: Those of the journal, if it is not there yet; rows of a Spark partition stay in one, in order.

        Raises:
            JournalError: The journal, or what the intake keeps, is damaged, in use, or cannot be written.
            IncompatibleTypesError: The channel exists and has another type.
            EchoicError: The channel can be neither opened nor created, or has an intake.
        """
        self._check_open()
        made = Intake(self, name, path, declared, partitions)
        self._intakes = [*(each for each in self._intakes if not each.closed), made]
        return made

    def replay(  # noqa: PLR0913 - every one has a default, and is named by the caller
        self,
        path: str | Path,
        channel: str = "",
        rate: float = 1.0,
        *,
        recorded: str = "",
        start: int | None = None,
        end: int | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        partition: int | None = None,
        loop: int = 1,
        paused: bool = False,
        gap_seconds_max: float = GAP_SECONDS_MAX,
        stamp: str = "",
        on_batch: OnBatch | None = None,
        on_hole: OnHole | None = None,
    ) -> Replay:
        """Let a recording flow through a channel, which is opened, or created if there is none.

        Every recorded source has one here that stands for it. What time it was can be asked of the result
        (`now_ns`, `current`), written into the events (`stamp`), or told (`on_batch`).

        Args:
            path: The folder of the journal.
            channel: The name or id of the channel to replay into; that of the recorded one if nothing is said.
            rate: How many times as fast as recorded; 0 or infinity for as fast as possible.
            recorded: The recorded channel; by default the one called `channel`, or else the only one.
            start: The sequence number of the first event, of the only partition or of `partition`.
            end: The sequence number behind the last.
            since: When the first was recorded: nanoseconds since 1970, a datetime, or ISO text.
            until: The time behind the last.
            partition: The only partition; all are merged otherwise.
            loop: How many times to replay; 0 for ever.
            paused: Begin paused, for `resume` or `step`.
            gap_seconds_max: How much recorded time between two batches is waited for at most, since recorded clocks
                may have leapt; infinity for any.
            stamp: A field into which the recorded time is written: nanoseconds since 1970 into int64 or uint64,
                seconds into float64.
            on_batch: Called with each batch, and all that is known of it, before it is submitted.
            on_hole: Called for events that cannot be read, which end the replay otherwise.

        Raises:
            JournalError: There is no such journal, or it cannot be read.
            LocalError: An option is wrong.
            EchoicError: The channel can be neither opened nor created.
        """
        window = Window(start, end, since, until, partition)
        options = ReplayOptions(rate, window, loop, paused, gap_seconds_max, stamp, on_batch, on_hole)
        return start_replay(self, path, channel, recorded, options)

    def join(  # noqa: PLR0913 - every one has a default, and is named by the caller
        self,
        name: str,
        declared: object,
        *,
        me: str,
        peers: Mapping[str, str],
        engine: str = "embedded",
        stability: str = "majority",
        durability: str = "",
        path: str | Path | None = None,
        packing: "str | PackingPolicy" = "auto",
        packing_interval: float = PACKING_INTERVAL_NS / 1e9,
        election_timeout: float = 0.5,
        state: GroupState | None = None,
        kept_bytes: int = KEPT_BYTES,
    ) -> Group:
        """Be a member of an ordered group: everybody is given the same events in the same order, or nothing.

        Args:
            name: The name of the group.
            declared: The type of the events that are submitted and received here.
            me: The name of this member.
            peers: All members at the first start, by name, with the addresses of their hubs; this one among them. All
                must be there when the group is first started, and a majority from then on.
            engine: What orders the events: `embedded`, which needs nothing else; `corosync`, by the daemon of this
                machine; `local`, among members in this process.
            stability: Who must hold an event before anybody is given it: a `majority` of the members, or `all` that are
                in the view too.
            durability: When a member counts as holding an event: when it is on its `disk`, with its `os`, or in its
                `memory`; disk if a path is given. A member without a disk comes back as a new one, which the others
                must let in: so a majority must not end at once, and of two members none.
            path: The folder of this member's log, for it alone.
            packing: How events are packed into multicasts: `auto`, which finds out; `static:N`; `paper`; `nagle:BYTES`.
            packing_interval: For how many seconds an event may wait for others at most.
            election_timeout: For how many seconds a leader may be silent; others take over after once to twice that.
            state: What the program makes of the events, if a member that was away shall be given that, and not events.
            kept_bytes: How much of the order is kept for members that were away.

        Raises:
            LocalError: An option is wrong, or this hub is a member already.
            FormatError: `declared` is not an event type.
            JournalError: The log cannot be opened.
            UnreachableError: The engine's daemon does not answer.
        """
        self._check_open()
        options = JoinOptions(
            me,
            peers,
            engine,
            stability,
            durability,
            path,
            packing,
            packing_interval,
            election_timeout,
            state,
            kept_bytes,
        )
        joined: list[Group] = []

        def left() -> None:
            self._groups.difference_update(joined)

        surroundings = Surroundings(self.address, self._identity, self._switchboard.groups, self._admission, left)
        with self._joining:
            group = join_group(name, declared, options, surroundings)
            joined.append(group)
            self._groups.add(group)
        return group

    def set_rights(self, rights: Rights | None) -> None:
        """Go by other rights from here on. Who has lost one that is in use is cut off; None: all may do everything.

        Raises:
            ClosedError: The hub was closed.
        """
        self._check_open()
        with self._joining:  # a file may change while the program sets others
            self._switchboard.do(lambda core: renew(core, rights))
            for group in list(self._switchboard.groups.values()):
                group.review()
            self._audit()

    def decide(
        self, who: str, right: Right, name: str, request: str = "", peer: str = "", ancestors: Sequence[str] = ()
    ) -> Decision | None:
        """Return whether somebody may do something, None without rights; a request is told on `echoic/audit`."""
        found = decide_here(self._admission, who, right, name, request, peer, ancestors)
        if found is not None and request:
            self._inbound.audited(found)
        return found.decision if found is not None else None

    def statistics(self) -> HubStatistics:
        """Return who is connected, and what goes through the channels."""
        links = [link_statistics(link) for link in self._switchboard.links()]
        counts = [ends.member.counts() for ends in list(self._endpoints.values())]
        return HubStatistics(self.address, links, counts, self._switchboard.storage.statistics())

    def close(self) -> None:
        """Send what has gathered, take leave, and end. Takes less than two seconds, whatever the others do."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        _open_hubs.discard(self)
        close_groups(self._groups)
        for intake in self._intakes:
            intake.close()
        if self._vigil is not None:
            self._vigil.close()
        if self._inbound.trail is not None:
            self._inbound.trail.close()
        board = self._switchboard
        wind_up(board, self._sources, self._endpoints)
        board.close()
        board.shared_objects.close()
        self._flusher.close()
        self._operating.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed, or is the copy of one in a forked child."""
        return self._closed

    def forsake(self) -> None:
        """Be closed without a word: this is the copy of a hub in a forked child, and its links are the parent's."""
        self._closed = self._switchboard.closed = True
        for source in self._sources:
            source.abandon()
        for group in self._groups:
            group.forsake()

    def _audit(self) -> None:
        """Keep a trail of what others want, if there are rights, on a channel that only this hub knows by name."""
        if self._admission.rights is None or self._inbound.trail is not None:
            return
        format, id = Format.of(AuditRecord), ChannelId(self.address, AUDIT_CHANNEL)
        self._switchboard.do(lambda core: core.manager.directory.create(AUDIT_CHANNEL, format))
        self._inbound.trail = AuditTrail(self._channel(id, AuditRecord, format), self.address)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the hub was closed")

    def _channel(
        self,
        id: ChannelId,
        declared: object | None,
        format: Format | None,
        lineage: tuple[Step, ...] = (),
        context: bytes = b"",
    ) -> Channel:
        with self._lock:
            endpoints = self._endpoints.get(str(id))
            if endpoints is None:
                member = self._switchboard.do(lambda core: core.open(id, format))
                endpoints = self._endpoints[member.id] = Endpoints(member, self._switchboard)
            endpoints.member.format = format  # it may have been removed and created anew
            endpoints.member.lineage = lineage
            endpoints.member.context = Format.from_descriptor(context).on(NATIVE) if context else None
        return Channel(endpoints, declared, self._flusher, self._sources, self)

    def __repr__(self) -> str:
        return f"<Hub at {self.address}>"

    def _repr_html_(self) -> str:
        return hub_as_html(repr(self), self.statistics().channels)


_open_hubs: Final[set[Hub]] = set()


def _close_all() -> None:
    for hub in list(_open_hubs):
        hub.close()


def _forsake_all() -> None:
    for hub in _open_hubs:
        hub.forsake()
    _open_hubs.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forsake_all)
