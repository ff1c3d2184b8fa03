"""From the links to the handlers: how events arrive.

    connection -> frames -> concentrator: whose, which channel, anything missing? -> the channel's sinks here
                                                                                  -> answer or credit to the sender

A handler runs in the thread that read the frame; for a synchronous event the answer goes back from that very thread
(JECho's express mode). Nothing is decoded before a sink asks for it, and then into the type that it declared.
"""

import logging
from typing import TYPE_CHECKING, Final

from echoic.channels import Audited, Consult, Delivery, Ended, Missed, Modulation, Refused, Runner, Troubled
from echoic.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from echoic.hub.audit import AuditTrail
    from echoic.hub.endpoints import Endpoints
    from echoic.hub.flusher import Flusher
    from echoic.hub.link import Link
    from echoic.hub.operating import Operating

__all__ = ["Inbound"]

OWN_LOSS: Final = frozenset({"Attach", "Bind"})
"""What is refused by a source or sink here, whose program may wonder why nothing comes."""
log: Final = logging.getLogger("echoic.hub")


class Inbound:
    """Hands what arrives to the ends of the channel that it is about."""

    def __init__(self, endpoints: "Mapping[str, Endpoints]", flusher: "Flusher", operating: "Operating") -> None:
        self._endpoints = endpoints
        self._flusher = flusher
        self._operating = operating
        self.trail: AuditTrail | None = None
        """Who keeps a record of what others wanted, if there are rights."""

    def deliver(self, delivery: Delivery) -> dict[str, str] | None:
        """Hand events to the sinks of a channel here; return who failed, None when some are not done with them yet."""
        return self._endpoints[delivery.member.id].deliver(delivery)

    def missed(self, missed: Missed) -> None:
        """Tell the sinks of a channel here which events will not arrive."""
        self._endpoints[missed.member.id].missed(missed.gap)

    def ended(self, ended: Ended) -> None:
        """Tell the sinks of a channel here that a hub sends them no more."""
        self._endpoints[ended.member.id].ended(ended.reason)

    def troubled(self, troubled: Troubled) -> None:
        """Tell the sinks of a derived channel here what is wrong with its derivation."""
        self._endpoints[troubled.member.id].troubled(troubled.trouble)

    def ends_of(self, channel: str) -> "Endpoints | None":
        """Return the ends of a channel here."""
        return self._endpoints.get(channel)

    def prepare(self, modulation: Modulation) -> Runner | Refused:
        """Return what runs a modulator here, or why that cannot be."""
        return self._operating.prepare(modulation)

    def drain(self, modulation: Modulation, then: "Callable[[], None]") -> None:
        """Send what a modulator holds back, then go on."""
        self._operating.drain(modulation, then)

    def consult(self, consult: Consult) -> None:
        """Look into the journal of a channel that is recorded here."""
        ends = self._endpoints[consult.member.id]
        recording = ends.recording
        if recording is None:  # it has ended meanwhile
            refused = Refused(RefusedError.__name__, f"channel `{consult.member.name}` is not recorded here")
            ends.switchboard.do(lambda _: consult.answer(refused))
        else:
            recording.consult(consult.message, consult.answer)

    def audited(self, audited: Audited) -> None:
        """Leave word of what somebody wanted, and whether he was let."""
        if not audited.decision:
            level = logging.WARNING if audited.request in OWN_LOSS else logging.INFO
            log.log(level, "%s from %s was refused: %s", audited.request, audited.address, audited.decision)
        if self.trail is not None:
            self.trail.note(audited)

    def clogged(self, link: "Link") -> None:
        """Go on with a link when it can be written again."""
        self._flusher.watch(link)
