"""A group of simulated members: the real ordering core on a network, clocks and disks that fail, from one seed.

One seed is one world. It draws how many members there are, what the network does (loss, copies, delays with long
tails, one-way cuts), how clocks drift, how disks forget what was not synced, or that there are none, how large messages
are and how many are under way, when logs are forgotten, and who strikes: a *nemesis* that hits anybody, one that hunts
the leader, one that lies in ambush for it. Every knob is drawn (swarm testing), because some mistakes show only where
messages are tiny and few.

What must hold, at every step: one leader in a term; the same event at the same place everywhere; no gap; each sender's
packs in order, once; a state that was transferred is the state of all at that place. And when everything is healed:
whatever anybody was given, everybody is given, and what a living member has submitted is delivered.

    python -m echoic.testing.group_campaign --seeds 0:1000
    python -m echoic.testing.group_campaign --seeds 0:1000 --bug vote-twice
"""

import hashlib
from collections.abc import Iterable
from random import Random
from typing import Final

import msgspec

from echoic.groups.engine import Delivered, Ended, EngineEvent, Restored, StateWanted, Suspended, Viewed
from echoic.groups.messages import Message
from echoic.groups.options import Options
from echoic.groups.ordering import Ordering
from echoic.groups.writes import Append, Ballot, Entry, Image, Snapshot, Write
from echoic.testing.network import VirtualClock

__all__ = ["Knobs", "SimulatedGroup", "SimulationCounts"]

MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
HEALING_NS: Final = 12 * SECOND


class Knobs(msgspec.Struct, frozen=True):
    """What one world is like."""

    members: int
    stability: str
    memory: bool
    """Members have no disks: one that ends is another when it comes back."""
    hunting: bool
    ambush: bool
    """Leaders are cut off as soon as a majority holds entries of former terms."""
    loss: float
    copies: float
    delay_ns: int
    tail: float
    append_bytes_max: int
    flights_max: int
    compacting: bool
    changing: bool
    """Members are admitted and expelled."""
    drift: tuple[float, ...]

    @classmethod
    def draw(cls, random: Random) -> "Knobs":
        """Draw a world."""
        cruel = random.random() < 0.2  # where leaders are hunted, ambushed, and can send but little: figure 8 of Raft
        members = 3 if cruel else random.choice([1, 2, 3, 3, 3, 4, 5])
        return cls(
            members=members,
            stability=random.choice(["majority", "all"]),
            memory=not cruel and random.random() < 0.25,
            hunting=cruel or random.random() < 0.4,
            ambush=cruel or random.random() < 0.3,
            loss=random.choice([0, 0, 0.01, 0.05, 0.2]),
            copies=random.choice([0, 0, 0.02, 0.1]),
            delay_ns=random.choice([1, 5, 20]) * MILLISECOND,
            tail=random.choice([0, 0.02, 0.1]),
            append_bytes_max=1 if cruel else random.choice([1, 1, 200, 1 << 20]),
            flights_max=random.choice([1, 2, 16]),
            compacting=random.random() < 0.6,
            changing=random.random() < 0.2,
            drift=tuple(random.choice([1.0, 1.0, 0.7, 1.4]) for _ in range(members + 1)),
        )


class SimulationCounts(msgspec.Struct):
    """What happened in a world."""

    delivered: int = 0
    views: int = 0
    messages: int = 0
    crashes: int = 0
    cuts: int = 0
    leaders: int = 0
    restored: int = 0
    suspended: int = 0

    def add(self, other: "SimulationCounts") -> None:
        """Add another world's."""
        for field in self.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))


class Storage:
    """A member's disk: what was synced stays; of the rest, a part at most."""

    def __init__(self, home: int) -> None:
        self.home = home
        self._pending: list[Write] = []
        self._ballot = Ballot(0, "")
        self._snapshot: Snapshot | None = None
        self._entries: list[Entry] = []

    def write(self, writes: Iterable[Write]) -> None:
        """Take what the core wants kept."""
        self._pending += writes

    def sync(self, count: int | None = None) -> None:
        """Keep it, or only so many of the writes."""
        count = len(self._pending) if count is None else count
        for write in self._pending[:count]:
            self._keep(write)
        del self._pending[:count]

    def crash(self, random: Random) -> None:
        """Lose what was not synced, or some of it."""
        self.sync(random.randint(0, len(self._pending)) if self._pending else 0)
        self._pending.clear()

    def image(self) -> Image:
        """Return what is there."""
        return Image(self.home, self._ballot, self._snapshot, tuple(self._entries))

    def _keep(self, write: Write) -> None:
        base = self._snapshot.index if self._snapshot is not None else 0
        match write:
            case Ballot():
                self._ballot = write
            case Append():
                del self._entries[write.first - base - 1 :]
                self._entries += write.entries
            case Snapshot():
                at = write.index - base
                same = 0 < at <= len(self._entries) and self._entries[at - 1].term == write.term
                self._entries = self._entries[at:] if same else []
                self._snapshot = write


class Member:
    """One member: the core, its disk, and an application that keeps a digest of all it was given."""

    def __init__(self, name: str, storage: Storage, ordering: Ordering, life: int) -> None:
        self.name, self.storage, self.ordering, self.life = name, storage, ordering, life
        self.position = 0
        self.digest = b""
        self.submitted = 0
        self.ended = False
        self.paused: list[tuple[str, int, Message]] | None = None


class SimulatedGroup:
    """A world, made of a seed."""

    def __init__(self, seed: int, *, knobs: Knobs | None = None, duration_ns: int = 3 * SECOND) -> None:
        self.random = Random(seed)
        self.knobs = knobs or Knobs.draw(self.random)
        self.clock = VirtualClock()
        self.counts = SimulationCounts()
        self.duration_ns = duration_ns
        self.names = tuple(f"n{number}" for number in range(1, self.knobs.members + 1))
        self.storages: dict[str, Storage] = {}
        self.members: dict[str, Member] = {}
        self.late = False
        """Storage is synced after sending: a planted bug."""
        self.forgetful = False
        """Disks forget everything but whose they are: a planted bug."""
        self._healed = False
        self._cut: set[tuple[str, str]] = set()
        self._order: list[tuple[object, ...]] = []
        self._digests: list[bytes] = [b""]
        self._packs: dict[tuple[str, int, int], bytes] = {}
        self._last: dict[tuple[str, int], int] = {}
        self._leaders: dict[int, str] = {}
        self._gone: set[str] = set()
        self._extra = f"n{self.knobs.members + 1}"
        slow = self.knobs.append_bytes_max == 1 and self.knobs.flights_max < 3
        self._pause = 0.4 if slow else 0.08

    def run(self) -> SimulationCounts:
        """Let the world live, be healed, and come to rest.

        Raises:
            AssertionError: Something happened that must not.
        """
        for name in self.names:
            self._start(name)
            self._after(self.random.random() * 0.2, lambda name=name: self._load(name))
        self._after(0.3 + self.random.random(), self._strike)
        if self.knobs.changing:
            self._after(1 + self.random.random(), self._admit)
        self.clock.run_until(self.duration_ns)
        self._heal()
        end_ns = self.duration_ns + HEALING_NS
        while self.clock.now_ns < end_ns and not self._is_settled():
            self.clock.run_until(self.clock.now_ns + 100 * MILLISECOND)
        self._check_settled()
        self.counts.leaders = len(self._leaders)
        return self.counts

    def _after(self, seconds: float, action: "object") -> None:
        self.clock.after(int(seconds * SECOND), action)  # type: ignore[arg-type] # lambdas of several shapes

    def _start(self, name: str) -> None:
        """Let a member begin, with what its disk has."""
        if name in self.members or name in self._gone:
            return
        if name not in self.storages or self.knobs.memory:
            self.storages[name] = Storage(self.random.getrandbits(63) | 1)
        storage, life = self.storages[name], self.random.getrandbits(48)
        image = storage.image()
        if self.forgetful:
            storage = self.storages[name] = Storage(storage.home)
            image = storage.image()
        options = Options(
            stability=self.knobs.stability,
            election_ns=150 * MILLISECOND,
            heartbeat_ns=30 * MILLISECOND,
            append_bytes_max=self.knobs.append_bytes_max,
            flights_max=self.knobs.flights_max,
        )
        peers = dict.fromkeys(self.names, "") | ({name: ""} if name == self._extra else {})
        ordering = Ordering(name, life, peers, image, options, self.random, self.clock.now_ns)
        member = self.members[name] = Member(name, storage, ordering, life)
        self._pump(member)
        drift = self.knobs.drift[int(name[1:]) - 1]

        def tick() -> None:
            if self.members.get(name) is member:
                if member.paused is None:
                    ordering.tick(self.clock.now_ns)
                    self._pump(member)
                self._after(0.01 * drift, tick)

        self._after(self.random.random() * 0.01, tick)

    def _crash(self, name: str) -> None:
        self.counts.crashes += 1
        self.members.pop(name)
        self.storages[name].crash(self.random)

    def _pump(self, member: Member) -> None:
        """Do what the core wants, in the order that it demands."""
        ordering, storage = member.ordering, member.storage
        ordering.flush(self.clock.now_ns)
        storage.write(ordering.take_writes())
        if not self.late or self.random.random() < 0.3:
            storage.sync()
        if ordering.leads and self._leaders.setdefault(ordering.term, member.name) != member.name:
            others = self._leaders[ordering.term]
            raise AssertionError(f"two leaders in term {ordering.term}: {others} and {member.name}")
        for names, message in ordering.take_outbox():
            for name in names:
                self._send(member, name, message)
        for event in ordering.take_events():
            self._hand_over(member, event)
        if self.knobs.compacting and not self._healed and self.random.random() < 0.02 and member.position:
            ordering.compact(member.position, str(member.position).encode(), (member.digest,))

    def _send(self, member: Member, name: str, message: Message) -> None:
        self.counts.messages += 1
        knobs, random = self.knobs, self.random
        if (member.name, name) in self._cut or (not self._healed and random.random() < knobs.loss):
            return
        sender, home = member.name, member.storage.home
        for _ in range(2 if random.random() < knobs.copies else 1):
            delay = random.expovariate(1 / knobs.delay_ns)
            if random.random() < knobs.tail and not self._healed:
                delay += 300 * MILLISECOND * random.random()
            self.clock.after(int(delay), lambda: self._arrive(name, sender, home, message))

    def _arrive(self, name: str, sender: str, home: int, message: Message) -> None:
        member = self.members.get(name)
        if member is None or member.ended:
            return
        if member.paused is not None:
            member.paused.append((sender, home, message))
            return
        member.ordering.receive(sender, home, message, self.clock.now_ns)
        tempted = self.knobs.ambush and member.ordering.leads and member.ordering.tempted
        self._pump(member)
        if tempted and not self._healed:
            self._part({name}, one_way=False)

    def _hand_over(self, member: Member, event: EngineEvent) -> None:
        match event:
            case Delivered():
                value = ("pack", event.sender, event.life, event.number, bytes(event.payload))
                self._take(member, event.position, value)
            case Viewed(view):
                if view.position > member.position:
                    self._take(member, view.position, ("view", view.members))
                elif view.position > len(self._order) or self._order[view.position - 1] != ("view", view.members):
                    raise AssertionError(f"{member.name} is told again of a view that nobody knows: {view}")
            case Suspended():
                self.counts.suspended += 1
            case StateWanted(ticket, _):
                state = (member.position, str(member.position).encode(), [member.digest])
                self._after(self.random.random() * 0.05, lambda: self._give_state(member, ticket, state))
            case Restored(position, summary, chunks):
                self._restore(member, position, summary, b"".join(chunks))
            case Ended():
                member.ended = True
                self._gone.add(member.name)
                self.members.pop(member.name, None)

    def _give_state(self, member: Member, ticket: int, state: tuple[int, bytes, list[bytes]]) -> None:
        if self.members.get(member.name) is member:
            position, summary, chunks = state
            member.ordering.give_state(ticket, position, summary, chunks, self.clock.now_ns)
            self._pump(member)

    def _restore(self, member: Member, position: int, summary: bytes, digest: bytes) -> None:
        self.counts.restored += 1
        if int(summary) != position or position > len(self._order) or self._digests[position] != digest:
            raise AssertionError(f"{member.name} got a state of {position} that is not the one there")
        member.position, member.digest = position, digest
        member.ordering.applied_sequence = position

    def _take(self, member: Member, position: int, value: tuple[object, ...]) -> None:
        """Let a member be given an event, and see whether it may be."""
        places = position - member.position
        if places < 1 or (value[0] == "pack" and places > 1 and not self._only_rosters(member, position)):
            raise AssertionError(f"{member.name} is at {member.position} and is given {position}")
        while len(self._order) < position - 1:
            self._note(("roster",))
        if position > len(self._order):
            self._note(value)
        elif self._order[position - 1] != value:
            raise AssertionError(
                f"at {position} {member.name} is given {value}, others were given {self._order[position - 1]}"
            )
        if not self._only_rosters(member, position):
            raise AssertionError(f"{member.name} misses something between {member.position} and {position}")
        member.position, member.digest = position, self._digests[position]
        member.ordering.applied_sequence = position

    def _only_rosters(self, member: Member, position: int) -> bool:
        """Whether nothing that must be given lies between a member's place and another: rosters are not given."""
        return all(value[0] == "roster" for value in self._order[member.position : position - 1])

    def _note(self, value: tuple[object, ...]) -> None:
        """Let an event be the next of the order, which nobody had been given yet."""
        self._order.append(value)
        self._digests.append(hashlib.blake2b(self._digests[-1] + repr(value).encode(), digest_size=16).digest())
        if value[0] == "pack":
            _, sender, life, number, payload = value
            if not (isinstance(sender, str) and isinstance(life, int) and isinstance(number, int)):
                raise TypeError(f"a pack is made of {value}")
            self.counts.delivered += 1
            if self._packs.get((sender, life, number)) != payload:
                raise AssertionError(f"nobody has submitted {value}")
            if self._last.get((sender, life), 0) + 1 != number:
                raise AssertionError(f"{sender} goes from {self._last.get((sender, life), 0)} to {number}")
            self._last[sender, life] = number
        elif value[0] == "view":
            self.counts.views += 1

    def _load(self, name: str) -> None:
        """Let a member submit now and then."""
        if self.clock.now_ns > self.duration_ns:
            return
        member = self.members.get(name)
        if member is not None and member.paused is None:
            for _ in range(self.random.choice([1, 1, 3])):
                member.submitted += 1
                payload = f"{name}:{member.submitted}:{self.random.random()}".encode()
                self._packs[name, member.life, member.submitted] = payload
                member.ordering.submit(payload)
            self._pump(member)
        self._after(self.random.expovariate(1 / self._pause), lambda: self._load(name))

    def _admit(self) -> None:
        """Have one more member admitted: asked again until it is, since a leader may end before others know."""
        if self.clock.now_ns > self.duration_ns and self._extra not in self.storages:
            return  # it was never started; one that has only crashed comes back, and its seat may be lost meanwhile
        for member in list(self.members.values()):
            if member.paused is None:
                member.ordering.change(self._extra, "", admit=True, now_ns=self.clock.now_ns)
                self._pump(member)
        seated = any(member.ordering.has_seat(self._extra) for member in self.members.values())
        if seated and self._extra not in self.members:
            self._start(self._extra)
            self._load(self._extra)
        self._after(0.2, self._admit)

    def _strike(self) -> None:
        if self.clock.now_ns > self.duration_ns:
            return
        if self.knobs.hunting:
            self._hunt()
            self._after(self.random.choice([0.02, 0.05, 0.15, 0.4]), self._strike)
        else:
            self._harass()
            self._after(self.random.expovariate(1 / 0.35), self._strike)

    def _hunt(self) -> None:
        """Cut off or crash the leader, again and again."""
        leaders = [member for member in self.members.values() if member.ordering.leads]
        chance = self.random.random()
        if leaders and chance < 0.75:
            name = max(leaders, key=lambda member: member.ordering.term).name
            if self.random.random() < 0.5:
                others = [each for each in self.names if each != name]
                company = self.random.sample(others, min(len(others), self.random.choice([0, 1, 1])))
                self._part({name, *company}, one_way=False)
            else:
                self._crash_for(name, self.random.choice([0.02, 0.1, 0.3]))
                if self.random.random() < 0.5:
                    self._cut.clear()
        elif chance < 0.85:
            self._cut.clear()

    def _harass(self) -> None:
        """Do anything to anybody."""
        chance, random = self.random.random(), self.random
        name = random.choice(self.names)
        if chance < 0.3 and len(self.names) > 1:
            self._part(set(random.sample(self.names, random.randint(1, len(self.names) - 1))), one_way=True)
        elif chance < 0.5:
            self._cut.clear()
        elif chance < 0.75:
            self._crash_for(name, random.expovariate(1 / 0.3))
        elif chance < 0.9:
            member = self.members.get(name)
            if member is not None and member.paused is None:
                member.paused = []
                self._after(random.expovariate(1 / 0.4), lambda: self._resume(member))
        elif not self.knobs.memory:
            for each in list(self.members):
                self._crash_for(each, random.random() * 0.5)

    def _part(self, group: set[str], *, one_way: bool) -> None:
        self.counts.cuts += 1
        self._cut.clear()
        for inside in sorted(group):
            for outside in self.names:
                if outside not in group:
                    self._cut.add((inside, outside))
                    if not one_way or self.random.random() < 0.8:
                        self._cut.add((outside, inside))

    def _crash_for(self, name: str, seconds: float) -> None:
        if name in self.members and (not self.knobs.memory or self._can_spare()):
            self._crash(name)
            self._after(seconds, lambda: self._start(name))

    def _can_spare(self) -> bool:
        """Whether a member without a disk may end: all others are there and may vote, so no majority is lost."""
        if self.knobs.members < 3 or not set(self.names) <= set(self.members):
            return False
        return any(
            leader.ordering.leads
            and leader.ordering.settled
            and all(leader.ordering.knows(each.name, each.storage.home) for each in self.members.values())
            for leader in self.members.values()
        )

    def _resume(self, member: Member) -> None:
        waiting, member.paused = member.paused, None
        for sender, home, message in waiting or ():
            if self.members.get(member.name) is member:
                self._arrive(member.name, sender, home, message)

    def _heal(self) -> None:
        self._healed = True
        self._cut.clear()
        for member in list(self.members.values()):
            if member.paused is not None:
                self._resume(member)
        for name in self.names:
            self._start(name)

    def _is_settled(self) -> bool:
        members = list(self.members.values())
        return len(members) >= len(self.names) - len(self._gone) and all(
            member.position == len(self._order) and self._last.get((member.name, member.life), 0) == member.submitted
            for member in members
        )

    def _check_settled(self) -> None:
        """See that everybody has been given what anybody has.

        Raises:
            AssertionError: It is not so.
        """
        state = {name: (m.position, m.ordering.statistics()) for name, m in self.members.items()}
        for member in self.members.values():
            if member.position != len(self._order):
                raise AssertionError(f"{member.name} was given {member.position} of {len(self._order)} events: {state}")
            delivered = self._last.get((member.name, member.life), 0)
            if delivered != member.submitted:
                raise AssertionError(
                    f"{member.name} has submitted {member.submitted} and {delivered} were delivered: {state}"
                )
