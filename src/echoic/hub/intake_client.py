"""How rows get to an intake: stage, commit, and be told that it is done; or be told so a second time.

    client = IntakeClient(hub, "alerts")
    attempt = Attempt(query, epoch, partition, number)          a number that no other task has
    client.stage(attempt, index, body) ...                      the bodies of `intake_messages.bodies_of(batch)`
    client.commit(query, epoch, [CarriedPart(partition, number, portions)])

Every request may be repeated, so one whose answer does not come is sent again, also to an intake that was killed and
started anew, at the same place or under the same name at another one, until patience ends. What was staged is gone with
a process, though: what a commit carries itself is staged again, and for anything else the epoch has to be repeated by
whoever runs the query.
"""

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from echoic.errors import (
    ChannelNotFoundError,
    ClosedError,
    DeliveryError,
    EchoicError,
    RefusedError,
    UnreachableError,
)
from echoic.formats import Format
from echoic.hub.intake_book import Attempt
from echoic.hub.intake_messages import (
    ABORT,
    BODY_BYTES_MAX,
    COMMIT,
    STAGE,
    Answer,
    CarriedPart,
    Portion,
    answer_in,
    encode_parts,
    intake_name,
)

if TYPE_CHECKING:
    from echoic.hub.hub import Hub
    from echoic.hub.outbound import Source

__all__ = ["IntakeClient"]

PATIENCE_SECONDS: Final = 60.0
MISSING_SECONDS: Final = 3.0  # of an intake that was never met; one that was will come back
TRY_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.05


class IntakeClient:
    """Writes to a channel through its intake. It may be used by several threads, which take turns."""

    def __init__(self, hub: "Hub", channel: str, *, timeout: float = PATIENCE_SECONDS) -> None:
        """Name a channel; nobody is asked yet.

        Args:
            hub: The hub to ask from.
            channel: Its id, or its name in the hub or at its name servers.
            timeout: How many seconds to be patient with an intake that does not answer, or gets no further.
        """
        self.channel: Final = channel
        self._hub = hub
        self._timeout = timeout
        self._source: Source | None = None
        self._met = False
        self._lock = threading.Lock()

    def type(self) -> Format | None:
        """Return the type of the channel's events, None if the first rows are to tell it.

        It is asked for each time: a channel that was made anew may have fields that it had not before.

        Raises:
            ChannelNotFoundError: There is no such channel, or it has no intake; the message says how to make one.
            UnreachableError: Nobody answers.
        """
        begun = time.monotonic()
        deadline = begun + self._timeout
        while True:
            try:
                self._hub.describe(intake_name(self.channel))
                descriptor = self._hub.describe(self.channel).descriptor
                return Format.from_descriptor(descriptor) if descriptor else None
            except ChannelNotFoundError as error:
                if self._is_missing(begun) or time.monotonic() > deadline:
                    raise self._no_intake() from error
            except UnreachableError as error:
                if time.monotonic() > deadline:
                    raise UnreachableError(
                        f"the intake of channel `{self.channel}` has not answered in {self._timeout:g} s: {error}"
                    ) from error
            time.sleep(PAUSE_SECONDS)

    def stage(self, attempt: Attempt, index: int, body: bytes) -> None:
        """Give a portion of the rows of an epoch that is not committed yet.

        Raises:
            RefusedError: The intake does not take it; the message says why.
            ChannelNotFoundError: The channel has no intake.
            UnreachableError: Nobody answers.
        """
        self._demand(self._portion(STAGE, attempt, index, body), self._timeout)

    def commit(self, query: str, epoch: int, parts: Sequence[CarriedPart]) -> None:
        """Have an epoch published, once; return when all of its rows are in the journal.

        Raises:
            RefusedError: The intake does not take it; the message says why.
            ChannelNotFoundError: The channel has no intake.
            UnreachableError: Nobody answers, or the intake gets no further.
        """
        carried = sum(len(body) for part in parts for body in part.carried)
        whole = carried <= BODY_BYTES_MAX
        bare = [CarriedPart(part.partition, part.attempt, part.portions) for part in parts]
        body = encode_parts(list(parts) if whole else bare)
        deadline = time.monotonic() + self._timeout
        while True:
            if not whole:
                self._stage_carried(query, epoch, parts)
            answer = self._ask(self._portion(COMMIT, Attempt(query, epoch, 0, 0), 0, body), self._timeout)
            if answer.state == "done":
                return
            lost = answer.state == "lost" and not whole  # it was started anew after these were staged
            if not lost or any(part.portions and not part.carried for part in parts) or time.monotonic() > deadline:
                raise self._refusal(answer)

    def abort(self, query: str, epoch: int) -> None:
        """Have what was staged of an epoch dropped; one that is committed stays so.

        It is a courtesy to an intake that would forget it in time, so there is not much patience with one that is gone.

        Raises:
            RefusedError: The intake does not take it.
            ChannelNotFoundError: The channel has no intake.
            UnreachableError: Nobody answers.
        """
        self._demand(self._portion(ABORT, Attempt(query, epoch, 0, 0), 0, b""), min(self._timeout, TRY_SECONDS))

    def close(self) -> None:
        """Let go of the channel; it can be used again."""
        with self._lock:
            self._leave()

    def _stage_carried(self, query: str, epoch: int, parts: Sequence[CarriedPart]) -> None:
        for part in parts:
            for index, body in enumerate(part.carried):
                self.stage(Attempt(query, epoch, part.partition, part.attempt), index, body)

    def _portion(self, kind: int, attempt: Attempt, index: int, body: bytes) -> Portion:
        return Portion(
            query=attempt.query,
            epoch=attempt.epoch,
            partition=attempt.partition,
            attempt=attempt.attempt,
            kind=kind,
            index=index,
            body=body,
        )

    def _demand(self, portion: Portion, seconds: float) -> None:
        answer = self._ask(portion, seconds)
        if answer.state != "done":
            raise self._refusal(answer)

    def _ask(self, portion: Portion, seconds: float) -> Answer:
        """Return the answer to a portion, however often it has to be sent; but not `busy`."""
        begun = time.monotonic()
        deadline, progress, problem, told = begun + seconds, -1, "", ""
        with self._lock:
            while (left := deadline - time.monotonic()) > 0:
                try:
                    answer, problem = self._try(portion, min(left, TRY_SECONDS))
                except ChannelNotFoundError as error:
                    if self._is_missing(begun):
                        raise self._no_intake() from error
                    answer, problem = None, str(error)
                if answer is None:
                    self._leave()
                    time.sleep(PAUSE_SECONDS)
                elif answer.state != "busy":
                    return answer
                else:
                    told = answer.reason
                    if answer.progress != progress:  # one that was started anew counts from 0
                        deadline, progress = time.monotonic() + seconds, answer.progress
                    time.sleep(PAUSE_SECONDS)  # it may be busy with others, and have answered at once
        raise UnreachableError(
            f"the intake of channel `{self.channel}` has not got further in {seconds:g} s: {told or problem}"
        )

    def _is_missing(self, begun: float) -> bool:
        """Whether there is no intake, and not only none for the moment."""
        return not self._met and time.monotonic() > begun + MISSING_SECONDS

    def _try(self, portion: Portion, seconds: float) -> tuple[Answer | None, str]:
        """Send a portion once; return what the intake says, or None and what went wrong.

        Raises:
            ChannelNotFoundError: There is no intake.
        """
        try:
            if self._source is None:
                self._source = self._hub.open(intake_name(self.channel), Portion).source()
            self._source.submit_sync(portion, timeout=seconds)
        except DeliveryError as error:
            answer = answer_in(error)
            self._met = self._met or answer is not None
            return answer, str(error)
        except ChannelNotFoundError:
            raise
        except (UnreachableError, RefusedError) as error:
            return None, str(error)
        except ClosedError as error:
            if self._hub.closed:
                raise
            return None, str(error)
        return None, "nobody listens there"

    def _leave(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            with contextlib.suppress(EchoicError):  # whoever it was connected to is gone
                source.close()

    def _refusal(self, answer: Answer) -> RefusedError:
        again = ", because the intake was started anew: repeat the epoch" if answer.state == "lost" else ""
        return RefusedError(f"{answer.reason}{again} - at the intake of channel `{self.channel}`")

    def _no_intake(self) -> ChannelNotFoundError:
        name = self.channel.rpartition("/")[2]
        return ChannelNotFoundError(
            f"channel `{self.channel}` has no intake: open one with `hub.intake({name!r}, folder)`, or with "
            f"`echoic intake {name} --folder FOLDER`"
        )
