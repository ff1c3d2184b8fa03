"""Replay: a recording flows through a channel once more.

    journal -> read -> pace (`recorder.replaying`) -> on_batch -> the source that stands for the recorded one -> sinks

A thread reads the journal and submits batches as they were received: the sender's layout, nothing decoded. Each
recorded source has a source of its own here, so that who receives can tell them apart as before, and has the events of
each in the order in which it submitted them. When a recorded source went on with another type, so does the one here.

A journal's end is fixed when the replay begins. Otherwise a channel that is recorded into the journal it is replayed
from would never come to an end.

*What time was it?* Three answers, for three kinds of sinks:

    anywhere           `stamp="field"` writes the recorded time into a field of the events (`recorder.stamping`)
    in this process    `replay.now_ns` is the clock of the recording, to be read in place of `time.time_ns()`
    exact              `on_batch(recorded)` is called before a batch is submitted; `replay.current` is that batch while
                       handlers without a thread of their own are called

At full speed 6 to 17 million events of 104 bytes a second reach a local sink in batches of 1000, 6 to 10 million one in
another hub (measured on a busy machine of two cores). What a batch costs is the same for one event as for a thousand.
"""

import heapq
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, TypeAlias

import msgspec

from echoic.errors import ChannelExistsError, ChannelNotFoundError, ClosedError, LocalError
from echoic.hub.replay_sources import ReplaySources, common_type
from echoic.hub.replay_window import ReplayOptions, Window, bounds_of
from echoic.recorder import Hole, Journal, Recorded
from echoic.recorder.journal import Moment
from echoic.recorder.replaying import PacingStatistics
from echoic.recorder.stamping import stamped
from echoic.wire.batch import Whole

if TYPE_CHECKING:
    from echoic.hub.channel import Channel

__all__ = ["Replay", "ReplayState", "ReplayStatistics", "start_replay"]

ReplayState: TypeAlias = Literal["running", "paused", "ended", "failed", "closed"]

WAIT_SECONDS_MAX: Final = 3600.0
CLOSE_SECONDS: Final = 5.0


class Opener(Protocol):
    """Who opens and makes channels."""

    def open(self, channel: str, declared: object | None = None) -> "Channel":
        """Open a channel by name or id."""

    def create(self, name: str, declared: object | None = None) -> "Channel":
        """Make a channel."""


class ReplayStatistics(msgspec.Struct, frozen=True):
    """How far a replay has come."""

    state: ReplayState
    events: int
    """How many were submitted."""
    batches: int
    sources: int
    """How many recorded sources have been met."""
    passes: int
    """How many times the end was reached."""
    holes: int
    """How often the journal could not be read, and reading went on behind it."""
    positions: tuple[int, ...]
    """The sequence number of the next event, for each partition that is replayed."""
    bounds: tuple[tuple[int, int], ...]
    """The first sequence number and the one behind the last, for each partition that is replayed."""
    time_ns: int | None
    """What time it is in the recording."""
    pace: PacingStatistics


class Replay:
    """A recording that flows through a channel. Made by `Hub.replay`; all methods can be called from any thread."""

    def __init__(self, journal: Journal, channel: "Channel", options: ReplayOptions) -> None:
        """Begin to replay, with options that suit the journal.

        Raises:
            JournalError: The journal cannot be read.
        """
        self.channel: Final = channel
        self.journal: Final = journal
        self._options = options
        self._partitions, self._bounds = bounds_of(journal, options.window)
        self._pacing = options.pacing()
        self._sources = ReplaySources(channel)
        self._changed = threading.Condition()
        self._sought: Window | None = None
        self._current: Recorded | None = None
        self._failure: BaseException | None = None
        self._closing = self._ended = False
        self._events = self._batches = self._passes = self._holes = 0
        self._positions = [first for first, _ in self._bounds]
        self._thread = threading.Thread(target=self._run, name=f"echoic-replay {channel.name}", daemon=True)
        self._thread.start()

    @property
    def rate(self) -> float:
        """How many times as fast as it was recorded, infinity for as fast as possible; may be set at any time.

        Raises:
            LocalError: It is not a rate.
        """
        return self._pacing.rate

    @rate.setter
    def rate(self, rate: float) -> None:
        with self._changed:
            self._pacing.set_rate(rate, time.monotonic_ns())
            self._changed.notify_all()

    @property
    def state(self) -> ReplayState:
        """Whether it goes on."""
        if self._ended:
            return "failed" if self._failure is not None else "closed" if self._closing else "ended"
        return "paused" if self._pacing.paused else "running"

    @property
    def now_ns(self) -> int | None:
        """What time it is in the recording, None before the first event.

        It runs at the rate of the replay, from the time of one batch to the time of the next.
        """
        with self._changed:
            return self._pacing.recorded_ns(time.monotonic_ns())

    @property
    def current(self) -> Recorded | None:
        """What is being submitted at this moment, None between two batches."""
        return self._current

    @property
    def sources(self) -> dict[int, int]:
        """By recorded source, the id of the one that stands for it here."""
        return self._sources.ids()

    def pause(self) -> None:
        """Submit no more until `resume`; at most the batch that is on its way."""
        with self._changed:
            self._pacing.pause(time.monotonic_ns())

    def resume(self) -> None:
        """Go on."""
        with self._changed:
            self._pacing.resume(time.monotonic_ns())
            self._changed.notify_all()

    def step(self, events: int = 0) -> None:
        """Submit so many events and be paused then; 0 for what is left of a batch, or else the next one.

        Raises:
            LocalError: The number is negative.
        """
        with self._changed:
            self._pacing.step(events, time.monotonic_ns())
            self._changed.notify_all()

    def seek(self, sequence: int | None = None, *, time: Moment | None = None) -> None:
        """Go on from an event, or from a time, towards the same end as before; paused if it is.

        Args:
            sequence: The sequence number of the next event.
            time: Or when it was recorded: nanoseconds since 1970, a datetime, or ISO text.

        Raises:
            LocalError: Neither or both are given, there are several partitions, or it is not in the window.
            ClosedError: The replay has come to its end.
        """
        if (sequence is None) == (time is None):
            raise LocalError("expected either a sequence number or a time to seek, got both or neither")
        if sequence is not None:
            self._check_sequence(sequence)
        window = self._options.window
        sought = Window(sequence, window.end, window.since if time is None else time, window.until, window.partition)
        self._read(sought)  # complains at once
        with self._changed:
            if self._ended or self._closing:
                raise ClosedError("cannot seek: the replay has come to its end")
            self._sought = sought
            self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; tell whether it was reached in time.

        Every event has then been submitted, and handled by sinks here that have no thread of their own. `drain` waits
        for the others.

        Raises:
            JournalError: The journal could not be read to the end.
            EchoicError: Events could not be submitted.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._ended, timeout)
            failure = self._failure
        if failure is not None:
            raise failure
        return self._ended

    def drain(self, timeout: float = 5.0) -> None:
        """Return when every sink has handled all that was submitted so far.

        Raises:
            DeliveryError: Naming those that did not answer in time.
            ClosedError: The replay or the hub was closed.
        """
        self._sources.drain(timeout)

    def statistics(self) -> ReplayStatistics:
        """Return how far it has come."""
        with self._changed:
            now_ns = time.monotonic_ns()
            return ReplayStatistics(
                state=self.state,
                events=self._events,
                batches=self._batches,
                sources=len(self._sources.ids()),
                passes=self._passes,
                holes=self._holes,
                positions=tuple(self._positions),
                bounds=self._bounds,
                time_ns=self._pacing.recorded_ns(now_ns),
                pace=self._pacing.statistics(now_ns),
            )

    def close(self) -> None:
        """End the replay and its sources; does not wait longer than some seconds for a sink that takes nothing."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_SECONDS)
            if not self._thread.is_alive():
                self._sources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_sequence(self, sequence: int) -> None:
        """Make sure that a sequence number is one of this replay.

        Raises:
            LocalError: It is not.
        """
        if len(self._bounds) != 1:
            raise LocalError(
                f"a sequence number is one of a partition, and {len(self._bounds)} are replayed; seek a time"
            )
        first, end = self._bounds[0]
        if not first <= sequence <= end:
            raise LocalError(f"cannot seek sequence number {sequence}, the replay has {first} to {end}")

    def _run(self) -> None:
        try:
            self._play()
        except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it, whatever foreign code has done
            if not (self._closing and isinstance(error, ClosedError)):  # the hub was closed too
                self._failure = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            closing = self._closing
        if closing:  # perhaps by a handler, or nobody could wait for this thread
            self._sources.close()

    def _play(self) -> None:
        """Go through the recording, again from the beginning or from elsewhere as is wished."""
        window = self._options.window
        while True:
            before = self._events
            for recorded in self._read(window):
                if not self._hand_over(recorded):
                    break
            with self._changed:
                if self._closing:
                    return
                sought, self._sought = self._sought, None
                if sought is None:
                    self._passes += 1
                    whole = window is self._options.window
                    if self._passes == self._options.loop or (whole and self._events == before):
                        self._ended = True  # from here on nobody can seek any more
                        return
                window = sought or self._options.window
                self._pacing.restart(time.monotonic_ns())

    def _read(self, window: Window) -> Iterator[Recorded]:
        """Read all partitions, in the order in which they were recorded as far as clocks tell.

        Raises:
            LocalError: The window has no time, at once.
            JournalError: The journal cannot be read, at once or later.
        """
        on_hole = None if self._options.on_hole is None else self._tell_hole
        streams = [
            window.read(self.journal, partition, end, on_hole)
            for partition, (_, end) in zip(self._partitions, self._bounds, strict=True)
        ]
        return streams[0] if len(streams) == 1 else heapq.merge(*streams, key=_time_of)

    def _tell_hole(self, hole: Hole) -> None:
        self._holes += 1
        if self._options.on_hole is not None:
            self._options.on_hole(hole)

    def _hand_over(self, recorded: Recorded) -> bool:
        """Submit a batch when it is due, in one piece or in steps; False when something else is to be done."""
        count, given = recorded.batch.count, 0
        whole: Whole | None = None  # one for all steps: it is decoded once
        with self._changed:
            self._pacing.load(recorded.time_ns, count, time.monotonic_ns())
        while given < count:
            allowed = self._await_due()
            if not allowed:
                return False
            if allowed < count:
                whole = whole or Whole(recorded.batch)
                self._submit(_part(recorded, whole, given, allowed))
            else:
                self._submit(recorded)
            given += allowed
        return True

    def _await_due(self) -> int:
        """Wait until events in hand may go, and take them; 0 when something else is to be done."""
        with self._changed:
            while not self._closing and self._sought is None:
                now_ns = time.monotonic_ns()
                allowed = self._pacing.allowed(now_ns)
                if allowed:
                    self._pacing.take(allowed, now_ns)
                    return allowed
                wait_ns = self._pacing.wait_ns(now_ns)
                self._changed.wait(None if wait_ns is None else min(wait_ns / 1e9, WAIT_SECONDS_MAX))
            return 0

    def _submit(self, recorded: Recorded) -> None:
        self._current = recorded
        try:
            if self._options.on_batch is not None:
                self._options.on_batch(recorded)
            batch = recorded.batch
            if self._options.stamp:
                batch = stamped(batch, self._options.stamp, recorded.time_ns)
            self._sources.of(recorded.source, batch.format).submit_batch(batch)
        finally:
            self._current = None
        with self._changed:
            self._events += batch.count
            self._batches += 1
            self._positions[self._partitions.index(recorded.partition)] = recorded.sequence + batch.count

    def __repr__(self) -> str:
        return f"<Replay of {self.journal.name} into {self.channel.id}: {self.state}>"


def start_replay(opener: Opener, path: str | Path, channel: str, recorded: str, options: ReplayOptions) -> Replay:
    """Open or create a channel, and replay a journal into it.

    Args:
        opener: The hub.
        path: The folder of the journal.
        channel: The name or id of the channel; that of the recorded one if empty.
        recorded: The recorded channel; if empty, the one called like `channel`, or else the only one.
        options: How.

    Raises:
        JournalError: There is no such journal, or it cannot be read.
        LocalError: An option is wrong.
        EchoicError: The channel can be neither opened nor created.
    """
    if not recorded and channel and Path(path).is_dir() and channel in Journal.channels(path):
        recorded = channel
    journal = Journal(path, recorded)
    options.check(journal)  # before a channel is made
    return Replay(journal, _open_channel(opener, channel or journal.name, journal), options)


def _open_channel(opener: Opener, name: str, journal: Journal) -> "Channel":
    try:
        return opener.open(name)
    except ChannelNotFoundError:
        if "://" in name:
            raise
    try:
        return opener.create(name, common_type(journal.formats))
    except ChannelExistsError:  # somebody was faster
        return opener.open(name)


def _part(recorded: Recorded, whole: Whole, start: int, count: int) -> Recorded:
    """Return some events of a batch."""
    batch, sequence, first = whole.part(start, count), recorded.sequence + start, recorded.first + start
    return msgspec.structs.replace(recorded, batch=batch, sequence=sequence, first=first)


def _time_of(recorded: Recorded) -> int:
    return recorded.time_ns
