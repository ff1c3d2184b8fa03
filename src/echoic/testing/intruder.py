"""Somebody in a simulation who has a name but no rights, tries everything again and again, and must get nothing.

He is let into the network, as everybody with a certificate is, and knows where all hubs are and what their channels are
called. Whatever he asks for must be refused, or answered as if there was nothing; no event may ever reach him. What
fails meanwhile must not give him an opening: a manager that was started anew, a recorder that has moved, a link that
resumes.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from echoic.channels import (
    Ask,
    Browse,
    ChannelId,
    Consult,
    Delivery,
    Describe,
    Fetch,
    Listing,
    Mark,
    Member,
    Message,
    Missed,
    Modulation,
    Refused,
    Report,
    Reported,
    Resolve,
    Runner,
    Share,
    SinkHub,
    Steer,
    Troubled,
    Tune,
)
from echoic.channels.messages import Attach, Detach, Join, Leave, Register, Unregister
from echoic.testing.ledger import check
from echoic.testing.network import SECOND
from echoic.testing.simulated_hub import SimulatedHub, refuse

if TYPE_CHECKING:
    from echoic.testing.surroundings import Surroundings

__all__ = ["Intruder"]

Attempt: TypeAlias = Callable[["Intruder", ChannelId, str], Message]
ADDRESS: Final = "intruder:7401"
PAUSE_NS: Final = (SECOND, 4 * SECOND)


class Intruder:
    """A hub of somebody who has no rights."""

    def __init__(self, around: "Surroundings", channels: Sequence[ChannelId], places: Callable[[], list[str]]) -> None:
        """Begin.

        Args:
            around: Where it takes place.
            channels: What he is after.
            places: Returns where the hubs of the others are.
        """
        self._around = around
        self._channels = channels
        self._places = places
        self._hub = SimulatedHub(f"{around.random.getrandbits(32):08x}-intruder", ADDRESS, around.network, self)
        self._try_on()

    def delivered(self, hub: SimulatedHub, delivery: Delivery) -> None:
        """Get events, which must never be."""
        check(False, f"{hub.address} was sent events of {delivery.member.name}")

    def missed(self, hub: SimulatedHub, missed: Missed) -> None:
        """Learn that there were events, which must never be."""
        check(False, f"{hub.address} was told what it misses of {missed.member.name}")

    def ended(self, hub: SimulatedHub, member: Member) -> None:
        """Be sent no more, which he never was."""

    def troubled(self, hub: SimulatedHub, troubled: Troubled) -> None:
        """Hear of trouble with what is derived, which must never be."""
        check(False, f"{hub.address} was told of trouble with {troubled.member.name}")

    def forgotten(self, hub: SimulatedHub, other: str) -> None:
        """Lose a link; the next attempt makes another."""

    def unreached(self, hub: SimulatedHub, address: str) -> None:
        """Find nobody."""

    def note(self, text: str) -> None:
        """Write down what happened."""
        self._around.note(text)

    def prepare(self, modulation: Modulation) -> Runner | Refused:
        """Run no code of others."""
        return Refused("RefusedError", f"nobody runs {modulation.step.name} here")

    def drained(self, hub: SimulatedHub, share: Share, first: int) -> None:
        """Run no code of others."""

    def consulted(self, hub: SimulatedHub, consult: Consult) -> None:
        """Have no journal."""
        refuse(hub, consult)

    def _try_on(self) -> None:
        """Try something, and something else later."""
        random = self._around.random
        id, attempt = random.choice(self._channels), random.choice(self._attempts)
        places = [id.address, random.choice(self._places())]
        self._try_out(random.choice(places), attempt(self, id, random.choice(places)))
        self._around.clock.after(random.randrange(*PAUSE_NS), self._try_on)

    def _try_out(self, address: str, message: Message) -> None:
        """Ask for something, which must be refused, or answered as if there was nothing."""
        what = type(message).__name__

        def answered(reply: Message) -> None:
            match reply:
                case Refused():
                    self._around.faults["intrusion"] += 1
                case Listing(channels) | Reported(_, channels):
                    check(not channels, f"{ADDRESS} has learned of {channels} by {what} from {address}")
                case _:
                    check(False, f"{ADDRESS} has tried {what} at {address}, and was answered {reply}")

        self._hub.do(lambda core: core.ask(address, message, answered))

    def _join(self, id: ChannelId, place: str) -> Message:
        """Take part, by his own name or as the hub at another place."""
        random = self._around.random
        address = random.choice((ADDRESS, place))
        sink = SinkHub(address, "block", ("sink",), hub=self._hub.id, subscription=1)
        return Join(id.name, random.choice(("source", "sink")), sink)

    def _leave(self, id: ChannelId, place: str) -> Message:
        """Strike somebody from a channel."""
        return Leave(id.name, self._around.random.choice(("source", "sink")), place)

    def _attach(self, id: ChannelId, _: str) -> Message:
        """Tell the hub of a source, as only the manager may, to send him events."""
        return Attach(str(id), SinkHub(ADDRESS, "block", ("sink",), hub=self._hub.id, subscription=1))

    def _detach(self, id: ChannelId, place: str) -> Message:
        """Tell the hub of a source to send somebody no more."""
        return Detach(str(id), place)

    def _register(self, id: ChannelId, place: str) -> Message:
        """Have a name stand for a channel of his own, or for nothing."""
        address = self._around.random.choice((ADDRESS, place))
        made = self._around.random.choice((Register, Unregister))
        return made(id.name, str(ChannelId(address, id.name)))

    def _look(self, id: ChannelId, _: str) -> Message:
        """Learn what there is."""
        return self._around.random.choice((Browse(), Report(), Describe(id.name), Resolve(id.name)))

    def _change(self, id: ChannelId, _: str) -> Message:
        """Change what sources or derivations do."""
        name = self._around.random.choice((id.name, str(id)))
        return self._around.random.choice((Steer(name, "stop"), Tune(name, b"")))

    def _read(self, id: ChannelId, _: str) -> Message:
        """Read what is recorded, or where others go on."""
        asked = (Fetch(str(id), 0, 0, 1_000_000), Mark(str(id), "reader 0", (0,)), Mark(str(id), "reader 0"))
        return self._around.random.choice((*asked, Ask(str(id), 1)))

    _attempts: tuple[Attempt, ...] = (_join, _join, _leave, _attach, _detach, _register, _look, _look, _change, _read)
