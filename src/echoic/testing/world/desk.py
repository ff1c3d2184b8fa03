"""The desk of a simulated recorder: the hub's own desk, without threads, on the simulation's clock.

Who asks for more than there is waits for the next commit, as at the desk of a real hub, and no longer than he says.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from echoic.channels import Concentrator, Consult, Fetch, Mark, Message
from echoic.hub.desk import WAIT_NS_MAX, Desk, Inquiry
from echoic.recorder import JournalWriter, Storage
from echoic.testing.network import MILLISECOND
from echoic.testing.simulated_recorder import SimulatedRecorder
from echoic.testing.surroundings import Surroundings

if TYPE_CHECKING:
    from echoic.hub.recording import Recording

__all__ = ["SimulatedDesk"]

READ_NS: Final = 3 * MILLISECOND
NEVER: Final = 1 << 63
"""A deadline that no real clock reaches: for whoever may still wait."""


class Shown:
    """What a desk sees of a recorder, which is what it sees of `hub.Recording`."""

    def __init__(self, recorder: SimulatedRecorder, storage: Storage) -> None:
        self.storage: Final = storage
        self.writer: Final[JournalWriter] = recorder.writer
        self.channel: Final = recorder.member.name
        self.journal: Final = recorder.writer.id
        self._recorder = recorder

    @property
    def switchboard(self) -> "Shown":
        """Under whose lock answers are given; there is none here."""
        return self

    @property
    def heads(self) -> tuple[int, ...]:
        """How far the journal is."""
        return self.writer.heads

    def do(self, action: Callable[[Concentrator], object]) -> None:
        """Let the concentrator do something."""
        if self._recorder.hub.alive:
            self._recorder.hub.do(action)


class SimulatedDesk(Desk):
    """Answers readers of a journal when the simulation's clock says so."""

    def __init__(self, around: Surroundings, recorder: SimulatedRecorder, storage: Storage) -> None:
        super().__init__(cast("Recording", Shown(recorder, storage)))
        self._around = around
        self._hub = recorder.hub
        self._patient: list[Inquiry] = []

    def ask(self, consult: Consult) -> None:
        """Answer a request, a little later."""
        self._around.clock.after(
            self._around.random.randrange(READ_NS), lambda: self._attend_to(consult.message, consult.answer)
        )

    def committed(self) -> None:
        """Look again for those who wait: more is on the disk."""
        waiting, self._patient = self._patient, []
        self._patient += [inquiry for inquiry in waiting if not self._attend(inquiry)]

    def _attend_to(self, message: Fetch | Mark, answer: Callable[[Message], None]) -> None:
        if not self._hub.alive:
            return
        wait_ns = min(max(message.wait_ns, 0), WAIT_NS_MAX) if isinstance(message, Fetch) else 0
        inquiry = Inquiry(message, answer, NEVER if wait_ns else 0)
        if not self._attend(inquiry):
            self._patient.append(inquiry)
            self._around.clock.after(wait_ns, lambda: self._give_up(inquiry))

    def _give_up(self, inquiry: Inquiry) -> None:
        """Answer with what there is, if somebody still waits."""
        if self._hub.alive and any(each is inquiry for each in self._patient):
            self._patient = [each for each in self._patient if each is not inquiry]
            self._attend(Inquiry(inquiry.message, inquiry.answer, 0))
