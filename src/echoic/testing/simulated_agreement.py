"""A group over a model of extended virtual synchrony, made from a seed: cuts, merges, crashes, and what must hold.

The layers are the real ones (`groups.agreement`); below them is the model (`extended_synchrony`). Each member has an
application that lists what it was given, either in memory, lost with the process, or durable. Nodes are cut apart and
put together, often while a round is under way; processes are killed and started anew, in memory never so that a
majority of the history is lost; at the end all is healed. Checked are:

    order       at each position everybody has the same; nothing is left out; of each life of a sender, its packs in the
                order in which they were sent, each once
    uniform     whatever anybody was ever given is in what all have in the end
    views       the same at the same positions; no two sides take part in one epoch with different members (`EpochBook`)
    liveness    when all is healed, everybody takes part and has everything that living senders have sent

`python -m echoic.testing.simulated_agreement --seeds 0:1000` runs many, `--bug NAME` with a planted bug (`BUGS`).
"""

import argparse
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Final

import msgspec

from echoic.errors import EchoicError
from echoic.groups.agreement import Agreement
from echoic.groups.engine import Delivered, Ended, EngineEvent, Restored, StateWanted, Suspended, Viewed
from echoic.testing.extended_synchrony import LowerView, Synchrony
from echoic.testing.ledger import check
from echoic.testing.planted_agreement import BUGS

__all__ = ["AgreementReport", "EpochBook", "SimulatedAgreement", "run_agreement"]

HEALED_STEPS_MAX: Final = 60_000
TRACE_LINES: Final = 60

Given = tuple[str, int, int]
"""Sender, life and number of a pack."""


class AgreementReport(msgspec.Struct, frozen=True):
    """What happened in a run."""

    seed: int
    members: int
    durable: bool
    steps: int
    cuts: int
    crashes: int
    delivered: int
    views: int
    states_taken: int
    resent: int


class EpochBook:
    """Who takes part in each epoch; within one, members are only ever admitted.

    Processes forget their epochs when they end. As long as a majority of the history lives, one of it keeps the next
    epoch above all earlier ones. When that is lost, the group starts cold: above what any process that lives has
    accepted, but epochs that only the dead knew may come again, with other members, and nobody can confuse the two.
    """

    def __init__(self) -> None:
        self._members: dict[int, set[frozenset[str]]] = {}

    def note(self, epoch: int, members: Iterable[str]) -> None:
        """Check who takes part somewhere against who takes or took part elsewhere.

        Raises:
            AssertionError: Two have each a member that the other one has not.
        """
        here = frozenset(members)
        noted = self._members.setdefault(epoch, set())
        for known in noted:
            nested = known <= here or here <= known
            check(nested, "epoch {} has members {} and {}", epoch, sorted(known), sorted(here))
        noted.add(here)

    def forget_above(self, epoch: int) -> None:
        """Let go of later epochs: the history is lost, and this is the last epoch that a process has accepted."""
        self._members = {known: noted for known, noted in self._members.items() if known <= epoch}


class SimulatedMember:
    """A process: the real layers, and an application that lists what it was given."""

    def __init__(self, system: "SimulatedAgreement", node: int, life: int, given: list[Given]) -> None:
        self.node: Final = node
        self.life: Final = life
        self.name: Final = f"m{node}"
        self.place: Final = (node, 1000 + life)
        self.given = given
        self.position = 0
        self.sent = 0
        self.ended = False
        self.speed: Final = system.random.choice((0.1, 0.5, 1.0))
        self._prompt: Final = system.later.choice((1.0, 1.0, 0.2))
        """How often it says at once what its application has."""
        self._system = system
        kept = system.kept_bytes_max
        self.agreement: Final = system.make(self.name, system.names, life=life, applied=len(given), kept_bytes_max=kept)
        self._wanted: deque[int] = deque()

    def take(self) -> None:
        """Take some of what the ring has for this process."""
        for _ in range(self._system.random.randint(1, 6)):
            item = self._system.below.take_one(self.node)
            if item is None:
                break
            if isinstance(item, LowerView):
                self.agreement.changed(item.places, self.place, self._system.now_ns)
            else:
                self.agreement.received(item.sender, item.data)
        self.turn()

    def turn(self) -> None:
        """End a turn: learn what happened, and hand over what is to be sent."""
        for event in self.agreement.flush(self._system.now_ns):
            self._learn(event)
        if self._system.later.random() < self._prompt:
            self.agreement.note_applied(len(self.given))
        unordered = self._system.below.processes[self.node].unordered
        outgoing = self.agreement.outgoing
        while outgoing and len(unordered) < 8:
            out = outgoing.popleft()
            unordered.append(out.header + bytes(out.payload))
        while self._wanted and self._system.random.random() < 0.5:
            chunks = [msgspec.msgpack.encode(part) for part in (self.given[:3], self.given[3:])]
            self.agreement.give_state(self._wanted.popleft(), self.position, b"%d" % len(self.given), chunks)

    def send(self) -> None:
        """Send the next pack."""
        self.sent += 1
        self.agreement.send(b"%d" % self.sent + bytes(self._system.random.choice((0, 0, 300))))

    def _learn(self, event: EngineEvent) -> None:
        system = self._system
        match event:
            case Delivered():
                check(event.position > self.position, "position {} after {}", event.position, self.position)
                check(bytes(event.payload).rstrip(b"\0") == b"%d" % event.number, "another payload")
                self.position = event.position
                self.given.append((event.sender, event.life, event.number))
                system.book(self, event.position)
            case Viewed():
                check(event.view.position > self.position, "view at {} after {}", event.view.position, self.position)
                check(self.name in event.view.members, "a view without its member")
                self.position = event.view.position
                system.book_view(self, event.view.position, event.view.members)
            case Restored():
                parts = [msgspec.msgpack.decode(chunk, type=list[Given]) for chunk in event.chunks]
                given = [one for part in parts for one in part]
                check(len(given) == int(event.summary), "a state that is not whole")
                check(self.given == given[: len(self.given)], "a state that does not continue what was given")
                self.position = event.position
                self.given[:] = given
            case StateWanted():
                self._wanted.append(event.ticket)
            case Suspended():
                system.trace(f"{self.name}/{self.life} suspended: {event.reason}")
            case Ended():
                self.ended = True


class SimulatedAgreement:
    """The members, what breaks, and the book of what everybody was given."""

    def __init__(self, seed: int, make: Callable[..., Agreement] = Agreement) -> None:
        self.seed: Final = seed
        self.random: Final = Random(seed)
        self.later: Final = Random(~seed)
        self.make: Final = make
        random = self.random
        count = random.choice((2, 3, 3, 3, 4, 5))
        self.names: Final = [f"m{node}" for node in range(count)]
        self.durable: Final = random.random() < 0.3
        self.kept_bytes_max: Final = random.choice((0, 2000, 10_000, 1_000_000))
        self.below: Final = Synchrony(random, range(count))
        self.members: Final[dict[int, SimulatedMember]] = {}
        self.now_ns = self.steps = self.cuts = self.crashes = self._lives = 0
        self._disks: dict[int, list[Given]] = {node: [] for node in range(count)}
        self._packs: list[Given] = []
        self._positions: dict[int, Given] = {}
        self._views: dict[int, tuple[str, ...]] = {}
        self._epochs = EpochBook()
        self._trace: deque[str] = deque(maxlen=TRACE_LINES)
        self._resent = self._states = 0
        self.faults: Final = random.choice((0.002, 0.01, 0.03))
        self.crash_share: Final = random.choice((0.0, 0.2, 0.5))
        self.load: Final = random.choice((0.02, 0.1, 0.3))

    def trace(self, line: str) -> None:
        """Note a line for the message of a failure."""
        self._trace.append(f"{self.steps}: {line}")

    def run(self) -> AgreementReport:
        """Let it fail, heal it, and check."""
        for node in range(len(self.names)):
            self._start(node)
        for _ in range(self.random.choice((500, 1500, 3000))):
            self._step()
            if self.random.random() < self.faults:
                self._break()
        self._heal()
        self._check_end()
        return AgreementReport(
            self.seed,
            len(self.names),
            self.durable,
            self.steps,
            self.cuts,
            self.crashes,
            len(self._packs),
            len(self._views),
            self._states + sum(m.agreement.statistics().states_taken for m in self.members.values()),
            self._resent + sum(m.agreement.statistics().resent for m in self.members.values()),
        )

    def book(self, member: SimulatedMember, position: int) -> None:
        """Check what a member was given last, against what others were given there."""
        index = len(member.given) - 1
        one = member.given[index]
        self.trace(f"{member.name}/{member.life} has {one} at {position}, as message {index}")
        if index < len(self._packs):
            check(self._packs[index] == one, "message {} is {} elsewhere, {} here", index, self._packs[index], one)
        else:
            check(index == len(self._packs), "message {} comes after {}", index, len(self._packs))
            self._packs.append(one)
        if not self.durable:  # after a cold start positions may be used again
            known = self._positions.setdefault(position, one)
            check(known == one, "position {} has {} elsewhere, {} here", position, known, one)

    def book_view(self, member: SimulatedMember, position: int, names: tuple[str, ...]) -> None:
        """Check a view against what others were given at its position."""
        self.trace(f"{member.name}/{member.life} has view {names} at {position}")
        if not self.durable:
            known = self._views.setdefault(position, names)
            check(
                known == names and position not in self._positions,
                "view {} at {}, elsewhere {}",
                names,
                position,
                known,
            )

    def explain(self, problem: str) -> str:
        """Return a problem with the seed and what happened last."""
        lines = "\n  ".join(self._trace)
        return f"seed {self.seed}: {problem}\n  {lines}"

    def _start(self, node: int) -> None:
        self._lives += 1
        given = self._disks[node] if self.durable else []
        member = SimulatedMember(self, node, self._lives, given)
        self.members[node] = member
        self.below.start(member.place)
        self.trace(f"{member.name}/{member.life} starts with {len(given)}")

    def _kill(self, node: int) -> None:
        member = self.members.pop(node)
        statistics = member.agreement.statistics()
        self._states += statistics.states_taken
        self._resent += statistics.resent
        self.trace(f"{member.name}/{member.life} is killed at {statistics.delivered}, held {statistics.held}")
        self.below.kill(node)
        self.crashes += 1
        if self.durable and not self._may_lose(node):
            left = [member.agreement.statistics().epoch for member in self.members.values()]
            self._epochs.forget_above(max(left, default=0))

    def _step(self) -> None:
        """Let one member do something."""
        self.steps += 1
        self.now_ns += self.random.randint(1, 1_000_000)
        random = self.random
        node = random.randrange(len(self.names))
        member = self.members.get(node)
        if member is None:
            return
        if random.random() < self.load:
            member.send()
        for _ in range(random.randint(0, 4)):
            self.below.order_one(node)
        if random.random() < member.speed:
            member.take()
            self._check_epoch(member)
        if member.ended:
            self._kill(node)
            self._start(node)

    def _check_epoch(self, member: SimulatedMember) -> None:
        statistics = member.agreement.statistics()
        if statistics.primary:
            self._epochs.note(statistics.epoch, statistics.participants)

    def _break(self) -> None:
        """Cut, merge, kill or start; often several things at once, while a round is under way."""
        random = self.random
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            if random.random() < self.crash_share:
                self._crash_or_start()
            else:
                self._cut()
            for _ in range(random.choice((0, 3, 10, 30))):
                self._step()

    def _crash_or_start(self) -> None:
        node = self.random.randrange(len(self.names))
        if node not in self.members:
            self._start(node)
        elif self.durable or self._may_lose(node):
            self._kill(node)
            if self.random.random() < 0.5:
                self._start(node)

    def _may_lose(self, node: int) -> bool:
        """Return whether a majority keeps the history when a process loses its memory; before there is any, never."""
        left = [n for n, member in self.members.items() if n != node and member.agreement.statistics().history]
        return 2 * len(left) > len(self.names)

    def _cut(self) -> None:
        count = len(self.names)
        sides: dict[int, list[int]] = {}
        sides_max = self.random.choice((1, 2, 2, 3))
        for node in range(count):
            sides.setdefault(self.random.randrange(sides_max), []).append(node)
        self.trace(f"cut into {list(sides.values())}")
        self.below.part(list(sides.values()))
        self.cuts += 1

    def _heal(self) -> None:
        for node in range(len(self.names)):
            if node not in self.members:
                self._start(node)
        self.trace("healed")
        self.below.part([range(len(self.names))])
        for _ in range(HEALED_STEPS_MAX):
            self._step_quietly()
            if self.steps % 50 == 0 and self._quiet():
                return

    def _step_quietly(self) -> None:
        self.steps += 1
        self.now_ns += 100_000
        for node, member in list(self.members.items()):
            if self.random.random() < 0.5:
                self.below.order_one(node)
            if self.random.random() < member.speed:
                member.take()
            if member.ended:
                self._kill(node)
                self._start(node)

    def _quiet(self) -> bool:
        below = self.below.processes
        if any(process.inbox or process.unordered for process in below.values()):
            return False
        for member in self.members.values():
            statistics = member.agreement.statistics()
            if member.agreement.outgoing or statistics.queued_bytes or len(statistics.participants) < len(self.names):
                return False
        return True

    def _check_end(self) -> None:
        for member in self.members.values():
            statistics = member.agreement.statistics()
            who = f"{member.name}/{member.life}"
            check(not member.ended, "{} has ended", who)
            check(
                statistics.primary and len(statistics.participants) == len(self.names), "{} stays: {}", who, statistics
            )
            check(
                member.given == self._packs, "{} has {} of {}, or other ones", who, len(member.given), len(self._packs)
            )
            check(statistics.queued_bytes == 0 and statistics.malformed == 0, "{}: {}", who, statistics)
        lasts: dict[tuple[str, int], int] = {}
        for sender, life, number in self._packs:
            last = lasts.get((sender, life), 0)
            check(number == last + 1, "pack {} of {}/{} comes after {}", number, sender, life, last)
            lasts[sender, life] = number
        for member in self.members.values():
            last = lasts.get((member.name, member.life), 0)
            check(
                last == member.sent, "{}/{} has sent {}, of which {} came", member.name, member.life, member.sent, last
            )


def run_agreement(seed: int, make: Callable[..., Agreement] = Agreement) -> AgreementReport:
    """Run a simulation and return what happened.

    Raises:
        AssertionError: A promise was broken; the message has the seed and the last things that happened.
    """
    system = SimulatedAgreement(seed, make)
    try:
        return system.run()
    except (AssertionError, EchoicError, KeyError, IndexError, RuntimeError, ValueError) as problem:
        raise AssertionError(system.explain(f"{type(problem).__name__}: {problem}")) from problem


def main(bugs: Mapping[str, type[Agreement]] = BUGS) -> int:
    """Run the seeds that were asked for; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:300", help="the first, and the one behind the last")
    parser.add_argument("--bug", choices=sorted(bugs))
    chosen = parser.parse_args()
    first, last = map(int, chosen.seeds.split(":"))
    make = bugs[chosen.bug] if chosen.bug else Agreement
    totals: dict[str, int] = {}
    for seed in range(first, last):
        try:
            report = run_agreement(seed, make)
        except AssertionError as problem:
            sys.stdout.write(f"{problem}\nfound after {seed - first + 1} seeds\n")
            return 1
        for key in ("cuts", "crashes", "delivered", "views", "states_taken", "resent"):
            totals[key] = totals.get(key, 0) + getattr(report, key)
    sys.stdout.write(f"{last - first} seeds passed: {totals}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
