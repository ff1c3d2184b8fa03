"""The fate of a simulated system: who takes part, and what goes wrong and when, drawn from a seed.

Faults come for half a minute of virtual time: connections cut with what is under way, one-way and two-way partitions
shorter and longer than hubs wait for each other, crashes of any hub with and without return, farewells, sinks that
hang, ends that come and go, processes that stand still. Then the network is healed. Where hubs go by rights, somebody
who has none tries all the while to get what is not his.
"""

from collections.abc import Callable
from random import Random
from typing import Final, get_args

from echoic.channels import CREDIT_BYTES, ChannelId, Message, Policy, Resolve, Resolved, Slow
from echoic.testing.intruder import Intruder
from echoic.testing.ledger import check
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.simulated_hub import SimulatedHub
from echoic.testing.simulated_system import SimulatedSystem

__all__ = ["POLICIES", "Fate"]

POLICIES: Final[tuple[Slow, ...]] = get_args(Slow)
QUIET_NS: Final = 45 * SECOND
LARGE_BYTES: Final = CREDIT_BYTES // 20
UNTOLD_BYTES_MAX: Final = (2_000_000, 32 * 1024 * 1024)


class Fate:
    """A system that was drawn by chance, and its fate."""

    declared: type | None = None
    """The type of the channels, if they have one."""
    hubs_drawn = (2, 5)
    """How many hubs there are, at least and at most."""
    heavy_share = 0.12
    """How often some events are large."""
    faults_ns = 22 * SECOND
    """How long faults come."""
    healed_ns = 33 * SECOND
    """When everything is healed: whoever crashed has returned by then, if at all."""

    def __init__(self, seed: int, system: SimulatedSystem | None = None, servers: int = 1) -> None:
        """Draw who takes part.

        Args:
            seed: What everything is drawn from, also the system if none is given.
            system: Whose fate it is.
            servers: How many of the hubs are name servers.
        """
        self.system = system if system is not None else _drawn_system(seed)
        self.random = self.system.random
        self.heavy = self.random.random() < self.heavy_share
        hubs = [self.system.add_hub(policy=self.policy()) for _ in range(self.random.randint(*self.hubs_drawn))]
        self.servers = [hub.address for hub in hubs[:servers]]
        self.channels = [
            self.system.create(self.random.choice(hubs), f"channel{n}", self.servers[n % servers], self.declared)
            for n in range(self.random.randint(1, 3))
        ]
        self.essential = {*self.servers, *(id.address for id in self.channels)}
        self.prepare()
        for _ in range(self.random.randint(1, 4)):
            self._publish()
        for _ in range(self.random.randint(1, 5)):
            self._subscribe()
        if self.system.network.rights is not None:
            Intruder(self.system.around, self.channels, self._places)

    def addresses(self) -> list[str]:
        """Return the addresses that can be parted from each other."""
        return self._places()

    def _places(self) -> list[str]:
        """Return the addresses of hubs."""
        return sorted({hub.address for hub in self.system.hubs})

    def prepare(self) -> None:
        """Do what must be done before anybody publishes."""

    def policy(self) -> Policy | None:
        """Return what a hub lets others do."""
        return None

    def let_it_fail(self) -> None:
        """Let faults come for a while, then heal what can be healed."""
        system = self.system
        for _ in range(self.random.randint(2, 12)):
            system.clock.after(self.random.randrange(self.faults_ns), self._draw_fault())
        while system.clock.now_ns < self.healed_ns:
            system.run(SECOND)
        system.note("everything is healed")
        system.network.heal()
        living = {hub.address for hub in system.hubs if hub.alive}
        for address in sorted(self.essential - living):
            system.restart(address, self.policy())

    def let_it_settle(self) -> None:
        """Let what is under way arrive, and check that nothing is left."""
        system = self.system
        system.run(5 * SECOND)
        self.rest()
        for _ in range(QUIET_NS // SECOND):
            system.run(SECOND)
        system.finish_calls()
        system.check_settled()
        self._check_names()

    def rest(self) -> None:
        """Let nobody begin anything more."""
        self.system.quiet = True

    def _draw_fault(self) -> Callable[[], None]:
        fault = Fate._hang if self.heavy and self.random.random() < 0.3 else self.random.choice(self._faults)

        def strike() -> None:
            self.system.faults[fault.__name__.strip("_")] += 1
            self.system.note(f"fault: {fault.__name__.strip('_')}")
            fault(self)

        return strike

    def _hub(self) -> SimulatedHub | None:
        living = [hub for hub in self.system.hubs if hub.alive]
        return self.random.choice(living) if living else None

    def _publish(self) -> None:
        hub = self._hub()
        if hub is not None:
            load_bytes = LARGE_BYTES if self.heavy and self.random.random() < 0.7 else 0
            pause_ns = self.random.randrange(100, 600) * MILLISECOND
            self.system.publish(hub, self.random.choice(self.channels), pause_ns, load_bytes=load_bytes)

    def _subscribe(self) -> None:
        hub, id = self._hub(), self.random.choice(self.channels)
        if hub is not None and not self._subscribed(hub, id):
            handle_ns = self.random.choice((0, MILLISECOND, 100 * MILLISECOND))
            self.system.subscribe(hub, id, self.random.choice(POLICIES), handle_ns)

    def _subscribed(self, hub: SimulatedHub, id: ChannelId) -> bool:
        return any(one.living and one.hub is hub and one.member.id == str(id) for one in self.system.subscriptions)

    def _unsubscribe(self) -> None:
        living = [one for one in self.system.subscriptions if one.living]
        if living:
            self.system.unsubscribe(self.random.choice(living))

    def _resubscribe(self) -> None:
        living = [one for one in self.system.subscriptions if one.living]
        if living:
            one = self.random.choice(living)
            self.system.unsubscribe(one)
            if self.random.random() < 0.5:
                self.system.run_soon(
                    self.random.randrange(50 * MILLISECOND), lambda: self._again(one.hub, one.member.id)
                )
            else:
                self._again(one.hub, one.member.id)

    def _again(self, hub: SimulatedHub, channel: str) -> None:
        id = ChannelId.parse(channel)
        if hub.alive and not self._subscribed(hub, id):
            self.system.subscribe(hub, id, self.random.choice(POLICIES))

    def _unpublish(self) -> None:
        living = [one for one in self.system.sources if one.living]
        if living:
            self.system.unpublish(self.random.choice(living))

    def _cut_connection(self) -> None:
        self.system.network.cut_any()

    def _cut_all(self) -> None:
        self.system.network.cut_all()

    def _part(self) -> None:
        """Part two addresses, one way or both ways, for less or more time than hubs wait for each other."""
        one, other = self.random.sample(self.addresses(), 2)
        duration_ns = self.random.choice((300 * MILLISECOND, 3 * SECOND, 12 * SECOND, 25 * SECOND))
        self.system.note(f"{one} is parted from {other} for {duration_ns / SECOND} s")
        self.system.network.part(one, other, duration_ns)
        if self.random.random() < 0.5:
            self.system.network.part(other, one, duration_ns)

    def _isolate(self) -> None:
        places = self.addresses()
        one, duration_ns = self.random.choice(places), self.random.choice((SECOND, 8 * SECOND, 24 * SECOND))
        self.system.note(f"{one} is isolated for {duration_ns / SECOND} s")
        for other in places:
            if other != one:
                self.system.network.part(one, other, duration_ns)
                self.system.network.part(other, one, duration_ns)

    def _crash(self) -> None:
        hub = self._hub()
        if hub is not None:
            self._end(hub, self.system.crash)

    def _farewell(self) -> None:
        hub = self._hub()
        if hub is not None:
            self._end(hub, self.system.farewell)

    def _end(self, hub: SimulatedHub, how: Callable[[SimulatedHub], None]) -> None:
        """End a hub, and perhaps start another at its address, with ends of its own."""
        how(hub)
        if self.random.random() < 0.7:
            pause_ns = self.random.choice((600 * MILLISECOND, 2 * SECOND, 10 * SECOND))
            self.system.run_soon(pause_ns, lambda: self._return(hub.address))

    def _return(self, address: str) -> None:
        if any(hub.alive and hub.address == address for hub in self.system.hubs):
            return
        hub = self.system.restart(address, self.policy())
        if self.random.random() < 0.7:
            self.system.publish(hub, self.random.choice(self.channels), 300 * MILLISECOND)
        if self.random.random() < 0.7:
            self.system.subscribe(hub, self.random.choice(self.channels), self.random.choice(POLICIES))

    def _freeze(self) -> None:
        hub = self._hub()
        if hub is not None:
            longest_ns = self.healed_ns - self.system.clock.now_ns
            self.system.freeze(hub, min(longest_ns, self.random.choice((SECOND, 6 * SECOND, 25 * SECOND))))

    def _hang(self) -> None:
        """Let a sink handle nothing for a while."""
        living = [one for one in self.system.subscriptions if one.living]
        if living:
            one = self.random.choice(living)
            now_ns = self.system.clock.now_ns
            one.stuck_until_ns = min(self.healed_ns, now_ns + self.random.randrange(SECOND, 20 * SECOND))

    _faults: tuple[Callable[["Fate"], None], ...] = (
        _cut_connection,
        _cut_connection,
        _cut_connection,
        _cut_all,
        _part,
        _part,
        _part,
        _isolate,
        _crash,
        _crash,
        _farewell,
        _freeze,
        _hang,
        _hang,
        _publish,
        _subscribe,
        _subscribe,
        _unsubscribe,
        _resubscribe,
        _unpublish,
    )

    def _check_names(self) -> None:
        """Check that the name server knows every channel, whoever was started anew."""
        asker = next(hub for hub in self.system.hubs if hub.alive)
        found: list[Message] = []
        for id in self.channels:
            server = self.servers[self.channels.index(id) % len(self.servers)]
            asker.do(lambda core, id=id, server=server: core.ask(server, Resolve(id.name), found.append))  # type: ignore[misc] # mypy#12557
        self.system.run(SECOND)
        expected = sorted(str(id) for id in self.channels)
        told = sorted(reply.id for reply in found if isinstance(reply, Resolved))
        check(told == expected and len(found) == len(expected), f"the name server says {found}")


def _drawn_system(seed: int) -> SimulatedSystem:
    draw = Random(seed)
    return SimulatedSystem(seed, freezes=draw.random() < 0.5, untold_bytes_max=UNTOLD_BYTES_MAX[draw.random() < 0.7])
