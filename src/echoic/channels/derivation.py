r"""A derivation at work: a sink's code, run on every batch that a source submits, before anything is sent.

ECho, section 2.3: "the event channel implementation will move the derivation function F to all event sources in the
original channel, execute it locally whenever events are submitted, and transmit any resulting event via the derived
channel". Each source has its own copy of the static variables. The parameter block is read once per batch, so a batch
is never derived by half of an update.

    parent --batch--> kernel --> outlet (a member of the derived channel) --> its targets, its sinks here
                            \--> outlet of port 1 ...               \--> what is derived from it in turn

*Where it runs.* Here, or, if it was placed there, with the sinks: then the batch goes to them as it is, under the
derived channel's number, and `Placed` has told them from which event on. What can be moved while it runs is code
without static variables; nothing is lost, repeated or reordered, since one source's events pass one after the other.

*When it misbehaves.* An event that faults is not passed on. Too many faults among recent events, or too much time,
suspend the derivation, never the source; whoever listens is told.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy

from echoic.channels.context import lend_context, run_batch
from echoic.channels.instance import Instance
from echoic.channels.messages import DerivationCounts, Placed, Refused, Step, Trouble, Tune
from echoic.channels.policy import Policy
from echoic.channels.portions import (
    BATCH_BYTES_MAX,
    BATCH_SECONDS_MAX,
    MADE_BYTES_MAX,
    RECORD_BYTES_MAX,
    Spent,
    allowance,
    sizes_of,
    split,
)
from echoic.channels.workshop import Workshop
from echoic.ecode import Buffer, Fault, Outcome
from echoic.errors import EchoicError, RefusedError
from echoic.formats import Format
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.channels.member import Member

__all__ = ["Derivation", "Share"]

INSTANCES_MAX: Final = 16_384
STATICS_BYTES_MAX: Final = 128 * 1024 * 1024  # of all copies, since a peer may have many sources
RECENT_EVENTS: Final = 1024
TROUBLE_NS: Final = 1_000_000_000
SECOND_NS: Final = 1_000_000_000
LONG_COST: Final = 2_000_000  # about a millisecond, for which it is worth to let other threads run
SENDING_NS_PER_BYTE: Final = 0.5  # what a byte costs a source that sends it, by and large
SENDING_NS_PER_BATCH: Final = 7000
PROBE_EVENTS: Final = 256


class Gate(NamedTuple):
    """What tells without much ado whether events are all rejected."""

    look: Callable[[Buffer], int]
    events_max: int


OPEN: Final = Gate(lambda _: 1, 0)


class Share(msgspec.Struct, frozen=True, gc=False):
    """Events for one derived channel: for other hubs, for sinks here, for both, or for nobody, with just a notice."""

    member: "Member"
    source: int
    batch: Batch
    remote: bool = True
    local: bool = True
    placed: Placed | None = None
    """What other hubs must be told before."""


class Derivation:
    """One derivation in one hub: between the parent's member, where sources submit, and the derived channel's.

    It is not `ready` while the code is being compiled. `workshop` is None in a hub that does not run the code, only
    sends events for it as they are. At a sink's hub, which derives what is sent there like that, there is no parent.
    """

    def __init__(self, hub: str, step: Step, parent: "Member | None", policy: Policy, birth: str = "") -> None:
        """Begin without code.

        Args:
            hub: Where it is at work.
            step: What it does.
            parent: Whose events it takes, if their sources are here.
            policy: The limits of the hub.
            birth: What tells it from all others that were ever at work, here or elsewhere.
        """
        self.hub: Final = hub
        self._birth = birth
        self._copies = 0
        self.step = step
        self.parent: Final = parent
        self.policy: Final = policy
        self.outlets: Final[dict[int, Member]] = {}
        self.instances: Final[dict[int, Instance]] = {}
        self.workshop: Workshop | None = None
        self._own: Workshop | None = None
        self.ready = False
        self.waiting: list[Callable[[Refused | None], None]] = []
        """Who goes on when it is ready, or refused."""
        self.retuned: Final[dict[str, Tune]] = {}  # of what is to be derived from it, told before it is ready
        self.suspended = ""
        self._paused = False  # somebody listens, but the parent does not know of it while it is suspended
        self.faults = 0
        self.trouble = ""
        """What is wrong and has yet to be told."""
        self._told_ns = -(10**18)
        self._here = step.recipe.placement != "sink"
        self._fault = ""
        self._probes = 0
        self._expected = False  # nothing is derived, and somebody wants to know what he misses
        self._counting = False  # somebody wanted to, of this or of what is derived from it: so it is whenever it rests
        self._gates: dict[int, Gate] = {}
        self._recent_faults = 0.0
        self._reviewed = (0, 0, 0, 0.0)

    @property
    def active(self) -> bool:
        """Whether anybody listens."""
        return any(wanted(outlet) for outlet in self.outlets.values())

    @property
    def idle(self) -> bool:
        """Whether nobody listens, nor may soon: it can be removed, and whoever comes later begins anew."""
        return self.ready and not self.active and not any(outlet.awaited for outlet in self.outlets.values())

    @property
    def movable(self) -> bool:
        """Whether it may be run by the sinks instead, and nobody here needs what comes out."""
        stateless = self.workshop is not None and not self.workshop.statics
        return stateless and not any(outlet.derivations for outlet in self.outlets.values())

    @property
    def at_work(self) -> bool:
        """Whether the code runs here."""
        return self.workshop is not None

    @property
    def steers(self) -> bool:
        """Whether the code acts on sources, which must not wait for other events to gather then."""
        use = self.workshop.program.context if self.workshop is not None else None
        return use is not None and use.acts

    @property
    def buffered(self) -> bool:
        """Whether a source need not wait for those who listen."""
        return False

    @property
    def limited(self) -> bool:
        """Whether the time it takes is limited."""
        return self.policy.limits_alone or not self._alone

    @property
    def _alone(self) -> bool:
        """Whether nobody else wants anything of the parent's events."""
        parent = self.parent
        if parent is None or parent.fanout.targets or parent.keepings or parent.sink or len(parent.derivations) > 1:
            return parent is None
        return parent.origin is None or parent.origin._alone  # noqa: SLF001 - of its own kind

    def equip(self, workshop: Workshop | None) -> None:
        """Begin, with the compiled code, or without any if the sinks run it."""
        self.workshop, self.ready = workshop, True
        if workshop is None:
            self._here = False
        self.arrange()

    def arrange(self) -> None:
        """Let the parent know whether there is anything to do for it."""
        parent = self.parent
        if parent is None:
            return
        others = tuple(other for other in parent.derivations if other is not self)
        active = self.ready and self.active
        if active and self not in parent.derivations and not self._paused:
            self.catch_up()
            self._expected = False
            for instance in list(self.instances.values()):
                instance.idle_since = -1
        elif not active:
            self.rest(parent)
        self._paused = active and bool(self.suspended)
        parent.derivations = (*others, self) if active and not self.suspended else others
        parent.derived_here = any(
            outlet.heard_here or outlet.derived_here or derivation.steers
            for derivation in parent.derivations
            for outlet in derivation.outlets.values()
        )
        if parent.origin is not None:
            parent.origin.arrange()
        if self.ready and not active and (self._counting or any(outlet.owing for outlet in self.outlets.values())):
            self.expect()  # last: what is derived, here or of what it takes its events from, needs no copies

    def rest(self, parent: "Member") -> None:
        """Note where the sources are, since nobody listens for the moment but somebody may come back."""
        if self in parent.derivations or self._paused:
            for source, instance in list(self.instances.items()):
                instance.idle_since = parent.sources.get(source, 0)

    def expect(self) -> None:
        """Have a copy for each source, since somebody wants to know what he misses of it while nothing is derived."""
        parent, self._counting = self.parent, True
        if parent is None or self in parent.derivations or self._paused:
            return
        if parent.origin is not None:
            parent.origin.expect()
        self._have_copies(parent)
        self._expected = True

    def _have_copies(self, parent: "Member") -> None:
        """Have a copy for each source; one that began while somebody expected it counts from its beginning."""
        for source, position in list(parent.sources.items()):
            if source not in self.instances:
                instance = self.instance(source)
                instance.idle_since = parent.began(source) if self._expected else position
                for outlet in self.outlets.values():
                    outlet.sources.setdefault(instance.source, 0)

    def catch_up(self) -> None:
        """Count what sources have submitted while nothing was derived: as it is, for nobody knows what would pass.

        So a hub that was given up and comes back is told that it has missed something.
        """
        parent = self.parent
        if parent is None or self in parent.derivations:
            return
        if parent.origin is not None:
            parent.origin.catch_up()
        if self._expected:
            self._have_copies(parent)
        for source, instance in list(self.instances.items()):
            count = parent.sources.get(source, 0) - instance.idle_since
            if count > 0 and instance.idle_since >= 0:
                instance.idle_since += count
                for outlet in self.outlets.values():
                    outlet.sources.setdefault(instance.source, 0)
                    outlet.pass_over(instance.source, count)

    def tune(self, step: Step) -> None:
        """Take another parameter block, if it is later than the one at hand; what was suspended may try again."""
        if step.version > self.step.version:
            self.step = msgspec.structs.replace(self.step, values=step.values, version=step.version)
            self._gates = {}
            self.suspended, self._recent_faults = "", 0.0

    def instance(self, source: int) -> Instance:
        """Return the copy for a source; it begins with what the code says."""
        found = self.instances.get(source)
        if found is None:
            initial = self.workshop.statics if self.workshop is not None else b""
            if len(self.instances) >= min(INSTANCES_MAX, STATICS_BYTES_MAX // max(len(initial), 1)):
                self.forget(next(iter(self.instances)))
            here = self._here  # which may change meanwhile
            found = Instance(self._number_of(source), initial, here=here)
            found.placed = here
            self.trouble = lend_context(self, source, found) or self.trouble
            self.instances[source] = found
        return found

    def forget(self, source: int) -> None:
        """Forget a source that has ended, and what was derived from it in turn."""
        instance = self.instances.pop(source, None)
        if instance is not None:
            for outlet in self.outlets.values():
                outlet.end(instance.source)
                for derivation in outlet.derivations:
                    derivation.forget(instance.source)

    def shares(self, source: int, batch: Batch) -> Iterator[Share]:
        """Yield what becomes of the next events of a source of the parent."""
        instance = self.instance(source)
        if self.suspended or not self.ready or instance.objection:
            return
        if instance.here != self._here:
            instance.here, instance.placed, instance.moved = self._here, False, True
        raw, made = not instance.here, dict[int, Batch]()
        outlets = list(self.outlets.items())  # others may come while the code runs
        if not raw or self._probes > 0 or any(needed_here(outlet) for _, outlet in outlets):
            made = self.apply(instance, batch)
            self._probes -= batch.count
            self._note_spared(instance, batch.record_bytes, made, outlets)
        for port, outlet in outlets:
            events, notice = made.get(port), self._notice(outlet, instance)
            counted = outlet.owing or self._counting  # who is owed, of this or what is derived of it, knows how many
            if raw and (outlet.fanout.targets or outlet.keepings or counted):
                yield Share(outlet, instance.source, batch, local=False, placed=notice)
            if events is not None and (not raw or needed_here(outlet)):
                for some in split(events) if events.record_bytes > BATCH_BYTES_MAX else (events,):
                    yield Share(outlet, instance.source, some, remote=not raw, placed=None if raw else notice)
                    notice = None
            elif notice is not None and not raw:  # nothing passes, but what comes next may
                yield Share(outlet, instance.source, batch, remote=False, local=False, placed=notice)
        instance.placed = True

    def portions(self, batch: Batch) -> Iterable[Batch]:
        """Return a batch in parts, after each of which `hold` sees how it goes."""
        workshop = self.workshop or (self._own_workshop() if self.ready else None)  # here, where no time is taken
        return (batch,) if workshop is None else workshop.portions(batch, self.policy.fuel)

    def hold(self, portion: Batch, whole: Batch, own: Spent, spent: Spent) -> None:
        """Stop what takes too long for a batch of which only a portion is done, or makes too much of it.

        Args:
            portion: What was done last.
            whole: The batch.
            own: What this derivation has spent on it.
            spent: What all have.
        """
        limit = self.policy.load_limit if self.limited else BATCH_SECONDS_MAX
        seconds = allowance(limit, (spent.ns - own.ns) / SECOND_NS)
        made_bytes = allowance(MADE_BYTES_MAX, spent.made_bytes - own.made_bytes)
        if own.made_bytes > made_bytes:
            self.suspend(f"a batch of {whole.count} events becomes more than {made_bytes:.0f} bytes, the limit")
        elif portion is not whole and own.ns > seconds * SECOND_NS:
            if self._here and self.step.recipe.placement == "auto" and self.movable:
                self.move(here=False)
            else:
                self.suspend(f"a batch of {whole.count} events takes more than {seconds:.3g} s, the limit here")

    def rejects(self, format: Format, records: Buffer, count: int) -> bool:
        """Tell whether events are all rejected, if that can be found without deriving them.

        That saves most of what rejected events cost. Where one passes, what was looked at before is looked at twice.
        """
        gates = self._gates  # those of the parameters at hand, even if others come meanwhile
        gate = gates.get(format.token)
        if gate is None:
            gate = gates[format.token] = self._gate_for(format)
        if count > gate.events_max or not self._here or self.suspended:
            return False
        try:
            return not gate.look(records)
        except ValueError:  # one faults, which is for the kernel to find out
            return False

    def _settle_turned(self) -> None:
        """Make events that were turned away part of what was spared."""
        hubs = sum(len(outlet.fanout.targets) for outlet in list(self.outlets.values()))
        for instance in list(self.instances.values()):
            batches, size = instance.turned_batches, instance.turned_bytes
            further_batches, further_bytes = batches - instance.settled[0], size - instance.settled[1]
            instance.settled = (batches, size)
            instance.bytes_saved += hubs * further_bytes
            instance.spared_ns += hubs * (further_bytes * SENDING_NS_PER_BYTE + further_batches * SENDING_NS_PER_BATCH)

    def _gate_for(self, format: Format) -> Gate:
        """Return what looks at events before they are derived: only filters without state have one."""
        workshop, recipe = self.workshop, self.step.recipe
        if workshop is None or workshop.heavy or workshop.statics or recipe.output or recipe.ports:
            return OPEN  # of heavy code, the time that it takes must be known
        kernel = workshop.kernel_for(format)
        if kernel is None:
            return OPEN
        try:
            look = kernel.bind(workshop.block(self.step.values), bytearray(), self.policy.fuel)
        except EchoicError:  # the parameters do not belong to the code, which `apply` will tell
            return OPEN
        return Gate(look, 1 if format.variable else LONG_COST // max(workshop.analysis.cost, 1))

    def apply(self, instance: Instance, batch: Batch) -> dict[int, Batch]:
        """Run the code over a batch; return what comes out of each port, nothing for ports where nothing does."""
        workshop = self.workshop or self._own_workshop()
        if workshop is None:
            return {}
        if instance.restored is not None:
            instance.statics, instance.restored = instance.restored, None
        statics = bytearray(instance.statics or workshop.statics)
        try:
            kernel, batch = workshop.prepared(batch)
            params = workshop.block(self.step.values)
            release = workshop.units_each(self.policy.fuel) * batch.count >= LONG_COST
            outcome = run_batch(kernel, batch, params, statics, self.policy, instance.context, release=release)
        except EchoicError as error:  # types or parameters that do not belong to the code: never the source's fault
            self.suspend(f"it cannot take the events: {error}")
            return {}
        except MemoryError:
            self.suspend(f"there is no memory for what it makes of {batch.count} events")
            return {}
        instance.statics = statics
        made = self._made(outcome, batch, workshop)
        if workshop.signature.output is not None:  # what passes as it is has passed where it was submitted
            made = {port: kept for port, one in made.items() if (kept := self._sendable(one))}
        instance.events_in += batch.count
        instance.bytes_in += batch.record_bytes
        for events in made.values():
            instance.events_out += events.count
            instance.bytes_out += events.record_bytes
        self._note_faults(outcome, batch.count)
        return made

    def _own_workshop(self) -> Workshop | None:
        """Return the code for sinks in this very hub, which it trusts, though it does not run the code for others."""
        if self._own is None and any(outlet.sink is not None for outlet in list(self.outlets.values())):
            try:
                self._own = Workshop(self.step, self.policy.for_own_sinks())
            except EchoicError as error:
                self.suspend(f"it does not compile: {error}")
        return self._own

    def _made(self, outcome: Outcome, batch: Batch, workshop: Workshop) -> dict[int, Batch]:
        selected, output = outcome.selected, workshop.signature.output
        if not len(selected):
            return {}
        if output is not None and outcome.records is not None:
            whole = Batch(output, len(selected), [outcome.records], _own_bounds(outcome))
            if outcome.ports is None:
                return {0: whole}
            return {
                port: whole.select((outcome.ports == port).nonzero()[0])
                for port in list(self.outlets)
                if bool((outcome.ports == port).any())
            }
        if outcome.ports is None:
            return {0: batch.select(selected)}
        return {
            port: batch.select(selected[outcome.ports == port])
            for port in list(self.outlets)
            if bool((outcome.ports == port).any())
        }

    def _sendable(self, events: Batch) -> Batch:
        """Return the events that fit into frames; any other one counts as a fault."""
        if events.record_bytes <= RECORD_BYTES_MAX:
            return events
        sizes = numpy.array(sizes_of(events))
        fitting = (sizes <= RECORD_BYTES_MAX).nonzero()[0]
        if len(fitting) < events.count:
            largest = int(sizes.max())
            self._note_fault(events.count - len(fitting), f"one has {largest} bytes, limit is {RECORD_BYTES_MAX}")
        return events.select(fitting)

    def _note_faults(self, outcome: Outcome, events: int) -> None:
        self._recent_faults *= 0.5 ** (events / RECENT_EVENTS)
        if outcome.faults:
            self._note_fault(len(outcome.faults), describe(outcome.faults[-1]))

    def _note_fault(self, count: int, reason: str) -> None:
        self.faults += count
        self._recent_faults += count
        self.trouble = self._fault = reason
        if self._recent_faults > self.policy.faults_max - 0.5:  # a few events ago counts as now
            self.suspend(f"{self.faults} events have faulted, the last because {self.trouble}")

    def suspend(self, reason: str) -> None:
        """Run no more until the parameters are changed, or somebody derives anew."""
        self.suspended = self.trouble = reason

    def tell_trouble(self, now_ns: int) -> list[tuple["Member", Trouble]]:
        """Return what those who listen must be told, once, and not too often."""
        suspended = bool(self.suspended)
        if not self.trouble or not (suspended or now_ns - self._told_ns >= TROUBLE_NS):
            return []
        self._told_ns = now_ns
        text, self.trouble = self.trouble, ""
        return [
            (outlet, Trouble(outlet.id, self.hub, text, self.faults, suspended)) for outlet in self.outlets.values()
        ]

    def placements(self, outlet: "Member") -> list[Placed]:
        """Return what a hub that begins to listen must be told."""
        return [
            Placed(outlet.number, instance.source, 0, instance.here)
            for instance in list(self.instances.values())
            if instance.moved
        ]

    def review(self, now_ns: int) -> float:
        """Return the share of a processor used since the last review; move it, if that is for this hub to decide."""
        self._settle_turned()
        instances = list(self.instances.values())
        reviewed = (
            now_ns,
            sum(instance.busy_ns for instance in instances),
            sum(instance.all_events_in for instance in instances),
            sum(instance.spared_ns for instance in instances),
        )
        elapsed_ns, busy_ns, events, spared_ns = (
            after - before for after, before in zip(reviewed, self._reviewed, strict=True)
        )
        first, self._reviewed = not self._reviewed[0], reviewed
        if first:
            return 0.0
        if self.step.recipe.placement == "auto" and self.movable:
            if events >= PROBE_EVENTS:
                self._here = busy_ns <= spared_ns
            self._probes = 0 if self._here else PROBE_EVENTS
        return busy_ns / max(elapsed_ns, 1)

    def move(self, *, here: bool) -> None:
        """Derive here from the next batch on, or let the sinks do it."""
        self._here = here

    def states(self) -> dict[int, bytes]:
        """Return the static variables of every source, as they are between two batches."""
        size = self.workshop.program.static_bytes if self.workshop is not None else 0
        return {
            instance.source: bytes((instance.statics if instance.restored is None else instance.restored)[:size])
            for instance in list(self.instances.values())
        }

    def restore(self, states: dict[int, bytes]) -> None:
        """Give sources their static variables, before their next batch.

        Raises:
            RefusedError: A block has not the size that the code's has.
        """
        size = self.workshop.program.static_bytes if self.workshop is not None else 0
        more = bytes(len(self.workshop.statics) - size) if self.workshop is not None else b""
        for state in states.values():
            if len(state) != size:
                raise RefusedError(f"a block of static variables has {len(state)} bytes, expected {size}")
        for instance in list(self.instances.values()):
            given = states.get(instance.source, states.get(0))
            if given is not None:
                instance.restored = given + more

    def counts(self) -> DerivationCounts:
        """Return what was done so far."""
        self._settle_turned()
        instances, workshop = list(self.instances.values()), self.workshop
        outlet = next(iter(self.outlets.values()), None)
        return DerivationCounts(
            self.step.group,
            outlet.id if outlet is not None else "",
            self.step.recipe.parent,
            "source" if self._here else "sink",
            len(instances),
            sum(instance.all_events_in for instance in instances),
            sum(instance.events_out for instance in instances),
            sum(instance.bytes_in + instance.turned_bytes for instance in instances),
            sum(instance.bytes_out for instance in instances),
            sum(instance.bytes_saved for instance in instances),
            sum(instance.busy_ns for instance in instances),
            workshop.analysis.cost if workshop is not None and workshop.analysis.bounded else 0,
            self.faults,
            self.suspended,
            self._fault,
        )

    def _notice(self, outlet: "Member", instance: Instance) -> Placed | None:
        if instance.placed:
            return None
        return Placed(outlet.number, instance.source, outlet.sources.get(instance.source, 0), instance.here)

    @staticmethod
    def _note_spared(
        instance: Instance, whole_bytes: int, made: dict[int, Batch], outlets: list[tuple[int, "Member"]]
    ) -> None:
        """Note what is not sent because the code has run here, or would not be if it ran here for all."""
        for port, outlet in outlets:
            hubs = len(outlet.fanout.targets)
            if not hubs:
                continue
            events = made.get(port)
            spared_bytes = hubs * (whole_bytes - (events.record_bytes if events is not None else 0))
            instance.spared_ns += spared_bytes * SENDING_NS_PER_BYTE
            if events is None:
                instance.spared_ns += hubs * SENDING_NS_PER_BATCH
            if instance.here:
                instance.bytes_saved += spared_bytes

    def _number_of(self, source: int) -> int:
        """Return a number for a source that was never used before: it may move away and return, and counts from 0."""
        self._copies += 1
        text = f"{self._birth}/{self.step.group}/{source}/{self._copies}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def wanted(outlet: "Member") -> bool:
    """Whether anybody listens to a derived channel, or to one derived from it, as far as this hub is concerned."""
    return bool(outlet.fanout.targets or outlet.keepings) or needed_here(outlet)


def needed_here(outlet: "Member") -> bool:
    """Whether what comes out is needed in this very hub."""
    return outlet.heard_here or bool(outlet.derivations)


def describe(fault: Fault) -> str:
    """Return a fault in words."""
    place = f" - at line {fault.line}, column {fault.column}" if fault.line else ""
    return fault.kind.text + place


def _own_bounds(outcome: Outcome) -> list[int] | None:
    return outcome.bounds.tolist() if outcome.bounds is not None else None
