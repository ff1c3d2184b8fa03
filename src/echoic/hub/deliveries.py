"""What a switchboard leaves to others: events for sinks, trouble, modulators."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from echoic.channels import Audited, Consult, Delivery, Ended, Missed, Modulation, Refused, Runner, Troubled

if TYPE_CHECKING:
    from echoic.hub.endpoints import Endpoints
    from echoic.hub.link import Link

__all__ = ["Deliveries"]


class Deliveries(Protocol):
    """Who takes what arrives."""

    def deliver(self, delivery: Delivery) -> dict[str, str] | None:
        """Hand events to the sinks of a channel; return who failed, None when some are not done with them yet."""

    def missed(self, missed: Missed) -> None:
        """Tell the sinks of a channel what will not arrive."""

    def ended(self, ended: Ended) -> None:
        """Tell the sinks of a channel that they are sent no more."""

    def troubled(self, troubled: Troubled) -> None:
        """Tell the sinks of a derived channel what is wrong with its derivation."""

    def ends_of(self, channel: str) -> "Endpoints | None":
        """Return the ends of a channel here."""

    def prepare(self, modulation: Modulation) -> Runner | Refused:
        """Return what runs a modulator here, or why that cannot be."""

    def drain(self, modulation: Modulation, then: Callable[[], None]) -> None:
        """Send what a modulator holds back, then go on, under the lock."""

    def consult(self, consult: Consult) -> None:
        """Look into the journal of a channel, and answer."""

    def audited(self, audited: Audited) -> None:
        """Leave word of what somebody wanted, and whether he was let."""

    def clogged(self, link: "Link") -> None:
        """Go on with a link when it can be written again."""
