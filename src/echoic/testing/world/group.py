"""The ordered group of a world: real groups on the ordering core, with packing, each with a log on a disk of its own.

Members live at the addresses of hubs, so whatever parts these parts them too, and their messages are lost, doubled and
overtake each other as the network wants. When the process of a hub ends its member does; when power is lost its disk
keeps what was synced, and some of the rest.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from echoic.engines.embedded.log_file import LogFile
from echoic.formats import event
from echoic.groups.engine import EngineEvent
from echoic.groups.messages import Message
from echoic.groups.options import Options
from echoic.groups.writes import Append, Image, Snapshot, Write
from echoic.hub.group_delivery import GroupStamp
from echoic.testing.ledger import check
from echoic.testing.network import MILLISECOND, SECOND
from echoic.testing.simulated_disk import SimulatedDisk
from echoic.testing.simulated_engine import SimulatedEngine, SimulatedMembers
from echoic.testing.simulated_group import Storage
from echoic.testing.surroundings import Surroundings
from echoic.testing.world.group_book import GroupBook

if TYPE_CHECKING:
    from echoic.hub.group import Group

__all__ = ["WorldGroup"]

SEGMENT_BYTES_MAX: Final = 4000
RESTART_NS: Final = (100 * MILLISECOND, 3 * SECOND)
PAUSE_NS: Final = (100 * MILLISECOND, 900 * MILLISECOND)
PACKINGS: Final = ("auto", "static:1", "static:4", "nagle:16384")


@event
class Transfer:
    """What the members of a world's group tell each other."""

    member: int
    number: int


class DiskStorage(Storage):
    """A member's log on a simulated disk."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._disk = SimulatedDisk(around.random)
        self._log: LogFile | None = None
        self.end = 0
        """The last index that is on the disk for sure."""
        self._end = 0
        self._unsynced = False
        super().__init__(0)

    def image(self) -> Image:
        """Open the log, and return what it has."""
        random = self._around.random
        life = random.getrandbits(47) | 1
        self._log = LogFile.open(
            self._disk, life=life, segment_bytes_max=SEGMENT_BYTES_MAX, draw=lambda: random.getrandbits(64)
        )
        image = self._log.image()
        self.home = image.life
        self.end = self._end = (image.snapshot.index if image.snapshot is not None else 0) + len(image.entries)
        return image

    def write(self, writes: Iterable[Write]) -> None:
        """Take what the core wants kept."""
        taken = list(writes)
        for write in taken:
            if isinstance(write, Append):
                self._end = write.first + len(write.entries) - 1
            elif isinstance(write, Snapshot):
                self._end = max(self._end, write.index)
        if taken and self._log is not None:
            self._log.write(taken)
            self._unsynced = True

    def sync(self, count: int | None = None) -> None:  # noqa: ARG002 - a log is synced as a whole
        """Keep it."""
        if self._log is not None and self._unsynced:
            self._log.sync()
            self.end, self._unsynced = self._end, False

    def crash(self, random: object) -> None:  # noqa: ARG002 - the disk has its own
        """Lose power, or only the process."""
        (self._disk.crash if self._around.random.random() < 0.5 else self._disk.kill)()
        self._log = None


class WorldMembers(SimulatedMembers):
    """Members whose messages go over the world's network."""

    def __init__(
        self, names: Sequence[str], places: Mapping[str, str], around: Surroundings, book: GroupBook, pace: int
    ) -> None:
        self.stability: Final = around.random.choice(["majority", "majority", "all"])
        options = Options(stability=self.stability, election_ns=pace * SECOND, heartbeat_ns=250 * pace * MILLISECOND)
        super().__init__(names, options=options, around=around)
        self._around = around
        self._places = places
        self._book = book
        self._starts: dict[SimulatedEngine, int] = {}

    def carry(self, sender: str, home: int, name: str, message: Message) -> None:
        """Let a message travel, which may get lost, come twice, or overtake others."""
        self._around.network.carry(
            self._places[sender], self._places[name], lambda: self.arrive(sender, home, name, message)
        )

    def make_storage(self) -> Storage:
        """Return a disk for a member."""
        return DiskStorage(self._around)

    def observe(self, engine: SimulatedEngine, events: Sequence[EngineEvent]) -> None:
        """Enter what a member is told."""
        start = self._starts.setdefault(engine, len(self._starts))
        if engine.leads:
            self._book.lead(engine.name, engine.term)
        kept = {name: storage.end for name, storage in self._storages.items() if isinstance(storage, DiskStorage)}
        for told in events:
            self._book.learn((engine.name, start), told, kept)
            self._around.count(start, self._book.reached.get((engine.name, start), 0))


class WorldGroup:
    """A group, what its programs do, and what breaks."""

    def __init__(self, around: Surroundings, places: Sequence[str], pace: int = 1) -> None:
        """Let a member live at each of some addresses; everything takes `pace` times as long as usual."""
        self.book: Final = GroupBook()
        self.names: Final = [f"n{number}" for number in range(1, len(places) + 1)]
        self.places: Final = dict(zip(self.names, places, strict=True))
        self.quiet = False
        self.submitted = 0
        self._around = around
        self._members = WorldMembers(self.names, self.places, around, self.book, pace)
        self._groups: dict[str, Group] = {}
        self._last: dict[str, tuple[int, int]] = {}
        """What a member has submitted last, in its present life."""
        self._packing = around.random.choice(PACKINGS)
        self._pause_ns = pace * around.random.randrange(*PAUSE_NS)
        for name in self.names:
            self.start(name)
            self._submit_on(name)

    def start(self, name: str) -> None:
        """Let a member begin, with what its disk has."""
        if name not in self._groups:
            self._around.note(f"{name}: starts at {self.places[name]}")
            self._last.pop(name, None)
            group = self._groups[name] = self._members.join(name, Transfer, packing=self._packing)
            group.subscribe(lambda event, stamp: self._handed_over(name, event, stamp))

    def crash(self, name: str) -> None:
        """End a member without a word, and let it come back later."""
        group = self._groups.pop(name, None)
        if group is not None:
            self._around.faults["member crash"] += 1
            self._around.note(f"{name}: crashes")
            self._members.crash(name)
            self._around.clock.after(MILLISECOND, group.close)  # when it knows that it is of no more use
            self._around.clock.after(self._around.random.randrange(*RESTART_NS), lambda: self.start(name))

    def end_process(self, address: str) -> None:
        """Learn that a process at an address has ended."""
        for name, place in self.places.items():
            if place == address:
                self.crash(name)

    def hunt(self) -> None:
        """Crash whoever leads, or anybody."""
        self.crash(self._members.leader or self._around.random.choice(self.names))

    def heal(self) -> None:
        """Let everybody be there."""
        for name in self.names:
            self.start(name)

    def rest(self) -> None:
        """Let nobody submit anything more."""
        self.quiet = True

    def begin_progress(self, healthy: Container[str]) -> Callable[[], None]:
        """Let every member at a healthy address submit something; return what checks that it was ordered.

        Who can submit no more, because nothing went on before all was healed, waits for what it has submitted last.
        All of it must be ordered if all members are healthy. Otherwise that of enough members to be, with those that
        are not, a majority: whoever leads may be among the latter, cut off from a member and reaching all others; then
        it leads on, and that member is not served.
        """
        members = {name: group for name, group in self._groups.items() if self.places[name] in healthy}
        wanted = {
            name: self._last[name] if group.would_wait() else self._submit(name) for name, group in members.items()
        }

        def check_progress() -> None:
            told = {(event.member, event.number) for event in self.book.events if isinstance(event, Transfer)}
            late = [name for name, one in wanted.items() if one not in told and self._groups.get(name) is members[name]]
            outside = len(self.names) - len(members)
            few = outside > 0 and 2 * (len(wanted) - len(late) + outside) > len(self.names)
            check(not late or few, f"the group does not order what {late} have submitted: {self.describe()}")

        return check_progress

    def check_settled(self) -> None:
        """Check that everybody has been given all that anybody has.

        Raises:
            AssertionError: Somebody has not.
        """
        last = max(self.book.order, default=0)
        for name in self.names:
            reached = max((place for (who, _), place in self.book.reached.items() if who == name), default=0)
            check(reached == last, f"{name} was given up to place {reached} of {last}: {self.describe()}")

    @property
    def tolerant(self) -> bool:
        """Whether it goes on without one of its members."""
        return self._members.stability == "majority"

    def describe(self) -> str:
        """Return how things stand, for people."""
        return ", ".join(f"{name}: {group.statistics()}" for name, group in self._groups.items())

    def close(self) -> None:
        """End, and let go of what the operating system has lent."""
        groups, self._groups = self._groups, {}
        for name in groups:
            self._members.crash(name)
        self.quiet = True
        self._around.clock.run_until(self._around.clock.now_ns + 2 * MILLISECOND)
        for group in groups.values():
            group.close()

    def _submit(self, name: str) -> tuple[int, int]:
        self.submitted += 1
        transfer = Transfer(self.names.index(name), self.submitted)
        self._groups[name].submit(transfer)
        last = self._last[name] = (transfer.member, transfer.number)
        return last

    def _submit_on(self, name: str) -> None:
        """Submit, wait, submit again."""
        group = self._groups.get(name)
        if group is not None and not self.quiet and not group.would_wait():
            self._submit(name)
        self._around.clock.after(
            self._around.random.randrange(self._pause_ns, 3 * self._pause_ns), lambda: self._submit_on(name)
        )

    def _handed_over(self, name: str, event: object, stamp: GroupStamp) -> None:
        self.book.hand_over(name, stamp.sequence, event)
