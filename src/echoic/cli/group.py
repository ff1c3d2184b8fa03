"""`echoic group join`: be a member of an ordered group, from a terminal.

    terminal 1: join --me n1      lines that are typed ---> submitted ---+
    terminal 2: join --me n2      ...                                    +---> the same events in the same order,
    terminal 3: join --me n3      ...                                    |     printed by all three

The hub of a member listens at the member's own address among the peers. Events go to stdout, and whoever does not take
them slows the group down and loses nothing; views go to stderr. How the member stands is told on the channels
`NAME.group` and `NAME.packing` of its hub (`echoic group view`).
"""

import contextlib
import queue
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from echoic.cli.declaring import declared_type
from echoic.cli.echo import SHAPE, Shape
from echoic.cli.group_stamps import StampedRenderer, stamped
from echoic.cli.meeting import Meeting, check_open, identity_named
from echoic.cli.screen import say
from echoic.cli.teller import tell_warnings
from echoic.cli.typed_lines import event_of_line, typed_lines
from echoic.cli.where import ContextName, Flag, IdentityName, Where, surroundings
from echoic.errors import EchoicError, LocalError
from echoic.formats import Format
from echoic.groups.engine import View
from echoic.hub import Hub
from echoic.hub.group import Group
from echoic.hub.group_delivery import GroupStamp
from echoic.hub.group_status import GroupStatusSource
from echoic.links import parse_address
from echoic.replicas import ReplicatedLog
from echoic.wire import Batch

__all__ = ["join"]

WAKE_SECONDS: Final = 0.1
QUEUE_BATCHES_MAX: Final = 64
MISSING_SECONDS: Final = 2.0
DRAIN_SECONDS: Final = 30.0
FAILED: Final = 1


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Membership:
    """Who takes part, and how."""

    me: Annotated[str, Parameter(help="The name of this member.", show_default=False)]
    peer: Annotated[
        list[str],
        Parameter(
            help="A member at the first start, NAME=HOST:PORT; repeat it for all of them, this one among them.",
            negative=(),
            show_default=False,
        ),
    ]
    listen: Annotated[
        str, Parameter(help="Where others reach this member, if that is not its address among the peers.")
    ] = ""
    engine: Annotated[
        Literal["embedded", "corosync", "local"],
        Parameter(help="What orders the events; corosync is the daemon of this machine, for which names of peers do."),
    ] = "embedded"
    stability: Annotated[
        Literal["majority", "all"],
        Parameter(help="Who must hold an event before anybody is given it; all means all in the view."),
    ] = "majority"
    durability: Annotated[
        Literal["disk", "os", "memory"] | None,
        Parameter(help="When a member counts as holding an event. [default: disk with --path, else memory]"),
    ] = None
    path: Annotated[Path | None, Parameter(help="The folder of this member's log, for it alone.")] = None
    packing: Annotated[
        str, Parameter(help="How events are packed: auto, static:11, nagle:65536, paper, paper:ta=0.5,pack_max=64.")
    ] = "auto"
    packing_interval: Annotated[
        float, Parameter(help="For how many seconds an event may wait for others, at most.")
    ] = 0.05
    state_in: Annotated[
        str, Parameter(help="Write the events into a table: sqlite:PATH, postgresql://..., mariadb://...")
    ] = ""
    names: Annotated[
        str | None, Parameter(help="The name server, HOST:PORT. [default: $ECHOIC_NAMES, echoic.toml, 127.0.0.1:7400]")
    ] = None
    context: ContextName = None
    insecure: Annotated[
        bool,
        Parameter(help="Accept that strangers can read and write, on addresses other machines reach.", negative=()),
    ] = False

    identity: IdentityName = None

    def peers(self) -> dict[str, str]:
        """Return the addresses of all members, by name.

        Raises:
            LocalError: One has no name, is named twice, or has no address; or this member is none of them.
        """
        found: dict[str, str] = {}
        for word in self.peer:
            name, _, address = word.partition("=")
            if not name or name in found or (not address and self.engine == "embedded"):
                raise LocalError(f"expected NAME=HOST:PORT, each name once, got `{word}` - at --peer")
            found[name] = address
        if self.me not in found:
            raise LocalError(f"this member, `{self.me}`, is none of the peers: {', '.join(found) or 'there are none'}")
        return found

    def join(self, hub: Hub, name: str, format: Format, state: ReplicatedLog | None) -> Group:
        """Join a group.

        Raises:
            EchoicError: As `Hub.join` does.
        """
        return hub.join(
            name,
            format,
            me=self.me,
            peers=self.peers(),
            engine=self.engine,
            stability=self.stability,
            durability=self.durability or "",
            path=self.path,
            packing=self.packing,
            packing_interval=self.packing_interval,
            state=state,
        )


def join(
    name: str,
    declared: Annotated[str, Parameter(name="TYPE")],
    /,
    *,
    membership: Membership,
    count: Annotated[int | None, Parameter(name=["--count", "-n"])] = None,
    leave: Flag = False,
    metadata: Flag = False,
    shape: Shape = SHAPE,
) -> None:
    """Be a member of an ordered group: print its events, and submit what is typed, until Ctrl-C.

    All members are given the same events in the same order. All peers must be there when the group is first started,
    and a majority from then on; a member that is cut off is given nothing, says so, and keeps what is typed. A line is
    JSON, the same with fewer quotes, or field=value for each field.

    Try, each in a terminal of its own:
        P='--peer n1=127.0.0.1:7401 --peer n2=127.0.0.1:7402'
        echoic group join ledger 'Transfer{account: str, amount: int}' --me n1 $P
        echoic group join ledger 'Transfer{account: str, amount: int}' --me n2 $P
    Type in one of them
        account=A amount=100

    Try also:
        echoic group join ledger mine:Transfer --me n1 $P --state-in sqlite:n1.db
        cat some.jsonl | echoic group join ledger mine:Transfer --me n1 $P --leave

    Args:
        name: The name of the group.
        declared: The type of its events: MODULE:CLASS, or a declaration.
        membership: Who takes part, and how.
        count: End after so many events.
        leave: End when standard input does, and everything that was submitted is delivered.
        metadata: Show the place in the order and the sender as well.
        shape: How events are shown.
    """
    if count is not None and count < 1:
        raise LocalError(f"expected --count to be a number of events, got {count}")
    format = Format.of(declared_type(declared))
    render = stamped(shape, metadata=metadata)
    membership.peers()
    with _hub(membership) as hub, contextlib.ExitStack() as stack:
        state = None
        if membership.state_in:
            state = stack.enter_context(ReplicatedLog(name, format, membership.state_in))
        group = stack.enter_context(membership.join(hub, name, format, state))
        _offer_status(hub, group, stack)
        member = Member(group, state)
        try:
            member.run(render, count, leave=leave)
        except KeyboardInterrupt:
            pass  # which is how it ends
        finally:
            member.stop()
        if leave and member.refused:
            sys.exit(FAILED)


@contextlib.contextmanager
def _hub(membership: Membership) -> Iterator[Hub]:
    """Give a hub that listens at a member's address; names are served meanwhile if nobody else does.

    Raises:
        AddressError: What was given is not an address.
        InsecureError: It can be reached from other machines, and nobody said that this is meant.
        UnreachableError: It cannot be listened at.
    """
    own = membership.peers()[membership.me]
    listen = membership.listen or own or "127.0.0.1:0"
    insecure = membership.insecure
    found = surroundings(Where(names=membership.names, context=membership.context, identity=membership.identity))
    identity = identity_named(found.identity)
    host = check_open(listen, insecure=insecure, identity=identity)
    reached = parse_address(own)[0] if own else host
    tell_warnings()
    advertise = reached if reached != host else ""
    name = f"echoic group {membership.me}"
    with (
        Meeting(found.names, identity),
        Hub(listen, names=found.names, name=name, advertise=advertise, insecure=insecure, identity=identity) as hub,
    ):
        yield hub


def _offer_status(hub: Hub, group: Group, stack: contextlib.ExitStack) -> None:
    """Tell others how the member stands; a group works without name servers, so it goes on without that as well."""
    try:
        source = stack.enter_context(GroupStatusSource(hub, group))
    except EchoicError as error:
        say(f"how this member stands is not told to others: {error}")
        return
    say(f"joined '{group.name}' as {group.me} at {hub.address}, {source.channel.id}; Ctrl-C ends")


class Member:
    """Prints what a group delivers, and submits what is typed."""

    def __init__(self, group: Group, state: ReplicatedLog | None) -> None:
        self.refused = 0
        """Lines that were no events."""
        self._group, self._state = group, state
        self._batches: queue.Queue[tuple[Batch, GroupStamp]] = queue.Queue(QUEUE_BATCHES_MAX)
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._failure: EchoicError | None = None
        self._said: View | None = None
        self._telling = threading.Lock()
        group.subscribe(self._take, batch=True, on_view=self._tell_view, on_gap=_tell_gap)
        self._reader = threading.Thread(target=self._submit_lines, name="echoic-typed", daemon=True)

    def run(self, render: StampedRenderer, wanted: int | None, *, leave: bool) -> None:
        """Print events until there were enough of them, or the input has ended, or for ever.

        Raises:
            EchoicError: The group has ended, or what was typed was not delivered.
        """
        self._reader.start()
        left, begun, missing = wanted, time.monotonic(), False
        while left is None or left > 0:
            self._tell_view(self._group.view)
            if not missing and not self._group.view.position and time.monotonic() - begun > MISSING_SECONDS:
                missing = self._tell_missing()
            try:
                batch, stamp = self._batches.get(timeout=WAKE_SECONDS)
            except queue.Empty:
                if self._failure is not None:
                    raise self._failure from None
                if leave and self._ended.is_set():
                    return
                continue
            left = _print(batch, stamp, render, left)

    def stop(self) -> None:
        """Take and submit no more."""
        self._stopped.set()

    def _submit_lines(self) -> None:
        group = self._group
        try:
            for line in typed_lines(self._stopped):
                try:
                    event = event_of_line(line, group.format)
                except EchoicError as error:
                    self.refused += 1
                    say(f"not submitted: {error}")
                    continue
                group.submit(event)
            while not self._stopped.is_set() and not self._ended.is_set():
                with contextlib.suppress(EchoicError):  # no majority: it is delivered when there is one again
                    group.drain(WAKE_SECONDS)
                    self._ended.set()
        except EchoicError as error:
            self._failure = error
        except (OSError, ValueError):
            self._ended.set()  # there is no standard input

    def _take(self, batch: Batch, stamp: GroupStamp) -> None:
        if self._state is not None:
            self._state.deliver(batch, stamp)
        while not self._stopped.is_set():
            try:
                self._batches.put((batch, stamp), timeout=WAKE_SECONDS)
            except queue.Full:
                continue
            return

    def _tell_view(self, view: View) -> None:
        """Say who is in the group, once for each view."""
        with self._telling:
            if view == self._said or (self._said is None and not view.position):
                return
            self._said = view
        if view.primary:
            say(f"view {view.position}: {', '.join(view.members)}")
        else:
            say(f"not in a primary view: {self._group.statistics().reason}")

    def _tell_missing(self) -> bool:
        missing = self._group.statistics().engine.get("missing", ())
        absent = ", ".join(missing) if isinstance(missing, tuple) and missing else "the others"
        say(f"waiting for {absent}: all peers must be there when a group is first started")
        return True


def _print(batch: Batch, stamp: GroupStamp, render: StampedRenderer, left: int | None) -> int | None:
    """Print the events of a batch, not more than are wanted; return how many are wanted still."""
    events = batch.events()[:left]
    lines = (render(event, number, stamp.sender) for number, event in enumerate(events, stamp.sequence))
    sys.stdout.write("".join(lines))
    sys.stdout.flush()
    return None if left is None else left - len(events)


def _tell_gap(first: int, last: int) -> None:
    say(f"events {first} to {last} are kept by nobody any more")
