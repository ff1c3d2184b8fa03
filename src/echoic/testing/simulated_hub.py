"""A hub without threads and sockets: a real concentrator, driven over a simulated network as the edge drives it.

What the edge promises the concentrator, this promises too: a connection belongs to a neighbour from `meet` until it is
lost or replaced; frames of a replaced connection are not handed over any more; each is taken in order; `tick` comes ten
times a second. With `freezes` set it stops reading a connection as soon as its peer greets again, as the hub does.

The host of an address is also the name of who stands there, as a certificate would tell it. It counts where there are
rights.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, Protocol

from echoic.channels import (
    Admission,
    Audited,
    Compile,
    Concentrator,
    Consult,
    Delivery,
    Derivation,
    Dial,
    Dismiss,
    Drain,
    Effect,
    Ended,
    Forgotten,
    Greeting,
    Member,
    Missed,
    Modulation,
    Policy,
    Refused,
    Runner,
    Share,
    Troubled,
    Workshop,
    compiled,
    idle_looks,
    look_again,
    send_share,
)
from echoic.errors import EchoicError, UnreachableError
from echoic.testing.derived_book import built
from echoic.testing.ledger import check
from echoic.testing.network import MILLISECOND, SECOND, End, Network
from echoic.wire import Frame, FrameReader, Hello

__all__ = ["TICK_NS", "HubEvents", "SimulatedHub", "refuse"]

TICK_NS: Final = 100 * MILLISECOND
GREETING_NS: Final = 5 * SECOND
COMPILE_NS: Final = 20 * MILLISECOND
DRAIN_NS: Final = 5 * MILLISECOND


class HubEvents(Protocol):
    """What a simulated hub tells whoever runs the simulation."""

    def delivered(self, hub: "SimulatedHub", delivery: Delivery) -> None:
        """Events have arrived for the sinks of a hub."""

    def missed(self, hub: "SimulatedHub", missed: Missed) -> None:
        """Events will not arrive."""

    def ended(self, hub: "SimulatedHub", member: Member) -> None:
        """A hub sends no more to the sinks of a channel."""

    def troubled(self, hub: "SimulatedHub", troubled: Troubled) -> None:
        """A derivation is in trouble somewhere."""

    def forgotten(self, hub: "SimulatedHub", other: str) -> None:
        """A hub has given another up."""

    def unreached(self, hub: "SimulatedHub", address: str) -> None:
        """A hub could not connect to another."""

    def note(self, text: str) -> None:
        """Write down what happened."""

    def prepare(self, modulation: Modulation) -> Runner | Refused:
        """Return what runs a modulator."""

    def drained(self, hub: "SimulatedHub", share: Share, first: int) -> None:
        """A modulator was made to send what it had held back."""

    def consulted(self, hub: "SimulatedHub", consult: Consult) -> None:
        """Somebody wants to read the journal of a channel, or to remember in it how far he is."""


class Connection:
    """A connection as one hub sees it."""

    def __init__(self, greeting: Greeting, address: str) -> None:
        self.greeting: Final = greeting
        self.address: Final = address
        self.reader: Final = FrameReader()
        self.hub = ""


class SimulatedHub:
    """A concentrator at an address of a simulated network."""

    def __init__(
        self,
        id: str,
        address: str,
        network: Network,
        events: HubEvents,
        *,
        freezes: bool = False,
        untold_bytes_max: int = 32 * 1024 * 1024,
        policy: Policy | None = None,
        tick_ns: int = TICK_NS,
    ) -> None:
        self._core: Final = Concentrator(
            id,
            address,
            id,
            policy=policy,
            untold_bytes_max=untold_bytes_max,
            admission=Admission(network.rights, _name_at(address)) if network.rights is not None else None,
        )
        self.id: Final = id
        self.address = address
        self.alive = True
        self.frozen_until_ns = 0
        self._network = network
        self._clock = network.clock
        self._events = events
        self._freezes = freezes
        self._connections: dict[End, Connection] = {}
        self._links: dict[str, End] = {}
        self._core.tick(self._clock.now_ns)
        network.place(self)
        self._tick_ns = tick_ns
        self._resting = False
        self._looked_ns = self._due_ns = 0
        self._look_at(self._clock.now_ns + self._random.randrange(tick_ns))

    @property
    def core(self) -> Concentrator:
        """The concentrator; it has looked at the time when it should."""
        if self._resting:
            self._rouse()
        return self._core

    @property
    def _random(self) -> Random:
        return self._network.random

    @property
    def frozen(self) -> bool:
        """Whether its process stands still for the moment."""
        return self._clock.now_ns < self.frozen_until_ns

    def do(self, action: Callable[[Concentrator], object]) -> None:
        """Let the concentrator do something, then do what it wants."""
        action(self.core)
        self._settle()

    def stand_still(self, until_ns: int) -> None:
        """Let its process stand still until some time."""
        if self._resting:
            self._rouse()
        self.frozen_until_ns = until_ns

    def link(self, hub: str) -> End | None:
        """Return the connection to a neighbour, if there is one."""
        return self._links.get(hub)

    def finish(self, delivery: Delivery) -> None:
        """Tell the sender that its events were handled."""
        if self.alive:
            self.do(lambda core: core.reply(delivery, {}) if delivery.call else core.handled(delivery))

    def accepted(self, end: End) -> None:
        """Take a connection that somebody made."""
        self._greet(end, "")

    def arrived(self, end: End, data: bytes) -> None:
        """Take bytes of a connection."""
        connection = self._connections.get(end)
        if connection is None:
            return
        for frame in connection.reader.receive(data):
            if end not in self._connections:
                return
            if not connection.greeting.done:
                self._greeted(end, connection, frame)
            elif self._links.get(connection.hub) is end:
                self._received(connection.hub, frame)

    def lost(self, end: End) -> None:
        """Learn that a connection is no more."""
        connection = self._connections.pop(end, None)
        if connection is None:
            return
        if self._links.get(connection.hub) is end:
            del self._links[connection.hub]
            self._note(f"lost {connection.hub}")
            self.do(lambda core: core.broken(connection.hub, self._clock.now_ns))
        elif not connection.greeting.done:
            self._failed(connection, "the peer hung up", refused=False)
            self._thaw(connection.greeting)

    def _tick(self) -> None:
        now_ns, core = self._clock.now_ns, self._core
        if not self.alive or now_ns != self._due_ns:
            return
        idle, self._looked_ns = 0, now_ns
        if now_ns >= self.frozen_until_ns:
            if self._resting:
                self._resting = False
                look_again(core, now_ns, self._tick_ns)
            else:
                core.tick(now_ns)
            if core.effects or core.stirred:
                self._settle()
            idle = idle_looks(core, now_ns, self._tick_ns)
        self._resting = idle > 0
        if self.alive:
            self._look_at(now_ns + (idle + 1) * self._tick_ns)

    def _look_at(self, due_ns: int) -> None:
        self._due_ns = due_ns
        self._clock.after(due_ns - self._clock.now_ns, self._tick)

    def _rouse(self) -> None:
        """Let the concentrator take the last look that was left out while it rested, of which nothing may come."""
        self._resting = False
        if not self.alive:
            return
        looks = (self._clock.now_ns - 1 - self._looked_ns) // self._tick_ns
        if looks > 0:
            self._looked_ns += looks * self._tick_ns
            look_again(self._core, self._looked_ns, self._tick_ns)
            check(not self._core.effects and not self._core.stirred, f"{self.id} has rested where it should not have")
        self._look_at(self._looked_ns + self._tick_ns)

    def _settle(self) -> None:
        core = self.core
        while core.effects or core.stirred:
            effects = core.effects[:]
            core.effects.clear()
            for effect in effects:
                self._act(effect)
            stirred = sorted(core.stirred)
            core.stirred.clear()
            for hub in stirred:
                self._pump(hub)

    def _act(self, effect: Effect) -> None:
        match effect:
            case Dial(address):
                self._dial(address)
            case Audited(decision):
                self._note(str(decision))
            case Missed():
                self._events.missed(self, effect)
            case Ended(member):
                self._events.ended(self, member)
            case Forgotten(hub):
                self._note(f"gave up {hub}")
                self._drop(self._links.pop(hub, None))
                self._events.forgotten(self, hub)
            case Compile(derivation):
                made = self._prepared(derivation)
                self._clock.after(self._random.randrange(COMPILE_NS), lambda: self._compiled(derivation, made))
            case Troubled():
                self._events.troubled(self, effect)
            case Dismiss(runner):
                runner.close()
            case Consult():
                self._events.consulted(self, effect)
            case Drain(modulation, then):
                self._clock.after(self._random.randrange(DRAIN_NS), lambda: self._drain(modulation, then))

    def _prepared(self, derivation: Derivation) -> Workshop | Runner | Refused | None:
        """Return what runs a derivation's code here, or why that cannot be."""
        if not isinstance(derivation, Modulation):
            return built(derivation.step, derivation.policy)
        if not derivation.policy.derive:
            return Refused("RefusedError", f"the hub at {derivation.hub} runs no code of others")
        return self._events.prepare(derivation)

    def _drain(self, modulation: Modulation, then: Callable[[], None]) -> None:
        """Send what a modulator holds back, as a thread of the edge does, and go on."""

        def send(core: Concentrator) -> None:
            for share in shares:
                self._events.drained(self, share, send_share(core, share))
            then()

        if self.alive and self.frozen:
            self._clock.after(self.frozen_until_ns - self._clock.now_ns, lambda: self._drain(modulation, then))
        elif self.alive:
            shares = list(modulation.drained())
            self.do(send)

    def _compiled(self, derivation: Derivation, made: Workshop | Runner | Refused | None) -> None:
        if self.alive and self.frozen:
            self._clock.after(self.frozen_until_ns - self._clock.now_ns, lambda: self._compiled(derivation, made))
        elif self.alive:
            self.do(lambda core: compiled(core, derivation, made))

    def _pump(self, hub: str) -> None:
        """Write what waits for a neighbour."""
        end, neighbour = self._links.get(hub), self.core.neighbours.get(hub)
        if end is not None and neighbour is not None:
            outbox = neighbour.session.outbox
            data = b"".join(outbox)
            outbox.clear()
            end.send(data)

    def _dial(self, address: str) -> None:
        def failed(refused: bool) -> None:
            if self.alive:
                self._note(f"cannot reach {address}, refused: {refused}")
                self._events.unreached(self, address)
                self.do(lambda core: core.unreachable(address, "nobody answers", refused=refused))

        self._network.dial(self, address, lambda end: self._greet(end, address), failed)

    def _greet(self, end: End, address: str) -> None:
        """Begin a greeting; a peer that does not finish it in time is sent away."""
        hello = Hello(name=self.id, hub=self.id, address=self.address)

        def known(hub: str) -> tuple[int, int]:
            return self._known(hub, dialled=bool(address))

        fresh = self._random.randrange(1, 2**63)
        who = _name_at(end.peer.host.address) if self._network.rights is not None else ""
        greeting = Greeting(hello, known, dialled=bool(address), fresh=fresh, address=address, who=who)
        connection = self._connections[end] = Connection(greeting, address)
        end.send(greeting.opening)

        def expire() -> None:
            if self.alive and not greeting.done and end in self._connections:
                self._drop(end)
                self._failed(connection, "it took too long to say hello", refused=False)
                self._thaw(greeting)

        self._clock.after(GREETING_NS, expire)

    def _known(self, hub: str, *, dialled: bool) -> tuple[int, int]:
        """Return what is known of a session; whoever freezes stops reading the connection before."""
        neighbour, end = self.core.neighbours.get(hub), self._links.get(hub)
        if self._freezes and neighbour is not None and end is not None:
            if not neighbour.prefers(self.id if dialled else hub):
                raise UnreachableError(f"the hub at {neighbour.address} is connected already")
            del self._links[hub]
            self._drop(end)
        return self.core.known(hub)

    def _greeted(self, end: End, connection: Connection, frame: Frame) -> None:
        """Take a frame of a greeting, and the neighbour when it is done."""
        greeting = connection.greeting
        try:
            end.send(greeting.receive(frame))
            neighbour = self.core.meet(greeting) if greeting.done else None
        except EchoicError as error:
            self._note(f"greeting failed: {error}")
            self._drop(end)
            self._failed(connection, str(error), refused=False)
            self._thaw(greeting)
            return
        if not greeting.done:
            return
        hub = greeting.peer.hub if greeting.peer is not None else ""
        if neighbour is None:
            self._note(f"declined a connection with {hub}")
            self._drop(end)
            self._thaw(greeting)
        else:
            self._note(f"met {hub}, {'resumed' if greeting.resumed else 'afresh'}, session {greeting.session % 10_000}")
            self._forget()
            self._drop(self._links.pop(hub, None))
            self._links[hub], connection.hub = end, hub
            self._pump(hub)
        self._settle()

    def _forget(self) -> None:
        """Forget connections that were given up by a meeting, before its own takes their place."""
        effects = self.core.effects
        for effect in [effect for effect in effects if isinstance(effect, Forgotten)]:
            effects.remove(effect)
            self._act(effect)

    def _thaw(self, greeting: Greeting) -> None:
        """Tell the concentrator that the connection before is no more, if it was frozen for a greeting in vain."""
        hub = greeting.peer.hub if greeting.peer is not None else ""
        if self._freezes and hub not in self._links:
            self.do(lambda core: core.broken(hub, self._clock.now_ns))

    def _failed(self, connection: Connection, reason: str, *, refused: bool) -> None:
        if connection.address:
            self._events.unreached(self, connection.address)
            self.do(lambda core: core.unreachable(connection.address, reason, refused=refused))

    def _received(self, hub: str, frame: Frame) -> None:
        neighbour = self.core.neighbours.get(hub)
        self._hand_over(self.core.receive(hub, frame))
        while neighbour is not None and (ripened := neighbour.transfers.next_ripe()) is not None:
            self._hand_over(self.core.take(hub, ripened()))

    def _hand_over(self, deliveries: Sequence[Delivery]) -> None:
        self._settle()
        for delivery in deliveries:
            self._events.delivered(self, delivery)

    def _drop(self, end: End | None) -> None:
        if end is not None:
            self._connections.pop(end, None)
            end.close()

    def _note(self, text: str) -> None:
        self._events.note(f"{self.id}: {text}")


def _name_at(address: str) -> str:
    return address.partition(":")[0]


def refuse(hub: "SimulatedHub", consult: Consult) -> None:
    """Let somebody know that there is no journal at a hub."""
    consult.answer(Refused("RefusedError", f"nobody reads the journal of {consult.member.name} at {hub.address}"))
