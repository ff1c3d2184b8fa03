"""Hubs of several people, joined by hand: each has a name, as if by its certificate, and may have rules."""

from collections.abc import Callable

from echoic.channels import (
    Admission,
    Audited,
    ChannelId,
    Compile,
    Concentrator,
    Delivery,
    Dial,
    Effect,
    Greeting,
    Member,
    Message,
    Policy,
    SinkHub,
    build,
    compiled,
)
from echoic.formats import Format
from echoic.rights import Rights
from echoic.testing.samples import Trade
from echoic.wire import Batch, FrameReader, Hello

__all__ = ["Company", "trades"]

ROUNDS_MAX = 1000


def trades(count: int = 1) -> Batch:
    return Batch.of([Trade("IBM", 75.5, n) for n in range(count)], Trade)


class Company:
    """Hubs by the names of their owners; `settle` brings everything that waits to where it belongs."""

    def __init__(self, *names: str, rights: Rights | None = None, policy: Policy | None = None) -> None:
        self.rights = rights
        self.policy = policy
        self.hubs: dict[str, Concentrator] = {}
        self.deliveries: dict[str, list[Delivery]] = {}
        self.effects: dict[str, list[Effect]] = {}
        for name in names:
            self.add(name)

    def add(self, name: str, *, rights: bool = True, who: str | None = None) -> Concentrator:
        """Start a hub at `name:1`, known by `who` if that is not its name."""
        admission = Admission(self.rights if rights else None, name if who is None else who)
        self.hubs[name] = Concentrator(f"id-{name}", f"{name}:1", admission=admission, policy=self.policy)
        self.deliveries[name], self.effects[name] = [], []
        return self.hubs[name]

    def meet(self, dialler: str, listener: str) -> None:
        """Let two greet over a fresh connection."""
        pair = [self.hubs[dialler], self.hubs[listener]]
        sides = [
            Greeting(
                Hello(hub=hub.id, address=hub.address),
                hub.known,
                dialled=place == 0,
                fresh=len(dialler) + 7,
                address=pair[1].address if place == 0 else "",
                who=pair[1 - place].admission.who,
            )
            for place, hub in enumerate(pair)
        ]
        readers, wire = [FrameReader(), FrameReader()], [sides[0].opening]
        for turn in (1, 0, 1):
            frames = [frame for piece in wire for frame in readers[turn].receive(piece)]
            wire = [sides[turn].receive(frame) for frame in frames]
            if sides[turn].done:
                pair[turn].meet(sides[turn])

    def settle(self) -> None:
        """Do what is wanted and carry what is said, until nothing is."""
        for _ in range(ROUNDS_MAX):
            if not any(hub.effects or hub.stirred for hub in self.hubs.values()):
                return
            for name, hub in self.hubs.items():
                effects, hub.effects[:] = hub.effects[:], []
                for effect in effects:
                    self._act(name, hub, effect)
                hub.stirred.clear()
                self.carry(hub)
        raise AssertionError("the hubs talk without end")

    def _act(self, name: str, hub: Concentrator, effect: Effect) -> None:
        self.effects[name].append(effect)
        match effect:
            case Dial(address):
                other = next((one for one, known in self.hubs.items() if known.address == address), None)
                if other is None:
                    hub.unreachable(address, "nobody is there", refused=True)
                else:
                    self.meet(name, other)
            case Compile(derivation):
                compiled(hub, derivation, build(derivation))

    def carry(self, hub: Concentrator) -> None:
        for other, target in self.hubs.items():
            neighbour = hub.neighbours.get(target.id)
            if neighbour is not None and neighbour.session.outbox:
                data = b"".join(neighbour.session.outbox)
                neighbour.session.outbox.clear()
                for frame in FrameReader().receive(data):
                    self.deliveries[other] += target.receive(hub.id, frame)

    def ask(self, asker: str, asked: str, message: Message) -> Message:
        """Let one hub ask another, and return the reply."""
        replies: list[Message] = []
        self.hubs[asker].ask(self.hubs[asked].address, message, replies.append)
        self.settle()
        (reply,) = replies
        return reply

    def create(self, manager: str, name: str = "trades") -> None:
        """Let a hub manage a channel of trades."""
        self.hubs[manager].manager.directory.create(name, Format.of(Trade))

    def publish(self, owner: str, manager: str, name: str = "trades", source: int = 1) -> tuple[Member, Message]:
        """Let a hub have a source; return its part in the channel, and what it was answered."""
        member = self.hubs[owner].open(ChannelId(f"{manager}:1", name), Format.of(Trade))
        member.sources[source] = 0
        return member, self._joined(owner, lambda hub, answer: hub.join(member, "source", answer))

    def subscribe(self, owner: str, manager: str, name: str = "trades") -> tuple[Member, Message]:
        """Let a hub have a sink; return its part in the channel, and what it was answered."""
        member = self.hubs[owner].open(ChannelId(f"{manager}:1", name), Format.of(Trade))
        member.sink = SinkHub(f"{owner}:1", "block", ("s",))
        return member, self._joined(owner, lambda hub, answer: hub.join(member, "sink", answer))

    def _joined(self, owner: str, join: Callable[[Concentrator, Callable[[Message], None]], None]) -> Message:
        answers: list[Message] = []
        join(self.hubs[owner], answers.append)
        self.settle()
        return answers[0]

    def got(self, name: str) -> int:
        """Return how many events a hub was given."""
        return sum(delivery.batch.count for delivery in self.deliveries[name])

    def audited(self, name: str, *, allowed: bool) -> list[tuple[str, str, str]]:
        """Return what a hub has decided: who, which right, which channel."""
        found = [effect.decision for effect in self.effects[name] if isinstance(effect, Audited)]
        return [(one.who, one.right, one.channel) for one in found if one.allowed == allowed]
