"""A hub with sources, a sink and a modulator between them; and a runner that does with events what a test says."""

from echoic.channels import (
    ChannelId,
    Compile,
    Concentrator,
    Drain,
    Effect,
    Member,
    Message,
    Modulation,
    Refused,
    Share,
    SinkHub,
    Step,
    Worked,
    compiled,
    derive,
    ignore,
    note_room,
    report_trouble,
    send_share,
    stir,
)
from echoic.channels.messages import Derive, DerivedAs, Recipe
from echoic.errors import ModulatorError, RefusedError
from echoic.formats import Format
from echoic.wire import Batch
from tests.hub.parties import Tick

__all__ = ["HERE", "PERIOD_NS", "Holding", "Scene"]

HERE = "here:7401"
PERIOD_NS = 1_000_000


class Holding:
    """A runner whose modulator keeps the last events of each source, and does as a test says with some numbers."""

    def __init__(self, held_max: int = 0, *, period_ns: int = 0, buffered: bool = True) -> None:
        self.output: Format | None = None
        self.period_ns = period_ns
        self.buffered = buffered
        self.closed = False
        self.queues: dict[int, list[Tick]] = {}
        self.periods: list[int] = []
        self.refused: set[int] = set()
        self.fails_at: set[int] = set()
        self.stops_at = -1
        self._held_max = held_max

    def work(self, source: int, batch: Batch | None, *, period: bool = False, ready: bool = True) -> Worked:
        if source in self.refused:
            raise RefusedError(f"source {source} has no service `clock`")
        queue, faults = self.queues.setdefault(source, []), list[str]()
        for tick in batch.to(Tick).events() if batch is not None else ():
            if tick.number == self.stops_at:
                raise ModulatorError("it took more than 0.25 s, the limit")
            if tick.number in self.fails_at:
                faults.append("KeyError: 'x' - at line 3")
            else:
                queue.append(tick)
        if period:
            self.periods.append(source)
        return self._sent(queue, (0 if period else self._held_max) if ready else len(queue), tuple(faults))

    def drain(self, source: int) -> Worked:
        return self._sent(self.queues.setdefault(source, []), 0)

    def forget(self, source: int) -> None:
        self.queues.pop(source, None)

    def close(self) -> None:
        self.closed = True

    @staticmethod
    def _sent(queue: list[Tick], kept: int, faults: tuple[str, ...] = ()) -> Worked:
        count = max(len(queue) - kept, 0)
        freed, queue[:count] = queue[:count], []
        return Worked(Batch.of(freed, Tick) if freed else None, faults, bool(queue))


class Scene:
    """A hub with sources and a sink of its own, and one modulator between them."""

    def __init__(self, runner: Holding | Refused, sources: int = 1) -> None:
        self.core = Concentrator("h", HERE)
        self.core.tick(1)
        self.core.manager.directory.create("ticks", Format.of(Tick))
        self.parent = self.core.open(ChannelId(HERE, "ticks"), Format.of(Tick))
        for source in range(1, sources + 1):
            self.parent.sources[source] = 0
        self.core.join(self.parent, "source", ignore)
        self.replies: list[Message] = []
        self.runner = runner
        self.member = self.derive(b"1")
        self.listen(self.member, "sink")
        self.compile(runner)

    def derive(self, identity: bytes) -> Member:
        recipe = Recipe("ticks", "", "modulator", parcel=b"parcel", identity=identity)
        found: list[Message] = []
        self.core.ask(HERE, Derive(Step("", "", recipe)), found.append)
        reply = found[0]
        assert isinstance(reply, DerivedAs)
        member = self.core.open(ChannelId(HERE, reply.steps[0].name), None)
        member.lineage = reply.steps
        return member

    def listen(self, member: Member, name: str, instead: str = "", former: str = "") -> None:
        """Subscribe with a sink of a name, in the place of another one of another channel if one is named."""
        if instead:
            member.turns.expect(name)
            member.withheld = member.sink is None
        names = member.sink.sinks if member.sink is not None else ()
        member.sink = SinkHub(HERE, "block", (*names, name))
        self.core.join(member, "sink", self.replies.append, instead=instead, handle=former, successor=name)

    def compile(self, runner: Holding | Refused) -> None:
        for effect in self.take(Compile):
            compiled(self.core, effect.derivation, runner)

    def drain(self) -> list[int]:
        """Let modulators send what they hold back, as often as that is wanted; return which events were sent."""
        sent: list[int] = []
        while drains := self.take(Drain):
            for effect in drains:
                assert self.core.quiet.paused(self.parent), "nothing may begin before what is held back was sent"
                sent += self.send(list(effect.modulation.drained()))
                effect.then()
        return sent

    def take(self, kind: type) -> list[Effect]:
        found = [effect for effect in self.core.effects if isinstance(effect, kind)]
        self.core.effects[:] = [effect for effect in self.core.effects if effect not in found]
        return found

    @property
    def modulation(self) -> Modulation:
        origin = self.member.origin
        assert isinstance(origin, Modulation)
        return origin

    def submit(self, *numbers: int, source: int = 1) -> list[int]:
        """Submit events as the edge does; return which were sent on."""
        note_room(self.core, self.parent)
        batch = Batch.of([Tick(source, number) for number in numbers], Tick)
        shares = derive(self.parent, source, batch, lambda: 0)
        self.core.submit(self.parent, source, batch)
        return self.send(shares)

    def stir(self, now_ns: int, source: int = 1) -> list[int]:
        return self.send(stir(self.parent, source, now_ns, lambda share: []))

    def send(self, shares: list[Share]) -> list[int]:
        for share in shares:
            send_share(self.core, share)
        report_trouble(self.core, self.parent)
        return [tick.number for share in shares for tick in share.batch.to(Tick).events()]
