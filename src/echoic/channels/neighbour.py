"""Another hub, as this one knows it: one link, however often its connection breaks.

    connected --breaks--> broken --a connection is made--> connected
                            |
                            '--too long, refused, or it took leave--> gone: forgotten with everything it had

Whoever dialled first dials again; the other waits and, late, tries too, since the first may not know of the break. A
hub at which nobody listens any more is given up at once.
"""

from typing import Final

from echoic.channels.fanout import CreditMeter
from echoic.channels.member import Member
from echoic.channels.messages import Placed, Turn
from echoic.channels.session import Session
from echoic.channels.transfers import Transfers
from echoic.formats import Registry
from echoic.wire.frames import PAYLOAD_BYTES_MAX

__all__ = ["Binding", "Neighbour"]

FORMATS_MAX: Final = 4096
LOST_NS: Final = 20_000_000_000
REDIAL_NS: Final = (0, 50_000_000, 100_000_000, 200_000_000, 400_000_000, 800_000_000)
WAIT_FOR_DIALLER_NS: Final = 1_500_000_000
REFUSALS_MAX: Final = 3


class Binding:
    """What a number of a neighbour stands for: a channel here, or none, and the subscription for which it sends."""

    __slots__ = ("channel", "member", "meter", "refused", "subscription")

    def __init__(self, channel: str, member: Member | None, subscription: int) -> None:
        self.channel: Final = channel
        self.member: Final = member
        self.subscription: Final = subscription
        self.meter = CreditMeter()
        self.refused = False

    def renewed(self) -> "Binding":
        """Return another of the same meaning, which lanes do not take for the one they were made for."""
        binding = Binding(self.channel, self.member, self.subscription)
        binding.meter, binding.refused = self.meter, self.refused
        return binding

    @property
    def wanted(self) -> bool:
        """Whether there are sinks here for which this is meant."""
        member = self.member
        return member is not None and member.sink is not None and self.subscription in (0, member.subscription)


class Neighbour:
    """What is known of another hub, and of what it and this hub have told each other."""

    __slots__ = (
        "_broken_ns",
        "_dials",
        "_next_dial_ns",
        "_was_full",
        "address",
        "aliases",
        "announced",
        "bindings",
        "connected",
        "crowded",
        "dialled_by",
        "event_bytes_max",
        "id",
        "leaving",
        "name",
        "noted",
        "refusals",
        "registry",
        "session",
        "transfers",
        "who",
    )

    def __init__(
        self,
        id: str,
        address: str,
        name: str,
        session: Session,
        event_bytes_max: int = PAYLOAD_BYTES_MAX,
        who: str = "",
    ) -> None:
        """Meet a hub.

        Args:
            id: What it calls itself.
            address: Where it says it is.
            name: What people call it.
            session: What it and this hub remember.
            event_bytes_max: How large an event may be; what is too large for a frame, it fetches.
            who: The name in its certificate, "" if it has shown none.
        """
        self.id: Final = id
        self.address: Final = address
        self.name: Final = name
        self.who: Final = who
        self.aliases: Final[set[str]] = set()
        self.session: Final = session
        self.transfers: Final = Transfers()
        self.event_bytes_max: Final = event_bytes_max
        self.registry: Final = Registry(formats_max=FORMATS_MAX)
        self.announced: Final[set[int]] = set()
        self.bindings: Final[dict[int, Binding]] = {}
        self.noted: Final[set[tuple[str, str]]] = set()
        """What it may do, by right and channel, as was noted before (`admission`)."""
        self.connected = False
        self.crowded = False
        """Whether too much waits for all hubs of this name together."""
        self.leaving = False
        self._was_full = False
        self.dialled_by = ""
        self.refusals = 0
        self._broken_ns = self._next_dial_ns = self._dials = 0

    def place(self, placed: Placed) -> None:
        """Note where events that this hub sends are derived; short ways for lone events are not used any more."""
        binding = self.bindings.get(placed.number)
        if binding is not None and binding.member is not None and binding.member.lineage:
            binding.member.place(placed)
            self.bindings[placed.number] = binding.renewed()

    def turn(self, turn: Turn) -> None:
        """Note from which events on a sink has no part in a channel of this hub, or has again."""
        binding = self.bindings.get(turn.number)
        if binding is not None and binding.member is not None:
            binding.member.turns.note(turn.handle, self.id, turn.positions, taken=turn.taken)
            self.bindings[turn.number] = binding.renewed()

    def prefers(self, dialler: str) -> bool:
        """Whether a further connection, made by the hub `dialler`, takes the place of the one there is.

        When two hubs dial each other at the same moment, both keep the connection of the one with the smaller id.
        """
        return not self.connected or dialler <= self.dialled_by

    def stands_at(self, address: str) -> bool:
        """Whether an address is where this hub says it is, or where it was found."""
        return address != "" and (address == self.address or address in self.aliases)

    @property
    def full(self) -> bool:
        """Whether events must wait, because too much is under way."""
        if self.session.full or self.crowded:
            self._was_full = True
            return True
        return False

    def relieve(self) -> bool:
        """Return whether the link was found full and is not any more, which is told once."""
        if not self._was_full or self.session.full or self.crowded:
            return False
        self._was_full = False
        return True

    def connect(self, dialler: str) -> None:
        """Note that a connection is there."""
        self.connected = True
        self.dialled_by = dialler
        self.refusals = 0

    def settle(self) -> None:
        """Note that the connection works in both directions, so that the next break is a first one again.

        A peer that has a better connection closes this one at once; without the distinction that would be dialled and
        closed as fast as the network can.
        """
        self._dials = 0

    def disconnect(self, now_ns: int, me: str) -> None:
        """Note that the connection broke."""
        self.connected = False
        self._broken_ns = now_ns
        pause_ns = REDIAL_NS[min(self._dials, len(REDIAL_NS) - 1)]
        self._next_dial_ns = now_ns + (pause_ns if self.dialled_by == me else WAIT_FOR_DIALLER_NS)

    def lost(self, now_ns: int) -> bool:
        """Whether it is time to give the neighbour up."""
        if self.connected:
            return False
        return self.leaving or self.refusals >= REFUSALS_MAX or now_ns - self._broken_ns >= LOST_NS

    def dial_due(self, now_ns: int) -> bool:
        """Whether it is time to dial again; the next time is then set."""
        if self.connected or now_ns < self._next_dial_ns:
            return False
        self._dials += 1
        self._next_dial_ns = now_ns + REDIAL_NS[min(self._dials, len(REDIAL_NS) - 1)]
        return True
