"""Recording a channel: a sink whose events are handled when they are on the disk.

    links, sources here -> the sink's queue -> append, append, ... -> write, fdatasync -> Kept to the sources' hubs
                                               (while the disk works, the next events gather)

*Group commit.* One thread takes all that has gathered, writes it at once, waits for the disk, and only then counts it
as handled: synchronous submitters get their answer, credit is granted, and the hubs of the sources are told by `Kept`
that they need keep it no longer (`channels.keeping`). At 3 ms for the disk a lone event takes 3 ms, and a flood costs
one wait for megabytes.

When the disk is full nothing is acknowledged, the sources are told why, and the attempt is made again until there is
room. When the disk fails to say what it has, the journal is opened anew, which finds out.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

import msgspec

from echoic.channels import Concentrator, Fetch, Kept, Mark, Message, recorder_name, take_over
from echoic.errors import EchoicError, JournalError, LocalError
from echoic.hub.desk import Desk
from echoic.hub.sink import RAISED, Arrival, Sink, problem_of
from echoic.recorder import JournalOptions, JournalWriter, Storage

if TYPE_CHECKING:
    from echoic.hub.channel import Channel
    from echoic.hub.switchboard import Switchboard

__all__ = ["Recording", "RecordingStatistics"]

GATHERED_BYTES_MAX: Final = 16 * 1024 * 1024
GATHERED_MAX: Final = 4096
IDLE_SECONDS: Final = 0.2
RETRY_SECONDS: Final = 0.5
CLOSE_SECONDS: Final = 10.0
log: Final = logging.getLogger("echoic.recorder")


class RecordingStatistics(msgspec.Struct, frozen=True):
    """What a recording has kept."""

    events: int
    bytes_written: int
    commits: int
    duplicates: int
    waiting_bytes: int
    trouble: str


class Recording:
    """A channel that is being recorded, until this is closed. Made by `Hub.record`."""

    def __init__(self, channel: "Channel", storage: Storage, options: JournalOptions) -> None:
        """Begin, or go on, to record.

        Raises:
            LocalError: The channel is recorded by this hub already, or derived where it is heard.
            JournalError: The journal is damaged, in use, or cannot be written.
            EchoicError: The channel's manager cannot be reached.
        """
        ends = channel.endpoints
        if ends.recording is not None:
            raise LocalError(f"channel `{channel.name}` is recorded by this hub already")
        if any(step.recipe.placement != "source" for step in ends.member.lineage):
            raise LocalError(f"`{channel.name}` is derived where it is heard: record what it is derived from")
        self._ends = ends
        self._storage, self._options = storage, options
        self._writer = self._open()
        self._trouble = ""
        self._stopping = threading.Event()
        self._closed = False
        self._kept = threading.Condition()
        self.journal: Final = self._writer.id
        self.desk: Final = Desk(self)
        ends.member.recorded = (self.journal, self._writer.positions)
        ends.recording = self
        self._sink = Sink(ends, None, None, batch=True, slow="block", queued=True, narrow=False)
        self._sink.name = recorder_name(self.journal)
        self._sink.journal, self._sink.held = self.journal, True
        self._taken_over: list[Arrival] = []
        self._thread = threading.Thread(target=self._serve, name="echoic-recorder", daemon=True)
        try:
            self._begin()
        except BaseException:  # to record was not possible for the moment: what sources keep must not be let go
            self._thread.start()
            self.close(release=False)
            raise
        self._thread.start()

    @property
    def channel(self) -> str:
        """The name of the channel."""
        return self._ends.member.name

    @property
    def switchboard(self) -> "Switchboard":
        """The hub's, under whose lock answers are given."""
        return self._ends.switchboard

    @property
    def storage(self) -> Storage:
        """Where the journal is."""
        return self._storage

    @property
    def writer(self) -> JournalWriter:
        """Who writes the journal."""
        return self._writer

    @property
    def heads(self) -> tuple[int, ...]:
        """For each partition the sequence number of the next event: all before it are on the disk."""
        return self._writer.heads

    @property
    def recovered(self) -> tuple[str, ...]:
        """What was put aside when the journal was opened, in words."""
        return self._writer.recovered

    @property
    def trouble(self) -> str:
        """Why nothing can be kept for the moment, or something is not as it should be; "" if all is well."""
        return self._trouble or self._writer.trouble

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._closed

    def statistics(self) -> RecordingStatistics:
        """Return the counts so far."""
        counts = self._writer.statistics()
        waiting = self._sink.statistics().waiting_bytes
        return RecordingStatistics(
            counts.events, counts.bytes, counts.commits, counts.duplicates, waiting, self._trouble
        )

    def wait_kept(self, source: int, position: int, seconds: float) -> bool:
        """Wait until all events of a source before a number are on the disk; tell whether they are."""
        with self._kept:
            return self._kept.wait_for(lambda: self._writer.positions.get(source, 0) >= position, seconds)

    def consult(self, message: Fetch | Mark, answer: Callable[[Message], None]) -> None:
        """Answer somebody who wants to read the journal, or to remember in it how far he is."""
        self.desk.consult(message, answer)

    def close(self, *, release: bool = True) -> None:
        """Keep what has arrived, and end.

        Args:
            release: Tell the sources that nothing is recorded any more. Otherwise they keep events, and wait when
                these are too many, until the same journal is recorded again, by this hub or another one.
        """
        if self._stopping.is_set():
            return
        self._sink.held = not release
        self._ends.remove_sink(self._sink)
        self._stopping.set()
        self._thread.join(CLOSE_SECONDS)
        self.desk.close()
        self._ends.member.recorded = None
        self._ends.recording = None
        self._closed = True

    def _begin(self) -> None:
        """Take part as a sink.

        Beside others that were here before, events count only once the hub that sends them has said from where on, and
        has sent again what the journal lacks; else what is missing would be taken for lost. Sources of this very hub
        may have kept events while the journal was recorded elsewhere: these come first.
        """
        ends, member = self._ends, self._ends.member
        if ends.sinks:
            self._sink.arrived = True
            ends.switchboard.do(lambda _: member.turns.expect(self._sink.name))
        ends.add_sink(self._sink)
        for run, batch in ends.switchboard.do(lambda _: take_over(member, self.journal)):
            self._taken_over.append(Arrival(batch, run.source, run.first, len(run.frame), lambda _: None))

    def _open(self) -> JournalWriter:
        writer = JournalWriter.open(
            self._storage,
            self._ends.member.name,
            self._options,
            id=secrets.token_bytes(16),
            now_ns=time.time_ns(),
        )
        for text in writer.recovered:
            log.warning("the journal of %s: %s", self._ends.member.name, text)
        return writer

    def _serve(self) -> None:
        """Keep what arrives, until the recording ends and nothing waits any more."""
        settled, arrivals = True, self._taken_over
        try:
            if self._taken_over:
                self._keep(self._taken_over)
                self._taken_over = []
            while True:
                arrivals = self._gather()
                if arrivals:
                    self._keep(arrivals)
                    settled = False
                elif self._stopping.is_set() or self._sink.closed:
                    return
                elif not settled:
                    settled = self._settle()
        except RAISED as error:  # whatever it is, those who wait must know that it is in vain
            log.exception("the recorder of %s has stopped", self.channel)
            self._trouble = f"the recorder has stopped: {problem_of(error)}"
            self._tell(arrivals, self._trouble)
        finally:
            self._finish()

    def _gather(self) -> list[Arrival]:
        """Return all that waits, after a short while nothing."""
        first = self._sink.take(IDLE_SECONDS)
        gathered = [first] if first is not None else []
        size = first.size if first is not None else 0
        while gathered and size < GATHERED_BYTES_MAX and len(gathered) < GATHERED_MAX:
            arrival = self._sink.take(0)
            if arrival is None:
                break
            gathered.append(arrival)
            size += arrival.size
        return gathered

    def _keep(self, arrivals: list[Arrival]) -> None:
        """Write events to the disk, however long it takes; then tell those who wait for that."""
        appended = False
        problems: dict[int, str] = {}
        while True:
            try:
                if self._writer.failed:
                    self._reopen()
                    appended = False
                if not appended:
                    problems = self._append(arrivals)
                    appended = True
                self._writer.commit(time.time_ns())
                break
            except JournalError as error:
                self._suffer(error, arrivals)
                if self._stopping.wait(RETRY_SECONDS):
                    for arrival in arrivals:
                        self._sink.finish(arrival, f"it was not recorded: {error}")
                    return
        if self._trouble:
            log.warning("the journal of %s goes on", self.channel)
            self._trouble = ""
        self._tell(arrivals, "")
        self.desk.committed()
        with self._kept:
            self._kept.notify_all()
        for place, arrival in enumerate(arrivals):
            self._sink.finish(arrival, problems.get(place, ""))

    def _append(self, arrivals: list[Arrival]) -> dict[int, str]:
        """Give events to the writer; return what is wrong with those that no journal can have, by their places.

        Raises:
            JournalError: The writer has failed.
        """
        writer, now_ns = self._writer, time.time_ns()
        problems: dict[int, str] = {}
        for place, arrival in enumerate(arrivals):
            try:
                if arrival.batch.count:
                    writer.append(arrival.batch, arrival.source, arrival.first, now_ns)
            except JournalError:
                raise
            except EchoicError as error:  # of a peer that breaks rules, which must not keep others from being recorded
                log.warning("events of source %d cannot be recorded: %s", arrival.source, error)
                problems[place] = f"it was not recorded: {error}"
        return problems

    def _reopen(self) -> None:
        """Find out what is on the disk, after it failed to say so."""
        self._writer.close(time.time_ns())
        self._writer = self._open()
        self._ends.member.recorded = (self.journal, self._writer.positions)

    def _suffer(self, error: JournalError, arrivals: list[Arrival]) -> None:
        """Tell the sources why they have to wait, once for each reason."""
        text = str(error)
        if text != self._trouble:
            self._trouble = text
            log.error("the journal of %s cannot be written: %s", self.channel, text)
            self._tell(arrivals, text)

    def _tell(self, arrivals: list[Arrival], trouble: str) -> None:
        """Tell the hubs of sources how far their events are kept; also of those that were kept before."""
        positions = self._writer.positions
        told: dict[str, dict[int, int]] = {}
        for arrival in arrivals:
            if arrival.hub:
                told.setdefault(arrival.hub, {})[arrival.source] = positions.get(arrival.source, 0)
        if not told:
            return
        member = self._ends.member

        def tell(core: Concentrator) -> None:
            for hub, kept in told.items():
                if hub in core.neighbours:
                    core.send(hub, Kept(member.id, self.journal, kept, trouble))

        self._ends.switchboard.do(tell)

    def _settle(self) -> bool:
        """Make the mark of the last commit as safe as what it marks; tell whether it is."""
        try:
            if self._writer.failed:
                self._reopen()
            settled = self._writer.settle(time.time_ns())
        except JournalError as error:
            self._suffer(error, [])
            self._stopping.wait(RETRY_SECONDS)
            return False
        self._trouble = ""
        return settled

    def _finish(self) -> None:
        try:
            self._writer.close(time.time_ns())
        except RAISED as error:
            log.warning("the journal of %s cannot be closed: %s", self.channel, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Recording of {self.channel} in journal {self.journal[:8]}>"
