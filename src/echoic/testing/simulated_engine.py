"""The engine on virtual time: programs on ordered groups are tested without processes, sockets, disks or waiting.

    world = SimulatedMembers(["n1", "n2", "n3"], seed=7)
    groups = {name: world.join(name, Transfer) for name in world.names}    real groups, which have no threads
    groups["n1"].subscribe(handler)
    groups["n1"].submit(Transfer(...))
    world.advance(SECOND)                    or `submit_sync`, `wait_for`, `drain`, which let time pass by themselves
    world.crash(world.leader); world.cut("n2"); world.heal(); world.join("n1", Transfer, anew=True)

Each member is the real ordering core, with a disk that is a list. Messages between members take times that are drawn
from the seed, and may be lost; time jumps from one thing that is due to the next. So a test that takes minutes of the
members' time takes milliseconds, and the same seed gives the same run.

    Group  (hub.group, as it is)         submit, subscribe, views, statistics
    SimulatedLoop, SimulatedDelivery     their threads and waiting replaced by the world's clock
    SimulatedEngine                      `groups.engine.Engine`: the ordering core, its disk, its place in the world
    SimulatedMembers                     the clock, the network, who is cut off, who is there

An engine can also be had by itself (`start`), for tests of what stands between a group and its engine. Nothing here is
for several threads: handlers run inside `advance`.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Final

from msgspec import structs

from echoic.errors import LocalError, RefusedError
from echoic.formats import bind
from echoic.groups.engine import Capabilities, Ended, Engine, EngineEvent
from echoic.groups.messages import Message
from echoic.groups.options import Options
from echoic.groups.ordering import Ordering
from echoic.groups.packer import PACKING_INTERVAL_NS, Packer
from echoic.groups.policies import Policy, policy_of
from echoic.hub.group import Group
from echoic.hub.group_delivery import KEPT_BYTES, GroupDelivery, GroupStamp, GroupState
from echoic.hub.group_loop import INBOX_MAX, TURNS_MAX, GroupLoop
from echoic.testing.network import VirtualClock
from echoic.testing.simulated_group import Storage
from echoic.testing.surroundings import Surroundings

__all__ = ["SimulatedEngine", "SimulatedMembers"]

MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
DELAY_NS: Final = MILLISECOND
STEP_NS: Final = MILLISECOND
LOST: Final = "this member has crashed"


class SimulatedMembers:
    """Some members, what lies between them, and time."""

    def __init__(
        self,
        names: Sequence[str],
        seed: int = 0,
        *,
        stability: str = "majority",
        delay_ns: int = DELAY_NS,
        loss: float = 0.0,
        options: Options | None = None,
        around: Surroundings | None = None,
    ) -> None:
        """Make a world in which nobody is started yet.

        Args:
            names: The members at the first start.
            seed: What everything is drawn from.
            stability: Who must hold a message before anybody is given it: `majority` or `all`.
            delay_ns: How long a message between two members takes on average.
            loss: Which share of the messages never arrives.
            options: Times and limits of the ordering core, if others than its own are wanted.
            around: Where it takes place, if others are there too; the seed says nothing then.
        """
        self.names: Final = tuple(names)
        self.clock: Final = around.clock if around is not None else VirtualClock()
        self.random: Final = around.random if around is not None else Random(seed)
        self.loss = loss
        self._delay_ns = delay_ns
        self._options = options or Options(stability=stability)
        self._storages: dict[str, Storage] = {}
        self._engines: dict[str, SimulatedEngine] = {}
        self._away: set[str] = set()
        self._arrival_ns: dict[tuple[str, str], int] = {}

    @property
    def leader(self) -> str | None:
        """Who leads, if anybody does; of several that think so, the one in the latest term."""
        leading = [engine for engine in self._engines.values() if engine.leads]
        return max(leading, key=lambda engine: engine.term).name if leading else None

    def engine(self, name: str) -> "SimulatedEngine":
        """Return a member's engine.

        Raises:
            LocalError: The member is not there.
        """
        if name not in self._engines:
            raise LocalError(f"member `{name}` is not there, only {', '.join(self._engines) or 'nobody'}")
        return self._engines[name]

    def start(
        self, name: str, *, anew: bool = False, applied_sequence: int = 0, beginning: bytes = b"", life: int = 0
    ) -> "SimulatedEngine":
        """Start a member's engine, with what its disk has; or with an empty one, which makes it another member.

        Args:
            name: Which member.
            anew: Whether its disk is gone.
            applied_sequence: The last message that its application has.
            beginning: What its group says of itself then.
            life: The number of its life, drawn if it is not given.

        Raises:
            LocalError: It is there already.
        """
        if name in self._engines:
            raise LocalError(f"member `{name}` is there already")
        if anew or name not in self._storages:
            self._storages[name] = self.make_storage()
        storage = self._storages[name]
        ordering = Ordering(
            name,
            life or self.draw_life(),
            dict.fromkeys((*self.names, name), ""),
            storage.image(),
            self._options,
            self.random,
            self.clock.now_ns,
            applied_sequence=applied_sequence,
            beginning=beginning,
        )
        engine = self._engines[name] = SimulatedEngine(self, name, ordering, storage)
        engine.work()
        return engine

    def join(
        self,
        name: str,
        declared: object,
        *,
        anew: bool = False,
        group: str = "group",
        packing: str | Policy = "auto",
        packing_interval: float = PACKING_INTERVAL_NS / 1e9,
        state: GroupState | None = None,
        kept_bytes: int = KEPT_BYTES,
    ) -> Group:
        """Be a member, as `Hub.join` makes one: its arguments are the same, and `anew` is that of `start`.

        Raises:
            LocalError: The member is there already, or an option is wrong.
            FormatError: `declared` is not an event type.
        """
        life = self.draw_life()
        delivery = SimulatedDelivery(group, state, kept_bytes=kept_bytes, world=self)
        engine = self.start(
            name, anew=anew, applied_sequence=delivery.applied, beginning=delivery.expect_replay(), life=life
        )
        packer = Packer(
            policy_of(packing, pack_bytes_hint=engine.capabilities.pack_bytes_hint),
            packing_interval_ns=max(1, int(packing_interval * 1e9)),
            pack_bytes_max=engine.capabilities.pack_bytes_max - (1 << 16),
            now_ns=self.clock.now_ns,
        )
        loop = SimulatedLoop(group, life, name, bind(declared).format, world=self)
        made = SimulatedMember(group, name, declared, engine, packer, loop, delivery, lambda: None)
        made.world, made.simulated = self, engine
        delivery.start(engine, loop, name, life)
        loop.start(engine, packer, delivery)
        engine.wake = loop.wake
        loop.wake()
        return made

    def advance(self, duration_ns: int) -> None:
        """Let time pass, and everything happen that is due meanwhile."""
        self.clock.run_until(self.clock.now_ns + duration_ns)

    def advance_until(self, condition: Callable[[], bool], duration_ns_max: int = 10 * SECOND) -> bool:
        """Let time pass until something is true, but not for too long; tell whether it is."""
        end_ns = self.clock.now_ns + duration_ns_max
        while not condition() and self.clock.now_ns < end_ns:
            self.advance(min(STEP_NS, end_ns - self.clock.now_ns))
        return condition()

    def cut(self, *names: str) -> None:
        """Part members from all others; what is under way between them is lost. They still reach each other."""
        self._away |= set(names)

    def heal(self, *names: str) -> None:
        """Let messages of members pass again; of all, if none is named."""
        self._away -= set(names or self._away)

    def crash(self, name: str) -> None:
        """End a member without a word. Its disk stays, and its group is of no more use.

        Raises:
            LocalError: It is not there.
        """
        self.engine(name).crash()
        self._storages[name].crash(self.random)

    def make_storage(self) -> Storage:
        """Return a disk for a member."""
        return Storage(self.random.getrandbits(47) | 1)

    def observe(self, engine: "SimulatedEngine", events: Sequence[EngineEvent]) -> None:
        """Look at what an engine tells its group; for whoever checks it."""

    def forget(self, engine: "SimulatedEngine") -> None:
        """Strike an engine that has ended."""
        if self._engines.get(engine.name) is engine:
            del self._engines[engine.name]

    def carry(self, sender: str, home: int, name: str, message: Message) -> None:
        """Let a message travel from one member to another, behind those that are on the same way."""
        if self.random.random() < self.loss:
            return
        now_ns = self.clock.now_ns
        drawn_ns = now_ns + int(self.random.expovariate(1 / self._delay_ns))
        due_ns = self._arrival_ns[sender, name] = max(drawn_ns, self._arrival_ns.get((sender, name), 0))
        self.clock.after(due_ns - now_ns, lambda: self.arrive(sender, home, name, message))

    def draw_life(self) -> int:
        """Return a number for a life."""
        return self.random.getrandbits(47) | 1

    def arrive(self, sender: str, home: int, name: str, message: Message) -> None:
        """Let a message arrive, if its receiver is there."""
        parted = (sender in self._away) is not (name in self._away)
        if not parted and name in self._engines:
            self._engines[name].receive(sender, home, message)


class SimulatedEngine:
    """One member's engine. It does what is due when the world's time passes, whether `turn` is called or not."""

    def __init__(self, world: SimulatedMembers, name: str, ordering: Ordering, storage: Storage) -> None:
        self.name: Final = name
        self.wake: Callable[[], object] = lambda: None
        """Called when there is something to fetch by `turn`."""
        self._world, self._ordering, self._storage = world, ordering, storage
        self._events: list[EngineEvent] = []
        self._due_ns = -1
        self._ended = False

    @property
    def applied_sequence(self) -> int:
        """The last message that the application has."""
        return self._ordering.applied_sequence

    @applied_sequence.setter
    def applied_sequence(self, sequence: int) -> None:
        self._ordering.applied_sequence = sequence

    @property
    def hold(self) -> bool:
        """Whether this member takes no more for the moment."""
        return self._ordering.hold

    @hold.setter
    def hold(self, hold: bool) -> None:
        self._ordering.hold = hold

    @property
    def capabilities(self) -> Capabilities:
        """Everything."""
        return Capabilities(durable=True)

    @property
    def leads(self) -> bool:
        """Whether this member is the leader of its term."""
        return self._ordering.leads

    @property
    def term(self) -> int:
        """The term this member is in."""
        return self._ordering.term

    def descriptors(self) -> Mapping[int, int]:
        """Return nothing: there is none."""
        return {}

    def wake_ns(self) -> int:
        """Return when something is due, by the world's clock."""
        return self._world.clock.now_ns if self._events else self._ordering.wake_ns()

    def send(self, payload: bytes, now_ns: int) -> None:  # noqa: ARG002 - the world has its own
        """Multicast a pack."""
        if not self._ended:
            self._ordering.submit(payload)

    def turn(self, ready: Sequence[tuple[int, int]], now_ns: int) -> list[EngineEvent]:  # noqa: ARG002 - as above
        """Do what is due, and return what happened since this was last called."""
        self.work()
        taken, self._events = self._events, []
        return taken

    def give_state(self, ticket: int, position: int, summary: bytes, chunks: Iterable[bytes]) -> None:
        """Send what stands for everything up to a position to the member that needs it."""
        self._ordering.give_state(ticket, position, summary, chunks, self._world.clock.now_ns)
        self.work()

    def compact(self, position: int, summary: bytes, chunks: Sequence[bytes] = ()) -> None:
        """Forget everything up to a position."""
        self._ordering.compact(position, summary, chunks)
        self.work()

    def change(self, name: str, *, admit: bool) -> None:
        """Have a member admitted or expelled; to be called again until it is so."""
        self._ordering.change(name, "", admit=admit, now_ns=self._world.clock.now_ns)
        self.work()

    def has_seat(self, name: str) -> bool:
        """Whether a name is one of a member."""
        return self._ordering.has_seat(name)

    def statistics(self) -> Mapping[str, object]:
        """Return how things stand."""
        return {"engine": "sim", **structs.asdict(self._ordering.statistics())}

    def close(self) -> None:
        """Take leave."""
        if not self._ended:
            self._ordering.leave(self._world.clock.now_ns)
            self.work()
            self._ended = True
            self._world.forget(self)

    def crash(self) -> None:
        """End without a word; the group on it learns that it is of no more use."""
        self._ended = True
        self._events = [Ended(LOST)]
        self._world.forget(self)
        self.wake()

    def receive(self, sender: str, home: int, message: Message) -> None:
        """Take another member's message."""
        self._ordering.receive(sender, home, message, self._world.clock.now_ns)
        self.work()

    def work(self) -> None:
        """Do what the core wants, in the order that it demands: keep, send, hand over."""
        if self._ended:
            return
        ordering, storage, now_ns = self._ordering, self._storage, self._world.clock.now_ns
        if now_ns >= ordering.wake_ns():
            ordering.tick(now_ns)
        ordering.flush(now_ns)
        writes = ordering.take_writes()
        if writes:
            storage.write(writes)
            storage.sync()
        for names, message in ordering.take_outbox():
            for name in names:
                self._world.carry(self.name, storage.home, name, message)
        events = ordering.take_events()
        if events:
            self._world.observe(self, events)
            self._events += events
            self.wake()
            if any(isinstance(event, Ended) for event in events):
                self._ended = True
                self._world.forget(self)
        self._arm(max(ordering.wake_ns(), now_ns + STEP_NS))

    def _arm(self, due_ns: int) -> None:
        """Have work done at a time, unless it is done before."""
        now_ns = self._world.clock.now_ns
        if now_ns < self._due_ns <= due_ns:
            return
        self._due_ns = due_ns

        def ring() -> None:
            if self._due_ns == due_ns:
                self.work()

        self._world.clock.after(due_ns - now_ns, ring)


class SimulatedLoop(GroupLoop):
    """A group's loop whose turns are taken by the world's clock."""

    def __init__(self, *arguments: object, world: SimulatedMembers) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type] # those of a loop, unseen
        self._world = world
        self._ended = False

    def start(self, engine: Engine, packer: Packer, audience: object) -> None:
        """Begin, without a thread."""
        self._engine, self._packer, self._audience = engine, packer, audience  # type: ignore[assignment] # as above
        self.awake = False

    def wake(self) -> None:
        """Take a turn at this moment of the world, after what is being done."""
        if not self.awake and not self._ended:
            self.awake = True
            self._world.clock.after(0, self._step)

    def wait_for_room(self, deadline: float) -> bool:  # noqa: ARG002 - of a clock that does not run here
        """Let time pass until a submitter may go on."""
        return self._world.advance_until(lambda: self._has_room or bool(self.failure), 30 * SECOND)

    def close(self, seconds: float) -> None:  # noqa: ARG002 - nothing to wait for
        """End the loop, and with it the engine."""
        if not self._ended:
            self._ended = True
            self._engine.close()
            with contextlib.suppress(OSError):
                os.close(self._wakener)

    @property
    def _has_room(self) -> bool:
        return not self.full and len(self.inbox) < INBOX_MAX

    def _step(self) -> None:
        self.awake = False
        if self._ended:
            return
        self._turn(())
        if self.failure:
            self.close(0)
            return
        due_ns = self._packer.wake_ns()
        if due_ns is not None:
            self._world.clock.after(max(STEP_NS, due_ns - self._world.clock.now_ns), self.wake)

    def _turn(self, ready: Sequence[tuple[int, int]]) -> None:
        """As a loop does it, by the world's clock."""
        now_ns = self._world.clock.now_ns
        while self._errands:
            self._errands.popleft()()
        if self.inbox:
            taken = self.inbox[:]
            del self.inbox[: len(taken)]
            self._packer.add(taken, now_ns)
        for _ in range(TURNS_MAX):
            sent = self._send(now_ns)
            events = self._engine.turn(ready, now_ns)
            if events:
                self._take(events, now_ns)
            elif not sent:
                break
        self._mind_the_room()


class SimulatedDelivery(GroupDelivery):
    """Delivery without a thread of its own: handlers run when the engine has told something."""

    def __init__(
        self, name: str, state: GroupState | None, *, kept_bytes: int = KEPT_BYTES, world: SimulatedMembers
    ) -> None:
        super().__init__(name, state, kept_bytes=kept_bytes)
        self._world = world

    def start(self, engine: Engine, loop: GroupLoop, me: str, life: int) -> None:
        """Begin, without a thread."""
        self._engine, self._loop, self._me, self._life = engine, loop, me, life

    def add(self, subscriber: object) -> None:
        """Tell somebody of all events from here on; the first one of all that came before as well."""
        super().add(subscriber)  # type: ignore[arg-type] # as a delivery has it
        self._world.clock.after(0, self._settle)

    def hand_over(self, events: Sequence[EngineEvent | int]) -> None:
        """Take what the engine tells, and tell it."""
        super().hand_over(events)
        self._settle()

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Let time pass until something is true that delivery brings about."""
        return self._world.advance_until(condition, int(seconds * SECOND))

    def close(self, seconds: float) -> None:  # noqa: ARG002 - nothing to wait for
        """Deliver what is there, and end."""
        self._closed = True
        self._settle()

    def _settle(self) -> None:
        self._tell_early()
        while self._events:
            self._deliver(self._events.popleft())


class SimulatedMember(Group):
    """A group whose waiting lets the world's time pass."""

    world: SimulatedMembers
    simulated: SimulatedEngine

    def submit_sync(self, event: object, timeout: float = 5.0) -> GroupStamp:
        """Have an event ordered, and return its place when it was delivered here.

        Raises:
            EchoicError: As a group does it, after so many seconds of the world's time.
        """
        stamps: list[GroupStamp] = []
        number = self._submit(self._encode(event), stamps.append, timeout)
        if not self.world.advance_until(lambda: bool(stamps), int(timeout * SECOND)):
            self._delivery.forget_own(number)
            raise self._late(timeout)
        return stamps[0]

    def _change(self, name: str, address: str, *, admit: bool, timeout: float) -> None:  # noqa: ARG002 - there is none
        engine, end_ns = self.simulated, self.world.clock.now_ns + int(timeout * SECOND)
        while engine.has_seat(name) is not admit:
            if self.world.clock.now_ns > end_ns:
                raise RefusedError(f"`{name}` was not {'admitted' if admit else 'expelled'}: {self._delivery.reason}")
            engine.change(name, admit=admit)
            self.world.advance(100 * MILLISECOND)
