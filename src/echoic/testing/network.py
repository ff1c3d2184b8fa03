"""A seeded network on virtual time: connections that are slow, stall, break half-way, and tell either side of it late.

Nothing here reads a clock or draws a number of its own: time is an integer that jumps from one due action to the next,
and chance is one `random.Random`. So the same seed gives the same run, action by action.

    hub A  End ==(bytes in order, each piece with its own delay)==> End  hub B
              <==================================================

A connection that is *cut* loses what is under way, and each end learns of it at a time of its own, up to
`NOTICE_NS_MAX` later (keepalive and TCP_USER_TIMEOUT: half-open connections are noticed within five seconds). One that
is *closed* by an end brings the other end what was sent before, then the end of the stream. Bytes are handed over in
pieces cut anywhere, as a stream's are. Where the network loses packets (`loss`), streams are late, since what was lost
is sent again.

Messages can also be carried without a connection (`carry`). These do get lost, come twice, and overtake each other.
"""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Final, Protocol, TypeAlias

from echoic.rights import Rights

__all__ = ["End", "Host", "Network", "VirtualClock", "draw_between"]

Action: TypeAlias = Callable[[], None]

MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
DELAY_NS: Final = (200_000, 5 * MILLISECOND)
SLOW_DELAY_NS: Final = (20 * MILLISECOND, 400 * MILLISECOND)
SLOW_SHARE: Final = 0.05
NOTICE_NS_MAX: Final = 4 * SECOND
DIAL_TIMEOUT_NS: Final = (SECOND, 3 * SECOND)
CUT_PIECE_SHARE: Final = 0.2
RETRANSMISSION_NS: Final = (200 * MILLISECOND, 900 * MILLISECOND)


def draw_between(random: Random, low: int, end: int) -> int:
    """Return what `random.randrange(low, end)` does, by the same draws; it takes a third of the time."""
    width = end - low
    bits = width.bit_length()
    drawn = random.getrandbits(bits)
    while drawn >= width:
        drawn = random.getrandbits(bits)
    return low + drawn


class VirtualClock:
    """Time that passes only when there is nothing left to do at the present moment."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._due: list[tuple[int, int, Action]] = []
        self._count = 0

    def after(self, delay_ns: int, action: Action) -> None:
        """Do something later; what is due at the same moment is done in the order in which it was asked for."""
        self._count = count = self._count + 1
        heappush(self._due, (self.now_ns + delay_ns, count, action))

    @property
    def planned(self) -> int:
        """How many things are due at some time."""
        return len(self._due)

    def run_until(self, end_ns: int) -> None:
        """Do everything that is due up to a moment, which is the present one afterwards."""
        due = self._due
        while due and due[0][0] <= end_ns:
            self.now_ns, _, action = heappop(due)
            action()
        self.now_ns = end_ns


class Host(Protocol):
    """Who stands at an address of the network."""

    address: str
    alive: bool
    frozen_until_ns: int

    def accepted(self, end: "End") -> None:
        """Take a connection that somebody made."""

    def arrived(self, end: "End", data: bytes) -> None:
        """Take bytes, in order."""

    def lost(self, end: "End") -> None:
        """Learn that a connection is no more."""


class End:
    """One end of a connection."""

    def __init__(self, network: "Network", host: Host) -> None:
        self.host: Final = host
        self.open = True
        self.cut = False
        self.peer: End = self
        self._network = network
        self._arrival_ns = 0

    def send(self, data: bytes) -> None:
        """Send bytes to the other end; whether they arrive is seen later."""
        if not self.open or self.cut or not data:
            return
        network, take = self._network, self.peer.take
        split = network.random.randrange(len(data)) if network.random.random() < CUT_PIECE_SHARE else 0
        for piece in (data[:split], data[split:]) if split else (data,):
            network.clock.after(self._delay_ns(), partial(take, piece))

    def take(self, data: bytes) -> None:
        """Let bytes arrive here, if they still can; a host that is frozen finds them when it goes on."""
        if self.open and not self.cut and self.host.alive:
            frozen_ns = self.host.frozen_until_ns - self._network.clock.now_ns
            if frozen_ns > 0:
                self._network.clock.after(frozen_ns, lambda: self.take(data))
            else:
                self.host.arrived(self, data)

    def close(self) -> None:
        """Close this end; the other learns of it behind what was sent."""
        if self.open:
            self.open = False
            if not self.cut:
                self._network.clock.after(self._delay_ns(), self.peer.notice)
            self._network.forget(self)

    def stall(self, delay_ns: int) -> None:
        """Let nothing sent from here arrive for a while."""
        self._arrival_ns = max(self._arrival_ns, self._network.clock.now_ns + delay_ns)

    def notice(self) -> None:
        """Learn that the connection is no more."""
        frozen_ns = self.host.frozen_until_ns - self._network.clock.now_ns
        if self.open and frozen_ns > 0:
            self._network.clock.after(frozen_ns, self.notice)
        elif self.open:
            self.open = False
            self._network.forget(self)
            if self.host.alive:
                self.host.lost(self)

    def _delay_ns(self) -> int:
        """Return how long the next piece takes: no less than the one before still needs."""
        now_ns = self._network.clock.now_ns
        self._arrival_ns = max(self._arrival_ns, now_ns + self._network.draw_delay_ns())
        return self._arrival_ns - now_ns


class Network:
    """Addresses, who stands there, the connections between them, and what keeps them apart."""

    def __init__(self, random: Random, clock: VirtualClock, rights: Rights | None = None) -> None:
        self.random: Final = random
        self.clock: Final = clock
        self.rights: Final = rights
        """The rules by which all who stand here go; None: whoever is let in may do everything."""
        self.loss = 0.0
        """Which share of all packets is lost."""
        self.copies = 0.0
        """Which share of what is carried comes twice."""
        self._hosts: dict[str, Host] = {}
        self._ends: list[End] = []
        self._blocked: dict[tuple[str, str], int] = {}

    def carry(self, origin: str, target: str, take: Action) -> None:
        """Carry something from one address to another, where `take` is called: once, twice or not at all."""
        if self._blocked.get((origin, target), 0) > self.clock.now_ns:
            return
        random = self.random
        for _ in range(2 if self.copies and random.random() < self.copies else 1):
            if not self.loss or random.random() >= self.loss:
                slow = random.random() < SLOW_SHARE
                self.clock.after(draw_between(random, *(SLOW_DELAY_NS if slow else DELAY_NS)), take)

    def host(self, address: str) -> Host | None:
        """Return who stands at an address, or stood there last."""
        return self._hosts.get(address)

    def place(self, host: Host) -> None:
        """Let a host stand at its address, where another may have stood before."""
        self._hosts[host.address] = host

    def dial(self, host: Host, address: str, connected: Callable[[End], None], failed: Callable[[bool], None]) -> None:
        """Connect to an address; `failed` gets whether it was refused, since nobody stands there."""

        def arrive() -> None:
            found = self._hosts.get(address)
            if not host.alive:
                return
            if self.is_blocked(host.address, address):
                self.clock.after(self.random.randrange(*DIAL_TIMEOUT_NS), lambda: failed(False))
            elif found is None or not found.alive:
                failed(True)
            else:
                near, far = End(self, host), End(self, found)
                near.peer, far.peer = far, near
                self._ends += [near, far]
                found.accepted(far)
                connected(near)

        self.clock.after(self.draw_delay_ns(), arrive)

    def cut(self, end: End) -> None:
        """Break a connection: what is under way is lost, and each end learns of it when it does."""
        for side in (end, end.peer):
            if not side.cut:
                side.cut = True
                late = self.random.random() < 0.3
                self.clock.after(self.random.randrange(NOTICE_NS_MAX if late else 50 * MILLISECOND), side.notice)

    def cut_any(self) -> None:
        """Break a connection, whichever it is."""
        if self._ends:
            self.cut(self.random.choice(self._ends))

    def cut_all(self) -> None:
        """Break all connections."""
        for end in self.connections():
            self.cut(end)

    def part(self, origin: str, target: str, duration_ns: int) -> None:
        """Let nothing pass from one address to another for a while; connections between them die or stall."""
        until_ns = self.clock.now_ns + duration_ns
        self._blocked[origin, target] = max(until_ns, self._blocked.get((origin, target), 0))
        for end in self.connections():
            if (end.host.address, end.peer.host.address) == (origin, target):
                if duration_ns < SECOND and self.random.random() < 0.5:
                    end.stall(duration_ns)
                else:
                    self.cut(end)

    def flap(self, origin: str, target: str, period_ns: int, times: int) -> None:
        """Let nothing pass from one address to another, and let it pass again, several times."""
        self.part(origin, target, period_ns)
        if times > 1:
            self.clock.after(2 * period_ns, lambda: self.flap(origin, target, period_ns, times - 1))

    def is_blocked(self, one: str, other: str) -> bool:
        """Whether two addresses cannot connect: a handshake needs both directions."""
        now_ns = self.clock.now_ns
        return any(self._blocked.get(pair, 0) > now_ns for pair in ((one, other), (other, one)))

    def heal(self) -> None:
        """Let everything pass again. What is broken stays so."""
        self._blocked.clear()

    def crash(self, host: Host) -> None:
        """Let a host vanish: its peers see their connections end, or hear nothing and notice late."""
        host.alive = False
        for end in self.connections():
            if end.host is host:
                if self.random.random() < 0.7:
                    end.close()
                else:
                    self.cut(end)

    def connections(self) -> list[End]:
        """Return the ends that are open, in the order in which they came to be."""
        return list(self._ends)

    def forget(self, end: End) -> None:
        """Strike an end that is closed."""
        if end in self._ends:
            self._ends.remove(end)

    def draw_delay_ns(self) -> int:
        """Return how long something takes on its way."""
        random = self.random
        delay_ns = draw_between(random, *(SLOW_DELAY_NS if random.random() < SLOW_SHARE else DELAY_NS))
        if self.loss and random.random() < self.loss:
            delay_ns += self.random.randrange(*RETRANSMISSION_NS)
        return delay_ns
