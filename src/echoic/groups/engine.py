"""What a group asks of the engine that orders its messages, and what the engine tells it.

    Group   pack of messages --- send(payload) ---> Engine ... multicast ... Engine --- Delivered ---> Group
                                                           membership            --- Viewed, Suspended, Ended
                                                           state transfer        --- StateWanted, Restored

One pack is one multicast; the engine never looks inside. It promises: every member gets the same events in the same
order (*total order*); what one member has been given, every member of the primary partition gets (*safe*, or uniform,
delivery); each sender's packs come in the order in which they were sent, each once; views stand between the same two
packs everywhere; a member outside of the primary partition is told so and is given nothing (JBora, section 2.1 of the
paper, which hides transitional views in the same way). An engine that does not promise all of it is wrapped in layers
that do (`uniform`, `primary`).

Everything here is called by one thread, the group's loop, which waits on the engine's file descriptors:

    descriptors()                 what to wait for
    turn(ready, now_ns)           does what is due: reads, writes, syncs; returns what the group must learn, in order
    wake_ns()                     when the next turn is due at the latest
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec

from echoic.wire import Buffer

__all__ = [
    "Capabilities",
    "Delivered",
    "Ended",
    "Engine",
    "EngineEvent",
    "Restored",
    "Stability",
    "StateWanted",
    "Suspended",
    "View",
    "Viewed",
]


class Capabilities(msgspec.Struct, frozen=True):
    """What an engine promises by itself, and what a layer must add."""

    total: bool = True
    uniform: bool = True
    primary: bool = True
    """Whether only one side of a partition goes on; otherwise every side does, each with views of its own."""
    durable: bool = False
    """Whether members come back with what they had, after all of them have ended."""
    pack_bytes_max: int = 8 * 1024 * 1024
    """The largest payload of one multicast."""
    pack_bytes_hint: int = 256 * 1024
    """How large packs should be as long as nothing is known. With 64 KiB, messages of 10 kB came to half of the best on
    the embedded engine and to four fifths on Corosync; small messages lost nothing by larger packs."""
    packs_itself: bool = False


class View(msgspec.Struct, frozen=True):
    """Who is in the group. Views are delivered in order with the messages, the same ones between the same messages."""

    position: int
    """Its place in the order; of two views the later has the larger one. 0 before there was any."""
    members: tuple[str, ...]
    """The names of those in it, sorted; empty when this member is in no primary view."""
    primary: bool
    """Whether this member may go on: it is one of a majority."""


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """A pack, at its place in the order."""

    position: int
    sender: str
    life: int
    """Tells a member that was started anew from what it was before."""
    number: int
    """Counts the packs of this life of the sender, from 1."""
    payload: Buffer


class Viewed(msgspec.Struct, frozen=True):
    """A view, at its place in the order; the last one once more, when this member was suspended and is not any more.

    A member that catches up may also be told of views it was not in, which are not primary ones to it.
    """

    view: View


class Suspended(msgspec.Struct, frozen=True):
    """This member is not in the primary partition, and is given nothing until the next view."""

    reason: str


class StateWanted(msgspec.Struct, frozen=True):
    """Another member has missed more than is kept here: answer by `Engine.give_state`, from where the group then is."""

    ticket: int
    after: int
    """The sequence number of the last message that the other's application has; 0 if it has nothing."""


class Restored(msgspec.Struct, frozen=True, eq=False):
    """What was missed is replaced by another member's state, as of a place in the order."""

    position: int
    summary: bytes
    """What the other group object said of itself (`Engine.give_state`)."""
    chunks: Sequence[bytes]
    """The state of the other's application."""
    own: int = 0
    """The number of this member's last pack, in this life, that is contained in it, and will not come back."""


class Ended(msgspec.Struct, frozen=True):
    """The engine is at its end: expelled, its disk is full, its daemon is gone. Nothing more comes."""

    reason: str


EngineEvent: TypeAlias = Delivered | Viewed | Suspended | StateWanted | Restored | Ended
Stability: TypeAlias = str
"""`majority` or `all`: who must hold a message before anybody is given it."""


class Engine(Protocol):
    """Orders packs. Called by one thread, the group's loop."""

    applied_sequence: int
    """The sequence number of the last message that the application here has; set by the group, in any thread."""
    hold: bool
    """Whether to take no more for the moment, because the application here does not keep up; set by the group."""

    @property
    def capabilities(self) -> Capabilities:
        """What it promises."""

    def descriptors(self) -> Mapping[int, int]:
        """Return the file descriptors to wait for, each with the events of `select.poll` that are of interest."""

    def wake_ns(self) -> int:
        """Return when `turn` is due at the latest, by the monotonic clock."""

    def send(self, payload: bytes, now_ns: int) -> None:
        """Multicast a pack, this member's next. It comes back as Delivered with this member's name and life."""

    def turn(self, ready: Sequence[tuple[int, int]], now_ns: int) -> list[EngineEvent]:
        """Do what is due, given which descriptors are ready for what; return what happened, in order."""

    def give_state(self, ticket: int, position: int, summary: bytes, chunks: Iterable[bytes]) -> None:
        """Answer StateWanted: the state of the group and of its application after the event at a position."""

    def compact(self, position: int, summary: bytes, chunks: Sequence[bytes] = ()) -> None:
        """Learn that everything up to a position may be forgotten; what stands for it, should this member start anew.

        Args:
            position: That of the last event which may be forgotten.
            summary: What the group object says of itself at that place.
            chunks: The state of the application, unless that keeps it by itself.
        """

    def statistics(self) -> Mapping[str, object]:
        """Return what an operator may want to know: role, leader, term, positions, sizes."""

    def close(self) -> None:
        """Leave the group, and let go of everything."""
