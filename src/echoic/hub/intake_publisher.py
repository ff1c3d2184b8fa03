"""Publishing committed epochs: their rows become events of the channel, each once, whatever happens on the way.

    the log of the intake -> one named source for each partition of the journal -> sinks, and the recorder's disk

Rows have numbers from the moment they are committed. A named source goes on after the last event that is on the disk
(`hub.naming`), so after a crash rows are left out whose numbers the journal has, and the others follow; what the
recorder gets twice nevertheless it drops by number. An epoch counts as published when its last row is on the disk.

This is where back-pressure comes from: `submit_batch` waits while a sink that wants every event has no room, the next
commit of the query waits for this one, and a query that waits reads nothing.

Rows of partition p go to source p modulo the number of sources, each of which is in a partition of the journal for
itself, so the rows of a task stay in their order.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from echoic.errors import ClosedError, EchoicError, JournalError
from echoic.formats import Format
from echoic.hub.channel import Channel
from echoic.hub.intake_log import Entry, IntakeLog
from echoic.hub.intake_messages import batch_of_body
from echoic.hub.naming import source_number
from echoic.hub.outbound import Source
from echoic.hub.recording import Recording
from echoic.hub.sink import RAISED, problem_of
from echoic.wire import Batch

__all__ = ["Publisher", "lane_names"]

NAMES_MAX: Final = 1_000_000
WAIT_SECONDS: Final = 0.2
RETRY_SECONDS: Final = 0.5
log: Final = logging.getLogger("echoic.hub")


def lane_names(channel: str, partitions: int) -> tuple[str, ...]:
    """Return for each partition of a journal the name of a source whose events go there."""
    found: dict[int, str] = {}
    for number in range(NAMES_MAX):
        name = f"intake-{number}"
        found.setdefault(source_number(channel, name) % partitions, name)
        if len(found) == partitions:
            break
    return tuple(found[partition] for partition in range(partitions))


class Publisher:
    """Publishes epochs in the order in which they were committed, in a thread of its own."""

    def __init__(
        self, channel: Channel, recording: Recording, intake_log: IntakeLog, published: Callable[[Entry], None]
    ) -> None:
        self._channel, self._recording, self._log = channel, recording, intake_log
        self._published = published
        self._sources: tuple[Source, ...] = ()
        self._waiting: deque[Entry] = deque()  # bounded by those who commit: each waits for its own
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name="echoic-intake-publisher", daemon=True)
        self.progress = 0
        """How many rows were published, or found to be so, since the intake was opened."""
        self.trouble = ""
        """Why nothing can be published for the moment, "" if all is well."""

    def open(self, format: Format) -> tuple[int, ...]:
        """Open the sources, once the type of the events is known; return the numbers of their next events.

        Raises:
            EchoicError: They cannot be opened.
        """
        if not self._sources:
            names = lane_names(self._channel.name, self._recording.writer.partitions)
            self._sources = tuple(self._channel.source(format, name=name) for name in names)
        return tuple(source.position for source in self._sources)

    def start(self, entries: Sequence[Entry]) -> None:
        """Begin, with what was committed and not published when the intake ended the last time."""
        self._waiting.extend(entries)
        self._thread.start()

    def publish(self, entry: Entry) -> None:
        """Have an epoch published, after those before it."""
        with self._changed:
            self._waiting.append(entry)
            self._changed.notify_all()

    def close(self, seconds: float) -> None:
        """Publish no more; what is not will be when the intake is opened again."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(seconds)
        for source in self._sources:
            source.close()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopping)
                if self._stopping:
                    return
                entry = self._waiting[0]
            try:
                done = self._publish(entry)
            except ClosedError:
                return  # the hub has ended
            except EchoicError as error:
                self._suffer(str(error))
                continue
            except RAISED as error:  # nothing can be committed without this thread
                self._suffer(problem_of(error))
                continue
            if done:
                self.trouble = ""
                self._waiting.popleft()
                self._published(entry)

    def _suffer(self, trouble: str) -> None:
        """Say once what is wrong, and try again in a while: what is committed cannot be left out."""
        if self.trouble != trouble:
            self.trouble = trouble
            log.error("rows of %s cannot be published: %s", self._channel.name, trouble)
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, RETRY_SECONDS)

    def _publish(self, entry: Entry) -> bool:
        """Submit what the journal has not; return when it is on the disk, or false when the intake is closed.

        Raises:
            JournalError: Rows cannot be read.
            ClosedError: The hub was closed.
        """
        numbers = list(entry.epoch.firsts)
        for lane, body in self._log.bodies(entry):
            batch = batch_of_body(body)
            if self._stopping:
                return False
            self._submit(self._sources[lane], numbers[lane], batch)
            numbers[lane] += batch.count
        for source, number in zip(self._sources, entry.epoch.nexts(), strict=True):
            while not self._recording.wait_kept(source.id, number, WAIT_SECONDS):
                if self._stopping:
                    return False
                self.trouble = self._recording.trouble
        return True

    def _submit(self, source: Source, number: int, batch: Batch) -> None:
        """Submit events from a number on, without those that were submitted before."""
        behind = source.position - number
        if behind < 0:
            raise JournalError(
                f"the journal of `{self._channel.name}` has {source.position} events of source {source.id:x}, expected "
                f"{number}"
            )
        self.progress += batch.count
        if behind >= batch.count:
            return
        if behind:
            _, batch = batch.parts([behind, batch.count - behind])
        source.submit_batch(batch)
