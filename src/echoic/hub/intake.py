"""An intake: where rows that others compute become events of a channel, each exactly once.

    executors   stage, stage, ...  ---+                                +--> sinks of the channel
                                      +--> NAME.intake --> NAME -------+
    driver      commit(query, epoch) -+    (this process)              +--> journal in PATH

A data pipeline works in epochs and may repeat the last one after a crash. Sources of channels cannot take that back, so
between the two stands an intake: what is staged is invisible until its epoch is committed, a commit is one write to the
disk (`intake_log`), what was committed is published exactly once (`intake_publisher`), and a commit of an epoch that is
known does nothing (`intake_book`). A commit is answered when its rows are in the journal.

All of it is made of what channels have already: requests are synchronous events of a channel beside the one that is
written to (`intake_messages`), so they go over any link, to any hub, with names, credit and back-pressure as ever.

Two threads work here, one that takes requests and one that publishes: staging goes on while a slow sink holds up what
was committed. A commit that takes long is answered now and then by `busy`, so that its writer knows that it goes on.
"""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import msgspec

from echoic.channels import Concentrator
from echoic.errors import (
    ChannelNotFoundError,
    EchoicError,
    IncompatibleTypesError,
    JournalError,
    LimitExceededError,
    RefusedError,
    UnreachableError,
)
from echoic.formats import NATIVE, Format, match
from echoic.hub.intake_book import (
    AGE_NS_MAX,
    STAGED_BYTES_MAX,
    Attempt,
    Begun,
    Book,
    Known,
    Lost,
    Refused,
    Repeated,
    Taken,
    UnderWay,
)
from echoic.hub.intake_log import LOG_BYTES_MAX, Entry, IntakeLog, LoggedPart
from echoic.hub.intake_messages import (
    ABORT,
    BODY_BYTES_MAX,
    COMMIT,
    STAGE,
    Answer,
    Portion,
    batch_of_body,
    bodies_of,
    intake_name,
    parts_of,
)
from echoic.hub.intake_publisher import Publisher, lane_names
from echoic.hub.intake_spool import MEMORY_BYTES_MAX, Spool
from echoic.hub.naming import source_number
from echoic.hub.sink import RAISED, Arrival, Sink, problem_of
from echoic.recorder import Disk, Journal
from echoic.recorder.catalog import Catalog

if TYPE_CHECKING:
    from echoic.hub.channel import Channel
    from echoic.hub.hub import Hub

__all__ = ["Intake", "IntakeLimits", "IntakeStatistics"]

BUSY_SECONDS: Final = 1.0
IDLE_SECONDS: Final = 2.0
WAKE_SECONDS: Final = 0.2
CLOSE_SECONDS: Final = 1.0
GROWN_BYTES_MAX: Final = 16 * BODY_BYTES_MAX  # of a portion whose rows are given another type
DONE: Final = Answer("done")
FOLDER: Final = "intake"
log: Final = logging.getLogger("echoic.hub")


class IntakeLimits(msgspec.Struct, frozen=True):
    """How much an intake takes of what is not committed yet."""

    staged_bytes_max: int = STAGED_BYTES_MAX
    memory_bytes_max: int = MEMORY_BYTES_MAX
    age_ns_max: int = AGE_NS_MAX
    log_bytes_max: int = LOG_BYTES_MAX


class IntakeStatistics(msgspec.Struct, frozen=True):
    """What an intake has done since it was opened, and what it has in hand."""

    epochs: int
    """That were committed."""
    rows: int
    """Of these."""
    repeated: int
    """Commits of epochs that were known."""
    under_way: int
    """Epochs that are being published."""
    staged_bytes: int
    trouble: str


class Waiting(msgspec.Struct, frozen=True, eq=False):
    """A commit that waits for its rows to be published."""

    arrival: Arrival
    key: tuple[str, int]
    since: float


class Intake:
    """Takes rows for a channel, until it is closed. Made by `Hub.intake`."""

    def __init__(
        self,
        hub: "Hub",
        name: str,
        path: str | Path,
        declared: object | None = None,
        partitions: int = 1,
        limits: IntakeLimits = IntakeLimits(),  # noqa: B008 - it is frozen
    ) -> None:
        """Open an intake; what was committed and not published before is published.

        Raises:
            ChannelExistsError: The channel has an intake.
            FormatError: `declared` is not an event type.
            IncompatibleTypesError: The channel exists and has another type.
            JournalError: The journal or the log of the intake is damaged, in use, or cannot be written.
            EchoicError: The channel can be neither opened nor created.
        """
        self._hub = hub
        self._limits = limits
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._waiting: list[Waiting] = []
        self._epochs = self._rows = self._repeated = 0
        self._book = Book(bytes_max=limits.staged_bytes_max, age_ns_max=limits.age_ns_max)
        storage = Disk(path)
        directory = f"{Catalog(storage, name).directory}/{FOLDER}"
        with contextlib.ExitStack() as undo:
            self.channel: Final = _open_channel(hub, name, path, declared, undo)
            self.recording: Final = hub.record(self.channel, path, partitions=partitions)
            undo.callback(self.recording.close)
            self._lanes = self.recording.writer.partitions
            positions = self._positions()
            self._log = IntakeLog.open(storage, directory, positions)
            undo.callback(self._log.close)
            self._spool = Spool(storage, directory, memory_bytes_max=limits.memory_bytes_max)
            self._publisher = Publisher(self.channel, self.recording, self._log, self._published)
            unpublished = self._recover(positions)
            requests = hub.create(intake_name(name), Portion)
            undo.callback(hub.remove, intake_name(name))
            self._sink = Sink(requests.endpoints, None, Portion, batch=False, slow="block", queued=True, narrow=False)
            self._sink.name = intake_name(name)
            requests.endpoints.add_sink(self._sink)
            undo.pop_all()
        self._publisher.start(unpublished)
        self._thread = threading.Thread(target=self._serve, name="echoic-intake", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        """The name of the channel."""
        return self.channel.name

    @property
    def format(self) -> Format | None:
        """The type of the events; None until the first rows tell it."""
        return self.channel.format

    @property
    def trouble(self) -> str:
        """Why nothing can be committed or published for the moment; "" if all is well."""
        return self._log.failed or self._publisher.trouble or self.recording.trouble

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._stopping.is_set()

    def statistics(self) -> IntakeStatistics:
        """Return the counts so far."""
        with self._lock:
            return IntakeStatistics(
                self._epochs,
                self._rows,
                self._repeated,
                self._book.under_way,
                self._book.staged_bytes,
                self.trouble,
            )

    def close(self) -> None:
        """Take no more rows, and end. What is committed and not published will be when the intake is opened again."""
        with self._lock:
            if self._stopping.is_set():
                return
            self._stopping.set()
        self._sink.close(timeout=0)
        with contextlib.suppress(EchoicError):  # it is gone with the hub
            self._hub.remove(intake_name(self.name))
        self._thread.join(CLOSE_SECONDS)
        self._publisher.close(CLOSE_SECONDS)
        self.recording.close()
        self._log.close()
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for each in waiting:
            self._sink.finish(each.arrival, "")  # which writers take for what it is: nobody has answered

    def _positions(self) -> tuple[int, ...]:
        """Return how many events of each of the intake's sources the journal has."""
        known = self.recording.writer.positions
        return tuple(known.get(source_number(self.name, lane), 0) for lane in lane_names(self.name, self._lanes))

    def _recover(self, positions: tuple[int, ...]) -> list[Entry]:
        """Know what the log knows; return what is yet to be published.

        Raises:
            JournalError: Log and journal contradict each other.
            EchoicError: The sources cannot be opened.
        """
        for begun, position, after in zip(self._log.begun, positions, self._log.nexts, strict=True):
            if not begun <= position <= after:
                raise JournalError(
                    f"the journal of `{self.name}` has {position} rows of its intake, the intake's log is about rows "
                    f"{begun} to {after}: one of them was replaced; remove the folder `{FOLDER}` of the journal to "
                    "forget which epochs were committed"
                )
        for query, epoch in self._log.queries:
            self._book.settle(query, epoch, published=True)
        unpublished = []
        for entry in self._log.entries:
            ends = zip(entry.epoch.nexts(), positions, strict=True)
            published = all(number <= position for number, position in ends)
            self._book.settle(entry.epoch.query, entry.epoch.epoch, published=published)
            if not published:
                unpublished.append(entry)
        self._log.clear(unpublished)
        if unpublished and self.format is None:
            _, body = next(self._log.bodies(unpublished[0]))
            self._settle_type(batch_of_body(body).format)
        if self.format is not None:
            self._publisher.open(self.format)
        return unpublished

    def _serve(self) -> None:
        """Answer requests until the intake is closed."""
        while not self._stopping.is_set():
            arrival = self._sink.take(WAKE_SECONDS if self._waiting else IDLE_SECONDS)
            if arrival is not None:
                self._attend(arrival)
            if arrival is None or self._waiting:
                self._tend()

    def _attend(self, arrival: Arrival) -> None:
        """Answer a request, unless that has to wait for rows to be published."""
        answer, key = DONE, ("", 0)
        try:
            for portion in self._sink.decoded(arrival):
                answer, key = self._answer(portion), (portion.query, portion.epoch)
                if answer.state != "done":
                    break
        except EchoicError as error:
            answer = Answer("refused", str(error))
        except RAISED as error:  # whoever waits must hear of it, and the others be served
            log.exception("a request to the intake of %s could not be answered", self.name)
            answer = Answer("refused", f"the request could not be answered: {problem_of(error)}")
        if answer.state == "busy":
            with self._lock:
                decided = self._book.commit(*key, ())
                if isinstance(decided, UnderWay) and not self._stopping.is_set():
                    self._waiting.append(Waiting(arrival, key, time.monotonic()))
                    return
            if isinstance(decided, Known):  # it was published meanwhile
                answer = DONE
        self._sink.finish(arrival, answer.text())

    def _tend(self) -> None:
        """Tell those who wait for long that it goes on, and forget what nobody will commit any more."""
        now = time.monotonic()
        with self._lock:
            late = [each for each in self._waiting if now - each.since >= BUSY_SECONDS]
            self._waiting = [each for each in self._waiting if now - each.since < BUSY_SECONDS]
            expired = self._book.expire(time.monotonic_ns())
        for each in late:
            answer = Answer("busy", self.trouble or "a sink of the channel does not keep up", self._publisher.progress)
            self._sink.finish(each.arrival, answer.text())
        self._drop(expired)

    def _answer(self, portion: Portion) -> Answer:
        """Do what a writer asks for.

        Raises:
            EchoicError: It cannot be done.
        """
        if portion.kind == STAGE:
            attempt = Attempt(portion.query, portion.epoch, portion.partition, portion.attempt)
            return self._stage(attempt, portion.index, portion.body)
        if portion.kind == COMMIT:
            return self._commit(portion)
        if portion.kind == ABORT:
            with self._lock:
                dropped = self._book.abort(portion.query, portion.epoch)
            self._drop(dropped)
            return DONE
        raise RefusedError(f"an intake knows portions of kind {STAGE}, {COMMIT} and {ABORT}, got {portion.kind}")

    def _stage(self, attempt: Attempt, index: int, body: bytes) -> Answer:
        """Keep a portion of rows.

        Raises:
            IncompatibleTypesError: The rows cannot be events of the channel.
            JournalError: They cannot be kept.
            EchoicError: They are not what a portion has.
        """
        body, rows = self._fitted(body)
        with self._lock:
            decided = self._book.stage(attempt, index, len(body), time.monotonic_ns())
        match decided:
            case Taken():
                try:
                    self._spool.put(attempt, body, rows)
                except BaseException:  # whatever it is, nobody may commit a portion that is not there
                    self._discard((attempt,))
                    raise
                return DONE
            case Lost(reason):
                return Answer("lost", reason)
            case Refused(reason):
                return Answer("refused", reason)
            case Repeated() | Known():
                return DONE

    def _fitted(self, body: bytes) -> tuple[bytes, int]:
        """Return rows as the channel's type has them, and how many they are.

        Raises:
            IncompatibleTypesError: They cannot be had so.
            EchoicError: They are not what a portion has.
        """
        batch = batch_of_body(body)
        if self.format is None:
            self._settle_type(batch.format)
        wanted = self.format
        if wanted is None or wanted.token == batch.format.token:
            return body, batch.count
        try:
            match(batch.format, wanted)
        except IncompatibleTypesError as error:
            raise IncompatibleTypesError(f"the rows cannot be events of channel `{self.name}`: {error}") from error
        size = batch.count * _record_bytes(wanted)
        if size > max(GROWN_BYTES_MAX, 2 * len(body)):  # defaults may be large, and take no byte of a portion
            raise LimitExceededError(
                f"a portion of {batch.count} rows has {size} bytes as `{wanted.name}`, limit is {GROWN_BYTES_MAX}"
            )
        (fitted,) = bodies_of(batch.to(wanted), bytes_max=sys.maxsize)
        return fitted, batch.count

    def _settle_type(self, format: Format) -> None:
        """Let the channel, which was declared without a type, have that of the first rows.

        Raises:
            EchoicError: Its sources cannot be opened.
        """
        native = format.on(NATIVE)
        name, ends = self.name, self.channel.endpoints

        def settle(core: Concentrator) -> None:
            with contextlib.suppress(ChannelNotFoundError):  # it is managed elsewhere, and stays without a type there
                core.manager.directory.get(name).format = native
            ends.member.format = native

        ends.switchboard.do(settle)
        self._publisher.open(native)

    def _commit(self, portion: Portion) -> Answer:
        """Make an epoch durable and have it published, unless that was done before.

        Raises:
            JournalError: It cannot be written.
            EchoicError: It carries rows that cannot be events of the channel.
        """
        query, epoch = portion.query, portion.epoch
        named = parts_of(portion.body)
        parts = [each.part for each in named]
        with self._lock:
            decided = self._book.commit(query, epoch, [])
        if not isinstance(decided, Known | UnderWay):
            for each in named:
                for index, body in enumerate(each.carried):
                    answer = self._stage(Attempt(query, epoch, each.partition, each.attempt), index, body)
                    if answer.state != "done":
                        return answer
            with self._lock:
                decided = self._book.commit(query, epoch, parts)
        match decided:
            case Begun(attempts):
                return self._make_durable(query, epoch, attempts) if attempts else DONE
            case UnderWay():
                return Answer("busy")
            case Known():
                self._repeated += 1
                return DONE
            case Lost(reason):
                return Answer("lost", reason)
            case Refused(reason):
                return Answer("refused", reason)

    def _make_durable(self, query: str, epoch: int, attempts: tuple[Attempt, ...]) -> Answer:
        """Write an epoch to the disk, and have it published; it is `busy` until that is done.

        When the log is large it is begun anew, for which all of it must be published; until then the writer is told to
        ask again.

        Raises:
            JournalError: It cannot be written.
        """
        if self._log.size > self._limits.log_bytes_max:
            with self._lock:
                published, queries = not self._book.under_way, self._book.committed
            if published:
                self._log.renew(queries)
            elif self._log.size > 2 * self._limits.log_bytes_max:
                return Answer("busy", "what was committed before has to be published first", self._publisher.progress)
        kept = [self._spool.get(attempt) for attempt in attempts]
        lanes = self._lanes
        parts = [
            LoggedPart(attempt.partition % lanes, each.rows, tuple(each.sizes), each.file)
            for attempt, each in zip(attempts, kept, strict=True)
        ]
        try:
            self._spool.sync(attempts)
        except JournalError:
            self._discard(attempts)  # who commits them again is told that they are lost
            raise
        entry = self._log.append(query, epoch, parts, [body for each in kept for body in each.bodies])
        with self._lock:
            dropped = self._book.settle(query, epoch)
            self._epochs += 1
            self._rows += entry.epoch.rows
        for attempt in attempts:
            self._spool.drop(attempt, committed=True)
        self._publisher.publish(entry)
        self._drop(set(dropped).difference(attempts))
        return Answer("busy")

    def _published(self, entry: Entry) -> None:
        """Answer those who wait for an epoch, which is in the journal."""
        key = (entry.epoch.query, entry.epoch.epoch)
        with self._lock:
            self._book.publish(*key)
            ready = [each for each in self._waiting if each.key == key]
            self._waiting = [each for each in self._waiting if each.key != key]
        for each in ready:
            self._sink.finish(each.arrival, DONE.text())
        try:
            self._log.forget(entry)
        except JournalError as error:
            log.warning("%s", error)

    def _discard(self, attempts: tuple[Attempt, ...]) -> None:
        """Know nothing of attempts any more."""
        with self._lock:
            for attempt in attempts:
                self._book.discard(attempt)
        self._drop(attempts)

    def _drop(self, attempts: Sequence[Attempt] | set[Attempt]) -> None:
        for attempt in attempts:
            try:
                self._spool.drop(attempt)
            except JournalError as error:  # it is removed when the intake is next opened
                log.warning("%s", error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Intake of {self.channel.id}>"


def _record_bytes(format: Format) -> int:
    """Return how many bytes a record has at least that says nothing by itself."""
    texts = (field.default for field in format.fields if isinstance(field.default, str | bytes))
    return format.size + sum(map(len, texts))


def _open_channel(
    hub: "Hub", name: str, path: str | Path, declared: object | None, undo: contextlib.ExitStack
) -> "Channel":
    """Open the channel that rows go to, or create it; without a type of its own it has the one that was recorded."""
    try:
        return hub.open(name, declared)
    except (ChannelNotFoundError, UnreachableError):  # a name server may still know it from a hub that was killed
        known = declared if declared is not None else _recorded_type(name, path)
        created = hub.create(name, known)
        undo.callback(hub.remove, name)
        return created


def _recorded_type(name: str, path: str | Path) -> Format | None:
    """Return the type that a journal has for a channel, None if there is no journal or nothing in it."""
    if not Path(path).exists() or name not in Journal.channels(path):
        return None
    recorded = Journal(path, name)
    return recorded.format if recorded.formats else None
