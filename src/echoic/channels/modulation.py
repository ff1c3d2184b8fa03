"""A modulator at work: the half of an eager handler that was sent into the sources (JECho, sections 3 and 4).

It is a derivation whose code is not E-Code but whatever a `Runner` runs: it may drop, change, store and add events,
hold them back until the transport takes them (`dequeue`), and act when time passes (`period`). All else is as with
derived channels: who is sent what, who is refused what, what is told when it fails.

    submit -> work(batch) -> enqueue ... -> dequeue ... -> the derived channel
    stir   -> work(None)  -> period?     -> dequeue ... -> the derived channel      when time passes, or there is room
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from echoic.channels.derivation import Derivation, Share, wanted
from echoic.channels.messages import Step
from echoic.channels.policy import Policy
from echoic.channels.portions import BATCH_BYTES_MAX, split
from echoic.channels.runner import Runner, Worked
from echoic.errors import ModulatorError, RefusedError
from echoic.wire import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from echoic.channels.concentrator import Concentrator
    from echoic.channels.instance import Instance
    from echoic.channels.member import Member

__all__ = ["Modulation", "note_room", "stir", "stirring_ns"]

PORTION_EVENTS: Final = 4096
ROOM_NS: Final = 1_000_000  # how often to look whether what was held back can be sent


class Modulation(Derivation):
    """One modulator in one hub."""

    def __init__(self, hub: str, step: Step, parent: "Member | None", policy: Policy, birth: str = "") -> None:
        super().__init__(hub, step, parent, policy, birth)
        self.runner: Runner | None = None
        self.clear = True
        """Whether those who listen can be sent more."""
        self.rested = False
        """Whether somebody has listened and nobody does any more; whoever comes next begins anew."""
        self._due_ns: dict[int, int] = {}
        self._holding: set[int] = set()
        self._refused: set[int] = set()

    @property
    def at_work(self) -> bool:
        """Whether the code runs here."""
        return self.runner is not None

    @property
    def buffered(self) -> bool:
        """Whether a source need not wait for those who listen."""
        return self.runner is not None and self.runner.buffered

    def employ(self, runner: Runner) -> None:
        """Begin."""
        self.runner, self.ready = runner, True
        self.arrange()

    def arrange(self) -> None:
        """Let the parent know whether there is anything to do for it; after a rest, with nothing from before."""
        at_rest = self.parent is not None and self not in self.parent.derivations
        if self.rested and at_rest and self.ready and self.active and self.runner is not None:
            self.rested = False
            self._holding.clear()
            self._due_ns.clear()
            for source in self.instances:
                self.runner.forget(source)
        super().arrange()

    def rest(self, parent: "Member") -> None:
        """Note that nobody listens, nor will come back."""
        owing = any(outlet.owing for outlet in self.outlets.values())
        self.rested = self.rested or (self in parent.derivations and not owing)
        super().rest(parent)

    def forget(self, source: int) -> None:
        """Forget a source that has ended."""
        super().forget(source)
        self._due_ns.pop(source, None)
        self._holding.discard(source)
        self._refused.discard(source)
        if self.runner is not None:
            self.runner.forget(source)

    def portions(self, batch: Batch) -> Iterable[Batch]:
        """Return a batch in parts, each of which has the time limit for itself."""
        if batch.count <= PORTION_EVENTS:
            return (batch,)
        return batch.parts(min(PORTION_EVENTS, batch.count - at) for at in range(0, batch.count, PORTION_EVENTS))

    def shares(self, source: int, batch: Batch) -> Iterator[Share]:
        """Yield what becomes of the next events of a source of the parent."""
        if self.runner is None or self.suspended or source in self._refused:
            return
        instance = self.instance(source)
        instance.events_in += batch.count
        instance.bytes_in += batch.record_bytes
        fitting = self._sendable(batch)  # one that is larger than a frame would not fit into the pipe of a confined one
        if fitting.count:
            yield from self._asked(source, instance, fitting)

    def stir(self, source: int, now_ns: int) -> Iterator[Share]:
        """Yield what a modulator sends although nothing was submitted: time has passed, or there is room again."""
        runner, instance = self.runner, self.instances.get(source)
        if runner is None or self.suspended or source in self._refused:
            return
        if instance is None:
            if not runner.period_ns:
                return
            instance = self.instance(source)  # it may have something to send before anything is submitted
        over = bool(runner.period_ns) and now_ns >= self._due_ns.setdefault(source, now_ns + runner.period_ns)
        if over:
            self._due_ns[source] = now_ns + runner.period_ns
        if over or (self.clear and source in self._holding):
            yield from self._asked(source, instance, None, period=over)

    def drained(self, only: int | None = None) -> Iterator[Share]:
        """Yield everything that is held back, of one source or of all, in the order in which it would be sent."""
        runner = self.runner
        for source, instance in list(self.instances.items()):
            if only not in (None, source):
                continue
            if runner is None or self.suspended:
                return
            if source in self._refused:
                continue
            try:
                yield from self._made_by(source, instance, runner.drain(source), 0)
            except ModulatorError as error:
                self.suspend(str(error))

    @property
    def stirring_ns(self) -> int:
        """How often its sources must be stirred: for its period, or to see whether there is room; 0 for never."""
        if self.runner is None or self.suspended:
            return 0
        if self.buffered and self._holding:
            return min(self.runner.period_ns or ROOM_NS, ROOM_NS)
        return self.runner.period_ns

    @property
    def holding(self) -> bool:
        """Whether events are known to be held back."""
        return bool(self._holding)

    @property
    def holds(self) -> bool:
        """Whether events may be held back."""
        return self.runner is not None and bool(self._holding or self.buffered or self.runner.period_ns)

    def _asked(
        self, source: int, instance: "Instance", batch: Batch | None, *, period: bool = False
    ) -> Iterator[Share]:
        if self.runner is None:
            return
        try:
            worked = self.runner.work(source, batch, period=period, ready=self.clear or not self.buffered)
        except RefusedError as error:  # what it requires is not granted for this source; others go on
            self._refused.add(source)
            self.trouble = str(error)
        except ModulatorError as error:
            self.suspend(str(error))
        else:
            yield from self._made_by(source, instance, worked, batch.record_bytes if batch is not None else 0)

    def _made_by(self, source: int, instance: "Instance", worked: Worked, whole_bytes: int) -> Iterator[Share]:
        if worked.waiting:
            self._holding.add(source)
        else:
            self._holding.discard(source)
        for text in worked.faults:
            self._note_fault(1, text)
        made = self._sendable(worked.batch) if worked.batch is not None and worked.batch.count else None
        outlets = list(self.outlets.items())
        self._note_spared(instance, whole_bytes, {} if made is None else {0: made}, outlets)
        if made is None or not made.count:
            return
        instance.events_out += made.count
        instance.bytes_out += made.record_bytes
        for _, outlet in outlets:
            for some in split(made) if made.record_bytes > BATCH_BYTES_MAX else (made,):
                yield Share(outlet, instance.source, some)


def stir(
    member: "Member", source: int, now_ns: int, derive: "Callable[[Share], list[Share]]", *, last: bool = False
) -> list[Share]:
    """Return what modulators send although nothing was submitted, and what is derived from it.

    Args:
        member: A channel.
        source: One of its sources.
        now_ns: The time.
        derive: Returns what is derived from a share in turn.
        last: Whether the source ends, so that nothing may be held back any longer.
    """
    shares: list[Share] = []
    for derivation in member.derivations:
        if isinstance(derivation, Modulation):
            for share in derivation.drained(source) if last else derivation.stir(source, now_ns):
                shares += [share, *derive(share)]
        instance = derivation.instances.get(source)
        if instance is None:
            continue
        for outlet in list(derivation.outlets.values()):
            if outlet.derivations:
                shares += stir(outlet, instance.source, now_ns, derive, last=last)
    return shares


def note_room(core: "Concentrator", member: "Member") -> None:
    """Let the modulators of a channel know whether those who listen can be sent more."""
    for derivation in member.derivations:
        if isinstance(derivation, Modulation):
            derivation.clear = not any(core.blocked(outlet) for outlet in derivation.outlets.values())
        for outlet in derivation.outlets.values():
            if outlet.derivations:
                note_room(core, outlet)


def stirring_ns(core: "Concentrator") -> int:
    """Return how often sources must be stirred for the modulators at work here, 0 for never."""
    modulations = [one for one in core.derivations.values() if isinstance(one, Modulation)]
    wishes = [one.stirring_ns for one in modulations if any(map(wanted, one.outlets.values()))]
    return min(filter(None, wishes), default=0)
